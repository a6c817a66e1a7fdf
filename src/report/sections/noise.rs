//! Where the noise within an item comes from, and which further repeat removes most of it.

use super::prelude::*;
use crate::metric::noise::RepeatedScores;
use crate::stats::components::{Advice, Components, Levels};

/// Each level: its name, the setting that repeats it, and the repeated work.
const LEVELS: [(&str, &str, &str); 3] = [
    ("compaction", "repeats", "compactions"),
    ("answer", "models.answers", "answers"),
    ("judgement", "models.judgements", "verdicts"),
];

pub(super) fn section(material: &Material<'_>) -> Section {
    of(material).unwrap_or_else(|| Section::new("noise", Vec::new()))
}

/// The components of a run; `None` where nothing was repeated.
fn of(material: &Material<'_>) -> Option<Section> {
    let measured = material.cells.iter().copied().filter(|cell| cell.end.is_measured());
    let repeated = RepeatedScores::of(material.manifest, measured)?;
    let levels = repeated.levels;
    let found = Components::of(&repeated.items, levels)?;
    let now = found.variance(levels);
    let advice = found.advice(levels);
    let rows = LEVELS.iter().enumerate().map(|(level, (name, ..))| {
        let (repeats, component) = (levels[level], found.0[level]);
        let above: usize = levels[..level].iter().product();
        let noisy = component.filter(|_| now > 0.0);
        let share = noisy.map(|variance| variance / (above * repeats) as f64 / now);
        let further = advice.iter().find(|advice| advice.level == level);
        let deviation = component.map(|variance| format!("{:.3}", variance.sqrt()));
        let cells = vec![
            Cell::count(repeats),
            Cell::known(deviation, Value::Text),
            Cell::share(share),
            Cell::share(further.map(|advice| advice.removes)),
            further.map_or(Cell::NOT_MEASURED, |advice| Cell::count(advice.calls)),
        ];
        super::row(name, Role::Other, cells)
    });
    let mut notes = vec![in_words(&found, &advice, levels, now)];
    if repeated.left_out > 0 {
        let items = display::many(repeated.left_out, "item", "items");
        notes.push(format!("{items} left out: not scored in every repeat"));
    }
    let items = display::many(repeated.items.len(), "item", "items");
    let section = Section::new("noise", rows).with_notes(notes);
    Some(section.fill("what", repeated.scored).fill("items", &items))
}

/// The most useful further repeat, and the levels whose noise is unknown.
fn in_words(found: &Components, advice: &[Advice], levels: Levels, now: f64) -> String {
    let once = LEVELS.iter().zip(found.0).filter(|(_, component)| component.is_none());
    let unknown = once.map(|((_, setting, what), _)| format!("{what} (`{setting} = 2`)"));
    let known = match advice.first() {
        Some(best) if now > 0.0 && best.removes > 0.0 => {
            let (name, setting, _) = LEVELS[best.level];
            let more = levels[best.level] + 1;
            format!(
                "for its calls, one more {name} buys most: `{setting} = {more}` takes {} off the variance of an item's mean",
                display::percent(best.removes)
            )
        }
        _ => "what was repeated came out the same each time: no further repeat buys anything"
            .to_owned(),
    };
    match display::listed(unknown, " and ") {
        None => known,
        Some(unknown) => {
            format!("{known}; how much {unknown} differ is not known: they were made once")
        }
    }
}
