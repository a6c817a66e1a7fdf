//! Reads a long file without holding its long texts: memory follows the largest line.
//!
//! A first pass gives the importer every line with its long texts cut short: a beginning, and a mark
//! that names the rest. What the importer makes of them are sessions of some hundred bytes for each
//! message. [`Rests`] then puts the rest back from the file, one message at a time.
//!
//! That is the same as reading the file at once wherever an importer looks at no more than the
//! beginning of a long text: [`FORMATS`] are those for which the tests hold both equal. A text that is
//! no valid JSON string is never cut, so that it is mended or refused as ever. Equal texts get equal
//! marks, for importers leave out what was recorded twice.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::lines::{MAX_LINE, session_id};
use super::{ImportError, Importer, Recording, truth};
use crate::session::native::{Of, Whole};
use crate::session::{
    ContentBlock, Image, JsonText, Message, Opaque, Session, Thinking, ToolResult, ToolSchema,
    ToolUse,
};
use crate::units::ContentHash;

/// The formats that can be read so. All keep one record per line, in the order of what happened.
pub const FORMATS: &[&str] = &[
    "native",
    "claude-code",
    "codex",
    "pi",
    "iflow",
    "copilot-cli",
];

/// Keys of texts that are JSON themselves and are read as such.
const UNCUT: &[&[u8]] = &[b"arguments"];

/// Begins and ends a mark: the last character of Unicode, which stands for nothing.
const MARK: char = '\u{10fffd}';

/// How [`MARK`] may be written in JSON.
const ESCAPED_MARK: &[u8] = b"\\udbff\\udffd";

/// A long file whose sessions were read without their long texts.
#[derive(Debug)]
pub struct Outline {
    /// What the file holds, with marks for the rests of long texts.
    pub recordings: Vec<Recording>,
    /// Where the rests stand.
    pub rests: Rests,
}

/// Where the rests of long texts stand in a file.
#[derive(Debug)]
pub struct Rests {
    file: File,
    /// Where each rest begins, and how long it is, in bytes.
    places: Vec<(u64, usize)>,
}

/// How long a text is that is cut, and how much of it is kept, in bytes as written.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    /// A text is cut that is longer than this.
    pub above: usize,
    /// So much of its beginning stays.
    pub keep: usize,
}

impl Default for Cut {
    /// Long enough for every beginning that an importer looks at.
    fn default() -> Self {
        Self {
            above: 1_024,
            keep: 256,
        }
    }
}

/// Reads a file of one of the [`FORMATS`]; none if it is of another, or holds what looks like a mark.
pub fn outline(
    path: &Path,
    importer: Option<&dyn Importer>,
    cut: Cut,
) -> Result<Option<Outline>, ImportError> {
    let io = |source| ImportError::Io {
        path: path.to_owned(),
        source,
    };
    if path.is_dir() {
        return Ok(None);
    }
    let (head, _) = super::open(path)?;
    let told = || super::claimant(&head);
    let Some(importer) = importer.or_else(told) else {
        return Ok(None);
    };
    if !FORMATS.contains(&importer.format()) {
        return Ok(None);
    }
    let mut cutter = Cutter::new(BufReader::new(File::open(path).map_err(io)?), cut);
    let read = importer.import_with_truth(path, &mut cutter);
    if cutter.is_marked {
        return Ok(None);
    }
    let mut recordings = read?;
    let [whole, short] = [cutter.whole, cutter.short].map(|hasher| session_id(path, hasher));
    let file = File::open(path).map_err(io)?;
    let mut rests = Rests {
        file,
        places: cutter.places,
    };
    for recording in &mut recordings {
        let parts = &mut recording.session.parts;
        if let Some(rest) = parts.id.strip_prefix(&short) {
            parts.id = format!("{whole}{rest}");
        }
        rests.header(&mut recording.session).map_err(io)?;
    }
    if let ("native", [recording]) = (importer.format(), &mut recordings[..]) {
        truth::beside(path, recording)?;
    }
    Ok(Some(Outline { recordings, rests }))
}

impl Rests {
    /// The system prompt and the tools, which are kept whole.
    fn header(&mut self, session: &mut Session) -> io::Result<()> {
        let parts = &mut session.parts;
        if let Some(system) = &mut parts.system {
            *system = self.whole_text(system)?;
        }
        for tool in &mut parts.tools {
            *tool = ToolSchema {
                name: tool.name.clone(),
                definition: self.json(&tool.definition)?,
            };
        }
        if let Some(notes) = parts.resumed.as_mut().and_then(|it| it.notes.as_mut()) {
            *notes = self.whole_text(notes)?;
        }
        Ok(())
    }

