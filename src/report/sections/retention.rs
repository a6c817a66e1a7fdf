//! Retention by age, kind and place; and summaries that are none.

use std::collections::BTreeMap;

use super::{role, row};
use crate::metric::retention::{
    Aged, COMPACTIONS, Retention, TOKENS, age_in_compactions, age_in_tokens, cliff, drift,
    half_life,
};
use crate::probe::ProbeKind;
use crate::record::{Ailment, Arm, PlaceInPrompt};
use crate::report::build::Material;
use crate::report::{Audience, Cell, Column, Section, Table, Value};

/// Columns of [`COMPACTIONS`], each with the rank in which it makes room: what no compaction came over is
/// rarely lost, and what one came over tells most; the oldest that many strategies reach comes next.
const AGES: [(&str, u8); COMPACTIONS.len()] = [
    ("age_0", 5),
    ("age_1", 0),
    ("age_2", 4),
    ("age_3_5", 2),
    ("age_6_15", 1),
    ("age_16", 3),
];

/// Unhealthy summaries shown with their text.
const SHOWN: usize = 12;

/// The items of a strategy with their ages, over all cells.
fn of(material: &Material<'_>, strategy: &str) -> Retention {
    let sessions = by_session(material, strategy);
    Retention(sessions.into_values().flat_map(|own| own.0).collect())
}

/// The same, session by session.
fn by_session<'a>(material: &'a Material<'_>, strategy: &str) -> BTreeMap<&'a str, Retention> {
    let mut sessions: BTreeMap<&str, Retention> = BTreeMap::new();
    for cell in &material.summaries {
        if cell.strategy == strategy {
            let own = sessions.entry(&cell.session).or_default();
            own.0.extend(cell.retention.0.iter().copied());
        }
    }
    sessions
}

/// The share that survives of the items that are meant; where there is none, nothing is to be measured.
fn rate(sessions: &BTreeMap<&str, Retention>, is_meant: &dyn Fn(&Aged) -> bool) -> Cell {
    let values = |own: &Retention| {
        let meant = own.0.iter().filter(|item| is_meant(item));
        meant.map(|item| item.score).collect()
    };
    let values: Vec<Vec<f64>> = sessions.values().map(values).collect();
    if values.iter().all(Vec::is_empty) {
        return Cell::exact(Value::NotApplicable);
    }
    Cell::rate(&values)
}

/// By compactions survived, with half-life, cliff and drift.
pub(super) fn by_age(material: &Material<'_>) -> Section {
    let mut rows = Vec::new();
    for (kind, arm) in material
        .arms
        .iter()
        .filter(|(kind, _)| *kind == Arm::Strategy)
    {
        let items = of(material, &arm.strategy);
        if items.0.is_empty() {
            continue;
        }
        let tokens = items.by_tokens(|_| true);
        let sessions = by_session(material, &arm.strategy);
        let mut cells: Vec<Cell> = (0..COMPACTIONS.len())
            .map(|at| {
                rate(&sessions, &|item| {
                    age_in_compactions(item.compactions) == at
                })
            })
            .collect();
        let word = |at: Option<usize>| at.map_or("–", |at| TOKENS[at].0);
        cells.push(Cell::text(word(half_life(&tokens))));
        cells.push(Cell::text(match cliff(&tokens) {
            Some((at, fall)) => format!("{}: −{:.0} points", TOKENS[at].0, 100.0 * fall),
            None => "–".to_owned(),
        }));
        cells.push(Cell::text(match drift(&items.0) {
            Some(slope) => format!("{:+.1} points", 100.0 * slope).replace('-', "−"),
            None => "–".to_owned(),
        }));
        rows.push(row(&arm.strategy, role(*kind), cells));
    }
    let mut columns = vec![Column::new("strategy", "strategy", 0)];
    for (at, ((id, rank), (label, _))) in AGES.iter().zip(COMPACTIONS).enumerate() {
        // An age that nothing reached takes up no room.
        let is_met = rows
            .iter()
            .filter_map(|row| row.cells.get(at))
            .any(|cell| cell.value != Value::NotApplicable);
        let rank = if is_met { *rank } else { Column::FILES_ONLY };
        columns.push(Column::new(id, format!("age {label}"), rank));
    }
    columns.push(Column::new("half_life", "half-life", 0));
    columns.push(Column::new("cliff", "cliff", 6));
    columns.push(Column::new("drift", "drift", 6));
    Section {
        id: "retention",
        title: "Retention by age".to_owned(),
        about: "Share of planted items that survive, by age: how many calls changed the context since the \
                value was said, with Wilson's interval for as many items as they are worth. Half-life is \
                the age, in tokens of full history, from which on no more than half is left; a cliff is the deepest fall from one such age to the next; drift is \
                what each further compaction adds or takes. All items together, each session as heavy as \
                it has items; what was due after a death is left out, for nothing forgot it."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table { columns, rows },
        notes: Vec::new(),
    }
}

