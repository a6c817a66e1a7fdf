//! Quantiles: how far out a share of a distribution lies.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::units::index;

/// The value below which `share` of Student's t with `freedom` degrees of freedom lies; `None`
/// without freedom, or for a share outside (0, 1).
pub fn t(share: f64, freedom: usize) -> Option<f64> {
    if freedom == 0 || !(share > 0.0 && share < 1.0) {
        return None;
    }
    let distribution = StudentsT::new(0.0, 1.0, freedom as f64).ok()?;
    Some(distribution.inverse_cdf(share))
}

/// The value below which `share` of the standard normal distribution lies; `None` for a share
/// outside (0, 1).
pub fn normal(share: f64) -> Option<f64> {
    if !(share > 0.0 && share < 1.0) {
        return None;
    }
    Some(Normal::new(0.0, 1.0).ok()?.inverse_cdf(share))
}

/// The quantile of sorted values, linear between two of them (Hyndman and Fan's type 7, the default
/// of R and `NumPy`); `None` without values.
pub fn of_sorted(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share.clamp(0.0, 1.0) * last as f64;
    let low = index(place);
    let high = (low + 1).min(last);
    Some(sorted[low] + (place - low as f64) * (sorted[high] - sorted[low]))
}
