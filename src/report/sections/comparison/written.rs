//! Strategies that differ only in a model's writing: none of them is marked as best.

use std::collections::{BTreeMap, BTreeSet};

use crate::compare::Code;
use crate::record::StrategyEntry;
use crate::record::words::ModelKind;
use crate::report::build::Material;
use crate::report::{Banner, BannerLevel, Row, display};

/// Knobs that only steer what a model writes.
const WORDING: &[&str] = &["template", "prompt", "prompt_text", "instructions"];

/// Kinds of stages whose text a model writes.
const WRITING: &[&str] = &["summarize", "collapse_groups", "session_memory"];

/// Kinds of stages of which nobody knows that before they have asked.
const MAY_WRITE: &[&str] = &["external", "select"];

/// The strategies whose summaries a language model would have written, where none wrote.
pub(crate) fn writers<'a>(material: &Material<'a>) -> Option<BTreeSet<&'a str>> {
    if material.manifest.summariser.kind == ModelKind::Live {
        return None;
    }
    let has_asked = |name: &str| {
        material.strategies.iter().any(|it| it.name == name && it.model_calls.total().calls > 0)
    };
    let strategies = material.manifest.strategies.iter().filter(|strategy: &&StrategyEntry| {
        let table: Option<toml::Table> = strategy.toml.parse().ok();
        let stages = table.and_then(|mut table| table.remove("stage"));
        let stages = stages.and_then(|stages| stages.as_array().cloned());
        stages.unwrap_or_default().iter().any(|stage| {
            let kind = stage.get("kind").and_then(toml::Value::as_str);
            kind.is_some_and(|kind| {
                WRITING.contains(&kind) || MAY_WRITE.contains(&kind) && has_asked(&strategy.name)
            })
        })
    });
    Some(strategies.map(|strategy| strategy.name.as_str()).collect())
}

/// Says that the table cannot rank strategies that summarise against others, where it holds both.
pub(super) fn of_offline(rows: &[Row], writers: Option<&BTreeSet<&str>>) -> Option<String> {
    let writers = writers?;
    let ranked = || rows.iter().filter(|row| row.ranked);
    let is_writer = |row: &Row| writers.contains(row.name.as_str());
    let is_mixed = ranked().any(is_writer) && !ranked().all(is_writer);
    is_mixed.then(|| {
        "no language model wrote summaries: this table cannot rank strategies that summarise against \
         those that do not by what they keep, and no best-mark is put between them"
            .to_owned()
    })
}

/// Groups of strategies that differ only in a model's writing, where no model wrote.
pub(super) fn twins<'a>(material: &Material<'a>) -> Vec<Vec<&'a str>> {
    if material.manifest.summariser.kind == ModelKind::Live {
        return Vec::new();
    }
    let mut shapes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for strategy in &material.manifest.strategies {
        if let Some(shape) = shape(strategy) {
            shapes.entry(shape).or_default().push(&strategy.name);
        }
    }
    let mut groups: Vec<Vec<&str>> = shapes.into_values().filter(|group| group.len() > 1).collect();
    groups.sort();
    groups
}

/// A strategy without its wording; `None` where no stage asks a model, or it cannot be read.
fn shape(strategy: &StrategyEntry) -> Option<String> {
    let mut table: toml::Table = strategy.toml.parse().ok()?;
    for key in ["description", "product", "stand_in", "source", "breaks"] {
        table.remove(key);
    }
    let mut worded = false;
    if let Some(toml::Value::Array(stages)) = table.get_mut("stage") {
        for stage in stages.iter_mut().filter_map(toml::Value::as_table_mut) {
            worded |= stage.get("kind").and_then(toml::Value::as_str) == Some("summarize");
            for knob in WORDING {
                worded |= stage.remove(*knob).is_some();
            }
        }
    }
    // Tables keep no order of writing, so equal shapes are equal text.
    worded.then(|| table.to_string())
}

pub(super) fn banner(twins: &[Vec<&str>]) -> Option<Banner> {
    let groups = twins.iter().map(|group| {
        let names = group.iter().map(|name| format!("`{name}`"));
        display::joined(names, ", ")
    });
    let groups = display::listed(groups, "; nor between ")?;
    let text = format!(
        "no best-mark between {groups}: they differ only in what a model would have written, and \
             no language model wrote summaries"
    );
    Some(BannerLevel::Note.banner(Code::Twins, text))
}
