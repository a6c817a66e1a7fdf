//! The strategy of one conversation, with the context that it keeps.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::asked::AnsweredRequest;
use super::body::NewPrompt;
use super::played::StrategyWork;
use super::state::{CallInput, FixedFacts, Skip, StrategyState};
use crate::bill::Scale;
use crate::context::validity::{self, Finding, Level};
use crate::context::{Entry, Origin, measure};
use crate::model::Reply;
use crate::replay::RequestBill;
use crate::session::wire::RuleSet;
use crate::session::wire::stream::Api;
use crate::session::{Message, ResumePoint, Role, Session, SessionParts, Source};
use crate::tokens::Size;
use crate::units::Usage;
use crate::walk::WalkMoment;

/// A strategy at work in one conversation: the messages and inputs of its calls, and what it made of them.
#[derive(Debug)]
pub(super) struct Worker {
    id: String,
    api: Api,
    model: Option<Arc<str>>,
    facts: FixedFacts,
    /// Set once, where the conversation branched off from another.
    pub(super) past: Past,
    /// `None` before its first call, and after work that came to nothing: it is then done again, with the same replies.
    state: Option<StrategyState>,
    /// Usage of what the strategy asked its model.
    spent: Usage,
}

/// The past of a conversation: with it, a strategy does its work again.
#[derive(Debug, Clone, Default)]
pub(super) struct Past {
    /// The agent's history as far as it was sent.
    messages: Vec<Arc<Message>>,
    inputs: Vec<CallInput>,
    /// The strategy's requests with their replies, by call.
    asked: Vec<(usize, AnsweredRequest)>,
}

impl Past {
    /// The messages of the last request, each with its place among all that were sent.
    fn list(&self) -> Vec<(usize, Arc<Message>)> {
        let mut inputs = self.inputs.iter().rev();
        let rewritten = inputs.find_map(|input| Some((input.rewritten.as_ref()?, input.messages)));
        let (listed, from) = rewritten.map_or((&[][..], 0), |(list, end)| (list, end));
        let places = listed.iter().copied().chain(from..self.messages.len());
        places.filter_map(|at| Some((at, self.messages.get(at)?.clone()))).collect()
    }
}

/// The result of a strategy's work at a call.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// The prompt to be sent; `None` for the agent's own.
    pub(super) prompt: Option<NewPrompt>,
    /// Why the strategy was left out.
    pub(super) skipped: Option<Skip>,
}

/// The work of a strategy in a whole conversation.
pub(super) struct WorkRecord {
    pub(super) session: Session,
    pub(super) work: BTreeMap<WalkMoment, StrategyWork>,
    pub(super) replies: VecDeque<Reply>,
    /// Calls at which the provider refused the prompt as too long.
    pub(super) refused: Vec<usize>,
}

impl Worker {
    pub(super) fn new(id: String, api: Api, model: Option<Arc<str>>, facts: FixedFacts) -> Self {
        Self { id, api, model, facts, past: Past::default(), state: None, spent: Usage::default() }
    }

    /// Its past up to the end of so many calls.
    pub(super) fn past(&self, calls: usize) -> Past {
        let inputs = &self.past.inputs[..calls];
        let messages = inputs.last().map_or(0, |input| input.messages);
        let asked = self.past.asked.iter().filter(|(call, _)| *call < calls);
        Past {
            messages: self.past.messages[..messages].to_vec(),
            inputs: inputs.to_vec(),
            asked: asked.cloned().collect(),
        }
    }

    /// Adds a call.
    pub(super) fn add(&mut self, messages: Vec<Arc<Message>>, input: CallInput) {
        self.past.messages.extend(messages);
        self.past.inputs.push(input);
    }

    /// Notes that the strategy has no part in the request of the last call, unless there is a reason already.
    pub(super) fn skip(&mut self, why: Skip) {
        if let Some(last) = self.past.inputs.last_mut() {
            last.skipped.get_or_insert(why);
        }
    }

