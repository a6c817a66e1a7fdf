//! After a compaction, what the agent still works with is put back: files, the plan, the task list,
//! skills, and the reminders that the product puts in front of the first prompt.
//!
//! A restored item is as the session last had it: a file as it was read or written last, the task
//! list as it was set last, a skill as it was loaded. Budgets keep the context from filling up
//! again at once; their constants are Claude Code's. After a refusal nothing is restored that would
//! make the provider refuse the prompt again.

use super::prelude::*;

/// The tools with which agents present their plans.
const PLAN_TOOLS: [&str; 3] = ["exitplanmode", "exit_plan_mode", "exit_plan"];

/// The tools that load skills.
const SKILL_TOOLS: [&str; 3] = ["skill", "load_skill", "activate_skill"];

#[derive(Debug, Deserialize)]
pub(super) struct Restore {
    sources: Vec<ItemKind>,
    max_files: usize,
    max_tokens_per_file: Tokens,
    total_tokens: Tokens,
    max_tokens_per_skill: Tokens,
    skills_total_tokens: Tokens,
    hook_results: String,
    /// The ranges of messages behind the summaries that the hook has reported.
    #[serde(skip)]
    reported: Vec<Vec<Range<usize>>>,
    /// Tool uses without an answer so far, and where they are.
    #[serde(skip)]
    asked: BTreeMap<Arc<str>, (ToolUse, SessionBlock)>,
    /// The items that can be restored, in their last version.
    #[serde(skip)]
    known: BTreeMap<ItemKey, LastVersion>,
    /// Whether the model has said something: reminders before that are the product's own.
    #[serde(skip)]
    has_begun: bool,
    /// Counts uses, to find the last one.
    #[serde(skip)]
    uses: u64,
    /// [`Context::replacements`] when the stage looked last: what was never replaced is there.
    #[serde(skip)]
    replacements: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
enum ItemKind {
    #[serde(rename = "files")]
    File,
    #[serde(rename = "plans")]
    Plan,
    #[serde(rename = "todo")]
    Todo,
    #[serde(rename = "skills")]
    Skill,
    #[serde(rename = "reminders")]
    Reminder,
    /// Files that a command shows: they count among the files.
    #[serde(rename = "shown")]
    Shown,
}

impl ItemKind {
    const ALL: [Self; 5] = [Self::File, Self::Plan, Self::Todo, Self::Skill, Self::Reminder];
}

/// Something that can be put back: a file by its path, a skill by the tool's arguments, a reminder
/// by its block; of plans and task lists there is one.
type ItemKey = (ItemKind, String);

/// A block of a message of the session.
#[derive(Debug, Clone, Copy)]
struct SessionBlock {
    message: usize,
    block: usize,
}

/// A thing as it was last.
#[derive(Debug)]
struct LastVersion {
    text: Arc<str>,
    /// Where the session says so.
    place: SessionBlock,
    /// A file was changed since.
    is_changed: bool,
    /// A command showed the file, which is put back beside the command's result.
    is_shown: bool,
    /// When it was used last.
    used: u64,
}

impl Stage for Restore {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        if self.replacements == context.replacements() {
            return Step::Done(Ok(Patch::default()));
        }
        self.replacements = context.replacements();
        let held = ContextIndex::by(context);
        let mut room = cx.overflow.map_or(Tokens(u64::MAX), |_| {
            let free = cx.window.tokens - cx.window.overflow_reserve - cx.prompt(context);
            cx.scale.room(free)
        });
        let mut with = Vec::new();
        for kind in ItemKind::ALL {
            with.extend(self.restored(kind, &held, &mut room, cx));
        }
        let mut reason = format!("{} things put back", with.len());
        if let Some(report) = self.report(context, &with, cx)
            && report.size().tokens <= room
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

