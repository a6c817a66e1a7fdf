//! The comparison: one row per strategy, reference and floor first.

use std::collections::BTreeSet;

use crate::metric::cost::Bill;
use crate::metric::strain::Strain;
use crate::metric::{Direction, metric};
use crate::model::ModelKind;
use crate::model::price::Placement;
use crate::record::{Arm, CellRecord};
use crate::report::arm::{ArmAnswers, ArmSummary, Fidelity};
use crate::report::build::Material;
use crate::report::cost::ArmCost;
use crate::report::{Audience, Banner, Cell, Column, Measure, Role, Row, Section, Table, Value};
use crate::units::Tokens;

mod written;

use written::{banner, of_offline, twins, writers};

/// Columns in their order, with the rank in which they make room for others.
///
/// What a person needs first stays at 80 columns: how far it came, whether it did anything, what
/// it saves, what it loses, what it costs, whether a provider would take it.
const COLUMNS: &[(&str, u8)] = &[
    ("completion", 0),
    ("fired", 3),
    ("token_savings", 0),
    ("cost_savings", 0),
    ("cost_savings_edge", 0),
    ("survival", 1),
    ("survival_compacted", 4),
    ("action_support", 5),
    ("strategy_calls", 6),
    ("rejected", 6),
    ("accuracy", 1),
    ("fidelity", 2),
    ("extract", 7),
    ("cache_read_share", 8),
    ("broke_even", 8),
    ("peak_prompt", 8),
    ("overflows", 9),
    ("warnings", 10),
    ("compactions", 11),
    ("strategy_tokens", 12),
    ("cache_broken", 12),
    ("cache_again", 12),
    ("summary_tokens", 12),
    ("token_savings_of_totals", 13),
    ("token_savings_without_calls", 14),
    ("action_support_compacted", 15),
    ("retained", 16),
    ("survival_reachable", 16),
    ("blocked_turns", 17),
    ("blocked_agents", 18),
    ("thrash", 19),
    ("futile", 20),
    ("retriggered", 21),
    ("next_call", 21),
    ("unseen_altered", 22),
    ("unseen_reachable", 23),
    ("unseen_gone", 23),
    ("blocking_calls", 24),
    ("auto_compact_calls", 25),
    ("warned_calls", 26),
    ("agent_failures", 27),
    ("net_savings", 28),
    ("reread_calls", 29),
    ("trail_f1", 30),
    ("trail_precision", 31),
    ("trail_recall", 31),
    ("unsupported_atoms", 32),
    ("action_reachable", 33),
    ("headroom", 34),
    ("area", 35),
    ("failed_calls", 36),
    ("retried_calls", 36),
    ("wasted_calls", 36),
];

/// Columns of which the best value is marked. Counts are not: doing nothing makes few calls. The
/// compacted region is not: its items differ from strategy to strategy.
const MARKED: &[&str] = &[
    "token_savings",
    "cost_savings",
    "cost_savings_edge",
    "peak_prompt",
    "survival",
    "extract",
    "accuracy",
    "fidelity",
    "action_support",
];

/// Of the marked columns, those that say what is kept: it depends on who writes the summaries.
const KEEPING: &[&str] = &[
    "survival",
    "extract",
    "accuracy",
    "fidelity",
    "action_support",
];

/// Columns of which a terminal does not say that they were not measured: where no summary was
/// written there is nothing to measure, and older records know none of them.
const ASIDE: &[&str] = &[
    "cost_savings_edge",
    "net_savings",
    "reread_calls",
    "trail_f1",
    "trail_precision",
    "trail_recall",
    "unsupported_atoms",
];

