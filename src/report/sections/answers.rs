//! Answers of readers: from the prompt, from the summary alone, and the probes that did not
//! qualify.

use super::prelude::*;
use super::row;
use crate::metric::answers::{ControlCells, Qualification, QualifyingOutcomes};
use crate::metric::fidelity;
use crate::metric::survival::is_planted;
use crate::record::words::{Outcome, Unscored};
use crate::report::probe_texts;
use crate::report::strategy_summary::RelativeAccuracy;

/// How many items of the reference were asked, and of how many of these the evidence stood for the
/// full history; `None` where it did of none.
fn of_evidence(material: &Material<'_>) -> Option<(usize, usize)> {
    let items = material.references().flat_map(|cell| &cell.probes);
    let asked = items.filter(|item| item.answer.is_some());
    let evidence = asked.clone().filter(|item| item.of_evidence).count();
    (evidence > 0).then(|| (asked.count(), evidence))
}

/// The ceiling as rows of the reference are marked with it; `None` where it is full history.
pub(super) fn ceiling_mark(material: &Material<'_>) -> Option<RowMark> {
    let (asked, evidence) = of_evidence(material)?;
    Some(if evidence == asked {
        "ceiling: evidence".into()
    } else {
        format!("ceiling: evidence in {evidence} of {asked} items").into()
    })
}

/// The same in a sentence, for tables that compare with it.
pub(crate) fn ceiling(material: &Material<'_>) -> Option<String> {
    let (asked, evidence) = of_evidence(material)?;
    let known = material.manifest.conditions.get("reader window");
    let window = known.map_or(String::new(), |window| format!(" of {window}"));
    Some(format!(
        "ceiling: evidence. Of {evidence} of {asked} items full history does not fit the reader's \
         window{window}; what stands as full history there is the evidence with the newest history \
         that fits"
    ))
}

/// Items that no reader could be asked, because the prompt was too long; `None` where there are
/// none.
pub(crate) fn too_long(material: &Material<'_>) -> Option<String> {
    let too_long = Some(GradeVerdict::unscored(Unscored::TooLong));
    let refused =
        |cell: &CellRecord| cell.probes.iter().filter(|item| item.verdict() == too_long).count();
    let all: usize = material.cells.iter().map(|cell| refused(cell)).sum();
    let of_full: usize = material.references().map(refused).sum();
    let text = format!(
        "{all} items are unscored, {of_full} of them under full history: the prompt was too long \
         for the reader. `models.reader_window` says what fits"
    );
    (all > 0).then_some(text)
}

/// The columns next to accuracy.
pub(super) fn of_prompts(material: &Material<'_>) -> Section {
    let mut rows = material.rows(|strategy| {
        let found = strategy.answers.as_ref()?;
        let mut cells = vec![
            Cell::estimate(found.accuracy),
            between(found.bounds),
            in_table(found.fidelity),
            between(found.fidelity_bounds),
            Cell::estimate(found.normalised),
        ];
        cells.extend(found.failings.map(Cell::estimate));
        let counts = [found.unscored, found.needs_judge, found.unqualified];
        cells.extend(counts.map(Cell::count));
        Some(cells)
    });
    for row in &mut rows {
        if row.role == Role::Reference {
            row.marks.extend(ceiling_mark(material));
        }
        let own = material.strategies.iter().find(|strategy| strategy.name == row.name);
        let normalised = own.and_then(|strategy| strategy.answers.as_ref()?.normalised);
        let above = normalised.and_then(|estimate| fidelity::above_full(estimate.point_estimate));
        row.marks.extend(above.map(RowMark::from));
    }
    let section = Section::new("answers", rows).with_notes(ceiling(material));
    if material.strategies.iter().any(is_open) {
        section.with_notes([BOUNDS.to_owned()])
    } else {
        section.without(&["bounds", "fidelity_bounds", "needs_judge"])
    }
}

/// The note below tables in which some items have no score.
const BOUNDS: &str = "Items without a score may be right or wrong: at least counts all of them as wrong, at \
     most as right. Where many need a judge, shares of the others say little by themselves.";

/// Whether planted items of this strategy have no score.
fn is_open(strategy: &StrategySummary) -> bool {
    let found = strategy.answers.as_ref();
    found.is_some_and(|found| found.bounds.or(found.fidelity_bounds).is_some())
}

/// `46.0–71.2 %`; not applicable where all items have a score.
fn between(bounds: Option<(f64, f64)>) -> Cell {
    bounds.map_or(Cell::NOT_APPLICABLE, |(least, most)| {
        let [least, most] = [least, most].map(display::points);
        Cell::text(format!("{least}–{most} %"))
    })
}

/// How many answers of a model need a judge, in a sentence; `None` where none does.
pub(crate) fn need_judge(material: &Material<'_>) -> Option<String> {
    let answers = material.strategies.iter().flat_map(|one| &one.answers);
    let count: usize = answers.map(|found| found.needs_judge).sum();
    let answers = display::many(count, "answer needs", "answers need");
    let text = format!(
        "{answers} a judge: rules confirm exact answers only, and answers right and fidelity are over those. What \
         they are at least and at most stands beside them"
    );
    (count > 0).then_some(text)
}

/// A model's answers from the summaries alone: the fidelity of the summaries themselves.
pub(super) fn of_summaries(material: &Material<'_>) -> Section {
    let rows = material.rows(|strategy| {
        let found = strategy.summary_answers.as_ref()?;
        let mut cells = vec![Cell::estimate(found.accuracy), in_table(found.fidelity)];
        // Claims and rules are seen in whole prompts only.
        cells.extend(found.failings[..5].iter().copied().map(Cell::estimate));
        cells.push(Cell::count(found.unscored));
        Some(cells)
    });
    Section::new("summary_answers", rows).with_notes(ceiling(material))
}

/// Probes that did not qualify, with the reader's answers in the qualification pass.
pub(super) fn unqualified(material: &Material<'_>) -> Section {
    let (mut rows, mut items) = (Vec::new(), 0);
    for of_session in material.cells.chunk_by(|one, next| one.session == next.session) {
        let [full, empty] = [Arm::Reference, Arm::Floor]
            .map(|arm| of_session.iter().copied().find(|cell| cell.arm == arm));
        let controls = ControlCells { full, empty };
        let texts = probe_texts(controls.full);
        for (probe, percent, found) in Qualification::of(controls).items() {
            items += 1;
            if found.is_qualified() {
                continue;
            }
            let text = texts.get(&(&*of_session[0].session, probe, percent));
            let cells = vec![
                Cell::text(format!("{probe} at {percent} %")),
                Cell::text(found.kind.name()),
                graded(found.full),
                graded(found.empty),
                Cell::text(why(found)),
                Cell::text(text.map_or("", |text| text.question.trim())),
            ];
            rows.push(row(&of_session[0].session, Role::Strategy, cells));
        }
    }
    let failed = rows.len();
    let notes = (failed > 0).then(|| format!("{failed} of {items} items did not qualify"));
    Section::new("unqualified", rows).with_notes(notes.into_iter().chain(ceiling(material)))
}

fn graded(outcome: Option<Outcome>) -> Cell {
    Cell::text(outcome.map_or("not graded".to_owned(), |outcome| display::name_of(&outcome)))
}

fn why(found: QualifyingOutcomes) -> &'static str {
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

fn in_table(fidelity: RelativeAccuracy) -> Cell {
    match fidelity {
        Err(refusal) => Cell::text(refusal.in_words()),
        Ok(estimate) => Cell::estimate(Some(estimate)),
    }
}
