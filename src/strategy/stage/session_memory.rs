//! Notes are kept as the session runs, and when room is needed they are the summary.
//!
//! The notes are written beside the agent's work, each time so many tokens came in; compaction
//! then asks no model. What the notes do not cover is kept, and as much before it as the minimums
//! ask for. Rules and constants are those of Claude Code's session memory; the two that say when
//! notes are written are not published, and are ours.

use std::sync::Arc;

use crate::context::{Context, Edit, Entry, Origin, Patch};
use crate::model::{Purpose, Request, Task};
use crate::session::{ContentBlock, Message, Role, Tag, wire};
use crate::settings::SettingError;
use crate::step::Step;
use crate::strategy::cut::Cut;
use crate::strategy::knob::{Default, Knob, KnobKind, KnobReader};
use crate::strategy::stage::summarize::place::boundary;
use crate::strategy::trigger::Trigger;
use crate::strategy::{Situation, Stage, StageError, StageKind, written};
use crate::tokens::Size;
use crate::units::Tokens;

/// `kind = "session_memory"`.
pub const KIND: StageKind = StageKind {
    name: "session_memory",
    description: "a model keeps notes as the session runs; at compaction they are the summary, \
                  and no model is asked",
    knobs: KNOBS,
    breaks: &[],
    build,
};

const KNOBS: &[Knob] = &[
    Knob {
        name: "min_tokens",
        kind: KnobKind::Whole(1, u64::MAX),
        default: Default::Whole(10_000),
        doc: "the messages that are kept hold so many tokens at least, if there are so many",
    },
    Knob {
        name: "min_text_messages",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(5),
        doc: "and so many messages with text",
    },
    Knob {
        name: "max_tokens",
        kind: KnobKind::Whole(1, u64::MAX),
        default: Default::Whole(40_000),
        doc: "messages that the notes cover are not kept beyond so many tokens, the one that \
              reaches it included; what the notes do not cover always is",
    },
    Knob {
        name: "init_tokens",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(10_000),
        doc: "the first notes are written after so many tokens of messages",
    },
    Knob {
        name: "update_every_tokens",
        kind: KnobKind::Whole(1, u64::MAX),
        default: Default::Whole(5_000),
        doc: "they are written anew each time so many tokens of messages came in",
    },
    Knob {
        name: "reserve_tokens",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(13_000),
        doc: "where the prompt would still be as large as the effective window less this, nothing \
              is done: a later stage compacts",
    },
    Knob {
        name: "max_output_tokens",
        kind: KnobKind::Whole(1, u64::MAX),
        default: Default::Whole(12_000),
        doc: "the notes are cut off after so many tokens",
    },
    Knob {
        name: "boundary",
        kind: KnobKind::Flag,
        default: Default::Flag(false),
        doc: "a message in front of the notes says what made the stage fire, how large the prompt \
              was, how many messages the notes stand for, and which message came last before it",
    },
    Knob {
        name: "prefix",
        kind: KnobKind::Text,
        default: Default::Text("Notes on the conversation so far:\n\n"),
        doc: "stands before the notes in their message",
    },
];

const INSTRUCTIONS: &str = include_str!("../template/notes.md");

const SECTIONS: [&str; 6] = [
    "Task",
    "State of the work",
    "Files",
    "Errors and corrections",
    "Learned",
    "Log",
];

fn build(knobs: &mut KnobReader<'_>) -> Result<Box<dyn Stage>, SettingError> {
    Ok(Box::new(SessionMemory {
        min_tokens: knobs.tokens("min_tokens")?,
        min_text_messages: knobs.count("min_text_messages")?,
        max_tokens: knobs.tokens("max_tokens")?,
        init_tokens: knobs.tokens("init_tokens")?,
        update_every: knobs.tokens("update_every_tokens")?,
        reserve: knobs.tokens("reserve_tokens")?,
        max_output: knobs.tokens("max_output_tokens")?,
        prefix: knobs.text("prefix")?,
        boundary: knobs.flag("boundary")?.then(|| knobs.when.clone()),
        notes: None,
        appended: Tokens::ZERO,
        planned: None,
    }))
}

