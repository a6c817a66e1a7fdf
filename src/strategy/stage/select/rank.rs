//! Which API rounds matter most, by rule.
//!
//! Words are runs of letters, digits and underscores, in lower case. Scores are computed in one
//! order with portable functions, so that they are the same everywhere; of equals the older comes
//! first.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::context::Entry;
use crate::strategy::bm25::{gain, rarity};

/// The share of a rank that is passed on, and how often: the usual values of `PageRank`.
const DAMPING: f64 = 0.85;
const PASSES: usize = 30;

/// A word in more rounds than this does not show which of them belong together.
const MOST_ROUNDS: usize = 50;

/// Words of errors and demands.
const SIGNALS: [&str; 12] = [
    "error",
    "failed",
    "failure",
    "panic",
    "exception",
    "warning",
    "must",
    "never",
    "always",
    "only",
    "cannot",
    "required",
];

/// Indices of the rounds, the highest score first; the entry of index `except` says nothing.
pub(super) fn order(
    entries: &[Entry],
    rounds: &[Range<usize>],
    except: Option<usize>,
    score: &dyn Fn(&[String]) -> Vec<f64>,
) -> Vec<usize> {
    let texts = rounds.iter().map(|round| {
        let others = round.clone().filter(|at| Some(*at) != except);
        text_of(others.map(|at| &entries[at]))
    });
    let scores = score(&texts.collect::<Vec<String>>());
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    order
}

pub(super) fn text_of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    let texts = entries.into_iter().flat_map(|entry| entry.message.model_text());
    let texts: Vec<&str> = texts.map(AsRef::as_ref).collect();
    texts.join("\n")
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// How often each word occurs in each text.
fn counted(texts: &[String]) -> Vec<BTreeMap<String, u32>> {
    let counted = texts.iter().map(|text| {
        let mut counts = BTreeMap::new();
        for word in words(text) {
            *counts.entry(word).or_insert(0) += 1;
        }
        counts
    });
    counted.collect()
}

/// For each word the texts that hold it, ascending.
fn places<'w>(
    texts: impl IntoIterator<Item = impl IntoIterator<Item = &'w String>>,
) -> BTreeMap<&'w str, Vec<usize>> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, text) in texts.into_iter().enumerate() {
        for word in text {
            places.entry(word).or_default().push(at);
        }
    }
    places
}

/// Mean over the words of a round of the logarithm of rounds over rounds with that word.
pub(super) fn tfidf(texts: &[String]) -> Vec<f64> {
    let counts = counted(texts);
    let holding = places(counts.iter().map(BTreeMap::keys));
    let scores = counts.iter().map(|counts| {
        let all: u32 = counts.values().sum();
        let weights = counts.iter().map(|(word, count)| {
            let found = holding.get(word.as_str()).map_or(1, Vec::len);
            f64::from(*count) * libm::log(texts.len() as f64 / found as f64)
        });
        weights.sum::<f64>() / f64::from(all.max(1))
    });
    scores.collect()
}

/// Okapi BM25 of a question.
pub(super) fn bm25(texts: &[String], query: &str) -> Vec<f64> {
    let counts = counted(texts);
    let lengths: Vec<u32> = counts.iter().map(|counts| counts.values().sum()).collect();
    let words_of_all: f64 = lengths.iter().map(|length| f64::from(*length)).sum();
    let mean = (words_of_all / texts.len().max(1) as f64).max(1.0);
    let mut scores = vec![0.0; texts.len()];
    for word in words(query).collect::<BTreeSet<String>>() {
        let holding = counts.iter().filter(|counts| counts.contains_key(&word));
        let weight = rarity(texts.len(), holding.count());
        for ((score, counts), length) in scores.iter_mut().zip(&counts).zip(&lengths) {
            let count = counts.get(&word).copied().unwrap_or(0);
            *score += weight * gain(count, *length, mean);
        }
    }
    scores
}

/// The similarity of a round to the others, weighted by how central those are: the rank of Mihalcea
/// and Tarau (2004), with rounds for sentences.
pub(super) fn textrank(texts: &[String]) -> Vec<f64> {
    let counts = counted(texts);
    let sizes: Vec<f64> =
        counts.iter().map(|counts| 1.0 + libm::log(1.0 + counts.len() as f64)).collect();
    let mut shared: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for places in places(counts.iter().map(BTreeMap::keys)).values() {
        if places.len() > MOST_ROUNDS {
            continue;
        }
        for (nth, a) in places.iter().enumerate() {
            for b in &places[nth + 1..] {
                *shared.entry((*a, *b)).or_insert(0.0) += 1.0;
            }
        }
    }
    let mut edges: Vec<Vec<(usize, f64)>> = vec![Vec::new(); texts.len()];
    let mut totals = vec![0.0; texts.len()];
    for ((a, b), words) in shared {
        let weight = words / (sizes[a] + sizes[b]);
        edges[a].push((b, weight));
        edges[b].push((a, weight));
        totals[a] += weight;
        totals[b] += weight;
    }
    let mut ranks = vec![1.0; texts.len()];
    for _ in 0..PASSES {
        ranks = edges
            .iter()
            .map(|edges| {
                let passed =
                    edges.iter().map(|(from, weight)| weight / totals[*from] * ranks[*from]);
                1.0 - DAMPING + DAMPING * passed.sum::<f64>()
            })
            .collect();
    }
    ranks
}

