//! Batches: requests that a pass deferred are sent to their providers, and the answers kept in the
//! cassette.
//!
//! A batch is written down in the run's folder as soon as its provider has taken it. A run that was
//! killed finds it there, and waits for its answers instead of sending it twice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Plan;
use crate::model::cassette::{Cassette, Deferred};
use crate::model::http::Live;
use crate::model::http::batch::{Batch, BatchError, BatchRequest};
use crate::model::{CallFailure, Model as _, Response};
use crate::record::journal::{JournalError, append_lines, read_lines};
use crate::tokens::{CharsPer4, CountedTexts};
use crate::units::Usage;

/// The file in the run's folder that says which batches were sent.
const FILE: &str = "batches.jsonl";

/// Requests of a batch at most: far below what either provider takes.
const MOST_REQUESTS: usize = 10_000;

/// Bytes of a batch at most: providers take 200 and 256 megabytes.
const MOST_BYTES: usize = 90_000_000;

/// The first pause before a batch is asked about again; doubled each time up to the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// How often a wait checks whether to stop.
const GLANCE: Duration = Duration::from_millis(100);

/// How waiting for batches ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchWait {
    /// All are answered.
    Answered,
    /// It was stopped; the batches go on at their providers.
    Stopped,
}

/// Why batches were not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchFailure {
    /// The provider did not take the batch, or does not give its answers.
    #[error("a batch for `{model}` failed")]
    Provider {
        /// The model that is asked.
        model: String,
        /// Why.
        #[source]
        cause: BatchError,
    },
    /// The file that says which batches were sent cannot be used.
    #[error(transparent)]
    File(#[from] JournalError),
}

/// A batch that was sent, as it is written down.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SentBatch {
    /// Its name at the provider.
    id: String,
    provider: String,
    model: String,
    /// The keys of its requests in the cassette.
    keys: Vec<String>,
}

