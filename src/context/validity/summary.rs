//! Whether what a model wrote may be a summary of what it read.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Identifiers that the texts behind a summary must hold before it is missed that the summary
/// names none of them: prose about nothing in particular has fewer.
const ENOUGH_IDENTIFIERS: usize = 20;

/// Whether the texts of `summary` may be a summary of `source`.
///
/// They are none if they are a single question (a heading in brackets, such as `[Compressed]`,
/// apart), or if they name none of the identifiers in the source though it holds many. Anything
/// else passes: probes check whether a text says the *right* things. A text that a fixed sentence
/// introduces is not recognised as a question, and an identifier that is in the introduction
/// counts.
pub(crate) fn reads_as_summary<'t>(
    summary: &[Arc<str>],
    source: impl IntoIterator<Item = &'t Arc<str>>,
) -> bool {
    if is_question(summary) {
        return false;
    }
    let named: BTreeSet<&str> = summary.iter().flat_map(|text| identifiers(text)).collect();
    let mut missed = BTreeSet::new();
    for identifier in source.into_iter().flat_map(|text| identifiers(text)) {
        if named.contains(identifier) {
            return true;
        }
        if missed.len() < ENOUGH_IDENTIFIERS {
            missed.insert(identifier);
        }
    }
    missed.len() < ENOUGH_IDENTIFIERS
}

/// At most so many identifiers must be in a summary that is checked for them.
const MOST_IDENTIFIERS: usize = 12;

/// The first identifiers of `texts` that the summary lacks.
pub(crate) fn missing_identifiers<'t>(
    summary: &str,
    texts: impl IntoIterator<Item = &'t Arc<str>>,
) -> Vec<&'t str> {
    let named: BTreeSet<&str> = identifiers(summary).collect();
    let (mut seen, mut missing) = (BTreeSet::new(), Vec::new());
    for identifier in texts.into_iter().flat_map(|text| identifiers(text)) {
        if seen.len() >= MOST_IDENTIFIERS {
            break;
        }
        if seen.insert(identifier) && !named.contains(identifier) {
            missing.push(identifier);
        }
    }
    missing
}

/// Whether the texts are a single question; a heading in brackets apart.
pub(crate) fn is_question(texts: &[Arc<str>]) -> bool {
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
    let bytes = text.as_bytes();
    let words = bytes.split(|byte| !byte.is_ascii_alphanumeric() && !b"_/.-".contains(byte));
    // Most words are too short.
    words
        .filter(|word| word.len() >= 4)
        .filter_map(|word| str::from_utf8(word).ok())
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
