//! Answers that are exactly one known thing: a value, a number, a failure, a choice, a letter, a call.

use std::collections::BTreeSet;

use super::{abstention, normalise, trim_punctuation};
use crate::probe::{OTHER_ORDER, Outcome, holds};
use crate::script::is_unspaced;

/// Words around a known answer that claim nothing.
const AROUND: &str = "\
    a an answer are as at be been by for has have in is it it's its of on said says that the \
    this user value was were with";

/// Words that turn a sentence round or speak of another time: they claim something, even where the
/// question holds them.
const TURNING: &str = "\
    before except former formerly instead neither never no nor not old older or previous \
    previously than unless until without";

/// Words that stand between a choice or a yes and its reason.
pub(super) const BECAUSE: &[&str] = &[
    "because", "chose", "chosen", "due", "error", "failed", "reason", "since", "so", "to", "tried",
    "we",
];

/// Words around a code, a file and a line.
const PLACE: &[&str] = &["code", "error", "file", "line"];

/// The words of a text as they are compared; signs that stand alone are none.
pub(super) fn words(text: &str) -> Vec<String> {
    let text = normalise(text);
    let words = text.split_whitespace().map(trim_punctuation);
    let is_word = |word: &&str| word.contains(char::is_alphanumeric);
    words.filter(is_word).map(str::to_owned).collect()
}

/// What may stand around a known answer without claiming anything: words of the question, and a few
/// others.
#[derive(Debug)]
pub(super) struct Around(BTreeSet<String>);

impl Around {
    /// For a question, with more words that are usual around this form of answer.
    pub(super) fn new(question: &str, more: &[&str]) -> Self {
        let is_turning = |word: &str| holds(TURNING, word) || word.ends_with("n't");
        let asked = words(question).into_iter();
        let mut allowed: BTreeSet<String> = asked.filter(|word| !is_turning(word)).collect();
        allowed.extend(
            AROUND
                .split(' ')
                .chain(more.iter().copied())
                .map(str::to_owned),
        );
        Self(allowed)
    }

    fn allows(&self, word: &String) -> bool {
        self.0.contains(word)
    }

    /// Whether the answer is this and nothing else.
    pub(super) fn holds_only(&self, answer: &[String], known: &[String]) -> bool {
        !known.is_empty()
            && answer.windows(known.len()).enumerate().any(|(at, window)| {
                let rest = answer[..at].iter().chain(&answer[at + known.len()..]);
                window == known && rest.clone().all(|word| self.allows(word))
            })
    }

    /// Whether the answer is these two, in this order, and nothing else.
    pub(super) fn holds_both(
        &self,
        answer: &[String],
        first: &[String],
        second: &[String],
    ) -> bool {
        !first.is_empty()
            && answer.windows(first.len()).enumerate().any(|(at, window)| {
                let is_lead = answer[..at].iter().all(|word| self.allows(word));
                let rest = &answer[at + first.len()..];
                window == first && is_lead && self.holds_only(rest, second)
            })
    }
}

/// The text with numbers in one piece: thousands may be parted by a comma, an apostrophe, a low line or
/// a space, and by points where there are two of them.
pub(super) fn joined_numbers(text: &str) -> String {
    let text = normalise(text);
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let is_inside = out.ends_with(|c: char| c.is_alphanumeric() || c == '.');
        if !is_digit(at) || is_inside {
            out.push(c);
            at += c.len_utf8();
            continue;
        }
        let mut end = at;
        while is_digit(end) {
            end += 1;
        }
        let lead = end;
        let parting = bytes.get(end).copied();
        let mut groups = 0;
        while bytes.get(end).copied() == parting
            && (1..=3).all(|step| is_digit(end + step))
            && !is_digit(end + 4)
        {
            end += 4;
            groups += 1;
        }
        let is_parted = match parting {
            Some(b',' | b'\'' | b'_' | b' ') => groups > 0 && lead - at <= 3,
            Some(b'.') => groups > 1 && lead - at <= 3,
            _ => false,
        };
        let end = if is_parted { end } else { lead };
        out.extend(text[at..end].chars().filter(char::is_ascii_digit));
        at = end;
    }
    out
}

/// Code and place and nothing else; the place as `file:line`, or as the file and the line apart.
pub(super) fn is_fault(question: &str, code: &str, place: &str, answer: &str) -> bool {
    let around = Around::new(question, PLACE);
    let (code, place) = (normalise(code), normalise(place));
    let parts = place.rsplit_once(':');
    let answer = words(answer);
    let is_part = |word: &str| {
        word == code
            || word == place
            || parts.is_some_and(|(file, line)| word == file || word == line)
    };
    let kept: BTreeSet<&str> = answer
        .iter()
        .filter(|word| is_part(word) || !around.allows(word))
        .map(String::as_str)
        .collect();
    let whole = BTreeSet::from([code.as_str(), place.as_str()]);
    let apart = parts.map(|(file, line)| BTreeSet::from([code.as_str(), file, line]));
    kept == whole || apart.is_some_and(|apart| kept == apart)
}

