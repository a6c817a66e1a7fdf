//! Grok Build keeps the messages of a session as lines (`~/.grok/sessions/FOLDER/ID/chat_history.jsonl`): the system
//! prompt, what the user and the product said, the model's thoughts and answers, and results of tools.
//!
//! Rules of this format, beside those every importer shares:
//! - Thoughts stand on a line of their own, in front of the answer to which they belong.
//! - No line has a time or a bill; `summary.json` beside the file is not read.
//! - A message of the user's with a `synthetic_reason` is the product's.
//!
//! Not read: `updates.jsonl`, which tells the same as events.
//!
//! Source: the readers of this format in public tools, as the product's own source is not published; November 2026.

use super::prelude::*;

pub(super) const IMPORTER: Importer = Importer::new("grok-build", Detect::By(detect), import);

fn detect(head: &Head) -> bool {
    let records = head.values.iter();
    // A picture in the first prompt may fill all that is seen.
    let begun = records.len() == 2;
    head.first().is_some_and(|first| is_line(first, "system user"))
        && records.clone().filter(|record| !is_line(record, KNOWN)).count() * 2 < records.len()
        && records.skip(1).any(|record| {
            is_line(record, "assistant tool_result") || begun && is_line(record, "user")
        })
}

/// Whether a record is a line of one of these types.
fn is_line(record: &Value, types: &str) -> bool {
    // Antigravity's and Entire's lines are of the same types, and have a time each.
    const OTHERS: &str = "message,role,uuid,step_index,created_at,timestamp,ts";
    let kind = record["type"].as_str();
    kind.is_some_and(|kind| is_one_of(types, kind)) && !is_shaped(record, OTHERS)
}

/// The types of lines.
const KNOWN: &str = "system user assistant reasoning tool_result";

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let mut assembler = Assembler::default();
    let mut thoughts: Blocks = Vec::new();
    for (mut record, raw) in file.records(source)? {
        let kind = record.take_type();
        if &*kind == "reasoning" {
            thoughts.extend(thought(&mut record, &mut assembler));
            continue;
        }
        if &*kind == "assistant" {
            answer(record, std::mem::take(&mut thoughts), &mut assembler);
            continue;
        }
        answer(Object::default(), std::mem::take(&mut thoughts), &mut assembler);
        match &*kind {
            "system" => {
                let said = record.take_blocks("content", Speaker::User, &mut assembler);
                assembler.add_system(&said);
            }
            "user" => {
                let said = record.take_blocks("content", Speaker::User, &mut assembler);
                assembler.hear_user(said, None, record.has("synthetic_reason"));
            }
            "tool_result" if record.has("tool_call_id") => {
                let id = record.take_text("tool_call_id").unwrap_or_default();
                let told = record.take_blocks("content", Speaker::User, &mut assembler);
                assembler.hear_result(id, told, record.take_flag("is_error"), None);
            }
            kind => assembler.hear_unknown("record", kind, raw, None),
        }
    }
    answer(Object::default(), thoughts, &mut assembler);
    assembler.session(file.id.clone(), &file.path)
}

/// The model's thoughts: a text or a list of them, and their encrypted form.
fn thought(record: &mut Object<'_>, assembler: &mut Assembler) -> Option<ContentBlock> {
    let text = joined_texts(&record.take_blocks("summary", Speaker::User, assembler));
    let signature = record.take_text("encrypted_content");
    if text.is_empty() && signature.is_none() {
        assembler.skip("reasoning that is not shown");
        return None;
    }
    Some(ContentBlock::thinking(text, signature))
}

fn answer(mut record: Object<'_>, mut said: Blocks, assembler: &mut Assembler) {
    let mut words = record.take_blocks("content", Speaker::Assistant, assembler);
    words.retain(|block| block.as_text().is_none_or(|text| !text.is_empty()));
    said.extend(words);
    let calls = record.items("tool_calls");
    said.extend(assembler.calls("tool_call", calls, |mut call, assembler| {
        let id = call.take_text("id")?;
        let mut function = call.take_object("function").unwrap_or(call);
        let name = function.take_text("name")?;
        Some(ContentBlock::tool_use(id, name, arguments(&mut function, assembler)))
    }));
    if !said.is_empty() || !record.is_empty() {
        let model = record.take_text("model_id");
        assembler.assistant(None, ModelRecord::of(said, None).by(None, model, None));
    }
}
