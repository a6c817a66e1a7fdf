//! opencode's files before it had a database: one for each session, message and part.
//!
//! They stand in two layouts, and a [`Tree`] is either:
//! - `storage/session/PROJECT/SESSION.json`, `storage/message/SESSION/MESSAGE.json` and
//!   `storage/part/MESSAGE/PART.json`;
//! - in the first versions, for each project, `project/PROJECT/storage/session/` with
//!   `info/SESSION.json`, `message/SESSION/MESSAGE.json` and `part/SESSION/MESSAGE/PART.json`.
//!
//! What a file is called says its place; names begin with the time, so that their order is the
//! order in time. The very first messages hold their parts themselves: [`now`] writes them as those
//! that came after.

use super::super::prelude::*;
use super::{Reading, Stored};

/// How the names of sessions begin.
const SESSION: &str = "ses_";

/// What stands in the folder around `storage`. Where anything else does, such as a database, the
/// folder is not one recording but holds some.
const BESIDE: &[&str] = &[
    "app.json",
    "auth.json",
    "bin",
    "cache",
    "log",
    "mcp-auth.json",
    "project",
    "snapshot",
    "storage",
    "tool-output",
    "worktree",
];

/// How the names of messages begin.
const MESSAGE: &str = "msg_";

/// Sessions whose messages and parts stand together.
struct Tree {
    /// What each session says of itself, by folder.
    infos: Vec<Folder>,
    message: Folder,
    part: Option<Folder>,
}

impl Tree {
    /// The tree that begins at `folder`.
    fn at(folder: &Folder) -> Option<Self> {
        let session = folder.folder("session");
        let first = session.as_ref().and_then(|it| it.folder("message"));
        let (message, part) = match first {
            Some(message) => (message, session.as_ref()?.folder("part")),
            None => (folder.folder("message")?, folder.folder("part")),
        };
        let is_session = |name: &String| name.starts_with(SESSION);
        if !message.names().iter().any(is_session) {
            return None;
        }
        let infos = session.iter().flat_map(|session| {
            let names = session.names().iter();
            names.filter_map(|name| session.folder(name))
        });
        let infos = infos.filter(|it| it.names().iter().any(is_session));
        Some(Self {
            infos: infos.collect(),
            message,
            part,
        })
    }

    /// The names of its sessions, and where each says something of itself.
    fn sessions(&self) -> BTreeMap<&str, Option<&Folder>> {
        let said = self.message.names().iter();
        let said = said.filter(|name| name.starts_with(SESSION));
        let mut sessions: BTreeMap<&str, _> = said.map(|name| (&**name, None)).collect();
        for folder in &self.infos {
            for name in folder.names() {
                if let Some(place) = name
                    .strip_suffix(".json")
                    .and_then(|it| sessions.get_mut(it))
                {
                    *place = Some(folder);
                }
            }
        }
        sessions
    }

    /// The folder with the parts of a message.
    fn parts(&self, session: &str, message: &str) -> Option<Folder> {
        let part = self.part.as_ref()?;
        let own = part.folder(message);
        own.or_else(|| part.folder(session)?.folder(message))
    }
}

/// Whether a value is what a session says of itself in a file of its own.
pub(super) fn is_session(value: &Value) -> bool {
    let is_text = |key| value.get(key).is_some_and(Value::is_string);
    let id = value.get("id").and_then(Value::as_str);
    id.is_some_and(|id| id.starts_with(SESSION))
        && is_text("title")
        && (is_text("version") || is_text("directory"))
}

/// The folder with the messages of the session that the file at `path` is about.
pub(super) fn messages_of(path: &Path) -> Option<Folder> {
    let name = path.file_stem()?.to_str()?;
    let infos = path.parent()?;
    let session = infos.parent()?;
    let roots = [session, session.parent()?];
    let folders = roots.map(|root| root.join("message").join(name));
    folders.iter().find_map(|it| Folder::open(it).ok())
}

/// Whether a folder holds opencode's files: `storage`, the folder around it if there is nothing else
/// in it, or the messages of one session.
pub(super) fn is_storage(folder: &Folder) -> bool {
    one(folder).is_some() || !trees(folder).is_empty()
}

