//! Long arguments of old tool uses are shortened: a file that was written is in its call as a whole.

use super::prelude::*;

#[derive(Debug, Deserialize)]
pub(super) struct ClearInputs {
    tools: ToolList,
    max_chars: usize,
    keep_chars: usize,
    keep_last: usize,
    #[serde(skip)]
    notes: PositionNotes<ToolUseQueue>,
}

/// The tool uses that count: the entry, and which of its tool uses. The block is looked up when it
/// is needed: other blocks of the message may be taken away.
#[derive(Debug, Default)]
struct ToolUseQueue {
    /// Those that are kept as they are.
    newest: VecDeque<(usize, usize)>,
    /// Older ones that may have to be shortened: new ones, and what a guard refused.
    old: Vec<(usize, usize)>,
}

impl Stage for ClearInputs {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        let (uses, new) = self.notes.with_new(context);
        for at in new {
            let tools = context.entries()[at].message.tool_uses().enumerate();
            let counted = tools.filter(|(_, (_, tool))| self.tools.allow(Some(tool)));
            uses.newest.extend(counted.map(|(index, _)| (at, index)));
        }
        let count = uses.newest.len().saturating_sub(self.keep_last);
        // Without anything new, what a guard refused would be refused again.
        if count == 0 {
            return Step::Done(Ok(Patch::default()));
        }
        uses.old.extend(uses.newest.drain(..count));
        let mut old = std::mem::take(&mut uses.old);
        let mut shorter = Vec::new();
        old.retain(|at| {
            let found = self.shortened(context, *at);
            shorter.extend(found.clone());
            found.is_some()
        });
        self.notes.up_to_date(context).old = old;
        let (cut, kept) = (shorter.len(), self.keep_last);
        let reason = format!("arguments of {cut} tool uses older than the last {kept}");
        let edits = Edit::blocks(context.entries(), shorter, CacheEffect::Breaks, &cx.counts);
        Step::Done(Ok(Patch::new(reason, edits)))
    }

    fn edge(&self, context: &Context) -> Option<usize> {
        self.notes.current(context)?.newest.front().map(|(entry, _)| *entry)
    }
}

/// How a text ends that was shortened.
const MARK: &str = " chars cut…";

impl ClearInputs {
    /// The tool use with its long texts shortened; `None` if there are none.
    fn shortened(
        &self,
        context: &Context,
        (entry, index): (usize, usize),
    ) -> Option<(BlockAt, Arc<str>)> {
        let message = &context.entries()[entry].message;
        let (block, tool) = message.tool_uses().nth(index)?;
        let old = tool.input.as_str();
        // No text in it has more characters than its JSON has bytes.
        if old.len() <= self.max_chars {
            return None;
        }
        let mut input = tool.input.value();
        if !self.shorten_texts(&mut input) {
            return None;
        }
        let new = input.to_string();
        (new.len() < old.len()).then(|| (BlockAt { entry, block }, new.into()))
    }

