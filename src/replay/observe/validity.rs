//! Finds the rules that a prompt breaks and the full history at that call does not.

use super::prelude::*;
use super::{CallView, Observer};
use crate::context::validity::{Checker, Finding, Rule, Subject, is_summary, summary};
use crate::record::Violation;
use crate::session::ToolUse;
use crate::session::wire::RuleSet;

/// Follows the context and the full history side by side.
///
/// A rule that the full history breaks at a call belongs to the session; the rest becomes
/// [`CellRecord::violations`]. A call without findings costs only the work for what was appended
/// and patched since the last one; until the first finding, the full history is not followed.
#[derive(Debug, Default)]
pub struct Validity {
    rules: RuleSet,
    sent: Checker,
    history: Checker,
    /// Messages of the session that are in `history`.
    fed: usize,
    /// Messages of the session that were looked at for `user_message`.
    looked: usize,
    /// The newest message of the user, as an index into the session.
    user_message: Option<usize>,
    /// Whether the context holds it word for word; `None` if it may have changed.
    is_whole: Option<bool>,
    summaries: UnseenSummaries,
    calls: ToolCalls,
    /// The addresses of messages that stages wrote since the last call.
    written: BTreeSet<usize>,
    /// Findings about patches since the last call.
    patches: BTreeSet<Finding>,
    /// Findings that stood at the last call, with the call at which they first did.
    open: BTreeMap<Finding, usize>,
    /// The call after the last one.
    next: usize,
    closed: Vec<Violation>,
}

impl Observer for Validity {
    fn appended(&mut self, entry: &Entry) {
        self.sent.append(entry);
        self.entered(entry);
    }

    fn entered(&mut self, entry: &Entry) {
        self.forget(entry);
        self.summaries.enters(entry);
        self.calls.enters(entry);
    }

    fn left(&mut self, entry: &Entry) {
        self.forget(entry);
        self.summaries.leaves(entry);
        self.calls.leaves(entry);
    }

    fn patched(&mut self, applied: &Applied) {
        self.sent.patch(applied);
        let change = &applied.change;
        // An entry that the patch puts back unchanged counts as neither removed nor written.
        let before: BTreeSet<usize> = change.removed.iter().map(address).collect();
        let after: BTreeSet<usize> = applied.written().map(address).collect();
        let mut gone = before.difference(&after);
        if gone.any(|message| self.written.contains(message)) {
            self.patches.insert(Finding {
                rule: Rule::RewrittenTwice,
                subject: Subject::Stage(applied.stage.clone()),
            });
        }
        self.written.retain(|message| after.contains(message) || !before.contains(message));
        self.written.extend(after.difference(&before));
        change.removed.iter().for_each(|entry| self.left(entry));
        applied.written().for_each(|entry| self.entered(entry));
        if !change.removed.is_empty() && change.after.tokens >= change.before.tokens {
            self.patches.insert(Finding {
                rule: Rule::NotSmaller,
                subject: Subject::Stage(applied.stage.clone()),
            });
        }
    }

    fn called(&mut self, view: &CallView<'_>) {
        self.listen(view.session, view.before);
        let mut findings = self.sent.findings();
        if !findings.is_empty() {
            self.feed(view.session, view.before);
            let own = self.history.findings();
            findings.retain(|finding| !own.contains(finding));
        }
        findings.append(&mut self.patches);
        self.written.clear();
        findings.extend(self.summaries.findings(view.session));
        self.calls.look(view.session);
        let spoke = self.user_message.unwrap_or_default();
        findings.extend(self.calls.findings(self.rules, view, spoke));
        if let Some(at) = self.user_message
            && !*self.is_whole.get_or_insert_with(|| holds(view, at))
        {
            findings
                .insert(Finding { rule: Rule::UserMessageAltered, subject: Subject::Message(at) });
        }
        self.note(findings, view.call);
    }

    fn finish(mut self: Box<Self>, record: &mut CellRecord) {
        self.note(BTreeSet::new(), self.next);
        self.closed.sort_by_key(|one| (one.call, one.rule.clone(), one.subject.clone()));
        record.violations = self.closed;
    }
}

