//! Tests which answers are kept, found again, and not found.

use super::*;
use crate::model::scripted::{Scripted, response};
use crate::model::{Stop, Task};
use crate::session::{Message, Role};
use crate::tokens::CharsPer4;
use crate::units::{Tokens, Usage};

fn request(text: &str) -> Request {
    Request {
        purpose: Purpose::Probe,
        task: Task::Answer,
        system: None,
        tools: None,
        messages: vec![
            Arc::new(Message::text(Role::User, "what was said")),
            Arc::new(Message::text(Role::User, text)),
        ],
        max_output: Tokens(64),
        model: None,
    }
}

/// Answers with the number of the request, and counts.
fn counting() -> (Arc<dyn Model>, Arc<Mutex<usize>>) {
    let asked = Arc::new(Mutex::new(0));
    let counter = asked.clone();
    let model = Scripted::new().reply(move |_| {
        let mut asked = counter.lock().unwrap();
        *asked += 1;
        let usage = Usage::uncached(Tokens(10), Tokens(1));
        Ok(Response { usage, ..response(format!("answer {asked}")) })
    });
    (Arc::new(model), asked)
}

fn taped(cassette: &Arc<Cassette>, model: Option<Arc<dyn Model>>) -> CassetteModel {
    let dialect = Dialect::new(crate::session::wire::Provider::Anthropic, "m");
    let spending = Arc::new(Spending::default());
    CassetteModel {
        cassette: cassette.clone(),
        dialect,
        kind: ModelKind::Scripted,
        model,
        spending,
        keeps: |_, response| response.stop != Stop::Refusal,
    }
}

#[test]
fn an_answer_that_could_not_be_kept_serves_no_cell_and_nothing_more_is_asked() {
    let (folder, path) = file();
    let (model, asked) = counting();
    let cassette = Cassette::open(&path, ReplayMode::Auto).unwrap();
    let mut tape = taped(&cassette, Some(model));
    tape.kind = ModelKind::Live;
    // No folder can be made where a file is.
    std::fs::write(folder.path().join("sub"), "").unwrap();
    for asked in ["a", "a", "b", "c", "b"] {
        let refused = text(&tape, asked, 0).unwrap_err();
        assert!(matches!(refused, CallFailure::NotKept(_)), "{refused:?}");
        assert!(refused.to_string().contains("c.jsonl"), "{refused}");
    }
    assert_eq!(*asked.lock().unwrap(), 1);
}

fn counts() -> CountedTexts {
    CountedTexts::new(Arc::new(CharsPer4))
}

fn text(model: &CassetteModel, asked: &str, repeat: u32) -> Result<String, CallFailure> {
    let answered = model.answer(&request(asked), repeat, &counts());
    answered.answer.map(|response| response.text.to_string())
}

fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sub/c.jsonl");
    (folder, path)
}

#[test]
fn what_was_answered_is_asked_once_for_each_repeat_and_found_again() {
    let (_folder, path) = file();
    let (model, asked) = counting();
    let cassette = Cassette::open(&path, ReplayMode::Auto).unwrap();
    let tape = taped(&cassette, Some(model));
    assert_eq!(text(&tape, "a", 0).unwrap(), "answer 1");
    assert_eq!(text(&tape, "a", 0).unwrap(), "answer 1");
    assert_eq!(text(&tape, "a", 1).unwrap(), "answer 2");
    assert_eq!(*asked.lock().unwrap(), 2);
    // Nothing is lost by a process that ends without closing.
    let again = Cassette::open(&path, ReplayMode::Strict).unwrap();
    let tape = taped(&again, None);
    assert_eq!(text(&tape, "a", 1).unwrap(), "answer 2");
    cassette.close().unwrap();
    let sorted = std::fs::read(&path).unwrap();
    let contents = read(&path).unwrap();
    assert_eq!(contents.entries.len(), 2);
    write_sorted(&path, &contents.entries).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), sorted);
    // A process that was killed left them in another order: the next one sorts, though it keeps nothing.
    let mut lines: Vec<&[u8]> = sorted.split_inclusive(|byte| *byte == b'\n').collect();
    lines.swap(1, 2);
    std::fs::write(&path, lines.concat()).unwrap();
    let close = |mode| Cassette::open(&path, mode).unwrap().close().unwrap();
    close(ReplayMode::Strict);
    assert_eq!(std::fs::read(&path).unwrap(), lines.concat());
    close(ReplayMode::Auto);
    assert_eq!(std::fs::read(&path).unwrap(), sorted);
}

