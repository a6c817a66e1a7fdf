//! The parts of a message: what the model was sent, what it said, and bookkeeping between them.

use crate::prelude::*;

/// The role of a part in the conversation.
pub(super) enum Part {
    /// It was said.
    Block(ContentBlock),
    /// The product put it beside what a person typed.
    Injected(ContentBlock),
    /// A tool was called.
    Tool(ToolPart),
    /// A call ended.
    StepFinish(Option<Usage>),
    /// The history up to here is to be summarised.
    Compaction(CompactionRequest),
    /// Bookkeeping, counted.
    Nothing,
}

/// A compaction that was asked for.
#[derive(Default)]
pub(super) struct CompactionRequest {
    /// `auto` or `manual`.
    pub(super) trigger: Text,
    /// The first message that stayed.
    pub(super) tail: Text,
}

/// A tool part: the call, and its result once there is one. Version 2 has other names for the same.
pub(super) struct ToolPart {
    /// The provider's name for the call.
    pub(super) id: Text,
    pub(super) name: Arc<str>,
    input: JsonText,
    result: Option<(Blocks, bool)>,
    started: When,
    ended: When,
    cleared: When,
}

/// The output of one call and the results of its tools.
#[derive(Default)]
pub(super) struct CallStep {
    /// The blocks of the model's message.
    pub(super) said: Blocks,
    /// The results of its tool uses.
    pub(super) results: Blocks,
    /// The tool uses whose results were cleared later, and when.
    pub(super) cleared: Vec<(Timestamp, Arc<str>)>,
    /// When its first tool was called.
    pub(super) time: When,
    /// When its last tool was done.
    pub(super) ended: When,
    /// Whether a command of the user's called its tools, and not the model.
    pub(super) is_command: bool,
}

impl CallStep {
    /// Adds a tool use under a name of its own, and its result.
    pub(super) fn add(&mut self, tool: ToolPart, id: Arc<str>) {
        self.time = self.time.or(tool.started);
        self.ended = self.ended.max(tool.ended);
        self.said.push(ContentBlock::tool_use(id.clone(), tool.name, tool.input));
        let Some((content, is_error)) = tool.result else {
            return;
        };
        self.cleared.extend(tool.cleared.map(|time| (time, id.clone())));
        self.results.push(ContentBlock::tool_result(id, content, is_error));
    }
}

/// Whether the part says that the model was asked.
pub(super) fn is_start(raw: &RawValue) -> bool {
    Object::read(raw).is_some_and(|part| part.text("type").as_deref() == Some("step-start"))
}

/// Reads one part.
pub(super) fn read(raw: &RawValue, assembler: &mut Assembler) -> Part {
    let mut part = Object::read(raw).unwrap_or_default();
    match part.take_text("type").as_deref().unwrap_or("untyped") {
        "text" => text(part, raw, assembler),
        "reasoning" => Part::Block(match part.take_text("text") {
            Some(text) => ContentBlock::thinking(text, part.take("metadata").and_then(signature)),
            None => assembler.unread_part("part", "reasoning", raw),
        }),
        "tool" => match tool(part, assembler) {
            Some(tool) => Part::Tool(tool),
            None => Part::Block(assembler.unread_part("part", "tool", raw)),
        },
        "file" => file(part, raw, assembler),
        "step-finish" => Part::StepFinish(usage(part.take("tokens"), assembler)),
        "compaction" => {
            let trigger = part.take("auto").map(|auto| match auto.get() {
                "true" => Arc::from("auto"),
                _ => Arc::from("manual"),
            });
            Part::Compaction(CompactionRequest { trigger, tail: part.take_text("tail_start_id") })
        }
        known @ ("step-start" | "patch" | "snapshot" | "agent" | "retry" | "subtask") => {
            assembler.skip(&format!("part {known}"));
            Part::Nothing
        }
        other => Part::Block(assembler.unread_part("part", other, raw)),
    }
}

fn text(mut part: Object<'_>, raw: &RawValue, assembler: &mut Assembler) -> Part {
    let Some(text) = part.take_text("text") else {
        return Part::Block(assembler.unread_part("part", "text", raw));
    };
    if part.take_flag("ignored") {
        assembler.skip("text that the model was not shown");
        Part::Nothing
    } else if text.is_empty() {
        assembler.skip("empty text");
        Part::Nothing
    } else if part.take_flag("synthetic") {
        Part::Injected(ContentBlock::Text(text))
    } else {
        Part::Block(ContentBlock::Text(text))
    }
}

/// An attachment. The content of a text file or folder is in a text of its own.
fn file(mut part: Object<'_>, raw: &RawValue, assembler: &mut Assembler) -> Part {
    let mime = part.take_text("mime");
    match (mime.as_deref(), part.take_text("url")) {
        (Some("text/plain" | "application/x-directory"), _) => {
            assembler.skip("name of a file whose text stands beside it");
            Part::Nothing
        }
        (Some(mime), Some(url)) if mime.starts_with("image/") => {
            Part::Block(images::image(&images::addressed(&url)))
        }
        (Some(_), Some(_)) => Part::Block(content::kept("document", raw)),
        (None, _) | (_, None) => Part::Block(assembler.unread_part("part", "file", raw)),
    }
}

fn tool(mut part: Object<'_>, assembler: &mut Assembler) -> Option<ToolPart> {
    let name = part.first_text(&["tool", "name"])?;
    let mut state = part.take_object("state")?;
    let mut times = state.take_object("time").unwrap_or_else(|| part.inner("time"));
    let key = match state.take_text("status").as_deref() {
        Some("completed") => Some("output"),
        Some("error") => Some("error"),
        // It was interrupted.
        Some("pending" | "running" | "streaming") => None,
        other => {
            assembler.unknown(&format!("state of a tool {}", other.unwrap_or_default()));
            None
        }
    };
    let result = key.map(|key| {
        let mut content = state.take_blocks("content", Speaker::Tool, assembler);
        let text = state.take_text(key).or_else(|| state.inner(key).take_text("message"));
        content.extend(text.map(ContentBlock::Text));
        if key == "output" {
            for raw in state.items("attachments") {
                let file = Object::read(raw).map(|object| file(object, raw, assembler));
                if let Some(Part::Block(block)) = file {
                    content.push(block);
                }
            }
        }
        (content, key == "error")
    });
    let keys = [["start", "ran"], ["end", "completed"], ["compacted", "pruned"]];
    let [started, ended, cleared] =
        keys.map(|keys| keys.into_iter().find_map(|key| times.take_time(key, assembler)));
    Some(ToolPart {
        id: part.first_text(&["callID", "id"]),
        name,
        input: input(state.take("input")),
        result,
        started,
        ended,
        cleared,
    })
}

/// The provider's proof that reasoning is its own; it is under the provider's name.
fn signature(metadata: &RawValue) -> Text {
    let metadata = value(metadata);
    let mut providers = metadata.as_object()?.values();
    providers.find_map(|provider| Some(provider.get("signature")?.as_str()?.into()))
}

/// Cached tokens are counted apart.
pub(super) fn usage(raw: Option<&RawValue>, assembler: &mut Assembler) -> Option<Usage> {
    unless_zero(usage_in(&value(raw?), CachedTokens::Apart, &mut assembler.source))
}
