//! A picture as data: shapes in pixels, from the upper left corner.

use super::paint;
use crate::report::escape;

/// A colour, as red, green and blue.
pub(crate) type Color = (u8, u8, u8);

/// Text, axes and outlines.
pub(crate) const INK: Color = (36, 41, 47);
/// What stands behind everything.
pub(crate) const PAPER: Color = (255, 255, 255);

/// Blue, of the palette of Okabe and Ito (2008).
pub(crate) const BLUE: Color = (0, 114, 178);
/// Vermillion, likewise.
pub(crate) const VERMILLION: Color = (213, 94, 0);
/// Bluish green, likewise.
pub(crate) const GREEN: Color = (0, 158, 115);
/// Reddish purple, likewise.
pub(crate) const PURPLE: Color = (204, 121, 167);
/// Orange, likewise.
pub(crate) const ORANGE: Color = (230, 159, 0);
/// Sky blue, likewise.
pub(crate) const SKY: Color = (86, 180, 233);
/// Yellow, likewise: too light for a line, good for a band.
pub(crate) const YELLOW: Color = (240, 228, 66);

/// The colours of lines, in the order in which strategies take them.
const LINES: [Color; 6] = [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY];

/// The size of all text but titles, in pixels.
pub(crate) const SIZE: f64 = 13.5;
/// The size of titles.
pub(crate) const TITLE: f64 = 17.0;

/// How the line of a series looks: beyond six, lines are dashed.
pub(crate) fn line_of(series: usize) -> (Color, bool) {
    (LINES[series % LINES.len()], (series / LINES.len()) % 2 == 1)
}

/// Which point of a text stands at its position, from left to right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// Its beginning.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

/// Something that is drawn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// A filled box.
    Rect {
        /// Left, upper, right and lower edge.
        edges: [f64; 4],
        /// What it is filled with.
        color: Color,
        /// From 0 to 1.
        opacity: f64,
    },
    /// A line through points.
    Line {
        /// The points.
        points: Vec<(f64, f64)>,
        /// Its colour.
        color: Color,
        /// From 0 to 1.
        opacity: f64,
        /// How thick, in pixels.
        width: u32,
    },
    /// A filled polygon.
    Area {
        /// Its corners.
        points: Vec<(f64, f64)>,
        /// What it is filled with.
        color: Color,
    },
    /// A round mark.
    Dot {
        /// Its middle.
        at: (f64, f64),
        /// Its radius.
        radius: f64,
        /// Its colour.
        color: Color,
        /// Whether only its outline is drawn.
        hollow: bool,
    },
    /// A line of text; its position is its middle from top to bottom.
    Text {
        /// Where.
        at: (f64, f64),
        /// What.
        text: String,
        /// How large.
        size: f64,
        /// Its colour.
        color: Color,
        /// Which point of it stands there.
        anchor: Anchor,
        /// Whether it is read from bottom to top.
        upwards: bool,
    },
}

/// A picture.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scene {
    /// In pixels.
    pub(crate) width: u32,
    /// In pixels.
    pub(crate) height: u32,
    /// What it shows, for those who do not see it.
    pub(crate) title: String,
    /// From back to front.
    pub(crate) shapes: Vec<Shape>,
}

impl Scene {
    /// An empty picture; its height is what [`Scene::ends_at`] says.
    pub(crate) fn new(title: &str) -> Self {
        let mut scene = Self {
            width: whole(WIDTH),
            height: 0,
            title: title.to_owned(),
            shapes: Vec::new(),
        };
        scene.write((16.0, 20.0), title, TITLE, INK, Anchor::Start);
        scene
    }

    /// The picture with nothing but a line of text below its legend.
    pub(crate) fn with_only(mut self, y: f64, text: &str) -> Self {
        self.label((MARGIN, y + 6.0), text, Anchor::Start);
        self.ends_at(y + 30.0);
        self
    }

