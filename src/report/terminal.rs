//! Terminal: the comparison and what a person asks next, within a given width.

use crate::report::layout::{self, ColumnSpec, GAP, wrap};
use crate::report::{
    Audience, BannerLevel, Cell, Column, Report, Role, Row, Section, Table, Value, display, escape,
};
use crate::stats::SampleSize;

/// Width of text files.
pub const FILE_WIDTH: usize = 100;

/// Below this width nothing fits.
const NARROWEST: usize = 60;

/// Longer texts are cut: a terminal is not the place for them.
const LONGEST_TEXT: usize = 160;

/// A word without a sign that is longer than this may break anywhere.
const LONGEST_PIECE: usize = 32;

/// The same of the names of rows.
const LONGEST_PIECE_OF_NAME: usize = 20;

/// The legend of the comparison's signs.
const LEGEND: &str = "* best, or within its ±, among the strategies that fired and are not broken; ± is half \
of the 95 % t interval over sessions, in points, a range one that ends at 0 or 100; n is sessions/items, as \
in the heading unless a row has its own.";

/// Lays a report out for a terminal. Width and colour are given: it reads no environment.
///
/// Where not all columns fit, those with a large priority number are left out and named below the
/// table.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    width: usize,
    color: bool,
}

impl Terminal {
    /// A terminal of this many columns, at least 60.
    pub fn new(width: usize, color: bool) -> Self {
        Self { width: width.max(NARROWEST), color }
    }

    /// A terminal without colours.
    pub fn plain(width: usize) -> Self {
        Self::new(width, false)
    }

    /// Columns it has.
    pub fn columns(self) -> usize {
        self.width
    }

    /// Whether it shows colours.
    pub fn has_color(self) -> bool {
        self.color
    }

    /// Lays the report out.
    pub fn render(self, report: &Report) -> String {
        let mut out = self.text(Style::Heading, "", &report.title);
        out.extend(report.lines.iter().flat_map(|line| self.text(Style::Dim, "", line)));
        let banners = report.banners.iter().flat_map(|banner| {
            let (style, sign) = banner.level.sign();
            self.text(style, sign, &banner.in_full())
        });
        add(&mut out, banners.collect());
        let shown = report.sections.iter().filter(|one| one.audience == Audience::Everyone);
        out.extend(shown.flat_map(|section| self.lines_of_section(section)));
        out.join("\n") + "\n"
    }

    /// One section alone, a blank line before it.
    pub fn section(self, section: &Section) -> String {
        self.lines_of_section(section).join("\n") + "\n"
    }

    pub(super) fn paint(self, style: Style, text: &str) -> String {
        if self.color && style != Style::Plain && !text.trim().is_empty() {
            format!("\u{1b}[{}m{text}\u{1b}[0m", style.code())
        } else {
            text.to_owned()
        }
    }
}

/// Adds a block to the lines of a screen, after an empty line; nothing where there is none.
pub(super) fn add(out: &mut Vec<String>, block: Vec<String>) {
    if !block.is_empty() {
        out.push(String::new());
        out.extend(block);
    }
}

/// How a piece of text is shown where colours are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Style {
    #[default]
    Plain,
    Heading,
    Dim,
    Best,
    Alarm,
    Caution,
}

impl BannerLevel {
    /// How a banner is shown, and the sign in front of it.
    pub(super) fn sign(self) -> (Style, &'static str) {
        match self {
            Self::Invalid => (Style::Alarm, "!! "),
            Self::Warning => (Style::Caution, "! "),
            Self::Note => (Style::Plain, "- "),
        }
    }
}

impl Style {
    /// Parameters of "select graphic rendition", ECMA-48 section 8.3.117.
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "0",
            Self::Heading => "1",
            Self::Dim => "2",
            Self::Best => "32",
            Self::Alarm => "1;31",
            Self::Caution => "33",
        }
    }
}

/// Lines of one cell, each with its style.
type Styled = Vec<(Style, String)>;

impl Terminal {
    /// A paragraph, its first line after `sign`, the others indented as deep.
    pub(super) fn text(self, style: Style, sign: &str, text: &str) -> Vec<String> {
        let lines = wrap(&escape::plain(text), self.width - layout::width(sign));
        self.hanging(style, sign, lines)
    }