#[test]
fn two_processes_on_one_cassette_keep_what_both_have_paid() {
    let (_folder, path) = file();
    let (model, _) = counting();
    let one = Cassette::open(&path, ReplayMode::Auto).unwrap();
    let two = Cassette::open(&path, ReplayMode::Auto).unwrap();
    let (first, second) = (taped(&one, Some(model.clone())), taped(&two, Some(model)));
    text(&first, "a", 0).unwrap();
    text(&second, "b", 0).unwrap();
    one.close().unwrap();
    // The file is another now; the second goes on in it.
    text(&second, "c", 0).unwrap();
    assert_eq!(read(&path).unwrap().entries.len(), 3);
    two.close().unwrap();
    assert_eq!(read(&path).unwrap().entries.len(), 3);
}

#[test]
fn an_answer_that_could_not_be_kept_spoils_no_other() {
    let (_folder, path) = file();
    let (model, _) = counting();
    let cassette = Cassette::open(&path, ReplayMode::Auto).unwrap();
    let tape = taped(&cassette, Some(model));
    text(&tape, "a", 0).unwrap();
    // A full disk leaves half a line, cut in the middle of a character.
    let mut bytes = std::fs::read(&path).unwrap();
    let half = "{\"answer\":\"ü".as_bytes();
    bytes.extend_from_slice(&half[..half.len() - 1]);
    std::fs::write(&path, &bytes).unwrap();
    text(&tape, "b", 0).unwrap();
    let contents = read(&path).unwrap();
    assert_eq!((contents.entries.len(), contents.is_torn), (2, false));
}

#[test]
fn a_line_that_was_cut_off_is_dropped_and_others_follow_it() {
    let (_folder, path) = file();
    let (model, asked) = counting();
    let first = Cassette::open(&path, ReplayMode::Auto).unwrap();
    let tape = taped(&first, Some(model.clone()));
    text(&tape, "a", 0).unwrap();
    text(&tape, "b", 0).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
    let second = Cassette::open(&path, ReplayMode::Auto).unwrap();
    let tape = taped(&second, Some(model));
    assert_eq!(text(&tape, "a", 0).unwrap(), "answer 1");
    assert_eq!(text(&tape, "b", 0).unwrap(), "answer 3");
    assert_eq!(*asked.lock().unwrap(), 3);
    let contents = read(&path).unwrap();
    assert_eq!((contents.entries.len(), contents.is_torn), (2, false));
}

#[test]
fn a_first_line_that_a_power_cut_took_is_written_again() {
    let (_folder, path) = file();
    let (model, asked) = counting();
    let cassette = Cassette::open(&path, ReplayMode::Auto).unwrap();
    text(&taped(&cassette, Some(model)), "a", 0).unwrap();
    cassette.close().unwrap();
    let whole = std::fs::read(&path).unwrap();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut zeroed = whole.clone();
    zeroed[..first].fill(0);
    // Zeros, and a file of which an earlier version had removed them.
    for damaged in [&zeroed[..], &whole[first..]] {
        std::fs::write(&path, damaged).unwrap();
        let cassette = Cassette::open(&path, ReplayMode::Auto).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), whole);
        assert_eq!(text(&taped(&cassette, None), "a", 0).unwrap(), "answer 1");
    }
    assert_eq!(*asked.lock().unwrap(), 1);
}