    /// The picture is so high.
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
        anchor: Anchor,
    ) {
        // Names come from files that anybody may have written.
        self.shapes.push(Shape::Text {
            at,
            text: escape::plain(text),
            size,
            color,
            anchor,
            upwards: false,
        });
    }

    /// Writes text in ordinary size.
    pub(crate) fn label(&mut self, at: (f64, f64), text: &str, anchor: Anchor) {
        self.write(at, text, SIZE, INK, anchor);
    }

    /// Writes a line from the left edge, and returns where the next one is written.
    pub(crate) fn note(&mut self, y: f64, text: &str) -> f64 {
        self.label(
            (MARGIN, y),
            &fitted(text, SIZE, WIDTH - 2.0 * MARGIN),
            Anchor::Start,
        );
        y + 18.0
    }

    /// Writes text in ordinary size from bottom to top, around its middle.
    pub(crate) fn upright(&mut self, at: (f64, f64), text: &str) {
        self.shapes.push(Shape::Text {
            at,
            text: escape::plain(text),
            size: SIZE,
            color: INK,
            anchor: Anchor::Middle,
            upwards: true,
        });
    }

    /// Writes sentences between the edges, and returns where the next line would stand. A picture
    /// has one kind of letters: what stands between backticks loses them.
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
                self.label((MARGIN, y), &line, Anchor::Start);
                y += LINE_HEIGHT;
                word.clone_into(&mut line);
            } else {
                line = longer;
            }
        }
        self.label((MARGIN, y), &line, Anchor::Start);
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

    /// Draws a line of dashes.
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

    /// Draws a round mark.
    pub(crate) fn dot(&mut self, at: (f64, f64), radius: f64, color: Color, hollow: bool) {
        self.shapes.push(Shape::Dot {
            at,
            radius,
            color,
            hollow,
        });
    }

    /// Draws the legend below the title, and returns where what follows may begin.
    pub(crate) fn legend(&mut self, items: &[Key<'_>]) -> f64 {
        let (left, width) = (MARGIN, WIDTH - 2.0 * MARGIN);
        let (mut x, mut y) = (left, 46.0);
        for item in items {
            let text = fitted(item.text, SIZE, width - 40.0);
            let wide = 30.0 + text_width(&text, SIZE) + 16.0;
            if x > left && x + wide > left + width {
                x = left;
                y += 18.0;
            }
            match item.mark {
                Mark::Line { dashed: false } => {
                    self.line(vec![(x, y), (x + 22.0, y)], item.color, 3, item.opacity);
                }
                Mark::Line { dashed: true } => {
                    self.dashes(&[(x, y), (x + 22.0, y)], item.color, 3, item.opacity);
                }
                Mark::Band => {
                    self.rect([x, y - 6.0, x + 22.0, y + 6.0], item.color, item.opacity);
                }
                Mark::Dot { hollow } => self.dot((x + 11.0, y), 5.0, item.color, hollow),
            }
            self.label((x + 28.0, y), &text, Anchor::Start);
            x += wide;
        }
        y + 16.0
    }
}

/// How wide all pictures are, and where their text begins.
pub(crate) const WIDTH: f64 = 800.0;
const MARGIN: f64 = 16.0;

/// From one line of text to the next.
const LINE_HEIGHT: f64 = 17.0;

/// One entry of a legend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key<'a> {
    mark: Mark,
    color: Color,
    opacity: f64,
    text: &'a str,
}

impl<'a> Key<'a> {
    fn new(text: &'a str, color: Color, mark: Mark) -> Self {
        Self {
            mark,
            color,
            opacity: 1.0,
            text,
        }
    }

    pub(crate) fn line(text: &'a str, color: Color, dashed: bool) -> Self {
        Self::new(text, color, Mark::Line { dashed })
    }

    pub(crate) fn dot(text: &'a str, color: Color, hollow: bool) -> Self {
        Self::new(text, color, Mark::Dot { hollow })
    }

    pub(crate) fn band(text: &'a str, color: Color) -> Self {
        Self::new(text, color, Mark::Band)
    }

    pub(crate) fn faint(self, opacity: f64) -> Self {
        Self { opacity, ..self }
    }
}

/// With what something is drawn.
#[derive(Debug, Clone, Copy)]
enum Mark {
    /// A line.
    Line {
        /// Whether it is dashed.
        dashed: bool,
    },
    /// A filled box.
    Band,
    /// A round mark.
    Dot {
        /// Whether only its outline is drawn.
        hollow: bool,
    },
}

/// How wide a text is, in pixels.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    paint::text_width(text, size)
}

/// The text, or its two ends with an ellipsis between, so that it is no wider than `width`.
pub(crate) fn fitted(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let mut kept = chars.len();
    while kept > 4 {
        kept -= 1;
        let head = kept * 2 / 3;
        let short: String = chars[..head]
            .iter()
            .chain(['…'].iter())
            .chain(&chars[chars.len() - (kept - head)..])
            .collect();
        if text_width(&short, size) <= width {
            return short;
        }
    }
    "…".to_owned()
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
    reason = "a picture is far smaller than what the type holds, and the value is not below 0"
)]
pub(crate) fn whole(pixels: f64) -> u32 {
    pixels.ceil().clamp(0.0, 100_000.0) as u32
}