    /// Lines of a paragraph, the first after `sign`, the others indented as deep.
    pub(super) fn hanging(self, style: Style, sign: &str, lines: Vec<String>) -> Vec<String> {
        let deeper = " ".repeat(layout::width(sign));
        let lines = std::iter::once(sign).chain(std::iter::repeat(&*deeper)).zip(lines);
        lines.map(|(lead, line)| self.paint(style, &format!("{lead}{line}"))).collect()
    }

    fn lines_of_section(self, section: &Section) -> Vec<String> {
        let mut out = vec![String::new()];
        out.extend(self.text(Style::Heading, "", &section.title));
        if !section.about.is_empty() {
            out.extend(self.text(Style::Dim, "", &section.about));
        }
        out.push(String::new());
        let left_out = self.table(&mut out, section);
        let more = section.table.rows.len().saturating_sub(section.most_rows);
        let mut notes = Vec::from_iter((more > 0).then(|| format!("… and {more} more")));
        if !left_out.is_empty() {
            notes.push(format!("not shown at this width: {}", left_out.join(", ")));
        }
        notes.extend((section.id == "comparison").then(|| LEGEND.to_owned()));
        let below = notes.iter().chain(&section.notes);
        out.extend(below.flat_map(|note| self.text(Style::Dim, "", note)));
        out
    }

    /// Adds the lines of the table, and returns the labels of the columns that did not fit.
    fn table(self, out: &mut Vec<String>, section: &Section) -> Vec<String> {
        let table = &section.table;
        let columns = 0..table.columns.len();
        let shared: Vec<_> = columns.clone().map(|at| table.shared_n(at)).collect();
        let heads: Vec<Styled> = table.columns.iter().zip(&shared).map(head_lines).collect();
        // The headings come first.
        let mut lines = vec![heads];
        lines.extend(table.rows.iter().take(section.most_rows).map(|row| -> Vec<Styled> {
            let cells =
                row.cells.iter().zip(shared.iter().skip(1)).map(|(cell, n)| cell_lines(cell, *n));
            [name_lines(row)].into_iter().chain(cells).collect()
        }));
        let specs = self.specs(&table.columns, &lines);
        let widths = layout::columns(&specs, self.width);
        let is_text: Vec<bool> = columns.map(|at| table.is_text(at)).collect();
        out.extend(self.row(&lines[0], &widths, &is_text));
        let total: usize = widths.iter().flatten().map(|width| width + GAP).sum();
        let rule = self.paint(Style::Dim, &"─".repeat(total.saturating_sub(GAP)));
        out.push(rule.clone());
        let mut last = None;
        for (row, lines) in table.rows.iter().zip(&lines[1..]) {
            // A line divides reference and floor from the strategies compared with them.
            let control = matches!(row.role, Role::Reference | Role::Floor);
            if last == Some(true) && !control {
                out.push(rule.clone());
            }
            last = Some(control);
            out.extend(self.row(lines, &widths, &is_text));
        }
        let left_out = table.columns.iter().zip(&widths).enumerate();
        left_out
            .filter(|(_, (column, width))| width.is_none() && !column.is_for_files())
            .map(|(at, (column, _))| match same_value(table, at) {
                Some(value) => format!("{} ({value} in every row)", column.label),
                None => column.label.clone(),
            })
            .collect()
    }

    /// How wide the columns may get. Where those that matter most do not fit, long words break at their
    /// signs sooner, and only then columns go.
    fn specs(self, columns: &[Column], rows: &[Vec<Styled>]) -> Vec<ColumnSpec> {
        let mut specs: Vec<ColumnSpec> = Vec::new();
        for longest in [layout::LONGEST_WORD, layout::LONGEST_NAME, layout::SHORTEST] {
            let places = columns.iter().enumerate();
            specs = places.map(|(at, column)| spec(column.priority, at, rows, longest)).collect();
            if layout::fits(&specs, self.width) {
                break;
            }
        }
        specs
    }

