//! A strategy at work in one conversation: its context, and what it is told before each call.
//!
//! It takes the steps of a [`Walk`], as a replay does. They depend on the messages and the [`Input`]s alone: fed with
//! them again, it makes the same contexts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::asked::{Asked, Asking};
use crate::bill::{Factor, Scale, Sizes};
use crate::context::{Context, Entry, Origin};
use crate::model::Model;
use crate::session::{Message, Role, ToolSchema};
use crate::strategy::{Situation, StrategySpec};
use crate::tokens::{CountedTexts, Size};
use crate::units::{Timestamp, Tokens, Usage};
use crate::walk::Walk;
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
    /// Where the agent compacted its history by itself: the messages that it consists of from this call on, each an index
    /// among all that it ever sent.
    pub rewritten: Option<Vec<usize>>,
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

/// A context with the strategy that keeps it.
#[derive(Debug)]
pub(super) struct State {
    walk: Walk,
    /// Answers the strategy, and keeps what it did.
    pub(super) asking: Asking,
    /// How many messages it has taken in, and calls.
    taken: usize,
    pub(super) calls: usize,
    /// How its prompts are sized.
    pub(super) scale: Scale,
    /// The messages of the agent's history when it was last rewritten, and how many it had sent until then.
    rewritten: (Vec<usize>, usize),
}

impl State {
    /// A strategy that has seen nothing yet.
    pub(super) fn begin(facts: &Facts) -> Result<Self, Skip> {
        let setting = &facts.setting;
        let strategy = setting.spec.build().map_err(|_| Skip::Failed)?;
        let first = Situation {
            lot: facts.lot,
            system: facts.system.clone(),
            tools: facts.tools.clone(),
            fixed: facts.fixed,
            ..Situation::first(setting.window, setting.counts.clone())
        };
        Ok(Self {
            walk: Walk::new(Some(Box::new(strategy)), first, 0),
            asking: Asking::new(setting.clone(), facts.repeat),
            taken: 0,
            calls: 0,
            scale: Scale::COUNTED,
            rewritten: (Vec::new(), 0),
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
            self.asking.given = of_call.map(|(_, (_, reply))| reply.clone()).collect();
            self.call(facts, messages, inputs)?;
            for _ in 0..input.refusals {
                self.refused()?;
            }
            self.asking.given.clear();
        }
        Ok(())
    }

    /// The context as it is sent.
    pub(super) fn context(&self) -> &Context {
        self.walk.context()
    }

    /// Whether the context is the agent's own history, unchanged, when it has sent so many messages in all.
    pub(super) fn is_whole(&self, messages: usize) -> bool {
        let (rewritten, sent) = &self.rewritten;
        let own = rewritten.iter().copied().chain(*sent..messages);
        let entries = self.context().entries().iter();
        entries
            .map(|it| it.origin.clone())
            .eq(own.map(Origin::Verbatim))
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
        let end = input.messages.min(messages.len());
        let mut new = self.taken..end;
        self.asking.call = call;
        let first = messages[new.clone()].first();
        let before = call.checked_sub(1).map(|before| &inputs[before]);
        if let (Some(before), Some(answer)) = (before, first)
            && answer.role() == Role::Assistant
        {
            // A call at which the strategy is left out begins with the answer before it.
            self.walk.is_strategy_out = input.is_left_out() || before.is_left_out();
            let answer = entry(facts, messages, new.start);
            let known = input.before.and_then(|(_, usage)| usage);
            let billed = known.filter(|_| before.skipped.is_none());
            let usage = self.bill(facts, &answer, billed);
            self.walk.answered(answer, usage, &mut self.asking)?;
            new.start += 1;
        } else if call == 0 {
            // The client goes on with a conversation.
            let mut loaded = messages[new.clone()].iter();
            let loaded = loaded.rposition(|it| it.role() == Role::Assistant);
            new.start = loaded.map_or(0, |at| at + 1);
            let loaded = (0..new.start).map(|at| entry(facts, messages, at));
            self.walk.load(loaded, &mut self.asking);
        }
        let cx = self.walk.begin(call, messages, new.clone());
        cx.scale = self.scale;
        cx.now = Some(input.at);
        self.walk.is_strategy_out = input.is_left_out();
        if let Some(rewritten) = &input.rewritten {
            self.rewritten = (rewritten.clone(), end);
        }
        let rewritten = input.rewritten.as_deref();
        let new = new.map(|at| entry(facts, messages, at));
        self.walk.call(new, rewritten, &mut self.asking)?;
        (self.taken, self.calls) = (end, call + 1);
        Ok(())
    }

    /// The provider refused the last prompt. Whether the strategy has shortened it.
    pub(super) fn refused(&mut self) -> Result<bool, Skip> {
        self.walk.refused(&mut self.asking)
    }

    /// The usage of the last call, as billed where that is known. Prompts are sized by it from now on.
    fn bill(&mut self, facts: &Facts, answer: &Entry, billed: Option<Usage>) -> Usage {
        let prompt = facts.fixed + self.context().size();
        let counted = Usage::uncached(self.scale.prompt(prompt), self.scale.text(answer.size()));
        if let (Some(billed), Sizes::Billed) = (billed, facts.setting.sizes)
            && let Some(factor) = Factor::of(billed.prompt(), prompt.tokens)
            && billed.prompt() > Tokens::ZERO
        {
            self.scale.factor = factor;
        }
        billed.unwrap_or(counted)
    }
}

fn entry(facts: &Facts, messages: &[Arc<Message>], at: usize) -> Entry {
    let counts = &facts.setting.counts;
    Entry::new(Origin::Verbatim(at), messages[at].clone(), counts)
}
