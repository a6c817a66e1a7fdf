//! A picture: shapes in pixels from the upper left corner, and how they become SVG.
//!
//! A scene is filled from above: `y` is the middle of the next line of text, and whatever is drawn moves it down.

use std::error::Error;
use std::sync::OnceLock;

use plotters::backend::{DrawingBackend, SVGBackend};
use plotters::element::{DashedPathElement, Drawable};
pub(crate) use plotters::style::RGBColor as Color;
pub(crate) use plotters::style::text_anchor::HPos;
use plotters::style::text_anchor::{Pos, VPos};
use plotters::style::{
    Color as _, FontStyle, FontTransform, IntoFont, ShapeStyle, TextStyle, register_font,
};

use super::axes::PlotPanel;
use crate::report::{RenderError, escape};

/// The colour of text, axes and outlines.
pub(crate) const INK: Color = Color(36, 41, 47);
/// The background.
pub(crate) const PAPER: Color = Color(255, 255, 255);

// The palette of Okabe and Ito (2008).
pub(crate) const BLUE: Color = Color(0, 114, 178);
pub(crate) const VERMILLION: Color = Color(213, 94, 0);
pub(crate) const GREEN: Color = Color(0, 158, 115);
pub(crate) const PURPLE: Color = Color(204, 121, 167);
pub(crate) const ORANGE: Color = Color(230, 159, 0);
pub(crate) const SKY: Color = Color(86, 180, 233);
/// Too light for a line, good for a band.
pub(crate) const YELLOW: Color = Color(240, 228, 66);

/// The colours of lines, in the order in which strategies take them.
const LINES: [Color; 6] = [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY];

/// The size of all text but titles: about 12 pixels of a browser on a telephone.
pub(crate) const SIZE: f64 = 16.0;
/// The size of titles.
const TITLE: f64 = 19.0;

/// The width of pictures.
pub(crate) const WIDE: f64 = 800.0;
/// The width of the same pictures on a telephone: a wide one, scaled down, could not be read there.
pub(crate) const NARROW: f64 = 400.0;
/// The distance of text from the edges.
const MARGIN: f64 = 16.0;

/// The distance from one line of text to the next.
const LINE_HEIGHT: f64 = 20.0;

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
    match (FAMILY, size).into_font().box_size(text) {
        Ok((width, _)) => f64::from(width),
        // The font is built in, so measuring hardly fails: half the height per letter is near enough.
        Err(_) => text.chars().count() as f64 * size / 2.0,
    }
}

/// The colour of a strategy's line, and whether the line is dashed: lines after the sixth are.
pub(crate) fn line_of(series: usize) -> (Color, bool) {
    (LINES[series % LINES.len()], (series / LINES.len()) % 2 == 1)
}

type DrawResult = Result<(), Box<dyn Error>>;

/// A line of text, centred vertically on its position.
pub(crate) struct Label {
    pub(crate) at: (f64, f64),
    pub(crate) text: String,
    pub(crate) size: f64,
    color: Color,
    /// The point of the text that is at its position.
    pub(crate) anchor: HPos,
    /// Whether it is read from bottom to top.
    pub(crate) upwards: bool,
}

/// A picture.
pub(crate) struct PlotScene {
    /// The middle of the next line of text.
    pub(crate) y: f64,
    /// The subject, for readers who do not see the picture.
    pub(crate) title: String,
    /// From the left to the right edge.
    pub(crate) width: f64,
    /// The legend's entries of series, by name, with the boxes that they take up.
    pub(crate) series: Vec<(String, [f64; 4])>,
    /// Where calls, and tokens from 0 up, are in a picture of one session.
    pub(crate) call_axis: Option<PlotPanel>,
    /// The markup of the shapes, from back to front, or why one could not be drawn.
    shapes: Vec<Result<String, String>>,
    /// In front of all shapes.
    pub(crate) labels: Vec<Label>,
}

impl PlotScene {
    /// A picture with nothing but its title.
    pub(crate) fn new(title: &str, width: f64) -> Self {
        let mut scene = Self {
            y: 20.0,
            title: title.to_owned(),
            width,
            series: Vec::new(),
            call_axis: None,
            shapes: Vec::new(),
            labels: Vec::new(),
        };
        for line in scene.lines_of(title, TITLE) {
            scene.write((MARGIN, scene.y), &line, TITLE, INK, HPos::Left);
            scene.y += 22.0;
        }
        scene.y += 4.0;
        scene
    }

    /// The right edge of plots.
    pub(crate) fn right(&self) -> f64 {
        self.width - 20.0
    }

    /// Whether it is drawn for a telephone.
    pub(crate) fn is_narrow(&self) -> bool {
        self.width < WIDE
    }

    /// A text as lines that fit between the edges.
    fn lines_of(&self, text: &str, size: f64) -> Vec<String> {
        let mut lines = vec![String::new()];
        for word in text.split(' ') {
            let last = lines.len() - 1;
            let longer = format!("{}{word} ", lines[last]);
            let too_wide = text_width(longer.trim_end(), size) > self.width - 2.0 * MARGIN;
            if too_wide && !lines[last].is_empty() {
                lines.push(format!("{word} "));
            } else {
                lines[last] = longer;
            }
        }
        lines.iter().map(|line| line.trim_end().to_owned()).collect()
    }

