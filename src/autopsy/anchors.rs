//! All that a session's user and tools gave, and that its agent ran and planned: each thing has one number, however a path
//! is spelled.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::Kind;
use crate::patterns::{Boundary, Pattern, Patterns, PatternsError, PerText};
use crate::probe::Fact;
use crate::probe::derive::{derive, work::items_of};
use crate::replay::observe::action_support::entities::names;
use crate::session::{ContentBlock, Role, Session, ToolClass, ToolUse};
use crate::strategy::files;

/// A file name that more files have is no path's other spelling: it may be any of theirs.
const MOST_FILES: usize = 64;

/// A shorter phrase stands in texts by chance, and a longer one nowhere else.
const PHRASE: std::ops::RangeInclusive<usize> = 6..=400;

/// All that may be needed again.
#[derive(Debug)]
pub(super) struct Anchors {
    numbers: HashMap<String, u32>,
    /// By number: its kind, and its longest spelling.
    pub(super) all: Vec<(Kind, String)>,
    /// The paths in order: those below a folder follow it.
    paths: BTreeMap<String, u32>,
    /// The paths by their last part.
    files: HashMap<String, Vec<u32>>,
    /// Commands, plan items and running tasks, which are several words; the first has this number.
    phrases: Patterns,
    first_phrase: u32,
    found: PerText<[u32]>,
}

impl Anchors {
    pub(super) fn of(session: &Session) -> Result<Self, PatternsError> {
        let (mut given, mut phrases) = (BTreeSet::new(), BTreeMap::new());
        for message in session.messages() {
            if message.role() == Role::User {
                let texts = message.model_text().iter();
                texts.for_each(|text| add_names(text, &mut given));
            }
            for (_, tool) in message.tool_uses() {
                // A file that a tool has shown or changed is there.
                for path in files_of(tool) {
                    add_names(&path, &mut given);
                }
                if tool.class == ToolClass::Shell {
                    phrases.insert(command_of(tool), Kind::Command);
                }
                let items = items_of(tool).into_iter();
                phrases.extend(items.map(|item| (item, Kind::PlanItem)));
            }
        }
        phrases.retain(|text: &String, _| PHRASE.contains(&text.len()));
        if !session.compactions().is_empty() {
            for fact in derive(session).facts {
                if let Fact::OpenHandle { handles, .. } = fact.fact {
                    phrases.extend(handles.into_iter().map(|task| (task.name, Kind::Task)));
                }
            }
        }
        let patterns = phrases.keys().map(|text| Pattern {
            text: text.clone(),
            boundary: Boundary::Word,
        });
        let mut anchors = Self {
            phrases: Patterns::new(patterns.collect())?,
            numbers: HashMap::new(),
            all: Vec::new(),
            paths: BTreeMap::new(),
            files: HashMap::new(),
            first_phrase: 0,
            found: PerText::default(),
        };
        // The longest spelling of a path comes first, names without a folder last.
        let mut given: Vec<String> = given.into_iter().collect();
        given.sort_by_key(|name| (!name.contains('/'), std::cmp::Reverse(name.len())));
        for name in given {
            anchors.add(name);
        }
        anchors.first_phrase = anchors.next();
        anchors
            .all
            .extend(phrases.into_iter().map(|(text, kind)| (kind, text)));
        Ok(anchors)
    }

    fn next(&self) -> u32 {
        u32::try_from(self.all.len()).unwrap_or(u32::MAX)
    }

    /// Gives a name its number: that of the only path of the same file, or a new one.
    fn add(&mut self, name: String) {
        let number = self.same_file(&name).unwrap_or_else(|| {
            let number = self.next();
            if name.contains('/') {
                let files = self.files.entry(last_part(&name).to_owned());
                files.or_default().push(number);
                self.paths.insert(name.clone(), number);
            }
            self.all.push((kind_of(&name), name.clone()));
            number
        });
        self.numbers.insert(name, number);
    }

    /// The only path that may be spelled like this: one of them ends as the other does.
    fn same_file(&self, name: &str) -> Option<u32> {
        let known = self.files.get(last_part(name));
        let known = known.filter(|known| known.len() <= MOST_FILES)?;
        let mut same = known.iter().filter(|number| {
            let path = &self.all[**number as usize].1;
            is_end(path, name) || is_end(name, path)
        });
        same.next().filter(|_| same.next().is_none()).copied()
    }

    fn number(&self, name: &str) -> Option<u32> {
        let known = self.numbers.get(name).copied();
        known.or_else(|| self.same_file(name))
    }

