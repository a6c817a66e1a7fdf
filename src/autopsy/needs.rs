//! The observer of an autopsy: what stands in the prompt, what each compaction takes out of it, and what later calls
//! need of that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::anchors::{NeededAnchors, command_of, text_of};
use super::{Autopsy, CompactionLoss, How, Need, ThingKind, own_compactions};
use crate::context::{Applied, Entry};
use crate::probe::derive::work::calls;
use crate::replay::PreparedSession;
use crate::replay::observe::{CallView, Observer};
use crate::session::{ContentBlock, Tag, ToolClass, ToolUse};
use crate::strategy::files;
use crate::units::Tokens;

/// A shorter result says the same by chance: `ok`.
const LEAST_RESULT: usize = 20;

/// A shorter line says the same by chance: `}`.
const LEAST_LINE: usize = 4;

/// A place in the session: message and block.
type BlockPlace = (usize, usize);

/// A result of a tool call that may be made again, or what a change wrote.
#[derive(Debug)]
struct ShownLines {
    place: BlockPlace,
    kind: ThingKind,
    /// The lines of a file; of another result, all of its text.
    lines: BTreeSet<String>,
    /// The compaction that took it out.
    gone: Option<usize>,
}

impl ShownLines {
    fn new(place: BlockPlace, kind: ThingKind, text: &str) -> Self {
        // Codex puts an id and a time before an output.
        let parts = text.split_once("\nOutput:\n");
        let output = parts.filter(|(front, _)| front.contains("Wall time: "));
        let own = output.map_or(text, |(_, output)| output);
        let (mut lines, least): (Vec<&str>, usize) = match kind {
            ThingKind::File => (own.lines().map(without_number).collect(), LEAST_LINE),
            _ => (vec![own], LEAST_RESULT),
        };
        lines.retain(|line| line.len() >= least);
        Self { place, kind, lines: lines.into_iter().map(str::to_owned).collect(), gone: None }
    }

    /// Whether these show at least half of the lines of this file, or the same result of a call.
    fn is_shown_by<'s>(&self, others: &(impl Iterator<Item = &'s Self> + Clone)) -> bool {
        let lines = self.lines.iter();
        let known = lines.filter(|line| others.clone().any(|other| other.lines.contains(*line)));
        !self.lines.is_empty() && 2 * known.count() >= self.lines.len()
    }
}

/// A line of a file without the number that a tool puts before it.
fn without_number(line: &str) -> &str {
    line.trim_start_matches(|c: char| c.is_whitespace() || c.is_ascii_digit() || "→|:".contains(c))
        .trim_end()
}

/// The results in an entry that are as they were.
fn places(entry: &Entry) -> impl Iterator<Item = BlockPlace> {
    let results = entry.message.tool_results().filter(|(block, _)| entry.is_verbatim(*block));
    results.filter_map(|(block, _)| Some((entry.origin.message()?, block)))
}

/// A loss: the compaction that made it, and how and at which call it was made good, if it was.
type Loss = (usize, How, Option<usize>);

/// Follows the prompts of a session.
#[derive(Debug)]
pub(super) struct Needs<'a> {
    prepared: &'a PreparedSession,
    anchors: &'a NeededAnchors,
    /// The calls before which the product compacted to something that is not recorded.
    opaque: Vec<usize>,
    found: &'a mut Autopsy,
    /// The tool uses that results answer.
    answered: BTreeMap<BlockPlace, &'a ToolUse>,
    /// By number of an anchor: in how many texts of the prompt it stands.
    present: Vec<u32>,
    /// The results that stand there.
    results: BTreeSet<BlockPlace>,
    /// By number of an anchor.
    lost: BTreeMap<u32, Loss>,
    /// By file, or by command or call.
    shown: BTreeMap<String, Vec<ShownLines>>,
}

impl<'a> Needs<'a> {
    pub(super) fn new(
        prepared: &'a PreparedSession,
        anchors: &'a NeededAnchors,
        opaque: Vec<usize>,
        found: &'a mut Autopsy,
    ) -> Self {
        let session = prepared.session();
        let mut present = vec![0; anchors.all.len()];
        let fixed = session.tools().len() + usize::from(session.system().is_some());
        for text in session.texts().take(fixed) {
            anchors.standing_in(text).iter().for_each(|number| present[*number as usize] += 1);
        }
        Self {
            prepared,
            anchors,
            opaque,
            found,
            answered: calls(session).into_iter().map(|call| (call.answered, call.tool)).collect(),
            present,
            results: BTreeSet::new(),
            lost: BTreeMap::new(),
            shown: BTreeMap::new(),
        }
    }

    /// The texts of an entry came into the prompt, or left it.
    fn follow(&mut self, entry: &Entry, change: i32) {
        for (content, text) in entry.message.content().iter().zip(entry.message.model_text()) {
            for number in self.anchors.in_block(content, text).iter() {
                let texts = &mut self.present[*number as usize];
                *texts = texts.saturating_add_signed(change);
            }
        }
    }

    fn is_present(&self, number: u32) -> bool {
        self.present[number as usize] > 0
    }

    /// A compaction has changed the prompt, in which these texts stood before, and has written others; nothing shows yet how
    /// its losses are made good.
    fn compacted(&mut self, call: usize, before: &[u32], how: How, written: &[ShownLines]) {
        let by = self.found.compactions.len();
        let mut compaction =
            CompactionLoss { call, is_opaque: how == How::Unknown, ..CompactionLoss::default() };
        for (number, _) in (0..).zip(before).filter(|(_, texts)| **texts > 0) {
            let stays = self.is_present(number);
            compaction.count(self.anchors.all[number as usize].0, stays);
            if !stays {
                self.lost.insert(number, (by, how, None));
            }
        }
        for one in self.shown.values_mut().flatten().filter(|one| one.gone.is_none()) {
            // A product may put files back.
            let stays = self.results.contains(&one.place) || one.is_shown_by(&written.iter());
            one.gone = (!stays).then_some(by);
            compaction.count(one.kind, stays);
        }
        self.found.compactions.push(compaction);
    }

