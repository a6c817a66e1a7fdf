//! One number of one cell, explained: its formula, numerator and denominator, and the calls or facts that
//! they are sums of. It is computed from the records again, not taken from the metrics.

use schemars::JsonSchema;
use serde::Serialize;

mod numbers;

pub use numbers::{Number, Numbers, Pooling, SessionValue, explain_column, explained};

use super::{Cell, Role, Row, Section, Value, asked_items, columns, display, sections};
use crate::metric::calls::is_on_the_bill;
use crate::metric::cost::{SchemeCost, TokenClasses};
use crate::metric::survival::is_planted;
use crate::metric::{MetricMark, metric};
use crate::record::words::{GradeVerdict, Placement};
use crate::record::{CacheRecord, CellKey, CellRecord, Manifest, PriceEntry};
use crate::units::{Tokens, Usage};

/// The metrics that can be explained.
pub const EXPLAINED: [&str; 9] = [
    "bill",
    "bill_saved",
    "bill_saved_edge",
    "facts",
    "answers",
    "actions",
    "fired",
    "tokens",
    "calls",
];

/// A number and what it is made of.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Explanation {
    /// The cell: `session/strategy/repeat`.
    pub cell: String,
    /// The metric.
    pub metric: &'static str,
    /// Its formula, as in `docs/reference/metrics.md`.
    pub formula: &'static str,
    /// The numerator: of savings what was spent, C or S.
    pub numerator: f64,
    /// The denominator: of savings what the full history spent; 1 for a count or a bill.
    pub denominator: f64,
    /// The value; `None` where the denominator is 0.
    pub value: Option<f64>,
    /// The terms, one row each.
    pub terms: Section,
}

/// Why there is no explanation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExplainError {
    /// No such cell.
    #[error("the run has no cell `{0}`")]
    Cell(String),
    /// The metric is not one of [`EXPLAINED`].
    #[error("`{0}` is not explained")]
    Metric(String),
    /// The run did not measure it.
    #[error("`{0}` was not measured in {1}")]
    NotMeasured(&'static str, String),
}

