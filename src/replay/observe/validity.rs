//! What the strategy broke: rules that a prompt breaks and the full history at that call does not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{CallView, Observer};
use crate::context::validity::{Checker, Finding, Rule, Subject, is_summary};
use crate::context::{Applied, Entry, Origin};
use crate::record::{CellRecord, Violation};
use crate::session::wire::Provider;
use crate::session::{ContentBlock, Message, Role, Session, Tag};
use crate::tokens::Size;

/// Identifiers that the messages behind a summary must hold before it is missed that the summary
/// names none of them: prose about nothing in particular has fewer.
const ENOUGH_IDENTIFIERS: usize = 20;

/// Follows the context and the full history side by side.
///
/// What the full history breaks at a call is the session's own; the rest becomes
/// [`CellRecord::violations`]. A call at which nothing is wrong costs what was appended and
/// patched since the last one.
#[derive(Debug, Default)]
pub struct Validity {
    provider: Provider,
    sent: Checker,
    history: Checker,
    /// Messages of the session that are in `history`.
    fed: usize,
    /// What the user said last, as an index into the session.
    user_message: Option<usize>,
    words: Words,
    summaries: Summaries,
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
        self.words.enters(entry);
        self.summaries.enters(entry);
    }

    fn patched(&mut self, applied: &Applied) {
        self.sent.patch(applied);
        let change = &applied.change;
        for entry in change.edits.iter().flat_map(|edit| &edit.with) {
            self.words.enters(entry);
            self.summaries.enters(entry);
        }
        for entry in &change.removed {
            self.words.leaves(entry);
            self.summaries.leaves(entry);
        }
        if !change.removed.is_empty() && change.after.tokens >= change.before.tokens {
            self.patches.insert(Finding {
                rule: Rule::NotSmaller,
                subject: Subject::Stage(applied.stage.clone()),
            });
        }
    }

    fn called(&mut self, view: &CallView<'_>) {
        self.feed(view.session, view.before);
        let mut findings = self.sent.findings();
        if !findings.is_empty() {
            let own = self.history.findings();
            findings.retain(|finding| !own.contains(finding));
        }
        findings.append(&mut self.patches);
        findings.extend(self.summaries.findings(view.session));
        if let Some(at) = self.user_message
            && !self.words.stand(at, view.session)
        {
            findings.insert(Finding {
                rule: Rule::UserMessageAltered,
                subject: Subject::Message(at),
            });
        }
        self.note(findings, view.call);
    }

    fn finish(mut self: Box<Self>, record: &mut CellRecord) {
        self.note(BTreeSet::new(), self.next);
        self.closed.sort_by(|left, right| {
            let key = |violation: &Violation| {
                let Violation {
                    call,
                    rule,
                    subject,
                    ..
                } = violation;
                (*call, rule.clone(), subject.clone())
            };
            key(left).cmp(&key(right))
        });
        record.violations = self.closed;
    }
}

impl Validity {
    /// Checks prompts by the rules of this provider.
    pub fn new(provider: Provider) -> Self {
        Self {
            provider,
            sent: Checker::new(provider),
            history: Checker::new(provider),
            ..Self::default()
        }
    }

    /// Brings the full history up to the message `before`.
    fn feed(&mut self, session: &Session, before: usize) {
        let new = session.messages().iter().enumerate();
        for (at, message) in new.take(before).skip(self.fed) {
            self.history.append(&Entry {
                origin: Origin::Verbatim(at),
                message: message.clone(),
                size: Size::default(),
            });
            if is_said_by_user(message) {
                self.user_message = Some(at);
            }
        }
        self.fed = self.fed.max(before);
    }