    /// The lines of a row, of columns with these widths that hold words or numbers.
    fn row(self, cells: &[Styled], widths: &[Option<usize>], text: &[bool]) -> Vec<String> {
        let columns = cells.iter().zip(widths).zip(text).filter_map(|((lines, width), is_text)| {
            let width = (*width)?;
            let lines = lines
                .iter()
                .flat_map(|(style, line)| wrap(line, width).into_iter().map(|line| (*style, line)));
            Some((width, *is_text, lines.collect()))
        });
        let columns: Vec<(usize, bool, Styled)> = columns.collect();
        let height = columns.iter().map(|(_, _, lines)| lines.len()).max();
        let lines = (0..height.unwrap_or(0)).map(|at| {
            let shown = columns.iter().map(|(width, is_text, lines)| {
                let Some((style, line)) = lines.get(at) else {
                    return " ".repeat(*width);
                };
                let pad = layout::blanks(line, *width);
                let line = self.paint(*style, line);
                if *is_text { line + &pad } else { pad + &line }
            });
            display::joined(shown, &" ".repeat(GAP)).trim_end().to_owned()
        });
        lines.collect()
    }
}

/// The report as a text file.
pub(super) fn file(report: &Report) -> String {
    Terminal::plain(FILE_WIDTH).render(report)
}

/// The value that all cells of a column hold, a count or a share, those without one left out.
fn same_value(table: &Table, at: usize) -> Option<String> {
    let cells = table.cells(at).filter(|cell| cell.value != Value::NotApplicable);
    let values = cells.map(|cell| match cell.value {
        Value::Count(_) | Value::Share(_) => Some(display::cell(cell)),
        _ => None,
    });
    let mut values: Vec<String> = values.collect::<Option<_>>()?;
    // One row is not every row.
    let several = values.len() > 1;
    values.dedup();
    (several && values.len() == 1).then(|| values.remove(0))
}

fn head_lines((column, n): (&Column, &Option<SampleSize>)) -> Styled {
    let label = (Style::Heading, escape::short(&column.label, LONGEST_TEXT));
    std::iter::once(label).chain(n.map(|n| (Style::Dim, display::n(n)))).collect()
}

fn name_lines(row: &Row) -> Styled {
    let mut lines = vec![(Style::Plain, escape::short(&row.name, LONGEST_TEXT))];
    for mark in &row.marks {
        let broken = mark.is_broken();
        let style = if broken { Style::Alarm } else { Style::Dim };
        lines.push((style, escape::short(&mark.to_string(), LONGEST_TEXT)));
    }
    lines
}

/// The value, then its interval, and its n where the heading has another.
fn cell_lines(cell: &Cell, head: Option<SampleSize>) -> Styled {
    let mut text = match &cell.value {
        Value::Text(text) => escape::short(text, LONGEST_TEXT),
        _ => display::cell(cell),
    };
    let style = if cell.best { Style::Best } else { Style::Plain };
    if cell.best {
        text.push('*');
    }
    let n = cell.n.filter(|n| Some(*n) != head).map(display::n);
    let beside = display::interval(cell).into_iter().chain(n).map(|text| (Style::Dim, text));
    std::iter::once((style, text)).chain(beside).collect()
}

/// How wide a column may get, of rows with the headings first.
fn spec(priority: u8, at: usize, rows: &[Vec<Styled>], longest: usize) -> ColumnSpec {
    let cells: Vec<&Styled> = rows.iter().filter_map(|row| row.get(at)).collect();
    // Names are narrowed first: they are alone in their lines, and a value is not.
    let (longest, unbroken) = if at == 0 {
        (longest.min(layout::LONGEST_NAME), LONGEST_PIECE_OF_NAME)
    } else {
        (longest, LONGEST_PIECE)
    };
    let lines = cells.iter().copied().flatten();
    let narrowest =
        lines.map(|(_, line)| layout::narrowest(line, longest, unbroken)).max().unwrap_or(0);
    // Headings and marks wrap at their words; they never widen a column.
    let values = cells.iter().skip(1).filter_map(|lines| lines.first());
    let widest = values.map(|(_, line)| layout::width(line)).max();
    let (widest, name) = (widest.unwrap_or(0), 2 * narrowest.max(12));
    let most = if at == 0 { name } else { widest };
    ColumnSpec { priority, narrowest, widest: widest.min(most) }
}
