//! The parts of a chat message: content, reasoning, tool calls; and what a call cost.

use crate::prelude::*;
use proctor_sessions::Opaque;

/// The model's thinking, if a provider shows it: blocks with signatures, or a text.
pub(crate) fn reasoning(object: &mut Object<'_>, assembler: &mut Assembler) -> Blocks {
    // Gateways name it in their own way, and may say it twice.
    let words = object.take_words("reasoning_content");
    let thought = words.or(object.take_text("reasoning").or(object.take_text("reasoning_text")));
    let sealed = object.take_text("reasoning_opaque");
    let details = object.items("reasoning_details");
    let blocks = object.take("thinking_blocks");
    if let Some(raw) = blocks.filter(|raw| raw.get() != "[]") {
        // The text repeats the blocks.
        return assembler.blocks(Some(raw), Speaker::Assistant);
    }
    let mut text = thought.filter(|text| !text.is_empty());
    let mut signature = sealed;
    let mut hidden = Vec::new();
    let mut told: Vec<Arc<str>> = Vec::new();
    for raw in details {
        let mut detail = Object::read(raw).unwrap_or_default();
        signature = signature.or_else(|| detail.take_text("signature"));
        match detail.first_text(&["text", "summary"]) {
            Some(said) => told.push(said),
            None => hidden.push(content::kept("reasoning_details", raw)),
        }
    }
    if text.is_none() && !told.is_empty() {
        text = Some(told.concat().into());
    }
    // Copilot's gateway may seal a thought and not show it.
    if text.is_none() && told.is_empty() && signature.is_some() {
        text = Some("".into());
    }
    text.map(|text| ContentBlock::thinking(text, signature)).into_iter().chain(hidden).collect()
}

/// The model's refusal, where it is a key of the message; kept as the part it would be.
pub(super) fn refusal(object: &mut Object<'_>) -> Option<ContentBlock> {
    let json = serde_json::json!({"type": "refusal", "refusal": &*object.take_text("refusal")?});
    Some(ContentBlock::Opaque(Box::new(Opaque {
        kind: "refusal".into(),
        json: JsonText::of(&json),
    })))
}

/// How the id of a call begins that was made without one.
pub(crate) const UNNAMED: &str = "unnamed-call-";

/// Calls that were made without an id, until they are answered.
#[derive(Debug, Default)]
pub(crate) struct Unnamed {
    /// How often each call was made.
    made: BTreeMap<ContentHash, usize>,
    orphans: usize,
    open: VecDeque<(Arc<str>, Arc<str>)>,
}

impl Unnamed {
    /// An id for a call to `tool`. It is made of what is called, so that a request that begins later in the
    /// conversation has the same one.
    pub(crate) fn called(&mut self, tool: &Arc<str>, input: &JsonText) -> Arc<str> {
        let call = ContentHash::of_parts([tool.as_bytes(), input.value().to_string().as_bytes()]);
        let made = self.made.entry(call).or_default();
        *made += 1;
        let id: Arc<str> = match made {
            1 => format!("{UNNAMED}{}", call.hex(8)).into(),
            made => format!("{UNNAMED}{}-{made}", call.hex(8)).into(),
        };
        self.open.push_back((id.clone(), tool.clone()));
        id
    }

    /// The id of the first open call to `tool`, or of the first one at all.
    pub(crate) fn answered(&mut self, tool: Option<&str>) -> Arc<str> {
        let named = self.open.iter().position(|(_, name)| Some(&**name) == tool);
        let paired = self.open.remove(named.unwrap_or(0)).map(|(id, _)| id);
        paired.unwrap_or_else(|| numbered("unnamed-result", &mut self.orphans))
    }
}

/// The tool uses of a message: `tool_calls`, and the older `function_call`.
pub(crate) fn tool_uses(object: &mut Object<'_>, assembler: &mut Assembler) -> Blocks {
    let calls = object.items("tool_calls");
    let mut uses = assembler.calls("tool_call", calls, |mut call, assembler| {
        let function = call.take_object("function").or_else(|| call.take_object("custom"))?;
        tool_use(call.take_words("id"), function, assembler)
    });
    let function = object.take_object("function_call");
    uses.extend(function.and_then(|function| tool_use(None, function, assembler)));
    uses
}

fn tool_use(id: Text, mut function: Object<'_>, assembler: &mut Assembler) -> Option<ContentBlock> {
    let name = function.take_text("name")?;
    // A custom tool takes text, which need not be JSON.
    let input = match function.take_text("input") {
        Some(text) => JsonText::string(&text),
        None => arguments(&mut function, assembler),
    };
    let call = id.unwrap_or_else(|| assembler.unnamed.called(&name, &input));
    Some(ContentBlock::tool_use(call, name, input))
}

/// The arguments of a call: JSON in a string, or as it is.
pub(crate) fn arguments(function: &mut Object<'_>, assembler: &mut Assembler) -> JsonText {
    if let Some(text) = function.take_text("arguments") {
        return arguments_in(&text, assembler);
    }
    let raw = function.take("arguments");
    assembler.warn(match raw {
        Some(_) => "tool arguments stand as JSON, not as a string",
        None => "a tool call has no arguments",
    });
    input_or_empty(raw)
}

/// The arguments in a string.
pub(crate) fn arguments_in(text: &str, assembler: &mut Assembler) -> JsonText {
    JsonText::parse(text).unwrap_or_else(|_| {
        assembler.warn("tool arguments are no JSON; they are kept as a string");
        JsonText::string(text)
    })
}
