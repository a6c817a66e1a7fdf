//! The lines of a text and where each word stands: made once per distinct text.

use super::{Verb, open_tasks, path_tokens, touched_by, verb_of};
use crate::script::{is_unspaced, pairs, run_end};
use crate::session::{ContentBlock, ToolClass};

/// Lines are cut into pieces of at most this many bytes: minified files are one line.
pub(super) const LINE_BYTES: usize = 600;

/// The lines of a text and the words in them.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) lines: Vec<std::ops::Range<usize>>,
    /// Words per line.
    pub(super) lengths: Vec<u32>,
    /// Word, line, repetitions; sorted.
    postings: Vec<(u64, u32, u32)>,
    pub(super) words: u64,
    /// What the text says was done to which file, in order.
    pub(super) touched: Vec<(Verb, String)>,
    /// Of a task list, what is not done.
    pub(super) open: Vec<String>,
}

impl Index {
    pub(super) fn new(text: &str, block: &ContentBlock) -> Self {
        let lines = split(text);
        let mut lengths = Vec::with_capacity(lines.len());
        let mut all = Vec::new();
        let mut touched = Vec::new();
        let mut words = 0;
        for (at, line) in (0_u32..).zip(&lines) {
            let mut length = 0;
            let mut verb = None;
            each_word(&text[line.clone()], |word, _| {
                all.push((hash(word), at));
                length += 1;
                verb = verb.or_else(|| verb_of(word));
            });
            lengths.push(length);
            words += u64::from(length);
            if let Some(verb) = verb {
                touched.extend(path_tokens(&text[line.clone()]).map(|path| (verb, path)));
            }
        }
        let mut open = Vec::new();
        if let ContentBlock::ToolUse(tool) = block {
            let input = tool.input.value();
            touched = touched_by(tool.class, &input);
            if tool.class == ToolClass::Todo {
                open = open_tasks(&input);
            }
        }
        all.sort_unstable();
        let mut postings: Vec<(u64, u32, u32)> = Vec::new();
        for (word, line) in all {
            match postings.last_mut() {
                Some(last) if (last.0, last.1) == (word, line) => last.2 += 1,
                _ => postings.push((word, line, 1)),
            }
        }
        postings.shrink_to_fit();
        Self {
            lines,
            lengths,
            postings,
            words,
            touched,
            open,
        }
    }

    pub(super) fn postings(&self, word: u64) -> &[(u64, u32, u32)] {
        let from = self.postings.partition_point(|posting| posting.0 < word);
        let rest = &self.postings[from..];
        &rest[..rest.partition_point(|posting| posting.0 == word)]
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
