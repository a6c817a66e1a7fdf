//! Money: the cost of each strategy under every scheme, and the causes of cache breaks.

use std::collections::BTreeSet;

use super::prelude::*;
use crate::metric::CellSummary;
use crate::metric::cost::{AS_BILLED, BillBasis};
use crate::record::words::{FAST, LongPrompts, Placement};
use crate::record::{BILLED, PriceEntry};
use crate::report::cost::StrategyCost;
use crate::report::display;

/// In how many cells a strategy ended up cheaper, and from which call on.
fn break_even(kind: Arm, cost: &StrategyCost) -> [Cell; 2] {
    let call = cost.break_even_call.map_or_else(|| Value::Text("never".to_owned()), Value::Count);
    if cost.sum.is_billed() {
        return [Cell::NOT_APPLICABLE; 2];
    }
    let cells = [Cell::of(cost.broke_even, cost.cells), Cell::exact(call)];
    cells.map(|cell| super::of_strategy(kind, cell))
}

/// How many sessions each of these is said of, in words.
fn by_session<K: Ord>(keys: impl Iterator<Item = K>) -> impl Iterator<Item = (K, String)> {
    let mut counts: BTreeMap<K, usize> = BTreeMap::new();
    keys.for_each(|key| *counts.entry(key).or_default() += 1);
    counts.into_iter().map(|(key, sessions)| (key, many(sessions, "session", "sessions")))
}

/// How many sessions are billed under which scheme.
pub(crate) fn billed(material: &Material<'_>) -> Option<String> {
    let sessions = material.manifest.sessions.iter();
    let schemes = by_session(sessions.map(|entry| &entry.cache)).map(|(cache, sessions)| {
        let scheme = match cache.scheme.as_str() {
            "anthropic-5m" => "5 minutes",
            "anthropic-1h" => "1 hour",
            "auto-prefix" => "automatic",
            other => other,
        };
        format!("{scheme} ({}), {sessions}", display::name_of(&cache.basis))
    });
    display::listed(schemes, "; ").map(|schemes| format!("prompt cache: {schemes}"))
}

/// One row per strategy and scheme, with all classes.
pub(super) fn schemes(material: &Material<'_>) -> Section {
    let rows = material.marked_rows(|strategy| {
        strategy.costs.iter().filter_map(move |cost| {
            let (bill, placement) = match &cost.bill {
                // It is one of the placements.
                BillBasis::Shown => return None,
                BillBasis::Own(placement) => ("as billed", placement.name()),
                BillBasis::Fixed(_) => ("fixed", Placement::Usual.name()),
            };
            let sum = &cost.sum;
            let total = sum.total();
            let mut cells = vec![
                Cell::text(bill),
                Cell::text(sum.scheme.as_str()),
                Cell::text(placement),
                super::of_strategy(strategy.arm, Cell::savings(cost.savings)),
                Cell::estimate(cost.read_share),
                Cell::tokens(Tokens(sum.cost.div_ceil(1_000))),
            ];
            cells.extend(break_even(strategy.arm, cost));
            let tokens = [
                total.input_uncached,
                total.cache_write_5m + total.cache_write_1h,
                total.cache_read,
                sum.of_strategy().total(),
                sum.compaction.total(),
                sum.background.total(),
                sum.recovery.total(),
                sum.other_models.total(),
            ];
            cells.extend(tokens.map(Cell::tokens));
            cells.push(Cell::known(cost.dollars, Value::Dollars));
            cells.extend(cost.seconds.map(|seconds| Cell::known(seconds, Value::Seconds)));
            Some(cells)
        })
    });
    let section = Section::new("cost_by_scheme", rows).hide_unmeasured();
    section.with_notes(prices(material))
}

/// Which prices are in force, and how many sessions have none.
fn prices(material: &Material<'_>) -> Vec<String> {
    let sessions = &material.manifest.sessions;
    let known = sessions.iter().filter_map(|session| {
        let price = session.price.as_ref()?;
        let longest = longer(price).map_or(String::new(), |longer| format!(", {longer}"));
        let (model, date, document) = (price.models(), &price.date, &price.document);
        Some(format!("{model} of {date} ({document}){longest}"))
    });
    let known = by_session(known).map(|(price, sessions)| format!("prices: {price}, {sessions}"));
    let unknown = sessions.iter().filter(|session| session.price.is_none());
    let unknown = by_session(unknown.map(|_| ())).map(|((), sessions)| {
        format!(
            "prices: unknown for {sessions}: no model is named, or none that a price file knows \
             (`cache.model` sets one)"
        )
    });
    known.chain(unknown).collect()
}

