//! One conversation through one strategy: the loop of a replay and of a running agent.
//!
//! Messages that a conversation was resumed with are loaded first. Then, for each call: the new messages are appended,
//! the strategy may compact, it shortens a prompt that is refused, and the answer is appended. A [`Walker`] keeps the
//! context and the strategy's [`Situation`]. Its [`WalkHost`] answers the strategy's requests, learns what was done, and
//! decides what a call is.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::context::{Applied, Context, Entry, Origin};
use crate::session::{Message, Role, Tag};
use crate::step::{Caller, Step, drive};
use crate::strategy::external::edits_to;
use crate::strategy::situation::Overflow;
use crate::strategy::{Compaction, Situation, Strategy, StrategyError};
use crate::tokens::Size;
use crate::units::{Tokens, Usage};

/// The stage of a patch by which an agent compacted its own history.
const AGENT: &str = "agent";

/// The owner of a walk.
pub(crate) trait WalkHost {
    /// Why a walk ends early.
    type Stop;

    /// Runs the strategy's own code on a context of this size, with a model that it may ask.
    fn run(
        &mut self,
        context: Size,
        code: impl FnOnce(&mut dyn Caller) -> Compaction,
    ) -> Compaction;

    /// Takes note of what was done. The context in `done` is empty: the walk has it, at [`WalkMoment::Append`] still
    /// without the message.
    fn done(&mut self, at: WalkMoment, done: Compaction, walk: &Walker) -> Result<(), Self::Stop>;

    /// An entry is about to be appended. The provider may leave hidden parts of the context out from now on.
    fn appending(&mut self, _context: &mut Context, _entry: &Entry) {}
}

/// A moment at which a strategy is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WalkMoment {
    /// The message of this index is appended.
    Append(usize),
    /// Before this call.
    Before(usize),
    /// This call's prompt was refused.
    Refused(usize),
    /// After this call.
    After(usize),
}

/// The context of a conversation, and the situation of its strategy.
#[derive(Debug)]
pub(crate) struct Walker {
    /// Without one the context is the whole history.
    pub(crate) strategy: Option<Box<dyn Strategy>>,
    /// The strategy is not asked for the time being, and only takes note of what comes in.
    pub(crate) is_strategy_out: bool,
    context: Context,
    /// The strategy's situation at the last call.
    pub(crate) present: Situation,
    reasoning: Reasoning,
}

impl Walker {
    /// A walk that begins in this situation, with room for so many messages.
    pub(crate) fn new(
        strategy: Option<Box<dyn Strategy>>,
        first: Situation,
        messages: usize,
    ) -> Self {
        Self {
            strategy,
            is_strategy_out: false,
            context: Context::with_capacity(messages),
            present: first,
            reasoning: Reasoning::default(),
        }
    }

    /// The messages as they are sent.
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Tokens of the prompt that would be sent now, as billed.
    pub(crate) fn prompt(&self) -> Tokens {
        self.present.prompt(&self.context)
    }

    /// The messages that a conversation was resumed with: no write-time stage sees them.
    pub(crate) fn load(&mut self, entries: impl Iterator<Item = Entry>, host: &mut impl WalkHost) {
        for entry in entries {
            self.present.turn += usize::from(entry.message.has_tag(Tag::TypedUser));
            self.add(entry, host);
        }
        if let Some(strategy) = &mut self.strategy {
            strategy.on_load(self.context.entries());
        }
    }

    /// A call begins, with these new messages of the conversation. Returns its situation, for the host to complete.
    pub(crate) fn begin(
        &mut self,
        call: usize,
        messages: &[Arc<Message>],
        new: Range<usize>,
    ) -> &mut Situation {
        let place = new.start.checked_sub(1);
        let since_answer = &messages[place.unwrap_or(0)..new.end];
        let last = place.map(|place| &messages[place]);
        let arrived = messages[new].iter();
        let tagged = arrived.clone().map(|message| message.has_tag(Tag::TypedUser));
        let typed: usize = tagged.map(usize::from).sum();
        let cx = &mut self.present;
        cx.call = call;
        cx.turn += typed;
        cx.has_typed = typed > 0;
        // The request was sent when the newest of them was there.
        cx.now = arrived.filter_map(|message| message.details.timestamp).max();
        cx.past_reasoning = self.reasoning.past;
        if let Some(last) = last.filter(|last| call == 0 || last.role() == Role::Assistant) {
            cx.last_answer = last.details.timestamp;
        }
        let mut since = since_answer.iter();
        cx.phase_ended = since.any(|message| message.has_tag(Tag::PhaseEnd));
        let mut hints = since_answer.iter().rev();
        cx.compact_hint = hints.find_map(|message| message.details.compact_hint.clone());
        cx.tool_requests = last.map_or_else(Vec::new, |last| tools_of(last));
        cx.overflow = None;
        cx
    }

