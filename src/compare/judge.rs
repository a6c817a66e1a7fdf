//! One judgement: what changed from one sample to another, axis by axis, and how sure that is.
//!
//! `run`, `compare`, `gate` and `sweep` all conclude from [`judge`]: the same samples under the same rule get
//! the same states, and so the same words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Axis, Kind, Margins};
use super::changes::{self, BrokenRule, ChangedProbe, Coverage, NewDeath};
use super::{ComparedRun, Repriced, Sample, SessionSample};
use crate::metric::Direction;
use crate::naming::base_name;
use crate::record::ModelEntry;
use crate::record::words::ModelKind;
use crate::stats::bounds::Bounds;
use crate::stats::paired::{FEWEST_SESSIONS, PairedDifference};
use crate::stats::power;
use crate::units::{index, many};

mod values;

pub(super) use values::DOLLARS;
use values::{Values, sum_of};

/// A difference counts as shown at this level, after the adjustment for the number of strategies.
pub const LEVEL: f64 = 0.05;

/// The margin of an axis that is not gated, for its words.
const UNGATED_MARGIN: f64 = 0.02;

/// Values closer to 0 than this are 0: numbers that went through a file may differ in the last bit.
pub(super) const NOTHING: f64 = 1e-9;

/// About what a judgement speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// These very sessions: did anything change on them? Where everything is deterministic there is
    /// no noise, and each difference is real.
    Suite,
    /// Sessions like these: would it hold on others?
    Population,
}

impl Target {
    /// Its name in settings and on the terminal.
    pub fn name(self) -> &'static str {
        match self {
            Self::Suite => "suite",
            Self::Population => "population",
        }
    }
}

/// The measurements of a comparison that depend on chance, that is, on answers of live models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chance {
    /// Nothing: the same command gives the same numbers.
    Nowhere,
    /// Answers to probes, or their grades; contexts, and so what survives in them, do not.
    Answers,
    /// Summaries, and so everything that is measured.
    Everywhere,
}

impl Chance {
    /// About what a judgement that is to be about `asked` speaks on this axis: a difference that depends on chance is
    /// never exact on the suite.
    pub(crate) fn target(self, asked: Target, axis: Axis) -> Target {
        if self.touches(axis) { Target::Population } else { asked }
    }

    /// Whether this axis depends on chance.
    pub fn touches(self, axis: Axis) -> bool {
        match self {
            Self::Nowhere => false,
            Self::Answers => axis == Axis::Answers,
            Self::Everywhere => true,
        }
    }
}

/// How two samples are judged.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgingRule {
    /// About what the judgement speaks.
    pub target: Target,
    /// By how much the candidate may be worse.
    pub margins: Margins,
    /// The measurements that depend on chance: without any, differences on the suite are exact.
    pub chance: Chance,
    /// Seed of the resampling tests.
    pub seed: u64,
}

impl JudgingRule {
    /// About sessions like these, with the usual margins. Chance differs between sessions, too: their spread
    /// holds both.
    pub fn of_population(seed: u64) -> Self {
        Self {
            target: Target::Population,
            margins: Margins::default(),
            chance: Chance::Nowhere,
            seed,
        }
    }

    /// The margin of an axis.
    pub(crate) fn margin(&self, axis: Axis) -> f64 {
        let margin = self.margins.get(axis);
        margin.unwrap_or_else(|| Margins::default().get(axis).unwrap_or(UNGATED_MARGIN))
    }
}

/// What the data say of one axis: the first of these that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Two stand-ins wrote what is compared, or one did.
    NotComparable,
    /// Shown to be better: by more than the margin, or less of the bill.
    Better,
    /// Shown to be worse, likewise.
    Worse,
    /// Both bounds lie within the margin.
    Same,
    /// The lower bound lies above the margin.
    NotWorse,
    /// The data allow both.
    Unknown,
}

impl State {
    /// Whether a loss beyond the margin is ruled out.
    pub fn is_not_worse(self) -> bool {
        matches!(self, Self::Better | Self::Same | Self::NotWorse)
    }
}

