//! A picture as data: shapes in pixels, from the upper left corner.

pub(crate) use plotters::style::RGBColor as Color;
pub(crate) use plotters::style::text_anchor::HPos;

pub(crate) use super::paint::text_width;
use crate::report::escape;

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

/// The size of all text but titles, in pixels.
pub(crate) const SIZE: f64 = 13.5;
/// The size of titles.
const TITLE: f64 = 17.0;

/// The width of all pictures, and the distance of their text from the edges.
pub(crate) const WIDTH: f64 = 800.0;
const MARGIN: f64 = 16.0;

/// The distance from one line of text to the next.
const LINE_HEIGHT: f64 = 17.0;

/// The colour of a strategy's line, and whether the line is dashed: lines after the sixth are.
pub(crate) fn line_of(series: usize) -> (Color, bool) {
    (LINES[series % LINES.len()], (series / LINES.len()) % 2 == 1)
}

/// One thing to draw. Opacity goes from 0 to 1; all lengths are in pixels.
pub(crate) enum Shape {
    /// A filled box.
    Rect {
        /// Left, upper, right and lower.
        edges: [f64; 4],
        color: Color,
        opacity: f64,
    },
    /// A line through points.
    Line {
        points: Vec<(f64, f64)>,
        color: Color,
        opacity: f64,
        width: u32,
    },
    /// A filled polygon.
    Area {
        points: Vec<(f64, f64)>,
        color: Color,
    },
    /// A circle: filled, or hollow with an outline.
    Dot {
        at: (f64, f64),
        radius: f64,
        color: Color,
        hollow: bool,
    },
    /// A line of text, centred vertically on its position.
    Text {
        at: (f64, f64),
        text: String,
        size: f64,
        color: Color,
        /// The point of the text that is at its position.
        anchor: HPos,
        /// Whether it is read from bottom to top.
        upwards: bool,
    },
}

/// A picture.
pub(crate) struct Scene {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// The subject, for readers who do not see the picture.
    pub(crate) title: String,
    /// From back to front.
    pub(crate) shapes: Vec<Shape>,
}

impl Scene {
    /// An empty picture; [`Scene::ends_at`] sets its height.
    pub(crate) fn new(title: &str) -> Self {
        let mut scene = Self {
            width: whole(WIDTH),
            height: 0,
            title: title.to_owned(),
            shapes: Vec::new(),
        };
        scene.write((MARGIN, 20.0), title, TITLE, INK, HPos::Left);
        scene
    }

    /// The picture with nothing but a line of text below its legend.
    pub(crate) fn with_only(mut self, y: f64, text: &str) -> Self {
        self.label((MARGIN, y + 6.0), text, HPos::Left);
        self.ends_at(y + 30.0);
        self
    }

