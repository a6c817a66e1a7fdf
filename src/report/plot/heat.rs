//! Heat maps of a sweep: one row of two maps for each pair of knobs, what is saved and what is kept.

use super::scene::{Anchor, Color, INK, PAPER, SIZE, Scene, VERMILLION, fitted, text_width};
use crate::compare::sweep::{KnobPair, PairCell, Sweep, SweepPoint, pairs};
use crate::report::figure;

/// Where the two maps begin and how wide each is.
const LEFTS: [f64; 2] = [92.0, 484.0];
const MAP: f64 = 296.0;
/// Figures that do not fit otherwise.
const SMALL: f64 = 11.5;
/// The highest a map gets.
const HIGHEST: f64 = 420.0;
const ROW: f64 = 30.0;
/// Room for the values of the rows.
const BESIDE: f64 = 76.0;
/// The highest that values below a map get when they stand upright.
const UPRIGHT: f64 = 110.0;

/// From little to much, each darker than the one before, so that it reads without colour: yellow, green
/// and blue of one lightness ramp, as in the palettes of C. Brewer.
const RAMP: [Color; 5] = [
    (255, 255, 217),
    (199, 233, 180),
    (65, 182, 196),
    (34, 94, 168),
    (8, 29, 88),
];

/// One cell as it is drawn.
#[derive(Clone, Copy)]
enum Cell {
    NotTried,
    Broken,
    Value { value: f64, recommended: bool },
}

/// One map, whatever it comes from.
struct Map<'a> {
    title: &'a str,
    rows: &'a [String],
    columns: &'a [String],
    cells: Vec<Vec<Cell>>,
}

/// All pairs of knobs; one knob alone is a map of one row.
pub(crate) fn scene(sweep: &Sweep) -> Scene {
    let mut scene = Scene::new("What each pair of knobs saves and keeps");
    let pairs: Vec<KnobPair> = match (sweep.pairs.as_slice(), sweep.sensitivity.first()) {
        ([], Some(knob)) => vec![alone(sweep, &knob.knob)],
        (pairs, _) => pairs.to_vec(),
    };
    let words = format!(
        "mean over {} and all other knobs, in percent; outlined: with the recommended setting; ×: broken; empty: not tried",
        figure::many(sweep.tune.len(), "session", "sessions")
    );
    let mut y = scene.paragraph(46.0, &words);
    if pairs.is_empty() {
        return scene.with_only(y, "no knob was turned");
    }
    for pair in &pairs {
        y = both(&mut scene, sweep, pair, y + 10.0);
    }
    scene.ends_at(y);
    scene
}

/// One knob as a pair whose other knob takes one value.
fn alone(sweep: &Sweep, knob: &str) -> KnobPair {
    let columns = pairs::values(&sweep.points, knob);
    let cell = |column: &String| {
        let has = |point: &&SweepPoint| point.values.iter().any(|(_, value)| value == column);
        PairCell::of(sweep.points.iter().filter(has))
    };
    KnobPair {
        knobs: (String::new(), knob.to_owned()),
        rows: vec![String::new()],
        cells: vec![columns.iter().map(cell).collect()],
        columns,
    }
}

fn both(scene: &mut Scene, sweep: &Sweep, pair: &KnobPair, top: f64) -> f64 {
    let (down, across) = (&pair.knobs.0, &pair.knobs.1);
    let mut y = top;
    if !down.is_empty() {
        y = scene.note(y, &format!("rows: {down}"));
    }
    y = scene.note(y, &format!("columns: {across}")) + 6.0;
    let pick: [fn(&PairCell) -> Option<f64>; 2] = [|cell| cell.cost, |cell| cell.quality];
    let mut end = y;
    for ((left, title), value) in LEFTS
        .into_iter()
        .zip([&sweep.cost, &sweep.quality])
        .zip(pick)
    {
        let cell = |cell: &Option<PairCell>| match cell {
            None => Cell::NotTried,
            Some(cell) => value(cell).map_or(Cell::Broken, |value| Cell::Value {
                value,
                recommended: cell.recommended,
            }),
        };
        let map = Map {
            title,
            rows: &pair.rows,
            columns: &pair.columns,
            cells: pair
                .cells
                .iter()
                .map(|row| row.iter().map(cell).collect())
                .collect(),
        };
        end = end.max(draw(scene, &map, left, y));
    }
    end
}

