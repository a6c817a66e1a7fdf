//! A new root in the middle of a file: the context was cleared, and the file goes on.
//!
//! This happens when a plan is accepted with "clear context": a record without a parent follows, and
//! the plan as the next prompt. Ordinary roots are left alone: the start of a file, the records of
//! another session, hooks of a resumed or compacted session, and roots after which the provider
//! billed more than before. A run of another session in a stream is confirmed by its bill in the same way.

use super::chain::{ChainEntry, RecordKind};
use super::records::{Parents, Record, parent_of};
use crate::prelude::*;

/// How the prompt begins that the product writes when a plan is accepted.
const PLAN: &str = "Implement the following plan:";

/// Hooks that run where nothing is cleared.
const OTHER_HOOKS: [&str; 3] = [":startup", ":resume", ":compact"];

/// The number of records above an entry that are searched for a record.
const STEPS: usize = 64;

/// Whether a record may begin a new context.
pub(super) fn is_root(record: &Record<'_>, kind: &str) -> bool {
    if record.parent().is_some() || record.uuid.is_none() || record.is_side() {
        return false;
    }
    match kind {
        "user" => true,
        "progress" => {
            let hook = record.data.and_then(|raw| Object::read(raw)?.text("hookName"));
            hook.is_none_or(|name| OTHER_HOOKS.iter().all(|end| !name.ends_with(end)))
        }
        _ => false,
    }
}

/// Whether an entry is the first one of a new context that begins with `root`.
pub(super) fn begins(entry: &ChainEntry, root: &Arc<str>, parents: &Parents) -> bool {
    match &entry.said {
        // The root itself is a prompt: it is not an attempt to ask the first prompt anew.
        RecordKind::User(blocks, tag) if entry.uuid.as_ref() == Some(root) => {
            *tag == Some(Tag::TypedUser)
                && texts(blocks).any(|text| text.trim_start().starts_with(PLAN))
        }
        RecordKind::User(..) | RecordKind::Assistant(_) | RecordKind::Attachment(..) => {
            let first = entry.parent.as_ref();
            let above = std::iter::successors(first, |uuid| parent_of(uuid, parents));
            above.take(STEPS).any(|uuid| uuid == root)
        }
        RecordKind::ApiError
        | RecordKind::Summary(_)
        | RecordKind::Boundary(_)
        | RecordKind::ClearedContent(_)
        | RecordKind::NewRoot(_)
        | RecordKind::NewRun => false,
    }
}

/// Drops the roots and runs before which nothing was answered, which another session wrote, or after which
/// the prompt was billed larger. Roots that stay get the last bill before them.
pub(super) fn confirm(entries: &mut Vec<ChainEntry>) {
    let mut confirmed: BTreeMap<usize, Option<Tokens>> = BTreeMap::new();
    let mut waiting = None;
    let mut is_answered = false;
    let mut billed = None;
    let mut session = None;
    for (at, entry) in entries.iter().enumerate() {
        if entry.chain != 0 {
            continue;
        }
        match &entry.said {
            RecordKind::NewRoot(_) | RecordKind::NewRun => {
                let same = entry.session.is_none()
                    || session.is_none_or(|session| Some(session) == entry.session.as_ref());
                if is_answered && same {
                    confirmed.insert(at, billed);
                    waiting = Some(at);
                }
            }
            RecordKind::Assistant(part) if !part.tags.contains(&Tag::Synthetic) => {
                is_answered = true;
                let prompt = part.usage.map(|usage| usage.prompt());
                if let Some(prompt) = prompt.filter(|prompt| *prompt > Tokens::ZERO) {
                    let root = waiting.take();
                    if let Some(root) = root.filter(|_| billed.is_some_and(|item| prompt > item)) {
                        confirmed.remove(&root);
                    }
                    billed = Some(prompt);
                }
            }
            _ => {}
        }
        session = entry.session.as_ref().or(session);
    }
    let mut at = 0;
    entries.retain_mut(|entry| {
        let bill = confirmed.get(&at);
        at += 1;
        match &mut entry.said {
            RecordKind::NewRoot(pre_tokens) => {
                *pre_tokens = bill.copied().flatten();
                bill.is_some()
            }
            RecordKind::NewRun => bill.is_some(),
            _ => true,
        }
    });
}
