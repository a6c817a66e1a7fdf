//! Estimates: a number with its interval and the n it rests on.
//!
//! Sessions are the independent units; the probes inside one session are not, nor are the side chains
//! of a session, which form one cluster with it. An [`Estimate`] is therefore a mean over clusters,
//! here called sessions, or a ratio of two, and its interval counts them, however many items each has. A
//! value that is exact on the sessions that were run (a peak, a count, a bill) is not an estimate and has no
//! interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod agreement;
pub mod bootstrap;
pub mod bounds;
pub mod calibration;
pub mod components;
pub(crate) mod draw;
pub mod multiple;
pub mod paired;
pub mod pareto;
pub mod power;
pub mod quantile;
pub mod signflip;
mod simulation;
pub mod wilson;

/// Share of repeated experiments whose interval holds the true value.
pub const CONFIDENCE_LEVEL: f64 = 0.95;

/// Share of a distribution below the upper end of such an interval.
const UPPER_SHARE: f64 = 1.0 - (1.0 - CONFIDENCE_LEVEL) / 2.0;

/// A mean over sessions.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The mean, each session weighing the same.
    pub point_estimate: f64,
    /// `sd/√G` over G sessions; nothing below two sessions.
    pub standard_error: Option<f64>,
    /// The interval; nothing below two sessions.
    pub confidence_interval: Option<ConfidenceInterval>,
    /// The size of its sample.
    pub n: SampleSize,
}

/// An interval around a mean. It is not cut at 0 or 1: a bound outside says that the sessions are
/// too few.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfidenceInterval {
    /// Share of repeated experiments whose interval holds the true value.
    pub confidence_level: f64,
    /// The lower end.
    pub lower_bound: f64,
    /// The upper end.
    pub upper_bound: f64,
}

/// How many independent units a number rests on, and how many observations in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleSize {
    /// The independent units: sessions, each with its side chains.
    pub sessions: usize,
    /// Observations in them: probe items, atoms, events; the sessions themselves where there is
    /// nothing smaller.
    pub items: usize,
}

impl Estimate {
    /// The session-weighted mean, with its interval clustered by session: `mean ± t(1 − α/2, G − 1)
    /// · sd/√G`. `None` without a finite value.
    ///
    /// `items` is the number of observations in `values`, which has one value per session.
    pub fn of_sessions(values: &[f64], items: usize) -> Option<Self> {
        if values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let sessions = values.len();
        let point = mean(values)?;
        let standard_error = (sessions >= 2).then(|| {
            let squares: f64 = values.iter().map(|value| (value - point).powi(2)).sum();
            (squares / (sessions - 1) as f64 / sessions as f64).sqrt()
        });
        let n = SampleSize { sessions, items };
        Some(Self::with_error(point, standard_error, n))
    }

    /// The ratio of two means over sessions, `r = Σx/Σy`, of one `(x, y)` per session.
    ///
    /// Its standard error is that of the ratio estimator (W. G. Cochran, *Sampling Techniques*, 3rd
    /// edition, 1977, chapter 6), the one of probe-weighted differences as well: `SE² = G/(G − 1) ·
    /// Σ(x − r·y)²/(Σy)²`. `None` where `Σy` is not above 0.
    pub fn of_ratio(pairs: &[(f64, f64)], items: usize) -> Option<Self> {
        let above: f64 = pairs.iter().map(|(x, _)| x).sum();
        let below: f64 = pairs.iter().map(|(_, y)| y).sum();
        let ratio = above / below;
        if below <= 0.0 || !ratio.is_finite() {
            return None;
        }
        let sessions = pairs.len();
        let standard_error = (sessions >= 2).then(|| {
            let squares: f64 = pairs.iter().map(|(x, y)| (x - ratio * y).powi(2)).sum();
            (sessions as f64 / (sessions - 1) as f64 * squares).sqrt() / below
        });
        let n = SampleSize { sessions, items };
        Some(Self::with_error(ratio, standard_error, n))
    }

    /// A number with the standard error that some formula gives it, and the interval `± t(1 − α/2,
    /// G − 1) · SE` that belongs to it.
    pub fn with_error(point: f64, standard_error: Option<f64>, n: SampleSize) -> Self {
        let t = quantile::t(UPPER_SHARE, n.sessions.saturating_sub(1));
        let reach = standard_error.zip(t).map(|(error, t)| t * error);
        Self {
            point_estimate: point,
            standard_error,
            confidence_interval: reach
                .map(|reach| ConfidenceInterval::of(point - reach, point + reach)),
            n,
        }
    }

