//! Sentinels: graded answers whose verdict is known, put to every judge in every run before anything else.
//!
//! They are the same in all runs, so that a judge that changed behind its name is seen. They are
//! graded as any other answer and belong to no strategy. Most wrong answers are foils of a right one: they
//! differ from it in one value, or in polarity, and in nothing else. A judge that misses too many of the
//! wide task is put those of the narrow one.

use super::{Brief, JudgeTask, NEVER_SAID, Word, verdict};
use crate::model::Request;
use crate::probe::{GradeVerdict, Unscored};

/// An answer whose verdict is known.
#[derive(Debug, Clone)]
pub struct KnownAnswer {
    /// Its name in records.
    pub name: String,
    /// The question and the right answer.
    pub brief: Brief,
    /// The answer to grade.
    pub answer: String,
    /// Whether it is right.
    pub is_right: bool,
    /// The task that it is put in.
    pub task: JudgeTask,
}

/// A line each: name, whether the answer is right, question, reference (empty where nothing was ever
/// said), an earlier value, answer. A line feed is written as `\n`.
const KNOWN_ANSWERS: &str = include_str!("known_answers.tsv");

/// The same of the narrow task. No name is in both.
const NARROW_ANSWERS: &str = include_str!("narrow_answers.tsv");

/// All sentinels of a task, in the order in which they are asked.
pub fn known_answers(task: JudgeTask) -> Vec<KnownAnswer> {
    let lines = match task {
        JudgeTask::Wide => KNOWN_ANSWERS,
        JudgeTask::Narrow => NARROW_ANSWERS,
    };
    lines.lines().filter_map(|line| KnownAnswer::read(line, task)).collect()
}

impl KnownAnswer {
    fn read(line: &str, task: JudgeTask) -> Option<Self> {
        let cells: Vec<String> = line.split('\t').map(|cell| cell.replace("\\n", "\n")).collect();
        let [name, verdict, question, reference, older, answer] = cells.try_into().ok()?;
        let reference = if reference.is_empty() { NEVER_SAID } else { &reference };
        Some(Self {
            name,
            brief: Brief {
                older: Vec::from_iter((!older.is_empty()).then_some(older)),
                ..Brief::new(&question, reference)
            },
            answer,
            is_right: verdict == "right",
            task,
        })
    }

    /// The request to the judge.
    pub fn request(&self) -> Request {
        self.task.request(&self.brief, &self.answer)
    }

    /// The verdict that follows from the judge's word.
    pub fn verdict(&self, said: Result<Word, Unscored>) -> GradeVerdict {
        verdict(said, self.brief.is_never_said())
    }
}

/// Sensitivity and specificity together that a judge must reach on the sentinels, or its verdicts do
/// not count: what calibration asks of it on people's labels.
pub const LEAST_BOTH: f64 = 1.6;

/// The task that a judge which met these sentinels is fit for; `None` if it is unfit. Each is given with its
/// task, whether its answer is right, and whether the judge said so; where it said nothing it did not.
pub fn fit_task(
    known_answers: impl IntoIterator<Item = (JudgeTask, bool, bool)>,
) -> Option<JudgeTask> {
    // By task and by whether the answer is wrong: how many there are, and how many were met.
    let mut counts = [[(0_u32, 0_u32); 2]; 2];
    for (task, is_right, is_met) in known_answers {
        let (all, met) = &mut counts[task as usize][usize::from(!is_right)];
        *all += 1;
        *met += u32::from(is_met);
    }
    let both = counts.map(|of_task| of_task.map(|(all, met)| f64::from(met) / f64::from(all)));
    // A sum of exactly 1.6 is enough, whatever its last bit is.
    let [wide, narrow] = both.map(|[right, wrong]| right + wrong + f64::EPSILON >= LEAST_BOTH);
    // Without wide sentinels of both kinds nothing is known, and nothing held against it.
    let known = counts[0].iter().all(|(all, _)| *all > 0);
    match (wide || !known, narrow) {
        (true, _) => Some(JudgeTask::Wide),
        (false, true) => Some(JudgeTask::Narrow),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_judge_may_miss_two_of_ten_and_not_three_and_is_tried_on_the_narrow_task_then() {
        use JudgeTask::{Narrow, Wide};
        // Five right and five wrong answers, of which so many are missed.
        let of = |task: JudgeTask, [missed_right, missed_wrong]: [usize; 2]| {
            let right = (0..5).map(move |at| (task, true, at >= missed_right));
            right.chain((0..5).map(move |at| (task, false, at >= missed_wrong)))
        };
        let check = |missed: [usize; 2], expected: Option<JudgeTask>| {
            let wide_alone = expected.filter(|task| *task == Wide);
            assert_eq!(fit_task(of(Wide, missed)), wide_alone, "{missed:?}");
            let unfit = of(Wide, [0, 5]);
            let narrow = expected.map(|_| Narrow);
            assert_eq!(fit_task(unfit.chain(of(Narrow, missed))), narrow, "{missed:?}");
            // A judge that is fit for the wide task is asked that one, whatever else it met.
            let both = of(Narrow, missed).chain(of(Wide, [1, 1]));
            assert_eq!(fit_task(both), Some(Wide), "{missed:?}");
        };
        check([0, 0], Some(Wide));
        check([1, 1], Some(Wide));
        check([2, 0], Some(Wide));
        check([0, 2], Some(Wide));
        check([0, 3], None);
        check([2, 1], None);
        // It calls everything right.
        check([0, 5], None);
        assert_eq!(fit_task([(Wide, true, false)]), Some(Wide));
        assert_eq!(fit_task([]), Some(Wide));
        let one_sided = of(Wide, [0, 5]).chain([(Narrow, true, true)]);
        assert_eq!(fit_task(one_sided), None);
    }

    proptest! {
        #[test]
        fn the_order_of_sentinels_says_nothing_and_one_more_met_never_hurts(
            met in prop::collection::vec(any::<bool>(), 32),
            at in 0..32_usize,
        ) {
            let both = [JudgeTask::Wide, JudgeTask::Narrow].map(known_answers).concat();
            let task_of = |met: &[bool], is_reversed: bool| {
                let known = both.iter().zip(met);
                let mut known: Vec<_> = known.map(|(known, met)| (known.task, known.is_right, *met)).collect();
                if is_reversed {
                    known.reverse();
                }
                fit_task(known)
            };
            let rank = |task: Option<JudgeTask>| match task {
                None => 0,
                Some(JudgeTask::Narrow) => 1,
                Some(JudgeTask::Wide) => 2,
            };
            let task = task_of(&met, false);
            prop_assert_eq!(task, task_of(&met, true));
            let mut more = met;
            more[at] = true;
            prop_assert!(rank(task_of(&more, false)) >= rank(task));
        }
    }

    #[test]
    fn there_are_as_many_right_answers_as_wrong_ones_and_no_name_twice() {
        let both = [JudgeTask::Wide, JudgeTask::Narrow].map(known_answers);
        for all in &both {
            let right = all.iter().filter(|known| known.is_right).count();
            assert_eq!(2 * right, all.len());
        }
        assert_eq!(both.each_ref().map(Vec::len), [20, 12]);
        let names: BTreeSet<String> = both.into_iter().flatten().map(|it| it.name).collect();
        assert_eq!(names.len(), 32);
    }
}
