//! Puts the rests of long texts back, one message at a time.
//!
//! They stand in the files that were read, or where these cannot be read again from any place (what
//! is packed in an archive, the rows of a database), in a file that is put aside for them.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use super::ESCAPED;
use super::MARK;
use super::marks::{Marks, Place};
use crate::session::import::{partial, unrecorded};
use crate::session::native::{Of, Whole};
use crate::session::{
    ContentBlock, Image, JsonText, Message, Opaque, Session, Thinking, ToolResult, ToolSchema,
    ToolUse,
};

/// Where the rests of long texts stand.
#[derive(Debug)]
pub struct Rests {
    /// The files that were read; none where the rests were put aside.
    files: Vec<PathBuf>,
    /// The file that was read from last, by its place in the list.
    open: Option<(usize, File)>,
    places: Vec<Place>,
}

impl Rests {
    /// The rests that these marks name, in these files or in what was put aside.
    pub(in crate::session::import) fn new(files: Vec<PathBuf>, marks: Marks) -> Self {
        Self {
            files,
            open: marks.aside.map(|aside| (0, aside.into_file())),
            places: marks.places,
        }
    }

    /// The rests that these marks name, in the one file that was read.
    pub(in crate::session::import) fn of(file: File, marks: Marks) -> Self {
        Self {
            open: Some((0, file)),
            ..Self::new(Vec::new(), marks)
        }
    }

    /// The system prompt and the tools, which are kept whole.
    pub(super) fn header(&mut self, session: &mut Session) -> io::Result<()> {
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
    pub(super) fn unrecorded(&mut self, session: &mut Session) -> io::Result<()> {
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

    /// Which counters are partial, by whole texts.
    pub(super) fn partial(&mut self, session: &mut Session) -> io::Result<()> {
        let mut written = Vec::new();
        for message in &session.parts.messages {
            let is_billed = message.usage.is_some();
            written.push(if is_billed {
                partial::written(&*self.whole_message(message)?)
            } else {
                0
            });
        }
        partial::warn(session, written.into_iter());
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
        whole.injected.clone_from(&message.injected);
        whole.compact_hint.clone_from(&message.compact_hint);
        whole.model.clone_from(&message.model);
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

    fn read(&mut self, place: Place) -> io::Result<String> {
        let mut file = match self.open.take() {
            Some((at, file)) if at == place.file => file,
            _ => {
                let gone = || io::Error::from(io::ErrorKind::NotFound);
                File::open(self.files.get(place.file).ok_or_else(gone)?)?
            }
        };
        file.seek(SeekFrom::Start(place.offset))?;
        let mut bytes = vec![0; place.length];
        file.read_exact(&mut bytes)?;
        self.open = Some((place.file, file));
        // It was UTF-8 when it was read first.
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
    place: Place,
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
