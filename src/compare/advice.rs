//! The advice of a run: which strategy to use, if that is shown, what is a trade, and what to avoid.
//!
//! A recommendation must beat doing nothing on the bill without losing more than the margin, its control
//! `tail@S` (the newest rounds in the size that S has) on what is kept, and no other row of the run may be
//! shown to be better. Everything here is pure: samples in, sentences out.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::judge::{AxisFinding, Pairs, Rule, State};
use super::prediction::Prediction;
use super::tasks::TasksSolved;
use super::{Axis, Code, Line, Margins, Sample, SessionSample, judge};
use crate::naming::base_name;
use crate::stats::multiple::holm;
use crate::stats::paired::FEWEST_SESSIONS;
use crate::units::Tokens;

mod avoid;
mod case;
mod obstacle;
mod words;

use case::{Case, Three, p_of_control, p_of_nothing};

/// The first sentence of the advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// No cell was recorded.
    NothingRan,
    /// Agents ran, and how their tasks ended is not known.
    NoOutcomes,
    /// Some strategies are broken, and no other changed anything.
    AllBroken,
    /// No strategy changed anything, and none is broken.
    NothingFires,
    /// Too few independent sessions to decide anything.
    FewSessions,
    /// A strategy is shown to be worth it.
    Use,
    /// A program does what its control does.
    PlainTail,
    /// A strategy meets every condition by its estimates, and more sessions would show it.
    Ahead,
    /// A strategy is shown to be cheaper, and to keep less.
    Trade,
    /// Nothing is shown to beat doing nothing.
    Keep,
    /// Doing nothing is no choice, and no strategy is shown to be worth it.
    Undecided,
}

impl Answer {
    fn code(self) -> Code {
        match self {
            Self::NothingRan => Code::NothingRan,
            Self::NoOutcomes => Code::NoOutcomes,
            Self::AllBroken => Code::AllBroken,
            Self::NothingFires => Code::NothingFires,
            Self::FewSessions => Code::FewSessions,
            Self::Use => Code::Use,
            Self::PlainTail => Code::PlainTail,
            Self::Ahead => Code::Ahead,
            Self::Trade => Code::Trade,
            Self::Keep => Code::Keep,
            Self::Undecided => Code::Undecided,
        }
    }

    /// The whole sentence of an answer that names no strategy.
    pub(crate) fn sentence(self) -> String {
        match self {
            Self::NothingRan => "Nothing was recorded yet.",
            Self::NoOutcomes => {
                "The outcomes of the tasks are unknown: pass them with `proctor live --outcomes FILE`."
            }
            Self::AllBroken => {
                "Everything breaks: every strategy that changed a session broke, as the table says. A larger window \
                 changes that (`--window TOKENS`)."
            }
            Self::NothingFires => {
                "Nothing fires: no strategy changed anything in these sessions. A smaller window shows what they do \
                 (`--window fit:0.6`)."
            }
            _ => "Nothing is shown.",
        }
        .to_owned()
    }
}

/// What a run says about the choice of a strategy.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Verdict {
    /// The sessions that it speaks of, in words: `12 generated sessions (code-review)`.
    pub population: String,
    /// Independent sessions: those of one file count once.
    pub clusters: usize,
    /// By how much a strategy may be worse.
    pub margins: Margins,
    /// What the first sentence says.
    pub answer: Answer,
    /// Its code, which `proctor explain` tells more about.
    pub(crate) code: Code,
    /// The strategy that it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// The advice in sentences.
    pub sentences: Vec<String>,
    /// The strategies that changed anything and ran to the end, the lowest bill first.
    pub contenders: Vec<Contender>,
    /// Strategies to avoid, the worst first.
    pub avoid: Vec<Avoid>,
    /// Assumptions that change a sign or the recommendation, in words.
    pub turns_with: Vec<String>,
    /// Tasks solved, where agents ran and their results are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TasksSolved>,
    /// Whether the replay tells which tasks are solved, where any result is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Prediction>,
    /// The sentences with what each of them says.
    #[serde(skip)]
    pub(crate) said: Vec<Line>,
}

impl Verdict {
    /// Puts a sentence in front of all others.
    pub(crate) fn begin_with(&mut self, code: Code, text: String) {
        self.said.insert(0, Line::new(code, text));
        self.sentences = self.lines().into_iter().map(|line| line.text).collect();
    }

    /// Puts an answer that names no strategy in place of the first sentence.
    pub(crate) fn answer(&mut self, answer: Answer) {
        self.answer = answer;
        self.strategy = None;
        self.code = answer.code();
        self.said = vec![Line::new(answer.code(), answer.sentence())];
        self.sentences = self.lines().into_iter().map(|line| line.text).collect();
    }
}

