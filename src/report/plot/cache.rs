//! What of each prompt is read from the provider's cache, written to it, and neither.

use super::axes::{Panel, whole};
use super::scene::{Anchor, Key, ORANGE, PURPLE, SIZE, SKY, Scene, fitted};
use super::series::{Cache, CellSeries};
use crate::record::Arm;
use crate::report::{Report, figure};

const LEFT: f64 = 88.0;
const RIGHT: f64 = 780.0;
const PANEL: f64 = 96.0;

/// Strategies that one picture shows.
const MOST_PANELS: usize = 14;

/// One panel per strategy, for the longest session.
pub(crate) fn scene(report: &Report) -> Scene {
    let longest = report
        .series
        .iter()
        .filter(|series| series.arm == Arm::Reference && series.cache.is_some())
        .max_by_key(|series| series.prompts.len());
    let mut scene = Scene::new("Prompt tokens by what the provider's cache makes of them");
    let Some(longest) = longest else {
        let end = scene.note(50.0, "no prompt cache was simulated in this run");
        scene.ends_at(end + 12.0);
        return scene;
    };
    let keys = [
        (PURPLE, "neither: plain input"),
        (ORANGE, "written to the cache"),
        (SKY, "read from the cache"),
    ];
    let keys = keys.map(|(color, text)| Key::band(text, color));
    let mut y = scene.legend(&keys);
    let scheme = longest.cache.as_ref().map_or("", |cache| &cache.scheme);
    let session = fitted(&longest.session, SIZE, 420.0);
    let words = format!("session {session}, scheme {scheme}");
    y = scene.note(y, &words) - 10.0;
    let shown = in_order(report, &longest.session);
    let all = shown.len();
    let most = shown.iter().flat_map(|(series, _)| &series.prompts).max();
    let most = most.map_or(1.0, |most| most.0 as f64);
    let last = all.min(MOST_PANELS);
    for (number, (series, cache)) in shown.into_iter().take(MOST_PANELS).enumerate() {
        let (calls, is_last) = (longest.prompts.len(), number + 1 == last);
        y = panel(&mut scene, series, cache, (calls, most), y + 16.0, is_last);
    }
    y += 40.0;
    if all > MOST_PANELS {
        let words = format!("the first {MOST_PANELS} of {all}");
        y = scene.note(y, &words) + 2.0;
    }
    scene.ends_at(y);
    scene
}

/// Full history first, then the strategies in the order of the comparison.
fn in_order<'a>(report: &'a Report, session: &str) -> Vec<(&'a CellSeries, &'a Cache)> {
    let rows = report.compared().iter();
    rows.filter_map(|row| {
        let mut series = report.series.iter();
        let found =
            series.find(|series| series.session == session && series.strategy == row.name)?;
        Some((found, found.cache.as_ref()?))
    })
    .collect()
}

fn panel(
    scene: &mut Scene,
    series: &CellSeries,
    cache: &Cache,
    (calls, most): (usize, f64),
    top: f64,
    is_last: bool,
) -> f64 {
    let name = fitted(&series.strategy, SIZE, 400.0);
    scene.label((LEFT, top), &name, Anchor::Start);
    let prompts: u64 = series.prompts.iter().map(|prompt| prompt.0).sum();
    let read: u64 = cache.read.iter().map(|read| read.0).sum();
    if prompts > 0 {
        let share = figure::percent(read as f64 / prompts as f64);
        let words = format!("{share} of {} read", figure::tokens(prompts));
        scene.label((RIGHT, top), &words, Anchor::End);
    }
    let panel = Panel {
        edges: [LEFT, top + 12.0, RIGHT, top + 12.0 + PANEL],
        x: (-0.5, calls as f64 - 0.5),
        y: (0.0, most * 1.02),
    };
    let layer = |from: &dyn Fn(usize) -> u64, to: &dyn Fn(usize) -> u64| {
        let mut outline = Vec::new();
        let mut back = Vec::new();
        for call in 0..series.prompts.len() {
            let middle = call as f64;
            // A call is a step: what is between two calls is nothing.
            for x in [middle - 0.5, middle + 0.5] {
                outline.push(panel.at(x, to(call) as f64));
                back.push(panel.at(x, from(call) as f64));
            }
        }
        back.reverse();
        outline.extend(back);
        outline
    };
    let read = |call: usize| cache.read[call].0;
    let cached = |call: usize| cache.read[call].0 + cache.written[call].0;
    let all = |call: usize| series.prompts[call].0;
    let layers = [
        (layer(&|_| 0, &read), SKY),
        (layer(&read, &cached), ORANGE),
        (layer(&cached, &all), PURPLE),
    ];
    for (points, color) in layers {
        if points.len() > 2 {
            scene
                .shapes
                .push(super::scene::Shape::Area { points, color });
        }
    }
    let tokens = |value: f64| figure::tokens(super::count(value));
    let ticks = calls.clamp(1, 10);
    let below = if is_last {
        ("call", ticks, &whole as &dyn Fn(f64) -> String)
    } else {
        ("", ticks, &(|_: f64| String::new()) as _)
    };
    panel.axes(scene, below, ("tokens", 3, &tokens));
    top + 12.0 + PANEL
}
