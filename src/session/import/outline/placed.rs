//! Where in the file an error is that was found in what is left of it.
//!
//! No text that was cut holds a line feed, but a value that was put aside may; columns and offsets
//! lack what was cut before them. Only a file with an error is read again for that.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;

use super::{Cut, Cutter, ESCAPED, Format, Marks};
use crate::session::import::ImportError;

/// The error, with its place in the whole file.
pub(super) fn placed(
    mut error: ImportError,
    path: &Path,
    format: &'static Format,
    cut: Cut,
) -> io::Result<ImportError> {
    let missing = |line, column| missing(path, format, cut, line, column);
    match &mut error {
        ImportError::Json { line, column, .. } | ImportError::Shape { line, column, .. } => {
            let missing = missing(*line, *column)?;
            *line += missing.lines;
            *column = column.saturating_add_signed(missing.in_line);
        }
        ImportError::Utf8 {
            line,
            column,
            offset,
            ..
        } => {
            let missing = missing(*line, *column)?;
            *line += missing.lines;
            *column = column.saturating_add_signed(missing.in_line);
            *offset = offset.saturating_add_signed(i64::try_from(missing.all).unwrap_or_default());
        }
        ImportError::TornLine { line, .. } => *line += missing(*line, usize::MAX)?.lines,
        ImportError::LongLine { line, .. } | ImportError::Nesting { line, .. } => {
            *line += missing(*line, 0)?.lines;
        }
        _ => {}
    }
    Ok(error)
}

/// What the file has more than what was given of it.
#[derive(Debug, Default)]
struct Missing {
    /// Lines before that of the error.
    lines: u64,
    /// Bytes before its column in its own line.
    in_line: isize,
    /// Bytes before it.
    all: isize,
}

fn missing(
    path: &Path,
    format: &'static Format,
    cut: Cut,
    line: u64,
    column: usize,
) -> io::Result<Missing> {
    let open = |_| Ok(Box::new(File::open(path)?) as Box<dyn Read>);
    let mut cutter = Cutter::new(&open, format, cut, Marks::default())?;
    let mut missing = Missing::default();
    let mut given = Vec::new();
    for number in 1..=line {
        given.clear();
        cutter.read_until(b'\n', &mut given)?;
        let is_last = number == line;
        let end = if is_last {
            column.min(given.len())
        } else {
            given.len()
        };
        missing.in_line = 0;
        let shown = String::from_utf8_lossy(&given[..end]);
        let mut parts = shown.split(ESCAPED);
        // Where in the line the last part ended.
        let mut at = parts.next().map_or(0, str::len);
        while let (Some(name), Some(after)) = (parts.next(), parts.next()) {
            let mark = name.len() + 2 * ESCAPED.len();
            at += mark;
            if let Some(place) = name
                .parse()
                .ok()
                .and_then(|it: usize| cutter.marks.places.get(it))
            {
                let more = place.length.checked_signed_diff(mark).unwrap_or(0);
                missing.in_line = missing.in_line.saturating_add(more);
                missing.all = missing.all.saturating_add(more);
            } else if let Some(value) = cutter.value_aside(name) {
                // The mark is a text of its own.
                let length = usize::try_from(value.length).unwrap_or(usize::MAX);
                let more = length.checked_signed_diff(mark + 2).unwrap_or(0);
                missing.all = missing.all.saturating_add(more);
                missing.lines += value.lines;
                missing.in_line = if value.lines == 0 {
                    missing.in_line.saturating_add(more)
                } else {
                    value.last_line.checked_signed_diff(at + 1).unwrap_or(0)
                };
            }
            at += after.len();
        }
    }
    Ok(missing)
}