/// The findings of one judgement: a candidate against a baseline.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Findings {
    /// The baseline strategy.
    pub baseline: String,
    /// The candidate strategy.
    pub candidate: String,
    /// What stands behind the name of either where it may be recommended.
    #[serde(skip)]
    pub(crate) outlines: [String; 2],
    /// Why either is never recommended: sessions died, a prompt would be refused, or the strategy failed.
    #[serde(skip)]
    pub(crate) broken: [Option<String>; 2],
    /// Whether both are written the same; `None` where one definition is not known.
    pub same_definition: Option<bool>,
    /// Axis by axis, those that both sides have.
    #[serde(rename = "metrics")]
    pub axes: Vec<AxisFinding>,
    /// Probes whose score changed, the losses of high importance first.
    pub changed: Vec<ChangedProbe>,
    /// Rules of the provider that the candidate breaks and the baseline does not.
    pub broken_rules: Vec<BrokenRule>,
    /// Sessions that die, or in which the strategy fails, more often under the candidate.
    pub deaths: Vec<NewDeath>,
    /// How much of what the baseline scored the candidate scored too.
    pub coverage: Coverage,
    /// Sessions whose costs were computed again at the candidate's prices, because the baseline's were others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repriced: Option<Repriced>,
    /// Sessions whose prices are not the same on both sides, and whose costs could not be computed again: what
    /// they cost is not compared.
    pub unpriced_sessions: usize,
    /// About what the judgement speaks.
    pub target: Target,
    /// The measurements that depend on chance.
    pub chance: Chance,
    /// Seed of the resampling tests.
    pub seed: u64,
}

/// The difference on one axis, candidate against baseline.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct AxisFinding {
    /// The axis.
    #[serde(rename = "metric")]
    pub axis: Axis,
    /// How it was compared.
    pub kind: Kind,
    /// Which way is better.
    pub direction: Direction,
    /// Its evaluator.
    pub evaluator: &'static str,
    /// What the data say.
    pub state: State,
    /// Why it is not comparable, or that a stand-in wrote both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether it is a bill in dollars: where no price is known, a bill is in input tokens.
    pub is_in_dollars: bool,
    /// Under the baseline: the mean over clusters, of a total the sum.
    pub baseline: f64,
    /// Under the candidate, likewise.
    pub candidate: f64,
    /// The margin that its state was found with.
    pub margin: f64,
    /// The bounds of the difference, with the sign such that higher is better; of a total the share of the
    /// baseline's that is saved. `None` where the error is not known.
    pub bounds: Option<Bounds>,
    /// p value of the test (sign flips of clusters), adjusted for all comparisons of the family.
    pub adjusted_p: Option<f64>,
    /// Differences per session and per probe; a share, count or total has one value per session.
    pub paired: PairedDifference,
    /// Where pairs have no score: the bounds if each of them were as bad, and as good, as possible for the
    /// candidate.
    #[serde(skip)]
    pub(crate) ends: Option<(Bounds, Bounds)>,
    /// Sessions of the baseline that the candidate lacks here; of totals also those in which the candidate
    /// died at another call than the baseline, or alone.
    pub missing_sessions: usize,
    /// Of a total, sessions in which both died at the same call: it holds what they cost up to there.
    pub unfinished_sessions: usize,
    /// Each cluster's difference, turned so that higher is better, in the order of their names: of a total in
    /// its unit.
    #[serde(skip)]
    pub(crate) by_cluster: Vec<(String, f64)>,
}

