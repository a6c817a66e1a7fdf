//! When notes are written, what they cover, and what stands in for what.

use super::*;
use crate::model::CallFailure;
use crate::model::scripted::response;
use crate::strategy::stage::trial::{Trial, answers, asks, said, typed};
use crate::units::ApiCallId;

/// A text of a hundred tokens.
fn text(name: usize) -> String {
    format!("message {name} {}", "x".repeat(400))[..400].to_owned()
}

/// So many messages of a hundred tokens, the user's first.
fn talk(range: std::ops::Range<usize>) -> impl Iterator<Item = Message> {
    range.map(|at| match at % 2 {
        0 => typed(&text(at)),
        _ => said(&text(at)),
    })
}

/// The session's messages that the context still holds, behind the notes.
fn kept(trial: &Trial) -> Vec<usize> {
    let entries = trial.context.entries().iter();
    entries.filter(|entry| !is_boundary(entry)).filter_map(newest_message).collect()
}

#[test]
fn notes_are_written_as_messages_come_in() {
    let mut trial = Trial::new("session_memory", "init_tokens = 300\nupdate_every_tokens = 201");
    trial.will_answer(Ok(response("FIRST")));
    let mut asked = Vec::new();
    for at in 0..5 {
        trial.append(talk(2 * at..2 * at + 2));
        asked.push(trial.asked().len());
    }
    assert_eq!(asked, [0, 1, 1, 2, 2]);
    let said = |request: usize, part: &str| {
        let request = &trial.asked()[request];
        assert_eq!(request.purpose, Purpose::Background);
        request.messages[0].model_text()[0].contains(part)
    };
    for at in 0..4 {
        assert!(said(0, &text(at)), "{at}");
        assert!(!said(1, &text(at)), "{at}");
    }
    assert!(!said(0, "<notes>"));
    assert!(said(1, "<notes>\nFIRST\n</notes>"));
    assert!(said(1, &text(4)) && said(1, &text(7)));
}

/// Notes that cover messages 0 to 5, and then 6, 7 and 8.
fn remembered(knobs: &str) -> Trial {
    let all = "init_tokens = 600\nupdate_every_tokens = 100_000\nreserve_tokens = 0";
    let mut trial = Trial::new("session_memory", &format!("{all}\n{knobs}"));
    trial.append(talk(0..9));
    assert_eq!(trial.asked().len(), 1);
    trial
}

#[test]
fn what_the_notes_do_not_cover_is_kept_and_more_up_to_the_minimums() {
    for (knobs, from) in [
        ("min_tokens = 1\nmin_text_messages = 0", 6),
        ("min_tokens = 300\nmin_text_messages = 3", 6),
        ("min_tokens = 301\nmin_text_messages = 3", 5),
        ("min_tokens = 1\nmin_text_messages = 5", 4),
        // Both minimums must hold.
        ("min_tokens = 700\nmin_text_messages = 4", 2),
        // Unless the maximum is reached; the message that reaches it is kept.
        ("min_tokens = 700\nmax_tokens = 401", 4),
        ("min_tokens = 700\nmax_tokens = 300", 6),
        ("min_tokens = 700\nmax_tokens = 1", 6),
    ] {
        let mut trial = remembered(knobs);
        let reason = trial.fire().unwrap();
        assert_eq!(reason.unwrap(), format!("notes in place of {from} messages"), "{knobs}");
        assert_eq!(kept(&trial), (from..9).collect::<Vec<_>>(), "{knobs}");
        let notes = &trial.context.entries()[0];
        assert_eq!(newest_message(notes), Some(from - 1));
        assert_eq!(trial.texts()[0], "Notes on the conversation so far:\n\nS");
    }
    // No call was made for it.
    let mut trial = remembered("min_tokens = 1");
    trial.fire().unwrap();
    assert_eq!(trial.asked().len(), 1);
}

