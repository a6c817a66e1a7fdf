//! One conversation of an agent under one strategy.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::asked::Asked;
use super::state::{Facts, Input, Setting, Skip, State};
use super::{lock, results};
use crate::bill::Scale;
use crate::context::Entry;
use crate::context::validity::{self, Level};
use crate::session::wire::Look;
use crate::session::wire::request::{Request, Turn};
use crate::session::wire::stream::Api;
use crate::session::wire::{
    RuleSet, anthropic_json, openai::openai_json, responses::responses_json,
};
use crate::session::{Message, ResumePoint, Role, Session, SessionParts, Source, Tag};
use crate::tokens::Size;
use crate::units::{ContentHash, Timestamp, Usage};
use crate::walk::Moment;

/// The messages that an agent has sent, call by call, with what its strategy made of them.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) id: String,
    pub(super) api: Api,
    pub(super) facts: Facts,
    pub(super) model: Option<Arc<str>>,
    /// The client's own name for it.
    pub(super) client: Option<Arc<str>>,
    /// The agent's history as far as it was sent, with how each message is recognised.
    pub(super) messages: Vec<Arc<Message>>,
    looks: Vec<Look>,
    pub(super) inputs: Vec<Input>,
    /// The last answer, as the provider gave it, until the agent sends it back.
    pub(super) answer: Option<Arc<Message>>,
    /// How many of the calls are another conversation's, that it branched off from.
    pub(super) inherited: usize,
    /// The strategy, which works at one call after the other.
    pub(super) slot: Arc<Mutex<Slot>>,
}

/// A strategy with its context, and what it asked its model.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) state: Option<State>,
    /// At the calls that `state` has made, by call.
    pub(super) asked: Vec<(usize, Asked)>,
    /// At calls whose work came to nothing.
    pub(super) lost: Vec<Asked>,
}

/// How a request goes on with a conversation; later ones are preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Follows {
    /// It begins as the conversation did up to the end of this many calls, and goes on otherwise.
    Branches(usize),
    /// It is the last request again.
    Repeats,
    /// It goes on where the last answer ended, with another model or system prompt: one that tells the time.
    Answers,
    /// It goes on where the last call ended.
    GoesOn,
}

impl Conversation {
    pub(super) fn begin(
        id: String,
        api: Api,
        setting: &Arc<Setting>,
        repeat: u32,
        request: &mut Request<'_>,
    ) -> Self {
        let counts = &setting.counts;
        let tools = std::mem::take(&mut request.tools);
        let sizes = tools.iter().map(|tool| counts.schema(tool.text()));
        let fixed = sizes
            .chain(request.system.iter().map(|text| counts.size(text)))
            .sum();
        let mut lot = [0; 8];
        lot.copy_from_slice(&ContentHash::of(&id).bytes()[..8]);
        Self {
            id,
            api,
            facts: Facts {
                setting: setting.clone(),
                lot: u64::from_le_bytes(lot),
                repeat,
                system: request.system.clone(),
                tools: tools.into(),
                fixed,
            },
            model: request.model.clone(),
            client: request.client.clone(),
            messages: Vec::new(),
            looks: Vec::new(),
            inputs: Vec::new(),
            answer: None,
            inherited: 0,
            slot: Arc::default(),
        }
    }

    /// Its first calls, as a conversation of its own.
    pub(super) fn branch(&self, id: String, calls: usize) -> Self {
        let inputs = self.inputs[..calls].to_vec();
        let messages = inputs.last().map_or(0, |input| input.messages);
        let slot = lock(&self.slot);
        let asked = slot.asked.iter().filter(|(call, _)| *call < calls);
        let slot = Slot {
            asked: asked.cloned().collect(),
            ..Slot::default()
        };
        Self {
            id,
            api: self.api,
            facts: self.facts.clone(),
            model: self.model.clone(),
            client: self.client.clone(),
            messages: self.messages[..messages].to_vec(),
            looks: self.looks[..messages].to_vec(),
            inputs,
            answer: None,
            inherited: calls,
            slot: Arc::new(Mutex::new(slot)),
        }
    }