#[test]
fn a_flipped_bit_anywhere_in_a_cassette_is_refused_and_one_without_checksums_is_renewed() {
    let (_folder, path) = file();
    let (model, _) = counting();
    let cassette = Cassette::open(&path, ReplayMode::Auto).unwrap();
    let tape = taped(&cassette, Some(model));
    text(&tape, "a", 0).unwrap();
    text(&tape, "b", 0).unwrap();
    cassette.close().unwrap();
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        std::fs::write(&path, &flipped).unwrap();
        let in_line = whole[..at].split(|byte| *byte == b'\n').count();
        match read(&path) {
            Err(CassetteError::BadLine(_, line, _)) => assert_eq!(line, in_line, "byte {at}"),
            // Within the name of the format.
            Err(CassetteError::NoCassette(_)) if in_line == 1 => {}
            Ok(Contents { is_torn: true, .. }) if at + 1 == whole.len() => {}
            other => panic!("byte {at}: {other:?}"),
        }
    }
    let unsigned = String::from_utf8(whole.clone()).unwrap();
    let unsigned = unsigned.lines().map(|line| {
        let (text, _) = line.split_once(",\"check\"").unwrap();
        format!("{text}}}\n")
    });
    std::fs::write(&path, unsigned.collect::<String>()).unwrap();
    let refused = read(&path).unwrap_err();
    assert!(refused.hint().unwrap().contains("proctor cache renew"));
    assert_eq!(renew(&path).unwrap(), 2);
    assert_eq!(std::fs::read(&path).unwrap(), whole);
}

#[test]
fn a_request_that_is_not_recorded_says_what_is_different() {
    let (_folder, path) = file();
    let (model, _) = counting();
    let cassette = Cassette::open(&path, ReplayMode::Auto).unwrap();
    let tape = taped(&cassette, Some(model));
    text(&tape, "Question: which port?", 0).unwrap();
    cassette.close().unwrap();
    let strict = Cassette::open(&path, ReplayMode::Strict).unwrap();
    let tape = taped(&strict, None);
    assert_eq!(text(&tape, "Question: which host?", 0), Err(CallFailure::NotRecorded));
    let (misses, said) = strict.missed().unwrap();
    assert_eq!(misses, 1);
    for part in [
        "holds no answer of m to `Question: which host?`",
        "message 2 of 2 is another",
        "it asks `Question: which port?`",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let other = Cassette::open(&path, ReplayMode::Strict).unwrap();
    let tape = taped(&other, None);
    assert_eq!(text(&tape, "Question: which port?", 3), Err(CallFailure::NotRecorded));
    assert!(other.missed().unwrap().1.contains("it is of repeat 0, not 3"));
    let missing = Cassette::open(&path.with_extension("none"), ReplayMode::Strict);
    assert!(matches!(missing, Err(CassetteError::Missing(_))));
}

#[test]
fn failures_and_refusals_are_not_kept() {
    let (_folder, path) = file();
    let refused = Response { stop: Stop::Refusal, ..response("no") };
    let answers = [Err(CallFailure::SERVER), Ok(refused), Ok(response("yes"))];
    let model: Arc<dyn Model> = Arc::new(Scripted::new().answers(answers));
    let cassette = Cassette::open(&path, ReplayMode::Auto).unwrap();
    let tape = taped(&cassette, Some(model));
    assert_eq!(text(&tape, "a", 0), Err(CallFailure::SERVER));
    assert_eq!(text(&tape, "a", 0).unwrap(), "no");
    assert_eq!(text(&tape, "a", 0).unwrap(), "yes");
    assert_eq!(text(&tape, "a", 0).unwrap(), "yes");
    assert_eq!(read(&path).unwrap().entries.len(), 1);
}

#[test]
fn an_answer_to_a_cut_prompt_that_an_earlier_version_kept_counts_as_none() {
    let (folder, path) = file();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    let long = "a word ".repeat(10_000);
    let kept = |model: &str, asked: &str, read: u64| {
        let usage = Usage::uncached(Tokens(read), Tokens(1));
        let answer = Response { usage, ..response("kept") };
        let dialect = Dialect::new(crate::session::wire::Provider::Anthropic, model);
        let key = CassetteModel::key(&dialect, &request(asked), 0).to_string();
        CassetteEntry::of(&key, ModelKind::Live, &dialect, &request(asked), 0, &answer)
    };
    let check = |entries: &[CassetteEntry], expected: &str| {
        write_sorted(&path, entries).unwrap();
        let (model, _) = counting();
        let cassette = Cassette::open(&path, ReplayMode::Auto).unwrap();
        let mut tape = taped(&cassette, Some(model));
        tape.kind = ModelKind::Live;
        assert_eq!(text(&tape, &long, 0).unwrap(), expected);
    };
    let cut = kept("m", &long, 8_192);
    check(&[cut.clone(), kept("other", "x", 20_000)], "answer 1");
    // The server has the room: it reports what its prompt cache did not hold.
    check(&[cut.clone(), kept("m", "x", 20_000)], "kept");
    check(&[kept("m", &long, 19_000)], "kept");
    write_sorted(&path, [&cut]).unwrap();
    let strict = Cassette::open(&path, ReplayMode::Strict).unwrap();
    let mut tape = taped(&strict, None);
    tape.kind = ModelKind::Live;
    assert_eq!(text(&tape, &long, 0), Err(CallFailure::NotRecorded));
    let (_, said) = strict.missed().unwrap();
    assert!(said.contains("had read only 8192 tokens"), "{said}");
}

#[test]
fn recording_asks_anew_once_and_off_keeps_nothing() {
    let (_folder, path) = file();
    let (model, asked) = counting();
    for (mode, expected) in [
        (ReplayMode::Auto, ["answer 1", "answer 1"]),
        (ReplayMode::Record, ["answer 2", "answer 2"]),
        (ReplayMode::Off, ["answer 3", "answer 4"]),
        (ReplayMode::Auto, ["answer 2", "answer 2"]),
    ] {
        let cassette = Cassette::open(&path, mode).unwrap();
        let tape = taped(&cassette, Some(model.clone()));
        for expected in expected {
            let answered = tape.answer(&request("a"), 0, &counts());
            assert_eq!(&*answered.answer.unwrap().text, expected, "{mode:?}");
            assert_eq!(answered.key.is_some(), mode != ReplayMode::Off);
            assert!(answered.paid.is_some());
        }
        cassette.close().unwrap();
    }
    assert_eq!(*asked.lock().unwrap(), 4);
}

#[test]
fn many_workers_that_ask_the_same_pay_once() {
    let (_folder, path) = file();
    let (model, asked) = counting();
    let cassette = Cassette::open(&path, ReplayMode::Auto).unwrap();
    let tape = taped(&cassette, Some(model));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| text(&tape, "a", 0).unwrap());
        }
    });
    assert_eq!(*asked.lock().unwrap(), 1);
    assert_eq!(tape.spending.so_far().calls, 1);
}