    /// Shortens every long text in a value; whether there was one.
    fn shorten_texts(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => {
                let chars = text.chars().count();
                if chars <= self.max_chars || text.ends_with(MARK) {
                    return false;
                }
                let kept: String = text.chars().take(self.keep_chars).collect();
                let cut = chars - self.keep_chars.min(chars);
                *text = format!("{kept}…{cut}{MARK}");
                true
            }
            Value::Array(values) => {
                values.iter_mut().fold(false, |any, value| self.shorten_texts(value) | any)
            }
            Value::Object(fields) => {
                fields.values_mut().fold(false, |any, value| self.shorten_texts(value) | any)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::session::{ContentBlock, Message, Role, Thinking};
    use crate::strategy::stage::trial::{Trial, answers, asks, typed};

    fn uses(trial: &Trial) -> Vec<&str> {
        let entries = trial.context.entries().iter();
        entries
            .flat_map(|entry| entry.message.tool_uses())
            .map(|(_, tool)| tool.input.as_str())
            .collect()
    }

    #[test]
    fn old_long_texts_are_shortened_wherever_they_stand() {
        let long = "x".repeat(50);
        let cut = "xxxxx…45 chars cut…";
        for (knobs, input, expected) in [
            (
                "",
                format!(r#"{{"path":"a","content":"{long}"}}"#),
                format!(r#"{{"path":"a","content":"{cut}"}}"#),
            ),
            (
                "",
                format!(r#"{{"edits":[{{"new":"{long}"}},7]}}"#),
                format!(r#"{{"edits":[{{"new":"{cut}"}},7]}}"#),
            ),
            ("", format!(r#""{long}""#), format!(r#""{cut}""#)),
            ("keep_chars = 0", format!(r#""{long}""#), r#""…50 chars cut…""#.to_owned()),
            ("max_chars = 50", format!(r#""{long}""#), format!(r#""{long}""#)),
            ("max_chars = 49", format!(r#""{long}""#), format!(r#""{cut}""#)),
            // Many short texts are not one long one.
            (
                "",
                format!(r#"{{"a":"{0}","b":"{0}","c":"{0}"}}"#, "y".repeat(20)),
                format!(r#"{{"a":"{0}","b":"{0}","c":"{0}"}}"#, "y".repeat(20)),
            ),
            ("tools = ['class:edit']", format!(r#""{long}""#), format!(r#""{long}""#)),
            ("tools = ['Write']", format!(r#""{long}""#), format!(r#""{cut}""#)),
            // The cut would not be shorter.
            ("keep_chars = 40", format!(r#""{long}""#), format!(r#""{long}""#)),
        ] {
            let mut all = vec!["max_chars = 30", "keep_chars = 5", "keep_last = 0"];
            all.retain(|knob| !knobs.starts_with(&knob[..8]));
            all.push(knobs);
            let mut trial = Trial::new("clear_inputs", &all.join("\n"));
            trial.append([asks(&[("a", "Write", &input)]), answers(&[("a", "ok")])]);
            trial.fire().unwrap();
            assert_eq!(uses(&trial), [expected], "{knobs}");
            assert_eq!(trial.fire().unwrap(), None, "{knobs}");
        }
    }

    #[test]
    fn the_newest_stay_and_thinking_may_go_in_between() {
        let input = format!("\"{}\"", "x".repeat(50));
        let mut trial = Trial::new("clear_inputs", "max_chars = 30\nkeep_chars = 1\nkeep_last = 2");
        let thought =
            ContentBlock::Thinking(Box::new(Thinking { text: "hm".into(), signature: None }));
        let thinks = |uses: Message| {
            let content = std::iter::once(thought.clone()).chain(uses.content().to_vec());
            Message::new(Role::Assistant, content.collect())
        };
        trial
            .append([typed("go"), thinks(asks(&[("a", "Write", &input), ("b", "Write", &input)]))]);
        trial.append([answers(&[("a", "ok"), ("b", "ok")])]);
        assert_eq!(trial.fire().unwrap(), None);
        // Another stage takes the thinking away: blocks move up.
        let entry = &trial.context.entries()[1];
        let with = vec![crate::context::Entry::new(
            entry.origin.clone(),
            std::sync::Arc::new(asks(&[("a", "Write", &input), ("b", "Write", &input)])),
            &trial.cx.counts,
        )];
        let edit = crate::context::Edit::replacing(1..2, with);
        trial.context.apply(vec![edit]).unwrap();
        assert_eq!(trial.context.replacements(), 0);
        trial.append([asks(&[("c", "Write", &input)]), answers(&[("c", "ok")])]);
        assert_eq!(
            trial.fire().unwrap().unwrap(),
            "arguments of 1 tool uses older than the last 2"
        );
        let short = "\"x…49 chars cut…\"";
        assert_eq!(uses(&trial), [short, &input, &input]);
    }

    #[test]
    fn what_a_guard_refused_comes_back_with_the_next_tool_use() {
        let input = format!("\"{}\"", "x".repeat(50));
        let mut trial = Trial::new("clear_inputs", "max_chars = 30\nkeep_chars = 1\nkeep_last = 0");
        trial.append([asks(&[("a", "Write", &input)]), answers(&[("a", "ok")])]);
        assert_eq!((trial.refuse(), trial.refuse()), (1, 0));
        trial.append([asks(&[("b", "Write", &input)]), answers(&[("b", "ok")])]);
        assert_eq!((trial.refuse(), trial.planned().len()), (2, 0));
        trial.append([asks(&[("c", "Write", "1")]), answers(&[("c", "ok")])]);
        trial.fire().unwrap();
        assert_eq!(uses(&trial), ["\"x…49 chars cut…\"", "\"x…49 chars cut…\"", "1"]);
    }
}
