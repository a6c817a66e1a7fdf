//! HTML: the whole report as one page that needs nothing but a browser.
//!
//! The page works from a file. It loads nothing, and its Content-Security-Policy allows no script and
//! no style but its own two, by their hashes. Templates escape everything that was recorded; the probe
//! items are data that the script writes as text.

use serde_json::{Value as Json, json};

use crate::report::plot::{NARROW, PlotScene, WIDE, bill, curves, pareto, svg, tokens};
use crate::report::{Banner, BannerLevel, RenderError, Report, ReportData, escape, template, view};

mod calls;
mod compactions;
mod evidence;
mod sweep;
mod tables;

/// Sessions whose timeline is part of the page; a picture of any other is one command away.
const TIMELINES: usize = 40;

/// Sections that have a place of their own, and are not repeated among the tables.
const PLACED: &[&str] = &["comparison", "findings", "lost", "metrics"];

/// Writes the report as one self-contained page.
pub(super) fn render(report: &Report) -> Result<String, RenderError> {
    match &report.subject {
        ReportData::Run => template::render("run.html", of_run(report)?),
        ReportData::Sweep(swept) => template::render("sweep.html", sweep::page(report, swept)?),
        // No format makes a page of a comparison.
        ReportData::Comparison(_) => {
            Err(RenderError::Template("it is no run and no sweep".to_owned()))
        }
    }
}

fn of_run(report: &Report) -> Result<Json, RenderError> {
    let evidence = evidence::Evidence::of(report);
    let sessions = &evidence.sessions;
    let shown = &sessions[..sessions.len().min(TIMELINES)];
    let timelines = shown.iter().map(|session| {
        let picture = both(|width| tokens::of_session(report, session, width))?;
        Ok(json!({ "session": session, "picture": picture }))
    });
    let compactions = compactions::all(report, sessions);
    let others = report.sections.iter().filter(|section| !PLACED.contains(&section.id));
    let tables = others.map(|section| view::section(section, shown));
    let [findings, metrics] = ["findings", "metrics"]
        .map(|id| report.section(id).map(|section| view::section(section, shown)));
    let verdict = report.verdict.as_ref().map(|verdict| {
        let lines = verdict.lines().into_iter().map(|line| json!({ "text": line.in_full() }));
        json!({ "lines": lines.collect::<Vec<_>>(), "trust": report.totals })
    });
    let (caveats, urgent): (Vec<&Banner>, Vec<&Banner>) =
        report.banners.iter().partition(|banner| banner.level == BannerLevel::Note);
    Ok(json!({
        "title": report.title,
        "verdict": verdict,
        "lines": report.lines,
        "urgent": urgent,
        "caveats": caveats,
        "headline": both(|width| pareto::scene(report, width))?,
        "comparison": tables::comparison(report),
        "numbers": tables::numbers(report)?,
        "lost": tables::lost(report, shown),
        "bill": both(|width| bill::scene(report, width))?,
        "timelines": timelines.collect::<Result<Vec<Json>, RenderError>>()?,
        "calls": calls::data(report, shown)?,
        "sessions": sessions.len(),
        "retention": both(|width| curves::scene(report, width))?,
        "items": evidence.items.len(),
        "most_items": evidence::MOST,
        "evidence": evidence.data()?,
        "compactions": compactions.len(),
        "most_compactions": compactions::MOST,
        "changes": compactions::data(&compactions)?,
        "findings": findings,
        "tables": tables.collect::<Vec<_>>(),
        "metrics": metrics,
    }))
}

/// A picture, drawn for wide and for narrow pages; its colours follow the page's by rules of the style.
fn both(scene: impl Fn(f64) -> PlotScene) -> Result<Json, RenderError> {
    let [wide, narrow] = [WIDE, NARROW].map(scene);
    // A picture that has one width only is scrolled on a narrow page.
    let drawings = if narrow.width < wide.width {
        vec![drawing(&wide, "wide")?, drawing(&narrow, "narrow")?]
    } else {
        vec![drawing(&wide, "only")?]
    };
    Ok(json!({ "title": wide.title, "drawings": drawings }))
}

fn drawing(scene: &PlotScene, class: &str) -> Result<Json, RenderError> {
    let picture = svg(scene)?;
    let inner = picture.strip_prefix("<svg ").unwrap_or(&picture).trim_end();
    // The boxes of the legend's entries, in percent of the picture.
    let (width, height) = (scene.width / 100.0, scene.height() / 100.0);
    let drawn = scene
        .series
        .iter()
        .filter(|(name, _)| picture.contains(&format!("data-series=\"{}\"", escape::xml(name))));
    let series = drawn.map(|(name, [left, upper, right, lower])| {
        let (left, upper) = (left / width, upper / height);
        let (wide, high) = (right / width - left, lower / height - upper);
        json!({ "name": name, "box": format!("{left:.2} {upper:.3} {wide:.2} {high:.3}") })
    });
    let axis = scene.call_axis.map(|axis| {
        let [left, upper, right, lower] = axis.edges;
        let (from, to) = axis.x;
        format!("{left} {upper} {right} {lower} {from} {to} {}", axis.y.1)
    });
    Ok(json!({
        "class": class, "inner": inner, "series": series.collect::<Vec<_>>(), "axis": axis,
    }))
}

#[cfg(test)]
mod tests;