/// Judges `candidate` against `baseline`, over the sessions of the baseline.
pub fn judge(baseline: &Sample, candidate: &Sample, rule: &JudgingRule) -> Findings {
    let pairs = Pairs::of(baseline, candidate);
    let known = !(baseline.definition.is_empty() || candidate.definition.is_empty());
    let axes = Axis::ALL.into_iter();
    Findings {
        baseline: baseline.strategy.clone(),
        candidate: candidate.strategy.clone(),
        outlines: [baseline.outline(), candidate.outline()],
        broken: [baseline, candidate].map(Sample::broken),
        same_definition: known.then(|| baseline.definition == candidate.definition),
        axes: axes.filter_map(|axis| pairs.judge(axis, rule)).collect(),
        changed: changes::changed(&pairs.sessions),
        broken_rules: changes::broken_rules(&pairs.sessions),
        deaths: changes::deaths(&pairs.sessions),
        coverage: changes::coverage(&pairs.sessions),
        repriced: None,
        unpriced_sessions: 0,
        target: match rule.chance {
            Chance::Nowhere | Chance::Answers => rule.target,
            Chance::Everywhere => Target::Population,
        },
        chance: rule.chance,
        seed: rule.seed,
    }
}

impl Findings {
    /// The finding on this axis.
    pub fn axis(&self, axis: Axis) -> Option<&AxisFinding> {
        self.axes.iter().find(|found| found.axis == axis)
    }

    /// What was kept: answers where a model gave them on both sides, else facts.
    pub fn kept(&self) -> Option<&AxisFinding> {
        let answers = self.axis(Axis::Answers).filter(|found| found.is_comparable());
        answers.or_else(|| self.axis(Axis::Facts))
    }

    /// Adds question and value to each changed probe, from the first of these sources that knows them.
    #[must_use]
    pub fn with_texts(mut self, sources: &[&ComparedRun]) -> Self {
        for probe in &mut self.changed {
            let item = (probe.session.clone(), probe.probe.clone());
            let mut known = sources.iter().filter_map(|source| source.texts.get(&item));
            probe.text = known.next().cloned();
        }
        self
    }
}

/// A session of the baseline, and what the candidate has of it.
pub(super) type Pair<'a> = (&'a str, &'a SessionSample, Option<&'a SessionSample>);

/// The sessions of two samples, side by side.
#[derive(Clone)]
pub(crate) struct Pairs<'a> {
    sides: [&'a Sample; 2],
    pub(super) sessions: Vec<Pair<'a>>,
}

impl<'a> Pairs<'a> {
    /// All sessions of the baseline.
    pub(crate) fn of(baseline: &'a Sample, candidate: &'a Sample) -> Self {
        let all = baseline.sessions.iter();
        let sessions = all.map(|(id, old)| (id.as_str(), old, candidate.sessions.get(id)));
        Self { sides: [baseline, candidate], sessions: sessions.collect() }
    }

    /// The same with some of the sessions only.
    #[must_use]
    pub(crate) fn only(mut self, is_meant: impl Fn(&str) -> bool) -> Self {
        self.sessions.retain(|(id, ..)| is_meant(id));
        self
    }

    /// Judges one axis; `None` where no pair has it.
    ///
    /// A bill in dollars says nothing of sessions without a price. Where all of them together leave a loss open that
    /// the dollars rule out, it is judged in input tokens, which all have.
    pub(crate) fn judge(&self, axis: Axis, rule: &JudgingRule) -> Option<AxisFinding> {
        let found = self.judge_by(axis, values::key(axis, &self.sessions), rule)?;
        let unpriced = self.sessions.iter().filter(|pair| is_unpriced(pair)).count();
        if !found.is_in_dollars || unpriced == 0 || !found.state.is_not_worse() {
            return Some(found);
        }
        let mut whole = self.judge_by(axis, axis.name(), rule)?;
        let unpriced = many(unpriced, "session has", "sessions have");
        whole.note = Some(format!("the bill in input tokens, as {unpriced} no price"));
        Some(if whole.state.is_not_worse() { found } else { whole })
    }

