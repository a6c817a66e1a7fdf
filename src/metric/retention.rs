//! Retention: the share that survives, by kind, by age and by place in the prompt.
//!
//! An item's age is counted twice: in compactions that came over it since it was said, and in tokens
//! that the full history grew by since then. It is string matching, as all of survival is.

use super::prelude::*;
use super::survival::Score;
use crate::record::PlaceInPrompt;

/// The ages by compactions, each with the fewest that belong to it.
pub const COMPACTIONS: [(&str, usize); 6] =
    [("0", 0), ("1", 1), ("2", 2), ("3–5", 3), ("6–15", 6), ("16+", 16)];

/// The ages by tokens since the value was said, each with the fewest that belong to it.
pub const TOKENS: [(&str, u64); 6] = [
    ("< 4k", 0),
    ("4–16k", 4_000),
    ("16–32k", 16_000),
    ("32–64k", 32_000),
    ("64–128k", 64_000),
    ("128k+", 128_000),
];

/// A drop of at least this share of the items from one age to the next is a cliff.
pub const CLIFF: f64 = 0.25;

/// One planted item, with its age.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AgedItem {
    /// The kind of its probe.
    pub kind: ProbeKind,
    /// How many calls changed the context since it was said.
    pub compactions: usize,
    /// By how much the full history had grown since then; `None` without a reference.
    pub tokens: Option<Tokens>,
    /// Its place in the prompt, if it is there.
    pub place: Option<PlaceInPrompt>,
    /// Its survival, from 0 to 1.
    pub score: f64,
}

/// The planted items of some cells, with their ages. Items of records that say nothing of when they
/// were said are left out, and so are those that were due after a session's death: nothing forgot
/// them, there was no prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Retention(pub Vec<AgedItem>);

impl Retention {
    /// The items of this cell; `reference` is `full` on the same session.
    pub fn of(cell: &CellRecord, reference: Option<&CellRecord>) -> Self {
        let mut changed: Vec<usize> = cell.compactions.iter().map(|event| event.call).collect();
        changed.dedup();
        let reached = cell.probes.iter().filter(|item| item.call < cell.reached_calls);
        let aged = reached.filter(|item| item.kind.is_searched()).filter_map(|item| {
            let said = item.said_at?;
            let since = changed.iter().filter(|call| (said..=item.call).contains(call));
            let [now, then] =
                [item.call, said].map(|call| reference?.prompt_tokens.get(call).copied());
            Some(AgedItem {
                kind: item.kind,
                compactions: since.count(),
                tokens: now.zip(then).map(|(now, then)| now - then),
                place: item.survival.place,
                score: item.survival.score,
            })
        });
        Self(aged.collect())
    }

    /// Retention by age, such as [`age_in_tokens`]; items without one are left out.
    pub fn by_age(&self, age: impl Fn(&AgedItem) -> Option<usize>) -> [Score; 6] {
        let mut scores = [Score::default(); 6];
        for item in &self.0 {
            if let Some(score) = age(item).and_then(|at| scores.get_mut(at)) {
                score.add(item.score);
            }
        }
        scores
    }

    /// Retention by tokens since, in the order of [`TOKENS`].
    pub fn by_tokens(&self) -> [Score; 6] {
        self.by_age(|item| item.tokens.map(age_in_tokens))
    }
}

/// Which of [`COMPACTIONS`] an age belongs to.
pub fn age_in_compactions(compactions: usize) -> usize {
    age(&COMPACTIONS, &compactions)
}

/// Which of [`TOKENS`] an age belongs to.
pub fn age_in_tokens(tokens: Tokens) -> usize {
    age(&TOKENS, &tokens.0)
}

fn age<T: PartialOrd>(ages: &[(&str, T)], at: &T) -> usize {
    let found = ages.iter().rposition(|(_, least)| at >= least);
    found.unwrap_or(0)
}

/// The first age at which no more than half is left of what is left at the youngest age with items,
/// and at every older age with items: the half-life as far as these ages resolve it. `None` where
/// more than half is left to the end, or nothing ever was.
pub fn half_life(ages: &[Score]) -> Option<usize> {
    let measured: Vec<(usize, f64)> = measured(ages).collect();
    let (_, first) = *measured.first()?;
    if first <= 0.0 {
        return None;
    }
    let behind = measured.iter().rposition(|(_, mean)| *mean > first / 2.0)?;
    measured.get(behind + 1).map(|(at, _)| *at)
}

/// The largest fall from one age with items to the next, if it is at least [`CLIFF`]: the age after
/// it, and how far it falls.
pub fn cliff(ages: &[Score]) -> Option<(usize, f64)> {
    let measured: Vec<(usize, f64)> = measured(ages).collect();
    let falls = measured.windows(2).map(|pair| (pair[1].0, pair[0].1 - pair[1].1));
    let deepest = falls.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
    (deepest.1 >= CLIFF).then_some(deepest)
}

