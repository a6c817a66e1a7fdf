//! Answers in forms that take more than one line, or none: orders, letters, calls, quotations.

use std::sync::Arc;

use super::{BEST_LINES, IndexedText, Terms, best_line, value_in};
use crate::session::{ContentBlock, Message, Role};

/// A line that fits counts as a yes, with the line as its reason; as a no where the question asks
/// whether something is still to come.
pub(super) fn yes_or_no(question: &str, texts: &[IndexedText]) -> Option<String> {
    let is_turned = question.contains("untried");
    let word = if is_turned { "No" } else { "Yes" };
    best_line(question, texts).map(|line| format!("{word}. {line}"))
}

/// A question may list the items to order: at least this many.
const LISTED: usize = 3;

/// The names that the question lists behind its last colon, by their first occurrence; else the values
/// of all lines that fit, in the order of the lines.
pub(super) fn in_order(question: &str, texts: &[IndexedText]) -> Option<String> {
    let listed = question.rsplit_once(": ").map_or("", |(_, list)| list);
    let listed: Vec<&str> = listed.trim_end_matches('?').split(", ").collect();
    if listed.len() >= LISTED && listed.iter().all(|name| !name.contains(' ')) {
        let mut places: Vec<(usize, usize, &str)> = Vec::new();
        for name in listed {
            let mut found = texts.iter().enumerate();
            places.extend(found.find_map(|(at, (text, _))| Some((at, text.find(name)?, name))));
        }
        places.sort_unstable();
        let names: Vec<&str> = places.into_iter().map(|(_, _, name)| name).collect();
        return (!names.is_empty()).then(|| names.join("\n"));
    }
    let terms = Terms::new(question, texts);
    let mut lines = terms.rank();
    lines.sort_by_key(|ranked| (ranked.text, ranked.line));
    let mut values: Vec<String> = Vec::with_capacity(BEST_LINES);
    for ranked in lines {
        let (text, index) = &texts[ranked.text];
        let line = &text[index.lines[ranked.line].clone()];
        if let Some(value) = value_in(line, &terms.words)
            && !values.contains(&value)
        {
            values.push(value);
        }
    }
    (!values.is_empty()).then(|| values.join("\n"))
}

/// The option that some line fits better; `None` where no line fits.
pub(super) fn letter(question: &str, texts: &[IndexedText]) -> Option<String> {
    let fits = |letter: &str| {
        let mut lines = question.lines();
        let option = lines.find_map(|line| line.strip_prefix(letter))?;
        let best = Terms::new(option, texts).rank().into_iter().next();
        best.map(|ranked| ranked.score)
    };
    let (a, b) = (fits("A: "), fits("B: "));
    match (a, b) {
        (None, None) => None,
        (a, b) if a.unwrap_or(0.0) >= b.unwrap_or(0.0) => Some("A".to_owned()),
        (_, _) => Some("B".to_owned()),
    }
}

/// Asks first where some line fits the first quotation of the question, else acts on it. `None` where
/// the question does not offer to ask: no line holds a call.
pub(super) fn call(question: &str, texts: &[IndexedText]) -> Option<String> {
    if !question.contains("`ask`") {
        return None;
    }
    let quoted = question.split('`').nth(1).unwrap_or(question);
    Some(match best_line(quoted, texts) {
        Some(_) => "ask".to_owned(),
        None => format!("do({quoted})"),
    })
}

/// The newest text of the user before the question.
pub(super) fn last_said(messages: &[Arc<Message>]) -> Option<String> {
    let blocks = messages.iter().rev().flat_map(|message| {
        let blocks = message.content().iter().zip(message.model_text()).rev();
        blocks.map(|(block, text)| (message.role(), block, text))
    });
    let mut said = blocks.filter_map(|(role, block, text)| {
        let is_said = role == Role::User && matches!(block, ContentBlock::Text(_));
        is_said.then(|| text.to_string())
    });
    // The first one from behind is the question itself.
    said.nth(1)
}
