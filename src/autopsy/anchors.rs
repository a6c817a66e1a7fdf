//! The names, paths and values of a session that its user or its tools gave: each has one number, however a path is
//! spelled.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{Kind, command_of};
use crate::patterns::PerText;
use crate::replay::observe::action_support::entities::{entities, names};
use crate::session::{ContentBlock, Role, Session, ToolClass, ToolUse};
use crate::strategy::files;

/// A file name that more files have is no path's other spelling: it may be any of theirs.
const MOST_FILES: usize = 64;

/// All that a session's user and tools gave that may be needed again.
#[derive(Debug)]
pub(super) struct Anchors {
    numbers: HashMap<String, u32>,
    /// By number: the longest spelling.
    texts: Vec<String>,
    kinds: Vec<Kind>,
    /// The paths in order: those below a folder follow it.
    paths: BTreeMap<String, u32>,
    /// The paths by their last part.
    files: HashMap<String, Vec<u32>>,
    found: PerText<[u32]>,
}

impl Anchors {
    pub(super) fn of(session: &Session) -> Self {
        let mut given: BTreeSet<String> = BTreeSet::new();
        let messages = session.messages().iter();
        for message in messages.filter(|message| message.role() == Role::User) {
            for text in message.model_text() {
                each_name(text, |name| {
                    if !given.contains(name) {
                        given.insert(name.to_owned());
                    }
                });
            }
        }
        let mut given: Vec<String> = given.into_iter().collect();
        // The longest spelling of a path comes first, names without a folder last.
        given.sort_by_key(|name| (!name.contains('/'), std::cmp::Reverse(name.len())));
        let mut anchors = Self {
            numbers: HashMap::with_capacity(given.len()),
            texts: Vec::new(),
            kinds: Vec::new(),
            paths: BTreeMap::new(),
            files: HashMap::new(),
            found: PerText::default(),
        };
        for name in given {
            anchors.add(name);
        }
        anchors
    }

    /// Gives a name its number: that of the only path of the same file, or a new one.
    fn add(&mut self, name: String) {
        let number = self.same_file(&name).unwrap_or_else(|| {
            let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
            if name.contains('/') {
                let files = self.files.entry(last_part(&name).to_owned());
                files.or_default().push(number);
                self.paths.insert(name.clone(), number);
            }
            self.kinds.push(kind_of(&name));
            self.texts.push(name.clone());
            number
        });
        self.numbers.insert(name, number);
    }

    /// The only path that may be spelled like this: one of them ends as the other does.
    fn same_file(&self, name: &str) -> Option<u32> {
        let known = self.files.get(last_part(name))?;
        if known.len() > MOST_FILES {
            return None;
        }
        let mut same = known.iter().filter(|number| {
            let path = self.text(**number);
            is_end(path, name) || is_end(name, path)
        });
        same.next().filter(|_| same.next().is_none()).copied()
    }

    fn number(&self, name: &str) -> Option<u32> {
        let known = self.numbers.get(name).copied();
        known.or_else(|| self.same_file(name))
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(super) fn text(&self, number: u32) -> &str {
        &self.texts[number as usize]
    }

    pub(super) fn kind(&self, number: u32) -> Kind {
        self.kinds[number as usize]
    }

    /// The numbers of all in a block, each once.
    pub(super) fn in_block(&self, block: &ContentBlock, text: &Arc<str>) -> Arc<[u32]> {
        self.found.get_or(text, || match block {
            ContentBlock::ToolUse(tool) => self.in_arguments(tool).into_iter().collect(),
            _ => self.in_text(text),
        })
    }

    /// The same of a text.
    pub(super) fn in_text(&self, text: &str) -> Arc<[u32]> {
        let mut found = BTreeSet::new();
        each_name(text, |name| found.extend(self.number(name)));
        found.into_iter().collect()
    }

    /// The numbers of all that a tool use needs: of a command all in front of the text that it is given, of a look at a file
    /// or a change its path, else all in its arguments. What a change writes is new, and a line number is no value.
    pub(super) fn needed_by(&self, tool: &ToolUse) -> BTreeSet<u32> {
        if let Some(view) = files::view_of(tool) {
            return self.number(&view.path).into_iter().collect();
        }
        match tool.class {
            ToolClass::Edit | ToolClass::Write => {
                let written = files::written_by(tool).map(|(path, _)| path);
                let changed = files::changed_by(tool).into_iter().chain(written);
                changed.filter_map(|path| self.number(&path)).collect()
            }
            ToolClass::Shell => {
                let command = command_of(tool);
                let typed = command.split("<<").next().unwrap_or_default();
                self.in_text(typed).iter().copied().collect()
            }
            _ => self.in_arguments(tool),
        }
    }

    fn in_arguments(&self, tool: &ToolUse) -> BTreeSet<u32> {
        let entities = entities(&tool.input.value()).into_iter();
        entities
            .filter_map(|entity| self.number(&entity.text))
            .collect()
    }

    /// Whether a path stands in a text that names one below it.
    pub(super) fn is_above(&self, number: u32, is_present: impl Fn(u32) -> bool) -> bool {
        let folder = format!("{}/", self.texts[number as usize].trim_end_matches('/'));
        let below = self.paths.range(folder.clone()..);
        let mut below = below.take_while(|(path, _)| path.starts_with(&folder));
        below.any(|(_, number)| is_present(*number))
    }
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
    if text.contains("\\n") || text.contains("\\t") {
        names(&text.replace("\\n", "\n").replace("\\t", "\t"), found);
    } else {
        names(text, found);
    }
}

fn kind_of(name: &str) -> Kind {
    let is_digit = |c: char| c.is_ascii_hexdigit() || matches!(c, '.' | '-' | '_');
    if name.contains('/') {
        Kind::Path
    } else if name.contains(|c: char| c.is_ascii_digit()) && name.chars().all(is_digit) {
        Kind::Value
    } else {
        Kind::Name
    }
}
