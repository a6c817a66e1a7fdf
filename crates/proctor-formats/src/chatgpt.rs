//! `ChatGPT`'s exports: `conversations.json` (or numbered parts of it), a list of conversations, each
//! a tree of messages.
//!
//! OpenAI documents no format. The shape is that of `mitkury/chatgpt-export-parser`,
//! `docs/chatgpt-data-export-format.md`, and of exports in public repositories.
//!
//! Rules of this format, beside those every importer shares:
//! - A conversation is the branch that ends in `current_node`. Messages of other branches are counted.
//! - An assistant's message with a recipient is a call of that tool. A call has no id: what the tools
//!   say before the model goes on answers the calls before it, by their names or in their order.
//! - Messages of the model's in a row are one call. There is no bill, and no tool is described.
//! - What the user wrote about himself or herself, and hidden messages, are the product's.
//! - Files, images and sounds are in other files: of images the size is known, and counts.

use super::prelude::*;

pub(super) const IMPORTER: Importer = Importer::new("chatgpt", Detect::By(detect), import);

fn detect(head: &Head) -> bool {
    let mapping = head.first_item().and_then(|one| one["mapping"].as_object());
    let mut keys = ["parent", "children", "message"].iter();
    let first = mapping.into_iter().flat_map(|value| value.values()).next();
    first.is_some_and(|node| keys.any(|key| node.get(key).is_some()))
}

fn import(file: &SourceText, source: &mut Source) -> Imported {
    conversations::exported(file, source, |mut conversation| {
        let mapping = conversation.take_object("mapping")?;
        let mut reading = Reading::default();
        let current = conversation.take_text("current_node");
        for raw in branch(mapping, current.as_deref(), &mut reading.assembler) {
            reading.message(raw);
        }
        reading.flush();
        Some(reading.assembler)
    })
}

struct Node<'a> {
    parent: Text,
    message: Option<&'a RawValue>,
}

/// The messages of the branch that ends in `current`, or else in the newest message.
fn branch<'a>(mapping: Object<'a>, current: Option<&str>, to: &mut Assembler) -> Vec<&'a RawValue> {
    let mut nodes: BTreeMap<Arc<str>, Node<'a>> = BTreeMap::new();
    let mut children: Vec<(Arc<str>, Arc<str>)> = Vec::new();
    for (key, raw) in mapping.into_entries() {
        let key: Arc<str> = key.as_ref().into();
        let mut node = Object::read(raw).unwrap_or_default();
        let below = node.items("children").into_iter().filter_map(content::text);
        children.extend(below.map(|child| (child, key.clone())));
        let (parent, message) = (node.take_text("parent"), node.take("message"));
        nodes.insert(key, Node { parent, message });
    }
    for (child, parent) in children {
        if let Some(child) = nodes.get_mut(&child) {
            child.parent.get_or_insert(parent);
        }
    }
    let newest = nodes
        .iter()
        .filter(|(_, node)| node.message.is_some())
        .max_by_key(|(_, node)| time(Object::read(node.message?)?.take("create_time")?));
    let mut at = current.and_then(|key| nodes.get_key_value(key)).or(newest).map(|(key, _)| &**key);
    let (mut path, mut seen) = (Vec::new(), BTreeSet::new());
    while let Some(key) = at
        && let Some(node) = nodes.get(key)
        && seen.insert(key)
    {
        path.extend(node.message);
        at = node.parent.as_deref();
    }
    path.reverse();
    let all = nodes.values().filter(|node| node.message.is_some()).count();
    to.skip_all(path.len()..all, "message of another branch");
    path
}

struct ToolCall {
    id: Arc<str>,
    tool: Arc<str>,
    /// What the tool said so far; none before it said anything.
    told: Option<Blocks>,
}

#[derive(Default)]
struct Reading {
    assembler: Assembler,
    /// The model's call that is going on, named by its first message.
    call: Text,
    /// Calls of tools that the model has not gone on from.
    calls: Vec<ToolCall>,
    unnamed: usize,
}

