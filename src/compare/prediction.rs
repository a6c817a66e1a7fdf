//! Whether figures of a replay tell which tasks an agent solves.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::tasks::TaskRun;
use super::{NoteCode, VerdictLine};

/// Fewer tasks with both outcomes show nothing.
const LEAST_TASKS: usize = 20;

/// A trial with this score or more is solved.
const SOLVED: f64 = 0.5;

/// How well two figures of the replay separate solved trials from the others.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct Prediction {
    /// Tasks of which one trial was solved and another was not.
    pub tasks: usize,
    /// Pairs of such trials.
    pub pairs: usize,
    /// By the share of actions supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actions: Option<Separation>,
    /// By whether any needed action is unsupported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any_unsupported: Option<Separation>,
}

/// The area under the ROC curve: the share of pairs of a solved and an unsolved trial in which the figure is better for
/// the solved one, where half of the equal ones count.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct Separation {
    /// Over pairs of trials of the same task.
    pub within: f64,
    /// Over all pairs of trials of these tasks.
    pub pooled: f64,
}

impl Prediction {
    /// Compares figures and outcomes of trials in which an action needed anything.
    pub(crate) fn of(runs: &[TaskRun<'_>]) -> Self {
        let mut tasks: BTreeMap<&str, [Vec<f64>; 2]> = BTreeMap::new();
        for run in runs {
            let Some(support) = run.support else { continue };
            let sides = tasks.entry(run.task).or_default();
            sides[usize::from(run.score >= SOLVED)].push(support);
        }
        tasks.retain(|_, [unsolved, solved]| !unsolved.is_empty() && !solved.is_empty());
        let pairs = tasks.values().map(|[unsolved, solved]| unsolved.len() * solved.len());
        let enough = tasks.len() >= LEAST_TASKS;
        Self {
            tasks: tasks.len(),
            pairs: pairs.sum(),
            actions: enough.then(|| Separation::of(&tasks, |support| support)),
            any_unsupported: enough
                .then(|| Separation::of(&tasks, |support| f64::from(u8::from(support >= 1.0)))),
        }
    }

    /// One line on it.
    pub(super) fn line(&self) -> VerdictLine {
        let (tasks, pairs) = (self.tasks, self.pairs);
        let text = match (self.actions, self.any_unsupported) {
            (Some(actions), Some(any)) => format!(
                "Replay against outcome: AUC within tasks {:.2} by actions supported, {:.2} by any needed action \
                 unsupported; pooled {:.2} and {:.2} ({tasks} tasks, {pairs} pairs)",
                actions.within, any.within, actions.pooled, any.pooled
            ),
            _ => format!(
                "Replay against outcome: not measured; it takes {LEAST_TASKS} tasks with both outcomes, and there are \
                 {tasks}"
            ),
        };
        VerdictLine::new(NoteCode::Prediction, text)
    }
}

impl Separation {
    /// The separation by a figure of the support, of which more is better.
    fn of(tasks: &BTreeMap<&str, [Vec<f64>; 2]>, figure: fn(f64) -> f64) -> Self {
        let figures: Vec<[Vec<f64>; 2]> = tasks
            .values()
            .map(|sides| sides.each_ref().map(|side| side.iter().copied().map(figure).collect()))
            .collect();
        let all = [0, 1].map(|side| figures.iter().flat_map(|task| task[side].clone()).collect());
        Self { within: share_better(&figures), pooled: share_better(&[all]) }
    }
}

/// The share of pairs of an unsolved and a solved trial in which the solved one is better; equal ones are half.
fn share_better(groups: &[[Vec<f64>; 2]]) -> f64 {
    let (mut better, mut pairs) = (0.0, 0.0);
    for [unsolved, solved] in groups {
        let mut sorted = unsolved.clone();
        sorted.sort_by(f64::total_cmp);
        for figure in solved {
            let lower = sorted.partition_point(|other| other < figure);
            let not_higher = sorted.partition_point(|other| other <= figure);
            better += (lower + not_higher) as f64 / 2.0;
        }
        pairs += (unsolved.len() * solved.len()) as f64;
    }
    better / pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(task: &str, score: f64, support: Option<f64>) -> TaskRun<'_> {
        TaskRun { task, strategy: "codex", score, dollars: None, support }
    }

    #[test]
    fn pairs_are_within_tasks_and_pooled() {
        let names: Vec<String> = (0..20).map(|at| format!("task {at}")).collect();
        let mut runs = Vec::new();
        for (at, task) in names.iter().enumerate() {
            // Half of the tasks are harder than the others.
            let base = if at % 2 == 0 { 0.2 } else { 0.6 };
            runs.push(run(task, 1.0, Some(if at == 0 { 1.0 } else { base + 0.3 })));
            runs.push(run(task, 0.0, Some(base)));
            runs.push(run(task, 0.0, None));
        }
        runs.push(run("always solved", 1.0, Some(0.1)));
        let found = Prediction::of(&runs);
        assert_eq!((found.tasks, found.pairs), (20, 20));
        let actions = found.actions.unwrap();
        // Nine solved trials of 0.5 are better than half of the unsolved ones, the others than all.
        assert_eq!((actions.within, actions.pooled), (1.0, (9.0 * 10.0 + 11.0 * 20.0) / 400.0));
        let any = found.any_unsupported.unwrap();
        assert_eq!((any.within, any.pooled), (0.525, 0.525));
        let few = Prediction::of(&runs[..57]);
        assert_eq!((few.tasks, few.actions), (19, None));
        assert!(few.line().text.ends_with("and there are 19"), "{}", few.line().text);
    }
}