    /// The same, corrected for the score of chance alone: `(s − f)/(1 − f)`, f taken as known.
    ///
    /// `None` where chance reaches everything (f = 1). The name in the literature is Abbott's
    /// formula (W. S. Abbott, 1925).
    #[must_use]
    pub fn corrected_for_chance(self, chance: f64) -> Option<Self> {
        if !(0.0..1.0).contains(&chance) {
            return None;
        }
        let correct = |value: f64| (value - chance) / (1.0 - chance);
        Some(Self {
            point_estimate: correct(self.point_estimate),
            standard_error: self.standard_error.map(|error| error / (1.0 - chance)),
            confidence_interval: self.confidence_interval.map(|interval| interval.map(correct)),
            n: self.n,
        })
    }
}

/// The mean; `None` without a value.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| mean_of(values))
}

/// The same; not a number without a value.
fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

impl ConfidenceInterval {
    /// An interval at the usual level.
    pub(crate) fn of(lower_bound: f64, upper_bound: f64) -> Self {
        Self { confidence_level: CONFIDENCE_LEVEL, lower_bound, upper_bound }
    }

    /// Both ends on another scale, which keeps their order.
    fn map(self, scale: impl Fn(f64) -> f64) -> Self {
        Self::of(scale(self.lower_bound), scale(self.upper_bound))
    }

    /// Half its width: the number after `±`.
    pub fn half_width(&self) -> f64 {
        (self.upper_bound - self.lower_bound) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64, within: f64) {
        assert!((left - right).abs() < within, "{left} is not {right}");
    }

    #[test]
    fn quantiles_of_students_t_are_the_published_ones() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2, column 0.975.
        for (freedom, published) in [
            (1, 12.706),
            (2, 4.303),
            (5, 2.571),
            (9, 2.262),
            (19, 2.093),
            (39, 2.023),
            (100, 1.984),
        ] {
            let t = quantile::t(0.975, freedom).unwrap();
            close(t, published, 5e-4);
        }
        assert_eq!(quantile::t(0.975, 0), None);
    }

    #[test]
    fn an_interval_is_clustered_by_session() {
        // By hand: mean 0.5, sd 0.1, SE 0.1/√3, t(0.975, 2) = 4.303.
        let estimate = Estimate::of_sessions(&[0.4, 0.5, 0.6], 30).unwrap();
        close(estimate.point_estimate, 0.5, 1e-12);
        close(estimate.standard_error.unwrap(), 0.057_735, 1e-6);
        let interval = estimate.confidence_interval.unwrap();
        close(interval.half_width(), 0.248_414, 1e-5);
        close(interval.lower_bound, 0.251_586, 1e-5);
        assert_eq!(estimate.n, SampleSize { sessions: 3, items: 30 });
    }

    #[test]
    fn one_session_has_no_interval_and_none_has_no_estimate() {
        let one = Estimate::of_sessions(&[0.4], 10).unwrap();
        assert_eq!(one.confidence_interval, None);
        assert_eq!(one.standard_error, None);
        assert_eq!(Estimate::of_sessions(&[], 0), None);
        assert_eq!(Estimate::of_sessions(&[f64::NAN], 1), None);
    }

    #[test]
    fn a_ratio_of_means_has_the_error_of_the_ratio_estimator() {
        // By hand: r = 6/8; residuals 0.25, 0.5, −0.75; Σ squares = 0.875; SE = √(1.5 · 0.875)/8.
        let estimate = Estimate::of_ratio(&[(1.0, 1.0), (2.0, 2.0), (3.0, 5.0)], 9).unwrap();
        close(estimate.point_estimate, 0.75, 1e-12);
        close(estimate.standard_error.unwrap(), 0.143_205, 1e-6);
        let interval = estimate.confidence_interval.unwrap();
        close(interval.half_width(), 4.302_65 * 0.143_205, 1e-4);
        // Where the denominator is the same everywhere it is the mean, divided by it.
        let pairs = [0.4, 0.5, 0.6].map(|x| (x, 0.5));
        let ratio = Estimate::of_ratio(&pairs, 3).unwrap();
        let mean = Estimate::of_sessions(&[0.8, 1.0, 1.2], 3).unwrap();
        close(ratio.point_estimate, mean.point_estimate, 1e-12);
        close(ratio.standard_error.unwrap(), mean.standard_error.unwrap(), 1e-12);
        let one = Estimate::of_ratio(&[(0.2, 0.4)], 5).unwrap();
        assert_eq!(one.confidence_interval, None);
        for pairs in [&[][..], &[(0.5, 0.0)], &[(0.1, -0.2)], &[(f64::NAN, 1.0)]] {
            assert_eq!(Estimate::of_ratio(pairs, 1), None);
        }
    }

    #[test]
    fn what_chance_reaches_counts_for_nothing() {
        let estimate = Estimate::of_sessions(&[0.6, 0.6], 2).unwrap();
        let corrected = estimate.corrected_for_chance(0.2).unwrap();
        close(corrected.point_estimate, 0.5, 1e-12);
        assert_eq!(estimate.corrected_for_chance(0.0), Some(estimate));
        assert_eq!(estimate.corrected_for_chance(1.0), None);
    }
}