fn draw(scene: &mut Scene, map: &Map<'_>, left: f64, top: f64) -> f64 {
    let row = ROW.min(HIGHEST / map.rows.len().max(1) as f64);
    let column = MAP / map.columns.len().max(1) as f64;
    let values = map.cells.iter().flatten().filter_map(|cell| match cell {
        Cell::Value { value, .. } => Some(*value),
        Cell::NotTried | Cell::Broken => None,
    });
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    scene.label(
        (left + MAP / 2.0, top),
        &format!("{}, more is better", map.title),
        Anchor::Middle,
    );
    let top = top + 14.0;
    let mut outlined = Vec::new();
    for (down, cells) in map.cells.iter().enumerate() {
        for (across, cell) in cells.iter().enumerate() {
            let (x, y) = (left + column * across as f64, top + row * down as f64);
            let edges = [x, y, x + column, y + row];
            let middle = (x + column / 2.0, y + row / 2.0);
            match cell {
                Cell::NotTried => {}
                Cell::Broken => {
                    if column >= 9.0 && row >= 9.0 {
                        scene.label(middle, "×", Anchor::Middle);
                    }
                }
                Cell::Value { value, recommended } => {
                    let color = shade(share(*value, low, high));
                    scene.rect(edges, color, 1.0);
                    if let Some((text, size)) = shown(*value, column).filter(|_| row >= 16.0) {
                        scene.write(middle, &text, size, ink_on(color), Anchor::Middle);
                    }
                    if *recommended {
                        outlined.push(edges);
                    }
                }
            }
        }
    }
    let height = row * map.rows.len() as f64;
    let frame = [left, top, left + MAP, top + height];
    outline(scene, frame, INK, 1);
    for edges in outlined {
        outline(scene, edges, PAPER, 6);
        outline(scene, edges, VERMILLION, 3);
    }
    beside(scene, map.rows, left, top, row);
    let below = below(scene, map.columns, left, top + height, column);
    scale(scene, left, below + 12.0, (low, high))
}

/// The figure of a cell with its size: with a decimal, without it, or small.
fn shown(value: f64, width: f64) -> Option<(String, f64)> {
    let exact = figure::points(value);
    let whole = figure::points((value * 100.0).round() / 100.0);
    let whole = whole.trim_end_matches(".0").to_owned();
    let fits = |(text, size): &(String, f64)| text_width(text, *size) + 6.0 <= width;
    let ways = [(exact, SIZE), (whole.clone(), SIZE), (whole, SMALL)];
    ways.into_iter().find(fits)
}

/// What is read best on a colour: the one of higher contrast, by relative luminance (WCAG 2).
fn ink_on(color: Color) -> Color {
    let light = |(red, green, blue): Color| {
        let linear = |part: u8| {
            let share = f64::from(part) / 255.0;
            if share <= 0.04045 {
                share / 12.92
            } else {
                libm::pow((share + 0.055) / 1.055, 2.4)
            }
        };
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    };
    let contrast = |ink: Color| {
        let (one, other) = (light(ink) + 0.05, light(color) + 0.05);
        (one / other).max(other / one)
    };
    if contrast(INK) >= contrast(PAPER) {
        INK
    } else {
        PAPER
    }
}

fn outline(scene: &mut Scene, [left, upper, right, lower]: [f64; 4], color: Color, width: u32) {
    let corners = vec![
        (left, upper),
        (right, upper),
        (right, lower),
        (left, lower),
        (left, upper),
    ];
    scene.line(corners, color, width, 1.0);
}

