//! Bencher Metric Format: the candidate's levels, for a service that follows them over time.

use serde_json::{Map, Value, json};

use super::{Versed, Versus};
use crate::compare::{Kind, MetricDifference};
use crate::stats::paired::PairedDifference;

/// `{ strategy: { metric: { value, lower_value, upper_value } } }`: a level with the interval of its
/// difference around it, where it has one. A strategy that is compared more than once is named with its
/// sources, `run::strategy (baseline)`.
pub fn render(versus: &Versus) -> String {
    let mut strategies = Map::new();
    for one in &versus.comparisons {
        let candidate = &one.comparison.candidate;
        let same = |other: &&Versed| other.comparison.candidate == *candidate;
        let name = if versus.comparisons.iter().filter(same).count() > 1 {
            format!(
                "{}::{candidate} ({})",
                one.candidate_source, one.baseline_source
            )
        } else {
            candidate.clone()
        };
        let measures: Map<String, Value> = one
            .comparison
            .metrics
            .iter()
            .map(|metric| (metric.metric.to_owned(), measure(metric)))
            .collect();
        strategies.insert(name, Value::Object(measures));
    }
    format!("{:#}\n", Value::Object(strategies))
}

fn measure(metric: &MetricDifference) -> Value {
    let PairedDifference { by_session, .. } = &metric.paired;
    let exact = metric
        .bounds
        .is_some_and(|bounds| bounds.deviation.is_none());
    match by_session.confidence_interval {
        Some(interval) if !exact && metric.kind != Kind::Amount => json!({
            "value": metric.candidate,
            "lower_value": metric.baseline + interval.lower_bound,
            "upper_value": metric.baseline + interval.upper_bound,
        }),
        _ => json!({ "value": metric.candidate }),
    }
}
