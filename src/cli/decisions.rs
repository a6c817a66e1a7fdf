//! Decisions that a model finds in recorded sessions: proposed by it, borne out by the recording, and known to it from
//! their evidence only.

use std::cell::{OnceCell, RefCell};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use super::models::{self, JudgeOptions};
use super::{CliError, Result, say};
use crate::model::{CallFailure, Model, ModelKind, Request};
use crate::probe::derive::decisions;
use crate::probe::grade::GradingRules;
use crate::probe::judge::{self, Judge, Word};
use crate::probe::{Asking, GradeVerdict, Outcome};
use crate::report::escape::plain;
use crate::session::ground_truth::PlantedFact;
use crate::session::{Message, Session};
use crate::step::CallResult;
use crate::tokens::{CharsPer4, CountedTexts};

/// The longest answer that a judge is shown has fewer words.
const LONGEST_ANSWER: usize = 800;

/// The model to ask, as it was typed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Proposer<'a> {
    /// The flag that names it.
    pub(super) flag: &'a str,
    pub(super) model: &'a str,
    /// The file that keeps its replies.
    pub(super) cassette: &'a Path,
    pub(super) options: &'a JudgeOptions,
}

impl Proposer<'_> {
    /// The decisions of each session, or why the model could not be asked for them. The most that all of them cost is agreed
    /// to before anything is asked. If no session's decisions were found, the command ends.
    pub(super) fn decided(
        &self,
        sessions: &[Arc<Session>],
    ) -> Result<Vec<Result<Vec<PlantedFact>, CliError>>> {
        if sessions.is_empty() {
            return Ok(Vec::new());
        }
        let typed = [self.model.to_owned()];
        let connected = self.options.connect(self.flag, &typed, self.cassette)?;
        let Some(model) = connected.judges.first() else {
            return Ok(Vec::new());
        };
        let missing: Vec<(Vec<Request>, u32)> =
            sessions.iter().flat_map(|session| missing(&**model, session)).collect();
        let asked = missing.iter().map(|(all, times)| (&all[..], *times));
        let requests: Vec<(&[Request], u32)> = asked.collect();
        self.options.confirm(&connected, &requests, &CharsPer4)?;
        let mut found: Vec<Result<Vec<PlantedFact>, CliError>> =
            sessions.iter().map(|session| of_session(&**model, session)).collect();
        let none = found.iter().all(Result::is_err);
        models::close(Some(&connected), none)?;
        if none && let Some(Err(error)) = found.pop() {
            return Err(error.into());
        }
        Ok(found)
    }
}

/// The requests about a session that are not recorded, and how often each is sent at most.
fn missing(model: &dyn Model, session: &Session) -> [(Vec<Request>, u32); 2] {
    if model.kind() != ModelKind::Live {
        return [(Vec::new(), 0), (Vec::new(), 0)];
    }
    let asker = Asker::new(model, Some(RefCell::default()));
    let requests = decisions::requests(session);
    asker.decided(session, &requests);
    let unknown = (requests.iter()).filter(|request| !model.is_kept(request, 0));
    let unknown = u32::try_from(unknown.count()).unwrap_or(u32::MAX);
    let of_each = Asker::new(model, Some(RefCell::default()));
    if unknown > 0 {
        of_each.knows_from_evidence(session, &decisions::longest(session));
    }
    let most = unknown.saturating_mul(decisions::MOST_PROPOSALS);
    [(asker.missing(), 1), (of_each.missing(), most)]
}

/// Asks the model for the decisions of a session, and says how many of its proposals are kept.
fn of_session(model: &dyn Model, session: &Session) -> Result<Vec<PlantedFact>, CliError> {
    let asker = Asker::new(model, None);
    let (facts, mut said) = asker.decided(session, &decisions::requests(session));
    if let Some(error) = asker.unheard.into_inner() {
        return Err(error);
    }
    said.insert_str(0, &format!("`{}`: ", session.id()));
    say(&plain(&said));
    Ok(facts)
}

/// A model that is asked until it cannot be asked any more.
struct Asker<'a> {
    model: &'a dyn Model,
    counts: CountedTexts,
    unheard: OnceCell<CliError>,
    /// In a forecast, the requests without a recorded answer: they are not sent, and may be answered with anything.
    missing: Option<RefCell<Vec<Request>>>,
}

impl<'a> Asker<'a> {
    fn new(model: &'a dyn Model, missing: Option<RefCell<Vec<Request>>>) -> Self {
        Self {
            model,
            counts: CountedTexts::new(Arc::new(CharsPer4)),
            unheard: OnceCell::new(),
            missing,
        }
    }

    fn missing(self) -> Vec<Request> {
        self.missing.map(RefCell::into_inner).unwrap_or_default()
    }

