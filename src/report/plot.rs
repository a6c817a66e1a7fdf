//! Plots: pictures of what the tables say, made from the same report.
//!
//! Each plot makes a scene, which is plain data: shapes in pixels. One painter turns any
//! scene into SVG. The font is built in, so that a picture needs nothing of the machine it is
//! made on; the colours are those of Okabe and Ito, which people with any kind of colour vision tell
//! apart.

use crate::compare::sweep::Sweep;
use crate::report::{Artifact, RenderError, Renderer, Report};

mod axes;
pub(crate) mod cache;
pub(crate) mod curves;
pub(crate) mod forest;
mod front;
mod heat;
mod paint;
pub(crate) mod pareto;
pub(crate) mod savings;
pub(crate) mod scene;
pub(crate) mod series;
pub(crate) mod tokens;

pub(crate) use paint::svg;
pub(crate) use scene::Scene;

/// A kind of picture: its name in file names, and how it is drawn.
pub(crate) type Plot<T> = (&'static str, fn(&T) -> Scene);

/// Pictures of a run, in the order of help texts.
pub(crate) const OF_RUN: [Plot<Report>; 5] = [
    ("tokens", |report| {
        tokens::scene(report, tokens::MOST_PANELS)
    }),
    ("cache", cache::scene),
    ("savings", savings::scene),
    ("pareto", pareto::scene),
    ("retention", |report| curves::scene(report, None)),
];

/// Pictures of a sweep, in the order of help texts.
pub(crate) const OF_SWEEP: [Plot<Sweep>; 2] = [("pareto", front::scene), ("heat", heat::scene)];

/// The picture that a file of this name holds: `report.tokens.svg`, `pareto.svg`. Case does not matter.
pub(crate) fn for_file<T>(plots: &[Plot<T>], file: &str) -> Option<Plot<T>> {
    let file = file.to_ascii_lowercase();
    let stem = file.strip_suffix(".svg")?;
    let named = stem.rsplit_once('.').map_or(stem, |(_, named)| named);
    plots.iter().find(|(name, _)| *name == named).copied()
}

/// Writes one plot of a run.
pub(crate) struct PlotRenderer(pub(crate) Plot<Report>);

impl Renderer for PlotRenderer {
    fn format(&self) -> &'static str {
        "svg"
    }

    fn render(&self, report: &Report) -> Result<Vec<Artifact>, RenderError> {
        let (name, scene) = self.0;
        Ok(vec![Artifact {
            name: format!("report.{name}.svg"),
            bytes: svg(&scene(report))?.into_bytes(),
        }])
    }
}

/// A value at an axis as a whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a figure at an axis is a small number that is not below 0"
)]
fn count(value: f64) -> u64 {
    value.round().max(0.0) as u64
}

#[cfg(test)]
mod tests;
