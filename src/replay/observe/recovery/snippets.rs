//! A search over snippets of text, ranked by BM25.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::probe::LazyPattern;
use crate::probe::survival::each_word;
use crate::strategy::bm25::{gain, rarity};

/// Lines are cut into pieces of at most this many bytes: minified files are one line.
const LINE_BYTES: usize = 600;

/// Snippets of texts with the words in them: made once, searched in parts.
#[derive(Debug, Default)]
pub(super) struct Snippets {
    all: Vec<Snippet>,
    /// By the hash of a word, the snippets that hold it, ascending, and how often.
    postings: BTreeMap<u64, Vec<(usize, u32)>>,
}

/// A piece of a text: whole lines, as many as fit.
#[derive(Debug)]
struct Snippet {
    owner: usize,
    text: Arc<str>,
    words: u32,
}

/// The snippets that a search may bring back.
#[derive(Debug)]
pub(super) struct SearchScope {
    is_in: Vec<bool>,
    count: usize,
    mean_length: f64,
}

impl Snippets {
    /// Cuts the texts of owners into snippets. `fits` says whether a text is short enough to be one;
    /// a single line always is.
    pub(super) fn of<'a>(
        texts: impl IntoIterator<Item = (usize, &'a str)>,
        fits: impl Fn(&str) -> bool,
    ) -> Self {
        let mut snippets = Self::default();
        for (owner, text) in texts {
            let mut ranges: Vec<Range<usize>> = Vec::new();
            for line in split(text) {
                match ranges.last_mut() {
                    Some(open) if fits(&text[open.start..line.end]) => open.end = line.end,
                    _ => ranges.push(line),
                }
            }
            for range in ranges {
                snippets.add(owner, &text[range]);
            }
        }
        snippets
    }

    fn add(&mut self, owner: usize, text: &str) {
        let (at, mut words) = (self.all.len(), 0);
        each_word(text, |word, _| {
            words += 1;
            let postings = self.postings.entry(hash(word)).or_default();
            match postings.last_mut() {
                Some((last, times)) if *last == at => *times += 1,
                _ => postings.push((at, 1)),
            }
        });
        self.all.push(Snippet { owner, text: text.into(), words });
    }

    /// The snippets of those owners that `may` lets in.
    pub(super) fn within(&self, may: impl Fn(usize) -> bool) -> SearchScope {
        let is_in: Vec<bool> = self.all.iter().map(|one| may(one.owner)).collect();
        let (mut count, mut words) = (0, 0_u64);
        for (snippet, _) in self.all.iter().zip(&is_in).filter(|(_, is_in)| **is_in) {
            count += 1;
            words += u64::from(snippet.words);
        }
        SearchScope { is_in, count, mean_length: (words as f64 / (count.max(1)) as f64).max(1.0) }
    }

    /// The texts of at most `most` snippets that fit the query, best first; of those that fit
    /// equally well the newest. One that shares no word with the query fits not at all.
    pub(super) fn search(
        &self,
        scope: &SearchScope,
        query: &str,
        most: usize,
    ) -> impl Iterator<Item = &Arc<str>> {
        let mut words = Vec::new();
        each_word(query, |word, _| words.push(hash(word)));
        words.sort_unstable();
        words.dedup();
        let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
        for postings in words.iter().filter_map(|word| self.postings.get(word)) {
            let inside = postings.iter().filter(|(at, _)| scope.is_in[*at]);
            let weight = rarity(scope.count, inside.clone().count());
            for &(at, times) in inside {
                let score = weight * gain(times, self.all[at].words, scope.mean_length);
                *scores.entry(at).or_default() += score;
            }
        }
        let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        ranked.into_iter().take(most).map(|(at, _)| &self.all[at].text)
    }
}

/// Where a line ends: at a line feed, also where that is written as an escape, and behind the full stops of Chinese and
/// Japanese, whose paragraphs are one. Other escapes end none.
static ENDS: LazyPattern = LazyPattern::new(r"(?s)\\.|\n|[。！？]");

/// The lines of a text, in pieces of bounded length.
fn split(text: &str) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut push = |mut from: usize, to: usize| {
        while to - from > LINE_BYTES {
            let limit = text.floor_char_boundary(from + LINE_BYTES);
            let cut = text[from..limit].rfind(' ').map_or(limit, |at| from + at + 1);
            lines.push(from..cut);
            from = cut;
        }
        if !text[from..to].trim().is_empty() {
            lines.push(from..to);
        }
    };
    let mut from = 0;
    for end in ENDS.matches(text).filter_map(|found| found.get(0)) {
        match end.as_str() {
            "\n" | "\\n" => push(from, end.start()),
            escape if escape.starts_with('\\') => continue,
            _ => push(from, end.end()),
        }
        from = end.end();
    }
    push(from, text.len());
    lines
}

/// FNV-1a: the same on every platform.
fn hash(word: &str) -> u64 {
    word.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
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
            (3, "预发布网关端口是48213。계费网关"),
        ];
        let snippets = Snippets::of(texts, |text| text.len() < 30);
        let found = |may: fn(usize) -> bool, query: &str, most| -> Vec<&str> {
            let scope = snippets.within(may);
            let found = snippets.search(&scope, query, most);
            found.map(|text| &**text).collect()
        };
        let query = "What is the port of svc7?";
        assert_eq!(found(|_| true, query, 1), ["the port of svc7 is 4049"]);
        let later = found(|owner| owner > 0, query, 1);
        assert_eq!(later, ["port port port"]);
        assert!(found(|_| true, "quokka", 5).is_empty());
        let of_one = found(|owner| owner == 1, "weather", 5);
        assert_eq!(of_one, ["the weather was fine"]);
        let of_pairs = found(|_| true, "网关端口是什么？", 1);
        assert_eq!(of_pairs, ["预发布网关端口是48213。"]);
    }

    #[test]
    fn long_lines_are_cut() {
        let text = "ä".repeat(5_000) + "\\nx\n\n" + &"word ".repeat(1_000);
        let lines = split(&text);
        assert!(lines.iter().all(|line| line.len() <= LINE_BYTES));
        let kept: usize = lines.iter().map(ExactSizeIterator::len).sum();
        assert_eq!(kept, text.len() - 4);
    }
}
