//! The margin rule, and the confirmation of a choice on sessions that did not make it.

use schemars::JsonSchema;
use serde::Serialize;

use super::{EQUAL, Neighbours, Shape, Sweep, SweepPoint, pairs, short_label};
use crate::compare::{Axis, AxisFinding, Findings, State};
use crate::stats::Estimate;
use crate::stats::paired::FEWEST_SESSIONS;
use crate::stats::pareto::Point;

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

/// An axis that a sweep chooses by, and by how much it may be worse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// The axis.
    pub axis: Axis,
    /// δ ≥ 0.
    pub margin: f64,
}

/// The choice among the settings.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize)]
pub struct Choice {
    /// All knobs of the chosen setting: the `values` of its point; `None` where no setting can be chosen.
    pub values: Option<Vec<(String, String)>>,
    /// The knobs that the chosen setting turns to another value than the default's.
    pub changed: Vec<(String, String)>,
    /// Its place; `None` where no setting can be chosen.
    pub standing: Option<Standing>,
    /// The setting that keeps most, in words; `None` where none was measured.
    pub best_kept: Option<String>,
    /// The mean of the kept metric under that setting.
    pub best_quality: Option<f64>,
    /// How many settings are worse than the best kept by no more than the margin.
    pub kept_enough: usize,
    /// The settings beside the chosen one; `None` where there are none.
    pub neighbours: Option<Neighbours>,
    /// The best trade that the margin refuses; `None` where nothing that it refuses saves more.
    pub trade: Option<Trade>,
    /// Why no setting is chosen.
    pub problem: Option<String>,
    /// The setting that the rule finds, in words, where it costs more than the default, which is chosen then.
    pub dearer: Option<String>,
    /// The chosen setting against the default on sessions that did not choose it; `None` for the default,
    /// or without such sessions.
    pub confirmation: Option<Confirmation>,
}

/// A setting that saves more than the chosen one, and keeps less than the margin allows.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Trade {
    /// All its knobs.
    pub values: Vec<(String, String)>,
    /// Those that it turns to another value than the default's.
    pub changed: Vec<(String, String)>,
    /// The share that it saves.
    pub saved: f64,
    /// By how much it keeps less than the best kept.
    pub given_up: f64,
    /// The least margin that accepts it, in thousandths: with it this setting would be chosen.
    pub margin: f64,
}

impl Trade {
    /// The knobs that it turns to another value than the default's, in words.
    pub fn label(&self) -> String {
        short_label(&self.changed)
    }
}

/// The settings, with what they save and keep.
pub(super) struct Candidates<'a> {
    /// The settings.
    pub(super) points: Vec<&'a SweepPoint>,
    /// What each saves and keeps, cluster by cluster.
    pub(super) of_clusters: Vec<Vec<Point>>,
    /// The means over the clusters.
    pub(super) means: Vec<Point>,
    /// What each saves over the sessions in which doing nothing is a choice; `None` where there are none.
    pub(super) against_nothing: Vec<Option<f64>>,
    /// Whether it is a choice in all sessions.
    pub(super) fits_everywhere: bool,
}