/// The trees in a folder: its own, that of the `storage` in it, and those of projects.
fn trees(folder: &Folder) -> Vec<Tree> {
    if let Some(tree) = Tree::at(folder) {
        return vec![tree];
    }
    let is_own = |name: &String| BESIDE.contains(&name.as_str()) || name.starts_with('.');
    if !folder.names().iter().all(is_own) {
        return Vec::new();
    }
    let storage = |folder: &Folder| folder.folder("storage").and_then(|it| Tree::at(&it));
    let mut trees: Vec<Tree> = storage(folder).into_iter().collect();
    if let Some(projects) = folder.folder("project") {
        let names = projects.names().iter();
        let projects = names.filter_map(|name| projects.folder(name));
        trees.extend(projects.filter_map(|it| storage(&it)));
    }
    trees
}

/// The tree around the messages of one session, and its name.
fn one(folder: &Folder) -> Option<(Tree, &str)> {
    let path = folder.path();
    let name = path.file_name()?.to_str()?;
    let around = path.parent()?;
    let is_session = name.starts_with(SESSION) && around.file_name()? == "message";
    if !is_session || !folder.names().iter().any(|it| it.starts_with(MESSAGE)) {
        return None;
    }
    let root = around.parent()?;
    let tree = Folder::open(root).ok().and_then(|it| Tree::at(&it));
    let tree = tree.or_else(|| Tree::at(&Folder::open(root.parent()?).ok()?))?;
    Some((tree, name))
}

/// All sessions, oldest first; those that a tool started are side chains.
pub(super) fn read(folder: &Folder, files: &mut SessionFiles) -> Result<Vec<Session>, ImportError> {
    let mut sessions = Vec::new();
    // When the product changed its layout, it copied what it had.
    let mut seen = BTreeSet::new();
    if let Some((tree, only)) = one(folder) {
        let info = tree.sessions().get(only).copied().flatten();
        sessions.extend(session(&tree, only, info, files)?);
    } else {
        for tree in trees(folder) {
            for (id, info) in tree.sessions() {
                if seen.insert(id.to_owned()) {
                    sessions.extend(session(&tree, id, info, files)?);
                }
            }
        }
    }
    let mut sessions = some(sessions, folder.path())?;
    // The names of sessions begin with the latest.
    sessions.sort_by_key(|it| it.messages().first().and_then(|first| first.timestamp));
    Ok(sessions)
}

fn session(
    tree: &Tree,
    id: &str,
    info: Option<&Folder>,
    files: &mut SessionFiles,
) -> Result<Option<Session>, ImportError> {
    let Some(folder) = tree.message.folder(id) else {
        return Ok(None);
    };
    let mut source = Source::default();
    let info = match info {
        Some(infos) => one_value(&infos.child(&format!("{id}.json")), files, &mut source)?,
        None => None,
    };
    let info: Option<Value> = info.and_then(|text| serde_json::from_str(&text).ok());
    let is_child = info.is_some_and(|it| it.get("parentID").is_some_and(Value::is_string));
    let mut messages = Vec::new();
    for name in json(&folder) {
        let Some(info) = one_value(&folder.child(name), files, &mut source)? else {
            continue;
        };
        let id_of_message = name.trim_end_matches(".json");
        let mut parts = Vec::new();
        if let Some(folder) = tree.parts(id, id_of_message) {
            for name in json(&folder) {
                parts.extend(one_value(&folder.child(name), files, &mut source)?);
            }
        }
        let stored = Stored {
            id: id_of_message.into(),
            info,
            parts,
        };
        messages.push(now(stored));
    }
    let mut reading = Reading::new(is_child);
    add_counts(&mut reading.assembler.source, source);
    reading.stored(&messages, "file that is not JSON");
    reading.finish(files.named(id), folder.path())
}

/// The names of a folder's JSON files, in their order.
fn json(folder: &Folder) -> impl Iterator<Item = &str> {
    let names = folder.names().iter().map(String::as_str);
    names.filter(|name| Path::new(name).extension().is_some_and(|it| it == "json"))
}

