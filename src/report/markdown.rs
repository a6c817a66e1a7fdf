//! Markdown: every section, as tables GitHub shows.

use std::fmt::Write as _;

use crate::report::{
    Artifact, BannerLevel, Cell, RenderError, Renderer, Report, Section, Table, Value, escape,
    figure,
};

/// What the signs of the comparison mean.
const LEGEND: &str = "Bold: best, or within its interval, among the strategies that fired and are not broken. \
In brackets: the 95 % t interval over sessions. n: sessions/items.";

/// Writes the report as GitHub Markdown: every section and every column.
#[derive(Debug, Clone, Copy, Default)]
pub struct Markdown;

impl Renderer for Markdown {
    fn format(&self) -> &'static str {
        "md"
    }

    fn render(&self, report: &Report) -> Result<Vec<Artifact>, RenderError> {
        let mut out = format!("# {}\n\n", escape::markdown(&report.title));
        for banner in &report.banners {
            let kind = match banner.level {
                BannerLevel::Invalid => "CAUTION",
                BannerLevel::Warning => "WARNING",
                BannerLevel::Note => "NOTE",
            };
            let _ = writeln!(out, "> [!{kind}]\n> {}\n", escape::markdown(&banner.text));
        }
        for line in report.summary_lines() {
            let _ = writeln!(out, "- {}", escape::markdown(&line));
        }
        for section in &report.sections {
            write_section(&mut out, section);
        }
        Ok(vec![Artifact {
            name: "report.md".to_owned(),
            bytes: out.into_bytes(),
        }])
    }
}

fn write_section(out: &mut String, section: &Section) {
    let _ = write!(
        out,
        "\n## {}\n\n{}\n\n",
        escape::markdown(&section.title),
        escape::markdown(&section.about)
    );
    write_table(out, &section.table);
    let legend = (section.id == "comparison").then_some(LEGEND);
    for note in legend
        .into_iter()
        .chain(section.notes.iter().map(String::as_str))
    {
        let _ = write!(out, "\n{}\n", escape::markdown(note));
    }
}

fn write_table(out: &mut String, table: &Table) {
    for column in &table.columns {
        let _ = write!(out, "| {} ", escape::markdown(&column.label));
    }
    out.push_str("|\n");
    for at in 0..table.columns.len() {
        let is_text = at == 0
            || table.rows.iter().any(|row| {
                matches!(
                    row.cells.get(at - 1),
                    Some(Cell {
                        value: Value::Text(_),
                        ..
                    })
                )
            });
        out.push_str(if is_text { "| :-- " } else { "| --: " });
    }
    out.push_str("|\n");
    for row in &table.rows {
        let _ = write!(out, "| {}", escape::markdown(&row.name));
        for mark in &row.marks {
            let _ = write!(out, "<br>*{}*", escape::markdown(mark));
        }
        for cell in &row.cells {
            let _ = write!(out, " | {}", in_words(cell));
        }
        out.push_str(" |\n");
    }
}

/// `**61.2 %** [48.9, 73.4] n=6/120`: bold is best.
fn in_words(cell: &Cell) -> String {
    let mut text = escape::markdown(&figure::value(&cell.value));
    if cell.best {
        text = format!("**{text}**");
    }
    if let Some((low, high)) = figure::bounds(cell) {
        let _ = write!(
            text,
            " \\[{}, {}\\]",
            figure::points(low),
            figure::points(high)
        );
    }
    if let Some(n) = cell.n {
        let _ = write!(text, " {}", figure::n(n));
    }
    text
}