    pub(crate) fn height(&self) -> f64 {
        self.y + 6.0
    }

    /// Writes a line of text.
    pub(crate) fn write(
        &mut self,
        at: (f64, f64),
        text: &str,
        size: f64,
        color: Color,
        anchor: HPos,
    ) {
        self.labels.push(Label {
            at,
            // A name may come from any file, and may contain anything.
            text: escape::plain(text),
            size,
            color,
            anchor,
            upwards: false,
        });
    }

    /// Writes text in ordinary size.
    pub(crate) fn label(&mut self, at: (f64, f64), text: &str, anchor: HPos) {
        self.write(at, text, SIZE, INK, anchor);
    }

    /// Writes text in ordinary size from bottom to top, around its middle.
    pub(crate) fn upright(&mut self, at: (f64, f64), text: &str) {
        self.label(at, text, HPos::Center);
        if let Some(label) = self.labels.last_mut() {
            label.upwards = true;
        }
    }

    /// Writes a line from the left edge.
    pub(crate) fn note(&mut self, text: &str) {
        let text = fitted(text, self.width - 2.0 * MARGIN);
        self.label((MARGIN, self.y), &text, HPos::Left);
        self.y += LINE_HEIGHT;
    }

    /// Writes sentences between the edges. A picture has one font, so backticks are removed.
    pub(crate) fn paragraph(&mut self, text: &str) {
        for line in self.lines_of(&text.replace('`', ""), SIZE) {
            self.note(&line);
        }
    }

