//! Every importer against files that are damaged, absurd or malicious.
//!
//! Each fixture is changed in every way of a table, and read again. What comes out is sessions that
//! can be written and read again, or an error that names the file; where a change must not matter,
//! the sessions are those of the unchanged file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proctor_formats as import;
use proctor_formats::{IMPORTERS, ImportError, Importer};
use proctor_sessions::Session;
use serde_json::{Map, Value, json};

use super::{fixture, outline, written};
use crate::goldens::sampled;
use crate::shared;

pub(super) use values::odd_values;

mod values;

/// The name of the file in errors.
const NAME: &str = "some/File One.jsonl";

/// A file of a format.
pub(super) struct Sample {
    pub(super) importer: &'static Importer,
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
    /// The values of the file; several where each stands on a line of its own, and none in a text.
    values: Vec<Value>,
}

/// All fixtures of all formats that keep a session in one file. Files in folders are no such.
pub(super) fn samples() -> Vec<Sample> {
    let mut samples = Vec::new();
    for importer in IMPORTERS {
        let folder = fixture(importer.format());
        let before = samples.len();
        for entry in std::fs::read_dir(&folder).expect("every importer has fixtures") {
            let path = entry.unwrap().path();
            if !path.is_file() || path.ends_with("voice.json") {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let is_text = matches!(path.extension(), Some(it) if it == "txt" || it == "md");
            let values = serde_json::Deserializer::from_slice(&bytes).into_iter();
            let values = if is_text { Vec::new() } else { values.map(Result::unwrap).collect() };
            // A log in one file is read by the importer of its API.
            let is_log = importer.format() == "request-log";
            let mut apis = IMPORTERS.iter().filter(|api| is_log && api.detect(&bytes));
            samples.push(Sample { importer: apis.next().unwrap_or(importer), path, bytes, values });
        }
        assert!(samples.len() > before, "no fixture of {}", importer.format());
    }
    samples.sort_by(|one, two| one.path.cmp(&two.path));
    samples
}

/// Those that are JSON.
fn json_samples() -> impl Iterator<Item = Sample> {
    samples().into_iter().filter(|it| !it.values.is_empty())
}

impl Sample {
    pub(super) fn name(&self) -> String {
        let name = self.path.file_name().unwrap().to_string_lossy();
        format!("{}/{name}", self.importer.format())
    }

    fn is_lines(&self) -> bool {
        self.values.len() > 1
    }

    /// Reads bytes. Whatever they are, there is no panic, and what is read can be written and read.
    #[track_caller]
    fn read(&self, what: &str, bytes: &[u8]) -> Result<Vec<Session>, ImportError> {
        let mut input = bytes;
        let _ = self.importer.detect(&bytes[..bytes.len().min(1 << 16)]);
        let read = self.importer.import(Path::new(NAME), &mut input);
        match &read {
            Ok(sessions) => {
                assert!(!sessions.is_empty(), "{}: {what}: no session", self.name());
                for session in sessions {
                    again(&self.name(), what, session);
                }
            }
            Err(error) => {
                let shown = error.to_string();
                assert!(shown.contains(NAME), "{}: {what}: {shown}", self.name());
            }
        }
        read
    }
}

#[track_caller]
pub(super) fn again(name: &str, what: &str, session: &Session) {
    let bytes = written(session);
    let mut input = &bytes[..];
    let native = import::importer("native").unwrap();
    let read = native.import(Path::new(NAME), &mut input);
    let read =
        read.unwrap_or_else(|error| panic!("{name}: {what}: written, and not read: {error}"));
    assert!(written(&read[0]) == bytes, "{name}: {what}: read as another");
}

/// The bytes of a file with these values.
pub(super) fn file_of(values: &[Value]) -> Vec<u8> {
    let texts = values.iter().map(Value::to_string);
    texts.collect::<Vec<_>>().join("\n").into_bytes()
}

/// The sessions at a glance, without their names, which hold a hash of the file.
fn outlines(sessions: &[Session]) -> String {
    let outlines: Vec<String> = sessions.iter().map(outline).collect();
    outlines.join("--\n")
}

/// What was said, by whom and in what order, and not how it was counted.
fn shapes(sessions: &[Session]) -> Vec<String> {
    let shape = |session: &Session| {
        let messages = session.messages().iter();
        let messages = messages.map(|one| format!("{:?} {}", one.role(), one.content().len()));
        format!(
            "{} | {} compactions",
            messages.collect::<Vec<_>>().join(", "),
            session.compactions().len()
        )
    };
    sessions.iter().map(shape).collect()
}

/// What a change of bytes may do to what is read.
enum Outcome {
    /// Nothing at all.
    Same,
    /// The messages are there; what is counted may differ.
    Read,
    /// An error, or nothing read but what is counted as unknown.
    Told,
    /// An error.
    Refused,
    /// Anything but a panic.
    Whatever,
}

#[test]
fn damage_to_the_bytes_is_mended_or_told() {
    type Change = fn(&Sample) -> Option<Vec<u8>>;
    let table: &[(&str, Change, Outcome)] = &[
        ("a byte-order mark", |it| Some([b"\xef\xbb\xbf", &it.bytes[..]].concat()), Outcome::Same),
        (
            "line ends of another system",
            |it| {
                let text = String::from_utf8(it.bytes.clone()).unwrap();
                Some(text.replace('\n', "\r\n").into_bytes())
            },
            Outcome::Same,
        ),
        (
            "blank lines",
            |it| {
                let text = String::from_utf8(it.bytes.clone()).unwrap();
                // In a text they are a part of it.
                (!it.values.is_empty()).then(|| text.replace('\n', "\n \n\n").into_bytes())
            },
            Outcome::Same,
        ),
        ("no line feed at the end", |it| Some(it.bytes.trim_ascii_end().to_vec()), Outcome::Same),
        (
            "the last line is cut",
            |it| {
                let end = it.bytes.trim_ascii_end();
                (it.is_lines() && it.importer.format() != "native")
                    .then(|| end[..end.len() - 3].to_vec())
            },
            Outcome::Read,
        ),
        (
            "every line stands there twice",
            |it| {
                let lines = it.values.iter().flat_map(|one| [one.clone(), one.clone()]);
                let native = it.importer.format() == "native";
                (it.is_lines() && !native).then(|| file_of(&lines.collect::<Vec<_>>()))
            },
            Outcome::Read,
        ),
        (
            "zeros behind the end",
            |it| Some([&it.bytes[..], &[0; 4096]].concat()),
            Outcome::Whatever,
        ),
        (
            "brackets without end",
            |it| Some([&it.bytes[..], "[".repeat(100_000).as_bytes()].concat()),
            Outcome::Whatever,
        ),
        (
            "brackets first",
            |_| Some(["[".repeat(100_000), "]".repeat(100_000)].concat().into_bytes()),
            Outcome::Refused,
        ),
        ("braces first", |_| Some("{\"a\":".repeat(100_000).into_bytes()), Outcome::Refused),
        ("nothing", |_| Some(Vec::new()), Outcome::Refused),
        ("a number", |_| Some(b"7".to_vec()), Outcome::Told),
        ("zeros", |_| Some(vec![0; 4096]), Outcome::Refused),
        ("a text", |_| Some(b"\"hello\"".to_vec()), Outcome::Told),
        ("an empty list", |_| Some(b"[]".to_vec()), Outcome::Told),
        ("an empty object", |_| Some(b"{}".to_vec()), Outcome::Told),
        (
            "UTF-16",
            |it| {
                let text = String::from_utf8(it.bytes.clone()).unwrap();
                let units = text.encode_utf16().flat_map(u16::to_le_bytes);
                Some([0xff, 0xfe].into_iter().chain(units).collect())
            },
            Outcome::Refused,
        ),
    ];
    let mut wrong: Vec<String> = Vec::new();
    for sample in samples() {
        let good = sample.read("unchanged", &sample.bytes);
        let good = good.unwrap_or_else(|error| panic!("{}: {error}", sample.name()));
        for (what, change, outcome) in table {
            let Some(bytes) = change(&sample) else {
                continue;
            };
            let name = sample.name();
            let wrongly = match (sample.read(what, &bytes), outcome) {
                (_, Outcome::Whatever)
                | (Ok(_), Outcome::Read)
                | (Err(_), Outcome::Told | Outcome::Refused) => None,
                (Ok(read), Outcome::Same) => {
                    let (read, good) = (outlines(&read), outlines(&good));
                    (read != good).then(|| format!("{read} for {good}"))
                }
                (Ok(read), Outcome::Told) => {
                    let unknown = read.iter().all(|it| !it.source().unknown.is_empty());
                    (!unknown).then(|| outlines(&read))
                }
                (Ok(read), Outcome::Refused) => Some(outlines(&read)),
                (Err(error), Outcome::Same | Outcome::Read) => Some(error.to_string()),
            };
            wrong.extend(wrongly.map(|it| format!("{name}: {what}: {it}")));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn a_file_that_is_cut_or_holds_bad_bytes_anywhere_is_no_panic() {
    for sample in samples() {
        let step = (sample.bytes.len() / 15).max(1);
        for at in (0..sample.bytes.len()).step_by(step) {
            let _ = sample.read(&format!("cut at {at}"), &sample.bytes[..at]);
            for bad in [0xff, 0, b'"', b'{', b'\n', b'\\'] {
                let mut bytes = sample.bytes.clone();
                bytes[at] = bad;
                let _ = sample.read(&format!("byte {bad} at {at}"), &bytes);
            }
        }
    }
}

/// A place in a file, as keys and `*` for items, whatever their number.
pub(super) type Place = Vec<String>;

/// All places of a value with the first spot in each: places of items are one place.
pub(super) fn places(values: &[Value]) -> BTreeMap<Place, String> {
    fn walk(value: &Value, place: &Place, pointer: &str, found: &mut BTreeMap<Place, String>) {
        // What stands below is whatever a tool was given, of any shape.
        if place.len() > 9 {
            return;
        }
        let below: Vec<(String, String, &Value)> = match value {
            Value::Object(object) => {
                let kind = object.get("type").or(object.get("role"));
                let kind = kind.and_then(Value::as_str).unwrap_or_default();
                let pair = |(key, value)| {
                    let key: &String = key;
                    let name = format!("{kind}.{key}");
                    (name, key.replace('~', "~0").replace('/', "~1"), value)
                };
                object.iter().map(pair).collect()
            }
            Value::Array(items) => {
                let item = |(at, value)| ("*".to_owned(), format!("{at}"), value);
                items.iter().enumerate().map(item).collect()
            }
            _ => Vec::new(),
        };
        for (name, step, value) in below {
            let mut place = place.clone();
            place.push(name);
            let pointer = format!("{pointer}/{step}");
            walk(value, &place, &pointer, found);
            found.entry(place).or_insert(pointer);
        }
    }
    let mut found = BTreeMap::new();
    let all = Value::Array(values.to_vec());
    walk(&all, &Vec::new(), "", &mut found);
    found
}

/// The values without what stands at a pointer.
pub(super) fn without(values: &[Value], pointer: &str) -> Vec<Value> {
    let mut all = Value::Array(values.to_vec());
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    let key = last.replace("~1", "/").replace("~0", "~");
    match all.pointer_mut(parent).unwrap() {
        Value::Object(object) => drop(object.shift_remove(&key)),
        Value::Array(items) => drop(items.remove(key.parse().unwrap())),
        _ => unreachable!("only lists and objects hold something"),
    }
    into_list(all)
}

fn into_list(all: Value) -> Vec<Value> {
    match all {
        Value::Array(values) => values,
        other => vec![other],
    }
}

/// What a value becomes, told by its key; none if it stays.
type Change<'a> = &'a dyn Fn(&str, &Value) -> Option<Value>;

/// Replaces every value of which `change` makes something else.
fn changed(value: &Value, change: Change<'_>) -> Value {
    fn walk(key: &str, value: &Value, change: Change<'_>) -> Value {
        if let Some(other) = change(key, value) {
            return other;
        }
        match value {
            Value::Object(object) => {
                let pairs = object.iter();
                let pairs = pairs.map(|(key, value)| (key.clone(), walk(key, value, change)));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
            Value::Array(items) => items.iter().map(|it| walk(key, it, change)).collect(),
            other => other.clone(),
        }
    }
    walk("", value, change)
}

#[test]
fn a_giant_text_is_read_and_a_bomb_of_brackets_is_refused_or_left_out() {
    for sample in json_samples() {
        // In the deepest text of the file, so that every reader passes through it.
        let texts = places(&sample.values).into_values();
        let all = Value::Array(sample.values.clone());
        let texts = texts.filter(|pointer| all.pointer(pointer).is_some_and(Value::is_string));
        let is_text = |pointer: &String| {
            ["/text", "/content", "/output", "/value"].iter().any(|it| pointer.ends_with(it))
        };
        let Some(pointer) = texts.filter(is_text).max_by_key(|it| it.matches('/').count()) else {
            continue;
        };
        let mut long = all.clone();
        *long.pointer_mut(&pointer).unwrap() = json!("x".repeat(1 << 20));
        let bytes = file_of(&into_list(long));
        let read = sample.read("a giant text", &bytes);
        assert!(read.is_ok(), "{}: a giant text: {:?}", sample.name(), read.err());
        let mut deep = all.clone();
        *deep.pointer_mut(&pointer).unwrap() = json!("BOMB");
        let text = String::from_utf8(file_of(&into_list(deep))).unwrap();
        let bomb = ["[".repeat(5_000), "]".repeat(5_000)].concat();
        match sample.read("a bomb", text.replacen("\"BOMB\"", &bomb, 1).as_bytes()) {
            Ok(_) => assert!(sample.is_lines(), "{}", sample.name()),
            Err(error) => {
                let error = error.to_string();
                assert!(
                    error.contains("nested deeper")
                        || error.contains("recursion limit")
                        || sample.is_lines() && error.contains("holds no conversation"),
                    "{}: {error}",
                    sample.name()
                );
            }
        }
    }
}

#[test]
fn a_line_that_is_nested_too_deep_costs_itself_alone() {
    let deep = |levels: usize| {
        let lists = levels - 1;
        format!("{{\"a\":{}{}}}", "[".repeat(lists), "]".repeat(lists))
    };
    let is_recorded = |it: &Sample| it.is_lines() && it.importer.format() != "native";
    for sample in json_samples().filter(is_recorded) {
        let good = sample.read("unchanged", &file_of(&sample.values)).unwrap();
        let mut lines: Vec<String> = sample.values.iter().map(Value::to_string).collect();
        lines.insert(1, deep(128));
        let read = sample.read("a line of 128 levels", lines.join("\n").as_bytes());
        let read = read.unwrap_or_else(|error| panic!("{}: {error}", sample.name()));
        assert_eq!(shapes(&read), shapes(&good), "{}", sample.name());
        let what = "line 2 is nested deeper than 127 levels and is left out";
        let warned = |it: &Session| it.source().warnings.contains_key(what);
        assert!(read.iter().any(warned), "{}", sample.name());
        // One level less, and the line is a record as any other.
        lines[1] = deep(127);
        let read = sample.read("a line of 127 levels", lines.join("\n").as_bytes());
        assert!(read.is_ok(), "{}: {:?}", sample.name(), read.err());
    }
}

#[test]
fn shared_recordings_that_are_cut_or_lack_a_line_are_read() {
    let Some(folder) = shared::folder("sessions") else {
        return;
    };
    for product in ["claude-code", "codex", "pi", "copilot-cli", "gemini-cli", "iflow"] {
        let path = shared::files(&folder.join(product)).into_iter();
        let path = path.min_by_key(|path| path.metadata().unwrap().len()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let importer = import::importer(product).unwrap();
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let step = (lines.len() / 12).max(1);
        for left_out in (1..lines.len()).step_by(step) {
            let mut rest = lines.clone();
            rest.remove(left_out);
            let rest = rest.concat();
            let sessions = importer.import(&path, &mut &rest[..]);
            let sessions = sessions.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            for session in &sessions {
                again(product, "a line is missing", session);
            }
            let cut: usize = lines[..=left_out].iter().map(|it| it.len()).sum();
            let cut = &bytes[..cut - lines[left_out].len() / 2];
            match importer.import(&path, &mut &cut[..]) {
                Ok(sessions) => again(product, "cut", &sessions[0]),
                Err(error) => assert!(
                    matches!(error, ImportError::NoConversation { .. }),
                    "{}: {error}",
                    path.display()
                ),
            }
        }
    }
}
