//! One judgement: what changed from one sample to another, axis by axis, and how sure that is.
//!
//! `run`, `compare`, `gate` and `sweep` all conclude from [`judge`]: the same samples under the same rule get
//! the same states, and so the same words.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Axis, Kind, Margins};
use super::changes::{self, BrokenRule, ChangedProbe, Coverage, NewDeath};
use super::{ComparedRun, ProbeSample, Repriced, Sample, SessionSample};
use crate::metric::Direction;
use crate::naming::base_name;
use crate::record::ModelEntry;
use crate::record::words::ModelKind;
use crate::stats::bounds::Bounds;
use crate::stats::paired::{FEWEST_SESSIONS, PairedDifference, PairedSession};
use crate::stats::suite::{self, Repeats, SuiteDifference};
use crate::stats::{Estimate, power, signflip};

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
pub struct Rule {
    /// About what the judgement speaks.
    pub target: Target,
    /// By how much the candidate may be worse.
    pub margins: Margins,
    /// The measurements that depend on chance: without any, differences on the suite are exact.
    pub chance: Chance,
    /// Seed of the resampling tests.
    pub seed: u64,
}

impl Rule {
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

    fn margin(&self, axis: Axis) -> f64 {
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
    /// Whether both are written the same; `None` where one definition is not known.
    pub same_definition: Option<bool>,
    /// Axis by axis, those that both sides have.
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
    /// Under the baseline: the mean over clusters, of a total the sum.
    pub baseline: f64,
    /// Under the candidate, likewise.
    pub candidate: f64,
    /// The margin that its state was found with.
    pub margin: f64,
    /// The bounds of the difference, with the sign such that higher is better; of a total the share of the
    /// baseline's that is saved. `None` where the error is not known.
    pub bounds: Option<Bounds>,
    /// p value of the test (sign flips of clusters; about a suite, permutation of repeats), adjusted for all
    /// comparisons of the family.
    pub adjusted_p: Option<f64>,
    /// Differences per session and per probe; a share, count or total has one value per session.
    pub paired: PairedDifference,
    /// The difference on a suite by repeats, where chance has a part.
    pub suite: Option<SuiteDifference>,
    /// Where pairs have no score: the bounds if each of them were as bad, and as good, as possible for the
    /// candidate.
    #[serde(skip)]
    pub(crate) ends: Option<(Bounds, Bounds)>,
    /// Sessions of the baseline that the candidate lacks here; of totals also those in which the candidate
    /// died at another call than the baseline, or alone.
    pub missing_sessions: usize,
    /// Each cluster's difference, turned so that higher is better, in the order of their names: of a total in
    /// its unit.
    #[serde(skip)]
    pub(crate) by_cluster: Vec<(String, f64)>,
}

/// Judges `candidate` against `baseline`, over the sessions of the baseline.
pub fn judge(baseline: &Sample, candidate: &Sample, rule: &Rule) -> Findings {
    let pairs = Pairs::of(baseline, candidate);
    let is_known = !(baseline.definition.is_empty() || candidate.definition.is_empty());
    let rule = pairs.rule(rule);
    let axes = Axis::ALL.into_iter();
    Findings {
        baseline: baseline.strategy.clone(),
        candidate: candidate.strategy.clone(),
        same_definition: is_known.then(|| baseline.definition == candidate.definition),
        axes: axes.filter_map(|axis| pairs.judge(axis, &rule)).collect(),
        changed: changes::changed(&pairs.sessions),
        broken_rules: changes::broken_rules(&pairs.sessions),
        deaths: changes::deaths(&pairs.sessions),
        coverage: changes::coverage(&pairs.sessions),
        repriced: None,
        unpriced_sessions: 0,
        target: rule.target,
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
        let answers = self.axis(Axis::Answers);
        let answers = answers.filter(|it| it.state != State::NotComparable);
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
        let sessions = baseline.sessions.iter();
        let pair = |(id, old): (&'a String, &'a SessionSample)| {
            (id.as_str(), old, candidate.sessions.get(id))
        };
        Self {
            sides: [baseline, candidate],
            sessions: sessions.map(pair).collect(),
        }
    }

    /// The same with some of the sessions only.
    #[must_use]
    pub(crate) fn only(mut self, is_meant: impl Fn(&str) -> bool) -> Self {
        self.sessions.retain(|(id, ..)| is_meant(id));
        self
    }

    /// Without repeats on both sides noise cannot be estimated, and a judgement is about a population.
    fn rule(&self, rule: &Rule) -> Rule {
        let mut rule = rule.clone();
        let is_exact = rule.chance == Chance::Nowhere;
        if !(is_exact || self.sessions.iter().all(is_repeated)) {
            rule.target = Target::Population;
        }
        rule
    }

    /// Judges one axis; `None` where no pair has it.
    pub(crate) fn judge(&self, axis: Axis, rule: &Rule) -> Option<AxisFinding> {
        let (note, is_comparable) = self.note(axis);
        let values = Values::of(axis, &self.sessions)?;
        let mut found = match axis.kind() {
            Kind::Total => values.totals(rule)?,
            Kind::Probes | Kind::Share | Kind::Count => values.means(rule)?,
        };
        found.note = note;
        found.adjusted_p = found.p();
        found.state = if is_comparable {
            found.state_under(rule.target)
        } else {
            State::NotComparable
        };
        Some(found)
    }

    /// Who wrote what an axis is read from, where that says something; and whether it can be compared.
    fn note(&self, axis: Axis) -> (Option<String>, bool) {
        if !axis.is_read_from_text() {
            return (None, true);
        }
        let [old, new] = self.sides;
        let is_one = base_name(&old.strategy) == base_name(&new.strategy);
        let of_answers = (axis == Axis::Answers).then_some(());
        let readers = of_answers.map(|()| [&old.reader, &new.reader]);
        let roles = [
            (Some([&old.writer, &new.writer]), "summaries"),
            (readers, "answers"),
        ];
        let mut notes = Vec::new();
        for (sides, what) in roles {
            let Some(sides) = sides else { continue };
            let known = sides.map(Option::as_ref);
            let stand_in = known.into_iter().flatten().find(|it| is_stand_in(it));
            match (stand_in, known) {
                (Some(stand_in), _) if is_one && known[0] == known[1] => {
                    notes.push(format!("as written by {}", by(stand_in)));
                }
                (Some(stand_in), [old_side, _]) => {
                    let whose = if old_side == Some(stand_in) { old } else { new };
                    let whose = crate::naming::short_name(&whose.strategy);
                    let wrote = if what == "answers" { "gave" } else { "wrote" };
                    return (
                        Some(format!("{} {wrote} the {what} of {whose}", by(stand_in))),
                        false,
                    );
                }
                (None, [Some(left), Some(right)]) if left != right => {
                    notes.push(format!("{what} by {} and by {}", left.name, right.name));
                }
                (None, _) => {}
            }
        }
        let is_told = !notes.is_empty();
        (is_told.then(|| notes.join(", ")), true)
    }
}

/// Whether something other than a language model wrote or read.
fn is_stand_in(model: &ModelEntry) -> bool {
    model.kind != ModelKind::Live
}

/// A stand-in in a sentence.
fn by(model: &ModelEntry) -> &'static str {
    match model.kind {
        ModelKind::Deterministic => "rules",
        ModelKind::Scripted => "a script",
        ModelKind::Live => "a model",
    }
}

