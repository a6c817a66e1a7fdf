//! HTML: the whole report as one page that needs nothing but a browser.
//!
//! The page works from a file. It loads nothing, and its Content-Security-Policy allows no script and
//! no style but its own two, by their hashes. Everything that was recorded passes through
//! one function, which escapes it; the probe items are data that the script writes as text.

use crate::metric::survival::is_planted;
use crate::probe::Verdict;
use crate::report::plot::{cache, pareto, savings, tokens};
use crate::report::{
    Artifact, BannerLevel, Cell, Column, ItemOutcome, RenderError, Renderer, Report, Role, Row,
    Section, Value, figure,
};

mod compactions;
mod page;
mod paged;
mod retention;
mod sweep;

use page::Page;
use paged::{Packed, Paged};

pub use sweep::sweep;

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

/// What the signs of the comparison mean.
const LEGEND: &str = "* and green: best, or within its ±, among the strategies that fired and are not broken; \
a row in grey takes part in no ranking. ± is half of the 95 % t interval over sessions, in points, a \
range one that ends at 0 or 100; n is sessions/items.";

/// Sessions whose timeline is part of the page; a picture of any other is one command away.
const TIMELINES: usize = 40;

/// Probe items that are part of the page.
const ITEMS: usize = 20_000;

const EVIDENCE: Paged = Paged {
    id: "items",
    label: "Evidence",
    columns: &[
        "Session",
        "Strategy",
        "Kind",
        "At",
        "Question",
        "Answer",
        "Left in the prompt",
        "Reader said",
        "Verdict",
    ],
    filters: &[("Strategy", 1), ("Session", 0), ("Kind", 2), ("Left", 9)],
    // An answer of a model may be long; its first line is no heading.
    folds_from: 9,
};

/// Sections that have a place of their own, and are not repeated among the tables.
const PLACED: &[&str] = &["comparison", "findings", "metrics"];

/// Writes the report as one self-contained page.
#[derive(Debug, Clone, Copy, Default)]
pub struct Html;

impl Renderer for Html {
    fn format(&self) -> &'static str {
        "html"
    }

    fn render(&self, report: &Report) -> Result<Vec<Artifact>, RenderError> {
        let mut page = Page::new(&report.title, STYLE, SCRIPT);
        head(&mut page, report);
        page.raw("<main id=\"main\">\n");
        banners(&mut page, report);
        comparison(&mut page, report);
        pictures(&mut page, report)?;
        timelines(&mut page, report)?;
        retention::tables(&mut page, report);
        evidence(&mut page, report)?;
        compactions::table(&mut page, report)?;
        violations(&mut page, report);
        tables(&mut page, report);
        method(&mut page, report);
        page.raw("</main>\n");
        Ok(vec![Artifact {
            name: "report.html".to_owned(),
            bytes: page.finish().into_bytes(),
        }])
    }
}

fn head(page: &mut Page, report: &Report) {
    page.raw("<a class=\"skip\" href=\"#main\">Skip to the report</a>\n<header>\n<h1>");
    page.text(&report.title);
    page.raw("</h1>\n");
    for line in report.summary_lines() {
        page.raw("<p class=\"quiet\">");
        page.text(&line);
        page.raw("</p>\n");
    }
    page.raw(
        "<nav aria-label=\"Parts of the report\"><a href=\"#comparison\">Comparison</a> \
         <a href=\"#pictures\">Pictures</a> <a href=\"#timelines\">Timelines</a> \
         <a href=\"#retention\">Retention</a> <a href=\"#evidence\">Evidence</a> \
         <a href=\"#compactions\">Compactions</a> \
         <a href=\"#violations\">Violations</a> <a href=\"#tables\">Tables</a> \
         <a href=\"#method\">Method</a></nav>\n</header>\n",
    );
}

fn banners(page: &mut Page, report: &Report) {
    for banner in &report.banners {
        page.raw(match banner.level {
            BannerLevel::Invalid => "<p class=\"banner invalid\" role=\"alert\">",
            BannerLevel::Warning => "<p class=\"banner warning\">",
            BannerLevel::Note => "<p class=\"banner\">",
        });
        page.prose(&banner.text);
        page.raw("</p>\n");
    }
}

fn heading(page: &mut Page, id: &'static str, title: &str) {
    page.raw("<section id=\"");
    page.raw(id);
    page.raw("\">\n<h2>");
    page.text(title);
    page.raw("</h2>\n");
}

fn comparison(page: &mut Page, report: &Report) {
    heading(page, "comparison", "Comparison");
    if let Some(section) = report.section("comparison") {
        page.paragraph(&section.about);
        page.raw("<p class=\"quiet\">A heading sorts by its column; reference and floor stay first.</p>\n");
        table(page, section, Sorting::ByHeading);
        page.raw("<p class=\"quiet\">");
        page.text(LEGEND);
        page.raw("</p>\n");
        notes(page, section);
    }
    page.raw("</section>\n");
}

/// Whether the headings of a table are buttons that sort it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sorting {
    ByHeading,
    None,
}

