//! Joins logged requests to sessions: each request *is* the context at its call.
//!
//! A request that begins with the whole conversation so far continues a session. One that keeps a part of the
//! conversation, changes it, or holds a summary that the model wrote, does so after a compaction: the messages
//! it keeps, edits and adds are what the compaction left, and the requests for the summary belong to it. If that
//! is not certain, it is a fork until a later request shows what it was ([`fork`]). Every other request begins a
//! session: a sub-agent's, another run's.
//!
//! The names that requests give their conversations come first: two sessions of different names are joined only
//! by what no other conversation has. But a name joins nothing: an application may use one for all.

use super::prelude::*;

use super::assemble::ORPHANS;
pub(super) use agent::Name;
use agent::{AgentIdentity, Prompts};
use fork::ForkKind;
use known::{Known, hashes};
use said::{holds_answer, summaries_in, sums_up, tag_acknowledgements, tag_as_summary};
use thread::SessionThread;

mod agent;
mod bills;
mod compacted;
mod fork;
mod ids;
mod known;
mod said;
mod seen;
mod thread;

/// One conversation as it was logged.
#[derive(Clone)]
pub(super) struct Logged {
    /// The messages of the request, and the answer.
    pub(super) session: Session,
    /// Whether a response was logged.
    pub(super) is_answered: bool,
    /// The response that it continues, where the provider keeps the conversation.
    pub(super) follows: Text,
    /// The name that it has there.
    pub(super) name: Option<Name>,
    /// The compaction before it, where the log says that there was one.
    pub(super) compaction: Option<ToldCompaction>,
    /// The provider was asked to compact the conversation, and for nothing else.
    pub(super) is_compaction: bool,
}

/// A compaction of which a log says that it was, beside the messages.
#[derive(Debug, Clone, Default)]
pub(super) struct ToldCompaction {
    pub(super) trigger: Text,
    /// Whether it was before this call, rather than before this one or an earlier one.
    pub(super) is_dated: bool,
}

/// How a compaction is counted of which only that much is known.
const TOLD: &str = "a conversation was compacted before its first call that is recorded";

impl Logged {
    /// A call that was answered, of which the log says nothing else.
    pub(super) fn answered(session: Session, name: Option<Name>) -> Self {
        let (follows, compaction) = (None, None);
        Self { session, is_answered: true, follows, name, compaction, is_compaction: false }
    }

    /// The model's answer, unless the request failed.
    fn answer(&self) -> Option<&Arc<Message>> {
        let last = self.session.parts().messages.last();
        let answer = last.filter(|last| last.role() == Role::Assistant);
        answer.filter(|_| self.is_answered && !self.is_compaction)
    }

    /// Joins the answer to the words that the client began it with.
    fn complete(&mut self) {
        if self.answer().is_none() {
            return;
        }
        let messages = &mut self.session.parts_mut().messages;
        let [.., begun, answer] = &messages[..] else {
            return;
        };
        if begun.role() == Role::User || begun.tool_uses().next().is_some() {
            return;
        }
        let mut content = begun.content().to_vec();
        let mut rest = answer.content();
        if let (Some(ContentBlock::Text(last)), [ContentBlock::Text(next), others @ ..]) =
            (content.last_mut(), rest)
        {
            *last = format!("{last}{next}").into();
            rest = others;
        }
        content.extend_from_slice(rest);
        let mut whole = Message::new(Role::Assistant, content).with_tags(answer.tags.iter());
        whole.details = answer.details.clone();
        messages.truncate(messages.len() - 2);
        messages.push(Arc::new(whole));
    }

    /// Counts a compaction before all that is recorded; whether there was one.
    fn count_told(&mut self) -> bool {
        let told = self.compaction.take().is_some();
        if told {
            self.session.parts_mut().source.warn(TOLD);
        }
        told
    }
}

/// A request that was answered.
#[derive(Clone)]
struct LoggedRequest {
    one: Logged,
    /// A look for each message of the request.
    looks: Vec<Look>,
    /// The shape of each with the client's own ids.
    sent: Vec<ContentHash>,
    answer: Arc<Message>,
    agent: AgentIdentity,
    /// Answers from before that its first message holds: a summary is no other wording.
    begins_with: Vec<Arc<str>>,
}

impl LoggedRequest {
    fn of(one: Logged, answer: Arc<Message>, agent: AgentIdentity) -> Self {
        let messages = &one.session.parts().messages;
        let asked = &messages[..messages.len() - 1];
        let looks: Vec<Look> = asked.iter().map(|message| Look::of(message)).collect();
        Self {
            sent: looks.iter().map(|look| look.shape).collect(),
            looks,
            agent,
            answer,
            one,
            begins_with: Vec::new(),
        }
    }

