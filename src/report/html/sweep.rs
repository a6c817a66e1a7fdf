//! The page of a sweep: the verdict first, then the pictures and all settings.

use serde_json::{Value as Json, json};

use super::both;
use crate::compare::sweep::{Choice, Sweep};
use crate::report::sweep::{chosen_on, quality_reason, verdict};
use crate::report::{RenderError, Report, plot, view};

pub(super) fn page(report: &Report, sweep: &Sweep) -> Result<Json, RenderError> {
    let lines = sweep.choices.iter().map(|choice| line(sweep, choice));
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
        "verdict": { "lines": lines.collect::<Vec<_>>(), "trust": trust },
        "picture": both(|width| plot::sweep::scene(sweep, width))?,
        "sections": sections.collect::<Vec<_>>(),
    }))
}

/// A choice as a line of the verdict: its first words, and its sentences.
fn line(sweep: &Sweep, choice: &Choice) -> Json {
    let text = verdict(sweep, choice).join(" ");
    let (label, text) = text.split_once(": ").unwrap_or(("choice", &text));
    json!({ "label": label, "text": text })
}
