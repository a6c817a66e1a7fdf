//! Cells and probe items as rows of the tables for programs, in all their formats.
//!
//! A column is a name and how it is read, so that the values under a name are of one kind in every
//! format. Shares are fractions of 1.

use super::AskedItem;
use super::display::name_of;
use crate::metric::cost::SchemeCost;
use crate::metric::{CellSummary, Formula, METRICS, Metric, MetricMark};
use crate::record::LostAt;
use crate::units::Tokens;

/// A column of rows made from `T`.
pub(crate) struct DataColumn<T> {
    /// Its name, unique in its table; it never changes its meaning.
    pub(crate) name: &'static str,
    /// How it is read.
    pub(crate) read: ValueReader<T>,
}

/// Reads a value; `None` where it was not measured.
type ReadValue<T, V> = Box<dyn Fn(&T) -> Option<V>>;

/// How a value is read, and so of what kind it is.
pub(crate) enum ValueReader<T> {
    /// Words, as they were recorded: a format escapes those that its reader would execute.
    Text(ReadValue<T, String>),
    /// A whole number, at least 0; none above what tables hold, which no session reaches.
    Count(ReadValue<T, i64>),
    /// Any other number.
    Number(ReadValue<T, f64>),
}

type CellColumn = DataColumn<CellSummary>;
type ItemColumn<'a> = DataColumn<AskedItem<'a>>;

impl<T> DataColumn<T> {
    fn text(name: &'static str, read: impl Fn(&T) -> Option<String> + 'static) -> Self {
        let read = ValueReader::Text(Box::new(read));
        Self { name, read }
    }

    fn count<N: TryInto<i64>>(
        name: &'static str,
        read: impl Fn(&T) -> Option<N> + 'static,
    ) -> Self {
        let read = ValueReader::Count(Box::new(move |row| read(row)?.try_into().ok()));
        Self { name, read }
    }

    fn tokens(name: &'static str, read: impl Fn(&T) -> Option<Tokens> + 'static) -> Self {
        Self::count(name, move |row| Some(read(row)?.0))
    }

    fn number(name: &'static str, read: impl Fn(&T) -> Option<f64> + 'static) -> Self {
        let read = ValueReader::Number(Box::new(read));
        Self { name, read }
    }
}

/// The column of a metric; none where a cell alone has no value of it.
fn metric(metric: &Metric) -> Option<CellColumn> {
    Some(match metric.function {
        Formula::Mean(of) => CellColumn::number(metric.name, move |cell| Some(of(cell)?.0)),
        Formula::Saved(of) => CellColumn::number(metric.name, move |cell| of(cell)?.saved()),
        Formula::Total(of) => CellColumn::number(metric.name, move |cell| of(cell)?.own),
        Formula::Count(of) => CellColumn::count(metric.name, of),
        Formula::Tokens(of) | Formula::Largest(of) => CellColumn::tokens(metric.name, of),
        Formula::Pool(_) => return None,
    })
}