    /// The message as the file has it.
    fn whole_message<'a>(&mut self, message: &'a Message) -> io::Result<Cow<'a, Message>> {
        let blocks = message.content().iter().map(|block| self.block(block));
        let blocks: Vec<ContentBlock> = blocks.collect::<io::Result<_>>()?;
        if blocks == message.content() {
            return Ok(Cow::Borrowed(message));
        }
        let mut whole = Message::new(message.role(), blocks);
        whole.timestamp = message.timestamp;
        whole.api_call.clone_from(&message.api_call);
        whole.usage = message.usage;
        whole.tags.clone_from(&message.tags);
        whole.compact_hint.clone_from(&message.compact_hint);
        Ok(Cow::Owned(whole))
    }

    fn whole_text(&mut self, text: &Arc<str>) -> io::Result<Arc<str>> {
        Ok(match self.whole(text, Written::Text)? {
            Some(whole) => whole.into(),
            None => text.clone(),
        })
    }

    fn json(&mut self, json: &JsonText) -> io::Result<JsonText> {
        Ok(match self.whole(json.as_str(), Written::Json)? {
            Some(whole) => JsonText::parse(&whole)?,
            None => json.clone(),
        })
    }

    fn block(&mut self, block: &ContentBlock) -> io::Result<ContentBlock> {
        Ok(match block {
            ContentBlock::Text(text) => ContentBlock::Text(self.whole_text(text)?),
            ContentBlock::Thinking(thinking) => ContentBlock::Thinking(Thinking {
                text: self.whole_text(&thinking.text)?,
                signature: match &thinking.signature {
                    Some(signature) => Some(self.whole_text(signature)?),
                    None => None,
                },
            }),
            ContentBlock::ToolUse(tool_use) => ContentBlock::ToolUse(ToolUse {
                input: self.json(&tool_use.input)?,
                ..tool_use.clone()
            }),
            ContentBlock::ToolResult(result) => ContentBlock::ToolResult(ToolResult {
                content: {
                    let blocks = result.content.iter().map(|block| self.block(block));
                    blocks.collect::<io::Result<_>>()?
                },
                ..result.clone()
            }),
            ContentBlock::Image(image) => ContentBlock::Image(Image {
                source: self.json(&image.source)?,
            }),
            ContentBlock::Opaque(opaque) => ContentBlock::Opaque(Opaque {
                kind: opaque.kind.clone(),
                json: self.json(&opaque.json)?,
            }),
        })
    }

    /// The text with a rest for each mark, or none if there is no mark in it.
    fn whole(&mut self, text: &str, written: Written) -> io::Result<Option<String>> {
        let mut whole = String::new();
        let mut left = text;
        while let Some((before, place, after)) = self.next_mark(left) {
            whole.push_str(before);
            let rest = self.read(place)?;
            match written {
                Written::Json => whole.push_str(&rest),
                Written::Text => {
                    let decoded: String = serde_json::from_str(&format!("\"{rest}\""))?;
                    whole.push_str(&decoded);
                }
            }
            left = after;
        }
        if left.len() == text.len() {
            return Ok(None);
        }
        whole.push_str(left);
        Ok(Some(whole))
    }

    /// What stands before the next mark, what it names, and what stands after it.
    fn next_mark<'t>(&self, text: &'t str) -> Option<(&'t str, (u64, usize), &'t str)> {
        let (before, rest) = text.split_once(MARK)?;
        let (name, after) = rest.split_once(MARK)?;
        let place = self.places.get(name.parse::<usize>().ok()?)?;
        Some((before, *place, after))
    }

    fn read(&mut self, (offset, length): (u64, usize)) -> io::Result<String> {
        self.file.seek(SeekFrom::Start(offset))?;
        let mut bytes = vec![0; length];
        self.file.read_exact(&mut bytes)?;
        // It was UTF-8 when the file was read first.
        String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

impl Whole for Rests {
    fn message<'a>(&mut self, message: &'a Message, _: Of) -> io::Result<Cow<'a, Message>> {
        self.whole_message(message)
    }

    fn text(&mut self, text: &Arc<str>) -> io::Result<Arc<str>> {
        self.whole_text(text)
    }
}

/// How a text with marks is kept.
#[derive(Debug, Clone, Copy)]
enum Written {
    /// As it reads.
    Text,
    /// Within JSON, as the file has it.
    Json,
}

/// Gives a reader the lines of a file with their long texts cut short.
struct Cutter<R> {
    input: R,
    cut: Cut,
    /// The line as the file has it, and as it is given.
    line: Vec<u8>,
    given: Vec<u8>,
    at: usize,
    offset: u64,
    places: Vec<(u64, usize)>,
    known: BTreeMap<ContentHash, usize>,
    whole: Sha256,
    short: Sha256,
    /// Whether the file itself holds what looks like a mark.
    is_marked: bool,
}

