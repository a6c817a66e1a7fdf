//! A judge named on the command line.

use super::models::ReplayOptions;
use super::{Exit, Stop};
use crate::scenario::{ModelSetting, ModelsSetting};
use crate::settings::{Place, Table};

/// Reads `KIND:MODEL`, or a table as a scenario writes it.
pub(super) fn parse(typed: &str) -> anyhow::Result<ModelsSetting> {
    let text = if typed.trim_start().starts_with('{') {
        format!("judge = {typed}")
    } else {
        let Some((kind, model)) = typed.split_once(':') else {
            let problem = format!("`--judge {typed}` names no judge");
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
        format!(
            "judge = {{ kind = {}, {what} = {} }}",
            quoted(kind),
            quoted(model)
        )
    };
    let place = format!("--judge {typed}");
    let table = Table::parse(&place, &text)?;
    let models = ModelsSetting::of_judges(&table, &Place::Flag(place.into()))?;
    Ok(models)
}

/// The names of the judges.
pub(super) fn names(models: &ModelsSetting) -> String {
    let names: Vec<&str> = models.judges.iter().map(ModelSetting::name).collect();
    names.join(" + ")
}

/// The options that say how judges are asked.
pub(super) type Asked = ReplayOptions;
