//! Lists that can be read exactly.
//!
//! A list is scored only where each of its entries is exactly one of the entries that are known.
//! Anything else on a line (a lead-in, a remark behind an item) is for a judge.

use std::collections::BTreeSet;

use super::{Score, normalise};
use crate::probe::Outcome;

/// Set F1 on items of a plan or names of handles. A list of all that is open and of something of `all`
/// that was done or ended by then is stale: it is the list as it was. Entries must be `known`.
pub(crate) fn grade(
    open: &[&str],
    all: &BTreeSet<String>,
    known: &BTreeSet<String>,
    separators: &[char],
    answer: &str,
) -> Option<Score> {
    let open = normalised(open.iter().copied());
    let answered = normalised(listed(answer, separators));
    if answered.is_empty() || !answered.is_subset(known) {
        return None;
    }
    let common = open.intersection(&answered).count();
    let has_done = answered.intersection(all).count() > common;
    let is_old = has_done && (common == open.len() || common == 0);
    let outcome = match outcome(common, open.len(), answered.len()) {
        Outcome::Partial | Outcome::Misbound if is_old => Outcome::Stale,
        outcome => outcome,
    };
    Some((f1(common, open.len(), answered.len()), outcome))
}

/// The normalised entries, without empty ones.
pub(crate) fn normalised<'a>(items: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    let items = items.into_iter().map(normalise);
    items.filter(|item| !item.is_empty()).collect()
}

/// The entries of a list, without bullets, boxes and numbers.
pub(crate) fn listed<'a>(answer: &'a str, separators: &'a [char]) -> impl Iterator<Item = &'a str> {
    answer.split(separators).map(|line| {
        let line = line.trim().trim_start_matches(['-', '*', '•']).trim();
        let line = line.strip_prefix("[ ]").unwrap_or(line);
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let rest = line[digits..].strip_prefix(['.', ')']);
        match rest.filter(|rest| digits > 0 && rest.starts_with(' ')) {
            Some(rest) => rest.trim(),
            None => line.trim(),
        }
    })
}

pub(crate) fn f1(common: usize, gold: usize, answered: usize) -> f64 {
    2.0 * common as f64 / (gold + answered).max(1) as f64
}

/// In what way a list of known entries is right or wrong: one with nothing of the gold is another's.
pub(crate) fn outcome(common: usize, gold: usize, answered: usize) -> Outcome {
    if common == 0 {
        Outcome::Misbound
    } else if common == gold && common == answered {
        Outcome::Right
    } else {
        Outcome::Partial
    }
}
