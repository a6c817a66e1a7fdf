//! A recording's file: read once, mended where that loses little, and taken apart into lines or
//! JSON values.
//!
//! Recordings are untidy: a byte-order mark, a notice in front, CRLF, blank lines, a last line that was never
//! finished, two records on one line, half of a surrogate pair where a product cut a string.
//! [`SourceFile::text`] mends these flaws and counts them. A few lines that are no JSON are left out, and so are
//! lines that are nested too deep. The rest is refused with its place in the file.

use super::prelude::*;
use std::io::Read;

use serde::de::IgnoredAny;
use serde_json::error::Category;

use left_out::LeftOut;
pub(super) use once::{COPIED, once, tells_time};
use proctor_sessions::wire::json_bytes::{mend_numbers, mend_surrogates, nesting};

mod left_out;
mod once;

/// The largest file that is read, and the most that a folder or an archive may hold.
pub(super) const MAX_FILE: u64 = 1 << 30;

/// How deep JSON may be nested in a recording: `serde_json` parses no deeper value.
const MAX_NESTING: usize = 127;

/// How much deeper a native file nests JSON that a recording held.
const NATIVE_WRAPPING: usize = 16;

/// How a line of other JSON is counted.
pub(super) const NO_RECORD: &str = "record that is no object";

const BOM: &[u8] = b"\xef\xbb\xbf";

/// How a first line begins that `opencode export` prints.
const NOTICE: &[u8] = b"Exporting session: ses_";

/// The bytes of a file, without a byte-order mark.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Where the file is; only errors and ids use it.
    pub(crate) path: PathBuf,
    pub(super) bytes: Vec<u8>,
    /// The size of the file.
    pub(super) length: u64,
    /// The file's stem and 6 hex digits of its content: the id of its main session.
    pub(super) id: String,
}

impl SourceFile {
    /// Reads the file at `path`, which may hold `limit` bytes. A larger one is not read at all.
    pub(super) fn open(path: &Path, limit: u64) -> Result<Self> {
        let opened = compressed::open(path).and_then(|file| Ok((file, path.metadata()?.len())));
        let (mut file, length) = opened.map_err(|source| ImportError::unopened(path, source))?;
        if length > limit {
            return Err(ImportError::TooLarge(path.to_owned(), limit));
        }
        Self::read(path, &mut file, limit)
    }

    /// Reads all of `input`, which may hold `limit` bytes.
    pub(super) fn read(path: &Path, input: &mut dyn Read, limit: u64) -> Result<Self> {
        let mut bytes = Vec::new();
        let read = (&mut *input).take(limit.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|source| ImportError::Io(path.to_owned(), source))?;
        let length = bytes.len() as u64;
        if length > limit {
            return Err(ImportError::TooLarge(path.to_owned(), limit));
        }
        let id = session_id(&compressed::stem(path), Sha256::new().chain_update(&bytes));
        bytes.drain(..bytes.len() - strip_bom(&bytes).len());
        Ok(Self { path: path.to_owned(), bytes, length, id })
    }

    /// The text of a file that a product appended to while it ran: flaws are mended and counted.
    pub(super) fn text(mut self) -> SourceText {
        let mut source = Source::default();
        let length = notice(&self.bytes);
        if length > 0 {
            // Lines keep their numbers.
            self.bytes[..length].fill(b' ');
            source.skip("line in front of the recording");
        }
        let in_json =
            self.bytes.trim_ascii_start().first().is_some_and(|byte| b"{[".contains(byte));
        for line in self.bytes.split_mut(|byte| *byte == b'\n') {
            if in_json && mend_numbers(line) {
                source.warn(
                    "a number is `NaN` or infinite, which JSON has no word for; it is left out",
                );
            }
            if std::str::from_utf8(line).is_err() {
                source.warn("a line is not UTF-8; the bad bytes were replaced");
            }
            if mend_surrogates(line) {
                source.warn("a text was cut within a character; the half was replaced");
            }
        }
        let text = String::from_utf8(self.bytes);
        SourceText {
            path: self.path,
            id: self.id,
            text: text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into()),
            is_strict: false,
            source,
        }
    }

    /// The text of a file that Proctor wrote: every flaw is an error.
    pub(crate) fn strict_text(self) -> Result<SourceText> {
        let skipped = usize::try_from(self.length).unwrap_or(usize::MAX) - self.bytes.len();
        let text = String::from_utf8(self.bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let before = &error.as_bytes()[..at];
            let start = before.iter().rposition(|byte| *byte == b'\n');
            let line = 1 + memchr::memchr_iter(b'\n', before).count() as u64;
            let column = at - start.map_or(0, |start| start + 1) + 1;
            ImportError::Utf8(self.path.clone(), line, column, skipped + at)
        })?;
        Ok(SourceText {
            path: self.path,
            id: self.id,
            text,
            is_strict: true,
            source: Source::default(),
        })
    }
}