/// The comparison, and a banner on strategies that only a model could tell apart.
pub(in crate::report) fn section(material: &Material<'_>) -> (Section, Option<Banner>) {
    let most = material.arms.iter().map(|(_, arm)| arm.sessions).max();
    let mut rows: Vec<Row> = material
        .arms
        .iter()
        // Where no probe is asked there is no floor: a control without a cell says nothing.
        .filter(|(kind, arm)| *kind == Arm::Strategy || super::is_measured(arm))
        .map(|(kind, arm)| row(*kind, arm, &Around::of(material, arm, most.unwrap_or(0))))
        .collect();
    for row in rows.iter_mut().filter(|row| row.role == Role::Reference) {
        row.marks.extend(super::answers::ceiling_mark(material));
    }
    let twins = twins(material);
    let writers = writers(material);
    let of_offline = of_offline(&rows, writers.as_ref());
    for (at, (name, _)) in COLUMNS.iter().enumerate() {
        if MARKED.contains(name) {
            let writers = writers.as_ref().filter(|_| KEEPING.contains(name));
            mark_best(&mut rows, at, name, &twins, writers);
        }
    }
    let has_cells = material.arms.iter().any(|(_, arm)| super::is_measured(arm));
    let columns: Vec<Column> = std::iter::once(Column::new("strategy", "strategy", 0))
        .chain(COLUMNS.iter().enumerate().map(|(at, (name, rank))| {
            let is_known = *name != "cost_savings_edge" || has_edges(material);
            let is_strain = Strain::default().named(name).is_some();
            let is_measured = rows.iter().any(|row| {
                match row.cells.get(at).map(|cell| &cell.value) {
                    None | Some(Value::NotMeasured | Value::NotApplicable) => false,
                    // Where nothing is under strain, ten columns of zeros say it too often.
                    Some(Value::Count(0)) => !is_strain,
                    Some(_) => true,
                }
            });
            // Before the first cell there is nothing to tell apart.
            let rank = if is_known && (is_measured || !(has_cells || is_strain)) {
                *rank
            } else {
                Column::FILES_ONLY
            };
            column(material, name, rank)
        }))
        .collect();
    let mut notes = Vec::new();
    if rows
        .iter()
        .any(|row| !row.ranked && row.marks.iter().any(|m| m.starts_with("broken")))
    {
        notes.push(
            "A broken strategy takes part in no ranking: its savings compare only the calls it \
             reached, and what was asked after a death is lost."
                .to_owned(),
        );
    }
    if let Some(shown) = super::cost::shown(material) {
        let edge = if has_edges(material) {
            "; `cost, edge`: one stands in front of what the strategy changes next"
        } else {
            ""
        };
        notes.push(format!(
            "cost savings: under {shown}{edge}. Other placements and schemes have tables of their own."
        ));
        notes.extend(super::cost::billed(material));
    }
    notes.extend(of_offline);
    notes.extend(unmeasured(material, &columns));
    let banner = banner(&twins);
    let section = Section {
        id: "comparison",
        title: "Comparison".to_owned(),
        about: "What each strategy saves and what it loses; full history and empty context \
                first, where they were run."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table { columns, rows },
        notes,
    };
    (section, banner)
}

/// Whether any strategy names the lowest entry that it changes next.
fn has_edges(material: &Material<'_>) -> bool {
    let mut costs = material.arms.iter().flat_map(|(_, arm)| &arm.costs);
    costs.any(|cost| cost.bill == Bill::Own(Placement::Edge))
}

/// What nobody measured, in one line: it takes up no column on a terminal.
fn unmeasured(material: &Material<'_>, columns: &[Column]) -> Option<String> {
    // Strain of which there was none was measured, and is zero.
    let missing: Vec<&Column> = columns
        .iter()
        .filter(|column| column.rank == Column::FILES_ONLY)
        .filter(|column| Strain::default().named(column.id).is_none())
        .filter(|column| !ASIDE.contains(&column.id))
        .collect();
    let mut labels: Vec<&str> = missing.iter().map(|column| column.label.as_str()).collect();
    if material.has_items() {
        return (!labels.is_empty()).then(|| format!("not measured: {}", labels.join(", ")));
    }
    labels.retain(|label| !label.starts_with("survival") && *label != "reachable");
    let answers = if labels.is_empty() {
        String::new()
    } else {
        format!(", nor: {}", labels.join(", "))
    };
    (!missing.is_empty())
        .then(|| format!("survival: not measured (nothing was planted in these sessions){answers}"))
}

