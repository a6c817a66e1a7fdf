//! Codex keeps a *rollout*: one JSON object per line, `{timestamp, type, payload}`.
//!
//! Items of type `response_item` are the conversation as the model saw it, `compacted` is a
//! compaction, `session_meta` and `turn_context` say who runs where, and `event_msg` is what was
//! shown on the screen: it repeats the conversation, and only its token counts are used. The first
//! versions wrote items without the wrapper, and those before them one object with all `items`; they
//! are read too.
//!
//! Rules of this format, beside those every importer shares:
//! - Items name no API call. What the model says belongs to one call until a tool or the user has
//!   spoken, or until the provider has billed it. Older versions wrote each result behind its call
//!   while the response still came in: calls that follow results are of the same response where
//!   the results come before its bill.
//! - A token count is the bill of the call before it; it is written again when nothing was called,
//!   and counts only where it changed. Its input includes what was read from the cache.
//! - A turn that the user went back from is rolled back by an event: it stays in the file, and is
//!   no part of what followed.
//! - What Codex slips in (instructions, the environment, notes about an aborted turn) is the
//!   user's by its role, and it is not typed.
//! - `compaction_response_id` names the response that wrote a summary, in newer versions: it is no
//!   call of the agent's.
//! - The window is written as the 95 % of it that Codex uses; sessions hold the whole window.
//! - A rollout does not name what triggered a compaction. A person's `/compact` is a task of its own;
//!   Codex compacts by itself in a task in which the model also works. Versions that write no tasks
//!   leave it open.
//! - A sub-agent's rollout and a fork name the thread they came from. Newer ones copy nothing of it: see `base`.
//! - A compaction whose summary is encrypted is an event without content. Older versions wrote the
//!   summary alone; the context was then what the user had said of late, and the summary.

use super::openai_responses::items::{ResponsesItem, item};
use super::prelude::*;
use base::{HistoryBase, Rollouts};
use steps::{
    as_codex_counts, bills_after_items, bills_first, by_response, is_answer, reasons, tell_triggers,
};

mod base;
mod kept_context;
mod steps;

#[derive(Deserialize)]
struct RolloutRecord<'a> {
    timestamp: Text,
    r#type: Text,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    #[serde(rename = "record_type")]
    note: Text,
    instructions: Text,
    id: Text,
}

pub(super) const IMPORTER: Importer = Importer::new("codex", Detect::By(detect), import);

fn detect(head: &Head) -> bool {
    is_whole_file(head) || head.first_item().is_some_and(is_rollout)
}

/// Whether a record is the first one of a rollout.
fn is_rollout(record: &Value) -> bool {
    if let Some(kind) = record.get("type").and_then(Value::as_str) {
        return is_one_of(WRAPPED, kind) && (has_any(record, "payload") || kind == "session_meta");
    }
    // The first line of the first versions.
    is_shaped(record, "id timestamp instructions !messages") && !has_any(record, "type payload")
}

fn import(file: &SourceText, source: &mut Source) -> Imported {
    if is_whole_file(&file.head()) {
        return whole_file(file, source);
    }
    // A fork holds its parent's first record behind its own, in front of all that was said.
    let (mut is_beginning, mut parents) = (false, BTreeSet::new());
    let rollouts = file.sessions(source, |raw| {
        let own =
            of_type(raw, "session_meta").and_then(|mut meta| meta.inner("payload").take_text("id"));
        parents.extend(own.clone().filter(|_| is_beginning));
        is_beginning = own.is_some() || is_beginning && !tells(raw);
        own.filter(|own| !parents.contains(own))
    })?;
    let (mut sessions, mut bases) = (Vec::new(), Rollouts::new());
    for records in rollouts {
        let mut rollout = Rollout::default();
        bases.begin_session();
        rollout.records(records, &file.path, &mut bases, source)?;
        sessions.extend(rollout.finish(file)?);
    }
    for session in &mut sessions {
        if session.source().warnings.contains_key(NO_BASE)
            && let Some(first) = session.parts_mut().messages.first_mut()
        {
            Arc::make_mut(first).tags.set(Tag::Orphan, true);
        }
    }
    Ok(sessions)
}

/// Whether a record tells of the conversation.
fn tells(raw: &RawValue) -> bool {
    ["response_item", "event_msg"].iter().any(|kind| of_type(raw, kind).is_some())
}

/// Whether a file is a rollout of the versions before there were lines: one object.
fn is_whole_file(head: &Head) -> bool {
    head.is("session:o items/0:o items/0/type,items/0/role")
}