/// The text of a file.
pub(crate) struct SourceText {
    pub(crate) path: PathBuf,
    pub(super) id: String,
    pub(super) text: String,
    /// Whether Proctor wrote the file.
    is_strict: bool,
    /// The flaws that were mended.
    source: Source,
}

/// One line that is not blank, or a JSON value, which may be on several lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordLine<'t> {
    pub(super) path: &'t Path,
    /// The number of its first line, from 1; blank lines count.
    pub(crate) number: u64,
    pub(crate) text: &'t str,
}

impl SourceText {
    /// Reads the lines of a file that Proctor wrote, which are one JSON value each or blank.
    pub(crate) fn own_lines(&self) -> impl Iterator<Item = Result<RecordLine<'_>>> {
        let lines = (1..).zip(self.text.split_inclusive('\n'));
        lines.filter(|(_, line)| !line.trim_ascii().is_empty()).map(|(number, line)| {
            let whole = line.strip_suffix('\n');
            let text = whole.map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
            if whole.is_none() && serde_json::from_str::<IgnoredAny>(text).is_err() {
                return Err(ImportError::TornLine(self.path.clone(), number));
            }
            self.line(number, text)
        })
    }

    /// The values of the lines; a line that cannot be read is left out, and counted.
    fn lines(&self, source: &mut Source) -> Result<Vec<RecordLine<'_>>> {
        if self.is_laid_out() { self.values(source) } else { self.read_values(true, source) }
    }

    /// Whether it is a list that ends too early, or the first value goes on over several lines, as `jq` lays records out.
    fn is_laid_out(&self) -> bool {
        let mut values = serde_json::Deserializer::from_str(&self.text).into_iter::<IgnoredAny>();
        match values.next() {
            Some(Ok(_)) => self.text[..values.byte_offset()].trim_ascii().contains('\n'),
            Some(Err(error)) => error.is_eof() && self.text.trim_ascii_start().starts_with('['),
            None => false,
        }
    }

    /// The records of a recording, one a line or the items of one list, without copies.
    pub(super) fn raw_lines(&self, source: &mut Source) -> Result<Vec<&RawValue>> {
        Ok(once(self.all_lines(source)?, source))
    }

    /// The same of each session: see [`by_session`].
    pub(super) fn sessions(
        &self,
        source: &mut Source,
        name: impl FnMut(&&RawValue) -> Text,
    ) -> Result<Vec<Vec<&RawValue>>> {
        let sessions = by_session(self.all_lines(source)?, name).into_iter();
        Ok(sessions.map(|records| once(records, source)).collect())
    }

    fn all_lines(&self, source: &mut Source) -> Result<Vec<&RawValue>> {
        let is_list = self.text.trim_ascii_start().starts_with('[');
        let mut values = Vec::new();
        for line in self.lines(source)? {
            let raw = line.parse()?;
            let listed = if is_list { items(raw) } else { None };
            values.extend(listed.unwrap_or_else(|| vec![raw]));
        }
        Ok(values)
    }

    /// The objects among the lines of a recording.
    pub(super) fn records(&self, source: &mut Source) -> Result<Vec<WholeRecord<'_>>> {
        Ok(objects(self.raw_lines(source)?, source))
    }

    /// The whole text of a file that is no JSON.
    pub(super) fn plain(&self, source: &mut Source) -> &str {
        add_counts(source, self.source.clone());
        &self.text
    }

    /// The JSON values of the file, and what was mended. A last value that was cut is left out, and so
    /// is one in the middle that cannot be read, where whole values stand on the lines behind it. One that is
    /// nested too deep is left out where there are others.
    pub(super) fn values(&self, source: &mut Source) -> Result<Vec<RecordLine<'_>>> {
        if self.text.trim_ascii().is_empty() {
            return Err(ImportError::Empty(self.path.clone()));
        }
        self.read_values(false, source)
    }

    /// The JSON values of a file. In one of lines, a value ends with its line, and one that cannot be read costs that alone.
    fn read_values(&self, is_lines: bool, source: &mut Source) -> Result<Vec<RecordLine<'_>>> {
        add_counts(source, self.source.clone());
        let mut values = Vec::new();
        let (mut number, mut counted) = (1, 0);
        let mut left_out = LeftOut::default();
        // The end of the line of `at`, or of the text: it is looked for once a line.
        let (mut at, mut end) = (0, if is_lines { 0 } else { self.text.len() });
        loop {
            let ahead = self.text[at..].trim_ascii_start();
            let begin = self.text.len() - ahead.len();
            if begin >= end {
                let line = ahead.find('\n').map_or(ahead, |length| &ahead[..length]);
                end = begin + line.trim_ascii_end().len();
            }
            let rest = without_zeros(&self.text[begin..end], source).trim_ascii_start();
            let start = end - rest.len();
            number += self.text[counted..start].matches('\n').count() as u64;
            counted = start;
            let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
            match stream.next().transpose() {
                Ok(None) => break,
                Ok(Some(value)) => {
                    match self.line(number, value.get()) {
                        Ok(line) => values.push(line),
                        Err(problem) => left_out.add(number, problem, source),
                    }
                    at = start + value.get().len();
                    if is_lines && at < end {
                        source.warn("several records on one line");
                    }
                }
                Err(_) if is_lines && !self.text[end..].contains('\n') => {
                    source.warn("the last line was cut and is left out");
                    break;
                }
                Err(error) if is_lines => {
                    left_out.add(number, self.problem(number, start, &error), source);
                    at = end;
                }
                Err(error) => match self.object_behind(start) {
                    Some(next) => {
                        left_out.add(number, self.problem(number, start, &error), source);
                        at = next;
                    }
                    None if error.is_eof() && !values.is_empty() => {
                        source.warn("the last line was cut and is left out");
                        break;
                    }
                    None if !values.is_empty() && !rest.trim_ascii_end().contains('\n') => {
                        left_out.add(number, self.problem(number, start, &error), source);
                        break;
                    }
                    None if error.is_eof() => {
                        let line = number + error.line().saturating_sub(1) as u64;
                        return Err(ImportError::TornLine(self.path.clone(), line));
                    }
                    None => return Err(self.problem(number, start, &error)),
                },
            }
        }
        left_out.unless_most(values.len())?;
        Ok(values)
    }

    /// The same values; of a list, its items.
    pub(super) fn listed(&self, source: &mut Source) -> Result<Vec<&RawValue>> {
        let mut listed = Vec::new();
        for value in self.values(source)? {
            let raw = value.parse()?;
            listed.extend(items(raw).unwrap_or_else(|| vec![raw]));
        }
        Ok(listed)
    }

    /// Where the next line begins, behind the one of `at`, that is one JSON object.
    fn object_behind(&self, at: usize) -> Option<usize> {
        let rest = &self.text[at..];
        let mut begin = at + memchr::memchr(b'\n', rest.as_bytes())? + 1;
        for line in self.text[begin..].split_inclusive('\n') {
            if line.starts_with('{') && serde_json::from_str::<IgnoredAny>(line).is_ok() {
                return Some(begin);
            }
            begin += line.len();
        }
        None
    }

    /// The parse error of a value that begins at byte `start`, on line `number`.
    fn problem(&self, number: u64, start: usize, error: &serde_json::Error) -> ImportError {
        let begin = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let before = if error.line() <= 1 { start - begin } else { 0 };
        let line = number + error.line().saturating_sub(1) as u64;
        let (column, problem) = (before + error.column(), without_place(error));
        ImportError::Json(self.path.clone(), line, column, problem)
    }

    /// The first values of the text.
    pub(super) fn head(&self) -> Head {
        Head::of(self.text.as_bytes())
    }

    /// The first values of the text, and those behind lines that may not be readable.
    pub(super) fn heads(&self) -> impl Iterator<Item = Head> {
        super::starts(self.text.as_bytes()).map(Head::of)
    }

    fn line<'t>(&'t self, number: u64, text: &'t str) -> Result<RecordLine<'t>> {
        let limit = MAX_NESTING + if self.is_strict { NATIVE_WRAPPING } else { 0 };
        if nesting(text.as_bytes()) > limit {
            return Err(ImportError::Nesting(self.path.clone(), number, limit));
        }
        Ok(RecordLine { path: &self.path, number, text })
    }
}