fn column(material: &Material<'_>, name: &'static str, rank: u8) -> Column {
    let mut column = Column::new(name, name, rank);
    if let Some(metric) = metric(name) {
        metric.label.clone_into(&mut column.label);
        column.measure = Some(Measure {
            unit: metric.unit,
            direction: metric.direction,
        });
    }
    // A reader that is a model is named by its kind: scripted answers are no model's.
    if matches!(name, "accuracy" | "fidelity") {
        match material.manifest.reader.kind {
            ModelKind::Deterministic => {}
            ModelKind::Scripted => column.label.push_str(" (scripted)"),
            ModelKind::Live => column.label.push_str(" (live)"),
        }
    }
    column
}

/// What is to be known about a row beside its numbers.
struct Around {
    /// Sessions of the arm that has most.
    sessions: usize,
    /// Sessions in which the strategy is not measurable, in any repeat.
    unmeasured: usize,
    /// Calls whose prompt was sent though it does not fit the window: the recorded product did so.
    over: usize,
    /// Calls that were sent.
    calls: usize,
}

impl Around {
    fn of(material: &Material<'_>, arm: &ArmSummary, sessions: usize) -> Self {
        let own = |cell: &&&CellRecord| cell.strategy == arm.strategy;
        let unmeasured = material.unmeasured.iter().filter(own);
        let unmeasured: BTreeSet<&str> = unmeasured.map(|cell| cell.session.as_str()).collect();
        let over = |cell: &&CellRecord| {
            let is_over = |prompt: &&Tokens| cell.window.is_some_and(|it| it.overflows(**prompt));
            cell.prompt_tokens.iter().filter(is_over).count()
        };
        let cells = || material.cells.iter().filter(own);
        Self {
            sessions,
            unmeasured: unmeasured.len(),
            over: cells().map(over).sum(),
            calls: cells().map(|cell| cell.prompt_tokens.len()).sum(),
        }
    }
}

fn row(kind: Arm, arm: &ArmSummary, around: &Around) -> Row {
    let sessions = around.sessions;
    let mut marks = Vec::new();
    let broken = arm.broken();
    match kind {
        Arm::Reference => marks.push("reference".to_owned()),
        Arm::Floor => marks.push("floor".to_owned()),
        Arm::Strategy if !super::is_measured(arm) && around.unmeasured > 0 => {}
        Arm::Strategy if !super::is_measured(arm) => marks.push("no cells yet".to_owned()),
        Arm::Strategy if arm.fired == 0 => marks.push("never fired".to_owned()),
        Arm::Strategy => {}
    }
    let is_short = arm.sessions + around.unmeasured < sessions;
    if super::is_measured(arm) && kind == Arm::Strategy && is_short {
        marks.push(format!("{} of {sessions} sessions", arm.sessions));
    }
    match around.unmeasured {
        0 => {}
        _ if arm.sessions == 0 => marks.push("not measurable".to_owned()),
        some => marks.push(format!("not measurable in {some} of {sessions} sessions")),
    }
    if around.over > 0 {
        let (over, calls) = (around.over, around.calls);
        marks.push(format!(
            "in the product's own window: {over} of {calls} prompts over this one"
        ));
    }
    if let Some(reason) = &broken {
        marks.push(format!("broken ({reason})"));
    }
    Row {
        name: arm.strategy.clone(),
        role: super::role(kind),
        marks,
        ranked: kind == Arm::Strategy
            && broken.is_none()
            && around.over == 0
            && arm.fired > 0
            && arm.sessions == sessions,
        cells: COLUMNS
            .iter()
            .map(|(name, _)| cell(kind, arm, name))
            .collect(),
    }
}

