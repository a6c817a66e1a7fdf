//! The results of a run on one screen: the comparison in five columns, the verdict, what was lost, how
//! far to trust it, and what to do next.

use std::time::Duration;

use crate::compare::Line;
use crate::compare::advice::Verdict;
use crate::record::words::ModelKind;
use crate::report::headline::{
    self, HEADLINES, Headline, OnScreen, WIDE, is_control, kept, label, row_label, short_value,
    with_controls,
};
use crate::report::layout::{self, wrap};
use crate::report::terminal::{Style, Terminal};
use crate::report::{BannerLevel, Report, Row, RowMark, Subject, Value, display, escape};
use crate::stats::pareto;

/// Lines of a screen at most.
pub const LINES: usize = 40;

/// Strategies that are shown one by one; of more, the front, the controls and a count.
const ROWS: usize = 10;

/// Lines of notices above the table at most.
const NOTICES: usize = 4;

/// Blanks in front of every line below a heading.
pub(super) const INDENT: &str = "  ";

/// How deep the second line of a sentence stands.
const HANGING: usize = 4;

/// The room that the names of strategies have at least.
const SHORTEST_NAME: usize = 12;

/// The longest name of a strategy that is not cut.
const LONGEST_NAME: usize = 36;

/// What the rows of the screen are sorted by: best first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SortBy {
    /// The bill saved.
    #[default]
    Bill,
    /// Tokens saved.
    Tokens,
    /// Facts kept.
    Facts,
    /// Answers right.
    Answers,
    /// Actions supported.
    Actions,
    /// Calls of the strategy's own: fewest first.
    Calls,
    /// Modelled time of the calls that the agent makes or waits for: shortest first.
    Waiting,
    /// The name.
    Name,
}

impl SortBy {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Bill,
        Self::Tokens,
        Self::Facts,
        Self::Answers,
        Self::Actions,
        Self::Calls,
        Self::Waiting,
        Self::Name,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bill => "bill",
            Self::Tokens => "tokens",
            Self::Facts => "facts",
            Self::Answers => "answers",
            Self::Actions => "actions",
            Self::Calls => "calls",
            Self::Waiting => "waiting",
            Self::Name => "name",
        }
    }
}

/// What a screen shows besides the report.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScreenOptions {
    /// The order of the rows.
    pub sort: SortBy,
    /// How long the run took, where it was measured.
    pub took: Option<Duration>,
}

/// The columns at this width. Where a model answered, its answers take the place of the facts.
fn columns(report: &Report, width: usize) -> Vec<&'static Headline> {
    let mut columns: Vec<&Headline> = HEADLINES.iter().collect();
    columns.retain(|column| match column.screen {
        OnScreen::Always => true,
        OnScreen::Wide => width >= WIDE,
        OnScreen::Never => false,
    });
    columns.retain(|column| {
        let rows = report.compared().iter();
        let mut rows = rows.filter(|row| row.role == crate::report::Role::Strategy);
        rows.any(|row| is_measured(report, row, column.column))
    });
    headline::keep_one(&mut columns);
    columns
}

fn is_measured(report: &Report, row: &Row, column: &str) -> bool {
    let cell = headline::cell(report, row, column);
    cell.is_some_and(|cell| !matches!(cell.value, Value::NotMeasured | Value::NotApplicable))
}

/// The value of a row as a number: a share, a count, or seconds.
fn points(report: &Report, row: &Row, metric: &str) -> Option<f64> {
    match headline::cell(report, row, metric)?.value {
        Value::Share(share) => Some(share),
        Value::Count(count) => Some(count as f64),
        Value::Dollars(dollars) => Some(dollars.in_dollars()),
        Value::Seconds(seconds) => Some(seconds),
        _ => None,
    }
}

/// The cells of these rows, and how wide each column is.
fn numbers(
    report: &Report,
    rows: &[&Row],
    columns: &[&Headline],
) -> (Vec<Vec<String>>, Vec<usize>) {
    let mut cells = vec![Vec::new(); rows.len()];
    let mut widths = Vec::new();
    for column in columns {
        // A heading ends where the numbers do, in front of the star.
        let [above, below] = column.heading.map(layout::width);
        let mut width = above.max(below) + 1;
        for (row, cells) in rows.iter().zip(&mut cells) {
            let text = cell(report, row, column);
            width = width.max(layout::width(&text));
            cells.push(text);
        }
        widths.push(width);
    }
    (cells, widths)
}