/// A record as it is read, and as it is written.
pub(super) type WholeRecord<'a> = (Object<'a>, &'a RawValue);

/// The objects among records.
pub(super) fn objects<'a>(raws: Vec<&'a RawValue>, source: &mut Source) -> Vec<WholeRecord<'a>> {
    let records = raws.into_iter().filter_map(|raw| {
        let record = Object::read(raw);
        if record.is_none() {
            source.not_understood(NO_RECORD);
        }
        Some((record?, raw))
    });
    records.collect()
}

/// A line without the zeros it begins with. A crash in the middle of a write leaves a hole in
/// the file, and the product goes on behind it. A line of nothing but zeros stays as it is.
fn without_zeros<'t>(line: &'t str, source: &mut Source) -> &'t str {
    let text = line.trim_start_matches('\0');
    if text.is_empty() || text.len() == line.len() {
        return line;
    }
    source.warn("a line begins with zeros, which a crash left; they are left out");
    text
}

impl<'t> RecordLine<'t> {
    /// Parses the line.
    pub(crate) fn parse<T: Deserialize<'t>>(&self) -> Result<T> {
        self.parse_part(self.text)
    }

    /// Parses a part of the line; errors name the place in the whole line.
    pub(crate) fn parse_part<T: Deserialize<'t>>(&self, part: &'t str) -> Result<T> {
        serde_json::from_str(part).map_err(|error| {
            let start = part.as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
            let before = self.text.get(..start).unwrap_or_default();
            let breaks = before.matches('\n').count() + error.line().saturating_sub(1);
            let line = self.number + breaks as u64;
            let column = match error.line() {
                0 | 1 => before.len() - before.rfind('\n').map_or(0, |at| at + 1) + error.column(),
                _ => error.column(),
            };
            let (path, problem) = (self.path.to_owned(), without_place(&error));
            match error.classify() {
                Category::Data => ImportError::Shape(path, line, column, problem),
                _ => ImportError::Json(path, line, column, problem),
            }
        })
    }

    /// An error at the start of the line.
    pub(crate) fn error(&self, problem: impl Into<String>) -> ImportError {
        ImportError::Shape(self.path.to_owned(), self.number, 1, problem.into())
    }
}

