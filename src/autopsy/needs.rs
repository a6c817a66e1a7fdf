//! The observer of an autopsy: what stands in the prompt, what each compaction takes out of it, and what later calls
//! need of that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::anchors::Anchors;
use super::{Again, Compaction, Kind, MOST_NEEDED, Need, Outcome, Thrown, command_of};
use crate::bill::Bill;
use crate::context::{Applied, Entry, Origin};
use crate::probe::derive;
use crate::probe::survival::content_word_recall;
use crate::record::CellRecord;
use crate::replay::observe::{CallView, Observer};
use crate::session::ground_truth::{Fact, Handle};
use crate::session::{ContentBlock, Session, Tag, ToolClass, ToolUse};
use crate::strategy::files;
use crate::tokens::CountedTexts;

/// A shorter result than this says the same by chance: `ok`.
const LEAST_RESULT: usize = 20;

/// A shorter line says the same by chance: `}`.
const LEAST_LINE: usize = 4;

/// A line with so many tenths of the words of a plan item names it.
const ITEM_TENTHS: f64 = 0.7;

/// A place in the session: message and block.
type Place = (usize, usize);

/// Something that a compaction threw away.
#[derive(Debug, Clone, Copy)]
struct Gone {
    /// The compaction, by its number.
    by: usize,
    back: Option<Outcome>,
    is_needed: bool,
}

/// A result of a tool call that may be made again.
#[derive(Debug)]
struct Shown {
    place: Place,
    text: Arc<str>,
    /// Of a file the lines that it shows.
    lines: BTreeSet<String>,
    /// The compaction that took it out.
    gone: Option<usize>,
}

impl Shown {
    fn new(place: Place, text: &Arc<str>, is_file: bool) -> Self {
        let number =
            |c: char| c.is_whitespace() || c.is_ascii_digit() || matches!(c, '→' | '|' | ':');
        let lines = text
            .lines()
            .map(|line| line.trim_start_matches(number).trim_end());
        let lines = lines.filter(|line| is_file && line.len() >= LEAST_LINE);
        Self {
            place,
            text: text.clone(),
            lines: lines.map(str::to_owned).collect(),
            gone: None,
        }
    }

    /// Whether these show at least half of the lines of this file, or the same result of a call.
    fn is_shown_by<'s>(&self, others: impl Iterator<Item = &'s Self> + Clone) -> bool {
        if self.lines.is_empty() {
            let mut others = others;
            return self.text.len() >= LEAST_RESULT && others.any(|other| other.text == self.text);
        }
        let is_known = |line: &&String| others.clone().any(|other| other.lines.contains(*line));
        2 * self.lines.iter().filter(is_known).count() >= self.lines.len()
    }
}

/// Follows the prompts of a session.
#[derive(Debug)]
pub(super) struct Needs<'a> {
    session: &'a Session,
    /// The sizes of texts, and how they are billed.
    sizes: (&'a CountedTexts, &'a Bill),
    anchors: &'a Anchors,
    /// The calls before which the product compacted, and the recording does not say to what; ascending.
    opaque: Vec<usize>,
    found: Option<(&'a mut Vec<Compaction>, &'a mut usize)>,
    /// By number of an anchor: in how many texts of the prompt it stands.
    present: Vec<u32>,
    gone: BTreeMap<u32, Gone>,
    /// Commands that stand in the prompt no more, by their text.
    gone_commands: BTreeMap<String, usize>,
    /// The tool use that each result answers.
    answers: BTreeMap<Place, &'a ToolUse>,
    /// Tool uses and results that stand in the prompt as they were.
    kept: BTreeSet<Place>,
    /// By file, or by call.
    shown: BTreeMap<String, Vec<Shown>>,
    commands: BTreeMap<String, Place>,
    tasks: Vec<Handle>,
    compactions: Vec<Compaction>,
    repeated_anyway: usize,
}

