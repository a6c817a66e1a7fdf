//! Factory's Droid keeps a session as lines: a `session_start`, and messages in the form of
//! Anthropic's API.
//!
//! Rules of this format, beside those every importer shares:
//! - What a call cost is in no file: the settings beside it add up the whole session.
//! - A `compaction_state` holds the summary. What stayed beside it is not recorded.

use super::prelude::*;

/// How words begin that the product sends in the user's place.
const INJECTED: &str = "<system-reminder>";

/// Records without words of the conversation.
const BOOKKEEPING: &str = "session_start todo_state agent_turn_outcome";

pub(super) const IMPORTER: Importer =
    Importer::new("factory-droid", Detect::First("type=session_start"), import);

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let mut assembler = Assembler::default();
    for (record, raw) in file.records(source)? {
        read(record, raw, &mut assembler);
    }
    assembler.session(file.id.clone(), &file.path)
}

fn read(mut record: Object<'_>, raw: &RawValue, assembler: &mut Assembler) {
    let time = record.take_time("timestamp", assembler);
    let name = record.take_text("id");
    let kind = record.take_type();
    let message = record.take_object("message");
    match (&*kind, message) {
        ("message", Some(mut message)) => {
            if message.take_text("role").as_deref() == Some("assistant") {
                let said = message.take_blocks("content", Speaker::Assistant, assembler);
                return assembler.assistant(None, ModelRecord::of(said, time).by(name, None, None));
            }
            let said = message.take_blocks("content", Speaker::User, assembler);
            let tag = speaker(&said, |text| text.trim_start().starts_with(INJECTED));
            assembler.hear(None, said, time, tag);
        }
        ("compaction_state", _) => {
            let own = record.inner("summary").take_text("body");
            assembler.summarizes(None, None, record.take_text("summaryText").or(own), None);
        }
        (known, _) if is_one_of(BOOKKEEPING, known) => assembler.skip(known),
        (kind, _) => assembler.hear_unknown("record", kind, raw, time),
    }
}
