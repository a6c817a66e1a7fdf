//! Cells and probe items as rows of the tables for programs, in all their formats.
//!
//! A column is a name and how it is read, so that the values under a name are of one kind in every
//! format. Shares are fractions of 1.

use super::AskedItem;
use super::display::name_of;
use crate::metric::cost::SchemeCost;
use crate::metric::{CellSummary, Formula, METRICS, Mark, Metric};
use crate::record::LostAt;
use crate::units::Tokens;

/// A column of rows made from `T`.
pub(crate) struct Column<T> {
    /// Its name, unique in its table; it never changes its meaning.
    pub(crate) name: &'static str,
    /// How it is read.
    pub(crate) read: ValueReader<T>,
}

/// Reads a value; `None` where it was not measured.
type Reader<T, V> = Box<dyn Fn(&T) -> Option<V>>;

/// How a value is read, and so of what kind it is.
pub(crate) enum ValueReader<T> {
    /// Words, as they were recorded: a format escapes those that its reader would execute.
    Text(Reader<T, String>),
    /// A whole number, at least 0; none above what tables hold, which no session reaches.
    Count(Reader<T, i64>),
    /// Any other number.
    Number(Reader<T, f64>),
}

type Cell = Column<CellSummary>;
type Probe<'a> = Column<AskedItem<'a>>;

impl<T> Column<T> {
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
fn metric(metric: &Metric) -> Option<Cell> {
    Some(match metric.function {
        Formula::Mean(of) => Cell::number(metric.name, move |cell| Some(of(cell)?.0)),
        Formula::Saved(of) => Cell::number(metric.name, move |cell| of(cell)?.saved()),
        Formula::Total(of) => Cell::number(metric.name, move |cell| of(cell)?.own),
        Formula::Count(of) => Cell::count(metric.name, of),
        Formula::Tokens(of) | Formula::Largest(of) => Cell::tokens(metric.name, of),
        Formula::Pool(_) => return None,
    })
}

/// One row per cell: its key, the counts that metrics are made of, and the metrics, except those marked
/// [`Mark::NotInCsv`].
pub(crate) fn cells() -> Vec<Cell> {
    let mut columns = vec![
        Cell::text("session", |it| Some(it.session.clone())),
        Cell::text("strategy", |it| Some(it.strategy.clone())),
        Cell::count("repeat", |it| Some(it.repeat)),
        Cell::text("arm", |it| Some(name_of(&it.arm))),
        Cell::count("calls_planned", |it| Some(it.completion.planned)),
        Cell::count("calls_reached", |it| Some(it.completion.reached)),
        Cell::count("died_at", |it| it.completion.died_at),
        Cell::count("failed_at", |it| it.completion.failed_at),
        Cell::count("calls_compared", |it| Some(it.savings?.calls)),
        Cell::tokens("prompt_tokens", |it| Some(it.savings?.prompts)),
        Cell::tokens("strategy_tokens_compared", |it| Some(it.savings?.strategy)),
        Cell::tokens("reference_tokens", |it| Some(it.savings?.reference)),
        Cell::text("cache_scheme", |it| Some(cost(it)?.scheme.clone())),
        Cell::count("cost_thousandths", |it| Some(cost(it)?.cost)),
        Cell::count("reference_cost_thousandths", |it| Some(cost(it)?.reference_cost)),
        Cell::tokens("tokens_uncached", |it| Some(cost(it)?.total().input_uncached)),
        Cell::tokens("tokens_cache_written", |it| {
            let total = cost(it)?.total();
            Some(total.cache_write_5m + total.cache_write_1h)
        }),
        Cell::tokens("tokens_cache_read", |it| Some(cost(it)?.total().cache_read)),
        Cell::count("break_even_call", |it| cost(it)?.break_even),
        Cell::number("facts_uncorrected", |it| it.survival.planted().mean()),
        Cell::count("facts_items", |it| Some(it.survival.planted().items)),
        Cell::number("facts_compacted_uncorrected", |it| it.survival.compacted.mean()),
        Cell::count("facts_compacted_items", |it| Some(it.survival.compacted.items)),
        Cell::number("decoys_found", |it| it.survival.decoys().mean()),
        Cell::count("decoy_items", |it| Some(it.survival.decoys().items)),
        Cell::count("answers_scored", |it| Some(scored(it)?.0)),
        Cell::count("answers_unscored", |it| Some(scored(it)?.1)),
        Cell::count("action_atoms", |it| Some(it.support.wanted)),
        Cell::count("action_atoms_compacted", |it| Some(it.support.compacted_wanted)),
        Cell::count("calls_failed", |it| Some(it.model_calls.total().failed)),
        Cell::tokens("prompt_area", |it| Some(it.area)),
        Cell::number("fired_at", |it| Some(it.fired_at?.0)),
        Cell::number("fired_at_most", |it| Some(it.fired_at?.1)),
    ];
    let metrics = METRICS.iter().filter(|metric| !metric.is(Mark::NotInCsv));
    columns.extend(metrics.filter_map(metric));
    columns
}

/// One row per probe item of each cell.
pub(crate) fn items<'a>() -> Vec<Probe<'a>> {
    vec![
        Probe::text("session", |item| Some(item.cell.session.clone())),
        Probe::text("strategy", |item| Some(item.cell.strategy.clone())),
        Probe::count("repeat", |item| Some(item.cell.repeat)),
        Probe::text("arm", |item| Some(name_of(&item.cell.arm))),
        Probe::text("probe", |item| Some(item.probe.probe.clone())),
        Probe::text("kind", |item| Some(item.probe.kind.name().to_owned())),
        Probe::count("percent", |item| Some(item.probe.percent)),
        Probe::count("call", |item| Some(item.probe.call)),
        Probe::text("fate", |item| Some(name_of(&item.probe.survival.fate))),
        Probe::number("survival", |item| Some(item.probe.survival.score)),
        Probe::number("survival_compacted", |item| item.probe.survival.compacted_score),
        Probe::count("lost_at_call", |item| Some(item.lost()?.call)),
        Probe::text("lost_by_stage", |item| Some(item.lost()?.stage.clone())),
        Probe::text("lost_because", |item| Some(item.lost()?.reason.clone())),
        Probe::text("changed_to", |item| item.probe.survival.changed_to().map(str::to_owned)),
        Probe::text("answer", |item| Some(item.probe.answer.as_ref()?.text.as_deref()?.to_owned())),
        Probe::text("outcome", |item| {
            let scored = item.probe.verdict()?.scored();
            Some(scored.map_or("unscored".to_owned(), |(_, it)| name_of(&it)))
        }),
        Probe::number("score", |item| Some(item.probe.verdict()?.scored()?.0)),
        Probe::count("weight", |item| Some(usize::from(item.probe.weight))),
        Probe::text("question", |item| Some(item.text?.question.clone())),
        Probe::text("value", |item| Some(item.text?.gold.clone())),
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