/// Reads a rollout that is one object: `session`, and `items`.
fn whole_file(file: &SourceText, source: &mut Source) -> Imported {
    let mut rollout = Rollout::default();
    for value in file.values(source)? {
        let mut whole = Object::read(value.parse()?).unwrap_or_default();
        if let Some(session) = whole.take("session") {
            rollout.meta(session);
        }
        let items = whole.take_list("items");
        for item in items.ok_or_else(|| value.error("missing key `items`"))? {
            rollout.item(item, None);
        }
    }
    rollout.finish(file)
}

/// How a rollout is counted whose beginning is not at hand.
const NO_BASE: &str = "begins in the middle: its `history_base` is not beside it, or not whole";

/// Types of records that have a payload.
const WRAPPED: &str = "session_meta response_item event_msg turn_context compacted world_state \
     inter_agent_communication_metadata";

/// The content of a record, in the order of the file: a turn that was rolled back is not in it.
enum RolloutStep {
    Item(ResponsesItem, When),
    /// The bill of the call before it, if its counters are known; and the provider's id of the
    /// response, in newer versions.
    Bill(Option<CallBill>, Text),
    /// The call reasons, of which Codex counts so many tokens as part of its context.
    Reasons(Tokens),
    /// A turn begins, with this model.
    Turn(Text),
    /// A compaction: its trigger, if its task shows it, and what it left, or the summary that follows
    /// the texts that were typed last; and the bill of its own response.
    Compacted(Option<&'static str>, Result<CompactedTo, Arc<str>>, Option<CallBill>),
}

impl RolloutStep {
    /// Whether it is the bill of a call that cost something.
    fn is_bill(&self) -> bool {
        matches!(self, Self::Bill(Some((usage, _)), _) if usage.total() > Tokens::ZERO)
    }

    /// Whether the model says something.
    fn is_models(&self) -> bool {
        matches!(self, Self::Item(ResponsesItem::Model(_), _))
    }

    /// Whether it is a part of a response.
    fn is_of_response(&self) -> bool {
        matches!(
            self,
            Self::Item(ResponsesItem::Model(_) | ResponsesItem::Nothing, _) | Self::Reasons(_)
        )
    }

    /// Whether a person typed it.
    fn is_typed(&self) -> bool {
        let Self::Item(ResponsesItem::Other(said), _) = self else { return false };
        kept_context::tag_of(said) == Some(Tag::TypedUser)
    }
}

/// The bill of a call, and how many tokens of its output are reasoning.
type CallBill = (Usage, Tokens);

/// How a task ends: by its own record, or where the next one begins, or the file is over.
#[derive(Clone, Copy)]
enum TaskEnd {
    Complete,
    Open,
}

/// The rollout so far.
#[derive(Default)]
struct Rollout {
    steps: Vec<RolloutStep>,
    /// The first step of the task under way, in versions that write tasks.
    task: Option<usize>,
    /// How many tasks the file begins: none in versions before there were any.
    tasks: usize,
    assembler: Assembler,
    /// The rollout that the last record says comes before it.
    base: Option<HistoryBase>,
    /// Whether the rollout said which one it is.
    is_named: bool,
    model: Text,
    window: Option<Tokens>,
    /// Calls so far, and whether the model may still add to the last one.
    calls: u64,
    is_open: bool,
    /// Whether the last call has been billed.
    is_billed: bool,
    last_bill: Option<Box<str>>,
    /// The counters of the last bill that was read, in either shape.
    last_usage: Option<CallBill>,
    last_prompt: Option<Tokens>,
    /// The bill of no call that came last: a summary's, if a compaction is next.
    loose_bill: Option<Usage>,
    /// Codex's own token count of the reasoning since the last bill; zero if the file lacks its content.
    reasoned: Tokens,
    /// The model's texts and the tools' answers since the last bill.
    queue: Vec<(ResponsesItem, When)>,
    /// The user's typed texts.
    typed: Vec<Blocks>,
}

impl Rollout {
    /// Reads a rollout, behind its first record the one that it goes on from.
    fn records(
        &mut self,
        records: Vec<&RawValue>,
        path: &Path,
        read: &mut Rollouts,
        source: &mut Source,
    ) -> Result<()> {
        for (at, raw) in records.into_iter().enumerate() {
            if let Some(record) = lenient::record(raw, source) {
                self.read(record, raw);
            }
            // A rollout that holds its parent's records holds its first one too.
            let Some(base) = self.base.take().filter(|_| at == 0) else {
                continue;
            };
            match read.text(path, &base) {
                Some(text) => self.records(text.raw_lines(source)?, &text.path, read, source)?,
                None => self.assembler.warn(NO_BASE),
            }
        }
        Ok(())
    }