impl Plan {
    /// Sends all deferred requests in batches and keeps the answers. `say` reports the batches that
    /// are sent and awaited.
    pub fn ask_in_batches(
        &self,
        folder: &Path,
        stop: &AtomicBool,
        say: &dyn Fn(&str),
    ) -> Result<BatchWait, BatchFailure> {
        let Some((models, cassette)) = self
            .models()
            .and_then(|it| Some((it, it.cassette.as_ref()?)))
        else {
            return Ok(BatchWait::Answered);
        };
        let path = folder.join(FILE);
        let deferred = cassette.deferred();
        // The last line of a batch counts: one that is gone is written once more, without keys.
        let known = read_lines(&path)?.into_iter();
        let known: BTreeMap<String, SentBatch> = known
            .map(|sent: SentBatch| (sent.id.clone(), sent))
            .collect();
        let is_wanted = |sent: &SentBatch| sent.keys.iter().any(|key| deferred.contains_key(key));
        let mut open: Vec<SentBatch> = known.into_values().filter(is_wanted).collect();
        for sent in &open {
            say(&format!(
                "waiting for batch {} that was sent before",
                sent.id
            ));
        }
        let mut taken: BTreeSet<String> = open.iter().flat_map(|it| it.keys.clone()).collect();
        for live in &models.servers.live {
            let is_own = |(key, one): &(&String, &Deferred)| {
                one.dialect == *live.dialect() && !taken.contains(*key)
            };
            let own: Vec<(&String, &Deferred)> = deferred.iter().filter(is_own).collect();
            for part in parts(&own) {
                let sent = submit(live, part)?;
                write(&path, &sent)?;
                say(&format!(
                    "sent batch {}: {} requests to {}",
                    sent.id,
                    sent.keys.len(),
                    sent.model
                ));
                open.push(sent);
            }
            taken.extend(own.into_iter().map(|(key, _)| key.clone()));
        }
        let mut pause = PAUSE;
        loop {
            let mut under_way = Vec::new();
            for sent in open {
                let is_own = |live: &&Arc<Live>| {
                    let dialect = live.dialect();
                    dialect.model == sent.model && dialect.provider.name() == sent.provider
                };
                let Some(live) = models.servers.live.iter().find(is_own) else {
                    continue;
                };
                let is_over = || stop.load(Ordering::Relaxed);
                let asked = models.servers.until(&is_over, || live.batch(&sent.id));
                match asked {
                    Err(_) if is_over() => return Ok(BatchWait::Stopped),
                    Ok(Batch::UnderWay) => under_way.push(sent),
                    Ok(Batch::Ended(answers)) => {
                        let share = self.prices.of(&sent.model).and_then(|(list, _)| list.batch);
                        let paid = |usage: &Usage| {
                            models.spending.paid_in_batch(&sent.model, usage, share);
                        };
                        let kept = keep(cassette, &sent, answers, &paid);
                        say(&format!(
                            "batch {} is answered: {kept} of {}",
                            sent.id,
                            sent.keys.len()
                        ));
                    }
                    // Its requests are deferred again by the next pass, and sent in another batch.
                    Err(BatchError::Gone) => {
                        say(&format!("batch {} is gone: it is sent again", sent.id));
                        let keys = Vec::new();
                        write(&path, &SentBatch { keys, ..sent })?;
                    }
                    Err(cause) => return Err(failed(live, cause)),
                }
            }
            open = under_way;
            if open.is_empty() {
                return Ok(BatchWait::Answered);
            }
            if !waited(pause, stop) {
                return Ok(BatchWait::Stopped);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Keeps the answers of a batch; what it brought no answer to is asked of the model itself. Returns
/// how many there are.
fn keep(
    cassette: &Cassette,
    sent: &SentBatch,
    answers: Vec<(String, Result<Response, CallFailure>)>,
    paid: &dyn Fn(&Usage),
) -> usize {
    let counts = CountedTexts::new(Arc::new(CharsPer4));
    let mut kept = 0;
    for (key, answer) in answers {
        if let Some(response) = cassette.answer_deferred(&key, answer, &counts) {
            paid(&response.usage);
            kept += 1;
        }
    }
    for key in &sent.keys {
        cassette.answer_deferred(key, Err(CallFailure::NoAnswer), &counts);
    }
    kept
}

fn submit(live: &Live, part: &[(&String, &Deferred)]) -> Result<SentBatch, BatchFailure> {
    let requests: Vec<BatchRequest> = part
        .iter()
        .map(|(key, one)| BatchRequest {
            name: (*key).clone(),
            body: one.dialect.body(&one.request),
        })
        .collect();
    let id = live
        .submit(&requests)
        .map_err(|cause| failed(live, cause))?;
    Ok(SentBatch {
        id,
        provider: live.dialect().provider.name().to_owned(),
        model: live.dialect().model.clone(),
        keys: requests.into_iter().map(|request| request.name).collect(),
    })
}

fn failed(live: &Live, cause: BatchError) -> BatchFailure {
    BatchFailure::Provider {
        model: live.name().to_owned(),
        cause,
    }
}

/// Requests in parts that a provider takes at once.
fn parts<'d>(all: &'d [(&'d String, &'d Deferred)]) -> Vec<&'d [(&'d String, &'d Deferred)]> {
    let mut parts = Vec::new();
    let (mut first, mut bytes) = (0, 0);
    for (at, (_, one)) in all.iter().enumerate() {
        let size = one.dialect.body(&one.request).len();
        if at > first && (at - first >= MOST_REQUESTS || bytes + size > MOST_BYTES) {
            parts.push(&all[first..at]);
            (first, bytes) = (at, 0);
        }
        bytes += size;
    }
    if first < all.len() {
        parts.push(&all[first..]);
    }
    parts
}

/// Waits, and says whether to go on.
fn waited(pause: Duration, stop: &AtomicBool) -> bool {
    let mut left = pause;
    while !stop.load(Ordering::Relaxed) {
        if left.is_zero() {
            return true;
        }
        let now = left.min(GLANCE);
        std::thread::sleep(now);
        left -= now;
    }
    false
}

/// Notes a batch before it is waited for: it must not be sent twice.
fn write(path: &Path, sent: &SentBatch) -> Result<(), JournalError> {
    append_lines(path, std::slice::from_ref(sent))
}