/// The room that columns of these widths take, with a blank in front of each.
fn taken(widths: &[usize]) -> usize {
    widths.iter().map(|width| width + 1).sum()
}

/// The most rows, lost facts and lines of the verdict.
pub(super) type Room = [usize; 3];

/// Adds a block to the lines of a screen, after an empty line; nothing where there is none.
pub(super) fn add(out: &mut Vec<String>, block: Vec<String>) {
    if !block.is_empty() {
        out.push(String::new());
        out.extend(block);
    }
}

impl Terminal {
    /// Lays the results of a run out on one screen of at most [`LINES`] lines.
    pub fn screen(self, report: &Report, options: ScreenOptions) -> String {
        let rooms: [Room; 6] = [
            [ROWS, 3, 14],
            [ROWS, 2, 12],
            [ROWS, 1, 10],
            [8, 1, 8],
            [6, 0, 7],
            [5, 0, 5],
        ];
        let mut lines = Vec::new();
        for room in rooms {
            lines = match &report.subject {
                Subject::Comparison(compared) => self.compared(report, compared, room),
                Subject::Run | Subject::Sweep(_) => self.lines_of(report, options, room),
            };
            if lines.len() <= LINES {
                break;
            }
        }
        lines.truncate(LINES);
        lines.join("\n") + "\n"
    }

    fn lines_of(self, report: &Report, options: ScreenOptions, room: Room) -> Vec<String> {
        let [rows, lost, sentences] = room;
        let mut out = vec![self.heading(&title(report, options.took))];
        let totals = wrap(&report.totals, self.columns()).into_iter();
        out.extend(totals.filter(|line| !line.is_empty()));
        add(&mut out, self.notices(report));
        add(&mut out, self.rows(report, options.sort, rows));
        let said = report.verdict.as_ref().map(Verdict::lines);
        add(&mut out, self.verdict(&said.unwrap_or_default(), sentences));
        add(&mut out, self.lost(report, lost));
        let more = "-o report.html: pictures, timelines, each lost fact; --tables: all tables";
        add(
            &mut out,
            self.ends(&[("Trust", &report.trust), ("More", more)]),
        );
        if !report.next.is_empty() {
            let mut lines = layout::command("Next", &report.next, self.columns());
            if let Some(first) = lines.first_mut() {
                *first = first.replacen("Next", &self.paint(Style::Heading, "Next"), 1);
            }
            out.extend(lines);
        }
        out
    }

    /// A heading, cut to one line.
    pub(super) fn heading(self, text: &str) -> String {
        self.paint(Style::Heading, &escape::short(text, self.columns()))
    }

    /// The last block: paragraphs, each beside its heading.
    pub(super) fn ends(self, paragraphs: &[(&str, &str)]) -> Vec<String> {
        let paragraphs = paragraphs.iter().filter(|(_, text)| !text.is_empty());
        let lines =
            |(heading, text): &(&str, &str)| self.hanging(&format!("{heading:<5}"), text, 7);
        paragraphs.flat_map(lines).collect()
    }

    /// A fact that was lost, question and value, and below it where and by what.
    pub(super) fn fact(self, question: &str, value: &str, fate: &str) -> [String; 2] {
        let room = self.columns().saturating_sub(INDENT.len());
        let value = escape::short(value, room / 3);
        let gap = usize::from(!value.is_empty()) * 2;
        let question = escape::short(question, room.saturating_sub(layout::width(&value) + gap));
        let gap = " ".repeat(gap);
        let room = room.saturating_sub(INDENT.len());
        let fate = format!("{INDENT}{INDENT}{}", escape::short(fate, room));
        [
            format!("{INDENT}{question}{gap}{value}"),
            self.paint(Style::Dim, &fate),
        ]
    }

    /// A label, then text whose further lines stand `indent` columns deep.
    pub(super) fn hanging(self, label: &str, text: &str, indent: usize) -> Vec<String> {
        let gap = if label.ends_with(':') { " " } else { "  " };
        let first = layout::width(label) + gap.len();
        let text = escape::plain(text);
        let limit = self.columns();
        // The first line is shorter by what its label is longer than the indent.
        let lead = "\u{a0}".repeat(first.saturating_sub(indent));
        let wrapped = wrap(&format!("{lead}{text}"), limit.saturating_sub(indent));
        let wrapped = wrapped.into_iter().enumerate().map(|(at, line)| {
            if at == 0 {
                let rest = line.trim_start_matches('\u{a0}');
                format!("{}{gap}{rest}", self.paint(Style::Heading, label))
            } else {
                format!("{}{line}", " ".repeat(indent))
            }
        });
        wrapped.collect()
    }

