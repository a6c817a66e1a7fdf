//! What readers answered: by prompt, by summary alone, and which probes did not qualify.

use std::collections::BTreeMap;

use super::{role, row};
use crate::metric::answers::{Answers, Beside, Extract, Qualification, Qualifying};
use crate::metric::fidelity;
use crate::metric::survival::is_planted;
use crate::probe::{Outcome, Unscored, Verdict};
use crate::record::{Arm, CellRecord, ProbeText};
use crate::report::arm::{ArmAnswers, ArmSummary, FAILINGS, Fidelity};
use crate::report::build::Material;
use crate::report::{Audience, Cell, Column, Role, Section, Table, Value, figure};

/// How many items of the reference were asked, and of how many of these the evidence stood for the full
/// history; nothing where it did of none.
fn of_evidence(material: &Material<'_>) -> Option<(usize, usize)> {
    let cells = material.cells.iter();
    let items = cells
        .filter(|cell| cell.arm == Arm::Reference)
        .flat_map(|cell| &cell.probes)
        .filter(|item| item.answer.is_some());
    let (asked, evidence) = items.fold((0, 0), |(asked, evidence), item| {
        (asked + 1, evidence + usize::from(item.of_evidence))
    });
    (evidence > 0).then_some((asked, evidence))
}

/// The ceiling as rows of the reference are marked with it; nothing where it is full history.
pub(super) fn ceiling_mark(material: &Material<'_>) -> Option<String> {
    let (asked, evidence) = of_evidence(material)?;
    Some(if evidence == asked {
        "ceiling: evidence".to_owned()
    } else {
        format!("ceiling: evidence in {evidence} of {asked} items")
    })
}

/// The same in a sentence, for tables that compare with it.
pub(in crate::report) fn ceiling(material: &Material<'_>) -> Option<String> {
    let (asked, evidence) = of_evidence(material)?;
    let window = material.manifest.conditions.get("reader window");
    let window = window.map_or(String::new(), |window| format!(" of {window}"));
    Some(format!(
        "ceiling: evidence. Of {evidence} of {asked} items full history does not fit the reader's \
         window{window}; what stands as full history there is the evidence with the newest history \
         that fits"
    ))
}

/// Items that no reader could be asked, for the prompt was too long; nothing where there are none.
pub(in crate::report) fn too_long(material: &Material<'_>) -> Option<String> {
    let too_long = Verdict::Unscored {
        reason: Unscored::TooLong,
    };
    let cells = material.cells.iter().copied();
    let items = cells.flat_map(|cell| cell.probes.iter().map(move |item| (cell.arm, item)));
    let refused = items.filter(|(_, item)| item.verdict() == Some(too_long));
    let (all, of_full) = refused.fold((0, 0), |(all, full), (arm, _)| {
        (all + 1, full + usize::from(arm == Arm::Reference))
    });
    (all > 0).then(|| {
        format!(
            "{all} items are unscored, {of_full} of them under full history: the prompt was too long \
             for the reader. `models.reader_window` says what fits"
        )
    })
}

