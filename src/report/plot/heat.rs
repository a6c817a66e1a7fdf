//! Heat maps of a sweep: one row of two maps for each pair of knobs, the metric to save and the
//! metric to keep.

use plotters::style::colors::colormaps::{ColorMap, DerivedColorMap};

use super::scene::{Color, HPos, INK, PAPER, PlotScene, SIZE, VERMILLION, fitted, text_width};
use super::sweep::CellValue;
use crate::compare::sweep::{KnobPair, Sweep};
use crate::report::display;

/// The left edges of the two maps, and the width of each; in a narrow picture one is below the other.
const LEFTS: [f64; 2] = [92.0, 484.0];
const MAP: f64 = 288.0;
/// The size of figures that do not fit otherwise.
const SMALL: f64 = 13.0;
/// The greatest height of a map.
const HIGHEST: f64 = 420.0;
const ROW: f64 = 30.0;
/// Room for the values of the rows.
const BESIDE: f64 = 76.0;
/// The greatest height of upright values below a map.
const UPRIGHT: f64 = 110.0;

/// From little to much, each darker than the one before, so that it reads without colour: yellow, green
/// and blue of one lightness ramp, as in the palettes of C. Brewer.
const RAMP: [Color; 5] = [
    Color(255, 255, 217),
    Color(199, 233, 180),
    Color(65, 182, 196),
    Color(34, 94, 168),
    Color(8, 29, 88),
];

/// The colours of figures on the ramp. A page in dark colours swaps [`INK`] and [`PAPER`], and not the ramp.
const BLACK: Color = Color(0, 0, 0);
const WHITE: Color = Color(255, 255, 254);

/// From this relative luminance on, black has a higher contrast than white (WCAG 2).
const BLACK_FROM: f64 = 0.179;

/// The maps of these pairs of knobs.
pub(super) fn scene(sweep: &Sweep, pairs: &[KnobPair], width: f64) -> PlotScene {
    let mut scene = PlotScene::new("What each pair of knobs saves and keeps", width);
    let sessions = display::many(sweep.tune.len(), "session", "sessions");
    scene.paragraph(&format!(
        "mean over {sessions} and all other knobs, in percent; outlined: with the chosen setting; ×: broken; empty: not tried"
    ));
    if pairs.is_empty() {
        scene.note("no knob was turned");
    }
    for pair in pairs {
        both(&mut scene, sweep, pair);
    }
    scene
}

fn both(scene: &mut PlotScene, sweep: &Sweep, pair: &KnobPair) {
    let (down, across) = (&pair.knobs.0, &pair.knobs.1);
    scene.y += 10.0;
    scene.note(&format!("rows: {down}"));
    scene.note(&format!("columns: {across}"));
    let mut top = scene.y + 6.0;
    let maps: [(&str, CellValue); 2] =
        [(sweep.cost.name(), |cell| cell.cost), (sweep.quality.name(), |cell| cell.quality)];
    for ((metric, value), left) in maps.into_iter().zip(LEFTS) {
        let left = if scene.is_narrow() { LEFTS[0] } else { left };
        let heading = match metric {
            "bill" | "tokens" => format!("{metric} saved, more is better"),
            kept => format!("{kept} kept, more is better"),
        };
        scene.label((left + MAP / 2.0, top), &heading, HPos::Center);
        let end = draw(scene, pair, value, (left, top + 14.0));
        scene.y = scene.y.max(end);
        if scene.is_narrow() {
            top = end + 16.0;
        }
    }
}

/// Draws one map, and returns where it ends.
fn draw(scene: &mut PlotScene, pair: &KnobPair, value: CellValue, (left, top): (f64, f64)) -> f64 {
    let row = ROW.min(HIGHEST / pair.rows.len().max(1) as f64);
    let column = MAP / pair.columns.len().max(1) as f64;
    let values = pair.cells.iter().flatten().flatten().filter_map(value);
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    let mut outlined = Vec::new();
    for (down, cells) in pair.cells.iter().enumerate() {
        for (across, cell) in cells.iter().enumerate() {
            let Some(cell) = cell else { continue };
            let (x, y) = (left + column * across as f64, top + row * down as f64);
            let edges = [x, y, x + column, y + row];
            let middle = (x + column / 2.0, y + row / 2.0);
            let Some(value) = value(cell) else {
                if column >= 9.0 && row >= 9.0 {
                    scene.label(middle, "×", HPos::Center);
                }
                continue;
            };
            let fill = shade(share(value, low, high));
            scene.rect(edges, fill, 1.0);
            if let Some((text, size)) = value_label(value, column).filter(|_| row >= 16.0) {
                let ink = if luminance(fill) < BLACK_FROM { WHITE } else { BLACK };
                scene.write(middle, &text, size, ink, HPos::Center);
            }
            if cell.chosen {
                outlined.push(edges);
            }
        }
    }
    let lower = top + row * pair.rows.len() as f64;
    outline(scene, [left, top, left + MAP, lower], INK, 1);
    for edges in outlined {
        outline(scene, edges, PAPER, 6);
        outline(scene, edges, VERMILLION, 3);
    }
    draw_row_labels(scene, &pair.rows, left, top, row);
    below(scene, &pair.columns, left, lower, column)
}

