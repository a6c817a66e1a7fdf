//! Joins logged requests to sessions: each request *is* the context at its call.
//!
//! A request that begins with everything that was said so far continues a session. One that keeps
//! a part of it, changes it, or holds what the model was asked to sum up, does so after a
//! compaction: what it keeps, edits and adds is what the compaction left. Every other request
//! begins a session: a sub-agent's, another run's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::ImportError;
use super::assemble::{ORPHANS, add_counts, count};
use super::pieces;
use crate::session::{
    CompactedTo, ContentBlock, Message, Recorded, RecordedCompaction, Role, Session, Tag,
};
use crate::units::{ApiCallId, ContentHash, Tokens};
pub(super) use look::Look;

mod look;

/// One conversation as it was logged.
pub(super) struct Logged {
    /// The messages of the request, and the answer.
    pub(super) session: Session,
    /// Whether the answer is there, and so this was a request that was made.
    pub(super) is_answered: bool,
    /// The response that it continues, where the provider keeps what came before.
    pub(super) follows: Option<Arc<str>>,
}

/// An answer that is shorter may stand in a prompt by chance.
const SUMMARY_CHARS: usize = 40;

/// Joins requests that were answered; everything else stays as it is.
#[derive(Default)]
pub(super) struct Join {
    /// What is not joined yet: there is one answer at most.
    held: Vec<Logged>,
    answered: usize,
    threads: Vec<Thread>,
    /// What the model answered, for a summary may have been asked for by any request.
    answers: Vec<Arc<str>>,
}

impl Join {
    /// Adds the next conversation of the log.
    pub(super) fn add(&mut self, one: Logged) {
        self.answered += usize::from(one.is_answered);
        self.held.push(one);
        if self.answered > 1 {
            for one in std::mem::take(&mut self.held) {
                self.join(one);
            }
        }
    }

    fn join(&mut self, mut one: Logged) {
        let threads = &mut self.threads;
        let last = one.session.parts.messages.last();
        let is_failed = one.is_answered && last.is_none_or(|message| message.role() == Role::User);
        one.is_answered &= !is_failed;
        let answer = last.map(|message| text(message));
        let is_answered = one.is_answered;
        let before = threads.len();
        take(one, threads, &self.answers);
        if let Some(thread) = threads.get_mut(before) {
            thread.is_failed = is_failed;
        }
        if let (true, Some(answer)) = (is_answered, answer)
            && answer.chars().count() >= SUMMARY_CHARS
        {
            self.answers.push(answer.into());
            // A summary is sent soon after it was written.
            if self.answers.len() > 16 {
                self.answers.remove(0);
            }
        }
    }

    /// The sessions of the log.
    pub(super) fn finish(mut self, path: &Path) -> Result<Vec<Session>, ImportError> {
        if self.answered < 2 {
            return Ok(self.held.into_iter().map(|one| one.session).collect());
        }
        forget_failed(&mut self.threads);
        let sessions = self.threads.into_iter().map(|mut thread| {
            tell_orphans(&mut thread.session);
            Session::new(thread.session.parts)
                .map_err(|source| ImportError::Session(path.to_owned(), source))
        });
        sessions.collect()
    }
}

/// A request that failed and was sent again is no session of its own.
fn forget_failed(threads: &mut Vec<Thread>) {
    let mut at = 0;
    while at < threads.len() {
        let one = &threads[at];
        let goes_on = |other: &Thread| other.is_answered && other.history.starts_with(&one.history);
        let again = if one.is_failed {
            threads.iter().position(goes_on)
        } else {
            None
        };
        let Some(again) = again else {
            at += 1;
            continue;
        };
        let skipped = &mut threads[again].session.parts.source.skipped;
        count(skipped, "request without an answer");
        threads.remove(at);
    }
}

