//! The observer of an autopsy: what stands in the prompt, what each compaction takes out of it, and what later calls
//! need of that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::anchors::{Anchors, changed_by, command_of, shown_by, text_of};
use super::{Autopsy, Compaction, How, Kind, Need, Thrown, call_after};
use crate::context::{Applied, Entry, Origin};
use crate::record::CellRecord;
use crate::replay::observe::{CallView, Observer};
use crate::runner::PlannedSession;
use crate::session::{ContentBlock, Session, Tag, ToolClass, ToolSchema, ToolUse};
use crate::units::Tokens;

/// A shorter result says the same by chance: `ok`.
const LEAST_RESULT: usize = 20;

/// A shorter line says the same by chance: `}`.
const LEAST_LINE: usize = 4;

/// A place in the session: message and block.
type Place = (usize, usize);

/// Something that a compaction threw away: by which one, and how it came back.
type Gone = (usize, Option<(How, usize)>);

/// A result of a tool call that may be made again, or what a change wrote.
#[derive(Debug)]
struct Shown {
    place: Place,
    text: Arc<str>,
    /// Of a file the lines that it shows.
    lines: BTreeSet<String>,
    kind: Kind,
    /// The compaction that took it out.
    gone: Option<usize>,
}

impl Shown {
    fn new(place: Place, text: Arc<str>, kind: Kind) -> Self {
        let lines = text.lines().map(without_number);
        let lines = lines.filter(|line| kind == Kind::File && line.len() >= LEAST_LINE);
        Self {
            place,
            lines: lines.map(str::to_owned).collect(),
            text,
            kind,
            gone: None,
        }
    }

    /// Whether these show at least half of the lines of this file, or the same result of a call.
    fn is_shown_by<'s>(&self, mut others: impl Iterator<Item = &'s Self> + Clone) -> bool {
        if self.lines.is_empty() {
            return self.text.len() >= LEAST_RESULT && others.any(|other| other.text == self.text);
        }
        let lines = self.lines.iter();
        let known = lines.filter(|line| others.clone().any(|other| other.lines.contains(*line)));
        2 * known.count() >= self.lines.len()
    }
}

/// A line of a file without the number that a tool puts before it.
fn without_number(line: &str) -> &str {
    line.trim_start_matches(|c: char| c.is_whitespace() || c.is_ascii_digit() || "→|:".contains(c))
        .trim_end()
}

/// Follows the prompts of a session.
#[derive(Debug)]
pub(super) struct Needs<'a> {
    planned: &'a PlannedSession<'a>,
    session: &'a Session,
    anchors: &'a Anchors,
    /// The calls before which the product compacted to something that is not recorded; the last comes first.
    opaque: Vec<usize>,
    found: &'a mut Autopsy,
    /// By number of an anchor: in how many texts of the prompt it stands.
    present: Vec<u32>,
    gone: BTreeMap<u32, Gone>,
    /// The tool use that each result answers.
    answers: BTreeMap<Place, &'a ToolUse>,
    /// Results that stand in the prompt as they were.
    kept: BTreeSet<Place>,
    /// By file, or by call.
    shown: BTreeMap<String, Vec<Shown>>,
}

impl<'a> Needs<'a> {
    pub(super) fn new(
        planned: &'a PlannedSession<'a>,
        anchors: &'a Anchors,
        mut opaque: Vec<usize>,
        found: &'a mut Autopsy,
    ) -> Self {
        let session = &**planned.prepared.session();
        let mut uses: BTreeMap<&str, &ToolUse> = BTreeMap::new();
        let mut answers = BTreeMap::new();
        for (at, message) in session.messages().iter().enumerate() {
            uses.extend(message.tool_uses().map(|(_, tool)| (&*tool.id, tool)));
            for (block, result) in message.tool_results() {
                let tool = uses.get(&*result.tool_use_id);
                answers.extend(tool.map(|tool| ((at, block), *tool)));
            }
        }
        let mut present = vec![0; anchors.all.len()];
        let tools = session.tools().iter().map(ToolSchema::text);
        for text in session.system().into_iter().chain(tools) {
            for number in anchors.in_text(text) {
                present[number as usize] += 1;
            }
        }
        opaque.reverse();
        Self {
            planned,
            session,
            anchors,
            opaque,
            found,
            present,
            gone: BTreeMap::new(),
            answers,
            kept: BTreeSet::new(),
            shown: BTreeMap::new(),
        }
    }

