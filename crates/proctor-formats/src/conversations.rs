//! Finds the conversations in logs of API calls and in other files of messages.
//!
//! A file holds one or more of: an object with `messages` and the rest of the request or of the
//! log, a request with its response, a bare list of messages, a list of either, or one message per
//! line. What the APIs share is read here; an importer reads the messages. Where several requests
//! were logged with their responses, they are joined to sessions.

use super::bodies;
use super::file::{COPIED, tells_time};
use super::prelude::*;
use super::requests::{Join, Logged, Name};

/// How a value without a conversation is counted.
pub(super) const NO_CONVERSATION: &str = "value that is no conversation";

/// One conversation as a file holds it.
#[derive(Debug, Default)]
pub(super) struct Conversation<'a> {
    /// The object that holds the messages, without them; an empty one where there is none.
    pub(super) around: Object<'a>,
    /// The messages, not yet read.
    pub(super) messages: Vec<&'a RawValue>,
}

/// Where a format keeps its messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConversationShape {
    /// The key of the messages.
    pub(super) key: &'static str,
    /// The key that every message has.
    pub(super) of_message: &'static str,
    /// The key of the model's answer, where it may be logged without its request.
    pub(super) answer: Option<&'static str>,
    /// The API whose calls are logged in this shape.
    pub(super) api: Option<Api>,
    /// The list of messages that an object holds in another place.
    pub(super) in_state: Option<fn(&RawValue) -> Option<&RawValue>>,
}

impl ConversationShape {
    /// Conversations under `key`, whose messages have roles.
    pub(super) const fn of_messages(key: &'static str) -> Self {
        Self { key, of_message: "role", answer: None, api: None, in_state: None }
    }

    /// The same, of logs of that API.
    pub(super) const fn of_api(self, api: Api) -> Self {
        Self { api: Some(api), ..self }
    }

    fn has_answer(self, object: &Object<'_>) -> bool {
        self.answer.is_some_and(|key| object.has(key))
    }

    /// Whether an object holds messages, rather than being one.
    fn is_conversation(self, object: &Object<'_>) -> bool {
        object.contains(self.key)
            || self.has_answer(object) && object.text("object").as_deref() == Some("response")
    }
}