/// Sum over the distinct atoms of a round of the logarithm of rounds over rounds with that atom,
/// plus one, over the square root of its words.
pub(super) fn by_atoms(texts: &[String]) -> Vec<f64> {
    let atoms: Vec<BTreeSet<String>> = texts.iter().map(|text| atoms_of(text)).collect();
    let holding = places(&atoms);
    let scores = atoms.iter().zip(texts).map(|(atoms, text)| {
        let weights = atoms.iter().map(|atom| {
            let found = holding.get(atom.as_str()).map_or(1, Vec::len);
            1.0 + libm::log(texts.len() as f64 / found as f64)
        });
        weights.sum::<f64>() / libm::sqrt(words(text).count().max(1) as f64)
    });
    scores.collect()
}

/// The words that a model cannot make up: paths, names with a joint, numbers of three digits and
/// more; and words of errors and demands.
fn atoms_of(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.' | '/'))
        .map(|piece| piece.trim_matches(['.', '-', '/']))
        .filter(|piece| {
            let digits = piece.chars().filter(char::is_ascii_digit).count();
            digits > 2
                || piece.contains(['_', '/', '.']) && piece.chars().any(char::is_alphabetic)
                || SIGNALS.contains(&piece.to_lowercase().as_str())
        })
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    #[track_caller]
    fn close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
        }
    }

    #[test]
    fn rare_words_weigh_more() {
        let ln2 = std::f64::consts::LN_2;
        let texts = owned(&["a b", "a a", "B b c c", ""]);
        // a and b are in two of four texts, c is in one.
        close(&tfidf(&texts), &[ln2, ln2, (2.0 * ln2 + 2.0 * 2.0 * ln2) / 4.0, 0.0]);
    }

    #[test]
    fn bm25_is_the_published_formula() {
        let texts = owned(&["x y y", "x", "z z"]);
        // y: in one of three; twice among three words, where the mean is two.
        let weight = (1.0_f64 + 2.5 / 1.5).ln();
        let score = weight * 2.0 * 2.2 / (2.0 + 1.2 * (0.25 + 0.75 * 1.5));
        close(&bm25(&texts, "Y, and y"), &[score, 0.0, 0.0]);
        close(&bm25(&texts, ""), &[0.0; 3]);
    }

    #[test]
    fn what_has_most_in_common_ranks_first() {
        // A chain: the middle is passed the ranks of both ends, which pass on theirs whole.
        let ranks = textrank(&owned(&["a", "a b", "b", "c"]));
        // m = 0.15 + 0.85 × 2e and e = 0.15 + 0.425 m, but for what 30 passes leave: 0.85³⁰.
        let middle = (0.15 + 1.7 * 0.15) / (1.0 - 1.7 * 0.425);
        let end = 0.15 + 0.425 * middle;
        let near = |found: f64, expected: f64| (found - expected).abs() < 0.01;
        assert!(near(ranks[0], end) && near(ranks[2], end), "{ranks:?}");
        assert!(near(ranks[1], middle), "{ranks:?}");
        close(&ranks[3..], &[0.15]);
    }

    #[test]
    fn atoms_are_what_cannot_be_made_up() {
        for (text, expected) in [
            ("see src/a.rs, and lib.rs.", &["lib.rs", "src/a.rs"][..]),
            ("port 48213 of 12", &["48213"]),
            ("ERROR: parse_header failed", &["error", "failed", "parse_header"]),
            ("plain words. Nothing - else", &[]),
            ("You must never do 1.5 of it", &["must", "never"]),
        ] {
            let found = atoms_of(text);
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{text}");
        }
        let scores = by_atoms(&owned(&["a_b x x x", "a_b c_d", "plain"]));
        let shared = 1.0 + (1.5_f64).ln();
        let single = 1.0 + 3.0_f64.ln();
        close(&scores, &[shared / 2.0, (shared + single) / 2.0_f64.sqrt(), 0.0]);
    }
}