    /// The numbers of all in a block, each once.
    pub(super) fn in_block(&self, block: &ContentBlock, text: &Arc<str>) -> Arc<[u32]> {
        self.found.get_or(text, || match block {
            ContentBlock::ToolUse(tool) => self.in_text(&text_of(tool)).into_iter().collect(),
            _ => self.in_text(text).into_iter().collect(),
        })
    }

    pub(super) fn in_text(&self, text: &str) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        each_name(text, |name| found.extend(self.number(name)));
        let phrases = self.phrases.search(text);
        found.extend(phrases.iter().map(|hit| self.first_phrase + hit.pattern));
        found
    }

    /// The numbers of all that a tool use needs: of a look at a file or a change its path, of a command all in front of
    /// the text that it is given, else all in its arguments. What a change writes is new, and a line number is no value.
    pub(super) fn needed_by(&self, tool: &ToolUse) -> BTreeSet<u32> {
        let files = files_of(tool);
        match tool.class {
            _ if !files.is_empty() => files.iter().filter_map(|path| self.number(path)).collect(),
            ToolClass::Edit | ToolClass::Write => BTreeSet::new(),
            ToolClass::Shell => {
                let command = command_of(tool);
                let mut found = self.in_text(command.split("<<").next().unwrap_or_default());
                // A command that is run again needs no prompt that holds it: its result is what was made again.
                found.retain(|number| self.all[*number as usize].0 != Kind::Command);
                found
            }
            _ => self.in_text(&text_of(tool)),
        }
    }

    /// Whether a path stands in a text that names one below it.
    pub(super) fn is_above(&self, number: u32, is_present: impl Fn(u32) -> bool) -> bool {
        let (kind, path) = &self.all[number as usize];
        let folder = format!("{}/", path.trim_end_matches('/'));
        let paths = self.paths.range(folder.clone()..);
        let mut below = paths.take_while(|(path, _)| path.starts_with(&folder));
        *kind == Kind::Path && below.any(|(_, number)| is_present(*number))
    }
}

/// The files that a tool use changes.
pub(super) fn changed_by(tool: &ToolUse) -> Vec<String> {
    let written = files::written_by(tool).map(|(path, _)| path);
    files::changed_by(tool).into_iter().chain(written).collect()
}

/// The files that a tool use shows or changes.
fn files_of(tool: &ToolUse) -> Vec<String> {
    changed_by(tool).into_iter().chain(shown_by(tool)).collect()
}

/// The file that a tool use shows.
pub(super) fn shown_by(tool: &ToolUse) -> Option<String> {
    files::view_of(tool).map(|view| view.path)
}

/// The command line of a tool use, else its name and arguments.
pub(super) fn command_of(tool: &ToolUse) -> String {
    let input = tool.input.value();
    let mut keys = ["command", "cmd", "script"].iter();
    let command = keys.find_map(|key| input.get(key)?.as_str());
    command.map_or_else(
        || format!("{} {}", tool.name, tool.input.as_str()),
        str::to_owned,
    )
}

/// All texts and numbers in the arguments of a tool use, a line each.
pub(super) fn text_of(tool: &ToolUse) -> String {
    let (mut texts, mut rest) = (String::new(), vec![tool.input.value()]);
    while let Some(value) = rest.pop() {
        match value {
            Value::String(text) => texts = texts + &text + "\n",
            Value::Number(number) => texts = texts + &number.to_string() + "\n",
            Value::Array(values) => rest.extend(values),
            Value::Object(fields) => rest.extend(fields.into_iter().map(|(_, value)| value)),
            Value::Null | Value::Bool(_) => {}
        }
    }
    texts
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Whether a path ends as another does, part by part.
fn is_end(path: &str, other: &str) -> bool {
    let front = path.strip_suffix(other);
    front.is_some_and(|front| front.is_empty() || front.ends_with('/'))
}

/// Calls `found` with the names in a text; an escaped line feed ends one.
fn each_name(text: &str, found: impl FnMut(&str)) {
    names(&text.replace("\\n", "\n").replace("\\t", "\t"), found);
}

fn add_names(text: &str, found: &mut BTreeSet<String>) {
    each_name(text, |name| {
        found.insert(name.to_owned());
    });
}

fn kind_of(name: &str) -> Kind {
    let others = name.trim_matches(|c: char| c.is_ascii_hexdigit() || ".-_".contains(c));
    if name.contains('/') {
        Kind::Path
    } else if others.is_empty() && name.contains(|c: char| c.is_ascii_digit()) {
        Kind::Value
    } else {
        Kind::Name
    }
}
