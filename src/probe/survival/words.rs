//! Words as survival sees them: lower-case runs of letters and digits, with their place.
//!
//! Chinese, Japanese and Korean are cut into pairs of characters, see [`crate::script`].

use std::collections::BTreeSet;
use std::ops::Range;

use super::lists::{LISTS, WordClass};
use crate::script::{ends_clause, ends_sentence, is_unspaced, pairs, run_end};

/// The place of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WordPlace {
    /// The number of words before it.
    pub(super) word: usize,
    /// How many sentences and lines end before it.
    pub(super) sentence: usize,
    /// How many of these, and of commas and the like.
    pub(super) clause: usize,
    /// The byte at which it starts.
    pub(super) start: usize,
}

/// Calls `each` with every word of `text`: lower-cased, apostrophes dropped (`don't` is `dont`).
///
/// Letters and digits make words; everything else parts them, and so do the escapes `\n`, `\t`
/// and `\r` of JSON. A full stop ends a sentence only where no word goes on at once. A run of
/// Chinese, Japanese or Korean is a word for each two neighbours.
pub(crate) fn each_word(text: &str, mut each: impl FnMut(&str, WordPlace)) {
    let mut at = WordPlace { word: 0, sentence: 0, clause: 0, start: 0 };
    let mut word = String::new();
    let mut next = 0;
    while let Some(c) = char_at(text, next) {
        let start = next;
        next += c.len_utf8();
        if c == ' ' {
            continue;
        }
        if is_unspaced(c) {
            next = run_end(text, start);
            for (offset, pair) in pairs(&text[start..next]) {
                at.start = start + offset;
                each(pair, at);
                at.word += 1;
            }
            continue;
        }
        if c.is_alphanumeric() {
            word.clear();
            word.extend(c.to_lowercase());
            next = rest_of_word(text, next, &mut word);
            at.start = start;
            each(&word, at);
            at.word += 1;
            continue;
        }
        let escaped = char_at(text, next).filter(|_| c == '\\');
        next += usize::from(matches!(escaped, Some('n' | 'r' | 't')));
        let goes_on = char_at(text, next)
            .is_some_and(|c| c.is_alphanumeric() || matches!(c, '/' | '\\' | '='));
        let shortened = c == '.' && is_short_for(&word, &text[next..]);
        let ends = matches!(escaped, Some('n' | 'r'))
            || c == '\n'
            || ends_sentence(c)
            || (matches!(c, '.' | '!' | '?') && !goes_on && !shortened);
        let parts = ends_clause(c) || (matches!(c, ',' | ';' | ':' | '(' | ')' | '—') && !goes_on);
        at.sentence += usize::from(ends);
        at.clause += usize::from(ends || parts);
    }
}

/// Whether the full stop between a word and the rest of its text ends a short word and no sentence: `max. 5`.
fn is_short_for(word: &str, rest: &str) -> bool {
    let number = rest.trim_start_matches(' ');
    number.starts_with(|c: char| c.is_ascii_digit())
        && LISTS.has(&[WordClass::Upper, WordClass::Lower], word)
}

fn char_at(text: &str, at: usize) -> Option<char> {
    text.get(at..)?.chars().next()
}

/// Reads on from `at` to the end of the word, and says where that is.
fn rest_of_word(text: &str, mut at: usize, word: &mut String) -> usize {
    let bytes = text.as_bytes();
    loop {
        // Nearly all words are ASCII, and copied whole.
        let from = at;
        while bytes.get(at).is_some_and(u8::is_ascii_alphanumeric) {
            at += 1;
        }
        let copied = word.len();
        word.push_str(&text[from..at]);
        word[copied..].make_ascii_lowercase();
        let Some(c) = char_at(text, at) else {
            break;
        };
        if is_unspaced(c) {
            break;
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        } else if !matches!(c, '\'' | '’')
            || !char_at(text, at + c.len_utf8()).is_some_and(char::is_alphanumeric)
        {
            break;
        }
        at += c.len_utf8();
    }
    at
}

/// The words of a text.
pub(super) fn words_of(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_word(text, |word, _| words.push(word.to_owned()));
    words
}

/// The sentences of a text, each up to the first word of the next; at least one, which may have no word.
pub(super) fn sentences(text: &str) -> Vec<Range<usize>> {
    let (mut sentences, mut start, mut last) = (Vec::new(), 0, 0);
    each_word(text, |_, at| {
        if at.sentence != last {
            sentences.push(start..at.start);
            (start, last) = (at.start, at.sentence);
        }
    });
    sentences.push(start..text.len());
    sentences
}

/// The distinct words of `text` that say what it is about, in order; all of its words where
/// nothing else is left.
pub(super) fn content_words(text: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut all = words_of(text);
    all.retain(|word| seen.insert(word.clone()));
    let mut topic = all.clone();
    topic.retain(|word| !LISTS.has(&[WordClass::Stop, WordClass::Forbid, WordClass::Demand], word));
    if topic.is_empty() { all } else { topic }
}

/// The share of the content words of `statement` that occur anywhere in `text`.
///
/// `|words(statement) ∩ words(text)| / |words(statement)|` over distinct lower-case words without stop words: COMPINT's
/// measure. It is only meaningful where `text` is a summary or an answer; a long text holds the words of any rule
/// somewhere.
pub fn content_word_recall(statement: &str, text: &str) -> f64 {
    let wanted = content_words(statement);
    let mut found = BTreeSet::new();
    each_word(text, |word, _| {
        found.extend(wanted.iter().position(|known| known == word));
    });
    found.len() as f64 / wanted.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let mut words = Vec::new();
        each_word(text, |word, at| {
            words.push(format!("{word}{}", at.sentence));
        });
        assert_eq!(words, expected, "{text}");
    }

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        check("Don’t touch src/a.rs.", &["dont0", "touch0", "src0", "a0", "rs0"]);
        check("One. Two!\nthree", &["one0", "two1", "three3"]);
        check(
            r#"{"x":"a\nport: 8"}"#,
            &["x0", "a0", "port1", "80"].map(|w| if w == "80" { "81" } else { w }),
        );
        check("staging_port", &["staging0", "port0"]);
        check(
            "网关端口是48213。好！请",
            &["网关0", "关端0", "端口0", "口是0", "482130", "好1", "请2"],
        );
        check("v2ポートは9", &["v20", "ポー0", "ート0", "トは0", "90"]);
    }

    #[test]
    fn content_words_say_what_a_text_is_about() {
        assert_eq!(content_words("Never use the port of the port"), ["port"]);
        assert_eq!(content_words("not this"), ["not", "this"]);
    }
}