    /// Appends the new messages of the call that has begun, and lets the strategy compact. Where the agent has rewritten
    /// its history, `rewritten` has the messages that it consists of now, as [`rewrite`](Self::rewrite) takes them.
    pub(crate) fn call<H: WalkHost>(
        &mut self,
        new: impl Iterator<Item = Entry>,
        rewritten: Option<&[usize]>,
        host: &mut H,
    ) -> Result<(), H::Stop> {
        for entry in new {
            self.append(entry, host)?;
        }
        if let Some(messages) = rewritten {
            self.rewrite(messages, host)?;
        }
        self.present.past_reasoning = self.reasoning.past;
        self.ask(WalkMoment::Before(self.present.call), host)
    }

    /// The provider refused the prompt as too long. Returns whether the strategy has shortened it: a recovery that frees
    /// nothing would go on for ever.
    pub(crate) fn refused<H: WalkHost>(&mut self, host: &mut H) -> Result<bool, H::Stop> {
        let prompt = self.prompt();
        let before = self.present.overflow;
        let attempt = before.map_or(0, |before| before.attempt + 1);
        self.present.overflow = Some(Overflow { prompt, attempt });
        self.ask(WalkMoment::Refused(self.present.call), host)?;
        Ok(self.prompt() < prompt)
    }

    /// The call was answered, at this cost.
    pub(crate) fn answered<H: WalkHost>(
        &mut self,
        answer: Entry,
        usage: Usage,
        host: &mut H,
    ) -> Result<(), H::Stop> {
        self.present.overflow = None;
        self.present.last_usage = Some(usage);
        self.present.tool_requests = tools_of(&answer.message);
        self.append(answer, host)?;
        self.present.appended = Size::default();
        self.present.last_messages = self.context.size();
        self.ask(WalkMoment::After(self.present.call), host)
    }

    /// The agent has compacted its own history: it consists of these messages now, in this order, each an index among all
    /// that it ever sent. Entries that represent one of them stay as the strategy left them; the others go.
    fn rewrite<H: WalkHost>(&mut self, messages: &[usize], host: &mut H) -> Result<(), H::Stop> {
        let before = self.context.entries();
        let after = remaining(before, messages);
        let reason = format!("messages before: {}, after: {}", before.len(), after.len());
        let edits = edits_to(before, after);
        if let Some(strategy) = &mut self.strategy {
            strategy.on_rewrite(messages);
        }
        let mut done = Compaction::unchanged(Context::default());
        let applied = self.context.apply(edits);
        match applied {
            Ok(change) if change.edits.is_empty() => {}
            Ok(change) => done.applied.push(Applied {
                call: self.present.call,
                stage: AGENT.into(),
                reason,
                change,
                is_still_over: false,
                prepared_at: None,
            }),
            Err(source) => {
                let stage = AGENT.into();
                done.outcome = Err(StrategyError::ImpossiblePatch { stage, source });
            }
        }
        self.reasoning = Reasoning::of(self.context.entries());
        host.done(WalkMoment::Before(self.present.call), done, self)
    }

    fn append<H: WalkHost>(&mut self, mut entry: Entry, host: &mut H) -> Result<(), H::Stop> {
        match &mut self.strategy {
            None => {}
            Some(strategy) if self.is_strategy_out => {
                strategy.on_load(std::slice::from_ref(&entry));
            }
            Some(strategy) => {
                let moment = WalkMoment::Append(entry.origin.message().unwrap_or_default());
                let mut single = Context::default();
                single.append(entry.clone());
                let mut done = work(&mut **strategy, moment, single, &self.present, host);
                let written = std::mem::take(&mut done.context).into_entries().pop();
                host.done(moment, done, self)?;
                entry = written.unwrap_or(entry);
            }
        }
        self.add(entry, host);
        Ok(())
    }

