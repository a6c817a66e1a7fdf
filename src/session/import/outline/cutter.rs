//! Gives a reader the bytes of a file of JSON with its long texts cut short.
//!
//! The file may be laid out in any way: a value per line, or one over many. Only one text is held at
//! a time. What is no JSON is given as it is, and so is a text up to a line feed, which no JSON
//! string holds: a line that was cut spoils no other. Values that an importer reads one at a time, if
//! at all, are put aside: in their place stands a mark, and they are read when they are asked for.

use std::io::{self, BufRead, Read};

use memchr::{memchr, memchr2, memchr3};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::marks::Marks;
use super::{Cut, ESCAPED, Format, Lists, MARK};
use crate::session::import::lines::MAX_NESTING;
use crate::units::ContentHash;

/// How many bytes are scanned at a time.
const CHUNK: usize = 1 << 16;

/// The longest text that is cut; a longer one is given as it is, to be refused.
const LONGEST: usize = 256 << 20;

/// How deep the keys of a conversation stand: its object may be the file, or stand in a list.
const SURFACE: usize = 2;

/// How a mark begins that stands for a value.
const VALUE: &str = "value ";

/// How deep it is known what stands around a text.
const KNOWN: usize = 32;

/// Opens what is read, at a place in it.
pub(super) type Open<'a> = dyn Fn(u64) -> io::Result<Box<dyn Read + 'a>> + 'a;

/// Reads a file, and gives it with its long texts cut.
pub(in crate::session::import) struct Cutter<'a> {
    open: &'a Open<'a>,
    input: Box<dyn Read + 'a>,
    format: &'static Format,
    cut: Cut,
    chunk: Vec<u8>,
    given: Vec<u8>,
    at: usize,
    /// How many bytes of the file were scanned.
    offset: u64,
    place: Place,
    depth: usize,
    levels: Vec<Level>,
    /// How deep the object stands that is the model's message.
    model: Option<usize>,
    /// The value that is put aside, of which `length` goes to its last line feed so far; and how deep
    /// it stands.
    aside: Option<(Aside, usize)>,
    /// The text that is being read, or was read last, with its quotation marks.
    literal: Vec<u8>,
    /// Where it begins in the file.
    start: u64,
    since: Since,
    /// Whether the text is read to its end, because of its key.
    is_read: bool,
    /// Whether it says who speaks.
    is_role: bool,
    /// White space behind a text that may be a key.
    blank: Vec<u8>,
    /// The rests so far.
    pub(super) marks: Marks,
    /// Values that were put aside.
    values_aside: Vec<Aside>,
    /// All that the file has, and all that was given.
    pub(in crate::session::import) whole: Sha256,
    pub(in crate::session::import) short: Sha256,
    /// How many answers of a model stand beside what it was sent.
    pub(super) answers: usize,
    /// How many conversations there may be.
    pub(super) values: usize,
}

/// A value that is put aside.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aside {
    /// Where it begins, and how long it is, in bytes.
    start: u64,
    pub(super) length: u64,
    /// How many line feeds it holds, and how many bytes stand behind the last one.
    pub(super) lines: u64,
    pub(super) last_line: usize,
    /// Whether it was asked for.
    is_asked: bool,
}

/// What is known of an object or list that was begun.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    /// Whether a text in it was cut.
    is_cut: bool,
    /// Its key, where it is a list whose objects have values that are put aside.
    list: Option<&'static str>,
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

impl<'a> Cutter<'a> {
    /// Reads from the beginning, and goes on with the marks that are there.
    pub(in crate::session::import) fn new(
        open: &'a Open<'a>,
        format: &'static Format,
        cut: Cut,
        marks: Marks,
    ) -> io::Result<Self> {
        Ok(Self {
            open,
            input: open(0)?,
            format,
            cut,
            chunk: vec![0; CHUNK],
            given: Vec::new(),
            at: 0,
            offset: 0,
            place: Place::Between,
            depth: 0,
            levels: Vec::new(),
            model: None,
            aside: None,
            literal: Vec::new(),
            start: 0,
            since: Since::Else,
            is_read: false,
            is_role: false,
            blank: Vec::new(),
            marks,
            values_aside: Vec::new(),
            whole: Sha256::new(),
            short: Sha256::new(),
            answers: 0,
            values: 0,
        })
    }