impl Reading {
    fn message(&mut self, raw: &RawValue) {
        let mut message = Object::read(raw).unwrap_or_default();
        let time = message.take_time("create_time", &mut self.assembler);
        let mut author = message.inner("author");
        let (role, name) = (author.take_text("role"), author.take_text("name"));
        let mut metadata = message.inner("metadata");
        let recipient = message.take_text("recipient");
        let tool = recipient.filter(|name| !matches!(&**name, "all" | "user" | ""));
        let mut content = message.inner("content");
        let kind = content.take_text("content_type").unwrap_or_default();
        if &*kind == "reasoning_recap" {
            return self.assembler.skip(&kind);
        }
        let said = self.content(&kind, content);
        match role.as_deref() {
            Some("tool") => {
                let tool = name.unwrap_or_default();
                // The first call without an answer, or the last one with one.
                let call = self.calls.iter_mut().min_by_key(|call| {
                    let own = call.tool.starts_with(&*tool) || tool.starts_with(&*call.tool);
                    (call.told.is_some(), !own)
                });
                match call {
                    Some(call) => call.told.get_or_insert_default().extend(said),
                    None => self.assembler.hear(None, said, time, [Tag::Meta]),
                }
            }
            Some("assistant") => {
                if self.calls.iter().any(|call| call.told.is_some()) {
                    self.flush();
                }
                let named = message.take_words("id");
                let id = named.unwrap_or_else(|| numbered("message", &mut self.unnamed));
                let blocks = match tool {
                    Some(tool) if &*kind != "thoughts" => {
                        self.calls.push(ToolCall {
                            id: id.clone(),
                            tool: tool.clone(),
                            told: None,
                        });
                        let text = joined_texts(&said);
                        let object = text.starts_with('{').then(|| JsonText::parse(&text).ok());
                        let input = object.flatten().unwrap_or_else(|| JsonText::string(&text));
                        let others = said.into_iter().filter(|said| said.as_text().is_none());
                        others.chain([ContentBlock::tool_use(id.clone(), tool, input)]).collect()
                    }
                    _ => said,
                };
                let call = self.call.get_or_insert(id).clone();
                let model = metadata.take_text("model_slug");
                let record = ModelRecord::of(blocks, time).by(Some(call), model, None);
                self.assembler.assistant(None, record);
            }
            Some("system") if self.assembler.is_empty() => self.assembler.add_system(&said),
            Some(role @ ("user" | "system")) => {
                self.flush();
                let hidden = metadata.take_flag("is_user_system_message")
                    || metadata.take_flag("is_visually_hidden_from_conversation");
                let typed = role == "user" && !hidden && &*kind != "user_editable_context";
                let tag = if typed { Tag::TypedUser } else { Tag::Meta };
                self.assembler.hear(None, said, time, [tag]);
            }
            role => self.assembler.hear_unknown_role("message", role, raw, time),
        }
    }

    /// Answers the calls of tools, and ends the model's call.
    fn flush(&mut self) {
        self.call = None;
        for call in std::mem::take(&mut self.calls) {
            if let Some(told) = call.told {
                self.assembler.hear_result(call.id, told, false, None);
            }
        }
    }

    /// What a content of that type says.
    fn content(&mut self, kind: &str, mut content: Object<'_>) -> Blocks {
        if kind == "thoughts" {
            let thoughts = content.objects("thoughts").filter_map(|mut thought| {
                let told = thought.take_words("content");
                told.or_else(|| thought.take_words("summary"))
            });
            let thoughts: Vec<Arc<str>> = thoughts.collect();
            let thought = ContentBlock::thinking(thoughts.join("\n\n"), None);
            return Vec::from_iter((!thoughts.is_empty()).then_some(thought));
        }
        let parts = content.items("parts").into_iter();
        let mut said: Blocks = parts.filter_map(|raw| self.part(raw)).collect();
        // Pages, output of programs, what the user or the model wrote to be remembered.
        let keys = "title url text result summary content user_profile user_instructions \
                    model_set_context name";
        let texts: Vec<Arc<str>> =
            keys.split_whitespace().filter_map(|key| content.take_words(key)).collect();
        said.extend((!texts.is_empty()).then(|| ContentBlock::Text(texts.join("\n").into())));
        for (key, raw) in content.into_entries() {
            if key != "language" && matches!(raw.get().bytes().next(), Some(b'[' | b'{')) {
                self.assembler.skip(&format!("content key `{key}`"));
            }
        }
        said
    }

    fn part(&mut self, raw: &RawValue) -> Option<ContentBlock> {
        if let Some(text) = content::text(raw) {
            return (!text.is_empty()).then_some(ContentBlock::Text(text));
        }
        let mut part = Object::read(raw).unwrap_or_default();
        let kind = part.take_text("content_type").unwrap_or_default();
        let size = ["width", "height", "size_bytes"].map(|key| part.take_as::<u64>(key));
        match (&*kind, size, part.take_text("text")) {
            ("image_asset_pointer", [Some(width), Some(height), bytes], _) => {
                Some(images::image(&json!({
                    "type": "image-size", "width": width, "height": height,
                    "bytes": bytes.unwrap_or_default(),
                })))
            }
            (_, _, Some(text)) => Some(ContentBlock::Text(text)),
            (kind, ..) => Some(self.assembler.unread_part("part", kind, raw)),
        }
    }
}
