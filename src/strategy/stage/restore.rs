//! After a compaction, what the agent still works with is put back: files, the plan, the task list,
//! skills.
//!
//! What comes back is what the session last said: a file as it was read or written last, the task
//! list as it was set last, a skill as it was loaded. Budgets keep the context from filling up
//! again at once; their constants are Claude Code's. After a refusal nothing comes back that would
//! make the prompt be refused again.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::context::{Context, Entry, Origin, Patch};
use crate::session::{Tag, ToolClass, ToolUse};
use crate::step::Step;
use crate::strategy::knob::KnobKind::{Text, Texts, Whole};
use crate::strategy::{
    Built, Knob, KnobReader, Law, Planned, Situation, Stage, StageError, StageKind, files, truncate,
};
use crate::tokens::Size;
use crate::units::Tokens;

/// `kind = "restore"`.
pub const KIND: StageKind = StageKind {
    name: "restore",
    description: "what a compaction took away is put back within budgets: files, the plan, the task \
                  list, skills",
    page: include_str!("../../../docs/stages/restore.md"),
    knobs: KNOBS,
    breaks: &[Law::NeverLarger],
    build,
};

const KNOBS: &[Knob] = &[
    Knob::new("sources", Texts),
    Knob::new("max_files", Whole(0, 5)),
    Knob::new("max_tokens_per_file", Whole(0, 5_000)),
    Knob::new("total_tokens", Whole(0, 50_000)),
    Knob::new("max_tokens_per_skill", Whole(0, 5_000)),
    Knob::new("skills_total_tokens", Whole(0, 25_000)),
    Knob::new("hook_results", Text("")),
    Knob::new("plan_tools", Texts),
    Knob::new("skill_tools", Texts),
];

/// The words of `sources`.
const SOURCES: [&str; 4] = ["files", "plans", "todo", "skills"];

const PLAN_TOOLS: [&str; 3] = ["exitplanmode", "exit_plan_mode", "exit_plan"];

const SKILL_TOOLS: [&str; 3] = ["skill", "load_skill", "activate_skill"];

fn build(knobs: &mut KnobReader<'_>) -> Built {
    let sources = knobs.words("sources", &SOURCES)?;
    let plan_tools = knobs.texts_or("plan_tools", &PLAN_TOOLS)?;
    let skill_tools = knobs.texts_or("skill_tools", &SKILL_TOOLS)?;
    let has = |source: &str| sources.is_empty() || sources.iter().any(|it| it == source);
    let max_files = knobs.count("max_files")?;
    let per_file = knobs.tokens("max_tokens_per_file")?;
    let per_skill = knobs.tokens("max_tokens_per_skill")?;
    let of_files = knobs.tokens("total_tokens")?;
    let of_skills = knobs.tokens("skills_total_tokens")?;
    let budget = |source, is_of: fn(&What) -> bool, max_items, max_each, total| Budget {
        is_of,
        max_items: if has(source) { max_items } else { 0 },
        max_each,
        total,
    };
    let is_file = |what: &What| matches!(what, What::File(_));
    let is_skill = |what: &What| matches!(what, What::Skill(_));
    Ok(Box::new(Restore {
        budgets: [
            budget("files", is_file, max_files, per_file, of_files),
            budget("plans", |what| *what == What::Plan, 1, per_file, per_file),
            budget("todo", |what| *what == What::Todo, 1, per_file, per_file),
            budget("skills", is_skill, usize::MAX, per_skill, of_skills),
        ],
        plan_tools,
        skill_tools,
        hook_results: knobs.text("hook_results")?,
        reported: Vec::new(),
        asked: BTreeMap::new(),
        known: BTreeMap::new(),
        uses: 0,
        replacements: 0,
    }))
}

#[derive(Debug)]
struct Restore {
    budgets: [Budget; 4],
    plan_tools: Vec<String>,
    skill_tools: Vec<String>,
    hook_results: String,
    /// What the summaries stand for of which the hook was told.
    reported: Vec<Arc<[Range<usize>]>>,
    /// Tool uses that nobody has answered yet, and where they are.
    asked: BTreeMap<Arc<str>, (ToolUse, Place)>,
    /// What can be put back, as it was last.
    known: BTreeMap<What, Known>,
    /// Counts what was used, to tell what was used last.
    uses: u64,
    /// [`Context::replacements`] when the stage looked last: what was never replaced is there.
    replacements: u64,
}

/// How much is put back of one kind of thing.
#[derive(Debug)]
struct Budget {
    is_of: fn(&What) -> bool,
    max_items: usize,
    max_each: Tokens,
    total: Tokens,
}

/// A thing that can be put back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    File(String),
    Plan,
    Todo,
    /// By the tool's arguments.
    Skill(String),
}

