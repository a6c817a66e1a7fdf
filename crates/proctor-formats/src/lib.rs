#![doc = include_str!("../README.md")]
//!
//! # How a file is read
//!
//! An [`Importer`] turns one file of one format into [`Session`]s. The importers share five ideas: `file` reads a file
//! and takes it apart into lines or JSON values, `conversations` finds the conversations in API logs, `traces` those in
//! traces, `assemble` makes messages out of records, and [`tool_names`] classifies tools by their names.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use file::{MAX_FILE, SourceFile, SourceText};
use head::{HEAD, Head, READ};
use proctor_sessions::wire::stream::Api;
use proctor_sessions::{ContentBlock, Session, SessionParts, Source};

mod aider;
mod amp;
mod anthropic;
mod api_detection;
mod assemble;
mod atif;
mod beam;
mod benchmark;
mod bodies;
mod chatgpt;
mod claude_ai;
mod claude_code;
mod claude_code_web;
mod cline;
mod codex;
mod codex_exec;
mod common;
mod compressed;
mod conversations;
mod counted;
mod convomem;
mod copilot_chat;
mod copilot_cli;
#[cfg(feature = "sqlite")]
mod crush;
mod cursor;
mod error;
pub mod export;
mod factory_droid;
pub(crate) mod file;
pub mod file_info;
mod folders;
mod forks;
mod gemini;
mod gemini_cli;
mod gemini_content;
mod goose;
mod grok_build;
pub(crate) mod head;
mod iflow;
mod inspect;
mod kept_context;
mod kimi_cli;
mod kimi_code;
mod langchain;
mod langfuse;
mod langsmith;
mod lenient;
mod locomo;
mod longmemeval;
mod mini_swe_agent;
mod missing_prompt;
pub mod native;
mod open_call;
#[cfg(feature = "sqlite")]
mod openclaw;
mod openai_chat;
mod openai_responses;
mod opencode;
mod openhands;
mod otlp;
pub mod outcomes;
mod pi;
mod prelude;
mod product;
mod qwen_code;
pub mod request;
mod request_log;
mod requests;
mod specstory;
mod sqlite;
mod swe_agent;
mod tau2;
mod tau_bench;
mod traces;
mod truth;
mod usage;
mod usage_check;

pub use error::ImportError;
use error::{Imported, Result};
pub use folders::{Folder, SessionFiles};
pub use forks::{ForkIndex, SharedPrefix};
pub use proctor_sessions::tool_names;
pub use truth::Recording;

/// All formats, in the order in which they are tried.
pub static IMPORTERS: &[Importer] = &[
    native::IMPORTER,
    iflow::IMPORTER,
    locomo::IMPORTER,
    longmemeval::IMPORTER,
    beam::IMPORTER,
    convomem::IMPORTER,
    qwen_code::IMPORTER,
    claude_code::IMPORTER,
    claude_code_web::IMPORTER,
    codex::IMPORTER,
    codex_exec::IMPORTER,
    pi::IMPORTER,
    atif::IMPORTER,
    otlp::IMPORTER,
    langfuse::IMPORTER,
    langsmith::IMPORTER,
    chatgpt::IMPORTER,
    claude_ai::IMPORTER,
    factory_droid::IMPORTER,
    amp::IMPORTER,
    kimi_code::IMPORTER,
    kimi_cli::IMPORTER,
    swe_agent::IMPORTER,
    mini_swe_agent::IMPORTER,
    openhands::IMPORTER,
    opencode::IMPORTER,
    copilot_cli::IMPORTER,
    copilot_chat::IMPORTER,
    cline::IMPORTER,
    cursor::IMPORTER,
    specstory::IMPORTER,
    aider::IMPORTER,
    goose::IMPORTER,
    gemini_cli::IMPORTER,
    gemini::IMPORTER,
    grok_build::IMPORTER,
    tau_bench::IMPORTER,
    langchain::IMPORTER,
    inspect::IMPORTER,
    tau2::IMPORTER,
    openai_responses::IMPORTER,
    anthropic::IMPORTER,
    openai_chat::IMPORTER,
    request_log::IMPORTER,
];

/// Reads one format. A new format is one file here and one line in [`IMPORTERS`].
#[derive(Debug)]
pub struct Importer {
    format: &'static str,
    detect: Detect,
    read: FileReader,
    folder: Option<FolderFormat>,
}

