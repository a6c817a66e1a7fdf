//! Prompt tokens that the provider's cache serves, stores, and does neither with.

use super::axes::{Panel, tokens, whole};
use super::scene::{HPos, Mark, ORANGE, PURPLE, SIZE, SKY, Scene, fitted};
use crate::record::{Arm, CacheRecord, CellRecord};
use crate::report::headline::title;
use crate::report::{Report, display};
use crate::units::Tokens;

const LEFT: f64 = 88.0;
const PANEL: f64 = 96.0;

const NEITHER: &str = "neither: plain input";
const WRITTEN: &str = "written to the cache";
const READ: &str = "read from the cache";

/// Strategies that one picture shows.
const MOST_PANELS: usize = 14;

/// One panel per strategy, for the longest session.
pub(crate) fn scene(report: &Report, width: f64) -> Scene {
    let mut scene = Scene::new(
        "Prompt tokens by what the provider's cache makes of them",
        width,
    );
    let full = report.first_cells().filter(|it| it.arm == Arm::Reference);
    let full = full.filter_map(|cell| Some((cell, cell.prompt_cache.first()?)));
    let Some((longest, cache)) = full.max_by_key(|(cell, _)| cell.prompt_tokens.len()) else {
        scene.note("no prompt cache was simulated in this run");
        return scene;
    };
    scene.legend(&[
        (Mark::Band(1.0), PURPLE, NEITHER),
        (Mark::Band(1.0), ORANGE, WRITTEN),
        (Mark::Band(1.0), SKY, READ),
    ]);
    let session = fitted(&longest.session, SIZE, width - 280.0);
    scene.note(&format!("session {session}, scheme {}", cache.scheme));
    // Full history first, then the strategies in the order of the comparison.
    let of_row = |name: &str| {
        let mut cells = report.first_cells();
        let cell = cells.find(|it| it.session == longest.session && it.strategy == name)?;
        Some((cell, cell.prompt_cache.first()?))
    };
    let rows = report.compared().iter();
    let shown = rows.filter_map(|row| {
        let (cell, cache) = of_row(&row.name)?;
        Some((cell, cache, title(row)))
    });
    let shown: Vec<_> = shown.collect();
    let prompts = shown.iter().flat_map(|(cell, ..)| &cell.prompt_tokens);
    let most = prompts.max().map_or(1.0, |most| most.0 as f64).max(1.0);
    for (cell, cache, title) in shown.iter().take(MOST_PANELS) {
        let calls = longest.prompt_tokens.len();
        panel(&mut scene, title, (cell, cache), (calls, most));
    }
    if shown.len() > MOST_PANELS {
        scene.note(&format!("the first {MOST_PANELS} of {}", shown.len()));
    }
    scene
}

/// Draws one strategy's layers.
fn panel(
    scene: &mut Scene,
    title: &str,
    (cell, cache): (&CellRecord, &CacheRecord),
    (calls, most): (usize, f64),
) {
    let (right, is_narrow) = (scene.right(), scene.is_narrow());
    // In a narrow picture the share has a line of its own.
    let (from, room) = if is_narrow {
        (16.0, right - 16.0)
    } else {
        (LEFT, 400.0)
    };
    let name = fitted(title, SIZE, room);
    scene.label((from, scene.y + 6.0), &name, HPos::Left);
    let top = scene.y + if is_narrow { 24.0 } else { 6.0 };
    let calls_sent = cell.prompt_tokens.len();
    let sum = |tokens: &[Tokens]| tokens.iter().take(calls_sent).map(|it| it.0).sum::<u64>();
    let (prompts, read) = (sum(&cell.prompt_tokens), sum(&cache.read));
    if prompts > 0 {
        let share = display::percent(read as f64 / prompts as f64);
        let words = format!("{share} of {} read", display::tokens(prompts));
        scene.label((right, top), &words, HPos::Right);
    }
    let lower = top + 12.0 + PANEL;
    let panel = Panel {
        edges: [LEFT, top + 12.0, right, lower],
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
    let all = edge(&|call| tokens_at(&cell.prompt_tokens, call));
    let layers = [
        (read, SKY, READ),
        (cached, ORANGE, WRITTEN),
        (all, PURPLE, NEITHER),
    ];
    for (upper, color, words) in layers {
        let points: Vec<_> = upper.iter().chain(below.iter().rev()).copied().collect();
        scene.tip(words, |scene| scene.area(&points, color));
        below = upper;
    }
    let most = if is_narrow { 5 } else { 10 };
    let columns = ("call", calls.clamp(1, most) + 1, &whole as _);
    panel.axes(scene, columns, ("tokens", 4, &tokens));
    scene.y = lower + 50.0;
}