/// Reads all conversations of a file; `read` reads one.
pub(super) fn sessions(
    shape: ConversationShape,
    file: &SourceText,
    source: &mut Source,
    read: impl FnMut(Conversation<'_>, &mut Assembler),
) -> Imported {
    let mut log =
        ConversationLog { shape, file, read, join: Join::default(), answers: BTreeMap::new() };
    let mut loose: Vec<Box<RawValue>> = Vec::new();
    let mut problem = None;
    let mut seen = BTreeSet::new();
    for value in in_order(file.values(source)?) {
        if !seen.insert(value.text) && tells_time(value.parse()?) {
            source.warn(COPIED);
            continue;
        }
        let unwrapped =
            shape.api.and_then(|api| bodies::unwrapped(value.text, shape.key, api, source));
        let inner = shape.in_state.and_then(|list| list(value.parse().ok()?));
        let text = unwrapped.as_deref().or(inner.map(RawValue::get));
        let value = RecordLine { text: text.unwrap_or(value.text), ..value };
        let mut found = Vec::new();
        match find(shape, &value, &mut found) {
            Ok(Some(message)) => loose.push(message.to_owned()),
            Ok(None) => {
                log.add(found, source)?;
                log.add_loose(&mut loose, source)?;
            }
            // One odd line is not a reason to refuse the others.
            Err(error) => {
                log.add(found, source)?;
                source.not_understood(NO_CONVERSATION);
                problem = problem.or(Some(error));
            }
        }
    }
    log.add_loose(&mut loose, source)?;
    let sessions = log.join.finish(&file.path)?;
    problem.filter(|_| sessions.is_empty()).map_or(Ok(sessions), Err)
}

/// The lines of a log in the order of their times, where each has one: a proxy writes a call when it was answered, and the
/// next one may have been answered by then.
fn in_order(lines: Vec<RecordLine<'_>>) -> Vec<RecordLine<'_>> {
    let times = lines.iter().map(|line| {
        let object = Object::read(line.parse().ok()?)?;
        time(object.get("timestamp")?)
    });
    let Some(times) = times.collect::<Option<Vec<Timestamp>>>() else {
        return lines;
    };
    let mut timed: Vec<(Timestamp, RecordLine<'_>)> = times.into_iter().zip(lines).collect();
    timed.sort_by_key(|(time, _)| *time);
    timed.into_iter().map(|(_, line)| line).collect()
}

/// Reads one conversation of an export; none if the object is something else.
type ReadExport = fn(Object<'_>) -> Option<Assembler>;

/// Reads a file with one conversation, or with a list of them, as chat products export; `read` reads one, and returns
/// `None` for any other object.
pub(super) fn exported(file: &SourceText, source: &mut Source, read: ReadExport) -> Imported {
    let mut sessions = Vec::new();
    for raw in file.listed(source)? {
        let Some(assembler) = read(Object::read(raw).unwrap_or_default()) else {
            source.not_understood(NO_CONVERSATION);
            continue;
        };
        if assembler.is_empty() {
            source.skip("conversation without messages");
        }
        sessions.extend(assembler.finish(file.id.clone(), &file.path)?);
    }
    Ok(sessions)
}

/// The conversations of a file so far.
struct ConversationLog<'f, R> {
    shape: ConversationShape,
    file: &'f SourceText,
    read: R,
    join: Join,
    /// The last response of each conversation that OpenAI keeps.
    answers: BTreeMap<Arc<str>, Arc<str>>,
}

impl<R: FnMut(Conversation<'_>, &mut Assembler)> ConversationLog<'_, R> {
    fn add(&mut self, found: Vec<Conversation<'_>>, source: &mut Source) -> Result<()> {
        for mut conversation in found {
            let mut assembler = Assembler::default();
            let around = &conversation.around;
            let response = around.get("response");
            let answered = response.is_some_and(|raw| raw.get().starts_with('{'))
                || self.shape.has_answer(around);
            let answer = response.and_then(Object::read).unwrap_or_default();
            let sealed = is_compaction(&answer);
            let named = conversation_id(around).or_else(|| conversation_id(&answer));
            // OpenAI keeps such a conversation: a request holds only what is new.
            let kept = named.filter(|_| self.shape.api == Some(Api::Responses));
            let follows = around
                .text("previous_response_id")
                .or_else(|| kept.as_ref().and_then(|id: &Arc<str>| self.answers.get(id).cloned()));
            self.answers.extend(kept.zip(answer.text("id").or_else(|| around.text("id"))));
            let name = Name::of(around);
            if name.is_some() {
                conversation.around.take("metadata");
                conversation.around.take("headers");
            }
            (self.read)(conversation, &mut assembler);
            if assembler.is_empty() {
                source.skip("conversation without messages");
            } else if let Some(session) = assembler.finish(self.file.id.clone(), &self.file.path)? {
                self.join.add(Logged {
                    is_answered: answered,
                    follows,
                    is_compaction: sealed,
                    ..Logged::answered(session, name)
                });
            }
        }
        Ok(())
    }

    /// Ends a conversation of which each message was a value of its own.
    fn add_loose(&mut self, loose: &mut Vec<Box<RawValue>>, source: &mut Source) -> Result<()> {
        let loose = std::mem::take(loose);
        if loose.is_empty() {
            return Ok(());
        }
        let messages = loose.iter().map(|loose| &**loose).collect();
        self.add(vec![Conversation { messages, ..Conversation::default() }], source)
    }
}

/// Whether a response of `OpenAI`'s is the compacted conversation that was asked for, and no answer.
pub(super) fn is_compaction(response: &Object<'_>) -> bool {
    response.text("object").as_deref() == Some("response.compaction")
}

/// The conversation that a request or its response names: its id, or an object with it.
fn conversation_id(object: &Object<'_>) -> Text {
    object.text("conversation").or_else(|| Object::read(object.get("conversation")?)?.text("id"))
}

/// Names the sessions of a file: by its id, and numbered where there are several.
pub(super) fn name(sessions: &mut [Session], id: &str) {
    let only = sessions.len() == 1;
    for (at, session) in sessions.iter_mut().enumerate() {
        session.parts_mut().id = if only { id.to_owned() } else { format!("{id}-{}", at + 1) };
    }
}

/// Finds the conversations in one value, or returns it if it is a message.
fn find<'a>(
    shape: ConversationShape,
    line: &RecordLine<'a>,
    found: &mut Vec<Conversation<'a>>,
) -> Result<Option<&'a RawValue>> {
    if !line.text.starts_with('[') {
        let object: Object<'_> = line.parse()?;
        if !shape.is_conversation(&object) && (object.has(shape.of_message) || object.has("role")) {
            return line.parse().map(Some);
        }
        found.push(read_one(shape, line, object)?);
        return Ok(None);
    }
    let messages: Vec<&RawValue> = line.parse()?;
    let nested = messages.first().is_some_and(|item| {
        item.get().starts_with('[')
            || Object::read(item).is_some_and(|object| shape.is_conversation(&object))
    });
    if !nested {
        found.push(Conversation { messages, ..Conversation::default() });
        return Ok(None);
    }
    for item in messages {
        found.push(if item.get().starts_with('[') {
            Conversation { messages: line.parse_part(item.get())?, ..Conversation::default() }
        } else {
            read_one(shape, line, line.parse_part(item.get())?)?
        });
    }
    Ok(None)
}

fn read_one<'a>(
    shape: ConversationShape,
    line: &RecordLine<'a>,
    mut around: Object<'a>,
) -> Result<Conversation<'a>> {
    let may_be_empty = shape.answer.is_some();
    let messages = match around.remove(shape.key) {
        // A request of one text.
        Some(raw) if may_be_empty && raw.get().starts_with('"') => vec![raw],
        Some(raw) if may_be_empty && raw.get() == "null" => Vec::new(),
        Some(raw) => line.parse_part(raw.get())?,
        None if shape.has_answer(&around) => Vec::new(),
        None => {
            return Err(line.error(format!(
                "neither a message with `{}` nor a conversation with `{}`",
                shape.of_message, shape.key
            )));
        }
    };
    Ok(Conversation { around, messages })
}

