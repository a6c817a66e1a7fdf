//! A column of the comparison, explained: of each strategy the values of its sessions, and how they become
//! the number of its row.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::ExplainError;
use crate::metric::completion::Completion;
use crate::metric::cost::BillBasis;
use crate::metric::fidelity::Anchors;
use crate::metric::survival::{chance, uncorrected};
use crate::metric::{CellSummary, Formula, Metric, Unit, cluster_total, metric};
use crate::record::PriceEntry;
use crate::report::build::{EMPTY, FULL, summaries_of};
use crate::report::json::Figure;
use crate::report::screen::LINES;
use crate::report::sections::comparison::pooled_cell;
use crate::report::sections::cost;
use crate::report::{Report, Value, display, layout};
use crate::units::Usd;

/// A column of the comparison with all that it is made of.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Numbers {
    /// The metric.
    pub metric: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// How it is computed, as in `docs/reference/metrics.md`.
    pub formula: &'static str,
    /// How the values of sessions become one number.
    pub pooling: Pooling,
    /// The prices in force, of metrics that need them.
    pub prices: Vec<String>,
    /// The rows of the comparison, in its order.
    pub strategies: Vec<Number>,
}

/// How the values of sessions become one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    /// Their mean, with a 95 % t interval.
    Mean,
    /// Their mean, corrected for what is found by chance: (mean − chance)/(1 − chance).
    Corrected,
    /// Their sum.
    Sum,
    /// The same; a session that was not completed counts as full history does, times the ratio of the two over
    /// the others.
    Total,
    /// The sum of the first values over that of the second.
    Share,
    /// 1 − the sum of the first values over that of the second, over the sessions that were completed, with the
    /// 95 % t interval of a ratio.
    Saved,
    /// The largest.
    Largest,
    /// By a formula over all sessions together.
    Together,
}

/// A number of the comparison.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Number {
    /// The strategy.
    pub strategy: String,
    /// The number, with its interval and n; `None` where it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Figure>,
    /// The same as tables print it.
    pub shown: String,
    /// The share of facts that is found by chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
    /// The values of its sessions, each with its side chains.
    pub sessions: Vec<SessionValue>,
}

/// The value of a session.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct SessionValue {
    /// The session.
    pub session: String,
    /// Its value, the mean over repeats; `None` where it was not measured or not completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The whole, or full history where it is compared with that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<f64>,
}

/// The columns of the comparison with any number, in the order of the comparison.
pub fn explained(report: &Report) -> Vec<&'static str> {
    let comparison = report.section("comparison");
    let columns = comparison.iter().flat_map(|section| &section.table.columns);
    columns.skip(1).filter(|column| !column.is_for_files()).map(|column| column.id).collect()
}

/// Explains a column of the comparison of a run.
pub fn explain_column(report: &Report, name: &str) -> Result<Numbers, ExplainError> {
    let known = metric(name).filter(|metric| metric.column.is_some());
    let metric = known.ok_or_else(|| ExplainError::Metric(name.to_owned()))?;
    let all = report.cells.iter().chain(&report.quoted_cells);
    let [full, empty] = [FULL, EMPTY].map(|control| summaries_of(all.clone(), control));
    let anchors = Anchors::of(&full, &empty);
    let rows = report.compared().iter().chain(&report.quoted_controls);
    let numbers = rows.filter_map(|row| {
        let cells = summaries_of(all.clone(), &row.name);
        let cell = report.cell(row, metric.name).filter(|cell| !cell.value.is_nothing())?;
        let interval = display::interval(cell).map(|interval| format!(" {interval}"));
        Some(Number {
            strategy: row.name.clone(),
            value: Figure::of(cell),
            shown: display::cell(cell) + &interval.unwrap_or_default(),
            chance: (pooling(metric) == Pooling::Corrected).then(|| chance(&cells)),
            sessions: values(metric, &cells, anchors),
        })
    });
    let strategies: Vec<Number> = numbers.collect();
    if strategies.is_empty() {
        return Err(ExplainError::NotMeasured(metric.name, "this run".to_owned()));
    }
    Ok(Numbers {
        metric: metric.name,
        doc: metric.doc,
        formula: metric.formula,
        pooling: pooling(metric),
        prices: prices(report, metric),
        strategies,
    })
}

