//! The lines of a text and the positions of its words: made once per distinct text.

use std::collections::BTreeMap;

use super::{Verb, path_tokens, tasks, touched_by, verb_of};
use crate::script::{is_unspaced, pairs, run_end};
use crate::session::{ContentBlock, ToolClass};

/// Lines are cut into pieces of at most this many bytes: minified files are one line.
pub(super) const LINE_BYTES: usize = 600;

/// Saturation of a word's repetitions in a unit: the usual value.
const K1: f64 = 1.2;
/// How far long units are held back: the usual value.
const B: f64 = 0.75;

/// BM25's weight of a word: its inverse document frequency, where `holding` of `all` units hold it.
pub(crate) fn rarity(all: usize, holding: usize) -> f64 {
    let (all, holding) = (all as f64, holding as f64);
    libm::log(1.0 + (all - holding + 0.5) / (holding + 0.5))
}

/// BM25's gain from `count` repetitions of a word in a unit of this length.
pub(crate) fn gain(count: u32, length: u32, average: f64) -> f64 {
    let count = f64::from(count);
    let damped = count + K1 * (1.0 - B + B * f64::from(length) / average);
    count * (K1 + 1.0) / damped
}

/// A word by its hash, a unit of text that holds it, and how often.
pub(super) type Posting = (u64, u32, u32);

/// The words of units of text: lines or snippets.
#[derive(Debug, Default)]
pub(super) struct Postings {
    /// Words per unit.
    lengths: Vec<u32>,
    /// Words of all units.
    pub(super) words: u64,
    /// Sorted.
    entries: Vec<Posting>,
}

impl Postings {
    /// Reads units of text, and hands each word on, with its unit.
    pub(super) fn new<'a>(
        units: impl IntoIterator<Item = &'a str>,
        mut each: impl FnMut(u32, &str),
    ) -> Self {
        let (mut lengths, mut all) = (Vec::new(), Vec::new());
        for (at, unit) in (0_u32..).zip(units) {
            let mut length = 0;
            each_word(unit, |word, _| {
                all.push((hash(word), at));
                length += 1;
                each(at, word);
            });
            lengths.push(length);
        }
        all.sort_unstable();
        let mut entries: Vec<Posting> = Vec::new();
        for (word, unit) in all {
            match entries.last_mut() {
                Some(last) if (last.0, last.1) == (word, unit) => last.2 += 1,
                _ => entries.push((word, unit, 1)),
            }
        }
        entries.shrink_to_fit();
        let words = lengths.iter().map(|length| u64::from(*length)).sum();
        Self {
            lengths,
            words,
            entries,
        }
    }

    /// The units that hold a word, by its hash.
    pub(super) fn of(&self, word: u64) -> &[Posting] {
        let from = self.entries.partition_point(|posting| posting.0 < word);
        let rest = &self.entries[from..];
        let holding = rest.iter().take_while(|posting| posting.0 == word);
        &rest[..holding.count()]
    }

    /// Words of a unit.
    pub(super) fn length(&self, unit: u32) -> u32 {
        self.lengths[unit as usize]
    }
}

/// The lines of a text and the words in them.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) lines: Vec<std::ops::Range<usize>>,
    pub(super) postings: Postings,
    /// Files that the text mentions with what was done to them, in order.
    pub(super) touched: Vec<(Verb, String)>,
    /// Of a task list, the tasks that are not done.
    pub(super) open: Vec<String>,
}

impl Index {
    pub(super) fn new(text: &str, block: &ContentBlock) -> Self {
        let lines = split(text);
        let mut verbs: BTreeMap<u32, Verb> = BTreeMap::new();
        let units = lines.iter().map(|line| &text[line.clone()]);
        let postings = Postings::new(units, |line, word| {
            if let Some(verb) = verb_of(word) {
                verbs.entry(line).or_insert(verb);
            }
        });
        let mut open = Vec::new();
        let touched = if let ContentBlock::ToolUse(tool) = block {
            let input = tool.input.value();
            if tool.class == ToolClass::Todo {
                let is_open = |state: &str| !matches!(state, "completed" | "done" | "cancelled");
                let tasks = tasks(&input).filter(|(_, state)| is_open(state));
                open = tasks.map(|(text, _)| text.to_owned()).collect();
            }
            touched_by(tool.class, &input)
        } else {
            let said = |(line, verb): (u32, Verb)| {
                let paths = path_tokens(&text[lines[line as usize].clone()]);
                paths.map(move |path| (verb, path))
            };
            verbs.into_iter().flat_map(said).collect()
        };
        Self {
            lines,
            postings,
            touched,
            open,
        }
    }
}

/// The byte behind `。`, `！` or `？`, where one of them starts.
fn sentence_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes[at].is_ascii() {
        return None;
    }
    let mark = bytes.get(at..at + 3)?;
    let ends = ["。", "！", "？"].iter().any(|end| end.as_bytes() == mark);
    ends.then_some(at + 3)
}

/// Lines, also where the line feed is written as an escape, in pieces of bounded length. The full
/// stops of Chinese and Japanese end a line too: their paragraphs are one.
pub(super) fn split(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut lines = Vec::new();
    let mut push = |mut from: usize, to: usize| {
        while to - from > LINE_BYTES {
            let limit = text.floor_char_boundary(from + LINE_BYTES);
            let cut = text[from..limit]
                .rfind(' ')
                .map_or(limit, |at| from + at + 1);
            lines.push(from..cut);
            from = cut;
        }
        if !text[from..to].trim().is_empty() {
            lines.push(from..to);
        }
    };
    let bytes = text.as_bytes();
    let mut from = 0;
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'\n' {
            push(from, at);
            from = at + 1;
        } else if bytes[at] == b'\\' {
            if bytes.get(at + 1) == Some(&b'n') {
                push(from, at);
                from = at + 2;
            }
            at += 1;
        } else if let Some(end) = sentence_end(bytes, at) {
            push(from, end);
            from = end;
            at = end;
            continue;
        }
        at += 1;
    }
    push(from.min(bytes.len()), bytes.len());
    lines
}

/// Calls `each` with every run of letters and digits, lower-cased, and where it starts; a run of
/// Chinese, Japanese or Korean in pairs.
pub(super) fn each_word(text: &str, mut each: impl FnMut(&str, usize)) {
    let mut word = String::new();
    let mut start = 0;
    let mut next = 0;
    for (at, c) in text.char_indices() {
        if at < next {
            continue;
        }
        let unspaced = is_unspaced(c);
        if c.is_alphanumeric() && !unspaced {
            if word.is_empty() {
                start = at;
            }
            if c.is_ascii() {
                word.push(c.to_ascii_lowercase());
            } else {
                word.extend(c.to_lowercase());
            }
            continue;
        }
        if !word.is_empty() {
            each(&word, start);
            word.clear();
        }
        if unspaced {
            next = run_end(text, at);
            for (offset, pair) in pairs(&text[at..next]) {
                each(pair, at + offset);
            }
        }
    }
    if !word.is_empty() {
        each(&word, start);
    }
}

/// FNV-1a: the same on every platform.
pub(super) fn hash(word: &str) -> u64 {
    word.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
