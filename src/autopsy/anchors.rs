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
            found: PerText::default(),
        };
        let mut files: HashMap<String, Vec<u32>> = HashMap::new();
        for name in given {
            anchors.add(name, &mut files);
        }
        anchors
    }

    /// Gives a name its number: that of the only known path which it ends, or a new one.
    fn add(&mut self, name: String, files: &mut HashMap<String, Vec<u32>>) {
        let file = name.rsplit('/').next().unwrap_or_default();
        let known = files.get(file).filter(|known| known.len() <= MOST_FILES);
        let ends = |number: &&u32| self.texts[**number as usize].ends_with(&format!("/{name}"));
        let mut same = known.into_iter().flatten().filter(ends);
        let number = match (same.next(), same.next()) {
            (Some(only), None) => *only,
            _ => {
                let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
                if name.contains('/') {
                    files.entry(file.to_owned()).or_default().push(number);
                    self.paths.insert(name.clone(), number);
                }
                self.kinds.push(kind_of(&name));
                self.texts.push(name.clone());
                number
            }
        };
        self.numbers.insert(name, number);
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
        each_name(text, |name| found.extend(self.numbers.get(name)));
        found.into_iter().collect()
    }

    /// The numbers of all that a tool use needs: of a command all in front of the text that it is given, of a change the
    /// files, else all in its arguments. What a change writes is new.
    pub(super) fn needed_by(&self, tool: &ToolUse) -> BTreeSet<u32> {
        match tool.class {
            ToolClass::Edit | ToolClass::Write => {
                let written = files::written_by(tool).map(|(path, _)| path);
                let changed = files::changed_by(tool).into_iter().chain(written);
                changed
                    .filter_map(|path| self.numbers.get(&path).copied())
                    .collect()
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
            .filter_map(|entity| self.numbers.get(&entity.text).copied())
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