    fn judge_by(&self, axis: Axis, key: &'static str, rule: &JudgingRule) -> Option<AxisFinding> {
        let (note, is_comparable) = self.note(axis);
        let values = Values::of(axis, key, &self.sessions)?;
        let mut found = match axis.kind() {
            Kind::Total => values.totals(rule)?,
            Kind::Probes | Kind::Share | Kind::Count => values.means(rule)?,
        };
        found.note = note;
        found.adjusted_p = found.p();
        found.state = State::NotComparable;
        if is_comparable {
            found.state = found.state_under(rule.chance.target(rule.target, axis));
        }
        Some(found)
    }

    /// Who wrote what an axis is read from, where that says something; and whether it can be compared.
    fn note(&self, axis: Axis) -> (Option<String>, bool) {
        if !axis.is_read_from_text() {
            return (None, true);
        }
        let [old, new] = self.sides;
        let same = base_name(&old.strategy) == base_name(&new.strategy);
        let roles = [
            ([&old.writer, &new.writer], "wrote", "summaries"),
            ([&old.reader, &new.reader], "gave", "answers"),
        ];
        let mut notes = Vec::new();
        for (sides, wrote, what) in &roles[..if axis == Axis::Answers { 2 } else { 1 }] {
            let known = sides.map(Option::as_ref);
            let stand_in = known.into_iter().flatten().find(|model| model.kind != ModelKind::Live);
            match (stand_in, known) {
                (Some(stand_in), _) if same && known[0] == known[1] => {
                    notes.push(format!("as written by {}", by(stand_in)));
                }
                (Some(stand_in), [old_side, _]) => {
                    let whose = if old_side == Some(stand_in) { old } else { new };
                    let whose = crate::naming::short_name(&whose.strategy);
                    let note = format!("{} {wrote} the {what} of {whose}", by(stand_in));
                    return (Some(note), false);
                }
                (None, [Some(left), Some(right)]) if left != right => {
                    notes.push(format!("{what} by {} and by {}", left.name, right.name));
                }
                (None, _) => {}
            }
        }
        ((!notes.is_empty()).then(|| notes.join(", ")), true)
    }
}

/// A stand-in in a sentence.
fn by(model: &ModelEntry) -> &'static str {
    match model.kind {
        ModelKind::Deterministic => "rules",
        ModelKind::Scripted => "a script",
        ModelKind::Live => "a model",
    }
}

/// Whether both sides have a bill in input tokens, and not both one in dollars.
fn is_unpriced(pair: &Pair<'_>) -> bool {
    both_have(pair, Axis::Bill.name()) && !both_have(pair, DOLLARS)
}

/// Whether both sides have values under this key.
fn both_have((_, old, new): &Pair<'_>, key: &str) -> bool {
    old.metrics.contains_key(key) && new.is_some_and(|new| new.metrics.contains_key(key))
}

/// The cluster of a pair: its main session, or the session itself.
pub(super) fn cluster<'a>((id, old, new): &Pair<'a>) -> &'a str {
    old.cluster.as_deref().or_else(|| new.and_then(|new| new.cluster.as_deref())).unwrap_or(id)
}

impl AxisFinding {
    /// p value of its test, as if it stood alone; two-sided.
    pub fn p(&self) -> Option<f64> {
        self.paired.sign_flip.map(|test| test.p)
    }

    /// The difference, turned so that higher is better; 0 where it is not known.
    pub fn difference(&self) -> f64 {
        self.bounds.map_or(0.0, |bounds| bounds.difference)
    }

    /// Whether both sides can be compared.
    pub(crate) fn is_comparable(&self) -> bool {
        self.state != State::NotComparable
    }

    /// Whether its interval lies above 0.
    pub(crate) fn is_above_0(&self) -> bool {
        self.bounds.is_some_and(|one| one.interval_lower > 0.0)
    }

    /// p value of the sign flips in the good direction alone.
    pub(crate) fn one_sided_p(&self) -> f64 {
        let sum = sum_of(&self.by_cluster, |(_, value)| *value);
        match self.p() {
            Some(p) if sum > 0.0 => p / 2.0,
            Some(_) | None => 1.0,
        }
    }

