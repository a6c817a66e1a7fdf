//! Scores by dimension: what a judge made of answers, each dimension by itself.

use std::collections::BTreeMap;

use super::{role, row};
use crate::probe::judge::dimensions::DIMENSIONS;
use crate::report::build::Material;
use crate::report::{Audience, Cell, Column, Section, Table, Value};
use crate::stats::Estimate;

/// Mean scores of every arm, dimension by dimension.
pub(super) fn section(material: &Material<'_>) -> Section {
    let cells = || material.cells.iter();
    let judge = cells().flat_map(|cell| &cell.dimensions).next();
    let rows = material
        .arms
        .iter()
        .filter_map(|(kind, arm)| {
            let mean = |name: &str| -> Option<Estimate> {
                let mut sessions: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
                for cell in cells().filter(|cell| cell.strategy == arm.strategy) {
                    for score in cell.dimensions.iter().filter_map(|it| it.scores.get(name)) {
                        let of_session = sessions.entry(&cell.session).or_default();
                        of_session.0 += f64::from(*score);
                        of_session.1 += 1;
                    }
                }
                let items = sessions.values().map(|(_, count)| count).sum();
                let means = sessions.values().map(|(sum, count)| sum / *count as f64);
                Estimate::of_sessions(&means.collect::<Vec<_>>(), items)
            };
            let means = DIMENSIONS.map(|(name, ..)| mean(name));
            means.iter().any(Option::is_some).then(|| {
                let scored = means.iter().flatten().map(|mean| mean.n).next();
                let unscored = cells()
                    .filter(|cell| cell.strategy == arm.strategy)
                    .flat_map(|cell| &cell.dimensions)
                    .filter(|it| it.unscored.is_some());
                let mut figures: Vec<Cell> = means.into_iter().map(figure).collect();
                figures.push(Cell::count(scored.map_or(0, |n| n.items)));
                figures.push(Cell::count(unscored.count()));
                row(&arm.strategy, role(*kind), figures)
            })
        })
        .collect();
    let mut columns = vec![Column::new("strategy", "strategy", 0)];
    columns.extend(DIMENSIONS.map(|(name, ..)| Column::new(name, name.replace('_', " "), 0)));
    columns.push(Column::new("answers", "answers", 1));
    columns.push(Column::new("unscored", "unscored", 1));
    let note = judge.map(|one| {
        format!(
            "scored by {}; an opinion beside the verdicts, and never averaged into one number",
            one.judge
        )
    });
    Section {
        id: "dimensions",
        title: "Answers by dimension".to_owned(),
        about: "A judge scored every answer in six ways, from 0 to 5: means over sessions, with the 95 % \
                interval where there are several. Answers it gave no scores are in no mean."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table { columns, rows },
        notes: note.into_iter().collect(),
    }
}

fn figure(mean: Option<Estimate>) -> Cell {
    let Some(mean) = mean else {
        return Cell::exact(Value::NotMeasured);
    };
    let half = mean.confidence_interval.map_or(String::new(), |interval| {
        format!(" ± {:.2}", interval.half_width())
    });
    Cell {
        n: Some(mean.n),
        ..Cell::text(format!("{:.2}{half}", mean.point_estimate))
    }
}
