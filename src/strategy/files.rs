//! The file that a tool use reads or changes, by its arguments.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::session::ground_truth::ArtifactVerb;
use crate::session::{ToolClass, ToolUse};

/// A part of a file that a tool use shows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileView {
    /// The file, as the tool use names it, without a `./` in front.
    pub(crate) path: String,
    /// All other arguments, as canonical JSON: two views of one path and one range are equal.
    /// Empty where there are none: the whole file.
    pub(crate) range: String,
}

/// The keys under which products name the file of a tool use.
const PATH_KEYS: [&str; 10] = [
    "file_path",
    "filePath",
    "path",
    "absolute_path",
    "target_file",
    "notebook_path",
    "filename",
    "filepath",
    "file_name",
    "file",
];

/// The keys under which products write what a file is to hold.
const CONTENT_KEYS: [&str; 4] = ["content", "contents", "file_text", "new_content"];

/// The lines of a patch that name a file it changes.
const PATCH_LINES: [&str; 4] =
    ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ b/"];

/// Commands that show the file that they name last.
const SHOWS: [&str; 5] = ["cat ", "head ", "nl ", "sed -n ", "tail "];

/// The part of a file that the tool use shows, if it reads one file.
///
/// An editor whose `command` is `view` reads, whatever its class.
pub(crate) fn view_of(tool: &ToolUse) -> Option<FileView> {
    if tool.class != ToolClass::Read && !is_editor(tool) {
        return None;
    }
    let input = tool.input.value();
    if tool.class != ToolClass::Read && !is_view(&input) {
        return None;
    }
    let key = path_key(&input)?;
    let path = plain(input.get(key)?.as_str()?);
    // The other arguments, in the order of their names; a null argument counts as absent.
    let rest: BTreeMap<&String, &Value> = input.as_object()?.iter().collect();
    let others = rest.into_iter().filter(|(name, value)| {
        name.as_str() != key && name.as_str() != "command" && !value.is_null()
    });
    let range: Vec<String> = others.map(|(name, value)| format!("{name}={value}")).collect();
    Some(FileView { path, range: range.join(",") })
}