    /// How these messages go on with it, and how many of them it has.
    ///
    /// Where only the first message is known, another agent may have got the same: model and system prompt tell, or the
    /// answer that comes back.
    pub(super) fn follows(&self, request: &Request<'_>) -> Option<(usize, Follows)> {
        let turns = &request.turns;
        let is_of_agent = self.model == request.model && self.facts.system == request.system;
        let pairs = self.looks.iter().zip(turns);
        let same = pairs
            .take_while(|(own, turn)| own.is_like(&turn.look))
            .count();
        if same == self.looks.len() {
            let is_told_apart = self.inputs.len() > 1 || self.messages.len() > 1;
            let is_certain = is_told_apart || is_of_agent;
            let follows = match (turns.get(same), &self.answer) {
                (None, _) if is_certain => Follows::Repeats,
                (Some(_), _) if is_certain => Follows::GoesOn,
                (Some(next), Some(own)) if next.look.is_like(&Look::of(own)) => Follows::Answers,
                _ => return None,
            };
            return (same > 0).then_some((same, follows));
        }
        let calls = self.inputs.partition_point(|input| input.messages <= same);
        let known = self.inputs[..calls].last()?.messages;
        (known < turns.len()).then_some((known, Follows::Branches(calls)))
    }

    /// Adds what is new in a request.
    pub(super) fn add(&mut self, turns: &[Turn], at: Timestamp) {
        let known = self.messages.len();
        let answered = self.inputs.last().and_then(|input| input.answered);
        for (index, turn) in turns.iter().enumerate().skip(known) {
            let is_answer = index == known && turn.message.role() == Role::Assistant;
            let mut message = (*turn.message).clone();
            if !is_answer && known > 0 && message.role() == Role::Assistant {
                // It is history, and no answer to a call of this conversation.
                let tags: Vec<Tag> = message.tags.iter().chain([Tag::Synthetic]).collect();
                message = message.with_tags(tags);
            }
            message.details.timestamp = match answered {
                Some((time, usage)) if is_answer => {
                    message.details.usage = usage;
                    Some(time)
                }
                _ => Some(at),
            };
            self.messages.push(Arc::new(message));
            self.looks.push(turn.look);
        }
        self.answer = None;
        self.inputs.push(Input {
            at,
            messages: self.messages.len(),
            rewritten: None,
            refusals: 0,
            before: answered,
            skipped: None,
            answered: None,
            answers: 0,
            unbilled: 0,
            billed: Usage::default(),
        });
    }

    /// The strategy's work up to the last of so many calls.
    pub(super) fn job(&self, calls: usize) -> Job {
        Job {
            facts: self.facts.clone(),
            messages: self.messages.clone(),
            inputs: self.inputs[..calls].to_vec(),
            rules: rules(self.api),
            slot: self.slot.clone(),
        }
    }

    /// The body of a request with these entries for its messages.
    pub(super) fn body(&self, entries: &[Entry], request: &Request<'_>, body: &str) -> String {
        let mut items: Vec<String> = request.items[..request.leading]
            .iter()
            .map(|item| item.get().to_owned())
            .collect();
        for entry in entries {
            items.extend(self.items(entry, request));
        }
        let (from, to) = (request.list.start, request.list.end);
        format!("{}[{}]{}", &body[..from], items.join(","), &body[to..])
    }

    /// An entry as the items of a request: a message as the agent sent it, with results that were changed in their
    /// places, or as it was written here.
    fn items(&self, entry: &Entry, request: &Request<'_>) -> Vec<String> {
        let own = entry.origin.message();
        let own = own.and_then(|at| Some((request.turns.get(at)?, self.messages.get(at)?)));
        if let Some((turn, message)) = own {
            let items = &request.items[turn.items.clone()];
            let (old, new) = (message.content(), entry.message.content());
            if Arc::ptr_eq(message, &entry.message) || old == new {
                return items.iter().map(|item| item.get().to_owned()).collect();
            }
            if let Some(items) = results::changed(items, old, new) {
                return items;
            }
        }
        match self.api {
            Api::ChatCompletions => openai_json(&entry.message),
            Api::Responses => responses_json(&entry.message),
            Api::Messages | Api::GenerateContent => vec![anthropic_json(&entry.message)],
        }
    }

