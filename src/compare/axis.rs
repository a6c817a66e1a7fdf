//! The numbers by which strategies are compared, each under its one name: on the screen, in files, in flags
//! and in JSON.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Direction::{self, Higher, Lower};
use crate::metric::name::called;
use crate::record::evaluators::{SURVIVAL, VALIDITY};

/// How the values of an axis are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One score from 0 to 1 per probe: paired by probe, clustered by session.
    Probes,
    /// One share per session.
    Share,
    /// One count per session.
    Count,
    /// One amount per session, of which only the total matters: the difference of totals as a share of the
    /// baseline's.
    Total,
}

/// A number by which strategies are compared, in the order of tables.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Calls sent before a prompt no longer fitted, as a share of those planned.
    Completion,
    /// Prompts that the provider would refuse.
    Refused,
    /// The bill for all sessions: in dollars where prices are known, else in input tokens.
    Bill,
    /// Planted facts that are still in the prompt.
    Facts,
    /// Planted facts that a program keeps where its summaries quote all that it sends.
    Plumbing,
    /// Right answers of a reader.
    Answers,
    /// Details of the agent's later actions that are still in the prompt.
    Actions,
    /// Tokens processed, the strategy's own calls included.
    Tokens,
    /// Model calls that the strategy makes.
    Calls,
    /// Modelled time in which the agent waits.
    Waiting,
}

impl Axis {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 10] = [
        Self::Completion,
        Self::Refused,
        Self::Bill,
        Self::Facts,
        Self::Plumbing,
        Self::Answers,
        Self::Actions,
        Self::Tokens,
        Self::Calls,
        Self::Waiting,
    ];

    /// Name, kind, direction, evaluator, and the margin that it is gated with unasked.
    fn entry(self) -> (&'static str, Kind, Direction, &'static str, Option<f64>) {
        match self {
            Self::Completion => ("completion", Kind::Share, Higher, "replay", Some(0.0)),
            Self::Refused => ("refused", Kind::Count, Lower, VALIDITY, Some(0.0)),
            Self::Bill => ("bill", Kind::Total, Lower, "prompt cache", Some(0.02)),
            Self::Facts => ("facts", Kind::Probes, Higher, SURVIVAL, Some(0.05)),
            Self::Plumbing => ("plumbing", Kind::Share, Higher, SURVIVAL, Some(0.05)),
            Self::Answers => ("answers", Kind::Probes, Higher, "reader", Some(0.05)),
            Self::Actions => ("actions", Kind::Share, Higher, "replay", Some(0.05)),
            Self::Tokens => ("tokens", Kind::Total, Lower, "counter", None),
            Self::Calls => ("calls", Kind::Count, Lower, "replay", None),
            Self::Waiting => ("waiting", Kind::Total, Lower, "latency", None),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.entry().0
    }

    /// How it is compared.
    pub fn kind(self) -> Kind {
        self.entry().1
    }

    /// Which way is better.
    pub fn direction(self) -> Direction {
        self.entry().2
    }

    /// Its evaluator.
    pub fn evaluator(self) -> &'static str {
        self.entry().3
    }

    /// The axis of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|axis| axis.name() == name)
    }

    /// A value in the direction in which more is better.
    pub(crate) fn turned(self, value: f64) -> f64 {
        match self.direction() {
            Direction::Higher | Direction::Neutral => value,
            Direction::Lower => -value,
        }
    }

    /// Whether it is read from texts of the prompt, which a summariser may have written: what a strategy keeps.
    pub(crate) fn is_read_from_text(self) -> bool {
        matches!(self, Self::Facts | Self::Answers | Self::Actions)
    }

    /// Whether it is a total that full history has too: what a strategy saves.
    pub(crate) fn is_saved(self) -> bool {
        matches!(self, Self::Bill | Self::Tokens)
    }

    /// Whether a model that answers questions has to be asked for it.
    pub(crate) fn needs_reader(self) -> bool {
        matches!(self, Self::Answers)
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// By how much a candidate may be worse, axis by axis: one table for run, compare, gate and sweep.
///
/// A margin is a share: of a total 0.02 is 2 %, of facts, answers and actions 0.05 is 5 points.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[serde(transparent)]
pub struct Margins(BTreeMap<Axis, f64>);

impl Default for Margins {
    fn default() -> Self {
        let entries = Axis::ALL.into_iter().filter_map(|axis| Some((axis, axis.entry().4?)));
        Self(entries.collect())
    }
}

impl Margins {
    /// A table without a margin: `[gate]` may name all of its own.
    pub fn none() -> Self {
        Self(BTreeMap::new())
    }

    /// The margin of an axis; `None` where it has none, and is shown only.
    pub fn get(&self, axis: Axis) -> Option<f64> {
        self.0.get(&axis).copied()
    }

    /// Sets the margin of the axis of this name, at least 0; the problem in words where it has none.
    pub fn set(&mut self, name: &str, margin: f64) -> Result<(), String> {
        let Some(axis) = Axis::named(name) else {
            let names = Axis::ALL.map(Axis::name);
            let unknown = format!("no metric `{name}` can be gated: {}", names.join(", "));
            return Err(called(name, &names).unwrap_or(unknown));
        };
        let unit = match axis.kind() {
            Kind::Probes | Kind::Share => Some("points"),
            Kind::Total => Some("% of the total"),
            Kind::Count => None,
        };
        if let Some(unit) = unit.filter(|_| margin > 1.0) {
            let most = "must be at most 1: 0.05 is 5";
            return Err(format!("the margin of `{name}` {most} {unit}"));
        }
        self.0.insert(axis, margin);
        Ok(())
    }
}