/// How the beginning of a file shows its format; of shapes, `head::is_shaped` says how they are written.
#[derive(Debug, Clone, Copy)]
enum Detect {
    /// The first record has one of these shapes.
    First(&'static str),
    /// So has the first record, or the first item of a file that is one list.
    Item(&'static str),
    /// So has one of the first records, of this number.
    Any(usize, &'static str),
    /// The text begins in one of these ways.
    Begins(&'static [&'static str]),
    /// It holds messages or calls of this API, and of no product that keeps them in its own way.
    Api(Api),
    /// No shape says it.
    By(fn(&Head) -> bool),
}

impl Detect {
    fn matches(self, head: &Head) -> bool {
        match self {
            Self::First(shapes) => head.is(shapes),
            Self::Item(shapes) => head.item_is(shapes),
            Self::Any(count, shapes) => head.any(count, shapes),
            Self::Begins(begins) => begins.iter().any(|begin| head.text.starts_with(begin)),
            Self::Api(api) => api_detection::api_of(head) == Some(api),
            Self::By(detect) => detect(head),
        }
    }
}

/// Reads all sessions of a file's text. The facts of the file as a whole are counted in the source.
type ReadText = fn(&SourceText, &mut Source) -> Imported;

/// Reads all sessions of a file as it is, with the questions that it asks about them.
type ReadFile = fn(SourceFile) -> Result<Vec<Recording>>;

/// Reads all sessions of a folder.
type ReadFolder = fn(&Folder, &mut SessionFiles, &mut Source) -> Imported;

/// Whether a folder is a session.
type DetectFolder = fn(&Folder) -> bool;

/// The folder of a session of which a file holds the conversation.
type FolderOf = fn(&Path) -> Option<Folder>;

/// Reads all sessions of one file: the main conversation first, then its side chains.
#[derive(Debug, Clone, Copy)]
enum FileReader {
    Text(ReadText),
    File(ReadFile),
}

/// How a product keeps a session in the files of a folder.
#[derive(Debug)]
struct FolderFormat {
    detect: DetectFolder,
    of_file: FolderOf,
    read: ReadFolder,
}

impl Importer {
    /// A format whose name is used by `--format` and [`Source::format`](proctor_sessions::Source::format).
    const fn new(format: &'static str, detect: Detect, read: ReadText) -> Self {
        Self { format, detect, read: FileReader::Text(read), folder: None }
    }

    /// A format whose files are not texts of one session, or ask about their sessions.
    const fn of_file(format: &'static str, detect: Detect, read: ReadFile) -> Self {
        Self { read: FileReader::File(read), ..Self::new(format, detect, |_, _| Ok(Vec::new())) }
    }

    /// The format, which also keeps sessions in folders.
    const fn in_folders(self, detect: DetectFolder, read: ReadFolder) -> Self {
        self.with_folders(detect, |_| None, read)
    }

    /// The same, where a file in a folder, or beside it, stands for that.
    const fn with_folders(self, detect: DetectFolder, of_file: FolderOf, read: ReadFolder) -> Self {
        Self { folder: Some(FolderFormat { detect, of_file, read }), ..self }
    }

    /// The name of the format.
    pub fn format(&self) -> &'static str {
        self.format
    }

    /// Whether a file with these first bytes, which may be cut anywhere, is of this format.
    pub fn detect(&self, head: &[u8]) -> bool {
        self.detect.matches(&Head::of(head))
    }

    /// Reads all sessions of one file. `path` names the file in errors and gives the session ids
    /// their stem; it is never opened. Beside it are looked for Codex's rollouts, where one goes on from another, the
    /// bills of Claude Code's summaries, and BEAM's questions.
    pub fn import(&self, path: &Path, input: &mut dyn Read) -> Result<Vec<Session>, ImportError> {
        self.import_with_truth(path, input).map(sessions)
    }

    /// Reads all sessions of one file with the questions that the file asks about them.
    pub fn import_with_truth(&self, path: &Path, input: &mut dyn Read) -> Result<Vec<Recording>> {
        let file = SourceFile::read(path, input, MAX_FILE)?;
        Ok(self.named(match self.read {
            FileReader::Text(read) => {
                let (text, mut source) = (file.text(), Source::default());
                let sessions = read(&text, &mut source)?;
                recordings(common::all(sessions, source, &text.id, path)?)
            }
            FileReader::File(read) => read(file)?,
        }))
    }

    /// Reads all sessions of a folder.
    fn import_folder(&self, folder: &Folder) -> Result<Vec<Recording>> {
        let (path, mut source) = (folder.path(), Source::default());
        let format = self.folder.as_ref().ok_or_else(|| ImportError::Directory(path.to_owned()))?;
        let sessions = (format.read)(folder, &mut SessionFiles::new(), &mut source)?;
        Ok(self.named(recordings(common::some(sessions, source, path)?)))
    }

    /// Names the format in all sessions that do not.
    fn named(&self, mut recordings: Vec<Recording>) -> Vec<Recording> {
        let each = recordings.iter_mut();
        let sources = each.map(|recording| &mut recording.session.parts_mut().source);
        for source in sources.filter(|source| source.format.is_empty()) {
            self.format.clone_into(&mut source.format);
        }
        recordings
    }
}

/// The importer of that format, or `None` if there is none.
pub fn importer(format: &str) -> Option<&'static Importer> {
    IMPORTERS.iter().find(|importer| importer.format == format)
}

