//! Plots: pictures of the numbers in the tables, made from the same report.
//!
//! Each plot fills a scene with shapes in pixels, which becomes SVG. The font is built in, so that a
//! picture does not depend on the fonts of the machine. The colours are those of Okabe and Ito, which
//! readers with any kind of colour vision can distinguish.

mod axes;
pub(crate) mod bill;
pub(crate) mod curves;
pub(crate) mod forest;
mod heat;
pub(crate) mod pareto;
mod scene;
pub(crate) mod sweep;
pub(crate) mod tokens;

pub(crate) use scene::{NARROW, PlotScene, WIDE, svg};

#[cfg(test)]
mod tests;
