//! A comment on a pull request: the verdict, few columns and what was lost, in a bounded size.

use std::collections::BTreeSet;

use serde_json::json;

use super::{
    BannerLevel, Cell, Column, RenderError, Report, ReportData, Section, display, headline,
    markdown, template, view,
};

/// GitHub refuses comments of more than 65,535 characters; other servers count bytes.
pub const MOST_BYTES: usize = 60_000;

/// The last line of a comment that was cut.
const CUT: &str =
    "\n*The rest is left out: a comment holds 60,000 bytes. `-o report.full.md` has everything.*\n";

/// Closes a fold that a cut left open.
const CLOSED: &str = "\n</details>\n";

/// The most strategies that a comment shows.
const MOST_STRATEGIES: usize = 30;

/// The most lost facts that a comment shows, and the columns of their table.
const MOST_LOST: usize = 10;
const LOST: [&str; 6] = ["value", "lost", "kept", "strategy", "stage", "call"];

/// The most changed probes that a comment on a comparison shows.
const MOST_CHANGED: usize = 20;

/// Writes the report as a comment in GitHub Markdown, of at most 60,000 bytes.
pub fn render(report: &Report) -> Result<String, RenderError> {
    let (notes, warnings): (Vec<_>, Vec<_>) =
        report.banners.iter().partition(|one| one.level == BannerLevel::Note);
    let mut page = markdown::head(report, warnings);
    let (comparison, sections) = match &report.subject {
        ReportData::Comparison(_) => (None, of_comparison(report)),
        ReportData::Run | ReportData::Sweep(_) => (
            report.section("comparison").map(|_| view::section(&few_columns(report), &[])),
            report.section("lost").map(lost).into_iter().collect(),
        ),
    };
    page["comparison"] = json!(comparison);
    page["sections"] = sections.iter().map(markdown::section).collect();
    let trust = notes.iter().map(|note| note.in_full());
    page["trust"] = trust.chain(report.lines.iter().cloned()).collect();
    template::render("comment.md.j2", page).map(cut)
}

/// The first lost facts, in few columns.
fn lost(section: &Section) -> Section {
    let columns: Vec<usize> = LOST.iter().filter_map(|id| section.table.position(id)).collect();
    let few = Section {
        table: section.table.pick(&columns),
        notes: Vec::new(),
        most_rows: usize::MAX,
        ..section.clone()
    };
    few.cut(MOST_LOST, |more| format!("… and {more} more"))
}

/// The comparison of a run in the columns of a comment.
fn few_columns(report: &Report) -> Section {
    let mut rows = headline::rows(report);
    let more = rows.len().saturating_sub(MOST_STRATEGIES);
    rows.truncate(MOST_STRATEGIES);
    let columns = headline::columns(report, &rows);
    let shown = rows.into_iter().map(|row| {
        let ids = columns.iter().map(|column| column.column);
        let cells = ids.map(|id| report.cell(row, id).cloned());
        let mut few = row.clone();
        few.cells = cells.map(|cell| cell.unwrap_or(Cell::NOT_MEASURED)).collect();
        few
    });
    let note = "Savings and losses in percent of full history; bold: best, or not shown to differ; ± is half \
                of the 95 % interval over sessions; n is sessions/items.";
    let others = display::many(more, "more strategy", "more strategies");
    let more = (more > 0).then(|| format!("and {others}: `-o report.full.md`"));
    let heads = columns.iter().map(|one| Column::new(one.column, one.words(report), 0));
    let section = Section::new("comparison", shown).more_columns(heads);
    section.with_notes([note.to_owned()].into_iter().chain(more))
}

/// The differences of all comparisons, then, folded, the probes that changed most.
fn of_comparison(report: &Report) -> Vec<Section> {
    let sections = report.sections.iter();
    let differences = sections.clone().filter(|section| section.id == "differences");
    let changed = sections.filter(|section| section.id == "changed_probes").map(|section| {
        let mut shown = section.clone();
        shown.most_rows = 0;
        // A fact has one row, however often it is asked for and scored.
        let mut seen = BTreeSet::new();
        let at = shown.table.position("session");
        shown.table.rows.retain(|row| {
            let session = at.and_then(|at| row.cells.get(at - 1));
            let cells = [row.cells.first(), session].map(|cell| cell.map(display::cell));
            seen.insert((row.name.clone(), cells))
        });
        shown.cut(MOST_CHANGED, |more| format!("… and {more} more"))
    });
    differences.cloned().chain(changed).collect()
}

/// Cuts a text that is longer than a comment may be at the end of a line, and closes an open fold.
fn cut(text: String) -> String {
    if text.len() <= MOST_BYTES {
        return text;
    }
    let room = MOST_BYTES - CUT.len() - CLOSED.len();
    let room = text.floor_char_boundary(room);
    // A line that is too long by itself is cut inside.
    let end = text[..room].rfind('\n').map_or(room, |at| at + 1);
    let mut kept = text[..end].to_owned();
    if kept.matches("<details>").count() > kept.matches("</details>").count() {
        kept.push_str(CLOSED);
    }
    kept + CUT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Role, Row};
    use proptest::prelude::*;

    #[test]
    fn what_is_cut_closes_what_it_opened() {
        let line = "<details>| ein | zwei | drei | ∆ |\n";
        let text = cut(line.to_owned() + &"| ein | zwei | drei | ∆ |\n".repeat(5_000));
        assert!(text.len() <= MOST_BYTES);
        assert!(text.contains("</details>") && text.ends_with(CUT));
        assert_eq!(cut("short\n".to_owned()), "short\n");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn no_names_make_a_comment_too_long(
            title in "\\PC{0,40}", name in "[@_|∆\u{1b}💥]{0,60}", times in 1_usize..3_000,
        ) {
            let rows: Vec<Row> = (0..times).map(|_| Row {
                name: name.repeat(8),
                role: Role::Strategy,
                marks: vec![name.repeat(20).into()],
                ranked: false,
                cells: vec![Cell::text(name.clone())],
            }).collect();
            let section = |id| Section::new(id, rows.clone());
            let report = Report {
                title: title.repeat(times),
                sections: vec![section("comparison"), section("lost")],
                lines: vec![name.clone(); times],
                ..Report::default()
            };
            prop_assert!(render(&report).unwrap().len() <= MOST_BYTES);
        }
    }
}