/// Whether the folder at `path` is a session, rather than a folder of some.
pub fn is_session_folder(path: &Path) -> bool {
    Folder::open(path).is_ok_and(|folder| importer_of_folder(path, &folder).is_ok())
}

fn importer_of_folder(path: &Path, folder: &Folder) -> Result<&'static Importer> {
    let mut importers = IMPORTERS.iter();
    let importer = importers
        .find(|importer| importer.folder.as_ref().is_some_and(|format| (format.detect)(folder)));
    importer.ok_or_else(|| ImportError::Directory(path.to_owned()))
}

/// Lines before the first by which a file's format is told: a log that was cut in front begins within one.
pub(crate) const FOREIGN: usize = 3;

/// A file from its first byte, and from each of the next lines that are objects: those before may not be readable.
pub(crate) fn starts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(bytes), |rest| behind_line(rest)).take(FOREIGN + 1)
}

/// The text behind the first line, if the next line is an object, and no piece of a value on several lines.
fn behind_line(bytes: &[u8]) -> Option<&[u8]> {
    let next = bytes.split_at(memchr::memchr(b'\n', bytes)? + 1).1;
    let line = next.split(|byte| *byte == b'\n').next()?;
    // The last line may be cut.
    let whole = serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
    (line.starts_with(b"{") && (whole || line.len() == next.len())).then_some(next)
}

