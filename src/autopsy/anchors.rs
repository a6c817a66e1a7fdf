//! All that a session's user and tools gave, and that its agent ran and planned: each thing has one number, however a path
//! is spelled.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::ThingKind;
use crate::patterns::{Boundary, Pattern, Patterns, PatternsError, PerText};
use crate::probe::derive::work::{calls, handles, items_of};
use crate::probe::{self, Fact};
use crate::replay::observe::action_support::entities::{each_text, names};
use crate::session::{ContentBlock, Role, Session, ToolClass, ToolUse};
use crate::strategy::files;

/// A shorter phrase stands in texts by chance, and a longer one nowhere else.
const PHRASE: std::ops::RangeInclusive<usize> = 6..=400;

/// An amount and its unit, such as `30ms`, or `220p`, the last line that `sed` prints; a longer one is the beginning of a
/// hash. And files of the system, which no prompt has to hold.
static NEVER_NEEDED: probe::LazyPattern =
    probe::LazyPattern::new("^(?:[0-9]{1,4}[a-z]{1,2}|[0-9]{5}[a-z])$|^/(?:dev|proc)/");

/// A number, an id or a hash.
static VALUE: probe::LazyPattern = probe::LazyPattern::new("^[0-9A-Fa-f._-]*[0-9][0-9A-Fa-f._-]*$");

/// An option of a command, up to the value that it sets.
static OPTION: probe::LazyPattern = probe::LazyPattern::new(r"(?:^|\s)-[^\s=]*=?");

/// All that may be needed again.
#[derive(Debug)]
pub(super) struct NeededAnchors {
    /// The numbers of a spelling: several where it is the end of several paths.
    numbers: HashMap<String, Vec<u32>>,
    /// By number: its kind, and its longest spelling.
    pub(super) all: Vec<(ThingKind, String)>,
    /// The paths by their last part.
    files: HashMap<String, Vec<u32>>,
    /// Commands, plan items and running tasks, which are several words: they have the first numbers.
    phrases: Patterns,
    /// The files that a tool has shown or changed: one in a folder `a` or `b` is no side of a diff.
    touched: BTreeSet<String>,
    found: PerText<[u32]>,
}

impl NeededAnchors {
    pub(super) fn of(session: &Session) -> Result<Self, PatternsError> {
        let (mut given, mut phrases) = (BTreeSet::new(), BTreeMap::new());
        let messages = session.messages().iter();
        for (_, tool) in messages.flat_map(|message| message.tool_uses()) {
            // A file that a tool has shown or changed is there.
            given.extend(files_of(tool));
            if tool.class == ToolClass::Shell {
                phrases.insert(command_of(tool), ThingKind::Command);
            }
            phrases.extend(items_of(tool).into_iter().map(|item| (item, ThingKind::PlanItem)));
        }
        let touched = given.clone();
        let of_user = session.messages().iter().filter(|message| message.role() == Role::User);
        for text in of_user.flat_map(|message| message.model_text()) {
            each_name(text, &touched, |name| _ = given.insert(name.to_owned()));
        }
        phrases.retain(|text: &String, _| PHRASE.contains(&text.len()));
        let running = handles(session, &calls(session)).map(|found| found.fact);
        if let Some(Fact::OpenHandle { handles, .. }) = running {
            phrases.extend(handles.into_iter().map(|task| (task.name, ThingKind::Task)));
        }
        // The name of a running task is that task, and nothing more.
        given.retain(|name| phrases.get(name) != Some(&ThingKind::Task));
        let patterns =
            phrases.keys().map(|text| Pattern { text: text.clone(), boundary: Boundary::Word });
        let mut anchors = Self {
            phrases: Patterns::new(patterns.collect())?,
            all: phrases.into_iter().map(|(text, kind)| (kind, text)).collect(),
            numbers: HashMap::new(),
            files: HashMap::new(),
            touched,
            found: PerText::default(),
        };
        // The longest spelling of a path comes first, names without a folder last.
        let mut given: Vec<String> = given.into_iter().collect();
        given.sort_by_key(|name| (!name.contains('/'), Reverse(name.len())));
        for name in given {
            let mut numbers = anchors.same_files(&name);
            if numbers.is_empty() {
                let number = u32::try_from(anchors.all.len()).unwrap_or(u32::MAX);
                numbers.push(number);
                let kind = if name.contains('/') {
                    anchors.files.entry(last_part(&name).to_owned()).or_default().push(number);
                    ThingKind::Path
                } else if VALUE.is_match(&name) {
                    ThingKind::Value
                } else {
                    ThingKind::Name
                };
                anchors.all.push((kind, name.clone()));
            }
            anchors.numbers.insert(name, numbers);
        }
        Ok(anchors)
    }

