//! Gemini's API: requests of `generateContent`, logs of them with their answers, and bare lists of contents.
//!
//! Beside `contents` are `systemInstruction` and `tools`; the model is named in the address only, and so read from the
//! answer (`modelVersion`). Contents of the model that follow each other are one answer: clients keep a streamed one
//! in pieces. Calls need no ids; they are then paired by order. Google's own tools (Code Assist) put the request
//! under `request`, beside a model and a project, and the answer under `response`.
//!
//! Not read: candidates after the first, and the settings of a request (`generationConfig`, `safetySettings`), which
//! are counted as keys.
//!
//! Source: <https://ai.google.dev/api/generate-content>, read on 2026-11-25.

use super::gemini_content as contents;
use super::prelude::*;

const SHAPE: ConversationShape = ConversationShape {
    of_message: "parts",
    ..ConversationShape::of_messages("contents").of_api(Api::GenerateContent)
};

pub(super) const IMPORTER: Importer = Importer::new("gemini", Detect::By(detect), import);

fn detect(head: &Head) -> bool {
    head.first().is_some_and(|first| {
        let places = ["", "/request", "/request/request", "/0"];
        let bodies = places.iter().filter_map(|at| first.pointer(at));
        let mut contents =
            bodies.map(|body| body.get("contents").unwrap_or(body).get(0).unwrap_or(body));
        contents
            .any(|content| content.pointer("/parts/0").is_some_and(|part| is_shaped(part, PART)))
    })
}

/// The shape of a part of Gemini's: those of other products name their type.
const PART: &str = "text,functionCall,functionResponse,inlineData,fileData !type !kind";

fn import(file: &SourceText, source: &mut Source) -> Imported {
    conversations::sessions(SHAPE, file, source, read)
}

pub(super) fn read(conversation: Conversation<'_>, assembler: &mut Assembler) {
    let mut around = conversation.around;
    let time = around.take_time("timestamp", assembler);
    for key in ["systemInstruction", "system_instruction"] {
        let mut system = around.inner(key);
        system.take("role");
        let parts = contents::parts(system.take("parts"), assembler);
        assembler.add_system(&parts);
    }
    for raw in around.items("tools") {
        tools(raw, assembler);
    }
    around.header(assembler);

    let mut said: Blocks = Vec::new();
    for raw in conversation.messages {
        let Some((speaker, blocks)) = contents::content(raw, assembler) else {
            continue;
        };
        if speaker == Speaker::Assistant {
            said.extend(blocks);
            continue;
        }
        answered(&mut said, ModelRecord::of(Vec::new(), None), assembler);
        assembler.hear_user(blocks, None, false);
    }
    let response = around.take_object("response");
    answered(&mut said, ModelRecord::of(Vec::new(), None), assembler);
    if let Some(mut logged) = response {
        let mut response = logged.take_object("response").unwrap_or(logged);
        let mut candidates = response.objects("candidates");
        let mut first = candidates.next().unwrap_or_default();
        assembler.warn_all(candidates, "a response has a second candidate, which is left out");
        let parts = first.inner("content").items("parts");
        said = contents::blocks(Speaker::Assistant, parts, assembler);
        let billed = response.take("usageMetadata");
        let usage = billed.and_then(|raw| contents::usage_metadata(raw, &mut assembler.source));
        let model = response.take_text("modelVersion");
        assembler.header.model = assembler.header.model.take().or_else(|| model.clone());
        let record =
            ModelRecord::of(Vec::new(), time).by(response.take_text("responseId"), model, usage);
        if said.is_empty() {
            assembler.skip("response without a message");
        }
        answered(&mut said, record, assembler);
        response.take("createTime");
        response.count_left("response key", assembler);
    }
    around.count_left("key", assembler);
}

/// The functions that a tool declares; a tool of the provider's own is named by its key.
fn tools(raw: &RawValue, assembler: &mut Assembler) {
    let mut tool = Object::read(raw).unwrap_or_default();
    for key in ["functionDeclarations", "function_declarations"] {
        for declared in tool.items(key) {
            assembler.define_tool(declared);
        }
    }
    for (key, own) in tool.into_entries() {
        assembler.tool(Some(key.as_ref().into()), own);
    }
}

/// Adds what the model said, if it said anything. Texts that follow each other are one, as a stream brings them in
/// pieces; empty ones are none.
fn answered(said: &mut Blocks, record: ModelRecord, assembler: &mut Assembler) {
    let mut blocks: Blocks = Vec::new();
    let mut words = String::new();
    for block in said.drain(..) {
        if let ContentBlock::Text(text) = &block {
            words.push_str(text);
            continue;
        }
        if !words.is_empty() {
            blocks.push(ContentBlock::Text(std::mem::take(&mut words).into()));
        }
        blocks.push(block);
    }
    blocks.extend((!words.is_empty()).then(|| ContentBlock::Text(words.into())));
    if !blocks.is_empty() || record.usage.is_some() {
        assembler.answers(ModelRecord { blocks, ..record });
    }
}
