//! One conversation of an agent under one strategy.

use std::sync::Arc;

use super::asked::Asked;
use super::state::{Facts, Input, Moment, Setting, Skip, State};
use crate::context::Entry;
use crate::context::validity::{self, Level};
use crate::session::import::Look;
use crate::session::import::request::{Request, Turn};
use crate::session::wire::stream::Api;
use crate::session::wire::{
    RuleSet, anthropic_json, openai::openai_json, responses::responses_json,
};
use crate::session::{Message, ResumePoint, Role, Session, SessionParts, Source, Tag};
use crate::tokens::Size;
use crate::units::{ContentHash, Timestamp};

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
    pub(super) asked: Vec<(usize, Asked)>,
    pub(super) state: Option<State>,
}

/// How a request goes on with a conversation; the later the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Follows {
    /// It begins as the conversation did up to the end of this many calls, and goes on otherwise.
    Branches(usize),
    /// It is the last request again.
    Repeats,
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
            asked: Vec::new(),
            state: None,
        }
    }

    /// Its first calls, as a conversation of its own.
    pub(super) fn branch(&self, id: String, calls: usize) -> Self {
        let inputs = self.inputs[..calls].to_vec();
        let messages = inputs.last().map_or(0, |input| input.messages);
        let asked = self.asked.iter().filter(|(call, _)| *call < calls);
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
            asked: asked.cloned().collect(),
            state: None,
        }
    }

    /// How these messages go on with it, and how many of them it has.
    pub(super) fn follows(&self, turns: &[Turn]) -> Option<(usize, Follows)> {
        let pairs = self.looks.iter().zip(turns);
        let same = pairs
            .take_while(|(own, turn)| own.is_like(&turn.look))
            .count();
        if same == self.looks.len() {
            let follows = if same == turns.len() {
                Follows::Repeats
            } else {
                Follows::GoesOn
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
            message.timestamp = match answered {
                Some((time, usage)) if is_answer => {
                    message.usage = usage;
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
            refusals: 0,
            skipped: None,
            answered: None,
        });
    }

    /// Takes the strategy out to work at the last call.
    pub(super) fn work(&mut self) -> Job {
        let state = self.state.take();
        let asked = state.as_ref().map_or(&*self.asked, |_| &[]);
        Job {
            facts: self.facts.clone(),
            messages: self.messages.clone(),
            inputs: self.inputs.clone(),
            asked: asked.to_vec(),
            state,
            rules: rules(self.api),
        }
    }

    /// Puts it back.
    pub(super) fn put_back(&mut self, state: State) {
        let known = self.asked.len().min(state.asked.len());
        self.asked.extend_from_slice(&state.asked[known..]);
        self.state = Some(state);
    }

    /// The body of a request with the context that is kept here.
    pub(super) fn body(&self, request: &Request<'_>, body: &str) -> Option<String> {
        let context = &self.state.as_ref()?.context;
        let mut items: Vec<String> = request.items[..request.leading]
            .iter()
            .map(|item| item.get().to_owned())
            .collect();
        for entry in context.entries() {
            items.extend(self.items(entry, request));
        }
        let (from, to) = (request.list.start, request.list.end);
        Some(format!(
            "{}[{}]{}",
            &body[..from],
            items.join(","),
            &body[to..]
        ))
    }

    /// An entry as the items of a request: a message as the agent sent it, or as it was written here.
    fn items(&self, entry: &Entry, request: &Request<'_>) -> Vec<String> {
        let own = entry.origin.message();
        let own = own.and_then(|at| Some((request.turns.get(at)?, self.messages.get(at)?)));
        if let Some((turn, message)) = own
            && (Arc::ptr_eq(message, &entry.message)
                || message.content() == entry.message.content())
        {
            let items = &request.items[turn.items.clone()];
            return items.iter().map(|item| item.get().to_owned()).collect();
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
            Moment::Before(call) | Moment::Refused(call, _) => call,
            Moment::After(call) => call + 1,
        }
    }

    /// Counted tokens of the agent's own prompt.
    pub(super) fn own_size(&self) -> Size {
        let counts = &self.facts.setting.counts;
        let sizes = self.messages.iter();
        sizes.map(|it| crate::context::measure(it, counts)).sum()
    }

    /// The session that the agent saw: whole, as if nothing had been compacted. What was billed says how large
    /// prompts are only as long as they were the agent's own: up to this call.
    pub(super) fn session(&self, changed: usize) -> Option<Session> {
        let mut messages = self.messages.clone();
        messages.extend(self.answer.clone());
        let changed = self
            .inputs
            .get(changed)
            .map_or(usize::MAX, |input| input.messages);
        for message in messages.iter_mut().skip(changed) {
            Arc::make_mut(message).usage = None;
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

/// The work of a strategy at one call, apart from the conversation: it may take long.
pub(super) struct Job {
    facts: Facts,
    messages: Vec<Arc<Message>>,
    inputs: Vec<Input>,
    asked: Vec<(usize, Asked)>,
    state: Option<State>,
    rules: RuleSet,
}

impl Job {
    /// The strategy after the last call's work.
    pub(super) fn run(self) -> Result<State, Skip> {
        let before = self.inputs.len() - 1;
        let state = match self.state {
            Some(state) if state.calls == before => Ok(state),
            _ => State::again(
                &self.facts,
                &self.messages,
                &self.inputs[..before],
                &self.asked,
            ),
        };
        let mut state = state?;
        state.call(&self.facts, &self.messages, &self.inputs)?;
        if breaks_a_rule(self.rules, &state, &self.messages) {
            return Err(Skip::Invalid);
        }
        Ok(state)
    }

    /// The same after the provider refused the last prompt; whether there is a shorter one to send.
    pub(super) fn refused(self) -> Result<(State, bool), Skip> {
        let mut state = match self.state {
            Some(state) => state,
            None => State::again(&self.facts, &self.messages, &self.inputs, &self.asked)?,
        };
        let is_shorter = state.refused(&self.facts)?;
        if breaks_a_rule(self.rules, &state, &self.messages) {
            return Err(Skip::Invalid);
        }
        Ok((state, is_shorter))
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
    let broken = refused(state.context.entries());
    if broken.is_empty() {
        return false;
    }
    let own: Vec<Entry> = messages
        .iter()
        .enumerate()
        .map(|(at, message)| Entry {
            origin: crate::context::Origin::Verbatim(at),
            message: message.clone(),
            size: Size::default(),
        })
        .collect();
    let own = refused(&own);
    broken.iter().any(|it| !own.contains(it))
}
