//! What models were asked beside the replay: kept answers, and the judges' sentinels.

use std::collections::BTreeMap;

use crate::metric::kept::kept;
use crate::model::Purpose;
use crate::record::SentinelRecord;
use crate::report::build::Material;
use crate::report::{Audience, Cell, Column, Role, Section, Table, Value};

use super::row;

fn name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Agent => "agent",
        Purpose::Compaction => "compaction",
        Purpose::Background => "background",
        Purpose::Recovery => "recovery",
        Purpose::Probe => "probe",
        Purpose::Qualification => "qualification",
        Purpose::Judge => "judge",
    }
}

/// Requests whose answers are kept, by purpose.
pub(super) fn asked(material: &Material<'_>) -> Section {
    let rows = kept(material.cells.iter().copied())
        .into_iter()
        .map(|(purpose, kept)| {
            let cells = vec![
                Cell::count(kept.requests),
                Cell::exact(Value::Tokens(kept.tokens.0)),
                Cell::count(kept.distinct),
                Cell::exact(Value::Tokens(kept.paid.0)),
            ];
            row(name(purpose), Role::Strategy, cells)
        })
        .collect();
    Section {
        id: "kept_answers",
        title: "Requests to models, by purpose".to_owned(),
        about: "What summarisers, readers and judges were asked. The same request is paid once, \
                whoever makes it: the distinct ones are the entries of the cassette."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("purpose", "purpose", 0),
                Column::new("requests", "requests", 0),
                Column::new("tokens", "tokens", 1),
                Column::new("distinct", "distinct", 0),
                Column::new("paid", "tokens of these", 0),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}

/// How the judges did on answers whose verdict is known.
pub(super) fn sentinels(material: &Material<'_>) -> Section {
    let rows = by_judge(material)
        .into_iter()
        .map(|(judge, records)| {
            let count = |wanted: Option<bool>| {
                let met = records.iter().filter(|record| record.is_met() == wanted);
                Cell::count(met.count())
            };
            let missed: Vec<&str> = records
                .iter()
                .filter(|record| record.is_met() != Some(true))
                .map(|record| record.name.as_str())
                .collect();
            let missed = if missed.is_empty() {
                "none".to_owned()
            } else {
                missed.join(", ")
            };
            let cells = vec![
                count(Some(true)),
                count(Some(false)),
                count(None),
                Cell::text(missed),
            ];
            row(judge, Role::Strategy, cells)
        })
        .collect();
    Section {
        id: "sentinels",
        title: "Judges on answers whose verdict is known".to_owned(),
        about:
            "Ten fixed answers, five of them right, are put to every judge in every run. A judge \
                that misses some says little about the others."
                .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("judge", "judge", 0),
                Column::new("met", "as known", 0),
                Column::new("missed", "otherwise", 0),
                Column::new("none", "no verdict", 0),
                Column::new("which", "which not", 0),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}

/// The sentinels of each judge, each once: all sessions of a run put the same.
fn by_judge<'a>(material: &'a Material<'_>) -> BTreeMap<&'a str, Vec<&'a SentinelRecord>> {
    let mut judges: BTreeMap<&str, BTreeMap<&str, &SentinelRecord>> = BTreeMap::new();
    for record in material.cells.iter().flat_map(|cell| &cell.sentinels) {
        let of_judge = judges.entry(&record.judge).or_default();
        of_judge.entry(&record.name).or_insert(record);
    }
    judges
        .into_iter()
        .map(|(judge, records)| (judge, records.into_values().collect()))
        .collect()
}

/// Judges that said otherwise than is known, in words.
pub(in crate::report) fn drifted(material: &Material<'_>) -> Vec<String> {
    by_judge(material)
        .into_iter()
        .filter_map(|(judge, records)| {
            let wrong = records
                .iter()
                .filter(|record| record.is_met() != Some(true))
                .count();
            (wrong > 0).then(|| {
                format!(
                    "judge {judge} misses {wrong} of {} answers whose verdict is known: calibrate it \
                     before its verdicts are believed",
                    records.len()
                )
            })
        })
        .collect()
}