/// The values of the rows, as many as there is room for.
fn beside(scene: &mut Scene, rows: &[String], left: f64, top: f64, row: f64) {
    let mut free = f64::NEG_INFINITY;
    for (at, value) in rows.iter().enumerate() {
        let y = top + row * (at as f64 + 0.5);
        if y - SIZE / 2.0 >= free {
            let text = fitted(value, SIZE, BESIDE);
            scene.label((left - 8.0, y), &text, Anchor::End);
            free = y + SIZE / 2.0 + 1.0;
        }
    }
}

/// The values of the columns, lying where they fit and else upright; returns where they end.
fn below(scene: &mut Scene, columns: &[String], left: f64, lower: f64, column: f64) -> f64 {
    let width = |value: &String| text_width(value, SIZE);
    let lies = columns.iter().all(|value| width(value) + 4.0 <= column);
    if lies {
        for (at, value) in columns.iter().enumerate() {
            let x = left + column * (at as f64 + 0.5);
            scene.label((x, lower + 12.0), value, Anchor::Middle);
        }
        return lower + 20.0;
    }
    let mut free = f64::NEG_INFINITY;
    let mut lowest = lower;
    for (at, value) in columns.iter().enumerate() {
        let x = left + column * (at as f64 + 0.5);
        if x - SIZE / 2.0 >= free {
            let text = fitted(value, SIZE, UPRIGHT);
            let long = text_width(&text, SIZE);
            scene.upright((x, lower + 6.0 + long / 2.0), &text);
            lowest = lowest.max(lower + 6.0 + long);
            free = x + SIZE / 2.0 + 1.0;
        }
    }
    lowest + 4.0
}

/// The ramp with its two ends; returns where it ends.
fn scale(scene: &mut Scene, left: f64, top: f64, (low, high): (f64, f64)) -> f64 {
    const STEPS: u32 = 40;
    if low > high {
        return top;
    }
    let (from, to) = (left + 60.0, left + MAP - 60.0);
    let step = (to - from) / f64::from(STEPS);
    for at in 0..STEPS {
        let share = f64::from(at) / f64::from(STEPS - 1);
        let x = from + step * f64::from(at);
        scene.rect([x, top, x + step + 0.5, top + 10.0], shade(share), 1.0);
    }
    outline(scene, [from, top, to, top + 10.0], INK, 1);
    scene.label((from - 6.0, top + 5.0), &figure::percent(low), Anchor::End);
    scene.label((to + 6.0, top + 5.0), &figure::percent(high), Anchor::Start);
    top + 26.0
}

/// Where a value lies between the least and the most; the middle where all are the same.
fn share(value: f64, low: f64, high: f64) -> f64 {
    if high - low > 1e-9 {
        (value - low) / (high - low)
    } else {
        0.25
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a short ramp, and a mean of two bytes"
)]
fn shade(share: f64) -> Color {
    let along = share.clamp(0.0, 1.0) * (RAMP.len() - 1) as f64;
    let at = (along.floor() as usize).min(RAMP.len() - 2);
    let rest = along - at as f64;
    let mix = |from: u8, to: u8| (f64::from(from) * (1.0 - rest) + f64::from(to) * rest).round();
    let (from, to) = (RAMP[at], RAMP[at + 1]);
    (
        mix(from.0, to.0) as u8,
        mix(from.1, to.1) as u8,
        mix(from.2, to.2) as u8,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_darker_at_every_step() {
        // Relative luminance, Rec. 709 weights.
        let light = |share: f64| {
            let (red, green, blue) = shade(share);
            0.2126 * f64::from(red) + 0.7152 * f64::from(green) + 0.0722 * f64::from(blue)
        };
        for step in 0..40 {
            let (here, next) = (f64::from(step) / 40.0, f64::from(step + 1) / 40.0);
            assert!(light(here) > light(next) + 0.5, "{here}");
        }
    }
}
