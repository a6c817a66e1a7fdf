//! The reference of metrics, as Markdown: `docs/metrics.md` is what this writes.

use std::fmt::Write as _;

use super::{Direction, METRICS, Unit};

const HEAD: &str = "# Metrics

Every column of a report, in the order of the comparison. This page is written from the table of
metrics in the code (`src/metric.rs`); a test holds the two together.

A superscript 0 marks the reference `full`: the whole history at every call, without a window, on
the same calls. Where an interval is shown it is a 95 % t interval over sessions, each session
weighing the same. What has no interval is exact on the sessions that were run.

Survival is string matching and never a statement about a model's answers. Accuracy and fidelity
need a language model that reads; without one they are *not measured*, which is not zero.
";

/// All metrics: meaning, formula, unit, direction and source.
pub fn reference() -> String {
    let mut out = HEAD.to_owned();
    for metric in METRICS {
        let unit = match metric.unit {
            Unit::Share => "a share, printed in percent",
            Unit::Tokens => "tokens",
            Unit::Count => "a count",
        };
        let better = match metric.direction {
            Direction::Higher => "higher is better",
            Direction::Lower => "lower is better",
            Direction::Neutral => "neither way is better",
        };
        let _ = write!(
            out,
            "\n## {}\n\nIn files: `{}`. {}.\n\n- Formula: {}\n- Unit: {unit}; {better}\n- Measured by: {}\n",
            metric.label,
            metric.name,
            capitalised(metric.doc),
            metric.formula,
            metric.source
        );
    }
    out
}

fn capitalised(sentence: &str) -> String {
    let mut chars = sentence.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}
