//! Reads a file as a row of JSON values, one document over many lines or one value per line.
//!
//! Logs of API calls are written by everybody's own script, so the layout tells nothing. The file
//! is read as a whole; what can be mended is mended and counted, as in [`Lines`](super::lines::Lines).

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::path::Path;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::lines::{Line, MAX_NESTING, mend_surrogates, nesting, session_id, strip_bom};
use super::{ImportError, MAX_FILE};

/// A file of JSON values, mended.
pub(super) struct Documents<'a> {
    path: &'a Path,
    text: String,
    /// How many lines stand before the text.
    lines: u64,
    /// Whether values stand before the text.
    is_continued: bool,
    /// File stem and 6 hex digits of the content.
    pub(super) id: String,
    /// Bytes in the file.
    pub(super) length: u64,
    /// What was mended, in words, with counts.
    pub(super) warnings: BTreeMap<String, u64>,
}

impl<'a> Documents<'a> {
    /// Reads all of `input`, which `path` names in errors.
    pub(super) fn read(path: &'a Path, input: &mut dyn BufRead) -> Result<Self, ImportError> {
        Self::read_up_to(MAX_FILE, path, input)
    }

    /// Reads all of `input`, which may be `limit` bytes long.
    pub(super) fn read_up_to(
        limit: u64,
        path: &'a Path,
        input: &mut dyn BufRead,
    ) -> Result<Self, ImportError> {
        let mut bytes = Vec::new();
        let read = input.take(limit.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|source| ImportError::Io {
            path: path.to_owned(),
            source,
        })?;
        let length = bytes.len() as u64;
        if length > limit {
            return Err(ImportError::TooLarge {
                path: path.to_owned(),
                limit,
            });
        }
        let mut hasher = Sha256::new();
        hasher.update(&bytes);
        let id = session_id(path, hasher);
        let mut warnings = BTreeMap::new();
        let text = mended(bytes, &mut |what| {
            *warnings.entry(what.to_owned()).or_default() += 1;
        });
        if text.trim_ascii().is_empty() {
            return Err(ImportError::Empty {
                path: path.to_owned(),
            });
        }
        Ok(Self {
            path,
            text,
            lines: 0,
            is_continued: false,
            id,
            length,
            warnings,
        })
    }

    /// The values, each with the line it starts on, and whether the last one was cut and left out.
    pub(super) fn values(&self) -> Result<(Vec<Line<'_>>, bool), ImportError> {
        let mut values = Vec::new();
        let stream = serde_json::Deserializer::from_str(&self.text).into_iter::<&RawValue>();
        let (mut number, mut counted) = (self.lines + 1, 0);
        for value in stream {
            let value = match value {
                Ok(value) => value.get(),
                Err(error) if error.is_eof() && (self.is_continued || !values.is_empty()) => {
                    return Ok((values, true));
                }
                Err(error) if error.is_eof() => {
                    return Err(ImportError::TornLine {
                        path: self.path.to_owned(),
                        line: self.lines + error.line() as u64,
                    });
                }
                Err(error) => {
                    let full = error.to_string();
                    let problem = full.rsplit_once(" at line ").map_or(&*full, |it| it.0);
                    return Err(ImportError::Json {
                        path: self.path.to_owned(),
                        line: self.lines + error.line() as u64,
                        column: error.column(),
                        problem: problem.to_owned(),
                    });
                }
            };
            let start = value.as_ptr().addr() - self.text.as_ptr().addr();
            let between = self.text.get(counted..start).unwrap_or_default();
            number += between.matches('\n').count() as u64;
            counted = start;
            if nesting(value.as_bytes()) > MAX_NESTING {
                return Err(ImportError::Nesting {
                    path: self.path.to_owned(),
                    line: number,
                    limit: MAX_NESTING,
                });
            }
            values.push(Line::new(self.path, number, value));
        }
        Ok((values, false))
    }

    /// The file's path.
    pub(super) fn path(&self) -> &Path {
        self.path
    }
}

/// A file of values, read some at a time: as many as end with a line.
pub(super) struct Blocks<'a, 'i> {
    path: &'a Path,
    input: &'i mut dyn BufRead,
    hasher: Sha256,
    lines: u64,
    is_continued: bool,
    /// What was mended, in words, each once.
    pub(super) warnings: BTreeMap<String, u64>,
}

impl<'a, 'i> Blocks<'a, 'i> {
    /// The values of `input`, which `path` names in errors.
    pub(super) fn new(path: &'a Path, input: &'i mut dyn BufRead) -> Self {
        Self {
            path,
            input,
            hasher: Sha256::new(),
            lines: 0,
            is_continued: false,
            warnings: BTreeMap::new(),
        }
    }