#[test]
fn of_two_processes_that_share_their_answers_the_first_asks_and_the_other_finds_them() {
    let (folder, path) = file();
    let (model, asked) = counting();
    let shared = folder.path().join("shared.jsonl");
    let [one, two] = ["one.jsonl", "two.jsonl"].map(|name| {
        let own = Cassette::open(&folder.path().join(name), ReplayMode::Auto).unwrap();
        own.share(&path, Sharing::Qualifying).unwrap();
        own.share(&shared, Sharing::All).unwrap();
        own
    });
    let [first, second] = [&one, &two].map(|own| taped(own, Some(model.clone())));
    let said = |tape: &CassetteModel, about: &str| text(tape, about, 0).unwrap();
    // A process was killed while it asked.
    let key = CassetteModel::key(&first.dialect, &request("a"), 0).to_string();
    let claims = shared.with_extension("asked");
    std::fs::create_dir_all(&claims).unwrap();
    std::fs::write(claims.join(key), "").unwrap();
    assert_eq!([said(&first, "a"), said(&second, "a")], ["answer 1"; 2]);
    // Half a line of a process that was killed, then another file in the place of this one.
    let begun = [std::fs::read(&shared).unwrap(), b"{\"key\":".to_vec()].concat();
    std::fs::write(&shared, begun).unwrap();
    assert_eq!([said(&second, "b"), said(&first, "b")], ["answer 2"; 2]);
    one.close().unwrap();
    assert_eq!([said(&second, "c"), said(&first, "c")], ["answer 3"; 2]);
    // Both want it at once.
    std::thread::scope(|threads| {
        for tape in [&first, &second] {
            threads.spawn(move || assert_eq!(said(tape, "d"), "answer 4"));
        }
    });
    assert_eq!(*asked.lock().unwrap(), 4);
    // The process that added an answer last sorts the shared file.
    for own in [&one, &two] {
        own.close().unwrap();
    }
    for own in [one, two] {
        assert_eq!(read(own.path()).unwrap(), read(&shared).unwrap());
    }
    let left = std::fs::read_dir(folder.path()).unwrap();
    assert_eq!(left.count(), 3, "no probe was qualified, and nothing is asked");
}