/// The files that the tool use changes, if it does.
pub(crate) fn changed_by(tool: &ToolUse) -> Vec<String> {
    let Some(input) = edit_of(tool) else {
        return Vec::new();
    };
    if let Some(path) = path_key(&input).and_then(|key| input.get(key)?.as_str()) {
        return vec![plain(path)];
    }
    let mut found = Vec::new();
    let texts: Vec<&str> = match &input {
        Value::String(text) => vec![text],
        Value::Object(fields) => fields.values().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for line in texts.iter().flat_map(|text| text.lines()) {
        let path = PATCH_LINES.iter().find_map(|mark| line.strip_prefix(mark));
        found.extend(path.map(|path| plain(path.trim())));
    }
    found
}

/// The file that the tool use writes as a whole, and what it holds from then on.
pub(crate) fn written_by(tool: &ToolUse) -> Option<(String, String)> {
    let input = edit_of(tool)?;
    let path = input.get(path_key(&input)?)?.as_str()?;
    let content = CONTENT_KEYS.iter().find_map(|key| input.get(key)?.as_str());
    Some((plain(path), content?.to_owned()))
}

/// The files that the tool use reads or changes, each with what it does to them: a file that is
/// written as a whole is created, whatever stood there before.
pub(crate) fn touched_by(tool: &ToolUse) -> Vec<(ArtifactVerb, String)> {
    if let Some(view) = view_of(tool) {
        return vec![(ArtifactVerb::Read, view.path)];
    }
    if tool.class == ToolClass::Shell {
        let removed = removed_by(&tool.input.value()).into_iter();
        return removed.map(|path| (ArtifactVerb::Deleted, path)).collect();
    }
    let written = written_by(tool).map(|(path, _)| path);
    let text = tool.input.as_str();
    // A patch says of each file what becomes of it; in JSON its line feeds are escapes.
    let changed = changed_by(tool).into_iter().map(|path| {
        let whole = written.as_ref() == Some(&path);
        let verb = if whole || text.contains(&format!("*** Add File: {path}")) {
            ArtifactVerb::Created
        } else if text.contains(&format!("*** Delete File: {path}")) {
            ArtifactVerb::Deleted
        } else {
            ArtifactVerb::Modified
        };
        (verb, path)
    });
    changed.collect()
}

/// The file that a command shows as a whole: `cat` and a path, and nothing else.
pub(crate) fn shown_by(tool: &ToolUse) -> Option<String> {
    let input = (tool.class == ToolClass::Shell).then(|| tool.input.value())?;
    let path = command_of(&input)?.trim().strip_prefix("cat ")?;
    let alone = !path.starts_with('-') && !path.contains([' ', '|', '<', '>', ';', '&', '*', '$']);
    alone.then(|| plain(path))
}

/// The file that the tool use shows, or a part of it: one for it, or a command that does nothing else, behind a `cd` or not.
pub(crate) fn seen_by(tool: &ToolUse) -> Option<String> {
    if tool.class != ToolClass::Shell {
        return view_of(tool).map(|view| view.path);
    }
    let input = tool.input.value();
    let line = command_of(&input)?;
    let (front, own) = line.rsplit_once("&&").unwrap_or(("cd", line));
    let (front, own) = (front.trim(), own.trim());
    let goes_there = front == "cd" || front.starts_with("cd ");
    let alone = goes_there && !front.contains([';', '|', '&']);
    let shows = SHOWS.iter().any(|name| own.starts_with(name));
    let path = own.split_whitespace().last()?;
    let named = path.contains(['/', '.']) && !path.starts_with(['-', '\'', '"']);
    let simple = !own.contains(['|', '<', '>', ';', '&', '*', '\n', '$', '`', '(']);
    (alone && shows && named && simple).then(|| plain(path))
}

/// The command line among the arguments of a tool use.
pub(crate) fn command_of(input: &Value) -> Option<&str> {
    let keys = ["command", "cmd", "script"];
    keys.iter().find_map(|key| input.get(key)?.as_str())
}

/// The files that a command removes, as far as it names them: the operands of its first `rm`.
fn removed_by(input: &Value) -> Vec<String> {
    let Some(command) = command_of(input) else {
        return Vec::new();
    };
    let words = command.split_whitespace().skip_while(|word| *word != "rm");
    let operands = words.skip(1).take_while(|word| !matches!(*word, "&&" | "||" | "|"));
    let mut removed = Vec::new();
    for part in operands {
        let path = part.trim_end_matches(';');
        if !path.is_empty() && !path.starts_with('-') {
            removed.push(plain(path));
        }
        if part.ends_with(';') {
            break;
        }
    }
    removed
}

fn is_editor(tool: &ToolUse) -> bool {
    matches!(tool.class, ToolClass::Edit | ToolClass::Write)
}

/// The arguments of a tool use that changes files.
fn edit_of(tool: &ToolUse) -> Option<Value> {
    let input = is_editor(tool).then(|| tool.input.value())?;
    (!is_view(&input)).then_some(input)
}

fn is_view(input: &Value) -> bool {
    input.get("command").and_then(Value::as_str) == Some("view")
}

fn path_key(input: &Value) -> Option<&'static str> {
    PATH_KEYS.into_iter().find(|key| input.get(key).is_some_and(Value::is_string))
}