#[derive(Debug)]
struct SessionMemory {
    min_tokens: Tokens,
    min_text_messages: usize,
    max_tokens: Tokens,
    init_tokens: Tokens,
    update_every: Tokens,
    reserve: Tokens,
    max_output: Tokens,
    prefix: String,
    /// A message marks where the notes begin; the trigger tells it what to say.
    boundary: Option<Trigger>,
    notes: Option<Notes>,
    /// Tokens of messages that came in since the notes were written.
    appended: Tokens,
    /// The message that is to stand for what the notes cover: once it is in the context, the
    /// notes have been used.
    planned: Option<Arc<Message>>,
}

#[derive(Debug)]
struct Notes {
    text: Arc<str>,
    covers: Covers,
}

/// What the notes are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Covers {
    /// The session's messages up to this one.
    UpTo(usize),
    /// Nobody knows, as in a session that was resumed: all of them, it is taken.
    Unknown,
}

impl Stage for SessionMemory {
    fn plan<'a>(
        &'a mut self,
        context: &Context,
        cx: &'a Situation,
    ) -> Step<'a, Result<Patch, StageError>> {
        self.take_over(cx);
        self.take_note_of_use(context);
        let Some(notes) = &self.notes else {
            return Step::Done(Ok(Patch::default()));
        };
        let entries = context.entries();
        let start = self.kept_from(entries, notes.covers);
        let (replaced, kept) = entries.split_at(start);
        if replaced.is_empty() || replaced.iter().all(is_boundary) {
            return Step::Done(Ok(Patch::default()));
        }
        let text = format!("{}{}", self.prefix, notes.text);
        let message = Message::text(Role::User, text).with_tags([Tag::CompactSummary]);
        let message = Arc::new(message);
        let origin = Origin::derived_from(replaced);
        let entry = Entry::new(origin, message.clone(), &cx.counts);
        let size_of_kept: Size = kept.iter().map(|entry| entry.size).sum();
        let mut with: Vec<Entry> = self
            .boundary
            .iter()
            .map(|trigger| boundary(trigger, context, replaced, cx))
            .collect();
        with.push(entry);
        let size_of_notes: Size = with.iter().map(|entry| entry.size).sum();
        let after = cx.scale.prompt(cx.fixed + size_of_notes + size_of_kept);
        // Not worth it, or not enough: whatever comes next compacts instead.
        if after >= cx.window.effective() - self.reserve || after >= cx.prompt(context) {
            return Step::Done(Ok(Patch::default()));
        }
        self.planned = Some(message);
        Step::Done(Ok(Patch {
            reason: format!("notes in place of {start} messages"),
            edits: vec![Edit::Replace {
                entries: 0..start,
                with,
            }],
            saved: Vec::new(),
        }))
    }

    fn on_append(&mut self, entry: &Entry, _: &Situation) -> Result<Patch, StageError> {
        self.appended += entry.size.tokens;
        Ok(Patch::default())
    }

    fn after_call<'a>(
        &'a mut self,
        context: &Context,
        cx: &'a Situation,
    ) -> Step<'a, Result<Patch, StageError>> {
        self.take_over(cx);
        self.take_note_of_use(context);
        let is_due = match self.notes {
            None => context.size().tokens >= self.init_tokens,
            Some(_) => self.appended >= self.update_every,
        };
        let entries = context.entries();
        if !is_due {
            return Step::Done(Ok(Patch::default()));
        }
        // The newest entry that stands for a message is the response, as a rule.
        let Some(newest) = entries.iter().rev().find_map(newest_message) else {
            return Step::Done(Ok(Patch::default()));
        };
        let request = self.request(entries);
        Step::ask(request, move |answer| {
            Step::Done(written::text_of(answer).map(|text| {
                let covers = Covers::UpTo(newest);
                self.notes = Some(Notes { text, covers });
                self.appended = Tokens::ZERO;
                Patch::default()
            }))
        })
    }
}

impl SessionMemory {
    /// Notes of the session that this one goes on from: what they cover is not known.
    fn take_over(&mut self, cx: &Situation) {
        if self.notes.is_none() {
            self.notes = cx.notes.clone().map(|text| Notes {
                text,
                covers: Covers::Unknown,
            });
        }
    }

    /// Once notes have stood in for messages, it is not known any more what they cover: Claude
    /// Code forgets the boundary at each compaction, until the notes are written again.
    fn take_note_of_use(&mut self, context: &Context) {
        // Behind a boundary, if it has one.
        let is_used = |planned: &Arc<Message>| {
            let mut first = context.entries().iter().take(2);
            first.any(|entry| Arc::ptr_eq(&entry.message, planned))
        };
        if self.planned.take_if(|planned| is_used(planned)).is_some()
            && let Some(notes) = &mut self.notes
        {
            notes.covers = Covers::Unknown;
        }
    }

