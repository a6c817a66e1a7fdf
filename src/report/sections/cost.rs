//! Money: what each strategy costs under every scheme, what broke the cache, and what the provider
//! says of it.

use std::collections::BTreeMap;

use crate::metric::CellSummary;
use crate::metric::cost::{AS_BILLED, Bill, SchemeCost};
use crate::model::price::Placement;
use crate::record::{Arm, CacheBasis, PriceEntry, SessionCache};
use crate::report::arm::ArmSummary;
use crate::report::build::Material;
use crate::report::cost::ArmCost;
use crate::report::figure::{self, many};
use crate::report::{Cell, Column, Role, Section, Table, Value, columns};
use crate::units::{Usage, Usd, median};

/// Savings as billed, by placement of the breakpoints: one row per strategy.
pub(super) fn as_billed(material: &Material<'_>) -> Section {
    let placements = Placement::ALL.into_iter().filter(|placement| {
        let costs = material.arms.iter().flat_map(|(_, arm)| &arm.costs);
        let mut bills = costs.map(|cost| &cost.bill);
        bills.any(|bill| *bill == Bill::Own(*placement))
    });
    let placements: Vec<Placement> = placements.collect();
    let mut head = columns("strategy | %token_savings: token savings @1");
    head.extend(placements.iter().map(|placement| match placement {
        Placement::Usual => Column::share("savings_usual", "as billed", 0),
        Placement::Edge => Column::share("savings_edge", "edge", 0),
        Placement::Ideal => Column::share("savings_ideal", "ideal", 2),
    }));
    head.extend(columns(
        "%cache_read_share: cache read @3 | broke_even: broke even @4 | break_even_call: from call @5 | \
         dollars @6",
    ));
    let rows = material.marked_rows(|kind, arm| {
        let shown = arm.costs.first()?;
        let placed = placements.iter().map(|placement| {
            let cost = ArmCost::placed(&arm.costs, *placement);
            Cell::savings(cost.and_then(|cost| cost.savings))
        });
        let savings = std::iter::once(Cell::savings(arm.estimate("token_savings"))).chain(placed);
        let mut cells: Vec<Cell> = savings.map(|cell| of_strategy(kind, cell)).collect();
        cells.push(Cell::estimate(shown.read_share));
        cells.extend(break_even(kind, shown));
        cells.push(Priced::of(material, arm, shown).dollars());
        Some(cells)
    });
    let section = Section::new(
        "cost",
        "Cost savings as billed",
        "1 − C/C⁰ where the provider keeps a cache of prompts, each session under the scheme \
         that it was billed with, by where the client puts its breakpoints. `as billed`: the \
         usual ones. `edge`: one stands in front of what the strategy changes next. `ideal`: \
         the best that any placement could do. Share of prompts that is read, cells that end \
         up cheaper than full history, the call from which on (median), and dollars are those \
         of the comparison.",
        head,
        rows,
    );
    hide_unknown(section).with_notes(billed(material).into_iter().chain(prices(material)))
}

/// The cell, where it is one of a strategy.
fn of_strategy(kind: Arm, cell: Cell) -> Cell {
    match kind {
        Arm::Strategy => cell,
        Arm::Reference | Arm::Floor => Cell::NOT_APPLICABLE,
    }
}

/// In how many cells a strategy ended up cheaper, and from which call on.
fn break_even(kind: Arm, cost: &ArmCost) -> [Cell; 2] {
    let call = cost.break_even_call.map(Value::Count);
    let call = call.unwrap_or_else(|| Value::Text("never".to_owned()));
    let cells = [Cell::of(cost.broke_even, cost.cells), Cell::exact(call)];
    cells.map(|cell| of_strategy(kind, cell))
}