/// The parser's message without the place, which is one in a part of the file.
fn without_place(error: &serde_json::Error) -> String {
    let full = error.to_string();
    full.rsplit_once(" at line ").map_or(&*full, |(problem, _)| problem).to_owned()
}

/// A name and 6 hex digits of everything that was hashed.
pub(super) fn session_id(name: &str, hasher: Sha256) -> String {
    let hash = hasher.finalize();
    let [a, b, c] = [hash[0], hash[1], hash[2]];
    format!("{}-{a:02x}{b:02x}{c:02x}", session_name(name))
}

/// A session's name in its id, whole if it is a time and a UUID.
pub(super) fn session_name(name: &str) -> String {
    to_valid_id(name, 64)
}

/// How long a first line is that a product prints in front of a recording, and a redirected export holds.
pub(super) fn notice(bytes: &[u8]) -> usize {
    let line = bytes.starts_with(NOTICE).then_some(bytes);
    line.and_then(|bytes| memchr::memchr(b'\n', bytes)).unwrap_or(0)
}

/// The bytes without a byte-order mark.
pub(super) fn strip_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BOM).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> SourceFile {
        SourceFile::read(Path::new("a.jsonl"), &mut &bytes[..], MAX_FILE).expect("small")
    }

    fn shown(line: &RecordLine<'_>) -> String {
        format!("{}:{}", line.number, line.text)
    }

    #[track_caller]
    fn check(shown: Result<Vec<String>>, expected: Result<&[&str], &str>) {
        match (shown, expected) {
            (Ok(shown), Ok(expected)) => assert_eq!(shown, expected),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (shown, expected) => panic!("got {shown:?}, expected {expected:?}"),
        }
    }

    #[track_caller]
    fn lines(bytes: &[u8], is_strict: bool, expected: Result<&[&str], &str>) {
        let read = || {
            let file = file(bytes);
            let text = if is_strict { file.strict_text()? } else { file.text() };
            if is_strict {
                return text.own_lines().map(|line| Ok(shown(&line?))).collect();
            }
            Ok(text.lines(&mut Source::default())?.iter().map(shown).collect())
        };
        check(read(), expected);
    }

    #[test]
    fn lines_are_mended_where_they_can_be_and_placed_where_not() {
        let (recording, strict) = (false, true);
        lines(b"{}\n[]\n", strict, Ok(&["1:{}", "2:[]"]));
        lines(b"\xef\xbb\xbf{}\r\n\r\n \n[]", strict, Ok(&["1:{}", "4:[]"]));
        lines(b"", strict, Ok(&[]));
        lines(b"{}\n{\"a\":", recording, Ok(&["1:{}"]));
        lines(b"{}[] \n{\"a\":\n7", recording, Ok(&["1:{}", "1:[]", "3:7"]));
        lines(b"{]\n7\n{\"a\":\n", recording, Err("line 1, column 2"));
        lines(b"{}\n{\"a\":", strict, Err("line 2: the file ends within"));
        lines(b"{}\n\"\xff\"\n", recording, Ok(&["1:{}", "2:\"\u{fffd}\""]));
        let place = Err("line 2: invalid UTF-8 at byte 2 of the line, byte 4 of the file");
        lines(b"{}\n\"\xff\"\n", strict, place);
        let place = Err("line 1: invalid UTF-8 at byte 2 of the line, byte 4 of the file");
        lines(b"\xef\xbb\xbf\"\xff\"\n", strict, place);
        lines(&[b'['; 200], recording, Err("the file ends within"));
        lines(b"[10:30] started\n{}\n7", recording, Ok(&["2:{}", "3:7"]));
        lines(b"{}\n\0\0[]\n", recording, Ok(&["1:{}", "2:[]"]));
        lines(
            b"{} []\t7 \r\n\0\0{}{}\n7 ",
            recording,
            Ok(&["1:{}", "1:[]", "1:7", "2:{}", "2:{}", "3:7"]),
        );
        lines(b"{}]{}\n{} \n{}", recording, Ok(&["1:{}", "2:{}", "3:{}"]));
        lines(b"{}\n\0\0[]\n", strict, Ok(&["1:{}", "2:\0\0[]"]));
        let deep = [[b'['; 128], [b']'; 128]].concat();
        lines(&deep, recording, Err("nested deeper than 127"));
        let among = [b"7\n", &deep[..], b"{}\n", &deep[..], b"\n"].concat();
        lines(&among, recording, Ok(&["1:7", "2:{}"]));
        let cut = br#""\ud83d\ude00 \\ud83d \uD83D""#;
        lines(cut, recording, Ok(&[r#"1:"\ud83d\ude00 \\ud83d \ufffd""#]));
        lines(br#""[[\"[""#, recording, Ok(&[r#"1:"[[\"[""#]));
        let numbers = br#"{"a":NaN,"b":[-Infinity, Infinity],"c":"d: NaN"}"#;
        let mended = r#"1:{"a":"" ,"b":[""       , ""      ],"c":"d: NaN"}"#;
        lines(numbers, recording, Ok(&[mended]));
    }

    #[test]
    fn values_are_found_in_every_layout() {
        let values = |bytes: &[u8], expected: Result<&[&str], &str>| {
            let text = file(bytes).text();
            let mut source = Source::default();
            let read = text.values(&mut source).map(|values| {
                let cut = source.warnings.keys().filter(|it| it.contains("cut and is left out"));
                let cut = cut.map(|_| "cut".to_owned());
                values.iter().map(shown).chain(cut).collect()
            });
            check(read, expected);
        };
        values(b"\xef\xbb\xbf{}\r\n\n[1]", Ok(&["1:{}", "3:[1]"]));
        values(b"[\n 1\n]\n{}{}", Ok(&["1:[\n 1\n]", "4:{}", "4:{}"]));
        values(b"{}\n{\"a\":", Ok(&["1:{}", "cut"]));
        values(b"{\n\"a\":", Err("line 2: the file ends within"));
        values(b"{}\n{]\n{}", Ok(&["1:{}", "3:{}"]));
        values(b"{}\n{]\n[\n{}]\n", Err("line 2, column 2"));
        values(b"{]\n[}\n{}", Err("line 1, column 2"));
        values(b"{}\n\0\0{}\n\0\n{}", Ok(&["1:{}", "2:{}", "4:{}"]));
        values(b"[\nNaN,\n1]", Ok(&["1:[\n\"\" ,\n1]"]));
        values(b" \n", Err("is empty"));
        values(b"\"\xff\\ud83d\"", Ok(&["1:\"\u{fffd}\\ufffd\""]));
        let bomb = [[b'['; 128], [b']'; 128]].concat();
        values(&bomb, Err("line 1: JSON nested deeper than 127"));
        let among = [b"7\n", &bomb[..], b"{}\n", &bomb[..], b"\n"].concat();
        values(&among, Ok(&["1:7", "2:{}"]));
    }
}