/// A block of a message of the session.
#[derive(Debug, Clone, Copy)]
struct Place {
    message: usize,
    block: usize,
}

/// A thing as it was last.
#[derive(Debug)]
struct Known {
    text: Arc<str>,
    /// Where the session says so.
    place: Place,
    /// A file was changed since.
    is_changed: bool,
    /// When it was used last.
    used: u64,
}

impl Stage for Restore {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> Planned<'a> {
        if self.replacements == context.replacements() {
            return Step::Done(Ok(Patch::default()));
        }
        self.replacements = context.replacements();
        let there = There::new(context);
        let mut room = cx.overflow.map_or(Tokens(u64::MAX), |_| {
            let free = cx.window.tokens - cx.window.overflow_reserve - cx.prompt(context);
            cx.scale.room(free)
        });
        let mut with = Vec::new();
        for budget in &self.budgets {
            with.extend(self.restored(budget, &there, &mut room, cx));
        }
        let mut reason = format!("{} things put back", with.len());
        if let Some(report) = self.report(context, &with, cx)
            && report.size.tokens <= room
        {
            with.push(report);
            reason.push_str(", and what hooks report");
        }
        if with.is_empty() {
            return Step::Done(Ok(Patch::default()));
        }
        let end = context.entries().len();
        Step::Done(Ok(Patch::replacing(reason, end..end, with)))
    }

    fn on_append(&mut self, entry: &Entry, _: &Situation) -> Result<Patch, StageError> {
        let (Origin::Verbatim(message) | Origin::Edited { message, .. }) = entry.origin else {
            return Ok(Patch::default());
        };
        for (block, tool) in entry.message.tool_uses() {
            let place = Place { message, block };
            // What is read, written or loaded has to succeed first; a list is as it is set.
            if is_named(tool, &self.plan_tools) {
                self.note(What::Plan, tool.input.as_str().into(), place);
            } else if tool.class == ToolClass::Todo && sets_list(tool) {
                self.note(What::Todo, tool.input.as_str().into(), place);
            }
            self.asked.insert(tool.id.clone(), (tool.clone(), place));
        }
        for (block, result) in entry.message.tool_results() {
            if let Some((tool, asked)) = self.asked.remove(&result.tool_use_id)
                && !result.is_error
            {
                self.answered(&tool, asked, entry, Place { message, block });
            }
        }
        Ok(Patch::default())
    }
}

impl Restore {
    fn answered(&mut self, tool: &ToolUse, asked: Place, answer: &Entry, place: Place) {
        let text = &answer.message.model_text()[place.block];
        if let Some((path, content)) = files::written_by(tool) {
            self.note(What::File(path), content.into(), asked);
        } else if let Some(view) = files::view_of(tool) {
            let what = What::File(view.path);
            match self.known.get_mut(&what) {
                // What another stage shortened says less than what is known of the same file.
                Some(known) if !known.is_changed && !answer.is_verbatim(place.block) => {
                    self.uses += 1;
                    known.used = self.uses;
                }
                _ => self.note(what, text.clone(), place),
            }
        } else if is_named(tool, &self.plan_tools) {
            // What is said to it is no plan.
        } else if tool.class == ToolClass::Todo && !sets_list(tool) {
            self.note(What::Todo, text.clone(), place);
        } else if is_named(tool, &self.skill_tools) {
            let what = What::Skill(tool.input.as_str().to_owned());
            self.note(what, text.clone(), place);
        } else {
            for path in files::changed_by(tool) {
                self.uses += 1;
                if let Some(known) = self.known.get_mut(&What::File(path)) {
                    known.is_changed = true;
                    known.used = self.uses;
                }
            }
        }
    }

    fn note(&mut self, what: What, text: Arc<str>, place: Place) {
        self.uses += 1;
        let known = Known {
            text,
            place,
            is_changed: false,
            used: self.uses,
        };
        self.known.insert(what, known);
    }

    /// What the hook says of a compaction that it was not told of yet.
    fn report(&mut self, context: &Context, restored: &[Entry], cx: &Situation) -> Option<Entry> {
        if self.hook_results.is_empty() {
            return None;
        }
        let derived = |entry: &Entry| match &entry.origin {
            Origin::Derived(ranges) => Some(ranges.clone()),
            _ => None,
        };
        let now: Vec<_> = context.entries().iter().filter_map(derived).collect();
        let told = std::mem::replace(&mut self.reported, now);
        let new = self.reported.iter().filter(|now| !told.contains(now));
        let messages: usize = new.flat_map(|ranges| ranges.iter()).map(Range::len).sum();
        let added: Size = restored.iter().map(|entry| entry.size).sum();
        let tokens = cx.prompt(context) + cx.scale.text(added);
        let text = self
            .hook_results
            .replace("{messages}", &messages.to_string())
            .replace("{restored}", &restored.len().to_string())
            .replace("{tokens}", &tokens.to_string());
        let is_said = |entry: &Entry| {
            entry.origin == Origin::Authored && *entry.message.model_text()[0] == *text
        };
        if messages == 0 || context.entries().iter().any(is_said) {
            return None;
        }
        Some(Entry::written(
            Origin::Authored,
            text,
            Tag::Meta,
            &cx.counts,
        ))
    }

