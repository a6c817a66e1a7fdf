//! A sweep: a line for one knob, and heat maps for each pair of several.

use super::axes::{PlotPanel, percent, reach};
use super::heat;
use super::scene::{BLUE, GREEN, HPos, INK, KeyMark, PlotScene};
use crate::compare::sweep::{KnobPair, PairCell, Sweep, pairs};
use crate::report::display;

/// The number of a cell that is drawn; `None` where it was not measured.
pub(super) type CellValue = fn(&PairCell) -> Option<f64>;

const HEIGHT: f64 = 300.0;

/// The metric that is saved and the metric that is kept, by the values of the knobs.
pub(crate) fn scene(sweep: &Sweep, width: f64) -> PlotScene {
    match (sweep.pairs.as_slice(), sweep.sensitivity.first()) {
        ([], Some(knob)) => {
            let pair = pairs::pair(&sweep.points, "", &knob.knob);
            line(sweep, &pair, width)
        }
        (pairs, _) => heat::scene(sweep, pairs, width),
    }
}

fn line(sweep: &Sweep, knob: &KnobPair, width: f64) -> PlotScene {
    let mut scene = PlotScene::new("Saved and kept, by the value of the knob", width);
    let saved = format!("{} saved", sweep.cost);
    let kept = format!("{} kept", sweep.quality);
    let keys = [(BLUE, &*saved), (GREEN, &*kept)];
    scene.legend(&keys.map(|(color, words)| (KeyMark::Line(1.0), color, words)));
    let sessions = display::many(sweep.tune.len(), "session", "sessions");
    let signs = "dashed: the chosen value; ×: broken";
    scene.paragraph(&format!("mean over {sessions}, in percent; {signs}"));
    let cells: Vec<Option<&PairCell>> = knob.cells.iter().flatten().map(Option::as_ref).collect();
    let series: [(&str, CellValue, _); 2] =
        [(&saved, |cell| cell.cost, BLUE), (&kept, |cell| cell.quality, GREEN)];
    let mut values = Vec::new();
    for (_, value, _) in series {
        values.extend(cells.iter().filter_map(|cell| value((*cell)?)));
    }
    if values.is_empty() {
        scene.note("every setting is broken or was not measured");
        return scene;
    }
    let panel = PlotPanel {
        edges: [80.0, scene.y, scene.right(), scene.y + HEIGHT],
        x: (-0.5, cells.len() as f64 - 0.5),
        y: reach(values.into_iter(), [].into_iter(), (0.1, 0.0), (0.07, 0.01)),
    };
    let name = |at: f64| {
        let mut columns = knob.columns.iter().zip(0_u32..);
        let found = columns.find(|(_, column)| (f64::from(*column) - at).abs() < 0.01);
        found.map_or(String::new(), |(name, _)| name.clone())
    };
    let figures = if scene.is_narrow() { 5 } else { 10 };
    let below = (&*knob.knobs.1, cells.len().min(figures) + 1, &name as _);
    panel.axes(&mut scene, below, ("percent of full history", 6, &percent));
    for (at, cell) in cells.iter().enumerate() {
        let (x, lower) = panel.at(at as f64, panel.y.0);
        match cell {
            Some(cell) if cell.chosen => {
                scene.dashes(&[(x, panel.edges[1]), (x, lower)], INK, 1, 0.6);
            }
            Some(cell) if cell.cost.is_none() && cell.quality.is_none() => {
                scene.label((x, lower - 10.0), "×", HPos::Center);
            }
            _ => {}
        }
    }
    for (words, value, color) in series {
        let points = cells.iter().enumerate().filter_map(|(at, cell)| Some((at, value((*cell)?)?)));
        let points: Vec<_> =
            points.map(|(at, share)| (at, share, panel.at(at as f64, share))).collect();
        let line: Vec<_> = points.iter().map(|(.., place)| *place).collect();
        scene.series(words, |scene| scene.line(&line, color, 2, 1.0));
        for (at, share, place) in points {
            let tip = format!("{}: {words} {}", knob.columns[at], display::percent(share));
            scene.tip(&tip, |scene| scene.dot(place, 4.0, color, false));
        }
    }
    scene.y += HEIGHT + 46.0;
    scene
}