    pub(super) fn notices(self, report: &Report) -> Vec<String> {
        let mut lines = Vec::new();
        let mut left_out = 0;
        let urgent = report.banners.iter();
        for banner in urgent.filter(|it| it.level != BannerLevel::Note) {
            let (style, sign) = banner.level.sign();
            if lines.len() >= NOTICES {
                left_out += 1;
                continue;
            }
            let indent = sign.len();
            let text = escape::plain(&banner.text);
            let mut wrapped = wrap(&text, self.columns() - indent);
            let is_cut = wrapped.len() > 2;
            wrapped.truncate(2);
            for (at, line) in wrapped.iter().enumerate() {
                let lead = if at == 0 { sign } else { "   " };
                let more = if is_cut && at == 1 { "…" } else { "" };
                let lead = &lead[..indent];
                lines.push(self.paint(style, &format!("{lead}{}{more}", line.trim_end())));
            }
        }
        if left_out > 0 {
            let more = display::many(left_out, "more notice", "more notices");
            lines.push(self.paint(Style::Dim, &format!("… and {more}: --tables")));
        }
        lines
    }

    fn rows(self, report: &Report, sort: SortBy, most: usize) -> Vec<String> {
        let columns = columns(report, self.columns());
        let rows = sorted(report, sort);
        if rows.is_empty() {
            return Vec::new();
        }
        let (shown, left_out) = chosen(report, &columns, rows, most);
        let shown = with_controls(report, shown);
        let (cells, widths) = numbers(report, &shown, &columns);
        let labels: Vec<String> = shown.iter().map(|row| row_label(report, row)).collect();
        let room = self.columns();
        let room = room.saturating_sub(taken(&widths) + INDENT.len());
        let names = labels.iter().map(|name| layout::width(name));
        let name = names.max().unwrap_or(0).max("strategy".len());
        let name = name.min(LONGEST_NAME).min(room.max(SHORTEST_NAME));
        let mut out = Vec::new();
        for line in 0..2 {
            let first = if line == 1 { "strategy" } else { "" };
            let heads = columns.iter().zip(&widths);
            let heads =
                heads.map(|(it, width)| format!(" {:>w$} ", it.heading[line], w = width - 1));
            let text = format!("{INDENT}{first:<name$}{}", heads.collect::<String>());
            out.push(self.paint(Style::Heading, text.trim_end()));
        }
        for ((row, label), cells) in shown.iter().zip(&labels).zip(&cells) {
            let shown_name = fit(label, name);
            let pad = layout::blanks(&shown_name, name);
            let padded = cells.iter().zip(&widths).map(|(cell, width)| {
                let pad = layout::blanks(cell, *width);
                let style = if cell.ends_with('*') {
                    Style::Best
                } else {
                    Style::Plain
                };
                format!(" {pad}{}", self.paint(style, cell))
            });
            let why = not_ranked(row);
            let has_numbers = is_measured(report, row, "bill_saved") && row.is_broken();
            let rest = match &why {
                Some(why) if !has_numbers => {
                    let solved = columns
                        .iter()
                        .take_while(|it| it.column == headline::SOLVED);
                    let known: String = padded.take(solved.count()).collect();
                    let taken = INDENT.len() + name + layout::width(&known) + 2;
                    let room = self.columns().saturating_sub(taken);
                    format!("{known}  {}", escape::short(why, room))
                }
                Some(_) | None => padded.collect(),
            };
            let line = format!("{INDENT}{shown_name}{pad}{rest}");
            out.push(line.trim_end().to_owned());
            // What it did in the sessions that ended counts, and it takes part in no ranking.
            let room = self.columns() - 2 * INDENT.len();
            let hollow = why
                .filter(|_| has_numbers)
                .map(|why| escape::short(&why, room));
            out.extend(hollow.map(|why| self.paint(Style::Dim, &format!("{INDENT}{INDENT}{why}"))));
        }
        if left_out > 0 {
            let more = display::many(left_out, "more strategy", "more strategies");
            let text = format!("{INDENT}… and {more}: --tables=comparison");
            out.push(self.paint(Style::Dim, &text));
        }
        out.extend(self.also(report));
        let legend = "shares in %, of full history's bill; ± 95 %; * best, or not shown to differ";
        let legend = wrap(legend, self.columns() - INDENT.len()).into_iter();
        out.extend(legend.map(|line| self.paint(Style::Dim, &format!("{INDENT}{line}"))));
        out
    }

