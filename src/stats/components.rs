//! Where noise comes from: compaction, answer or judge, and which further repeat removes most of it.
//!
//! An item is compacted R times, each result is answered N times, each answer is judged J times. The
//! variance of a score has one component per level, which nested analysis of variance takes apart
//! (balanced; components below 0 are 0).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Repeats at the three levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Levels {
    /// Compactions of an item.
    pub compactions: usize,
    /// Answers to each.
    pub answers: usize,
    /// Judgements of each answer.
    pub judgements: usize,
}

/// Variance of a score within an item, level by level.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Components {
    /// Between compactions of the same item; nothing with one compaction.
    pub compaction: Option<f64>,
    /// Between answers to the same compaction; nothing with one answer.
    pub answer: Option<f64>,
    /// Between judgements of the same answer; nothing with one judgement.
    pub judgement: Option<f64>,
}

/// Scores of one item: `scores[compaction][answer][judgement]`.
pub type Item = Vec<Vec<Vec<f64>>>;

impl Components {
    /// Takes the variance apart. Nothing where items do not all have the repeats of `levels`.
    pub fn of(items: &[Item], levels: Levels) -> Option<Self> {
        let balanced = |item: &Item| {
            item.len() == levels.compactions
                && item.iter().all(|answers| {
                    answers.len() == levels.answers
                        && answers.iter().all(|j| j.len() == levels.judgements)
                })
        };
        if items.is_empty() || !items.iter().all(balanced) {
            return None;
        }
        let means = |groups: &[Vec<f64>]| -> Vec<f64> { groups.iter().map(|g| mean(g)).collect() };
        // Judgements within answers, answers within compactions, compactions within items.
        let judged: Vec<&Vec<f64>> = items.iter().flatten().flatten().collect();
        let answered: Vec<Vec<f64>> = items.iter().flatten().map(|a| means(a)).collect();
        let compacted: Vec<Vec<f64>> = items
            .iter()
            .map(|item| item.iter().map(|answers| mean(&means(answers))).collect())
            .collect();
        let judgement = within(judged.iter().map(|g| g.as_slice()), levels.judgements);
        let of_answers = within(answered.iter().map(Vec::as_slice), levels.answers);
        let of_compactions = within(compacted.iter().map(Vec::as_slice), levels.compactions);
        // A mean's own variance holds a share of the level below.
        let answer = of_answers
            .map(|seen| (seen - judgement.unwrap_or(0.0) / levels.judgements as f64).max(0.0));
        let compaction = of_compactions.map(|seen| {
            let judged = judgement.unwrap_or(0.0) / levels.judgements as f64;
            (seen - of_answers.unwrap_or(judged) / levels.answers as f64).max(0.0)
        });
        Some(Self {
            compaction,
            answer,
            judgement,
        })
    }

    /// Variance of an item's mean with so many repeats; a level that was not measured counts as 0.
    pub fn variance(&self, levels: Levels) -> f64 {
        let (r, n, j) = (
            levels.compactions as f64,
            levels.answers as f64,
            levels.judgements as f64,
        );
        self.compaction.unwrap_or(0.0) / r
            + self.answer.unwrap_or(0.0) / (r * n)
            + self.judgement.unwrap_or(0.0) / (r * n * j)
    }

