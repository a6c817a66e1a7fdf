//! A session that grows request by request.

use super::super::kept_context;
use super::super::prelude::*;
use super::agent::Agent;
use super::said::{holds_answer, is_summary, summary_in, written};
use super::{FOR_SUMMARY, Logged, ToldCompaction};
use proctor_sessions::units::{ApiCallId, ContentHash};
use proctor_sessions::wire::Look;

/// A session that grows request by request.
pub(super) struct Thread {
    /// Its number in the order of beginning.
    pub(super) name: usize,
    pub(super) session: Session,
    /// The last request with its answer.
    context: Vec<Seen>,
    /// A look for each message of the history.
    history: Vec<Look>,
    /// Where in the history a look was first seen.
    places: BTreeMap<ContentHash, usize>,
    shapes: BTreeMap<ContentHash, usize>,
    calls: BTreeSet<ApiCallId>,
    /// The billed messages of the history, each with the size of its prompt.
    prompts: Vec<(usize, Tokens)>,
    pub(super) agent: Agent,
    /// How many requests it was made of.
    requests: usize,
    pub(super) is_answered: bool,
    /// It was sent, and the response was not an answer.
    pub(super) is_failed: bool,
    /// A compaction was told of before all that is recorded.
    was_told: bool,
}

/// A message of a context.
#[derive(Clone, Copy)]
struct Seen {
    look: Look,
    /// An answer may look otherwise when it is sent back: without its thoughts, trimmed.
    is_answer: bool,
}

impl Thread {
    pub(super) fn new(name: usize, mut one: Logged) -> Self {
        let is_answered = one.answer().is_some();
        let was_told = one.count_told();
        let mut thread = Self {
            name,
            was_told,
            is_failed: one.is_answered && !is_answered,
            agent: Agent::of(&one.session, one.cache_key),
            session: one.session,
            context: Vec::new(),
            history: Vec::new(),
            places: BTreeMap::new(),
            shapes: BTreeMap::new(),
            calls: BTreeSet::new(),
            prompts: Vec::new(),
            requests: 1,
            is_answered,
        };
        let messages = thread.session.parts().messages.clone();
        for (at, message) in messages.iter().enumerate() {
            thread.remember(message, is_answered && at + 1 == messages.len());
        }
        thread
    }

    /// Takes note of the next message of the history.
    fn remember(&mut self, message: &Message, is_answer: bool) {
        let look = Look::of(message);
        let at = self.history.len();
        self.places.entry(look.whole).or_insert(at);
        self.shapes.entry(look.shape).or_insert(at);
        self.history.push(look);
        self.context.push(Seen { look, is_answer });
        self.calls.extend(message.details.api_call.clone());
        let usage = message.details.usage;
        self.prompts
            .extend(usage.map(|usage| (at, Tokens(usage.prompt().0))));
    }

    pub(super) fn ends_with(&self, response: &str) -> bool {
        let last = self.session.parts().messages.last();
        let call = last.and_then(|message| message.details.api_call.as_ref());
        call.is_some_and(|call| &*call.0 == response)
    }

    /// Whether a request begins with the whole conversation.
    pub(super) fn is_begun_by(&self, looks: &[Look]) -> bool {
        let mut pairs = self.context.iter().zip(looks);
        self.is_answered
            && self.context.len() <= looks.len()
            && pairs.all(|(seen, look)| {
                seen.look == *look || seen.is_answer && seen.look.shape == look.shape
            })
    }

    /// The length of the last request with its answer.
    pub(super) fn length(&self) -> usize {
        self.context.len()
    }

    /// Takes note of how the answers look that were sent back.
    pub(super) fn recognise(&mut self, looks: &[Look]) {
        for (seen, look) in self.context.iter_mut().zip(looks) {
            if seen.is_answer
                && let Some(at) = self.places.get(&seen.look.whole).copied()
            {
                self.places.insert(look.whole, at);
                self.history[at] = *look;
            }
            *seen = Seen {
                look: *look,
                is_answer: false,
            };
        }
    }

    /// Whether the last request was this one.
    pub(super) fn was_asked(&self, looks: &[Look]) -> bool {
        let mut pairs = self.context.iter().zip(looks);
        self.is_answered
            && self.context.len() == looks.len() + 1
            && pairs.all(|(seen, look)| seen.look == *look)
    }

