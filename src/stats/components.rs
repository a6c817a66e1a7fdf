//! The sources of noise (compaction, answer, judge), and the further repeat that removes most of
//! it.
//!
//! An item is compacted R times, each result is answered N times, each answer is judged J times. The
//! variance of a score has one component per level, which nested analysis of variance takes apart
//! (balanced; components below 0 are 0).

use super::mean_of;

/// Repeats at the three levels: compactions of an item, answers to each, judgements of each answer.
pub(crate) type Levels = [usize; 3];

/// Scores of one item: those of one compaction are adjacent, and within them those of one answer.
pub(crate) type ItemScores = Vec<f64>;

/// Variance of a score within an item, level by level; `None` for a level that was not repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Components(pub(crate) [Option<f64>; 3]);

impl Components {
    /// Takes the variance apart. `None` where items do not all have the repeats of `levels`.
    pub(crate) fn of(items: &[ItemScores], levels: Levels) -> Option<Self> {
        let scores: usize = levels.iter().product();
        if items.is_empty() || items.iter().any(|item| item.len() != scores) {
            return None;
        }
        let mut values = items.concat();
        let mut components = [None; 3];
        // A mean's own variance holds a share of the level below.
        let mut below = 0.0;
        // Judgements within answers, answers within compactions, compactions within items.
        for level in (0..levels.len()).rev() {
            let seen = within(&values, levels[level]);
            components[level] = seen.map(|seen| (seen - below).max(0.0));
            below = seen.unwrap_or(below) / levels[level] as f64;
            values = values.chunks(levels[level]).map(mean_of).collect();
        }
        Some(Self(components))
    }

    /// Variance of an item's mean with these numbers of repeats; a level that was not measured
    /// counts as 0.
    pub(crate) fn variance(&self, levels: Levels) -> f64 {
        let [r, n, j] = levels.map(|repeats| repeats as f64);
        let [compaction, answer, judgement] = self.0.map(|variance| variance.unwrap_or(0.0));
        compaction / r + answer / (r * n) + judgement / (r * n * j)
    }

    /// The effect of one further repeat at each level on the variance, and how many model calls per item
    /// it would add, those that remove most per call first. A level that was never repeated is left out:
    /// its variance is not known.
    pub(crate) fn advice(&self, levels: Levels) -> Vec<Advice> {
        let now = self.variance(levels);
        let [r, n, j] = levels;
        let calls = [1 + n + n * j, r + r * j, r * n];
        let advice = (0..3).filter(|level| self.0[*level].is_some()).map(|level| {
            let mut further = levels;
            further[level] += 1;
            let removes = 1.0 - self.variance(further) / now;
            let (removes, calls) = (if now > 0.0 { removes } else { 0.0 }, calls[level]);
            Advice { level, removes, calls }
        });
        let mut advice: Vec<Advice> = advice.collect();
        advice.sort_by(|left, right| {
            let [left, right] = [left, right].map(|own| own.removes / own.calls as f64);
            right.total_cmp(&left)
        });
        advice
    }
}

/// The effect of one further repeat.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Advice {
    /// Which of the levels is repeated once more.
    pub(crate) level: usize,
    /// Share of an item's variance that goes.
    pub(crate) removes: f64,
    /// Model calls per item that it adds.
    pub(crate) calls: usize,
}

/// Pooled variance within groups of this size; `None` for groups of one.
fn within(values: &[f64], size: usize) -> Option<f64> {
    if size < 2 {
        return None;
    }
    let squares = values.chunks(size).map(|group| {
        let mean = mean_of(group);
        group.iter().map(|v| (v - mean).powi(2)).sum::<f64>()
    });
    Some(squares.sum::<f64>() / (values.len() / size) as f64 / (size - 1) as f64)
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
            let sum: f64 = (0..12).map(|_| (draws.bits() >> 11) as f64 / 2f64.powi(53)).sum();
            sd * (sum - 6.0)
        };
        let levels = [3, 3, 2];
        let mut item = || {
            let mut scores = ItemScores::new();
            for _ in 0..3 {
                let compaction = noise(0.3);
                for _ in 0..3 {
                    let answer = compaction + noise(0.2);
                    scores.extend([0.0; 2].map(|_| answer + noise(0.1)));
                }
            }
            scores
        };
        let items: Vec<ItemScores> = (0..600).map(|_| item()).collect();
        let found = Components::of(&items, levels).unwrap();
        assert!((found.0[0].unwrap() - 0.09).abs() < 0.01, "{found:?}");
        assert!((found.0[1].unwrap() - 0.04).abs() < 0.005, "{found:?}");
        assert!((found.0[2].unwrap() - 0.01).abs() < 0.001, "{found:?}");
        // Judging once more is cheap and removes next to nothing; compacting once more removes most.
        let advice = found.advice([1, 1, 1]);
        assert_eq!(advice[0].level, 0);
        assert!(advice.iter().all(|one| one.removes >= 0.0));
    }

    #[test]
    fn what_was_not_repeated_has_no_component() {
        let levels = [1, 2, 1];
        let items = [vec![0.0, 1.0]];
        let found = Components::of(&items, levels).unwrap();
        assert_eq!(found.0[0], None);
        assert_eq!(found.0[2], None);
        assert!((found.0[1].unwrap() - 0.5).abs() < 1e-12);
        let uneven = [2, 2, 1];
        assert_eq!(Components::of(&items, uneven), None);
        let advised: Vec<usize> = found.advice(levels).iter().map(|one| one.level).collect();
        assert_eq!(advised, [1], "what is not known is not advised");
    }
}
