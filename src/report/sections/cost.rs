//! Money: what each strategy costs under every scheme, what broke the cache, and what the provider
//! says of it.

use std::collections::BTreeMap;

use crate::metric::cost::{AS_BILLED, Bill, SchemeCost};
use crate::metric::{CellSummary, Direction, Unit};
use crate::model::price::Placement;
use crate::record::{Arm, CacheBasis, PriceEntry, SessionCache};
use crate::report::arm::ArmSummary;
use crate::report::build::Material;
use crate::report::cost::ArmCost;
use crate::report::{Audience, Cell, Column, Measure, Role, Row, Section, Table, Value};
use crate::units::{Usage, Usd, median};

/// Savings as billed, by placement of the breakpoints: one row per strategy.
pub(super) fn as_billed(material: &Material<'_>) -> Section {
    let placements = Placement::ALL.into_iter().filter(|placement| {
        let costs = material.arms.iter().flat_map(|(_, arm)| &arm.costs);
        let mut bills = costs.map(|cost| &cost.bill);
        bills.any(|bill| *bill == Bill::Own(*placement))
    });
    let placements: Vec<Placement> = placements.collect();
    let mut columns = vec![
        Column::new("strategy", "strategy", 0),
        share("token_savings", "token savings", 1),
    ];
    columns.extend(placements.iter().map(|placement| match placement {
        Placement::Usual => share("savings_usual", "as billed", 0),
        Placement::Edge => share("savings_edge", "edge", 0),
        Placement::Ideal => share("savings_ideal", "ideal", 2),
    }));
    columns.extend([
        share("cache_read_share", "cache read", 3),
        Column::new("broke_even", "broke even", 4),
        Column::new("break_even_call", "from call", 5),
        Column::new("dollars", "dollars", 6),
    ]);
    let mut rows = Vec::new();
    for (kind, arm) in &material.arms {
        let Some(shown) = arm.costs.first() else {
            continue;
        };
        let of_strategy = |cell: Cell| match kind {
            Arm::Strategy => cell,
            Arm::Reference | Arm::Floor => Cell::exact(Value::NotApplicable),
        };
        let placed = placements.iter().map(|placement| {
            let cost = ArmCost::placed(&arm.costs, *placement);
            Cell::savings(cost.and_then(|cost| cost.savings))
        });
        let savings = std::iter::once(Cell::savings(arm.token_savings)).chain(placed);
        let mut cells: Vec<Cell> = savings.map(of_strategy).collect();
        cells.push(Cell::estimate(shown.read_share));
        let even = Value::Of(shown.broke_even as u64, shown.cells as u64);
        cells.push(of_strategy(Cell::exact(even)));
        cells.push(of_strategy(Cell::exact(from_call(shown))));
        cells.push(Priced::of(material, arm, shown).dollars());
        let mut row = super::row(&arm.strategy, super::role(*kind), cells);
        row.marks.extend(arm.broken().map(|_| "broken".to_owned()));
        rows.push(row);
    }
    let mut notes = billed(material);
    notes.extend(prices(material));
    hide_unknown(
        rows,
        Section {
            id: "cost",
            title: "Cost savings as billed".to_owned(),
            about: "1 − C/C⁰ where the provider keeps a cache of prompts, each session under the scheme \
                    that it was billed with, by where the client puts its breakpoints. `as billed`: the \
                    usual ones. `edge`: one stands in front of what the strategy changes next. `ideal`: \
                    the best that any placement could do. Share of prompts that is read, cells that end \
                    up cheaper than full history, the call from which on (median), and dollars are those \
                    of the comparison."
                .to_owned(),
            audience: Audience::Everyone,
            table: Table {
                columns,
                rows: Vec::new(),
            },
            notes,
        },
    )
}