    /// The strategy's work at the last call, which may be asked for again.
    pub(super) fn work(&mut self) -> Done {
        if let Err(why) = self.advance() {
            // Without the strategy's part at this call: its context is as it was, with the new messages.
            self.skip(why);
            if self.advance().is_err() {
                return self.done(None);
            }
        }
        let last = self.past.inputs.last();
        let entries = self.state.as_ref().filter(|state| {
            (match last.and_then(|input| input.skipped) {
                None => true,
                Some(Skip::Late) => false,
                Some(Skip::Failed | Skip::Invalid) => {
                    let counts = &self.facts.setting.counts;
                    let list = self.past.list();
                    let sizes = list.iter().map(|(_, message)| measure(message, counts));
                    let prompt = state.scale.prompt(self.facts.fixed + sizes.sum());
                    self.facts.setting.window.overflows(prompt)
                }
            }) && !state.is_whole(self.past.messages.len())
        });
        self.done(entries.map(|state| state.context().entries().to_vec()))
    }

    fn done(&self, entries: Option<Vec<Entry>>) -> Done {
        let prompt =
            entries.map(|entries| NewPrompt { api: self.api, entries, messages: self.past.list() });
        Done { prompt, skipped: self.past.inputs.last().and_then(|input| input.skipped) }
    }

    /// The provider refused the prompt of a call: a shorter one, if the prompt was the strategy's and it has one.
    pub(super) fn refused(&mut self, call: usize) -> Done {
        let last = self.past.inputs.last().filter(|input| input.skipped.is_none());
        let sent = last.is_some() && call + 1 == self.past.inputs.len();
        let state = self.state.take_if(|state| sent && state.calls == call + 1);
        let Some(mut state) = state else {
            return Done::default();
        };
        let shorter = unless_panicked(|| state.refused())
            .and_then(|is_shorter| self.check(&state).map(|()| is_shorter));
        match shorter {
            Ok(is_shorter) => {
                self.past.inputs[call].refusals += 1;
                let entries = is_shorter.then(|| state.context().entries().to_vec());
                self.keep(state, true);
                self.done(entries)
            }
            Err(why) => {
                self.keep(state, false);
                Done { prompt: None, skipped: Some(why) }
            }
        }
    }

    /// Brings the state to the last call. Where that fails there is none any more.
    fn advance(&mut self) -> Result<(), Skip> {
        let mut state = match self.state.take() {
            Some(state) => state,
            None => StrategyState::begin(&self.facts)?,
        };
        let Past { messages, inputs, asked } = &self.past;
        if state.calls == inputs.len() {
            self.state = Some(state);
            return Ok(());
        }
        let left_out = inputs.last().is_some_and(CallInput::is_left_out);
        let done = unless_panicked(|| state.advance(&self.facts, messages, inputs, asked))
            .and_then(|()| if left_out { Ok(()) } else { self.check(&state) });
        self.keep(state, done.is_ok());
        done
    }

    /// Keeps a state that has worked, or drops it where the work came to nothing.
    fn keep(&mut self, state: StrategyState, is_done: bool) {
        let new = state.asking.asked.iter().skip(self.past.asked.len());
        for (_, (request, reply)) in new.clone() {
            let counts = &self.facts.setting.counts;
            self.spent += RequestBill::new(request, reply, Scale::COUNTED, counts).total();
        }
        if is_done {
            self.past.asked.extend(new.cloned().collect::<Vec<_>>());
            self.state = Some(state);
        }
    }

    /// Refuses a context that the provider would refuse, unless it would refuse the agent's own messages as well.
    fn check(&self, state: &StrategyState) -> Result<(), Skip> {
        if state.is_whole(self.past.messages.len()) {
            return Ok(());
        }
        let broken = rejected(self.api, state.context().entries());
        if broken.is_empty() {
            return Ok(());
        }
        let list = self.past.list().into_iter();
        let own =
            list.map(|(at, message)| Entry::sized(Origin::Verbatim(at), message, Size::default()));
        let known = rejected(self.api, &own.collect::<Vec<_>>());
        if broken.is_subset(&known) { Ok(()) } else { Err(Skip::Invalid) }
    }