    /// The things of one kind that are gone, the one that was used last first, as far as there is
    /// room. What was put back before takes its part of the budget.
    fn restored(
        &self,
        budget: &Budget,
        there: &There<'_>,
        room: &mut Tokens,
        cx: &Situation,
    ) -> Vec<Entry> {
        let known = self.known.iter();
        let mut gone: Vec<(&What, &Known)> = known
            .filter(|(what, known)| (budget.is_of)(what) && !there.holds(known))
            .collect();
        gone.sort_by_key(|(_, known)| std::cmp::Reverse(known.used));
        let mut total = Tokens::ZERO;
        let mut entries = Vec::new();
        for (what, known) in gone.into_iter().take(budget.max_items) {
            if let Some(size) = there.put_back(what, known) {
                total += size;
                continue;
            }
            let text = known.shown(what, budget.max_each, cx);
            let origin = Origin::Restored(known.place.message);
            let entry = Entry::written(origin, text, Tag::Meta, &cx.counts);
            let size = entry.size.tokens;
            if total + size <= budget.total && size <= *room {
                total += size;
                *room = *room - size;
                entries.push(entry);
            }
        }
        entries
    }
}

fn is_named(tool: &ToolUse, names: &[String]) -> bool {
    let mut names = names.iter();
    names.any(|name| tool.name.eq_ignore_ascii_case(name))
}

/// Whether a task-list tool sets the list; one without arguments asks for it.
fn sets_list(tool: &ToolUse) -> bool {
    !matches!(tool.input.as_str(), "{}" | "null" | "\"\"")
}

impl What {
    /// The first line of what is put back.
    fn heading(&self) -> String {
        match self {
            Self::File(path) => format!("[Put back: file {path}]"),
            Self::Plan => "[Put back: plan]".to_owned(),
            Self::Todo => "[Put back: task list]".to_owned(),
            Self::Skill(input) => format!("[Put back: skill {input}]"),
        }
    }
}

impl Known {
    /// As it is put back: within so many tokens, the heading included.
    fn shown(&self, what: &What, tokens: Tokens, cx: &Situation) -> String {
        let counter = &**cx.counts.counter();
        let mut text = what.heading() + "\n";
        if self.is_changed {
            text.push_str(CHANGED);
        }
        let room = tokens - counter.count(&text);
        if cx.counts.size(&self.text).tokens <= room {
            text.push_str(&self.text);
        } else {
            let room = room - counter.count(CUT);
            text.push_str(truncate::head(&self.text, room, counter));
            text.push_str(CUT);
        }
        text
    }
}

const CHANGED: &str = "[It was changed after this.]\n";

const CUT: &str = "\n[…]";

/// What the context holds, to tell what is gone.
struct There<'c> {
    /// By message of the session, the entry that is it.
    messages: BTreeMap<usize, &'c Entry>,
    /// Sizes of what was put back before, by message and first line.
    restored: BTreeMap<(usize, &'c str), Tokens>,
}

impl<'c> There<'c> {
    fn new(context: &'c Context) -> Self {
        let mut there = Self {
            messages: BTreeMap::new(),
            restored: BTreeMap::new(),
        };
        for entry in context.entries() {
            match entry.origin {
                Origin::Verbatim(at) | Origin::Edited { message: at, .. } => {
                    there.messages.insert(at, entry);
                }
                Origin::Restored(at) => {
                    let text = entry.message.model_text().first();
                    let line = text.and_then(|text| text.lines().next());
                    let key = (at, line.unwrap_or_default());
                    there.restored.insert(key, entry.size.tokens);
                }
                Origin::Derived(_) | Origin::Authored => {}
            }
        }
        there
    }

    fn holds(&self, known: &Known) -> bool {
        let Place { message, block } = known.place;
        let stands = |entry: &&Entry| {
            entry.is_verbatim(block) || entry.message.model_text().get(block) == Some(&known.text)
        };
        self.messages.get(&message).is_some_and(stands)
    }

    fn put_back(&self, what: &What, known: &Known) -> Option<Tokens> {
        let key = (known.place.message, &*what.heading());
        self.restored.get(&key).copied()
    }
}

#[cfg(test)]
mod tests;