/// Savings under one scheme for all sessions: one row per strategy, one column per scheme.
pub(super) fn side_by_side(material: &Material<'_>) -> Section {
    let mut columns = vec![Column::new("strategy", "strategy", 0)];
    let mut rows = Vec::new();
    for (kind, arm) in &material.arms {
        let fixed = arm.costs.iter().filter_map(|cost| match &cost.bill {
            Bill::Fixed(scheme) => Some((scheme, cost)),
            Bill::Shown | Bill::Own(_) => None,
        });
        let fixed: Vec<(&String, &ArmCost)> = fixed.collect();
        if fixed.is_empty() || *kind != Arm::Strategy {
            continue;
        }
        if columns.len() == 1 {
            let schemes = fixed.iter();
            columns.extend(schemes.map(|(scheme, _)| share(column_of(scheme), scheme, 0)));
        }
        let cells = fixed.iter().map(|(_, cost)| Cell::savings(cost.savings));
        let mut row = super::row(&arm.strategy, super::role(*kind), cells.collect());
        row.marks.extend(arm.broken().map(|_| "broken".to_owned()));
        rows.push(row);
    }
    Section {
        id: "cost_fixed",
        title: "Cost savings by cache scheme".to_owned(),
        about: "1 − C/C⁰ with the usual breakpoints, where all sessions are billed under the same scheme, \
                whatever they were billed with."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table { columns, rows },
        notes: Vec::new(),
    }
}

/// The scheme of a session in words, and whether it is assumed.
fn words(cache: &SessionCache) -> String {
    let scheme = match cache.scheme.as_str() {
        "anthropic-5m" => "5 minutes",
        "anthropic-1h" => "1 hour",
        "auto-prefix" => "automatic",
        other => other,
    };
    let basis = match cache.basis {
        CacheBasis::Billed => "billed",
        CacheBasis::Set => "set",
        CacheBasis::Assumed => "assumed",
    };
    format!("{scheme} ({basis})")
}

/// How many sessions are billed under which scheme; nothing in folders of older builds.
pub(super) fn billed(material: &Material<'_>) -> Vec<String> {
    let mut schemes: BTreeMap<&SessionCache, usize> = BTreeMap::new();
    for cache in material
        .manifest
        .sessions
        .iter()
        .filter_map(|it| it.cache.as_ref())
    {
        *schemes.entry(cache).or_default() += 1;
    }
    let schemes: Vec<String> = schemes
        .into_iter()
        .map(|(cache, sessions)| {
            let sessions = crate::report::figure::many(sessions, "session", "sessions");
            format!("{}, {sessions}", words(cache))
        })
        .collect();
    let is_known = !schemes.is_empty();
    let note = is_known.then(|| format!("prompt cache: {}", schemes.join("; ")));
    note.into_iter().collect()
}

/// The id of a scheme's column: columns are named by what is fixed.
fn column_of(scheme: &str) -> &'static str {
    match scheme {
        "none" => "savings_none",
        "anthropic-5m" => "savings_anthropic_5m",
        "anthropic-1h" => "savings_anthropic_1h",
        "auto-prefix" => "savings_auto_prefix",
        _ => "savings_custom",
    }
}

fn from_call(cost: &ArmCost) -> Value {
    let never = Value::Text("never".to_owned());
    cost.break_even_call.map_or(never, Value::Count)
}

fn share(id: &'static str, label: &str, rank: u8) -> Column {
    Column {
        measure: Some(Measure {
            unit: Unit::Share,
            direction: Direction::Higher,
        }),
        ..Column::new(id, label, rank)
    }
}

