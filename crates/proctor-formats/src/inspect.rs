//! inspect writes an evaluation as one JSON object, or as an `.eval` archive with one file per
//! sample. Each sample is a session.
//!
//! Rules of this format, beside those every importer shares:
//! - The messages of a sample are its history; its model events say what each call was sent, what
//!   it cost and when its answer came. They meet in the ids of messages.
//! - Long texts are kept apart as attachments, and are put back where they belong; newer logs keep
//!   the messages of model events apart too.
//! - A compaction event comes before the first call that it changed: what that call was sent is
//!   what the compaction left.
//! - Some providers count cached tokens in the input, some beside it: the total shows which.

use super::common::some;
use super::prelude::*;
use super::recordings;
use sample::InspectSample;

pub(crate) mod archive;
mod attachments;
mod messages;
mod sample;

/// The first bytes of a zip archive.
const ZIP: &[u8] = b"PK\x03\x04";

pub(super) const IMPORTER: Importer = Importer::of_file("inspect", Detect::By(detect), import);

fn detect(head: &Head) -> bool {
    if is_archive(head.text.as_bytes()) {
        let names = ["_journal/", "header.json", "samples/", "summaries.json"];
        return names.iter().any(|name| head.text.contains(name));
    }
    head.is("version status eval | epoch messages target")
}

fn import(file: SourceFile) -> Result<Vec<Recording>> {
    let (id, path) = (file.id.clone(), file.path.clone());
    let (mut log, mut source) = (EvalLog::default(), Source::default());
    if is_archive(&file.bytes) {
        archive::read(&file, &mut source, |text, source| log.read(text, source))?;
    } else {
        log.read(&file.text(), &mut source)?;
    }
    name(&mut log.sessions, &id);
    some(log.sessions, source, &path).map(recordings)
}

/// Whether a file that begins so is an archive.
pub(super) fn is_archive(head: &[u8]) -> bool {
    head.starts_with(ZIP)
}

/// A log, growing sample by sample.
#[derive(Default)]
struct EvalLog {
    sessions: Vec<Session>,
    model: Text,
}

impl EvalLog {
    /// Reads a log in JSON, or one file of an archive. The facts of the log as a whole are counted in the source.
    fn read(&mut self, text: &SourceText, source: &mut Source) -> Result<()> {
        text.values(source)?.iter().try_for_each(|value| self.value(value, source))
    }

    fn value(&mut self, value: &RecordLine<'_>, source: &mut Source) -> Result<()> {
        let raw: &RawValue = value.parse()?;
        let object = Object::read(raw).ok_or_else(|| value.error("a log is a JSON object"))?;
        if object.has("messages") && object.has("epoch") {
            return self.sample(value, raw, source);
        }
        let mut log = object;
        if let Some(mut eval) = log.take_object("eval") {
            self.model = eval.take_text("model");
        }
        if let Some(samples) = log.take("samples") {
            for raw in value.parse_part::<Vec<&RawValue>>(samples.get())? {
                self.sample(value, raw, source)?;
            }
        }
        Ok(())
    }

    fn sample(&mut self, line: &RecordLine<'_>, raw: &RawValue, source: &mut Source) -> Result<()> {
        let Some(sample) = Object::read(raw) else {
            source.not_understood("sample that is no object");
            return Ok(());
        };
        match InspectSample::read(sample, self.model.clone(), line)? {
            Some(session) => self.sessions.push(session),
            None => source.skip("sample without messages"),
        }
        Ok(())
    }
}

/// Texts by name.
type Texts<'a> = BTreeMap<Arc<str>, &'a RawValue>;

/// How much text attachments may put into one sample.
const MAX_SAMPLE: usize = 256 << 20;
