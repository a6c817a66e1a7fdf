//! Gives a reader the bytes of a file of JSON with its long texts cut short.
//!
//! The file may be laid out in any way: a value per line, or one over many. Only one text is held at
//! a time. What is no JSON is given as it is, and so is a text up to a line feed, which no JSON
//! string holds: a line that was cut spoils no other.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use memchr::{memchr, memchr2, memchr3};
use sha2::{Digest, Sha256};

use super::{Cut, ESCAPED, Format, MARK};
use crate::units::ContentHash;

/// How many bytes are scanned at a time.
const CHUNK: usize = 1 << 16;

/// The longest text that is cut; a longer one is given as it is, to be refused.
const LONGEST: usize = 256 << 20;

/// How deep the keys of a conversation stand: its object may be the file, or stand in a list.
const SURFACE: usize = 2;

/// Reads a file, and gives it with its long texts cut.
pub(super) struct Cutter<R> {
    input: R,
    format: &'static Format,
    cut: Cut,
    chunk: Vec<u8>,
    given: Vec<u8>,
    at: usize,
    /// How many bytes of the file were scanned.
    offset: u64,
    place: Place,
    depth: usize,
    /// The text that is being read, or was read last, with its quotation marks.
    literal: Vec<u8>,
    /// Where it begins in the file.
    start: u64,
    since: Since,
    /// Whether the text is read to its end, because of its key.
    is_read: bool,
    /// White space behind a text that may be a key.
    blank: Vec<u8>,
    known: BTreeMap<ContentHash, usize>,
    /// Where each rest begins, and how long it is.
    pub(super) places: Vec<(u64, usize)>,
    /// All that the file has, and all that was given.
    pub(super) whole: Sha256,
    pub(super) short: Sha256,
    /// Whether the file itself holds what looks like a mark.
    pub(super) is_marked: bool,
    /// How many answers of a model stand beside what it was sent.
    pub(super) answers: usize,
    /// How many conversations there may be.
    pub(super) values: usize,
}

/// Where in the JSON the scan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Between texts.
    Between,
    /// In a text; what follows a backslash does not end it.
    Text { escaped: bool },
    /// In a text too long to be held, of which all was given so far.
    Passing { escaped: bool },
    /// Behind a long text; a colon makes it a key.
    Behind,
}

/// What was seen since the last text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    Nothing,
    /// The text was a key.
    Colon,
    Else,
}

impl<R: Read> Cutter<R> {
    pub(super) fn new(input: R, format: &'static Format, cut: Cut) -> Self {
        Self {
            input,
            format,
            cut,
            chunk: vec![0; CHUNK],
            given: Vec::new(),
            at: 0,
            offset: 0,
            place: Place::Between,
            depth: 0,
            literal: Vec::new(),
            start: 0,
            since: Since::Else,
            is_read: false,
            blank: Vec::new(),
            known: BTreeMap::new(),
            places: Vec::new(),
            whole: Sha256::new(),
            short: Sha256::new(),
            is_marked: false,
            answers: 0,
            values: 0,
        }
    }

    /// Scans on until there is something to give; there is nothing at the end.
    fn next(&mut self) -> io::Result<()> {
        self.given.clear();
        self.at = 0;
        while self.given.is_empty() {
            let mut chunk = std::mem::take(&mut self.chunk);
            let read = self.input.read(&mut chunk);
            if let Ok(count @ 1..) = read {
                self.whole.update(&chunk[..count]);
                self.scan(&chunk[..count]);
            }
            self.chunk = chunk;
            if read? == 0 {
                self.end();
                break;
            }
        }
        self.short.update(&self.given);
        Ok(())
    }

    fn scan(&mut self, mut left: &[u8]) {
        while !left.is_empty() {
            let count = match self.place {
                Place::Between => self.between(left),
                Place::Text { escaped } => self.text(left, escaped),
                Place::Passing { escaped } => self.pass(left, escaped),
                Place::Behind => self.behind(left),
            };
            self.offset += count as u64;
            left = &left[count..];
        }
    }

    /// Gives what stands before the next text.
    fn between(&mut self, left: &[u8]) -> usize {
        let end = memchr(b'"', left).unwrap_or(left.len());
        for byte in &left[..end] {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => continue,
                b':' if self.since == Since::Nothing => {
                    self.since = Since::Colon;
                    let key = inner(&self.literal);
                    let is_answer = self.depth <= SURFACE && is_one_of(key, self.format.answers);
                    self.answers += usize::from(is_answer);
                    continue;
                }
                b'{' | b'[' => {
                    // A list may hold several.
                    let values = if *byte == b'[' { 2 } else { 1 };
                    self.values += if self.depth == 0 { values } else { 0 };
                    self.depth += 1;
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                // The mark begins so, and no JSON does but in a text.
                0xf4.. => self.is_marked = true,
                _ => {}
            }
            self.since = Since::Else;
        }
        self.given.extend_from_slice(&left[..end]);
        if end == left.len() {
            return end;
        }
        let key = inner(&self.literal);
        self.is_read = self.since == Since::Colon && is_one_of(key, self.format.keys);
        self.start = self.offset + end as u64;
        self.literal.clear();
        self.literal.push(b'"');
        self.place = Place::Text { escaped: false };
        end + 1
    }