    /// Whether it begins with all that the other was asked, the last message perhaps with more behind it.
    pub(super) fn asks_what(&self, other: &Self) -> bool {
        let (own, asked) = (
            &self.session.parts().messages,
            &other.session.parts().messages,
        );
        let Some((last, before)) = asked.split_last() else {
            return true;
        };
        let is_last = |it: &Arc<Message>| {
            it.role() == last.role() && it.content().starts_with(last.content())
        };
        let before = &other.history[..before.len()];
        self.history.starts_with(before) && own.get(before.len()).is_some_and(is_last)
    }

    /// Whether a request asks the last question again with more behind it, as if it had not been
    /// answered: an agent that waits for a call leaves out an answer without one.
    pub(super) fn was_not_answered(&self, asked: &[Arc<Message>], looks: &[Look]) -> bool {
        let messages = &self.session.parts().messages;
        let (Some((last, before)), [.., question, answer]) = (asked.split_last(), &messages[..])
        else {
            return false;
        };
        let at = messages.len() - 2;
        let mut pairs = self.context.iter().zip(&looks[..before.len()]);
        let compactions = &self.session.parts().compactions;
        self.is_answered
            && self.context.len() == looks.len() + 1
            && self.context[before.len()].look == self.history[at]
            && compactions.last().is_none_or(|last| last.at <= at)
            && answer.tool_uses().next().is_none()
            && pairs.all(|(seen, look)| seen.look == *look)
            && last.role() == question.role()
            && last.content().starts_with(question.content())
    }

    /// Adds a request that asks the last question again; its first answer is left out.
    pub(super) fn ask_anew(&mut self, one: Logged) {
        self.truncate(self.session.parts().messages.len() - 2);
        self.context.truncate(self.context.len() - 2);
        let source = &mut self.session.parts_mut().source;
        source.skip("answer that the agent left out");
        let known = self.context.len();
        self.grow(one, known);
    }

    /// Drops the messages of the history from `at` on.
    fn truncate(&mut self, at: usize) {
        self.session.parts_mut().messages.truncate(at);
        self.history.truncate(at);
        self.prompts.retain(|(place, _)| *place < at);
        for map in [&mut self.places, &mut self.shapes] {
            map.retain(|_, place| *place < at);
        }
    }

    /// The answer of a session of one request.
    pub(super) fn only_answer(&self) -> Option<&Message> {
        let is_only = self.is_answered && self.requests == 1;
        let messages = &self.session.parts().messages;
        messages.last().filter(|_| is_only).map(|it| &**it)
    }

    /// Adds a request, of which the first `known` messages are not new, and its answer.
    pub(super) fn grow(&mut self, one: Logged, known: usize) {
        let told = one.compaction;
        let at = self.session.parts().messages.len();
        let parts = one.session.into_parts();
        let own = self.session.parts_mut();
        let source = &mut own.source;
        if parts.system.is_some() && parts.system != own.system {
            source.warn("the system prompt changed; the first one stands");
        }
        add_counts(source, parts.source);
        let earlier = self.session.parts().compactions.len();
        self.provider_compacted(parts.compactions, known);
        self.told(told, at, earlier);
        self.add(parts.messages.into_iter().skip(known).collect());
    }

    /// Adds the compaction in front of `at`, before a call that shows none itself; of those that are shown, `earlier`
    /// are of calls before.
    fn told(&mut self, told: Option<ToldCompaction>, at: usize, earlier: usize) {
        let Some(told) = told else { return };
        let pre_tokens = self.prompts.last().map(|(_, prompt)| *prompt);
        let compactions = &mut self.session.parts_mut().compactions;
        if !told.is_dated && (self.was_told || !compactions.is_empty()) {
            // It may be said again at each later call.
            if let Some(shown) = compactions.last_mut() {
                shown.trigger = shown.trigger.take().or(told.trigger);
            }
            return;
        }
        let mut before = compactions[..earlier].iter_mut();
        match before.next_back() {
            Some(shown) if shown.at == at => {
                shown.trigger = shown.trigger.take().or(told.trigger);
            }
            _ => compactions.insert(
                earlier,
                RecordedCompaction {
                    at,
                    trigger: told.trigger,
                    pre_tokens,
                    after: CompactedTo::Missing,
                },
            ),
        }
    }

    /// Adds a compaction after the last call.
    fn client_compacted(&mut self, trigger: Option<Arc<str>>, after: CompactedTo) {
        let parts = self.session.parts_mut();
        let last = self.prompts.last();
        parts.compactions.push(RecordedCompaction {
            at: parts.messages.len(),
            trigger,
            pre_tokens: last.map(|(_, prompt)| *prompt),
            after,
        });
    }