    /// Takes note of what is wrong at a call: what is no longer wrong becomes a violation.
    fn note(&mut self, findings: BTreeSet<Finding>, call: usize) {
        let end = self.next;
        self.next = call + 1;
        let (closed, provider) = (&mut self.closed, self.provider);
        self.open.retain(|finding, first| {
            let stands = call == end && findings.contains(finding);
            if !stands && let Some(level) = finding.rule.level(provider) {
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

/// Whether the message holds words of the user: more than tool results, and not injected.
fn is_said_by_user(message: &Message) -> bool {
    let injected = [
        Tag::Synthetic,
        Tag::Meta,
        Tag::CompactSummary,
        Tag::CompactBoundary,
    ];
    message.role() == Role::User
        && !injected.iter().any(|tag| message.has_tag(*tag))
        && message
            .content()
            .iter()
            .any(|block| !matches!(block, ContentBlock::ToolResult(_)))
}

/// Which messages of the session the context holds word for word, tool results apart.
#[derive(Debug, Default)]
struct Words {
    whole: BTreeMap<usize, usize>,
    /// What was put back may be a part: it is compared when it matters.
    restored: BTreeMap<usize, Vec<Arc<Message>>>,
}

impl Words {
    fn enters(&mut self, entry: &Entry) {
        if let Origin::Restored(at) = entry.origin {
            let list = self.restored.entry(at).or_default();
            list.push(entry.message.clone());
        } else if let Some(at) = whole(entry) {
            *self.whole.entry(at).or_default() += 1;
        }
    }

    fn leaves(&mut self, entry: &Entry) {
        if let Origin::Restored(at) = entry.origin {
            if let Some(list) = self.restored.get_mut(&at)
                && let Some(index) = list.iter().position(|it| Arc::ptr_eq(it, &entry.message))
            {
                list.swap_remove(index);
            }
        } else if let Some(at) = whole(entry)
            && let Some(count) = self.whole.get_mut(&at)
        {
            *count = count.saturating_sub(1);
        }
    }

    fn stand(&self, at: usize, session: &Session) -> bool {
        let content = || session.messages().get(at).map(|message| message.content());
        self.whole.get(&at).is_some_and(|count| *count > 0)
            || self
                .restored
                .get(&at)
                .is_some_and(|list| list.iter().any(|it| Some(it.content()) == content()))
    }
}

/// The message of which the entry says everything but tool results as it was.
fn whole(entry: &Entry) -> Option<usize> {
    match &entry.origin {
        Origin::Verbatim(at) => Some(*at),
        Origin::Edited { message, .. } => {
            let content = entry.message.content();
            let kept = |(block, content): (usize, &ContentBlock)| {
                matches!(content, ContentBlock::ToolResult(_)) || entry.is_verbatim(block)
            };
            content.iter().enumerate().all(kept).then_some(*message)
        }
        Origin::Derived(_) | Origin::Restored(_) | Origin::Authored => None,
    }
}

/// The summaries in the context, and which of them are none.
#[derive(Debug, Default)]
struct Summaries {
    /// Summaries that nobody has looked at.
    new: Vec<Entry>,
    /// Those that are none.
    bad: Vec<Entry>,
}

impl Summaries {
    fn enters(&mut self, entry: &Entry) {
        if is_summary(entry) {
            self.new.push(entry.clone());
        }
    }

    fn leaves(&mut self, entry: &Entry) {
        if is_summary(entry) {
            for list in [&mut self.new, &mut self.bad] {
                if let Some(at) = list.iter().position(|it| it == entry) {
                    list.remove(at);
                    return;
                }
            }
        }
    }

    fn findings(&mut self, session: &Session) -> impl Iterator<Item = Finding> {
        let new = self
            .new
            .drain(..)
            .filter(|entry| !reads_as_summary(entry, session));
        self.bad.extend(new);
        self.bad.iter().map(|entry| Finding {
            rule: Rule::NotASummary,
            subject: Subject::of(&entry.origin),
        })
    }
}

/// Whether a text may be a summary of the messages it stands for.
///
/// It is none if it is a single question (a heading in brackets, such as `[Compressed]`, apart),
/// or if it names none of the identifiers in these messages though they hold many. Anything else
/// passes: whether a text tells the *right* things is what probes are for. A text that a fixed
/// sentence introduces is not recognised as a question, and an identifier that stands in the
/// introduction counts.
fn reads_as_summary(summary: &Entry, session: &Session) -> bool {
    let texts = summary.message.model_text();
    if is_question(texts) {
        return false;
    }
    let Origin::Derived(ranges) = &summary.origin else {
        return true;
    };
    let named: BTreeSet<&str> = texts.iter().flat_map(|text| identifiers(text)).collect();
    let mut missed = BTreeSet::new();
    let source = ranges
        .iter()
        .filter_map(|range| session.messages().get(range.clone()))
        .flatten()
        .flat_map(|message| message.model_text());
    for identifier in source.flat_map(|text| identifiers(text)) {
        if named.contains(identifier) {
            return true;
        }
        if missed.len() < ENOUGH_IDENTIFIERS {
            missed.insert(identifier);
        }
    }
    missed.len() < ENOUGH_IDENTIFIERS
}

fn is_question(texts: &[Arc<str>]) -> bool {
    let mut lines = texts
        .iter()
        .flat_map(|text| text.lines())
        .map(str::trim)
        .filter(|line| !(line.is_empty() || line.starts_with('[') && line.ends_with(']')));
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return false;
    };
    line.ends_with('?') && !line.contains(". ")
}

/// The words that a text shares with another only for a reason: ASCII words of four characters
/// and more with a digit, `_`, `/`, `.` or a later capital in them.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.' | '-')))
        .map(|word| word.trim_matches(['.', '-', '/']))
        .filter(|word| {
            word.len() >= 4
                && word.bytes().enumerate().any(|(at, byte)| {
                    byte.is_ascii_digit()
                        || matches!(byte, b'_' | b'/' | b'.')
                        || (at > 0 && byte.is_ascii_uppercase())
                })
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::validity::{Level, short};
    use crate::context::{Context, Edit};
    use crate::record::{ActionSupport, Arm, End};
    use crate::session::SessionParts;
    use crate::tokens::{CharsPer4, CountedTexts};
    use crate::units::Tokens;

    /// A change before a call.
    struct Change {
        call: usize,
        edit: Edit,
    }

    fn replace(call: usize, entries: std::ops::Range<usize>, with: &[(Origin, &str)]) -> Change {
        let counts = CountedTexts::new(Arc::new(CharsPer4));
        let with = with.iter().map(|(origin, text)| {
            let message = short::messages(text).swap_remove(0);
            Entry::new(origin.clone(), Arc::new(message), &counts)
        });
        let with = with.collect();
        Change {
            call,
            edit: Edit::Replace { entries, with },
        }
    }

    fn edit(call: usize, entry: usize, block: usize, text: &str) -> Change {
        let cache = crate::context::CacheEffect::Breaks;
        let text = text.into();
        Change {
            call,
            edit: Edit::EditBlock {
                entry,
                block,
                text,
                cache,
            },
        }
    }

    fn summary(start: usize, end: usize) -> Origin {
        Origin::Derived(std::iter::once(start..end).collect())
    }

    /// Replays a session with these changes; each violation is `rule: subject @ call × calls`.
    fn check(text: &str, changes: &[Change], expected: &[&str]) {
        let counts = CountedTexts::new(Arc::new(CharsPer4));
        let session = Session::new(SessionParts {
            id: "s".into(),
            messages: short::messages(text).into_iter().map(Arc::new).collect(),
            ..SessionParts::default()
        });
        let session = session.unwrap();
        let mut observer = Box::<Validity>::default();
        let mut context = Context::default();
        for (at, message) in session.messages().iter().enumerate() {
            if let Ok(call) = session.calls().binary_search(&at) {
                for change in changes.iter().filter(|change| change.call == call) {
                    let change = context.apply(vec![change.edit.clone()], &counts).unwrap();
                    let (stage, reason) = ("test".into(), String::new());
                    observer.patched(&Applied {
                        call,
                        stage,
                        reason,
                        change,
                    });
                }
                observer.called(&CallView {
                    call,
                    before: at,
                    session: &session,
                    context: &context,
                    fixed: Size::default(),
                    response: message,
                });
            }
            let entry = Entry::new(Origin::Verbatim(at), message.clone(), &counts);
            observer.appended(&entry);
            context.append(entry);
        }
        let mut record = record();
        observer.finish(&mut record);
        let found: Vec<String> = record
            .violations
            .iter()
            .map(|violation| {
                let Violation {
                    call,
                    calls,
                    rule,
                    subject,
                    level,
                } = violation;
                let rejected = ["", "!"][usize::from(*level == Level::Rejected)];
                format!("{rule}{rejected}: {subject} @ {call} × {calls}")
            })
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    fn record() -> CellRecord {
        CellRecord {
            session: String::new(),
            strategy: String::new(),
            repeat: 0,
            arm: Arm::Strategy,
            end: End::Completed,
            planned_calls: 0,
            reached_calls: 0,
            window: None,
            fixed_tokens: Tokens::ZERO,
            prompt_tokens: Vec::new(),
            model_calls: Vec::new(),
            compactions: Vec::new(),
            failures: Vec::new(),
            violations: Vec::new(),
            overflows: Vec::new(),
            faults: Vec::new(),
            action_support: ActionSupport::default(),
            probes: Vec::new(),
            counter_error: None,
            saved_texts: 0,
        }
    }

    const WORK: &str = "U(do-the-task) A(+1) U(=1) A(+2) U(=2) A(+3) U(=3) A(done)";

    #[test]
    fn an_untouched_context_breaks_nothing() {
        check(WORK, &[], &[]);
    }

    #[test]
    fn what_the_session_breaks_itself_is_no_violation() {
        let broken = "A(hi) U(=0) A(+1) U(so =1 _) A(+2 +2) U(wait) A(+3) A(+4) U(=4 =4) A(end)";
        check(broken, &[], &[]);
        // Only what the strategy adds counts, with the session's own faults all around.
        let cut = replace(4, 2..3, &[]);
        let expected = ["orphan_result!: tool use 1 @ 4 × 2"];
        check(broken, &[cut], &expected);
    }

    #[test]
    fn a_finding_stands_until_it_is_mended() {
        let cut = replace(1, 1..2, &[]);
        let orphan = "orphan_result!: tool use 1 @ 1 × 3";
        check(WORK, &[cut], &[orphan]);
        let (cut, mend) = (replace(1, 1..2, &[]), replace(2, 1..2, &[]));
        check(WORK, &[cut, mend], &["orphan_result!: tool use 1 @ 1 × 1"]);
        let cut = |call| replace(call, 1..2, &[]);
        let back = replace(2, 1..1, &[(Origin::Restored(1), "A(+1)")]);
        let twice = [
            "orphan_result!: tool use 1 @ 1 × 1",
            "orphan_result!: tool use 1 @ 3 × 1",
        ];
        check(WORK, &[cut(1), back, cut(3)], &twice);
    }

    #[test]
    fn every_rule_about_tools_is_seen() {
        let pending = [
            "prefill: prompt @ 3 × 1",
            "unanswered_use!: tool use 3 @ 3 × 1",
        ];
        check(WORK, &[replace(3, 6..7, &[])], &pending);
        let remark = replace(3, 6..6, &[(Origin::Authored, "U(by-the-way)")]);
        let late = ["results_not_first!: tool use 3 @ 3 × 1"];
        check(WORK, &[remark], &late);
        let twice = replace(3, 6..6, &[(Origin::Restored(6), "U(=3)")]);
        check(WORK, &[twice], &["duplicate_result!: tool use 3 @ 3 × 1"]);
        let again = [
            (Origin::Restored(1), "A(+1)"),
            (Origin::Restored(2), "U(=1)"),
        ];
        let again = replace(3, 7..7, &again);
        check(WORK, &[again], &["duplicate_use!: tool use 1 @ 3 × 1"]);
    }

    #[test]
    fn a_prompt_begins_with_the_user_and_holds_the_users_words() {
        let altered = "user_message_altered: message 0 @ 2 × 2";
        check(
            WORK,
            &[replace(2, 0..1, &[])],
            &["first_not_user!: prompt @ 2 × 2", altered],
        );
        check(WORK, &[edit(2, 0, 0, "t")], &[altered]);
        let restored = |text| [replace(2, 0..1, &[(Origin::Restored(0), text)])];
        check(WORK, &restored("U(do)"), &[altered]);
        check(
            WORK,
            &restored("U(do-the-task)"),
            &["not_smaller: stage test @ 2 × 1"],
        );
        // An older message of the user may go, and a result may be cleared.
        let talk = "U(first-of-all) A(+1) U(=1 then) A(ok) U(last) A(end)";
        check(
            talk,
            &[
                edit(1, 2, 0, ""),
                replace(2, 0..1, &[(summary(0, 1), "U(so)")]),
            ],
            &[],
        );
    }

    #[test]
    fn nothing_that_is_sent_is_empty() {
        let empty = [
            "empty_text!: message 0 @ 1 × 3",
            "user_message_altered: message 0 @ 1 × 3",
        ];
        check(WORK, &[edit(1, 0, 0, " ")], &empty);
        let nothing = [
            "empty_content!: prompt @ 0 × 1",
            "user_message_altered: message 0 @ 0 × 1",
        ];
        check("U(task) A(done)", &[replace(0, 0..1, &[])], &nothing);
    }

    #[test]
    fn thinking_is_not_edited() {
        let expected = ["thinking_edited!: message 1 @ 1 × 1"];
        check(
            "U(task) A(~ ok) U(so) A(end)",
            &[edit(1, 1, 0, "")],
            &expected,
        );
    }

    #[test]
    fn two_summaries_do_not_stand_for_one_message() {
        let long = "U(a-long-first-task-of-many-words) A(ok) U(next) A(ok) U(last) A(end)";
        let first = replace(1, 0..2, &[(summary(0, 2), "U(first)")]);
        let second = replace(2, 1..1, &[(summary(1, 3), "U(second)")]);
        check(
            long,
            &[first, second],
            &["overlapping_summaries: message 1 @ 2 × 1"],
        );
    }

    #[test]
    fn a_summary_is_no_question_and_names_something() {
        let names: Vec<String> = (0..30).map(|at| format!("src/file_{at}.rs")).collect();
        let text = format!("U({}) A(ok) U(more) A(ok) U(last) A(end)", names.join(" "));
        let told = |words| [replace(1, 0..2, &[(summary(0, 2), words)])];
        check(&text, &told("U(I-changed-src/file_7.rs)"), &[]);
        let bad = ["not_a_summary: summary of messages 0..2 @ 1 × 2"];
        check(&text, &told("U(I-changed-some-files)"), &bad);
        let asks = "U([Compressed] What-next-after-src/file_7.rs?)";
        check(&text, &told(asks), &bad);
        check(&text, &told("U(Now-src/file_7.rs. Is-it-right?)"), &[]);
        let mend = replace(2, 0..1, &[(summary(0, 2), "U(src/file_7.rs)")]);
        let [bad_one] = told("U(nothing-to-say-about-it-all)");
        check(
            &text,
            &[bad_one, mend],
            &["not_a_summary: summary of messages 0..2 @ 1 × 1"],
        );
    }

    #[test]
    fn a_patch_that_frees_nothing_is_seen_once() {
        let grows = edit(2, 2, 0, "[what the tool found was cleared]");
        check(WORK, &[grows], &["not_smaller: stage test @ 2 × 1"]);
    }
}
