//! Bounds of a difference: how far it may lie from what was seen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Estimate, power, quantile};

/// Bounds of a difference, candidate − baseline, turned so that higher is better.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// The difference.
    pub difference: f64,
    /// One-sided 95 % lower bound.
    pub lower: f64,
    /// One-sided 95 % upper bound.
    pub upper: f64,
    /// Lower end of the two-sided 95 % interval.
    pub interval_lower: f64,
    /// Its upper end.
    pub interval_upper: f64,
    /// Standard deviation of a session's difference; `None` where the difference is exact.
    pub deviation: Option<f64>,
    /// Sessions it rests on.
    pub sessions: usize,
    /// Standard error of the difference; `None` where it is exact.
    pub error: Option<f64>,
}

impl Bounds {
    /// A difference that is exact on the sessions that were run.
    pub fn exact(difference: f64, sessions: usize) -> Self {
        Self {
            // A difference of −0 keeps its sign.
            upper: difference,
            interval_upper: difference,
            ..Self::around(difference, (0.0, 0.0), sessions)
        }
    }

    /// Bounds at this distance on either side: of the one-sided bounds, and of the interval.
    fn around(difference: f64, (one, two): (f64, f64), sessions: usize) -> Self {
        Self {
            difference,
            lower: difference - one,
            upper: difference + one,
            interval_lower: difference - two,
            interval_upper: difference + two,
            deviation: None,
            sessions,
            error: None,
        }
    }

    /// A difference with an error over sessions; `None` without one.
    pub fn estimated(estimate: &Estimate) -> Option<Self> {
        let error = estimate.standard_error?;
        let sessions = estimate.n.sessions;
        let freedom = sessions.checked_sub(1)?;
        let one = quantile::t(0.95, freedom)? * error;
        let two = quantile::t(0.975, freedom)? * error;
        Some(Self {
            deviation: Some(error * (sessions as f64).sqrt()),
            error: Some(error),
            ..Self::around(estimate.point_estimate, (one, two), sessions)
        })
    }

    /// Whether the difference is known without an error.
    pub fn is_exact(&self) -> bool {
        self.error.is_none()
    }

    /// The ends of the two-sided interval at the level 1 − α.
    pub fn interval_at(&self, alpha: f64) -> (f64, f64) {
        let reach = match self.error {
            Some(error) if error > 0.0 => {
                let t = quantile::t(1.0 - alpha / 2.0, self.sessions.saturating_sub(1));
                t.map_or(f64::INFINITY, |t| t * error)
            }
            Some(_) | None => 0.0,
        };
        (self.difference - reach, self.difference + reach)
    }

    /// How many sessions like these would show, in 8 of 10 experiments, that nothing is worse by the margin
    /// if nothing had changed; without a margin, how many would show the difference seen. `None` where none
    /// would.
    pub fn sessions_needed(&self, margin: f64) -> Option<usize> {
        let own = self.difference.abs();
        let distance = if margin > 0.0 { margin } else { own };
        power::sessions_needed(self.deviation?, distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_narrows_with_its_level_and_an_exact_difference_has_none() {
        let values = [0.1, 0.2, 0.3, 0.4];
        let estimate = Estimate::of_sessions(&values, 4).unwrap();
        let bounds = Bounds::estimated(&estimate).unwrap();
        let (low, high) = bounds.interval_at(0.05);
        assert!((low - bounds.interval_lower).abs() < 1e-12);
        assert!((high - bounds.interval_upper).abs() < 1e-12);
        assert!(bounds.interval_at(0.01).0 < low && bounds.interval_at(0.2).0 > low);
        assert!(bounds.lower > bounds.interval_lower);
        let exact = Bounds::exact(-0.06, 3);
        assert_eq!(exact.interval_at(0.05), (-0.06, -0.06));
        assert_eq!(exact.sessions_needed(0.05), None);
        let nothing = Bounds {
            difference: 0.0,
            lower: bounds.lower - 0.25,
            upper: bounds.upper - 0.25,
            ..bounds
        };
        let needed = nothing.sessions_needed(0.01).unwrap();
        assert!(needed > 200, "{needed}");
    }
}