/// One row per strategy and scheme, with all classes.
pub(super) fn schemes(material: &Material<'_>) -> Section {
    let mut rows = Vec::new();
    for (kind, arm) in &material.arms {
        let is_strategy = *kind == Arm::Strategy;
        for cost in &arm.costs {
            let (bill, placement) = match &cost.bill {
                // It is one of the placements.
                Bill::Shown => continue,
                Bill::Own(placement) => ("as billed", placement.name()),
                Bill::Fixed(_) => ("fixed", Placement::Usual.name()),
            };
            let of_strategy = |value: Value| {
                Cell::exact(if is_strategy {
                    value
                } else {
                    Value::NotApplicable
                })
            };
            let savings = if is_strategy {
                Cell::savings(cost.savings)
            } else {
                Cell::exact(Value::NotApplicable)
            };
            let total = &cost.total;
            let written = total.cache_write_5m + total.cache_write_1h;
            let money = Priced::of(material, arm, cost);
            let mut row = super::row(
                &arm.strategy,
                super::role(*kind),
                vec![
                    Cell::text(bill),
                    Cell::text(cost.scheme.as_str()),
                    Cell::text(placement),
                    savings,
                    if is_strategy {
                        Cell::share(cost.savings_of_totals())
                    } else {
                        Cell::exact(Value::NotApplicable)
                    },
                    Cell::estimate(cost.read_share),
                    Cell::exact(Value::Tokens(cost.cost.0)),
                    of_strategy(Value::Of(cost.broke_even as u64, cost.cells as u64)),
                    of_strategy(from_call(cost)),
                    Cell::exact(Value::Tokens(total.input_uncached.0)),
                    Cell::exact(Value::Tokens(written.0)),
                    Cell::exact(Value::Tokens(total.cache_read.0)),
                    Cell::exact(Value::Tokens(cost.strategy.total().0)),
                    Cell::exact(Value::Tokens(cost.compaction.total().0)),
                    Cell::exact(Value::Tokens(cost.background.total().0)),
                    Cell::exact(Value::Tokens(cost.recovery.total().0)),
                    Cell::exact(Value::Tokens(cost.elsewhere.total().0)),
                    money.dollars(),
                    seconds(money.blocking),
                    seconds(money.background),
                ],
            );
            row.marks.extend(arm.broken().map(|_| "broken".to_owned()));
            rows.push(row);
        }
    }
    hide_unknown(
        rows,
        Section {
            id: "cost_by_scheme",
            title: "Cost under every cache scheme".to_owned(),
            about: "What prompts cost where the provider keeps a cache of them, in input tokens: what as \
                    many uncached ones would cost. The strategy's own calls are in it, what the agent \
                    wrote is not, except in dollars and in time."
                .to_owned(),
            audience: Audience::Files,
            table: Table {
                columns: columns(),
                rows: Vec::new(),
            },
            notes: Vec::new(),
        },
    )
}

fn columns() -> Vec<Column> {
    vec![
        Column::new("strategy", "strategy", 0),
        Column::new("bill", "bill", 0),
        Column::new("scheme", "scheme", 0),
        Column::new("breakpoints", "breakpoints", 0),
        share("cost_savings", "cost savings", 0),
        share("cost_savings_of_totals", "savings of totals", 1),
        share("cache_read_share", "cache read", 0),
        Column::new("cost", "input equivalents", 0),
        Column::new("broke_even", "broke even", 1),
        Column::new("break_even_call", "median from call", 2),
        Column::new("uncached", "uncached", 4),
        Column::new("written", "written", 4),
        Column::new("read", "read", 4),
        Column::new("strategy_tokens", "strategy's tokens", 5),
        Column::new("compaction_tokens", "for compaction", 5),
        Column::new("background_tokens", "in background", 5),
        Column::new("recovery_tokens", "for recovery", 5),
        Column::new("elsewhere_tokens", "by another model", 5),
        Column::new("dollars", "dollars", 3),
        Column::new("blocking_seconds", "modelled time", 6),
        Column::new("background_seconds", "modelled background", 7),
    ]
}

/// Columns that rest on prices.
const PRICED: &[&str] = &["dollars", "blocking_seconds", "background_seconds"];

/// Columns of which nothing is known stand in files only; a price that is not known is `unknown`, for
/// there is nothing that anybody could have measured.
fn hide_unknown(mut rows: Vec<Row>, mut section: Section) -> Section {
    let columns = section.table.columns.iter_mut().skip(1).enumerate();
    for (at, column) in columns {
        let is_known = |row: &Row| {
            let value = row.cells.get(at).map(|cell| &cell.value);
            !matches!(
                value,
                None | Some(Value::NotMeasured | Value::NotApplicable)
            )
        };
        if !rows.iter().any(is_known) {
            column.rank = Column::FILES_ONLY;
        }
        if PRICED.contains(&column.id) {
            let cells = rows.iter_mut().filter_map(|row| row.cells.get_mut(at));
            for cell in cells.filter(|cell| cell.value == Value::NotMeasured) {
                cell.value = Value::Text("unknown".to_owned());
            }
        }
    }
    section.table.rows = rows;
    section
}

