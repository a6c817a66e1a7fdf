//! Tests which items are restored, in which order, and within which budgets.

use super::*;
use crate::session::Message;
use crate::strategy::situation::Overflow;
use crate::strategy::stage::trial::{Trial, answers, asks, build, fails, said, typed};
use crate::window::Window;

fn round(id: &str, tool: &str, input: &str, result: &str) -> [Message; 2] {
    [asks(&[(id, tool, input)]), answers(&[(id, result)])]
}

fn read(id: &str, path: &str, result: &str) -> [Message; 2] {
    round(id, "Read", &format!(r#"{{"file_path":"{path}"}}"#), result)
}

/// The items that are restored once all messages but the last were replaced.
fn put_back(knobs: &str, rounds: &[[Message; 2]]) -> Vec<String> {
    let mut trial = Trial::new("restore", knobs);
    trial.append([typed("go")]);
    for round in rounds {
        trial.append(round.clone());
    }
    trial.append([said("ok"), typed("go on")]);
    assert_eq!(trial.fire().unwrap(), None, "nothing is gone yet");
    let end = trial.context.entries().len() - 1;
    trial.replace(0..end, "summary");
    trial.fire().unwrap();
    let texts = trial.texts();
    assert_eq!(texts[..2], ["summary", "go on"]);
    let found = texts[2..].iter().map(|&text| text.to_owned()).collect();
    // It is there now.
    trial.replace(0..1, "another summary");
    assert_eq!(trial.fire().unwrap(), None);
    found
}

#[track_caller]
fn check(knobs: &str, rounds: &[[Message; 2]], expected: &[&str]) {
    assert_eq!(put_back(knobs, rounds), expected, "{knobs}");
}

#[test]
fn files_come_back_as_they_were_used_last() {
    let three = [read("1", "a", "AAA"), read("2", "b", "BBB"), read("3", "a", "AA2")];
    let (a, b) = ("[Put back: file a]\nAA2", "[Put back: file b]\nBBB");
    check("", &three, &[a, b]);
    check("max_files = 1", &three, &[a]);
    check("sources = ['todo', 'skills']", &three, &[]);
    let edit = round("e", "Edit", r#"{"file_path":"b"}"#, "done");
    let [older, of_b, newer] = three;
    let changed = "[Put back: file b]\n[It was changed after this.]\nBBB";
    check("", &[older, of_b, newer.clone(), edit.clone()], &[changed, a]);
    // A written file is known as a whole, and a failed write is not known.
    let write = round("w", "Write", r#"{"file_path":"b","content":"NEW"}"#, "done");
    check("", &[edit, write], &["[Put back: file b]\nNEW"]);
    let failed = [asks(&[("f", "Read", r#"{"file_path":"c"}"#)]), fails("f", "no")];
    check("", &[newer, failed], &[a]);
}

/// As recorded with Claude Code 2.1.332.
#[test]
fn a_file_that_a_command_shows_comes_back_beside_its_result() {
    let [asks, answers] = round("1", "Bash", r#"{"command":"cat a"}"#, "AAA");
    for (sources, last) in [("", "[Put back: file a]\nAAA"), ("sources = ['files']", "AAA")] {
        let mut trial = Trial::new("restore", sources);
        trial.append([typed("go"), said("ok"), asks.clone(), answers.clone()]);
        trial.replace(0..2, "summary");
        trial.fire().unwrap();
        assert_eq!(trial.texts().last(), Some(&last), "{sources}");
    }
}

#[test]
fn the_reminders_of_the_first_prompt_come_back() {
    let mut trial = Trial::new("restore", "");
    let reminder = "<system-reminder>\nYou are in a folder.\n</system-reminder>";
    let later = "<system-reminder>\nA file has changed.\n</system-reminder>";
    trial.append([typed(reminder), typed("go"), said("ok"), typed(later), said("ok")]);
    for summary in ["summary", "another summary"] {
        trial.replace(0..trial.context.entries().len(), summary);
        trial.fire().unwrap();
        let back = format!("[Put back: reminder]\n{reminder}");
        assert_eq!(trial.texts(), [summary, &*back]);
    }
}

#[test]
fn budgets_hold_for_each_and_for_all() {
    let long = "x".repeat(400);
    let files = [read("1", "a", &long), read("2", "b", "short"), read("3", "c", &long)];
    // 25 tokens: five for the heading, one for the mark, nineteen times four characters.
    let cut = |path: &str| format!("[Put back: file {path}]\n{}\n[…]", "x".repeat(76));
    let b = "[Put back: file b]\nshort";
    let each = "max_tokens_per_file = 25";
    check(each, &files, &[&cut("c"), b, &cut("a")]);
    // 25 and 6; the third does not fit, and would.
    check(&format!("{each}\ntotal_tokens = 55"), &files, &[&cut("c"), b]);
    check(&format!("{each}\ntotal_tokens = 56"), &files, &[&cut("c"), b, &cut("a")]);
    check(&format!("{each}\ntotal_tokens = 24"), &files, &[b]);
}

#[test]
fn what_hooks_report_stands_behind_everything_else() {
    let file = [read("1", "a", "AAA")];
    let knobs = "hook_results = 'Remember the style guide.'";
    check(knobs, &file, &["[Put back: file a]\nAAA", "Remember the style guide."]);
    let none = format!("{knobs}\nmax_files = 0");
    check(&none, &file, &["Remember the style guide."]);
}

#[test]
fn a_hook_is_told_what_came_out_and_reports_once_per_compaction() {
    let file = [read("1", "a", "AAA"), read("2", "b", "BBB")];
    let knobs = "hook_results = '{messages} messages gone, {restored} things back.'";
    let (a, b) = ("[Put back: file a]\nAAA", "[Put back: file b]\nBBB");
    // Six of the seven messages made way.
    check(knobs, &file, &[b, a, "6 messages gone, 2 things back."]);
    let mut trial = Trial::new("restore", "max_files = 0\nhook_results = 'Now {tokens} tokens.'");
    trial.append([typed("go"), said("ok"), typed("go on")]);
    trial.replace(0..2, "summary");
    trial.fire().unwrap();
    let told = |trial: &Trial| trial.texts().last().map(|&text| text.to_owned());
    // "summary" and "go on" are two tokens each.
    assert_eq!(told(&trial).unwrap(), "Now 4 tokens.");
    assert_eq!(trial.fire().unwrap(), None);
    trial.append([said("ok")]);
    trial.replace(0..2, "a summary of both");
    trial.fire().unwrap();
    assert_ne!(told(&trial).unwrap(), "Now 4 tokens.");
}

#[test]
fn after_a_refusal_no_more_comes_back_than_the_window_has_room_for() {
    let long = "x".repeat(400);
    let files = [read("1", "a", &long), read("2", "b", "BBB")];
    let mut trial = Trial::new("restore", "hook_results = 'Done.'");
    trial.append([typed("go")]);
    for round in files {
        trial.append(round);
    }
    let end = trial.context.entries().len();
    trial.replace(0..end, "summary");
    trial.cx.window = Window::new(trial.cx.prompt(&trial.context) + Tokens(20));
    trial.cx.overflow = Some(Overflow { prompt: Tokens(1_000), attempt: 0 });
    trial.fire().unwrap();
    let texts = trial.texts();
    assert_eq!(texts[1..], ["[Put back: file b]\nBBB", "Done."]);
    assert!(trial.cx.prompt(&trial.context) <= trial.cx.window.tokens);
}

#[test]
fn the_task_list_and_skills_come_back_too() {
    let rounds = [
        round("1", "TodoWrite", r#"{"todos":["old"]}"#, "ok"),
        round("2", "TodoWrite", r#"{"todos":["new"]}"#, "ok"),
        round("3", "Skill", r#"{"skill":"release"}"#, "How to release."),
        round("4", "load_skill", r#"{"name":"review"}"#, "How to review."),
        read("5", "a", "AAA"),
    ];
    let file = "[Put back: file a]\nAAA";
    let list = "[Put back: task list]\n{\"todos\":[\"new\"]}";
    let release = "[Put back: skill {\"skill\":\"release\"}]\nHow to release.";
    let review = "[Put back: skill {\"name\":\"review\"}]\nHow to review.";
    check("", &rounds, &[file, list, review, release]);
    check("sources = ['todo']", &rounds, &[list]);
    check("sources = ['skills']\nskills_total_tokens = 20", &rounds, &[review]);
    let asked = round("6", "TodoRead", "{}", "1. new");
    check("sources = ['todo']", &[rounds[0].clone(), asked], &["[Put back: task list]\n1. new"]);
}

#[test]
fn the_newest_plan_comes_back_and_lists_of_skills_do_not() {
    let rounds = [
        round("1", "ExitPlanMode", r#"{"plan":"first"}"#, "No."),
        round("2", "ExitPlanMode", r#"{"plan":"second"}"#, "Approved."),
        // A listing is no skill that was loaded.
        round("3", "list_skills", "{}", "release, review"),
        read("4", "a", "AAA"),
    ];
    let file = "[Put back: file a]\nAAA";
    let plan = "[Put back: plan]\n{\"plan\":\"second\"}";
    check("", &rounds, &[file, plan]);
    check("sources = ['plans']", &rounds, &[plan]);
    check("sources = ['files']", &rounds, &[file]);
}

#[test]
fn what_is_still_there_is_not_put_back() {
    let mut trial = Trial::new("restore", "");
    trial.append([typed("go")]);
    trial.append(read("1", "a", "AAA"));
    trial.append(read("2", "b", "BBB"));
    trial.replace(0..3, "summary");
    assert_eq!(trial.fire().unwrap().unwrap(), "1 things put back");
    assert_eq!(trial.texts()[3], "[Put back: file a]\nAAA");
    assert_eq!(trial.context.entries()[3].origin, Origin::Restored(2));
    // Read again, and gone again: what was put back is out of date.
    trial.append(read("3", "a", "AA2"));
    trial.replace(0..1, "another summary");
    assert_eq!(trial.fire().unwrap(), None);
    let end = trial.context.entries().len();
    trial.replace(end - 1..end, "a last one");
    assert_eq!(trial.fire().unwrap().unwrap(), "1 things put back");
    assert_eq!(*trial.texts().last().unwrap(), "[Put back: file a]\nAA2");
}

#[test]
fn an_unknown_source_is_refused() {
    let error = build("restore", "sources = ['memory']").unwrap_err();
    assert_eq!(
        error.to_string(),
        "`own.toml`: line 1: `restore.sources` names `memory`: it must be of `files`, `plans`, `todo`, \
         `skills`, `reminders`, `shown`"
    );
}