fn is_repeated((_, old, new): &Pair<'_>) -> bool {
    let all = |session: &SessionSample| session.metrics.values().all(|it| it.len() >= 2);
    all(old) && new.is_some_and(all)
}

/// The cluster of a pair: its main session, or the session itself.
pub(super) fn cluster<'a>((id, old, new): &Pair<'a>) -> &'a str {
    let known = old.cluster.as_deref();
    let known = known.or_else(|| new.and_then(|new| new.cluster.as_deref()));
    known.unwrap_or(id)
}

pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The values of an axis, cluster by cluster.
struct Values<'a> {
    axis: Axis,
    key: &'static str,
    pairs: Vec<Pair<'a>>,
    names: Vec<&'a str>,
    clusters: Vec<Vec<PairedSession>>,
    missing: usize,
}

impl<'a> Values<'a> {
    fn of(axis: Axis, sessions: &[Pair<'a>]) -> Option<Self> {
        let key = key(axis, sessions);
        let mut pairs = sessions.to_vec();
        let mut missing = 0;
        if axis.kind() == Kind::Total {
            pairs.retain(ended_alike);
            // A session that dies no more is an improvement, and no gap in the comparison.
            let others = sessions.iter().filter(|pair| !ended_alike(pair));
            missing = others.filter(|pair| !only_baseline_died(pair)).count();
        }
        let mut clusters: BTreeMap<&str, Vec<PairedSession>> = BTreeMap::new();
        for pair in &pairs {
            let (session, is_missing) = paired(axis, key, pair);
            missing += usize::from(is_missing);
            clusters.entry(cluster(pair)).or_default().push(session);
        }
        let is_there = |own: &Vec<PairedSession>| own.iter().any(|it| !it.pairs.is_empty());
        if !clusters.values().any(is_there) {
            return None;
        }
        let (names, clusters) = clusters.into_iter().unzip();
        Some(Self {
            axis,
            key,
            pairs,
            names,
            clusters,
            missing,
        })
    }

    /// Over the sessions of each cluster, the mean of what the pairs of a session give.
    fn by_cluster(&self, of: fn(&(f64, f64)) -> f64) -> Vec<(String, f64)> {
        let named = self.names.iter().zip(&self.clusters);
        let known = named.filter_map(|(name, own)| {
            let sessions = own.iter().filter_map(|it| mean_of(&it.pairs, of));
            Some(((*name).to_owned(), mean(&sessions.collect::<Vec<_>>())?))
        });
        known.collect()
    }

    /// Means over clusters, each weighing the same.
    fn means(self, rule: &Rule) -> Option<AxisFinding> {
        let mut paired = PairedDifference::of(&self.clusters, rule.seed)?;
        for estimate in [&mut paired.by_session, &mut paired.by_probe] {
            if estimate.point_estimate.abs() < NOTHING {
                estimate.point_estimate = 0.0;
            }
        }
        let levels = [|pair: &(f64, f64)| pair.0, |pair: &(f64, f64)| pair.1];
        let levels = levels.map(|of| mean_of(&self.by_cluster(of), |it| it.1).unwrap_or(0.0));
        let differences = self.by_cluster(|(old, new)| new - old).into_iter();
        let differences = differences.map(|(name, value)| (name, self.axis.turned(value)));
        let suite = self.suite(rule, None);
        let estimate = Estimate {
            point_estimate: self.axis.turned(paired.by_session.point_estimate),
            ..paired.by_session
        };
        let bounds = self.bounds(&estimate, suite.as_ref(), 1.0, rule);
        let unscored = bounds.zip(paired.bounds);
        let ends = unscored.map(|(bounds, (low, high))| {
            let filled = |fill| {
                let suite = self.suite(rule, Some(fill))?;
                of_suite(&suite.estimate, &suite)
            };
            // Probes are better the higher they score: nothing is to be turned.
            let repeated = suite.and_then(|_| Some((filled((1.0, 0.0))?, filled((0.0, 1.0))?)));
            let point = paired.by_session.point_estimate;
            repeated.unwrap_or_else(|| (bounds.moved(low - point), bounds.moved(high - point)))
        });
        Some(AxisFinding {
            by_cluster: differences.collect(),
            bounds,
            ends,
            suite,
            ..self.finding(levels, paired, rule)
        })
    }

    /// Totals over all sessions: the ratio of two sums over clusters, with its clustered error.
    fn totals(self, rule: &Rule) -> Option<AxisFinding> {
        let paired = PairedDifference::of(&self.clusters, rule.seed)?;
        let sums: Vec<(f64, f64)> = self.clusters.iter().map(|own| sum(own)).collect();
        let [old, new] = [sum_of(&sums, |it| it.0), sum_of(&sums, |it| it.1)];
        let named = self.names.iter().zip(&sums);
        let by_cluster: Vec<(String, f64)> = named
            .map(|(name, (old, new))| ((*name).to_owned(), old - new))
            .collect();
        let suite = self.suite(rule, None);
        let turned: Vec<(f64, f64)> = sums.iter().map(|(old, new)| (*new, *old)).collect();
        let ratio = Estimate::of_ratio(&turned, paired.by_session.n.items);
        let bounds = match ratio {
            // Nothing on both sides is the same.
            None if old == 0.0 && new == 0.0 => Some(Bounds::exact(0.0, sums.len())),
            // A share of nothing is no number.
            None => None,
            Some(ratio) => {
                let saved = 1.0 - ratio.point_estimate;
                let estimate = Estimate {
                    point_estimate: if saved.abs() < NOTHING { 0.0 } else { saved },
                    ..ratio
                };
                let scale = sums.len() as f64 / old;
                self.bounds(&estimate, suite.as_ref(), scale, rule)
            }
        };
        let mut found = AxisFinding {
            bounds,
            suite,
            ..self.finding([old, new], paired, rule)
        };
        let values: Vec<f64> = by_cluster.iter().map(|(_, value)| *value).collect();
        // The test asks what the interval answers, and that is about sums over clusters.
        found.paired.sign_flip = signflip::test(&values, rule.seed);
        found.by_cluster = by_cluster;
        Some(found)
    }

    fn finding(
        &self,
        [baseline, candidate]: [f64; 2],
        paired: PairedDifference,
        rule: &Rule,
    ) -> AxisFinding {
        AxisFinding {
            axis: self.axis,
            kind: self.axis.kind(),
            direction: self.axis.direction(),
            evaluator: self.axis.evaluator(),
            state: State::Unknown,
            note: None,
            baseline,
            candidate,
            margin: rule.margin(self.axis),
            bounds: None,
            adjusted_p: None,
            paired,
            suite: None,
            ends: None,
            missing_sessions: self.missing,
            by_cluster: Vec::new(),
        }
    }

    /// The bounds of an estimate that is turned so that higher is better; `scale` brings the error of repeats
    /// to its unit.
    fn bounds(
        &self,
        estimate: &Estimate,
        suite: Option<&SuiteDifference>,
        scale: f64,
        rule: &Rule,
    ) -> Option<Bounds> {
        let sessions = estimate.n.sessions;
        match rule.target {
            Target::Suite if !rule.chance.touches(self.axis) => {
                Some(Bounds::exact(estimate.point_estimate, sessions))
            }
            Target::Suite => {
                let suite = suite?;
                let error = suite.estimate.standard_error.map(|it| it * scale);
                let estimate = Estimate {
                    standard_error: error,
                    ..*estimate
                };
                of_suite(&estimate, suite)
            }
            Target::Population => Bounds::estimated(estimate, sessions.checked_sub(1)?),
        }
    }

    /// The difference on this suite by repeats, where chance has a part; `None` where a session was not scored
    /// in two repeats on both sides. Pairs without a score are left out, or get these in place of the score
    /// that the baseline or the candidate lacks.
    fn suite(&self, rule: &Rule, fill: Option<(f64, f64)>) -> Option<SuiteDifference> {
        if rule.target != Target::Suite || !rule.chance.touches(self.axis) {
            return None;
        }
        let mut clusters: BTreeMap<&str, Vec<Repeats>> = BTreeMap::new();
        for pair in &self.pairs {
            let (_, old, new) = pair;
            let Some(new) = new else { continue };
            let baseline = self.repeats(old, new, fill.map(|fill| fill.0));
            let candidate = self.repeats(new, old, fill.map(|fill| fill.1));
            if !(baseline.is_empty() || candidate.is_empty()) {
                let repeats = Repeats {
                    baseline,
                    candidate,
                };
                clusters.entry(cluster(pair)).or_default().push(repeats);
            }
        }
        let clusters = clusters.into_values();
        let repeats: Vec<Repeats> = clusters.map(|own| self.one_of(&own)).collect();
        suite::compare(&repeats, rule.seed)
    }

    /// A cluster's sessions as one, repeat by repeat, as far as all of them have it: the sum of a total, else
    /// the mean.
    fn one_of(&self, sessions: &[Repeats]) -> Repeats {
        let divisor = match self.axis.kind() {
            Kind::Total => 1.0,
            Kind::Probes | Kind::Share | Kind::Count => sessions.len() as f64,
        };
        let side = |of: fn(&Repeats) -> &Vec<f64>| {
            let fewest = sessions.iter().map(|it| of(it).len()).min().unwrap_or(0);
            let repeats = (0..fewest).map(|at| sum_of(sessions, |it| of(it)[at]) / divisor);
            repeats.collect()
        };
        Repeats {
            baseline: side(|session| &session.baseline),
            candidate: side(|session| &session.candidate),
        }
    }

    /// A session's value in each repeat: of probes those that `other` scores as well, and with `fill` those
    /// that one side alone scores.
    fn repeats(
        &self,
        session: &SessionSample,
        other: &SessionSample,
        fill: Option<f64>,
    ) -> Vec<f64> {
        if self.axis.kind() != Kind::Probes {
            let values = session.metrics.get(self.key).cloned();
            return values.unwrap_or_default();
        }
        let ids: BTreeSet<&String> = session.probes.keys().chain(other.probes.keys()).collect();
        let (mut scored, mut filled): (Vec<&[f64]>, f64) = (Vec::new(), 0.0);
        for id in ids {
            let scores = |of: &'_ SessionSample| {
                of.probes.get(id).map(|it| !it.scores(self.axis).is_empty())
            };
            let own = session
                .probes
                .get(id)
                .map_or(&[][..], |it| it.scores(self.axis));
            match (own.is_empty(), !scores(other).unwrap_or(false)) {
                (false, false) => scored.push(own),
                (false, true) if fill.is_some() => scored.push(own),
                (true, false) => filled += f64::from(u8::from(fill.is_some())),
                (false | true, true) => {}
            }
        }
        let fewest = scored.iter().map(|it| it.len()).min().unwrap_or(0);
        let count = scored.len() as f64 + filled;
        let missing = filled * fill.unwrap_or(0.0);
        (0..fewest)
            .map(|at| (sum_of(&scored, |it| it[at]) + missing) / count)
            .collect()
    }
}

