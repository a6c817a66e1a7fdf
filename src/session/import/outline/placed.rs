//! Where in the file an error is that was found in what is left of it.
//!
//! Lines are the same, for no text that was cut holds a line feed; columns and offsets lack what was
//! cut before them. Only a file with an error is read again for that.

use std::fs::File;
use std::io::{self, BufRead};
use std::path::Path;

use super::cutter::Cutter;
use super::{Cut, ESCAPED, Format};
use crate::session::import::ImportError;

/// The error, with its place in the whole file.
pub(super) fn placed(
    mut error: ImportError,
    path: &Path,
    format: &'static Format,
    cut: Cut,
) -> io::Result<ImportError> {
    match &mut error {
        ImportError::Json { line, column, .. } | ImportError::Shape { line, column, .. } => {
            *column =
                column.saturating_add_signed(missing(path, format, cut, *line, *column)?.in_line);
        }
        ImportError::Utf8 {
            line,
            column,
            offset,
            ..
        } => {
            let missing = missing(path, format, cut, *line, *column)?;
            *column = column.saturating_add_signed(missing.in_line);
            let all = missing.before.saturating_add(missing.in_line);
            *offset = offset.saturating_add_signed(i64::try_from(all).unwrap_or_default());
        }
        _ => {}
    }
    Ok(error)
}

/// How many bytes the file has more than what was given of it.
#[derive(Debug, Default)]
struct Missing {
    /// In the lines before that of the error.
    before: isize,
    /// In its own, before its column.
    in_line: isize,
}

fn missing(
    path: &Path,
    format: &'static Format,
    cut: Cut,
    line: u64,
    column: usize,
) -> io::Result<Missing> {
    let mut cutter = Cutter::new(File::open(path)?, format, cut);
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
        let shown = String::from_utf8_lossy(&given[..end]);
        let mut parts = shown.split(ESCAPED);
        let mut cut_here = 0_isize;
        parts.next();
        while let (Some(name), Some(_)) = (parts.next(), parts.next()) {
            let place = name
                .parse::<usize>()
                .ok()
                .and_then(|it| cutter.places.get(it));
            let mark = name.len() + 2 * ESCAPED.len();
            let missing = place.map_or(0, |(_, length)| {
                length.checked_signed_diff(mark).unwrap_or(0)
            });
            cut_here = missing.saturating_add(cut_here);
        }
        if is_last {
            missing.in_line = cut_here;
        } else {
            missing.before = missing.before.saturating_add(cut_here);
        }
    }
    Ok(missing)
}