impl<'a> Needs<'a> {
    pub(super) fn new(
        session: &'a Session,
        sizes: (&'a CountedTexts, &'a Bill),
        anchors: &'a Anchors,
        opaque: Vec<usize>,
    ) -> Self {
        let mut uses: BTreeMap<&str, &ToolUse> = BTreeMap::new();
        let mut answers = BTreeMap::new();
        for (at, message) in session.messages().iter().enumerate() {
            for (_, tool) in message.tool_uses() {
                uses.insert(&tool.id, tool);
            }
            for (block, result) in message.tool_results() {
                answers.extend(
                    uses.get(&*result.tool_use_id)
                        .map(|tool| ((at, block), *tool)),
                );
            }
        }
        let mut tasks = Vec::new();
        if !session.compactions().is_empty() {
            for fact in derive::derive(session).facts {
                if let Fact::OpenHandle { handles, .. } = fact.fact {
                    tasks.extend(handles);
                }
            }
        }
        let mut present = vec![0; anchors.len()];
        let tools = session.tools().iter().map(crate::session::ToolSchema::text);
        for text in session.system().into_iter().chain(tools) {
            for number in anchors.in_text(text).iter() {
                present[*number as usize] += 1;
            }
        }
        Self {
            session,
            sizes,
            anchors,
            opaque,
            found: None,
            present,
            gone: BTreeMap::new(),
            gone_commands: BTreeMap::new(),
            answers,
            kept: BTreeSet::new(),
            shown: BTreeMap::new(),
            commands: BTreeMap::new(),
            tasks,
            compactions: Vec::new(),
            repeated_anyway: 0,
        }
    }

    /// Where to write what was found, once the replay is over.
    pub(super) fn writing(
        self,
        compactions: &'a mut Vec<Compaction>,
        repeated_anyway: &'a mut usize,
    ) -> Self {
        Self {
            found: Some((compactions, repeated_anyway)),
            ..self
        }
    }

    fn follow(&mut self, entry: &Entry, change: impl Fn(&mut u32)) {
        let texts = entry
            .message
            .content()
            .iter()
            .zip(entry.message.model_text());
        for (content, text) in texts {
            for number in self.anchors.in_block(content, text).iter() {
                change(&mut self.present[*number as usize]);
            }
        }
    }

    /// The tool uses and results of an entry that are as they were.
    fn places(entry: &Entry) -> impl Iterator<Item = Place> {
        let at = match entry.origin {
            Origin::Verbatim(at) | Origin::Edited { message: at, .. } => Some(at),
            _ => None,
        };
        let blocks = entry.message.content().iter().enumerate();
        blocks.filter_map(move |(block, content)| {
            let is_tool = matches!(
                content,
                ContentBlock::ToolUse(_) | ContentBlock::ToolResult(_)
            );
            at.filter(|_| is_tool && entry.is_verbatim(block))
                .map(|at| (at, block))
        })
    }

    fn is_present(&self, number: u32) -> bool {
        self.present[number as usize] > 0
    }

    /// Begins a compaction, before this message; what stands in the prompt now is `before`.
    fn begin(&mut self, call: usize, is_opaque: bool, before: &[u32]) -> usize {
        let mut compaction = Compaction {
            call,
            is_opaque,
            ..Compaction::default()
        };
        for number in before {
            let row = compaction
                .thrown
                .entry(self.anchors.kind(*number))
                .or_default();
            row.before += 1;
        }
        self.compactions.push(compaction);
        self.compactions.len() - 1
    }

    fn present_numbers(&self) -> Vec<u32> {
        let all = 0..u32::try_from(self.present.len()).unwrap_or(u32::MAX);
        all.filter(|number| self.is_present(*number)).collect()
    }

    fn row(&mut self, by: usize, kind: Kind) -> &mut Thrown {
        self.compactions[by].thrown.entry(kind).or_default()
    }

    /// Notes a need of what this compaction threw away.
    fn need(&mut self, by: usize, need: Need) {
        let row = self.row(by, need.kind);
        row.needed += 1;
        match need.outcome {
            Outcome::Fetched(_) => row.fetched += 1,
            Outcome::Told(_) => row.told += 1,
            Outcome::Without => row.without += 1,
            Outcome::Unknown => row.unknown += 1,
        }
        let needed = &mut self.compactions[by].needed;
        if needed.len() < MOST_NEEDED {
            needed.push(need);
        }
    }

    /// A compaction that the recording shows as a mark: all that stood in the prompt may be gone.
    fn compacted_opaquely(&mut self, call: usize) {
        let before = self.present_numbers();
        let by = self.begin(call, true, &before);
        for number in before {
            let gone = Gone {
                by,
                back: None,
                is_needed: false,
            };
            self.gone.insert(number, gone);
        }
        for shown in self.shown.values_mut().flatten() {
            shown.gone = Some(by);
        }
        self.kept.clear();
    }

