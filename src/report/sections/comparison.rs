//! The comparison: one row per strategy, reference and floor first.

use std::collections::BTreeSet;

use super::prelude::*;
use crate::metric::cost::BillBasis;
use crate::metric::{self, Direction, Metric, MetricMark, PooledValue};
use crate::record::words::ModelKind;
use crate::record::words::Placement;
use crate::report::Measure;
pub(crate) use written::writers;
use written::{banner, of_offline, twins};

mod written;

/// The comparison, and a banner on strategies that differ only in a model's writing.
pub(crate) fn section(material: &Material<'_>) -> (Section, Option<Banner>) {
    let mut shown = rows(material);
    for row in shown.iter_mut().filter(|row| row.role == Role::Reference) {
        row.marks.extend(super::answers::ceiling_mark(material));
    }
    let groups = twins(material);
    let written = writers(material);
    for (at, metric) in metrics(material).enumerate() {
        let kept = metric.is(MetricMark::BestKept);
        if kept || metric.is(MetricMark::Best) {
            mark_best(&mut shown, at, metric, &groups, written.as_ref().filter(|_| kept));
        }
    }
    let recorded = material.strategies.iter().any(super::is_measured);
    let columns = metrics(material).enumerate().map(|(at, metric)| {
        let known = metric.name != "bill_saved_edge" || has_edges(material);
        let hides_zeros = metric.is(MetricMark::HideZeros);
        let measured = shown.iter().any(|row| match row.cells[at].value {
            Value::NotMeasured | Value::NotApplicable => false,
            // Columns of zeros are left out: ten of them would repeat one fact.
            Value::Count(0) => !hides_zeros,
            _ => true,
        });
        // Before the first cell there are no differences.
        column(material, metric, known && (measured || !(recorded || hides_zeros)))
    });
    let columns: Vec<Column> = columns.collect();
    let mut notes = Vec::new();
    if shown.iter().any(|row| !row.ranked && row.is_broken()) {
        notes.push(BROKEN.to_owned());
    }
    if let Some(basis) = super::cost::basis(material) {
        let edge = "; `bill saved, edge`: one stands in front of what the strategy changes next";
        let edge = if has_edges(material) { edge } else { "" };
        notes.push(format!(
            "bill saved: under {basis}{edge}. Other placements and schemes have tables of their own."
        ));
        notes.extend(super::cost::partly_known(material));
    }
    notes.extend(of_offline(&shown, written.as_ref()));
    notes.extend(unmeasured(material, &columns));
    let section = Section::new("comparison", shown).more_columns(columns);
    (section.with_notes(notes), banner(&groups))
}

const BROKEN: &str = "A broken strategy takes part in no ranking: its savings are those of the sessions that it \
completed, its bill is that of full history at the same ratio, and what was asked after a death is lost.";

/// The rows, without marks of what is best. Without probes there is no floor: a control without a cell is not
/// shown.
pub(crate) fn rows(material: &Material<'_>) -> Vec<Row> {
    let all = material.strategies.iter();
    let most = all.clone().map(|one| one.sessions).max().unwrap_or(0);
    let shown = all.filter(|one| one.arm == Arm::Strategy || super::is_measured(one));
    shown.map(|one| row(material, one, most)).collect()
}