/// A strategy with what it was judged against.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Contender {
    /// The strategy.
    pub strategy: String,
    /// Its total bill, in dollars where prices are known, else in input tokens.
    pub bill: Option<f64>,
    /// Independent sessions in which it changed anything.
    pub fired: usize,
    /// Against doing nothing, over the sessions in which that completes; empty where there are fewer than six.
    pub against_nothing: Vec<Difference>,
    /// Its control at equal budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    /// Against its control.
    pub against_control: Vec<Difference>,
    /// p value of the whole recommendation, adjusted over all strategies that fired.
    pub adjusted_p: f64,
    /// More sessions like these that would show it, if the differences stay as they are; `None` where no number
    /// would, or it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_sessions: Option<usize>,
    /// Whether it is recommended.
    pub is_recommended: bool,
    /// Why it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
}

/// One axis of a contender.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Difference {
    /// The axis.
    pub axis: Axis,
    /// What the data say, before the adjustment for the number of strategies.
    pub state: State,
    /// The difference, turned so that higher is better: a share, 0.01 is one point or one percent.
    pub difference: f64,
    /// Its two-sided 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// Why it is not comparable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl From<&AxisFinding> for Difference {
    fn from(found: &AxisFinding) -> Self {
        Self {
            axis: found.axis,
            state: found.state,
            difference: found.difference(),
            interval: found
                .bounds
                .map(|bounds| (bounds.interval_lower, bounds.interval_upper)),
            note: found.note.clone(),
        }
    }
}

/// A strategy to avoid.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Avoid {
    /// The strategy.
    pub strategy: String,
    /// Why, in a clause.
    pub why: String,
    /// Whether it is because it did not run to the end: a table says so, too.
    pub is_broken: bool,
    /// Its code.
    pub(crate) code: Code,
}

/// A row of a run, before it is judged.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// What it left.
    pub(crate) sample: Sample,
    /// What its control left; `None` for controls, and where the run has none.
    pub(crate) control: Option<Sample>,
    /// Independent sessions in which it changed anything.
    pub(crate) fired: usize,
    /// The largest prompt of the others; `None` where there are none, or no size is known.
    pub(crate) largest_elsewhere: Option<Tokens>,
    /// Why it takes part in no ranking.
    pub(crate) broken: Option<String>,
    /// Whether it is a program of the user's own.
    pub(crate) is_program: bool,
    /// The share of all tokens that it saves.
    pub(crate) tokens_saved: Option<f64>,
    /// The largest cause of what it costs, in a clause: `as 482 edits break the prompt cache`.
    pub(crate) cause: Option<String>,
}

impl Row {
    fn name(&self) -> &str {
        &self.sample.strategy
    }

    /// Whether it ran to the end and changed anything.
    fn is_sound(&self) -> bool {
        self.fired > 0 && self.broken.is_none()
    }

    /// Whether it is a tail by name, which has no control of its own.
    fn is_control(&self) -> bool {
        let base = base_name(self.name());
        base.starts_with("tail@") || base.starts_with("random@")
    }
}

/// Doing nothing: full history, or what the recorded product did where it compacted.
#[derive(Debug, Clone)]
pub(crate) struct Nothing {
    /// What it leaves.
    pub(crate) sample: Sample,
    /// The sessions in which it completes.
    pub(crate) fits: BTreeSet<String>,
}

/// The rows of a run, with all that the advice rests on.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    /// The sessions in words.
    pub(crate) population: String,
    /// Independent sessions that ran.
    pub(crate) clusters: usize,
    /// Doing nothing.
    pub(crate) nothing: Nothing,
    /// The strategies.
    pub(crate) strategies: Vec<Row>,
    /// How they are judged.
    pub(crate) rule: Rule,
}

impl Rows {
    fn is_in_dollars(&self) -> bool {
        let mut sessions = self.nothing.sample.sessions.values();
        sessions.any(|session| session.metrics.contains_key(judge::DOLLARS))
    }

    /// The total bill of a sample over some sessions; `None` where one of them has none.
    fn total(&self, sample: &Sample, is_meant: impl Fn(&str) -> bool) -> Option<f64> {
        let key = if self.is_in_dollars() {
            judge::DOLLARS
        } else {
            Axis::Bill.name()
        };
        let priced = self.nothing.sample.sessions.iter();
        let priced = priced.filter(|(id, it)| is_meant(id) && it.metrics.contains_key(key));
        let bills = priced.map(|(id, _)| judge::mean(sample.sessions.get(id)?.metrics.get(key)?));
        let bills: Vec<f64> = bills.collect::<Option<_>>()?;
        (!bills.is_empty()).then(|| bills.iter().sum())
    }

    /// The independent sessions in which doing nothing completes.
    fn fitting(&self) -> usize {
        self.clusters_with(|id, _| self.nothing.fits.contains(id))
    }

