//! The advice of a run: which strategy to use, if that is shown, what is a trade, and what to avoid.
//!
//! A recommendation must beat doing nothing on the bill without losing more than the margin, its control
//! `tail@S` (the newest rounds in the size that S has) on what is kept, and no other row of the run may be
//! shown to be better. Everything here is pure: samples in, sentences out.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::judge::{AxisFinding, JudgingRule, Pairs, State, Target};
use super::prediction::Prediction;
use super::tasks::TasksSolved;
use super::{Axis, Margins, NoteCode, Sample, SessionSample, VerdictLine, judge};
use crate::naming::base_name;
use crate::stats::mean;
use crate::stats::multiple::holm;
use crate::stats::paired::FEWEST_SESSIONS;
use crate::units::Tokens;

mod avoid;
mod case;
mod obstacle;
mod words;

use case::{Case, Three};

/// The strategy that repeats what the recorded product did: where that compacted, it is doing nothing.
pub(crate) const RECORDED: &str = "recorded";

/// The strategy that leaves full history: a choice where an agent compacted, which then is doing nothing.
pub(crate) const FULL: &str = "none";

/// The first sentence of the advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// No cell was recorded.
    NothingRan,
    /// Agents ran, and how their tasks ended is not known.
    NoOutcomes,
    /// Some strategies are broken as prompts did not fit the window, and no other changed anything.
    AllBroken,
    /// Some strategies are broken, for other reasons, and no other changed anything.
    AllFaulty,
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
    fn code(self) -> NoteCode {
        match self {
            Self::NothingRan => NoteCode::NothingRan,
            Self::NoOutcomes => NoteCode::NoOutcomes,
            Self::AllBroken => NoteCode::AllBroken,
            Self::AllFaulty => NoteCode::Broken,
            Self::NothingFires => NoteCode::NothingFires,
            Self::FewSessions => NoteCode::FewSessions,
            Self::Use => NoteCode::Use,
            Self::PlainTail => NoteCode::PlainTail,
            Self::Ahead => NoteCode::Ahead,
            Self::Trade => NoteCode::Trade,
            Self::Keep => NoteCode::Keep,
            Self::Undecided => NoteCode::Undecided,
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
                "Everything breaks: no strategy changed anything and ran to the end, as the table says. A larger \
                 window changes that (`--window TOKENS`)."
            }
            Self::AllFaulty => {
                "Nothing is left to compare: no strategy changed anything and ran to the end, as the table says."
            }
            Self::NothingFires => {
                "Nothing fires: no strategy changed anything in these sessions. A smaller window shows what they do \
                 (`--window fit:0.6`)."
            }
            Self::Keep => "Keep what you have: nothing else changed anything in these sessions.",
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
    pub(crate) code: NoteCode,
    /// The strategy that it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// The advice in sentences.
    pub sentences: Vec<String>,
    /// The strategies that changed anything, or asked a model, and ran to the end, the lowest bill first.
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
    pub(crate) said: Vec<VerdictLine>,
}

impl Verdict {
    /// Puts a sentence in front of all others.
    pub(crate) fn begin_with(&mut self, code: NoteCode, text: String) {
        self.said.insert(0, VerdictLine::new(code, text));
        self.write();
    }

    /// Puts an answer that names no strategy in place of the first sentence.
    pub(crate) fn answer(&mut self, answer: Answer) {
        self.answer = answer;
        self.strategy = None;
        self.code = answer.code();
        self.said = vec![VerdictLine::new(answer.code(), answer.sentence())];
        self.write();
    }

