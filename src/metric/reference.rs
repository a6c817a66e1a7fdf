//! The reference of metrics, as Markdown: `docs/reference/metrics.md` is what this writes.

use minijinja::value::Serde;
use minijinja::{Environment, context};

use super::METRICS;

/// All metrics: meaning, formula, unit, direction and source.
pub fn reference() -> String {
    let values = context! { metrics => Serde(METRICS) };
    let page = Environment::new().render_str(include_str!("reference.md.j2"), values);
    // A test compares the page with the docs, so that it is never empty.
    page.unwrap_or_default() + "\n"
}
