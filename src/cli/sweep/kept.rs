//! What a sweep keeps: what was named, or the first that was measured.

use super::{Args, CliError, Exit};
use crate::compare::Axis as Measured;
use crate::compare::sweep::{Trial, measured};

/// What is kept unasked, the most telling first: the first that was measured is taken.
const KEPT: [Measured; 3] = [Measured::Answers, Measured::Facts, Measured::Actions];

/// What is kept, and why it is this where nobody named it.
pub(super) struct KeptMetric {
    pub(super) axis: Measured,
    pub(super) reason: Option<String>,
}

impl KeptMetric {
    /// What was named; else the first of [`KEPT`] that was measured.
    pub(super) fn of(args: &Args, tried: &[Trial], sessions: &[String]) -> Self {
        if let Some(typed) = &args.keeps {
            return Self {
                axis: Measured::named(typed).unwrap_or(Measured::Facts),
                reason: None,
            };
        }
        let found = measured(tried, sessions, &KEPT).first().copied();
        let missing = KEPT.iter().take_while(|axis| Some(**axis) != found);
        let missing: Vec<&str> = missing.map(|axis| axis.name()).collect();
        let reason = match (found, missing.as_slice()) {
            (None | Some(_), []) => None,
            (None, _) => Some("nothing was measured".to_owned()),
            (Some(_), missing) => Some(format!("not measured: {}", missing.join(", "))),
        };
        Self {
            axis: found.unwrap_or(Measured::Facts),
            // Without a reader there are no answers to speak of.
            reason: reason.filter(|_| found != Some(Measured::Facts)),
        }
    }
}

/// The error where what was named was not measured, though others were.
pub(super) fn unmeasured(
    args: &Args,
    kept: &KeptMetric,
    tried: &[Trial],
    sessions: &[String],
) -> Option<CliError> {
    args.keeps.as_ref()?;
    if !measured(tried, sessions, &[kept.axis]).is_empty() {
        return None;
    }
    let others: Vec<&str> = measured(tried, sessions, &KEPT)
        .into_iter()
        .map(Measured::name)
        .collect();
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