/// Which prices are in force, and for what none is known.
fn prices(material: &Material<'_>) -> Vec<String> {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut unknown = 0;
    for session in &material.manifest.sessions {
        match &session.price {
            Some(price) => {
                let longest = price.prompts_up_to.map(|longest| {
                    format!(
                        ", of prompts up to {} tokens; longer ones cost more",
                        crate::report::tokens_in_words(longest.0)
                    )
                });
                let words = format!(
                    "{} of {} ({}){}",
                    price.model,
                    price.date,
                    price.document,
                    longest.unwrap_or_default()
                );
                *known.entry(words).or_default() += 1;
            }
            None => unknown += 1,
        }
    }
    let mut notes: Vec<String> = known
        .into_iter()
        .map(|(words, sessions)| {
            let sessions = crate::report::figure::many(sessions, "session", "sessions");
            format!("prices: {words}, {sessions}")
        })
        .collect();
    if unknown > 0 {
        notes.push(format!(
            "prices: unknown for {}: no model is named, or none that a price file knows \
             (`cache.model` sets one)",
            crate::report::figure::many(unknown, "session", "sessions")
        ));
    }
    notes
}

/// What the calls of a strategy cost in money and in modelled time, where every session has prices.
struct Priced {
    cost: Option<Usd>,
    blocking: Option<f64>,
    background: Option<f64>,
}

impl Priced {
    fn of(material: &Material<'_>, arm: &ArmSummary, of: &ArmCost) -> Self {
        let mut priced = Self {
            cost: Some(Usd::default()),
            blocking: Some(0.0),
            background: Some(0.0),
        };
        let summaries = material.summaries.iter();
        for summary in summaries.filter(|summary| summary.strategy == arm.strategy) {
            let Some(cost) = SchemeCost::under_bill(&summary.costs, &of.bill) else {
                continue;
            };
            let mut sessions = material.manifest.sessions.iter();
            let price = sessions
                .find(|session| session.id == summary.session)
                .and_then(|session| session.price.as_ref());
            priced.add(cost, summary, price);
        }
        priced
    }

    fn add(&mut self, cost: &SchemeCost, summary: &CellSummary, price: Option<&PriceEntry>) {
        let dollars = price.and_then(|price| cost.dollars(&price.per_token));
        self.cost = self.cost.zip(dollars).map(|(sum, more)| sum + more);
        let latency = price.and_then(|price| price.latency);
        let time = |calls: usize, usage: &Usage| Some(latency?.milliseconds(calls, usage));
        let foreground = cost.agent + cost.compaction + cost.recovery;
        let asked = &summary.model_calls;
        // Of a call to another model the start alone is known: its pace is not.
        let calls = cost.calls + asked.compaction.calls + asked.recovery.calls;
        let add = |sum: Option<f64>, more: Option<f64>| sum.zip(more).map(|(sum, more)| sum + more);
        self.blocking = add(self.blocking, time(calls, &foreground));
        self.background = add(
            self.background,
            time(asked.background.calls, &cost.background),
        );
    }

    fn dollars(&self) -> Cell {
        self.cost.map_or(Cell::exact(Value::NotMeasured), |cost| {
            Cell::text(cost.to_string())
        })
    }
}

fn seconds(milliseconds: Option<f64>) -> Cell {
    milliseconds.map_or(Cell::exact(Value::NotMeasured), |time| {
        Cell::text(format!("{:.1} s", time / 1_000.0))
    })
}

