//! Strategies that differ only in a model's writing: none of them is marked as best.

use std::collections::{BTreeMap, BTreeSet};

use crate::compare::NoteCode;
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
    let strategies = material.manifest.strategies.iter().filter(|strategy: &&StrategyEntry| {
        let table: Option<toml::Table> = strategy.toml.parse().ok();
        let Some(toml::Value::Array(stages)) = table.and_then(|mut table| table.remove("stage"))
        else {
            return false;
        };
        stages.iter().filter_map(|stage| stage.get("kind")?.as_str()).any(|kind| {
            WRITING.contains(&kind)
                || MAY_WRITE.contains(&kind) && has_asked(material, &strategy.name)
        })
    });
    Some(strategies.map(|strategy| strategy.name.as_str()).collect())
}

fn has_asked(material: &Material<'_>, strategy: &str) -> bool {
    let mut all = material.strategies.iter();
    all.any(|summary| summary.name == strategy && summary.has_asked())
}

/// Says that the table cannot rank strategies that summarise against others, where it holds both.
pub(super) fn of_offline(rows: &[Row], writers: Option<&BTreeSet<&str>>) -> Option<String> {
    let names = writers?;
    let ranked = rows.iter().filter(|row| row.ranked);
    let written: Vec<bool> = ranked.map(|row| names.contains(row.name.as_str())).collect();
    (written.contains(&true) && written.contains(&false)).then(|| {
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
    Some(BannerLevel::Note.banner(NoteCode::Twins, text))
}