impl Validity {
    /// Holds prompts to these rules.
    pub fn new(rules: RuleSet) -> Self {
        Self { rules, sent: Checker::new(rules), history: Checker::new(rules), ..Self::default() }
    }

    /// The same, with room for so many messages.
    pub(super) fn with_room(mut self, messages: usize) -> Self {
        self.sent.reserve(messages);
        self
    }

    /// Has the newest message of the user looked up again where this entry is made of it.
    fn forget(&mut self, entry: &Entry) {
        if entry.origin.message() == self.user_message {
            self.is_whole = None;
        }
    }

    /// Brings the full history up to the message `before`: not before a prompt breaks a rule.
    fn feed(&mut self, session: &Session, before: usize) {
        for (at, message) in session.messages().iter().enumerate().take(before).skip(self.fed) {
            let origin = Origin::Verbatim(at);
            let entry = Entry::sized(origin, message.clone(), Size::default());
            self.history.append(&entry);
        }
        self.fed = self.fed.max(before);
    }

    /// Finds the newest message of the user before this one.
    fn listen(&mut self, session: &Session, before: usize) {
        for (at, message) in session.messages().iter().enumerate().take(before).skip(self.looked) {
            if is_said_by_user(message) {
                self.user_message = Some(at);
                self.is_whole = None;
            }
        }
        self.looked = self.looked.max(before);
    }

    /// Notes the findings at a call: a finding that has ended becomes a violation.
    fn note(&mut self, findings: BTreeSet<Finding>, call: usize) {
        let end = self.next;
        self.next = call + 1;
        let (closed, rules) = (&mut self.closed, self.rules);
        self.open.retain(|finding, first| {
            let stands = call == end && findings.contains(finding);
            if !stands && let Some(level) = finding.rule.level(rules) {
                closed.push(Violation {
                    call: *first,
                    calls: end - *first,
                    rule: finding.rule.name().to_owned(),
                    level,
                    subject: finding.subject.to_string(),
                });
            }
            stands
        });
        for finding in findings {
            self.open.entry(finding).or_insert(call);
        }
    }
}

/// Tool calls in the context that are no longer as the model made them, by the session's messages.
#[derive(Debug, Default)]
struct ToolCalls {
    /// Entries with calls that were written since the last call, by the addresses of their messages.
    new: BTreeMap<usize, Entry>,
    /// Messages that lack the thinking in front of their calls, with the addresses.
    without_thinking: BTreeMap<usize, usize>,
    /// Messages of which the first call was changed, with the addresses.
    changed: BTreeMap<usize, usize>,
}

impl ToolCalls {
    fn enters(&mut self, entry: &Entry) {
        let intact = matches!(entry.origin, Origin::Verbatim(_) | Origin::Restored(_));
        if !intact && only_message(entry).is_some() && first_use(&entry.message).is_some() {
            self.new.insert(address(entry), entry.clone());
        }
    }

    fn leaves(&mut self, entry: &Entry) {
        let at = address(entry);
        if self.new.remove(&at).is_none()
            && let Some(message) = only_message(entry)
        {
            for of in [&mut self.without_thinking, &mut self.changed] {
                if of.get(&message) == Some(&at) {
                    of.remove(&message);
                }
            }
        }
    }

    /// Compares what was written with what the session said.
    fn look(&mut self, session: &Session) {
        for (at, entry) in std::mem::take(&mut self.new) {
            let Some(message) = only_message(&entry) else {
                continue;
            };
            let own = session.message(message);
            if count_thinking(&entry.message) < count_thinking(own) {
                self.without_thinking.insert(message, at);
            }
            if first_use(&entry.message) != first_use(own) {
                self.changed.insert(message, at);
            }
        }
    }

