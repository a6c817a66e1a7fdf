//! Where the user went back and asked anew, the recording forks.

use super::super::prelude::*;
use super::chain::{Entry, Said};

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
    let mut said = entries.iter().rev().filter(is_said);
    let last = said.find(|entry| entry.chain == 0);
    let mut path = BTreeSet::new();
    climb(last.and_then(|it| it.uuid.as_ref()), parents, &mut path);
    // Records after which something was said.
    let mut followed = BTreeSet::new();
    for entry in entries.iter().filter(is_said) {
        climb(entry.parent.as_ref(), parents, &mut followed);
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
        let mut gone = siblings.iter().filter(|uuid| Some(*uuid) != kept);
        abandoned.extend(
            gone.by_ref()
                .filter(|it| followed.contains(**it))
                .map(|it| (*it, true)),
        );
    }
    for start in parents.keys() {
        let mut walked: Vec<&Arc<str>> = Vec::new();
        let mut at = Some(start);
        let mut found = false;
        while let Some(uuid) = at {
            if let Some(known) = abandoned.get(uuid) {
                found = *known;
                break;
            }
            // A circle ends where it began.
            abandoned.insert(uuid, false);
            walked.push(uuid);
            at = parents.get(uuid).and_then(Option::as_ref);
        }
        abandoned.extend(walked.into_iter().map(|uuid| (uuid, found)));
    }
    let is_gone =
        |entry: &Entry| entry.uuid.as_ref().and_then(|it| abandoned.get(it)) == Some(&true);
    let mut gone = entries
        .iter()
        .map(is_gone)
        .collect::<Vec<bool>>()
        .into_iter();
    entries.retain(|_| {
        let is_gone = gone.next() == Some(true);
        if is_gone {
            let what = "abandoned branch: a record the user went back from is left out";
            count(warnings, what);
        }
        !is_gone
    });
}

/// Adds a record and all above it, up to one that is there.
fn climb<'a>(
    from: Option<&'a Arc<str>>,
    parents: &'a BTreeMap<Arc<str>, Option<Arc<str>>>,
    to: &mut BTreeSet<&'a Arc<str>>,
) {
    let mut at = from;
    while let Some(uuid) = at
        && to.insert(uuid)
    {
        at = parents.get(uuid).and_then(Option::as_ref);
    }
}
