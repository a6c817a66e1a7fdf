//! Answers of which every part must be right: a failure, a request, a letter, a call.

use super::{PARAPHRASE, abstains, content_word_recall, has_phrase, normalise};
use crate::probe::{OTHER_ORDER, Outcome};

/// What a reader says who makes no call.
const NO_CALL: &[&str] = &["ask", "none", "no call", "nothing", "stop"];

/// Code and place: each is worth one half; nothing where neither stands there.
///
/// A place is found as `file:line`, or as the file and the line apart.
pub(super) fn fault(code: &str, place: &str, answer: &str) -> Option<(f64, Outcome)> {
    let answer = normalise(answer);
    let place = normalise(place);
    let has_code = has_phrase(&answer, &normalise(code));
    let has_place = has_phrase(&answer, &place)
        || place
            .rsplit_once(':')
            .is_some_and(|(file, line)| has_phrase(&answer, file) && has_phrase(&answer, line));
    match (has_code, has_place) {
        (true, true) => Some((1.0, Outcome::Right)),
        (true, false) | (false, true) => Some((0.5, Outcome::Partial)),
        (false, false) => None,
    }
}

/// The newest request, word for word, in the answer; or the answer all but the request itself.
/// Nothing where it is told in other words.
pub(super) fn request(requests: &[&str], answer: &str) -> Option<(f64, Outcome)> {
    let plain = |text: &str| normalise(&text.replace('`', ""));
    let (newest, older) = requests.split_last()?;
    let said = plain(answer);
    let is_newest = said.contains(&plain(newest));
    let is_older = older.iter().any(|older| said.contains(&plain(older)));
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
pub(super) fn call(forbidden: &str, answer: &str) -> (f64, Outcome) {
    let answer = normalise(answer);
    let first = answer.split(['(', ':', ' ']).next().unwrap_or_default();
    let is_none = NO_CALL.contains(&first) || NO_CALL.iter().any(|none| answer == *none);
    if !is_none && answer.contains(&normalise(forbidden)) {
        (0.0, Outcome::Wrong)
    } else {
        (1.0, Outcome::Right)
    }
}