    fn take_note_of(&mut self, entry: &Entry) {
        let (Origin::Verbatim(message) | Origin::Edited { message, .. }) = entry.origin else {
            return;
        };
        self.has_begun |= entry.message.role() == Role::Assistant;
        for (block, text) in entry.message.model_text().iter().enumerate() {
            if !self.has_begun && text.starts_with("<system-reminder>") {
                let place = SessionBlock { message, block };
                let reminder = (ItemKind::Reminder, format!("{message}.{block}"));
                self.note(reminder, text.clone(), place);
            }
        }
        for (block, tool) in entry.message.tool_uses() {
            let place = SessionBlock { message, block };
            // A read, a write or a load has to succeed first; a list counts as it is set.
            if is_named(tool, PLAN_TOOLS) {
                self.note((ItemKind::Plan, String::new()), tool.input.as_str(), place);
            } else if tool.class == ToolClass::Todo && sets_list(tool) {
                self.note((ItemKind::Todo, String::new()), tool.input.as_str(), place);
            }
            self.asked.insert(tool.id.clone(), (tool.clone(), place));
        }
        for (block, result) in entry.message.tool_results() {
            if let Some((tool, asked)) = self.asked.remove(&result.tool_use_id)
                && !result.is_error
            {
                self.answered(&tool, asked, entry, SessionBlock { message, block });
            }
        }
    }
}

impl Restore {
    fn answered(
        &mut self,
        tool: &ToolUse,
        asked: SessionBlock,
        answer: &Entry,
        place: SessionBlock,
    ) {
        let text = &answer.message.model_text()[place.block];
        if let Some((path, content)) = files::written_by(tool) {
            self.note((ItemKind::File, path), content, asked);
        } else if let Some(view) = files::view_of(tool) {
            let file = (ItemKind::File, view.path);
            match self.known.get_mut(&file) {
                // A result that another stage shortened holds less than the known version of the
                // same file.
                Some(known) if !known.is_changed && !answer.is_verbatim(place.block) => {
                    self.uses += 1;
                    known.used = self.uses;
                }
                _ => self.note(file, text.clone(), place),
            }
        } else if self.restores(ItemKind::Shown)
            && let Some(path) = files::shown_by(tool)
        {
            let file = (ItemKind::File, path);
            self.note(file.clone(), text.clone(), place);
            if let Some(known) = self.known.get_mut(&file) {
                known.is_shown = true;
            }
        } else if is_named(tool, PLAN_TOOLS) {
            // The result of a plan tool is not a plan.
        } else if tool.class == ToolClass::Todo && !sets_list(tool) {
            self.note((ItemKind::Todo, String::new()), text.clone(), place);
        } else if is_named(tool, SKILL_TOOLS) {
            let skill = (ItemKind::Skill, tool.input.as_str().to_owned());
            self.note(skill, text.clone(), place);
        } else {
            for path in files::changed_by(tool) {
                self.uses += 1;
                if let Some(known) = self.known.get_mut(&(ItemKind::File, path)) {
                    known.is_changed = true;
                    known.used = self.uses;
                }
            }
        }
    }

    fn restores(&self, kind: ItemKind) -> bool {
        self.sources.is_empty() || self.sources.contains(&kind)
    }

    fn note(&mut self, thing: ItemKey, text: impl Into<Arc<str>>, place: SessionBlock) {
        self.uses += 1;
        let known = LastVersion {
            text: text.into(),
            place,
            is_changed: false,
            is_shown: false,
            used: self.uses,
        };
        self.known.insert(thing, known);
    }

    /// The hook's report of a compaction that it has not reported yet.
    fn report(&mut self, context: &Context, restored: &[Entry], cx: &Situation) -> Option<Entry> {
        if self.hook_results.is_empty() {
            return None;
        }
        let entries = context.entries().iter();
        let replaced = entries.map(|entry| entry.origin.replaced().to_vec());
        let now = replaced.filter(|ranges| !ranges.is_empty()).collect();
        let told = std::mem::replace(&mut self.reported, now);
        let new = self.reported.iter().filter(|now| !told.contains(now));
        let messages: usize = new.flatten().map(Range::len).sum();
        let added: Size = restored.iter().map(Entry::size).sum();
        let tokens = cx.prompt(context) + cx.scale.text(added);
        let text = self
            .hook_results
            .replace("{messages}", &messages.to_string())
            .replace("{restored}", &restored.len().to_string())
            .replace("{tokens}", &tokens.to_string());
        let unsaid = messages > 0
            && !context.entries().iter().any(|entry: &Entry| {
                entry.origin == Origin::Authored && *entry.message.model_text()[0] == *text
            });
        unsaid.then(|| Entry::written(Origin::Authored, text, Tag::Meta, &cx.counts))
    }