    /// Takes what is left into the text, as far as it goes.
    fn text(&mut self, left: &[u8], escaped: bool) -> usize {
        let end = if escaped {
            Some(0)
        } else {
            memchr3(b'"', b'\\', b'\n', left)
        };
        let count = end.map_or(left.len(), |at| at + 1);
        self.literal.extend_from_slice(&left[..count]);
        self.place = Place::Text { escaped: false };
        match end.map(|at| left[at]) {
            Some(b'\n') => self.give_whole(),
            Some(b'\\') if !escaped => self.place = Place::Text { escaped: true },
            Some(b'"') if !escaped => {
                if self.literal.len() - 2 > self.cut.above && !self.is_read {
                    self.place = Place::Behind;
                } else {
                    self.give_whole();
                }
            }
            _ if self.literal.len() > LONGEST => {
                self.give_whole();
                self.place = Place::Passing { escaped: false };
            }
            _ => {}
        }
        count
    }

    fn pass(&mut self, left: &[u8], escaped: bool) -> usize {
        let (count, last) = match memchr3(b'"', b'\\', b'\n', left) {
            _ if escaped => (1, b' '),
            Some(at) => (at + 1, left[at]),
            None => (left.len(), b' '),
        };
        self.given.extend_from_slice(&left[..count]);
        self.place = match last {
            b'"' | b'\n' => Place::Between,
            last => Place::Passing {
                escaped: last == b'\\',
            },
        };
        count
    }

    /// What follows a long text tells whether it is a key.
    fn behind(&mut self, left: &[u8]) -> usize {
        let blank = left.iter().take_while(|it| it.is_ascii_whitespace());
        let blank = blank.count();
        self.blank.extend_from_slice(&left[..blank]);
        match left.get(blank) {
            Some(b':') => self.give_whole(),
            Some(_) => self.give_cut(),
            None => {}
        }
        blank
    }

    fn end(&mut self) {
        match self.place {
            Place::Text { .. } => self.give_whole(),
            Place::Behind => self.give_cut(),
            Place::Between | Place::Passing { .. } => {}
        }
    }

    /// Gives the text as it is.
    fn give_whole(&mut self) {
        if memchr2(0xf4, b'\\', &self.literal).is_some() {
            self.is_marked |= match serde_json::from_slice::<String>(&self.literal) {
                Ok(text) => looks_marked(&text),
                Err(_) => looks_marked(&String::from_utf8_lossy(&self.literal)),
            };
        }
        self.given.extend_from_slice(&self.literal);
        self.ended();
    }

    /// Gives the beginning of the text and the name of its rest, unless all of it is needed.
    fn give_cut(&mut self) {
        let literal = std::mem::take(&mut self.literal);
        let end = literal.len() - 1;
        let kept = 1 + super::kept(&literal[1..end], self.cut.keep);
        let text = serde_json::from_slice::<String>(&literal);
        let words = self.format.words;
        let is_needed = |text: &str| {
            // A text of one word says nothing, and its beginning is to tell.
            let is_word = |text: &str| !text.trim().contains(char::is_whitespace);
            let begin = || String::from_utf8_lossy(&literal[..kept]).into_owned() + "\"";
            let begin = || serde_json::from_str::<String>(&begin()).unwrap_or_default();
            kept == end
                || words.iter().any(|word| text.contains(word))
                || !is_word(text) && is_word(&begin())
        };
        match text {
            Ok(text) if !is_needed(&text) => {
                self.is_marked |= looks_marked(&text);
                let name = self.name(ContentHash::of(&literal), kept, end);
                self.given.extend_from_slice(&literal[..kept]);
                let mark = format!("{ESCAPED}{name}{ESCAPED}\"");
                self.given.extend_from_slice(mark.as_bytes());
                self.literal = literal;
                self.ended();
            }
            Ok(_) | Err(_) => {
                self.literal = literal;
                self.give_whole();
            }
        }
    }

    fn ended(&mut self) {
        self.given.append(&mut self.blank);
        self.place = Place::Between;
        self.since = Since::Nothing;
    }

    /// The name of the rest of the text, from one place in it to another.
    fn name(&mut self, hash: ContentHash, from: usize, to: usize) -> usize {
        let (places, start) = (&mut self.places, self.start);
        *self.known.entry(hash).or_insert_with(|| {
            places.push((start + from as u64, to - from));
            places.len() - 1
        })
    }
}