    /// Adds compactions of the provider's in a request, of which the first `known` messages are
    /// not new.
    fn provider_compacted(&mut self, found: Vec<RecordedCompaction>, known: usize) {
        let history = self.session.parts().messages.len();
        for mut one in found.into_iter().filter(|one| one.at >= known) {
            one.at = one.at - known + history;
            if let CompactedTo::Replaced(pieces) = &one.after {
                let is_written = |piece: &Recorded| matches!(piece, Recorded::Written(_));
                // Where the client compacted as well, places in a request are none in the history.
                if known != history && !pieces.iter().all(is_written) {
                    one.after = CompactedTo::Missing;
                } else if self.is_context(pieces, one.at) {
                    continue;
                }
            }
            self.session.parts_mut().compactions.push(one);
        }
    }

    /// Whether these pieces are the context before message `at`.
    fn is_context(&self, left: &[Recorded], at: usize) -> bool {
        let context = kept_context::context(&self.session.parts().compactions, at);
        context.is_some_and(|context| {
            kept_context::joined(context) == kept_context::joined(left.to_vec())
        })
    }

    /// Adds the messages that a request brought, and its answer.
    fn add(&mut self, messages: Vec<Arc<Message>>) {
        self.requests += 1;
        let last = messages.len().saturating_sub(1);
        for (at, mut message) in messages.into_iter().enumerate() {
            let is_known = |call: &ApiCallId| self.calls.contains(call);
            if message.details.api_call.as_ref().is_some_and(is_known) {
                Arc::make_mut(&mut message).details.api_call = None;
            }
            self.remember(&message, at == last);
            self.session.parts_mut().messages.push(message);
        }
    }

    /// How many messages of the history a request keeps; none if it has nothing to do with this
    /// session.
    pub(super) fn kept(
        &self,
        agent: &Agent,
        asked: &[Arc<Message>],
        looks: &[Look],
        answers: &[Arc<str>],
    ) -> Option<usize> {
        if !self.is_answered || !self.agent.is_like(agent) {
            return None;
        }
        let begun = self.history.iter().zip(looks);
        let begun = begun.take_while(|(own, look)| own == look).count();
        // A key may be an application's: then two agents share it, and short words of the user's.
        let is_certain = self.agent.system == agent.system;
        let found = looks[begun..].iter().filter_map(|look| self.place(look));
        let found = found.filter(|(at, _)| is_certain || self.calls_a_tool(*at));
        let found = found.count();
        let mut rest = asked[begun..].iter();
        let is_summed_up = rest.any(|it| is_summary(it) || holds_answer(it, answers));
        (found > 0 || is_summed_up).then_some(begun + found)
    }

    /// Whether a message of the history has a tool use, or a result.
    fn calls_a_tool(&self, at: usize) -> bool {
        let message = self.session.parts().messages.get(at);
        let mut blocks = message.into_iter().flat_map(|it| it.content());
        blocks.any(|it| it.is_use() || it.is_result())
    }

    /// The message of the history that looks so, and whether its texts are the same too.
    pub(super) fn place(&self, look: &Look) -> Option<(usize, bool)> {
        let whole = self.places.get(&look.whole).map(|at| (*at, true));
        whole.or_else(|| {
            let at = *self.shapes.get(&look.shape)?;
            // Only the ids of tool uses distinguish two messages of one shape.
            self.calls_a_tool(at).then_some((at, false))
        })
    }

