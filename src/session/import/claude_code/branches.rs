//! Where the user went back and asked anew, the recording forks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::chain::{Entry, Said};
use crate::session::Tag;
use crate::session::import::assemble::count;

/// What prompts have in common of which one was asked in the place of the others.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Above<'a> {
    /// The record before them.
    Record(&'a Arc<str>),
    /// Nothing: they begin the conversation of that session, between as many compactions.
    Root(Option<&'a Arc<str>>, usize),
}

/// Drops what the user went back from: of several prompts with one parent, only the one that
/// the end of the file descends from stays, with its descendants. A prompt that nothing follows
/// was typed before the next one, and stays.
pub(super) fn leave_abandoned(
    entries: &mut Vec<Entry>,
    parents: &BTreeMap<Arc<str>, Option<Arc<str>>>,
    warnings: &mut BTreeMap<String, u64>,
) {
    let mut prompts: BTreeMap<Above<'_>, Vec<&Arc<str>>> = BTreeMap::new();
    let mut compactions = 0;
    for entry in &*entries {
        if entry.chain != 0 {
            continue;
        }
        match (&entry.uuid, &entry.said) {
            (_, Said::Boundary(_) | Said::Summary(_) | Said::NewRoot(_)) => compactions += 1,
            (Some(uuid), Said::User(said)) if said.tags.contains(&Tag::TypedUser) => {
                let above = match &entry.parent {
                    Some(parent) => Above::Record(parent),
                    None => Above::Root(entry.session.as_ref(), compactions),
                };
                prompts.entry(above).or_default().push(uuid);
            }
            _ => {}
        }
    }
    prompts.retain(|_, siblings| siblings.len() > 1);
    if prompts.is_empty() {
        return;
    }
    let is_said = |entry: &&Entry| matches!(entry.said, Said::User(_) | Said::Assistant(_));
    let last = entries
        .iter()
        .rev()
        .find(|entry| entry.chain == 0 && is_said(entry));
    let mut path: BTreeSet<&Arc<str>> = BTreeSet::new();
    let mut at = last.and_then(|entry| entry.uuid.as_ref());
    while let Some(uuid) = at {
        if !path.insert(uuid) {
            break;
        }
        at = parents.get(uuid).and_then(Option::as_ref);
    }
    // Records after which something was said.
    let mut followed: BTreeSet<&Arc<str>> = BTreeSet::new();
    for entry in entries.iter().filter(is_said) {
        let mut at = entry.parent.as_ref();
        while let Some(uuid) = at {
            if !followed.insert(uuid) {
                break;
            }
            at = parents.get(uuid).and_then(Option::as_ref);
        }
    }
    // Whether a record descends from an abandoned prompt (the prompt itself included).
    let mut abandoned: BTreeMap<&Arc<str>, bool> = BTreeMap::new();
    for (above, siblings) in &prompts {
        let on_path = siblings.iter().find(|uuid| path.contains(**uuid));
        let kept = match above {
            Above::Record(_) => on_path.or(siblings.last()),
            Above::Root(..) if on_path.is_none() => continue,
            Above::Root(..) => on_path,
        };
        for uuid in siblings {
            if Some(uuid) != kept && followed.contains(uuid) {
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