/// Yes with the reason; asked in both orders, the second question takes a no.
pub(super) fn is_tried(question: &str, reason: &str, answer: &str) -> bool {
    let around = Around::new(question, BECAUSE);
    let reason = words(reason);
    let is_half = |first: &str, half: &str| {
        let said = words(half);
        said.first().is_some_and(|word| word == first) && around.holds_only(&said[1..], &reason)
    };
    match answer.split_once(OTHER_ORDER) {
        Some((straight, turned)) => is_half("yes", straight) && is_half("no", turned),
        None => is_half("yes", answer),
    }
}

/// Whether one of the answers to a question that was asked in both orders is a plain abstention.
pub(super) fn abstains_in_one_order(answer: &str, question: &str, own: &[&str]) -> bool {
    let mut halves = answer.split(OTHER_ORDER);
    halves.any(|half| abstention::is_plain(half, question, own))
}

/// Words in front of a letter.
const LETTER: &str = "answer choice is it letter option the";

/// The letters of a forced choice, asked in both orders: the rule stands at A first, then at B.
/// Right in one order only is a guess, or a liking for a letter. Nothing where a letter cannot be read:
/// the article "a" is none.
pub(super) fn letters(statement: &str, foil: &str, answer: &str) -> Option<(f64, Outcome)> {
    let letter = |half: &str, a: &str, b: &str| {
        let said = words(half);
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let option = |text: &str| words(text);
        match said.as_slice() {
            [lead @ .., "a"] if lead.iter().all(|word| holds(LETTER, word)) => Some(true),
            [lead @ .., "b"] if lead.iter().all(|word| holds(LETTER, word)) => Some(false),
            ["a", rest @ ..] if rest == option(a) => Some(true),
            ["b", rest @ ..] if rest == option(b) => Some(false),
            _ => None,
        }
    };
    let (straight, turned) = answer.split_once(OTHER_ORDER)?;
    if abstains_in_one_order(answer, "", &[]) {
        return Some((0.0, Outcome::Abstained));
    }
    let straight = letter(straight, statement, foil)?;
    let turned = !letter(turned, foil, statement)?;
    Some(match (straight, turned) {
        (true, true) => (1.0, Outcome::Right),
        (true, false) | (false, true) => (0.0, Outcome::Partial),
        (false, false) => (0.0, Outcome::Wrong),
    })
}

/// What a reader says that makes no call.
const NO_CALL: &[&str] = &["ask", "no call", "none", "nothing", "stop"];

/// The answer to what a reader would do now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// It asks the user first, or does nothing.
    Asks,
    /// It makes one call; the call as it is compared.
    Calls(String),
}

impl Act {
    /// One call, or none; nothing where more is said.
    pub(super) fn read(answer: &str) -> Option<Self> {
        let answer = normalise(answer);
        if NO_CALL.contains(&answer.as_str()) {
            return Some(Self::Asks);
        }
        // Trimming took the bracket at the end.
        let (name, arguments) = answer.split_once(['(', ':'])?;
        let of_name = |c: char| c.is_alphanumeric() || "_.-".contains(c);
        if name.is_empty() || !name.chars().all(of_name) || arguments.contains('\n') {
            return None;
        }
        if name == "ask" {
            return Some(Self::Asks);
        }
        let is_one = answer.contains('(') && !arguments.contains('(');
        let is_said = arguments.split_whitespace().count() > 12 || arguments.contains(") ");
        (is_one && !is_said).then_some(Self::Calls(answer))
    }
}

/// The forbidden call breaks the rule, and every other one keeps it, as does asking.
pub(super) fn call(forbidden: &str, answer: &str) -> Option<(f64, Outcome)> {
    Some(match Act::read(answer)? {
        Act::Calls(call) if call.contains(&normalise(forbidden)) => (0.0, Outcome::Wrong),
        Act::Asks | Act::Calls(_) => (1.0, Outcome::Right),
    })
}

/// Whether a phrase stands in a text with no letter or digit beside it.
pub(super) fn has_phrase(text: &str, phrase: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() && !is_unspaced(c);
    text.match_indices(phrase)
        .any(|(at, _)| !text[..at].ends_with(word) && !text[at + phrase.len()..].starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_put_in_one_piece() {
        let check =
            |text: &str, expected: &str| assert_eq!(joined_numbers(text), expected, "{text}");
        check("7,340,192 cases in 41.2 s", "7340192 cases in 41.2 s");
        check("12 345 rows, 8 or 9", "12345 rows, 8 or 9");
        check("7.081.340 claims", "7081340 claims");
        check("7.081 s", "7.081 s");
        check("1,23 and v1.234.567", "1,23 and v1.234.567");
        check("端口是48213。", "端口是 48213");
    }
}