    fn draw(&mut self, shape: impl FnOnce(&mut SVGBackend<'_>) -> DrawResult) {
        self.shapes.push(painted(shape));
    }

    /// Draws shapes that show these words under the pointer.
    pub(crate) fn tip(&mut self, words: &str, draw: impl FnOnce(&mut Self)) {
        self.group(&format!("<g><title>{}</title>", escape::xml(words)), draw);
    }

    /// Draws the shapes of a series: the legend's entry of that name shows and hides them.
    pub(crate) fn series(&mut self, name: &str, draw: impl FnOnce(&mut Self)) {
        let name = escape::xml(name);
        let open = format!("<g data-series=\"{name}\"><title>{name}</title>");
        self.group(&open, draw);
    }

    fn group(&mut self, open: &str, draw: impl FnOnce(&mut Self)) {
        self.shapes.push(Ok(open.to_owned()));
        draw(self);
        self.shapes.push(Ok("</g>\n".to_owned()));
    }

    /// Draws a line through points.
    pub(crate) fn line(&mut self, points: &[(f64, f64)], color: Color, width: u32, opacity: f64) {
        let style = ShapeStyle::from(color.mix(opacity)).stroke_width(width);
        self.draw(|svg| Ok(svg.draw_path(pixels(points), &style)?));
    }

    /// Draws a dashed line: seven pixels drawn, five left out.
    pub(crate) fn dashes(&mut self, points: &[(f64, f64)], color: Color, width: u32, opacity: f64) {
        let style = ShapeStyle::from(color.mix(opacity)).stroke_width(width);
        let dashes = DashedPathElement::new(std::iter::empty::<(i32, i32)>(), 7, 5, style);
        self.draw(|svg| Ok(dashes.draw(pixels(points).into_iter(), svg, (0, 0))?));
    }

    /// Draws the line of a strategy.
    pub(crate) fn stroke(&mut self, points: &[(f64, f64)], (color, dashed): (Color, bool)) {
        if dashed {
            self.dashes(points, color, 2, 1.0);
        } else {
            self.line(points, color, 2, 1.0);
        }
    }

    /// Fills a box: left, upper, right and lower edge.
    pub(crate) fn rect(&mut self, edges: [f64; 4], color: Color, opacity: f64) {
        let [left, upper, right, lower] = edges;
        let [first, last] = [(left, upper), (right, lower)].map(pixel);
        self.draw(|svg| Ok(svg.draw_rect(first, last, &color.mix(opacity), true)?));
    }

    /// Fills a polygon.
    pub(crate) fn area(&mut self, points: &[(f64, f64)], color: Color) {
        self.draw(|svg| Ok(svg.fill_polygon(pixels(points), &color)?));
    }

    /// Draws a circle: filled, or hollow with an outline.
    pub(crate) fn dot(&mut self, at: (f64, f64), radius: f64, color: Color, hollow: bool) {
        let (middle, radius) = (pixel(at), whole(radius));
        self.draw(|svg| {
            let fill = if hollow { PAPER } else { color };
            svg.draw_circle(middle, radius, &fill, true)?;
            if hollow {
                let outline = ShapeStyle::from(color).stroke_width(2);
                svg.draw_circle(middle, radius, &outline, false)?;
            }
            Ok(())
        });
    }

    /// Draws the legend below the title.
    pub(crate) fn legend(&mut self, keys: &[LegendKey<'_>]) {
        let mut x = MARGIN;
        for &(mark, color, text) in keys {
            let whole = text;
            let text = fitted(text, self.width - 2.0 * MARGIN - 40.0);
            let wide = 30.0 + text_width(&text, SIZE) + 16.0;
            if x > MARGIN && x + wide > self.width - MARGIN {
                x = MARGIN;
                self.y += LINE_HEIGHT;
            }
            let y = self.y;
            let line = [(x, y), (x + 22.0, y)];
            match mark {
                KeyMark::Line(opacity) => self.line(&line, color, 3, opacity),
                KeyMark::Dashes(opacity) => self.dashes(&line, color, 3, opacity),
                KeyMark::Band(opacity) => {
                    self.rect([x, y - 6.0, x + 22.0, y + 6.0], color, opacity);
                }
                KeyMark::Dot => self.dot((x + 11.0, y), 5.0, color, false),
                KeyMark::Ring => self.dot((x + 11.0, y), 5.0, color, true),
            }
            self.label((x + 28.0, y), &text, HPos::Left);
            if matches!(mark, KeyMark::Line(_) | KeyMark::Dashes(_)) {
                let half = LINE_HEIGHT / 2.0;
                let edges = [x - 4.0, y - half, x + wide - 8.0, y + half];
                self.series.push((whole.to_owned(), edges));
            }
            x += wide;
        }
        self.y += LINE_HEIGHT + 2.0;
    }
}

/// The markup that the backend makes, without its document.
fn painted(draw: impl FnOnce(&mut SVGBackend<'_>) -> DrawResult) -> Result<String, String> {
    let mut text = String::new();
    let mut svg = SVGBackend::with_string(&mut text, (0, 0));
    let drawn = draw(&mut svg);
    drop(svg);
    drawn.map_err(|error| error.to_string())?;
    let (_, inner) = text.split_once('\n').unwrap_or_default();
    Ok(inner.trim_end().trim_end_matches("</svg>").to_owned())
}

impl Label {
    fn draw(&self, svg: &mut SVGBackend<'_>) -> DrawResult {
        let mut font = (FAMILY, self.size).into_font();
        if self.upwards {
            font = font.transform(FontTransform::Rotate270);
        }
        let style =
            TextStyle::from(font).color(&self.color).pos(Pos::new(self.anchor, VPos::Center));
        Ok(svg.draw_text(&self.text, &style, pixel(self.at))?)
    }
}

/// The scene as a document of its own.
pub(crate) fn svg(scene: &PlotScene) -> Result<String, RenderError> {
    with_font();
    let (width, height) = (whole(scene.width), whole(scene.height()));
    let corner = pixel((scene.width, scene.height()));
    let paper = painted(|svg| Ok(svg.draw_rect((0, 0), corner, &PAPER, true)?));
    let labels = painted(|svg| scene.labels.iter().try_for_each(|label| label.draw(svg)));
    let layers = [paper].into_iter().chain(scene.shapes.iter().cloned()).chain([labels]);
    let inner = layers.collect::<Result<String, String>>().map_err(RenderError::Plot)?;
    // The pointed corner of a thick line would reach far beyond the values at a sharp turn.
    Ok(format!(
        "<svg stroke-linejoin=\"round\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\">\n{inner}</svg>\n"
    ))
}

/// The series of the reference.
pub(crate) const FULL: &str = "full history";

/// One entry of a legend.
pub(crate) type LegendKey<'a> = (KeyMark, Color, &'a str);

/// The mark of a legend's entry, with its opacity.
#[derive(Clone, Copy)]
pub(crate) enum KeyMark {
    Line(f64),
    Dashes(f64),
    Band(f64),
    Dot,
    Ring,
}

/// The entries of full history and of strategies, each with its place among all strategies.
pub(crate) fn line_keys<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<LegendKey<'a>> {
    let mut keys = vec![(KeyMark::Line(0.35), INK, FULL)];
    keys.extend(lines.map(|(at, name)| match line_of(at) {
        (color, true) => (KeyMark::Dashes(1.0), color, name),
        (color, false) => (KeyMark::Line(1.0), color, name),
    }));
    keys
}

/// The text in ordinary size, or its two ends with an ellipsis between, so that it is no wider than `width`.
pub(crate) fn fitted(text: &str, width: f64) -> String {
    if text_width(text, SIZE) <= width {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let mut shorter = (4..chars.len()).rev().map(|kept: usize| {
        let head = kept * 2 / 3;
        let (head, tail) = (&chars[..head], &chars[chars.len() - (kept - head)..]);
        head.iter().chain(&['…']).chain(tail).collect::<String>()
    });
    shorter.find(|short| text_width(short, SIZE) <= width).unwrap_or_else(|| "…".to_owned())
}

fn pixels(points: &[(f64, f64)]) -> Vec<(i32, i32)> {
    points.iter().copied().map(pixel).collect()
}

/// The pixel at a point.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a float that is too large becomes the largest pixel, which lies outside of the picture"
)]
fn pixel((x, y): (f64, f64)) -> (i32, i32) {
    (x.round() as i32, y.round() as i32)
}

/// A length in whole pixels.
fn whole(length: f64) -> u32 {
    pixel((length, 0.0)).0.unsigned_abs()
}
