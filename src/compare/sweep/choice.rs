//! The margin rule, and the confirmation of a choice on sessions that did not make it.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Sweep, SweepPoint, is_of_window, label};
use crate::compare::{Axis, Findings, State};
use crate::stats::paired::FEWEST_SESSIONS;
use crate::stats::pareto::Point;
use crate::stats::{Estimate, power};

/// Savings that differ by less are equal: a rounding error must not choose.
const EQUAL: f64 = 1e-12;

/// The place of a setting in the choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Chosen on the tune sessions, and not confirmed on others.
    NotConfirmed,
    /// The default is the choice: there is nothing to confirm.
    Default,
    /// Chosen, and confirmed on sessions that did not choose it.
    Recommended,
}

impl Standing {
    /// The mark of the setting in tables and pictures.
    pub fn words(self) -> &'static str {
        match self {
            Self::NotConfirmed => "chosen, not confirmed",
            Self::Default => "chosen",
            Self::Recommended => "recommended",
        }
    }
}

/// What is kept, and by how much it may be worse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// The axis.
    pub axis: Axis,
    /// δ ≥ 0.
    pub margin: f64,
}

/// The choice in one window.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize)]
pub struct Choice {
    /// The knobs of the window, where windows are swept.
    pub window: Vec<(String, String)>,
    /// All knobs of the chosen setting, those of the window included: the `values` of its point; `None`
    /// where no setting can be chosen.
    pub values: Option<Vec<(String, String)>>,
    /// Its place; `None` where no setting can be chosen.
    pub standing: Option<Standing>,
    /// The setting that keeps most, in words; `None` where none was measured.
    pub best_kept: Option<String>,
    /// The mean of the kept metric under that setting.
    pub best_quality: Option<f64>,
    /// How many settings are worse than the best kept by no more than the margin.
    pub kept_enough: usize,
    /// Why no setting is chosen.
    pub problem: Option<String>,
    /// The chosen setting against the default on sessions that did not choose it; `None` for the default,
    /// or without such sessions.
    pub confirmation: Option<Confirmation>,
}

impl Choice {
    /// The choice among the settings of one window, with their mean saved and kept.
    pub(super) fn of(
        points: &[&SweepPoint],
        means: &[Point],
        window: Vec<(String, String)>,
        cost: Axis,
        quality: Objective,
    ) -> Self {
        let default = points.iter().position(|point| point.values == window);
        let mut choice = Self {
            window,
            ..Self::default()
        };
        let Some(found) = margin_rule(means, quality.margin, default.unwrap_or(0)) else {
            choice.problem = Some(unmeasured(points, cost, quality.axis));
            return choice;
        };
        let best_kept = label_in_window(&points[found.best_kept].values);
        choice.kept_enough = found.kept_enough;
        choice.best_quality = Some(means[found.best_kept][1]);
        let cheapest = points[found.cheapest];
        let saved = means[found.cheapest][0];
        if saved > 0.0 {
            choice.values = Some(cheapest.values.clone());
            choice.standing = Some(match default {
                Some(default) if default == found.cheapest => Standing::Default,
                _ => Standing::NotConfirmed,
            });
        } else {
            choice.problem = Some(format!(
                "no setting that keeps {} within {:.1} pts of the best kept ({best_kept}) saves anything of the {cost}: \
                 {} comes closest, at {} %",
                quality.axis,
                quality.margin * 100.0,
                label_in_window(&cheapest.values),
                format!("{:.1}", saved * 100.0).replace('-', "−")
            ));
        }
        choice.best_kept = Some(best_kept);
        choice
    }

    /// The chosen setting in words, as [`SweepPoint::label`], without the knobs of its window.
    pub fn label(&self) -> Option<String> {
        self.values.as_deref().map(label_in_window)
    }

    /// Whether the setting was confirmed.
    pub fn is_recommended(&self) -> bool {
        self.standing == Some(Standing::Recommended)
    }
}

/// The knobs of the strategy in words; `default` without one.
fn label_in_window(values: &[(String, String)]) -> String {
    let own = values.iter().filter(|(knob, _)| !is_of_window(knob));
    label(&own.cloned().collect::<Vec<_>>())
}

/// Why no setting can be chosen where none has both numbers.
fn unmeasured(points: &[&SweepPoint], cost: Axis, quality: Axis) -> String {
    let whole = || points.iter().filter(|point| point.broken.is_none());
    if let Some(first) = points.first().filter(|_| whole().next().is_none()) {
        let why = first.broken.as_deref().unwrap_or_default();
        let alike = points.iter().all(|it| it.broken.as_deref() == Some(why));
        let of = if alike { "each" } else { "the default" };
        return format!("all {} settings are broken; {of}: {why}", points.len());
    }
    let unknown = if whole().all(|point| point.cost.is_none()) {
        cost
    } else if whole().all(|point| point.quality.is_none()) {
        quality
    } else {
        return format!("no session has both {cost} and {quality} under every setting");
    };
    format!("no session has {unknown}")
}

/// The result of the margin rule among the settings of one window.
pub(super) struct Found {
    /// The setting that keeps most.
    pub best_kept: usize,
    /// How many keep enough.
    pub kept_enough: usize,
    /// The cheapest of those.
    pub cheapest: usize,
}