/// What prompts cost beyond the longest one at the usual price; `None` where all cost the same.
pub(crate) fn longer(price: &PriceEntry) -> Option<String> {
    let longest = display::tokens(price.prompts_up_to?.0);
    let Some(LongPrompts { input, output, .. }) = price.per_token.long_prompts else {
        return Some(format!(
            "of prompts up to {longest} tokens; longer ones cost more, and it is not known how much"
        ));
    };
    let [input, output] = [input, output].map(|times| f64::from(times) / 1_000.0);
    Some(format!(
        "of prompts up to {longest} tokens; a longer one costs {input} times as much, and its answer {output} times"
    ))
}

/// The cost of all sessions as the agent ran them, where that is known, and with full history.
pub(crate) fn totals(material: &Material<'_>) -> Option<String> {
    if let Some(live) = &material.live {
        return live.bill();
    }
    let full = material.strategies.iter().find(|strategy| strategy.arm == Arm::Reference)?;
    let dollars = full.costs.first()?.dollars?;
    if known(material, CellSummary::dollars).is_some() {
        return None;
    }
    let recorded = material.compared().find(|strategy| strategy.name == "recorded");
    let paid = recorded.and_then(|strategy| strategy.costs.first()?.dollars);
    let least = if unpriced_calls(material).is_empty() { "" } else { "at least " };
    let them = if material.manifest.sessions.len() == 1 { "it" } else { "them" };
    let own = paid.map(|paid| format!("{least}{paid} as your agent ran {them}, "));
    Some(format!("{}{least}{dollars} with full history", own.unwrap_or_default()))
}

/// The model whose prices hold, or how many they are; `None` where no price is known.
pub(crate) fn priced_as(material: &Material<'_>) -> Option<String> {
    let prices = references(material).filter_map(|cell| cell.price.as_ref());
    let models = prices.flat_map(|price| price.other_models.keys().chain([&price.model]));
    let models: BTreeSet<&str> = models.map(String::as_str).collect();
    match models.first() {
        Some(model) if models.len() == 1 => Some((*model).to_owned()),
        Some(_) => Some(many(models.len(), "model", "models")),
        None => None,
    }
}

/// The calls of priced sessions to models without a price, which are on no bill, by model.
fn unpriced_calls<'a>(material: &'a Material<'_>) -> BTreeMap<&'a str, usize> {
    let prices = material.manifest.sessions.iter().filter_map(|session| session.price.as_ref());
    let mut calls = BTreeMap::new();
    for (model, more) in prices.flat_map(|price| &price.unpriced_calls) {
        *calls.entry(model.as_str()).or_default() += more;
    }
    calls
}

/// The metrics of full history, session by session.
fn references<'a>(material: &'a Material<'_>) -> impl Iterator<Item = &'a CellSummary> {
    material.summaries.iter().filter(|cell| cell.arm == Arm::Reference && cell.repeat == 0)
}

/// In how many of how many sessions this is known of full history; `None` where it is in all or in none.
fn known<T>(
    material: &Material<'_>,
    of: impl Fn(&CellSummary) -> Option<T>,
) -> Option<(usize, usize)> {
    let all = references(material).count();
    let known = references(material).filter_map(of).count();
    (0 < known && known < all).then_some((known, all))
}

/// The totals that only some sessions are part of: `bill: known for 8 of 12 sessions`.
pub(crate) fn partly_known(material: &Material<'_>) -> Vec<String> {
    if let Some(live) = &material.live {
        return live.unbilled().into_iter().collect();
    }
    let bill = known(material, CellSummary::dollars);
    let waiting = known(material, CellSummary::waiting);
    let found = [("bill", bill), ("waiting", waiting)].into_iter();
    let notes = found.filter_map(|(metric, known)| {
        let (known, all) = known?;
        Some(format!("{metric}: known for {known} of {all} conversations"))
    });
    let unpriced = unpriced_calls(material).into_iter().map(|(model, calls)| {
        let calls = many(calls, "call", "calls");
        format!("bill: without {calls} of {model}, which has no known price")
    });
    notes.chain(unpriced).collect()
}

