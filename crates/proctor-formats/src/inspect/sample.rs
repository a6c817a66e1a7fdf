//! One sample: its messages, what its model events say of them, and its compactions.

use super::attachments::resolved;
use super::messages::{MessageRecord, said};
use super::{MAX_SAMPLE, Texts};
use crate::kept_context::{Records, Shown};
use crate::prelude::*;

/// A sample while it is read.
#[derive(Default)]
pub(super) struct InspectSample<'a> {
    assembler: Assembler,
    attachments: Texts<'a>,
    /// Messages of model events, which newer logs keep once.
    pool: Vec<&'a RawValue>,
    /// The known calls, by the id of their answers.
    calls: BTreeMap<Arc<str>, BilledCall>,
    /// Calls of the oldest logs, whose answers have no ids: distinguished by their texts.
    nameless: VecDeque<(String, BilledCall)>,
    records: Records,
    /// Whether compactions are recorded as events.
    is_compacted: bool,
}

#[derive(Default)]
struct BilledCall {
    usage: Option<Usage>,
    time: When,
}

impl<'a> InspectSample<'a> {
    /// Reads a sample of a log of this model to a session; none if it holds no messages.
    pub(super) fn read(
        mut object: Object<'a>,
        model: Text,
        line: &RecordLine<'_>,
    ) -> Result<Option<Session>> {
        // The oldest logs have events and attachments in a transcript.
        let mut transcript = object.inner("transcript");
        let attachments =
            object.take_object("attachments").or_else(|| transcript.take_object("content"));
        let texts = attachments.unwrap_or_default().into_entries();
        let mut sample = Self {
            attachments: texts.map(|(name, raw)| (name.into(), raw)).collect(),
            pool: object.inner("events_data").items("messages"),
            ..Self::default()
        };
        sample.assembler.header.model = model;
        let raws = object.take_list("events").unwrap_or_else(|| transcript.items("events"));
        let events = raws.into_iter().filter_map(Object::read).collect();
        let read = sample.read_all(events, object.take("messages").map_or("[]", RawValue::get));
        read.ok_or_else(|| line.error("attachments make a sample larger than any sample is"))?;
        object.count_left("sample key", &mut sample.assembler);
        let others = 0..sample.calls.len() + sample.nameless.len();
        sample.assembler.skip_all(others, "call of another agent or a grader");
        sample.assembler.finish("sample".to_owned(), line.path)
    }

    /// Reads events and messages; none if attachments make them too large.
    fn read_all(&mut self, events: Vec<Object<'a>>, messages: &str) -> Option<()> {
        for event in events.iter().filter(|event| is_event(event, "model")) {
            self.learn(event.clone())?;
        }
        self.is_compacted = events.iter().any(|event| is_event(event, "compaction"));
        self.history(messages)?;
        // Each compaction takes effect with the first call after it.
        let mut open = None;
        for event in events {
            if is_event(&event, "compaction") {
                open = Some(event);
            } else if is_event(&event, "model")
                && let Some(compaction) = open.take()
            {
                self.compacted(compaction, event)?;
            }
        }
        Some(())
    }

    /// Reads the call of a model event.
    fn learn(&mut self, mut event: Object<'a>) -> Option<()> {
        let completed = event.take_time("completed", &mut self.assembler);
        let time = completed.or_else(|| event.take_time("timestamp", &mut self.assembler));
        let mut output = event.inner("output");
        let usage = output.take_usage("usage", CachedTokens::AsTotal, &mut self.assembler);
        let call = BilledCall { usage, time };
        match answer(&mut output) {
            Some((Some(id), _)) => {
                self.calls.entry(id).or_insert(call);
            }
            Some((None, message)) => {
                let said = resolved(message.get(), &self.attachments, &mut self.assembler)?;
                self.nameless.push_back((print_of(&said), call));
            }
            None => {}
        }
        if self.assembler.header.tools.is_empty() {
            for raw in event.items("tools") {
                let text = resolved(raw.get(), &self.attachments, &mut self.assembler)?;
                let name = Object::read(raw).and_then(|mut tool| tool.take_text("name"));
                let definition = JsonText::parse(&text);
                self.assembler.header.tools.push(ToolSchema {
                    name: name.unwrap_or_else(|| "unnamed".into()),
                    definition: definition.unwrap_or_else(|_| JsonText::from(raw)),
                });
            }
        }
        Some(())
    }

