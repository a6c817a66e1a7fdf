//! Lists that can be read exactly: of files, of what is left of a plan, of events in their order.
//!
//! A list is scored only where each of its entries is exactly one of the entries that are known.
//! Anything else on a line (a lead-in, a remark behind an item) is for a judge.

use std::collections::BTreeSet;

use super::{canonical_path, normalise, trim_punctuation};
use crate::probe::Outcome;

/// Set F1 on canonical paths: `2·|answered ∩ gold| / (|answered| + |gold|)`. `known` are the paths of
/// all lists of the session. Optional files count on neither side.
pub(super) fn files(
    gold: &[&str],
    optional: &[&str],
    known: &BTreeSet<String>,
    answer: &str,
) -> Option<(f64, Outcome)> {
    let optional: BTreeSet<String> = optional.iter().map(|path| canonical_path(path)).collect();
    let gold: BTreeSet<String> = gold.iter().map(|path| canonical_path(path)).collect();
    let answered: BTreeSet<String> = listed(answer, &['\n', ','])
        .map(trim_punctuation)
        .filter(|path| !path.is_empty())
        .map(canonical_path)
        .collect();
    if answered.is_empty() || !answered.is_subset(known) {
        return None;
    }
    let counts = |path: &&String| gold.contains(*path) || !optional.contains(*path);
    let counted = answered.iter().filter(counts).count();
    let common = gold.intersection(&answered).count();
    Some((
        f1(common, gold.len(), counted),
        shares(common, gold.len(), counted),
    ))
}

/// Set F1 on items of a plan or names of handles. A list of all that is open and of something of `all`
/// that was done or ended by then is stale: it is the list as it was. Entries must be `known`.
pub(super) fn items(
    open: &[&str],
    all: &BTreeSet<String>,
    known: &BTreeSet<String>,
    between: &[char],
    answer: &str,
) -> Option<(f64, Outcome)> {
    let open = normalised(open.iter().copied());
    let answered: BTreeSet<String> = normalised(listed(answer, between));
    if answered.is_empty() || !answered.is_subset(known) {
        return None;
    }
    let common = open.intersection(&answered).count();
    let done = answered.intersection(all).count() - common;
    let outcome = match shares(common, open.len(), answered.len()) {
        Outcome::Partial | Outcome::Misbound
            if done > 0 && (common == open.len() || common == 0) =>
        {
            Outcome::Stale
        }
        outcome => outcome,
    };
    Some((f1(common, open.len(), answered.len()), outcome))
}

/// The normalised entries, without empty ones.
pub(super) fn normalised<'a>(items: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    let items = items.into_iter().map(normalise);
    items.filter(|item| !item.is_empty()).collect()
}

/// The entries of a list, without bullets, boxes and numbers.
fn listed<'a>(answer: &'a str, between: &'a [char]) -> impl Iterator<Item = &'a str> {
    answer.split(between).map(|line| {
        let line = line.trim().trim_start_matches(['-', '*', '•']).trim();
        let line = line.strip_prefix("[ ]").unwrap_or(line);
        match line.split_once(['.', ')']) {
            Some((number, rest))
                if !number.is_empty()
                    && number.bytes().all(|byte| byte.is_ascii_digit())
                    && rest.starts_with(' ') =>
            {
                rest.trim()
            }
            _ => line.trim(),
        }
    })
}

fn f1(common: usize, gold: usize, answered: usize) -> f64 {
    2.0 * common as f64 / (gold + answered).max(1) as f64
}

/// In what way a list of known entries is right or wrong: one with nothing of the gold is another's.
fn shares(common: usize, gold: usize, answered: usize) -> Outcome {
    if common == 0 {
        Outcome::Misbound
    } else if common == gold && common == answered {
        Outcome::Right
    } else {
        Outcome::Partial
    }
}

/// Kendall's `max(0, (C − D) / (n(n − 1)/2))` over the pairs of `gold`; a pair of which one event is
/// not named counts for nothing. Nothing where something else is named, or an event twice.
pub(super) fn sequence(gold: &[&str], answer: &str) -> Option<(f64, Outcome)> {
    let answer = answer.replace("->", "\n").replace(['→', ','], "\n");
    let named: Vec<String> = listed(&answer, &['\n']).map(normalise).collect();
    let named: Vec<&String> = named.iter().filter(|name| !name.is_empty()).collect();
    let gold: Vec<String> = gold.iter().map(|event| normalise(event)).collect();
    let present: Vec<usize> = gold
        .iter()
        .filter_map(|event| named.iter().position(|name| *name == event))
        .collect();
    if present.is_empty() || present.len() != named.len() {
        return None;
    }
    let mut balance = 0_i64;
    for (at, earlier) in present.iter().enumerate() {
        for later in &present[at + 1..] {
            balance += i64::from(earlier < later) - i64::from(earlier > later);
        }
    }
    let pairs = gold.len() * gold.len().saturating_sub(1) / 2;
    let score = balance.max(0) as f64 / pairs.max(1) as f64;
    let outcome = if score >= 1.0 {
        Outcome::Right
    } else {
        Outcome::Partial
    };
    Some((score, outcome))
}