    /// The messages of the request.
    fn asked(&self) -> &[Arc<Message>] {
        &self.one.session.parts().messages[..self.looks.len()]
    }

    fn said(&self) -> Vec<ContentHash> {
        hashes(self.asked(), &self.looks)
    }

    /// Whether the answer asks for tools.
    fn acts(&self) -> bool {
        self.answer.tool_uses().next().is_some()
    }

    /// Whether its context begins with a compaction that only the provider can read.
    fn is_sealed(&self) -> bool {
        let mut compactions = self.one.session.parts().compactions.iter();
        compactions.any(|one| one.at <= self.looks.len() && one.after == CompactedTo::Encrypted)
    }

    /// Whether it holds the last answer of a session as the user's.
    fn holds_last(&self, thread: &SessionThread) -> bool {
        let last = thread.session.parts().messages.last();
        let texts = last.map(|last| summaries_in(last)).unwrap_or_default();
        self.asked().iter().any(|message| holds_answer(message, &texts))
    }
}

/// How a request for a summary is counted, once the summary was seen in a context.
const FOR_SUMMARY: &str = "request for a summary";

/// A summary is sent soon after it was written: the number of texts that are remembered.
const RECENT_TEXTS: usize = 32;

/// Joins requests that were answered; everything else stays as it is.
#[derive(Default)]
pub(super) struct Join {
    /// The conversations that are not joined yet: at most one of them is answered.
    held: Vec<Logged>,
    answered: usize,
    /// In the order of their names.
    threads: Vec<SessionThread>,
    /// How many sessions were begun: the name of the last.
    begun: usize,
    /// The model's last answers, for any request may have asked for a summary.
    answers: Vec<Arc<str>>,
    known: Known,
    prompts: Prompts,
    /// The names that requests gave their conversations so far.
    names: BTreeSet<Name>,
    /// The names of the sessions that ended with a response, by its id.
    ended: BTreeMap<Arc<str>, BTreeSet<usize>>,
}

impl Join {
    /// Adds the next conversation of the log.
    pub(super) fn add(&mut self, mut one: Logged) {
        tag_acknowledgements(&mut one.session);
        self.answered += usize::from(one.is_answered);
        self.held.push(one);
        if self.answered > 1 {
            for one in std::mem::take(&mut self.held) {
                self.join(one);
            }
        }
    }

    /// Adds one conversation to the session it continues, or begins one with it.
    fn join(&mut self, mut one: Logged) {
        if one.is_compaction {
            return self.compacted_by_provider(one);
        }
        self.tag_summary(&mut one);
        // An answer that was given goes on as a call of its own where the model paused.
        if let [.., begun, _] = &one.session.parts().messages[..]
            && !self.known.holds(&Look::of(begun))
        {
            one.complete();
        }
        let Some(answer) = one.answer().cloned() else {
            self.begin(one);
            return;
        };
        let agent = self.prompts.agent(&one.session, one.name.clone());
        let mut request = LoggedRequest::of(one, answer, agent);
        if let Some(first) = request.asked().first() {
            let held =
                self.answers.iter().filter(|one| holds_answer(first, std::slice::from_ref(one)));
            request.begins_with = held.cloned().collect();
        }
        let (said, answer) = (request.said(), request.answer.clone());
        let name = request.agent.name.clone();
        let session = self.session_of(request, &said);
        self.names.extend(name);
        self.ends(session, &answer);
        self.answers.extend(summaries_in(&answer));
        self.answers.drain(..self.answers.len().saturating_sub(RECENT_TEXTS));
        self.known.add(session, said, answer);
    }

    /// Adds what the provider compacted to the session that it is the context of, or begins one with it.
    fn compacted_by_provider(&mut self, one: Logged) {
        let mut asked = one.clone();
        let compaction = asked.session.parts_mut().compactions.pop();
        let answer = Arc::new(Message::text(Role::Assistant, ""));
        asked.session.parts_mut().messages.push(answer.clone());
        let agent = self.prompts.agent(&one.session, one.name.clone());
        let request = LoggedRequest::of(asked, answer, agent);
        let near = self.near(&request, &request.said());
        let Some(at) = self.continued(&near, &request) else {
            self.begin(one);
            return;
        };
        let at = self.settle(at);
        let usage = compaction.and_then(|compaction| compaction.usage);
        self.threads[at].compacted_by_provider(request, usage);
    }

    /// Begins a session, and returns its name.
    fn begin(&mut self, one: Logged) -> usize {
        self.begun += 1;
        if let Some(last) = one.session.parts().messages.last() {
            self.ends(self.begun, last);
        }
        let agent = self.prompts.agent(&one.session, one.name.clone());
        self.threads.push(SessionThread::new(self.begun, one, agent));
        self.begun
    }

