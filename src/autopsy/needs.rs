//! The observer of an autopsy: what stands in the prompt, what each compaction takes out of it, and what later calls
//! need of that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::anchors::{Anchors, command_of, text_of};
use super::{Autopsy, Compaction, How, Kind, Need};
use crate::context::{Applied, Entry};
use crate::record::CellRecord;
use crate::replay::PreparedSession;
use crate::replay::observe::{CallView, Observer};
use crate::session::{ContentBlock, Tag, ToolClass, ToolSchema, ToolUse};
use crate::strategy::files;
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
    kind: Kind,
    /// The lines of a file; of another result, all of its text.
    lines: BTreeSet<String>,
    /// The compaction that took it out.
    gone: Option<usize>,
}

impl Shown {
    fn new(place: Place, kind: Kind, text: &str) -> Self {
        let (mut lines, least): (Vec<&str>, usize) = match kind {
            Kind::File => (text.lines().map(without_number).collect(), LEAST_LINE),
            _ => (vec![text], LEAST_RESULT),
        };
        lines.retain(|line| line.len() >= least);
        Self {
            place,
            kind,
            lines: lines.into_iter().map(str::to_owned).collect(),
            gone: None,
        }
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
fn places(entry: &Entry) -> impl Iterator<Item = Place> {
    let results = entry.message.tool_results();
    let results = results.filter(|(block, _)| entry.is_verbatim(*block));
    results.filter_map(|(block, _)| Some((entry.origin.message()?, block)))
}

/// Follows the prompts of a session.
#[derive(Debug)]
pub(super) struct Needs<'a> {
    prepared: &'a PreparedSession,
    anchors: &'a Anchors,
    /// The calls before which the product compacted to something that is not recorded.
    opaque: Vec<usize>,
    found: &'a mut Autopsy,
    /// By number of an anchor: in how many texts of the prompt it stands.
    present: Vec<u32>,
    /// Things that a compaction threw away: by which one, and how and at which call each came back.
    gone: BTreeMap<u32, (usize, Option<(How, usize)>)>,
    /// The last of each id: some recordings use one several times.
    uses: BTreeMap<Arc<str>, ToolUse>,
    /// By file, or by call.
    shown: BTreeMap<String, Vec<Shown>>,
}

impl<'a> Needs<'a> {
    pub(super) fn new(
        prepared: &'a PreparedSession,
        anchors: &'a Anchors,
        opaque: Vec<usize>,
        found: &'a mut Autopsy,
    ) -> Self {
        let session = prepared.session();
        let mut present = vec![0; anchors.all.len()];
        let tools = session.tools().iter().map(ToolSchema::text);
        for text in session.system().into_iter().chain(tools) {
            for number in anchors.standing_in(text).iter() {
                present[*number as usize] += 1;
            }
        }
        Self {
            prepared,
            anchors,
            opaque,
            found,
            present,
            gone: BTreeMap::new(),
            uses: BTreeMap::new(),
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

    fn is_present(&self, number: u32) -> bool {
        self.present[number as usize] > 0
    }

    /// How a call comes by something that a compaction threw away; `None` if the product or the agent itself put it back.
    fn how(&self, number: u32) -> Option<How> {
        match self.gone[&number] {
            (_, Some((how, _))) => Some(how),
            // Nothing shows what is present behind it.
            (by, None) if self.found.compactions[by].is_opaque => Some(How::Unknown),
            (_, None) => (!self.is_present(number)).then_some(How::Without),
        }
    }

    /// A compaction takes place: `apply` changes the prompt, or it is not known how it changed.
    fn compact(&mut self, call: usize, apply: Option<&Applied>) {
        let mut compaction = Compaction {
            call,
            is_opaque: apply.is_none(),
            ..Compaction::default()
        };
        let by = self.found.compactions.len();
        let before = self.present.clone();
        let mut taken = BTreeSet::new();
        if let Some(applied) = apply {
            for entry in &applied.change.removed {
                self.left(entry);
                taken.extend(places(entry));
            }
            for entry in applied.written() {
                self.entered(entry);
                places(entry).for_each(|place| _ = taken.remove(&place));
            }
        }
        for (number, _) in (0..).zip(before).filter(|(_, texts)| *texts > 0) {
            let stays = apply.is_some() && self.is_present(number);
            compaction.count(self.anchors.kind(number), stays);
            if !stays {
                self.gone.insert(number, (by, None));
            }
        }
        let shown = self.shown.values_mut().flatten();
        for one in shown.filter(|one| one.gone.is_none()) {
            let stays = apply.is_some() && !taken.contains(&one.place);
            one.gone = (!stays).then_some(by);
            compaction.count(one.kind, stays);
        }
        self.found.compactions.push(compaction);
    }

    /// Notes a tool result, and whether it brings again what an earlier one had brought.
    fn take_result(&mut self, place: Place, text: &Arc<str>, tool: &ToolUse) {
        for path in files::changed_by(tool) {
            let shown = Shown::new(place, Kind::File, &text_of(tool));
            self.shown.entry(path).or_default().push(shown);
        }
        let (kind, what, key) = match (files::seen_by(tool), tool.class) {
            (Some(path), _) => (Kind::File, path.clone(), path),
            (None, ToolClass::Edit | ToolClass::Write | ToolClass::Todo) => return,
            (None, _) => {
                let key = format!("{} {}", tool.name, tool.input.as_str());
                (Kind::Result, command_of(tool), key)
            }
        };
        let new = Shown::new(place, kind, text);
        let known = self.shown.entry(key).or_default();
        let is_repeated = new.is_shown_by(&known.iter().filter(|shown| shown.gone.is_none()));
        let is_again = !is_repeated && new.is_shown_by(&known.iter());
        let by = known.iter().filter_map(|shown| shown.gone).max();
        known.push(new);
        self.found.repeated_anyway += usize::from(is_repeated);
        if let Some(by) = by.filter(|_| is_again) {
            let next = self.prepared.session().call_after(place.0);
            let call = next.saturating_sub(1);
            let scale = self.prepared.bill().scale(call);
            self.found.compactions[by].need(Need {
                kind,
                what,
                call,
                how: How::Fetched,
                back_at: Some(call),
                tokens: scale.text(self.prepared.counts().size(text)),
                usd: None,
            });
        }
    }

    /// A call needs one of these, which it spells so.
    fn need(&mut self, call: usize, numbers: &[u32], spelled: String) {
        let gone = &self.gone;
        let (lost, others): (Vec<u32>, Vec<u32>) =
            (numbers.iter()).partition(|number| gone.contains_key(number));
        if others.into_iter().any(|number| self.is_present(number)) {
            return;
        }
        let ways = lost.iter().map(|number| (*number, self.how(*number)));
        // One that has come back, else the first.
        let way = ways.min_by_key(|(_, how)| matches!(how, Some(How::Without | How::Unknown)));
        let Some((number, how)) = way else { return };
        let (by, back) = self.gone[&number];
        for number in &lost {
            self.gone.remove(number);
        }
        let Some(how) = how else { return };
        let (kind, longest) = self.anchors.all[number as usize].clone();
        self.found.compactions[by].need(Need {
            kind,
            what: if numbers.len() == 1 { longest } else { spelled },
            call,
            how,
            back_at: back.map(|(_, at)| at),
            tokens: Tokens::ZERO,
            usd: None,
        });
    }
}

impl Observer for Needs<'_> {
    fn entered(&mut self, entry: &Entry) {
        self.follow(entry, |count| *count += 1);
    }

    fn left(&mut self, entry: &Entry) {
        self.follow(entry, |count| *count = count.saturating_sub(1));
    }

    fn appended(&mut self, entry: &Entry) {
        self.entered(entry);
        let Some(at) = entry.origin.message() else {
            return;
        };
        let next = self.prepared.session().call_after(at);
        let is_typed = entry.message.has_tag(Tag::TypedUser);
        for (block, content) in entry.message.content().iter().enumerate() {
            let text = &entry.message.model_text()[block];
            let is_own = is_typed && !entry.message.details.injected.contains(&block);
            let back = match content {
                ContentBlock::ToolResult(_) => (How::Fetched, next.saturating_sub(1)),
                ContentBlock::Text(_) if is_own => (How::Told, next),
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
            let answered = content.as_result().map(|result| &*result.tool_use_id);
            if let Some(tool) = answered.and_then(|id| self.uses.get(id).cloned()) {
                self.take_result((at, block), text, &tool);
            }
        }
    }

    fn patched(&mut self, applied: &Applied) {
        self.compact(applied.call, Some(applied));
    }

    fn called(&mut self, view: &CallView<'_>) {
        if self.opaque.contains(&view.call) {
            self.compact(view.call, None);
        }
        for (_, tool) in view.response.tool_uses() {
            for (numbers, spelled) in self.anchors.needed_by(tool) {
                self.need(view.call, &numbers, spelled);
            }
        }
    }

    fn finish(self: Box<Self>, _: &mut CellRecord) {}
}
