//! Batches: requests that a pass deferred are sent to their providers, and the answers kept in the
//! cassette.
//!
//! A batch is written down in the run's folder before it is sent, and again with its name once its provider has
//! taken it. A run that was killed finds it there, asks the provider whether it took one without a name, and
//! waits for its answers instead of sending it twice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Plan;
use crate::model::api::Sending;
use crate::model::cassette::{Cassette, Deferred};
use crate::model::http::LiveModel;
use crate::model::http::batch::{BatchAnswer, BatchError, BatchRequest};
use crate::model::spending::Spending;
use crate::model::{CallFailure, Model as _};
use crate::record::journal::{BATCHES, JournalError, append_lines, read_lines};
use crate::stop::StopToken;
use crate::tokens::{CharsPer4, CountedTexts};
use crate::units::{ContentHash, Tokens, Usage, Usd, many};

/// Requests of a batch at most: far below what either provider takes.
const MOST_REQUESTS: usize = 10_000;

/// Bytes of a batch at most: providers take 200 and 256 megabytes.
const MOST_BYTES: usize = 90_000_000;

/// The first pause before a batch is asked about again; doubled each time up to the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

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
    /// A run ended while it sent a batch, and the provider does not say whether it took it.
    #[error(
        "a batch of {requests} requests to `{model}` may have been sent before this run was ended, and its \
         provider does not say whether it took it"
    )]
    MaybeSent {
        /// The model that is asked.
        model: String,
        /// How many requests it has.
        requests: usize,
        /// Why it does not say so.
        #[source]
        cause: BatchError,
    },
    /// The file that says which batches were sent cannot be used.
    #[error(transparent)]
    File(#[from] JournalError),
}