    /// Takes note of the response with which a session ends.
    fn ends(&mut self, session: usize, last: &Message) {
        if let Some(call) = &last.details.api_call {
            self.ended.entry(call.0.clone()).or_default().insert(session);
        }
    }

    /// Adds a request to the session it continues, or begins one with it. Returns the name of that session.
    fn session_of(&mut self, request: LoggedRequest, said: &[ContentHash]) -> usize {
        let summed_up = request.asked().iter().any(|message| sums_up(message, &self.answers));
        if request.one.follows.is_none() && !self.known.shares(said) && !summed_up {
            return self.begin(request.one);
        }
        if let Some(at) = self.ended(&request) {
            self.threads[at].grow(request, 0);
            return self.threads[at].name;
        }
        let mut near = self.near(&request, said);
        if let Some(at) = self.continued(&near, &request) {
            if !request.acts() && request.agent.is_beside(&self.threads[at].agent) {
                return self.fork(at, request, ForkKind::Aside);
            }
            let at = self.settle(at);
            let thread = &mut self.threads[at];
            let known = thread.known_of(&request).unwrap_or(thread.length());
            thread.grow(request, known);
            return self.threads[at].name;
        }
        near.retain(|at| !self.threads[*at].is_withdrawn());
        if let Some((at, kind)) = self.left(&near, &request) {
            return self.fork(at, request, kind);
        }
        let Some(of) = self.compacted(&near, &request, summed_up) else {
            let mut aside = near.into_iter().rev().filter(|_| !request.acts());
            return match aside.find(|at| self.threads[*at].shares_answer(&request)) {
                Some(at) => self.fork(at, request, ForkKind::Aside),
                None => self.begin(request.one),
            };
        };
        if !request.acts() && !summed_up {
            return self.fork(of, request, ForkKind::Part);
        }
        let of = self.settle(of);
        let of = self.compact(of, request);
        self.threads[of].name
    }

    /// The sessions that say something of a request, and may be its own.
    fn near(&self, request: &LoggedRequest, said: &[ContentHash]) -> Vec<usize> {
        // A name that was seen before and is another's is never joined.
        let new = request.agent.name.as_ref().is_none_or(|name| !self.names.contains(name));
        let mut near = self.places(self.known.sharing(said));
        near.retain(|at| new || !self.threads[*at].is_named_otherwise(request));
        near
    }

    /// The conversation of which a request holds most, as after a compaction.
    fn compacted(
        &self,
        near: &[usize],
        request: &LoggedRequest,
        is_summed_up: bool,
    ) -> Option<usize> {
        let answers: &[Arc<str>] = &self.answers;
        let threads = &self.threads;
        let kept = near.iter().filter_map(|at| {
            let thread = &threads[*at];
            let certain = thread.fork.is_none() || thread.is_sent_back(request);
            Some((certain.then(|| thread.kept(request, answers)).flatten()?, *at))
        });
        // A summary may be all that is left of any session of the agent, other than its own answer.
        let others = (0..threads.len()).filter(|_| is_summed_up).filter(|at| {
            let thread = &threads[*at];
            let like = thread.is_answered && thread.agent.is_like(&request.agent);
            // One request for a summary may hold the only answer of another.
            let asked = thread.requests == 1 && request.holds_last(thread);
            let certain = thread.fork.is_none() && !asked;
            let known = near.binary_search(at).is_ok();
            like && certain && !known && !thread.is_named_otherwise(request)
        });
        let scores = kept.chain(others.map(|at| (0, at))).map(|(count, at)| {
            (self.was_summed_up(at, request), threads[at].is_sent_back(request), count, at)
        });
        scores.max().map(|(.., at)| at)
    }

    /// The session that ended with the response that a request continues.
    fn ended(&self, request: &LoggedRequest) -> Option<usize> {
        let id = request.one.follows.as_ref()?;
        let near = self.places(Some(self.ended.get(id)?.clone()));
        near.into_iter().find(|at| self.threads[*at].ends_with(id))
    }

    /// The longest of the conversations that a request begins with. Of several, that which begins with the same words, and ends
    /// with the same ids.
    fn continued(&self, near: &[usize], request: &LoggedRequest) -> Option<usize> {
        let begun = near.iter().copied().filter(|at| {
            let thread = &self.threads[*at];
            if thread.is_other_answer() {
                let last = thread.length().saturating_sub(1);
                let mut others = near.iter().map(|at| &self.threads[*at]);
                return thread.has_at(last, request)
                    && thread.is_begun_by(request)
                    && !others.any(|one| !one.is_other_answer() && one.has_at(last, request));
            }
            thread.is_begun_by(request)
                || thread.known_of(request).is_some() && thread.agent.is_like(&request.agent)
        });
        begun.max_by_key(|at| {
            let thread = &self.threads[*at];
            let length = thread.length();
            let ends = thread.has_at(length.saturating_sub(1), request);
            (length, thread.begins_in(request), ends, !thread.is_other_answer())
        })
    }