    /// The first call whose prompt shows what was done at a moment.
    pub(super) fn call_of(&self, moment: Moment) -> usize {
        match moment {
            Moment::Append(at) => self.inputs.partition_point(|input| input.messages <= at),
            Moment::Before(call) | Moment::Refused(call) => call,
            Moment::After(call) => call + 1,
        }
    }

    /// Counted tokens of the agent's own prompt.
    pub(super) fn own_size(&self) -> Size {
        let counts = &self.facts.setting.counts;
        let sizes = self.messages.iter();
        sizes.map(|it| crate::context::measure(it, counts)).sum()
    }

    /// The session that the agent saw: whole, as if nothing had been compacted. Usage says how large
    /// prompts are only as long as they were the agent's own: up to this call.
    pub(super) fn session(&self, changed: usize) -> Option<Session> {
        let mut messages = self.messages.clone();
        messages.extend(self.answer.clone());
        let changed = self
            .inputs
            .get(changed)
            .map_or(usize::MAX, |input| input.messages);
        for message in messages.iter_mut().skip(changed) {
            Arc::make_mut(message).details.usage = None;
        }
        let loaded = self.inputs.first()?.messages;
        let mut loaded = self.messages[..loaded].iter();
        let loaded = loaded.rposition(|it| it.role() == Role::Assistant);
        Session::new(SessionParts {
            id: self.id.clone(),
            system: self.facts.system.clone(),
            tools: self.facts.tools.to_vec(),
            messages,
            compactions: Vec::new(),
            model: self.model.as_deref().map(str::to_owned),
            context_window: Some(self.facts.setting.window.tokens),
            source: Source {
                format: "live".to_owned(),
                ..Source::default()
            },
            resumed: loaded.map(|last| ResumePoint {
                at: last + 1,
                notes: None,
            }),
        })
        .ok()
    }
}

/// Whose rules a context is held to.
fn rules(api: Api) -> RuleSet {
    match api {
        Api::Messages => RuleSet::Anthropic,
        Api::ChatCompletions => RuleSet::OpenAi,
        Api::Responses => RuleSet::OpenAiResponses,
        Api::GenerateContent => RuleSet::Gemini,
    }
}

/// The work of a strategy up to one call, apart from the conversation: it may take long.
pub(super) struct Job {
    facts: Facts,
    messages: Vec<Arc<Message>>,
    inputs: Vec<Input>,
    rules: RuleSet,
    slot: Arc<Mutex<Slot>>,
}

/// The result of a strategy's work at a call.
#[derive(Debug)]
pub(super) struct Done {
    /// The context; `None` where there is none to be sent.
    pub(super) entries: Option<Vec<Entry>>,
    /// Whether it is the agent's own history.
    pub(super) is_whole: bool,
    /// How prompts are sized.
    pub(super) scale: Scale,
    /// Why the strategy was left out.
    pub(super) skipped: Option<Skip>,
}

impl Done {
    fn of(state: &State, messages: usize, skipped: Option<Skip>) -> Self {
        Self {
            entries: Some(state.context().entries().to_vec()),
            is_whole: state.is_whole(messages),
            scale: state.scale(),
            skipped,
        }
    }

    /// The agent's own request is sent.
    pub(super) fn nothing(skipped: Option<Skip>) -> Self {
        Self {
            entries: None,
            is_whole: false,
            scale: Scale::COUNTED,
            skipped,
        }
    }
}

