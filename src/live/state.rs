//! A strategy at work in one conversation: its context, and what it is told before each call.
//!
//! At each call it takes the same steps as [`replay`](crate::replay), in the same order. They depend on the
//! messages and the [`Input`]s alone: fed with them again, it makes the same contexts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::asked::{Asked, Asking};
use super::played::Work;
use crate::bill::{Factor, Scale, Sizes};
use crate::context::{Context, Entry, Origin};
use crate::model::{Model, Reply};
use crate::replay::{tools_of, typed};
use crate::session::{Message, Role, ToolSchema};
use crate::step::drive;
use crate::strategy::situation::Overflow;
use crate::strategy::{Compaction, Situation, Strategy, StrategySpec};
use crate::tokens::{CountedTexts, Size};
use crate::units::{Timestamp, Tokens, Usage};
use crate::window::Window;

/// The settings of a strategy.
#[derive(Debug)]
pub struct Setting {
    /// The strategy.
    pub spec: StrategySpec,
    /// The window of the agent's model.
    pub window: Window,
    /// Whether prompts are sized as the answers before were billed.
    pub sizes: Sizes,
    /// Writes its summaries.
    pub summariser: Arc<dyn Model>,
    /// Sizes of all texts.
    pub counts: Arc<CountedTexts>,
}

/// The facts that are the same at every call of a conversation.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) setting: Arc<Setting>,
    pub(super) lot: u64,
    pub(super) repeat: u32,
    pub(super) system: Option<Arc<str>>,
    pub(super) tools: Arc<[ToolSchema]>,
    pub(super) fixed: Size,
}

/// The inputs of one call apart from its messages: with them, all that a strategy's work depends on.
#[derive(Debug, Clone)]
pub(super) struct Input {
    /// When the request came.
    pub at: Timestamp,
    /// How many messages of the agent's history it held.
    pub messages: usize,
    /// How often the provider refused the prompt as too long, with the strategy asked to shorten it.
    pub refusals: u32,
    /// When the answer before was whole, with its usage, as far as that was known when the request came.
    pub before: Option<(Timestamp, Option<Usage>)>,
    /// Why the agent's own request was sent as it came, where it was.
    pub skipped: Option<Skip>,
}

impl Input {
    /// Whether the strategy is not asked at this call. One that was late did its work, for the next call.
    pub(super) fn is_left_out(&self) -> bool {
        matches!(self.skipped, Some(Skip::Failed | Skip::Invalid))
    }
}

/// Why a strategy was not applied at a call.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error,
)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// It returned an error.
    #[error("the strategy failed")]
    Failed,
    /// It took longer than the agent may wait; its work counts from the next call on.
    #[error("the strategy took too long")]
    Late,
    /// The provider would refuse its context, and not the agent's own.
    #[error("the context would break a rule of the provider")]
    Invalid,
}

/// A moment at which a strategy is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AskMoment {
    /// The message of this index is appended.
    Append(usize),
    /// Before this call.
    Before(usize),
    /// This call's prompt was refused so often before.
    Refused(usize, u32),
    /// After this call.
    After(usize),
}

/// A context with the strategy that keeps it.
#[derive(Debug)]
pub(super) struct State {
    strategy: Box<dyn Strategy>,
    pub(super) context: Context,
    /// How many messages it has taken in, and calls.
    taken: usize,
    pub(super) calls: usize,
    typed: usize,
    scale: Scale,
    appended: Size,
    last_messages: Size,
    last_usage: Option<Usage>,
    last_answer: Option<Timestamp>,
    /// The situation at the last call.
    present: Option<Situation>,
    /// The work so far, for the record.
    pub(super) work: BTreeMap<AskMoment, Work>,
    pub(super) asked: Vec<(usize, Asked)>,
    /// Replies of an earlier time, to be given first.
    given: VecDeque<Reply>,
}

impl State {
    /// A strategy that has seen nothing yet.
    pub(super) fn begin(facts: &Facts) -> Result<Self, Skip> {
        let strategy = facts.setting.spec.build().map_err(|_| Skip::Failed)?;
        Ok(Self {
            strategy: Box::new(strategy),
            context: Context::default(),
            taken: 0,
            calls: 0,
            typed: 0,
            scale: Scale::COUNTED,
            appended: Size::default(),
            last_messages: Size::default(),
            last_usage: None,
            last_answer: None,
            present: None,
            work: BTreeMap::new(),
            asked: Vec::new(),
            given: VecDeque::new(),
        })
    }