    /// The next values; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Documents<'a>>, ImportError> {
        let (mut bytes, mut ends, mut lines) = (Vec::new(), Ends::default(), 0);
        loop {
            let start = bytes.len();
            let left = (MAX_FILE + 1).saturating_sub(start as u64);
            let read = (&mut *self.input).take(left).read_until(b'\n', &mut bytes);
            let read = read.map_err(|source| ImportError::Io {
                path: self.path.to_owned(),
                source,
            })?;
            if bytes.len() as u64 > MAX_FILE {
                return Err(ImportError::TooLarge {
                    path: self.path.to_owned(),
                    limit: MAX_FILE,
                });
            }
            self.hasher.update(&bytes[start..]);
            lines += u64::from(bytes[start..].ends_with(b"\n"));
            let is_blank = strip_bom(&bytes).trim_ascii().is_empty();
            if read == 0 && is_blank {
                return if self.is_continued {
                    Ok(None)
                } else {
                    Err(ImportError::Empty {
                        path: self.path.to_owned(),
                    })
                };
            }
            if read == 0 || ends.line(&bytes[start..]) && !is_blank {
                break;
            }
        }
        let length = bytes.len() as u64;
        let warnings = &mut self.warnings;
        let text = mended(bytes, &mut |what| {
            warnings.insert(what.to_owned(), 1);
        });
        let documents = Documents {
            path: self.path,
            text,
            lines: self.lines,
            is_continued: self.is_continued,
            id: String::new(),
            length,
            warnings: BTreeMap::new(),
        };
        self.lines += lines;
        self.is_continued = true;
        Ok(Some(documents))
    }

    /// File stem and 6 hex digits of everything read so far.
    pub(super) fn id(&self) -> String {
        session_id(self.path, self.hasher.clone())
    }
}

/// Tells whether values end with a line.
#[derive(Default)]
struct Ends {
    depth: usize,
    in_text: bool,
}

impl Ends {
    fn line(&mut self, line: &[u8]) -> bool {
        let mut at = 0;
        while let Some(byte) = line.get(at) {
            at += 1;
            match byte {
                b'\\' if self.in_text => at += 1,
                b'"' => self.in_text = !self.in_text,
                _ if self.in_text => {
                    let rest = line.get(at..).unwrap_or_default();
                    at += memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                }
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.depth == 0 && !self.in_text
    }
}

/// The bytes as text without a byte-order mark; `warn` is told what had to be mended.
fn mended(mut bytes: Vec<u8>, warn: &mut dyn FnMut(&str)) -> String {
    let mark = bytes.len() - strip_bom(&bytes).len();
    bytes.drain(..mark);
    if mend_surrogates(&mut bytes) {
        warn("a text was cut within a character; the half was replaced");
    }
    String::from_utf8(bytes).unwrap_or_else(|error| {
        warn("the file is not UTF-8; the bad bytes were replaced");
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: Result<&[&str], &str>) {
        let mut input = bytes;
        let read = Documents::read(Path::new("a.json"), &mut input);
        let shown = read.and_then(|documents| {
            let (values, cut) = documents.values()?;
            let line = |line: &Line<'_>| format!("{}:{}", line.number, line.text);
            let mut shown: Vec<String> = values.iter().map(line).collect();
            shown.extend(cut.then(|| "cut".to_owned()));
            Ok(shown)
        });
        match (shown, expected) {
            (Ok(shown), Ok(expected)) => assert_eq!(shown, expected),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (shown, expected) => panic!("got {shown:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn values_are_found_however_they_are_laid_out() {
        check(b"\xef\xbb\xbf{}\r\n\n[1]", Ok(&["1:{}", "3:[1]"]));
        check(b"[\n 1\n]\n{}{}", Ok(&["1:[\n 1\n]", "4:{}", "4:{}"]));
        check(b"{}\n{\"a\":", Ok(&["1:{}", "cut"]));
        check(b"{\n\"a\":", Err("line 2: the file ends within"));
        check(b"{}\n{]\n{}", Err("line 2, column 2"));
        check(b" \n", Err("is empty"));
        check(b"\"\xff\\ud83d\"", Ok(&["1:\"\u{fffd}\\ufffd\""]));
        let bomb = [[b'['; 129], [b']'; 129]].concat();
        check(&bomb, Err("line 1: JSON nested deeper than 128"));
    }
}
