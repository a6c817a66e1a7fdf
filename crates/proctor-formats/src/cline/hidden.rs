//! Which messages a summary or a marker hides, and since when.
//!
//! A summary that keeps nothing is written at its own place. One that keeps the newest messages
//! comes before them, a millisecond earlier than the first; the versions that do so keep three. A
//! marker comes before the half of the messages that stays, so that it was written after about as
//! many messages as it hides. Where the user was shown a compaction, its time says it exactly.

use std::ops::RangeInclusive;

use super::blocks_of;
use super::shown::{ShownCompactionTime, TaskRecords};
use crate::prelude::*;

/// The number of messages that a summary keeps if it comes before them.
const KEPT: usize = 3;

/// The marks of a message that hides others, or is hidden.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Marks {
    pub(super) role: Text,
    pub(super) ts: Option<f64>,
    pub(super) is_summary: Option<bool>,
    condense_id: Text,
    condense_parent: Text,
    is_truncation_marker: Option<bool>,
    truncation_id: Text,
    truncation_parent: Text,
}

/// The summaries and markers of a task, and what each hides.
#[derive(Default)]
pub(super) struct HiddenMessages {
    pub(super) marks: Vec<Marks>,
    /// Compactions, by the number of messages before they take effect.
    due: BTreeMap<usize, Vec<PendingCompaction>>,
    /// The names of the summaries and markers that took effect.
    done: BTreeSet<Arc<str>>,
    written: BTreeMap<usize, Arc<Message>>,
    /// The part of the list that is left out now.
    gone: Option<RangeInclusive<usize>>,
}

/// A compaction that has not taken effect yet.
enum PendingCompaction {
    /// The summary or marker at this place, and when the user was shown it.
    Written(usize, Option<ShownCompactionTime>),
    /// This part of the list is left out.
    OmittedRange(RangeInclusive<usize>),
}

/// The name of the message at this place of the list.
pub(super) fn name(at: usize) -> Arc<str> {
    format!("message {at}").into()
}

impl HiddenMessages {
    /// Looks through all messages of a task.
    pub(super) fn of(messages: &[&RawValue], shown: &TaskRecords) -> Self {
        let read = messages.iter().map(|raw| serde_json::from_str(raw.get()));
        let marks: Vec<Marks> = read.map(Result::unwrap_or_default).collect();
        let mut due: BTreeMap<usize, Vec<PendingCompaction>> = BTreeMap::new();
        for at in (0..marks.len()).filter(|at| marks[*at].is_written()) {
            let name = marks[at].name();
            let compacted = name.and_then(|name| shown.compactions.get(name)).copied();
            let exact = compacted.and_then(|compacted| said_before(&marks, at, compacted.time));
            let place = exact.unwrap_or_else(|| at + 1 + later(&marks, at));
            let after = due.entry(place.min(marks.len())).or_default();
            after.push(PendingCompaction::Written(at, compacted));
        }
        for range in &shown.left_out {
            let behind = range.index.map(|index| index + 1);
            let place = behind.or_else(|| said_before(&marks, 0, range.time));
            let after = due.entry(place.unwrap_or(marks.len()).min(marks.len())).or_default();
            // The last range that was shown at a place counts.
            after.retain(|due| matches!(due, PendingCompaction::Written(..)));
            after.push(PendingCompaction::OmittedRange(range.first..=range.last));
        }
        Self { marks, due, ..Self::default() }
    }

    /// Keeps a summary or marker until it takes effect.
    pub(super) fn write(&mut self, at: usize, object: &mut Object<'_>, assembler: &mut Assembler) {
        let role = role_of(self.marks[at].role.as_deref() == Some("assistant"));
        let blocks = blocks_of(object.take("content"), role, assembler);
        let tag = match self.marks[at].is_summary {
            Some(true) => Tag::CompactSummary,
            _ => Tag::CompactBoundary,
        };
        self.written.insert(at, Arc::new(Message::new(role, blocks).with_tags([tag])));
    }

    /// Adds the compactions that happened after that many messages.
    pub(super) fn take_effect(&mut self, after: usize, assembler: &mut Assembler) {
        for due in self.due.remove(&after).unwrap_or_default() {
            let (trigger, shown) = match due {
                PendingCompaction::Written(at, shown) => {
                    let marks = &self.marks[at];
                    self.done.extend(marks.name().cloned());
                    let summary = marks.is_summary == Some(true);
                    if !summary && shown.is_none() {
                        assembler.warn("when a truncation happened is told by how much it hid");
                    }
                    (if summary { "condense" } else { "truncation" }, shown)
                }
                PendingCompaction::OmittedRange(range) => {
                    self.gone = Some(range);
                    ("truncation", None)
                }
            };
            let left = CompactedTo::Replaced(self.context(after, assembler.flush(), assembler));
            let before = shown.and_then(|shown| shown.pre_tokens);
            assembler.compacts(Some(trigger.into()), before, left);
        }
    }

    /// The part of the first `after` messages that is not hidden; there are `end` messages of the
    /// session.
    fn context(&self, after: usize, end: usize, assembler: &Assembler) -> Vec<Recorded> {
        let mut pieces: Vec<Recorded> = Vec::new();
        for (at, marks) in self.marks.iter().enumerate().take(after) {
            let left_out = self.gone.as_ref().is_some_and(|gone| gone.contains(&at));
            if left_out || marks.parents().any(|parent| self.done.contains(parent)) {
                continue;
            }
            if marks.is_written() {
                if marks.name().is_none_or(|name| self.done.contains(name)) {
                    pieces.extend(self.written.get(&at).cloned().map(Recorded::Written));
                }
                continue;
            }
            // Messages in a row may be one of the session's.
            let message = assembler.message_of(&name(at)).filter(|message| *message < end);
            if let Some(message) = message {
                Recorded::keep_once(message, &mut pieces);
            }
        }
        pieces
    }
}

impl Marks {
    /// Whether the product wrote the message in place of others.
    pub(super) fn is_written(&self) -> bool {
        self.is_summary == Some(true) || self.is_truncation_marker == Some(true)
    }

    fn name(&self) -> Option<&Arc<str>> {
        self.condense_id.as_ref().or(self.truncation_id.as_ref())
    }

    /// The names of the summary and the marker that hide it.
    fn parents(&self) -> impl Iterator<Item = &Arc<str>> {
        [&self.condense_parent, &self.truncation_parent].into_iter().flatten()
    }
}

/// How many messages there were at that time, the summary or marker itself among them.
fn said_before(marks: &[Marks], at: usize, time: Timestamp) -> Option<usize> {
    let last = marks.iter().rposition(|mark| mark.ts.is_some_and(|ts| ts <= time.0 as f64))?;
    Some(last.max(at) + 1)
}

/// How many messages after it there were when a summary or marker was written.
fn later(marks: &[Marks], at: usize) -> usize {
    let own = &marks[at];
    if own.is_summary == Some(true) {
        let first = marks.get(at + 1).and_then(|next| next.ts);
        let before = own.ts.zip(first).is_some_and(|(own, first)| (first - own - 1.0).abs() < 0.5);
        return if before { KEPT } else { 0 };
    }
    let name = own.name();
    let hidden =
        marks.iter().filter(|mark| mark.parents().any(|parent| Some(parent) == name)).count();
    // A truncation hides half of the messages: as many recorded ones follow the marker.
    let rest = &marks[at + 1..];
    let mut recorded = (0..rest.len()).filter(|place| !rest[*place].is_written());
    if hidden == 0 { 0 } else { recorded.nth(hidden - 1).map_or(rest.len(), |place| place + 1) }
}