    /// The calls that this API minds at a call, since the user spoke with message `spoke`.
    fn findings(&self, rules: RuleSet, view: &CallView<'_>, spoke: usize) -> Vec<Finding> {
        let (rule, messages): (Rule, Vec<usize>) = match rules {
            RuleSet::Anthropic => {
                let mut said = view.session.messages()[..view.before].iter();
                let answer = said.rposition(|message| message.role() == Role::Assistant);
                let last = answer.filter(|at| self.without_thinking.contains_key(at));
                (Rule::ThinkingDropped, last.into_iter().collect())
            }
            RuleSet::OpenAiResponses => {
                (Rule::ThinkingDropped, self.without_thinking.keys().copied().collect())
            }
            RuleSet::Gemini => {
                let of_turn = self.changed.range(spoke..);
                (Rule::CallChanged, of_turn.map(|(at, _)| *at).collect())
            }
            RuleSet::OpenAi => return Vec::new(),
        };
        let subjects = messages.into_iter().map(Subject::Message);
        subjects.map(|subject| Finding { rule, subject }).collect()
    }
}

/// The session's message that an entry is made of, if it is one.
fn only_message(entry: &Entry) -> Option<usize> {
    match entry.origin.replaced() {
        [range] if range.len() == 1 => Some(range.start),
        _ => entry.origin.message(),
    }
}

fn first_use(message: &Message) -> Option<&ToolUse> {
    message.tool_uses().next().map(|(_, tool)| tool)
}

fn count_thinking(message: &Message) -> usize {
    let thinking = message.content().iter().filter(|block| match block {
        ContentBlock::Thinking(_) => true,
        ContentBlock::Opaque(opaque) => &*opaque.kind == "redacted_thinking",
        _ => false,
    });
    thinking.count()
}

/// Where the entry's message is kept: entries share messages, and a message is never written to.
fn address(entry: &Entry) -> usize {
    Arc::as_ptr(&entry.message).addr()
}

/// Whether the message holds words of the user: more than tool results, and not injected.
fn is_said_by_user(message: &Message) -> bool {
    let injected = [Tag::Synthetic, Tag::Meta, Tag::CompactSummary, Tag::CompactBoundary];
    message.role() == Role::User
        && !injected.iter().any(|tag| message.has_tag(*tag))
        && !message.content().iter().all(ContentBlock::is_result)
}

/// Whether the prompt holds a message of the session word for word, tool results apart. What was put
/// back may be a part.
fn holds(view: &CallView<'_>, at: usize) -> bool {
    let content = view.session.message(at).content();
    view.context.entries().iter().rev().any(|entry| match entry.origin {
        Origin::Restored(message) => message == at && entry.message.content() == content,
        _ => whole(entry) == Some(at),
    })
}

/// The message of which the entry says everything but tool results as it was.
fn whole(entry: &Entry) -> Option<usize> {
    match &entry.origin {
        Origin::Verbatim(at) => Some(*at),
        Origin::Edited { message, .. } => {
            let mut blocks = entry.message.content().iter().enumerate();
            let same = blocks.all(|(at, content)| content.is_result() || entry.is_verbatim(at));
            same.then_some(*message)
        }
        Origin::Derived(_) | Origin::Restored(_) | Origin::Authored => None,
    }
}

/// Summaries in the context that no call has seen yet, and those that are none, as the flag says.
#[derive(Debug, Default)]
struct UnseenSummaries(Vec<(Entry, bool)>);

impl UnseenSummaries {
    fn enters(&mut self, entry: &Entry) {
        if is_summary(entry) {
            self.0.push((entry.clone(), false));
        }
    }

    fn leaves(&mut self, entry: &Entry) {
        if let Some(at) = self.0.iter().position(|(summary, _)| summary == entry) {
            self.0.remove(at);
        }
    }

    fn findings(&mut self, session: &Session) -> impl Iterator<Item = Finding> {
        self.0.retain_mut(|(entry, is_bad)| {
            *is_bad = *is_bad || !reads_as_summary(entry, session);
            *is_bad
        });
        self.0.iter().map(|(entry, _)| Finding {
            rule: Rule::NotASummary,
            subject: Subject::of(&entry.origin),
        })
    }
}

/// Whether the entry may be a summary of the session's messages that it represents.
fn reads_as_summary(entry: &Entry, session: &Session) -> bool {
    let ranges = match &entry.origin {
        Origin::Derived(ranges) => &ranges[..],
        _ => &[],
    };
    let messages = ranges.iter().filter_map(|range| session.messages().get(range.clone()));
    let source = messages.flatten().flat_map(|message| message.model_text());
    summary::reads_as_summary(entry.message.model_text(), source)
}

#[cfg(test)]
mod tests;
