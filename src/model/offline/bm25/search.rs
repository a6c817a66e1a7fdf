//! A search over snippets of text, ranked by BM25 as the offline reader ranks lines.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::index::{Postings, each_word, gain, hash, rarity, split};

/// Snippets of texts with the words in them: made once, searched in parts.
#[derive(Debug, Default)]
pub struct Snippets {
    all: Vec<Snippet>,
    postings: Postings,
}

/// A piece of a text: whole lines, as many as fit.
#[derive(Debug, Clone)]
pub struct Snippet {
    /// Whose text it is.
    pub owner: usize,
    /// The text.
    pub text: Arc<str>,
}

/// The snippets that a search may bring back.
#[derive(Debug)]
pub struct Scope {
    is_in: Vec<bool>,
    count: usize,
    mean_length: f64,
}

impl Snippets {
    /// Cuts the texts of owners into snippets. `fits` says whether a text is short enough to be one;
    /// a single line always is.
    pub fn of<'a>(
        texts: impl IntoIterator<Item = (usize, &'a str)>,
        fits: impl Fn(&str) -> bool,
    ) -> Self {
        let mut all = Vec::new();
        for (owner, text) in texts {
            let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
            for line in split(text) {
                match ranges.last_mut() {
                    Some(open) if fits(&text[open.start..line.end]) => open.end = line.end,
                    _ => ranges.push(line),
                }
            }
            all.extend(ranges.into_iter().map(|range| Snippet {
                owner,
                text: text[range].into(),
            }));
        }
        let postings = Postings::new(all.iter().map(|snippet| &*snippet.text), |_, _| ());
        Self { all, postings }
    }

    /// The snippet of this number.
    pub fn get(&self, at: usize) -> Option<&Snippet> {
        self.all.get(at)
    }

    /// The snippets of those owners that `may` lets in.
    pub fn within(&self, may: impl Fn(usize) -> bool) -> Scope {
        let is_in: Vec<bool> = self.all.iter().map(|one| may(one.owner)).collect();
        let (mut count, mut words) = (0, 0_u64);
        for (at, _) in (0..).zip(&is_in).filter(|(_, is_in)| **is_in) {
            count += 1;
            words += u64::from(self.postings.length(at));
        }
        Scope {
            is_in,
            count,
            mean_length: (words as f64 / (count.max(1)) as f64).max(1.0),
        }
    }

    /// The numbers of at most `most` snippets that fit the query, best first; of those that fit
    /// equally well the newest. One that shares no word with the query fits not at all.
    pub fn search(&self, scope: &Scope, query: &str, most: usize) -> Vec<usize> {
        let mut words = Vec::new();
        each_word(query, |word, _| words.push(hash(word)));
        words.sort_unstable();
        words.dedup();
        let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
        for word in words {
            let postings = self.postings.of(word).iter();
            let inside = postings.filter(|(_, at, _)| scope.is_in[*at as usize]);
            let weight = rarity(scope.count, inside.clone().count());
            for &(_, at, times) in inside {
                let gain = gain(times, self.postings.length(at), scope.mean_length);
                *scores.entry(at as usize).or_default() += weight * gain;
            }
        }
        let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        ranked.truncate(most);
        ranked.into_iter().map(|(at, _)| at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_snippets_of_the_owners_that_may_be_searched_are_found() {
        let texts = [
            (0, "the port of svc7 is 4049\nnothing else here"),
            (1, "svc8 listens elsewhere\n\nthe weather was fine"),
            (2, "port port port\nand svc7 again: 5050"),
        ];
        let snippets = Snippets::of(texts, |text| text.len() < 30);
        let found = |may: fn(usize) -> bool, query: &str, most| -> Vec<usize> {
            let scope = snippets.within(may);
            let found = snippets.search(&scope, query, most).into_iter();
            found.map(|at| snippets.get(at).unwrap().owner).collect()
        };
        assert_eq!(found(|_| true, "What is the port of svc7?", 1), [0]);
        assert_eq!(
            found(|owner| owner > 0, "What is the port of svc7?", 1),
            [2]
        );
        assert!(found(|_| true, "quokka", 5).is_empty());
        assert_eq!(found(|owner| owner == 1, "weather", 5), [1]);
    }
}
