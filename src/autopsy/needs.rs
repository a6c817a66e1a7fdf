//! The observer of an autopsy: what stands in the prompt, what each compaction takes out of it, and what later calls
//! need of that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::anchors::{Anchors, changed_by, command_of, shown_by, text_of};
use super::{Autopsy, Compaction, How, Kind, Need, call_after};
use crate::context::{Applied, Entry, Origin};
use crate::record::CellRecord;
use crate::replay::observe::{CallView, Observer};
use crate::runner::PlannedSession;
use crate::session::{ContentBlock, Tag, ToolClass, ToolSchema, ToolUse};
use crate::units::Tokens;

/// A shorter result says the same by chance: `ok`.
const LEAST_RESULT: usize = 20;

/// A shorter line says the same by chance: `}`.
const LEAST_LINE: usize = 4;

/// A place in the session: message and block.
type Place = (usize, usize);

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
    anchors: &'a Anchors,
    /// The calls before which the product compacted to something that is not recorded; the last comes first.
    opaque: Vec<usize>,
    found: &'a mut Autopsy,
    /// By number of an anchor: in how many texts of the prompt it stands.
    present: Vec<u32>,
    /// Things that a compaction threw away: by which one, and how and at which call each came back.
    gone: BTreeMap<u32, (usize, Option<(How, usize)>)>,
    /// By id.
    uses: BTreeMap<Arc<str>, ToolUse>,
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
        let session = planned.prepared.session();
        let mut present = vec![0; anchors.all.len()];
        let tools = session.tools().iter().map(ToolSchema::text);
        for text in session.system().into_iter().chain(tools) {
            for number in anchors.in_text(text).into_keys().flatten() {
                present[number as usize] += 1;
            }
        }
        opaque.reverse();
        Self {
            planned,
            anchors,
            opaque,
            found,
            present,
            gone: BTreeMap::new(),
            uses: BTreeMap::new(),
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

    /// Whether something that a compaction threw away has come back since.
    fn is_back(&self, number: u32) -> bool {
        // Behind a compaction that cannot be read it is not known what is present.
        self.gone.get(&number).is_some_and(|(by, back)| {
            let is_known = !self.found.compactions[*by].is_opaque;
            back.is_some() || is_known && self.is_present(number)
        })
    }

    /// A compaction takes place: `apply` changes the prompt, or it is not known how it changed.
    fn compact(&mut self, call: usize, apply: Option<&Applied>) {
        let mut compaction = Compaction {
            call,
            is_opaque: apply.is_none(),
            ..Compaction::default()
        };
        let by = self.found.compactions.len();
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
            let is_there = self.is_present(number)
                || self.anchors.is_above(number, |one| self.is_present(one));
            let stays = apply.is_some() && is_there;
            compaction.count(self.anchors.all[number as usize].0, stays);
            if !stays {
                self.gone.insert(number, (by, None));
            }
        }
        for one in self.shown.values_mut().flatten() {
            if one.gone.is_none() {
                let stays = self.kept.contains(&one.place);
                one.gone = (!stays).then_some(by);
                compaction.count(one.kind, stays);
            }
        }
        self.found.compactions.push(compaction);
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
        known.push(new);
        self.found.repeated_anyway += usize::from(is_repeated);
        if let Some(by) = by.filter(|_| is_again) {
            let prepared = &self.planned.prepared;
            let call = call_after(prepared.session(), place.0).saturating_sub(1);
            self.found.compactions[by].need(Need {
                kind,
                what,
                call,
                how: How::Fetched,
                back_at: Some(call),
                tokens: prepared
                    .bill()
                    .scale(call)
                    .text(prepared.counts().size(text)),
                usd: None,
            });
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
        let next = call_after(self.planned.prepared.session(), at);
        let is_typed = entry.message.has_tag(Tag::TypedUser);
        for (block, content) in entry.message.content().iter().enumerate() {
            let text = &entry.message.model_text()[block];
            let is_own = is_typed && !entry.message.details.injected.contains(&block);
            let (back, answered) = match content {
                ContentBlock::ToolResult(result) => (
                    (How::Fetched, next.saturating_sub(1)),
                    self.uses.get(&result.tool_use_id).cloned(),
                ),
                ContentBlock::Text(_) if is_own => ((How::Told, next), None),
                ContentBlock::ToolUse(tool) => {
                    self.uses.insert(tool.id.clone(), (**tool).clone());
                    continue;
                }
                _ => continue,
            };
            for number in self.anchors.in_block(content, text).iter() {
                if let Some((_, known)) = self.gone.get_mut(number) {
                    known.get_or_insert(back);
                }
            }
            if let Some(tool) = answered {
                self.take_result((at, block), text, &tool);
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
            for (numbers, spelled) in self.anchors.needed_by(tool) {
                // A spelling of several paths needs one of them.
                let is_one = numbers.len() == 1;
                let gone = &self.gone;
                let (lost, others): (Vec<u32>, Vec<u32>) =
                    (numbers.into_iter()).partition(|number| gone.contains_key(number));
                if others.into_iter().any(|number| self.is_present(number)) {
                    continue;
                }
                let mut back = lost.iter().filter(|number| self.is_back(**number));
                let number = back.next().or(lost.first()).copied();
                let known = number.and_then(|number| self.gone.get(&number).copied());
                let Some((number, (by, back))) = number.zip(known) else {
                    continue;
                };
                for number in &lost {
                    self.gone.remove(number);
                }
                let how = match back {
                    Some((how, _)) => how,
                    None if self.found.compactions[by].is_opaque => How::Unknown,
                    // The product or the agent itself had put it back.
                    None if self.is_present(number) => continue,
                    None => How::Without,
                };
                let (kind, longest) = self.anchors.all[number as usize].clone();
                self.found.compactions[by].need(Need {
                    kind,
                    what: if is_one { longest } else { spelled },
                    call,
                    how,
                    back_at: back.map(|(_, at)| at),
                    tokens: Tokens::ZERO,
                    usd: None,
                });
            }
        }
    }

    fn finish(self: Box<Self>, _: &mut CellRecord) {}
}