/// Savings under one scheme for all sessions: one row per strategy, one column per scheme.
pub(super) fn side_by_side<'a>(material: &'a Material<'_>) -> Section {
    let fixed = |arm: &'a ArmSummary| {
        arm.costs.iter().filter_map(|cost| match &cost.bill {
            Bill::Fixed(scheme) => Some((scheme, cost)),
            Bill::Shown | Bill::Own(_) => None,
        })
    };
    let rows = material.marked_rows(|kind, arm| {
        let cells: Vec<Cell> = fixed(arm)
            .map(|(_, cost)| Cell::savings(cost.savings))
            .collect();
        (kind == Arm::Strategy && !cells.is_empty()).then_some(cells)
    });
    let mut head = columns("strategy");
    let mut arms = material
        .arms
        .iter()
        .filter(|(kind, _)| *kind == Arm::Strategy);
    let first = arms.find(|(_, arm)| fixed(arm).next().is_some());
    let schemes = first.into_iter().flat_map(|(_, arm)| fixed(arm));
    head.extend(schemes.map(|(scheme, _)| Column::share(column_of(scheme), scheme, 0)));
    Section::new(
        "cost_fixed",
        "Cost savings by cache scheme",
        "1 − C/C⁰ with the usual breakpoints, where all sessions are billed under the same scheme, \
         whatever they were billed with.",
        head,
        rows,
    )
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
pub(super) fn billed(material: &Material<'_>) -> Option<String> {
    let mut schemes: BTreeMap<&SessionCache, usize> = BTreeMap::new();
    let sessions = material.manifest.sessions.iter();
    for cache in sessions.filter_map(|it| it.cache.as_ref()) {
        *schemes.entry(cache).or_default() += 1;
    }
    let schemes = schemes.into_iter().map(|(cache, sessions)| {
        format!(
            "{}, {}",
            words(cache),
            many(sessions, "session", "sessions")
        )
    });
    let schemes: Vec<String> = schemes.collect();
    (!schemes.is_empty()).then(|| format!("prompt cache: {}", schemes.join("; ")))
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

/// One row per strategy and scheme, with all classes.
pub(super) fn schemes(material: &Material<'_>) -> Section {
    let rows = material.marked_rows(|kind, arm| {
        arm.costs.iter().filter_map(move |cost| {
            let (bill, placement) = match &cost.bill {
                // It is one of the placements.
                Bill::Shown => return None,
                Bill::Own(placement) => ("as billed", placement.name()),
                Bill::Fixed(_) => ("fixed", Placement::Usual.name()),
            };
            let total = &cost.total;
            let money = Priced::of(material, arm, cost);
            let mut cells = vec![
                Cell::text(bill),
                Cell::text(cost.scheme.as_str()),
                Cell::text(placement),
                of_strategy(kind, Cell::savings(cost.savings)),
                of_strategy(kind, Cell::share(cost.savings_of_totals())),
                Cell::estimate(cost.read_share),
                Cell::tokens(cost.cost),
            ];
            cells.extend(break_even(kind, cost));
            let tokens = [
                total.input_uncached,
                total.cache_write_5m + total.cache_write_1h,
                total.cache_read,
                cost.strategy.total(),
                cost.compaction.total(),
                cost.background.total(),
                cost.recovery.total(),
                cost.elsewhere.total(),
            ];
            cells.extend(tokens.map(Cell::tokens));
            cells.extend([
                money.dollars(),
                seconds(money.blocking),
                seconds(money.background),
            ]);
            Some(cells)
        })
    });
    let section = Section::new(
        "cost_by_scheme",
        "Cost under every cache scheme",
        "What prompts cost where the provider keeps a cache of them, in input tokens: what as \
         many uncached ones would cost. The strategy's own calls are in it, what the agent \
         wrote is not, except in dollars and in time.",
        columns(
            "strategy | bill | scheme | breakpoints | %cost_savings: cost savings | \
             %cost_savings_of_totals: savings of totals @1 | %cache_read_share: cache read | \
             cost: input equivalents | broke_even: broke even @1 | break_even_call: median from call @2 | \
             uncached @4 | written @4 | read @4 | strategy_tokens: strategy's tokens @5 | \
             compaction_tokens: for compaction @5 | background_tokens: in background @5 | \
             recovery_tokens: for recovery @5 | elsewhere_tokens: by another model @5 | dollars @3 | \
             blocking_seconds: modelled time @6 | background_seconds: modelled background @7",
        ),
        rows,
    );
    hide_unknown(section).in_files()
}

/// Columns that rest on prices.
const PRICED: &[&str] = &["dollars", "blocking_seconds", "background_seconds"];

/// Columns of which nothing is known stand in files only; a price that is not known is `unknown`, for
/// there is nothing that anybody could have measured.
fn hide_unknown(mut section: Section) -> Section {
    let Table { columns, rows } = &mut section.table;
    for (at, column) in columns.iter_mut().skip(1).enumerate() {
        let mut cells: Vec<&mut Cell> = rows
            .iter_mut()
            .filter_map(|row| row.cells.get_mut(at))
            .collect();
        let is_unknown =
            |cell: &&mut Cell| matches!(cell.value, Value::NotMeasured | Value::NotApplicable);
        if cells.iter().all(is_unknown) {
            column.rank = Column::FILES_ONLY;
        }
        cells.retain(|cell| cell.value == Value::NotMeasured && PRICED.contains(&column.id));
        for cell in cells {
            cell.value = Value::Text("unknown".to_owned());
        }
    }
    section
}

/// Which prices are in force, and for what none is known.
fn prices(material: &Material<'_>) -> Vec<String> {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut unknown = 0;
    for session in &material.manifest.sessions {
        let Some(price) = &session.price else {
            unknown += 1;
            continue;
        };
        let longest = price.prompts_up_to.map(|longest| {
            let longest = figure::tokens(longest.0);
            format!(", of prompts up to {longest} tokens; longer ones cost more")
        });
        let longest = longest.unwrap_or_default();
        let words = format!(
            "{} of {} ({}){longest}",
            price.model, price.date, price.document
        );
        *known.entry(words).or_default() += 1;
    }
    let sessions = |count| many(count, "session", "sessions");
    let known = known.into_iter();
    let mut notes: Vec<String> = known
        .map(|(words, count)| format!("prices: {words}, {}", sessions(count)))
        .collect();
    if unknown > 0 {
        notes.push(format!(
            "prices: unknown for {}: no model is named, or none that a price file knows \
             (`cache.model` sets one)",
            sessions(unknown)
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
        let dollars = self.cost.map(|cost| Cell::text(cost.to_string()));
        dollars.unwrap_or(Cell::NOT_MEASURED)
    }
}

fn seconds(milliseconds: Option<f64>) -> Cell {
    milliseconds.map_or(Cell::NOT_MEASURED, |time| {
        Cell::text(format!("{:.1} s", time / 1_000.0))
    })
}

/// What broke the cache, under the scheme of the comparison.
pub(super) fn breaks(material: &Material<'_>) -> Section {
    let rows = material.rows(|_, arm| {
        let breaks = arm.costs.first().into_iter().flat_map(|cost| &cost.breaks);
        breaks.map(|(cause, total)| {
            vec![
                Cell::text(cause.as_str()),
                Cell::exact(Value::Count(total.calls)),
                Cell::tokens(total.tokens),
            ]
        })
    });
    let shown = shown(material).unwrap_or_default();
    Section::new(
        "cache_breaks",
        "What broke the prompt cache",
        format!(
            "Under {shown}: calls that read less than was cached at the call before, by the stage \
             whose edit stands lowest in the prompt. `expired`: too much time went by; `look-back`: \
             too many blocks came at once for a breakpoint to find the last one."
        ),
        columns("strategy | cause: broken by | calls | broken: tokens not read"),
        rows,
    )
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
    let rows = references.filter_map(|cell| {
        let observed = cell.observed_cache.as_ref()?;
        let record = cell.prompt_cache.first()?;
        let bill = &observed.billed;
        let billed = bill.cache_read.share_of(bill.prompt());
        let split = observed.simulated.get(&record.scheme);
        let split = split.copied().unwrap_or_default();
        let simulated = observed.share(split.cache_read);
        let cost_billed = record.rates.cost(bill);
        let cost = (cost_billed > 0).then(|| record.rates.cost(&split) as f64 / cost_billed as f64);
        let error = simulated.zip(billed);
        let error = error.map(|(simulated, billed)| simulated - billed);
        if let Some(error) = error {
            let of_scheme = errors.entry(&record.scheme).or_default();
            of_scheme.push(error.abs());
        }
        let shares = [billed, simulated, error, cost].map(Cell::share);
        let first = [
            Cell::text(record.scheme.as_str()),
            Cell::count(observed.calls),
        ];
        let cells = first.into_iter().chain(shares).collect();
        Some(super::row(&cell.session, Role::Other, cells))
    });
    let rows = rows.collect();
    let notes = errors.into_iter().filter_map(|(scheme, mut errors)| {
        errors.sort_unstable_by(f64::total_cmp);
        let median = figure::percent(median(&errors, f64::midpoint)?);
        let sessions = many(errors.len(), "session", "sessions");
        Some(format!(
            "median of the absolute differences under `{scheme}`: {median} in {sessions}"
        ))
    });
    Section::new(
        "observed_cache",
        "Prompt cache, simulated and observed",
        "Share of full history that is read from the cache: as billed in the recording, and under \
         the scheme that the session was billed with, up to the first compaction of the recorded product. What \
         the recording does not hold of the first prompt counts as read at every later call that \
         reads anything.",
        columns(
            "session | scheme @1 | calls | observed: billed | simulated | error: difference | \
             cost: simulated/billed cost",
        ),
        rows,
    )
    .with_notes(notes)
}