/// Outcomes of a reader without a model, or what stands beside accuracy.
pub(super) fn of_prompts(material: &Material<'_>) -> Section {
    let is_extract = material
        .arms
        .iter()
        .any(|(_, arm)| matches!(arm.answers, Some(ArmAnswers::Extract { .. })));
    let is_open = material.arms.iter().any(|(_, arm)| is_open(arm));
    let rows = material
        .arms
        .iter()
        .filter_map(|(kind, arm)| {
            let cells = match arm.answers.as_ref()? {
                ArmAnswers::Extract {
                    outcomes, bounds, ..
                } => {
                    let mut cells = extracts(material, &arm.strategy);
                    cells.extend(is_open.then(|| between(*bounds)));
                    cells.push(Cell::count(outcomes.unscored));
                    cells
                }
                ArmAnswers::Accuracy {
                    accuracy,
                    bounds,
                    fidelity,
                    fidelity_bounds,
                    normalised,
                    failings,
                    unscored,
                    needs_judge,
                    unqualified,
                    ..
                } => {
                    let mut cells = vec![Cell::estimate(*accuracy)];
                    cells.extend(is_open.then(|| between(*bounds)));
                    cells.push(in_table(*fidelity));
                    cells.extend(is_open.then(|| between(*fidelity_bounds)));
                    cells.push(Cell::estimate(*normalised));
                    let rates = FAILINGS.iter().map(|(name, _)| failings.get(name).copied());
                    cells.extend(rates.map(Cell::estimate));
                    cells.push(Cell::count(*unscored));
                    cells.extend(is_open.then(|| Cell::count(*needs_judge)));
                    cells.push(Cell::count(*unqualified));
                    cells
                }
            };
            let mut row = row(&arm.strategy, role(*kind), cells);
            if *kind == Arm::Reference {
                row.marks.extend(ceiling_mark(material));
            }
            row.marks.extend(above_full(arm).map(str::to_owned));
            Some(row)
        })
        .collect();
    let mut columns = vec![Column::new("strategy", "strategy", 0)];
    let about = if is_extract {
        columns.extend([
            Column::new("right", "right", 0),
            Column::new("partial", "partial", 1),
            Column::new("wrong", "wrong", 0),
            Column::new("stale", "stale", 2),
            Column::new("misbound", "misbound", 2),
            Column::new("abstained", "abstained", 1),
            Column::new("unanswered", "unanswered", 1),
            Column::new("invented", "invented", 0),
        ]);
        columns.extend(is_open.then(|| Column::new("bounds", "right at least–most", 0)));
        columns.push(Column::new("unscored", "unscored", 3));
        "What BM25 line search made of the prompts, as shares of the scored items over all \
         sessions together, with Wilson's interval for as many items as they are worth; no language model \
         answered. Invented is the share of decoys answered \
         with a value; unanswered items come after a session's death; unscored ones are in no \
         share."
    } else {
        columns.push(Column::new("accuracy", "accuracy", 0));
        columns.extend(is_open.then(|| Column::new("bounds", "at least–most", 0)));
        columns.push(Column::new("fidelity", "fidelity", 0));
        columns
            .extend(is_open.then(|| Column::new("fidelity_bounds", "fidelity at least–most", 0)));
        columns.extend([
            Column::new("normalised", "F*", 0),
            Column::new("omitted", "omitted", 0),
            Column::new("distorted", "distorted", 0),
            Column::new("stale", "stale", 1),
            Column::new("misbound", "misbound", 1),
            Column::new("hallucinated", "hallucinated", 0),
            Column::new("overclaimed", "overclaimed", 1),
            Column::new("compliance_kept", "kept rules", 1),
            Column::new("compliance_dropped", "dropped rules", 1),
            Column::new("unscored", "unscored", 0),
        ]);
        columns.extend(is_open.then(|| Column::new("needs_judge", "need a judge", 0)));
        columns.push(Column::new("unqualified", "unqualified", 2));
        "What the reader made of the prompts. Fidelity is accuracy relative to full history; F* is \
         where it lies between empty context (0) and full history (1), over what was scored in all \
         three. Distorted is wrong, stale or misbound; hallucinated is the share of decoys \
         answered with a value; overclaimed are concrete answers whose value is not in the prompt; \
         kept and dropped rules say how often rules are kept that stand in the prompt, and that do \
         not. Unscored items are in no share; unqualified ones are in accuracy and not in fidelity."
    };
    Section {
        id: "answers",
        title: if is_extract { "Extract" } else { "Answers" }.to_owned(),
        about: about.to_owned(),
        audience: Audience::Everyone,
        table: Table { columns, rows },
        notes: ceiling(material)
            .into_iter()
            .chain(is_open.then(|| BOUNDS.to_owned()))
            .collect(),
    }
}