/// How a message of the system's role is counted that is not in front of all others.
pub(super) const LATE_SYSTEM: &str =
    "a system message within the conversation is kept as the user's";

/// Keeps a message that cannot be read as the user's: it was part of the prompt.
pub(super) fn keep_unread(kind: &str, raw: &RawValue, assembler: &mut Assembler) {
    assembler.unknown(&format!("message {kind}"));
    assembler.hear(None, vec![content::kept(kind, raw)], None, [Tag::Meta]);
}

/// Keys under which records hold words of the user, the model or a tool.
const SAYS: &str = "attachment content message messages output parts text";

/// A record of a kind that is not known, counted as `record mystery`. It is kept as the user's if it
/// holds words, under any key. Bookkeeping without words (ids, times, settings) would only make the
/// prompt longer than it was.
pub(super) fn unknown_record(
    what: &str,
    kind: &str,
    raw: &RawValue,
    source: &mut Source,
) -> Option<ContentBlock> {
    source.not_understood(&format!("{what} {kind}"));
    let kind: String = kind.chars().take(80).collect();
    says_words(&value(raw)).then(|| content::kept(&kind, raw))
}

/// Whether it holds a text of more than one word: names, ids and times are one.
fn says_words(value: &Value) -> bool {
    match value {
        Value::String(text) => text.trim().contains(char::is_whitespace),
        Value::Array(items) => items.iter().any(says_words),
        Value::Object(entries) => entries
            .iter()
            .any(|(key, value)| is_one_of(SAYS, key) && !value.is_null() || says_words(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
