//! Replays the recorded product's own compactions, where they happened, with their recorded
//! results.
//!
//! The recording says what stood in the context afterwards; it is put there, piece by piece. A
//! summary was written by a model then: that call is billed as the whole prompt in and the
//! summary out, and no model is asked now.

use super::prelude::*;
use crate::model::{Purpose, Task};
use crate::session::{CompactedTo, Recorded, RecordedCompaction};

#[derive(Debug, Deserialize)]
pub(super) struct RecordedReplay {
    /// The session's messages as they came in: a later compaction may bring them back.
    #[serde(skip)]
    seen: BTreeMap<usize, Entry>,
    /// The compaction that was put in place last.
    #[serde(skip)]
    done: Option<Arc<RecordedCompaction>>,
}

impl Stage for RecordedReplay {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        let Some(recorded) = &cx.recorded else {
            return Step::Done(Ok(Patch::default()));
        };
        let done = self.done.as_ref();
        if done.is_some_and(|done| Arc::ptr_eq(done, recorded)) {
            return Step::Done(Ok(Patch::default()));
        }
        let CompactedTo::Replaced(pieces) = &recorded.after else {
            let why = match &recorded.after {
                CompactedTo::Encrypted => "the product's own compaction is encrypted",
                _ => "the recording does not say what the product's own compaction left",
            };
            return Step::Done(Err(StageError::NotMeasurable { why }));
        };
        let entries = context.entries();
        // The messages that a resumed session was loaded with were never appended.
        for entry in entries {
            if let Origin::Verbatim(at) = entry.origin {
                self.seen.entry(at).or_insert_with(|| entry.clone());
            }
        }
        let earlier = entries.iter().take_while(|one| one.origin.message() < Some(recorded.at));
        let end = earlier.count();
        let (with, written) = self.pieces(pieces, &entries[..end], cx);
        self.done = Some(recorded.clone());
        // A recording that begins with a summary holds nothing of the messages that it represents.
        let mut pairs = entries.iter().zip(&with);
        if with.len() == end && pairs.all(|(old, new)| old.message == new.message) {
            return Step::Done(Ok(Patch::default()));
        }
        let patch = Patch::replacing(reason(recorded, end, with.len()), 0..end, with);
        // One that was made before the session was resumed was paid for there.
        let own = recorded.at > cx.loaded || cx.loaded == 0;
        match request(&written, &entries[..end], cx).filter(|_| own) {
            None => Step::Done(Ok(patch)),
            Some(request) => Step::ask(request, move |answer| {
                Step::Done(answer.map(|_| patch).map_err(StageError::Call))
            }),
        }
    }

    fn take_note_of(&mut self, entry: &Entry) {
        if let Origin::Verbatim(at) = entry.origin {
            self.seen.insert(at, entry.clone());
        }
    }

    fn replays_recording(&self) -> bool {
        true
    }
}

impl RecordedReplay {
    /// The entries that replace `before`, and the summaries among them.
    ///
    /// The first entry that the product wrote represents everything that did not stay; its other
    /// entries represent nothing.
    fn pieces<'p>(
        &self,
        pieces: &'p [Recorded],
        before: &[Entry],
        cx: &Situation,
    ) -> (Vec<Entry>, Vec<&'p Arc<Message>>) {
        let stays: BTreeSet<usize> = pieces
            .iter()
            .flat_map(|piece| match piece {
                Recorded::Kept(range) => range.clone(),
                Recorded::Edited { message, .. } => *message..*message + 1,
                Recorded::Written(_) => 0..0,
            })
            .collect();
        let gone = before
            .iter()
            .filter(|entry| entry.origin.message().is_none_or(|at| !stays.contains(&at)));
        let mut unclaimed = Some(Origin::derived_from(gone));
        let (mut with, mut written): (Vec<Entry>, Vec<_>) = (Vec::new(), Vec::new());
        for piece in pieces {
            match piece {
                Recorded::Kept(range) => {
                    with.extend(range.clone().filter_map(|at| self.seen.get(&at).cloned()));
                }
                // Blocks of one message that were edited one by one are one entry.
                Recorded::Edited { message, block, text } => match with.last_mut() {
                    Some(last) if last.origin.message() == Some(*message) => {
                        *last = last.with_block_text(*block, text, &cx.counts);
                    }
                    _ => {
                        let seen = self.seen.get(message);
                        with.extend(seen.map(|one| one.with_block_text(*block, text, &cx.counts)));
                    }
                },
                Recorded::Written(message) => {
                    let origin = unclaimed.take().unwrap_or(Origin::Authored);
                    with.push(Entry::new(origin, message.clone(), &cx.counts));
                    if message.has_tag(Tag::CompactSummary) {
                        written.push(message);
                    }
                }
            }
        }
        (with, written)
    }
}

