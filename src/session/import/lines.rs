//! Reads a file line by line through one reused buffer, and hashes it on the way.
//!
//! Recordings are untidy: a byte-order mark, CRLF, blank lines, a last line that was never
//! finished, half of a surrogate pair where a product cut a string. [`Lines`] mends what can be
//! mended, counts it, and refuses the rest with its place in the file.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::ImportError;
use crate::units::to_valid_id;

/// The longest line that is read: room for a hundred large images.
pub(crate) const MAX_LINE: u64 = 256 << 20;

/// How deep JSON may be nested in a recording; what `serde_json` itself allows.
pub(crate) const MAX_NESTING: usize = 128;

/// What a recording may have wrong without being refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// Proctor wrote the file: every flaw is an error.
    Strict,
    /// A product appended to the file while it ran: flaws that lose little are counted.
    Recording,
}

/// The lines of one file.
pub(crate) struct Lines<'a> {
    path: &'a Path,
    input: &'a mut dyn BufRead,
    strictness: Strictness,
    max_line: u64,
    max_nesting: usize,
    buffer: Vec<u8>,
    number: u64,
    offset: u64,
    ended: bool,
    hasher: Sha256,
    /// What was mended, in words, with counts.
    pub(crate) warnings: BTreeMap<String, u64>,
}

/// One line that is not blank, without its line feed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    path: &'a Path,
    /// The line's number, from 1, blank lines counted.
    pub(crate) number: u64,
    /// Valid UTF-8.
    pub(crate) text: &'a str,
}

impl<'a> Lines<'a> {
    /// The lines of `input`, which `path` names in errors.
    pub(crate) fn new(path: &'a Path, input: &'a mut dyn BufRead, strictness: Strictness) -> Self {
        Self {
            path,
            input,
            strictness,
            max_line: MAX_LINE,
            // A native file wraps what a recording held in a few more levels.
            max_nesting: match strictness {
                Strictness::Strict => MAX_NESTING + 16,
                Strictness::Recording => MAX_NESTING,
            },
            buffer: Vec::new(),
            number: 0,
            offset: 0,
            ended: false,
            hasher: Sha256::new(),
            warnings: BTreeMap::new(),
        }
    }

    /// The next line that is not blank.
    pub(crate) fn next(&mut self) -> Result<Option<Line<'_>>, ImportError> {
        loop {
            let mut start = self.offset;
            if self.ended || !self.fill()? {
                return Ok(None);
            }
            if self.number == 1 && self.buffer.starts_with(BOM) {
                self.buffer.drain(..BOM.len());
                start += BOM.len() as u64;
            }
            if self.buffer.trim_ascii().is_empty() {
                continue;
            }
            start += self.drop_zeros();
            let torn = self.ended && !is_json(&self.buffer);
            if torn && self.strictness == Strictness::Recording {
                self.warn("the last line was cut and is left out");
                return Ok(None);
            }
            self.decode(start)?;
            if torn {
                return Err(ImportError::TornLine {
                    path: self.path.to_owned(),
                    line: self.number,
                });
            }
            if nesting(&self.buffer) > self.max_nesting {
                return Err(ImportError::Nesting {
                    path: self.path.to_owned(),
                    line: self.number,
                    limit: self.max_nesting,
                });
            }
            break;
        }
        // `decode` made sure of it, and the second check is cheap beside parsing.
        let text = std::str::from_utf8(&self.buffer).unwrap_or_default();
        Ok(Some(Line {
            path: self.path,
            number: self.number,
            text,
        }))
    }

    /// File stem and 6 hex digits of everything read so far: the id of the file's main session.
    pub(crate) fn session_id(&self) -> String {
        session_id(self.path, self.hasher.clone())
    }

    /// The file's path.
    pub(crate) fn path(&self) -> PathBuf {
        self.path.to_owned()
    }

    fn warn(&mut self, what: &str) {
        *self.warnings.entry(what.to_owned()).or_default() += 1;
    }

    /// Reads one line into the buffer, without its end. Returns whether there was one.
    fn fill(&mut self) -> Result<bool, ImportError> {
        self.buffer.clear();
        self.number += 1;
        let read = (&mut *self.input)
            .take(self.max_line + 2)
            .read_until(b'\n', &mut self.buffer)
            .map_err(|source| ImportError::Io {
                path: self.path.to_owned(),
                source,
            })?;
        self.hasher.update(&self.buffer);
        self.offset += read as u64;
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
            if self.buffer.last() == Some(&b'\r') {
                self.buffer.pop();
            }
        } else {
            self.ended = true;
        }
        if self.buffer.len() as u64 > self.max_line {
            return Err(ImportError::LongLine {
                path: self.path.to_owned(),
                line: self.number,
                limit: self.max_line,
            });
        }
        Ok(read > 0)
    }

    /// Drops the zeros at the beginning of a line: a crash in the middle of a write leaves a hole in
    /// the file, and the product goes on behind it. Returns how many there were.
    fn drop_zeros(&mut self) -> u64 {
        let text = self.buffer.iter().position(|byte| *byte != 0);
        let Some(zeros @ 1..) = text.filter(|_| self.strictness == Strictness::Recording) else {
            return 0;
        };
        self.buffer.drain(..zeros);
        self.warn("a line begins with zeros, which a crash left; they are left out");
        zeros as u64
    }

    /// Makes the buffer valid UTF-8 without halves of surrogate pairs, or says where it is not.
    fn decode(&mut self, start: u64) -> Result<(), ImportError> {
        if let Err(error) = std::str::from_utf8(&self.buffer) {
            let at = error.valid_up_to();
            if self.strictness == Strictness::Strict {
                return Err(ImportError::Utf8 {
                    path: self.path.to_owned(),
                    line: self.number,
                    column: at + 1,
                    offset: start + at as u64,
                });
            }
            self.buffer = String::from_utf8_lossy(&self.buffer)
                .into_owned()
                .into_bytes();
            self.warn("a line is not UTF-8; the bad bytes were replaced");
        }
        if self.strictness == Strictness::Recording && mend_surrogates(&mut self.buffer) {
            self.warn("a text was cut within a character; the half was replaced");
        }
        Ok(())
    }
}

