//! Which task a judge is fit for: the answers whose verdict is known are put to it once in a run, before
//! all others, and a judge that is fit for none is asked no more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::meter::RequestBill;
use crate::bill::Scale;
use crate::model::{CallFailure, Model, Reply};
use crate::probe::judge::known_answer::{KnownAnswer, known_answers};
use crate::probe::judge::{JudgeTask, narrow_prompt_id};
use crate::probe::{GradeVerdict, Unscored};
use crate::record::verdicts::fit_task;
use crate::record::{LostCall, SentinelRecord};
use crate::tokens::CountedTexts;
use crate::units::Usage;

/// The judges' results on the known answers of a run, shared by all cells.
#[derive(Debug, Clone, Default)]
pub struct Fitness(Arc<Mutex<FitnessState>>);

#[derive(Debug, Default)]
struct FitnessState {
    results: BTreeMap<String, Arc<KnownAnswerResults>>,
    /// Calls for known answers that were paid for and are not kept.
    lost: Vec<LostCall>,
}

/// One judge's results on the known answers.
#[derive(Debug)]
pub struct KnownAnswerResults {
    /// Its verdicts: those of the narrow task only where it is unfit for the wide one.
    pub records: Vec<SentinelRecord>,
    /// The task that it is given; `None` if it is unfit for both.
    pub task: Option<JudgeTask>,
}

/// After so many replies that are no verdict a judge is asked no more about this task.
const MOST_UNREADABLE: usize = 3;

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
        let mut records = state.put(JudgeTask::Wide, judge, counts)?;
        if fit_task(&records).is_none() {
            records.extend(state.put(JudgeTask::Narrow, judge, counts)?);
        }
        let task = fit_task(&records);
        let results = Arc::new(KnownAnswerResults { records, task });
        let name = judge.name().to_owned();
        state.results.insert(name, results.clone());
        Ok(results)
    }

    /// The calls for known answers that were paid for and are not kept, since the last call of this
    /// method.
    pub fn take_lost(&self) -> Vec<LostCall> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.lost)
    }

    /// Gives back what a trial took of [`Self::take_lost`]: the run books it.
    pub fn give_lost(&self, lost: impl IntoIterator<Item = LostCall>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.lost.extend(lost);
    }
}

impl FitnessState {
    /// Puts the known answers of a task to a judge, as many at once as it takes.
    fn put(
        &mut self,
        task: JudgeTask,
        judge: &dyn Model,
        counts: &CountedTexts,
    ) -> Result<Vec<SentinelRecord>, CallFailure> {
        let narrow = (task == JudgeTask::Narrow).then(narrow_prompt_id);
        let known = known_answers(task);
        let mut records = Vec::new();
        let mut failure = None;
        let mut unreadable = 0;
        for together in known.chunks(judge.at_once().max(1)) {
            let replies = if unreadable < MOST_UNREADABLE {
                ask_together(judge, together, counts)
            } else {
                vec![None; together.len()]
            };
            for (known, reply) in together.iter().zip(replies) {
                // One that is not asked any more is not met.
                let mut record = SentinelRecord {
                    judge: judge.name().to_owned(),
                    name: known.name.clone(),
                    is_right: known.is_right,
                    narrow: narrow.clone(),
                    verdict: GradeVerdict::unscored(Unscored::JudgeUnfit),
                    usage: Usage::default(),
                    calls: Vec::new(),
                };
                if let Some(reply) = reply {
                    let booked = RequestBill::new(&known.request(), &reply, Scale::COUNTED, counts);
                    self.lost.extend(booked.lost);
                    // However many were under way by then.
                    if unreadable < MOST_UNREADABLE {
                        record.verdict = known.verdict(task.read(&reply.answer));
                    }
                    record.usage = booked.usage;
                    record.calls.extend(booked.kept);
                    let unparsable = GradeVerdict::unscored(Unscored::Unparsable);
                    unreadable += usize::from(record.verdict == unparsable);
                    // A judge that failed so was not heard at all.
                    let unheard = reply.answer.err().filter(|failure| {
                        *failure == CallFailure::NotRecorded || failure.is_of_the_way()
                    });
                    failure = failure.or(unheard);
                }
                records.push(record);
            }
            // Where one is deferred, the others are deferred with it.
            if failure.as_ref().is_some_and(CallFailure::is_of_the_way) {
                break;
            }
        }
        failure.map_or(Ok(records), Err)
    }
}

/// The judge's replies, in the order of what is asked.
fn ask_together(
    judge: &dyn Model,
    known: &[KnownAnswer],
    counts: &CountedTexts,
) -> Vec<Option<Reply>> {
    let replies: Vec<OnceLock<Reply>> = known.iter().map(|_| OnceLock::new()).collect();
    std::thread::scope(|scope| {
        for (known, reply) in known.iter().zip(&replies) {
            scope.spawn(move || {
                judge.in_slot(&mut || drop(reply.set(judge.answer(&known.request(), 0, counts))));
            });
        }
    });
    replies.into_iter().map(OnceLock::into_inner).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::model::scripted::response;
    use crate::model::{ModelKind, Reply, Request};
    use crate::tokens::CharsPer4;

    /// A judge that answers when as many requests are under way as it takes.
    #[derive(Debug)]
    struct Together {
        barrier: Barrier,
        at_once: usize,
        asked: AtomicUsize,
        text: &'static str,
    }

    impl Model for Together {
        fn name(&self) -> &'static str {
            "together"
        }

        fn kind(&self) -> ModelKind {
            ModelKind::Live
        }

        fn at_once(&self) -> usize {
            self.at_once
        }

        fn answer(&self, _: &Request, _: u32, _: &CountedTexts) -> Reply {
            self.asked.fetch_add(1, Ordering::SeqCst);
            self.barrier.wait();
            Reply::once(Ok(response(self.text)))
        }
    }

    #[track_caller]
    fn check(at_once: usize, text: &'static str, asked: usize) {
        let judge = Together {
            barrier: Barrier::new(at_once),
            at_once,
            asked: AtomicUsize::default(),
            text,
        };
        let counts = CountedTexts::new(Arc::new(CharsPer4));
        let results = Fitness::default().of(&judge, &counts).unwrap();
        assert_eq!(judge.asked.into_inner(), asked, "{text}");
        assert_eq!(results.task, None, "{text}");
        let names = results.records.iter().map(|record| record.name.clone());
        let both = [JudgeTask::Wide, JudgeTask::Narrow].into_iter();
        let known = both.flat_map(known_answers).map(|known| known.name);
        assert!(names.eq(known), "{text}");
    }

    #[test]
    fn known_answers_go_out_together_until_three_replies_are_no_verdict() {
        // It calls every answer right, and nothing that is read as yes or no.
        check(4, "right", 20 + 4);
        check(1, "right", 20 + 3);
        check(4, "yes", 4 + 12);
        check(2, "hm", 4 + 4);
        check(1, "hm", 3 + 3);
    }
}
