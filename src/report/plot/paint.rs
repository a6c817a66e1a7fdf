//! From a scene to SVG, with a font that is built in.

use std::sync::OnceLock;

use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Polygon, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color as _, FontStyle, FontTransform, IntoFont, RGBAColor, RGBColor, ShapeStyle, TextStyle,
    register_font,
};

use super::scene::{Anchor, Color, PAPER, Scene, Shape};
use crate::report::RenderError;

/// A part of `DejaVu` Sans; its licence stands beside it.
static FONT: &[u8] = include_bytes!("DejaVuSans-subset.ttf");

/// The family that browsers and viewers know; the built-in font goes by this name.
const FAMILY: &str = "sans-serif";

/// Hands the font to the plotting library, once in a process.
fn with_font() {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    REGISTERED.get_or_init(|| register_font(FAMILY, FontStyle::Normal, FONT).is_ok());
}

/// How wide a text is, in pixels.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    with_font();
    let measured = (FAMILY, size).into_font().box_size(text);
    // The font is built in: where it says nothing, half its height for each letter is near enough.
    measured.map_or_else(
        |_| text.chars().count() as f64 * size / 2.0,
        |(width, _)| f64::from(width),
    )
}

/// The scene as a document of its own.
pub(crate) fn svg(scene: &Scene) -> Result<String, RenderError> {
    with_font();
    let mut text = String::new();
    {
        let backend = SVGBackend::with_string(&mut text, (scene.width, scene.height));
        paint(scene, backend).map_err(|error| RenderError::Plot(error.to_string()))?;
    }
    Ok(text)
}

type Painted = Result<(), DrawingAreaErrorKind<std::io::Error>>;

fn paint(scene: &Scene, backend: SVGBackend<'_>) -> Painted {
    let area = backend.into_drawing_area();
    area.fill(&rgb(PAPER))?;
    for shape in &scene.shapes {
        draw(&area, shape)?;
    }
    area.present()
}

fn draw(area: &DrawingArea<SVGBackend<'_>, Shift>, shape: &Shape) -> Painted {
    let at = |(x, y): (f64, f64)| (pixel(x), pixel(y));
    match shape {
        Shape::Rect {
            edges: [left, upper, right, lower],
            color,
            opacity,
        } => {
            let corners = [at((*left, *upper)), at((*right, *lower))];
            area.draw(&Rectangle::new(corners, rgba(*color, *opacity).filled()))
        }
        Shape::Line {
            points,
            color,
            opacity,
            width,
        } => {
            let style = ShapeStyle::from(rgba(*color, *opacity)).stroke_width(*width);
            let mut points: Vec<_> = points.iter().map(|point| at(*point)).collect();
            points.dedup();
            for part in blunt(&points) {
                area.draw(&PathElement::new(part.to_vec(), style))?;
            }
            Ok(())
        }
        Shape::Area { points, color } => {
            let points: Vec<_> = points.iter().map(|point| at(*point)).collect();
            area.draw(&Polygon::new(points, rgb(*color).filled()))
        }
        Shape::Dot {
            at: middle,
            radius,
            color,
            hollow,
        } => {
            let radius = pixel(*radius);
            if *hollow {
                area.draw(&Circle::new(at(*middle), radius, rgb(PAPER).filled()))?;
                let style = ShapeStyle::from(rgb(*color)).stroke_width(2);
                area.draw(&Circle::new(at(*middle), radius, style))
            } else {
                area.draw(&Circle::new(at(*middle), radius, rgb(*color).filled()))
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
            let horizontal = match anchor {
                Anchor::Start => HPos::Left,
                Anchor::Middle => HPos::Center,
                Anchor::End => HPos::Right,
            };
            let font = (FAMILY, *size).into_font();
            let font = if *upwards {
                font.transform(FontTransform::Rotate270)
            } else {
                font
            };
            let ink = rgb(*color);
            let style = TextStyle::from(font)
                .color(&ink)
                .pos(Pos::new(horizontal, VPos::Center));
            area.draw(&Text::new(text.as_str(), at(*position), style))
        }
    }
}

/// The parts of a line between its sharp corners. A thick line is drawn with pointed corners, and where
/// it turns back the point would reach far beyond the picture's values.
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
        // More than a right-angled turn's half is cut: up to there a point is hardly longer than the
        // line is thick.
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

fn rgb((red, green, blue): Color) -> RGBColor {
    RGBColor(red, green, blue)
}

fn rgba(color: Color, opacity: f64) -> RGBAColor {
    rgb(color).mix(opacity)
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
