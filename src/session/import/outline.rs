//! Reads a long file without holding its long texts: memory follows the largest one.
//!
//! A first pass gives the importer the file with its long texts cut short: of each a beginning, and a
//! mark that names the rest. What the importer makes of them are sessions of some hundred bytes for
//! each message. [`Rests`] then puts the rest back from the file, one message at a time.
//!
//! That is the same as reading the file at once wherever an importer looks at no more than the
//! beginning of a long text: [`FORMATS`] are those for which the tests hold both equal, each with the
//! texts that its importer reads to their ends. A text that is no valid JSON string is never cut, so
//! that it is mended or refused as ever. Equal texts get equal marks, for importers leave out what
//! was recorded twice.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use super::lines::{session_id, strip_bom};
use super::{ImportError, Importer, Recording, truth, unrecorded};
use crate::session::native::{Of, Whole};
use crate::session::{
    CompactedTo, ContentBlock, Image, JsonText, Message, Opaque, Recorded, RecordedCompaction,
    Session, Thinking, ToolResult, ToolSchema, ToolUse,
};
use cutter::Cutter;

mod cutter;
mod placed;

/// A format that can be read so.
#[derive(Debug)]
pub struct Format {
    /// Its name.
    pub name: &'static str,
    /// Keys of texts that are read to their ends.
    keys: &'static [&'static str],
    /// Texts that hold one of these are read to their ends, too.
    words: &'static [&'static str],
    /// Keys of answers that are logged beside their requests. With two of them a file is read at
    /// once: what joins requests to sessions looks for texts in other texts.
    answers: &'static [&'static str],
}

impl Format {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            keys: &[],
            words: &[],
            answers: &[],
        }
    }

    /// A format whose arguments of tools are JSON in a string.
    const fn with_arguments(self) -> Self {
        Self {
            keys: &["arguments"],
            ..self
        }
    }

    const fn with_answers(self, answers: &'static [&'static str]) -> Self {
        Self { answers, ..self }
    }
}

/// The formats that can be read so.
pub static FORMATS: &[Format] = &[
    Format::new("native"),
    Format::new("claude-code"),
    Format::new("codex").with_arguments(),
    Format::new("pi"),
    Format::new("iflow"),
    Format::new("copilot-cli").with_arguments(),
    Format::new("goose"),
    Format::new("opencode"),
    Format {
        words: &[
            "<state_snapshot>",
            "</state_snapshot>",
            "<tool_output_masked",
        ],
        ..Format::new("gemini-cli")
    },
    Format::new("openhands").with_arguments(),
    Format::new("langchain").with_arguments(),
    Format {
        // Attachments are put in where a text names them.
        words: &["attachment://"],
        ..Format::new("inspect")
    },
    Format::new("tau2"),
    Format::new("tau-bench").with_arguments(),
    Format::new("anthropic").with_answers(&["response", "response_body"]),
    Format::new("openai-chat")
        .with_arguments()
        .with_answers(&["response", "response_body"]),
    Format::new("openai-responses")
        .with_arguments()
        .with_answers(&["response", "response_body", "output"]),
];

/// Begins and ends a mark: the last character of Unicode, which stands for nothing.
const MARK: char = '\u{10fffd}';

/// [`MARK`] as it is written in what is given to the importer. Where an importer keeps JSON as it
/// was, it stands there so; where it read the text, it is the character.
const ESCAPED: &str = r"\udbff\udffd";

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

/// Reads a file of one of the [`FORMATS`]; none if it is of another, holds what looks like a mark,
/// or requests that are to be joined.
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
    let format = FORMATS.iter().find(|it| it.name == importer.format());
    let is_json = matches!(
        strip_bom(&head).trim_ascii_start().first(),
        Some(b'{' | b'[')
    );
    let Some(format) = format.filter(|_| is_json && importer.folder_of(path).is_none()) else {
        return Ok(None);
    };
    let mut cutter = Cutter::new(File::open(path).map_err(io)?, format, cut);
    let read = importer.import_with_truth(path, &mut cutter);
    let is_joined = cutter.values > 1 && cutter.answers > 1;
    if cutter.is_marked || is_joined {
        return Ok(None);
    }
    let mut recordings = match read {
        Ok(recordings) => recordings,
        Err(error) => return Err(placed::placed(error, path, format, cut).map_err(io)?),
    };
    let [whole, short] = [cutter.whole, cutter.short].map(|hasher| session_id(path, hasher));
    let file = File::open(path).map_err(io)?;
    let mut rests = Rests {
        file,
        places: cutter.places,
    };
    for recording in &mut recordings {
        if is_named_by_mark(&recording.session) {
            return Ok(None);
        }
        let parts = &mut recording.session.parts;
        if let Some(rest) = parts.id.strip_prefix(&short) {
            parts.id = format!("{whole}{rest}");
        }
        rests.header(&mut recording.session).map_err(io)?;
        if importer.format() != "native" {
            rests.unrecorded(&mut recording.session).map_err(io)?;
        }
    }
    if let ("native", [recording]) = (importer.format(), &mut recordings[..]) {
        truth::beside(path, recording)?;
    }
    Ok(Some(Outline { recordings, rests }))
}

