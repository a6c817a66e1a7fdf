//! Plots: pictures of what the tables say, made from the same report.
//!
//! Each plot makes a scene, which is plain data: shapes in pixels. One painter turns any
//! scene into SVG or PNG. The font is built in, so that a picture needs nothing of the machine it is
//! made on; the colours are those of Okabe and Ito, which people with any kind of colour vision tell
//! apart.

use crate::compare::sweep::Sweep;
use crate::probe::ProbeKind;
use crate::report::versus::Versus;
use crate::report::{Artifact, RenderError, Renderer, Report};

mod axes;
mod cache;
mod curves;
mod forest;
mod front;
mod heat;
mod paint;
mod pareto;
mod savings;
pub(crate) mod scene;
pub(crate) mod series;
mod tokens;

pub(crate) use paint::svg;
pub(crate) use scene::Scene;

/// Which picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plot {
    /// Prompt tokens per call, with the window's zones and the compactions, session by session.
    Tokens,
    /// What of each prompt is read from the provider's cache, written to it, and neither.
    Cache,
    /// Token savings beside cost savings, by strategy.
    Savings,
    /// Cost against survival, with intervals.
    Pareto,
    /// Survival by age of what was planted.
    Retention,
}

/// As what it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFormat {
    /// Scalable Vector Graphics.
    Svg,
    /// Portable Network Graphics, two pixels for each one of the scene.
    Png,
}

impl Plot {
    /// All of them, in the order of help texts.
    pub const ALL: [Self; 5] = [
        Self::Tokens,
        Self::Cache,
        Self::Savings,
        Self::Pareto,
        Self::Retention,
    ];

    /// Its name in file names: `report.tokens.svg`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Cache => "cache",
            Self::Savings => "savings",
            Self::Pareto => "pareto",
            Self::Retention => "retention",
        }
    }

    /// The plot of this name; the comparison ignores case.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|plot| plot.name().eq_ignore_ascii_case(name))
    }

    /// Draws it.
    pub(crate) fn scene(self, report: &Report) -> Scene {
        match self {
            Self::Tokens => tokens::scene(report, tokens::MOST_PANELS),
            Self::Cache => cache::scene(report),
            Self::Savings => savings::scene(report),
            Self::Pareto => pareto::scene(report),
            Self::Retention => curves::scene(report, None),
        }
    }
}

/// Which picture of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepPlot {
    /// What each setting saves and keeps, with the front.
    Pareto,
    /// A heat map for each pair of knobs.
    Heat,
}

impl SweepPlot {
    /// Both, in the order of help texts.
    pub const ALL: [Self; 2] = [Self::Pareto, Self::Heat];

    /// Its name in file names: `pareto.svg`, `sweep.pareto.svg`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pareto => "pareto",
            Self::Heat => "heat",
        }
    }

    /// The picture that a file of this name holds: `pareto.svg`, `sweep.heat.png`.
    pub fn for_file(name: &str) -> Option<(Self, ImageFormat)> {
        let format = ImageFormat::for_file(name)?;
        let (rest, _) = name.rsplit_once('.')?;
        let named = rest.rsplit_once('.').map_or(rest, |(_, named)| named);
        let mut all = Self::ALL.into_iter();
        let plot = all.find(|plot| plot.name().eq_ignore_ascii_case(named))?;
        Some((plot, format))
    }

    /// Draws it.
    pub(crate) fn scene(self, sweep: &Sweep) -> Scene {
        match self {
            Self::Pareto => front::scene(sweep),
            Self::Heat => heat::scene(sweep),
        }
    }

    /// The bytes of a file.
    pub fn render(self, sweep: &Sweep, format: ImageFormat) -> Result<Vec<u8>, RenderError> {
        format.bytes(&self.scene(sweep))
    }
}

/// The bytes of a forest plot: each difference of a comparison with its interval.
pub fn forest(versus: &Versus, format: ImageFormat) -> Result<Vec<u8>, RenderError> {
    format.bytes(&forest::scene(versus))
}

impl ImageFormat {
    /// The format of a file of this name.
    pub fn for_file(name: &str) -> Option<Self> {
        let (_, extension) = name.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "svg" => Some(Self::Svg),
            "png" => Some(Self::Png),
            _ => None,
        }
    }

    fn bytes(self, scene: &Scene) -> Result<Vec<u8>, RenderError> {
        match self {
            Self::Svg => Ok(svg(scene)?.into_bytes()),
            Self::Png => paint::png(scene),
        }
    }
}

/// The timeline of one session alone.
pub(crate) fn timeline(report: &Report, session: &str) -> Option<Scene> {
    tokens::of_session(report, session)
}

/// Survival of one kind by age.
pub(crate) fn retention_of(report: &Report, kind: ProbeKind) -> Scene {
    curves::scene(report, Some(kind))
}

/// Writes one plot.
#[derive(Debug, Clone, Copy)]
pub struct PlotRenderer {
    /// Which.
    pub plot: Plot,
    /// As what.
    pub format: ImageFormat,
}

impl PlotRenderer {
    /// The renderer for a file of this name, such as `report.tokens.svg` or `tokens.svg`.
    pub fn for_file(name: &str) -> Option<Self> {
        let format = ImageFormat::for_file(name)?;
        let (rest, _) = name.rsplit_once('.')?;
        let plot = rest.rsplit_once('.').map_or(rest, |(_, plot)| plot);
        Some(Self {
            plot: Plot::named(plot)?,
            format,
        })
    }
}

impl Renderer for PlotRenderer {
    fn format(&self) -> &'static str {
        match self.format {
            ImageFormat::Svg => "svg",
            ImageFormat::Png => "png",
        }
    }

    fn render(&self, report: &Report) -> Result<Vec<Artifact>, RenderError> {
        let bytes = self.format.bytes(&self.plot.scene(report))?;
        Ok(vec![Artifact {
            name: format!("report.{}.{}", self.plot.name(), self.format()),
            bytes,
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

#[cfg(test)]
mod compared;
