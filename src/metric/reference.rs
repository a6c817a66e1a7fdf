//! The reference of metrics, as Markdown: `docs/metrics.md` is what this writes.

use std::fmt::Write as _;

use super::{DETAILS, Direction, METRICS, Metric, Unit};

const HEAD: &str = "# Metrics

Every column of the comparison, in its order, and behind them what stands in tables of its own. This page is
written from the table of metrics in the code (`src/metric/metrics.toml`); a test holds the two together.

A superscript 0 marks the reference `full`: the whole history at every call, without a window, on
the same calls. Where an interval is shown it is a 95 % t interval over sessions, each session
weighing the same. What has no interval is exact on the sessions that were run.

Survival is string matching and never a statement about a model's answers. Accuracy and fidelity
need a language model that reads; without one they are *not measured*, which is not zero.
";

/// All metrics: meaning, formula, unit, direction and source.
pub fn reference() -> String {
    let mut out = HEAD.to_owned();
    list(&mut out, &METRICS);
    out.push_str("\n# In tables of their own\n");
    list(&mut out, &DETAILS);
    out
}

fn list(out: &mut String, metrics: &[Metric]) {
    for metric in metrics {
        let unit = match metric.unit {
            Unit::Share => "a share, printed in percent",
            Unit::Tokens => "tokens",
            Unit::Count => "a count",
            Unit::Dollars => "dollars",
            Unit::Seconds => "seconds",
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
}

fn capitalised(sentence: &str) -> String {
    let mut chars = sentence.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}
