//! The parts of a comparison that are shown first: its rows, the columns that decide, and short values, in
//! a newcomer's words.

use crate::naming::short_name;
use crate::report::{Cell, Controls, Report, Role, Row, Value, display, escape};

/// A column of the comparison.
pub(super) struct Headline {
    /// Its id.
    pub(super) column: &'static str,
    /// Its heading.
    pub(super) heading: &'static str,
    /// Where it is shown besides Markdown and the page.
    pub(super) screen: OnScreen,
}

/// Whether a column is on a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnScreen {
    /// At every width.
    Always,
    /// From [`WIDE`] columns on.
    Wide,
    /// Never.
    Never,
}

/// From this width on a screen shows more columns, and else a line about the strategy that its verdict names.
pub(super) const WIDE: usize = 100;

/// The two measures of facts kept: answers of a model, and string search. A screen shows the first one that
/// was measured.
const KEPT: [&str; 2] = ["answers", "facts"];

/// Tasks that agents solved: known of strategies that are not ranked, too.
pub(super) const SOLVED: &str = "tasks_solved";

/// All of them, in order.
pub(super) const HEADLINES: [Headline; 18] = [
    headline(SOLVED, "tasks solved", OnScreen::Always),
    headline("completion", "completed", OnScreen::Never),
    headline("bill", "bill", OnScreen::Always),
    headline("billed_uncached", "uncached", OnScreen::Always),
    headline("billed_read", "read", OnScreen::Always),
    headline("billed_written", "written", OnScreen::Always),
    headline("billed_output", "output", OnScreen::Always),
    headline("bill_saved", "bill saved", OnScreen::Wide),
    headline("bill_modelled", "modelled", OnScreen::Always),
    headline("bill_saved_edge", "bill saved, edge", OnScreen::Never),
    headline(KEPT[0], "answers", OnScreen::Always),
    headline(KEPT[1], "facts", OnScreen::Always),
    headline("plumbing", "plumbing", OnScreen::Always),
    headline("actions", "actions", OnScreen::Always),
    headline("fired", "fired", OnScreen::Always),
    headline("tokens", "tokens saved", OnScreen::Wide),
    headline("calls", "calls", OnScreen::Wide),
    headline("waiting", "waiting", OnScreen::Wide),
];

const fn headline(column: &'static str, heading: &'static str, screen: OnScreen) -> Headline {
    Headline { column, heading, screen }
}

impl Headline {
    /// The heading on one line.
    pub(super) fn words(&self, report: &Report) -> &'static str {
        match (self.column, &report.live) {
            ("bill", Some(live)) if live.is_billed() => "billed",
            ("bill", Some(_)) => "modelled",
            _ => self.heading,
        }
    }
}

/// The rows that are shown first, the best bill first and the broken last; controls of the run, `full` and
/// `empty`, only where one failed.
pub(super) fn rows(report: &Report) -> Vec<&Row> {
    let shows_controls = matches!(report.controls, Controls::Failed { .. });
    let all = report.compared().iter();
    let shown = all.filter(|row| row.role == Role::Strategy || shows_controls);
    let mut rows: Vec<&Row> = shown.collect();
    rows.sort_by(|left, right| {
        let [left_saved, right_saved] =
            [left, right].map(|row| report.number(row, "bill_saved").unwrap_or(f64::NEG_INFINITY));
        left.is_broken().cmp(&right.is_broken()).then(right_saved.total_cmp(&left_saved))
    });
    rows
}

/// The headlines that were measured in at least one of these rows.
pub(super) fn columns(report: &Report, rows: &[&Row]) -> Vec<&'static Headline> {
    let comparison = report.section("comparison");
    let known = HEADLINES.iter().filter(|headline| {
        let id = headline.column;
        let mut columns = comparison.iter().flat_map(|section| &section.table.columns);
        // An edge that no strategy names repeats the usual bill.
        let hidden = columns.any(|one| one.id == id && one.is_for_files());
        !hidden && rows.iter().any(|row| report.is_measured(row, id))
    });
    known.collect()
}

/// Which of the two measures of facts kept is among these headlines: the first one.
pub(super) fn kept(headlines: &[&Headline]) -> Option<&'static str> {
    headlines.iter().map(|column| column.column).find(|id| KEPT.contains(id))
}

/// Leaves out the other one.
pub(super) fn keep_one(headlines: &mut Vec<&'static Headline>) {
    let first = kept(headlines);
    headlines.retain(|column| !KEPT.contains(&column.column) || Some(column.column) == first);
}

/// A value in whole points and half of its interval: `25` and `±5`.
pub(super) fn short_value(cell: &Cell) -> (String, Option<String>) {
    match cell.value {
        Value::Share(share) => {
            let half = display::bounds(cell).map(|(low, high)| (high - low) / 2.0);
            let most = cell.most.map(|most| format!("–{}", display::whole(most)));
            let text = display::whole(share) + &most.unwrap_or_default();
            (text, half.map(|half| format!("±{}", display::whole(half))))
        }
        Value::NotMeasured | Value::NotApplicable => ("–".to_owned(), None),
        ref value => (display::value(value), None),
    }
}

/// The short name of a row's strategy; broken ones are marked.
pub(super) fn title(row: &Row) -> String {
    let broken = if row.is_broken() { ", broken" } else { "" };
    label(&row.name) + broken
}

/// Whether a strategy is a control that was named in the run, `tail@20000`.
pub(super) fn is_control(name: &str) -> bool {
    name.starts_with("tail@") || name.starts_with("random@")
}

/// The short name of a strategy; controls are marked, and the recorded product's own compactions are the agent's.
pub(super) fn label(name: &str) -> String {
    if name == "recorded" {
        return "what your agent did".to_owned();
    }
    let short = short_name(name);
    if is_control(name) { short + " (control)" } else { short }
}

/// Whether the verdict says to avoid a strategy, for another reason than that it breaks.
pub(super) fn is_avoided(report: &Report, row: &Row) -> bool {
    let mut avoided = report.verdict.iter().flat_map(|verdict| &verdict.avoid);
    avoided.any(|one| !one.is_broken && one.strategy == row.name)
}

/// Each control that the verdict quotes, behind its strategy.
pub(super) fn with_controls<'a>(report: &'a Report, rows: Vec<&'a Row>) -> Vec<&'a Row> {
    let mut all = Vec::new();
    for row in rows {
        all.push(row);
        let control = format!("tail@{}", row.name);
        let mut controls = report.quoted_controls.iter();
        all.extend(controls.find(|row| row.name == control));
    }
    all
}

/// The short name of a row; a control that the run added stands indented.
pub(super) fn row_label(report: &Report, row: &Row) -> String {
    let name = escape::plain(&row.name);
    if report.quoted_controls.iter().any(|control| control.name == row.name) {
        "  its control tail@…".to_owned()
    } else {
        label(&name)
    }
}
