//! Plots: pictures of what the tables say, made from the same report.
//!
//! Each plot makes a scene, which is plain data: shapes in pixels. One painter turns any
//! scene into SVG. The font is built in, so that a picture needs nothing of the machine it is
//! made on; the colours are those of Okabe and Ito, which people with any kind of colour vision tell
//! apart.

mod axes;
pub(crate) mod cache;
pub(crate) mod curves;
pub(crate) mod forest;
pub(crate) mod front;
pub(crate) mod heat;
mod paint;
pub(crate) mod pareto;
pub(crate) mod savings;
pub(crate) mod scene;
pub(crate) mod series;
pub(crate) mod tokens;

pub(crate) use paint::svg;
pub(crate) use scene::Scene;

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