fn cell(kind: Arm, arm: &ArmSummary, name: &str) -> Cell {
    let applies = match name {
        // Where no summary was written there is nothing to make up.
        "unsupported_atoms" => kind == Arm::Strategy && arm.unsupported_atoms.is_some(),
        "completion" | "peak_prompt" | "area" | "action_support" | "cache_read_share"
        | "trail_f1" | "trail_precision" | "trail_recall" => kind != Arm::Floor,
        "survival" | "extract" | "accuracy" | "fidelity" => true,
        _ => kind == Arm::Strategy,
    };
    if !applies {
        return Cell::exact(Value::NotApplicable);
    }
    if !super::is_measured(arm) {
        return Cell::exact(Value::NotMeasured);
    }
    let extract = match &arm.answers {
        Some(ArmAnswers::Extract { right, .. }) => *right,
        Some(ArmAnswers::Accuracy { .. }) | None => None,
    };
    let (accuracy, fidelity) = match &arm.answers {
        Some(ArmAnswers::Accuracy {
            accuracy, fidelity, ..
        }) => (*accuracy, Some(*fidelity)),
        Some(ArmAnswers::Extract { .. }) | None => (None, None),
    };
    let calls = arm.model_calls.total();
    let cost = arm.costs.first();
    let tokens = |tokens: Option<Tokens>| {
        Cell::exact(tokens.map_or(Value::NotMeasured, |tokens| Value::Tokens(tokens.0)))
    };
    match name {
        "completion" => Cell::share(arm.completion()),
        "fired" => Cell::exact(Value::Of(arm.fired as u64, arm.sessions as u64)),
        "token_savings" => Cell::savings(arm.token_savings),
        "summary_tokens" => tokens(arm.summary_tokens),
        "cost_savings" => Cell::savings(cost.and_then(|cost| cost.savings)),
        "cost_savings_edge" => {
            let edge = ArmCost::placed(&arm.costs, Placement::Edge);
            Cell::savings(edge.and_then(|cost| cost.savings))
        }
        "cache_read_share" => Cell::estimate(cost.and_then(|cost| cost.read_share)),
        "cache_broken" => tokens(cost.map(ArmCost::broken)),
        "cache_again" => tokens(cost.map(|cost| cost.again)),
        "broke_even" => Cell::exact(cost.map_or(Value::NotMeasured, |cost| {
            Value::Of(cost.broke_even as u64, cost.cells as u64)
        })),
        "peak_prompt" => tokens(arm.peak_prompt),
        "survival" => Cell::estimate(arm.survival),
        "survival_compacted" => Cell::estimate(arm.survival_compacted),
        "survival_reachable" => Cell::estimate(arm.survival_reachable),
        "extract" => Cell::estimate(extract),
        "accuracy" => Cell::estimate(accuracy),
        "fidelity" => Cell::estimate(fidelity.and_then(Fidelity::measured)),
        "action_support" => Cell::estimate(arm.action_support),
        "action_support_compacted" => Cell::estimate(arm.action_support_compacted),
        "compactions" => Cell::count(arm.compactions),
        "strategy_calls" => Cell::count(calls.calls),
        "strategy_tokens" => Cell::exact(Value::Tokens(calls.tokens.0)),
        "rejected" => Cell::count(arm.rejected),
        "warnings" => Cell::count(arm.warnings),
        "overflows" => Cell::count(arm.overflows),
        "token_savings_of_totals" => Cell::share(arm.token_savings_of_totals),
        "token_savings_without_calls" => Cell::savings(arm.token_savings_without_calls),
        "retained" => Cell::estimate(arm.retained),
        "headroom" => Cell::estimate(arm.headroom),
        "action_reachable" => Cell::estimate(arm.action_reachable),
        "area" => Cell::exact(Value::Tokens(arm.area.0)),
        "net_savings" => Cell::savings(arm.net_savings),
        "reread_calls" => arm
            .reread_calls
            .map_or(Cell::exact(Value::NotMeasured), Cell::count),
        "trail_f1" => Cell::estimate(arm.trail.f1),
        "trail_precision" => Cell::estimate(arm.trail.precision),
        "trail_recall" => Cell::estimate(arm.trail.recall),
        "unsupported_atoms" => Cell::estimate(arm.unsupported_atoms),
        name => match arm.strain.named(name) {
            Some(number) => Cell::count(number),
            None => Cell::exact(Value::NotMeasured),
        },
    }
}

