//! The stages: one file each, registered in one line.

use std::collections::BTreeSet;

use super::StageKind;
use crate::context::Entry;
use crate::session::wire;

pub mod clear_inputs;
pub mod clear_results;
pub mod clear_thinking;
pub mod collapse_groups;
pub mod dedupe_reads;
pub mod digest;
pub mod drop_middle;
pub mod drop_oldest;
pub mod extract;
pub mod normalize;
pub mod offload_results;
pub mod recorded;
pub mod restore;
pub mod session_memory;
pub mod snip;
pub mod summarize;
pub(super) mod trial;
pub mod truncate_output;

/// All kinds of stages, in the order of the documentation.
pub static STAGES: &[StageKind] = &[
    truncate_output::KIND,
    offload_results::KIND,
    dedupe_reads::KIND,
    snip::KIND,
    drop_middle::KIND,
    clear_results::KIND,
    clear_inputs::KIND,
    clear_thinking::KIND,
    drop_oldest::KIND,
    extract::KIND,
    summarize::KIND,
    collapse_groups::KIND,
    session_memory::KIND,
    restore::KIND,
    digest::KIND,
    normalize::KIND,
    recorded::KIND,
];

/// The kind of that name.
pub fn kind(name: &str) -> Option<&'static StageKind> {
    STAGES.iter().find(|kind| kind.name == name)
}

/// The messages of some entries, as JSON.
fn json_of(entries: &[Entry]) -> String {
    let messages = entries
        .iter()
        .map(|entry| wire::anthropic_json(&entry.message));
    format!("[{}]", messages.collect::<Vec<_>>().join(", "))
}

/// The ids of the tool uses that are answered by one of these.
fn answered<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> BTreeSet<&'a str> {
    let results = entries.into_iter();
    let results = results.flat_map(|entry| entry.message.tool_results());
    results.map(|(_, result)| &*result.tool_use_id).collect()
}