impl<'a> Line<'a> {
    /// A line, or a JSON value over several lines of which `number` is the first.
    pub(super) fn new(path: &'a Path, number: u64, text: &'a str) -> Self {
        Self { path, number, text }
    }

    /// The file's path.
    pub(super) fn path(&self) -> &'a Path {
        self.path
    }

    /// Parses the line.
    pub(crate) fn parse<T: Deserialize<'a>>(&self) -> Result<T, ImportError> {
        self.parse_part(self.text)
    }

    /// Parses a part of the line; errors name the place in the whole line.
    pub(crate) fn parse_part<T: Deserialize<'a>>(&self, part: &'a str) -> Result<T, ImportError> {
        serde_json::from_str(part).map_err(|error| {
            let before = part
                .as_ptr()
                .addr()
                .saturating_sub(self.text.as_ptr().addr());
            let full = error.to_string();
            let problem = full
                .rsplit_once(" at line ")
                .map_or(full.as_str(), |(problem, _)| problem)
                .to_owned();
            let path = self.path.to_owned();
            // A value may stand on several lines.
            let before = self.text.get(..before).unwrap_or_default();
            let breaks = before.matches('\n').count() + error.line().saturating_sub(1);
            let line = self.number + breaks as u64;
            let column = match error.line() {
                0 | 1 => before.len() - before.rfind('\n').map_or(0, |at| at + 1) + error.column(),
                _ => error.column(),
            };
            match error.classify() {
                serde_json::error::Category::Data => ImportError::Shape {
                    path,
                    line,
                    column,
                    problem,
                },
                serde_json::error::Category::Io
                | serde_json::error::Category::Syntax
                | serde_json::error::Category::Eof => ImportError::Json {
                    path,
                    line,
                    column,
                    problem,
                },
            }
        })
    }

    /// An error about the version that the line states.
    pub(crate) fn too_new(&self, found: u64, supported: u64) -> ImportError {
        ImportError::Version {
            path: self.path.to_owned(),
            found,
            supported,
        }
    }

    /// An error at the start of the line.
    pub(crate) fn error(&self, problem: impl Into<String>) -> ImportError {
        ImportError::Shape {
            path: self.path.to_owned(),
            line: self.number,
            column: 1,
            problem: problem.into(),
        }
    }
}

/// File stem and 6 hex digits of everything that was hashed: the id of the file's main session.
pub(super) fn session_id(path: &Path, hasher: Sha256) -> String {
    let stem = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    let hash = hasher.finalize();
    let [a, b, c] = [hash[0], hash[1], hash[2]];
    format!("{}-{a:02x}{b:02x}{c:02x}", to_valid_id(&stem, 60))
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The bytes without a byte-order mark.
pub(crate) fn strip_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BOM).unwrap_or(bytes)
}