#[test]
fn where_nothing_would_be_gained_a_later_stage_is_left_to_do_it() {
    let enough = "min_tokens = 1\nmin_text_messages = 0";
    for (knobs, window, is_done) in [
        (enough, 200_000, true),
        // Three messages and nine tokens of notes.
        (enough, 309, false),
        (enough, 310, true),
        ("min_tokens = 100_000", 200_000, false),
    ] {
        let mut trial = remembered(knobs).within(window);
        assert_eq!(trial.fire().unwrap().is_some(), is_done, "{knobs} {window}");
    }
    let reserved = format!("{enough}\ninit_tokens = 0\nreserve_tokens = 13_000");
    for (window, is_done) in [(13_109, false), (13_110, true)] {
        let mut trial = Trial::new("session_memory", &reserved).within(window);
        trial.append(talk(0..3));
        assert_eq!(trial.fire().unwrap().is_some(), is_done, "{window}");
    }
    // No notes yet.
    let mut trial = Trial::new("session_memory", enough);
    trial.append(talk(0..9));
    assert_eq!(trial.fire().unwrap(), None);
}

#[test]
fn once_they_were_used_the_notes_are_taken_to_cover_everything() {
    let mut trial = remembered("min_tokens = 150\nmin_text_messages = 1");
    trial.fire().unwrap();
    assert_eq!(kept(&trial), [6, 7, 8]);
    assert_eq!(trial.fire().unwrap().unwrap(), "notes in place of 2 messages");
    assert_eq!(kept(&trial), [7, 8]);
    // At rest: the notes would stand for themselves.
    assert_eq!(trial.fire().unwrap(), None);
    trial.append(talk(9..11));
    trial.fire().unwrap();
    assert_eq!(kept(&trial), [9, 10]);
    let notes = &trial.context.entries()[0];
    assert_eq!(newest_message(notes), Some(8));
}

#[test]
fn notes_of_an_earlier_session_are_taken_to_cover_everything() {
    let knobs = "min_tokens = 250\nmin_text_messages = 1\nupdate_every_tokens = 100";
    let mut trial = Trial::new("session_memory", knobs);
    trial.cx.notes = Some("EARLIER".into());
    trial.append(talk(0..9));
    // They stand in the next request for notes too.
    assert!(trial.asked()[0].messages[0].model_text()[0].contains("<notes>\nEARLIER\n"));
    let mut trial = Trial::new("session_memory", &knobs.replace("= 100", "= 100_000"));
    trial.cx.notes = Some("EARLIER".into());
    trial.append(talk(0..9));
    trial.fire().unwrap();
    assert!(trial.asked().is_empty());
    assert_eq!(kept(&trial), [6, 7, 8]);
    assert!(trial.texts()[0].ends_with("EARLIER"));
}

#[test]
fn what_belongs_together_is_kept_together() {
    let small = "min_tokens = 1\nmin_text_messages = 0\ninit_tokens = 300\n\
                 update_every_tokens = 100_000";
    // The notes are written when the call has been made, and not been answered.
    let mut trial = Trial::new("session_memory", small);
    trial.append(talk(0..2));
    trial.append([typed(&text(2)), asks(&[("a", "Read", "{}")])]);
    trial.append([answers(&[("a", "result")])]);
    trial.fire().unwrap();
    assert_eq!(kept(&trial), [3, 4]);
    // Two parts of one response, with a result between them.
    let part = |id: &str| {
        let mut message = asks(&[(id, "Read", "{}")]);
        message.details.api_call = Some(ApiCallId("call".into()));
        message
    };
    let mut trial = Trial::new("session_memory", &small.replace("300", "400"));
    trial.append(talk(0..2));
    trial.append([typed(&text(2)), part("a"), answers(&[("a", &text(4))]), part("b")]);
    trial.append([answers(&[("b", "result")])]);
    trial.fire().unwrap();
    assert_eq!(kept(&trial), [3, 4, 5, 6]);
}

#[test]
fn notes_that_could_not_be_written_leave_the_old_ones() {
    let knobs = "init_tokens = 1\nupdate_every_tokens = 1\nmin_tokens = 1\nmin_text_messages = 0";
    let mut trial = Trial::new("session_memory", knobs);
    for answer in [Ok(response("OLD")), Err(CallFailure::Timeout), Ok(response("  "))] {
        trial.will_answer(answer);
    }
    trial.append(talk(0..6));
    assert_eq!(trial.failures, [StageError::Call(CallFailure::Timeout), StageError::EmptySummary]);
    trial.append(talk(6..7));
    trial.fire().unwrap();
    assert_eq!(trial.texts()[0], "Notes on the conversation so far:\n\nOLD");
    assert_eq!(kept(&trial), [2, 3, 4, 5, 6]);
}