    /// Reads the messages of the sample.
    fn history(&mut self, messages: &str) -> Option<()> {
        let text = resolved(messages, &self.attachments, &mut self.assembler)?;
        let Ok(messages) = serde_json::from_str::<Vec<&RawValue>>(&text) else {
            self.assembler.unknown("messages of a sample");
            return Some(());
        };
        for raw in messages {
            let one = said(raw, &mut self.assembler);
            // Newer logs have the summary among the messages, too.
            if self.is_compacted && one.record.tags.contains(&Tag::CompactSummary) {
                self.assembler.skip("summary of a compaction");
                continue;
            }
            self.say(one, raw);
        }
        self.assembler.flush();
        Some(())
    }

    fn say(&mut self, one: MessageRecord, raw: &RawValue) {
        let record = one.record;
        if one.is_system {
            if self.assembler.is_empty() {
                return self.assembler.add_system(&record.blocks);
            }
            self.assembler.warn(LATE_SYSTEM);
        }
        let name = record.name.as_ref();
        self.records.note(name, &record.blocks);
        if record.role == Role::User {
            return self.assembler.hear(name, record.blocks, None, record.tags);
        }
        let call = match name {
            Some(id) => self.calls.remove(id),
            None if self.nameless.is_empty() => None,
            None => {
                let print = print_of(raw.get());
                let at = self.nameless.iter().position(|(said, _)| *said == print);
                at.and_then(|at| Some(self.nameless.remove(at)?.1))
            }
        };
        let BilledCall { usage, time } = call.unwrap_or_default();
        let answer = ModelRecord::of(record.blocks, time).by(record.name.clone(), one.model, usage);
        self.assembler.assistant(name, answer.tagged(record.tags));
    }

    /// Reads a compaction, and the first call after it.
    fn compacted(&mut self, mut event: Object<'a>, mut call: Object<'a>) -> Option<()> {
        let id = answer(&mut call.inner("output")).and_then(|(id, _)| id);
        let at = id.and_then(|id| self.assembler.message_of(&id));
        let Some(at) = at else {
            self.assembler.skip("compaction of another agent");
            return Some(());
        };
        let input = self.sent(&mut call)?;
        let Ok(messages) = serde_json::from_str::<Vec<&RawValue>>(&input) else {
            self.assembler.unknown("input of a call");
            return Some(());
        };
        let records = messages.into_iter().filter_map(|raw| {
            let message = said(raw, &mut self.assembler);
            (!message.is_system).then_some(message.record)
        });
        let context: Vec<Shown> = records.collect();
        let after = CompactedTo::Replaced(self.records.pieces(&context, at, &self.assembler));
        if self.assembler.compactions().last().is_some_and(|last| last.at > at) {
            self.assembler.warn("a compaction is out of order and is left out");
            return Some(());
        }
        let (trigger, before) = (event.take_text("type"), event.take_as("tokens_before"));
        self.assembler.compaction(at, trigger, before.map(Tokens), after);
        Some(())
    }

    /// The input of a call, as JSON with its attachments; none if it is too large.
    fn sent(&mut self, call: &mut Object<'a>) -> Option<String> {
        let references: Vec<(usize, usize)> = call.take_as("input_refs").unwrap_or_default();
        let text = if references.is_empty() {
            call.take("input").map_or("[]", RawValue::get).to_owned()
        } else {
            let ranges = references.into_iter().map(|(first, end)| first..end);
            let messages = ranges.filter_map(|range| self.pool.get(range)).flatten();
            let mut length = 0;
            let texts = messages.map(|raw| {
                length += raw.get().len();
                (length <= MAX_SAMPLE).then_some(raw.get())
            });
            format!("[{}]", texts.collect::<Option<Vec<&str>>>()?.join(","))
        };
        resolved(&text, &self.attachments, &mut self.assembler).map(Cow::into_owned)
    }
}

fn is_event(event: &Object<'_>, kind: &str) -> bool {
    event.text("event").as_deref() == Some(kind)
}

/// The message that the model answered, and its id if it has one.
fn answer<'a>(output: &mut Object<'a>) -> Option<(Text, &'a RawValue)> {
    let raw = output.objects("choices").next()?.take("message")?;
    Some((Object::read(raw)?.take_text("id"), raw))
}

/// The text and the calls of a message, to distinguish it from others.
fn print_of(message: &str) -> String {
    let value: Value = serde_json::from_str(message).unwrap_or_default();
    let calls = value.get("tool_calls").and_then(Value::as_array);
    let ids = calls.into_iter().flatten().map(|call| &call["id"]);
    serde_json::json!([value["content"], ids.collect::<Vec<&Value>>()]).to_string()
}