    /// Notes a tool result, and whether it brings again what an earlier one had brought.
    fn take_result(&mut self, place: BlockPlace, text: &Arc<str>, tool: &ToolUse) {
        for path in files::changed_by(tool) {
            let shown = ShownLines::new(place, ThingKind::File, &text_of(tool));
            self.shown.entry(self.anchors.longest(path)).or_default().push(shown);
        }
        let (kind, what) = match (files::seen_by(tool), tool.class) {
            (Some(path), _) => (ThingKind::File, self.anchors.longest(path)),
            (None, ToolClass::Edit | ToolClass::Write | ToolClass::Todo) => return,
            (None, _) => (ThingKind::Result, command_of(tool)),
        };
        let new = ShownLines::new(place, kind, text);
        let known = self.shown.entry(what.clone()).or_default();
        let repeated = new.is_shown_by(&known.iter().filter(|shown| shown.gone.is_none()));
        let again = !repeated && new.is_shown_by(&known.iter());
        let by = known.iter().filter_map(|shown| shown.gone).max();
        known.push(new);
        self.found.repeated_anyway += usize::from(repeated);
        if let Some(by) = by.filter(|_| again) {
            let call = self.prepared.session().call_after(place.0).saturating_sub(1);
            let tokens = self.prepared.bill().scale(call).text(self.prepared.counts().size(text));
            self.need((kind, what), call, tokens, (by, How::Fetched, Some(call)));
        }
    }

    /// A call needs one of these, which it spells so.
    fn look_for(&mut self, call: usize, numbers: &[u32], spelled: String) {
        let mut present = numbers.iter().filter(|number| self.is_present(**number));
        if present.any(|number| !self.lost.contains_key(number)) {
            return;
        }
        let lost = numbers.iter().filter_map(|number| self.lost.remove_entry(number));
        // One that has come back, else the first.
        let first = lost.min_by_key(|(at, one)| one.2.is_none() && self.present[*at as usize] == 0);
        let Some((number, loss)) = first else { return };
        // Else the product or the agent itself put it back.
        if loss.2.is_some() || !self.is_present(number) {
            let (kind, longest) = self.anchors.all[number as usize].clone();
            let what = if numbers.len() == 1 { longest } else { spelled };
            self.need((kind, what), call, Tokens::ZERO, loss);
        }
    }

    fn need(&mut self, (kind, what): (ThingKind, String), call: usize, tokens: Tokens, loss: Loss) {
        let (by, how, back_at) = loss;
        self.found.compactions[by].need(Need { kind, what, call, how, back_at, tokens, usd: None });
    }
}

impl Observer for Needs<'_> {
    fn entered(&mut self, entry: &Entry) {
        self.follow(entry, 1);
        self.results.extend(places(entry));
    }

    fn left(&mut self, entry: &Entry) {
        self.follow(entry, -1);
        places(entry).for_each(|place| _ = self.results.remove(&place));
    }

    fn appended(&mut self, entry: &Entry) {
        self.entered(entry);
        let Some(at) = entry.origin.message() else { return };
        let next = self.prepared.session().call_after(at);
        let typed = entry.message.has_tag(Tag::TypedUser);
        for (block, content) in entry.message.content().iter().enumerate() {
            let text = &entry.message.model_text()[block];
            let own = typed && !entry.message.details.injected.contains(&block);
            let (how, back_at) = match content {
                ContentBlock::ToolResult(_) => (How::Fetched, next.saturating_sub(1)),
                ContentBlock::Text(_) if own => (How::Told, next),
                _ => continue,
            };
            for number in self.anchors.in_block(content, text).iter() {
                if let Some((_, known, at @ None)) = self.lost.get_mut(number) {
                    (*known, *at) = (how, Some(back_at));
                }
            }
            if let Some(tool) = self.answered.get(&(at, block)) {
                self.take_result((at, block), text, tool);
            }
        }
    }

    fn patched(&mut self, applied: &Applied) {
        let before = self.present.clone();
        applied.change.removed.iter().for_each(|entry| self.left(entry));
        applied.written().for_each(|entry| self.entered(entry));
        let session = self.prepared.session();
        if own_compactions(session).any(|event| session.call_after(event.at) == applied.call) {
            let texts = applied.written().flat_map(|entry| entry.message.model_text());
            // One set for all: a compaction may write thousands of messages.
            let all = texts.flat_map(|text| ShownLines::new((0, 0), ThingKind::File, text).lines);
            let lines = all.collect();
            let written = ShownLines { place: (0, 0), kind: ThingKind::File, lines, gone: None };
            self.compacted(applied.call, &before, How::Without, &[written]);
        }
    }

    fn called(&mut self, view: &CallView<'_>) {
        if self.opaque.contains(&view.call) {
            // Nothing shows what it left.
            let before = std::mem::replace(&mut self.present, vec![0; self.anchors.all.len()]);
            self.results.clear();
            self.compacted(view.call, &before, How::Unknown, &[]);
        }
        for (_, tool) in view.response.tool_uses() {
            for (numbers, spelled) in self.anchors.needed_by(tool) {
                self.look_for(view.call, &numbers, spelled);
            }
        }
    }
}
