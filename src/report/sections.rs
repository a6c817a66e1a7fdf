//! The sections of a report, one function each.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::metric::{Direction, METRICS};
use crate::record::Arm;
use crate::record::words::ProbeKind;
use crate::report::build::Material;
use crate::report::strategy_summary::StrategySummary;
use crate::report::{Cell, Column, Role, Row, Section, columns, display};

pub(super) mod answers;
pub(super) mod comparison;
pub(super) mod cost;
mod grading;
pub(super) mod generations;
mod lost;
pub(crate) mod noise;
pub(super) mod models;
mod per_session;
mod prelude;
mod retention;
pub(super) mod sizes;
mod summaries;
pub(super) mod timings;
mod worth;

/// Every section after the comparison; those without a row are left out.
pub(super) fn details(material: &Material<'_>) -> impl Iterator<Item = Section> {
    [
        cost::schemes,
        cost::by_call,
        cost::breaks,
        lost::section,
        lost::by_summary,
        lost::recovery,
        kinds,
        retention::by_age,
        retention::grid,
        answers::of_prompts,
        answers::of_summaries,
        answers::unqualified,
        grading::by_kind,
        grading::examples,
        stages,
        generations::by_number,
        model_calls,
        models::asked,
        models::sentinels,
        noise::section,
        models::agreement,
        summaries::health,
        summaries::unhealthy,
        summaries::unsupported,
        findings,
        per_session::overflows,
        per_session::ended_early,
        per_session::section,
        sizes::section,
        per_session::counter_error,
        per_session::importers,
        worth::section,
        definitions,
    ]
    .into_iter()
    .map(|make: fn(&Material<'_>) -> Section| make(material))
    .filter(|section| !section.table.rows.is_empty())
}

/// A row that takes part in no ranking.
pub(super) fn row(name: &str, role: Role, cells: Vec<Cell>) -> Row {
    Row { name: name.to_owned(), role, marks: Vec::new(), ranked: false, cells }
}

pub(super) fn role(arm: Arm) -> Role {
    match arm {
        Arm::Reference => Role::Reference,
        Arm::Floor => Role::Floor,
        Arm::Strategy => Role::Strategy,
    }
}

/// The cell, where it is one of a strategy.
fn of_strategy(arm: Arm, cell: Cell) -> Cell {
    match arm {
        Arm::Strategy => cell,
        Arm::Reference | Arm::Floor => Cell::NOT_APPLICABLE,
    }
}

fn kinds(material: &Material<'_>) -> Section {
    use ProbeKind::{Artifact, Constraint, Decoy, Open, Recall};
    // A kind that no session asks about gets no column.
    let mut asked = ProbeKind::ALL.to_vec();
    asked.retain(|kind| {
        let mut strategies = material.strategies.iter();
        matches!(kind, Recall | Constraint | Artifact | Decoy)
            || strategies.any(|strategy| strategy.survival_by_kind.contains_key(kind.name()))
    });
    let rows = material.rows(|strategy| {
        let by_kind = &strategy.survival_by_kind;
        let own = asked.iter().map(|kind| by_kind.get(kind.name()).copied());
        let all = [strategy.survival_uncorrected, strategy.survival];
        (!by_kind.is_empty()).then(|| own.chain(all).map(Cell::estimate).collect())
    });
    let of_kinds = asked.iter().map(|kind| match kind {
        Decoy => Column::new("decoy", "decoy (f)", 0),
        Open => Column::new("open", "evidence of open", 0),
        Recall | Constraint | Artifact => Column::new(kind.name(), kind.name(), 0),
        // On a narrow terminal the others make room, the newest kinds first.
        kind => Column::new(kind.name(), kind.name(), 1),
    });
    let of_open = asked.contains(&Open).then(|| {
        "Of open questions only the evidence can be seen: the share of its messages that stand \
         there as they were. It is in no share of planted items."
            .to_owned()
    });
    Section::new("facts_by_kind", rows)
        .more_columns(of_kinds)
        .more_columns(columns("uncorrected: all planted @1 | corrected @2"))
        .with_notes(of_open)
}

fn stages(material: &Material<'_>) -> Section {
    let rows = material.rows(|strategy| {
        strategy.stages.iter().map(|(stage, total)| {
            vec![
                Cell::text(stage.as_str()),
                Cell::count(total.patches),
                Cell::tokens(total.freed),
                Cell::tokens(total.added),
                Cell::count(total.failures),
            ]
        })
    });
    Section::new("stages", rows)
}

fn model_calls(material: &Material<'_>) -> Section {
    let rows = material.rows(|strategy| {
        let purposes = strategy.model_calls.by_purpose().into_iter();
        purposes.filter(|(_, total)| total.calls > 0).map(|(purpose, total)| {
            let mut cells = vec![Cell::text(purpose)];
            cells.extend([total.calls, total.failed].map(Cell::count));
            cells.push(Cell::tokens(total.tokens));
            cells
        })
    });
    Section::new("model_calls", rows)
}

/// Violations by strategy, level and rule.
fn findings(material: &Material<'_>) -> Section {
    let rows = material.rows(|strategy| {
        let mut rules = BTreeMap::new();
        for cell in material.cells_of(&strategy.name) {
            for violation in &cell.violations {
                let key = (Reverse(violation.level), violation.rule.as_str());
                let (count, sessions, first) =
                    rules.entry(key).or_insert((0, BTreeSet::new(), violation));
                *count += 1;
                sessions.insert(cell.session.as_str());
                if violation.call < first.call {
                    *first = violation;
                }
            }
        }
        rules.into_iter().map(|((level, rule), (count, sessions, first))| {
            let mut cells = vec![Cell::text(rule), Cell::text(display::name_of(&level.0))];
            cells.extend([count, sessions.len()].map(Cell::count));
            cells.push(Cell::text(format!("call {}, {}", first.call, first.subject)));
            cells
        })
    });
    Section::new("findings", rows)
}

/// The registry of metrics.
fn definitions(_: &Material<'_>) -> Section {
    let rows = METRICS.iter().map(|metric| {
        let better = match metric.direction {
            Direction::Higher => "higher",
            Direction::Lower => "lower",
            Direction::Neutral => "neither",
        };
        let texts = [metric.doc, metric.formula, better, metric.source];
        row(metric.name, Role::Other, texts.map(Cell::text).into())
    });
    Section::new("metrics", rows)
}

/// Whether any cell of the strategy was recorded.
fn is_measured(strategy: &StrategySummary) -> bool {
    strategy.cells > 0
}
