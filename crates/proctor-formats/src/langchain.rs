//! LangChain's messages: dumps of its constructors (`{lc, id, kwargs}`), `messages_to_dict`
//! (`{type, data}`), or flat (`{type, content}`); in a list, in a state's `messages`, or one per
//! line.
//!
//! Rules of this format, beside those every importer shares:
//! - A call is in `tool_calls`, and once more in the content or beside it, in its provider's
//!   shape: it is counted once.
//! - `usage_metadata` has one shape for all providers; its input includes the cached tokens.
//! - A message that the library marks as a summary takes the place of all that was before it.

use super::openai_chat::parts;
use super::prelude::*;

/// Where a state keeps its messages, innermost last.
const MESSAGES: &str = "messages values/messages channel_values/messages \
    checkpoint/channel_values/messages state/messages output/messages outputs/messages \
    input/messages inputs/messages";

const SHAPE: ConversationShape = ConversationShape {
    of_message: "type",
    in_state: Some(in_state),
    ..ConversationShape::of_messages("messages")
};

pub(super) const IMPORTER: Importer = Importer::new("langchain", Detect::By(detect), import);

fn detect(head: &Head) -> bool {
    // A run of LangSmith has its messages in the same places.
    let Some(first) = head.first().filter(|value| value.get("run_type").is_none()) else {
        return false;
    };
    let lists = MESSAGES.split_whitespace().map(|at| format!("/{at}")).chain([String::new()]);
    let mut firsts = lists.flat_map(|at| [format!("{at}/0"), format!("{at}/0/0")]);
    is_message(first) || firsts.any(|at| first.pointer(&at).is_some_and(is_message))
}

fn import(file: &SourceText, source: &mut Source) -> Imported {
    conversations::sessions(SHAPE, file, source, |conversation, assembler| {
        read(conversation.messages, assembler);
    })
}

/// Reads the messages of a conversation.
pub(super) fn read(messages: Vec<&RawValue>, assembler: &mut Assembler) {
    for raw in messages {
        message(raw, assembler);
    }
}

/// Whether a value is a message of the library's.
pub(super) fn is_message(value: &Value) -> bool {
    is_shaped(value, MESSAGE)
}

/// The shapes of a message.
const MESSAGE: &str = "lc id | \
    type=human,ai,AIMessageChunk,tool,system,function,chat data,content !role";

/// The list of messages that a state holds.
fn in_state(raw: &RawValue) -> Option<&RawValue> {
    let state = Object::read(raw)?;
    MESSAGES.split_whitespace().find_map(|path| {
        let (outer, last) = path.rsplit_once('/').unwrap_or(("", path));
        let mut inner = state.clone();
        for key in outer.split_terminator('/') {
            inner = inner.take_object(key)?;
        }
        inner.take(last).filter(|raw| raw.get().starts_with('['))
    })
}

fn message(raw: &RawValue, assembler: &mut Assembler) {
    let Some(mut object) = Object::read(raw) else {
        return keep_unread("malformed", raw, assembler);
    };
    let (kind, mut fields) = if object.has("kwargs") {
        let mut path = object.items("id").into_iter().filter_map(content::text);
        let name = path.next_back().unwrap_or_default();
        let class = name.strip_suffix("Chunk").unwrap_or(&name);
        let kind = class.strip_suffix("Message").unwrap_or(class);
        (kind.to_ascii_lowercase(), object.inner("kwargs"))
    } else {
        let name = object.take_text("type").unwrap_or_default();
        let kind = name.strip_suffix("MessageChunk").unwrap_or(&name).to_ascii_lowercase();
        (kind, object.take_object("data").unwrap_or(object))
    };
    let first = assembler.is_empty();
    let role = (kind == "chat").then(|| fields.take_text("role")).flatten();
    // A message of any role says which.
    let kind = match (kind.as_str(), role.as_deref()) {
        ("chat", Some("user" | "human")) => "human",
        ("chat", Some("assistant" | "ai" | "model")) => "ai",
        ("chat", Some("tool" | "function")) => "tool",
        ("chat", Some("system" | "developer")) if first => "system",
        (kind, _) => kind,
    };
    match kind {
        "human" => human(fields, assembler),
        "ai" => ai(fields, assembler),
        "tool" | "function" => tool(fields, assembler),
        "system" => {
            let blocks = fields.take_blocks("content", Speaker::User, assembler);
            if first {
                return assembler.add_system(&blocks);
            }
            assembler.warn(LATE_SYSTEM);
            assembler.hear(None, blocks, None, [Tag::Meta]);
        }
        "remove" => assembler.skip("removal of a message"),
        kind => keep_unread(kind, raw, assembler),
    }
}