fn pooling(metric: &Metric) -> Pooling {
    match metric.function {
        Formula::Mean(_) => Pooling::Mean,
        Formula::Saved(_) => Pooling::Saved,
        Formula::Total(_) => Pooling::Total,
        Formula::Count(_) | Formula::Tokens(_) => Pooling::Sum,
        Formula::Largest(_) => Pooling::Largest,
        Formula::Pool(_) => match metric.name {
            "facts" => Pooling::Corrected,
            "completion" | "fired" | "broke_even" => Pooling::Share,
            _ => Pooling::Together,
        },
    }
}

/// The values of a strategy's sessions.
fn values(metric: &Metric, cells: &[&CellSummary], anchors: Anchors) -> Vec<SessionValue> {
    let mut clusters: BTreeMap<&str, Vec<&CellSummary>> = BTreeMap::new();
    for cell in cells {
        clusters.entry(&cell.cluster).or_default().push(cell);
    }
    let priced = cells.iter().all(|cell| cell.bill(&BillBasis::Shown).is_some());
    let values = clusters.into_iter().map(|(cluster, own)| {
        let session = cluster.to_owned();
        let (value, of) = value(metric, &own, anchors, priced);
        SessionValue { session, value, of }
    });
    values.collect()
}

/// The value of a session with its side chains, and what it is compared with.
fn value(
    metric: &Metric,
    cells: &[&CellSummary],
    anchors: Anchors,
    priced: bool,
) -> (Option<f64>, Option<f64>) {
    match metric.function {
        Formula::Saved(of) => cluster_total(cells, |cell| {
            let spending = of(cell)?;
            spending.dollars.filter(|_| priced).or(Some(spending.tokens))
        })
        .unzip(),
        Formula::Total(of) => cluster_total(cells, |cell| {
            let amount = of(cell)?;
            Some((amount.own?, amount.reference))
        })
        .unzip(),
        _ if metric.name == "completion" => {
            let end = Completion::over(cells);
            (Some(end.reached as f64), Some(end.planned as f64))
        }
        _ if metric.name == "facts" => (uncorrected(cells).map(|kept| kept.point_estimate), None),
        _ => {
            let Some(pooled) = metric.over(cells, anchors) else {
                return (None, None);
            };
            let cell = pooled_cell(metric, pooled);
            let of = match cell.value {
                Value::Fraction(_, whole) => Some(whole as f64),
                _ => None,
            };
            (Figure::of(&cell).map(|figure| figure.value), of)
        }
    }
}

/// The prices in force, a line for each model; none where the metric needs none.
fn prices(report: &Report, metric: &Metric) -> Vec<String> {
    let needs_prices = matches!(metric.unit, Unit::Dollars | Unit::Seconds)
        || matches!(metric.function, Formula::Saved(_)) && metric.name.starts_with("bill");
    let cells = report.cells.iter().filter(|_| needs_prices);
    let lines: BTreeSet<String> = cells.filter_map(|cell| cell.price.as_ref()).map(price).collect();
    lines.into_iter().collect()
}

fn price(price: &PriceEntry) -> String {
    let each = &price.per_token;
    let classes = [
        ("input", each.input),
        ("cache write", each.cache_write_5m),
        ("cache write (1 h)", each.cache_write_1h),
        ("cache read", each.cache_read),
        ("output", each.output),
    ];
    let known = classes.into_iter().filter_map(|(name, each)| {
        Some(format!("{name} {}", Usd(each?.0.saturating_mul(1_000_000))))
    });
    let classes = display::joined(known, ", ");
    let (model, date) = (price.models(), &price.date);
    let longer = cost::longer(price).map_or_else(String::new, |longer| format!("; {longer}"));
    format!("{model} of {date}, per million tokens: {classes}{longer}")
}

impl Pooling {
    /// Whether each session has two values.
    pub(crate) fn is_of_pairs(self) -> bool {
        matches!(self, Self::Saved | Self::Share)
    }