/// A batch as it is written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SentBatch {
    /// A hash of its keys. Of lines with the same label the last one counts.
    label: String,
    /// Its name at the provider; none until the provider has taken it.
    id: Option<String>,
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
        stop: &StopToken,
        say: &dyn Fn(&str),
    ) -> Result<BatchWait, BatchFailure> {
        let Some((models, cassette)) =
            self.models().and_then(|models| Some((models, models.cassette.as_ref()?)))
        else {
            return Ok(BatchWait::Answered);
        };
        let path = folder.join(BATCHES);
        let deferred = cassette.deferred();
        let lines: Vec<SentBatch> = read_lines(&path)?;
        let mut names: BTreeSet<String> = lines.iter().filter_map(|sent| sent.id.clone()).collect();
        // The last line of a batch counts: one that is gone is written once more, without keys.
        let known: BTreeMap<String, SentBatch> =
            lines.into_iter().map(|sent| (sent.label.clone(), sent)).collect();
        let wanted =
            known.values().filter(|sent| sent.keys.iter().any(|key| deferred.contains_key(key)));
        let mut open = Vec::new();
        for mut sent in wanted.cloned() {
            if sent.id.is_none() {
                let Some(live) = asked_by(&models.servers.live, &sent) else {
                    continue;
                };
                let found = models.servers.until(&|| stop.is_requested(), || {
                    live.find_batch(&sent.label, sent.keys.len(), &|id: &str| names.contains(id))
                });
                if stop.is_requested() {
                    return Ok(BatchWait::Stopped);
                }
                sent.id = found.map_err(|cause| BatchFailure::MaybeSent {
                    model: sent.model.clone(),
                    requests: sent.keys.len(),
                    cause,
                })?;
                let Some(id) = &sent.id else {
                    continue;
                };
                names.insert(id.clone());
                write(&path, &sent)?;
            }
            let id = sent.id.as_deref().unwrap_or_default();
            say(&format!("waiting for batch {id} that was sent before"));
            open.push(sent);
        }
        let mut taken: BTreeSet<String> = open.iter().flat_map(|sent| sent.keys.clone()).collect();
        for live in &models.servers.live {
            let own: Vec<(&String, &Deferred)> = deferred
                .iter()
                .filter(|(key, one)| one.dialect == *live.dialect() && !taken.contains(*key))
                .collect();
            for part in parts(&own) {
                let mut sent = SentBatch::of(live, part);
                if known.get(&sent.label) != Some(&sent) {
                    write(&path, &sent)?;
                }
                let submitted = submit(live, &sent.label, part);
                // The provider has no batch that it refused: the next run does not look for it.
                if let Err(BatchFailure::Provider {
                    cause: BatchError::Refused(_) | BatchError::Gone,
                    ..
                }) = &submitted
                {
                    let keys = Vec::new();
                    write(&path, &SentBatch { keys, ..sent.clone() })?;
                }
                let id = submitted?;
                say(&format!("sent batch {id}: {} requests to {}", sent.keys.len(), sent.model));
                sent.id = Some(id);
                write(&path, &sent)?;
                open.push(sent);
            }
            taken.extend(own.into_iter().map(|(key, _)| key.clone()));
        }
        let mut pause = PAUSE;
        loop {
            let mut under_way = Vec::new();
            for sent in open {
                let (Some(live), Some(id)) = (asked_by(&models.servers.live, &sent), &sent.id)
                else {
                    continue;
                };
                let servers = &models.servers;
                let asked = servers.until(&|| stop.is_requested(), || live.batch(id));
                match asked {
                    Err(_) if stop.is_requested() => return Ok(BatchWait::Stopped),
                    Ok(None) => under_way.push(sent),
                    // As many requests as ours, but another's: the next pass looks for another.
                    Ok(Some(answers)) if !answers.is_empty() && !sent.has_any(&answers) => {
                        say(&format!("batch {id} belongs to another run"));
                        write(&path, &SentBatch { id: None, ..sent })?;
                    }
                    Ok(Some(answers)) => {
                        let share = self.prices.of(&sent.model).and_then(|(list, _)| list.batch);
                        let rest = keep(cassette, &sent, answers, &models.spending, share);
                        let count = sent.keys.len();
                        say(&format!("batch {id} is answered: {} of {count}", count - rest.len()));
                        if !rest.is_empty() {
                            say(&one_by_one(&sent.model, &rest, &deferred, &models.spending));
                        }
                    }
                    // Its requests are deferred again by the next pass, and sent in another batch.
                    Err(BatchError::Gone) => {
                        say(&format!("batch {id} is gone: it is sent again"));
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
            if !stop.sleep(pause) {
                return Ok(BatchWait::Stopped);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Keeps the answers of a batch. Returns the keys of the requests without one, which the next pass asks of the model
/// itself.
fn keep<'s>(
    cassette: &Cassette,
    sent: &'s SentBatch,
    answers: Vec<BatchAnswer>,
    spending: &Spending,
    share: Option<u32>,
) -> BTreeSet<&'s str> {
    let counts = CountedTexts::new(Arc::new(CharsPer4));
    let mut rest: BTreeSet<&str> = sent.keys.iter().map(String::as_str).collect();
    for (key, answer) in answers {
        if let Some(response) = cassette.answer_deferred(&key, answer, &counts, spending) {
            spending.paid_in_batch(&sent.model, &response.usage, share);
            rest.remove(&*key);
        }
    }
    for key in &rest {
        cassette.answer_deferred(key, Err(CallFailure::NoAnswer), &counts, spending);
    }
    rest
}

/// Says that these requests are asked one by one, and what that costs at most: a token is four bytes of a request.
fn one_by_one(
    model: &str,
    keys: &BTreeSet<&str>,
    deferred: &BTreeMap<String, Deferred>,
    spending: &Spending,
) -> String {
    let asked = keys.iter().filter_map(|key| deferred.get(*key));
    // Each by itself: a long prompt has another price.
    let costs = asked.map(|one| {
        let prompt = Tokens(one.dialect.body(&one.request).len() as u64 / 4);
        spending.cost(model, &Usage::uncached(prompt, one.request.max_output))
    });
    let cost: Option<Usd> = costs.sum();
    let cost =
        cost.map_or("a price that is not known".to_owned(), |cost| format!("about {cost} at most"));
    let requests = many(keys.len(), "request", "requests");
    format!("{requests} without an answer: asked one by one, for {cost}")
}

impl SentBatch {
    /// One that is about to be sent.
    fn of(live: &LiveModel, part: &[(&String, &Deferred)]) -> Self {
        let keys: Vec<String> = part.iter().map(|(key, _)| (*key).clone()).collect();
        let label = ContentHash::of_parts(keys.iter().map(String::as_bytes));
        Self {
            label: label.hex(32),
            id: None,
            provider: live.dialect().provider.name().to_owned(),
            model: live.dialect().model.clone(),
            keys,
        }
    }

    /// Whether any of the answers is to one of its requests.
    fn has_any(&self, answers: &[BatchAnswer]) -> bool {
        answers.iter().map(|(name, _)| name).any(|name| self.keys.contains(name))
    }
}

/// The model that a batch is sent to.
fn asked_by<'l>(all: &'l [Arc<LiveModel>], sent: &SentBatch) -> Option<&'l Arc<LiveModel>> {
    all.iter().find(|live| {
        let dialect = live.dialect();
        dialect.model == sent.model && dialect.provider.name() == sent.provider
    })
}

fn submit(
    live: &LiveModel,
    label: &str,
    part: &[(&String, &Deferred)],
) -> Result<String, BatchFailure> {
    let requests = part.iter().map(|(key, one)| BatchRequest {
        name: (*key).clone(),
        body: one.dialect.body_sent(&one.request, Sending::InBatch),
    });
    live.submit(label, &requests.collect::<Vec<BatchRequest>>())
        .map_err(|cause| failed(live, cause))
}

fn failed(live: &LiveModel, cause: BatchError) -> BatchFailure {
    BatchFailure::Provider { model: live.name().to_owned(), cause }
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

/// Notes a batch before it is waited for: it must not be sent twice.
fn write(path: &Path, sent: &SentBatch) -> Result<(), JournalError> {
    append_lines(path, std::slice::from_ref(sent))
}
