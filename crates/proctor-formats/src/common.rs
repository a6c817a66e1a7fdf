//! Helpers for the records of most products: blocks, times, compactions, and the sessions of a
//! file.

use super::kept_context::Edits;
use super::prelude::*;

/// The content of a message.
pub(super) type Blocks = Vec<ContentBlock>;

/// When something was said, where the recording tells it.
pub(super) type When = Option<Timestamp>;

/// The size of a prompt, where the recording tells it.
pub(super) type PromptSize = Option<Tokens>;

/// A text, where the recording has it.
pub(super) type Text = Option<Arc<str>>;

/// Where definitions of tools have their names; one that the provider runs has only a type.
const TOOL_NAMES: &str = "/function/name /custom/name /name /title /kind /type";

/// The texts among the blocks.
pub(super) fn texts(blocks: &[ContentBlock]) -> impl DoubleEndedIterator<Item = &str> {
    blocks.iter().filter_map(|block| Some(&**block.as_text()?))
}

/// The texts among the blocks, one a line.
pub(super) fn joined_texts(blocks: &[ContentBlock]) -> String {
    texts(blocks).collect::<Vec<_>>().join("\n")
}

/// Leaves the rest of a text where a tool use was cut out of it, and adds that at the end.
pub(super) fn cut(blocks: &mut Blocks, at: usize, rest: String, tool_use: ContentBlock) {
    let rest = (!rest.is_empty()).then(|| ContentBlock::Text(rest.into()));
    blocks.splice(at..=at, rest);
    blocks.push(tool_use);
}

/// The arguments of a call as written; an empty string where there are none.
pub(super) fn input_or_empty(raw: Option<&RawValue>) -> JsonText {
    raw.map_or_else(|| JsonText::string(""), JsonText::from)
}

