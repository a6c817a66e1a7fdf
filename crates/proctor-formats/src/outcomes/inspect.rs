//! Inspect writes the scores of each sample into its log: letters, flags or numbers, by scorer.

use super::{Problem, TrialOutcome, only};
use crate::error::ImportError;
use crate::inspect::archive;
use crate::prelude::*;

pub(super) fn read(mut log: Object<'_>) -> Option<Result<Vec<TrialOutcome>, Problem>> {
    if !(log.has("eval") && log.has("status")) {
        return None;
    }
    let samples = log.items("samples").into_iter().filter_map(Object::read);
    Some(samples.map(sample_of).filter_map(Result::transpose).collect())
}

/// Reads the samples of an `.eval` archive.
pub(super) fn read_archive(
    file: &SourceFile,
) -> Result<Result<Vec<TrialOutcome>, Problem>, ImportError> {
    let mut outcomes = Vec::new();
    archive::read(file, &mut Source::default(), |document, _| {
        outcomes.push(match serde_json::from_str(&document.text) {
            Ok(sample) => Object::read(sample).map_or(Ok(None), sample_of),
            Err(error) => Err((": a file in it".to_owned(), error.to_string())),
        });
        Ok(())
    })?;
    Ok(outcomes.into_iter().filter_map(Result::transpose).collect())
}

/// The outcome of a sample; none where it was neither scored nor failed.
fn sample_of(mut sample: Object<'_>) -> Result<Option<TrialOutcome>, Problem> {
    // Ids are texts or numbers; epochs count from 1.
    // The header of an archive is no sample.
    let Some(id) = sample.take("id").map(RawValue::get) else {
        return Ok(None);
    };
    let id = serde_json::from_str(id).unwrap_or_else(|_| id.to_owned());
    let epoch: u32 = sample.take_as("epoch").unwrap_or(1);
    let failed = sample.take("error").map(|error| {
        let message = Object::read(error).and_then(|mut error| error.take_text("message"));
        message.map_or_else(|| "it failed".to_owned(), |message| message.to_string())
    });
    let place = format!(": sample {id:?}, epoch {epoch}");
    let scores = sample.inner("scores").into_entries();
    let scores = scores
        .filter_map(|(name, score)| Some((name.into_owned(), Object::read(score)?.take("value")?)));
    let (agreed, unread) = only(&scores.collect::<Vec<(String, &RawValue)>>(), &place)?;
    let score = agreed.or(failed.map(Err));
    Ok(score.map(|score| TrialOutcome {
        unread,
        ..TrialOutcome::new(&id, epoch.saturating_sub(1), score, place)
    }))
}
