//! A snapshot of one call: the prompt, and the fate of every message before it.

use super::prelude::*;
use super::{CallView, Observer};
use crate::bill::Scale;

/// One call.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The call, from 0.
    pub call: usize,
    /// The full history at this call is every message before this one.
    pub before: usize,
    /// Size of system prompt and tool definitions, as counted.
    pub fixed: Size,
    /// How counted sizes become billed ones.
    pub scale: Scale,
    /// Tokens of the prompt, as billed.
    pub prompt: Tokens,
    /// The messages as they were sent.
    pub entries: Vec<Entry>,
    /// The fate of each message of the session before this call, in order.
    pub fates: Vec<MessageFate>,
    /// The patches that were applied since the call before, in order.
    pub patches: Vec<Applied>,
}

/// The fate of a message, and the patch that decided it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageFate {
    /// How it is represented now.
    pub fate: Representation,
    /// The last patch that changed this; `None` if the message is as it was.
    pub decided: Option<Box<Decision>>,
}

/// How a message of the session is represented in a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Representation {
    /// As it was.
    Verbatim,
    /// With these blocks changed.
    Edited(Vec<u32>),
    /// Put back after it was gone.
    Restored,
    /// By a text that was written in its place.
    Derived,
    /// Not at all.
    Gone,
}

/// A patch that decided what became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Before or after this call.
    pub call: usize,
    /// The stage's name in its strategy.
    pub stage: Arc<str>,
    /// Why, in words.
    pub reason: String,
}

/// Follows a context up to one call.
#[derive(Debug)]
pub struct SnapshotObserver<'s> {
    call: usize,
    now: usize,
    snapshot: &'s mut Option<Snapshot>,
    entries: Vec<Entry>,
    fates: Vec<MessageFate>,
    /// Since the last call.
    patches: Vec<Applied>,
}

impl<'s> SnapshotObserver<'s> {
    /// Takes a snapshot of this call; after the replay it is in `snapshot`, unless the session ended before
    /// that call.
    pub fn new(call: usize, snapshot: &'s mut Option<Snapshot>) -> Self {
        Self { call, now: 0, snapshot, entries: Vec::new(), fates: Vec::new(), patches: Vec::new() }
    }
}

/// How these entries represent each of these messages: the representation nearest to the original.
fn representations(
    entries: &[Entry],
    messages: &BTreeSet<usize>,
) -> BTreeMap<usize, Representation> {
    let gone = messages.iter().map(|at| (*at, Representation::Gone));
    let mut nearest: BTreeMap<usize, Representation> = gone.collect();
    for entry in entries {
        let found = match &entry.origin {
            Origin::Verbatim(_) => Representation::Verbatim,
            Origin::Edited { blocks, .. } => Representation::Edited(blocks.to_vec()),
            Origin::Restored(_) => Representation::Restored,
            Origin::Derived(_) | Origin::Authored => Representation::Derived,
        };
        for message in messages_of(entry) {
            if let Some(known) = nearest.get_mut(&message)
                && found.rank() < known.rank()
            {
                known.clone_from(&found);
            }
        }
    }
    nearest
}

impl Representation {
    /// The word for it.
    pub fn name(&self) -> &'static str {
        self.named().1
    }

    /// The nearer to the original, the lower.
    fn rank(&self) -> u8 {
        self.named().0
    }

    fn named(&self) -> (u8, &'static str) {
        match self {
            Self::Verbatim => (0, "verbatim"),
            Self::Edited(_) => (1, "edited"),
            Self::Restored => (2, "restored"),
            Self::Derived => (3, "derived into a summary"),
            Self::Gone => (4, "gone"),
        }
    }
}

/// The messages that an entry represents.
fn messages_of(entry: &Entry) -> impl Iterator<Item = usize> {
    let replaced = entry.origin.replaced().iter().cloned();
    entry.origin.message().into_iter().chain(replaced.flatten())
}

impl Observer for SnapshotObserver<'_> {
    fn appended(&mut self, entry: &Entry) {
        if self.snapshot.is_some() {
            return;
        }
        self.entries.push(entry.clone());
        // No earlier entry stands for this message.
        let at = BTreeSet::from([self.fates.len()]);
        let fates = representations(std::slice::from_ref(entry), &at);
        // Write-time stages have changed the entry before anybody saw it.
        self.fates.extend(fates.into_values().map(|fate| MessageFate {
            decided: (fate != Representation::Verbatim).then(|| {
                Box::new(Decision {
                    call: self.now,
                    stage: "on append".into(),
                    reason: "changed as it was appended".to_owned(),
                })
            }),
            fate,
        }));
    }

    fn patched(&mut self, applied: &Applied) {
        if self.snapshot.is_some() {
            return;
        }
        self.patches.push(applied.clone());
        let mut touched: BTreeSet<usize> = BTreeSet::new();
        // From the back: indices count in the context before the whole patch.
        for edit in applied.change.edits.iter().rev() {
            let written = edit.with.iter().cloned();
            let removed: Vec<Entry> = self.entries.splice(edit.entries.clone(), written).collect();
            let messages = removed.iter().chain(&edit.with).flat_map(messages_of);
            touched.extend(messages);
        }
        for (message, fate) in representations(&self.entries, &touched) {
            if let Some(known) = self.fates.get_mut(message)
                && (known.fate != fate || fate == Representation::Derived)
            {
                *known = MessageFate {
                    fate,
                    decided: Some(Box::new(Decision {
                        call: applied.call,
                        stage: applied.stage.clone(),
                        reason: applied.reason.clone(),
                    })),
                };
            }
        }
    }

    fn called(&mut self, view: &CallView<'_>) {
        if self.snapshot.is_some() {
            return;
        }
        self.now = view.call + 1;
        if view.call != self.call {
            self.patches.clear();
            return;
        }
        *self.snapshot = Some(Snapshot {
            call: view.call,
            before: view.before,
            fixed: view.fixed,
            scale: view.scale,
            prompt: view.prompt(),
            entries: view.context.entries().to_vec(),
            fates: std::mem::take(&mut self.fates),
            patches: std::mem::take(&mut self.patches),
        });
        self.entries = Vec::new();
    }
}