    /// The paths that may be spelled like this: one of the two ends as the other does. A bare file name is that of one.
    fn same_files(&self, name: &str) -> Vec<u32> {
        let mut same = self.files.get(last_part(name)).cloned().unwrap_or_default();
        same.retain(|number| {
            let path = &self.all[*number as usize].1;
            is_end(path, name) || is_end(name, path)
        });
        if same.len() > 1 && !name.contains('/') {
            same.clear();
        }
        same
    }

    /// The numbers of a name, whether or not it was given in this spelling.
    fn numbers_of(&self, name: &str) -> Vec<u32> {
        self.numbers.get(name).cloned().unwrap_or_else(|| self.same_files(name))
    }

    /// The longest spelling of a file, where this is a spelling of one file alone.
    pub(super) fn longest(&self, path: String) -> String {
        match self.numbers_of(&path)[..] {
            [number] => self.all[number as usize].1.clone(),
            _ => path,
        }
    }

    /// The numbers of all in a block.
    pub(super) fn in_block(&self, block: &ContentBlock, text: &Arc<str>) -> Arc<[u32]> {
        self.found.get_or(text, || match block {
            ContentBlock::ToolUse(tool) => self.standing_in(&text_of(tool)),
            _ => self.standing_in(text),
        })
    }

    /// The numbers of all in a text, each once: a name stands where a longer one holds it.
    pub(super) fn standing_in(&self, text: &str) -> Arc<[u32]> {
        let mut found: BTreeSet<u32> = self.in_text(text).into_keys().flatten().collect();
        for number in found.clone() {
            let held =
                parts(&self.all[number as usize].1).filter_map(|part| self.numbers.get(part));
            // The end of several paths is that of this one here.
            found.extend(held.filter(|numbers| numbers.len() == 1).flatten());
        }
        found.into_iter().collect()
    }

    /// The numbers of each thing in a text, with its spelling: several where it may be any of several paths.
    pub(super) fn in_text(&self, text: &str) -> BTreeMap<Vec<u32>, String> {
        let mut found = BTreeMap::new();
        each_name(text, &self.touched, |name| {
            found.entry(self.numbers_of(name)).or_insert_with(|| name.to_owned());
        });
        let hits = self.phrases.search(text).into_iter().map(|hit| hit.pattern);
        found.extend(hits.map(|hit| (vec![hit], self.all[hit as usize].1.clone())));
        found
    }

    /// All that a tool use needs: of a look at a file or a change its path, of a command all but its options in front of
    /// the text that it is given, else all in its arguments. What a change writes is new, and a line number is no value.
    pub(super) fn needed_by(&self, tool: &ToolUse) -> BTreeMap<Vec<u32>, String> {
        let files = files_of(tool);
        match tool.class {
            _ if !files.is_empty() => {
                files.into_iter().map(|path| (self.numbers_of(&path), path)).collect()
            }
            ToolClass::Edit | ToolClass::Write => BTreeMap::new(),
            ToolClass::Shell => {
                let command = command_of(tool);
                let own = command.split("<<").next().unwrap_or_default();
                let mut found = self.in_text(&OPTION.replaced(own, " "));
                // A command that is run again needs no prompt that holds it: its result is what was made again.
                found.retain(|numbers, _| {
                    numbers.iter().all(|number| self.all[*number as usize].0 != ThingKind::Command)
                });
                found
            }
            _ => self.in_text(&text_of(tool)),
        }
    }
}

