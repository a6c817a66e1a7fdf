//! Inspect writes the scores of each sample into its log: letters, flags or numbers, by scorer.

use super::{Outcome, Problem, only};
use crate::error::ImportError;
use crate::inspect::archive::{self, Documents};
use crate::prelude::*;

pub(super) fn read(mut log: Object<'_>) -> Option<Result<Vec<Outcome>, Problem>> {
    if !(log.has("eval") && log.has("status")) {
        return None;
    }
    let samples = log.items("samples");
    let samples = samples.into_iter().filter_map(Object::read);
    let outcomes: Result<Vec<Option<Outcome>>, Problem> = samples.map(sample).collect();
    Some(outcomes.map(|outcomes| outcomes.into_iter().flatten().collect()))
}

/// Reads the samples of an `.eval` archive.
pub(super) fn read_archive(
    file: &SourceFile,
) -> Result<Result<Vec<Outcome>, Problem>, ImportError> {
    let mut samples = Samples::default();
    archive::read(file, &mut samples)?;
    Ok(match samples.problem {
        Some(problem) => Err(problem),
        None => Ok(samples.outcomes),
    })
}

/// The outcomes of an archive, growing file by file.
#[derive(Default)]
struct Samples {
    outcomes: Vec<Outcome>,
    problem: Option<Problem>,
    source: Source,
}

impl Documents for Samples {
    fn source(&mut self) -> &mut Source {
        &mut self.source
    }

    fn documents(&mut self, documents: &SourceText) -> Result<()> {
        let sample = serde_json::from_str(&documents.text).ok();
        let sample = sample.and_then(Object::read);
        match sample.map_or(Ok(None), self::sample) {
            Ok(outcome) => self.outcomes.extend(outcome),
            Err(problem) => self.problem = self.problem.take().or(Some(problem)),
        }
        Ok(())
    }
}

/// The outcome of a sample; none where it was not scored.
fn sample(mut sample: Object<'_>) -> Result<Option<Outcome>, Problem> {
    // Ids are texts or numbers; epochs count from 1.
    // The header of an archive is no sample.
    let Some(id) = sample.take("id").map(RawValue::get) else {
        return Ok(None);
    };
    let id = serde_json::from_str(id).unwrap_or_else(|_| id.to_owned());
    let epoch: u32 = sample.take_as("epoch").unwrap_or(1);
    let failed = sample.has("error");
    let place = format!(": sample {id:?}, epoch {epoch}");
    let mut scores = Vec::new();
    for (name, score) in sample.inner("scores").into_entries() {
        let value = Object::read(score).and_then(|mut score| score.take("value"));
        let Some(value) = value.and_then(number) else {
            continue;
        };
        scores.push((name.into_owned(), value));
    }
    let score = only(&scores, &place)?.or(failed.then_some(0.0));
    Ok(score.map(|score| Outcome::new(&id, epoch.saturating_sub(1), score, place)))
}

/// A value as a number: `C`orrect, `P`artial, `I`ncorrect or `N`o answer.
fn number(value: &RawValue) -> Option<f64> {
    match value.get() {
        r#""C""# | "true" => Some(1.0),
        r#""P""# => Some(0.5),
        r#""I""# | r#""N""# | "false" => Some(0.0),
        other => other.parse().ok(),
    }
}