    fn follow(&mut self, entry: &Entry, change: impl Fn(&mut u32)) {
        let message = &entry.message;
        for (content, text) in message.content().iter().zip(message.model_text()) {
            for number in self.anchors.in_block(content, text).iter() {
                change(&mut self.present[*number as usize]);
            }
        }
    }

    /// The results in an entry that are as they were.
    fn places(entry: &Entry) -> impl Iterator<Item = Place> {
        let at = match entry.origin {
            Origin::Verbatim(at) | Origin::Edited { message: at, .. } => Some(at),
            Origin::Derived(_) | Origin::Restored(_) | Origin::Authored => None,
        };
        let results = entry.message.tool_results();
        let results = results.filter(|(block, _)| entry.is_verbatim(*block));
        results.filter_map(move |(block, _)| Some((at?, block)))
    }

    fn is_present(&self, number: u32) -> bool {
        self.present[number as usize] > 0
    }

    fn row(&mut self, by: usize, kind: Kind) -> &mut Thrown {
        self.found.compactions[by].thrown.entry(kind).or_default()
    }

    /// A compaction takes place: `apply` changes the prompt, or it is not known how it changed.
    fn compact(&mut self, call: usize, apply: Option<&Applied>) {
        let (by, is_opaque) = (self.found.compactions.len(), apply.is_none());
        self.found.compactions.push(Compaction {
            call,
            is_opaque,
            ..Compaction::default()
        });
        let all = 0..u32::try_from(self.present.len()).unwrap_or(u32::MAX);
        let before: Vec<u32> = all.filter(|number| self.is_present(*number)).collect();
        if let Some(applied) = apply {
            let removed = applied.change.removed.iter();
            removed.for_each(|entry| self.left(entry));
            applied.written().for_each(|entry| self.entered(entry));
        } else {
            self.kept.clear();
        }
        for number in before {
            let stays = !is_opaque && self.still_stands(number);
            self.count(by, self.anchors.all[number as usize].0, stays);
            if !stays {
                self.gone.insert(number, (by, None));
            }
        }
        let mut shown = std::mem::take(&mut self.shown);
        for one in shown
            .values_mut()
            .flatten()
            .filter(|one| one.gone.is_none())
        {
            let stays = self.kept.contains(&one.place);
            one.gone = (!stays).then_some(by);
            self.count(by, one.kind, stays);
        }
        self.shown = shown;
    }

    /// Counts a thing that stood in the prompt before a compaction.
    fn count(&mut self, by: usize, kind: Kind, stays: bool) {
        let row = self.row(by, kind);
        row.before += 1;
        row.stayed += usize::from(stays);
    }

    /// Whether a thing, or a path below it, is in the prompt.
    fn still_stands(&self, number: u32) -> bool {
        let anchors = self.anchors;
        self.is_present(number) || anchors.is_above(number, |below| self.is_present(below))
    }

    /// Notes a need of what this compaction threw away; a file that is shown in parts is needed once.
    fn need(
        &mut self,
        by: usize,
        (kind, what): (Kind, String),
        call: usize,
        (how, back_at): (How, Option<usize>),
        tokens: Tokens,
    ) {
        let mut known = self.found.compactions[by].needed.iter();
        if !known.any(|known| known.kind == kind && known.what == what) {
            let row = self.row(by, kind);
            row.needed += 1;
            *match how {
                How::Fetched => &mut row.fetched,
                How::Told => &mut row.told,
                How::Without => &mut row.without,
                How::Unknown => &mut row.unknown,
            } += 1;
        }
        self.found.compactions[by].needed.push(Need {
            kind,
            what,
            call,
            how,
            back_at,
            tokens,
            usd: None,
        });
    }

