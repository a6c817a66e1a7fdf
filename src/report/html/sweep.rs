//! The page of a sweep: the verdict first, then the pictures and all settings.

use serde_json::{Value as Json, json};

use super::{figure, tables};
use crate::compare::sweep::{Choice, Sweep};
use crate::report::headline::{self, Headline};
use crate::report::sweep::{chosen_on, verdict};
use crate::report::{RenderError, Report, Section, format};

pub(super) fn page(report: &Report, sweep: &Sweep) -> Result<Json, RenderError> {
    let pictures = format::pictures(report).map(|scenes| figure(&scenes));
    let lines = sweep.choices.iter().map(|choice| line(sweep, choice));
    let reason = sweep.quality_reason.as_deref();
    let trust = format!(
        "Settings are compared by {} and {}{}. {}",
        headline::words(&sweep.cost),
        headline::words(&sweep.quality),
        reason.map_or_else(String::new, |reason| format!(" ({reason})")),
        chosen_on(sweep)
    );
    let sections = report.sections.iter().map(|section| {
        let mut page = tables::view(&in_words(sweep, section));
        page["id"] = json!(section.id);
        page
    });
    Ok(json!({
        "title": report.title,
        "verdict": { "lines": lines.collect::<Vec<_>>(), "trust": trust },
        "pictures": pictures.collect::<Result<Vec<Json>, RenderError>>()?,
        "sections": sections.collect::<Vec<_>>(),
    }))
}

/// A choice as a line of the verdict: its first words, and its sentences.
fn line(sweep: &Sweep, choice: &Choice) -> Json {
    let text = named(sweep, &verdict(sweep, choice).join(" "));
    let (label, text) = text.split_once(": ").unwrap_or(("choice", &text));
    json!({ "label": label, "text": text })
}

/// A section with metrics in the words of the page.
fn in_words(sweep: &Sweep, section: &Section) -> Section {
    let mut section = section.clone();
    for column in &mut section.table.columns {
        match column.id {
            "cost" => column.label = headline::words(&sweep.cost),
            "quality" => column.label = headline::words(&sweep.quality),
            _ => {}
        }
    }
    for note in &mut section.notes {
        *note = named(sweep, note);
    }
    section
}

/// Sentences of a sweep name metrics by their ids, as `--saves` does; a page uses words.
fn named(sweep: &Sweep, text: &str) -> String {
    let kept = Headline::of(&sweep.quality).map(|it| it.heading[0]);
    let kept = kept.map_or_else(|| headline::words(&sweep.quality), str::to_owned);
    let text = text.replace(&sweep.cost, &headline::words(&sweep.cost));
    text.replace(&sweep.quality, &kept)
}
