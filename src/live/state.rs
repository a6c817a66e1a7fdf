//! A strategy at work in one conversation: its context, and what it is told before each call.
//!
//! It takes the steps of a [`Walker`], as a replay does. They depend on the messages and the [`CallInput`]s alone: fed with
//! them again, it makes the same contexts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::asked::{AnsweredRequest, StrategyCaller};
use crate::bill::{Factor, Scale, Sizes};
use crate::context::{Context, Entry, Origin};
use crate::model::Model;
use crate::session::{Message, Role, ToolSchema};
use crate::strategy::{Situation, StrategySpec};
use crate::tokens::{CountedTexts, Size};
use crate::units::{Timestamp, Tokens, Usage};
use crate::walk::Walker;
use crate::window::Window;

/// The settings of a strategy.
#[derive(Debug)]
pub struct StrategySetting {
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
pub(super) struct FixedFacts {
    pub(super) setting: Arc<StrategySetting>,
    pub(super) lot: u64,
    pub(super) repeat: u32,
    pub(super) system: Option<Arc<str>>,
    pub(super) tools: Arc<[ToolSchema]>,
    pub(super) fixed: Size,
}

/// The inputs of one call apart from its messages: with them, all that a strategy's work depends on.
#[derive(Debug, Clone)]
pub(super) struct CallInput {
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

impl CallInput {
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
pub(super) struct StrategyState {
    walk: Walker,
    /// Answers the strategy, and keeps what it did.
    pub(super) asking: StrategyCaller,
    /// How many calls it has made.
    pub(super) calls: usize,
    /// How its prompts are sized.
    pub(super) scale: Scale,
    /// The messages of the agent's history when it was last rewritten, and how many it had sent until then.
    rewritten: (Vec<usize>, usize),
}

impl StrategyState {
    /// A strategy that has seen nothing yet.
    pub(super) fn begin(facts: &FixedFacts) -> Result<Self, Skip> {
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
            walk: Walker::new(Some(Box::new(strategy)), first, 0),
            asking: StrategyCaller::new(setting.clone(), facts.repeat),
            calls: 0,
            scale: Scale::COUNTED,
            rewritten: (Vec::new(), 0),
        })
    }

    /// Makes the calls of these inputs that are not made yet. The strategy's requests get the replies in `asked`, as far
    /// as there are any.
    pub(super) fn advance(
        &mut self,
        facts: &FixedFacts,
        messages: &[Arc<Message>],
        inputs: &[CallInput],
        asked: &[(usize, AnsweredRequest)],
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
        entries.map(|entry| entry.origin.clone()).eq(own.map(Origin::Verbatim))
    }

    /// Takes in what the next call of `inputs` brings, and lets the strategy compact.
    pub(super) fn call(
        &mut self,
        facts: &FixedFacts,
        messages: &[Arc<Message>],
        inputs: &[CallInput],
    ) -> Result<(), Skip> {
        let call = self.calls;
        let input = &inputs[call];
        self.asking.call = call;
        let before = call.checked_sub(1).map(|before| &inputs[before]);
        let mut new = before.map_or(0, |before| before.messages)..input.messages;
        let first = messages[new.clone()].first();
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
            let loaded =
                messages[new.clone()].iter().rposition(|message| message.role() == Role::Assistant);
            new.start = loaded.map_or(0, |at| at + 1);
            let loaded = (0..new.start).map(|at| entry(facts, messages, at));
            self.walk.load(loaded, &mut self.asking);
        }
        let cx = self.walk.begin(call, messages, new.clone());
        cx.scale = self.scale;
        cx.now = Some(input.at);
        self.walk.is_strategy_out = input.is_left_out();
        if let Some(rewritten) = &input.rewritten {
            self.rewritten = (rewritten.clone(), new.end);
        }
        let rewritten = input.rewritten.as_deref();
        let entries = new.map(|at| entry(facts, messages, at));
        self.walk.call(entries, rewritten, &mut self.asking)?;
        self.calls += 1;
        Ok(())
    }

    /// The provider refused the last prompt. Whether the strategy has shortened it.
    pub(super) fn refused(&mut self) -> Result<bool, Skip> {
        self.walk.refused(&mut self.asking)
    }

