//! Where the noise within an item comes from, and which further repeat removes most of it.

use crate::metric::noise::Repeated;
use crate::record::{CellRecord, Manifest};
use crate::report::build::Material;
use crate::report::{Cell, Role, Section, Value, columns, figure};
use crate::stats::components::{Advice, Components, Level, Levels};

use super::row;

const TITLE: &str = "Noise within an item, by level";

pub(super) fn section(material: &Material<'_>) -> Section {
    of(material.manifest, material.cells.iter().copied())
        .unwrap_or_else(|| Section::new("noise", TITLE, "", Vec::new(), Vec::new()))
}

/// The components of a run; nothing where nothing was repeated.
pub(in crate::report) fn of<'a>(
    manifest: &Manifest,
    cells: impl IntoIterator<Item = &'a CellRecord>,
) -> Option<Section> {
    let measured = cells.into_iter().filter(|cell| cell.end.is_measured());
    let repeated = Repeated::of(manifest, measured)?;
    let levels = Levels {
        compactions: repeated.compactions,
        answers: repeated.answers,
        judgements: repeated.judgements,
    };
    let found = Components::of(&repeated.items, levels)?;
    let now = found.variance(levels);
    let advice = found.advice(levels);
    let rows = [
        (Level::Compaction, levels.compactions, found.compaction, 1),
        (
            Level::Answer,
            levels.answers,
            found.answer,
            levels.compactions,
        ),
        (
            Level::Judgement,
            levels.judgements,
            found.judgement,
            levels.compactions * levels.answers,
        ),
    ]
    .into_iter()
    .map(|(level, repeats, component, above)| {
        let share = component
            .filter(|_| now > 0.0)
            .map(|it| it / (above * repeats) as f64 / now);
        let further = advice.iter().find(|advice| advice.level == level);
        let cells = vec![
            Cell::count(repeats),
            component.map_or(Cell::NOT_MEASURED, |it| {
                Cell::text(format!("{:.3}", it.sqrt()))
            }),
            Cell::exact(Value::percent(share)),
            Cell::exact(Value::percent(further.map(|it| it.removes))),
            further.map_or(Cell::NOT_MEASURED, |it| Cell::count(it.calls)),
        ];
        row(name(level), Role::Other, cells)
    })
    .collect();
    let mut notes = vec![in_words(&found, &advice, levels, now)];
    if repeated.left_out > 0 {
        notes.push(format!(
            "{} left out: not scored in every repeat",
            figure::many(repeated.left_out, "item", "items")
        ));
    }
    let section = Section::new(
        "noise",
        TITLE,
        format!(
            "How much {} of one item differ when it is compacted, answered or judged again, over {} of all \
             strategies: standard deviation of each level by nested analysis of variance, its share in \
             the variance of an item's mean, and what one further repeat of the level would take off it, \
             for so many model calls per item.",
            repeated.what,
            figure::many(repeated.items.len(), "item", "items")
        ),
        columns(
            "level | repeats: times | deviation | share: of the variance | removes: once more removes | \
             calls: calls per item @1",
        ),
        rows,
    );
    Some(section.with_notes(notes))
}

/// Which further repeat buys most, and what is not known.
fn in_words(found: &Components, advice: &[Advice], levels: Levels, now: f64) -> String {
    let unknown: Vec<&str> = [
        (found.compaction, "compactions (`repeats = 2`)"),
        (found.answer, "answers (`models.answers = 2`)"),
        (found.judgement, "verdicts (`models.judgements = 2`)"),
    ]
    .into_iter()
    .filter_map(|(component, how)| component.is_none().then_some(how))
    .collect();
    let known = match advice.first() {
        Some(best) if now > 0.0 && best.removes > 0.0 => {
            let setting = match best.level {
                Level::Compaction => format!("`repeats = {}`", levels.compactions + 1),
                Level::Answer => format!("`models.answers = {}`", levels.answers + 1),
                Level::Judgement => format!("`models.judgements = {}`", levels.judgements + 1),
            };
            format!(
                "for its calls, one more {} buys most: {setting} takes {} off the variance of an item's mean",
                name(best.level),
                figure::percent(best.removes)
            )
        }
        _ => "what was repeated came out the same each time: no further repeat buys anything"
            .to_owned(),
    };
    if unknown.is_empty() {
        known
    } else {
        let unknown = unknown.join(" and ");
        format!("{known}; how much {unknown} differ is not known: they were made once")
    }
}

fn name(level: Level) -> &'static str {
    match level {
        Level::Compaction => "compaction",
        Level::Answer => "answer",
        Level::Judgement => "judgement",
    }
}
