//! Old reasoning is dropped: the model has long acted on it.

use super::prelude::*;

#[derive(Debug, Deserialize)]
pub(super) struct ClearThinking {
    keep_turns: usize,
    /// Entries that hold thinking: those that keep it, and those whose time has come.
    #[serde(skip)]
    newest: PositionNotes<VecDeque<usize>>,
}

impl Stage for ClearThinking {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        let entries = context.entries();
        let (newest, new) = self.newest.with_new(context);
        let any_new = !new.is_empty();
        newest.extend(new.filter(|at| thinks(&entries[*at])));
        // Entries that were dropped for good are forgotten. Entries that a guard refused stay,
        // until there are new ones.
        while newest.front().is_some_and(|at| !thinks(&entries[*at])) {
            newest.pop_front();
        }
        let old = if any_new { newest.len().saturating_sub(self.keep_turns) } else { 0 };
        let edits: Vec<Edit> = newest
            .iter()
            .take(old)
            .filter(|at| thinks(&entries[**at]))
            .map(|at| Edit::replacing(*at..at + 1, without_thinking(&entries[*at], cx)))
            .collect();
        let (gone, kept) = (edits.len(), self.keep_turns);
        let reason = format!("thinking of {gone} messages older than the last {kept}");
        Step::Done(Ok(Patch::new(reason, edits)))
    }

    fn edge(&self, context: &Context) -> Option<usize> {
        let mut newest = self.newest.current(context)?.iter().copied();
        newest.find(|at| context.entries().get(*at).is_some_and(thinks))
    }
}

fn thinks(entry: &Entry) -> bool {
    entry.message.content().iter().any(ContentBlock::is_thinking)
}

fn is_blank(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text(text) if text.trim().is_empty())
}

/// The message without its thinking; `None` if it held nothing else.
///
/// The provider refuses thinking that was changed, so that it cannot stay as an empty block. It
/// refuses blank texts too; where the message holds one, it goes with the thinking.
fn without_thinking(entry: &Entry, cx: &Situation) -> Option<Entry> {
    let message = &entry.message;
    let mut content = message.content().to_vec();
    content.retain(|block| !block.is_thinking() && !is_blank(block));
    if content.is_empty() {
        return None;
    }
    let mut left = message.with_content(content);
    left.details.usage = message.details.usage;
    let origin = Origin::derived_from([entry]);
    Some(Entry::new(origin, Arc::new(left), &cx.counts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Role, Thinking};
    use crate::strategy::stage::trial::{Trial, answers, asks, said, typed};

    fn thinks(message: &Message) -> Message {
        let thought = ContentBlock::Thinking(Box::new(Thinking {
            text: "a long thought".into(),
            signature: Some("signed".into()),
        }));
        let content = std::iter::once(thought).chain(message.content().iter().cloned());
        Message::new(Role::Assistant, content.collect())
    }

    fn trial(knobs: &str) -> Trial {
        let mut trial = Trial::new("clear_thinking", knobs);
        trial.append([
            typed("go"),
            thinks(&asks(&[("a", "Read", "1")])),
            answers(&[("a", "x")]),
            thinks(&said("\n")),
            thinks(&said("b")),
            said("c"),
            thinks(&said("d")),
        ]);
        trial
    }

    fn shown(trial: &Trial) -> String {
        let texts = trial.texts();
        let short: Vec<&str> = texts.iter().map(|text| &text[..1]).collect();
        short.concat()
    }

    #[test]
    fn only_the_newest_thoughts_stay() {
        for (knobs, left) in [
            ("", "gRxbcad"),
            ("keep_turns = 2", "gRxabcad"),
            ("keep_turns = 3", "gRxa\nabcad"),
            ("keep_turns = 4", "gaRxa\nabcad"),
        ] {
            let mut trial = trial(knobs);
            trial.fire().unwrap();
            assert_eq!(shown(&trial), left, "{knobs}");
            assert_eq!(trial.fire().unwrap(), None, "{knobs}");
        }
    }

    #[test]
    fn the_edge_is_the_oldest_thought() {
        let mut trial = trial("keep_turns = 3");
        assert_eq!(trial.edge(), None);
        trial.fire().unwrap();
        let oldest = trial.context.entries().iter();
        let thinks = |entry: &Entry| entry.message.content().iter().any(ContentBlock::is_thinking);
        assert_eq!(trial.edge(), oldest.clone().position(thinks));
        assert!(trial.edge().is_some());
    }

    #[test]
    fn pairs_stay_where_they_are_and_nothing_moves() {
        let mut trial = Trial::new("clear_thinking", "");
        trial.append([typed("go"), thinks(&asks(&[("a", "Read", "1")]))]);
        trial.append([answers(&[("a", "x")]), thinks(&said("b"))]);
        assert_eq!(trial.refuse(), 1);
        assert_eq!(trial.fire().unwrap(), None);
        trial.append([typed("on")]);
        assert_eq!(trial.fire().unwrap().unwrap(), "thinking of 1 messages older than the last 1");
        assert_eq!(shown(&trial), "gRxabo");
        assert_eq!(trial.context.replacements(), 0);
        let origin = &trial.context.entries()[1].origin;
        assert_eq!(*origin, Origin::Derived(std::iter::once(1..2).collect()));
    }
}