/// The complete lines of a file's first bytes, and the rest, which may be cut anywhere.
pub(crate) fn head_lines(head: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let mut lines: Vec<&[u8]> = strip_bom(head).split(|byte| *byte == b'\n').collect();
    let rest = lines.pop().unwrap_or_default();
    lines.retain(|line| !line.trim_ascii().is_empty());
    (lines, rest)
}

fn is_json(bytes: &[u8]) -> bool {
    // Bytes that are no UTF-8 are no sign of a cut: they are reported for what they are.
    let text = String::from_utf8_lossy(bytes);
    serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok()
}

/// How deep arrays and objects stand in each other; brackets in strings do not count.
pub(super) fn nesting(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0usize, 0, false, false);
    for byte in json {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => in_string = true,
                b'[' | b'{' => {
                    depth += 1;
                    deepest = deepest.max(depth);
                }
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }
    deepest
}

/// Replaces escapes of half a surrogate pair by U+FFFD, in place. Returns whether there were any.
///
/// JavaScript cuts strings between the halves of a pair and writes the half as an escape, which
/// no UTF-8 text can hold.
pub(super) fn mend_surrogates(json: &mut [u8]) -> bool {
    let unit = |json: &[u8], at: usize| -> Option<u32> {
        let escape = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u32::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()
    };
    let (mut at, mut mended) = (0, false);
    while let Some(found) = json[at..].iter().position(|byte| *byte == b'\\') {
        at += found;
        match unit(json, at) {
            Some(0xd800..=0xdbff) => {
                if matches!(unit(json, at + 6), Some(0xdc00..=0xdfff)) {
                    at += 12;
                    continue;
                }
            }
            Some(0xdc00..=0xdfff) => {}
            Some(_) => {
                at += 6;
                continue;
            }
            None => {
                at = (at + 2).min(json.len());
                continue;
            }
        }
        json[at..at + 6].copy_from_slice(b"\\ufffd");
        mended = true;
        at += 6;
    }
    mended
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], strictness: Strictness, expected: Result<&[&str], &str>) {
        let mut input = bytes;
        let mut lines = Lines::new(Path::new("a.jsonl"), &mut input, strictness);
        lines.max_line = 600;
        let mut got = Vec::new();
        let result = loop {
            match lines.next() {
                Ok(Some(line)) => got.push(format!("{}:{}", line.number, line.text)),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.to_string()),
            }
        };
        match (result, expected) {
            (Ok(()), Ok(expected)) => assert_eq!(got, expected),
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
            (result, expected) => panic!("got {result:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn mends_what_can_be_mended_and_places_what_cannot() {
        use Strictness::{Recording, Strict};
        check(b"{}\n[]\n", Strict, Ok(&["1:{}", "2:[]"]));
        check(
            b"\xef\xbb\xbf{}\r\n\r\n \n[]",
            Strict,
            Ok(&["1:{}", "4:[]"]),
        );
        check(b"", Strict, Ok(&[]));
        check(b"{}\n{\"a\":", Recording, Ok(&["1:{}"]));
        check(b"{}\n{\"a\":", Strict, Err("line 2: the file ends within"));
        check(
            b"{}\n\"\xff\"\n",
            Recording,
            Ok(&["1:{}", "2:\"\u{fffd}\""]),
        );
        check(
            b"{}\n\"\xff\"\n",
            Strict,
            Err("byte 2 of the line, byte 4 of the file"),
        );
        check(
            b"\xef\xbb\xbf\"\xff\"\n",
            Strict,
            Err("byte 2 of the line, byte 4 of the file"),
        );
        check(
            &[b'1'; 601],
            Recording,
            Err("line 1 is longer than 600 bytes"),
        );
        check(&[b'['; 200], Recording, Ok(&[]));
        check(b"{}\n\0\0[]\n", Recording, Ok(&["1:{}", "2:[]"]));
        check(b"{}\n\0\0[]\n", Strict, Ok(&["1:{}", "2:\0\0[]"]));
        let deep = [[b'['; 129], [b']'; 129]].concat();
        check(&deep, Recording, Err("nested deeper than 128"));
        check(
            br#""\ud83d\ude00 \\ud83d \uD83D""#,
            Recording,
            Ok(&[r#"1:"\ud83d\ude00 \\ud83d \ufffd""#]),
        );
        check(br#""[[\"[""#, Recording, Ok(&[r#"1:"[[\"[""#]));
    }
}
