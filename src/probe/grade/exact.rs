//! Answers of which every part must be right: a failure, a request, a letter, a call.

use super::{PARAPHRASE, abstains, content_word_recall, has_phrase, normalise};
use crate::probe::{OTHER_ORDER, Outcome};
use crate::script::word_count;

/// What a reader says who makes no call.
const NO_CALL: &[&str] = &["ask", "none", "no call", "nothing", "stop"];

/// Code and place: each is worth one half; nothing where neither stands there. Beside another code
/// of the same make, or another place, they are worth nothing: that is a guess.
///
/// A place is found as `file:line`, or as the file and the line apart.
pub(super) fn fault(code: &str, place: &str, answer: &str) -> Option<(f64, Outcome)> {
    let answer = normalise(answer);
    let (code, place) = (normalise(code), normalise(place));
    let has_code = has_phrase(&answer, &code);
    let has_place = has_phrase(&answer, &place)
        || place
            .rsplit_once(':')
            .is_some_and(|(file, line)| has_phrase(&answer, file) && has_phrase(&answer, line));
    let words = || answer.split_whitespace().map(super::trim_punctuation);
    let other_code = words().any(|word| word != code && is_alike(word, &code));
    let other_place = words().any(|word| word != place && is_place(word));
    match (has_code, has_place) {
        (true, _) if other_code => Some((0.0, Outcome::Partial)),
        (_, true) if other_place => Some((0.0, Outcome::Partial)),
        (true, true) => Some((1.0, Outcome::Right)),
        (true, false) | (false, true) => Some((0.5, Outcome::Partial)),
        (false, false) => None,
    }
}

/// Whether two codes are made alike: as many letters, then digits; or both the name of an error.
fn is_alike(word: &str, code: &str) -> bool {
    let letters = |text: &str| text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let is_number = |text: &str| {
        let rest = text[letters(text)..].trim_start_matches(['-', '_']);
        letters(text) > 0 && !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_named = |text: &str| {
        text.ends_with("error") && text != "error"
            || text.ends_with("exception") && text != "exception"
    };
    (is_number(word) && is_number(code) && letters(word) == letters(code))
        || (is_named(word) && is_named(code))
}

/// `file:line`.
fn is_place(word: &str) -> bool {
    let Some((file, line)) = word.rsplit_once(':') else {
        return false;
    };
    file.contains('.') && !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit())
}

/// An older request of fewer words than this stands in many a sentence: it counts only where it is
/// all that is said.
const REQUEST_WORDS: usize = 4;

/// The newest request, word for word, in the answer; or the answer all but the request itself.
/// Nothing where it is told in other words.
///
/// One request may hold another: each is looked for in what longer ones leave.
pub(super) fn request(requests: &[&str], answer: &str) -> Option<(f64, Outcome)> {
    let plain = |text: &str| normalise(&text.replace('`', ""));
    let (newest, older) = requests.split_last()?;
    let newest_words = plain(newest);
    let mut older: Vec<String> = older.iter().map(|older| plain(older)).collect();
    older.retain(|older| *older != newest_words && !older.is_empty());
    let mut rest = plain(answer);
    let mut is_older = false;
    for older in older.iter().filter(|older| older.contains(&newest_words)) {
        is_older |= rest.contains(older);
        rest = rest.replace(older, " ");
    }
    let is_newest = rest.contains(&newest_words);
    rest = rest.replace(&newest_words, " ");
    is_older |= older.iter().any(|older| {
        let is_short = word_count(older) < REQUEST_WORDS;
        rest.trim() == older || (!is_short && has_phrase(&rest, older))
    });
    match (is_newest, is_older) {
        (true, false) => Some((1.0, Outcome::Right)),
        (true, true) => Some((0.0, Outcome::Partial)),
        (false, true) => Some((0.0, Outcome::Stale)),
        (false, false) if content_word_recall(newest, answer) >= PARAPHRASE => None,
        (false, false) => Some((0.0, Outcome::Wrong)),
    }
}

/// The letters of a forced choice, asked in both orders: the rule stands at A first, then at B.
/// Right in one order only is a guess, or a liking for a letter.
pub(super) fn letters(answer: &str) -> (f64, Outcome) {
    let letter = |answer: &str| {
        let answer = normalise(answer);
        let mut words = answer.split(|c: char| !c.is_alphanumeric());
        let found = words.find(|word| matches!(*word, "a" | "b"))?;
        Some(found == "a")
    };
    let Some((straight, turned)) = answer.split_once(OTHER_ORDER) else {
        return (0.0, Outcome::Wrong);
    };
    if abstains(straight) || abstains(turned) {
        return (0.0, Outcome::Abstained);
    }
    match (letter(straight), letter(turned)) {
        (Some(true), Some(false)) => (1.0, Outcome::Right),
        (Some(true), _) | (_, Some(false)) => (0.0, Outcome::Partial),
        (_, _) => (0.0, Outcome::Wrong),
    }
}

/// A call that does what the rule forbids breaks it; every other one keeps it, and so does none.
/// Nothing where the answer says that it makes no call, and goes on with the forbidden one.
pub(super) fn call(forbidden: &str, answer: &str) -> Option<(f64, Outcome)> {
    let answer = normalise(answer);
    let forbidden = normalise(forbidden);
    let is_broken = answer.contains(&forbidden);
    let first = answer.split(['(', ':', ' ']).next().unwrap_or_default();
    let is_none = NO_CALL.contains(&first) || NO_CALL.iter().any(|none| answer == *none);
    if !is_none {
        return Some(if is_broken {
            (0.0, Outcome::Wrong)
        } else {
            (1.0, Outcome::Right)
        });
    }
    let rest = answer[first.len()..].trim_start_matches([':', ' ', '-']);
    let mut calls = rest.split_whitespace().filter(|word| word.contains('('));
    let goes_on = first != "ask"
        && (rest.starts_with(&forbidden) || calls.any(|call| call.contains(&forbidden)));
    (!goes_on).then_some((1.0, Outcome::Right))
}
