//! What a sweep keeps: what was named, or the first that was measured.

use super::{Args, CliError, Exit};
use crate::cli::listed;
use crate::compare::Axis as Measured;
use crate::compare::sweep::{Trial, measured};

/// What is kept, and why it is this where nobody named it.
pub(super) struct KeptMetric {
    pub(super) axis: Measured,
    pub(super) reason: Option<String>,
}

/// The metrics that can be kept, answers first: they tell more than the facts and actions of a prompt.
const KEEPABLE: [Measured; 3] = [Measured::Answers, Measured::Facts, Measured::Actions];

impl KeptMetric {
    /// The metric that was named, else the first that was measured.
    pub(super) fn of(args: &Args, tried: &[Trial], sessions: &[String]) -> Self {
        if let Some(axis) = args.tuning.keeps {
            return Self { axis, reason: None };
        }
        let found = measured(tried, sessions, &KEEPABLE).first().copied();
        let missing = KEEPABLE.into_iter().take_while(|axis| Some(*axis) != found);
        let missing = listed(missing.map(Measured::name));
        let reason = match found {
            None => Some("nothing was measured".to_owned()),
            // Without a reader there are no answers to speak of.
            Some(Measured::Facts) => None,
            Some(_) if missing.is_empty() => None,
            Some(_) => Some(format!("not measured: {missing}")),
        };
        Self { axis: found.unwrap_or(Measured::Facts), reason }
    }
}

/// The error where what was named was not measured, though others were.
pub(super) fn unmeasured(
    args: &Args,
    kept: &KeptMetric,
    tried: &[Trial],
    sessions: &[String],
) -> Option<CliError> {
    args.tuning.keeps?;
    if !measured(tried, sessions, &[kept.axis]).is_empty() {
        return None;
    }
    let others: Vec<&str> =
        measured(tried, sessions, &KEEPABLE).into_iter().map(Measured::name).collect();
    let problem = format!("`--keeps {}` was not measured on these sessions", kept.axis);
    let error = CliError::new(Exit::NothingSelected, problem);
    Some(match others.first() {
        None => error,
        Some(first) => error.with_hint(format!(
            "measured: {}; write `--keeps {first}`, or leave the flag out",
            others.join(", ")
        )),
    })
}
