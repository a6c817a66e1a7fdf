//! The page of a sweep: the verdict first, then the pictures and all settings.

use serde_json::{Value as Json, json};

use super::both;
use crate::compare::sweep::Sweep;
use crate::report::sweep::{chosen_on, quality_reason, verdict};
use crate::report::{RenderError, Report, plot, view};

pub(super) fn page(report: &Report, sweep: &Sweep) -> Result<Json, RenderError> {
    let sentences = verdict(sweep).join(" ");
    let (label, text) = sentences.split_once(": ").unwrap_or(("choice", &sentences));
    let line = json!({ "label": label, "text": text });
    let (cost, quality, chosen) = (sweep.cost, sweep.quality, chosen_on(sweep));
    let reason = quality_reason(sweep);
    let trust = format!("Settings are compared by {cost} and {quality}{reason}. {chosen}");
    let sections = report.sections.iter().map(|section| {
        let mut page = view::section(section, &[]);
        page["id"] = json!(section.id);
        page
    });
    Ok(json!({
        "title": report.title,
        "verdict": { "lines": [line], "trust": trust },
        "picture": both(|width| plot::sweep::scene(sweep, width))?,
        "sections": sections.collect::<Vec<_>>(),
    }))
}
