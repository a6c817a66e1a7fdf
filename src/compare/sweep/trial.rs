//! One setting as it was measured, before it is judged.

use std::collections::BTreeMap;

use crate::compare::{Axis, Kind, Sample};
use crate::stats::pareto::Point;
use crate::stats::{Estimate, mean};

/// One setting, before it is judged.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Each knob with its value, in the order of the command line; empty for the default.
    pub values: Vec<(String, String)>,
    /// Its scores on the tune sessions.
    pub sample: Sample,
    /// Whether it is the default, or the default written out.
    pub is_default: bool,
    /// Why it takes part in no ranking.
    pub broken: Option<String>,
    /// Whether a price is known of each session: bills are added in dollars then, else in input tokens.
    is_priced: bool,
}

impl Trial {
    /// A setting with its scores.
    pub fn new(values: Vec<(String, String)>, sample: Sample, is_default: bool) -> Self {
        let mut sessions = sample.sessions.values();
        Self {
            is_priced: sessions.all(|session| session.token_price().is_some()),
            broken: sample.broken(),
            values,
            sample,
            is_default,
        }
    }

    /// Calls it broken if it could not be measured on sessions that the default was measured on: such as a reserve
    /// that leaves nothing of the window.
    pub fn held_against(&mut self, default: &Sample) {
        let sessions = default.sessions.keys();
        let lacks = sessions.filter(|id| !self.sample.sessions.contains_key(*id));
        let (lacks, all) = (lacks.count(), default.sessions.len());
        if lacks > 0 && self.broken.is_none() {
            self.broken = Some(format!("not measurable in {lacks} of {all} sessions"));
        }
    }

    /// The value of an axis on a session: of its probes, or its own; of what is saved the share.
    pub(super) fn value(&self, session: &str, axis: Axis) -> Option<f64> {
        let session = self.sample.sessions.get(session)?;
        if axis.kind() == Kind::Probes {
            return session.score(axis);
        }
        if !axis.is_saved() {
            return mean(session.metrics.get(axis.name())?);
        }
        let (own, full) = session.against_full(axis)?;
        (full > 0.0).then(|| 1.0 - own / full)
    }

    /// The totals of a cluster on an axis that is saved, under the setting and under full history; `None` where
    /// some session has none.
    fn totals(&self, cluster: &[&String], cost: Axis) -> Option<(f64, f64)> {
        cluster.iter().try_fold((0.0, 0.0), |sum, id| {
            let session = self.sample.sessions.get(*id)?;
            let (own, full) = session.against_full(cost)?;
            let known = session.token_price().filter(|_| self.is_priced && cost == Axis::Bill);
            let price = known.unwrap_or(1.0);
            Some((sum.0 + own * price, sum.1 + full * price))
        })
    }

    /// The mean of an axis that is kept over the sessions of a cluster; `None` where none has it.
    pub(super) fn kept(&self, cluster: &[&String], quality: Axis) -> Option<f64> {
        let values = cluster.iter().filter_map(|id| self.value(id, quality));
        mean(&values.collect::<Vec<_>>())
    }

    /// What it saves and keeps, cluster by cluster, such that the mean of what is saved is that of totals; not a
    /// number where it is not known, and of a setting that is broken on any session.
    pub(super) fn objectives(
        &self,
        clusters: &[Vec<&String>],
        [cost, quality]: [Axis; 2],
    ) -> Vec<Point> {
        if self.broken.is_some() {
            return vec![[f64::NAN; 2]; clusters.len()];
        }
        let totals = clusters.iter().filter_map(|own| self.totals(own, cost));
        let full: f64 = totals.map(|(_, full)| full).sum();
        let weight = clusters.len() as f64 / full;
        let points = clusters.iter().map(|own| {
            let saved = self.totals(own, cost).map(|(own, full)| (full - own) * weight);
            [saved, self.kept(own, quality)].map(|value| value.unwrap_or(f64::NAN))
        });
        points.collect()
    }

    /// Whether full history fits the window of a session: doing nothing is a choice there.
    pub(super) fn full_fits(&self, session: &str) -> bool {
        let session = self.sample.sessions.get(session);
        session.is_some_and(|session| session.full.iter().all(|full| full.fits))
    }

    /// The share of the total that it saves against full history.
    pub(super) fn saved(&self, clusters: &[Vec<&String>], cost: Axis) -> Option<Estimate> {
        let totals: Vec<(f64, f64)> =
            clusters.iter().filter_map(|own| self.totals(own, cost)).collect();
        let ratio = Estimate::of_ratio(&totals, totals.len())?;
        let saved = 1.0 - ratio.point_estimate;
        Some(Estimate::with_error(saved, ratio.standard_error, ratio.n))
    }
}

/// These sessions, cluster by cluster: side chains count with their main session.
pub(super) fn in_clusters<'a>(tried: &[Trial], sessions: &[&'a String]) -> Vec<Vec<&'a String>> {
    let mut clusters: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    for session in sessions {
        let known = tried.iter().find_map(|trial| trial.sample.sessions.get(*session));
        let cluster = known.and_then(|known| known.cluster.as_deref());
        let own = clusters.entry(cluster.unwrap_or(session)).or_default();
        own.push(session);
    }
    clusters.into_values().collect()
}

/// Those of the metrics that every setting was measured on, on some session; broken settings count only where
/// all are broken.
pub fn measured(tried: &[Trial], sessions: &[String], axes: &[Axis]) -> Vec<Axis> {
    let mut used: Vec<&Trial> = tried.iter().filter(|trial| trial.broken.is_none()).collect();
    if used.is_empty() {
        used.extend(tried);
    }
    let known = axes.iter().copied().filter(|axis| {
        !tried.is_empty()
            && used.iter().all(|trial| sessions.iter().any(|id| trial.value(id, *axis).is_some()))
    });
    known.collect()
}