fn notes(page: &mut Page, section: &Section) {
    for note in &section.notes {
        page.raw("<p class=\"quiet\">");
        page.prose(note);
        page.raw("</p>\n");
    }
}

fn table(page: &mut Page, section: &Section, sorting: Sorting) {
    page.raw("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"");
    page.text(&section.title);
    page.raw("\"><table");
    if sorting == Sorting::ByHeading {
        page.raw(" class=\"sortable\"");
    }
    page.raw(">\n<thead><tr>");
    let shown = shown(section);
    for (at, column) in section.table.columns.iter().enumerate() {
        if at > 0 && !shown.contains(&(at - 1)) {
            continue;
        }
        let is_text = |row: &Row| {
            let cell = row.cells.get(at.wrapping_sub(1));
            matches!(cell.map(|cell| &cell.value), Some(Value::Text(_)))
        };
        page.raw(if section.table.rows.iter().any(is_text) {
            "<th scope=\"col\" class=\"words\">"
        } else {
            "<th scope=\"col\">"
        });
        if sorting == Sorting::ByHeading {
            page.raw("<button type=\"button\">");
        }
        page.text(&column.label);
        if sorting == Sorting::ByHeading {
            page.raw("</button>");
        }
        page.raw("</th>");
    }
    page.raw("</tr></thead>\n<tbody>\n");
    let body = Body {
        ranks: section.table.rows.iter().any(|row| row.ranked),
        // What was recorded keeps its backticks.
        sets_code: section.id == "metrics",
        shown,
    };
    for row in &section.table.rows {
        body_row(page, row, &body);
    }
    page.raw("</tbody></table></div>\n");
}

/// The cells that are shown: a column in which nothing was measured has nothing to show.
fn shown(section: &Section) -> Vec<usize> {
    let columns = section.table.columns.iter().skip(1).enumerate();
    columns
        .filter(|(_, column)| column.rank != Column::FILES_ONLY || section.id != "comparison")
        .map(|(at, _)| at)
        .collect()
}

/// How the rows of a table are written.
struct Body {
    /// The cells that are shown.
    shown: Vec<usize>,
    /// Whether any row takes part in a ranking: one that does not stands back then.
    ranks: bool,
    /// Whether words between backticks are set as code.
    sets_code: bool,
}

fn body_row(page: &mut Page, row: &Row, body: &Body) {
    page.raw(match row.role {
        Role::Reference | Role::Floor => "<tr class=\"control\" data-pinned>",
        Role::Strategy if body.ranks && !row.ranked => "<tr class=\"unranked\">",
        Role::Strategy | Role::Other => "<tr>",
    });
    page.raw("<th scope=\"row\">");
    page.name(&row.name);
    if !row.marks.is_empty() {
        page.raw(" <small>");
        page.text(&row.marks.join("; "));
        page.raw("</small>");
    }
    page.raw("</th>");
    for at in &body.shown {
        if let Some(cell) = row.cells.get(*at) {
            self::cell(page, cell, body);
        }
    }
    page.raw("</tr>\n");
}

fn cell(page: &mut Page, cell: &Cell, body: &Body) {
    let number = match &cell.value {
        Value::Percent(share) => Some(*share),
        Value::Tokens(count) | Value::Count(count) => Some(*count as f64),
        Value::Of(part, whole) if *whole > 0 => Some(*part as f64 / *whole as f64),
        Value::Of(..) | Value::Text(_) | Value::NotMeasured | Value::NotApplicable => None,
    };
    page.raw("<td");
    if let Some(number) = number {
        page.raw(" data-value=\"");
        page.text(&number.to_string());
        page.raw("\"");
    }
    page.raw(match (&cell.value, cell.best) {
        (Value::Text(_), _) => " class=\"words\">",
        (_, true) => " class=\"best\">",
        (_, false) => ">",
    });
    match &cell.value {
        Value::Text(text) if body.sets_code => page.prose(text),
        value => page.text(&figure::value(value)),
    }
    if cell.best {
        page.raw("<span class=\"star\" title=\"best of its column\"> *</span>");
    }
    if let Some(interval) = figure::interval(cell) {
        page.raw(" <small>");
        page.text(&interval);
        page.raw("</small>");
    }
    if let Some(n) = cell.n {
        page.raw("<small class=\"n\">");
        page.text(&figure::n(n));
        page.raw("</small>");
    }
    page.raw("</td>");
}

fn pictures(page: &mut Page, report: &Report) -> Result<(), RenderError> {
    heading(page, "pictures", "Pictures");
    for scene in [savings::scene, pareto::scene, cache::scene] {
        page.picture(&scene(report))?;
    }
    page.raw("</section>\n");
    Ok(())
}

fn timelines(page: &mut Page, report: &Report) -> Result<(), RenderError> {
    heading(page, "timelines", "Token timeline of each session");
    let mut sessions: Vec<&str> = report.series.iter().map(|it| it.session.as_str()).collect();
    sessions.dedup();
    for (at, session) in sessions.iter().take(TIMELINES).enumerate() {
        page.raw(if at == 0 {
            "<details open>"
        } else {
            "<details>"
        });
        page.raw("<summary>");
        page.text(session);
        page.raw("</summary>\n");
        if let Some(scene) = tokens::of_session(report, session) {
            page.picture(&scene)?;
        }
        page.raw("</details>\n");
    }
    if sessions.len() > TIMELINES {
        page.paragraph(&format!(
            "The first {TIMELINES} of {} sessions.",
            sessions.len()
        ));
    }
    page.raw("</section>\n");
    Ok(())
}

/// The probe items, as data that the script shows page by page.
fn evidence(page: &mut Page, report: &Report) -> Result<(), RenderError> {
    heading(page, "evidence", "Evidence, probe by probe");
    if report.items.is_empty() {
        page.paragraph("No probe was asked in this run.");
        page.raw("</section>\n");
        return Ok(());
    }
    page.paragraph(
        "What was asked, what the answer is, what was left of it in the prompt by string matching, and \
         what the reader said.",
    );
    if report.items.len() > ITEMS {
        page.paragraph(&format!(
            "The first {ITEMS} of {} items; `-o report.csv` holds them all.",
            report.items.len()
        ));
    }
    let mut rows = Packed::default();
    for item in report.items.iter().take(ITEMS) {
        rows.push(columns_of(report, item));
    }
    EVIDENCE.write(page, &rows)?;
    page.raw("</section>\n");
    Ok(())
}

/// One item as the texts of its columns.
fn columns_of(report: &Report, item: &ItemOutcome) -> Vec<String> {
    let probe = &item.probe;
    let key = (item.session.clone(), probe.probe.clone(), probe.percent);
    let text = report.questions.get(&key);
    let (question, gold) = text.map_or(("not recorded", "not recorded"), |(question, gold)| {
        (question.as_str(), gold.as_str())
    });
    let mut left = figure::fate(probe.survival.fate).to_owned();
    if let Some(place) = probe.survival.place {
        left.push_str(" in what is ");
        left.push_str(&format!("{place:?}").to_lowercase());
    }
    if let Some(lost) = &probe.survival.lost_at {
        left.push_str(&format_lost(lost.call, &lost.stage, &lost.reason));
    }
    let (said, verdict) = match &probe.answer {
        None => ("–".to_owned(), "not asked".to_owned()),
        Some(answer) => (
            answer
                .text
                .clone()
                .unwrap_or_else(|| "no answer".to_owned()),
            verdict(probe.verdict().unwrap_or(answer.typed)),
        ),
    };
    let kind = if is_planted(probe.kind) {
        probe.kind.name().to_owned()
    } else {
        format!("{} (never planted)", probe.kind.name())
    };
    vec![
        item.session.clone(),
        item.strategy.clone(),
        kind,
        format!("{} %, call {}", probe.percent, probe.call),
        question.to_owned(),
        gold.to_owned(),
        left,
        said,
        verdict,
        figure::fate(probe.survival.fate).to_owned(),
    ]
}

fn format_lost(call: usize, stage: &str, reason: &str) -> String {
    if reason.is_empty() {
        format!("; lost at call {call} by {stage}")
    } else {
        format!("; lost at call {call} by {stage} ({reason})")
    }
}

fn verdict(verdict: Verdict) -> String {
    match verdict {
        Verdict::Scored { score, outcome } => {
            let word = figure::outcome(outcome);
            format!("{word}, {score:.2}")
        }
        Verdict::Unscored { .. } => "not scored".to_owned(),
    }
}

fn violations(page: &mut Page, report: &Report) {
    heading(page, "violations", "Broken rules of the provider");
    match report.section("findings") {
        Some(section) => {
            page.paragraph(&section.about);
            table(page, section, Sorting::None);
            notes(page, section);
        }
        None => {
            page.paragraph("No prompt broke a rule that full history at the same call does not.");
        }
    }
    page.raw("</section>\n");
}

fn tables(page: &mut Page, report: &Report) {
    heading(page, "tables", "All tables");
    for section in &report.sections {
        if PLACED.contains(&section.id) {
            continue;
        }
        page.raw("<details><summary>");
        page.text(&section.title);
        page.raw("</summary>\n");
        page.paragraph(&section.about);
        table(page, section, Sorting::None);
        notes(page, section);
        page.raw("</details>\n");
    }
    page.raw("</section>\n");
}

fn method(page: &mut Page, report: &Report) {
    heading(page, "method", "Method and caveats");
    page.paragraph(
        "Recorded sessions are replayed without their agent: before each recorded call a strategy \
         decides what the model would have been sent. That measures exactly what was sent, cached, \
         billed and lost, and cannot see that an agent would have acted differently.",
    );
    page.paragraph(
        "Survival is string matching and says nothing about answers. The prompt cache is simulated \
         under published rules; where a recording says what its provider read, the two stand side by \
         side in a table above. Re-reads and net savings are estimates. Intervals are 95 % t intervals \
         over sessions; what has none is exact on these sessions.",
    );
    if let Some(section) = report.section("metrics") {
        page.paragraph(&section.about);
        table(page, section, Sorting::None);
    }
    page.raw("</section>\n");
}

#[cfg(test)]
mod tests;