/// Why the arm's `F*` is to be read with care.
fn above_full(arm: &ArmSummary) -> Option<&'static str> {
    match arm.answers.as_ref()? {
        ArmAnswers::Accuracy { normalised, .. } => {
            fidelity::above_full(normalised.as_ref()?.point_estimate)
        }
        ArmAnswers::Extract { .. } => None,
    }
}

/// Said below tables in which some items have no score.
const BOUNDS: &str = "Items without a score may be right or wrong: at least counts all of them as wrong, at \
     most as right. Where many need a judge, shares of the others say little by themselves.";

/// Whether planted items of this strategy have no score.
fn is_open(arm: &ArmSummary) -> bool {
    match &arm.answers {
        Some(ArmAnswers::Extract { bounds, .. }) => bounds.is_some(),
        Some(ArmAnswers::Accuracy {
            bounds,
            fidelity_bounds,
            ..
        }) => bounds.is_some() || fidelity_bounds.is_some(),
        None => false,
    }
}

/// `46.0–71.2 %`; nothing where all items have a score.
fn between(bounds: Option<(f64, f64)>) -> Cell {
    let ends = |(least, most)| format!("{}–{} %", figure::points(least), figure::points(most));
    bounds.map_or(Cell::exact(Value::NotApplicable), |bounds| {
        Cell::text(ends(bounds))
    })
}

/// How many answers of a model need a judge, in a sentence; nothing where none does.
pub(in crate::report) fn need_judge(material: &Material<'_>) -> Option<String> {
    let of_arm = |(_, arm): &(Arm, ArmSummary)| match &arm.answers {
        Some(ArmAnswers::Accuracy { needs_judge, .. }) => *needs_judge,
        Some(ArmAnswers::Extract { .. }) | None => 0,
    };
    let count: usize = material.arms.iter().map(of_arm).sum();
    (count > 0).then(|| {
        format!(
            "{} a judge: rules confirm exact answers only, and accuracy and fidelity are over those. What \
             they are at least and at most stands beside them",
            figure::many(count, "answer needs", "answers need")
        )
    })
}

/// Outcomes of a reader without a model, each as a share of the items scored, and of decoys what was
/// invented.
fn extracts(material: &Material<'_>, strategy: &str) -> Vec<Cell> {
    let mut sessions: BTreeMap<&str, Extract> = BTreeMap::new();
    for cell in &material.summaries {
        if let (true, Some(Answers::Extract(own))) = (cell.strategy == strategy, &cell.answers) {
            let sum = sessions.entry(&cell.session).or_default();
            *sum = sum.plus(*own);
        }
    }
    let rate = |count: &dyn Fn(&Extract) -> (usize, usize)| {
        let values = sessions.values().map(|extract| {
            let (part, whole) = count(extract);
            let mut values = vec![0.0; whole];
            values[..part].fill(1.0);
            values
        });
        Cell::rate(&values.collect::<Vec<_>>())
    };
    let outcomes = Extract::default().outcomes().len();
    let mut cells: Vec<Cell> = (0..outcomes)
        .map(|at| rate(&|extract| (extract.outcomes()[at].1, extract.scored())))
        .collect();
    cells.push(rate(&|extract| (extract.invented, extract.decoys)));
    cells
}