/// Whether a name is so long that it was cut: names are not put back.
fn is_named_by_mark(session: &Session) -> bool {
    let is_cut = |name: &str| name.contains(MARK);
    let of_block = |block: &ContentBlock| match block {
        ContentBlock::ToolUse(tool_use) => is_cut(&tool_use.id) || is_cut(&tool_use.name),
        ContentBlock::ToolResult(result) => is_cut(&result.tool_use_id),
        ContentBlock::Opaque(opaque) => is_cut(&opaque.kind),
        ContentBlock::Text(_) | ContentBlock::Thinking(_) | ContentBlock::Image(_) => false,
    };
    let of_message = |message: &Message| {
        let hint = message.compact_hint.as_deref();
        let call = message.api_call.as_ref().map(|call| &*call.0);
        hint.into_iter().chain(call).any(is_cut) || message.content().iter().any(of_block)
    };
    let of_compaction = |compaction: &RecordedCompaction| {
        let written = match &compaction.after {
            CompactedTo::Replaced(pieces) => &pieces[..],
            CompactedTo::Encrypted | CompactedTo::Missing => &[],
        };
        compaction.trigger.as_deref().is_some_and(is_cut)
            || written.iter().any(|piece| match piece {
                Recorded::Written(message) => of_message(message),
                Recorded::Kept(_) | Recorded::Edited { .. } => false,
            })
    };
    let source = session.source();
    let counts = [&source.skipped, &source.unknown, &source.warnings];
    session.model().is_some_and(is_cut)
        || session.tools().iter().any(|tool| is_cut(&tool.name))
        || counts
            .into_iter()
            .flat_map(|it| it.keys())
            .any(|name| is_cut(name))
        || session.messages().iter().any(|message| of_message(message))
        || session.compactions().iter().any(of_compaction)
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

    /// The size of what is missing, by whole texts; nothing where it is not known.
    fn unrecorded(&mut self, session: &mut Session) -> io::Result<()> {
        let is_sized = session
            .parts
            .source
            .missing
            .is_some_and(|it| it.tokens.is_some());
        let billed = unrecorded::first_bill(&session.parts);
        let (true, Some(billed)) = (is_sized, billed) else {
            return Ok(());
        };
        let mut chars = Vec::new();
        for message in session.parts.messages.iter().take(billed) {
            let whole = self.whole_message(message)?;
            chars.push(unrecorded::chars(&whole));
        }
        unrecorded::sized(session, chars.into_iter());
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
        while let Some(mark) = self.next_mark(left) {
            whole.push_str(mark.before);
            let rest = self.read(mark.place)?;
            match (mark.form, written) {
                (Form::Written, _) => whole.push_str(&rest),
                (Form::Read, Written::Text) => whole.push_str(&decoded(&rest)?),
                // The importer read the text, and wrote it anew.
                (Form::Read, Written::Json) => whole.push_str(&encoded(&decoded(&rest)?)?),
                (Form::WrittenInText, _) => whole.push_str(&encoded(&rest)?),
            }
            left = mark.after;
        }
        if left.len() == text.len() {
            return Ok(None);
        }
        whole.push_str(left);
        Ok(Some(whole))
    }

    /// The next mark, in whatever form it stands there.
    fn next_mark<'t>(&self, text: &'t str) -> Option<Mark<'t>> {
        let [mut read, written, in_text] =
            [String::new(), ESCAPED.to_owned(), encoded(ESCAPED).ok()?];
        read.push(MARK);
        let forms = [
            (Form::Read, read),
            (Form::Written, written),
            (Form::WrittenInText, in_text),
        ];
        let marks = forms.into_iter().filter_map(|(form, border)| {
            let (before, rest) = text.split_once(&border)?;
            let (name, after) = rest.split_once(&border)?;
            let place = *self.places.get(name.parse::<usize>().ok()?)?;
            Some(Mark {
                before,
                form,
                place,
                after,
            })
        });
        marks.min_by_key(|mark| mark.before.len())
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
    /// Within JSON.
    Json,
}

/// The name of a rest, and what stands around it.
struct Mark<'t> {
    before: &'t str,
    form: Form,
    place: (u64, usize),
    after: &'t str,
}

/// What the importer did with a text that was cut.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// It read the text.
    Read,
    /// It kept the JSON around the text as it was.
    Written,
    /// It put such JSON into a text.
    WrittenInText,
}

/// What the inside of a JSON string says.
fn decoded(inside: &str) -> io::Result<String> {
    Ok(serde_json::from_str(&format!("\"{inside}\""))?)
}

/// A text as the inside of a JSON string.
fn encoded(text: &str) -> io::Result<String> {
    let literal = serde_json::to_string(text)?;
    Ok(literal[1..literal.len() - 1].to_owned())
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