    /// The clusters in which the two differ.
    pub(crate) fn differing(&self) -> usize {
        self.by_cluster.iter().filter(|(_, value)| value.abs() > NOTHING).count()
    }

    /// The cluster without which the difference is gone, or points the other way.
    pub(crate) fn turning_cluster(&self) -> Option<&str> {
        let sum = sum_of(&self.by_cluster, |(_, value)| *value);
        let mut clusters = self.by_cluster.iter();
        let turning = clusters.find(|(_, value)| sum != 0.0 && (sum - value) * sum <= 0.0);
        turning.map(|(name, _)| name.as_str())
    }

    /// Enters the p value that is adjusted for a family of comparisons.
    pub(crate) fn adjust(&mut self, p: f64, target: Target) {
        self.adjusted_p = Some(p);
        if self.is_comparable() {
            self.state = self.state_under(target);
        }
    }

    fn state_under(&self, target: Target) -> State {
        let Some(bounds) = self.bounds else {
            return State::Unknown;
        };
        let few = target == Target::Population && bounds.sessions < FEWEST_SESSIONS;
        let mut clusters = self.by_cluster.iter();
        if few && !clusters.all(|(_, value)| value.abs() < NOTHING) {
            return State::Unknown;
        }
        let (worst, best) = self.ends.unwrap_or((bounds, bounds));
        let states = [bounds, worst, best].map(|bounds| self.state_of(&bounds, target));
        if states.iter().all(|state| *state == states[0]) {
            states[0]
        } else if states.iter().all(|state| state.is_not_worse()) {
            State::NotWorse
        } else {
            State::Unknown
        }
    }

    fn state_of(&self, bounds: &Bounds, target: Target) -> State {
        let shown = target == Target::Suite && bounds.is_exact()
            || self.adjusted_p.is_some_and(|p| p <= LEVEL);
        let better = shown && bounds.interval_lower > 0.0;
        let worse = shown && bounds.interval_upper < 0.0;
        let margin = self.margin + NOTHING;
        let large = self.axis == Axis::Bill || bounds.difference.abs() > margin;
        let not_worse = bounds.lower >= -margin;
        match (better, worse) {
            (true, _) if large => State::Better,
            (_, true) if large => State::Worse,
            _ if not_worse && bounds.upper <= margin => State::Same,
            (true, _) => State::Better,
            (_, true) => State::Worse,
            _ if not_worse => State::NotWorse,
            _ => State::Unknown,
        }
    }

    /// How many sessions like these would show that it is not worse by this margin, if the difference stays as it
    /// is. `None` where no number would.
    pub(crate) fn sessions_to_hold(&self, margin: f64) -> Option<usize> {
        power::sessions_needed(self.bounds?.deviation?, margin + self.difference())
    }

    /// How many sessions like these would show the difference, one of `strategies` that are judged:
    /// the smallest number that has the power of t at 5 % over their number, and that sign flips can reach, over
    /// the share of sessions in which the two differ. `None` where no number would.
    pub(crate) fn sessions_needed(&self, strategies: usize) -> Option<usize> {
        let level = LEVEL / strategies.max(1) as f64;
        let deviation = self.bounds?.deviation?;
        let by_power = power::sessions_at(deviation, self.difference(), level)?;
        let share = self.differing() as f64 / self.by_cluster.len() as f64;
        let by_test = index((least_differing(strategies) as f64 / share).ceil());
        (share > 0.0).then_some(by_power.max(by_test))
    }
}

/// The least number of clusters that differ with which sign flips can show anything of one of so many strategies:
/// 2 · 2⁻ⁿ ≤ 5 % / k.
pub(crate) fn least_differing(strategies: usize) -> usize {
    let level = LEVEL / strategies.max(1) as f64;
    let mut clusters = 1;
    while 2.0 * 0.5_f64.powi(clusters) > level {
        clusters += 1;
    }
    usize::try_from(clusters).unwrap_or(usize::MAX)
}

#[cfg(test)]
pub(crate) mod tests;