/// The number of a cell with its font size: with a decimal, without it, or small.
fn value_label(value: f64, width: f64) -> Option<(String, f64)> {
    let exact = display::points(value);
    let whole = display::points((value * 100.0).round() / 100.0).trim_end_matches(".0").to_owned();
    let ways = [(exact, SIZE), (whole.clone(), SIZE), (whole, SMALL)];
    ways.into_iter().find(|(text, size)| text_width(text, *size) + 6.0 <= width)
}

fn outline(scene: &mut PlotScene, [left, upper, right, lower]: [f64; 4], color: Color, width: u32) {
    let (first, second) = ((left, upper), (right, lower));
    let corners = [first, (right, upper), second, (left, lower), first];
    scene.line(&corners, color, width, 1.0);
}

/// The height of a line of text in cells: values this many cells apart do not overlap.
fn label_step(cell: f64) -> usize {
    let mut counts = 1..=u8::MAX;
    counts.find(|count| f64::from(*count) * cell >= SIZE).map_or(usize::MAX, usize::from)
}

/// The values of the rows, as many as there is room for.
fn draw_row_labels(scene: &mut PlotScene, rows: &[String], left: f64, top: f64, row: f64) {
    for (at, value) in rows.iter().enumerate().step_by(label_step(row)) {
        let y = top + row * (at as f64 + 0.5);
        scene.label((left - 8.0, y), &fitted(value, BESIDE), HPos::Right);
    }
}

/// The values of the columns: horizontal if they all fit, else upright. Returns where they end.
fn below(scene: &mut PlotScene, columns: &[String], left: f64, lower: f64, column: f64) -> f64 {
    if columns.iter().map(|value| text_width(value, SIZE)).all(|width| width + 4.0 <= column) {
        for (at, value) in columns.iter().enumerate() {
            let x = left + column * (at as f64 + 0.5);
            scene.label((x, lower + 12.0), value, HPos::Center);
        }
        return lower + 20.0;
    }
    let mut longest = 0.0_f64;
    for (at, value) in columns.iter().enumerate().step_by(label_step(column)) {
        let text = fitted(value, UPRIGHT);
        let length = text_width(&text, SIZE);
        let x = left + column * (at as f64 + 0.5);
        scene.upright((x, lower + 6.0 + length / 2.0), &text);
        longest = longest.max(length);
    }
    lower + longest + 10.0
}

/// Where a value lies between the least and the most; the middle where all are the same.
fn share(value: f64, low: f64, high: f64) -> f64 {
    if high - low > 1e-9 { (value - low) / (high - low) } else { 0.25 }
}

/// The colour at a share of the ramp.
fn shade(share: f64) -> Color {
    DerivedColorMap::new(&RAMP).get_color(share)
}

/// Relative luminance (WCAG 2).
fn luminance(Color(red, green, blue): Color) -> f64 {
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

fn linear(part: u8) -> f64 {
    let share = f64::from(part) / 255.0;
    if share <= 0.04045 { share / 12.92 } else { libm::pow((share + 0.055) / 1.055, 2.4) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_darker_at_every_step() {
        for step in 0..40 {
            let (here, next) = (f64::from(step) / 40.0, f64::from(step + 1) / 40.0);
            let (here, next) = (luminance(shade(here)), luminance(shade(next)));
            assert!(here > next, "{step}");
        }
    }

    #[test]
    fn figures_are_readable_on_every_shade() {
        for step in 0..=1_000 {
            let shade = luminance(shade(f64::from(step) / 1_000.0)) + 0.05;
            let contrast = if shade - 0.05 < BLACK_FROM {
                (luminance(WHITE) + 0.05) / shade
            } else {
                shade / (luminance(BLACK) + 0.05)
            };
            assert!(contrast >= 4.5, "{step}: {contrast}");
        }
    }
}
