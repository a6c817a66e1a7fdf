//! Findings of small sessions, written as letters.

use std::sync::Arc;

use super::super::tests::walk;
use super::*;
use crate::context::validity::{Level, short};
use crate::context::{BlockAt, CacheEffect, Context, Edit};
use crate::session::SessionParts;
use crate::tokens::{CharsPer4, CountedTexts};

/// A change before a call.
struct Change {
    call: usize,
    edit: PlannedEdit,
}

enum PlannedEdit {
    Replace(Edit),
    Block(BlockAt, &'static str),
}

fn replacing(entries: std::ops::Range<usize>, with: &[(Origin, &str)]) -> Edit {
    let counts = CountedTexts::new(Arc::new(CharsPer4));
    let with = with.iter().map(|(origin, text)| {
        let message = short::messages(text).swap_remove(0);
        Entry::new(origin.clone(), Arc::new(message), &counts)
    });
    Edit::replacing(entries, with)
}

fn replace(call: usize, entries: std::ops::Range<usize>, with: &[(Origin, &str)]) -> Change {
    Change { call, edit: PlannedEdit::Replace(replacing(entries, with)) }
}

fn edit(call: usize, entry: usize, block: usize, text: &'static str) -> Change {
    Change { call, edit: PlannedEdit::Block(BlockAt { entry, block }, text) }
}

fn summary(start: usize, end: usize) -> Origin {
    Origin::Derived(std::iter::once(start..end).collect())
}

/// Replays a session with these changes; each violation is `rule: subject @ call × calls`.
fn check(text: &str, changes: &[Change], expected: &[&str]) {
    check_by(RuleSet::Anthropic, text, changes, expected);
}

fn check_by(rules: RuleSet, text: &str, changes: &[Change], expected: &[&str]) {
    let counts = CountedTexts::new(Arc::new(CharsPer4));
    let session = Session::new(SessionParts {
        id: "s".into(),
        messages: short::messages(text).into_iter().map(Arc::new).collect(),
        ..SessionParts::default()
    })
    .unwrap();
    let mut observer = Box::new(Validity::new(rules));
    let edits = |call, context: &Context| {
        let due = changes.iter().filter(|change| change.call == call);
        let edits = due.flat_map(|change| match &change.edit {
            PlannedEdit::Replace(edit) => vec![edit.clone()],
            PlannedEdit::Block(at, text) => {
                let text = [(*at, (*text).into())];
                Edit::blocks(context.entries(), text, CacheEffect::Breaks, &counts)
            }
        });
        edits.collect()
    };
    walk(&session, &counts, &mut *observer, edits, |_, _| {});
    let mut record = record();
    observer.finish(&mut record);
    let found: Vec<String> = record
        .violations
        .iter()
        .map(|violation| {
            let Violation { call, calls, rule, subject, level } = violation;
            let rejected = ["", "!"][usize::from(*level == Level::Rejected)];
            format!("{rule}{rejected}: {subject} @ {call} × {calls}")
        })
        .collect();
    assert_eq!(found, expected, "{text}");
}

/// The record of a cell in which nothing happened.
fn record() -> CellRecord {
    let none: [u32; 0] = [];
    let support = serde_json::json!({
        "wanted": none, "present": none, "compacted_wanted": none, "compacted_present": none,
    });
    let record = serde_json::json!({
        "session": "", "strategy": "", "repeat": 0, "arm": "strategy",
        "end": { "end": "completed" }, "planned_calls": 0, "reached_calls": 0,
        "window": null, "fixed_tokens": 0, "prompt_tokens": none,
        "action_support": support, "saved_texts": 0,
    });
    serde_json::from_value(record).unwrap()
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
    let twice = ["orphan_result!: tool use 1 @ 1 × 1", "orphan_result!: tool use 1 @ 3 × 1"];
    check(WORK, &[cut(1), back, cut(3)], &twice);
}

#[test]
fn every_rule_about_tools_is_seen() {
    let pending = ["prefill: prompt @ 3 × 1", "unanswered_use!: tool use 3 @ 3 × 1"];
    check(WORK, &[replace(3, 6..7, &[])], &pending);
    let remark = replace(3, 6..6, &[(Origin::Authored, "U(by-the-way)")]);
    let late = ["results_not_first!: tool use 3 @ 3 × 1"];
    check(WORK, &[remark], &late);
    let twice = replace(3, 6..6, &[(Origin::Restored(6), "U(=3)")]);
    check(WORK, &[twice], &["duplicate_result!: tool use 3 @ 3 × 1"]);
    let again = [(Origin::Restored(1), "A(+1)"), (Origin::Restored(2), "U(=1)")];
    let again = replace(3, 7..7, &again);
    check(WORK, &[again], &["duplicate_use!: tool use 1 @ 3 × 1"]);
}

#[test]
fn a_prompt_begins_with_the_user_and_holds_the_users_words() {
    let altered = "user_message_altered: message 0 @ 2 × 2";
    check(WORK, &[replace(2, 0..1, &[])], &["first_not_user!: prompt @ 2 × 2", altered]);
    check(WORK, &[edit(2, 0, 0, "t")], &[altered]);
    let restored = |text| [replace(2, 0..1, &[(Origin::Restored(0), text)])];
    check(WORK, &restored("U(do)"), &[altered]);
    check(WORK, &restored("U(do-the-task)"), &["not_smaller: stage test @ 2 × 1"]);
    // An older message of the user may go, and a result may be cleared.
    let talk = "U(first-of-all) A(+1) U(=1 then) A(ok) U(last) A(end)";
    check(talk, &[edit(1, 2, 0, ""), replace(2, 0..1, &[(summary(0, 1), "U(so)")])], &[]);
}

#[test]
fn nothing_that_is_sent_is_empty() {
    let empty = ["empty_text!: message 0 @ 1 × 3", "user_message_altered: message 0 @ 1 × 3"];
    check(WORK, &[edit(1, 0, 0, " ")], &empty);
    let nothing = ["empty_content!: prompt @ 0 × 1", "user_message_altered: message 0 @ 0 × 1"];
    check("U(task) A(done)", &[replace(0, 0..1, &[])], &nothing);
}

#[test]
fn thinking_is_not_edited() {
    let expected = ["thinking_edited!: message 1 @ 1 × 1"];
    check("U(task) A(~ ok) U(so) A(end)", &[edit(1, 1, 0, "")], &expected);
}

#[test]
fn two_summaries_do_not_stand_for_one_message() {
    let long = "U(a-long-first-task-of-many-words) A(ok) U(next) A(ok) U(last) A(end)";
    let first = replace(1, 0..2, &[(summary(0, 2), "U(first)")]);
    let second = replace(2, 1..1, &[(summary(1, 3), "U(second)")]);
    check(long, &[first, second], &["overlapping_summaries: message 1 @ 2 × 1"]);
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
    check(&text, &[bad_one, mend], &["not_a_summary: summary of messages 0..2 @ 1 × 1"]);
}

#[test]
fn a_patch_that_frees_nothing_is_seen_once() {
    let grows = edit(2, 2, 0, "[what the tool found was cleared]");
    check(WORK, &[grows], &["not_smaller: stage test @ 2 × 1"]);
}

/// Each message thinks, and asks for a tool.
const THOUGHT: &str = "U(do-the-task) A(~ +1) U(=1) A(~ +2) U(=2) A(~ +3) U(=3) A(done)";

#[test]
fn thinking_belongs_to_the_calls_it_led_to() {
    let without = |call, at: usize, use_: &str| {
        let text = format!("A({use_})");
        replace(call, at..at + 1, &[(summary(at, at + 1), &text)])
    };
    // Anthropic minds the last message of the model alone, and as long as it is the last.
    check(THOUGHT, &[without(2, 1, "+1")], &[]);
    let last = ["thinking_dropped!: message 3 @ 2 × 1"];
    check(THOUGHT, &[without(2, 3, "+2")], &last);
    let by = |rules, expected: &[&str]| check_by(rules, THOUGHT, &[without(2, 1, "+1")], expected);
    by(RuleSet::OpenAiResponses, &["thinking_dropped!: message 1 @ 2 × 2"]);
    by(RuleSet::OpenAi, &[]);
    by(RuleSet::Gemini, &[]);
    // Gone with its call, it is missed by nobody.
    let gone = replace(2, 1..3, &[(summary(1, 3), "U(so-far)")]);
    check_by(RuleSet::OpenAiResponses, THOUGHT, &[gone], &[]);
}

#[test]
fn gemini_wants_the_calls_of_the_turn_as_they_were_made() {
    let changed = [edit(2, 1, 1, r#"{"shorter":1}"#)];
    let larger = "not_smaller: stage test @ 2 × 1";
    let expected = ["call_changed!: message 1 @ 2 × 2", larger];
    check_by(RuleSet::Gemini, THOUGHT, &changed, &expected);
    check(THOUGHT, &changed, &[larger]);
    let spoke = "U(do-the-task) A(~ +1) U(=1) A(done) U(and-this) A(+2) U(=2) A(done)";
    check_by(
        RuleSet::Gemini,
        spoke,
        &[edit(3, 1, 1, r#"{"shorter":1}"#)],
        &["not_smaller: stage test @ 3 × 1"],
    );
}

#[test]
fn what_is_replaced_before_a_prompt_held_it_was_written_for_nothing() {
    let summary = |text| replacing(1..3, &[(summary(1, 3), text)]);
    let again = || replacing(1..2, &[(self::summary(1, 3), "U(so)")]);
    let mut context = Context::default();
    let mut observer = Validity::default();
    for entry in short::entries(WORK) {
        context.append(entry);
    }
    let patch = |context: &mut Context, observer: &mut Validity, edit: Edit| {
        observer.patched(&Applied {
            call: 0,
            stage: "test".into(),
            reason: String::new(),
            change: context.apply(vec![edit]).unwrap(),
            is_still_over: false,
            prepared_at: None,
        });
        observer.patches.iter().map(|it| it.rule).filter(|it| *it == Rule::RewrittenTwice).count()
    };
    assert_eq!(patch(&mut context, &mut observer, summary("U(a-long-summary-of-it)")), 0);
    // An unchanged entry, as `normalize` puts back, is not a replacement.
    let back = Edit::replacing(0..2, context.entries()[..2].to_vec());
    assert_eq!(patch(&mut context, &mut observer, back), 0);
    // A prompt held it.
    observer.written.clear();
    assert_eq!(patch(&mut context, &mut observer, again()), 0);
    assert_eq!(patch(&mut context, &mut observer, again()), 1);
}
