//! From a scene to SVG, with a font that is built in.

use std::sync::OnceLock;

use plotters::backend::{DrawingBackend, SVGBackend};
use plotters::style::text_anchor::{Pos, VPos};
use plotters::style::{
    Color as _, FontStyle, FontTransform, IntoFont, ShapeStyle, TextStyle, register_font,
};

use super::scene::{PAPER, Scene, Shape};
use crate::report::RenderError;

/// A part of `DejaVu` Sans; its licence is in the same folder.
static FONT: &[u8] = include_bytes!("DejaVuSans-subset.ttf");

/// The family that browsers and viewers know; the built-in font is registered under this name.
const FAMILY: &str = "sans-serif";

/// Registers the font with the plotting library, once in a process.
fn with_font() {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    REGISTERED.get_or_init(|| register_font(FAMILY, FontStyle::Normal, FONT).is_ok());
}

/// The width of a text, in pixels.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    with_font();
    let measured = (FAMILY, size).into_font().box_size(text);
    // The font is built in, so measuring hardly fails: half the height per letter is near enough.
    measured.map_or_else(
        |_| text.chars().count() as f64 * size / 2.0,
        |(width, _)| f64::from(width),
    )
}

/// The scene as a document of its own.
pub(crate) fn svg(scene: &Scene) -> Result<String, RenderError> {
    with_font();
    let mut text = String::new();
    paint(
        scene,
        SVGBackend::with_string(&mut text, (scene.width, scene.height)),
    )
    .map_err(|error| RenderError::Plot(error.to_string()))?;
    Ok(text)
}

type Painted = Result<(), Box<dyn std::error::Error>>;

fn paint(scene: &Scene, mut backend: SVGBackend<'_>) -> Painted {
    let corner = (f64::from(scene.width), f64::from(scene.height));
    backend.draw_rect((0, 0), at(corner), &PAPER, true)?;
    for shape in &scene.shapes {
        draw(&mut backend, shape)?;
    }
    Ok(backend.present()?)
}

fn draw(backend: &mut SVGBackend<'_>, shape: &Shape) -> Painted {
    match shape {
        Shape::Rect {
            edges: [left, upper, right, lower],
            color,
            opacity,
        } => {
            let (from, to) = (at((*left, *upper)), at((*right, *lower)));
            backend.draw_rect(from, to, &color.mix(*opacity), true)?;
        }
        Shape::Line {
            points,
            color,
            opacity,
            width,
        } => {
            let style = ShapeStyle::from(color.mix(*opacity)).stroke_width(*width);
            let mut points: Vec<_> = points.iter().copied().map(at).collect();
            points.dedup();
            for part in blunt(&points) {
                backend.draw_path(part.iter().copied(), &style)?;
            }
        }
        Shape::Area { points, color } => {
            backend.fill_polygon(points.iter().copied().map(at), color)?;
        }
        Shape::Dot {
            at: middle,
            radius,
            color,
            hollow,
        } => {
            let (middle, radius) = (at(*middle), pixel(*radius).unsigned_abs());
            let fill = if *hollow { &PAPER } else { color };
            backend.draw_circle(middle, radius, fill, true)?;
            if *hollow {
                let outline = ShapeStyle::from(color).stroke_width(2);
                backend.draw_circle(middle, radius, &outline, false)?;
            }
        }
        Shape::Text {
            at: position,
            text,
            size,
            color,
            anchor,
            upwards,
        } => {
            let font = (FAMILY, *size).into_font();
            let font = if *upwards {
                font.transform(FontTransform::Rotate270)
            } else {
                font
            };
            let style = TextStyle::from(font).color(color);
            let style = style.pos(Pos::new(*anchor, VPos::Center));
            backend.draw_text(text, &style, at(*position))?;
        }
    }
    Ok(())
}

/// The pixel at a point.
fn at((x, y): (f64, f64)) -> (i32, i32) {
    (pixel(x), pixel(y))
}

/// The parts of a line between its sharp corners. A thick line is drawn with pointed corners: at a
/// sharp turn the point would reach far beyond the drawn values.
fn blunt(points: &[(i32, i32)]) -> Vec<&[(i32, i32)]> {
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, three) in points.windows(3).enumerate() {
        let step = |from: (i32, i32), to: (i32, i32)| {
            (
                f64::from(to.0) - f64::from(from.0),
                f64::from(to.1) - f64::from(from.1),
            )
        };
        let (come, go) = (step(three[0], three[1]), step(three[1], three[2]));
        let lengths = libm::hypot(come.0, come.1) * libm::hypot(go.0, go.1);
        // Cuts at turns of more than 45 degrees: up to there a point is hardly longer than the line
        // is thick.
        if come.0 * go.0 + come.1 * go.1 < 0.7 * lengths {
            parts.push(&points[from..=at + 1]);
            from = at + 1;
        }
    }
    if from < points.len() {
        parts.push(&points[from..]);
    }
    parts
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a float that is too large becomes the largest pixel, which lies outside of the picture"
)]
fn pixel(value: f64) -> i32 {
    value.round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_where_it_turns_back_and_nowhere_else() {
        let gentle = [(0, 0), (10, 1), (20, 3), (30, 2)];
        assert_eq!(blunt(&gentle), [&gentle[..]]);
        let spike = [(0, 0), (10, 100), (11, 0), (20, 2)];
        assert_eq!(blunt(&spike), [&spike[..2], &spike[1..3], &spike[2..]]);
        assert_eq!(blunt(&[(1, 1)]), [&[(1, 1)][..]]);
        assert_eq!(blunt(&[]), [&[][..]; 0]);
    }
}
