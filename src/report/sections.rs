//! The sections of a report, one function each.

use crate::probe::ProbeKind;
use crate::record::{Arm, Level};
use crate::report::arm::ArmSummary;
use crate::report::build::Material;
use crate::report::{Audience, Cell, Column, Role, Row, Section, Table, Value};

pub(super) mod answers;
pub(super) mod comparison;
mod by_call;
mod cost;
mod grading;
pub(super) mod generations;
mod lost;
pub(super) mod noise;
pub(super) mod models;
mod per_session;
pub(super) mod recovery;
mod retention;
pub(super) mod sizes;
pub(super) mod timings;
mod trail;

/// Every section after the comparison; those without a row are left out.
pub(super) fn details<'a>(
    material: &'a Material<'a>,
) -> impl Iterator<Item = Option<Section>> + 'a {
    [
        cost::as_billed,
        cost::side_by_side,
        cost::schemes,
        by_call::section,
        cost::breaks,
        lost::section,
        lost::by_summary,
        recovery::section,
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
        generations::moments,
        model_calls,
        models::asked,
        models::sentinels,
        noise::section,
        models::agreement,
        retention::health,
        retention::unhealthy,
        trail::by_verb,
        trail::unsupported,
        findings,
        per_session::overflows,
        per_session::ended_early,
        per_session::section,
        sizes::section,
        per_session::counter_error,
        cost::observed,
        per_session::importers,
        definitions,
    ]
    .into_iter()
    .map(|make: fn(&Material<'_>) -> Section| {
        let section = make(material);
        (!section.table.rows.is_empty()).then_some(section)
    })
}

/// A row that takes part in no ranking.
pub(super) fn row(name: &str, role: Role, cells: Vec<Cell>) -> Row {
    Row {
        name: name.to_owned(),
        role,
        marks: Vec::new(),
        ranked: false,
        cells,
    }
}

pub(super) fn role(arm: Arm) -> Role {
    match arm {
        Arm::Reference => Role::Reference,
        Arm::Floor => Role::Floor,
        Arm::Strategy => Role::Strategy,
    }
}

fn kinds(material: &Material<'_>) -> Section {
    // A kind that no session asks about gets no column.
    let asked: Vec<ProbeKind> = ProbeKind::ALL
        .into_iter()
        .filter(|kind| {
            let mut arms = material.arms.iter();
            matches!(
                kind,
                ProbeKind::Recall | ProbeKind::Constraint | ProbeKind::Artifact | ProbeKind::Decoy
            ) || arms.any(|(_, arm)| arm.survival_by_kind.contains_key(kind.name()))
        })
        .collect();
    let rows = material
        .arms
        .iter()
        .filter(|(_, arm)| !arm.survival_by_kind.is_empty())
        .map(|(kind, arm)| {
            let mut cells: Vec<Cell> = asked
                .iter()
                .map(|kind| Cell::estimate(arm.survival_by_kind.get(kind.name()).copied()))
                .collect();
            cells.push(Cell::estimate(arm.survival_uncorrected));
            cells.push(Cell::estimate(arm.survival));
            row(&arm.strategy, role(*kind), cells)
        })
        .collect();
    let mut columns = vec![Column::new("strategy", "strategy", 0)];
    columns.extend(asked.iter().map(|kind| match kind {
        ProbeKind::Decoy => Column::new("decoy", "decoy (f)", 0),
        ProbeKind::Open => Column::new("open", "evidence of open", 0),
        kind => {
            let is_frequent = matches!(
                kind,
                ProbeKind::Recall | ProbeKind::Constraint | ProbeKind::Artifact
            );
            // On a narrow terminal the others step back, the newest kinds first.
            Column::new(kind.name(), kind.name(), u8::from(!is_frequent))
        }
    }));
    columns.push(Column::new("uncorrected", "all planted", 1));
    columns.push(Column::new("corrected", "corrected", 2));
    let mut notes = Vec::new();
    if asked.contains(&ProbeKind::Open) {
        notes.push(
            "Of open questions only the evidence can be seen: the share of its messages that stand \
             there as they were. It is in no share of planted items."
                .to_owned(),
        );
    }
    Section {
        id: "survival_by_kind",
        title: "Survival by kind".to_owned(),
        about: "Share of planted items that survive, by string matching. Decoys were never \
                planted: their share is the chance rate f, and corrected is (s−f)/(1−f)."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table { columns, rows },
        notes,
    }
}