/// The margin rule: of the settings whose kept metric is worse than that of the best kept by no more than
/// the margin, the one that saves most.
///
/// `means` has, for each setting, the mean saved and the mean kept over the same sessions. Their difference
/// is the paired mean difference, and the rule reads this estimate without an interval: with few sessions
/// an interval would let nothing pass but the best kept itself. The confirmation has the intervals. A
/// setting that is broken has no number and takes no part. Of equal savings the one that keeps more is
/// taken, then the one in `first`, then the first. `None` where nothing was measured.
pub(super) fn margin_rule(means: &[Point], margin: f64, first: usize) -> Option<Found> {
    let is_measured = |at: &usize| means[*at].iter().all(|value| value.is_finite());
    let measured: Vec<usize> = (0..means.len()).filter(is_measured).collect();
    // Whether the second is better: by one objective, then by the other, then by the place.
    let best = |of: &[usize], [by, then]: [usize; 2]| {
        of.iter().copied().reduce(|best, at| {
            let differs = |by: usize| {
                let difference = means[at][by] - means[best][by];
                (difference.abs() > EQUAL).then_some(difference > 0.0)
            };
            let is_better = differs(by).or_else(|| differs(then));
            if is_better.unwrap_or(at == first) {
                at
            } else {
                best
            }
        })
    };
    let best_kept = best(&measured, [1, 0])?;
    let least = means[best_kept][1] - margin - EQUAL;
    let measured = measured.into_iter();
    let enough: Vec<usize> = measured.filter(|at| means[*at][1] >= least).collect();
    Some(Found {
        best_kept,
        kept_enough: enough.len(),
        cheapest: best(&enough, [0, 1])?,
    })
}

/// The chosen setting against the default, on sessions that did not choose it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Confirmation {
    /// Difference in cost, each session weighing the same.
    pub cost: Option<Estimate>,
    /// Difference in quality.
    pub quality: Option<Estimate>,
    /// Sessions that both were measured on.
    pub sessions: usize,
    /// Whether the setting is shown to be better in cost, and no worse in quality by more than the margin:
    /// each at one-sided 95 %.
    pub is_confirmed: bool,
    /// The claims that are not shown; empty where the setting is confirmed, or `problem` says why nothing can be.
    pub not_shown: Vec<NotShown>,
    /// Why nothing can be shown on these sessions.
    pub problem: Option<String>,
}

/// A claim that the sessions do not show.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct NotShown {
    /// The claim.
    pub claim: String,
    /// How many sessions show it in 8 of 10 sweeps if the true difference is the one measured; `None`
    /// where no number does, or none can be told.
    pub sessions_needed: Option<usize>,
}

impl Confirmation {
    /// Reads the judgement of the chosen setting (candidate) against the default (baseline), about a population,
    /// with the margin of what is kept. `broken` says which of the two could not be used on these sessions, and
    /// why.
    pub fn of(findings: &Findings, cost: Axis, quality: Objective, broken: Option<String>) -> Self {
        let axis = |axis: Axis| findings.axis(axis);
        let estimate = |found: Axis| {
            let found = axis(found)?;
            let (bounds, n) = (found.bounds?, found.paired.by_session.n);
            Some(Estimate::with_error(bounds.difference, bounds.error, n))
        };
        let (saved, kept) = (estimate(cost), estimate(quality.axis));
        let sessions = [saved, kept].map(|it| it.map_or(0, |found| found.n.sessions));
        let sessions = sessions[0].min(sessions[1]);
        // How far the difference may be below 0; savings have to be above it.
        let claims = [
            (
                cost,
                None,
                format!("that the {cost} is lower than the default's"),
            ),
            (
                quality.axis,
                Some(quality.margin),
                format!(
                    "that {} are worse by no more than {:.1} pts",
                    quality.axis,
                    quality.margin * 100.0
                ),
            ),
        ];
        let not_shown = |(name, margin, claim): (Axis, Option<f64>, String)| {
            let found = axis(name);
            let is_shown = found.is_some_and(|found| match margin {
                None => found.state == State::Better,
                Some(_) => found.state.is_not_worse(),
            });
            let needed = found.and_then(|found| {
                let distance = margin.unwrap_or(0.0) + found.difference();
                power::sessions_needed(found.bounds?.deviation?, distance)
            });
            (!is_shown).then_some(NotShown {
                claim,
                sessions_needed: needed,
            })
        };
        let problem = broken.or_else(|| {
            (sessions < FEWEST_SESSIONS)
                .then(|| format!("{FEWEST_SESSIONS} sessions to confirm on are needed"))
        });
        let not_shown: Vec<NotShown> = match &problem {
            Some(_) => Vec::new(),
            None => claims.into_iter().filter_map(not_shown).collect(),
        };
        Self {
            cost: saved,
            quality: kept,
            sessions,
            is_confirmed: problem.is_none() && not_shown.is_empty(),
            not_shown,
            problem,
        }
    }
}

impl Sweep {
    /// Enters the confirmation of the choice at this place.
    pub fn confirm(&mut self, at: usize, confirmation: Confirmation) {
        let Some(choice) = self.choices.get_mut(at) else {
            return;
        };
        if confirmation.is_confirmed {
            choice.standing = Some(Standing::Recommended);
        }
        choice.confirmation = Some(confirmation);
        let (values, standing) = (choice.values.clone(), choice.standing);
        let is_chosen = |point: &&mut SweepPoint| Some(&point.values) == values.as_ref();
        if let Some(point) = self.points.iter_mut().find(is_chosen) {
            point.standing = standing;
        }
    }
}