    /// The usage of the last call, as billed where that is known. Prompts are sized by it from now on.
    fn bill(&mut self, facts: &FixedFacts, answer: &Entry, billed: Option<Usage>) -> Usage {
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

fn entry(facts: &FixedFacts, messages: &[Arc<Message>], at: usize) -> Entry {
    let counts = &facts.setting.counts;
    Entry::new(Origin::Verbatim(at), messages[at].clone(), counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::live::played::StrategyWork;
    use crate::model::offline::Offline;
    use crate::session::{ContentBlock, JsonText, ToolClass, ToolResult, ToolUse};
    use crate::settings::SettingTable;
    use crate::strategy::trigger::Trigger;
    use crate::tokens::CharsPer4;
    use crate::walk::WalkMoment;

    fn facts(stages: &str) -> FixedFacts {
        let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
        let table = SettingTable::parse("own.toml", stages).unwrap();
        FixedFacts {
            setting: Arc::new(StrategySetting {
                spec: StrategySpec::of("own", table, &Trigger::always()).unwrap(),
                window: Window::new(Tokens(100_000)),
                sizes: Sizes::Counted,
                summariser: Arc::new(Offline::new(counts.clone())),
                counts,
            }),
            lot: 0,
            repeat: 0,
            system: None,
            tools: Arc::from([]),
            fixed: Size::default(),
        }
    }

    fn input(messages: usize, rewritten: Option<Vec<usize>>) -> CallInput {
        CallInput {
            at: Timestamp(0),
            messages,
            rewritten,
            refusals: 0,
            before: None,
            skipped: None,
        }
    }

    /// A request for a tool with its result.
    fn round(id: &str) -> [Arc<Message>; 2] {
        let asked = ToolUse {
            id: id.into(),
            name: "Read".into(),
            class: ToolClass::Read,
            input: JsonText::parse("{}").unwrap(),
        };
        let result = ToolResult {
            tool_use_id: id.into(),
            content: vec![ContentBlock::Text("line of text ".repeat(20).into())],
            is_error: false,
        };
        [
            Message::new(Role::Assistant, vec![ContentBlock::ToolUse(asked.into())]).into(),
            Message::new(Role::User, vec![ContentBlock::ToolResult(result.into())]).into(),
        ]
    }

    /// A call after each of four rounds; at the last the agent's history consists of these messages: the summary is 9.
    fn check(stages: &str, rewritten: &[usize], left: &str, stages_of_work: &[&str]) {
        let facts = facts(stages);
        let text = |text: &str| Arc::new(Message::text(Role::User, text));
        let mut messages = vec![text("Do it.")];
        for id in ["a", "b", "c", "d"] {
            messages.extend(round(id));
        }
        messages.extend([text("A summary."), text("Go on.")]);
        let mut inputs: Vec<CallInput> = (0..4).map(|call| input(2 * call + 1, None)).collect();
        inputs.push(input(11, Some(rewritten.to_vec())));
        let mut state = StrategyState::begin(&facts).unwrap();
        state.advance(&facts, &messages, &inputs, &[]).unwrap();
        assert_eq!(origins(state.context()), left, "{stages}");
        assert_eq!(state.is_whole(11), !left.contains('~'), "{stages}");
        let work: &StrategyWork = &state.asking.work[&WalkMoment::Before(4)];
        let of_work: Vec<&str> = work.applied.iter().map(|applied| &*applied.stage).collect();
        assert_eq!(of_work, stages_of_work, "{stages}");
        // It goes on from there.
        messages.extend(round("e"));
        inputs.push(input(13, None));
        state.advance(&facts, &messages, &inputs, &[]).unwrap();
        let all = origins(state.context());
        assert!(all.ends_with("10 11 12"), "{stages}: {all}");
    }

    /// The messages of a context; `~` is in front of a changed one.
    fn origins(context: &Context) -> String {
        let entries = context.entries().iter().map(|entry| match &entry.origin {
            Origin::Verbatim(at) => at.to_string(),
            Origin::Edited { message, .. } => format!("~{message}"),
            other => format!("{other:?}"),
        });
        entries.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_an_agent_rewrites_goes_and_the_rest_stays_as_the_strategy_left_it() {
        let clears = "[[stage]]\nkind = 'clear_results'\nkeep_last = 1\n";
        let anew = format!("{clears}history = 'full'\n");
        let never = "[[stage]]\nkind = 'clear_results'\nkeep_last = 9\n";
        for (stages, cleared) in [(clears, "~6"), (&anew, "~6"), (never, "6")] {
            let own: &[&str] =
                if stages == never { &["agent"] } else { &["agent", "clear_results"] };
            let left = format!("0 9 5 {cleared} 7 8 10");
            check(stages, &[0, 9, 5, 6, 7, 8, 10], &left, own);
            check(stages, &[9, 10], "9 10", &["agent"]);
            check(stages, &[0, 7, 8, 9, 10], "0 7 8 9 10", &["agent"]);
        }
    }
}
