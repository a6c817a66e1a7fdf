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

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::value::RawValue;

use super::documents::MAX_FILE;
use super::folders::SessionFiles;
use super::lines::{session_id, strip_bom};
use super::{Folder, ImportError, Importer, Recording, importer_of_folder, partial, truth};
use crate::session::{CompactedTo, ContentBlock, Message, Recorded, RecordedCompaction, Session};
pub(super) use cutter::Cutter;
pub(super) use marks::Marks;
pub use rests::Rests;

mod cutter;
mod marks;
mod placed;
mod rests;

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
    /// Values that are read one at a time, if at all: the key of a list, and keys of its objects.
    aside: &'static [(&'static str, &'static [&'static str])],
    /// Whether calls may stand in the model's texts, which are read to their ends then.
    has_calls_in_text: bool,
    /// What is looked for in texts: one that holds it is read to its end, unless its beginning
    /// holds it too.
    signs: &'static [&'static str],
}

impl Format {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            keys: &[],
            words: &[],
            answers: &[],
            aside: &[],
            has_calls_in_text: false,
            signs: &[],
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
        // What a call was sent is read where a compaction stands before it.
        aside: &[("events", &["call", "input"])],
        ..Format::new("inspect")
    },
    Format {
        keys: &["action", "arguments", "response"],
        // What each step was shown: together as long as the square of the history.
        aside: &[("trajectory", &["messages", "query"])],
        has_calls_in_text: true,
        ..Format::new("swe-agent")
    },
    Format {
        keys: &["arguments"],
        words: &["```bash", "```mswea_bash_command"],
        ..Format::new("mini-swe-agent")
    },
    Format {
        has_calls_in_text: true,
        signs: &[
            "Result:",
            "The tool execution failed",
            "<answer>",
            "<feedback>",
            "<task>",
            "<user_feedback>",
            "<user_message>",
        ],
        ..Format::new("cline")
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

/// Values that stand aside while a file is read.
pub trait Lists {
    /// The value for which this mark stands, as JSON; none if it is no mark.
    fn list(&mut self, mark: &RawValue) -> io::Result<Option<String>>;
}

/// A file that is read at once: nothing stands aside.
pub(super) struct AllThere;

impl Lists for AllThere {
    fn list(&mut self, _: &RawValue) -> io::Result<Option<String>> {
        Ok(None)
    }
}

impl Format {
    /// The format of that name, if its files can be read so.
    pub(super) fn of(importer: &dyn Importer) -> Option<&'static Self> {
        FORMATS.iter().find(|it| it.name == importer.format())
    }
}

/// Reads a file or folder of one of the [`FORMATS`]; none if it is of another, holds what looks like
/// a mark, or requests that are to be joined.
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
        let folder = Folder::open(path)?;
        let told = || importer_of_folder(&folder);
        return match importer.or_else(|| told().map(|it| it as &dyn Importer)) {
            Some(importer) => of_folder(&folder, importer, cut),
            None => Ok(None),
        };
    }
    let (head, _) = super::open(path)?;
    let told = || super::claimant(&head).map(|it| it as &dyn Importer);
    let Some(importer) = importer.or_else(told) else {
        return Ok(None);
    };
    if let Some(folder) = importer.folder_of(path) {
        return of_folder(&folder, importer, cut);
    }
    let is_json = matches!(
        strip_bom(&head).trim_ascii_start().first(),
        Some(b'{' | b'[')
    );
    let Some(format) = Format::of(importer).filter(|_| is_json) else {
        return Ok(None);
    };
    let open = |at| {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(at))?;
        Ok(Box::new(file) as Box<dyn Read>)
    };
    let mut cutter = Cutter::new(&open, format, cut, Marks::default()).map_err(io)?;
    let read = importer.import_long(path, &mut cutter);
    let is_joined = cutter.values > 1 && cutter.answers > 1;
    if is_joined || cutter.is_odd().map_err(io)? {
        return Ok(None);
    }
    let recordings = match read {
        Ok(recordings) => recordings,
        Err(error) => return Err(placed::placed(error, path, format, cut).map_err(io)?),
    };
    let ids = [&cutter.whole, &cutter.short].map(|hasher| session_id(path, hasher.clone()));
    let rests = Rests::new(vec![path.to_owned()], cutter.into_marks());
    let read = finished(recordings, rests, importer).map_err(io)?;
    let Some(Outline {
        mut recordings,
        rests,
    }) = read
    else {
        return Ok(None);
    };
    let [whole, short] = ids;
    for recording in &mut recordings {
        let parts = &mut recording.session.parts;
        if let Some(rest) = parts.id.strip_prefix(&short) {
            parts.id = format!("{whole}{rest}");
        }
    }
    if let ("native", [recording]) = (importer.format(), &mut recordings[..]) {
        truth::beside(path, recording)?;
    }
    Ok(Some(Outline { recordings, rests }))
}

/// Reads a folder that is a session, file by file. Where something is wrong it is read at once if
/// that can be, which says what.
fn of_folder(
    folder: &Folder,
    importer: &dyn Importer,
    cut: Cut,
) -> Result<Option<Outline>, ImportError> {
    let Some(format) = Format::of(importer) else {
        return Ok(None);
    };
    let mut files = SessionFiles::cut(format, cut);
    let read = importer.import_folder(folder, &mut files);
    let (paths, marks, size) = files.into_marks();
    let sessions = match read {
        Ok(sessions) if !marks.is_odd => sessions,
        Err(error) if size > MAX_FILE => return Err(error),
        Ok(_) | Err(_) => return Ok(None),
    };
    let recordings = sessions.into_iter().map(Recording::from).collect();
    let read = finished(recordings, Rests::new(paths, marks), importer);
    read.map_err(|source| ImportError::Io {
        path: folder.path().to_owned(),
        source,
    })
}

/// The sessions with what is kept whole of them; none if a name was cut.
pub(super) fn finished(
    mut recordings: Vec<Recording>,
    mut rests: Rests,
    importer: &dyn Importer,
) -> io::Result<Option<Outline>> {
    for recording in &mut recordings {
        if is_named_by_mark(&recording.session) {
            return Ok(None);
        }
        rests.header(&mut recording.session)?;
        if importer.format() != "native" {
            rests.unrecorded(&mut recording.session)?;
        }
        if partial::is_possible(importer.format()) {
            rests.partial(&mut recording.session)?;
        }
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
        let model = message.model.as_deref();
        hint.into_iter().chain(call).chain(model).any(is_cut)
            || message.content().iter().any(of_block)
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