    /// Commands, plan items and running tasks before this compaction, and those that its texts hold.
    fn count_work(&mut self, by: usize, call: usize, written: &[Arc<str>]) {
        let stays = |text: &str| written.iter().any(|other| other.contains(text));
        let stood: Vec<(String, Place)> = std::mem::take(&mut self.commands).into_iter().collect();
        let mut row = Thrown::default();
        for (command, place) in stood {
            row.before += 1;
            if self.kept.contains(&place) || stays(&command) {
                row.stayed += 1;
                self.commands.insert(command, place);
            } else {
                self.gone_commands.insert(command, by);
            }
        }
        let before = self.session.calls()[call];
        let items = derive::open_items(self.session, before);
        let names = |item: &str| {
            let mut lines = written.iter().flat_map(|text| text.lines());
            stays(item) || lines.any(|line| content_word_recall(item, line) >= ITEM_TENTHS)
        };
        let plan = Thrown {
            before: items.len(),
            stayed: items.iter().filter(|item| names(item)).count(),
            ..Thrown::default()
        };
        let running = |task: &&Handle| {
            task.started < before && task.ended.is_none_or(|ended| ended >= before)
        };
        let running: Vec<Handle> = self.tasks.iter().filter(running).cloned().collect();
        let tasks = Thrown {
            before: running.len(),
            stayed: running.iter().filter(|task| stays(&task.name)).count(),
            ..Thrown::default()
        };
        for (kind, row) in [
            (Kind::Command, row),
            (Kind::PlanItem, plan),
            (Kind::Task, tasks),
        ] {
            if row.before > 0 {
                self.compactions[by].thrown.insert(kind, row);
            }
        }
        for task in running.into_iter().filter(|task| !stays(&task.name)) {
            let mut uses = self.session.calls().iter().enumerate().skip(call);
            let names = |(_, answer): &(usize, &usize)| {
                let mut uses = self.session.message(**answer).tool_uses();
                uses.any(|(_, tool)| tool.input.as_str().contains(&task.name))
            };
            if let Some((call, _)) = uses.find(names) {
                let (kind, what, outcome) = (Kind::Task, task.name, Outcome::Without);
                self.need(
                    by,
                    Need {
                        kind,
                        what,
                        call,
                        outcome,
                    },
                );
            }
        }
    }

    /// What a message of the session brings back of what was thrown away.
    fn bring_back(&mut self, entry: &Entry, at: usize) {
        let call = super::call_after(self.session, at).saturating_sub(1);
        let is_typed = entry.message.has_tag(Tag::TypedUser);
        for (block, content) in entry.message.content().iter().enumerate() {
            let text = &entry.message.model_text()[block];
            let is_own = is_typed && !entry.message.details.injected.contains(&block);
            let back = match content {
                ContentBlock::ToolResult(_) => Outcome::Fetched(call),
                ContentBlock::Text(_) if is_own => Outcome::Told(call + 1),
                _ => continue,
            };
            for number in self.anchors.in_block(content, text).iter() {
                if let Some(gone) = self.gone.get_mut(number) {
                    gone.back.get_or_insert(back);
                }
            }
        }
    }

    /// Notes a tool result, and whether it brings again what an earlier one had brought.
    fn take_result(&mut self, place: Place, text: &Arc<str>, tool: &'a ToolUse) {
        let written = files::written_by(tool).map(|(path, _)| path);
        for path in files::changed_by(tool).into_iter().chain(written) {
            let shown = Shown::new(place, &lines_of(tool), true);
            self.shown
                .entry(format!("file {path}"))
                .or_default()
                .push(shown);
        }
        let view = files::view_of(tool);
        let is_file = view.is_some();
        let is_edit = matches!(
            tool.class,
            ToolClass::Edit | ToolClass::Write | ToolClass::Todo
        );
        let (key, what) = match view {
            Some(view) => (format!("file {}", view.path), view.path),
            None if is_edit => return,
            None => (
                format!("{} {}", tool.name, tool.input.as_str()),
                command_of(tool),
            ),
        };
        let new = Shown::new(place, text, is_file);
        let known = self.shown.entry(key).or_default();
        let is_repeated = new.is_shown_by(known.iter().filter(|shown| shown.gone.is_none()));
        let is_again = !is_repeated && new.is_shown_by(known.iter());
        let by = known.iter().filter_map(|shown| shown.gone).max();
        known.push(new);
        self.repeated_anyway += usize::from(is_repeated);
        let Some(by) = by.filter(|_| is_again) else {
            return;
        };
        let call = super::call_after(self.session, place.0).saturating_sub(1);
        let (counts, bill) = self.sizes;
        let tokens = bill.scale(call).text(counts.size(text));
        self.compactions[by].again.push(Again {
            what,
            is_file,
            call,
            tokens,
            usd: None,
        });
    }
}

