//! Tasks solved under each strategy, paired by task with those under the strategy that changes nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::advice::FULL;
use super::{NoteCode, VerdictLine};
use crate::naming::short_name;
use crate::stats::{mean, wilson};
use crate::units::Usd;

/// How one run of a task ended.
#[derive(Debug, Clone)]
pub(crate) struct TaskRun<'a> {
    /// The task.
    pub(crate) task: &'a str,
    /// The strategy.
    pub(crate) strategy: &'a str,
    /// From 0, not solved, to 1, solved.
    pub(crate) score: f64,
    /// The bill for the agent and the strategy, where prices are known.
    pub(crate) dollars: Option<Usd>,
    /// The share of its actions that the prompts supported, where any needed something of the past.
    pub(crate) support: Option<f64>,
}

/// The tasks of one strategy.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct TasksSolved {
    /// The strategy.
    pub strategy: String,
    /// Tasks with a result.
    pub tasks: usize,
    /// The sum over tasks of the mean score over repeats.
    pub solved: f64,
    /// Against the baseline; `None` for the baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<TasksAgainst>,
}

/// A strategy against the baseline, on the tasks that both have a result of.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct TasksAgainst {
    /// The baseline.
    pub baseline: String,
    /// Tasks that both have a result of.
    pub tasks: usize,
    /// Tasks whose mean score is higher than the baseline's.
    pub won: usize,
    /// Tasks whose mean score is lower.
    pub lost: usize,
    /// Two-sided p value of the exact sign test over won and lost (that of `McNemar`); `None` where there are neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// The upper end of Wilson's 95 % interval of the share of such tasks that are lost.
    pub lost_at_most: f64,
    /// Share of the baseline's bill that is saved on the tasks with bills, the mean over repeats of each; `None`
    /// without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved: Option<f64>,
    /// How many tasks have bills of both.
    pub billed: usize,
}