fn plain(path: &str) -> String {
    path.trim_start_matches("./").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::JsonText;

    fn tool(class: ToolClass, input: &str) -> ToolUse {
        ToolUse {
            id: "t".into(),
            name: "tool".into(),
            class,
            input: JsonText::parse(input).unwrap(),
        }
    }

    #[test]
    fn a_read_names_a_file_and_a_part_of_it() {
        for (class, input, view) in [
            (ToolClass::Read, r#"{"file_path":"a.rs"}"#, Some(("a.rs", ""))),
            (
                ToolClass::Read,
                r#"{"limit":9,"filePath":"./a.rs","offset":1}"#,
                Some(("a.rs", "limit=9,offset=1")),
            ),
            (
                ToolClass::Read,
                r#"{"offset":1,"path":"a.rs","limit":9,"x":null}"#,
                Some(("a.rs", "limit=9,offset=1")),
            ),
            (
                ToolClass::Edit,
                r#"{"command":"view","path":"a.rs","view_range":[1,2]}"#,
                Some(("a.rs", "view_range=[1,2]")),
            ),
            (ToolClass::Edit, r#"{"command":"insert","path":"a.rs"}"#, None),
            (ToolClass::Read, r#"{"paths":["a.rs"]}"#, None),
            (ToolClass::Read, r#""a.rs""#, None),
            (ToolClass::Grep, r#"{"path":"a.rs"}"#, None),
        ] {
            let view = view
                .map(|(path, range)| FileView { path: path.to_owned(), range: range.to_owned() });
            assert_eq!(view_of(&tool(class, input)), view, "{input}");
        }
    }

    #[test]
    fn a_change_names_its_files() {
        for (class, input, files) in [
            (ToolClass::Edit, r#"{"path":"./a.rs","old_str":"x"}"#, &["a.rs"][..]),
            (ToolClass::Write, r#"{"file_path":"b.rs","content":"x"}"#, &["b.rs"]),
            (ToolClass::Edit, r#"{"command":"view","path":"a.rs"}"#, &[]),
            (
                ToolClass::Edit,
                r#""*** Begin Patch\n*** Update File: a.rs\n+x\n*** Add File: b.rs\n""#,
                &["a.rs", "b.rs"],
            ),
            (ToolClass::Edit, r#"{"patch":"--- a/a.rs\n+++ b/a.rs\n"}"#, &["a.rs"]),
            (ToolClass::Shell, r#"{"path":"a.rs"}"#, &[]),
        ] {
            assert_eq!(changed_by(&tool(class, input)), files, "{input}");
        }
    }

    #[test]
    fn what_is_done_to_a_file_can_be_told() {
        use ArtifactVerb::{Created, Deleted, Modified, Read};
        for (class, input, touched) in [
            (ToolClass::Read, r#"{"path":"./a"}"#, &[(Read, "a")][..]),
            (ToolClass::Write, r#"{"path":"a","content":"x"}"#, &[(Created, "a")]),
            (ToolClass::Edit, r#"{"path":"a"}"#, &[(Modified, "a")]),
            (
                ToolClass::Edit,
                r#"{"patch":"*** Add File: a\n*** Update File: b\n*** Delete File: c\n"}"#,
                &[(Created, "a"), (Modified, "b"), (Deleted, "c")],
            ),
            (
                ToolClass::Shell,
                r#"{"command":"cd x && rm -f ./a b; ls c"}"#,
                &[(Deleted, "a"), (Deleted, "b")],
            ),
            (ToolClass::Shell, r#"{"command":"cat a"}"#, &[]),
        ] {
            let found = touched_by(&tool(class, input));
            let found: Vec<_> = found.iter().map(|(verb, path)| (*verb, &**path)).collect();
            assert_eq!(found, touched, "{input}");
        }
    }

    #[test]
    fn a_command_shows_a_file_if_it_does_nothing_else() {
        for (class, command, path) in [
            (ToolClass::Shell, "cat ./a-b.rs", Some("a-b.rs")),
            (ToolClass::Shell, "cat -n a", None),
            (ToolClass::Shell, "cat a b", None),
            (ToolClass::Shell, "cat a | head", None),
            (ToolClass::Shell, "ls a", None),
            (ToolClass::Read, "cat a", None),
        ] {
            let tool = tool(class, &format!(r#"{{"command":"{command}"}}"#));
            assert_eq!(shown_by(&tool).as_deref(), path, "{command}");
        }
    }

    #[test]
    fn a_command_shows_the_file_that_it_names_last() {
        for (command, path) in [
            ("cat src/a.rs", Some("src/a.rs")),
            ("sed -n '1,220p' ./src/a.rs", Some("src/a.rs")),
            ("cd /work && nl -ba src/a.rs", Some("src/a.rs")),
            ("sed -i s/a/b/ src/a.rs", None),
            ("cat src/a.rs | wc -l", None),
            ("make all && cat src/a.rs", None),
            ("cdk synth && cat out.json", None),
            ("cat $(git ls-files).md", None),
            ("cat $HOME/notes.md", None),
            ("head -5", None),
        ] {
            let tool = tool(ToolClass::Shell, &format!(r#"{{"command":"{command}"}}"#));
            assert_eq!(seen_by(&tool).as_deref(), path, "{command}");
        }
    }

    #[test]
    fn only_a_whole_file_is_written() {
        let write = tool(ToolClass::Write, r#"{"file_path":"a","content":"text"}"#);
        assert_eq!(written_by(&write), Some(("a".to_owned(), "text".to_owned())));
        let edit = tool(ToolClass::Edit, r#"{"file_path":"a","new_string":"text"}"#);
        assert_eq!(written_by(&edit), None);
        let read = tool(ToolClass::Read, r#"{"file_path":"a","content":"text"}"#);
        assert_eq!(written_by(&read), None);
        let view = tool(ToolClass::Edit, r#"{"command":"view","path":"a","file_text":"text"}"#);
        assert_eq!(written_by(&view), None);
    }
}