impl<R: Read> Read for Cutter<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let given = self.fill_buf()?;
        let count = given.len().min(out.len());
        out[..count].copy_from_slice(&given[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl<R: Read> BufRead for Cutter<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.given.len() {
            self.next()?;
        }
        Ok(&self.given[self.at..])
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }
}

/// A text without its quotation marks.
fn inner(literal: &[u8]) -> &[u8] {
    let inner = literal.strip_prefix(b"\"").unwrap_or_default();
    inner.strip_suffix(b"\"").unwrap_or_default()
}

fn is_one_of(key: &[u8], keys: &[&str]) -> bool {
    keys.iter().any(|it| it.as_bytes() == key)
}

/// Whether a text holds what would be taken for a mark, perhaps once it is read as JSON itself.
fn looks_marked(text: &str) -> bool {
    let escaped = ESCAPED.trim_start_matches('\\');
    let escaped = escaped.split('\\').next().unwrap_or_default();
    text.contains(MARK) || text.contains("\\u") && text.to_ascii_lowercase().contains(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    static FORMAT: Format = Format {
        name: "a",
        keys: &["arguments"],
        words: &["whole"],
        answers: &["response"],
    };

    /// Cuts texts of more than four bytes, of which two stay; the rests are shown as `<0>`.
    #[track_caller]
    fn check(file: &str, expected: &str) {
        // However the bytes come.
        for size in [1, 2, 3, 7, 1_000] {
            let cut = Cut { above: 4, keep: 2 };
            let mut cutter = Cutter::new(file.as_bytes(), &FORMAT, cut);
            cutter.chunk = vec![0; size];
            let mut given = String::new();
            cutter.read_to_string(&mut given).expect("it is UTF-8");
            let mut shown = given;
            for (name, (from, length)) in cutter.places.iter().enumerate() {
                let from = usize::try_from(*from).expect("it is short");
                let rest = format!("<{}>", &file[from..from + length]);
                shown = shown.replace(&format!("{ESCAPED}{name}{ESCAPED}"), &rest);
            }
            if cutter.is_marked {
                shown.push_str(" marked");
            }
            if cutter.answers > 0 {
                shown = format!("{shown} {} answers", cutter.answers);
            }
            assert_eq!(shown, expected, "{size} bytes at a time");
        }
    }

    #[test]
    fn long_texts_are_cut_and_all_else_is_given_as_it_is() {
        check(r#"{"a":"12345"}"#, r#"{"a":"12<345>"}"#);
        check(
            r#"["1234", "12\"45" ,"12\\","1234567"]"#,
            r#"["1234", "12<\"45>" ,"12\\","12<34567>"]"#,
        );
        check(
            "{\"long key\"\n : \"long\\u0031text\"}",
            "{\"long key\"\n : \"lo<ng\\u0031text>\"}",
        );
        check(
            r#"{"arguments":"12345","a":"arguments","b":"12345"}"#,
            r#"{"arguments":"12345","a":"ar<guments>","b":"12<345>"}"#,
        );
        check(
            r#"["a whole one","\u0077hole"]"#,
            r#"["a whole one","\u0077hole"]"#,
        );
        // That a text is more than a word is seen of its beginning.
        check(r#"["ab c d", " abcd"]"#, r#"["ab c d", " a<bcd>"]"#);
        // Equal texts have equal names.
        check(r#"["12345","12345"]"#, r#"["12<345>","12<345>"]"#);
        check(r#"["12\ud83d45"]"#, r#"["12\ud83d45"]"#);
        check("\"12345\n\"123456\"", "\"12345\n\"12<3456>\"");
        check("\"12345\\\n\"123456\"", "\"12345\\\n\"12<3456>\"");
        check("\"12345", "\"12345");
        check("\"12345\" ", "\"12<345>\" ");
    }

    #[test]
    fn what_looks_like_a_mark_is_told() {
        check("\"\u{10fffd}\"", "\"\u{10fffd}\" marked");
        check(r#""\uDBFF\uDFFD""#, r#""\uDBFF\uDFFD" marked"#);
        check(r#""\\udbff\\udffd""#, r#""\\<udbff\\udffd>" marked"#);
    }

    #[test]
    fn answers_beside_requests_are_counted() {
        check(
            r#"[{"response":{"response":{"response":1}}},{"a":"response"}]"#,
            r#"[{"response":{"response":{"response":1}}},{"a":"re<sponse>"}] 1 answers"#,
        );
        check(
            "{\"response\":1}\n{\"response\" :1}",
            "{\"response\":1}\n{\"response\" :1} 2 answers",
        );
    }
}
