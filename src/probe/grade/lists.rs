//! Lists: of files, of what is left of a plan, of events in their order.

use std::collections::BTreeSet;

use super::{canonical_path, has_phrase, normalise, trim_punctuation};
use crate::probe::{Gold, Outcome};

/// Set F1 on canonical paths: `2·|answered ∩ gold| / (|answered| + |gold|)`. Optional files count on
/// neither side.
pub(super) fn files(gold: &[&str], optional: &[&str], answer: &str) -> (f64, Outcome) {
    let optional: BTreeSet<String> = optional.iter().map(|path| canonical_path(path)).collect();
    let gold: BTreeSet<String> = gold.iter().map(|path| canonical_path(path)).collect();
    let answered: BTreeSet<String> = listed(answer, &['\n', ','])
        .map(trim_punctuation)
        .filter(|path| !path.is_empty())
        .map(canonical_path)
        .filter(|path| gold.contains(path) || !optional.contains(path))
        .collect();
    let common = gold.intersection(&answered).count();
    (
        f1(common, gold.len(), answered.len()),
        shares(common, gold.len(), answered.len()),
    )
}

/// Set F1 on items. A list that holds all that is left and something that was done by then is
/// stale: it is the plan as it was.
pub(super) fn items(gold: &Gold, before: usize, answer: &str) -> (f64, Outcome) {
    let Gold::Plan { items, .. } = gold else {
        return (0.0, Outcome::Wrong);
    };
    let pending = normalised(gold.pending_before(before));
    let all = normalised(items.iter().map(|(item, _)| item.as_str()));
    let answered: BTreeSet<String> = normalised(listed(answer, &['\n']));
    let common = pending.intersection(&answered).count();
    let done = answered.iter().filter(|item| all.contains(*item)).count() - common;
    let score = f1(common, pending.len(), answered.len());
    let outcome = match shares(common, pending.len(), answered.len()) {
        Outcome::Partial | Outcome::Wrong
            if done > 0 && (common == pending.len() || common == 0) =>
        {
            Outcome::Stale
        }
        outcome => outcome,
    };
    (score, outcome)
}

/// Set F1 on the names of handles. A list of all that is open and of something that was ended is
/// stale: somebody would end it again.
pub(super) fn handles(gold: &Gold, before: usize, answer: &str) -> (f64, Outcome) {
    let Gold::Handles { handles, .. } = gold else {
        return (0.0, Outcome::Wrong);
    };
    let answered = normalised(listed(answer, &['\n', ',']));
    let is_named = |name: &str| {
        let name = normalise(name);
        answered.iter().any(|entry| has_phrase(entry, &name))
    };
    let open = gold.open_before(before);
    let common = open.iter().filter(|name| is_named(name)).count();
    let ended = handles
        .iter()
        .filter(|handle| handle.is_started(before) && !handle.is_open(before));
    let is_stale = ended.into_iter().any(|handle| is_named(&handle.name));
    let outcome = match shares(common, open.len(), answered.len()) {
        Outcome::Partial | Outcome::Wrong if is_stale && (common == open.len() || common == 0) => {
            Outcome::Stale
        }
        outcome => outcome,
    };
    (f1(common, open.len(), answered.len()), outcome)
}

fn normalised<'a>(items: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
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

fn shares(common: usize, gold: usize, answered: usize) -> Outcome {
    if common == 0 {
        Outcome::Wrong
    } else if common == gold && common == answered {
        Outcome::Right
    } else {
        Outcome::Partial
    }
}

/// Kendall's `max(0, (C − D) / (n(n − 1)/2))` over the pairs of `gold`; a pair of which one event is
/// not named counts for nothing. What is named twice counts where it is named first.
pub(super) fn sequence(gold: &[&str], answer: &str) -> (f64, Outcome) {
    let answer = answer.replace("->", "\n").replace(['→', ','], "\n");
    let named: Vec<String> = listed(&answer, &['\n']).map(normalise).collect();
    let places: Vec<Option<usize>> = gold
        .iter()
        .map(|event| {
            let event = normalise(event);
            named.iter().position(|name| has_phrase(name, &event))
        })
        .collect();
    let present: Vec<usize> = places.iter().copied().flatten().collect();
    let mut balance = 0_i64;
    for (at, earlier) in present.iter().enumerate() {
        for later in &present[at + 1..] {
            balance += i64::from(earlier < later) - i64::from(earlier > later);
        }
    }
    let pairs = gold.len() * gold.len().saturating_sub(1) / 2;
    let score = balance.max(0) as f64 / pairs.max(1) as f64;
    let others = named.iter().filter(|name| !name.is_empty()).count() > present.len();
    let outcome = match present.len() {
        0 => Outcome::Wrong,
        _ if score >= 1.0 && !others => Outcome::Right,
        _ if balance > 0 => Outcome::Partial,
        _ => Outcome::Wrong,
    };
    // Something that did not happen, named among the events, is no part of their order.
    let score = if others { score.min(0.5) } else { score };
    (score, outcome)
}
