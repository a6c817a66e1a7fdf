//! Baselines: what a run scored, as a file that is made for git.
//!
//! A baseline is canonical JSON: sorted keys, no time, no path, one line per probe item. Two runs of
//! the same thing give the same bytes, and a probe that changed is one changed line.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::source::Conditions;
use super::{Chance, Comparison, Sample, SessionSample, Settings, Source, canonical};
use crate::record::schema_of;
use crate::stats::gate::Target;

/// The value of `format`.
pub const FORMAT: &str = "proctor-baseline";

/// Version of the format.
///
/// 1: the first.
pub const VERSION: u32 = 1;

/// The file.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Always `proctor-baseline`.
    pub format: String,
    /// [`VERSION`] of the build that wrote it.
    pub version: u32,
    /// What was measured, by whom.
    pub conditions: Conditions,
    /// The sessions with the hash of their content.
    pub sessions: BTreeMap<String, String>,
    /// The hash of what is asked of each session, where it is known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub probes: BTreeMap<String, String>,
    /// Names of the strategies, in the order of the run.
    pub order: Vec<String>,
    /// The strategies, by name.
    pub strategies: BTreeMap<String, Stored>,
    /// How far two runs of the same thing lie apart, by strategy and metric, of amounts as the logarithm of
    /// their ratio; empty where nothing depends on chance.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub noise: BTreeMap<String, BTreeMap<String, f64>>,
}

/// A strategy in a baseline.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// Hash of the whole strategy as TOML.
    pub definition: String,
    /// Its sessions, by id.
    pub sessions: BTreeMap<String, SessionSample>,
}

/// Why a file is no baseline that can be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BaselineError {
    /// It is not JSON of this shape.
    #[error("not a baseline")]
    Json(#[source] serde_json::Error),
    /// It says that it is something else.
    #[error("`format` is `{0}`, not `{FORMAT}`")]
    Format(String),
    /// It was written by a newer Proctor.
    #[error("it has format version {0}, and this build reads up to {VERSION}: use a newer proctor")]
    Newer(u32),
}

/// A JSON Schema (draft 2020-12) of the file.
pub fn schema() -> serde_json::Value {
    schema_of::<Baseline>()
}

impl Baseline {
    /// What a run scored. `again` is a second run of the same, from which the noise is taken; without
    /// one it is taken from the repeats, where there are any.
    pub fn of(source: &Source, again: Option<&Source>) -> Self {
        let strategies = source.strategies.iter();
        let stored = |sample: &Sample| {
            let (definition, sessions) = (sample.definition.clone(), sample.sessions.clone());
            let stored = Stored {
                definition,
                sessions,
            };
            (sample.strategy.clone(), stored)
        };
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            conditions: source.conditions.clone(),
            sessions: source.sessions.clone(),
            probes: source.probes.clone(),
            order: strategies.clone().map(|s| s.strategy.clone()).collect(),
            strategies: strategies.map(stored).collect(),
            noise: noise(source, again),
        }
    }

    /// Reads a file.
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        let value: serde_json::Value = serde_json::from_str(text).map_err(BaselineError::Json)?;
        let format = value.get("format").and_then(serde_json::Value::as_str);
        if format != Some(FORMAT) {
            return Err(BaselineError::Format(format.unwrap_or("").to_owned()));
        }
        let version = value.get("version").and_then(serde_json::Value::as_u64);
        match version.and_then(|version| u32::try_from(version).ok()) {
            Some(version) if version > VERSION => Err(BaselineError::Newer(version)),
            _ => serde_json::from_value(value).map_err(BaselineError::Json),
        }
    }

    /// The file's text.
    pub fn to_text(&self) -> Result<String, BaselineError> {
        let value = serde_json::to_value(self).map_err(BaselineError::Json)?;
        // strategies / NAME / sessions / ID / probes / ITEM: an item takes one line.
        Ok(canonical::write(&value, &|path| {
            path.len() >= 6 || matches!(path, ["conditions", "prices", _])
        }))
    }

    /// The same as a source of samples.
    pub fn source(&self) -> Source {
        let sample = |name: &String| {
            let stored = self.strategies.get(name)?;
            Some(Sample {
                strategy: name.clone(),
                definition: stored.definition.clone(),
                sessions: stored.sessions.clone(),
            })
        };
        Source {
            conditions: self.conditions.clone(),
            sessions: self.sessions.clone(),
            probes: self.probes.clone(),
            strategies: self.order.iter().filter_map(sample).collect(),
        }
    }

    /// The noise of a metric of a strategy; 0 where none was measured.
    pub fn noise_of(&self, strategy: &str, metric: &str) -> f64 {
        let noise = self
            .noise
            .get(strategy)
            .and_then(|metrics| metrics.get(metric));
        noise.copied().unwrap_or(0.0)
    }
}

/// The end of the interval farther from zero, of the difference between two runs of the same.
fn noise(source: &Source, again: Option<&Source>) -> BTreeMap<String, BTreeMap<String, f64>> {
    let mut noise = BTreeMap::new();
    for sample in &source.strategies {
        let halves = match again {
            Some(again) => {
                let other = again.strategy(&sample.strategy);
                other.map(|other| (sample.clone(), other.clone()))
            }
            None => halves(sample),
        };
        let Some((first, second)) = halves else {
            continue;
        };
        let settings = Settings {
            target: Target::Population,
            chance: Chance::Everywhere,
            seed: 1,
        };
        let found: BTreeMap<String, f64> = Comparison::of(&first, &second, settings)
            .metrics
            .iter()
            .filter_map(|metric| {
                // On the scale of the bounds that it is held against: of amounts the logarithm.
                let bounds = metric.bounds?;
                let far = bounds.interval_lower.abs().max(bounds.interval_upper.abs());
                (far > 0.0).then(|| (metric.metric.to_owned(), far))
            })
            .collect();
        if !found.is_empty() {
            noise.insert(sample.strategy.clone(), found);
        }
    }
    noise
}

/// Even and odd repeats apart; nothing where some value has only one.
fn halves(sample: &Sample) -> Option<(Sample, Sample)> {
    let pick = |values: &[f64], odd: usize| -> Vec<f64> {
        values.iter().copied().skip(odd).step_by(2).collect()
    };
    let half = |odd: usize| -> Option<Sample> {
        let mut half = sample.clone();
        for session in half.sessions.values_mut() {
            for values in session.metrics.values_mut() {
                *values = pick(values, odd);
                if values.is_empty() {
                    return None;
                }
            }
            for probe in session.probes.values_mut() {
                for scores in [&mut probe.survival, &mut probe.extract, &mut probe.accuracy] {
                    *scores = pick(scores, odd);
                }
            }
        }
        Some(half)
    };
    Some((half(0)?, half(1)?))
}
