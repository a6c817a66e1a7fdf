//! Retention by kind and age: how much of what was planted survives, the older it gets.

use super::heading;
use super::page::Page;
use crate::metric::retention::{COMPACTIONS, Retention, TOKENS};
use crate::metric::survival::Score;
use crate::probe::ProbeKind;
use crate::report::plot::curves;
use crate::report::{Report, Role, figure};

pub(super) fn tables(page: &mut Page, report: &Report) {
    heading(page, "retention", "Retention by kind and age");
    let arms = arms(report);
    if arms.iter().all(|(_, items)| items.0.is_empty()) {
        page.paragraph(if report.items.is_empty() {
            "Nothing was planted in these sessions."
        } else {
            "These records do not say when what was asked about was said."
        });
        page.raw("</section>\n");
        return;
    }
    // A picture that cannot be drawn is missed by nobody: the figures stand below.
    let _ = page.picture(&curves::scene(report, None));
    page.paragraph(
        "Mean survival of all planted items together, each session as heavy as it has items, by the \
         tokens that full history grew by since the value was said, and by the calls that changed \
         the context since then. What was due after a session's death is left out.",
    );
    for kind in ProbeKind::ALL {
        let has_items = |(_, items): &(&str, Retention)| items.0.iter().any(|it| it.kind == kind);
        if !arms.iter().any(has_items) {
            continue;
        }
        page.raw("<details><summary>");
        page.text(kind.name());
        page.raw("</summary>\n");
        let _ = page.picture(&curves::scene(report, Some(kind)));
        page.raw("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"");
        page.text(&format!("Retention of {}", kind.name()));
        page.raw("\"><table><thead><tr><th scope=\"col\">strategy</th>");
        let tokens = TOKENS.iter().map(|(age, _)| format!("{age} tokens"));
        let compactions = COMPACTIONS
            .iter()
            .map(|(age, _)| format!("{age} compactions"));
        for age in tokens.chain(compactions) {
            page.raw("<th scope=\"col\">");
            page.text(&age);
            page.raw("</th>");
        }
        page.raw("</tr></thead>\n<tbody>\n");
        for (name, items) in arms.iter().filter(|arm| has_items(arm)) {
            page.raw("<tr><th scope=\"row\">");
            page.name(name);
            page.raw("</th>");
            let tokens = items.by_tokens(|item| item.kind == kind);
            let compactions = items.by_compactions(|item| item.kind == kind);
            for age in tokens.iter().chain(&compactions) {
                cell(page, age);
            }
            page.raw("</tr>\n");
        }
        page.raw("</tbody></table></div></details>\n");
    }
    page.raw("</section>\n");
}

fn cell(page: &mut Page, age: &Score) {
    page.raw("<td>");
    match age.mean() {
        Some(mean) => {
            page.text(&figure::percent(mean));
            page.raw(" <small class=\"n\">");
            page.text(&format!("n={}", age.items));
            page.raw("</small>");
        }
        None => page.text("–"),
    }
    page.raw("</td>");
}

/// The items of each arm, in the order of the comparison; the floor has no history to forget.
fn arms(report: &Report) -> Vec<(&str, Retention)> {
    let rows = report.section("comparison").into_iter();
    let rows = rows.flat_map(|section| &section.table.rows);
    let rows = rows.filter(|row| row.role != Role::Floor);
    rows.map(|row| {
        let cells = report.cells.iter().filter(|cell| cell.strategy == row.name);
        let items = cells.flat_map(|cell| cell.retention.0.iter().copied());
        (row.name.as_str(), Retention(items.collect()))
    })
    .collect()
}
