//! Old tool calls go with their results, and nothing is in their place.

use super::prelude::*;

#[derive(Debug, Deserialize)]
pub(super) struct DropCalls {
    keep_last_messages: usize,
    tools: ToolList,
}

impl Stage for DropCalls {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        let entries = context.entries();
        let (old, new) = entries.split_at(entries.len().saturating_sub(self.keep_last_messages));
        // A call stays with its result: what one of the newest messages holds is kept on both sides.
        let kept: BTreeSet<&str> = ids(new).collect();
        let uses = old.iter().flat_map(|entry| entry.message.tool_uses());
        let dropped = uses.filter(|(_, call)| self.tools.allow(Some(call)));
        let dropped: BTreeSet<&str> =
            dropped.map(|(_, call)| &*call.id).filter(|id| !kept.contains(id)).collect();
        let edits: Vec<Edit> = old
            .iter()
            .enumerate()
            .filter(|(_, entry)| ids(std::slice::from_ref(*entry)).any(|id| dropped.contains(id)))
            .map(|(at, entry)| Edit::replacing(at..at + 1, without(entry, &dropped, cx)))
            .collect();
        let reason = format!("{} calls before the last {} messages", dropped.len(), new.len());
        Step::Done(Ok(Patch::new(reason, edits)))
    }

    fn edge(&self, context: &Context) -> Option<usize> {
        context.entries().iter().enumerate().find_map(|(at, entry)| {
            entry.message.tool_uses().any(|(_, call)| self.tools.allow(Some(call))).then_some(at)
        })
    }
}

/// The ids of calls and of results.
fn ids(entries: &[Entry]) -> impl Iterator<Item = &str> {
    let blocks = entries.iter().flat_map(|entry| entry.message.content());
    blocks.filter_map(|block| Some(&**block.call_id()?))
}

/// The message without these calls and results; `None` if it held nothing else but thinking and blank texts.
fn without(entry: &Entry, dropped: &BTreeSet<&str>, cx: &Situation) -> Option<Entry> {
    let mut content = entry.message.content().to_vec();
    content.retain(|block| block.call_id().is_none_or(|id| !dropped.contains(&**id)));
    if !content.iter().any(|block: &ContentBlock| match block {
        ContentBlock::Text(text) => !text.trim().is_empty(),
        ContentBlock::Thinking(_) => false,
        _ => true,
    }) {
        return None;
    }
    let left = entry.message.with_content(content);
    let origin = Origin::derived_from([entry]);
    Some(Entry::new(origin, Arc::new(left), &cx.counts))
}

#[cfg(test)]
mod tests {
    use crate::strategy::stage::trial::{Trial, answers, asks, said, typed};

    /// What is left of a session: `t`yped, `c`alls, `r`esults, `s`aid.
    fn left(knobs: &str) -> String {
        let mut trial = Trial::new("drop_calls", knobs);
        trial.append([
            typed("Do it."),
            asks(&[("a", "Read", "{}"), ("b", "Bash", "{}")]),
            answers(&[("a", "x"), ("b", "y")]),
            said("So far."),
            asks(&[("c", "Read", "{}")]),
            answers(&[("c", "z")]),
        ]);
        trial.fire().unwrap();
        let blocks = trial.context.entries().iter().flat_map(|entry| entry.message.content());
        let shown = blocks.map(|block| match block.call_id() {
            Some(id) => id.to_string(),
            None => ".".to_owned(),
        });
        shown.collect()
    }

    #[test]
    fn a_call_goes_with_its_result() {
        for (knobs, stays) in [
            ("keep_last_messages = 0", ".."),
            // Its call is older, and stays with it.
            ("keep_last_messages = 1", "..cc"),
            ("keep_last_messages = 4", ".abab.cc"),
            ("keep_last_messages = 0\ntools = ['Read']", ".bb."),
            ("keep_last_messages = 0\ntools = ['class:shell']", ".aa.cc"),
        ] {
            assert_eq!(left(knobs), stays, "{knobs}");
        }
    }
}
