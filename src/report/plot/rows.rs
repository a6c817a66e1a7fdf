//! Row charts: a row for each name, its values with their intervals on one axis, and the same in words.

use super::axes::{Panel, ticks};
use super::scene::{Color, HPos, INK, SIZE, Scene, fitted};

const LEFT: f64 = 32.0;
/// The room for the words beside the values.
const BESIDE: f64 = 300.0;
const HEIGHT: f64 = 42.0;

/// A row.
pub(super) struct Row {
    /// The text above the values.
    pub(super) title: String,
    /// The text next to the values.
    pub(super) words: String,
    /// A limit, drawn as a dashed line.
    pub(super) margin: Option<f64>,
    /// From above.
    pub(super) values: Vec<Value>,
}

/// A value of a row.
pub(super) struct Value {
    pub(super) at: f64,
    pub(super) interval: Option<(f64, f64)>,
    pub(super) color: Color,
    pub(super) hollow: bool,
}

/// Draws the rows on an axis that goes from the first to the second end, with a line at each figure.
pub(super) fn draw(scene: &mut Scene, rows: &[Row], x: (f64, f64), text: &dyn Fn(f64) -> String) {
    // In a narrow picture the words are above the values, below the title.
    let (right, height, above) = if scene.is_narrow() {
        (scene.right(), HEIGHT + 18.0, 18.0)
    } else {
        (scene.width - BESIDE, HEIGHT, 0.0)
    };
    let (upper, lower) = (scene.y, scene.y + height * rows.len() as f64);
    let panel = Panel {
        edges: [LEFT, upper, right, lower],
        x,
        y: (0.0, 1.0),
    };
    for value in ticks(x, if scene.is_narrow() { 5 } else { 7 }) {
        let (x, _) = panel.at(value, 0.0);
        let opacity = if value.abs() < 1e-9 { 0.7 } else { 0.13 };
        scene.line(&[(x, upper), (x, lower)], INK, 1, opacity);
        scene.label((x, lower + 14.0), &text(value), HPos::Center);
    }
    scene.line(&[(LEFT, lower), (right, lower)], INK, 1, 0.4);
    let x = |value: f64| panel.clamped((value, 0.0)).0;
    for row in rows {
        let (top, middle) = (scene.y + 9.0, scene.y + 28.0 + above);
        let title = fitted(&row.title, SIZE, scene.width - 2.0 * LEFT);
        scene.label((LEFT, top), &title, HPos::Left);
        if let Some(margin) = row.margin.map(x) {
            let ends = [(margin, middle - 9.0), (margin, middle + 9.0)];
            scene.dashes(&ends, INK, 1, 0.6);
        }
        // Of two values one is a little above the other, so that neither hides the other.
        let mut y = middle - 4.0 * (row.values.len().max(1) - 1) as f64;
        scene.tip(&format!("{}: {}", row.title, row.words), |scene| {
            for value in &row.values {
                if let Some((from, to)) = value.interval {
                    scene.line(&[(x(from), y), (x(to), y)], value.color, 2, 0.8);
                    // The end of an interval beyond the edge is not drawn.
                    for end in [from, to] {
                        if (panel.x.0..=panel.x.1).contains(&end) {
                            let cap = [(x(end), y - 4.0), (x(end), y + 4.0)];
                            scene.line(&cap, value.color, 2, 0.8);
                        }
                    }
                }
                scene.dot((x(value.at), y), 4.5, value.color, value.hollow);
                y += 8.0;
            }
        });
        let (at, room) = if scene.is_narrow() {
            ((LEFT, top + above), scene.width - 2.0 * LEFT)
        } else {
            ((right + 14.0, middle), BESIDE - 26.0)
        };
        scene.label(at, &fitted(&row.words, SIZE, room), HPos::Left);
        scene.y += height;
    }
    scene.y += 36.0;
}