fn stages(material: &Material<'_>) -> Section {
    let rows = material
        .arms
        .iter()
        .flat_map(|(kind, arm)| {
            arm.stages.iter().map(|(stage, total)| {
                row(
                    &arm.strategy,
                    role(*kind),
                    vec![
                        Cell::text(stage.as_str()),
                        Cell::count(total.patches),
                        Cell::exact(Value::Tokens(total.freed.0)),
                        Cell::exact(Value::Tokens(total.added.0)),
                        Cell::count(total.failures),
                    ],
                )
            })
        })
        .collect();
    Section {
        id: "stages",
        title: "Compactions by stage".to_owned(),
        about: "Patches each stage applied over all sessions, what they freed or added at the time, and \
                how often the stage failed."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("strategy", "strategy", 0),
                Column::new("stage", "stage", 0),
                Column::new("patches", "patches", 0),
                Column::new("freed", "tokens freed", 0),
                Column::new("added", "tokens added", 0),
                Column::new("failures", "failures", 0),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}

fn model_calls(material: &Material<'_>) -> Section {
    let rows = material
        .arms
        .iter()
        .flat_map(|(kind, arm)| {
            arm.model_calls
                .by_purpose()
                .into_iter()
                .filter(|(_, total)| total.calls > 0)
                .map(|(purpose, total)| {
                    row(
                        &arm.strategy,
                        role(*kind),
                        vec![
                            Cell::text(purpose),
                            Cell::count(total.calls),
                            Cell::count(total.failed),
                            Cell::exact(Value::Tokens(total.tokens.0)),
                        ],
                    )
                })
        })
        .collect();
    Section {
        id: "model_calls",
        title: "Model calls of the strategies".to_owned(),
        about: "All of them are on the strategy's bill, failed ones included; probe and judge \
                calls are on nobody's."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("strategy", "strategy", 0),
                Column::new("purpose", "purpose", 0),
                Column::new("calls", "calls", 0),
                Column::new("failed", "failed", 0),
                Column::new("tokens", "tokens", 0),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}

/// Violations by strategy, level and rule.
fn findings(material: &Material<'_>) -> Section {
    let mut rows = Vec::new();
    for (kind, arm) in &material.arms {
        let mut rules = std::collections::BTreeMap::new();
        for cell in &material.cells {
            if cell.strategy != arm.strategy {
                continue;
            }
            for violation in &cell.violations {
                let key = (std::cmp::Reverse(violation.level), violation.rule.as_str());
                let (count, sessions, first) =
                    rules
                        .entry(key)
                        .or_insert((0, std::collections::BTreeSet::new(), violation));
                *count += 1;
                sessions.insert(cell.session.as_str());
                if violation.call < first.call {
                    *first = violation;
                }
            }
        }
        rows.extend(
            rules
                .into_iter()
                .map(|((level, rule), (count, sessions, first))| {
                    let level = match level.0 {
                        Level::Warning => "warning",
                        Level::Rejected => "rejected",
                    };
                    row(
                        &arm.strategy,
                        role(*kind),
                        vec![
                            Cell::text(rule),
                            Cell::text(level),
                            Cell::count(count),
                            Cell::count(sessions.len()),
                            Cell::text(format!("call {}, {}", first.call, first.subject)),
                        ],
                    )
                }),
        );
    }
    Section {
        id: "findings",
        title: "Broken rules of the provider".to_owned(),
        about: "Rules that prompts broke and full history at the same call did not.".to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("strategy", "strategy", 0),
                Column::new("rule", "rule", 0),
                Column::new("level", "level", 0),
                Column::new("findings", "findings", 0),
                Column::new("sessions", "sessions", 1),
                Column::new("first", "first at", 2),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}

/// The registry of metrics, for those that the comparison shows.
fn definitions(_: &Material<'_>) -> Section {
    let rows = crate::metric::METRICS
        .iter()
        .map(|metric| {
            let direction = match metric.direction {
                crate::metric::Direction::Higher => "higher",
                crate::metric::Direction::Lower => "lower",
                crate::metric::Direction::Neutral => "neither",
            };
            row(
                metric.name,
                Role::Other,
                vec![
                    Cell::text(metric.doc),
                    Cell::text(metric.formula),
                    Cell::text(direction),
                    Cell::text(metric.source),
                ],
            )
        })
        .collect();
    Section {
        id: "metrics",
        title: "What is measured".to_owned(),
        about: "A superscript 0 marks full history on the same calls. Estimates are means over \
                sessions, each weighing the same, with a 95 % t interval clustered by session; n \
                is sessions/items. What has no interval is exact on these sessions."
            .to_owned(),
        audience: Audience::Files,
        table: Table {
            columns: vec![
                Column::new("metric", "metric", 0),
                Column::new("doc", "meaning", 0),
                Column::new("formula", "formula", 0),
                Column::new("better", "better", 0),
                Column::new("source", "measured by", 0),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}

/// Whether any cell of the arm was recorded.
fn is_measured(arm: &ArmSummary) -> bool {
    arm.cells > 0
}