/// What a model made of the summaries alone: fidelity of the summaries themselves.
pub(super) fn of_summaries(material: &Material<'_>) -> Section {
    const SHOWN: [&str; 5] = ["omitted", "distorted", "stale", "misbound", "hallucinated"];
    let of_arm = |(kind, arm): &(Arm, ArmSummary)| {
        let Some(ArmAnswers::Accuracy {
            accuracy,
            fidelity,
            failings,
            unscored,
            ..
        }) = &arm.summary_answers
        else {
            return None;
        };
        let mut cells = vec![Cell::estimate(*accuracy), in_table(*fidelity)];
        cells.extend(SHOWN.map(|name| Cell::estimate(failings.get(name).copied())));
        cells.push(Cell::count(*unscored));
        Some(row(&arm.strategy, role(*kind), cells))
    };
    let mut columns = vec![
        Column::new("strategy", "strategy", 0),
        Column::new("accuracy", "accuracy", 0),
        Column::new("fidelity", "fidelity", 0),
    ];
    columns.extend(SHOWN.map(|name| Column::new(name, name, 1)));
    columns.push(Column::new("unscored", "unscored", 2));
    Section {
        id: "summary_answers",
        title: "Answers from summaries alone".to_owned(),
        about: "The reader saw nothing but what was written in place of messages, and was asked \
                what those messages said, and decoys. Fidelity is relative to full history on the same \
                items; items whose evidence went into no summary are not in this table."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns,
            rows: material.arms.iter().filter_map(of_arm).collect(),
        },
        notes: ceiling(material).into_iter().collect(),
    }
}

/// Probes that did not qualify, with what the reader made of them in the qualification pass.
pub(super) fn unqualified(material: &Material<'_>) -> Section {
    let (mut rows, mut items, mut failed) = (Vec::new(), 0, 0);
    for session in &material.manifest.sessions {
        let of_arm = |arm: Arm| -> Option<&CellRecord> {
            let mut cells = material.cells.iter().copied();
            cells.find(|cell| cell.session == session.id && cell.arm == arm)
        };
        let beside = Beside {
            full: of_arm(Arm::Reference),
            empty: of_arm(Arm::Floor),
        };
        let texts: BTreeMap<(&str, u8), &ProbeText> = beside
            .full
            .into_iter()
            .flat_map(|full| &full.probe_texts)
            .map(|text| ((text.probe.as_str(), text.percent), text))
            .collect();
        for (probe, percent, found) in Qualification::of(beside).items() {
            items += 1;
            if found.is_qualified() {
                continue;
            }
            failed += 1;
            let question = texts.get(&(probe, percent)).map(|text| &*text.question);
            let cells = vec![
                Cell::text(format!("{probe} at {percent} %")),
                Cell::text(found.kind.name()),
                Cell::text(outcome(found.full)),
                Cell::text(outcome(found.empty)),
                Cell::text(why(found)),
                Cell::text(question.unwrap_or_default().trim()),
            ];
            rows.push(row(&session.id, Role::Strategy, cells));
        }
    }
    let notes = (failed > 0).then(|| format!("{failed} of {items} items did not qualify"));
    Section {
        id: "unqualified",
        title: "Probes that did not qualify".to_owned(),
        about:
            "Before it counts in fidelity, every item is put to the reader twice more: it must be \
                answered right under full history, and not under an empty context; of a decoy the \
                reader must say there that it is not known. These answers are never scored."
                .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("session", "session", 0),
                Column::new("probe", "probe", 0),
                Column::new("kind", "kind", 0),
                Column::new("full", "under full", 0),
                Column::new("empty", "under empty", 0),
                Column::new("why", "why not", 0),
                Column::new("question", "question", 1),
            ],
            rows,
        },
        notes: notes.into_iter().chain(ceiling(material)).collect(),
    }
}

fn outcome(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        Some(Outcome::Right) => "right",
        Some(Outcome::Partial) => "partial",
        Some(Outcome::Wrong) => "wrong",
        Some(Outcome::Stale) => "stale",
        Some(Outcome::Misbound) => "misbound",
        Some(Outcome::Abstained) => "abstained",
        Some(Outcome::Invented) => "invented",
        None => "not graded",
    }
}

fn why(found: Qualifying) -> &'static str {
    if !is_planted(found.kind) {
        "invents without a context"
    } else if found.full != Some(Outcome::Right) {
        "not right from full history"
    } else if found.empty == Some(Outcome::Right) {
        "right without a context"
    } else {
        "not graded without a context"
    }
}

fn in_table(fidelity: Fidelity) -> Cell {
    match fidelity.refusal() {
        Some(refusal) => Cell::text(refusal),
        None => Cell::estimate(fidelity.measured()),
    }
}