    /// Whether doing nothing completes in all of them.
    fn fits_everywhere(&self) -> bool {
        let mut sessions = self.nothing.sample.sessions.keys();
        sessions.all(|id| self.nothing.fits.contains(id))
    }

    /// How many independent sessions have a session of this kind.
    fn clusters_with(&self, is_meant: impl Fn(&str, &SessionSample) -> bool) -> usize {
        let sessions = self.nothing.sample.sessions.iter();
        let meant = sessions.filter(|(id, session)| is_meant(id, session));
        let clusters = meant.map(|(id, session)| session.cluster.as_deref().unwrap_or(id));
        clusters.collect::<BTreeSet<&str>>().len()
    }

    /// Judges the rows that are sound, the lowest bill first.
    fn cases(&self) -> Vec<Case<'_>> {
        let has_choice = self.fitting() >= FEWEST_SESSIONS;
        let fits = |id: &str| self.nothing.fits.contains(id);
        let sound = self.strategies.iter().filter(|row| row.is_sound());
        let mut cases: Vec<Case<'_>> = sound
            .map(|row| {
                let against = |baseline| Pairs::of(baseline, &row.sample);
                let nothing = has_choice
                    .then(|| Three::of(&against(&self.nothing.sample).only(fits), &self.rule));
                let control = row.control.as_ref();
                Case {
                    row,
                    total: self.total(&row.sample, |_| true),
                    nothing,
                    control: control.map(|sample| Three::of(&against(sample), &self.rule)),
                    cheaper: None,
                    p: [1.0, 1.0],
                    adjusted_p: 1.0,
                }
            })
            .collect();
        let key = |case: &Case<'_>| case.total.unwrap_or(f64::INFINITY);
        cases.sort_by(|left, right| key(left).total_cmp(&key(right)));
        for at in 0..cases.len() {
            if cases[at].nothing.is_none() {
                cases[at].cheaper = self.cheaper(&cases[at], &cases[..at]);
            }
            cases[at].p = [p_of_nothing(&cases[at]), p_of_control(&cases[at])];
        }
        let p_values: Vec<f64> = cases.iter().map(|case| case.p[0].max(case.p[1])).collect();
        for (case, p) in cases.iter_mut().zip(holm(&p_values)) {
            case.adjusted_p = p;
        }
        cases
    }

    /// Where doing nothing is no choice: the cheapest row that keeps as much and costs less, unless the case is
    /// shown to beat it.
    fn cheaper(&self, case: &Case<'_>, before: &[Case<'_>]) -> Option<String> {
        let own = case.total?;
        let rows = before.iter().map(|case| (&case.row.sample, case.total));
        let controls = self
            .strategies
            .iter()
            .filter_map(|row| row.control.as_ref());
        let controls = controls.map(|sample| (sample, self.total(sample, |_| true)));
        let mut others: Vec<(&Sample, f64)> = rows
            .chain(controls)
            .filter_map(|(sample, total)| Some((sample, total?)))
            .filter(|(sample, total)| *total < own && super::sweep::broken(sample).is_none())
            .collect();
        others.sort_by(|left, right| left.1.total_cmp(&right.1));
        let mut as_good = others
            .into_iter()
            .filter(|(other, _)| Three::between(&case.row.sample, other, &self.rule).keeps());
        let (yardstick, _) = as_good.next()?;
        let beats = Three::between(yardstick, &case.row.sample, &self.rule).dominates();
        (!beats).then(|| yardstick.strategy.clone())
    }

    /// A row, or a control, that is shown to be better than this one on an axis, and not worse on the others.
    fn dominator(&self, case: &Case<'_>) -> Option<(String, AxisFinding)> {
        let sound = self.strategies.iter().filter(|row| row.is_sound());
        let others = sound.clone().map(|row| &row.sample);
        let controls = sound.filter_map(|row| row.control.as_ref());
        let own = case.row.name();
        let mut others: Vec<&Sample> = others
            .chain(controls)
            .filter(|sample| sample.strategy != own && super::sweep::broken(sample).is_none())
            .collect();
        let key = |it: &&Sample| self.total(it, |_| true).unwrap_or(f64::INFINITY);
        others.sort_by(|left, right| key(left).total_cmp(&key(right)));
        others.into_iter().find_map(|other| {
            let three = Three::between(&case.row.sample, other, &self.rule);
            if !three.dominates() {
                return None;
            }
            let better = three.all().filter(|found| found.state == State::Better);
            let best = better.max_by(|a, b| a.difference().total_cmp(&b.difference()))?;
            Some((other.strategy.clone(), best.clone()))
        })
    }

    /// The cases as contenders, and which of them are recommended.
    fn contenders(&self, cases: &[Case<'_>]) -> (Vec<Contender>, Vec<usize>) {
        let strategies = cases.len();
        let (mut contenders, mut recommended) = (Vec::new(), Vec::new());
        for (at, case) in cases.iter().enumerate() {
            let dominator = case.is_shown().then(|| self.dominator(case)).flatten();
            let is_recommended =
                self.clusters >= FEWEST_SESSIONS && case.is_shown() && dominator.is_none();
            recommended.extend(is_recommended.then_some(at));
            let needed = case.sessions_needed(strategies);
            let more = needed.map(|needed| needed.saturating_sub(self.clusters).max(1));
            let obstacle = (!is_recommended).then(|| self.obstacle(case, dominator, strategies));
            let of =
                |three: &Option<Three>| three.as_ref().map(Three::differences).unwrap_or_default();
            contenders.push(Contender {
                strategy: case.row.name().to_owned(),
                bill: case.total,
                fired: case.row.fired,
                against_nothing: of(&case.nothing),
                control: case.row.control.as_ref().map(|one| one.strategy.clone()),
                against_control: of(&case.control),
                adjusted_p: case.adjusted_p,
                more_sessions: more.filter(|_| !is_recommended),
                is_recommended,
                obstacle,
            });
        }
        (contenders, recommended)
    }

    /// The advice.
    pub(crate) fn advise(&self) -> Verdict {
        let cases = self.cases();
        let (contenders, recommended) = self.contenders(&cases);
        let mut verdict = Verdict {
            population: self.population.clone(),
            clusters: self.clusters,
            margins: self.rule.margins.clone(),
            answer: Answer::Keep,
            code: Code::Keep,
            strategy: None,
            sentences: Vec::new(),
            avoid: self.avoid(&cases, &recommended),
            contenders,
            turns_with: Vec::new(),
            tasks: Vec::new(),
            prediction: None,
            said: Vec::new(),
        };
        self.say(&mut verdict, &cases, &recommended);
        verdict
    }

    /// What the first sentence says, and of which case.
    fn answer<'c>(
        &self,
        verdict: &Verdict,
        cases: &'c [Case<'c>],
        recommended: &[usize],
    ) -> (Answer, Option<&'c Case<'c>>) {
        let is_plain = |case: &&Case<'_>| case.row.is_program && is_plain_tail(case);
        let is_near = |(case, contender): &(&Case<'_>, &Contender)| {
            let more = contender.more_sessions;
            case.is_ahead() && more.is_some_and(|more| more <= self.clusters)
        };
        let ahead = cases.iter().zip(&verdict.contenders).find(is_near);
        let trade = cases.iter().find(|case| !case.given_up().is_empty());
        let has_choice = self.fitting() >= FEWEST_SESSIONS;
        if self.clusters == 0 {
            (Answer::NothingRan, None)
        } else if cases.is_empty() {
            let is_broken = self.strategies.iter().any(|row| row.broken.is_some());
            let answer = if is_broken {
                Answer::AllBroken
            } else {
                Answer::NothingFires
            };
            (answer, None)
        } else if self.clusters < FEWEST_SESSIONS {
            (Answer::FewSessions, self.cheapest_that_keeps(cases))
        } else if let Some(first) = recommended.first() {
            (Answer::Use, Some(&cases[*first]))
        } else if let Some(plain) = cases.iter().find(is_plain) {
            (Answer::PlainTail, Some(plain))
        } else if let Some((case, _)) = ahead {
            (Answer::Ahead, Some(case))
        } else if let Some(case) = trade {
            (Answer::Trade, Some(case))
        } else if has_choice {
            (Answer::Keep, cases.first())
        } else {
            (Answer::Undecided, cases.first())
        }
    }

    /// The cheapest case that by its estimates keeps as much as doing nothing, of what is known on both sides.
    fn cheapest_that_keeps<'c>(&self, cases: &'c [Case<'c>]) -> Option<&'c Case<'c>> {
        cases.iter().find(|case| {
            let pairs = Pairs::of(&self.nothing.sample, &case.row.sample);
            Three::of(&pairs, &self.rule).seems_to_keep_what_is_known()
        })
    }

    /// Whether facts, or answers, are known of doing nothing.
    fn has_facts(&self) -> bool {
        [Axis::Facts, Axis::Answers]
            .iter()
            .any(|axis| self.nothing.sample.has(*axis))
    }
}

/// Whether a case does the same as its control on every axis.
fn is_plain_tail(case: &Case<'_>) -> bool {
    let is_equal = |three: &Three| {
        three
            .all()
            .all(|it| it.by_cluster.iter().all(|it| it.1 == 0.0))
    };
    case.control.as_ref().is_some_and(is_equal)
}

#[cfg(test)]
#[path = "advice/tests/power.rs"]
mod power;
#[cfg(test)]
mod tests;
