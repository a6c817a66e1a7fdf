//! Where the user went back and asked anew, the recording forks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::chain::{Entry, Said};
use crate::session::Tag;
use crate::session::import::assemble::count;

/// Drops what the user went back from: of several prompts with one parent, only the one that
/// the end of the file descends from stays, with its descendants.
pub(super) fn leave_abandoned(
    entries: &mut Vec<Entry>,
    parents: &BTreeMap<Arc<str>, Option<Arc<str>>>,
    warnings: &mut BTreeMap<String, u64>,
) {
    let mut prompts: BTreeMap<&Arc<str>, Vec<&Arc<str>>> = BTreeMap::new();
    for entry in &*entries {
        if let (Some(uuid), Some(parent), Said::User(said), 0) =
            (&entry.uuid, &entry.parent, &entry.said, entry.chain)
            && said.tags.contains(&Tag::TypedUser)
        {
            prompts.entry(parent).or_default().push(uuid);
        }
    }
    prompts.retain(|_, siblings| siblings.len() > 1);
    if prompts.is_empty() {
        return;
    }
    let last = entries
        .iter()
        .rev()
        .find(|entry| entry.chain == 0 && matches!(entry.said, Said::User(_) | Said::Assistant(_)));
    let mut path: BTreeSet<&Arc<str>> = BTreeSet::new();
    let mut at = last.and_then(|entry| entry.uuid.as_ref());
    while let Some(uuid) = at {
        if !path.insert(uuid) {
            break;
        }
        at = parents.get(uuid).and_then(Option::as_ref);
    }
    // Whether a record descends from an abandoned prompt (the prompt itself included).
    let mut abandoned: BTreeMap<&Arc<str>, bool> = BTreeMap::new();
    for siblings in prompts.values() {
        let kept = siblings
            .iter()
            .find(|uuid| path.contains(**uuid))
            .or(siblings.last());
        for uuid in siblings {
            if Some(uuid) != kept {
                abandoned.insert(uuid, true);
            }
        }
    }
    for start in parents.keys() {
        let mut walked: Vec<&Arc<str>> = Vec::new();
        let mut seen: BTreeSet<&Arc<str>> = BTreeSet::new();
        let mut at = Some(start);
        let mut found = false;
        while let Some(uuid) = at {
            if let Some(known) = abandoned.get(uuid) {
                found = *known;
                break;
            }
            if !seen.insert(uuid) {
                break;
            }
            walked.push(uuid);
            at = parents.get(uuid).and_then(Option::as_ref);
        }
        for uuid in walked {
            abandoned.insert(uuid, found);
        }
    }
    let gone: BTreeSet<Arc<str>> = abandoned
        .into_iter()
        .filter(|(_, is)| *is)
        .map(|(uuid, _)| uuid.clone())
        .collect();
    entries.retain(|entry| {
        let stays = entry.uuid.as_ref().is_none_or(|uuid| !gone.contains(uuid));
        if !stays {
            count(
                warnings,
                "abandoned branch: a record the user went back from is left out",
            );
        }
        stays
    });
}