    /// Tokens, calls and waiting of the strategy that the verdict names, where they have no columns.
    fn also(self, report: &Report) -> Option<String> {
        let named = report.verdict.as_ref()?.strategy.as_deref()?;
        let row = report.compared().iter().find(|row| row.name == named)?;
        let value = |column: &str| headline::cell(report, row, column).map(|cell| &cell.value);
        let mut parts = Vec::new();
        if let Some(Value::Share(saved)) = value("tokens") {
            let sign = if *saved > 0.0 { "−" } else { "+" };
            parts.push(format!("tokens {sign}{} %", (saved.abs() * 100.0).round()));
        }
        if let Some(Value::Count(calls)) = value("calls") {
            parts.push(match calls {
                0 => "no calls of its own".to_owned(),
                _ => format!("{calls} calls of its own"),
            });
        }
        if let Some(waiting @ Value::Seconds(_)) = value("waiting") {
            parts.push(format!("{} of waiting", display::value(waiting)));
        }
        let text = format!("{INDENT}also: {} ({})", parts.join(", "), label(named));
        let is_shown = self.columns() < WIDE && !parts.is_empty();
        is_shown.then(|| self.paint(Style::Dim, &escape::short(&text, self.columns())))
    }

    /// The verdict in at most so many lines, and its heading.
    pub(super) fn verdict(self, said: &[Line], most: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for line in said {
            let text = escape::plain(&line.text);
            let wrapped = wrap(&text, self.columns() - HANGING)
                .into_iter()
                .enumerate();
            lines.extend(wrapped.map(|(at, text)| match at {
                0 => format!("{INDENT}{text}"),
                _ => format!("{}{text}", " ".repeat(HANGING)),
            }));
        }
        if lines.len() > most {
            lines.truncate(most);
            if let Some(last) = lines.last_mut() {
                let kept = layout::width(last).min(self.columns() - 2);
                *last = format!("{} …", fit(last, kept).trim_end());
            }
        }
        self.titled("Verdict", lines)
    }

    /// Lines below a heading; nothing where there is none.
    pub(super) fn titled(self, title: &str, mut lines: Vec<String>) -> Vec<String> {
        if !lines.is_empty() {
            lines.insert(0, self.paint(Style::Heading, title));
        }
        lines
    }

    /// Lost facts, first those that tell strategies apart: question and value, then how many lose each, and
    /// where.
    fn lost(self, report: &Report, most: usize) -> Vec<String> {
        let Some(section) = report.section("lost") else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        let mut title = "Lost by some strategies, kept by others";
        for row in section.table.rows.iter().take(most) {
            let text = |column: &str| {
                let cell = section.table.cell(row, column);
                cell.map_or_else(String::new, display::cell)
            };
            let lost = section.table.cell(row, "lost").map(|cell| &cell.value);
            if matches!(lost, Some(Value::Fraction(lost, all)) if lost == all) {
                title = "Lost facts of high importance";
            }
            let fate = format!("{} lose it, {}", text("lost"), text("stage"));
            let fate = match text("kept") {
                kept if kept.is_empty() => fate,
                kept => format!("{fate}; kept by {kept}"),
            };
            let fate = match section
                .table
                .cell(row, "changed_to")
                .map(|cell| &cell.value)
            {
                Some(Value::Text(said)) => {
                    format!("{fate}; changed to \"{}\"", escape::plain(said))
                }
                _ => fate,
            };
            let fate = format!("{fate}, in {}", escape::plain(&text("session")));
            lines.extend(self.fact(&row.name, &text("value"), &fate));
        }
        self.titled(title, lines)
    }
}