    /// Sets the height.
    pub(crate) fn ends_at(&mut self, lower: f64) {
        self.height = whole(lower);
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
        self.shapes.push(Shape::Text {
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

    /// Writes a line from the left edge, and returns the height of the next line.
    pub(crate) fn note(&mut self, y: f64, text: &str) -> f64 {
        let text = fitted(text, SIZE, WIDTH - 2.0 * MARGIN);
        self.label((MARGIN, y), &text, HPos::Left);
        y + 18.0
    }

    /// Writes text in ordinary size from bottom to top, around its middle.
    pub(crate) fn upright(&mut self, at: (f64, f64), text: &str) {
        self.shapes.push(Shape::Text {
            at,
            text: escape::plain(text),
            size: SIZE,
            color: INK,
            anchor: HPos::Center,
            upwards: true,
        });
    }

    /// Writes sentences between the edges, and returns the height of the next line. A picture has
    /// one font, so backticks are removed.
    pub(crate) fn paragraph(&mut self, mut y: f64, text: &str) -> f64 {
        let text = text.replace('`', "");
        let mut line = String::new();
        for word in text.split(' ') {
            let longer = if line.is_empty() {
                word.to_owned()
            } else {
                format!("{line} {word}")
            };
            if !line.is_empty() && text_width(&longer, SIZE) > WIDTH - 2.0 * MARGIN {
                self.label((MARGIN, y), &line, HPos::Left);
                y += LINE_HEIGHT;
                word.clone_into(&mut line);
            } else {
                line = longer;
            }
        }
        self.label((MARGIN, y), &line, HPos::Left);
        y + LINE_HEIGHT
    }

    /// Draws a line.
    pub(crate) fn line(&mut self, points: Vec<(f64, f64)>, color: Color, width: u32, opacity: f64) {
        self.shapes.push(Shape::Line {
            points,
            color,
            opacity,
            width,
        });
    }

    /// Draws the line of a strategy.
    pub(crate) fn stroke(&mut self, points: &[(f64, f64)], color: Color, dashed: bool) {
        if dashed {
            self.dashes(points, color, 2, 1.0);
        } else {
            self.line(points.to_vec(), color, 2, 1.0);
        }
    }

    /// Draws a dashed line.
    pub(crate) fn dashes(&mut self, points: &[(f64, f64)], color: Color, width: u32, opacity: f64) {
        for dash in dashed(points) {
            self.line(dash, color, width, opacity);
        }
    }

    /// Fills a box.
    pub(crate) fn rect(&mut self, edges: [f64; 4], color: Color, opacity: f64) {
        self.shapes.push(Shape::Rect {
            edges,
            color,
            opacity,
        });
    }

    /// Draws a circle.
    pub(crate) fn dot(&mut self, at: (f64, f64), radius: f64, color: Color, hollow: bool) {
        self.shapes.push(Shape::Dot {
            at,
            radius,
            color,
            hollow,
        });
    }

    /// Draws the legend below the title, and returns the height at which the picture may go on.
    pub(crate) fn legend(&mut self, keys: &[Key<'_>]) -> f64 {
        let (mut x, mut y) = (MARGIN, 46.0);
        for &(mark, color, text) in keys {
            let text = fitted(text, SIZE, WIDTH - 2.0 * MARGIN - 40.0);
            let wide = 30.0 + text_width(&text, SIZE) + 16.0;
            if x > MARGIN && x + wide > WIDTH - MARGIN {
                x = MARGIN;
                y += 18.0;
            }
            let line = [(x, y), (x + 22.0, y)];
            match mark {
                Mark::Line(opacity) => self.line(line.to_vec(), color, 3, opacity),
                Mark::Dashes(opacity) => self.dashes(&line, color, 3, opacity),
                Mark::Band(opacity) => self.rect([x, y - 6.0, x + 22.0, y + 6.0], color, opacity),
                Mark::Dot => self.dot((x + 11.0, y), 5.0, color, false),
                Mark::Ring => self.dot((x + 11.0, y), 5.0, color, true),
            }
            self.label((x + 28.0, y), &text, HPos::Left);
            x += wide;
        }
        y + 16.0
    }
}

/// One entry of a legend.
pub(crate) type Key<'a> = (Mark, Color, &'a str);

/// The mark of a legend's entry, with its opacity.
#[derive(Clone, Copy)]
pub(crate) enum Mark {
    Line(f64),
    Dashes(f64),
    Band(f64),
    Dot,
    Ring,
}

/// The entries of full history and of strategies, each with its place among all strategies.
pub(crate) fn line_keys<'a>(strategies: impl Iterator<Item = (usize, &'a str)>) -> Vec<Key<'a>> {
    let mut keys = vec![(Mark::Line(0.35), INK, "full history")];
    keys.extend(strategies.map(|(at, name)| match line_of(at) {
        (color, true) => (Mark::Dashes(1.0), color, name),
        (color, false) => (Mark::Line(1.0), color, name),
    }));
    keys
}

/// The text, or its two ends with an ellipsis between, so that it is no wider than `width`.
pub(crate) fn fitted(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let shortened = |kept: usize| {
        let head = kept * 2 / 3;
        let (head, tail) = (&chars[..head], &chars[chars.len() - (kept - head)..]);
        head.iter().chain(&['…']).chain(tail).collect::<String>()
    };
    let mut shorter = (4..chars.len()).rev().map(shortened);
    let found = shorter.find(|short| text_width(short, size) <= width);
    found.unwrap_or_else(|| "…".to_owned())
}

/// The pieces of a dashed line: seven pixels drawn, five left out, along its whole length.
fn dashed(points: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    const LENGTHS: [f64; 2] = [7.0, 5.0];
    let mut pieces = Vec::new();
    let mut piece: Vec<(f64, f64)> = points.first().copied().into_iter().collect();
    let (mut phase, mut left) = (0_usize, LENGTHS[0]);
    for pair in points.windows(2) {
        let ((mut x, mut y), (to_x, to_y)) = (pair[0], pair[1]);
        loop {
            let rest = (to_x - x).hypot(to_y - y);
            if rest < left {
                left -= rest;
                if phase == 0 {
                    piece.push((to_x, to_y));
                }
                break;
            }
            let share = left / rest;
            x += (to_x - x) * share;
            y += (to_y - y) * share;
            if phase == 0 {
                piece.push((x, y));
                pieces.push(std::mem::take(&mut piece));
            } else {
                piece = vec![(x, y)];
            }
            phase = 1 - phase;
            left = LENGTHS[phase];
        }
    }
    if phase == 0 && piece.len() > 1 {
        pieces.push(piece);
    }
    pieces
}

/// A length in pixels: whole, and never below 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a picture is far smaller than the type can hold, and the value is not below 0"
)]
fn whole(pixels: f64) -> u32 {
    pixels.ceil().clamp(0.0, 100_000.0) as u32
}