/// The importer of a file with these first bytes.
fn importer_of_file(head: &[u8]) -> Option<&'static Importer> {
    for start in starts(head) {
        let head = Head::of(start);
        // Some of them have messages as an API has them.
        if unread_product(&head).is_some() {
            return None;
        }
        let found = IMPORTERS.iter().find(|importer| importer.detect.matches(&head));
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Reads all sessions of the file at `path`, or of a folder that is one, in any format.
pub fn load(path: &Path) -> Result<Vec<Session>, ImportError> {
    load_with_truth(path, None).map(sessions)
}

/// Reads all sessions of the file or folder at `path` by this importer, as the user demands.
pub fn load_as(path: &Path, importer: &'static Importer) -> Result<Vec<Session>, ImportError> {
    load_with_truth(path, Some(importer)).map(sessions)
}

/// Reads all sessions of the file or folder at `path` with what is known about them; without an
/// importer, in any format.
pub fn load_with_truth(path: &Path, importer: Option<&'static Importer>) -> Result<Vec<Recording>> {
    let mut recordings = load_without_truth(path, importer)?;
    for recording in &mut recordings {
        truth::add_from_file(path, recording)?;
    }
    truth::warn_of_another(path, &mut recordings);
    Ok(recordings)
}

/// The same without the files of facts beside them.
pub fn load_without_truth(
    path: &Path,
    importer: Option<&'static Importer>,
) -> Result<Vec<Recording>> {
    let (recordings, format) = load_any(path, importer)?;
    if format == native::IMPORTER.format {
        return Ok(recordings);
    }
    let understood = is_understood(path, format, &recordings);
    match file_info::format_of(path) {
        Ok(found) if importer.is_some() && found != format && understood.is_err() => {
            Err(ImportError::OtherFormat(path.to_owned(), format, found))
        }
        _ if importer.is_some() => Ok(recordings),
        _ => understood.map(|()| recordings),
    }
}

/// Refuses what was taken for a format, and says next to nothing in it.
fn is_understood(path: &Path, format: &'static str, recordings: &[Recording]) -> Result<()> {
    let (mut answers, mut unknown) = (0, BTreeMap::<&str, u64>::new());
    let (mut all, mut kept) = (0, 0);
    for session in recordings.iter().map(|recording| &recording.session) {
        answers += session.calls().len();
        let blocks = session.messages().iter().flat_map(|one| one.content());
        let opaque = blocks.clone().filter(|block| matches!(block, ContentBlock::Opaque(_)));
        kept += opaque.count() as u64;
        all += blocks.count() as u64;
        for (what, count) in &session.source().unknown {
            *unknown.entry(what).or_default() += count;
        }
    }
    if answers == 0 {
        return Err(ImportError::NoAnswer(path.to_owned(), format));
    }
    // Unknown records without words are bookkeeping and do not count.
    if unknown.values().sum::<u64>().min(kept) > all - kept {
        let counts = unknown.iter().take(5).map(|(what, count)| format!("{what} × {count}"));
        let what = counts.collect::<Vec<String>>().join(", ");
        return Err(ImportError::NotUnderstood(path.to_owned(), format, what));
    }
    Ok(())
}

/// Reads all sessions of the file or folder, and says by which format.
fn load_any(path: &Path, by: Option<&'static Importer>) -> Result<(Vec<Recording>, &'static str)> {
    if path.is_dir() {
        let folder = Folder::open(path)?;
        let importer = by.map_or_else(|| importer_of_folder(path, &folder), Ok)?;
        return Ok((importer.import_folder(&folder)?, importer.format));
    }
    let (head, mut input) = open(path)?;
    if path.metadata().is_ok_and(|value| value.len() > MAX_FILE) {
        return Err(ImportError::TooLarge(path.to_owned(), MAX_FILE));
    }
    if sqlite::is_database(&head) {
        // A database holds the sessions that it holds.
        return Ok((recordings(sqlite::load(path)?), native::IMPORTER.format));
    }
    let named = by.is_some();
    let Some(by) = by.or_else(|| importer_of_file(&head)) else {
        return Err(unknown_format(path.to_owned(), &head));
    };
    if !named && by.format != native::IMPORTER.format && native::stem(path).is_some() {
        let problem =
            format!("a session's first line must have `\"format\":\"{}\"`", native::FORMAT);
        return Err(ImportError::Shape(path.to_owned(), 1, 1, problem));
    }
    let folder = by.folder.as_ref().and_then(|folder| (folder.of_file)(path));
    if let Some(folder) = folder {
        return Ok((by.import_folder(&folder)?, by.format));
    }
    Ok((by.import_with_truth(path, &mut input)?, by.format))
}

/// The session of these parts.
pub(crate) fn checked(parts: SessionParts, path: &Path) -> Result<Session> {
    Session::new(parts).map_err(|source| ImportError::Session(path.to_owned(), source))
}

fn recordings(sessions: Vec<Session>) -> Vec<Recording> {
    sessions.into_iter().map(Recording::from).collect()
}

fn sessions(recordings: Vec<Recording>) -> Vec<Session> {
    recordings.into_iter().map(|recording| recording.session).collect()
}

/// Where the first header of a tar archive says what it is, and how.
const TAR_MAGIC_AT: usize = 257;
const TAR_MAGIC: &[u8] = b"ustar";

/// An archive, and how to get at what is in it.
const ARCHIVE: (&str, &str) = ("an archive of files", "unpack it, and name the folder");

/// How files begin that hold or stand for another one, what they are, and how to get at it.
const PACKED: [(&[u8], &str, &str); 3] = [
    (b"version https://git-lfs.", "a pointer of Git LFS to the file", "`git lfs pull` fetches it"),
    (
        b"\xfd7zXZ\0",
        "compressed by xz",
        "unpack it: `xz -dk FILE`; gzip and Zstandard are read as they are",
    ),
    (
        b"BZh",
        "compressed by bzip2",
        "unpack it: `bzip2 -dk FILE`; gzip and Zstandard are read as they are",
    ),
];

/// Opens a file and returns its first bytes, and a reader that starts with them again.
fn open(path: &Path) -> Result<(Vec<u8>, impl Read + use<>)> {
    let mut file = compressed::open(path).map_err(|source| ImportError::unopened(path, source))?;
    let mut head = Vec::new();
    let read = (&mut file).take(READ as u64).read_to_end(&mut head);
    read.map_err(|source| ImportError::unopened(path, source))?;
    if file::strip_bom(&head).trim_ascii().is_empty() && head.len() < READ {
        return Err(ImportError::Empty(path.to_owned()));
    }
    if sqlite::is_database(&head) && compressed::is_compressed(path) {
        return Err(ImportError::Compressed(path.to_owned()));
    }
    // The names and texts in one look like lines that were damaged.
    if head.get(TAR_MAGIC_AT..).is_some_and(|rest| rest.starts_with(TAR_MAGIC)) {
        return Err(ImportError::Packed(path.to_owned(), ARCHIVE.0, ARCHIVE.1));
    }
    let again = io::Cursor::new(head.clone());
    Ok((head, again.chain(file)))
}

/// Products whose recordings are known by their shape and not read: the product, the shape, and what to do instead.
const UNREAD: &str = include_str!("unread.txt");

/// The product of a file that is not read, and what to do instead.
fn unread_product(head: &Head) -> Option<(&'static str, &'static str)> {
    UNREAD.lines().find_map(|line| {
        let (product, rest) = line.split_once("; ")?;
        let (shape, hint) = rest.split_once("; ")?;
        head.item_is(shape).then_some((product, hint))
    })
}

/// Describes a file that no importer reads, as far as its first bytes show.
fn unknown_format(path: PathBuf, head: &[u8]) -> ImportError {
    let start = file::strip_bom(head);
    let start = start[file::notice(start)..].trim_ascii_start();
    if compressed::is_compressed(&path) {
        ImportError::Compressed(path)
    } else if sqlite::is_named_so(&path) {
        ImportError::NoDatabase(path)
    } else if Head::of(start).is_json() {
        match starts(head).find_map(|start| unread_product(&Head::of(start))) {
            Some((product, hint)) => ImportError::UnreadProduct(path, product, hint),
            None => ImportError::UnknownFormat(path, Head::of(head).in_words()),
        }
    } else if inspect::is_archive(head) && path.extension().is_some_and(|value| value == "eval") {
        ImportError::Archive(path, "it names no file of a log".to_owned())
    } else if inspect::is_archive(head) {
        ImportError::Packed(path, ARCHIVE.0, ARCHIVE.1)
    } else {
        match PACKED.iter().find(|(begin, ..)| head.starts_with(begin)) {
            Some((_, what, hint)) => ImportError::Packed(path, what, hint),
            None => ImportError::NotJson(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;

    /// A format as a newcomer adds one.
    const DIARY: Importer = Importer::new("diary", Detect::By(detect), import);

    fn detect(head: &Head) -> bool {
        head.first().is_some_and(|it| it.get("diary").is_some())
    }

    fn import(text: &SourceText, source: &mut Source) -> Imported {
        let mut assembler = Assembler::default();
        for (mut record, _) in text.records(source)? {
            let blocks = record.take_text("says").into_iter().map(ContentBlock::Text).collect();
            if record.take_text("diary").as_deref() == Some("model") {
                assembler.assistant(None, ModelRecord::of(blocks, None));
            } else {
                assembler.hear(None, blocks, None, [Tag::TypedUser]);
            }
            record.count_left("key", &mut assembler);
        }
        assembler.session(text.id.clone(), &text.path)
    }

    #[test]
    fn a_new_format_is_a_constant_and_two_functions() {
        let bytes = b"{\"diary\":\"me\",\"says\":\"Rain?\",\"mood\":1}\n7\n{\"diary\":\"model\",\"says\":\"Sun.\"}\n{\"dia";
        assert!(DIARY.detect(bytes) && importer_of_file(bytes).is_none());
        let sessions = DIARY.import(Path::new("May.jsonl"), &mut &bytes[..]);
        let [session] = <[Session; 1]>::try_from(sessions.expect("a diary")).expect("one session");
        assert_eq!(session.calls(), [1]);
        let source = session.source();
        let counts = [&source.skipped, &source.unknown, &source.warnings];
        let counts: Vec<String> = counts.iter().flat_map(|it| it.keys().cloned()).collect();
        let expected =
            ["key `mood`", "record that is no object", "the last line was cut and is left out"];
        assert_eq!(counts, expected);
        let empty = DIARY.import(Path::new("June.jsonl"), &mut &b"{}"[..]);
        let error = empty.expect_err("nothing is said").to_string();
        assert_eq!(error, "`June.jsonl` holds no conversation");
    }
}
