//! Whether a judge is fit: the answers whose verdict is known are put to it once in a run, before all
//! others, and an unfit judge is asked no more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::model::{CallFailure, Model, Purpose, bill};
use crate::probe::judge::{self, sentinel};
use crate::record::{KeptCall, LostCall, SentinelRecord};
use crate::tokens::CountedTexts;
use crate::units::Tokens;

/// What the judges of a run made of the sentinels; shared by all cells.
#[derive(Debug, Clone, Default)]
pub struct Fitness(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    met: BTreeMap<String, Arc<Met>>,
    /// What was paid for them and is kept nowhere.
    lost: Vec<LostCall>,
}

/// What one judge made of the sentinels.
#[derive(Debug)]
pub(super) struct Met {
    pub(super) records: Vec<SentinelRecord>,
    /// Whether it misses too many of them.
    pub(super) is_unfit: bool,
}

impl Fitness {
    /// Asks the judge, unless it was asked before. Nothing where it could not be asked: whatever it is
    /// asked next meets the same obstacle.
    pub(super) fn of(&self, judge: &dyn Model, counts: &CountedTexts) -> Option<Arc<Met>> {
        // Other cells wait: their verdicts depend on it.
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(met) = state.met.get(judge.name()) {
            return Some(met.clone());
        }
        let mut records = Vec::new();
        let mut lost = Vec::new();
        let mut is_missing = false;
        for sentinel in sentinel::sentinels() {
            let request = sentinel.request();
            let answered = judge.answer(&request, 0, counts);
            match &answered.answer {
                // It may be deferred, and the others with it.
                Err(CallFailure::NotRecorded) => {
                    is_missing = true;
                    continue;
                }
                Err(failure) if failure.is_of_the_way() => {
                    state.lost.extend(lost);
                    return None;
                }
                _ => {}
            }
            let attempts = answered.failed.iter().map(|failure| LostCall {
                purpose: Purpose::Judge,
                usage: bill::failed(&request, failure, counts),
                failure: Some(failure.to_string()),
            });
            lost.extend(attempts.filter(|call| call.usage.total() > Tokens::ZERO));
            let usage = match (&answered.paid, &answered.answer) {
                (Some(paid), _) => paid.usage,
                (None, Ok(response)) => bill::answered(&request, response, counts),
                (None, Err(failure)) => bill::failed(&request, failure, counts),
            };
            if answered.paid.is_some_and(|paid| !paid.is_kept) {
                lost.push(LostCall {
                    purpose: Purpose::Judge,
                    usage,
                    failure: None,
                });
            }
            let key = answered.key.map(|key| key.hex(KeptCall::DIGITS));
            records.push(SentinelRecord {
                judge: judge.name().to_owned(),
                name: sentinel.name.clone(),
                is_right: sentinel.is_right,
                verdict: sentinel.verdict(judge::read(&answered.answer)),
                usage,
                calls: key
                    .map(|key| KeptCall {
                        key,
                        purpose: Purpose::Judge,
                        usage,
                    })
                    .into_iter()
                    .collect(),
            });
        }
        if is_missing {
            state.lost.extend(lost);
            return None;
        }
        let met = records
            .iter()
            .map(|record| (record.is_right, record.is_met() == Some(true)));
        let met = Arc::new(Met {
            is_unfit: sentinel::is_unfit(met),
            records,
        });
        state.lost.extend(lost);
        state.met.insert(judge.name().to_owned(), met.clone());
        Some(met)
    }

    /// What was paid for sentinels and is kept nowhere, since this was last asked.
    pub(super) fn take_lost(&self) -> Vec<LostCall> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.lost)
    }
}