/// One row per cell: its key, the counts that metrics are made of, and the metrics, except those marked
/// [`MetricMark::NotInCsv`].
pub(crate) fn cells() -> Vec<CellColumn> {
    let mut columns = vec![
        CellColumn::text("session", |cell| Some(cell.session.clone())),
        CellColumn::text("strategy", |cell| Some(cell.strategy.clone())),
        CellColumn::count("repeat", |cell| Some(cell.repeat)),
        CellColumn::text("arm", |cell| Some(name_of(&cell.arm))),
        CellColumn::count("calls_planned", |cell| Some(cell.completion.planned)),
        CellColumn::count("calls_reached", |cell| Some(cell.completion.reached)),
        CellColumn::count("died_at", |cell| cell.completion.died_at),
        CellColumn::count("failed_at", |cell| cell.completion.failed_at),
        CellColumn::count("calls_compared", |cell| Some(cell.savings?.calls)),
        CellColumn::tokens("prompt_tokens", |cell| Some(cell.savings?.prompts)),
        CellColumn::tokens("strategy_tokens_compared", |cell| Some(cell.savings?.strategy)),
        CellColumn::tokens("reference_tokens", |cell| Some(cell.savings?.reference)),
        CellColumn::text("cache_scheme", |cell| Some(cost(cell)?.scheme.clone())),
        CellColumn::count("cost_thousandths", |cell| Some(cost(cell)?.cost)),
        CellColumn::count("reference_cost_thousandths", |cell| Some(cost(cell)?.reference_cost)),
        CellColumn::tokens("tokens_uncached", |cell| Some(cost(cell)?.total().input_uncached)),
        CellColumn::tokens("tokens_cache_written", |cell| {
            let total = cost(cell)?.total();
            Some(total.cache_write_5m + total.cache_write_1h)
        }),
        CellColumn::tokens("tokens_cache_read", |cell| Some(cost(cell)?.total().cache_read)),
        CellColumn::count("break_even_call", |cell| cost(cell)?.break_even),
        CellColumn::number("facts_uncorrected", |cell| cell.survival.planted().mean()),
        CellColumn::count("facts_items", |cell| Some(cell.survival.planted().items)),
        CellColumn::number("facts_compacted_uncorrected", |cell| cell.survival.compacted.mean()),
        CellColumn::count("facts_compacted_items", |cell| Some(cell.survival.compacted.items)),
        CellColumn::number("decoys_found", |cell| cell.survival.decoys().mean()),
        CellColumn::count("decoy_items", |cell| Some(cell.survival.decoys().items)),
        CellColumn::count("answers_scored", |cell| Some(scored(cell)?.0)),
        CellColumn::count("answers_unscored", |cell| Some(scored(cell)?.1)),
        CellColumn::count("action_atoms", |cell| Some(cell.support.wanted)),
        CellColumn::count("action_atoms_compacted", |cell| Some(cell.support.compacted_wanted)),
        CellColumn::count("calls_failed", |cell| Some(cell.model_calls.total().failed)),
        CellColumn::tokens("prompt_area", |cell| Some(cell.area)),
        CellColumn::number("fired_at", |cell| Some(cell.fired_at?.0)),
        CellColumn::number("fired_at_most", |cell| Some(cell.fired_at?.1)),
    ];
    let metrics = METRICS.iter().filter(|metric| !metric.is(MetricMark::NotInCsv));
    columns.extend(metrics.filter_map(metric));
    columns
}

/// One row per probe item of each cell.
pub(crate) fn items<'a>() -> Vec<ItemColumn<'a>> {
    vec![
        ItemColumn::text("session", |item| Some(item.cell.session.clone())),
        ItemColumn::text("strategy", |item| Some(item.cell.strategy.clone())),
        ItemColumn::count("repeat", |item| Some(item.cell.repeat)),
        ItemColumn::text("arm", |item| Some(name_of(&item.cell.arm))),
        ItemColumn::text("probe", |item| Some(item.probe.probe.clone())),
        ItemColumn::text("kind", |item| Some(item.probe.kind.name().to_owned())),
        ItemColumn::count("percent", |item| Some(item.probe.percent)),
        ItemColumn::count("call", |item| Some(item.probe.call)),
        ItemColumn::text("fate", |item| Some(name_of(&item.probe.survival.fate))),
        ItemColumn::number("survival", |item| Some(item.probe.survival.score)),
        ItemColumn::number("survival_compacted", |item| item.probe.survival.compacted_score),
        ItemColumn::count("lost_at_call", |item| Some(item.lost()?.call)),
        ItemColumn::text("lost_by_stage", |item| Some(item.lost()?.stage.clone())),
        ItemColumn::text("lost_because", |item| Some(item.lost()?.reason.clone())),
        ItemColumn::text("changed_to", |item| item.probe.survival.changed_to().map(str::to_owned)),
        ItemColumn::text("answer", |item| item.probe.answer.as_ref()?.text.clone()),
        ItemColumn::text("outcome", |item| {
            let scored = item.probe.verdict()?.scored();
            Some(scored.map_or("unscored".to_owned(), |(_, outcome)| name_of(&outcome)))
        }),
        ItemColumn::number("score", |item| Some(item.probe.verdict()?.scored()?.0)),
        ItemColumn::count("weight", |item| Some(usize::from(item.probe.weight))),
        ItemColumn::text("question", |item| Some(item.text?.question.clone())),
        ItemColumn::text("value", |item| Some(item.text?.gold.clone())),
    ]
}

impl AskedItem<'_> {
    fn lost(&self) -> Option<&LostAt> {
        self.probe.survival.lost_at.as_ref()
    }
}

/// The cost under the scheme of the comparison.
fn cost(cell: &CellSummary) -> Option<&SchemeCost> {
    cell.costs.first()
}

/// Answers with and without a score.
fn scored(cell: &CellSummary) -> Option<(usize, usize)> {
    let accuracy = cell.answers.as_ref()?;
    Some((accuracy.score.items, accuracy.unscored))
}
