//! Where the user went back and asked anew, the recording forks.

use super::chain::{ChainEntry, RecordKind};
use super::records::{Parents, parent_of};
use crate::prelude::*;

/// The place of a prompt; of several prompts at one place, one replaced the others.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Above<'a> {
    /// Behind this record.
    Record(&'a Arc<str>),
    /// At the beginning of that session, between as many compactions.
    Root(Option<&'a Arc<str>>, usize),
}

/// Drops the branches that the user went back from. Of several prompts with one parent, only the
/// one that the end of the file descends from stays, with its descendants. A prompt that nothing
/// follows was typed before the next one, and stays.
pub(super) fn leave_abandoned(
    entries: &mut Vec<ChainEntry>,
    parents: &Parents,
    source: &mut Source,
) {
    let mut prompts: BTreeMap<Above<'_>, Vec<&Arc<str>>> = BTreeMap::new();
    let mut compactions = 0;
    for entry in entries.iter().filter(|entry| entry.chain == 0) {
        match (&entry.uuid, &entry.said) {
            (_, RecordKind::Boundary(_) | RecordKind::Summary(_) | RecordKind::NewRoot(_)) => {
                compactions += 1;
            }
            (Some(uuid), RecordKind::User(_, Some(Tag::TypedUser))) => {
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
    let messages = entries.iter().filter(|entry: &&ChainEntry| {
        matches!(entry.said, RecordKind::User(..) | RecordKind::Assistant(_) | RecordKind::ApiError)
    });
    let last = messages.clone().rfind(|entry| entry.chain == 0);
    let mut path = BTreeSet::new();
    climb(last.and_then(|last| last.uuid.as_ref()), |uuid| parent_of(uuid, parents), &mut path);
    let mut followed = BTreeSet::new();
    for entry in messages {
        climb(entry.parent.as_ref(), |uuid| parent_of(uuid, parents), &mut followed);
    }
    let mut abandoned: Vec<&Arc<str>> = Vec::new();
    for (above, siblings) in &prompts {
        let on_path = siblings.iter().find(|uuid| path.contains(**uuid));
        let kept = match above {
            Above::Record(_) => on_path.or(siblings.last()),
            Above::Root(..) if on_path.is_none() => continue,
            Above::Root(..) => on_path,
        };
        let others = siblings.iter().filter(|sibling| Some(*sibling) != kept);
        abandoned.extend(others.filter(|other| followed.contains(**other)));
    }
    let mut children: BTreeMap<&Arc<str>, Vec<&Arc<str>>> = BTreeMap::new();
    for (uuid, parent) in parents {
        let siblings = parent.iter().map(|parent| (parent, uuid));
        siblings.for_each(|(parent, uuid)| children.entry(parent).or_default().push(uuid));
    }
    let mut gone: BTreeSet<Arc<str>> = BTreeSet::new();
    while let Some(uuid) = abandoned.pop() {
        if gone.insert(uuid.clone()) {
            abandoned.extend(children.get(uuid).into_iter().flatten());
        }
    }
    let left = entries.extract_if(.., |entry: &mut ChainEntry| {
        entry.uuid.as_ref().is_some_and(|uuid| gone.contains(uuid))
    });
    let what = "abandoned branch: a record the user went back from is left out";
    left.for_each(|_| source.warn(what));
}