/// All texts in the arguments of a tool use.
fn lines_of(tool: &ToolUse) -> Arc<str> {
    let mut texts = String::new();
    let mut rest = vec![tool.input.value()];
    while let Some(value) = rest.pop() {
        match value {
            Value::String(text) => texts = texts + &text + "\n",
            Value::Array(values) => rest.extend(values),
            Value::Object(fields) => rest.extend(fields.into_iter().map(|(_, value)| value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    texts.into()
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
        self.bring_back(entry, at);
        for (block, content) in entry.message.content().iter().enumerate() {
            match content {
                ContentBlock::ToolUse(tool) if tool.class == ToolClass::Shell => {
                    self.commands.insert(command_of(tool), (at, block));
                }
                ContentBlock::ToolResult(_) => {
                    if let Some(tool) = self.answers.get(&(at, block)).copied() {
                        self.take_result((at, block), &entry.message.model_text()[block], tool);
                    }
                }
                _ => {}
            }
        }
    }

    fn patched(&mut self, applied: &Applied) {
        let before = self.present_numbers();
        let by = self.begin(applied.call, false, &before);
        applied
            .change
            .removed
            .iter()
            .for_each(|entry| self.left(entry));
        applied.written().for_each(|entry| self.entered(entry));
        for number in before {
            let is_path = self.anchors.kind(number) == Kind::Path;
            let stays = self.is_present(number)
                || (is_path
                    && self
                        .anchors
                        .is_above(number, |below| self.is_present(below)));
            if stays {
                self.row(by, self.anchors.kind(number)).stayed += 1;
                continue;
            }
            let gone = Gone {
                by,
                back: None,
                is_needed: false,
            };
            self.gone.insert(number, gone);
        }
        for shown in self
            .shown
            .values_mut()
            .flatten()
            .filter(|shown| shown.gone.is_none())
        {
            shown.gone = (!self.kept.contains(&shown.place)).then_some(by);
        }
        let texts = applied
            .written()
            .flat_map(|entry| entry.message.model_text());
        let texts: Vec<Arc<str>> = texts.cloned().collect();
        self.count_work(by, applied.call, &texts);
    }

    fn called(&mut self, view: &CallView<'_>) {
        while self.opaque.first() == Some(&view.call) {
            self.opaque.remove(0);
            self.compacted_opaquely(view.call);
        }
        for (_, tool) in view.response.tool_uses() {
            for number in self.anchors.needed_by(tool) {
                let Some(gone) = self.gone.get_mut(&number).filter(|gone| !gone.is_needed) else {
                    continue;
                };
                gone.is_needed = true;
                let (by, back) = (gone.by, gone.back);
                let outcome = match back {
                    Some(back) => back,
                    None if self.compactions[by].is_opaque => Outcome::Unknown,
                    // The product or the agent itself had put it back.
                    None if self.is_present(number) => continue,
                    None => Outcome::Without,
                };
                let (kind, what) = (
                    self.anchors.kind(number),
                    self.anchors.text(number).to_owned(),
                );
                let call = view.call;
                self.need(
                    by,
                    Need {
                        kind,
                        what,
                        call,
                        outcome,
                    },
                );
            }
            if tool.class == ToolClass::Shell {
                let what = command_of(tool);
                if let Some(by) = self.gone_commands.remove(&what) {
                    let (kind, call, outcome) = (Kind::Command, view.call, Outcome::Without);
                    self.need(
                        by,
                        Need {
                            kind,
                            what,
                            call,
                            outcome,
                        },
                    );
                }
            }
        }
    }

    fn finish(self: Box<Self>, _: &mut CellRecord) {
        if let Some((compactions, repeated_anyway)) = self.found {
            *compactions = self.compactions;
            *repeated_anyway = self.repeated_anyway;
        }
    }
}
