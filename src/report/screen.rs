//! The results of a run on one screen: what it costs, the strategies in four columns, the verdict, what was
//! lost, how far to trust it, and what to do next.

use std::iter;
use std::time::Duration;

use crate::compare::advice::Verdict;
use crate::compare::{NoteCode, VerdictLine};
use crate::naming::short_name;
use crate::record::words::ModelKind;
use crate::report::grid::{GridRow, INDENT};
use crate::report::headline::{
    self, HEADLINES, Headline, OnScreen, WIDE, is_control, kept, row_label, short_value,
    with_controls,
};
use crate::report::layout::{self, wrap, wrap_after};
use crate::report::terminal::{Style, Terminal, add};
use crate::report::{
    BannerLevel, Report, ReportData, Row, RowMark, Section, Value, display, escape,
};
use crate::stats::pareto;

mod sort;

pub use sort::SortBy;
use sort::sorted;

/// Lines of a screen at most.
pub const LINES: usize = 40;

/// Strategies that are shown one by one; of more, the front, the controls and a count.
const ROWS: usize = 10;

/// Lines of notices above the table at most.
const NOTICES: usize = 4;

/// How deep the further lines of a sentence stand.
const HANGING: usize = 2;

/// How deep text stands beside its label.
const BESIDE: usize = 7;

/// The order and the time that a screen shows.
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
        // Without prices, and without billed tokens, it is all that is known of the bill.
        OnScreen::Wide => {
            let billed = is_known(report, "bill") || is_known(report, "billed_output");
            width >= WIDE || column.column == "bill_saved" && !billed
        }
        OnScreen::Never => false,
    });
    columns.retain(|column| is_known(report, column.column));
    headline::keep_one(&mut columns);
    columns
}

fn is_known(report: &Report, column: &str) -> bool {
    report.strategies().any(|row| report.is_measured(row, column))
}

/// The most rows, lost facts, lines of the verdict, and lines on how far to trust it.
pub(super) type Room = [usize; 4];

impl Terminal {
    /// Lays the results of a run out on one screen of at most [`LINES`] lines.
    pub fn screen(self, report: &Report, options: ScreenOptions) -> String {
        let rooms: [Room; 7] = [
            [ROWS, 3, 16, 12],
            [ROWS, 2, 16, 8],
            [ROWS, 1, 14, 6],
            [ROWS, 1, 12, 5],
            [8, 0, 11, 5],
            [6, 0, 9, 4],
            [5, 0, 5, 3],
        ];
        let mut lines = Vec::new();
        for room in rooms {
            lines = match &report.subject {
                ReportData::Comparison(compared) => self.compared(report, compared, room),
                ReportData::Run | ReportData::Sweep(_) => self.lines_of(report, options, room),
            };
            if lines.len() <= LINES {
                break;
            }
        }
        lines.truncate(LINES);
        lines.join("\n") + "\n"
    }

    fn lines_of(self, report: &Report, options: ScreenOptions, room: Room) -> Vec<String> {
        let [rows, lost, sentences, trusted] = room;
        let mut out = self.text(Style::Heading, "", &report.totals);
        out.extend(self.text(Style::Dim, "", &about(report, options.took)));
        add(&mut out, self.notices(report));
        add(&mut out, self.rows(report, options.sort, rows));
        add(&mut out, self.verdict(&self.sentences(report), sentences));
        let mut ends = self.lost(report, lost);
        let sure = self.beside("Sure?", &trust(report));
        ends.extend(self.at_most(sure, trusted));
        ends.extend(self.beside("More", MORE));
        ends.extend(self.command("Next", &report.next, &report.next_why));
        add(&mut out, ends);
        out
    }

    /// A heading, cut to one line.
    pub(super) fn heading(self, text: &str) -> String {
        self.paint(Style::Heading, &escape::short(text, self.columns()))
    }

    /// A paragraph beside its label; nothing where there is none.
    pub(super) fn beside(self, label: &str, text: &str) -> Vec<String> {
        if text.is_empty() {
            return Vec::new();
        }
        self.paragraph(&format!("{label:<BESIDE$}"), text, BESIDE)
    }

    /// Text behind a label, with its further lines `indent` columns deep.
    pub(super) fn paragraph(self, label: &str, text: &str, indent: usize) -> Vec<String> {
        let [first, rest] =
            [layout::width(label), indent].map(|taken| self.columns().saturating_sub(taken));
        let lines = wrap_after(&escape::plain(text), first, rest);
        self.behind(label, lines, indent)
    }

