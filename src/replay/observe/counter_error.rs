//! How far the token counter is off, where the recording says what the provider billed.

use super::prelude::*;
use super::{CallView, Observer};
use crate::record::CounterError;
use crate::units::median;

/// Compares the growth of the recorded prompt between two calls with the count of what was
/// appended between them.
///
/// Only increments are compared: what the recording does not hold (system prompt, tools) is part
/// of both prompts and cancels out. A pair is left out where either call has no usage, where the
/// recorded product compacted between them, and where the recorded prompt did not grow.
#[derive(Debug, Default)]
pub struct CounterErrors {
    counted: Tokens,
    last: Option<(Tokens, Tokens)>,
    compactions: usize,
    pairs: Vec<(u64, u64)>,
}

impl Observer for CounterErrors {
    fn appended(&mut self, entry: &Entry) {
        self.counted += entry.size().tokens - entry.message.details.hidden;
    }

    fn called(&mut self, view: &CallView<'_>) {
        let compactions =
            view.session.compactions().partition_point(|event| event.at <= view.before);
        let billed = view.response.details.usage.map(|usage| usage.prompt());
        if let (Some(billed), Some((last_billed, last_counted))) = (billed, self.last)
            && compactions == self.compactions
            && billed > last_billed
        {
            let counted = self.counted - last_counted;
            self.pairs.push((counted.0, (billed - last_billed).0));
        }
        self.compactions = compactions;
        let known = billed.filter(|billed| *billed > Tokens::ZERO);
        self.last = known.map(|billed| (billed, self.counted));
    }

    fn finish(self: Box<Self>, record: &mut CellRecord) {
        if self.pairs.is_empty() {
            return;
        }
        let pairs = self.pairs.iter();
        let mut errors: Vec<f64> =
            pairs.map(|pair| pair.0.abs_diff(pair.1) as f64 / pair.1 as f64).collect();
        errors.sort_unstable_by(f64::total_cmp);
        // A recording may claim any number of tokens: their sum need not fit one.
        let counted: f64 = self.pairs.iter().map(|(counted, _)| *counted as f64).sum();
        let billed: f64 = self.pairs.iter().map(|(_, billed)| *billed as f64).sum();
        record.counter_error = Some(CounterError {
            increments: errors.len(),
            median: median(&errors, f64::midpoint).unwrap_or_default(),
            p95: nearest_rank(&errors, 95),
            ratio: counted / billed,
        });
    }
}

/// The percentile by nearest rank: the smallest value that at least `percent` of them do not
/// exceed. `sorted` must not be empty.
fn nearest_rank(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted[rank - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "the values are picked, not computed")]
    fn percentiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(nearest_rank(&values, 50), 10.0);
        assert_eq!(nearest_rank(&values, 95), 19.0);
        assert_eq!(nearest_rank(&values[..1], 95), 1.0);
    }
}