/// The metrics of the comparison: some are known only where agents ran, or have the place of dollars.
fn metrics(material: &Material<'_>) -> impl Iterator<Item = &'static Metric> {
    let closed = material.live.is_some();
    let priced = material.strategies.iter().any(|strategy| strategy.values.contains_key("bill"));
    metric::columns().into_iter().filter(move |metric| {
        (closed || !metric.is(MetricMark::Closed)) && !(priced && metric.is(MetricMark::Unpriced))
    })
}

/// Whether any strategy names the lowest entry that it changes next.
fn has_edges(material: &Material<'_>) -> bool {
    let mut costs = material.strategies.iter().flat_map(|one| &one.costs);
    costs.any(|cost| cost.bill == BillBasis::Own(Placement::Edge))
}

/// The metrics that were not measured, in one line: they take up no column on a terminal.
fn unmeasured(material: &Material<'_>, columns: &[Column]) -> Option<String> {
    let hidden = columns.iter().filter(|column| column.is_for_files());
    let missing = hidden.filter(|column| {
        // Metrics of context pressure that are zero were measured.
        metric::metric(column.id).is_some_and(|metric| {
            !metric.is(MetricMark::HideZeros) && !metric.is(MetricMark::Optional)
        })
    });
    let mut labels: Vec<&str> = missing.map(|column| &*column.label).collect();
    if labels.is_empty() {
        return None;
    }
    if material.has_items() {
        return Some(format!("not measured: {}", labels.join(", ")));
    }
    labels.retain(|label| !label.starts_with("facts"));
    let answers = match labels.join(", ").as_str() {
        "" => String::new(),
        labels => format!(", nor: {labels}"),
    };
    let facts = "facts kept: not measured (nothing was planted in these sessions)";
    Some(facts.to_owned() + &answers)
}

fn column(material: &Material<'_>, metric: &Metric, is_shown: bool) -> Column {
    let shown = metric.column.filter(|_| is_shown);
    let priority = shown.map_or(Column::FILES_ONLY, |(_, priority)| priority);
    let mut column = Column::new(metric.name, metric.label, priority);
    let (unit, direction) = (metric.unit, metric.direction);
    column.measure = Some(Measure { unit, direction });
    // A reader is named by its kind: scripted answers are no model's.
    if matches!(metric.name, "answers" | "fidelity") {
        column.label += match material.manifest.reader.as_ref().map(|reader| reader.kind) {
            Some(ModelKind::Live) => " (live)",
            Some(ModelKind::Deterministic | ModelKind::Scripted) => " (scripted)",
            None => "",
        };
    }
    column
}

fn row(material: &Material<'_>, strategy: &StrategySummary, sessions: usize) -> Row {
    let kind = strategy.arm;
    let own = material.unmeasured.iter().filter(|cell| cell.strategy == strategy.name);
    let unmeasured = own.map(|cell| cell.session.as_str()).collect::<BTreeSet<_>>().len();
    let cells: Vec<&CellRecord> = material.cells_of(&strategy.name).collect();
    let calls: usize = cells.iter().map(|cell| cell.prompt_tokens.len()).sum();
    let closed = material.live.is_some();
    // A running agent has the provider's window.
    let over: usize = cells.iter().filter(|_| !closed).map(|cell| overflows(cell)).sum();
    let mut marks = Vec::new();
    match kind {
        Arm::Reference => marks.push("reference".into()),
        Arm::Floor => marks.push("floor".into()),
        Arm::Strategy if !super::is_measured(strategy) && unmeasured > 0 => {}
        Arm::Strategy if !super::is_measured(strategy) => marks.push(RowMark::NoCells),
        // An agent that nothing was changed for ran, too.
        Arm::Strategy if !strategy.has_acted() && !closed => marks.push(RowMark::NeverFired),
        Arm::Strategy => {}
    }
    let short = strategy.sessions + unmeasured < sessions;
    if super::is_measured(strategy) && kind == Arm::Strategy && short {
        marks.push(format!("{} of {sessions} sessions", strategy.sessions).into());
    }
    match unmeasured {
        0 => {}
        _ if strategy.sessions == 0 => marks.push(RowMark::NotMeasurable),
        some => marks.push(RowMark::NotMeasurableIn { some, sessions }),
    }
    if over > 0 {
        marks.push(RowMark::OwnWindow { over, calls });
    }
    marks.extend(strategy.broken().map(|why| RowMark::Broken(Some(why))));
    Row {
        name: strategy.name.clone(),
        role: super::role(kind),
        marks,
        ranked: kind == Arm::Strategy
            && strategy.broken().is_none()
            && over == 0
            && (strategy.has_acted() || closed)
            && strategy.sessions == sessions,
        cells: metrics(material).map(|one| cell(strategy, one)).collect(),
    }
}

/// Prompts that were sent though they do not fit the window: the recorded product did so.
fn overflows(cell: &CellRecord) -> usize {
    let prompts = cell.prompt_tokens.iter();
    cell.window.map_or(0, |window| prompts.filter(|prompt| window.overflows(**prompt)).count())
}

fn cell(strategy: &StrategySummary, metric: &Metric) -> Cell {
    let applies = match strategy.arm {
        Arm::Strategy => true,
        Arm::Reference => metric.is(MetricMark::Reference) || metric.is(MetricMark::Controls),
        Arm::Floor => metric.is(MetricMark::Controls),
    };
    let pooled = strategy.values.get(metric.name);
    // Where no summary was written there is nothing to make up.
    let written = !metric.is(MetricMark::WhereWritten) || strategy.estimate(metric.name).is_some();
    if !applies || !written {
        return Cell::NOT_APPLICABLE;
    }
    let measured = pooled.filter(|_| super::is_measured(strategy));
    measured.map_or(Cell::NOT_MEASURED, |value| pooled_cell(metric, *value))
}

/// The value of a metric over some cells, as a table shows it.
pub(crate) fn pooled_cell(metric: &Metric, value: PooledValue) -> Cell {
    match value {
        PooledValue::Estimate(mean) if metric.is(MetricMark::Savings) => Cell::savings(Some(mean)),
        PooledValue::Estimate(mean) => Cell::estimate(Some(mean)),
        PooledValue::AtLeast(least, most) => {
            Cell { most: Some(most), ..Cell::estimate(Some(least)) }
        }
        PooledValue::Share(share) => Cell::share(Some(share)),
        PooledValue::Count(count) => Cell::count(count),
        PooledValue::Tokens(tokens) => Cell::tokens(tokens),
        PooledValue::Dollars(dollars) => Cell::exact(Value::Dollars(dollars)),
        PooledValue::Seconds(seconds) => Cell::exact(Value::Seconds(seconds)),
        PooledValue::Part(part, whole) => Cell::of(part, whole),
    }
}

/// Marks the best values of one column: the best, and those that lie within its interval. Nothing
/// is marked where fewer than two rows are ranked, where the best rests on one session, where all
/// are alike, where the best saves nothing, or where it differs from a twin in a model's writing
/// alone.
///
/// Nor is anything marked where a strategy that summarises leads one that does not, or follows it, and
/// no language model wrote: `writers`.
fn mark_best(
    rows: &mut [Row],
    at: usize,
    metric: &Metric,
    twins: &[Vec<&str>],
    writers: Option<&BTreeSet<&str>>,
) {
    let sign = match metric.direction {
        Direction::Higher => 1.0,
        Direction::Lower => -1.0,
        Direction::Neutral => return,
    };
    let ranked = rows.iter().enumerate().filter(|(_, row)| row.ranked);
    let values = ranked.filter_map(|(index, row)| {
        let value = row.cells[at].value.number()?;
        Some((index, sign * value))
    });
    let values: Vec<(usize, f64)> = values.collect();
    let best = values.iter().map(|(_, v)| *v).fold(f64::NEG_INFINITY, f64::max);
    if metric.is(MetricMark::Savings) && best < 0.0 {
        return;
    }
    let leading = values.iter().filter(|(_, value)| *value >= best);
    let leading: Vec<&Cell> = leading.map(|(row, _)| &rows[*row].cells[at]).collect();
    // One session does not show by how much it differs by chance.
    if leading.iter().any(|cell| cell.n.is_some_and(|n| n.sessions < 2)) {
        return;
    }
    let width = leading
        .iter()
        // Of two sessions an interval is wider than anything that is measured.
        .filter(|cell| cell.n.is_some_and(|n| n.sessions > 2))
        .filter_map(|cell| Some(cell.interval.as_ref()?.half_width()))
        .fold(1e-12, f64::max);
    let all = values.iter().copied();
    let (winners, others): (Vec<(usize, f64)>, Vec<_>) =
        all.partition(|(_, value)| *value >= best - width);
    if others.is_empty() {
        return;
    }
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    if winners.iter().any(|(winner, _)| {
        let mut groups = twins.iter().filter(|group| group.contains(&names[*winner]));
        groups.any(|group| others.iter().any(|(other, _)| group.contains(&names[*other])))
            || writers.is_some_and(|written| {
                let own = written.contains(names[*winner]);
                values.iter().any(|(other, _)| written.contains(names[*other]) != own)
            })
    }) {
        return;
    }
    for (winner, _) in winners {
        rows[winner].cells[at].best = true;
    }
}