impl Job {
    /// The strategy's work at the last call, after that at all calls before it.
    pub(super) fn run(mut self) -> Done {
        let slot = self.slot.clone();
        let mut slot = lock(&slot);
        let call = self.inputs.len() - 1;
        match &slot.state {
            // The last request again.
            Some(state) if state.calls == call + 1 => {
                return Done::of(state, self.messages.len(), self.inputs[call].skipped);
            }
            // A later request was faster.
            Some(state) if state.calls > call => return Done::nothing(None),
            _ => {}
        }
        let why = match self.advance(&mut slot) {
            Ok(()) => self.inputs[call]
                .skipped
                .filter(|_| self.inputs[call].is_left_out()),
            Err(why) => {
                // Without the strategy's part at this call: its context is as it was, with the new messages.
                self.inputs[call].skipped = Some(why);
                if self.advance(&mut slot).is_err() {
                    return Done::nothing(Some(why));
                }
                Some(why)
            }
        };
        match &slot.state {
            Some(state) => Done::of(state, self.messages.len(), why),
            None => Done::nothing(why),
        }
    }

    /// Brings the state to the last call. Where that fails there is none any more.
    pub(super) fn advance(&self, slot: &mut Slot) -> Result<(), Skip> {
        let mut state = match slot.state.take() {
            Some(state) => state,
            None => State::begin(&self.facts)?,
        };
        let done = state.advance(&self.facts, &self.messages, &self.inputs, &slot.asked);
        let is_left_out = self.inputs.last().is_some_and(Input::is_left_out);
        let done = done.and_then(|()| {
            let is_broken = !is_left_out && breaks_a_rule(self.rules, &state, &self.messages);
            if is_broken {
                Err(Skip::Invalid)
            } else {
                Ok(())
            }
        });
        let new = state.asking.asked.iter().skip(slot.asked.len()).cloned();
        match done {
            Ok(()) => {
                slot.asked.extend(new);
                slot.state = Some(state);
                Ok(())
            }
            Err(why) => {
                slot.lost.extend(new.map(|(_, asked)| asked));
                Err(why)
            }
        }
    }

    /// The provider refused the last prompt: a shorter one, if there is one. `None` where the strategy could not be
    /// asked; its work comes to nothing where nobody waits for it any more.
    pub(super) fn refused(self, is_given_up: &AtomicBool) -> Option<(Done, bool)> {
        let mut slot = lock(&self.slot);
        let mut state = slot
            .state
            .take_if(|state| state.calls == self.inputs.len())?;
        let shorter = state.refused();
        let is_broken = || breaks_a_rule(self.rules, &state, &self.messages);
        let new = state.asking.asked.iter().skip(slot.asked.len()).cloned();
        match shorter {
            Ok(is_shorter) if !is_given_up.load(Ordering::SeqCst) && !is_broken() => {
                slot.asked.extend(new);
                let done = Done::of(&state, self.messages.len(), None);
                slot.state = Some(state);
                Some((done, is_shorter))
            }
            _ => {
                slot.lost.extend(new.map(|(_, asked)| asked));
                None
            }
        }
    }
}

/// Whether the provider would refuse the context, and not the agent's own messages.
fn breaks_a_rule(rules: RuleSet, state: &State, messages: &[Arc<Message>]) -> bool {
    if state.is_whole(messages.len()) {
        return false;
    }
    let refused = |entries: &[Entry]| {
        let found = validity::check(rules, entries);
        let found = found.into_iter();
        let refused = found.filter(move |it| it.rule.level(rules) == Some(Level::Rejected));
        refused.collect::<Vec<_>>()
    };
    let broken = refused(state.context().entries());
    if broken.is_empty() {
        return false;
    }
    let own: Vec<Entry> = messages
        .iter()
        .enumerate()
        .map(|(at, message)| {
            Entry::sized(
                crate::context::Origin::Verbatim(at),
                message.clone(),
                Size::default(),
            )
        })
        .collect();
    let own = refused(&own);
    broken.iter().any(|it| !own.contains(it))
}
