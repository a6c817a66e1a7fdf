//! Judges named on the command line, and what asking them may cost.

use std::sync::Arc;

use super::models::ReplayOptions;
use super::{Exit, Stop, confirm, say};
use crate::metric::forecast::{Span, Spend};
use crate::model::price::Prices;
use crate::model::{Model, ModelKind, Request};
use crate::runner::Connected;
use crate::scenario::{ModelSetting, ModelsSetting};
use crate::settings::{Place, Table};
use crate::tokens::TokenCounter;
use crate::units::Tokens;

/// Who is asked, and what that may cost.
#[derive(Debug, clap::Args)]
pub(super) struct Costs {
    /// Dollars that calls of live judges may cost unasked
    #[arg(long, value_name = "USD", default_value_t = confirm::DEFAULT_LIMIT, value_parser = confirm::dollars)]
    cost_limit: f64,
    /// Agree to what the judges cost
    #[arg(short, long)]
    yes: bool,
}

impl Costs {
    /// Asks before live judges are asked these requests, each so many times; what is kept costs
    /// nothing.
    pub(super) fn confirm(
        &self,
        connected: &Connected,
        requests: &[Request],
        repeats: u32,
        counter: &dyn TokenCounter,
    ) -> anyhow::Result<()> {
        let spend = spend(connected.judges(), requests, repeats, counter)?;
        if spend.calls > 0 {
            say(&in_words(&spend));
        }
        confirm::confirm(&spend, self.cost_limit, self.yes)
    }
}

/// What asking costs, at most: every prompt anew, and verdicts as long as they may be.
fn spend(
    judges: &[Arc<dyn Model>],
    requests: &[Request],
    repeats: u32,
    counter: &dyn TokenCounter,
) -> anyhow::Result<Spend> {
    let prices = Prices::built_in()?;
    let mut spend = Spend {
        dollars: Some(Span::default()),
        ..Spend::default()
    };
    for judge in judges
        .iter()
        .filter(|judge| judge.kind() == ModelKind::Live)
    {
        let price = prices.of(judge.name()).map(|(_, price)| price.per_token);
        for request in requests {
            let texts = request
                .messages
                .iter()
                .flat_map(|message| message.model_text());
            let texts = request.system.iter().chain(texts);
            let prompt: Tokens = texts.map(|text| counter.count(text)).sum();
            for repeat in 0..repeats {
                if !judge.is_kept(request, repeat) {
                    let output = Span {
                        low: Tokens::ZERO,
                        expected: request.max_output,
                        high: judge.longest(request),
                    };
                    spend.asked(1, prompt, output, price);
                }
            }
        }
    }
    Ok(spend)
}

fn in_words(spend: &Spend) -> String {
    let money = spend
        .dollars
        .map_or("an unknown price".to_owned(), |dollars| {
            format!("at most {}", dollars.high)
        });
    format!(
        "live judges are asked {} times, with {} tokens of prompts, for {money}",
        spend.calls, spend.input_tokens
    )
}

/// Reads judges, each as `KIND:MODEL`, or as a table as a scenario writes it; several are a panel.
pub(super) fn parse(typed: &[String]) -> anyhow::Result<ModelsSetting> {
    let judges: Vec<String> = typed
        .iter()
        .map(|typed| written("--judge", typed))
        .collect::<Result<_, _>>()?;
    let text = format!("judge = [{}]", judges.join(", "));
    let place = format!("--judge {}", typed.join(" --judge "));
    let table = Table::parse(&place, &text)?;
    let models = ModelsSetting::of_judges(&table, &Place::Flag(place.into()))?;
    Ok(models)
}

/// A model as a scenario writes it: `KIND:MODEL`, at another address `KIND:MODEL@URL`, or a table.
pub(super) fn written(flag: &str, typed: &str) -> anyhow::Result<String> {
    if typed.trim_start().starts_with('{') {
        return Ok(typed.trim().to_owned());
    }
    let Some((kind, model)) = typed.split_once(':') else {
        let problem = format!("`{flag} {typed}` names no model");
        return Err(Stop::new(Exit::Usage, problem)
            .with_hint(
                "as in `openai:gpt-5-mini`, `anthropic:claude-haiku-4-5`, or \
                 `{ kind = \"openai\", model = \"…\", base_url = \"…\", key = \"VARIABLE\" }`",
            )
            .into());
    };
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let what = if kind == "scripted" {
        "script"
    } else {
        "model"
    };
    let (model, url) = match model.find("@http") {
        Some(at) => (&model[..at], Some(&model[at + 1..])),
        None => (model, None),
    };
    let url = url.map(|url| format!(", base_url = {}", quoted(url)));
    Ok(format!(
        "{{ kind = {}, {what} = {}{} }}",
        quoted(kind),
        quoted(model),
        url.unwrap_or_default()
    ))
}

/// The names of the judges.
pub(super) fn names(models: &ModelsSetting) -> String {
    let names: Vec<&str> = models.judges.iter().map(ModelSetting::name).collect();
    names.join(" + ")
}

/// The options that say how judges are asked.
pub(super) type Asked = ReplayOptions;
