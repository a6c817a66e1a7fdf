//! One item of the responses API, as the model saw or wrote it; Codex keeps them in its rollouts.

use crate::prelude::*;
use proctor_sessions::wire::content::kept;

/// An item's part of the conversation, and its author.
#[derive(Debug, PartialEq)]
pub(crate) enum ResponsesItem {
    /// Nothing.
    Nothing,
    /// The model.
    Model(Blocks),
    /// The user or a tool.
    Other(Blocks),
    /// The product, in a message of the developer's role.
    Product(Blocks),
}

/// Items of the model's that the provider documents and Proctor keeps as they are.
const KNOWN_OPAQUE: &str = "web_search_call image_generation_call code_interpreter_call file_search_call \
    mcp_approval_request mcp_call mcp_list_tools program compaction compaction_summary \
    context_compaction";

/// Items that are the result of a call.
const OUTPUTS: &str = "function_call_output custom_tool_call_output local_shell_call_output tool_search_output \
    computer_call_output shell_call_output apply_patch_call_output";

/// Whether an item of this type holds what only the provider can read.
pub(crate) fn is_encrypted(kind: &str) -> bool {
    is_one_of("compaction compaction_summary context_compaction", kind)
}

#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
struct Raw<'a> {
    r#type: Text,
    role: Text,
    call_id: Text,
    id: Text,
    name: Text,
    encrypted_content: Text,
    content: Option<&'a RawValue>,
    summary: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
    action: Option<&'a RawValue>,
    operation: Option<&'a RawValue>,
    output: Option<&'a RawValue>,
    tools: Option<&'a RawValue>,
}

/// Reads one item.
pub(crate) fn item(raw: &RawValue, assembler: &mut Assembler) -> ResponsesItem {
    let Some(item) = lenient::object::<Raw<'_>>(raw.get(), &mut assembler.source) else {
        return ResponsesItem::Product(vec![assembler.unread_part("item", "malformed item", raw)]);
    };
    // A message may leave out what it is.
    let kind = match (&item.r#type, &item.role) {
        (Some(kind), _) => kind.clone(),
        (None, Some(_)) => "message".into(),
        (None, None) => "untyped".into(),
    };
    match &*kind {
        "message" => {
            let (speaker, said): (_, fn(_) -> _) = match item.role.as_deref() {
                Some("assistant") => (Speaker::Assistant, ResponsesItem::Model),
                Some("user") => (Speaker::User, ResponsesItem::Other),
                _ => (Speaker::User, ResponsesItem::Product),
            };
            let blocks = assembler.blocks(item.content, speaker);
            if blocks.is_empty() {
                assembler.skip("message without content");
                return ResponsesItem::Nothing;
            }
            said(blocks)
        }
        "reasoning" => reasoning(&item, assembler),
        "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call"
        | "computer_call" | "shell_call" | "apply_patch_call" => ResponsesItem::Model(vec![
            call(&kind, &item, assembler)
                .unwrap_or_else(|| assembler.unread_part("item", &kind, raw)),
        ]),
        known if is_one_of(OUTPUTS, known) => {
            let Some(id) = item.call_id.clone().or_else(|| item.id.clone()) else {
                return ResponsesItem::Other(vec![assembler.unread_part("item", &kind, raw)]);
            };
            let (content, is_error) = match (item.output, item.tools) {
                // The model reads the result of a search for tools as it is.
                (None, Some(tools)) => (vec![ContentBlock::Text(tools.get().into())], false),
                (output, _) => told(output, assembler),
            };
            ResponsesItem::Other(vec![ContentBlock::tool_result(id, content, is_error)])
        }
        // What another agent wrote to this one (Codex): its words, or their encrypted form.
        "agent_message" if item.content.is_some() => {
            ResponsesItem::Product(assembler.blocks(item.content, Speaker::User))
        }
        "ghost_snapshot" | "item_reference" | "compaction_trigger" | "other" => {
            assembler.skip(&kind);
            ResponsesItem::Nothing
        }
        "mcp_approval_response" | "program_output" => ResponsesItem::Other(vec![kept(&kind, raw)]),
        "additional_tools" => ResponsesItem::Product(vec![kept(&kind, raw)]),
        known if is_one_of(KNOWN_OPAQUE, known) => ResponsesItem::Model(vec![kept(&kind, raw)]),
        _ => ResponsesItem::Product(vec![assembler.unread_part("item", &kind, raw)]),
    }
}

/// The model's thinking: its text or a summary of it if one is shown, and its encrypted form.
fn reasoning(item: &Raw<'_>, assembler: &mut Assembler) -> ResponsesItem {
    let lists = [item.summary, item.content].into_iter();
    let blocks = lists.flat_map(|list| assembler.blocks(list, Speaker::User));
    let texts = blocks.filter_map(|block| block.as_text().cloned());
    let text = texts.collect::<Vec<Arc<str>>>().join("\n\n");
    if !text.is_empty() || item.encrypted_content.is_some() {
        let signature = item.encrypted_content.clone();
        return ResponsesItem::Model(vec![ContentBlock::thinking(text, signature)]);
    }
    assembler.skip("reasoning that is not shown");
    ResponsesItem::Nothing
}

fn call(kind: &str, item: &Raw<'_>, assembler: &mut Assembler) -> Option<ContentBlock> {
    let id = item.call_id.clone().or_else(|| item.id.clone())?;
    let name: Arc<str> = match (&item.name, kind) {
        (Some(name), _) => name.clone(),
        (None, "function_call" | "custom_tool_call") => return None,
        (None, kind) => kind.strip_suffix("_call").unwrap_or(kind).into(),
    };
    let input = match (item.arguments.or(item.action).or(item.operation), item.input) {
        // Arguments are JSON in a string; a custom tool takes any text.
        (Some(raw), _) => match content::text(raw) {
            Some(arguments) => arguments_in(&arguments, assembler),
            None => JsonText::from(raw),
        },
        (None, Some(raw)) => JsonText::from(raw),
        (None, None) => {
            assembler.warn("a tool call has no arguments");
            JsonText::string("")
        }
    };
    Some(ContentBlock::tool_use(id, name, input))
}

/// A result: a text, a list of parts, or an object with `content` and `success`.
fn told(raw: Option<&RawValue>, assembler: &mut Assembler) -> (Blocks, bool) {
    #[derive(Deserialize)]
    struct ToolOutput<'a> {
        #[serde(borrow)]
        content: &'a RawValue,
        success: Option<bool>,
    }
    let Some(raw) = raw else {
        assembler.warn("a tool result has no output");
        return (Vec::new(), false);
    };
    if let Ok(told) = serde_json::from_str::<ToolOutput<'_>>(raw.get()) {
        return (result_parts(told.content, assembler), told.success == Some(false));
    }
    (result_parts(raw, assembler), false)
}

fn result_parts(raw: &RawValue, assembler: &mut Assembler) -> Blocks {
    match raw.get().bytes().next() {
        // An empty result is a result.
        Some(b'"' | b'[') => assembler.blocks(Some(raw), Speaker::Tool),
        Some(b'{') if raw.get().contains("\"image_url\"") => {
            vec![assembler.part(raw, Speaker::Tool)]
        }
        _ => vec![ContentBlock::Text(raw.get().into())],
    }
}