/// The whole grid: kind × age × place.
pub(super) fn grid(material: &Material<'_>) -> Section {
    let mut rows = Vec::new();
    for (arm_kind, arm) in material
        .arms
        .iter()
        .filter(|(kind, _)| *kind == Arm::Strategy)
    {
        let items = of(material, &arm.strategy);
        let sessions = by_session(material, &arm.strategy);
        for kind in ProbeKind::ALL {
            for (at, (age, _)) in TOKENS.iter().enumerate() {
                let own = |place: Option<PlaceInPrompt>, any: bool| {
                    items.by_tokens(|item| item.kind == kind && (any || item.place == place))[at]
                };
                let all = own(None, true);
                if all.items == 0 {
                    continue;
                }
                let mut cells = vec![Cell::text(kind.name()), Cell::text(*age)];
                cells.push(rate(&sessions, &|item| {
                    item.kind == kind && item.tokens.map(age_in_tokens) == Some(at)
                }));
                // Where what is left stands: of all items of that kind and age, the share there.
                for place in [
                    PlaceInPrompt::Pinned,
                    PlaceInPrompt::Verbatim,
                    PlaceInPrompt::Edited,
                    PlaceInPrompt::Derived,
                    PlaceInPrompt::Restored,
                    PlaceInPrompt::Authored,
                ] {
                    let there = own(Some(place), false);
                    cells.push(Cell::share(Some(there.sum / all.items as f64)));
                }
                rows.push(row(&arm.strategy, role(*arm_kind), cells));
            }
        }
    }
    Section {
        id: "retention_grid",
        title: "Retention by kind, age and place".to_owned(),
        about:
            "Share of planted items that survive, by kind and by tokens of full history since the \
                value was said; and the parts of it that stand in the system prompt or the tools \
                (pinned), in a message as it was (kept), in one that was edited, in a summary, in \
                something put back, and in something the strategy wrote."
                .to_owned(),
        audience: Audience::Files,
        table: Table {
            columns: vec![
                Column::new("strategy", "strategy", 0),
                Column::new("kind", "kind", 0),
                Column::new("age", "tokens since", 0),
                Column::new("survived", "survived", 0),
                Column::new("pinned", "pinned", 0),
                Column::new("kept", "kept", 0),
                Column::new("edited", "edited", 0),
                Column::new("summary", "summary", 0),
                Column::new("restored", "restored", 0),
                Column::new("authored", "authored", 0),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}

/// Summaries that are none, by what is wrong with them.
pub(super) fn health(material: &Material<'_>) -> Section {
    let mut rows = Vec::new();
    for (kind, arm) in &material.arms {
        let own = material
            .cells
            .iter()
            .filter(|cell| cell.strategy == arm.strategy);
        let own: Vec<_> = own.collect();
        let summaries: usize = own.iter().map(|cell| cell.summary_health.summaries).sum();
        let mut counts: BTreeMap<Ailment, usize> = BTreeMap::new();
        let unhealthy = || own.iter().flat_map(|cell| &cell.summary_health.unhealthy);
        for ailment in unhealthy().flat_map(|summary| &summary.ailments) {
            *counts.entry(*ailment).or_default() += 1;
        }
        if counts.is_empty() {
            continue;
        }
        let mut cells = vec![Cell::count(summaries), Cell::count(unhealthy().count())];
        cells.extend(
            Ailment::ALL.map(|ailment| Cell::count(counts.get(&ailment).copied().unwrap_or(0))),
        );
        rows.push(row(&arm.strategy, role(*kind), cells));
    }
    let mut columns = vec![
        Column::new("strategy", "strategy", 0),
        Column::new("summaries", "summaries", 0),
        Column::new("unhealthy", "none", 0),
    ];
    columns.extend(Ailment::ALL.map(|ailment| Column::new(ailment.id(), ailment.name(), 0)));
    Section {
        id: "summary_health",
        title: "Summaries that are none".to_owned(),
        about: "What models wrote for compactions, applied or not, and what is wrong with it: \
                one text can have several ailments."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table { columns, rows },
        notes: Vec::new(),
    }
}

/// The first of these summaries, with their text.
pub(super) fn unhealthy(material: &Material<'_>) -> Section {
    let mut rows = Vec::new();
    let mut rest = 0;
    for (kind, arm) in &material.arms {
        for cell in material
            .cells
            .iter()
            .filter(|cell| cell.strategy == arm.strategy)
        {
            for summary in &cell.summary_health.unhealthy {
                if rows.len() >= SHOWN {
                    rest += 1;
                    continue;
                }
                let names: Vec<&str> = summary.ailments.iter().map(|it| it.name()).collect();
                rows.push(row(
                    &arm.strategy,
                    role(*kind),
                    vec![
                        Cell::text(format!("{}, call {}", cell.session, summary.call)),
                        Cell::text(names.join(", ")),
                        Cell::text(summary.text.as_str()),
                    ],
                ));
            }
        }
    }
    let notes = (rest > 0).then(|| format!("and {rest} more, in the run folder's cells"));
    Section {
        id: "unhealthy_summaries",
        title: "Their texts".to_owned(),
        about: "The beginning of each such text, as the model wrote it.".to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("strategy", "strategy", 0),
                Column::new("where", "where", 0),
                Column::new("ailments", "what is wrong", 0),
                Column::new("text", "text", 0),
            ],
            rows,
        },
        notes: notes.into_iter().collect(),
    }
}