    /// Notes a tool result, and whether it brings again what an earlier one had brought.
    fn take_result(&mut self, place: Place, text: &Arc<str>, tool: &ToolUse) {
        for path in changed_by(tool) {
            let shown = Shown::new(place, text_of(tool).into(), Kind::File);
            self.shown.entry(path).or_default().push(shown);
        }
        let (kind, what, key) = match (shown_by(tool), tool.class) {
            (Some(path), _) => (Kind::File, path.clone(), path),
            (None, ToolClass::Edit | ToolClass::Write | ToolClass::Todo) => return,
            (None, _) => {
                let key = format!("{} {}", tool.name, tool.input.as_str());
                (Kind::Result, command_of(tool), key)
            }
        };
        let new = Shown::new(place, text.clone(), kind);
        let known = self.shown.entry(key).or_default();
        let is_repeated = new.is_shown_by(known.iter().filter(|shown| shown.gone.is_none()));
        let is_again = !is_repeated && new.is_shown_by(known.iter());
        let by = known.iter().filter_map(|shown| shown.gone).max();
        let by = by.filter(|_| is_again);
        known.push(new);
        self.found.repeated_anyway += usize::from(is_repeated);
        if let Some(by) = by {
            let call = call_after(self.session, place.0).saturating_sub(1);
            let prepared = &self.planned.prepared;
            let size = prepared.counts().size(text);
            let tokens = prepared.bill().scale(call).text(size);
            self.need(by, (kind, what), call, (How::Fetched, Some(call)), tokens);
        }
    }
}

impl Observer for Needs<'_> {
    fn entered(&mut self, entry: &Entry) {
        self.follow(entry, |count| *count += 1);
        self.kept.extend(Self::places(entry));
    }

    fn left(&mut self, entry: &Entry) {
        self.follow(entry, |count| *count = count.saturating_sub(1));
        for place in Self::places(entry) {
            self.kept.remove(&place);
        }
    }

    fn appended(&mut self, entry: &Entry) {
        self.entered(entry);
        let Some(at) = entry.origin.message() else {
            return;
        };
        let next = call_after(self.session, at);
        let is_typed = entry.message.has_tag(Tag::TypedUser);
        for (block, content) in entry.message.content().iter().enumerate() {
            let text = &entry.message.model_text()[block];
            let is_own = is_typed && !entry.message.details.injected.contains(&block);
            let back = match content {
                ContentBlock::ToolResult(_) => (How::Fetched, next.saturating_sub(1)),
                ContentBlock::Text(_) if is_own => (How::Told, next),
                _ => continue,
            };
            for number in self.anchors.in_block(content, text).iter() {
                if let Some((_, known)) = self.gone.get_mut(number) {
                    known.get_or_insert(back);
                }
            }
            if let Some(tool) = self.answers.get(&(at, block)).copied() {
                self.take_result((at, block), text, tool);
            }
        }
    }

    fn patched(&mut self, applied: &Applied) {
        self.compact(applied.call, Some(applied));
    }

    fn called(&mut self, view: &CallView<'_>) {
        let call = view.call;
        while self.opaque.pop_if(|next| *next <= call).is_some() {
            self.compact(call, None);
        }
        for (_, tool) in view.response.tool_uses() {
            for number in self.anchors.needed_by(tool) {
                let Some((by, back)) = self.gone.remove(&number) else {
                    continue;
                };
                let how = match back {
                    Some((how, _)) => how,
                    None if self.found.compactions[by].is_opaque => How::Unknown,
                    // The product or the agent itself had put it back.
                    None if self.is_present(number) => continue,
                    None => How::Without,
                };
                let thing = self.anchors.all[number as usize].clone();
                self.need(by, thing, call, (how, back.map(|(_, at)| at)), Tokens::ZERO);
            }
        }
    }

    fn finish(self: Box<Self>, _: &mut CellRecord) {}
}
