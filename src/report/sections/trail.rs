//! Which files can be told from prompts, verb by verb, and what summaries made up.

use crate::metric::trail;
use crate::record::Arm;
use crate::report::build::Material;
use crate::report::{Audience, Cell, Column, Section, Table, Value};
use crate::stats::SampleSize;

/// The artifact trail, by strategy and verb.
pub(super) fn by_verb(material: &Material<'_>) -> Section {
    let mut rows = Vec::new();
    for (kind, arm) in &material.arms {
        let Some(counts) = arm.trail.counts else {
            continue;
        };
        for (verb, counts) in counts.by_verb() {
            if counts.touched == 0 && counts.told == 0 {
                continue;
            }
            let share = |share: Option<f64>, items: u64| Cell {
                n: Some(SampleSize {
                    sessions: arm.sessions,
                    items: usize::try_from(items).unwrap_or(usize::MAX),
                }),
                ..Cell::share(share)
            };
            let cells = vec![
                Cell::text(verb),
                share(trail::precision(&counts), counts.told),
                share(trail::recall(&counts), counts.touched),
                share(trail::f1(&counts), counts.touched),
            ];
            rows.push(super::row(&arm.strategy, super::role(*kind), cells));
        }
    }
    Section {
        id: "artifact_trail",
        title: "Artifact trail by verb".to_owned(),
        about:
            "Of the files of which prompts say that they were read, created, modified or deleted: \
                how many of it is true, and how many of all that were, over all sessions and calls \
                together."
                .to_owned(),
        audience: Audience::Files,
        table: Table {
            columns: vec![
                Column::new("strategy", "strategy", 0),
                Column::new("verb", "verb", 0),
                Column::new("precision", "precision", 0),
                Column::new("recall", "recall", 0),
                Column::new("f1", "F1", 0),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}

/// Names in summaries that nobody said, with examples.
pub(super) fn unsupported(material: &Material<'_>) -> Section {
    let mut rows = Vec::new();
    for (kind, arm) in &material.arms {
        if *kind != Arm::Strategy {
            continue;
        }
        let of_arm = material.cells.iter().filter(|c| c.strategy == arm.strategy);
        let found: Vec<_> = of_arm
            .filter_map(|cell| cell.summary_atoms.as_ref())
            .collect();
        let sum = |count: fn(&crate::record::SummaryAtoms) -> u64| -> u64 {
            found.iter().map(|atoms| count(atoms)).sum()
        };
        if found.is_empty() {
            continue;
        }
        let (atoms, unsupported) = (sum(|it| it.atoms), sum(|it| it.unsupported));
        let examples: Vec<String> = found
            .iter()
            .flat_map(|atoms| &atoms.examples)
            .take(3)
            .map(|it| format!("{} ({}, call {})", it.atom, it.stage, it.call))
            .collect();
        let share = (atoms > 0).then(|| unsupported as f64 / atoms as f64);
        let cells = vec![
            Cell::exact(Value::Count(sum(|it| it.summaries))),
            Cell::exact(Value::Count(atoms)),
            Cell::exact(Value::Count(unsupported)),
            Cell::share(share),
            Cell::text(if examples.is_empty() {
                "–".to_owned()
            } else {
                examples.join("; ")
            }),
        ];
        rows.push(super::row(&arm.strategy, super::role(*kind), cells));
    }
    Section {
        id: "unsupported_atoms",
        title: "Names in summaries that nobody said".to_owned(),
        about:
            "Paths, identifiers, ids and numbers in texts that were written in place of messages, \
                and how many of them stand nowhere in what was replaced."
                .to_owned(),
        audience: Audience::Files,
        table: Table {
            columns: vec![
                Column::new("strategy", "strategy", 0),
                Column::new("summaries", "summaries", 0),
                Column::new("atoms", "atoms", 0),
                Column::new("unsupported", "unsupported", 0),
                Column::new("share", "share", 0),
                Column::new("examples", "such as", 0),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}