    /// Lines behind a label, all but the first `indent` columns deep.
    fn behind(self, label: &str, lines: Vec<String>, indent: usize) -> Vec<String> {
        let label = self.paint(Style::Heading, label);
        let leads = iter::once(label).chain(iter::repeat(" ".repeat(indent)));
        leads.zip(lines).map(|(lead, line)| lead + &line).collect()
    }

    /// A command beside its label, and what it is for where there is room. It breaks between its words, so that
    /// it can be copied.
    pub(super) fn command(self, label: &str, words: &[String], why: &str) -> Vec<String> {
        if words.is_empty() {
            return Vec::new();
        }
        let words: Vec<String> = words.iter().map(|word| escape::plain(word)).collect();
        let mut lines = vec![String::new()];
        for word in &words {
            let Some(line) = lines.last_mut() else { break };
            // A blank, and ` \\` at the end of a line.
            if line.is_empty() {
                line.push_str(word);
            } else if BESIDE + layout::width(line) + layout::width(word) + 3 > self.columns() {
                line.push_str(" \\");
                lines.push(format!("  {word}"));
            } else {
                line.extend([" ", word]);
            }
        }
        if let [line] = lines.as_mut_slice()
            && !why.is_empty()
            && BESIDE + layout::width(line) + 4 + layout::width(why) <= self.columns()
        {
            // A shell takes the line as it stands.
            line.push_str(&self.paint(Style::Dim, &format!("  # {why}")));
        }
        self.behind(&format!("{label:<BESIDE$}"), lines, BESIDE)
    }

    /// A fact that was lost, question and value, and below it where and by what.
    pub(super) fn fact(self, question: &str, value: &str, fate: &str) -> [String; 2] {
        let room = self.columns().saturating_sub(BESIDE);
        let value = escape::short(value, room / 3);
        let gap = usize::from(!value.is_empty()) * 2;
        let question = escape::short(question, room.saturating_sub(layout::width(&value) + gap));
        let gap = " ".repeat(gap);
        let fate = escape::short(fate, room);
        let indent = " ".repeat(BESIDE);
        [
            format!("{indent}{question}{gap}{value}"),
            format!("{indent}{}", self.paint(Style::Dim, &fate)),
        ]
    }

    pub(super) fn notices(self, report: &Report) -> Vec<String> {
        let mut lines = Vec::new();
        let mut left_out = 0;
        for banner in report.banners.iter().filter(|banner| banner.level != BannerLevel::Note) {
            let (style, sign) = banner.level.sign();
            if lines.len() >= NOTICES {
                left_out += 1;
                continue;
            }
            let room = self.columns() - sign.len();
            let mut wrapped = wrap(&escape::plain(&banner.in_full()), room);
            if let [_, second, _, ..] = wrapped.as_mut_slice() {
                let code = format!(" [{}]", banner.code);
                let start = layout::cut(&format!("{second} …"), room - code.len());
                *second = start + &code;
                wrapped.truncate(2);
            }
            lines.extend(self.hanging(style, sign, wrapped));
        }
        if left_out > 0 {
            let more = display::many(left_out, "more notice", "more notices");
            lines.push(self.paint(Style::Dim, &format!("… and {more}: --tables")));
        }
        lines
    }

    fn rows(self, report: &Report, sort: SortBy, most: usize) -> Vec<String> {
        let headlines = columns(report, self.columns());
        let rows = sorted(report, sort);
        if rows.is_empty() {
            return Vec::new();
        }
        let (shown, left_out) = chosen(report, &headlines, rows, most);
        let shown = with_controls(report, shown);
        let headings = headlines.iter().map(|headline| match headline.column {
            "bill" if report.is_recorded && report.live.is_none() => "your bill",
            _ => headline.words(report),
        });
        let mut grid = vec![GridRow::of("", headings.map(str::to_owned))];
        grid.extend(shown.iter().map(|row| grid_row(report, row, &headlines)));
        let mut out = self.grid(&grid);
        if left_out > 0 {
            let more = display::many(left_out, "more strategy", "more strategies");
            let text = format!("{INDENT}… and {more}: --tables=comparison");
            out.push(self.paint(Style::Dim, &text));
        }
        out
    }

    /// The verdict, and behind its first sentence what has no column at this width.
    fn sentences(self, report: &Report) -> Vec<VerdictLine> {
        let mut said = report.verdict.as_ref().map(Verdict::lines).unwrap_or_default();
        if let Some(text) = also(report).filter(|_| self.columns() < WIDE) {
            let also = VerdictLine { text, code: None };
            said.insert(said.len().min(1), also);
        }
        said
    }

