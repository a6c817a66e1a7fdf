//! Prompt tokens that the provider's cache serves, stores, and does neither with.

use super::axes::{Panel, tokens, whole};
use super::scene::{HPos, Mark, ORANGE, PURPLE, SIZE, SKY, Scene, Shape, fitted};
use super::series::CellSeries;
use crate::record::{Arm, CacheRecord};
use crate::report::{Report, figure};
use crate::units::Tokens;

const LEFT: f64 = 88.0;
const RIGHT: f64 = 780.0;
const PANEL: f64 = 96.0;

/// Strategies that one picture shows.
const MOST_PANELS: usize = 14;

/// One panel per strategy, for the longest session.
pub(crate) fn scene(report: &Report) -> Scene {
    let mut scene = Scene::new("Prompt tokens by what the provider's cache makes of them");
    let longest = report
        .series
        .iter()
        .filter(|series| series.arm == Arm::Reference)
        .filter_map(|series| Some((series, series.cache.as_ref()?)))
        .max_by_key(|(series, _)| series.prompts.len());
    let Some((longest, cache)) = longest else {
        let end = scene.note(50.0, "no prompt cache was simulated in this run");
        scene.ends_at(end + 12.0);
        return scene;
    };
    let mut y = scene.legend(&[
        (Mark::Band(1.0), PURPLE, "neither: plain input"),
        (Mark::Band(1.0), ORANGE, "written to the cache"),
        (Mark::Band(1.0), SKY, "read from the cache"),
    ]);
    let session = fitted(&longest.session, SIZE, 420.0);
    let words = format!("session {session}, scheme {}", cache.scheme);
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
fn in_order<'a>(report: &'a Report, session: &str) -> Vec<(&'a CellSeries, &'a CacheRecord)> {
    let rows = report.compared().iter();
    rows.filter_map(|row| {
        let mut series = report.series.iter();
        let found =
            series.find(|series| series.session == session && series.strategy == row.name)?;
        Some((found, found.cache.as_ref()?))
    })
    .collect()
}

/// Draws one strategy's layers, and returns where the panel ends.
fn panel(
    scene: &mut Scene,
    series: &CellSeries,
    cache: &CacheRecord,
    (calls, most): (usize, f64),
    top: f64,
    is_last: bool,
) -> f64 {
    let name = fitted(&series.strategy, SIZE, 400.0);
    scene.label((LEFT, top), &name, HPos::Left);
    let calls_sent = series.prompts.len();
    let sum = |tokens: &[Tokens]| tokens.iter().take(calls_sent).map(|it| it.0).sum::<u64>();
    let (prompts, read) = (sum(&series.prompts), sum(&cache.read));
    if prompts > 0 {
        let share = figure::percent(read as f64 / prompts as f64);
        let words = format!("{share} of {} read", figure::tokens(prompts));
        scene.label((RIGHT, top), &words, HPos::Right);
    }
    let lower = top + 12.0 + PANEL;
    let panel = Panel {
        edges: [LEFT, top + 12.0, RIGHT, lower],
        x: (-0.5, calls as f64 - 0.5),
        y: (0.0, most * 1.02),
    };
    // A call is a step of width 1. The points of an upper edge, from left to right.
    let edge = |height: &dyn Fn(usize) -> u64| -> Vec<(f64, f64)> {
        let sides = (0..calls_sent).flat_map(|call| [(call, -0.5), (call, 0.5)]);
        sides
            .map(|(call, side)| panel.at(call as f64 + side, height(call) as f64))
            .collect()
    };
    let mut below = edge(&|_| 0);
    // The record of the cache may be shorter than the prompts.
    let tokens_at = |tokens: &[Tokens], call: usize| tokens.get(call).map_or(0, |it| it.0);
    let read = edge(&|call| tokens_at(&cache.read, call));
    let cached = edge(&|call| tokens_at(&cache.read, call) + tokens_at(&cache.written, call));
    let all = edge(&|call| tokens_at(&series.prompts, call));
    for (upper, color) in [(read, SKY), (cached, ORANGE), (all, PURPLE)] {
        let points: Vec<_> = upper.iter().chain(below.iter().rev()).copied().collect();
        if !points.is_empty() {
            scene.shapes.push(Shape::Area { points, color });
        }
        below = upper;
    }
    let (title, call): (_, &dyn Fn(f64) -> String) = if is_last {
        ("call", &whole)
    } else {
        ("", &|_| String::new())
    };
    let columns = (title, calls.clamp(1, 10), call);
    panel.axes(scene, columns, ("tokens", 3, &tokens));
    lower
}