    /// Usage of what the strategy asked its model, and why it was left out at calls, from this call on.
    pub(super) fn account(&self, from: usize) -> (Usage, Vec<Skip>) {
        let own = self.past.inputs.iter().skip(from);
        (self.spent, own.filter_map(|input| input.skipped).collect())
    }

    /// The session so far, which ends with this answer, and the work of the strategy in it.
    pub(super) fn record(&mut self, answer: Option<Arc<Message>>) -> Option<WorkRecord> {
        // Where it cannot be brought there, nothing of it is in the record.
        let _ = self.advance();
        let work = self.state.as_ref().map(|state| state.asking.work.clone()).unwrap_or_default();
        let applied = work.iter().filter(|(_, work)| !work.applied.is_empty());
        let changed = applied.map(|(moment, _)| self.call_of(*moment)).min();
        let refused = self.past.inputs.iter().enumerate().filter(|(_, input)| input.refusals > 0);
        let replies = self.past.asked.iter();
        Some(WorkRecord {
            session: self.session(changed.unwrap_or(usize::MAX), answer)?,
            work,
            replies: replies.map(|(_, (_, reply))| reply.clone()).collect(),
            refused: refused.map(|(call, _)| call).collect(),
        })
    }

    /// The first call whose prompt shows what was done at a moment.
    fn call_of(&self, moment: WalkMoment) -> usize {
        match moment {
            WalkMoment::Append(at) => {
                let inputs = &self.past.inputs;
                inputs.partition_point(|input| input.messages <= at)
            }
            WalkMoment::Before(call) | WalkMoment::Refused(call) => call,
            WalkMoment::After(call) => call + 1,
        }
    }

    /// The session that the agent saw: whole, as if nothing had been compacted. Usage says how large
    /// prompts are only as long as they were the agent's own: up to this call.
    fn session(&self, changed: usize, answer: Option<Arc<Message>>) -> Option<Session> {
        let Past { messages: own, inputs, .. } = &self.past;
        let mut messages = own.clone();
        messages.extend(answer);
        let changed = inputs.get(changed).map_or(usize::MAX, |input| input.messages);
        for message in messages.iter_mut().skip(changed) {
            Arc::make_mut(message).details.usage = None;
        }
        let first = &own[..inputs.first()?.messages];
        let loaded = first.iter().rposition(|message| message.role() == Role::Assistant);
        Session::new(SessionParts {
            id: self.id.clone(),
            system: self.facts.system.clone(),
            tools: self.facts.tools.to_vec(),
            messages,
            compactions: Vec::new(),
            model: self.model.as_deref().map(str::to_owned),
            context_window: Some(self.facts.setting.window.tokens),
            source: Source { format: "live".to_owned(), ..Source::default() },
            resumed: loaded.map(|last| ResumePoint { at: last + 1, notes: None }),
        })
        .ok()
    }
}

/// Code of a strategy that panics has failed: the words are on standard error.
fn unless_panicked<T>(work: impl FnOnce() -> Result<T, Skip>) -> Result<T, Skip> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Skip::Failed))
}

/// The findings for which the provider refuses a context.
fn rejected(api: Api, entries: &[Entry]) -> BTreeSet<Finding> {
    let rules = match api {
        Api::Messages => RuleSet::Anthropic,
        Api::ChatCompletions => RuleSet::OpenAi,
        Api::Responses => RuleSet::OpenAiResponses,
        Api::GenerateContent => RuleSet::Gemini,
    };
    let mut found = validity::check(rules, entries);
    found.retain(|finding| finding.rule.level(rules) == Some(Level::Rejected));
    found
}