/// What broke the cache, under the scheme of the comparison.
pub(super) fn breaks(material: &Material<'_>) -> Section {
    let mut rows = Vec::new();
    for (kind, arm) in &material.arms {
        let Some(cost) = arm.costs.first() else {
            continue;
        };
        for (cause, total) in &cost.breaks {
            let cells = vec![
                Cell::text(cause.as_str()),
                Cell::exact(Value::Count(total.calls)),
                Cell::exact(Value::Tokens(total.tokens.0)),
            ];
            rows.push(super::row(&arm.strategy, super::role(*kind), cells));
        }
    }
    let shown = shown(material).unwrap_or_default();
    Section {
        id: "cache_breaks",
        title: "What broke the prompt cache".to_owned(),
        about: format!(
            "Under {shown}: calls that read less than was cached at the call before, by the stage \
             whose edit stands lowest in the prompt. `expired`: too much time went by; `look-back`: \
             too many blocks came at once for a breakpoint to find the last one."
        ),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("strategy", "strategy", 0),
                Column::new("cause", "broken by", 0),
                Column::new("calls", "calls", 0),
                Column::new("broken", "tokens not read", 0),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}

/// The scheme and the breakpoints of the comparison, in words.
pub(super) fn shown(material: &Material<'_>) -> Option<String> {
    let scheme = match scheme(material)? {
        AS_BILLED => "the prompt cache of each session's bill".to_owned(),
        scheme => format!("the provider's prompt cache `{scheme}`"),
    };
    // A strategy that names no edge has none of its own.
    let costs = material
        .summaries
        .iter()
        .filter_map(|cell| cell.costs.first());
    let placement = costs.map(|cost| cost.placement).max()?.name();
    Some(format!("{scheme} with {placement} breakpoints"))
}

/// The scheme of the comparison.
pub(super) fn scheme<'a>(material: &'a Material<'_>) -> Option<&'a str> {
    let mut costs = material
        .arms
        .iter()
        .filter_map(|(_, arm)| arm.costs.first());
    costs.next().map(|cost| cost.scheme.as_str())
}

/// What the provider says it read, beside what the scheme of the session's own provider reads.
pub(super) fn observed(material: &Material<'_>) -> Section {
    let references = material
        .cells
        .iter()
        .filter(|cell| cell.arm == Arm::Reference);
    let mut errors: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut rows = Vec::new();
    for cell in references {
        let Some(observed) = &cell.observed_cache else {
            continue;
        };
        let Some(record) = cell.prompt_cache.first() else {
            continue;
        };
        let billed = observed
            .billed
            .cache_read
            .share_of(observed.billed.prompt());
        let split = observed.simulated.get(&record.scheme);
        let split = split.copied().unwrap_or_default();
        let simulated = observed.share(split.cache_read);
        let bill = record.rates.cost(&observed.billed);
        let cost = (bill > 0).then(|| record.rates.cost(&split) as f64 / bill as f64);
        let error = simulated
            .zip(billed)
            .map(|(simulated, billed)| simulated - billed);
        if let Some(error) = error {
            let of_scheme = errors.entry(&record.scheme).or_default();
            of_scheme.push(error.abs());
        }
        let cells = vec![
            Cell::text(record.scheme.as_str()),
            Cell::count(observed.calls),
            Cell::share(billed),
            Cell::share(simulated),
            Cell::share(error),
            Cell::share(cost),
        ];
        rows.push(super::row(&cell.session, Role::Other, cells));
    }
    let notes = errors.into_iter().filter_map(|(scheme, mut errors)| {
        errors.sort_unstable_by(f64::total_cmp);
        let median = median(&errors, f64::midpoint)?;
        Some(format!(
            "median of the absolute differences under `{scheme}`: {} in {}",
            crate::report::figure::percent(median),
            crate::report::figure::many(errors.len(), "session", "sessions")
        ))
    });
    Section {
        id: "observed_cache",
        title: "Prompt cache, simulated and observed".to_owned(),
        about: "Share of full history that is read from the cache: as billed in the recording, and under \
                the scheme that the session was billed with, up to the first compaction of the recorded product. What \
                the recording does not hold of the first prompt counts as read at every later call that \
                reads anything."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("session", "session", 0),
                Column::new("scheme", "scheme", 1),
                Column::new("calls", "calls", 0),
                Column::new("observed", "billed", 0),
                Column::new("simulated", "simulated", 0),
                Column::new("error", "difference", 0),
                Column::new("cost", "simulated/billed cost", 0),
            ],
            rows,
        },
        notes: notes.collect(),
    }
}