/// How much retention changes with each compaction: the slope of a least-squares line through the
/// items' scores over the compactions they came through, among those that came through one at
/// least; `None` where all came through the same number. Below 0, more is lost each time.
pub fn drift(items: &[AgedItem]) -> Option<f64> {
    let through = items.iter().filter(|item| item.compactions > 0);
    let through: Vec<(f64, f64)> =
        through.map(|item| (item.compactions as f64, item.score)).collect();
    let count = through.len() as f64;
    let x = through.iter().map(|pair| pair.0).sum::<f64>() / count;
    let y = through.iter().map(|pair| pair.1).sum::<f64>() / count;
    let spread: f64 = through.iter().map(|pair| (pair.0 - x) * (pair.0 - x)).sum();
    let common: f64 = through.iter().map(|pair| (pair.0 - x) * (pair.1 - y)).sum();
    (spread > 0.0).then(|| common / spread)
}

fn measured(ages: &[Score]) -> impl Iterator<Item = (usize, f64)> + '_ {
    ages.iter().enumerate().filter_map(|(at, age)| Some((at, age.mean()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ages(means: &[Option<f64>]) -> Vec<Score> {
        let score = |mean: &Option<f64>| {
            let mut score = Score::default();
            if let Some(mean) = mean {
                score.add(*mean);
            }
            score
        };
        means.iter().map(score).collect()
    }

    fn aged(compactions: usize, tokens: u64, score: f64) -> AgedItem {
        AgedItem {
            kind: ProbeKind::Recall,
            compactions,
            tokens: Some(Tokens(tokens)),
            place: None,
            score,
        }
    }

    #[test]
    fn half_is_gone_where_it_stays_gone() {
        let check = |means: &[Option<f64>], expected| {
            assert_eq!(half_life(&ages(means)), expected, "{means:?}");
        };
        check(&[Some(1.0), Some(0.8), Some(0.5), Some(0.1)], Some(2));
        check(&[Some(1.0), Some(0.4), Some(0.6), Some(0.3)], Some(3));
        check(&[Some(0.8), None, Some(0.4)], Some(2));
        check(&[Some(1.0), Some(0.9)], None);
        check(&[None, None], None);
        check(&[Some(0.0), Some(0.0)], None);
        check(&[Some(1.0), Some(0.2), Some(0.9)], None);
    }

    #[test]
    fn a_cliff_is_the_deepest_fall() {
        let found = cliff(&ages(&[Some(1.0), Some(0.9), None, Some(0.3), Some(0.1)])).unwrap();
        assert_eq!(found.0, 3);
        assert!((found.1 - 0.6).abs() < 1e-12);
        assert_eq!(cliff(&ages(&[Some(1.0), Some(0.9), Some(0.8)])), None);
        assert_eq!(cliff(&ages(&[Some(1.0)])), None);
    }

    #[test]
    fn what_was_due_after_a_death_was_not_forgotten() {
        let none: [u32; 0] = [];
        let probe = |call: usize| {
            serde_json::json!({
                "probe": "p", "kind": "recall", "weight": 1, "percent": 50, "call": call,
                "said_at": 0, "survival": { "fate": "lost", "score": 0.0, "place": null },
            })
        };
        let cell = |end: serde_json::Value| -> CellRecord {
            let cell = serde_json::json!({
                "session": "s", "strategy": "none", "repeat": 0, "arm": "strategy", "end": end,
                "planned_calls": 4, "reached_calls": 3, "window": null, "fixed_tokens": 0,
                "prompt_tokens": [1, 2, 3], "saved_texts": 0,
                "action_support": {
                    "wanted": none, "present": none,
                    "compacted_wanted": none, "compacted_present": none,
                },
                "probes": [probe(2), probe(3)],
            });
            serde_json::from_value(cell).unwrap()
        };
        let died =
            cell(serde_json::json!({ "end": "died", "call": 3, "prompt": 9, "cause": "overflow" }));
        assert_eq!(Retention::of(&died, None).0.len(), 1);
    }

    #[test]
    fn items_fall_into_their_ages() {
        let items = Retention(vec![
            aged(0, 0, 1.0),
            aged(0, 3_999, 1.0),
            aged(1, 4_000, 0.5),
            aged(5, 31_999, 0.0),
            aged(40, 500_000, 0.0),
        ]);
        let means = |ages: [Score; 6]| ages.map(|age| age.mean());
        let by_compactions = means(items.by_age(|item| Some(age_in_compactions(item.compactions))));
        assert_eq!(by_compactions, [Some(1.0), Some(0.5), None, Some(0.0), None, Some(0.0)]);
        let by_tokens = means(items.by_tokens());
        assert_eq!(by_tokens, [Some(1.0), Some(0.5), Some(0.0), None, None, Some(0.0)]);
        assert_eq!(means(items.by_age(|_| None)), [None; 6]);
    }

    /// (1, 1.0), (2, 0.5), (3, 0.0): a line that falls by one half each time.
    #[test]
    fn drift_is_the_slope_over_compactions() {
        let items = [aged(0, 0, 0.1), aged(1, 0, 1.0), aged(2, 0, 0.5), aged(3, 0, 0.0)];
        assert!((drift(&items).unwrap() + 0.5).abs() < 1e-12);
        assert_eq!(drift(&items[..2]), None);
        assert_eq!(drift(&[]), None);
    }
}
