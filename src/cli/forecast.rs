//! The requests and the cost of a run, estimated by an offline replay.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};

use super::{Result, template};
use crate::metric::calls::is_on_the_bill;
use crate::metric::forecast::{Spend, Tariff, ThinkingTokens};
use crate::model::ModelKind;
use crate::probe::judge::{MAX_ANSWER, MAX_VERDICT};
use crate::record::{CellRecord, End, ForecastCell, Manifest};
use crate::report::foreseen;
use crate::runner::Plan;
use crate::scenario::ModelSetting;
use crate::stats::power;
use crate::units::{Tokens, Usage, Usd, index, many};

/// How much a probe's answer differs between two strategies, as a standard deviation: that of one
/// probe in five turning out otherwise, either way, √0.2. Assumed before a run; `compare` measures it.
const DEVIATION: f64 = 0.45;

/// How alike such differences are within a session. Assumed before a run; `compare` measures it.
const CORRELATION: f64 = 0.1;

/// The requests and the bills of each strategy, full history first, as the report of an offline run says them.
pub(super) fn strategies(manifest: &Manifest, cells: &[CellRecord]) -> Vec<Value> {
    let each = foreseen(manifest, cells).into_iter().map(|strategy| {
        let own = cells.iter().filter(|cell| cell.strategy == strategy.name);
        let prompts = own.clone().flat_map(|cell| &cell.prompt_tokens).copied();
        let calls = own.clone().flat_map(|cell| &cell.model_calls);
        let asked = calls.filter(|call| is_on_the_bill(call.purpose));
        let usage: Usage = asked.map(|call| call.usage).sum();
        let broken = own.clone().filter(|cell| cell.end != End::Completed);
        let costs = strategy.costs.iter().map(|cost| {
            let total = cost.sum.total();
            json!({
                "bill": cost.bill,
                "scheme": cost.sum.scheme,
                "cache_read": total.cache_read,
                "cache_written": total.cache_write_5m + total.cache_write_1h,
                "input_equivalents": cost.sum.cost.div_ceil(1_000),
                "dollars": cost.dollars.map(Usd::in_dollars),
            })
        });
        json!({
            "strategy": strategy.name,
            "cells": own.clone().count(),
            "broken": broken.count(),
            "agent_calls": prompts.clone().count(),
            "calls": strategy.model_calls.total().calls,
            "input_tokens": prompts.sum::<Tokens>() + usage.prompt(),
            "strategy_output": usage.output,
            "costs": costs.collect::<Vec<_>>(),
        })
    });
    each.collect()
}

/// The requests to live models in these cells of the run itself.
pub(super) fn spend_of(plan: &Plan, cells: &[ForecastCell]) -> Spend {
    let models = &plan.scenario().models;
    let reader = models.reader.as_ref();
    let inputs = Tariff {
        price_of: &|model| {
            let (_, price) = plan.asked_prices().of(model)?;
            Some((price.per_token, plan.timing_of(model)))
        },
        judges: &plan.judges(),
        longest_answer: MAX_ANSWER,
        longest_verdict: MAX_VERDICT,
        thinking: ThinkingTokens {
            summariser: models.summariser.thinking(),
            reader: reader.map_or(Tokens::ZERO, ModelSetting::thinking),
            judges: models.judges.iter().map(ModelSetting::thinking).collect(),
        },
        summaries_written_from: plan.summaries_written_from(),
        batch_of: &|model| plan.asked_prices().of(model)?.0.batch,
    };
    Spend::of(plan.manifest(), cells, &inputs)
}

/// Whether a run of this plan asks a live model.
pub(super) fn asks_live_models(plan: &Plan) -> bool {
    let manifest = plan.manifest();
    std::iter::once(&manifest.summariser)
        .chain(&manifest.reader)
        .chain(&plan.judges())
        .any(|model| model.kind == ModelKind::Live)
}

/// The smallest difference between two strategies that a run of this size shows.
#[derive(Serialize)]
pub(super) struct Detectable {
    pub(super) difference: f64,
    sessions: usize,
    items_per_session: f64,
    assumed_deviation: f64,
    assumed_correlation: f64,
}

impl Detectable {
    /// From the number of planted items of each session.
    pub(super) fn of(planted: &[usize]) -> Option<Self> {
        let asked: Vec<usize> = planted.iter().copied().filter(|items| *items > 0).collect();
        let sessions = asked.len();
        let items = asked.iter().sum::<usize>() as f64 / sessions.max(1) as f64;
        let difference = power::detectable_ahead(DEVIATION, CORRELATION, items, sessions)?;
        Some(Self {
            difference,
            sessions,
            items_per_session: items,
            assumed_deviation: DEVIATION,
            assumed_correlation: CORRELATION,
        })
    }
}

/// The same in a sentence.
pub(super) fn detectable_in_words(plan: &Plan) -> Result<String> {
    let seen = Detectable::of(&plan.planted_items());
    template::fill(include_str!("text/detectable.txt"), json!({ "seen": seen }))
}

/// `40 seconds`, `12 minutes` or `3.5 hours`.
pub(super) fn minutes_in_words(milliseconds: u64) -> String {
    let minutes = milliseconds as f64 / 60_000.0;
    match minutes {
        ..1.5 => many(index((60.0 * minutes).ceil()), "second", "seconds"),
        ..100.0 => format!("{:.0} minutes", minutes.ceil()),
        _ => format!("{:.1} hours", minutes / 60.0),
    }
}

/// The spending of the run itself, in a sentence or two.
pub(super) fn spend_in_words(plan: &Plan, spend: &Spend) -> Result<String> {
    let homes = plan.scenario().models.homes();
    let (homes, timed): (BTreeSet<&str>, Vec<Option<Tokens>>) = homes
        .map(|(live, home)| (&*live.dialect.model, home.timing.and_then(|timing| timing.longest)))
        .unzip();
    let facts = json!({
        "spend": spend,
        "is_live": asks_live_models(plan),
        "takes": spend.milliseconds.map(|span| minutes_in_words(span.expected)),
        "homes": homes,
        "timed": timed.into_iter().flatten().max(),
    });
    template::fill(include_str!("text/spend.txt"), facts)
}
