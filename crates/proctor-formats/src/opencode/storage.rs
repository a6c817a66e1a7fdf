//! opencode's files before it had a database: one for each session, message and part.
//!
//! They come in two layouts, and a [`Tree`] is either:
//! - `storage/session/PROJECT/SESSION.json`, `storage/message/SESSION/MESSAGE.json` and
//!   `storage/part/MESSAGE/PART.json`;
//! - in the first versions, for each project, `project/PROJECT/storage/session/` with
//!   `info/SESSION.json`, `message/SESSION/MESSAGE.json` and `part/SESSION/MESSAGE/PART.json`.
//!
//! A file's name gives its place. Names begin with the time, so that their order is the order in
//! time. The very first messages hold their parts themselves: [`upgraded`] gives them the layout of
//! later ones.

use super::{OpencodeReading, StoredMessage};
use crate::prelude::*;

/// How the names of sessions begin.
const SESSION: &str = "ses_";

/// The entries of the folder around `storage`. A folder with any other entry, such as a database, is
/// not one recording but holds some.
const BESIDE: &str = "app.json auth.json bin cache log mcp-auth.json project snapshot storage \
     tool-output worktree";

/// How the names of messages begin.
const MESSAGE: &str = "msg_";

/// Sessions whose messages and parts are together.
struct Tree {
    /// The sessions' own facts, by folder.
    infos: Vec<Folder>,
    message: Folder,
    part: Option<Folder>,
}

impl Tree {
    /// The tree that begins at `folder`.
    fn at(folder: &Folder) -> Option<Self> {
        let session = folder.folder("session");
        let (message, part) = match session.as_ref().and_then(|value| value.folder("message")) {
            Some(message) => (message, session.as_ref()?.folder("part")),
            None => (folder.folder("message")?, folder.folder("part")),
        };
        if !has_sessions(&message) {
            return None;
        }
        let infos = session
            .iter()
            .flat_map(|session| session.names().iter().filter_map(|name| session.folder(name)))
            .filter(has_sessions);
        Some(Self { infos: infos.collect(), message, part })
    }

    /// The tree of the `storage` in a folder.
    fn in_storage(folder: &Folder) -> Option<Self> {
        Self::at(&folder.folder("storage")?)
    }

    /// The names of its sessions.
    fn sessions(&self) -> impl Iterator<Item = &str> {
        self.message.names().iter().map(String::as_str).filter(|name| name.starts_with(SESSION))
    }

    /// The file in which a session describes itself.
    fn info(&self, session: &str) -> Option<PathBuf> {
        let name = format!("{session}.json");
        Some(self.infos.iter().rfind(|folder| folder.has(&name))?.child(&name))
    }

    /// The folder with the parts of a message.
    fn parts(&self, session: &str, message: &str) -> Option<Folder> {
        let part = self.part.as_ref()?;
        part.folder(message).or_else(|| part.folder(session)?.folder(message))
    }
}

/// Whether entries of a folder are named as sessions.
fn has_sessions(folder: &Folder) -> bool {
    folder.names().iter().any(|name| name.starts_with(SESSION))
}

/// The folder with the messages of the session that the file at `path` is about.
pub(super) fn messages_of(path: &Path) -> Option<Folder> {
    let name = path.file_stem()?.to_str()?;
    let session = path.parent()?.parent()?;
    let folders = [session, session.parent()?].map(|root| root.join("message").join(name));
    folders.iter().find_map(|folder| Folder::open(folder).ok())
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
    if !folder.names().iter().all(|name: &String| is_one_of(BESIDE, name) || name.starts_with('.'))
    {
        return Vec::new();
    }
    let mut trees = Vec::from_iter(Tree::in_storage(folder));
    if let Some(projects) = folder.folder("project") {
        let folders = projects.names().iter().filter_map(|name| projects.folder(name));
        trees.extend(folders.filter_map(|project| Tree::in_storage(&project)));
    }
    trees
}

/// The tree around the messages of one session, and its name.
fn one(folder: &Folder) -> Option<(Tree, &str)> {
    let path = folder.path();
    let name = path.file_name()?.to_str()?;
    let around = path.parent()?;
    let named = name.starts_with(SESSION) && around.file_name()? == "message";
    if !named || !folder.names().iter().any(|name| name.starts_with(MESSAGE)) {
        return None;
    }
    let root = around.parent()?;
    let own = Folder::open(root).ok().and_then(|root| Tree::at(&root));
    let tree = own.or_else(|| Tree::at(&Folder::open(root.parent()?).ok()?))?;
    Some((tree, name))
}