impl Candidates<'_> {
    /// The choice among them.
    pub(super) fn choose(&self, cost: Objective, quality: Objective) -> Choice {
        let (points, means) = (&self.points, &self.means);
        let default = points.iter().position(|point| point.values.is_empty());
        let mut choice = Choice::default();
        let changes: Vec<usize> = points.iter().map(|point| self.changed(point).len()).collect();
        let Some(found) = margin_rule(means, quality.margin, &changes) else {
            choice.problem = Some(unmeasured(points, cost.axis, quality.axis));
            return choice;
        };
        let best_kept = short_label(&self.changed(points[found.best_kept]));
        // A default that was written out, too, is one setting.
        let enough =
            found.enough.iter().filter(|at| !points[**at].is_default || Some(**at) == default);
        choice.kept_enough = enough.count();
        choice.best_quality = Some(means[found.best_kept][1]);
        // No user needs a setting that costs more than the default to keep more: then the cheapest that keeps no less
        // than the default.
        let cheap = default.filter(|own| means[*own][0] > means[found.cheapest][0] + EQUAL);
        let cheaper = cheap.and_then(|own| cheapest(means, &changes, means[own][1]));
        let chosen = cheaper.map_or(found.cheapest, |(_, at)| at);
        if chosen != found.cheapest {
            choice.dearer = Some(short_label(&self.changed(points[found.cheapest])));
        }
        choice.trade = self.trade(found.best_kept, chosen, quality.margin);
        let changed = self.changed(points[chosen]);
        let dearer = self.against_nothing[chosen].filter(|saved| self.is_dearer(*saved));
        if let Some(saved) = dearer {
            let (axis, margin) = (quality.axis, quality.margin * 100.0);
            let all = self.fits_everywhere;
            let place = if all { "" } else { " where full history fits" };
            let (closest, cost) = (short_label(&changed), cost.axis);
            let comes = if self.of_clusters[chosen].iter().any(|[saved, _]| *saved != 0.0) {
                let saved = format!("{:.1}", saved * 100.0).replace('-', "−");
                format!("comes closest, at {saved} %")
            } else if default.is_some_and(|own| is_over(means[chosen], means[own])) {
                "changes nothing, which is cheaper than the default and keeps more".to_owned()
            } else {
                "changes nothing".to_owned()
            };
            choice.problem = Some(format!(
                "no setting that keeps {axis} within {margin:.1} pts of the best kept ({best_kept}) saves anything of \
                 the {cost}{place}: {closest} {comes}"
            ));
        } else {
            choice.values = Some(points[chosen].values.clone());
            choice.changed = changed;
            choice.standing = Some(match default {
                Some(default) if default == chosen => Standing::Default,
                _ => Standing::NotConfirmed,
            });
            choice.neighbours = Neighbours::of(self, chosen, [cost.margin, quality.margin]);
        }
        choice.best_kept = Some(best_kept);
        choice
    }

    /// Whether a setting loses against doing nothing: where that is a choice everywhere, it has to save something.
    fn is_dearer(&self, saved: f64) -> bool {
        saved <= if self.fits_everywhere { 0.0 } else { -EQUAL }
    }

    /// The knobs of a setting that have another value than the default, where that was written out too.
    fn changed(&self, point: &SweepPoint) -> Vec<(String, String)> {
        let mut defaults = self.points.iter().filter(|point| point.is_default);
        let written = defaults.by_ref().max_by_key(|point| point.values.len());
        let own = point.values.iter().filter(|(knob, value)| {
            let default = written.and_then(|point| pairs::value(point, knob));
            default != Some(value)
        });
        own.cloned().collect()
    }

    /// Of the settings that keep too little and save something, the one that saves most for what it gives up, beyond
    /// the chosen one. It is on the front, so that its own margin would choose it.
    fn trade(&self, best_kept: usize, chosen: usize, margin: f64) -> Option<Trade> {
        let (saved_now, most_kept) = (self.means[chosen][0], self.means[best_kept][1]);
        let all = self.points.iter().zip(&self.means).zip(&self.against_nothing);
        let refused = all.filter_map(|((point, [saved, kept]), against_nothing)| {
            let given_up = most_kept - kept;
            let too_little = point.on_front && given_up > margin + EQUAL;
            let saves_more = *saved > saved_now + EQUAL
                && !against_nothing.is_some_and(|saved| self.is_dearer(saved));
            (too_little && saves_more).then(|| Trade {
                values: point.values.clone(),
                changed: self.changed(point),
                saved: *saved,
                given_up,
                margin: (given_up * 1_000.0 - 1e-6).ceil() / 1_000.0,
            })
        });
        refused.max_by(|left, right| {
            let rates = [left, right].map(|trade| (trade.saved - saved_now) / trade.given_up);
            let changes = left.changed.len().cmp(&right.changed.len());
            rates[0].total_cmp(&rates[1]).then(changes.reverse())
        })
    }
}

impl Choice {
    /// The chosen setting in words: what it turns; `default` for the default.
    pub fn label(&self) -> Option<String> {
        self.values.as_ref()?;
        Some(short_label(&self.changed))
    }

    /// Whether the setting was confirmed.
    pub fn is_recommended(&self) -> bool {
        self.standing == Some(Standing::Recommended)
    }
}

/// Whether a point is better in both.
fn is_over(one: Point, other: Point) -> bool {
    one.iter().zip(other).all(|(one, other)| *one > other + EQUAL)
}

/// Why no setting can be chosen where none has both numbers.
fn unmeasured(points: &[&SweepPoint], cost: Axis, quality: Axis) -> String {
    let whole: Vec<_> = points.iter().filter(|point| point.broken.is_none()).collect();
    if let Some(first) = points.first().filter(|_| whole.is_empty()) {
        let why = first.broken.as_deref().unwrap_or_default();
        let alike = points.iter().all(|point| point.broken.as_deref() == Some(why));
        let of = if alike { "each" } else { "the default" };
        let written = points.iter().filter(|point| point.is_default).count();
        let all = points.len() + 1 - written.max(1);
        return format!("all {all} settings are broken; {of}: {why}");
    }
    let unknown = if whole.iter().all(|point| point.cost.is_none()) {
        cost
    } else if whole.iter().all(|point| point.quality.is_none()) {
        quality
    } else {
        return format!("no session has both {cost} and {quality} under every setting");
    };
    format!("no session has {unknown}")
}