    /// Writes the sentences.
    fn write(&mut self) {
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
    /// p value of the whole recommendation, adjusted over all contenders.
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

impl From<&Case<'_>> for Contender {
    fn from(case: &Case<'_>) -> Self {
        Self {
            strategy: case.row.name().to_owned(),
            bill: case.total,
            fired: case.row.fired,
            against_nothing: case.nothing.iter().flat_map(Three::differences).collect(),
            control: case.row.control.as_ref().map(|one| one.strategy.clone()),
            against_control: case.control.iter().flat_map(Three::differences).collect(),
            adjusted_p: case.adjusted_p,
            more_sessions: case.more_sessions,
            is_recommended: case.is_recommended,
            obstacle: (!case.is_recommended).then(|| case.obstacle.clone()),
        }
    }
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
        let bounds = found.bounds;
        Self {
            axis: found.axis,
            state: found.state,
            difference: found.difference(),
            interval: bounds.map(|one| (one.interval_lower, one.interval_upper)),
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
    pub(crate) code: NoteCode,
}

/// A row of a run, before it is judged.
#[derive(Debug, Clone)]
pub(crate) struct RunRow {
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
    /// Whether that is because a prompt did not fit the window, and for nothing else.
    pub(crate) is_too_large: bool,
    /// Whether it is a program of the user's own.
    pub(crate) is_program: bool,
    /// The share of all tokens that it saves.
    pub(crate) tokens_saved: Option<f64>,
    /// The largest cause of what it costs, in a clause: `as 482 edits break the prompt cache`.
    pub(crate) cause: Option<String>,
}

impl RunRow {
    fn name(&self) -> &str {
        &self.sample.strategy
    }

    /// Whether it ran to the end, and changed anything or asked a model.
    fn is_sound(&self) -> bool {
        (self.fired > 0 || self.sample.has_asked()) && self.broken.is_none()
    }

    /// Whether it is a tail by name or full history, which have no control of their own.
    fn is_control(&self) -> bool {
        let base = base_name(self.name());
        base == FULL || base.starts_with("tail@") || base.starts_with("random@")
    }
}

/// The rows of a run, with all that the advice rests on.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    /// The sessions in words.
    pub(crate) population: String,
    /// Independent sessions that ran.
    pub(crate) clusters: usize,
    /// What doing nothing leaves: full history, or what the recorded product did where it compacted.
    pub(crate) nothing: Sample,
    /// The sessions in which doing nothing completes.
    pub(crate) fits: BTreeSet<String>,
    /// The strategies.
    pub(crate) strategies: Vec<RunRow>,
    /// How they are judged.
    pub(crate) rule: JudgingRule,
}

impl Rows {
    fn is_in_dollars(&self) -> bool {
        self.nothing.sessions.values().any(|session| session.metrics.contains_key(judge::DOLLARS))
    }

    /// The key of bills: in dollars where any price is known, else in input tokens.
    fn bill_key(&self) -> &'static str {
        if self.is_in_dollars() { judge::DOLLARS } else { Axis::Bill.name() }
    }

    /// The total bill of a sample over some sessions; `None` where one of them has none.
    fn total(&self, sample: &Sample, is_meant: impl Fn(&str) -> bool) -> Option<f64> {
        let key = self.bill_key();
        let all = self.nothing.sessions.iter();
        let priced = all.filter(|(id, own)| is_meant(id) && own.metrics.contains_key(key));
        let bills = priced.map(|(id, _)| mean(sample.sessions.get(id)?.metrics.get(key)?));
        let bills: Vec<f64> = bills.collect::<Option<_>>()?;
        (!bills.is_empty()).then(|| bills.iter().sum())
    }

    /// The bills of a row and of doing nothing in one session, where both are known.
    fn bills_in(&self, row: &RunRow, id: &str) -> Option<(f64, f64)> {
        let [own, nothing] =
            [&row.sample, &self.nothing].map(|sample| self.total(sample, |other| other == id));
        own.zip(nothing)
    }

    /// The independent sessions in which doing nothing completes.
    fn fitting(&self) -> usize {
        self.clusters_with(|id, _| self.fits.contains(id))
    }

    /// Whether doing nothing is a choice: it completes in enough of them.
    fn has_choice(&self) -> bool {
        self.fitting() >= FEWEST_SESSIONS
    }

    /// Whether doing nothing completes in all of them.
    fn fits_everywhere(&self) -> bool {
        self.nothing.sessions.keys().all(|id| self.fits.contains(id))
    }

    /// How many independent sessions have a session of this kind.
    fn clusters_with(&self, is_meant: impl Fn(&str, &SessionSample) -> bool) -> usize {
        let meant = self.nothing.sessions.iter().filter(|(id, session)| is_meant(id, session));
        let clusters = meant.map(|(id, session)| session.cluster.as_deref().unwrap_or(id));
        clusters.collect::<BTreeSet<&str>>().len()
    }