fn human(mut fields: Object<'_>, assembler: &mut Assembler) {
    let mut additional = fields.inner("additional_kwargs");
    let summarized = additional.take_text("lc_source").as_deref() == Some("summarization");
    let blocks = fields.take_blocks("content", Speaker::User, assembler);
    let tag = if summarized { Tag::CompactSummary } else { Tag::TypedUser };
    if !summarized || assembler.is_empty() {
        return assembler.hear(None, blocks, None, [tag]);
    }
    let after = CompactedTo::Replaced(vec![Recorded::written(Role::User, blocks, &[tag])]);
    assembler.compacts(None, None, after);
}

fn ai(mut fields: Object<'_>, assembler: &mut Assembler) {
    let calls = fields.items("tool_calls");
    let mut uses =
        assembler.calls("tool_call", calls, |call, _| flat_call(call, ["id", "name", "args"]));
    let ids: BTreeSet<Arc<str>> =
        uses.iter().filter_map(ContentBlock::as_use).map(|call| call.id.clone()).collect();
    let mut additional = fields.inner("additional_kwargs");
    // Before the library had its own, it kept the provider's calls.
    if uses.is_empty() {
        uses = parts::tool_uses(&mut additional, assembler);
    }
    let mut blocks = parts::reasoning(&mut additional, assembler);
    for repeated in ["tool_calls", "function_call"] {
        additional.take(repeated);
    }
    additional.count_left("additional key", assembler);
    for block in fields.take_blocks("content", Speaker::Assistant, assembler) {
        if block.as_use().is_some_and(|value| ids.contains(&value.id)) {
            assembler.skip("call repeated in the content");
        } else {
            blocks.push(block);
        }
    }
    blocks.extend(uses);
    let calls = fields.items("invalid_tool_calls");
    blocks.extend(assembler.calls("invalid_tool_call", calls, invalid));
    let mut metadata = fields.inner("response_metadata");
    let usage = usage_of(&mut fields, &mut metadata, assembler);
    let call = metadata.take_text("id").or(fields.take_text("id")).filter(|id| !id.is_empty());
    let model = metadata.first_text(&["model_name", "model"]);
    // A trace knows when the message was there.
    let time = fields.take_time("timestamp", assembler);
    assembler.assistant(None, ModelRecord::of(blocks, time).by(call, model, usage));
}

/// The usage of the call: in the library's shape, or in the provider's.
fn usage_of(
    fields: &mut Object<'_>,
    metadata: &mut Object<'_>,
    assembler: &mut Assembler,
) -> Option<Usage> {
    let own = fields.take("usage_metadata");
    let theirs = metadata.take("usage").filter(|_| own.is_none());
    let cached = if theirs.is_some_and(|raw| value(raw).get("input_tokens").is_some()) {
        CachedTokens::Apart
    } else {
        CachedTokens::Within
    };
    assembler.usage(own.or(theirs).or_else(|| metadata.take("token_usage")), cached)
}

fn tool(mut fields: Object<'_>, assembler: &mut Assembler) {
    let content = fields.take_blocks("content", Speaker::Tool, assembler);
    let failed = fields.take_text("status").as_deref() == Some("error");
    let name = fields.take_text("name");
    let own = fields.take_text("tool_call_id");
    let id = own.unwrap_or_else(|| assembler.unnamed.answered(name.as_deref()));
    assembler.hear_result(id, content, failed, None);
}

/// A call whose arguments cannot be read: it is sent back as the model wrote it, and answered.
fn invalid(mut call: Object<'_>, assembler: &mut Assembler) -> Option<ContentBlock> {
    let (id, name) = call.take_text("id").zip(call.take_text("name"))?;
    let input = JsonText::string(&call.take_text("args").unwrap_or_default());
    assembler.warn("tool arguments are no JSON; they are kept as a string");
    Some(ContentBlock::tool_use(id, name, input))
}