/// Marks the best values of one column: the best, and those that lie within its interval. Nothing is
/// marked where fewer than two rows are ranked, where the best rests on one session, where all are alike,
/// where the best saves nothing, or where it is told from a twin by a model's writing alone.
///
/// Nor is anything marked where a strategy that summarises leads one that does not, or follows it, and
/// no language model wrote: `writers`.
fn mark_best(
    rows: &mut [Row],
    at: usize,
    name: &str,
    twins: &[Vec<&str>],
    writers: Option<&BTreeSet<&str>>,
) {
    let sign = match metric(name).map(|metric| metric.direction) {
        Some(Direction::Higher) => 1.0,
        Some(Direction::Lower) => -1.0,
        Some(Direction::Neutral) | None => return,
    };
    let values: Vec<(usize, f64)> = rows
        .iter()
        .enumerate()
        .filter(|(_, row)| row.ranked)
        .filter_map(|(index, row)| {
            let value = match row.cells.get(at)?.value {
                Value::Percent(share) => share,
                Value::Tokens(count) | Value::Count(count) => count as f64,
                Value::Of(..) | Value::Text(_) | Value::NotMeasured | Value::NotApplicable => {
                    return None;
                }
            };
            Some((index, sign * value))
        })
        .collect();
    let best = values
        .iter()
        .map(|(_, v)| *v)
        .fold(f64::NEG_INFINITY, f64::max);
    let is_saving = matches!(name, "token_savings" | "cost_savings" | "cost_savings_edge");
    if is_saving && best < 0.0 {
        return;
    }
    // Of one session nobody knows by how much it differs by chance.
    let is_guess = |(row, _): &(usize, f64)| {
        let n = rows[*row].cells.get(at).and_then(|cell| cell.n);
        n.is_some_and(|n| n.sessions < 2)
    };
    let mut leading = values.iter().filter(|(_, value)| *value >= best);
    if leading.any(is_guess) {
        return;
    }
    let width = values
        .iter()
        .filter(|(_, value)| *value >= best)
        .filter_map(|(row, _)| {
            let cell = rows[*row].cells.get(at)?;
            // Of two sessions an interval is wider than anything that is measured.
            cell.n.filter(|n| n.sessions > 2)?;
            let interval = cell.interval.as_ref()?;
            Some((interval.upper_bound - interval.lower_bound) / 2.0)
        })
        .fold(1e-12, f64::max);
    let is_best = |value: f64| value >= best - width;
    let winners: Vec<usize> = values
        .iter()
        .filter(|(_, value)| is_best(*value))
        .map(|(index, _)| *index)
        .collect();
    if winners.len() == values.len() {
        return;
    }
    let undecided = winners.iter().any(|winner| {
        twins.iter().any(|group| {
            group.contains(&rows[*winner].name.as_str())
                && values.iter().any(|(index, value)| {
                    !is_best(*value) && group.contains(&rows[*index].name.as_str())
                })
        })
    });
    let is_written =
        |index: usize| writers.is_some_and(|it| it.contains(rows[index].name.as_str()));
    let is_mixed = winners.iter().any(|winner| {
        values
            .iter()
            .any(|(other, _)| is_written(*winner) != is_written(*other))
    });
    if undecided || is_mixed {
        return;
    }
    for winner in winners {
        if let Some(cell) = rows[winner].cells.get_mut(at) {
            cell.best = true;
        }
    }
}