    /// The things of one kind that are gone, the one that was used last first, as far as there is
    /// room. What was put back before takes its part of the budget.
    fn restored(
        &self,
        kind: ItemKind,
        held: &ContextIndex<'_>,
        room: &mut Tokens,
        cx: &Situation,
    ) -> Vec<Entry> {
        if !self.restores(kind) {
            return Vec::new();
        }
        let per_file = self.max_tokens_per_file;
        let (most, each, all) = match kind {
            ItemKind::File | ItemKind::Shown => (self.max_files, per_file, self.total_tokens),
            ItemKind::Reminder => (usize::MAX, Tokens(u64::MAX), Tokens(u64::MAX)),
            ItemKind::Plan | ItemKind::Todo => (1, per_file, per_file),
            ItemKind::Skill => {
                let (each, all) = (self.max_tokens_per_skill, self.skills_total_tokens);
                (usize::MAX, each, all)
            }
        };
        let known = self.known.iter();
        let mut gone: Vec<(&ItemKey, &LastVersion)> =
            known.filter(|(thing, known)| thing.0 == kind && !held.holds(known)).collect();
        gone.sort_by_key(|(_, known)| std::cmp::Reverse(known.used));
        let mut total = Tokens::ZERO;
        let mut entries = Vec::new();
        for (thing, known) in gone.into_iter().take(most) {
            let line = heading(thing);
            let origin = Origin::Restored(known.place.message);
            if let Some(size) = held.restored.get(&(known.place.message, &*line)) {
                total += *size;
                continue;
            }
            let text = known.shown(line, each, cx);
            let entry = Entry::written(origin, text, Tag::Meta, &cx.counts);
            let size = entry.size().tokens;
            if total + size <= all && size <= *room {
                total += size;
                *room = *room - size;
                entries.push(entry);
            }
        }
        entries
    }
}

/// Whether a tool has one of these names, in any case.
fn is_named(tool: &ToolUse, names: [&str; 3]) -> bool {
    names.into_iter().any(|name| tool.name.eq_ignore_ascii_case(name))
}

/// Whether a task-list tool sets the list; one without arguments asks for it.
fn sets_list(tool: &ToolUse) -> bool {
    !matches!(tool.input.as_str(), "{}" | "null" | "\"\"")
}

/// The first line of what is put back.
fn heading((kind, name): &ItemKey) -> String {
    match kind {
        ItemKind::File | ItemKind::Shown => format!("[Put back: file {name}]"),
        ItemKind::Reminder => "[Put back: reminder]".to_owned(),
        ItemKind::Plan => "[Put back: plan]".to_owned(),
        ItemKind::Todo => "[Put back: task list]".to_owned(),
        ItemKind::Skill => format!("[Put back: skill {name}]"),
    }
}

impl LastVersion {
    /// The text of a restored item: within a number of tokens, the heading included.
    fn shown(&self, heading: String, tokens: Tokens, cx: &Situation) -> String {
        let counter = &**cx.counts.counter();
        let mut text = heading + "\n";
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

/// An index of the context, to find the items that are gone.
#[derive(Default)]
struct ContextIndex<'c> {
    /// By message of the session, the entry that is it.
    messages: BTreeMap<usize, &'c Entry>,
    /// Sizes of what was put back before, by message and first line.
    restored: BTreeMap<(usize, &'c str), Tokens>,
}

impl<'c> ContextIndex<'c> {
    fn by(context: &'c Context) -> Self {
        let mut held = Self::default();
        for entry in context.entries() {
            match entry.origin {
                Origin::Verbatim(at) | Origin::Edited { message: at, .. } => {
                    held.messages.insert(at, entry);
                }
                Origin::Restored(at) => {
                    let text = entry.message.model_text().first();
                    let line = text.and_then(|text| text.lines().next());
                    let key = (at, line.unwrap_or_default());
                    held.restored.insert(key, entry.size().tokens);
                }
                Origin::Derived(_) | Origin::Authored => {}
            }
        }
        held
    }

    fn holds(&self, known: &LastVersion) -> bool {
        if known.is_shown {
            return false;
        }
        let SessionBlock { message, block } = known.place;
        self.messages.get(&message).is_some_and(|entry: &&Entry| {
            entry.is_verbatim(block) || entry.message.model_text().get(block) == Some(&known.text)
        })
    }
}

#[cfg(test)]
mod tests;