    fn add(&mut self, entry: Entry, host: &mut impl WalkHost) {
        host.appending(&mut self.context, &entry);
        self.present.appended += entry.size();
        self.reasoning.add(&entry);
        self.context.append(entry);
    }

    fn ask<H: WalkHost>(&mut self, moment: WalkMoment, host: &mut H) -> Result<(), H::Stop> {
        let Some(strategy) = self.strategy.as_mut().filter(|_| !self.is_strategy_out) else {
            return Ok(());
        };
        let context = std::mem::take(&mut self.context);
        let mut done = work(&mut **strategy, moment, context, &self.present, host);
        self.context = std::mem::take(&mut done.context);
        if !done.applied.is_empty() && self.reasoning != Reasoning::default() {
            self.reasoning = Reasoning::of(self.context.entries());
        }
        host.done(moment, done, self)
    }
}

/// The work of a strategy on a context at a moment.
fn work(
    strategy: &mut dyn Strategy,
    moment: WalkMoment,
    context: Context,
    cx: &Situation,
    host: &mut impl WalkHost,
) -> Compaction {
    host.run(context.size(), |caller| {
        let step = match moment {
            WalkMoment::Append(_) => Step::Done(strategy.on_append(context, cx)),
            WalkMoment::Before(_) => strategy.before_call(context, cx),
            WalkMoment::Refused(_) => strategy.on_overflow(context, cx),
            WalkMoment::After(_) => strategy.after_call(context, cx),
        };
        drive(step, caller)
    })
}

/// The entries that represent any of these messages, in the order of the messages. An entry that represents none goes
/// with the one in front of it.
fn remaining(entries: &[Entry], messages: &[usize]) -> Vec<Entry> {
    let places: BTreeMap<usize, usize> =
        messages.iter().enumerate().map(|(place, at)| (*at, place)).collect();
    let mut placed: Vec<(usize, &Entry)> = Vec::new();
    let mut in_front = None;
    for entry in entries {
        if entry.origin != Origin::Authored {
            let own = entry.origin.message().map(|at| at..at + 1);
            let represented = entry.origin.replaced().iter().cloned().chain(own);
            let remaining = represented.flat_map(|range| places.range(range));
            in_front = remaining.map(|(_, place)| *place).min();
        }
        placed.extend(in_front.map(|place| (place, entry)));
    }
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, entry)| entry.clone()).collect()
}

/// Reasoning tokens of the answers in a context, as they were billed.
#[derive(Debug, Default, PartialEq)]
struct Reasoning {
    /// Of those before the last message that a person typed.
    past: Tokens,
    /// Of those after it.
    of_turn: Tokens,
}

impl Reasoning {
    fn of(entries: &[Entry]) -> Self {
        let mut reasoning = Self::default();
        for entry in entries {
            reasoning.add(entry);
        }
        reasoning
    }

    fn add(&mut self, entry: &Entry) {
        if entry.message.has_tag(Tag::TypedUser) {
            self.past += std::mem::take(&mut self.of_turn);
        }
        self.of_turn += entry.message.details.reasoning;
    }
}

/// Names of the tools that a response asks for.
fn tools_of(response: &Message) -> Vec<Arc<str>> {
    response.tool_uses().map(|(_, tool)| tool.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::{CharsPer4, CountedTexts};

    #[test]
    fn a_summary_remains_while_one_of_its_messages_does_and_takes_along_what_follows_it() {
        let counts = CountedTexts::new(Arc::new(CharsPer4));
        let message = Arc::new(Message::text(Role::User, "text"));
        let origins = [
            Origin::Authored,
            Origin::Derived([1..2, 2..4].into()),
            Origin::Authored,
            Origin::Verbatim(4),
            Origin::Authored,
            Origin::Restored(2),
        ];
        let entries = origins.map(|origin| Entry::new(origin, message.clone(), &counts));
        let check = |messages: &[usize], left: &[usize]| {
            let left: Vec<Entry> = left.iter().map(|at| entries[*at].clone()).collect();
            assert_eq!(remaining(&entries, messages), left, "{messages:?}");
        };
        check(&[0, 1, 2, 3, 4], &[1, 2, 5, 3, 4]);
        check(&[3], &[1, 2]);
        check(&[4, 2], &[3, 4, 1, 2, 5]);
        check(&[0, 5], &[]);
    }
}
