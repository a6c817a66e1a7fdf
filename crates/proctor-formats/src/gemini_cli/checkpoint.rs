//! Checkpoints: what `/chat save` keeps, the contents as Gemini's API has them.
//!
//! A file is the list itself, or an object with it as `history`. Calls and answers may have no ids:
//! they are paired by order.

use super::speaker_of;
use crate::gemini_content::content;
use crate::prelude::*;

pub(super) fn import(file: &SourceText, source: &mut Source) -> Imported {
    let mut assembler = Assembler::default();
    for value in file.values(source)? {
        read(&value, &mut assembler)?;
    }
    assembler.session(file.id.clone(), &file.path)
}

/// Reads the contents of a checkpoint.
fn read(value: &RecordLine<'_>, assembler: &mut Assembler) -> Result<()> {
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
        match content(raw, assembler) {
            Some((Speaker::Assistant, said)) => {
                assembler.assistant(None, ModelRecord::of(said, None));
            }
            Some((_, said)) => {
                let tag = speaker_of(&said);
                assembler.hear(None, said, None, tag);
            }
            None => {}
        }
    }
    Ok(())
}