/// `quick-start: 12 sessions, 8 strategies, window 80k, offline, 4.6 s`.
fn title(report: &Report, took: Option<Duration>) -> String {
    let Some(run) = &report.run else {
        return report.title.clone();
    };
    let models = [
        Some(&run.summariser),
        run.reader.as_ref(),
        run.judge.as_ref(),
    ];
    let is_live = models.iter().flatten().any(|it| it.kind == ModelKind::Live);
    let coverage = report.coverage;
    let cells = (coverage.outstanding > 0)
        .then(|| format!("{} of {} cells", coverage.recorded, coverage.planned));
    let window = match run.window.trim_end_matches(" tokens").parse::<u64>() {
        Ok(tokens) => display::tokens(tokens).replace(".0", ""),
        Err(_) => run.window.clone(),
    };
    let parts = [
        Some(display::many(run.sessions, "session", "sessions")),
        Some(display::many(run.strategies, "strategy", "strategies")),
        (run.repeats > 1).then(|| format!("{} repeats", run.repeats)),
        cells,
        Some(format!("window {window}")),
        (!is_live).then(|| "offline".to_owned()),
        took.map(|took| format!("{:.1} s", took.as_secs_f64())),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{}: {}", run.scenario, parts.join(", "))
}

/// The rows of the strategies, the best first; those that take part in no ranking come last.
fn sorted(report: &Report, sort: SortBy) -> Vec<&Row> {
    let mut rows: Vec<&Row> = report.strategies().collect();
    let metric = match sort {
        SortBy::Bill => Some("bill_saved"),
        SortBy::Tokens => Some("tokens"),
        SortBy::Facts => Some("facts"),
        SortBy::Answers => Some("answers"),
        SortBy::Actions => Some("actions"),
        SortBy::Calls => Some("calls"),
        SortBy::Waiting => Some("waiting"),
        SortBy::Name => None,
    };
    let sign = match sort {
        SortBy::Calls | SortBy::Waiting => -1.0,
        _ => 1.0,
    };
    let key = |row: &Row| {
        let value = metric.and_then(|metric| points(report, row, metric));
        value.map_or(f64::NEG_INFINITY, |value| sign * value)
    };
    rows.sort_by(|left, right| {
        let last = |row: &Row| not_ranked(row).is_some();
        let by_value = key(right).total_cmp(&key(left));
        let name = |row: &Row| (sort == SortBy::Name).then(|| row.name.clone());
        let by_name = name(left).cmp(&name(right));
        last(left).cmp(&last(right)).then(by_value).then(by_name)
    });
    rows
}

/// All rows, or of too many the front of cost and facts, the controls, and the first; with the number
/// of those left out.
fn chosen<'a>(
    report: &Report,
    columns: &[&Headline],
    rows: Vec<&'a Row>,
    most: usize,
) -> (Vec<&'a Row>, usize) {
    if rows.len() <= most {
        return (rows, 0);
    }
    let second = kept(columns).unwrap_or("actions");
    let objectives = rows.iter().map(|row| {
        ["bill_saved", second].map(|metric| {
            let value = points(report, row, metric).filter(|_| not_ranked(row).is_none());
            value.unwrap_or(f64::NAN)
        })
    });
    let objectives: Vec<pareto::Point> = objectives.collect();
    let front = pareto::front(&objectives);
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|at| (!(front[*at] || is_control(&rows[*at].name)), *at));
    order.truncate(most);
    order.sort_unstable();
    let left_out = rows.len() - order.len();
    (order.into_iter().map(|at| rows[at]).collect(), left_out)
}

/// Why a row shows no numbers.
fn not_ranked(row: &Row) -> Option<String> {
    let mut why = None;
    let mut elsewhere = String::new();
    for mark in &row.marks {
        match mark {
            // A strategy that never fires and dies is broken, whatever mark comes first.
            RowMark::Broken(Some(breakage)) => {
                return Some(format!("✗ {}", breakage.in_words(" sessions", "call ")));
            }
            RowMark::NeverFired => why = Some("changed nothing"),
            RowMark::NoCells => why = Some("no cells yet"),
            RowMark::NotMeasurable => why = Some("not measurable on these sessions"),
            RowMark::NotMeasurableIn { .. } => elsewhere = format!(", {mark}"),
            RowMark::Broken(None) | RowMark::BrokenSetting(_) | RowMark::Note(_) => {}
        }
    }
    why.map(|why| format!("– {why}{elsewhere}"))
}

/// A name cut to a width.
fn fit(name: &str, width: usize) -> String {
    if layout::width(name) <= width {
        return name.to_owned();
    }
    let mut kept = String::new();
    for c in name.chars() {
        if layout::width(&kept) + 2 > width {
            break;
        }
        kept.push(c);
    }
    kept + "…"
}

/// `25 ±5*`: whole points, half of the interval, and the star of the best.
fn cell(report: &Report, row: &Row, column: &Headline) -> String {
    let section = report.section("comparison");
    let Some(cell) = section.and_then(|it| it.table.cell(row, column.column)) else {
        return String::new();
    };
    let star = if cell.best { '*' } else { ' ' };
    let (value, half) = short_value(cell);
    let half = half.map(|half| format!(" {half}"));
    format!("{value}{}{star}", half.unwrap_or_default())
}
