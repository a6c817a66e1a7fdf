//! CSV: one row per cell, and in a second file one row per probe item, for spreadsheets and data
//! frames.
//!
//! A value that was not measured is `NA`, never blank and never 0. Texts are escaped as on a
//! terminal, and neutralised: a spreadsheet would run one that begins with `=`.

use crate::report::columns::{self, DataColumn, ValueReader};
use crate::report::{RenderError, Report, asked_items, escape};

/// The value of a cell that was not measured.
const NOT_MEASURED: &str = "NA";

pub(super) fn render(report: &Report) -> Result<[Vec<u8>; 2], RenderError> {
    let items = table(&columns::items(), &asked_items(&report.records))?;
    Ok([table(&columns::cells(), &report.cells)?, items])
}

fn table<T>(columns: &[DataColumn<T>], rows: &[T]) -> Result<Vec<u8>, RenderError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let head = columns.iter().map(|column| column.name);
    writer.write_record(head).map_err(RenderError::Csv)?;
    for row in rows {
        let fields = columns.iter().map(|column| field(column, row));
        writer.write_record(fields).map_err(RenderError::Csv)?;
    }
    let bytes = writer.into_inner();
    bytes.map_err(|error| RenderError::Csv(error.into_error().into()))
}

fn field<T>(column: &DataColumn<T>, row: &T) -> String {
    match &column.read {
        ValueReader::Text(read) => read(row).map(|recorded| text(&recorded)),
        ValueReader::Count(read) => read(row).map(|count| count.to_string()),
        ValueReader::Number(read) => read(row).map(|number| number.to_string()),
    }
    .unwrap_or_else(|| NOT_MEASURED.to_owned())
}

/// A text without anything that a terminal or a spreadsheet would execute.
fn text(text: &str) -> String {
    let plain = escape::plain(text);
    // Tabs and carriage returns are looked for before they are escaped: their meaning is clear.
    if text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠', '\t', '\r']) {
        format!("'{plain}")
    } else {
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spreadsheet_runs_nothing_that_was_recorded() {
        for (recorded, written) in [
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\\u{9}=1"),
            ("\r=1", "'\\u{d}=1"),
            ("＝1", "'＝1"),
            ("a=1", "a=1"),
            ("", ""),
            ("two\nlines", "two\\u{a}lines"),
        ] {
            assert_eq!(text(recorded), written);
        }
    }
}