    /// Adds a request that shows what a compaction left; these summaries were asked for apart.
    pub(super) fn compact(
        &mut self,
        one: Logged,
        looks: &[Look],
        answers: &[Arc<str>],
        asked: &[Arc<str>],
    ) {
        for _ in asked {
            self.session.parts_mut().source.skip(FOR_SUMMARY);
        }
        let mut parts = one.session.into_parts();
        let answer = parts.messages.pop();
        self.drop_request_for_summary(&parts.messages, looks);
        let at = self.session.parts().messages.len();
        let places: Vec<Option<(usize, bool)>> = looks.iter().map(|it| self.place(it)).collect();
        let found = places.iter().enumerate();
        let last_found = found
            .filter_map(|(index, it)| Some((index, it.as_ref()?.0)))
            .next_back();
        let ends_whole = last_found.is_some_and(|(_, place)| place + 1 == at);
        let is_behind = |index: usize| last_found.is_none_or(|(last, _)| index > last);
        let last = parts.messages.split_last();
        let is_last_new = last.is_some_and(|(last, front)| {
            !is_summary(last) && front.iter().any(|it| is_summary(it))
        });
        let follows_summary = |index: usize| is_last_new && index + 1 == looks.len();
        let mut left = Vec::new();
        let mut added = Vec::new();
        let (of_answer, known): (Vec<_>, Vec<_>) = parts
            .compactions
            .into_iter()
            .partition(|one| one.at >= looks.len());
        for (index, message) in parts.messages.into_iter().enumerate() {
            // The provider does not send on what it summed up.
            for one in known.iter().filter(|one| one.at == index) {
                if let CompactedTo::Replaced(pieces) = &one.after {
                    left.clone_from(pieces);
                }
            }
            match places[index] {
                Some((place, true)) => Recorded::keep(place, &mut left),
                Some((place, false)) => left.push(self.edited(place, message)),
                None if is_behind(index)
                    && (ends_whole || follows_summary(index) || self.answers_last(&message)) =>
                {
                    added.push(message);
                }
                None => left.push(written(&message, answers, asked)),
            }
        }
        if !self.is_context(&left, at) {
            self.client_compacted(None, CompactedTo::Replaced(left));
        }
        let own = self.session.parts();
        let (at, earlier) = (own.messages.len(), own.compactions.len());
        self.told(one.compaction, at, earlier);
        add_counts(&mut self.session.parts_mut().source, parts.source);
        let kept = looks.len() - added.len();
        let seen = |look: &Look| Seen {
            look: *look,
            is_answer: false,
        };
        self.context = looks[..kept].iter().map(seen).collect();
        self.provider_compacted(of_answer, kept);
        added.extend(answer);
        self.add(added);
    }

    /// Removes a request for a summary, and its answer, from the history. If it was asked for in
    /// the middle of a turn, the tool results in front of the request stay.
    fn drop_request_for_summary(&mut self, sent: &[Arc<Message>], looks: &[Look]) {
        let parts = self.session.parts_mut();
        let [.., question, answer] = &parts.messages[..] else {
            return;
        };
        let at = parts.messages.len() - 2;
        let summary = summary_in(answer);
        let is_summary = answer.tool_uses().next().is_none()
            && sent.iter().any(|it| holds_answer(it, summary.as_slice()));
        let whole = Look::of(answer).whole;
        let is_sent_back = looks.iter().any(|look| look.whole == whole);
        let is_since = parts.compactions.last().is_none_or(|last| last.at <= at);
        let content = question.content();
        let results = content.iter().take_while(|block| block.is_result()).count();
        let is_question = question.role() == Role::User && results < content.len();
        if !(is_question && is_summary && !is_sent_back && is_since) {
            return;
        }
        let kept = (results > 0).then(|| {
            let mut kept = Message::new(Role::User, content[..results].to_vec());
            kept.details.timestamp = question.details.timestamp;
            let tags = question.tags.iter();
            kept.with_tags(tags.filter(|tag| matches!(tag, Tag::Orphan | Tag::Protected)))
        });
        parts.source.skip(FOR_SUMMARY);
        self.truncate(at);
        if let Some(kept) = kept {
            self.remember(&kept, false);
            self.session.parts_mut().messages.push(Arc::new(kept));
        }
    }

    /// Whether a message answers the last tool uses.
    fn answers_last(&self, message: &Message) -> bool {
        let last = self.session.parts().messages.last();
        let asked = last.into_iter().flat_map(|last| last.tool_uses());
        let asked: BTreeSet<&Arc<str>> = asked.map(|(_, it)| &it.id).collect();
        let mut results = message.tool_results();
        results.any(|(_, result)| asked.contains(&result.tool_use_id))
    }

    /// A message that stayed with another text.
    fn edited(&self, place: usize, message: Arc<Message>) -> Recorded {
        let own = &self.session.parts().messages[place];
        let (before, after) = (own.model_text(), message.model_text());
        let changed = before.iter().zip(after).enumerate();
        let changed = changed.filter(|(_, (before, after))| before != after);
        let changed: Vec<(usize, &Arc<str>)> = changed.map(|(at, (_, it))| (at, it)).collect();
        match changed[..] {
            [(block, text)] if before.len() == after.len() && own.content()[block].is_result() => {
                Recorded::Edited {
                    message: place,
                    block,
                    text: text.clone(),
                }
            }
            _ => Recorded::Written(message),
        }
    }
}