impl<R: BufRead> Cutter<R> {
    fn new(input: R, cut: Cut) -> Self {
        Self {
            input,
            cut,
            line: Vec::new(),
            given: Vec::new(),
            at: 0,
            offset: 0,
            places: Vec::new(),
            known: BTreeMap::new(),
            whole: Sha256::new(),
            short: Sha256::new(),
            is_marked: false,
        }
    }

    fn next_line(&mut self) -> io::Result<()> {
        self.line.clear();
        self.given.clear();
        self.at = 0;
        let input = (&mut self.input).take(MAX_LINE + 2);
        let read = { input }.read_until(b'\n', &mut self.line)?;
        self.whole.update(&self.line);
        let mut mark = [0; 4];
        let mark = MARK.encode_utf8(&mut mark).as_bytes();
        self.is_marked |=
            holds(&self.line, mark) || holds(&self.line.to_ascii_lowercase(), ESCAPED_MARK);
        let line = std::mem::take(&mut self.line);
        let mut copied = 0;
        let mut from = 0;
        let mut key = (0, 0);
        while let Some(start) = line[from..].iter().position(|byte| *byte == b'"') {
            let start = from + start + 1;
            let Some(end) = string_end(&line, start) else {
                break;
            };
            from = end + 1;
            if line[from..].trim_ascii_start().first() == Some(&b':') {
                key = (start, end);
                continue;
            }
            let is_read = UNCUT.contains(&&line[key.0..key.1])
                && line[key.1 + 1..start - 1].trim_ascii() == b":";
            if end - start <= self.cut.above || is_read {
                continue;
            }
            let literal = line.get(start - 1..=end).unwrap_or_default();
            if serde_json::from_slice::<Cow<'_, str>>(literal).is_err() {
                continue;
            }
            let kept = start + kept(&line[start..end], self.cut.keep);
            let name = self.name(ContentHash::of(literal), kept, end);
            self.given.extend_from_slice(&line[copied..kept]);
            self.given
                .extend_from_slice(format!("{MARK}{name}{MARK}").as_bytes());
            copied = end;
        }
        self.given.extend_from_slice(&line[copied..]);
        self.short.update(&self.given);
        self.offset += read as u64;
        self.line = line;
        Ok(())
    }

    /// The name of the rest of a text, from one place in the line to another.
    fn name(&mut self, hash: ContentHash, from: usize, to: usize) -> usize {
        let places = &mut self.places;
        let offset = self.offset;
        *self.known.entry(hash).or_insert_with(|| {
            places.push((offset + from as u64, to - from));
            places.len() - 1
        })
    }
}

impl<R: BufRead> Read for Cutter<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let given = self.fill_buf()?;
        let count = given.len().min(out.len());
        out[..count].copy_from_slice(&given[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Cutter<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.given.len() {
            self.next_line()?;
        }
        Ok(&self.given[self.at..])
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }
}

/// Where a JSON string ends that begins at `start`: the place of its closing quotation mark.
fn string_end(line: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        match line.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// How much of a valid JSON string stays: at least so many bytes, and no part of a character.
fn kept(literal: &[u8], keep: usize) -> usize {
    let mut at = 0;
    while at < keep {
        let unit = |at: usize| literal.get(at..at + 4).unwrap_or_default();
        at += match literal.get(at) {
            None => return literal.len(),
            Some(b'\\') if literal.get(at + 1) == Some(&b'u') => {
                // The first half of a pair goes with the second.
                let first = unit(at + 2)
                    .first_chunk::<2>()
                    .map(|it| it.map(|b| b.to_ascii_lowercase()));
                match first {
                    Some([b'd', b'8' | b'9' | b'a' | b'b']) => 12,
                    _ => 6,
                }
            }
            Some(b'\\') => 2,
            Some(byte) => match byte.leading_ones() {
                0 => 1,
                more => more as usize,
            },
        };
    }
    at.min(literal.len())
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    let first = part.first().copied().unwrap_or_default();
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == first) {
        rest = &rest[at..];
        if rest.starts_with(part) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(literal: &str, keep: usize, expected: &str) {
        let kept = kept(literal.as_bytes(), keep);
        assert_eq!(&literal[..kept], expected);
        let cut = format!("\"{}\"", &literal[kept..]);
        assert!(serde_json::from_str::<String>(&cut).is_ok(), "{cut}");
    }

    #[test]
    fn a_text_is_never_cut_within_a_character() {
        check("abcdef", 3, "abc");
        check("ab", 3, "ab");
        check(r"ab\ncd", 3, r"ab\n");
        check("aéé", 2, "aé");
        check("a€€", 2, "a€");
        check("a😀b", 2, "a😀");
        check(r"a\u20acb", 2, r"a\u20ac");
        check(r"a\ud83d\uDE00b", 2, r"a\ud83d\uDE00");
        check(r"a\\\\b", 2, r"a\\");
    }
}