    /// The rows that are sound.
    fn sound(&self) -> impl Iterator<Item = &RunRow> {
        self.strategies.iter().filter(|row| row.is_sound())
    }

    /// Judges the rows that are sound, the lowest bill first.
    fn cases(&self) -> Vec<Case<'_>> {
        let mut cases: Vec<Case<'_>> = self.sound().map(|row| self.case(row)).collect();
        cases.sort_by(|left, right| in_order(left.total, right.total));
        let strategies = cases.len();
        let p_values: Vec<f64> = cases.iter().map(Case::p).collect();
        for (case, p) in cases.iter_mut().zip(holm(&p_values)) {
            case.adjusted_p = p;
            let dominator = case.is_shown().then(|| self.dominator(case)).flatten();
            case.is_recommended =
                self.clusters >= FEWEST_SESSIONS && case.is_shown() && dominator.is_none();
            if !case.is_recommended {
                let needed = case.sessions_needed(strategies, self.clusters);
                case.more_sessions =
                    needed.map(|needed| needed.saturating_sub(self.clusters).max(1));
                case.obstacle = self.obstacle(case, dominator, strategies);
            }
        }
        cases
    }

    /// A row against doing nothing and against its control, before the adjustment for the number of strategies.
    fn case<'a>(&'a self, row: &'a RunRow) -> Case<'a> {
        let total = self.total(&row.sample, |_| true);
        let choice = self.has_choice();
        let fitting = Pairs::of(&self.nothing, &row.sample).only(|id| self.fits.contains(id));
        let control = row.control.as_ref();
        Case {
            row,
            total,
            nothing: choice.then(|| Three::of(&fitting, &self.rule)),
            control: control.map(|control| Three::between(control, &row.sample, &self.rule)),
            hindrance: if choice { None } else { self.hindrance(row, total) },
            adjusted_p: 1.0,
            is_recommended: false,
            more_sessions: None,
            obstacle: String::new(),
        }
    }

    /// The rows that are sound, and the controls of these, as far as they ran to the end, the lowest bill first.
    fn others<'a>(&'a self, with_control: impl Iterator<Item = &'a RunRow>) -> Vec<&'a Sample> {
        let controls = with_control.filter_map(|row| row.control.as_ref());
        let samples = self.sound().map(|row| &row.sample).chain(controls);
        let whole = samples.filter(|sample| sample.broken().is_none());
        let mut others: Vec<&Sample> = whole.collect();
        others.sort_by(|left, right| {
            in_order(self.total(left, |_| true), self.total(right, |_| true))
        });
        others
    }

    /// A row, or a control, that is shown to be better than this one on an axis, and not worse on the others.
    fn dominator(&self, case: &Case<'_>) -> Option<(String, AxisFinding)> {
        let all = self.others(self.sound()).into_iter();
        all.filter(|sample| sample.strategy != case.row.name()).find_map(|other| {
            let three = Three::between(&case.row.sample, other, &self.rule);
            if !three.dominates() {
                return None;
            }
            let better = three.all().filter(|found| found.state == State::Better);
            let best = better.max_by(|a, b| a.difference().total_cmp(&b.difference()))?;
            Some((other.strategy.clone(), best.clone()))
        })
    }

    /// The advice.
    pub(crate) fn advise(&self) -> Verdict {
        let cases = self.cases();
        let (answer, case) = self.answer(&cases);
        let mut verdict = Verdict {
            population: self.population.clone(),
            clusters: self.clusters,
            margins: self.rule.margins.clone(),
            answer,
            code: answer.code(),
            strategy: case.map(|case| case.row.name().to_owned()),
            sentences: Vec::new(),
            contenders: cases.iter().map(Contender::from).collect(),
            avoid: self.avoid(&cases),
            turns_with: self.turns(&cases, case),
            tasks: Vec::new(),
            prediction: None,
            said: self.say(answer, case, &cases),
        };
        verdict.write();
        verdict
    }

    /// What the first sentence says, and of which case.
    fn answer<'c>(&self, cases: &'c [Case<'c>]) -> (Answer, Option<&'c Case<'c>>) {
        if self.clusters == 0 {
            (Answer::NothingRan, None)
        } else if cases.is_empty() {
            let mut broken = self.strategies.iter().filter(|row| row.broken.is_some());
            let answer = if broken.clone().any(|row| !row.is_too_large) {
                Answer::AllFaulty
            } else if broken.next().is_some() {
                Answer::AllBroken
            } else if self.nothing.strategy == RECORDED {
                Answer::Keep
            } else {
                Answer::NothingFires
            };
            (answer, None)
        } else if self.clusters < FEWEST_SESSIONS {
            (Answer::FewSessions, self.cheapest_that_keeps(cases))
        } else if let Some(first) = cases.iter().find(|case| case.is_recommended) {
            (Answer::Use, Some(first))
        } else if let Some(ahead) = cases.iter().find(|case| self.is_near(case)) {
            (Answer::Ahead, Some(ahead))
        } else if let Some(trade) = self.best_trade(cases) {
            (Answer::Trade, Some(trade))
        } else if let Some(plain) = cases.iter().find(|case| case.is_plain_tail()) {
            (Answer::PlainTail, Some(plain))
        } else if self.has_choice() {
            let cheapest = cases.iter().min_by(|one, next| {
                in_order(self.costs_there(&one.row.sample), self.costs_there(&next.row.sample))
            });
            (Answer::Keep, cheapest)
        } else {
            (Answer::Undecided, cases.first())
        }
    }

    /// The cheapest trade that margins accept, else the cheapest.
    fn best_trade<'c>(&self, cases: &'c [Case<'c>]) -> Option<&'c Case<'c>> {
        let mut trades = cases.iter().filter(|case| case.is_trade() && !case.is_plain_tail());
        let first = trades.clone().next();
        trades.find(|case| self.refusal(case).is_none()).or(first)
    }

    /// Why a trade is not recommended with margins that accept what it gives up; `None` where it is.
    fn refusal(&self, trade: &Case<'_>) -> Option<String> {
        let mut taken = self.clone();
        for found in trade.given_up() {
            // A margin that is out of range accepts nothing.
            let _ = taken.rule.margins.set(found.axis.name(), accepting(found));
        }
        let mut own = taken.cases().into_iter().filter(|case| case.row.name() == trade.row.name());
        own.find(|case| !case.is_recommended).map(|case| case.obstacle)
    }

    /// Whether a case is ahead, and no more sessions would show it than there are.
    fn is_near(&self, case: &Case<'_>) -> bool {
        let more = case.more_sessions;
        case.is_ahead() && more.is_some_and(|more| more <= self.clusters)
    }

    /// The cheapest case that on these sessions keeps as much as doing nothing.
    fn cheapest_that_keeps<'c>(&self, cases: &'c [Case<'c>]) -> Option<&'c Case<'c>> {
        // Of one session a population is not estimated: what it lost is known all the same.
        let rule = JudgingRule { target: Target::Suite, ..self.rule.clone() };
        cases
            .iter()
            .find(|case| Three::between(&self.nothing, &case.row.sample, &rule).seems_to_keep())
    }

    /// Whether facts, or answers, are known of doing nothing.
    fn has_facts(&self) -> bool {
        self.nothing.has(Axis::Facts) || self.nothing.has(Axis::Answers)
    }
}

/// The least margin in whole percent that accepts a loss: its bound and not the estimate, with which it would be open.
fn accepting(loss: &AxisFinding) -> f64 {
    let bound = loss.bounds.map_or(0.0, |bounds| -bounds.lower);
    (bound * 100.0).ceil() / 100.0
}

/// Bills in ascending order; those that are not known come last.
fn in_order(left: Option<f64>, right: Option<f64>) -> Ordering {
    let [left, right] = [left, right].map(|bill| bill.unwrap_or(f64::INFINITY));
    left.total_cmp(&right)
}

#[cfg(test)]
#[path = "advice/tests/power.rs"]
mod power;
#[cfg(test)]
#[path = "advice/tests/some.rs"]
mod some;
#[cfg(test)]
mod tests;