/// How many sessions went from model to model or have requests within calls, and how they are priced.
pub(crate) fn mixed(material: &Material<'_>) -> Option<String> {
    let prices = material.manifest.sessions.iter().filter_map(|session| session.price.as_ref());
    let (mut models, mut inner) = (0, 0);
    for price in prices {
        models += usize::from(!price.other_models.is_empty());
        inner += price.inner_requests;
    }
    let models = (models > 0).then(|| {
        let sessions = many(models, "session went", "sessions went");
        format!("{sessions} from model to model: each call at the price of its own")
    });
    let inner = (inner > 0).then(|| {
        let requests = many(inner, "request", "requests");
        format!("{requests} within calls: priced at the mean of their calls")
    });
    display::listed(models.into_iter().chain(inner), "; ")
}

/// The models that calls to the provider's small model are billed as, where a strategy made such calls.
pub(crate) fn fast(material: &Material<'_>) -> Option<String> {
    let asking = material.cells.iter().filter(|cell: &&&CellRecord| {
        cell.model_calls.iter().any(|call| call.model.as_deref() == Some(FAST))
    });
    let asking: BTreeSet<&str> = asking.map(|cell| cell.session.as_str()).collect();
    let mut models = BTreeSet::new();
    let sessions = material.manifest.sessions.iter();
    for session in sessions.filter(|session| asking.contains(session.id.as_str())) {
        let fast = session.price.as_ref().and_then(|price| price.fast.as_ref());
        models.insert(match fast {
            Some(fast) => format!("{} (prices of {})", fast.model, fast.date),
            None => "a model without a known price".to_owned(),
        });
    }
    let models = display::listed(models, ", ")?;
    Some(format!("calls to `{FAST}` are billed as {models}"))
}

/// The models of recordings whose prices are not known, or not for all classes of tokens, and what costs are then.
pub(crate) fn unpriced(material: &Material<'_>) -> Option<String> {
    let sessions = material.manifest.sessions.iter();
    let unknown = sessions.filter_map(|entry| entry.unpriced.clone());
    let partly = references(material).filter_map(|cell| {
        let (cost, price) = (cell.costs.first()?, cell.price.as_ref()?);
        let classes = price.per_token.unknown(&cost.paid.whole_reference);
        let classes = display::listed(classes, ", ")?;
        Some(format!("{}: no `{classes}`", price.model))
    });
    let models: BTreeSet<String> = unknown.chain(partly).collect();
    let named = match models.len() {
        0 => return None,
        1 | 2 => display::joined(models, ", "),
        many => format!("{many} models"),
    };
    Some(format!(
        "prices unknown ({named}): costs are compared in tokens, at the rates of the cache; `cache.model` names a \
         model with prices"
    ))
}

/// The cost of single calls, and the call from which on a strategy saves anything, under the scheme of the comparison.
pub(super) fn by_call(material: &Material<'_>) -> Section {
    let rows = material.marked_rows(|strategy| {
        let shown = strategy.costs.first()?;
        let calls = shown.by_call?;
        let saved = shown.saved.into_iter().chain([shown.savings]);
        let own = saved.map(|saved| super::of_strategy(strategy.arm, Cell::savings(saved)));
        Some(calls.map(Cell::tokens).into_iter().chain(own).collect())
    });
    Section::new("cost_by_call", rows).fill("scheme", &basis(material).unwrap_or_default())
}

/// The causes of cache breaks, under the scheme of the comparison.
pub(super) fn breaks(material: &Material<'_>) -> Section {
    let rows = material.rows(|strategy| {
        let breaks = strategy.costs.first().into_iter().flat_map(|cost| &cost.sum.breaks);
        breaks.map(|(cause, total)| {
            let (cause, tokens) = (Cell::text(cause.as_str()), Cell::tokens(total.tokens));
            vec![cause, Cell::exact(Value::Count(total.calls)), tokens]
        })
    });
    Section::new("cache_breaks", rows).fill("scheme", &basis(material).unwrap_or_default())
}

/// The scheme and the breakpoints of the comparison, in words.
pub(super) fn basis(material: &Material<'_>) -> Option<String> {
    let cost = material.strategies.iter().find_map(|strategy| strategy.costs.first())?;
    let scheme = match cost.sum.scheme.as_str() {
        BILLED => return Some("the bill of the provider".to_owned()),
        AS_BILLED => "the prompt cache of each session's bill".to_owned(),
        scheme => format!("the provider's prompt cache `{scheme}`"),
    };
    // A strategy that names no edge has none of its own.
    let cells = material.summaries.iter();
    let placement = cells.filter_map(|cell| Some(cell.costs.first()?.placement)).max()?.name();
    Some(format!("{scheme} with {placement} breakpoints"))
}
