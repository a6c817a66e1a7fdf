//! The stages: one file each, registered in one line, with its knobs in `keys.toml`.

use serde::de::DeserializeOwned;

use super::guard::{Guards, OnInflation};
use super::knob::{KEYS, Knobs};
use super::law::Law;
use super::{Stage, StageResult};
use crate::context::Entry;
use crate::session::wire;
use crate::settings::KeyInWords;

mod clear_inputs;
mod clear_results;
mod clear_thinking;
mod collapse_groups;
mod dedupe_reads;
mod digest;
mod drop_calls;
mod drop_middle;
mod drop_oldest;
mod external;
mod select;
mod normalize;
mod offload_results;
mod prelude;
mod recorded;
mod restore;
mod session_memory;
mod snip;
mod summarize;
pub(super) mod trial;
mod truncate_output;

/// A kind of stage that presets can name. What it does, its knobs and the laws it breaks by design
/// are in its section of `keys.toml`.
#[derive(Debug, Clone, Copy)]
pub struct StageKind {
    /// The word in `kind = "…"`.
    pub name: &'static str,
    /// Makes one from its settings.
    pub(super) build: fn(&Knobs<'_>) -> StageResult,
}

/// All kinds of stages, in the order of the documentation.
pub static STAGES: &[StageKind] = &[
    StageKind::new("truncate_output", truncate_output::build),
    StageKind::of::<offload_results::OffloadResults>("offload_results"),
    StageKind::of::<dedupe_reads::DedupeReads>("dedupe_reads"),
    StageKind::of::<snip::Snip>("snip"),
    StageKind::new("drop_middle", drop_middle::build),
    StageKind::of::<clear_results::ClearResults>("clear_results"),
    StageKind::of::<clear_inputs::ClearInputs>("clear_inputs"),
    StageKind::of::<clear_thinking::ClearThinking>("clear_thinking"),
    StageKind::of::<drop_calls::DropCalls>("drop_calls"),
    StageKind::of::<drop_oldest::DropOldest>("drop_oldest"),
    StageKind::new("select", select::build),
    StageKind::new("summarize", summarize::build),
    StageKind::new("collapse_groups", collapse_groups::build),
    StageKind::new("session_memory", session_memory::build),
    StageKind::of::<restore::Restore>("restore"),
    StageKind::new("digest", digest::build),
    StageKind::of::<normalize::Normalize>("normalize"),
    StageKind::of::<recorded::RecordedReplay>("recorded"),
    StageKind::new("external", external::build),
];

/// The kind of that name.
pub fn kind(name: &str) -> Option<&'static StageKind> {
    STAGES.iter().find(|kind| kind.name == name)
}

impl StageKind {
    const fn new(name: &'static str, build: fn(&Knobs<'_>) -> StageResult) -> Self {
        Self { name, build }
    }

    /// A kind whose stages are made of their knobs and nothing else.
    const fn of<S: Stage + DeserializeOwned + 'static>(name: &'static str) -> Self {
        Self::new(name, of_knobs::<S>)
    }

    /// One sentence.
    pub fn description(&self) -> &'static str {
        KEYS.table(self.name).text("description").unwrap_or_default()
    }

    /// The laws it breaks by design when it has something to do; a test holds that exactly these
    /// break.
    pub fn breaks(&self) -> Vec<Law> {
        let names = KEYS.table(self.name).list("breaks").unwrap_or_default().iter();
        names.filter_map(|name| Law::named(name.as_text()?)).collect()
    }

    /// Whether it keeps nothing between calls but what it read of the context, so that it may see the whole history
    /// at each.
    pub fn is_stateless(&self) -> bool {
        KEYS.table(self.name).get("is_stateless").is_some()
    }

    /// Everything that can be set on it.
    pub fn knobs(&self) -> Vec<KeyInWords<'static>> {
        KEYS.in_words(self.name)
    }

    /// The strategy's guards as they hold for this kind: one that makes contexts larger by design
    /// is not stopped for it, unless its own guards say so.
    pub(super) fn guards(&self, guards: Guards) -> Guards {
        let on_inflation = if self.breaks().contains(&Law::NeverLarger) {
            OnInflation::Apply
        } else {
            guards.on_inflation
        };
        Guards { on_inflation, ..guards }
    }
}

fn of_knobs<S: Stage + DeserializeOwned + 'static>(knobs: &Knobs<'_>) -> StageResult {
    Ok(Box::new(knobs.read::<S>()?))
}

/// The messages of some entries, as JSON.
fn json_of(entries: &[Entry]) -> String {
    let messages = entries.iter().map(|entry| wire::anthropic_json(&entry.message));
    format!("[{}]", messages.collect::<Vec<_>>().join(", "))
}