/// What a value is computed from.
struct TermTable {
    /// Numerator and denominator.
    fraction: (f64, f64),
    /// The headings, as [`columns`] reads them.
    columns: &'static str,
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl TermTable {
    fn new(fraction: (f64, f64), columns: &'static str, rows: Vec<Row>) -> Self {
        let notes = Vec::new();
        Self { fraction, columns, rows, notes }
    }
}

/// Explains a metric of a cell.
pub fn explain(
    manifest: &Manifest,
    cells: &[CellRecord],
    key: &CellKey,
    name: &str,
) -> Result<Explanation, ExplainError> {
    let named = cells.iter().find(|cell| cell.key() == *key);
    let cell = named.ok_or_else(|| ExplainError::Cell(key.to_string()))?;
    let references = cells.iter().filter(|full| {
        full.session == key.session
            && full.strategy == "full"
            && (full.repeat == key.repeat || full.repeat == 0)
    });
    let full = references.min_by_key(|full| full.repeat != key.repeat);
    let known = metric(name).filter(|_| EXPLAINED.contains(&name));
    let metric = known.ok_or_else(|| ExplainError::Metric(name.to_owned()))?;
    let found = match metric.name {
        "tokens" => full.map(|full| billed(cell, full, true).unwrap_or_else(|| tokens(cell, full))),
        "bill" => full.and_then(|full| {
            let session = manifest.sessions.iter().find(|session| session.id == key.session)?;
            bill(cost(cell, full, None)?, session.price.as_ref()?)
        }),
        "bill_saved" => full.and_then(|full| cost(cell, full, None)),
        "bill_saved_edge" => full.and_then(|full| cost(cell, full, Some(Placement::Edge))),
        "facts" => items(cell, false),
        "answers" => items(cell, true),
        "actions" => Some(actions(cell, full)),
        "fired" => Some(fired(cell)),
        _ => Some(own_calls(cell)),
    };
    let terms =
        found.ok_or_else(|| ExplainError::NotMeasured(metric.name, format!("cell `{key}`")))?;
    let (numerator, denominator) = terms.fraction;
    let share = (denominator > 0.0).then(|| numerator / denominator);
    let mut section = Section::new("explained", terms.rows)
        .fill("metric", metric.label)
        .fill("cell", &key.to_string())
        .fill("doc", metric.doc)
        .with_notes([format!("formula: {}", metric.formula)])
        .with_notes(terms.notes);
    section.table.columns = columns(terms.columns);
    Ok(Explanation {
        cell: key.to_string(),
        metric: metric.name,
        formula: metric.formula,
        numerator,
        denominator,
        value: share.map(|share| if is_saving(metric.name) { 1.0 - share } else { share }),
        terms: section,
    })
}

/// Whether the value is `1 − numerator/denominator`.
fn is_saving(name: &str) -> bool {
    metric(name).is_some_and(|metric| metric.is(MetricMark::Savings))
}

impl Explanation {
    /// Numerator, denominator and value in words.
    pub fn in_words(&self) -> String {
        let [numerator, denominator] = [self.numerator, self.denominator]
            .map(|value| format!("{value:.*}", if value.fract() == 0.0 { 0 } else { 3 }));
        match self.value {
            None => format!("{numerator} of 0: there is nothing to measure"),
            Some(value) if matches!(self.metric, "calls" | "fired") => format!("{value:.0}"),
            Some(value) if self.metric == "bill" => format!("${value:.4}"),
            Some(value) => {
                let from = if is_saving(self.metric) { "1 − " } else { "" };
                let value = display::percent(value);
                format!("{from}{numerator} / {denominator} = {value}")
            }
        }
    }
}

fn row(name: &str, cells: Vec<Cell>) -> Row {
    sections::row(name, Role::Other, cells)
}

/// Calls that both reached, and whether the strategy's own calls at a call are on the bill: those at the
/// call of a death are.
fn compared(cell: &CellRecord, full: &CellRecord) -> (usize, impl Fn(usize) -> bool) {
    let reached = cell.prompt_tokens.len();
    let calls = reached.min(full.prompt_tokens.len());
    (calls, move |call: usize| call < calls || calls == reached)
}

fn tokens(cell: &CellRecord, full: &CellRecord) -> TermTable {
    let (calls, is_compared) = compared(cell, full);
    // Behind the last call of the agent they count as its own.
    let last = calls.saturating_sub(1);
    let mut asked = vec![Tokens::ZERO; last + 1];
    for own in &cell.model_calls {
        if is_on_the_bill(own.purpose) && is_compared(own.call) {
            asked[own.call.min(last)] += own.usage.total();
        }
    }
    let (prompts, full) = (&cell.prompt_tokens[..calls], &full.prompt_tokens[..calls]);
    let rows = (0..calls).map(|call| {
        let cells = [prompts[call], asked[call], full[call]];
        row(&call.to_string(), cells.map(Cell::tokens).into())
    });
    let spent: Tokens = prompts.iter().chain(&asked).copied().sum();
    let reference: Tokens = full.iter().copied().sum();
    let fraction = (spent.0 as f64, reference.0 as f64);
    let columns = "term: call | prompt | own calls | full history";
    TermTable::new(fraction, columns, rows.collect())
}

/// The provider's bill, in tokens or as they cost; `None` where that is not known.
fn billed(cell: &CellRecord, full: &CellRecord, is_in_tokens: bool) -> Option<TermTable> {
    let costs = SchemeCost::of(cell, full);
    let cost = costs.first().filter(|cost| cost.is_billed())?;
    let (asked, [own, reference]) = (cost.of_strategy(), [cost.agent, cost.reference]);
    let parts = [("the agent", own), ("the strategy", asked), ("full history", reference)];
    let rows = parts.map(|(name, usage)| {
        let classes = TokenClasses::from(usage);
        let cells = [classes.input, classes.written, classes.read, classes.output];
        row(name, cells.map(Cell::tokens).into())
    });
    let (spent, whole) = (own.prompt() + asked.total(), reference.prompt());
    let mut fraction = (spent.0 as f64, whole.0 as f64);
    if !is_in_tokens {
        let costs = [cost.cost, cost.reference_cost];
        fraction = costs.map(|cost| cost as f64 / 1_000.0).into();
    }
    let columns = "term: billed | uncached | written | read | output";
    Some(TermTable::new(fraction, columns, rows.into()))
}

/// The cost under the first scheme of the cell, in input tokens.
fn cost(cell: &CellRecord, full: &CellRecord, placement: Option<Placement>) -> Option<TermTable> {
    if let Some(terms) = billed(cell, full, false) {
        return Some(terms).filter(|_| placement.is_none());
    }
    let shown = cell.prompt_cache.first()?;
    let own: &CacheRecord = match placement {
        Some(placement) => cell.cache_under(&shown.scheme, placement)?,
        None => shown,
    };
    let other = full.cache_under(&own.scheme, own.placement)?;
    let (calls, is_compared) = compared(cell, full);
    // What the strategy's own calls cost, by the call of the agent at which they were made.
    let mut asked = vec![0_u64; calls + 1];
    for (number, call) in cell.model_calls.iter().enumerate() {
        if is_on_the_bill(call.purpose) && is_compared(call.call) {
            let price = match own.other_models.get(&number) {
                Some(price) => (*price)?.cost(&(*price)?.of_call(call.usage)),
                None => of_call(own, call.call, own.of_strategy(number, &call.usage)),
            };
            asked[call.call.min(calls)] += price;
        }
    }
    let (mut spent, mut reference) = (asked[calls], 0);
    let mut rows = Vec::new();
    for (call, asked) in asked[..calls].iter().copied().enumerate() {
        let prompt = own.of_call(call, cell.prompt_tokens[call]);
        let full_prompt = other.of_call(call, full.prompt_tokens[call]);
        // What the agent wrote is the same under both.
        let output = full.output_tokens.get(call).copied().unwrap_or_default();
        let [answered, full_cost] = [(own, prompt), (other, full_prompt)]
            .map(|(cache, prompt)| of_call(cache, call, Usage { output, ..prompt }));
        let prompt_cost = of_call(own, call, prompt);
        spent += answered + asked;
        reference += full_cost;
        let classes = TokenClasses::from(prompt);
        let classes = [classes.input, classes.written, classes.read].map(Cell::tokens);
        let costs = [prompt_cost, answered - prompt_cost, asked, full_cost].map(input_tokens);
        let cells = classes.into_iter().chain(costs).collect();
        rows.push(row(&call.to_string(), cells));
    }
    if asked[calls] > 0 {
        let mut cells = vec![Cell::NOT_APPLICABLE; 7];
        cells[5] = input_tokens(asked[calls]);
        rows.push(row("at the end", cells));
    }
    let rates = own.rates;
    let write = rates.write.map(|write| format!("write {}, ", times(write)));
    Some(TermTable {
        fraction: (spent as f64 / 1_000.0, reference as f64 / 1_000.0),
        columns: "term: call | uncached | written | read | prompt, in input tokens | \
                  answer, in input tokens | own calls, in input tokens | full history, in input tokens",
        rows,
        notes: vec![format!(
            "scheme `{}`, {} breakpoints; prices relative to input: {}read {}, output {}",
            own.scheme,
            own.placement.name(),
            write.unwrap_or_default(),
            times(rates.read),
            times(rates.output)
        )],
    })
}

fn input_tokens(thousandths: u64) -> Cell {
    Cell::tokens(Tokens(thousandths / 1_000))
}

fn times(thousandths: u32) -> String {
    (f64::from(thousandths) / 1_000.0).to_string()
}

/// The cost of one call, in thousandths of an input token.
fn of_call(cache: &CacheRecord, call: usize, usage: Usage) -> u64 {
    cache.rates.cost(&cache.at_usual_price(call, usage))
}

/// The bill in dollars: its input tokens at their price.
fn bill(terms: TermTable, price: &PriceEntry) -> Option<TermTable> {
    let (spent, each) = (terms.fraction.0, price.per_token.input?.in_dollars());
    let (model, date, million) = (&price.model, &price.date, each * 1e6);
    let in_dollars =
        format!("{model} of {date}: {spent:.1} input tokens at ${million:.2} per million");
    Some(TermTable {
        fraction: (spent * each, 1.0),
        notes: [terms.notes, vec![in_dollars]].concat(),
        ..terms
    })
}

/// The calls at which the strategy changed the context, and how full the window was.
fn fired(cell: &CellRecord) -> TermTable {
    let effective = cell.window.map(|window| window.effective());
    let mut rows = Vec::new();
    for event in &cell.compactions {
        let [before, after] = [event.before, event.after].map(|part| cell.fixed_tokens + part);
        let share = effective.and_then(|effective| before.share_of(effective));
        let mut cells = vec![Cell::text(event.stage.as_str())];
        cells.extend([before, after].map(Cell::tokens));
        cells.push(Cell::share(share));
        rows.push(row(&event.call.to_string(), cells));
    }
    let fraction = (f64::from(u8::from(!rows.is_empty())), 1.0);
    let columns = "term: call | stage | before | after | window in use";
    TermTable::new(fraction, columns, rows)
}

/// The planted items with their scores: of facts by string search, each by its weight, or of answers.
/// `None` if no item has a score.
fn items(cell: &CellRecord, is_of_answers: bool) -> Option<TermTable> {
    let (mut sum, mut weights, mut rows) = (0.0, 0.0, Vec::new());
    for asked in asked_items([cell]) {
        let (item, text) = (asked.probe, asked.text);
        if !is_planted(item.kind) {
            continue;
        }
        let (score, weight, fate) = if is_of_answers {
            let Some((score, outcome)) = item.verdict().and_then(GradeVerdict::scored) else {
                continue;
            };
            let answer = item.answer.as_ref().and_then(|answer| answer.text.as_deref());
            let outcome = display::name_of(&outcome);
            let said = answer.map(|answer| format!("{outcome}: {answer}"));
            (score, 1, said.unwrap_or(outcome))
        } else if item.kind.is_searched() {
            let lost = item.survival.where_lost().unwrap_or_default();
            (item.survival.score, item.weight, lost)
        } else {
            continue;
        };
        sum += f64::from(weight) * score;
        weights += f64::from(weight);
        let cells = vec![
            Cell::exact(Value::Share(score)),
            Cell::count(usize::from(weight)),
            Cell::text(text.map_or("", |text| &text.question)),
            Cell::text(text.map_or("", |text| &text.gold)),
            Cell::text(fate),
        ];
        rows.push(row(&format!("{}@{}", item.probe, item.percent), cells));
    }
    let corrected = "the table of the report corrects the mean over sessions for what is found by chance (decoys)";
    let mut columns = "term: fact | score | weight | question | value | lost";
    if is_of_answers {
        columns = "term: fact | score | weight | question | value | answer";
    }
    (!is_of_answers || weights > 0.0).then(|| TermTable {
        notes: Vec::from_iter((!is_of_answers).then(|| corrected.to_owned())),
        ..TermTable::new((sum, weights), columns, rows)
    })
}

fn actions(cell: &CellRecord, full: Option<&CellRecord>) -> TermTable {
    let own = &cell.action_support;
    let all = &full.unwrap_or(cell).action_support.wanted;
    let (mut present, mut wanted) = (0, 0);
    let mut rows = Vec::new();
    for call in 0..all.len().max(own.wanted.len()) {
        let found = own.present.get(call).copied().unwrap_or_default();
        // What a session that died would have needed later is needed and not there.
        let needs = own.wanted.get(call).or(all.get(call)).copied().unwrap_or_default();
        present += found;
        wanted += needs;
        if needs > 0 {
            let cells = [found, needs].map(|count| Cell::count(count as usize));
            rows.push(row(&call.to_string(), cells.into()));
        }
    }
    let fraction = (f64::from(present), f64::from(wanted));
    TermTable::new(fraction, "term: call | present | needed", rows)
}

fn own_calls(cell: &CellRecord) -> TermTable {
    let mut rows = Vec::new();
    let asked = cell.model_calls.iter();
    for asked in asked.filter(|call| is_on_the_bill(call.purpose)) {
        let cells = vec![
            Cell::text(display::name_of(&asked.purpose)),
            Cell::tokens(asked.usage.prompt()),
            Cell::tokens(asked.usage.output),
            Cell::text(asked.failure.clone().unwrap_or_default()),
        ];
        rows.push(row(&asked.call.to_string(), cells));
    }
    let fraction = (rows.len() as f64, 1.0);
    let columns = "term: call | purpose | prompt | answer | failure";
    TermTable::new(fraction, columns, rows)
}