    /// How the number comes from the values, in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Mean => "mean over sessions; ± is half of the 95 % t interval",
            Self::Corrected => {
                "mean over sessions, corrected for chance f: (mean − f)/(1 − f); ± is half of the 95 % t interval"
            }
            Self::Sum => "sum over sessions",
            Self::Total => {
                "sum over sessions; one that was not completed (–) counts as full history, at the ratio of the others"
            }
            Self::Share => "sum of the first values / sum of the second",
            Self::Saved => {
                "1 − sum of the first values / sum of the second, which is full history; ± is half of the 95 % interval"
            }
            Self::Largest => "the largest of all sessions",
            Self::Together => {
                "from all sessions together, by the formula; below, each session alone"
            }
        }
    }
}

impl Numbers {
    /// The explanation of one strategy alone.
    #[must_use]
    pub fn only(mut self, strategy: &str) -> Self {
        self.strategies.retain(|number| number.strategy == strategy);
        self.strategies.truncate(1);
        self
    }

    /// The explanation on a terminal, on one screen.
    pub fn lines(&self, columns: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let paragraphs = [
            format!("{}: {}", self.metric, self.doc),
            format!("formula: {}", self.formula),
            format!("here: {}", self.pooling.in_words()),
        ];
        let prices = self.prices.iter().take(3).map(|price| format!("prices: {price}"));
        for paragraph in paragraphs.into_iter().chain(prices) {
            lines.extend(layout::wrap(&paragraph, columns));
        }
        lines.push(String::new());
        let names = self.session_names(columns);
        // One line for what is left out.
        let room = LINES.saturating_sub(lines.len() + names.len() + 1);
        let shown = self.strategies.len().min((room / 2).max(1));
        let each = (room / shown.max(1)).saturating_sub(1).max(1);
        for number in &self.strategies[..shown] {
            lines.extend(self.of_strategy(number, columns, each));
        }
        if let Some(more @ 1..) = self.strategies.len().checked_sub(shown) {
            let more = display::many(more, "more strategy", "more strategies");
            lines.push(format!("{more}: --strategy NAME, or --json"));
        }
        lines.extend(names);
        lines
    }

    /// The number of a strategy, and below it as many values as fit into these lines.
    fn of_strategy(&self, number: &Number, columns: usize, most: usize) -> Vec<String> {
        let mut head = format!("{}: {}", number.strategy, number.shown);
        if let Some(chance) = number.chance {
            let _ = write!(head, ", f = {}", display::percent(chance));
        }
        let mut lines: Vec<String> = layout::wrap(&head, columns).into_iter().take(1).collect();
        let values = number.sessions.iter().map(|session| self.in_words(session));
        let wrapped = layout::wrap(&display::joined(values, " "), columns.saturating_sub(4));
        for (at, line) in wrapped.iter().take(most).enumerate() {
            let sign = if at + 1 == most && wrapped.len() > most { " …" } else { "" };
            lines.push(format!("  {line}{sign}"));
        }
        lines
    }

    fn in_words(&self, session: &SessionValue) -> String {
        let value = session.value.map_or_else(|| "–".to_owned(), |value| self.figure(value));
        let of = session.of.filter(|_| self.pooling.is_of_pairs());
        value + &of.map(|of| format!("/{}", self.figure(of))).unwrap_or_default()
    }

    fn figure(&self, value: f64) -> String {
        match metric(self.metric).map(|metric| metric.unit) {
            Some(Unit::Share) if !self.pooling.is_of_pairs() => display::points(value),
            Some(Unit::Dollars | Unit::Share) if value.fract() != 0.0 => format!("{value:.4}"),
            Some(Unit::Seconds) => format!("{value:.1}"),
            _ => format!("{value:.0}"),
        }
    }

    /// The sessions in the order of the values; none where they would fill the screen.
    fn session_names(&self, columns: usize) -> Vec<String> {
        let sessions = self.strategies.iter().map(|number| &number.sessions);
        let most = sessions.max_by_key(|sessions| sessions.len());
        let names: Vec<&str> =
            most.into_iter().flatten().map(|session| &*session.session).collect();
        let lines = layout::wrap(&format!("sessions: {}", names.join(", ")), columns);
        if lines.len() > LINES / 4 {
            return vec![format!("{} sessions, by their names: --json", names.len())];
        }
        lines
    }
}