    /// Sentences in at most so many lines.
    pub(super) fn verdict(self, said: &[VerdictLine], most: usize) -> Vec<String> {
        let paragraphs = said.iter().map(|line| {
            let text = line.in_full();
            let (start, rest) = first_words(&text);
            let mut lines = self.paragraph(start, rest, HANGING);
            if let (Some(code), Some(last)) = (line.code, lines.last_mut()) {
                let code = format!("[{code}]");
                *last = last.replace(&code, &self.paint(Style::Dim, &code));
            }
            lines
        });
        self.at_most(paragraphs.flatten().collect(), most)
    }

    /// So many lines at most; of more the last one ends with `…`.
    fn at_most(self, mut lines: Vec<String>, most: usize) -> Vec<String> {
        if lines.len() > most {
            lines.truncate(most);
            if let Some(last) = lines.last_mut() {
                *last = layout::cut(&format!("{last} …"), self.columns());
            }
        }
        lines
    }

    /// Lost facts, first those that tell strategies apart: question and value, then how many lose each, and
    /// where.
    fn lost(self, report: &Report, most: usize) -> Vec<String> {
        let Some(Section { table, .. }) = report.section("lost") else {
            return Vec::new();
        };
        let facts = table.rows.iter().take(most).flat_map(|row| {
            let [value, lost, stage, kept, session] =
                ["value", "lost", "stage", "kept", "session"].map(|column| table.text(row, column));
            let kept = if kept.is_empty() { kept } else { format!("; kept by {kept}") };
            let changed = match table.cell(row, "changed_to").map(|cell| &cell.value) {
                Some(Value::Text(said)) => format!("; changed to \"{said}\""),
                _ => String::new(),
            };
            let fate = format!("{lost} lose it, {stage}{kept}{changed}, in {session}");
            self.fact(&row.name, &value, &fate)
        });
        self.labelled("Lost", facts.collect())
    }

    /// Lines with a label in front of the first.
    pub(super) fn labelled(self, label: &str, mut lines: Vec<String>) -> Vec<String> {
        if let Some(first) = lines.first_mut() {
            let label = self.paint(Style::Heading, label) + &layout::blanks(label, BESIDE);
            *first = format!("{label}{}", first.trim_start());
        }
        lines
    }
}

/// Where the rest is.
const MORE: &str = "-o report.html: pictures, lost facts; --tables; proctor explain V1: codes";

/// How far to trust the numbers, and how they are written.
fn trust(report: &Report) -> String {
    let shares = " Shares are in %, with ± half of a 95 % interval over sessions.";
    let rows = report.strategies();
    let mut cells = rows.filter_map(|row| report.cell(row, "actions"));
    let mut trust = report.trust.clone();
    if cells.any(|cell| cell.interval.is_some()) && !trust.is_empty() {
        trust += shares;
    }
    trust
}

/// The words that a sentence begins with, and the rest: `Keep what you have. `, `Avoid codex: `.
fn first_words(text: &str) -> (&str, &str) {
    let ends = [". ", ": "].map(|sign| text.find(sign).map(|at| at + sign.len()));
    let end = ends.into_iter().flatten().min().unwrap_or(0);
    text.split_at(if end <= LONGEST_START { end } else { 0 })
}

/// Longer beginnings of sentences are text like the rest.
const LONGEST_START: usize = 40;

/// Tokens, calls and waiting of the strategy that the verdict names.
fn also(report: &Report) -> Option<String> {
    let named = report.verdict.as_ref()?.strategy.as_deref()?;
    let row = report.compared().iter().find(|row| row.name == named)?;
    let [tokens, calls, waiting] = ["tokens", "calls", "waiting"]
        .map(|column| report.cell(row, column).map(|cell| &cell.value));
    let mut parts = Vec::new();
    if let Some(Value::Share(saved)) = tokens {
        let sign = if *saved > 0.0 { "−" } else { "+" };
        parts.push(match (saved.abs() * 100.0).round() {
            0.0 => "as many tokens".to_owned(),
            points => format!("tokens {sign}{points} %"),
        });
        // The bill is compared with what the agent did.
        let recorded = report.compared().iter().any(|row| row.name == "recorded");
        if recorded && let Some(tokens) = parts.last_mut() {
            tokens.push_str(" against full history");
        }
    }
    if let Some(Value::Count(calls)) = calls {
        parts.push(match calls {
            0 => "no calls of its own".to_owned(),
            1 => "1 call of its own".to_owned(),
            calls => format!("{calls} calls of its own"),
        });
    }
    if let Some(waiting @ Value::Seconds(_)) = waiting {
        parts.push(format!("{} of waiting", display::value(waiting)));
    }
    let name = short_name(named);
    display::listed(parts, ", ").map(|parts| format!("Also: {parts} ({name})."))
}

