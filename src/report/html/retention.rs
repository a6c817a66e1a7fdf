//! Retention by kind and age: how much of what was planted survives, as the session goes on.

use std::collections::{BTreeMap, BTreeSet};

use super::heading;
use super::page::Page;
use crate::report::plot::Plot;
use crate::report::{Report, figure};

/// The mean score and the number of items of one strategy and kind, by how far the session is.
type ByAge = BTreeMap<u8, (f64, usize)>;

pub(super) fn tables(page: &mut Page, report: &Report) {
    heading(page, "retention", "Retention by kind and age");
    if report.items.is_empty() {
        page.paragraph("Nothing was planted in these sessions.");
        page.raw("</section>\n");
        return;
    }
    // A picture that cannot be drawn is missed by nobody: the figures stand below.
    let _ = page.picture(&Plot::Retention.scene(report));
    page.paragraph(
        "Mean survival of the items of a kind, all sessions together, by how far the session is when \
         it is asked. Decoys were never planted: their share is what chance finds.",
    );
    let mut kinds: BTreeMap<&str, BTreeMap<&str, ByAge>> = BTreeMap::new();
    let mut ages: BTreeSet<u8> = BTreeSet::new();
    for item in &report.items {
        let probe = &item.probe;
        ages.insert(probe.percent);
        let of_kind = kinds.entry(probe.kind.name()).or_default();
        let of_arm = of_kind.entry(&item.strategy).or_default();
        let (sum, items) = of_arm.entry(probe.percent).or_default();
        *sum += probe.survival.score;
        *items += 1;
    }
    for (kind, arms) in &kinds {
        page.raw("<details><summary>");
        page.text(kind);
        page.raw("</summary>\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"");
        page.text(&format!("Retention of {kind}"));
        page.raw("\"><table><thead><tr><th scope=\"col\">strategy</th>");
        for age in &ages {
            page.raw("<th scope=\"col\">");
            page.text(&format!("at {age} %"));
            page.raw("</th>");
        }
        page.raw("</tr></thead>\n<tbody>\n");
        for name in in_order(report) {
            let Some(by_age) = arms.get(name) else {
                continue;
            };
            page.raw("<tr><th scope=\"row\">");
            page.text(name);
            page.raw("</th>");
            for age in &ages {
                page.raw("<td>");
                match by_age.get(age) {
                    Some((sum, items)) => {
                        page.text(&figure::percent(sum / *items as f64));
                        page.raw(" <small class=\"n\">");
                        page.text(&format!("n={items}"));
                        page.raw("</small>");
                    }
                    None => page.text("–"),
                }
                page.raw("</td>");
            }
            page.raw("</tr>\n");
        }
        page.raw("</tbody></table></div></details>\n");
    }
    page.raw("</section>\n");
}

/// The arms in the order of the comparison.
fn in_order(report: &Report) -> impl Iterator<Item = &str> {
    let rows = report.section("comparison").into_iter();
    rows.flat_map(|section| &section.table.rows)
        .map(|row| row.name.as_str())
}