fn reason(recorded: &RecordedCompaction, messages: usize, left: usize) -> String {
    let trigger = recorded.trigger.as_deref().unwrap_or("recorded");
    let trigger: String = trigger.chars().filter(|c| !c.is_control()).take(40).collect();
    format!("{trigger}: {left} messages in place of {messages}")
}

/// The call by which the product got its summary, if it wrote one.
fn request(summaries: &[&Arc<Message>], before: &[Entry], cx: &Situation) -> Option<Request> {
    if summaries.is_empty() {
        return None;
    }
    let texts: Vec<&str> =
        summaries.iter().flat_map(|message| message.texts()).map(|(_, text)| &**text).collect();
    let asked = Arc::new(Message::text(Role::User, "Summarise the conversation."));
    let messages = before.iter().map(|entry| entry.message.clone()).chain([asked]).collect();
    Some(Request {
        purpose: Purpose::Compaction,
        task: Task::Recorded { answer: texts.join("\n").into() },
        system: cx.system.clone(),
        tools: Some(cx.tools.clone()),
        messages,
        max_output: Tokens(u64::MAX),
        model: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::stage::trial::{Trial, answers, asks, said, typed};

    fn summary(text: &str) -> Recorded {
        let message = Message::text(Role::User, text).with_tags([Tag::CompactSummary]);
        Recorded::Written(Arc::new(message))
    }

    fn due(trial: &mut Trial, at: usize, after: CompactedTo) {
        trial.cx.recorded = Some(Arc::new(RecordedCompaction {
            at,
            trigger: Some("auto".into()),
            pre_tokens: None,
            usage: None,
            after,
        }));
    }

    fn at_work() -> Trial {
        let mut trial = Trial::new("recorded", "");
        trial.append([typed("zero"), asks(&[("a", "Read", "{}")])]);
        trial.append([answers(&[("a", "a long result")]), said("three")]);
        trial.append([typed("four")]);
        trial
    }

    #[test]
    fn what_the_product_left_stands_in_the_context() {
        let mut trial = at_work();
        let note = Recorded::Written(Arc::new(Message::text(Role::User, "a note")));
        let after = vec![summary("SUM"), note, Recorded::Kept(3..4)];
        due(&mut trial, 4, CompactedTo::Replaced(after));
        let reason = trial.fire().unwrap().unwrap();
        assert_eq!(reason, "auto: 3 messages in place of 4");
        assert_eq!(trial.texts(), ["SUM", "a note", "three", "four"]);
        let origins: Vec<_> = trial.context.entries().iter().map(|e| &e.origin).collect();
        let gone = std::iter::once(0..3).collect();
        assert_eq!(origins[0], &Origin::Derived(gone));
        assert_eq!(origins[1], &Origin::Authored);
        assert_eq!(origins[2..], [&Origin::Verbatim(3), &Origin::Verbatim(4)]);
        // A later one brings back what the first took away.
        due(&mut trial, 5, CompactedTo::Replaced(vec![Recorded::Kept(0..5)]));
        trial.fire().unwrap();
        assert_eq!(trial.texts()[0], "zero");
        assert_eq!(trial.context.entries().len(), 5);
    }

    #[test]
    fn pruned_results_are_edited_and_cost_no_call() {
        let mut trial = at_work();
        let cleared = Recorded::Edited { message: 2, block: 0, text: "[cleared]".into() };
        let after = vec![Recorded::Kept(0..2), cleared, Recorded::Kept(3..5)];
        due(&mut trial, 5, CompactedTo::Replaced(after));
        trial.fire().unwrap();
        assert_eq!(trial.texts()[2], "[cleared]");
        assert!(trial.asked().is_empty());
    }

    #[test]
    fn the_call_that_wrote_the_summary_is_on_the_bill() {
        let mut trial = at_work();
        due(&mut trial, 4, CompactedTo::Replaced(vec![summary("SUM")]));
        trial.fire().unwrap();
        let [request] = trial.asked() else { panic!("one request") };
        assert_eq!(request.messages.len(), 5);
        let answer = Arc::from("SUM");
        assert_eq!(request.task, Task::Recorded { answer });
    }

    #[test]
    fn what_nobody_can_read_is_not_measurable() {
        for after in [CompactedTo::Encrypted, CompactedTo::Missing] {
            let mut trial = at_work();
            due(&mut trial, 4, after);
            let error = trial.fire().unwrap_err();
            assert!(matches!(error, StageError::NotMeasurable { .. }), "{error}");
        }
        let mut trial = at_work();
        assert_eq!(trial.fire().unwrap(), None);
    }

    #[test]
    fn what_stands_there_already_is_no_compaction() {
        let mut trial = Trial::new("recorded", "");
        let first = Message::text(Role::User, "SUM").with_tags([Tag::CompactSummary]);
        trial.append([first, said("on")]);
        due(&mut trial, 1, CompactedTo::Replaced(vec![summary("SUM")]));
        assert_eq!(trial.fire().unwrap(), None);
        assert!(trial.asked().is_empty());
    }
}