    /// Where what is kept begins.
    fn kept_from(&self, entries: &[Entry], covers: Covers) -> usize {
        // Nothing is kept of what an earlier summary stands for, nor the summary itself.
        let floor = entries.iter().rposition(is_boundary).map_or(0, |at| at + 1);
        let mut start = match covers {
            Covers::UpTo(last) => not_covered_from(entries, last),
            Covers::Unknown => entries.len(),
        }
        .max(floor);
        let (mut tokens, mut texts) = (Tokens::ZERO, 0);
        for entry in &entries[start..] {
            tokens += entry.size.tokens;
            texts += usize::from(has_text(entry));
        }
        while start > floor
            && tokens < self.max_tokens
            && (tokens < self.min_tokens || texts < self.min_text_messages)
        {
            start -= 1;
            tokens += entries[start].size.tokens;
            texts += usize::from(has_text(&entries[start]));
        }
        closed(entries, start)
    }

    /// The notes so far, and what they do not cover.
    fn request(&self, entries: &[Entry]) -> Request {
        let mut text = INSTRUCTIONS.trim_end().to_owned();
        let start = match &self.notes {
            None => 0,
            Some(Notes {
                text: notes,
                covers,
            }) => {
                text.push_str("\n\n<notes>\n");
                text.push_str(notes);
                text.push_str("\n</notes>");
                match covers {
                    Covers::UpTo(last) => not_covered_from(entries, *last),
                    Covers::Unknown => entries.iter().rposition(is_boundary).map_or(0, |at| at + 1),
                }
            }
        };
        let new = entries[start..].iter();
        let lines: Vec<String> = new
            .map(|entry| wire::anthropic_json(&entry.message))
            .collect();
        text.push_str("\n\n[");
        text.push_str(&lines.join(", "));
        text.push(']');
        Request {
            purpose: Purpose::Background,
            task: Task::Summarise {
                sections: SECTIONS.map(str::to_owned).to_vec(),
            },
            system: None,
            tools: None,
            messages: vec![Arc::new(Message::text(Role::User, text))],
            max_output: self.max_output,
            model: None,
        }
    }
}

/// The newest of the session's messages that the entry stands for.
fn newest_message(entry: &Entry) -> Option<usize> {
    match &entry.origin {
        Origin::Verbatim(at) | Origin::Edited { message: at, .. } => Some(*at),
        Origin::Derived(ranges) => ranges.last().map(|range| range.end - 1),
        // What was put back stands where it was put, not where it was said.
        Origin::Restored(_) | Origin::Authored => None,
    }
}

/// The first entry behind all those that stand for messages up to `last`.
fn not_covered_from(entries: &[Entry], last: usize) -> usize {
    let is_covered = |entry: &Entry| newest_message(entry).is_some_and(|newest| newest <= last);
    entries.iter().rposition(is_covered).map_or(0, |at| at + 1)
}

fn is_boundary(entry: &Entry) -> bool {
    let message = &entry.message;
    message.has_tag(Tag::CompactSummary) || message.has_tag(Tag::CompactBoundary)
}

fn has_text(entry: &Entry) -> bool {
    let content = entry.message.content();
    let mut content = content.iter();
    content.any(|block| matches!(block, ContentBlock::Text(text) if !text.trim().is_empty()))
}