/// All sessions, oldest first; those that a tool started are side chains.
pub(super) fn read(folder: &Folder, files: &mut SessionFiles, _: &mut Source) -> Imported {
    let (trees, only) = match one(folder) {
        Some((tree, session)) => (vec![tree], Some(session)),
        None => (trees(folder), None),
    };
    let mut sessions = Vec::new();
    // When the product changed its layout, it copied all sessions.
    let mut seen = BTreeSet::new();
    for tree in &trees {
        for id in tree.sessions() {
            if only.is_none_or(|only| only == id) && seen.insert(id) {
                sessions.extend(session(tree, id, files)?);
            }
        }
    }

    // The names of sessions begin with the latest.
    sessions.sort_by_key(|item| item.messages().first().and_then(|first| first.details.timestamp));
    Ok(sessions)
}

fn session(tree: &Tree, id: &str, files: &mut SessionFiles) -> Result<Option<Session>> {
    let Some(folder) = tree.message.folder(id) else {
        return Ok(None);
    };
    let mut source = Source::default();
    let info = tree.info(id).map(|path| files.value(&path, &mut source)).transpose()?.flatten();
    let info: Option<Value> = info.and_then(|text| serde_json::from_str(&text).ok());
    let parent = info.as_ref().and_then(|info| info["parentID"].as_str());
    let mut messages = Vec::new();
    for name in json_files(&folder) {
        let Some(info) = files.value(&folder.child(name), &mut source)? else {
            continue;
        };
        let id_of_message = name.trim_end_matches(".json");
        let mut parts = Vec::new();
        if let Some(folder) = tree.parts(id, id_of_message) {
            for name in json_files(&folder) {
                parts.extend(files.value(&folder.child(name), &mut source)?);
            }
        }
        messages.push(upgraded(StoredMessage { id: id_of_message.into(), info, parts }));
    }
    let mut reading = OpencodeReading::new(parent);
    add_counts(&mut reading.assembler.source, source);
    reading.stored(&messages, "file that is not JSON");
    reading.finish(files.named(id), folder.path())
}

/// The names of a folder's JSON files, in their order.
fn json_files(folder: &Folder) -> impl Iterator<Item = &str> {
    let names = folder.names().iter().map(String::as_str);
    names.filter(|name| Path::new(name).extension().is_some_and(|one| one == "json"))
}

/// The message in the layout of later versions, with its parts apart from it.
fn upgraded(stored: StoredMessage) -> StoredMessage {
    let info: Value = serde_json::from_str(&stored.info).unwrap_or_default();
    let parts = info["parts"].as_array().filter(|_| stored.parts.is_empty());
    let Some(parts) = parts else { return stored };
    let about = &info["metadata"];
    if !about.is_object() {
        let texts = parts.iter().map(|part| part.to_string().into()).collect();
        return StoredMessage { parts: texts, ..stored };
    }
    let mut upgraded: Vec<Value> = Vec::new();
    for part in parts {
        // Only the beginnings of calls were recorded: the next one ends the one before it.
        if part["type"] == "step-start" && !upgraded.is_empty() {
            upgraded.push(json!({"type": "step-finish"}));
        }
        upgraded.push(upgraded_part(part, &about["tool"]));
    }
    let model = &about["assistant"];
    let info = json!({
        "id": info["id"], "role": info["role"], "time": about["time"], "error": about["error"],
        "modelID": model["modelID"], "tokens": model["tokens"], "summary": model["summary"],
    });
    StoredMessage {
        id: stored.id,
        info: info.to_string().into(),
        parts: upgraded.iter().map(|part| part.to_string().into()).collect(),
    }
}

/// A part under the names of later versions. `tools` holds times and errors by call.
fn upgraded_part(part: &Value, tools: &Value) -> Value {
    match part["type"].as_str() {
        Some("reasoning") => json!({
            "type": "reasoning", "text": part["text"], "metadata": part["providerMetadata"],
        }),
        Some("file") => json!({
            "type": "file", "mime": part["mediaType"], "filename": part["filename"],
            "url": part["url"],
        }),
        Some("tool-invocation") if part["toolInvocation"].is_object() => {
            let call = &part["toolInvocation"];
            let about = &tools[call["toolCallId"].as_str().unwrap_or_default()];
            let (status, key) = match (&call["result"], about["error"] == true) {
                (Value::Null, _) => ("running", "output"),
                (_, false) => ("completed", "output"),
                (_, true) => ("error", "error"),
            };
            json!({
                "type": "tool",
                "callID": call["toolCallId"],
                "tool": call["toolName"],
                "state": {
                    "status": status,
                    "input": call["args"],
                    key: call["result"],
                    "time": about["time"],
                },
            })
        }
        _ => part.clone(),
    }
}