    /// What one further repeat at each level would do to the variance, and how many model calls per item
    /// it would add, those that remove most per call first. A level that was never repeated is left out:
    /// nobody knows what it would do.
    pub fn advice(&self, levels: Levels) -> Vec<Advice> {
        let now = self.variance(levels);
        let Levels {
            compactions: r,
            answers: n,
            judgements: j,
        } = levels;
        let further = [
            (
                Level::Compaction,
                self.compaction,
                Levels {
                    compactions: r + 1,
                    ..levels
                },
                1 + n + n * j,
            ),
            (
                Level::Answer,
                self.answer,
                Levels {
                    answers: n + 1,
                    ..levels
                },
                r + r * j,
            ),
            (
                Level::Judgement,
                self.judgement,
                Levels {
                    judgements: j + 1,
                    ..levels
                },
                r * n,
            ),
        ];
        let mut advice: Vec<Advice> = further
            .into_iter()
            .filter(|(_, component, ..)| component.is_some())
            .map(|(level, _, levels, calls)| Advice {
                level,
                removes: if now > 0.0 {
                    1.0 - self.variance(levels) / now
                } else {
                    0.0
                },
                calls,
            })
            .collect();
        advice.sort_by(|left, right| {
            let per_call = |a: &Advice| a.removes / a.calls as f64;
            per_call(right).total_cmp(&per_call(left))
        });
        advice
    }
}

/// A level at which something can be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// The compaction.
    Compaction,
    /// The answer.
    Answer,
    /// The judgement.
    Judgement,
}

/// What one further repeat buys.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// What is repeated once more.
    pub level: Level,
    /// Share of an item's variance that goes.
    pub removes: f64,
    /// Model calls per item that it adds.
    pub calls: usize,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Pooled variance within groups of one size; nothing for groups of one.
fn within<'a>(groups: impl Iterator<Item = &'a [f64]>, size: usize) -> Option<f64> {
    if size < 2 {
        return None;
    }
    let (mut squares, mut count) = (0.0, 0);
    for group in groups {
        let mean = mean(group);
        squares += group.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        count += 1;
    }
    (count > 0).then(|| squares / f64::from(count) / (size - 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::draw::Draws;

    #[test]
    fn known_components_are_found_again() {
        // Sums of 12 uniform draws: variance 1 each, scaled to 0.09, 0.04 and 0.01.
        let mut draws = Draws::new(5, "components");
        let mut noise = |sd: f64| {
            let sum: f64 = (0..12)
                .map(|_| (draws.bits() >> 11) as f64 / 2f64.powi(53))
                .sum();
            sd * (sum - 6.0)
        };
        let levels = Levels {
            compactions: 3,
            answers: 3,
            judgements: 2,
        };
        let items: Vec<Item> = (0..600)
            .map(|_| {
                (0..3)
                    .map(|_| {
                        let compaction = noise(0.3);
                        (0..3)
                            .map(|_| {
                                let answer = compaction + noise(0.2);
                                (0..2).map(|_| answer + noise(0.1)).collect()
                            })
                            .collect()
                    })
                    .collect()
            })
            .collect();
        let found = Components::of(&items, levels).unwrap();
        assert!((found.compaction.unwrap() - 0.09).abs() < 0.01, "{found:?}");
        assert!((found.answer.unwrap() - 0.04).abs() < 0.005, "{found:?}");
        assert!((found.judgement.unwrap() - 0.01).abs() < 0.001, "{found:?}");
        // Judging once more is cheap and removes next to nothing; compacting once more removes most.
        let advice = found.advice(Levels {
            compactions: 1,
            answers: 1,
            judgements: 1,
        });
        assert_eq!(advice[0].level, Level::Compaction);
        assert!(advice.iter().all(|one| one.removes >= 0.0));
    }

    #[test]
    fn what_was_not_repeated_has_no_component() {
        let levels = Levels {
            compactions: 1,
            answers: 2,
            judgements: 1,
        };
        let items = vec![vec![vec![vec![0.0], vec![1.0]]]];
        let found = Components::of(&items, levels).unwrap();
        assert_eq!(found.compaction, None);
        assert_eq!(found.judgement, None);
        assert!((found.answer.unwrap() - 0.5).abs() < 1e-12);
        let uneven = Levels {
            compactions: 2,
            ..levels
        };
        assert_eq!(Components::of(&items, uneven), None);
        let advised: Vec<Level> = found.advice(levels).iter().map(|one| one.level).collect();
        assert_eq!(advised, [Level::Answer], "what is not known is not advised");
    }
}