    fn read(&mut self, record: RolloutRecord<'_>, raw: &RawValue) {
        let time = self.assembler.time(record.timestamp.as_deref());
        match (record.r#type.as_deref(), record.payload) {
            (Some("response_item"), Some(payload)) => self.item(payload, time),
            (Some("event_msg"), Some(payload)) => self.event(payload),
            (Some("token_usage_record"), Some(payload)) => {
                let mut told = Object::read(payload).unwrap_or_default();
                if let Some(usage) = told.take("usage") {
                    self.bill(usage, told.take_text("response_id"));
                }
                self.assembler.skip("token_usage_record");
            }
            (Some("compacted"), Some(payload)) => self.compacted(payload),
            (Some("session_meta"), Some(payload)) => self.meta(payload),
            (Some("turn_context"), Some(payload)) => {
                let mut context = Object::read(payload).unwrap_or_default();
                self.steps.push(RolloutStep::Turn(context.take_text("model")));
                self.assembler.skip("turn_context");
            }
            (Some(kind), Some(_)) if is_one_of(WRAPPED, kind) => self.assembler.skip(kind),
            (Some(kind), Some(_)) => self.unknown(kind, raw, time),
            // The first versions: items without a wrapper, and notes beside them.
            (Some(_), None) => self.item(raw, time),
            (None, None) if record.note.is_some() => self.assembler.skip("state"),
            (None, None) if record.id.is_some() => {
                self.assembler.skip("session_meta");
                self.assembler.header.system = record.instructions;
            }
            (None, Some(_) | None) => self.unknown("without type", raw, time),
        }
    }

    fn unknown(&mut self, kind: &str, raw: &RawValue, time: When) {
        let kept = unknown_record("record", kind, raw, &mut self.assembler.source);
        self.steps
            .extend(kept.map(|kept| RolloutStep::Item(ResponsesItem::Product(vec![kept]), time)));
    }

    /// Who runs where. A fork holds its parent's after its own: the first one counts.
    fn meta(&mut self, payload: &RawValue) {
        self.assembler.skip("session_meta");
        let mut meta = Object::read(payload).unwrap_or_default();
        let base = meta.inner("base_instructions").take_text("text");
        let text = base.or_else(|| meta.take_text("instructions"));
        let version = &mut self.assembler.source.version;
        *version = version.take().or(meta.take_text("cli_version").as_deref().map(str::to_owned));
        let system = &mut self.assembler.header.system;
        *system = system.take().or(text.filter(|text| !text.is_empty()));
        self.base = meta.take_as("history_base");
        if !std::mem::replace(&mut self.is_named, true) {
            let mut agent = meta.inner("source").inner("subagent").inner("thread_spawn");
            let named = meta.first_text(&["parent_thread_id", "forked_from_id"]);
            let parent = named.or_else(|| agent.take_text("parent_thread_id"));
            self.assembler.source.main = parent.map(|name| session_name(&name));
        }
    }

    fn event(&mut self, payload: &RawValue) {
        let mut event = Object::read(payload).unwrap_or_default();
        let kind = event.take_type();
        match &*kind {
            "token_count" => {
                if let Some(info) = event.take("info") {
                    self.counted(info);
                }
            }
            "task_started" => {
                self.end_task(TaskEnd::Open);
                self.task = Some(self.steps.len());
                self.tasks += 1;
                self.saw_window(event.take_as("model_context_window"));
            }
            "task_complete" => self.end_task(TaskEnd::Complete),
            "thread_rolled_back" => self.roll_back(event.take_as("num_turns").unwrap_or(1)),
            _ => {}
        }
        self.assembler.skip(&format!("event_msg/{kind}"));
    }

    /// Gives the compactions of the task under way their trigger.
    fn end_task(&mut self, end: TaskEnd) {
        let Some(start) = self.task.take() else {
            return;
        };
        let task = self.steps.get_mut(start..).unwrap_or_default();
        let heard =
            task.iter().any(|step| matches!(step, RolloutStep::Item(ResponsesItem::Other(_), _)));
        let trigger = match (task.iter().any(RolloutStep::is_models), heard, end) {
            (true, true, TaskEnd::Complete | TaskEnd::Open) => "auto",
            (false, false, TaskEnd::Complete) => "manual",
            _ => return,
        };
        for step in task {
            if let RolloutStep::Compacted(known, ..) = step {
                *known = Some(trigger);
            }
        }
    }

