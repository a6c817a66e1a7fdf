//! Takes the wrappers off an answer: what models put around a value without claiming anything by it.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::words::WORDS;
use super::{OTHER_ORDER, spaced, trim_punctuation};
use crate::probe::LazyPattern;

/// Wrappers in wrappers that are taken off.
const LAYERS: usize = 5;

/// Words in front of an answer that claim nothing.
const LEADING: usize = 4;

/// An answer that is all in a fence, in an element, or in the box of a formula.
static WRAPPED: LazyPattern = LazyPattern::new(
    r"(?s)^(?:```[a-z]*\s(.*)```|(?:.*\s)?<answer>(.*)</answer>|(?:.*[\s$])?\\boxed\{(?:\\text\{)?([^{}]*)\}{1,2}\$*\.?)$",
);

/// The answer without its wrappers, half by half where a question was put in two orders.
pub(super) fn peeled(answer: &str) -> String {
    let halves: Vec<String> = answer.split(OTHER_ORDER).map(peeled_half).collect();
    halves.join(OTHER_ORDER)
}

fn peeled_half(answer: &str) -> String {
    let mut text = Cow::Borrowed(answer.trim());
    for _ in 0..LAYERS {
        match unwrapped(&text) {
            Some(inner) => text = Cow::Owned(inner.trim().to_owned()),
            None => break,
        }
    }
    without_lead(without_source(&text)).to_owned()
}

/// The text inside of the outermost wrapper.
fn unwrapped(text: &str) -> Option<String> {
    if let Ok(object) = serde_json::from_str::<Map<String, Value>>(text) {
        let mut fields = object.iter();
        let (Some((key, value)), None) = (fields.next(), fields.next()) else {
            return None;
        };
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        // The key claims something: `{"old_port": "48213"}`.
        return Some(format!("{}: {value}", key.replace('_', " ")));
    }
    // Two of them are two answers.
    let marks = ["<answer>", "\\boxed{"].map(|mark| text.matches(mark).count());
    if marks.into_iter().sum::<usize>() > 1 {
        return None;
    }
    let inner = WRAPPED.matches(text).next()?.iter().skip(1).flatten().next()?;
    let lead = match text.split_once(['<', '\\']) {
        Some((lead, _)) if !text.starts_with('`') => lead.trim_end_matches('$'),
        _ => "",
    };
    Some(format!("{lead}{}", inner.as_str()))
}

/// The text without a last line that says where it was read.
fn without_source(text: &str) -> &str {
    let (before, last) = text.rsplit_once('\n').unwrap_or_default();
    let label = last.split_once([':', '：']).map_or("", |(label, _)| label);
    let named = trim_punctuation(label.trim()).to_lowercase();
    if WORDS.source.has(&named) {
        return before.trim();
    }
    text
}

/// The text without up to four words that claim nothing.
fn without_lead(text: &str) -> &str {
    let mut rest = text;
    for _ in 0..LEADING {
        let Some((word, behind)) = rest.split_once(char::is_whitespace) else {
            break;
        };
        if !WORDS.around.has(trim_punctuation(&spaced(word))) {
            break;
        }
        rest = behind.trim_start();
    }
    rest
}