/// What one file says. A product that is stopped while it writes leaves a file behind that is empty
/// or cut; no other file needs it.
fn one_value(
    path: &Path,
    files: &mut SessionFiles,
    source: &mut Source,
) -> Result<Option<Arc<str>>, ImportError> {
    let read = files.read(path).and_then(|documents| {
        let (values, mended) = documents.values()?;
        let value = values.into_iter().next();
        let value: Option<&RawValue> = value.map(|it| it.parse()).transpose()?;
        // The files are indented, and what the model wrote to a tool was not.
        let text = value.map(|raw| JsonText::from(raw).as_str().into());
        add_counts(source, mended);
        Ok(text)
    });
    match read {
        Ok(text) => Ok(text),
        Err(
            ImportError::Empty { .. }
            | ImportError::TornLine { .. }
            | ImportError::Json { .. }
            | ImportError::Nesting { .. },
        ) => {
            source.warn("a file is empty or cut and is left out");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The message, with its parts apart from it.
fn now(stored: Stored) -> Stored {
    let Some(mut info) = raw(&stored.info).and_then(Object::read) else {
        return stored;
    };
    if !stored.parts.is_empty() {
        return stored;
    }
    let Some(parts) = info.take_list("parts") else {
        return stored;
    };
    let parts: Vec<Arc<str>> = parts.iter().map(|raw| raw.get().into()).collect();
    let Some(mut about) = info.take_object("metadata") else {
        return Stored { parts, ..stored };
    };
    let mut tools = about.inner("tool");
    let parts = parts.iter();
    let parts = parts.map(|it| part(it, &mut tools).unwrap_or_else(|| it.clone()));
    let parts = with_ends(parts.collect());
    let mut model = about.inner("assistant");
    let info = object([
        ("id", info.take("id")),
        ("role", info.take("role")),
        ("time", about.take("time")),
        ("error", about.take("error")),
        ("modelID", model.take("modelID")),
        ("tokens", model.take("tokens")),
        ("summary", model.take("summary")),
    ]);
    let id = stored.id.clone();
    Stored { id, info, parts }
}

/// The parts, with an end behind each call but the last: only where calls began was written down.
fn with_ends(parts: Vec<Arc<str>>) -> Vec<Arc<str>> {
    let mut all: Vec<Arc<str>> = Vec::with_capacity(parts.len());
    for part in parts {
        let kind = raw(&part).and_then(Object::read);
        let kind = kind.and_then(|it| it.text("type"));
        if kind.as_deref() == Some("step-start") && !all.is_empty() {
            all.push(r#"{"type":"step-finish"}"#.into());
        }
        all.push(part);
    }
    all
}

/// A part, where it has other names for what it says.
fn part(text: &str, tools: &mut Object<'_>) -> Option<Arc<str>> {
    let mut part = Object::read(raw(text)?)?;
    let kind = part.take("type")?;
    Some(match kind.get() {
        "\"reasoning\"" => object([
            ("type", Some(kind)),
            ("text", part.take("text")),
            ("metadata", part.take("providerMetadata")),
        ]),
        "\"file\"" => object([
            ("type", Some(kind)),
            ("mime", part.take("mediaType")),
            ("filename", part.take("filename")),
            ("url", part.take("url")),
        ]),
        "\"tool-invocation\"" => {
            let mut call = part.take_object("toolInvocation")?;
            let id = call.text("toolCallId").unwrap_or_default();
            let mut about = tools.inner(&id);
            let result = call.take("result");
            let (status, said) = match (result, about.take_flag("error")) {
                (None, _) => ("\"running\"", "output"),
                (Some(_), false) => ("\"completed\"", "output"),
                (Some(_), true) => ("\"error\"", "error"),
            };
            let state = object([
                ("status", raw(status)),
                ("input", call.take("args")),
                (said, result),
                ("time", about.take("time")),
            ]);
            object([
                ("type", raw("\"tool\"")),
                ("callID", call.take("toolCallId")),
                ("tool", call.take("toolName")),
                ("state", raw(&state)),
            ])
        }
        _ => return None,
    })
}

fn raw(json: &str) -> Option<&RawValue> {
    serde_json::from_str(json).ok()
}

/// An object of values as they were recorded.
fn object<const N: usize>(entries: [(&str, Option<&RawValue>); N]) -> Arc<str> {
    let entries = entries.into_iter();
    let written = entries.filter_map(|(key, value)| Some(format!("\"{key}\":{}", value?.get())));
    format!("{{{}}}", written.collect::<Vec<_>>().join(",")).into()
}