/// The bounds of an estimate whose error comes from repeats.
fn of_suite(estimate: &Estimate, suite: &SuiteDifference) -> Option<Bounds> {
    let mut bounds = Bounds::estimated(estimate, suite.freedom)?;
    bounds.permuted = Some(suite.p);
    Some(bounds)
}

fn sum_of<T>(items: &[T], of: impl Fn(&T) -> f64) -> f64 {
    items.iter().map(of).sum()
}

fn mean_of<T>(items: &[T], of: impl Fn(&T) -> f64) -> Option<f64> {
    (!items.is_empty()).then(|| sum_of(items, of) / items.len() as f64)
}

/// The sums of a cluster's pairs.
fn sum(own: &[PairedSession]) -> (f64, f64) {
    let pairs: Vec<(f64, f64)> = own.iter().flat_map(|it| it.pairs.clone()).collect();
    (sum_of(&pairs, |it| it.0), sum_of(&pairs, |it| it.1))
}

/// Under which name the sessions hold the values of an axis: a bill in dollars where any is known on both sides.
fn key(axis: Axis, sessions: &[Pair<'_>]) -> &'static str {
    let has_dollars = |session: &SessionSample| session.metrics.contains_key(DOLLARS);
    let mut sessions = sessions.iter();
    let is_priced = sessions.any(|(_, old, new)| has_dollars(old) && new.is_some_and(has_dollars));
    match axis {
        Axis::Bill if is_priced => DOLLARS,
        _ => axis.name(),
    }
}

/// The bill of a session in dollars, beside the one in input tokens.
pub(super) const DOLLARS: &str = "dollars";

/// The values of a session under both, and whether the candidate lacks what the baseline has.
fn paired(axis: Axis, key: &str, pair: &Pair<'_>) -> (PairedSession, bool) {
    let (_, old, new) = pair;
    let value = |session: &SessionSample| mean(session.metrics.get(key)?);
    let mut session = PairedSession::default();
    if axis.kind() == Kind::Probes {
        session = paired_probes(axis, pair);
        let is_missing = session.pairs.is_empty() && !session.unscored.is_empty();
        return (session, is_missing);
    }
    match (value(old), new.and_then(value)) {
        (Some(old), Some(new)) => session.pairs.push((old, new)),
        (Some(_), None) => return (session, true),
        (None, _) => {}
    }
    (session, false)
}

/// The scores of a session's probes under both, paired.
fn paired_probes(axis: Axis, (_, old, new): &Pair<'_>) -> PairedSession {
    let mut session = PairedSession::default();
    let score = |probe: &ProbeSample| mean(probe.scores(axis));
    let mut add = |baseline: Option<f64>, candidate: Option<f64>| match (baseline, candidate) {
        (Some(baseline), Some(candidate)) => session.pairs.push((baseline, candidate)),
        // Scored by neither: there was nothing to compare.
        (None, None) => {}
        unscored => session.unscored.push(unscored),
    };
    for (id, probe) in &old.probes {
        add(score(probe), new.and_then(|new| score(new.probes.get(id)?)));
    }
    for (id, probe) in new.iter().flat_map(|new| &new.probes) {
        if !old.probes.contains_key(id) {
            add(None, score(probe));
        }
    }
    session
}

/// Whether both sides made the same calls, as far as their deaths show: a session that dies earlier
/// costs less without saving anything.
fn ended_alike((_, old, new): &Pair<'_>) -> bool {
    new.is_none_or(|new| old.dead == new.dead && old.died_at == new.died_at)
}

fn only_baseline_died((_, old, new): &Pair<'_>) -> bool {
    old.dead > 0 && new.is_some_and(|new| new.dead == 0)
}

impl AxisFinding {
    /// p value of its test, as if it stood alone; two-sided.
    pub fn p(&self) -> Option<f64> {
        match &self.suite {
            Some(suite) => Some(suite.p),
            None => self.paired.sign_flip.map(|test| test.p),
        }
    }

    /// The difference, turned so that higher is better; 0 where it is not known.
    pub fn difference(&self) -> f64 {
        self.bounds.map_or(0.0, |bounds| bounds.difference)
    }

    /// p value of the sign flips in the good direction alone.
    pub(crate) fn one_sided_p(&self) -> f64 {
        let sum = sum_of(&self.by_cluster, |it| it.1);
        match self.p() {
            Some(p) if sum > 0.0 => p / 2.0,
            Some(_) | None => 1.0,
        }
    }

    /// The clusters in which the two differ.
    pub(crate) fn differing(&self) -> usize {
        let mut clusters = self.by_cluster.iter();
        clusters
            .by_ref()
            .filter(|(_, value)| value.abs() > NOTHING)
            .count()
    }

    /// The cluster without which the difference is gone, or points the other way.
    pub(crate) fn turning_cluster(&self) -> Option<&str> {
        let sum = sum_of(&self.by_cluster, |it| it.1);
        let mut clusters = self.by_cluster.iter();
        let turning = clusters.find(|(_, value)| (sum - value) * sum <= 0.0);
        turning
            .map(|(name, _)| name.as_str())
            .filter(|_| sum != 0.0)
    }

    /// Enters the p value that is adjusted for a family of comparisons.
    pub(crate) fn adjust(&mut self, p: f64, target: Target) {
        self.adjusted_p = Some(p);
        if self.state != State::NotComparable {
            self.state = self.state_under(target);
        }
    }

    fn state_under(&self, target: Target) -> State {
        let is_still = self
            .by_cluster
            .iter()
            .all(|(_, value)| value.abs() < NOTHING);
        let Some(bounds) = self.bounds else {
            return State::Unknown;
        };
        let is_few = target == Target::Population && bounds.sessions < FEWEST_SESSIONS;
        if is_few && !is_still {
            return State::Unknown;
        }
        let of = |bounds: &Bounds| self.state_of(bounds, target);
        let state = of(&bounds);
        let Some((worst, best)) = self.ends else {
            return state;
        };
        let all = [state, of(&worst), of(&best)];
        if all.iter().all(|it| *it == state) {
            state
        } else if all.iter().all(|it| it.is_not_worse()) {
            State::NotWorse
        } else {
            State::Unknown
        }
    }

    fn state_of(&self, bounds: &Bounds, target: Target) -> State {
        let is_exact = target == Target::Suite && bounds.is_exact();
        let is_shown = is_exact || self.adjusted_p.is_some_and(|p| p <= LEVEL);
        let is_better = is_shown && bounds.interval_lower > 0.0;
        let is_worse = is_shown && bounds.interval_upper < 0.0;
        let margin = self.margin + NOTHING;
        let is_large = self.axis == Axis::Bill || bounds.difference.abs() > margin;
        let is_not_worse = bounds.lower >= -margin;
        match (is_better, is_worse) {
            (true, _) if is_large => State::Better,
            (_, true) if is_large => State::Worse,
            _ if is_not_worse && bounds.upper <= margin => State::Same,
            (true, _) => State::Better,
            (_, true) => State::Worse,
            _ if is_not_worse => State::NotWorse,
            _ => State::Unknown,
        }
    }

    /// How many sessions like these would show a difference of this size, one of `strategies` that are judged:
    /// the smallest number that has the power of t at 5 % over their number, and that sign flips can reach, over
    /// the share of sessions in which the two differ. `None` where no number would.
    pub(crate) fn sessions_needed(&self, distance: f64, strategies: usize) -> Option<usize> {
        let level = LEVEL / strategies.max(1) as f64;
        let deviation = self.bounds?.deviation?;
        let by_power = power::sessions_at(deviation, distance, level)?;
        let share = self.differing() as f64 / self.by_cluster.len() as f64;
        if share <= 0.0 {
            return None;
        }
        let enough = by_power.max((least_differing(strategies) as f64 / share).ceil() as usize);
        Some(enough)
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
