//! Answers to probes: what a reader said, how it was graded, and what several of both come to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{KeptCall, ProbeRecord};
use crate::probe::{Outcome, Verdict};
use crate::units::Usage;

/// What a reader answered, and how that was graded.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerRecord {
    /// The answer; nothing where the reader failed.
    pub text: Option<String>,
    /// What rules made of it.
    pub typed: Verdict,
    /// What the judge made of it, where one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Verdict>,
    /// What each judge of a panel made of it, in the order of the scenario; nothing where there is
    /// but one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub panel: Vec<Verdict>,
    /// What the judges made of it when they were asked again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejudged: Vec<Verdict>,
    /// What the reader cost; on no strategy's bill.
    pub usage: Usage,
    /// What the judges cost; on no strategy's bill, and not the reader's.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub judge_usage: Usage,
    /// The answers and verdicts that are kept in a cassette.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<KeptCall>,
}

impl AnswerRecord {
    /// The verdict that counts: the judge's where there is one, else the rules'. A judge that was asked
    /// several times has one in the mean.
    pub fn verdict(&self) -> Verdict {
        together(&self.verdicts()).unwrap_or(self.typed)
    }

    /// What it was graded, once for each time the judges were asked; the rules' alone without a judge.
    pub fn verdicts(&self) -> Vec<Verdict> {
        match self.judged {
            Some(first) => [first]
                .into_iter()
                .chain(self.rejudged.iter().copied())
                .map(|judged| self.with_its_way(judged))
                .collect(),
            None => vec![self.typed],
        }
    }

    /// A judge says right or wrong. In which way a wrong answer is wrong, rules may know better: an
    /// older value stays stale, and another key's misbound.
    fn with_its_way(&self, judged: Verdict) -> Verdict {
        match (judged, self.typed) {
            (
                Verdict::Scored {
                    outcome: Outcome::Wrong,
                    ..
                },
                Verdict::Scored {
                    outcome: outcome @ (Outcome::Stale | Outcome::Misbound),
                    ..
                },
            ) => Verdict::Scored {
                score: 0.0,
                outcome,
            },
            (judged, _) => judged,
        }
    }
}

impl ProbeRecord {
    /// All answers that are scored, the first one first.
    pub fn answers(&self) -> impl Iterator<Item = &AnswerRecord> {
        self.answer.iter().chain(&self.more)
    }

    /// All that was ever answered to it: what is scored, what qualified it, what was read from
    /// summaries.
    pub fn every_answer(&self) -> impl Iterator<Item = &AnswerRecord> {
        let beside = self.qualifying.iter().chain(&self.from_summary);
        self.answers().chain(beside)
    }

    /// What all answers come to; nothing where nobody was asked.
    pub fn verdict(&self) -> Option<Verdict> {
        let verdicts: Vec<Verdict> = self.answers().map(AnswerRecord::verdict).collect();
        together(&verdicts)
    }
}

/// Several verdicts as one: the mean of those that scored, with the outcome that most have, the first of
/// these among equals. One that scored nothing has no part in it, unless there is no other.
fn together(verdicts: &[Verdict]) -> Option<Verdict> {
    let scored: Vec<(f64, Outcome)> = verdicts
        .iter()
        .filter_map(|verdict| match verdict {
            Verdict::Scored { score, outcome } => Some((*score, *outcome)),
            Verdict::Unscored { .. } => None,
        })
        .collect();
    let count = |outcome: Outcome| scored.iter().filter(|(_, other)| *other == outcome).count();
    let most = scored.iter().map(|(_, outcome)| count(*outcome)).max();
    let outcome = scored
        .iter()
        .map(|(_, outcome)| *outcome)
        .find(|outcome| Some(count(*outcome)) == most);
    match outcome {
        Some(outcome) => Some(Verdict::Scored {
            score: scored.iter().map(|(score, _)| score).sum::<f64>() / scored.len() as f64,
            outcome,
        }),
        None => verdicts.first().copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(score: f64, outcome: Outcome) -> Verdict {
        Verdict::Scored { score, outcome }
    }

    #[track_caller]
    fn check(verdicts: &[Verdict], expected: Option<Verdict>) {
        assert_eq!(together(verdicts), expected, "{verdicts:?}");
    }

    #[test]
    fn several_verdicts_are_their_mean_with_the_outcome_that_most_have() {
        let (right, wrong) = (scored(1.0, Outcome::Right), scored(0.0, Outcome::Wrong));
        let stale = scored(0.0, Outcome::Stale);
        let reason = crate::probe::Unscored::NoAnswer;
        let nothing = Verdict::Unscored { reason };
        check(&[], None);
        check(&[right], Some(right));
        check(
            &[wrong, right, right, right],
            Some(scored(0.75, Outcome::Right)),
        );
        check(
            &[wrong, stale, right, stale],
            Some(scored(0.25, Outcome::Stale)),
        );
        check(&[right, wrong], Some(scored(0.5, Outcome::Right)));
        // A failure has no part in the mean, and is no zero.
        check(&[nothing, right], Some(right));
        check(&[nothing, nothing], Some(nothing));
    }

    fn check_judged(judged: Option<Verdict>, typed: Outcome, expected: Verdict) {
        let answer = AnswerRecord {
            text: None,
            typed: Verdict::Scored {
                score: 0.5,
                outcome: typed,
            },
            judged,
            rejudged: Vec::new(),
            panel: Vec::new(),
            usage: Usage::default(),
            judge_usage: Usage::default(),
            calls: Vec::new(),
        };
        assert_eq!(answer.verdict(), expected, "{judged:?} {typed:?}");
    }

    #[test]
    fn the_judge_says_whether_and_rules_say_in_which_way() {
        let wrong = Some(scored(0.0, Outcome::Wrong));
        let right = Some(scored(1.0, Outcome::Right));
        check_judged(wrong, Outcome::Stale, scored(0.0, Outcome::Stale));
        check_judged(wrong, Outcome::Misbound, scored(0.0, Outcome::Misbound));
        check_judged(wrong, Outcome::Right, scored(0.0, Outcome::Wrong));
        check_judged(wrong, Outcome::Partial, scored(0.0, Outcome::Wrong));
        check_judged(right, Outcome::Stale, scored(1.0, Outcome::Right));
        check_judged(None, Outcome::Stale, scored(0.5, Outcome::Stale));
        let silent = Verdict::Unscored {
            reason: crate::probe::Unscored::JudgeFailed,
        };
        check_judged(Some(silent), Outcome::Right, silent);
    }
}