/// The result of the margin rule.
pub(super) struct MarginChoice {
    /// The setting that keeps most.
    pub best_kept: usize,
    /// Those that keep enough.
    pub enough: Vec<usize>,
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
/// taken, then the one with fewest `changes` to the default, then the first. `None` where nothing was measured.
pub(super) fn margin_rule(means: &[Point], margin: f64, changes: &[usize]) -> Option<MarginChoice> {
    let all: Vec<usize> = measured(means).collect();
    let best_kept = best(means, changes, &all, [1, 0])?;
    let (enough, cheapest) = cheapest(means, changes, means[best_kept][1] - margin)?;
    Some(MarginChoice { best_kept, enough, cheapest })
}

fn measured(means: &[Point]) -> impl Iterator<Item = usize> {
    (0..means.len()).filter(|at| means[*at].iter().all(|value| value.is_finite()))
}

/// The settings that keep at least so much, and the cheapest of them.
fn cheapest(means: &[Point], changes: &[usize], least: f64) -> Option<(Vec<usize>, usize)> {
    let enough: Vec<usize> = measured(means).filter(|at| means[*at][1] >= least - EQUAL).collect();
    let cheapest = best(means, changes, &enough, [0, 1])?;
    Some((enough, cheapest))
}

/// The best of some settings by one objective, then by the other, then by the number of changes.
fn best(means: &[Point], changes: &[usize], of: &[usize], by: [usize; 2]) -> Option<usize> {
    of.iter().copied().reduce(|best, at| {
        let mut all = by.map(|objective| means[at][objective] - means[best][objective]).into_iter();
        let told = all.find(|difference| difference.abs() > EQUAL);
        let better = told.map_or(changes[at] < changes[best], |difference| difference > 0.0);
        if better { at } else { best }
    })
}

/// The chosen setting against the default, on sessions that did not choose it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Confirmation {
    /// The share of the default's total cost that it saves.
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
        let [saved, kept] = [cost, quality.axis].map(|axis| estimate(findings, axis));
        let both = saved.zip(kept);
        let sessions = both.map_or(0, |(saved, kept)| saved.n.sessions.min(kept.n.sessions));
        let problem = broken.or_else(|| {
            (sessions < FEWEST_SESSIONS)
                .then(|| format!("{FEWEST_SESSIONS} sessions to confirm on are needed"))
        });
        let mut not_shown = Vec::new();
        if problem.is_none() {
            not_shown.extend(NotShown::lower(findings, cost));
            not_shown.extend(NotShown::no_worse(findings, quality));
        }
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

/// A difference with its error.
fn estimate(findings: &Findings, axis: Axis) -> Option<Estimate> {
    let found = findings.axis(axis)?;
    let (bounds, n) = (found.bounds?, found.paired.by_session.n);
    Some(Estimate::with_error(bounds.difference, bounds.error, n))
}

impl NotShown {
    /// The claim that the cost is lower, where that is not shown.
    fn lower(findings: &Findings, cost: Axis) -> Option<Self> {
        let claim = format!("that the {cost} is lower than the default's");
        let found = findings.axis(cost);
        (!found.is_some_and(|found| found.state == State::Better))
            .then(|| Self::of(claim, found, 0.0))
    }

    /// The claim that the other is not worse by more than the margin, where that is not shown.
    fn no_worse(findings: &Findings, Objective { axis, margin }: Objective) -> Option<Self> {
        let points = margin * 100.0;
        let claim = format!("that {axis} are worse by no more than {points:.1} pts");
        let found = findings.axis(axis);
        (!found.is_some_and(|found| found.state.is_not_worse()))
            .then(|| Self::of(claim, found, margin))
    }

    /// A claim, with the sessions that would show it; `margin` says how far the difference may be below 0.
    fn of(claim: String, found: Option<&AxisFinding>, margin: f64) -> Self {
        Self { claim, sessions_needed: found.and_then(|found| found.sessions_to_hold(margin)) }
    }
}

impl Sweep {
    /// Enters the confirmation of the choice.
    pub fn confirm(&mut self, confirmation: Confirmation) {
        let choice = &mut self.choice;
        // A setting that stands alone among its neighbours may be good by chance, on either half.
        let shape = choice.neighbours.as_ref().map(|beside| beside.shape);
        if confirmation.is_confirmed && shape != Some(Shape::Spike) {
            choice.standing = Some(Standing::Recommended);
        }
        choice.confirmation = Some(confirmation);
        let (values, standing) = (choice.values.clone(), choice.standing);
        let mut points = self.points.iter_mut();
        if let Some(point) = points.find(|point| Some(&point.values) == values.as_ref()) {
            point.standing = standing;
        }
    }
}
