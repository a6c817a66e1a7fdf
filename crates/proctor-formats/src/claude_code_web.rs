//! Sessions of Claude Code in the cloud (claude.ai/code), as its API gives them: an object with
//! `loglines`, which are the lines of a session file of Claude Code, and are read as such.
//!
//! Source: simonw/claude-code-transcripts, `src/claude_code_transcripts/__init__.py`; November 2026.

use super::claude_code;
use super::prelude::*;

pub(super) const IMPORTER: Importer = Importer::new("claude-code-web", Detect::By(detect), import);

fn detect(head: &Head) -> bool {
    let mut lines = head.at("/loglines").and_then(Value::as_array).into_iter().flatten().take(50);
    lines.any(|line| is_shaped(line, "type:s message"))
}

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let mut sessions = Vec::new();
    for value in file.values(source)? {
        let raw: &RawValue = value.parse()?;
        let mut object = Object::read(raw).unwrap_or_default();
        let Some(lines) = object.take("loglines").filter(|value| items(value).is_some()) else {
            source.not_understood("value that is no session");
            continue;
        };
        for (key, _) in object.into_entries() {
            source.skip(&format!("key `{key}`"));
        }
        match claude_code::IMPORTER.import(&file.path, &mut lines.get().as_bytes()) {
            Ok(read) => sessions.extend(read),
            Err(ImportError::NoConversation(_)) => source.skip("session without messages"),
            Err(error) => return Err(error),
        }
    }
    Ok(sessions)
}