    /// The user went back: the last turns that somebody typed are in the context no more.
    fn roll_back(&mut self, turns: u64) {
        for _ in 0..turns {
            let Some(at) = self.steps.iter().rposition(RolloutStep::is_typed) else {
                break;
            };
            self.steps.truncate(at);
            self.assembler.warn("abandoned branch: a turn the user went back from is left out");
        }
        self.task = None;
        // Its bills are written anew.
        self.last_bill = None;
        self.last_usage = None;
    }

    fn saw_window(&mut self, size: Option<u64>) {
        self.window = size.map(whole_window).or(self.window);
    }

    /// The bill of the call before it, unless it was written before.
    fn counted(&mut self, info: &RawValue) {
        if self.last_bill.as_deref() == Some(info.get()) {
            return;
        }
        self.last_bill = Some(info.get().into());
        let mut info = Object::read(info).unwrap_or_default();
        self.saw_window(info.take_as("model_context_window"));
        match info.take("last_token_usage") {
            Some(raw) => self.bill(raw, None),
            None => self.steps.push(RolloutStep::Bill(None, None)),
        }
    }

    /// A bill. Newer versions write each in two shapes, one behind the other.
    fn bill(&mut self, raw: &RawValue, response: Text) {
        let source = &mut self.assembler.source;
        let bill = usage(raw, CachedTokens::Within, source).map(|usage| {
            let [reasoning] = counters(&value(raw), ["/reasoning_output_tokens"], source);
            (usage, Tokens(reasoning))
        });
        let repeated = bill.is_some() && bill == self.last_usage;
        self.last_usage = bill;
        if repeated && let Some(RolloutStep::Bill(_, known)) = self.steps.last_mut() {
            *known = response.or(known.take());
            return self.assembler.skip("bill that was written twice");
        }
        self.steps.push(RolloutStep::Bill(bill, response));
    }

    /// Removes the response that wrote a summary, and returns its bill.
    fn forget_summary(&mut self, response: &str) -> Option<CallBill> {
        let bill = self.steps.iter().rposition(
            |step: &RolloutStep| matches!(step, RolloutStep::Bill(_, Some(known)) if **known == *response),
        )?;
        let said = self.steps[..bill].iter().rev().take_while(|step| step.is_of_response()).count();
        let forgotten = self.steps.drain(bill - said..=bill).next_back();
        self.assembler.skip("answer that is a summary");
        let Some(RolloutStep::Bill(bill, _)) = forgotten else { return None };
        bill
    }

    /// Places all steps, and ends the session.
    fn finish(mut self, file: &SourceText) -> Imported {
        self.end_task(TaskEnd::Open);
        if self.tasks == 0 {
            tell_triggers(&mut self.steps);
        }
        if bills_first(&self.steps, self.assembler.source.version.as_deref()) {
            self.steps = bills_after_items(std::mem::take(&mut self.steps));
        }
        for step in std::mem::take(&mut self.steps) {
            match step {
                RolloutStep::Item(item, time) => {
                    self.bills_no_call(None);
                    let waits = matches!(item, ResponsesItem::Model(_)) || is_answer(&item);
                    self.queue.push((item, time));
                    if !waits {
                        self.settle();
                    }
                }
                RolloutStep::Reasons(tokens) => self.reasoned += tokens,
                RolloutStep::Bill(usage, _) => self.billed(usage),
                RolloutStep::Turn(model) => {
                    self.settle();
                    self.model = model.or(self.model.take());
                }
                RolloutStep::Compacted(trigger, left, bill) => {
                    let usage = bill.map(|(usage, _)| usage);
                    self.assembler.summary_usage = usage.or(self.loose_bill.take());
                    self.compact(trigger, left);
                }
            }
        }
        self.settle();
        self.bills_no_call(None);

        self.assembler.header.context_window = self.window;
        self.assembler.session(file.id.clone(), &file.path)
    }