    /// Whether the file has to be read at once after all: it holds what looks like a mark, or
    /// something that was cut or put aside is not as it should be.
    pub(in crate::session::import) fn is_odd(&mut self) -> io::Result<bool> {
        for value in self.values_aside.iter().filter(|it| !it.is_asked) {
            let input = io::BufReader::new((self.open)(value.start)?.take(value.length));
            let read = serde_json::from_reader::<_, serde::de::IgnoredAny>(input);
            self.marks.is_odd |= read.is_err();
        }
        Ok(self.marks.is_odd)
    }

    /// The value of that name, if one of it was put aside.
    pub(super) fn value_aside(&self, name: &str) -> Option<Aside> {
        let number: usize = name.strip_prefix(VALUE)?.parse().ok()?;
        self.values_aside.get(number).copied()
    }

    /// How many bytes of the file were read.
    pub(in crate::session::import) fn scanned(&self) -> u64 {
        self.offset
    }

    /// The rests so far.
    pub(in crate::session::import) fn into_marks(self) -> Marks {
        self.marks
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
                self.scan(&chunk[..count])?;
            }
            self.chunk = chunk;
            if read? == 0 {
                self.end()?;
                break;
            }
        }
        self.short.update(&self.given);
        Ok(())
    }

    fn scan(&mut self, mut left: &[u8]) -> io::Result<()> {
        while !left.is_empty() {
            let count = match self.place {
                Place::Between => self.between(left),
                Place::Text { escaped } => self.text(left, escaped),
                Place::Passing { escaped } => self.pass(left, escaped),
                Place::Behind => self.behind(left)?,
            };
            self.offset += count as u64;
            left = &left[count..];
        }
        Ok(())
    }

    /// Gives what stands before the next text.
    fn between(&mut self, left: &[u8]) -> usize {
        let end = memchr(b'"', left).unwrap_or(left.len());
        // What is not given yet begins here.
        let mut from = 0;
        for (at, byte) in left[..end].iter().enumerate() {
            match byte {
                b'\n' => {
                    if let Some((value, _)) = &mut self.aside {
                        let end = self.offset + at as u64 + 1;
                        value.lines += 1;
                        value.length = end - value.start;
                    }
                    continue;
                }
                b' ' | b'\t' | b'\r' => continue,
                b':' if self.since == Since::Nothing => {
                    self.since = Since::Colon;
                    let key = inner(&self.literal);
                    let is_answer = self.depth <= SURFACE && is_one_of(key, self.format.answers);
                    self.answers += usize::from(is_answer);
                    continue;
                }
                b'{' | b'[' => {
                    if self.is_put_aside() {
                        self.given.extend_from_slice(&left[from..at]);
                        let value = Aside {
                            start: self.offset + at as u64,
                            length: 0,
                            lines: 0,
                            last_line: 0,
                            is_asked: false,
                        };
                        self.aside = Some((value, self.depth));
                    }
                    self.begin(*byte == b'[');
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.levels.truncate(self.depth);
                    self.model = self.model.filter(|depth| *depth <= self.depth);
                    if let Some((mut value, depth)) = self.aside
                        && depth == self.depth
                    {
                        self.aside = None;
                        from = at + 1;
                        let name = self.values_aside.len();
                        let length = self.offset + from as u64 - value.start;
                        let last_line = length - value.length;
                        value.last_line = usize::try_from(last_line).unwrap_or(usize::MAX);
                        value.length = length;
                        self.values_aside.push(value);
                        let mark = format!("\"{ESCAPED}{VALUE}{name}{ESCAPED}\"");
                        self.given.extend_from_slice(mark.as_bytes());
                    }
                }
                // The mark begins so, and no JSON does but in a text.
                0xf4.. => self.marks.is_odd = true,
                _ => {}
            }
            self.since = Since::Else;
        }
        if self.aside.is_none() {
            self.given.extend_from_slice(&left[from..end]);
        }
        if end == left.len() {
            return end;
        }
        let key = inner(&self.literal);
        let is_value = self.since == Since::Colon;
        self.is_read = is_value && is_one_of(key, self.format.keys) || self.model.is_some();
        self.is_role = is_value && self.format.has_calls_in_text && key == b"role";
        self.start = self.offset + end as u64;
        self.literal.clear();
        self.literal.push(b'"');
        self.place = Place::Text { escaped: false };
        end + 1
    }

    /// Whether the value that begins here is read later, if at all.
    fn is_put_aside(&self) -> bool {
        let list = self.depth.checked_sub(2).and_then(|it| self.levels.get(it));
        let list = list.and_then(|level| level.list);
        let key = inner(&self.literal);
        let mut wanted = self.format.aside.iter();
        self.aside.is_none()
            && self.since == Since::Colon
            && wanted.any(|(of, keys)| list == Some(of) && is_one_of(key, keys))
    }

    /// An object or a list begins.
    fn begin(&mut self, is_list: bool) {
        if self.depth == 0 {
            // A list may hold several.
            self.values += if is_list { 2 } else { 1 };
        }
        if self.depth < KNOWN {
            let key = inner(&self.literal);
            let mut wanted = self.format.aside.iter().map(|(of, _)| *of);
            let own = wanted.find(|of| of.as_bytes() == key);
            let list = own.filter(|_| is_list && self.since == Since::Colon);
            let is_cut = false;
            self.levels.push(Level { is_cut, list });
        }
        self.depth += 1;
        self.marks.is_odd |= self.aside.is_some() && self.depth > MAX_NESTING;
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
                if self.literal.len() - 2 > self.cut.above && !self.is_read && !self.is_role {
                    self.place = Place::Behind;
                } else {
                    self.give_whole();
                }
            }
            _ if self.literal.len() > LONGEST => {
                self.marks.is_odd |= self.aside.is_some();
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
        if self.aside.is_none() {
            self.given.extend_from_slice(&left[..count]);
        }
        self.place = match last {
            b'"' | b'\n' => Place::Between,
            last => Place::Passing {
                escaped: last == b'\\',
            },
        };
        count
    }

    /// What follows a long text tells whether it is a key.
    fn behind(&mut self, left: &[u8]) -> io::Result<usize> {
        let blank = left.iter().take_while(|it| it.is_ascii_whitespace());
        let blank = blank.count();
        self.blank.extend_from_slice(&left[..blank]);
        match left.get(blank) {
            Some(b':') => self.give_whole(),
            Some(_) => self.give_cut()?,
            None => {}
        }
        Ok(blank)
    }

    fn end(&mut self) -> io::Result<()> {
        match self.place {
            Place::Text { .. } => self.give_whole(),
            Place::Behind => self.give_cut()?,
            Place::Between | Place::Passing { .. } => {}
        }
        self.marks.is_odd |= self.aside.is_some();
        Ok(())
    }

    /// Gives the text as it is.
    fn give_whole(&mut self) {
        if memchr2(0xf4, b'\\', &self.literal).is_some() {
            self.marks.is_odd |= match serde_json::from_slice::<String>(&self.literal) {
                Ok(text) => looks_marked(&text),
                Err(_) => looks_marked(&String::from_utf8_lossy(&self.literal)),
            };
        }
        if self.aside.is_some() {
            self.pass_by();
        } else {
            self.given.extend_from_slice(&self.literal);
        }
        if self.is_role && self.literal == b"\"assistant\"" {
            // What was cut before it was told whose it is may be the model's.
            let own = self.depth.checked_sub(1).map(|it| self.levels.get(it));
            self.marks.is_odd |= own.is_some_and(|own| own.is_none_or(|own| own.is_cut));
            self.model.get_or_insert(self.depth);
        }
        self.ended();
    }

    /// A text of a value that is put aside: one that is no valid JSON would be mended or refused.
    fn pass_by(&mut self) {
        let is_plain = |byte: &u8| (b' '..0x80).contains(byte) && *byte != b'\\';
        self.marks.is_odd |= !self.literal.iter().all(is_plain)
            && serde_json::from_slice::<String>(&self.literal).is_err();
    }

    /// Gives the beginning of the text and the name of its rest, unless all of it is needed.
    fn give_cut(&mut self) -> io::Result<()> {
        let literal = std::mem::take(&mut self.literal);
        let end = literal.len() - 1;
        let kept = 1 + super::kept(&literal[1..end], self.cut.keep);
        let text = serde_json::from_slice::<String>(&literal);
        let format = self.format;
        let is_needed = |text: &str| {
            // A text of one word says nothing, and its beginning is to tell.
            let is_word = |text: &str| !text.trim().contains(char::is_whitespace);
            let begin = || String::from_utf8_lossy(&literal[..kept]).into_owned() + "\"";
            let begin = || serde_json::from_str::<String>(&begin()).unwrap_or_default();
            let is_later = |sign: &&str| text.contains(*sign) && !begin().contains(*sign);
            kept == end
                || format.words.iter().any(|word| text.contains(word))
                || format.signs.iter().any(is_later)
                || !is_word(text) && is_word(&begin())
        };
        let is_aside = self.aside.is_some();
        match text {
            Ok(text) if !is_aside && !is_needed(&text) => {
                self.marks.is_odd |= looks_marked(&text);
                let hash = ContentHash::of(&literal);
                let name = self.marks.name(hash, self.start, &literal, kept..end)?;
                self.given.extend_from_slice(&literal[..kept]);
                let mark = format!("{ESCAPED}{name}{ESCAPED}\"");
                self.given.extend_from_slice(mark.as_bytes());
                for level in &mut self.levels {
                    level.is_cut = true;
                }
                self.literal = literal;
                self.ended();
            }
            Ok(_) | Err(_) => {
                self.literal = literal;
                self.give_whole();
            }
        }
        Ok(())
    }

    fn ended(&mut self) {
        if self.aside.is_some() {
            self.blank.clear();
        }
        self.given.append(&mut self.blank);
        self.place = Place::Between;
        self.since = Since::Nothing;
    }
}

impl Lists for Cutter<'_> {
    fn list(&mut self, raw: &RawValue) -> io::Result<Option<String>> {
        let mark = raw.get().strip_prefix('"');
        let name = mark.and_then(|it| it.strip_prefix(ESCAPED)?.split_once('\\'));
        let number = name.and_then(|(name, _)| name.strip_prefix(VALUE)?.parse::<usize>().ok());
        let Some(value) = number.and_then(|it| self.values_aside.get_mut(it)) else {
            return Ok(None);
        };
        value.is_asked = true;
        let (start, length) = (value.start, value.length);
        let (open, marks) = (self.open, std::mem::take(&mut self.marks));
        let mut inner = Cutter::new(open, self.format, self.cut, marks)?;
        inner.input = Box::new(open(start)?.take(length));
        inner.offset = start;
        let mut text = String::new();
        let read = inner.read_to_string(&mut text);
        self.marks = inner.into_marks();
        let is_valid = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        self.marks.is_odd |= read.is_err() || !is_valid;
        Ok(Some(text))
    }
}

impl Read for Cutter<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let given = self.fill_buf()?;
        let count = given.len().min(out.len());
        out[..count].copy_from_slice(&given[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Cutter<'_> {
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
mod tests;
