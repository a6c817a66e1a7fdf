//! Whether a judge is fit: the answers whose verdict is known are put to it once in a run, before all
//! others, and an unfit judge is asked no more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::meter::RequestBill;
use crate::bill::Scale;
use crate::model::{CallFailure, Model};
use crate::probe::judge::{self, known_answer};
use crate::record::{LostCall, SentinelRecord};
use crate::tokens::CountedTexts;

/// The judges' results on the known answers of a run, shared by all cells.
#[derive(Debug, Clone, Default)]
pub struct Fitness(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    results: BTreeMap<String, Arc<KnownAnswerResults>>,
    /// Calls for known answers that were paid for and are not kept.
    lost: Vec<LostCall>,
}

/// One judge's results on the known answers.
#[derive(Debug)]
pub struct KnownAnswerResults {
    /// Its verdicts.
    pub records: Vec<SentinelRecord>,
    /// Whether it misses too many of them.
    pub is_unfit: bool,
}

impl Fitness {
    /// Asks the judge, unless it was asked before. The error is the reason why it could not be
    /// asked: any later request meets the same obstacle.
    pub fn of(
        &self,
        judge: &dyn Model,
        counts: &CountedTexts,
    ) -> Result<Arc<KnownAnswerResults>, CallFailure> {
        // Other cells wait: their verdicts depend on it.
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(results) = state.results.get(judge.name()) {
            return Ok(results.clone());
        }
        let mut records = Vec::new();
        let mut is_missing = false;
        for known in known_answer::known_answers() {
            let request = known.request();
            let answered = judge.answer(&request, 0, counts);
            match &answered.answer {
                // It may be deferred, and the others with it.
                Err(CallFailure::NotRecorded) => {
                    is_missing = true;
                    continue;
                }
                Err(failure) if failure.is_of_the_way() => return Err(failure.clone()),
                _ => {}
            }
            let booked = RequestBill::new(&request, &answered, Scale::COUNTED, counts);
            state.lost.extend(booked.lost);
            records.push(SentinelRecord {
                judge: judge.name().to_owned(),
                name: known.name.clone(),
                is_right: known.is_right,
                verdict: known.verdict(judge::read(&answered.answer)),
                usage: booked.usage,
                calls: booked.kept.into_iter().collect(),
            });
        }
        if is_missing {
            return Err(CallFailure::NotRecorded);
        }
        let correct = records
            .iter()
            .map(|record| (record.is_right, record.is_met() == Some(true)));
        let results = Arc::new(KnownAnswerResults {
            is_unfit: known_answer::is_unfit(correct),
            records,
        });
        state
            .results
            .insert(judge.name().to_owned(), results.clone());
        Ok(results)
    }

    /// The calls for known answers that were paid for and are not kept, since the last call of this
    /// method.
    pub fn take_lost(&self) -> Vec<LostCall> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.lost)
    }
}