/// The nearest place at `start` or before it that separates no result from its call and no two
/// parts of one response, not even where results came between them.
fn closed(entries: &[Entry], start: usize) -> usize {
    let mut start = Cut::Batch.snap_back(entries, start);
    loop {
        let (front, kept) = entries.split_at(start);
        let calls: Vec<_> = kept
            .iter()
            .filter_map(|entry| entry.message.api_call.as_ref())
            .collect();
        let is_part = |entry: &Entry| {
            let call = entry.message.api_call.as_ref();
            call.is_some_and(|call| calls.contains(&call))
        };
        match front.iter().position(is_part) {
            Some(part) => start = Cut::Batch.snap_back(entries, part),
            None => return start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CallFailure;
    use crate::model::scripted::response;
    use crate::strategy::stage::trial::{Trial, answers, asks, said, typed};
    use crate::units::ApiCallId;

    /// A text of a hundred tokens.
    fn text(name: usize) -> String {
        format!("message {name} {}", "x".repeat(400))[..400].to_owned()
    }

    /// So many messages of a hundred tokens, the user's first.
    fn talk(range: std::ops::Range<usize>) -> impl Iterator<Item = Message> {
        range.map(|at| match at % 2 {
            0 => typed(&text(at)),
            _ => said(&text(at)),
        })
    }

    /// The session's messages that the context still holds, behind the notes.
    fn kept(trial: &Trial) -> Vec<usize> {
        let entries = trial.context.entries().iter();
        entries
            .filter(|entry| !is_boundary(entry))
            .filter_map(newest_message)
            .collect()
    }

    #[test]
    fn notes_are_written_as_messages_come_in() {
        let mut trial = Trial::new(&KIND, "init_tokens = 300\nupdate_every_tokens = 201");
        trial.will_answer(Ok(response("FIRST")));
        let mut asked = Vec::new();
        for at in 0..5 {
            trial.append(talk(2 * at..2 * at + 2));
            asked.push(trial.asked().len());
        }
        assert_eq!(asked, [0, 1, 1, 2, 2]);
        let said = |request: usize, part: &str| {
            let request = &trial.asked()[request];
            assert_eq!(request.purpose, Purpose::Background);
            request.messages[0].model_text()[0].contains(part)
        };
        for at in 0..4 {
            assert!(said(0, &text(at)), "{at}");
            assert!(!said(1, &text(at)), "{at}");
        }
        assert!(!said(0, "<notes>"));
        assert!(said(1, "<notes>\nFIRST\n</notes>"));
        assert!(said(1, &text(4)) && said(1, &text(7)));
    }

    /// Notes that cover messages 0 to 5, and then 6, 7 and 8.
    fn remembered(knobs: &str) -> Trial {
        let all = "init_tokens = 600\nupdate_every_tokens = 100_000\nreserve_tokens = 0";
        let mut trial = Trial::new(&KIND, &format!("{all}\n{knobs}"));
        trial.append(talk(0..9));
        assert_eq!(trial.asked().len(), 1);
        trial
    }

    #[test]
    fn what_the_notes_do_not_cover_is_kept_and_more_up_to_the_minimums() {
        for (knobs, from) in [
            ("min_tokens = 1\nmin_text_messages = 0", 6),
            ("min_tokens = 300\nmin_text_messages = 3", 6),
            ("min_tokens = 301\nmin_text_messages = 3", 5),
            ("min_tokens = 1\nmin_text_messages = 5", 4),
            // Both minimums must hold.
            ("min_tokens = 700\nmin_text_messages = 4", 2),
            // Unless the maximum is reached; the message that reaches it is kept.
            ("min_tokens = 700\nmax_tokens = 401", 4),
            ("min_tokens = 700\nmax_tokens = 300", 6),
            ("min_tokens = 700\nmax_tokens = 1", 6),
        ] {
            let mut trial = remembered(knobs);
            let reason = trial.fire().unwrap();
            assert_eq!(
                reason.unwrap(),
                format!("notes in place of {from} messages"),
                "{knobs}"
            );
            assert_eq!(kept(&trial), (from..9).collect::<Vec<_>>(), "{knobs}");
            let notes = &trial.context.entries()[0];
            assert_eq!(newest_message(notes), Some(from - 1));
            assert_eq!(trial.texts()[0], "Notes on the conversation so far:\n\nS");
        }
        // No call was made for it.
        let mut trial = remembered("min_tokens = 1");
        trial.fire().unwrap();
        assert_eq!(trial.asked().len(), 1);
    }

    #[test]
    fn where_nothing_would_be_gained_a_later_stage_is_left_to_do_it() {
        let enough = "min_tokens = 1\nmin_text_messages = 0";
        for (knobs, window, is_done) in [
            (enough, 200_000, true),
            // Three messages and nine tokens of notes.
            (enough, 309, false),
            (enough, 310, true),
            ("min_tokens = 100_000", 200_000, false),
        ] {
            let mut trial = remembered(knobs).within(window);
            assert_eq!(trial.fire().unwrap().is_some(), is_done, "{knobs} {window}");
        }
        let reserved = format!("{enough}\ninit_tokens = 0\nreserve_tokens = 13_000");
        for (window, is_done) in [(13_109, false), (13_110, true)] {
            let mut trial = Trial::new(&KIND, &reserved).within(window);
            trial.append(talk(0..3));
            assert_eq!(trial.fire().unwrap().is_some(), is_done, "{window}");
        }
        // No notes yet.
        let mut trial = Trial::new(&KIND, enough);
        trial.append(talk(0..9));
        assert_eq!(trial.fire().unwrap(), None);
    }

    #[test]
    fn once_they_were_used_the_notes_are_taken_to_cover_everything() {
        let mut trial = remembered("min_tokens = 150\nmin_text_messages = 1");
        trial.fire().unwrap();
        assert_eq!(kept(&trial), [6, 7, 8]);
        assert_eq!(
            trial.fire().unwrap().unwrap(),
            "notes in place of 2 messages"
        );
        assert_eq!(kept(&trial), [7, 8]);
        // At rest: the notes would stand for themselves.
        assert_eq!(trial.fire().unwrap(), None);
        trial.append(talk(9..11));
        trial.fire().unwrap();
        assert_eq!(kept(&trial), [9, 10]);
        let notes = &trial.context.entries()[0];
        assert_eq!(newest_message(notes), Some(8));
    }

    #[test]
    fn notes_of_an_earlier_session_are_taken_to_cover_everything() {
        let knobs = "min_tokens = 250\nmin_text_messages = 1\nupdate_every_tokens = 100";
        let mut trial = Trial::new(&KIND, knobs);
        trial.cx.notes = Some("EARLIER".into());
        trial.append(talk(0..9));
        // They stand in the next request for notes too.
        assert!(trial.asked()[0].messages[0].model_text()[0].contains("<notes>\nEARLIER\n"));
        let mut trial = Trial::new(&KIND, &knobs.replace("= 100", "= 100_000"));
        trial.cx.notes = Some("EARLIER".into());
        trial.append(talk(0..9));
        trial.fire().unwrap();
        assert!(trial.asked().is_empty());
        assert_eq!(kept(&trial), [6, 7, 8]);
        assert!(trial.texts()[0].ends_with("EARLIER"));
    }

    #[test]
    fn what_belongs_together_is_kept_together() {
        let small = "min_tokens = 1\nmin_text_messages = 0\ninit_tokens = 300\n\
                     update_every_tokens = 100_000";
        // The notes are written when the call has been made, and not been answered.
        let mut trial = Trial::new(&KIND, small);
        trial.append(talk(0..2));
        trial.append([typed(&text(2)), asks(&[("a", "Read", "{}")])]);
        trial.append([answers(&[("a", "result")])]);
        trial.fire().unwrap();
        assert_eq!(kept(&trial), [3, 4]);
        // Two parts of one response, with a result between them.
        let part = |id: &str| {
            let mut message = asks(&[(id, "Read", "{}")]);
            message.api_call = Some(ApiCallId("call".into()));
            message
        };
        let mut trial = Trial::new(&KIND, &small.replace("300", "400"));
        trial.append(talk(0..2));
        trial.append([
            typed(&text(2)),
            part("a"),
            answers(&[("a", &text(4))]),
            part("b"),
        ]);
        trial.append([answers(&[("b", "result")])]);
        trial.fire().unwrap();
        assert_eq!(kept(&trial), [3, 4, 5, 6]);
    }

    #[test]
    fn notes_that_could_not_be_written_leave_the_old_ones() {
        let knobs =
            "init_tokens = 1\nupdate_every_tokens = 1\nmin_tokens = 1\nmin_text_messages = 0";
        let mut trial = Trial::new(&KIND, knobs);
        for answer in [
            Ok(response("OLD")),
            Err(CallFailure::Timeout),
            Ok(response("  ")),
        ] {
            trial.will_answer(answer);
        }
        trial.append(talk(0..6));
        assert_eq!(
            trial.failures,
            [
                StageError::Call(CallFailure::Timeout),
                StageError::EmptySummary
            ]
        );
        trial.append(talk(6..7));
        trial.fire().unwrap();
        assert_eq!(trial.texts()[0], "Notes on the conversation so far:\n\nOLD");
        assert_eq!(kept(&trial), [2, 3, 4, 5, 6]);
    }
}
