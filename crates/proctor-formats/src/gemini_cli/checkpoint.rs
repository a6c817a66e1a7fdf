//! Checkpoints: what `/chat save` keeps, the contents as Gemini's API has them.
//!
//! A file is the list itself, or an object with it as `history`. Calls and answers may have no ids:
//! they are paired by order.

use super::speaker_of;
use crate::gemini_content::blocks;
use crate::prelude::*;

/// Whether a value of a chat is a checkpoint: a list, or an object with a history.
pub(super) fn begins(text: &str) -> bool {
    let text = text.trim_start();
    let is_object = || Object::read(serde_json::from_str(text).ok()?).map(|one| one.has("history"));
    text.starts_with('[') || text.starts_with("{\"history\"") || is_object() == Some(true)
}

/// Reads the contents of a checkpoint.
pub(super) fn read(value: &Line<'_>, assembler: &mut Assembler) -> Result<()> {
    let contents: Vec<&RawValue> = match Object::read(value.parse()?) {
        Some(mut object) => {
            let list = object.take_list("history");
            object.count_left("key", assembler);
            list.ok_or_else(|| value.error("missing key `history`"))?
        }
        None => value.parse()?,
    };
    assembler.unnamed = Unnamed::default();
    for raw in contents {
        let mut content = Object::read(raw).unwrap_or_default();
        let Some(role) = content.take_text("role") else {
            keep_unread("malformed", raw, assembler);
            continue;
        };
        let mut said = |speaker| blocks(speaker, content.items("parts"), assembler);
        match &*role {
            "model" => {
                let record = Answer::of(said(Speaker::Assistant), None);
                assembler.assistant(None, record);
            }
            "user" | "function" => {
                let said = said(Speaker::User);
                let tags = speaker_of(&said);
                assembler.hear(None, said, None, tags);
            }
            role => keep_unread(role, raw, assembler),
        }
    }
    Ok(())
}