/// The value that was written; `null` where it cannot be read.
pub(super) fn value(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// The items of a list; none if the value is something else.
pub(super) fn items(raw: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(raw.get()).ok()
}

impl ModelRecord {
    /// The model's blocks at a time.
    pub(super) fn of(blocks: Blocks, timestamp: When) -> Self {
        Self { blocks, timestamp, ..Self::default() }
    }

    /// The same, with what is known of the call.
    pub(super) fn by(self, call: Text, model: Text, usage: Option<Usage>) -> Self {
        Self { call: call.map(ApiCallId), model, usage, ..self }
    }

    pub(super) fn tagged(self, tags: impl IntoIterator<Item = Tag>) -> Self {
        Self { tags: tags.into_iter().collect(), ..self }
    }
}

impl Assembler {
    /// The blocks of a content.
    pub(super) fn blocks(&mut self, raw: Option<&RawValue>, speaker: Speaker) -> Blocks {
        content::blocks(raw, speaker, &mut self.source)
    }

    /// The block that a part of a content is.
    pub(super) fn part(&mut self, raw: &RawValue, speaker: Speaker) -> ContentBlock {
        content::part(raw, speaker, &mut self.source)
    }

    /// A block of a kind that is not known: it is kept, and counted.
    pub(super) fn unread(&mut self, kind: &str, raw: &RawValue) -> ContentBlock {
        content::unknown(kind, raw, &mut self.source)
    }

    /// The same of what is not a block: `what` names it in the count.
    pub(super) fn unread_part(&mut self, what: &str, kind: &str, raw: &RawValue) -> ContentBlock {
        content::unread(what, kind, raw, &mut self.source)
    }

    /// The calls in a list, as `read` reads each; those that it cannot read are kept under the name of `kind`.
    pub(super) fn calls(
        &mut self,
        kind: &str,
        list: Vec<&RawValue>,
        mut read: impl FnMut(Object<'_>, &mut Self) -> Option<ContentBlock>,
    ) -> Blocks {
        let calls = list.into_iter().map(|raw| {
            let call = Object::read(raw).and_then(|call| read(call, self));
            call.unwrap_or_else(|| self.unread(kind, raw))
        });
        calls.collect()
    }

    /// Adds what is said in the user's role: by the product, or else by a tool or a person.
    pub(super) fn hear_user(&mut self, blocks: Blocks, time: When, is_products: bool) {
        let tag = if is_products { Some(Tag::Meta) } else { speaker_of(&blocks) };
        self.hear(None, blocks, time, tag);
    }

    /// Adds the result of a tool use.
    pub(super) fn hear_result(&mut self, id: Arc<str>, blocks: Blocks, is_error: bool, time: When) {
        self.hear(None, vec![ContentBlock::tool_result(id, blocks, is_error)], time, None);
    }

    /// The usage of a call, where it can be read.
    pub(super) fn usage(&mut self, raw: Option<&RawValue>, cached: CachedTokens) -> Option<Usage> {
        usage(raw?, cached, &mut self.source)
    }

    /// Adds the results of tool uses, if there are any.
    pub(super) fn hear_results(&mut self, results: Blocks, time: When) {
        if !results.is_empty() {
            self.hear(None, results, time, None);
        }
    }

    /// Adds a record of a kind that is not known, if it says something; `what` names it in the count.
    pub(super) fn hear_unknown(&mut self, what: &str, kind: &str, raw: &RawValue, time: When) {
        if let Some(kept) = unknown_record(what, kind, raw, &mut self.source) {
            self.hear(None, vec![kept], time, [Tag::Meta]);
        }
    }

    /// Adds a record of a role that is not known, if it says something.
    pub(super) fn hear_unknown_role(
        &mut self,
        what: &str,
        role: Option<&str>,
        raw: &RawValue,
        time: When,
    ) {
        self.hear_unknown(what, &format!("of {}", role.unwrap_or("nobody")), raw, time);
    }

    /// Warns of something as often as it was found.
    pub(super) fn warn_all(&mut self, found: impl IntoIterator, what: &str) {
        found.into_iter().for_each(|_| self.warn(what));
    }

    /// Counts something that is not understood.
    pub(super) fn unknown(&mut self, what: &str) {
        count(&mut self.source.unknown, what);
    }

    /// A time in the notation of RFC 3339, or without a zone.
    pub(super) fn time(&mut self, text: Option<&str>) -> When {
        time_or_warn(time_or_local(text?).map(|(time, _)| time), &mut self.source)
    }

    /// Adds a compaction that happened now, and returns its index.
    pub(super) fn compacts(
        &mut self,
        trigger: Text,
        before: PromptSize,
        after: CompactedTo,
    ) -> usize {
        let at = self.flush();
        self.compaction(at, trigger, before, after)
    }

    /// Adds a compaction that left a summary, and the messages from `kept` on.
    pub(super) fn summarizes(
        &mut self,
        trigger: Text,
        before: PromptSize,
        summary: Text,
        kept: Option<usize>,
    ) -> usize {
        let at = self.flush();
        let after = summary.map_or(CompactedTo::Missing, |summary| {
            let mut pieces = vec![Recorded::summary(summary)];
            kept_context::keep(kept.unwrap_or(at)..at, &mut pieces);
            CompactedTo::Replaced(pieces)
        });
        self.compacts(trigger, before, after)
    }

    /// Adds a compaction that replaced the results of tool uses by texts. Returns the number of
    /// results that are not in the file; without any other there is no compaction.
    pub(super) fn replaces_results(
        &mut self,
        trigger: &str,
        before: PromptSize,
        results: impl IntoIterator<Item = (Arc<str>, Arc<str>)>,
    ) -> usize {
        let at = self.flush();
        let (mut edits, mut missing) = (Edits::new(), 0);
        for (tool_use, text) in results {
            match self.answer(&tool_use) {
                Some((message, block)) => {
                    edits.entry(message).or_default().insert(block, text);
                }
                None => missing += 1,
            }
        }
        if !edits.is_empty() {
            let context = kept_context::context(self.compactions(), at);
            let after = context.map_or(CompactedTo::Missing, |context| {
                CompactedTo::Replaced(kept_context::edited(&context, &edits))
            });
            self.compacts(Some(trigger.into()), before, after);
        }
        missing
    }

    /// Adds texts to the system prompt, which are joined by line feeds.
    pub(super) fn add_system(&mut self, blocks: &[ContentBlock]) {
        let what = "a part of the system prompt is no text and is left out";
        self.warn_all(texts(blocks).count()..blocks.len(), what);
        let all: Vec<&str> =
            self.header.system.as_deref().into_iter().chain(texts(blocks)).collect();
        self.header.system = (!all.is_empty()).then(|| all.join("\n").into());
    }

    /// Adds the tool that a definition describes, under its name there.
    pub(super) fn define_tool(&mut self, definition: &RawValue) {
        let tool = value(definition);
        let name = TOOL_NAMES.split(' ').find_map(|at| tool.pointer(at)?.as_str());
        if name.is_none() {
            self.warn("a tool has no name");
        }
        self.tool(name.map(Arc::from), definition);
    }

    /// Adds the tool of that name.
    pub(super) fn tool(&mut self, name: Text, definition: &RawValue) {
        self.header.tools.push(ToolSchema {
            name: name.unwrap_or_else(|| "unnamed".into()),
            definition: JsonText::from(definition),
        });
    }

    /// The messages of a conversation that is a part of another.
    pub(super) fn messages(self) -> Vec<Arc<Message>> {
        let session = self.finish("part".to_owned(), Path::new("part")).ok().flatten();
        session.map(|session| session.messages().to_vec()).unwrap_or_default()
    }

    /// The one session of a file.
    pub(super) fn session(self, id: String, path: &Path) -> Imported {
        Ok(Vec::from_iter(self.finish(id, path)?))
    }
}

/// The sessions, if there are any; the first one carries the facts of the file as a whole. A few records beside them
/// that are not understood are no session.
pub(super) fn some(mut sessions: Vec<Session>, mut file: Source, path: &Path) -> Imported {
    let all = sessions.iter().map(|one| one.messages().len()).sum::<usize>();
    let unread =
        sessions.iter().filter(|one| is_unread(one)).map(|one| one.messages().len()).sum::<usize>();
    if unread * 2 < all {
        let others = sessions.extract_if(.., |one| is_unread(one));
        others.for_each(|other| add_counts(&mut file, other.into_parts().source));
    }
    let Some(first) = sessions.first_mut() else {
        return Err(ImportError::NoConversation(path.to_owned()));
    };
    add_counts(&mut first.parts_mut().source, file);
    Ok(sessions)
}

/// Whether nothing in it is understood.
fn is_unread(session: &Session) -> bool {
    let mut blocks = session.messages().iter().flat_map(|one| one.content());
    !session.source().unknown.is_empty()
        && session.calls().is_empty()
        && blocks.all(|block| matches!(block, ContentBlock::Opaque(_)))
}

/// The sessions of a file, named by its id unless they have names of their own.
pub(super) fn all(sessions: Vec<Session>, file: Source, id: &str, path: &Path) -> Imported {
    let mut sessions = some(sessions, file, path)?;
    if sessions.iter().all(|session| session.id() == id) {
        name(&mut sessions, id);
    }
    Ok(sessions)
}

/// A block that is kept without being understood, and counted by its kind alone.
pub(super) fn counted(kind: &str, raw: &RawValue, assembler: &mut Assembler) -> ContentBlock {
    assembler.unknown(kind);
    content::kept(kind, raw)
}

/// A call that is one object, with its id, its name and its arguments under these keys.
pub(super) fn flat_call(mut call: Object<'_>, [id, name, args]: [&str; 3]) -> Option<ContentBlock> {
    let (id, name) = call.take_text(id).zip(call.take_text(name))?;
    Some(ContentBlock::tool_use(id, name, input(call.take(args))))
}

/// A time, and whether it names no zone: then it is taken for UTC.
pub(super) fn time_or_local(text: &str) -> Option<(Timestamp, bool)> {
    if let Ok(found) = text.parse::<jiff::Timestamp>() {
        return Some((Timestamp(found.as_millisecond()), false));
    }
    Some((in_utc(text.parse().ok()?)?, true))
}

/// A time that names no zone.
pub(super) fn in_utc(local: jiff::civil::DateTime) -> When {
    let zoned = local.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(Timestamp(zoned.timestamp().as_millisecond()))
}