impl TasksSolved {
    /// The strategies of these runs, those that solve most first, among equals the cheapest. The baseline is `none`
    /// where it ran, else the first strategy.
    pub(crate) fn of(runs: &[TaskRun<'_>]) -> Vec<Self> {
        let mut by_strategy: BTreeMap<&str, BTreeMap<&str, Vec<&TaskRun<'_>>>> = BTreeMap::new();
        for run in runs {
            let tasks = by_strategy.entry(run.strategy).or_default();
            tasks.entry(run.task).or_default().push(run);
        }
        let first = runs.first().map_or("", |run| run.strategy);
        let baseline = if by_strategy.contains_key(FULL) { FULL } else { first };
        let of_baseline = by_strategy.get(baseline).cloned().unwrap_or_default();
        let all = by_strategy.iter().map(|(strategy, tasks)| Self {
            strategy: (*strategy).to_owned(),
            tasks: tasks.len(),
            solved: tasks.values().map(|runs| score(runs)).sum(),
            against: (*strategy != baseline)
                .then(|| TasksAgainst::of(baseline, &of_baseline, tasks)),
        });
        let mut all: Vec<Self> = all.collect();
        all.sort_by(|left, right| {
            let [left, right] = [left, right].map(|own| {
                let saved = own.against.as_ref().and_then(|against| against.saved);
                (own.solved / own.tasks as f64, saved.unwrap_or(0.0))
            });
            right.0.total_cmp(&left.0).then(right.1.total_cmp(&left.1))
        });
        all
    }

    /// One line on it.
    pub(super) fn line(&self) -> VerdictLine {
        let name = short_name(&self.strategy);
        let (solved, tasks) = (self.solved, self.tasks);
        let digits = usize::from(solved.fract() != 0.0);
        let mut text = format!("{name}: {solved:.digits$} of {tasks} tasks solved");
        let Some(against) = &self.against else {
            return VerdictLine::new(NoteCode::TasksSolved, text);
        };
        let baseline = short_name(&against.baseline);
        let (won, lost) = (against.won, against.lost);
        let _ = write!(text, "; against {baseline} {won} won, {lost} lost");
        let p = match against.p {
            Some(p) if p < 0.01 => " (p < 0.01)".to_owned(),
            Some(p) => format!(" (p {p:.2})"),
            None => String::new(),
        };
        let saved = match against.saved {
            Some(saved) if saved >= 0.0 => format!(", {:.0} % of its bill saved", saved * 100.0),
            Some(saved) => format!(", {:.1} times its bill", 1.0 - saved),
            None => String::new(),
        };
        let billed = against.saved.map(|_| against.billed).filter(|all| *all < against.tasks);
        let part = billed.map(|billed| format!(" on {billed} of {} tasks", against.tasks));
        let some = part.unwrap_or_default();
        let most = against.lost_at_most * 100.0;
        let most = format!("at most {most:.0} % (95 %)");
        let _ = write!(text, "{p}{saved}{some}. Share lost: {most}");
        VerdictLine::new(NoteCode::TasksSolved, text)
    }
}

impl TasksAgainst {
    fn of(
        baseline: &str,
        theirs: &BTreeMap<&str, Vec<&TaskRun<'_>>>,
        own: &BTreeMap<&str, Vec<&TaskRun<'_>>>,
    ) -> Self {
        let pairs: Vec<_> =
            own.iter().filter_map(|(task, runs)| Some((theirs.get(task)?, runs))).collect();
        // Means of the same scores may differ in their last digits.
        let differences = pairs.iter().map(|(old, new)| score(new) - score(old));
        let won = differences.clone().filter(|more| *more > 1e-9).count();
        let lost = differences.filter(|more| *more < -1e-9).count();
        let tasks = pairs.len();
        let share = wilson::interval(lost as f64 / tasks as f64, tasks as f64);
        let bills: Vec<(f64, f64)> =
            pairs.iter().filter_map(|(old, new)| mean_bill(old).zip(mean_bill(new))).collect();
        let old: f64 = bills.iter().map(|bill| bill.0).sum();
        let new: f64 = bills.iter().map(|bill| bill.1).sum();
        Self {
            baseline: baseline.to_owned(),
            tasks,
            won,
            lost,
            p: (won + lost > 0).then(|| sign_test(won, lost)),
            lost_at_most: share.map_or(1.0, |interval| interval.upper_bound),
            saved: (old > 0.0).then(|| 1.0 - new / old),
            billed: bills.len(),
        }
    }
}

/// The mean score of the repeats of a task.
fn score(runs: &[&TaskRun<'_>]) -> f64 {
    runs.iter().map(|run| run.score).sum::<f64>() / runs.len() as f64
}

/// The mean bill of the repeats of a task whose bills are known.
fn mean_bill(runs: &[&TaskRun<'_>]) -> Option<f64> {
    let known = runs.iter().filter_map(|run| run.dollars);
    mean(&known.map(Usd::in_dollars).collect::<Vec<_>>())
}

/// The two-sided p value of as uneven a split of fair coin flips.
fn sign_test(won: usize, lost: usize) -> f64 {
    let (n, fewer) = (won + lost, won.min(lost));
    // The logarithm of n over k, step by step.
    let mut log_ways = 0.0_f64;
    let mut tail = 0.0;
    for k in 0..=fewer {
        tail += (log_ways - n as f64 * std::f64::consts::LN_2).exp();
        log_ways += ((n - k) as f64).ln() - ((k + 1) as f64).ln();
    }
    (2.0 * tail).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_test_agrees_with_scipy() {
        // scipy.stats.binomtest(min(won, lost), won + lost).pvalue
        for (won, lost, p) in [
            (0, 4, 0.125),
            (4, 0, 0.125),
            (3, 3, 1.0),
            (2, 10, 0.038_574_218_75),
            (0, 14, 0.000_122_070_312_5),
        ] {
            assert!((sign_test(won, lost) - p).abs() < 1e-9, "{won} {lost}");
        }
    }

    #[test]
    fn tasks_are_paired_and_repeats_averaged() {
        let run = |task, strategy, score, dollars| TaskRun {
            task,
            strategy,
            score,
            dollars: Some(Usd(dollars)),
            support: None,
        };
        let runs = [
            run("a", "none", 1.0, 100),
            run("b", "none", 1.0, 100),
            run("c", "none", 0.0, 100),
            run("a", "codex", 1.0, 40),
            run("a", "codex", 0.0, 40),
            run("b", "codex", 1.0, 40),
            run("d", "codex", 1.0, 40),
        ];
        let found = TasksSolved::of(&runs);
        let names: Vec<&str> = found.iter().map(|it| &*it.strategy).collect();
        assert_eq!(names, ["codex", "none"]);
        let codex = &found[0];
        assert_eq!((codex.tasks, codex.solved), (3, 2.5));
        let against = codex.against.as_ref().unwrap();
        assert_eq!((against.tasks, against.won, against.lost), (2, 0, 1));
        assert!((against.saved.unwrap() - (1.0 - 80.0 / 200.0)).abs() < 1e-9);
        assert_eq!(
            codex.line().text,
            "codex: 2.5 of 3 tasks solved; against none 0 won, 1 lost (p 1.00), 60 % of its bill saved. Share lost: at \
             most 91 % (95 %)"
        );
    }
}
