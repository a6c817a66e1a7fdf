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
use crate::report::{Cell, Column, Role, Section, Table, Value};
use crate::units::{Usage, Usd, median};

/// Savings as billed, by placement of the breakpoints: one row per strategy.
pub(super) fn as_billed(material: &Material<'_>) -> Section {
    let rows = material.marked_rows(|kind, arm| {
        let shown = arm.costs.first()?;
        let placed = Placement::ALL.map(|placement| {
            let cost = ArmCost::placed(&arm.costs, placement);
            Cell::savings(cost.and_then(|cost| cost.savings))
        });
        let savings = std::iter::once(Cell::savings(arm.estimate("token_savings"))).chain(placed);
        let mut cells: Vec<Cell> = savings.map(|cell| of_strategy(kind, cell)).collect();
        cells.push(Cell::estimate(shown.read_share));
        cells.extend(break_even(kind, shown));
        cells.push(Priced::of(material, arm, shown).dollars());
        Some(cells)
    });
    let costs = material.arms.iter().flat_map(|(_, arm)| &arm.costs);
    let bills: Vec<&Bill> = costs.map(|cost| &cost.bill).collect();
    let unbilled = Placement::ALL.into_iter().filter_map(|placement| {
        let column = match placement {
            Placement::Usual => "savings_usual",
            Placement::Edge => "savings_edge",
            Placement::Ideal => "savings_ideal",
        };
        (!bills.contains(&&Bill::Own(placement))).then_some(column)
    });
    let section = Section::new("cost", rows).without(&unbilled.collect::<Vec<_>>());
    name_unknown(section.hide_unmeasured())
        .with_notes(billed(material))
        .with_notes(prices(material))
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
    let mut arms = material
        .arms
        .iter()
        .filter(|(kind, _)| *kind == Arm::Strategy);
    let first = arms.find(|(_, arm)| fixed(arm).next().is_some());
    let schemes = first.into_iter().flat_map(|(_, arm)| fixed(arm));
    let of_schemes = schemes.map(|(scheme, _)| Column::share(column_of(scheme), scheme, 0));
    Section::new("cost_fixed", rows).more_columns(of_schemes)
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
    name_unknown(Section::new("cost_by_scheme", rows).hide_unmeasured())
}

/// Columns that rest on prices.
const PRICED: &[&str] = &["dollars", "blocking_seconds", "background_seconds"];

/// A price that is not known is `unknown`: nothing could have been measured.
fn name_unknown(mut section: Section) -> Section {
    let Table { columns, rows } = &mut section.table;
    for (at, _) in columns
        .iter()
        .skip(1)
        .enumerate()
        .filter(|(_, column)| PRICED.contains(&column.id))
    {
        for cell in rows.iter_mut().filter_map(|row| row.cells.get_mut(at)) {
            if cell.value == Value::NotMeasured {
                cell.value = Value::Text("unknown".to_owned());
            }
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
    Section::new("cache_breaks", rows).fill("scheme", &shown(material).unwrap_or_default())
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
    let rows: Vec<_> = rows.collect();
    let notes = errors.into_iter().filter_map(|(scheme, mut errors)| {
        errors.sort_unstable_by(f64::total_cmp);
        let median = figure::percent(median(&errors, f64::midpoint)?);
        let sessions = many(errors.len(), "session", "sessions");
        Some(format!(
            "median of the absolute differences under `{scheme}`: {median} in {sessions}"
        ))
    });
    Section::new("observed_cache", rows).with_notes(notes)
}