/// Why the values of a row are of something else than those of the others.
fn apart(row: &Row) -> Option<String> {
    row.marks.iter().find_map(|mark| match mark {
        RowMark::OwnWindow { .. } => Some(NoteCode::OwnWindow.behind("in its own window")),
        RowMark::NotMeasurableIn { some, sessions } => {
            Some(format!("in {} of {sessions}", sessions - some))
        }
        _ => None,
    })
}

/// A row of the table: its values, or in their place why it has none.
fn grid_row(report: &Report, row: &Row, columns: &[&Headline]) -> GridRow {
    let why = not_ranked(row);
    // A strategy that ended early in some sessions has numbers, and takes part in no ranking.
    let numbers = why.is_none() || row.is_broken() && report.is_measured(row, "bill_saved");
    let all = columns.iter();
    let known = all.take_while(|column| numbers || column.column == headline::SOLVED);
    let cells = known.map(|column| cell(report, row, column)).collect();
    let (end, style, below) = match why {
        Some(why) if numbers => (String::new(), Style::Plain, why),
        Some(why) => (why, Style::Plain, String::new()),
        None if headline::is_avoided(report, row) => {
            ("avoid".to_owned(), Style::Caution, String::new())
        }
        None => (apart(row).unwrap_or_default(), Style::Dim, String::new()),
    };
    GridRow { name: row_label(report, row), cells, end, style, below }
}

/// The name of a run of recordings without a scenario, which says nothing.
const UNNAMED: &str = "sessions";

/// `quick-start: window 80k, at the prices of claude-sonnet-5-5, offline, 4.6 s`.
fn about(report: &Report, took: Option<Duration>) -> String {
    let Some(run) = &report.run else {
        return report.title.clone();
    };
    let mut graders = run.reader.iter().chain(&run.judge);
    let live = report.live.is_some()
        || run.summariser.kind == ModelKind::Live
        || graders.any(|one| one.kind == ModelKind::Live);
    let coverage = report.coverage;
    let cells = (coverage.outstanding > 0)
        .then(|| format!("{} of {} cells", coverage.recorded, coverage.planned));
    let window = match run.window.trim_end_matches(" tokens").parse::<u64>() {
        Ok(tokens) => format!("window {}", display::tokens(tokens).replace(".0", "")),
        Err(_) if run.window == "native" => "each in its own window".to_owned(),
        Err(_) => format!("window {}", run.window),
    };
    let parts = [
        cells,
        Some(window),
        (run.repeats > 1).then(|| format!("{} repeats", run.repeats)),
        (!report.priced_as.is_empty()).then(|| format!("at the prices of {}", report.priced_as)),
        (!live).then(|| "offline".to_owned()),
        took.map(|took| format!("{:.1} s", took.as_secs_f64())),
    ];
    let parts = display::joined(parts.into_iter().flatten(), ", ");
    match run.scenario.as_str() {
        UNNAMED => parts,
        name => format!("{name}: {parts}"),
    }
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
            report.number(row, metric).filter(|_| not_ranked(row).is_none()).unwrap_or(f64::NAN)
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
                let why = breakage.in_words(" sessions", "call ");
                return Some(format!("✗ {why} [{}]", NoteCode::Broken));
            }
            RowMark::NeverFired => why = Some(("changed nothing", NoteCode::NeverFired)),
            RowMark::NoCells => why = Some(("no cells yet", NoteCode::Outstanding)),
            RowMark::NotMeasurable => {
                why = Some(("not measurable on these sessions", NoteCode::NotMeasurable));
            }
            RowMark::NotMeasurableIn { .. } => elsewhere = format!(", {mark}"),
            RowMark::Broken(None)
            | RowMark::BrokenSetting(_)
            | RowMark::OwnWindow { .. }
            | RowMark::Note(_) => {}
        }
    }
    why.map(|(why, code)| format!("– {why}{elsewhere} [{code}]"))
}

/// `25 ±5`: whole points, and half of the interval; `3 of 10` of what is counted.
fn cell(report: &Report, row: &Row, column: &Headline) -> String {
    let Some(cell) = report.cell(row, column.column) else {
        return String::new();
    };
    if let Value::Fraction(part, whole) = cell.value {
        return format!("{part} of {whole}");
    }
    let (value, half) = short_value(cell);
    value + &half.map_or_else(String::new, |half| format!(" {half}"))
}
