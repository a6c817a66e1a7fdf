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

pub(super) const IMPORTER: Importer = Importer::new("factory-droid", detect, import);

fn detect(head: &Head) -> bool {
    head.first().is_some_and(|first| {
        let kind = first.get("type").and_then(Value::as_str);
        kind == Some("session_start") && head.text.starts_with('{')
    })
}

fn import(file: &SourceText, source: &mut Source) -> Result<Vec<Session>, ImportError> {
    let mut lines = file.lines(source);
    let mut assembler = Assembler::default();
    while let Some(line) = lines.next()? {
        let raw = line.parse()?;
        match Object::read(raw) {
            Some(record) => read(record, raw, &mut assembler),
            None => assembler.unknown("record that is no object"),
        }
    }
    assembler.session(file.id.clone(), &file.path)
}

fn read(mut record: Object<'_>, raw: &RawValue, assembler: &mut Assembler) {
    let time = record.take_time("timestamp", assembler);
    let name = record.take_text("id");
    let kind = record.take_text("type");
    let message = record.take_object("message");
    match (kind.as_deref(), message) {
        (Some("message"), Some(mut message)) => {
            let is_model = message.take_text("role").as_deref() == Some("assistant");
            let speaker = if is_model {
                Speaker::Assistant
            } else {
                Speaker::User
            };
            let said = content::blocks(message.take("content"), speaker, &mut assembler.source);
            if is_model {
                let part = AssistantRecord::of(said, time).by(name, None, None);
                assembler.assistant(None, part);
            } else {
                let tag = speaker_in(&said);
                assembler.hear(None, said, time, tag);
            }
        }
        (Some("compaction_state"), _) => {
            let own = record.inner("summary").take_text("body");
            let summary = record.take_text("summaryText").or(own);
            assembler.summarizes(None, None, summary, None);
        }
        (Some(known), _) if is_one_of(BOOKKEEPING, known) => assembler.skip(known),
        (kind, _) => {
            let what = format!("record {}", kind.unwrap_or("without type"));
            assembler.hear_unknown(&what, raw, time);
        }
    }
}

fn speaker_in(said: &[ContentBlock]) -> Option<Tag> {
    speaker(said, |text| text.trim_start().starts_with(INJECTED))
}
