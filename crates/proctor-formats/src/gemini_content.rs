//! The contents of Gemini's API, as products of its family keep them: a role and parts.

use super::prelude::*;

/// Who speaks in a content, and the blocks; none if it is kept without being read.
pub(super) fn content(raw: &RawValue, assembler: &mut Assembler) -> Option<(Speaker, Blocks)> {
    let mut content = Object::read(raw).unwrap_or_default();
    let role = content.take_text("role");
    let speaker = match role.as_deref() {
        Some("model") => Speaker::Assistant,
        Some("user" | "function") => Speaker::User,
        // A request of one content may leave it out.
        None if content.has("parts") => Speaker::User,
        role => {
            keep_unread(role.unwrap_or("malformed"), raw, assembler);
            return None;
        }
    };
    let parts = content.items("parts");
    content.count_left("content key", assembler);
    Some((speaker, blocks(speaker, parts, assembler)))
}

/// The parts of a content as blocks. Calls and answers without ids are paired by order; those of the
/// wrong speaker are kept without being understood.
pub(super) fn blocks(speaker: Speaker, parts: Vec<&RawValue>, assembler: &mut Assembler) -> Blocks {
    parts.into_iter().map(|raw| block(speaker, raw, assembler)).collect()
}

fn block(speaker: Speaker, raw: &RawValue, assembler: &mut Assembler) -> ContentBlock {
    let mut object = Object::read(raw).unwrap_or_default();
    let of_model = speaker == Speaker::Assistant;
    if of_model
        && let Some(mut call) = object.take_object("functionCall")
        && let Some(name) = call.take_text("name")
    {
        let input = input_or_empty(call.take("args"));
        let id = call.take_words("id").unwrap_or_else(|| assembler.unnamed.called(&name, &input));
        return ContentBlock::tool_use(id, name, input);
    }
    if !of_model && let Some(mut answer) = object.take_object("functionResponse") {
        let name = answer.take_text("name");
        let id =
            answer.take_words("id").unwrap_or_else(|| assembler.unnamed.answered(name.as_deref()));
        let told = answer.get("response").and_then(Object::read);
        let failed = told.is_some_and(|told| told.has("error") && !told.has("output"));
        return ContentBlock::tool_result(id, answered(answer, assembler), failed);
    }
    if of_model
        && object.take_flag("thought")
        && let Some(text) = object.take_text("text")
    {
        return ContentBlock::thinking(text, object.take_text("thoughtSignature"));
    }
    part(raw, &mut assembler.source)
}

/// What a function response says: its text, or the response as JSON, and the parts that came with
/// it, such as an image.
pub(super) fn answered(mut answer: Object<'_>, assembler: &mut Assembler) -> Blocks {
    let mut told: Blocks = answer.take("response").map(response).into_iter().collect();
    told.extend(parts(answer.take("parts"), assembler));
    told
}

/// The text of a response, or the response as JSON.
pub(super) fn response(raw: &RawValue) -> ContentBlock {
    let told = value(raw);
    let own = ["/output", "/error"].iter().find_map(|at| told.pointer(at)?.as_str());
    ContentBlock::Text(own.or(told.as_str()).unwrap_or(raw.get()).into())
}

/// A text, a part, or a list of parts; none of them a call.
pub(super) fn parts(content: Option<&RawValue>, assembler: &mut Assembler) -> Blocks {
    match content {
        Some(raw) if raw.get().starts_with('{') => vec![part(raw, &mut assembler.source)],
        content => content::blocks_by(content, Speaker::User, &mut assembler.source, part),
    }
}

/// A part that is no call.
pub(super) fn part(raw: &RawValue, source: &mut Source) -> ContentBlock {
    if let Some(text) = content::text(raw) {
        return ContentBlock::Text(text);
    }
    let mut part = Object::read(raw).unwrap_or_default();
    if let Some(text) = part.take_text("text") {
        ContentBlock::Text(text)
    } else if part.has("fileData") || part.has("inlineData") {
        let data = part.take("inlineData");
        let kind = data.and_then(|data| Object::read(data)?.take_text("mimeType"));
        match data.filter(|_| kind.is_none_or(|kind| kind.starts_with("image/"))) {
            Some(data) => content::image(data),
            None => content::kept("document", raw),
        }
    } else {
        source.not_understood("part");
        content::kept("part", raw)
    }
}

/// The usage of a response. Thoughts are billed as output: Gemini's own API counts them apart from
/// the candidates, gateways in its shape within, and the total says which.
///
/// Source: <https://ai.google.dev/api/generate-content#UsageMetadata>
pub(super) fn usage_metadata(raw: &RawValue, source: &mut Source) -> Option<Usage> {
    let mut bill = usage(raw, CachedTokens::Within, source)?;
    let at = ["/thoughtsTokenCount", "/toolUsePromptTokenCount", "/totalTokenCount"];
    let [thoughts, tool, total] = counters(&value(raw), at, source);
    let within = bill.prompt().0.saturating_add(bill.output.0);
    bill.input_uncached += Tokens(tool);
    if total > within.saturating_add(tool) {
        bill.output += Tokens(thoughts);
    }
    Some(bill)
}