    /// The proposals in answer to these requests that are kept, and in words how many.
    fn decided(&self, session: &Session, requests: &[Request]) -> (Vec<PlantedFact>, String) {
        let replies: Vec<Arc<str>> = requests.iter().map(|request| self.text(request)).collect();
        let replies: Vec<&str> = replies.iter().map(|reply| &**reply).collect();
        let (mut facts, dropped) = decisions::kept(session, &replies);
        let proposed = facts.len() + dropped.values().sum::<usize>();
        facts.retain(|fact| self.knows_from_evidence(session, fact));
        let mut said = format!(
            "{} of {proposed} proposed decisions are answered from their evidence and not without it",
            facts.len()
        );
        for (why, count) in dropped {
            let _ = write!(said, ", {count} {}", why.in_words());
        }
        (facts, said)
    }

    fn answer(&self, request: &Request) -> CallResult {
        if self.unheard.get().is_some() {
            return Err(CallFailure::NoAnswer);
        }
        if let Some(missing) = &self.missing
            && !self.model.is_kept(request, 0)
        {
            missing.borrow_mut().push(request.clone());
            return Err(CallFailure::NoAnswer);
        }
        let reply = self.model.answer(request, 0, &self.counts).answer;
        if let Err(error) = models::heard(self.model, &reply) {
            self.unheard.get_or_init(|| error);
        }
        reply
    }

    /// The text of an answer; in a forecast one as long as it may be, where it is not known.
    fn text(&self, request: &Request) -> Arc<str> {
        match self.answer(request) {
            Ok(reply) => reply.text,
            Err(_) if self.missing.is_some() => "reply ".repeat(LONGEST_ANSWER).into(),
            Err(_) => Arc::default(),
        }
    }

    /// Whether it knows a decision from the evidence, and not without it.
    fn knows_from_evidence(&self, session: &Session, fact: &PlantedFact) -> bool {
        let before = session.messages().len();
        let [with, without] = decisions::arms(session, fact);
        self.knows(fact, &with, before) && !self.knows(fact, &without, before)
    }

    /// Whether it answers each question about the fact right from these messages, at this message of the session; in a
    /// forecast, whether it may.
    fn knows(&self, fact: &PlantedFact, messages: &[Arc<Message>], before: usize) -> bool {
        let probes = std::slice::from_ref(fact);
        let rules = GradingRules::new(probes);
        let judge = Judge { probes, ..Judge::default() };
        judge::questions(None, messages, fact, Asking::default()).iter().all(|question| {
            let said = self.text(question);
            match rules.verdict(fact, before, &said) {
                GradeVerdict::Scored { outcome, .. } => outcome == Outcome::Right,
                // Rules confirm exact answers only: the model grades other words itself.
                GradeVerdict::Unscored { .. } => {
                    let graded = self.answer(&judge.request(fact, before, &said));
                    graded.is_err() && self.missing.is_some()
                        || judge.task.read(&graded) == Ok(Word::Right)
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::model::Reply;
    use crate::session::{Role, SessionParts};

    /// A model that nobody may ask; it has recorded answers to none or to all requests.
    #[derive(Debug, Default)]
    struct Silent {
        keeps_all: bool,
        asked: AtomicUsize,
    }

    impl Model for Silent {
        fn name(&self) -> &'static str {
            "silent"
        }

        fn kind(&self) -> ModelKind {
            ModelKind::Live
        }

        fn answer(&self, _: &Request, _: u32, _: &CountedTexts) -> Reply {
            self.asked.fetch_add(1, Ordering::Relaxed);
            Reply::once(Err(CallFailure::NoAnswer))
        }

        fn is_kept(&self, _: &Request, _: u32) -> bool {
            self.keeps_all
        }
    }

    #[track_caller]
    fn check(keeps_all: bool, calls: usize, asked: usize) {
        let message = Message::text(Role::User, "We take the ring buffer, as it is bounded.");
        let session = Session::new(SessionParts {
            id: "s".into(),
            messages: vec![Arc::new(message)],
            ..SessionParts::default()
        });
        let model = Silent { keeps_all, ..Silent::default() };
        let missing = missing(&model, &session.unwrap());
        let sent: usize = missing.iter().map(|(all, times)| all.len() * *times as usize).sum();
        assert_eq!(sent, calls);
        assert_eq!(model.asked.into_inner(), asked);
    }

    #[test]
    fn a_forecast_asks_nothing_and_counts_the_questions_about_all_proposals_that_may_come() {
        // Both sides of each proposal are asked for, and graded.
        check(false, 1 + 12 * 4, 0);
        check(true, 0, 1);
    }
}