    /// The call before it is done.
    fn billed(&mut self, bill: Option<CallBill>) {
        // In newer versions the bill comes before the results: a call after a result may be the
        // same response's.
        if self.queue.last().is_some_and(|(item, _)| is_answer(item)) {
            self.queue = by_response(std::mem::take(&mut self.queue));
        }
        self.settle();
        let Some((usage, reasoning)) = bill else {
            return;
        };
        // After a compaction Codex writes what it estimates, and no counters.
        if usage == Usage::default() {
            return self.assembler.skip("bill without counters");
        }
        let counted = std::mem::take(&mut self.reasoned);
        let reasoning = if counted > Tokens::ZERO {
            counted
        } else {
            as_codex_counts(reasoning, self.model.as_deref().unwrap_or_default())
        };
        self.last_prompt = Some(usage.prompt());
        if self.calls == 0 || self.is_billed {
            return self.bills_no_call(Some(usage));
        }
        self.is_open = false;
        self.is_billed = true;
        let bill = self.said(None, Vec::new(), Some(usage));
        self.assembler.assistant(None, ModelRecord { reasoning, ..bill });
    }

    /// The last bill of no call was no summary's; another may be.
    fn bills_no_call(&mut self, next: Option<Usage>) {
        if std::mem::replace(&mut self.loose_bill, next).is_some() {
            self.assembler.skip("bill of no call");
        }
    }

    /// A part of the call under way.
    fn said(&self, time: When, blocks: Blocks, usage: Option<Usage>) -> ModelRecord {
        let call = format!("call-{}", self.calls).into();
        ModelRecord::of(blocks, time).by(Some(call), self.model.clone(), usage)
    }

    fn item(&mut self, raw: &RawValue, time: When) {
        self.steps.extend(reasons(raw));
        self.steps.push(RolloutStep::Item(item(raw, &mut self.assembler), time));
    }

    /// Places what was said since the last bill: a call after a result is the next response's.
    fn settle(&mut self) {
        for (item, time) in std::mem::take(&mut self.queue) {
            let (blocks, tag) = match item {
                ResponsesItem::Nothing => continue,
                ResponsesItem::Model(blocks) => {
                    if !self.is_open {
                        self.calls += 1;
                        self.is_open = true;
                        self.is_billed = false;
                    }
                    self.assembler.assistant(None, self.said(time, blocks, None));
                    continue;
                }
                ResponsesItem::Other(blocks) => {
                    let tag = kept_context::tag_of(&blocks);
                    self.typed.extend((tag == Some(Tag::TypedUser)).then(|| blocks.clone()));
                    (blocks, tag)
                }
                ResponsesItem::Product(blocks) => (blocks, Some(Tag::Meta)),
            };
            self.is_open = false;
            self.assembler.hear(None, blocks, time, tag);
        }
    }

    /// A compaction: the items that the context became, or an older version's summary alone.
    fn compacted(&mut self, payload: &RawValue) {
        let mut compacted = Object::read(payload).unwrap_or_default();
        let summary = compacted.take_words("message");
        let history = compacted.take_list("replacement_history");
        let response = compacted.take_text("compaction_response_id");
        let bill = response.and_then(|response| self.forget_summary(&response));
        let left = match (history, summary) {
            (Some(history), summary) => {
                Ok(kept_context::replacement(&history, summary.as_deref(), &mut self.assembler))
            }
            (None, Some(summary)) => Err(summary),
            (None, None) => Ok(CompactedTo::Missing),
        };
        self.steps.push(RolloutStep::Compacted(None, left, bill));
    }

    fn compact(&mut self, trigger: Option<&str>, left: Result<CompactedTo, Arc<str>>) {
        self.settle();
        self.is_open = false;
        // Where the file names no response of its own, the next bill is the compaction's.
        self.is_billed = true;
        let after = left.unwrap_or_else(|summary| {
            let mut pieces = kept_context::of_late(&self.typed);
            pieces.push(Recorded::summary(summary));
            CompactedTo::Replaced(pieces)
        });
        self.assembler.compacts(trigger.map(Arc::from), self.last_prompt.take(), after);
    }
}

/// The whole window, of which Codex writes 95 %, rounded down.
///
/// Its first versions wrote the whole window. A figure that is 95 % of no multiple of 1,000 or
/// 1,024 is taken for one of theirs.
fn whole_window(written: u64) -> Tokens {
    let whole = u128::from(written).saturating_mul(100).div_ceil(95);
    let round = whole.is_multiple_of(1_000) || whole.is_multiple_of(1_024);
    let whole = u64::try_from(whole).ok().filter(|_| round);
    Tokens(whole.unwrap_or(written))
}
