//! Files of JSON lines that are added to, each line with its checksum.
//!
//! A line is whole once its line feed is there. What follows the last line feed was cut off by a crash: it is
//! left out when the file is read, and removed before the next line is written.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Readers;
use super::checked::{self, Damage, LINE};
use crate::units::HashWriter;

/// Why a file of lines cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// This line, counted from 1, is not what was written.
    #[error("line {0} is damaged")]
    Damaged(usize, #[source] Damage),
}

/// The lines of a file, read one by one.
#[derive(Debug)]
pub struct CheckedLines {
    reader: BufReader<File>,
    line: Vec<u8>,
    length: u64,
    number: usize,
    /// Whether lines without a checksum are read too.
    pub accepts_unsigned: bool,
}

impl CheckedLines {
    /// Opens a file; `None` if it is not there.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        match super::open(path) {
            Ok(file) => Ok(Some(Self {
                reader: BufReader::new(file),
                line: Vec::new(),
                length: 0,
                number: 0,
                accepts_unsigned: false,
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the path still leads to this file, and not to another one that took its place.
    pub fn is_at(&self, path: &Path) -> io::Result<bool> {
        super::is_at(self.reader.get_ref(), path)
    }

    /// The next line; `None` where no whole one follows. Once one was added there, it is the next.
    pub fn read<T: DeserializeOwned>(&mut self) -> Result<Option<T>, LineError> {
        self.line.clear();
        self.length = self.reader.read_until(b'\n', &mut self.line)? as u64;
        if self.line.pop_if(|byte| *byte == b'\n').is_none() {
            let begun = i64::try_from(self.length).unwrap_or(i64::MAX);
            self.reader.seek_relative(-begun)?;
            return Ok(None);
        }
        // Git may have given its lines other ends.
        self.line.pop_if(|byte| *byte == b'\r');
        self.number += 1;
        let verified = match checked::verify(&mut self.line, LINE) {
            Err(Damage::NoChecksum) if self.accepts_unsigned => Ok(()),
            verified => verified,
        };
        let item = verified.and_then(|()| Ok(serde_json::from_slice(&self.line)?));
        item.map(Some).map_err(|damage| LineError::Damaged(self.number, damage))
    }

    /// The bytes that were read last: half a line, after `None`.
    pub fn bytes(&self) -> &[u8] {
        &self.line
    }

    /// The length of the line that was read last, with its line feed.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The line that was read last, from 1.
    pub fn number(&self) -> usize {
        self.number
    }
}

/// A line for each item, an object.
pub fn of<T: Serialize>(items: &[T]) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::new();
    for item in items {
        let mut line = serde_json::to_string(item)?;
        checked::sign(&mut line, LINE);
        line.push('\n');
        bytes.extend_from_slice(line.as_bytes());
    }
    Ok(bytes)
}

/// Adds whole lines to a file that is open for appending, in one `write`. Lines that cannot be written whole are
/// taken back: nothing follows half a line.
pub fn add(file: &mut File, lines: &[u8]) -> io::Result<()> {
    let length = file.metadata()?.len();
    let added = file.write_all(lines);
    added.map_err(|error| take_back(file, length, error))
}

/// Adds the line of one object, as [`of`] and [`add`] do. A line of more than 1 MiB is never whole in memory: it is
/// written in pieces of that size.
pub fn add_one<T: Serialize>(file: &mut File, object: &T) -> io::Result<()> {
    let length = file.metadata()?.len();
    let mut line = LineWriter { file, buffer: Vec::new(), hasher: HashWriter::default() };
    let added = serde_json::to_writer(&mut line, object).map_err(io::Error::from);
    added.and_then(|()| line.finish()).map_err(|error| take_back(file, length, error))
}

/// Removes what was added beyond this length because of an error, and returns that error.
fn take_back(file: &File, length: u64, error: io::Error) -> io::Error {
    file.set_len(length).err().unwrap_or(error)
}

/// Most bytes of a line that are in memory before they are written.
const PIECE: usize = 1 << 20;

/// Writes an object in pieces, with a checksum and a line feed behind it.
struct LineWriter<'a> {
    file: &'a mut File,
    /// The bytes that are neither hashed nor written yet.
    buffer: Vec<u8>,
    hasher: HashWriter,
}

impl LineWriter<'_> {
    /// Replaces the closing brace, the last byte of the buffer, by the checksum and the end of the line.
    fn finish(mut self) -> io::Result<()> {
        self.buffer.pop();
        self.hasher.write_all(&self.buffer)?;
        let end = checked::end(self.hasher.finish(), LINE);
        self.buffer.extend_from_slice(end.as_bytes());
        self.buffer.push(b'\n');
        self.file.write_all(&self.buffer)
    }
}