/// The files and folders that a tool use shows or changes, as a text names them.
fn files_of(tool: &ToolUse) -> Vec<String> {
    let files = files::changed_by(tool).into_iter().chain(files::seen_by(tool));
    let names = files.map(|path| path.trim_end_matches('/').to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

/// The command line of a tool use, else its name and arguments.
pub(super) fn command_of(tool: &ToolUse) -> String {
    let input = tool.input.value();
    files::command_of(&input)
        .map_or_else(|| format!("{} {}", tool.name, tool.input.as_str()), str::to_owned)
}

/// All texts and numbers in the arguments of a tool use, a line each. A round number is a limit or a time.
pub(super) fn text_of(tool: &ToolUse) -> String {
    let mut lines: Vec<String> = Vec::new();
    each_text(&tool.input.value(), &mut |text| lines.push(text.to_owned()));
    lines.retain(|line| !line.parse::<u64>().is_ok_and(|number| number % 100 == 0));
    lines.join("\n")
}

/// The parts of a name from one of its `/`, `.` and `@` to another: `src` and `src/a` of `src/a.rs`.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    let cuts = name.match_indices(['/', '.', '@']).map(|(at, _)| at);
    let starts = std::iter::once(0).chain(cuts.clone().map(|at| at + 1));
    let ends = cuts.chain([name.len()]);
    starts.flat_map(move |from| ends.clone().filter_map(move |to| name.get(from..to)))
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Whether a path ends as another does, part by part.
fn is_end(path: &str, other: &str) -> bool {
    path.strip_suffix(other).is_some_and(|front| front.is_empty() || front.ends_with('/'))
}

/// Calls `found` with the names in a text that may be forgotten; an escaped line feed ends one, and a diff puts `a/` or `b/`
/// before a path, unless a touched file ends so.
fn each_name(text: &str, touched: &BTreeSet<String>, mut found: impl FnMut(&str)) {
    names(&text.replace("\\n", "\n").replace("\\t", "\t"), |name| {
        let plain = name.strip_prefix("a/").or(name.strip_prefix("b/"));
        if !NEVER_NEEDED.is_match(name) {
            let side = plain.filter(|_| !touched.iter().any(|file| is_end(file, name)));
            found(side.unwrap_or(name));
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::session::{JsonText, Message, SessionParts, ToolResult};

    fn shell(command: &str) -> ToolUse {
        ToolUse {
            id: "1".into(),
            name: "exec".into(),
            class: ToolClass::Shell,
            input: JsonText::of(&json!({ "cmd": command })),
        }
    }

    #[test]
    fn a_command_needs_what_it_names_and_no_option_amount_or_file_of_the_system() {
        let given = "name-only src/a.rs /dev/null 220p retry_limit /repo/one/lib/x.rs /repo/two/lib/x.rs \
                     a/docs/guide.md";
        let session = Session::new(SessionParts {
            id: "s".into(),
            messages: vec![Arc::new(Message::text(Role::User, given))],
            ..SessionParts::default()
        });
        let anchors = NeededAnchors::of(&session.unwrap()).unwrap();
        for (command, expected) in [
            ("git log --name-only 2>/dev/null", vec![]),
            ("sed -n '1,220p' src/a.rs", vec!["src/a.rs"]),
            ("rg --regexp=retry_limit", vec!["retry_limit"]),
            ("git diff docs/guide.md", vec!["docs/guide.md"]),
            // It may be either.
            ("cargo fmt lib/x.rs", vec!["lib/x.rs"]),
        ] {
            let needed = anchors.needed_by(&shell(command));
            let known = needed.iter().filter(|(numbers, _)| !numbers.is_empty());
            let known: Vec<&str> = known.map(|(_, spelled)| &**spelled).collect();
            assert_eq!(known, expected, "{command}");
        }
        assert_eq!(anchors.same_files("lib/x.rs").len(), 2);
    }

    #[test]
    fn a_name_stands_where_a_longer_one_holds_it() {
        let given = "ui.setFocus this.ui.setFocus /w/src /w/src/a_b/log-view.ts src/a_b log-view \
                     @org/pi-tui org/pi-tui@0.14.2 /one/lib/x.rs /two/lib/x.rs lib/x.rs";
        let session = Session::new(SessionParts {
            id: "s".into(),
            messages: vec![Arc::new(Message::text(Role::User, given))],
            ..SessionParts::default()
        });
        let anchors = NeededAnchors::of(&session.unwrap()).unwrap();
        for (text, name, stands) in [
            ("this.ui.setFocus(editor)", "ui.setFocus", true),
            ("cat /w/src/a_b/log-view.ts", "/w/src", true),
            ("cat /w/src/a_b/log-view.ts", "src/a_b", true),
            ("cat /w/src/a_b/log-view.ts", "log-view", true),
            ("org/pi-tui@0.14.2 check", "org/pi-tui", true),
            ("ls /w/src", "/w/src/a_b/log-view.ts", false),
            ("ui.setFocus(editor)", "this.ui.setFocus", false),
            // Both end so, and this is one of them.
            ("cat /one/lib/x.rs", "/two/lib/x.rs", false),
        ] {
            let [number] = anchors.numbers_of(name)[..] else { panic!("{name}") };
            let found = anchors.standing_in(text);
            assert_eq!(found.contains(&number), stands, "{text} {name}");
        }
    }

    fn read(path: &str) -> ToolUse {
        ToolUse {
            id: path.into(),
            name: "Read".into(),
            class: ToolClass::Read,
            input: JsonText::of(&json!({ "file_path": path })),
        }
    }

    #[test]
    fn a_read_needs_its_file_and_nothing_that_its_path_holds() {
        let uses = [
            ToolUse { id: "0".into(), ..shell("pytest") },
            read("/w/src/app/[id]/page.tsx"),
            read("/repo/pytest/main.py"),
            read("/repo/b/x.rs"),
        ];
        let mut messages = vec![Message::text(Role::User, "See /w/src/app, b/x.rs, b/y.rs.")];
        for tool in uses {
            let result = ToolResult {
                tool_use_id: tool.id.clone(),
                content: vec![ContentBlock::Text("done".into())],
                is_error: false,
            };
            let tool = vec![ContentBlock::ToolUse(Box::new(tool))];
            messages.push(Message::new(Role::Assistant, tool));
            messages
                .push(Message::new(Role::User, vec![ContentBlock::ToolResult(Box::new(result))]));
        }
        let session = Session::new(SessionParts {
            id: "s".into(),
            messages: messages.into_iter().map(Arc::new).collect(),
            ..SessionParts::default()
        });
        let anchors = NeededAnchors::of(&session.unwrap()).unwrap();
        for path in ["/w/src/app/[id]/page.tsx", "/repo/pytest/main.py"] {
            let needed = anchors.needed_by(&read(path));
            let needed: Vec<&str> = needed.values().map(|spelled| &**spelled).collect();
            assert_eq!(needed, [path]);
        }
        // One is in a folder `b`, the other a side of a diff.
        let number = anchors.numbers_of("/repo/b/x.rs");
        assert_eq!(anchors.numbers_of("b/x.rs"), number);
        assert!(anchors.in_text("b/x.rs").contains_key(&number));
        let names: Vec<&str> = anchors.all.iter().map(|(_, name)| &**name).collect();
        assert!(names.contains(&"y.rs") && !names.contains(&"b/y.rs"));
    }
}