/// Requests may answer what another one asked: orphans are told for the whole session.
fn tell_orphans(session: &mut Session) {
    let mut asked: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut orphans = 0;
    for message in &mut session.parts.messages {
        let results = message.tool_results();
        let lost = results
            .filter(|(_, result)| !asked.contains(&result.tool_use_id))
            .count();
        orphans += lost as u64;
        if (lost > 0) != message.has_tag(Tag::Orphan) {
            let tags = message
                .tags
                .iter()
                .copied()
                .filter(|tag| *tag != Tag::Orphan);
            let tags: Vec<Tag> = tags.chain((lost > 0).then_some(Tag::Orphan)).collect();
            *message = Arc::new((**message).clone().with_tags(tags));
        }
        asked.extend(message.tool_uses().map(|(_, tool_use)| tool_use.id.clone()));
    }
    let warnings = &mut session.parts.source.warnings;
    warnings.remove(ORPHANS);
    if orphans > 0 {
        warnings.insert(ORPHANS.to_owned(), orphans);
    }
}

/// A session that grows request by request.
struct Thread {
    session: Session,
    /// What the last request held and what was answered.
    context: Vec<Seen>,
    /// For each message of the history, what it looks like.
    history: Vec<Look>,
    /// Where in the history a look was first seen.
    places: BTreeMap<ContentHash, usize>,
    shapes: BTreeMap<ContentHash, usize>,
    calls: BTreeSet<ApiCallId>,
    is_answered: bool,
    /// It was sent, and what came was no answer.
    is_failed: bool,
}

/// A message of a context.
#[derive(Clone, Copy)]
struct Seen {
    look: Look,
    /// An answer may look otherwise when it is sent back: without what was thought, trimmed.
    is_answer: bool,
}

/// Adds one conversation to the session it continues, or begins one with it.
fn take(one: Logged, threads: &mut Vec<Thread>, answers: &[Arc<str>]) {
    if !one.is_answered {
        return threads.push(Thread::new(one));
    }
    let messages = &one.session.parts.messages;
    let asked = messages.len().saturating_sub(1);
    let looks: Vec<Look> = messages[..asked].iter().map(|it| Look::of(it)).collect();
    let followed = one.follows.as_ref().and_then(|id| {
        let ends = |thread: &&mut Thread| thread.ends_with(id);
        threads.iter_mut().find(ends)
    });
    if let Some(thread) = followed {
        return thread.grow(one, 0);
    }
    let open = || 0..threads.len();
    let grown = open()
        .filter(|at| threads[*at].is_begun_by(&looks))
        .max_by_key(|at| threads[*at].context.len());
    if let Some(at) = grown {
        let known = threads[at].context.len();
        threads[at].recognise(&looks);
        return threads[at].grow(one, known);
    }
    let again = open().find(|at| threads[*at].was_asked(&looks));
    if let Some(at) = again {
        let warnings = &mut threads[at].session.parts.source.warnings;
        count(
            warnings,
            "a request was sent again; its first answer stands",
        );
        return;
    }
    let compacted = open()
        .filter_map(|at| Some((threads[at].kept(&one.session, &looks, answers)?, at)))
        .max_by_key(|(kept, at)| (*kept, *at));
    match compacted {
        Some((_, at)) => threads[at].compact(one, &looks, answers),
        None => threads.push(Thread::new(one)),
    }
}

