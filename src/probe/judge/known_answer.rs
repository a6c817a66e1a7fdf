//! Sentinels: graded answers whose verdict is known, put to every judge in every run before anything else.
//!
//! They are the same in all runs, so that a judge that changed behind its name is seen. They are
//! graded as any other answer and belong to no strategy. Most wrong answers are foils of a right one: they
//! differ from it in one value, or in polarity, and in nothing else.

use super::{Brief, Judge, NEVER_SAID, Word, verdict};
use crate::model::Request;
use crate::probe::{Unscored, Verdict};

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
}

/// A line each: name, whether the answer is right, question, reference (empty where nothing was ever
/// said), an earlier value, answer. A line feed is written as `\n`.
const KNOWN_ANSWERS: &str = include_str!("known_answers.tsv");

/// All sentinels, in the order in which they are asked.
pub fn known_answers() -> Vec<KnownAnswer> {
    KNOWN_ANSWERS
        .lines()
        .filter_map(KnownAnswer::read)
        .collect()
}

impl KnownAnswer {
    fn read(line: &str) -> Option<Self> {
        let cells: Vec<String> = line
            .split('\t')
            .map(|cell| cell.replace("\\n", "\n"))
            .collect();
        let [name, verdict, question, reference, older, answer] = cells.try_into().ok()?;
        let reference = if reference.is_empty() {
            NEVER_SAID
        } else {
            &reference
        };
        Some(Self {
            name,
            brief: Brief {
                older: Some(older)
                    .filter(|older| !older.is_empty())
                    .into_iter()
                    .collect(),
                ..Brief::new(&question, reference)
            },
            answer,
            is_right: verdict == "right",
        })
    }

    /// The request to the judge.
    pub fn request(&self) -> Request {
        Judge::request_of(&self.brief, &self.answer)
    }

    /// The verdict that follows from the judge's word.
    pub fn verdict(&self, said: Result<Word, Unscored>) -> Verdict {
        verdict(said, self.brief.is_never_said())
    }
}

/// Sensitivity and specificity together that a judge must reach on the sentinels, or its verdicts do
/// not count: what calibration asks of it on people's labels.
pub const LEAST_BOTH: f64 = 1.6;

/// Whether a judge that met these sentinels is unfit. Each is given as whether its answer is right,
/// and whether the judge said so; where it said nothing it did not. Without sentinels of both kinds
/// nothing is known, and nothing held against it.
pub fn is_unfit(known_answers: impl IntoIterator<Item = (bool, bool)>) -> bool {
    // By whether the answer is wrong: how many there are, and how many were met.
    let mut all = [0_u32; 2];
    let mut met = [0_u32; 2];
    for (is_right, is_met) in known_answers {
        all[usize::from(!is_right)] += 1;
        met[usize::from(!is_right)] += u32::from(is_met);
    }
    let [sensitivity, specificity] = [0, 1].map(|of| f64::from(met[of]) / f64::from(all[of]));
    // A sum of exactly 1.6 is enough, whatever its last bit is.
    all.iter().all(|all| *all > 0) && sensitivity + specificity + f64::EPSILON < LEAST_BOTH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judge_may_miss_two_of_ten_and_not_three() {
        let check = |missed_right: usize, missed_wrong: usize, expected: bool| {
            let right = (0..5).map(|at| (true, at >= missed_right));
            let wrong = (0..5).map(|at| (false, at >= missed_wrong));
            assert_eq!(
                is_unfit(right.chain(wrong)),
                expected,
                "{missed_right} {missed_wrong}"
            );
        };
        check(0, 0, false);
        check(1, 1, false);
        check(2, 0, false);
        check(0, 2, false);
        check(0, 3, true);
        check(2, 1, true);
        // It calls everything right.
        check(0, 5, true);
        assert!(!is_unfit([(true, false)]));
        assert!(!is_unfit([]));
    }

    #[test]
    fn there_are_as_many_right_answers_as_wrong_ones() {
        let all = known_answers();
        let right = all.iter().filter(|known| known.is_right).count();
        assert_eq!(2 * right, all.len());
    }
}