    /// The conversation that a request leaves before its end.
    fn left(&self, near: &[usize], request: &LoggedRequest) -> Option<(usize, ForkKind)> {
        let looks = &request.looks;
        let threads = near.iter().map(|at| (*at, &self.threads[*at]));
        let own = threads.filter(|(_, thread)| is_own(thread, request));
        if let Some((at, _)) = own.clone().find(|(_, thread)| thread.was_asked(request)) {
            let silent = self.threads[at].is_silent();
            return Some((at, if silent { ForkKind::Anew } else { ForkKind::Again }));
        }
        if let Some((at, _)) = own.clone().find(|(_, thread)| thread.was_not_answered(request)) {
            return Some((at, ForkKind::Anew));
        }
        let early = near.iter().filter_map(|at| {
            let thread = &self.threads[*at];
            let (common, proved) = thread.common(request);
            let rest = &looks[common..];
            let left = proved && common < thread.length() && rest.len() <= 1;
            let begun = proved || common > 0 && thread.place(&looks[0]).is_none();
            let aside = begun && !request.acts() && !rest.iter().any(Look::has_calls);
            let like = (left || aside) && thread.agent.is_like(&request.agent);
            let (leaves, kind) =
                if like { (left, ForkKind::Early(common)) } else { (aside, ForkKind::Aside) };
            leaves.then_some((common, kind, *at))
        });
        let (_, kind, at) =
            early.max_by_key(|(common, _, at)| (*common, self.threads[*at].begins_in(request)))?;
        Some((at, kind))
    }

    /// Tags the summary that a compaction left which the log tells of: the first message, if it is new and another
    /// comes behind it.
    fn tag_summary(&self, one: &mut Logged) {
        if !one.compaction.as_ref().is_some_and(|told| told.is_dated) {
            return;
        }
        if let [first, _, _, ..] = &mut one.session.parts_mut().messages[..]
            && !self.known.holds(&Look::of(first))
        {
            tag_as_summary(first);
        }
    }

    /// The sessions of the log.
    pub(super) fn finish(mut self, path: &Path) -> Imported {
        if self.answered < 2 {
            let sessions = self.held.into_iter().map(|mut one| {
                one.count_told();
                one.complete();
                checked(one.session.into_parts(), path)
            });
            return sessions.collect();
        }
        self.settle_rest();
        drop_failed(&mut self.threads);
        let sessions = self.threads.into_iter().map(|mut thread| {
            tag_orphans(&mut thread.session);
            checked(thread.session.into_parts(), path)
        });
        sessions.collect()
    }
}

/// Whether a session may be the one of a request.
fn is_own(thread: &SessionThread, request: &LoggedRequest) -> bool {
    let (own, agent) = (&thread.agent, &request.agent);
    !thread.is_named_otherwise(request) && own.is_like(agent) && own.has_begun_prompt_of(agent)
}

/// Drops requests that failed and were sent again: they are not sessions of their own.
fn drop_failed(threads: &mut Vec<SessionThread>) {
    let mut at = 0;
    while let Some(one) = threads.get(at) {
        let again = if one.is_failed {
            threads.iter().position(|other| other.is_answered && other.asks_what(one))
        } else {
            None
        };
        if let Some(again) = again {
            threads[again].session.parts_mut().source.skip("request without an answer");
            threads.remove(at);
        } else {
            at += 1;
        }
    }
}

/// Tags and counts orphans in the whole session: a request may answer a tool use of another.
fn tag_orphans(session: &mut Session) {
    let mut asked: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut orphans = 0;
    for message in &mut session.parts_mut().messages {
        let results = message.tool_results();
        let lost =
            results.filter(|(_, result)| !asked.contains(&result.tool_use_id)).count() as u64;
        orphans += lost;
        if (lost > 0) != message.has_tag(Tag::Orphan) {
            Arc::make_mut(message).tags.set(Tag::Orphan, lost > 0);
        }
        asked.extend(message.tool_uses().map(|(_, tool_use)| tool_use.id.clone()));
    }
    let warnings = &mut session.parts_mut().source.warnings;
    warnings.remove(ORPHANS);
    warnings.extend((orphans > 0).then(|| (ORPHANS.to_owned(), orphans)));
}