impl Thread {
    fn new(one: Logged) -> Self {
        let mut thread = Self {
            session: one.session,
            context: Vec::new(),
            history: Vec::new(),
            places: BTreeMap::new(),
            shapes: BTreeMap::new(),
            calls: BTreeSet::new(),
            is_answered: one.is_answered,
            is_failed: false,
        };
        let messages = thread.session.parts.messages.clone();
        for (at, message) in messages.iter().enumerate() {
            let is_answer = one.is_answered && at + 1 == messages.len();
            thread.remember(message, is_answer);
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
        self.calls.extend(message.api_call.clone());
    }

    fn ends_with(&self, response: &str) -> bool {
        let last = self.session.parts.messages.last();
        let call = last.and_then(|message| message.api_call.as_ref());
        call.is_some_and(|call| &*call.0 == response)
    }

    /// Whether a request begins with all that was said.
    fn is_begun_by(&self, looks: &[Look]) -> bool {
        self.is_answered
            && self.context.len() <= looks.len()
            && self.context.iter().zip(looks).all(|(seen, look)| {
                seen.look == *look || seen.is_answer && seen.look.shape == look.shape
            })
    }

    /// Answers look from now on as they were sent back.
    fn recognise(&mut self, looks: &[Look]) {
        for (seen, look) in self.context.iter_mut().zip(looks) {
            if seen.is_answer {
                let at = self.places.get(&seen.look.whole).copied();
                if let Some(at) = at {
                    self.places.insert(look.whole, at);
                    self.history[at] = *look;
                }
                *seen = Seen {
                    look: *look,
                    is_answer: false,
                };
            }
        }
    }

    /// Whether this very request was the last one.
    fn was_asked(&self, looks: &[Look]) -> bool {
        self.is_answered
            && self.context.len() == looks.len() + 1
            && self
                .context
                .iter()
                .zip(looks)
                .all(|(seen, look)| seen.look == *look)
    }

    /// Adds what is new in a request, of which the first `known` messages are not, and its answer.
    fn grow(&mut self, one: Logged, known: usize) {
        let parts = one.session.parts;
        if parts.system.is_some() && parts.system != self.session.parts.system {
            let warnings = &mut self.session.parts.source.warnings;
            count(warnings, "the system prompt changed; the first one stands");
        }
        add_counts(&mut self.session.parts.source, parts.source);
        self.provider_compacted(parts.compactions, known);
        self.add(parts.messages.into_iter().skip(known).collect());
    }

    /// The provider compacted before an answer: events of a request, of which the first `known`
    /// messages are not new.
    fn provider_compacted(&mut self, found: Vec<RecordedCompaction>, known: usize) {
        let history = self.session.parts.messages.len();
        for mut one in found.into_iter().filter(|one| one.at >= known) {
            one.at = one.at - known + history;
            if let CompactedTo::Replaced(pieces) = &one.after {
                let is_written = |piece: &Recorded| matches!(piece, Recorded::Written(_));
                // Where the client compacted as well, places in a request are none in the history.
                if known != history && !pieces.iter().all(is_written) {
                    one.after = CompactedTo::Missing;
                } else if self.stands(pieces, one.at) {
                    continue;
                }
            }
            self.session.parts.compactions.push(one);
        }
    }

    /// Whether the context before message `at` is just this.
    fn stands(&self, left: &[Recorded], at: usize) -> bool {
        let context = pieces::context(&self.session.parts.compactions, at);
        context.is_some_and(|context| pieces::joined(context) == pieces::joined(left.to_vec()))
    }

    fn add(&mut self, messages: Vec<Arc<Message>>) {
        let last = messages.len().saturating_sub(1);
        for (at, mut message) in messages.into_iter().enumerate() {
            let is_known = |call: &ApiCallId| self.calls.contains(call);
            if message.api_call.as_ref().is_some_and(is_known) {
                let mut unnamed = (*message).clone();
                unnamed.api_call = None;
                message = Arc::new(unnamed);
            }
            self.remember(&message, at == last);
            self.session.parts.messages.push(message);
        }
    }

    /// How many messages a request keeps after it leaves the history's beginning; none if it has
    /// nothing to do with this session.
    fn kept(&self, other: &Session, looks: &[Look], answers: &[Arc<str>]) -> Option<usize> {
        let same = self.session.parts.system == other.parts.system
            && self.session.parts.tools == other.parts.tools;
        if !self.is_answered || !same {
            return None;
        }
        let begun = self.history.iter().zip(looks);
        let begun = begun.take_while(|(own, look)| own == look).count();
        let rest = looks.get(begun..).unwrap_or_default();
        let found = rest
            .iter()
            .filter(|look| self.place(look).is_some())
            .count();
        let messages = other
            .parts
            .messages
            .get(begun..looks.len())
            .unwrap_or_default();
        let is_summed = messages.iter().any(|it| holds_answer(it, answers));
        (found > 0 || is_summed).then_some(begun + found)
    }

    /// Where a message stands in the history, as it is or with other texts.
    fn place(&self, look: &Look) -> Option<(usize, bool)> {
        let whole = self.places.get(&look.whole).map(|at| (*at, true));
        whole.or_else(|| {
            let at = *self.shapes.get(&look.shape)?;
            // Only names tell two messages of one shape from each other.
            let message = self.session.parts.messages.get(at)?;
            let is_named = |block: &ContentBlock| {
                matches!(
                    block,
                    ContentBlock::ToolUse(_) | ContentBlock::ToolResult(_)
                )
            };
            message
                .content()
                .iter()
                .any(is_named)
                .then_some((at, false))
        })
    }

    /// The request shows what a compaction left.
    fn compact(&mut self, one: Logged, looks: &[Look], answers: &[Arc<str>]) {
        let mut parts = one.session.parts;
        let answer = parts.messages.pop();
        self.forget_request_for_summary(&parts.messages, looks);
        let at = self.session.parts.messages.len();
        let places: Vec<Option<(usize, bool)>> = looks.iter().map(|it| self.place(it)).collect();
        let last_found = places.iter().rposition(Option::is_some);
        let ends_whole = last_found
            .and_then(|it| places[it])
            .map(|(place, _)| place + 1)
            == Some(at);
        let mut pieces = Vec::new();
        let mut added = Vec::new();
        let (of_answer, known): (Vec<_>, Vec<_>) = parts
            .compactions
            .into_iter()
            .partition(|one| one.at >= looks.len());
        for (index, message) in parts.messages.into_iter().enumerate() {
            // What the provider summed up is not sent on.
            for one in known.iter().filter(|one| one.at == index) {
                if let CompactedTo::Replaced(left) = &one.after {
                    pieces.clone_from(left);
                }
            }
            match places[index] {
                Some((place, true)) => match pieces.last_mut() {
                    Some(Recorded::Kept(range)) if range.end == place => range.end += 1,
                    _ => pieces.push(Recorded::Kept(place..place + 1)),
                },
                Some((place, false)) => pieces.push(self.edited(place, message)),
                None if last_found.is_none_or(|last| index > last)
                    && (ends_whole || self.answers_last(&message)) =>
                {
                    added.push(message);
                }
                None => pieces.push(written(&message, answers)),
            }
        }
        let mut messages = self.session.parts.messages.iter().rev();
        let pre_tokens = messages.find_map(|message| message.usage);
        if !self.stands(&pieces, at) {
            self.session.parts.compactions.push(RecordedCompaction {
                at,
                trigger: None,
                pre_tokens: pre_tokens.map(|usage| Tokens(usage.prompt().0)),
                after: CompactedTo::Replaced(pieces),
            });
        }
        add_counts(&mut self.session.parts.source, parts.source);
        let kept = looks.len() - added.len();
        self.context = looks[..kept]
            .iter()
            .map(|look| Seen {
                look: *look,
                is_answer: false,
            })
            .collect();
        for mut one in of_answer {
            one.at = at + added.len();
            if let CompactedTo::Replaced(left) = &one.after
                && !left
                    .iter()
                    .all(|piece| matches!(piece, Recorded::Written(_)))
            {
                one.after = CompactedTo::Missing;
            }
            self.session.parts.compactions.push(one);
        }
        added.extend(answer);
        self.add(added);
    }

    /// Removes a request for a summary, and its answer, from the history. Where the question was
    /// asked in the middle of a turn, the tool results in front of it stay.
    fn forget_request_for_summary(&mut self, sent: &[Arc<Message>], looks: &[Look]) {
        let messages = &mut self.session.parts.messages;
        let [.., question, answer] = &messages[..] else {
            return;
        };
        let summary = [Arc::from(text(answer))];
        let is_summary = text(answer).chars().count() >= SUMMARY_CHARS
            && answer.tool_uses().next().is_none()
            && sent.iter().any(|message| holds_answer(message, &summary));
        let whole = Look::of(answer).whole;
        let is_sent_back = looks.iter().any(|look| look.whole == whole);
        let at = messages.len() - 2;
        let compactions = &self.session.parts.compactions;
        let is_since = compactions.last().is_none_or(|last| last.at <= at);
        let results = question.content().iter();
        let results = results
            .take_while(|block| matches!(block, ContentBlock::ToolResult(_)))
            .count();
        let is_question = question.role() == Role::User && results < question.content().len();
        if !(is_question && is_summary && !is_sent_back && is_since) {
            return;
        }
        let answered = (results > 0).then(|| {
            let content = question.content()[..results].to_vec();
            let mut answered = Message::new(Role::User, content);
            answered.timestamp = question.timestamp;
            let kept = [Tag::Orphan, Tag::Protected];
            answered.with_tags(
                question
                    .tags
                    .iter()
                    .copied()
                    .filter(|tag| kept.contains(tag)),
            )
        });
        messages.truncate(at);
        self.history.truncate(at);
        for map in [&mut self.places, &mut self.shapes] {
            map.retain(|_, place| *place < at);
        }
        if let Some(answered) = answered {
            self.remember(&answered, false);
            self.session.parts.messages.push(Arc::new(answered));
        }
        let skipped = &mut self.session.parts.source.skipped;
        count(skipped, "request for a summary");
    }

    /// Whether a message answers the last tool uses.
    fn answers_last(&self, message: &Message) -> bool {
        let Some(last) = self.session.parts.messages.last() else {
            return false;
        };
        let asked: BTreeSet<&Arc<str>> = last.tool_uses().map(|(_, it)| &it.id).collect();
        let mut results = message.tool_results();
        results.any(|(_, result)| asked.contains(&result.tool_use_id))
    }

    /// A message that stayed with another text.
    fn edited(&self, place: usize, message: Arc<Message>) -> Recorded {
        let Some(own) = self.session.parts.messages.get(place) else {
            return Recorded::Written(message);
        };
        let said = |message: &Message| -> Vec<Arc<str>> { message.model_text().to_vec() };
        let (before, after) = (said(own), said(&message));
        let changed = before.iter().zip(&after).enumerate();
        let mut changed = changed.filter(|(_, (before, after))| before != after);
        match (changed.next(), changed.next()) {
            (Some((block, (_, text))), None) if before.len() == after.len() => {
                let is_result = matches!(own.content()[block], ContentBlock::ToolResult(_));
                if is_result {
                    return Recorded::Edited {
                        message: place,
                        block,
                        text: text.clone(),
                    };
                }
                Recorded::Written(message)
            }
            _ => Recorded::Written(message),
        }
    }
}

/// A message that the product wrote; a summary where it holds what the model answered.
fn written(message: &Arc<Message>, answers: &[Arc<str>]) -> Recorded {
    if !holds_answer(message, answers) {
        return Recorded::Written(message.clone());
    }
    let tags = message.tags.iter().copied();
    let tags = tags.filter(|tag| *tag != Tag::TypedUser);
    let tags: Vec<Tag> = tags.chain([Tag::CompactSummary]).collect();
    Recorded::Written(Arc::new((**message).clone().with_tags(tags)))
}

/// Whether a message of the user's holds something the model answered.
fn holds_answer(message: &Message, answers: &[Arc<str>]) -> bool {
    let said = text(message);
    message.role() == Role::User && answers.iter().any(|answer| said.contains(&**answer))
}

/// The texts of a message.
fn text(message: &Message) -> String {
    let texts = message.content().iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.trim()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