    /// Makes the calls of these inputs that are not made yet. The strategy's requests get the replies in `asked`, as far
    /// as there are any.
    pub(super) fn advance(
        &mut self,
        facts: &Facts,
        messages: &[Arc<Message>],
        inputs: &[Input],
        asked: &[(usize, Asked)],
    ) -> Result<(), Skip> {
        while let Some(input) = inputs.get(self.calls) {
            let call = self.calls;
            let of_call = asked.iter().filter(|(of, _)| *of == call);
            self.given = of_call.map(|(_, (_, reply))| reply.clone()).collect();
            self.call(facts, messages, inputs)?;
            for _ in 0..input.refusals {
                self.refused(facts)?;
            }
            self.given.clear();
        }
        Ok(())
    }

    fn asking<'a>(&mut self, facts: &'a Facts) -> Asking<'a> {
        Asking {
            model: &*facts.setting.summariser,
            counts: &facts.setting.counts,
            repeat: facts.repeat,
            given: std::mem::take(&mut self.given),
            asked: Vec::new(),
        }
    }

    /// Whether the context is the agent's whole history of so many messages, unchanged.
    pub(super) fn is_whole(&self, messages: usize) -> bool {
        let entries = self.context.entries();
        let mut entries = entries.iter().enumerate();
        entries.len() == messages && entries.all(|(at, it)| it.origin == Origin::Verbatim(at))
    }

    /// The bill of the prompt that would be sent now.
    pub(super) fn prompt(&self, facts: &Facts) -> Tokens {
        self.bill(facts.fixed + self.context.size())
    }

    /// The bill of a prompt of this size.
    pub(super) fn bill(&self, prompt: Size) -> Tokens {
        self.scale.prompt(prompt)
    }

    /// Takes in what the next call of `inputs` brings, and lets the strategy compact.
    pub(super) fn call(
        &mut self,
        facts: &Facts,
        messages: &[Arc<Message>],
        inputs: &[Input],
    ) -> Result<(), Skip> {
        let call = self.calls;
        let input = &inputs[call];
        let mut asking = self.asking(facts);
        let (taken, end) = (self.taken, input.messages.min(messages.len()));
        let is_skipped = input.is_left_out();
        let mut new = taken..end;
        if let Some(mut present) = self.present.take()
            && let Some(answer) = messages.get(taken).filter(|_| taken < end)
            && answer.role() == Role::Assistant
        {
            // A call at which the strategy is left out begins with the answer before it.
            let is_asked = !is_skipped && !inputs[call - 1].is_left_out();
            new.start += 1;
            let is_own = inputs[call - 1].skipped.is_none();
            self.answered(&mut present, facts, answer, input.before, is_own);
            self.append(facts, messages, taken, &present, is_asked)?;
            self.appended = Size::default();
            self.last_messages = self.context.size();
            present.appended = self.appended;
            present.last_messages = self.last_messages;
            if is_asked {
                let context = std::mem::take(&mut self.context);
                let done = drive(self.strategy.after_call(context, &present), &mut asking);
                self.take_back(AskMoment::After(call - 1), done, &mut asking)?;
            }
        } else if call == 0 {
            // The client goes on with a conversation: no write-time stage sees what it was loaded with.
            let mut loaded = messages[new.clone()].iter();
            let loaded = loaded.rposition(|it| it.role() == Role::Assistant);
            for at in 0..loaded.map_or(0, |at| at + 1) {
                self.add(facts, messages, at);
                new.start = at + 1;
            }
            self.strategy.on_load(self.context.entries());
            self.typed = typed(&messages[..new.start]);
            if new.start > 0 {
                self.last_answer = messages[new.start - 1].details.timestamp;
            }
        }
        let mut cx = self.situation(facts, messages, new.clone(), input);
        self.typed = cx.turn;
        for at in new {
            self.append(facts, messages, at, &cx, !is_skipped)?;
        }
        self.taken = end;
        self.calls += 1;
        cx.appended = self.appended;
        if !is_skipped {
            let context = std::mem::take(&mut self.context);
            let done = drive(self.strategy.before_call(context, &cx), &mut asking);
            self.take_back(AskMoment::Before(call), done, &mut asking)?;
        }
        self.present = Some(cx);
        Ok(())
    }

    /// The provider refused the last prompt. Whether the strategy has shortened it.
    pub(super) fn refused(&mut self, facts: &Facts) -> Result<bool, Skip> {
        let Some(mut cx) = self.present.take() else {
            return Ok(false);
        };
        let mut asking = self.asking(facts);
        let prompt = self.prompt(facts);
        let attempt = cx.overflow.map_or(0, |before| before.attempt + 1);
        cx.overflow = Some(Overflow { prompt, attempt });
        let context = std::mem::take(&mut self.context);
        let done = drive(self.strategy.on_overflow(context, &cx), &mut asking);
        let moment = AskMoment::Refused(cx.call, attempt);
        self.take_back(moment, done, &mut asking)?;
        self.present = Some(cx);
        // A recovery that frees nothing would go on for ever.
        Ok(self.prompt(facts) < prompt)
    }

    /// Takes note of the answer of the last call.
    fn answered(
        &mut self,
        present: &mut Situation,
        facts: &Facts,
        answer: &Message,
        known: Option<(Timestamp, Option<Usage>)>,
        is_own: bool,
    ) {
        let prompt = self.scale.prompt(facts.fixed + self.context.size());
        let words = crate::context::measure(answer, &facts.setting.counts);
        let counted = Usage::uncached(prompt, self.scale.text(words));
        let billed = known.and_then(|(_, usage)| usage);
        if let (Some(billed), Sizes::Billed, true) = (billed, facts.setting.sizes, is_own)
            && let Some(factor) =
                Factor::of(billed.prompt(), (facts.fixed + self.context.size()).tokens)
            && billed.prompt() > Tokens::ZERO
        {
            self.scale.factor = factor;
        }
        let usage = billed.filter(|_| is_own).unwrap_or(counted);
        self.last_usage = Some(usage);
        self.last_answer = known.map(|(at, _)| at);
        present.last_usage = self.last_usage;
        present.tool_requests = tools_of(answer);
    }

    fn situation(
        &self,
        facts: &Facts,
        messages: &[Arc<Message>],
        new: std::ops::Range<usize>,
        input: &Input,
    ) -> Situation {
        let setting = &facts.setting;
        let typed_now = typed(&messages[new.clone()]);
        let last = new.start.checked_sub(1).map(|last| &messages[last]);
        Situation {
            call: self.calls,
            turn: self.typed + typed_now,
            has_typed: typed_now > 0,
            lot: facts.lot,
            now: Some(input.at),
            system: facts.system.clone(),
            tools: facts.tools.clone(),
            fixed: facts.fixed,
            scale: self.scale,
            last_usage: self.last_usage,
            last_messages: self.last_messages,
            appended: self.appended,
            last_answer: self.last_answer,
            tool_requests: last.map_or_else(Vec::new, |last| tools_of(last)),
            ..Situation::first(setting.window, setting.counts.clone())
        }
    }

    fn append(
        &mut self,
        facts: &Facts,
        messages: &[Arc<Message>],
        at: usize,
        cx: &Situation,
        is_asked: bool,
    ) -> Result<(), Skip> {
        if !is_asked {
            self.add(facts, messages, at);
            let newest = self.context.entries().last();
            self.strategy
                .on_load(newest.map_or(&[], std::slice::from_ref));
            return Ok(());
        }
        let mut single = Context::default();
        single.append(entry(facts, messages, at));
        let done = self.strategy.on_append(single, cx);
        let work = Work::of(&done);
        if !work.is_nothing() {
            self.work.insert(AskMoment::Append(at), work);
        }
        done.outcome.map_err(|_| Skip::Failed)?;
        let appended = done.context.into_entries().pop();
        self.push(appended.unwrap_or_else(|| entry(facts, messages, at)));
        Ok(())
    }

    fn add(&mut self, facts: &Facts, messages: &[Arc<Message>], at: usize) {
        self.push(entry(facts, messages, at));
    }

    fn push(&mut self, entry: Entry) {
        self.appended += entry.size();
        self.context.append(entry);
    }

    fn take_back(
        &mut self,
        moment: AskMoment,
        done: Compaction,
        asking: &mut Asking<'_>,
    ) -> Result<(), Skip> {
        let mut work = Work::of(&done);
        let asked = std::mem::take(&mut asking.asked);
        self.given.clone_from(&asking.given);
        work.requests = asked.iter().map(|(request, _)| request.clone()).collect();
        let call = match moment {
            AskMoment::After(call) => call + 1,
            AskMoment::Before(call) | AskMoment::Refused(call, _) => call,
            AskMoment::Append(_) => self.calls,
        };
        self.asked.extend(asked.into_iter().map(|it| (call, it)));
        if !work.is_nothing() {
            self.work.insert(moment, work);
        }
        self.context = done.context;
        done.outcome.map_err(|_| Skip::Failed)
    }
}

fn entry(facts: &Facts, messages: &[Arc<Message>], at: usize) -> Entry {
    let counts = &facts.setting.counts;
    Entry::new(Origin::Verbatim(at), messages[at].clone(), counts)
}