impl Write for LineWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // More bytes follow, so the buffer does not hold the closing brace.
        if self.buffer.len() >= PIECE {
            self.hasher.write_all(&self.buffer)?;
            self.file.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        let taken = bytes.len().min(PIECE);
        self.buffer.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    /// Nothing: only [`Self::finish`] knows which byte is the last.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Removes the zeros of a file, if it is there, with the lines that they are in: a power cut left them where nothing was
/// on disk yet. A whole line behind them stays.
pub fn drop_zeroed(path: &Path) -> io::Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let mut reader = BufReader::new(super::open(path)?);
    while !reader.fill_buf()?.contains(&0) {
        let length = reader.buffer().len();
        if length == 0 {
            return Ok(());
        }
        reader.consume(length);
    }
    let bytes = super::read(path)?;
    super::replace(path, Readers::Owner, &mut |out| {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let end = line.rsplit(|byte| *byte == 0).next().unwrap_or_default();
            let mut text = end.strip_suffix(b"\n").unwrap_or_default().to_vec();
            if end.len() == line.len() || checked::verify(&mut text, LINE).is_ok() {
                out.write_all(end)?;
            }
        }
        Ok(())
    })
}

/// Removes half a line at the end of a file that is open for reading and appending.
pub fn drop_half_a_line(file: &mut File) -> io::Result<()> {
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    if last == *b"\n" {
        return Ok(());
    }
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    file.set_len(end.map_or(0, |end| end as u64 + 1))
}

#[cfg(test)]
mod tests {
    use serde::ser::{Error as _, SerializeMap as _};

    use super::*;

    /// How many whole lines a file of these bytes has, or its first damage.
    fn read(bytes: &[u8]) -> Result<usize, LineError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        std::fs::write(&path, bytes).unwrap();
        let mut lines = CheckedLines::open(&path)?.unwrap();
        while lines.read::<serde_json::Value>()?.is_some() {}
        Ok(lines.number())
    }

    /// An object of a text of this many bytes, which may not be written to its end.
    struct Long(usize, bool);

    impl Serialize for Long {
        fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            let Self(length, fails) = *self;
            let mut object = to.serialize_map(None)?;
            object.serialize_entry("a", &"x".repeat(length))?;
            if fails {
                return Err(S::Error::custom("no more"));
            }
            object.end()
        }
    }

    #[test]
    fn a_line_in_pieces_has_the_same_bytes_as_a_whole_one_and_is_written_whole_or_not_at_all() {
        for length in (0..3).flat_map(|pieces| (0..40).map(move |more| pieces * PIECE + more)) {
            let mut file = tempfile::tempfile().unwrap();
            add_one(&mut file, &Long(length, false)).unwrap();
            let refused = add_one(&mut file, &Long(length, true)).unwrap_err();
            assert_eq!(refused.to_string(), "no more");
            let mut written = Vec::new();
            file.rewind().unwrap();
            file.read_to_end(&mut written).unwrap();
            assert!(written == of(&[Long(length, false)]).unwrap(), "{length}");
        }
    }

    #[test]
    fn every_flipped_bit_is_refused_with_its_line_and_half_a_line_is_left_out() {
        let items =
            ["one", "zwei: J\u{fc}rgen", "3"].map(|it| serde_json::json!({ "a": it, "b": 7 }));
        let whole = of(&items).unwrap();
        assert_eq!(read(&whole).unwrap(), 3);
        for (at, bit) in (0..whole.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << bit;
            let line = whole[..at].split(|byte| *byte == b'\n').count();
            match read(&flipped) {
                Err(LineError::Damaged(said, _)) => assert_eq!(said, line, "byte {at}, bit {bit}"),
                // Without its line feed, the last line is half a line.
                Ok(2) if at + 1 == whole.len() => {}
                other => panic!("byte {at}, bit {bit}: {other:?}"),
            }
        }
        for end in 0..whole.len() {
            let lines = whole[..end].split(|byte| *byte == b'\n').count();
            assert_eq!(read(&whole[..end]).unwrap(), lines - 1);
        }
        let unsigned = "{\"a\":1}\n".as_bytes();
        let said = read(&[&whole, unsigned].concat());
        assert!(matches!(said, Err(LineError::Damaged(4, Damage::NoChecksum))));
    }

    #[test]
    fn zeros_of_a_power_cut_cost_only_the_lines_that_they_are_in() {
        let whole = of(&["one", "two", "three"].map(|it| serde_json::json!({ "a": it }))).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let end = whole.len();
        let holes = (0..end).step_by(7);
        for (from, to) in
            holes.flat_map(|from| (from + 1..=end).step_by(5).map(move |to| (from, to)))
        {
            let mut holed = whole.clone();
            holed[from..to].fill(0);
            std::fs::write(&path, &holed).unwrap();
            drop_zeroed(&path).unwrap();
            let mut at = 0;
            let lines = whole.split_inclusive(|byte| *byte == b'\n');
            let untouched = lines.filter(|line| {
                at += line.len();
                at <= from || at - line.len() >= to
            });
            let untouched = untouched.collect::<Vec<_>>().concat();
            assert!(std::fs::read(&path).unwrap() == untouched, "{from}..{to}");
        }
        drop_zeroed(&folder.path().join("none")).unwrap();
    }
}
