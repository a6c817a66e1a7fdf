//! The laws of `strategy::law`, over generated sessions: what a strategy declares to break is
//! exactly what breaks.

use std::cell::RefCell;
use std::collections::BTreeSet;

use proctor::context::Context;
use proctor::model::CallFailure;
use proctor::model::scripted::{Scripted, response};
use proctor::record::{End, Level};
use proctor::replay::observe::validity::Validity;
use proctor::replay::{NoClock, PreparedSession, Replayed, replay_observed};
use proctor::session::import;
use proctor::session::{Session, SessionError, SessionParts};
use proctor::step::{CallResult, drive};
use proctor::strategy::law::Law;
use proctor::strategy::situation::{Overflow, Situation};
use proctor::strategy::stage::STAGES;
use proctor::strategy::{Strategy, StrategySpec};

use proctor::units::Tokens;
use proctor::window::Window;
use proptest::prop_assert;
use proptest::test_runner::TestCaseResult;

use crate::goldens::sampled;
use crate::shared;
use crate::support::{cell, models, prepared, said, session, typed};

mod police;
mod sessions;
mod trials;

use police::{Fixed, Seen, WINDOW, observed};
use sessions::for_all;
use trials::{at_work, on_trial, own, stages};

/// A model that answers, and where that makes a difference one that does not.
fn with_both_models(
    spec: &StrategySpec,
    prepared: &PreparedSession,
    mut look: impl FnMut(Seen, &CallResult) -> TestCaseResult,
) -> TestCaseResult {
    let [well, badly] = [Ok(response("a short summary")), Err(CallFailure::Timeout)];
    let seen = observed(spec, prepared, &well);
    let has_asked = seen.has_asked;
    look(seen, &well)?;
    if has_asked {
        look(observed(spec, prepared, &badly), &badly)?;
    }
    Ok(())
}

/// What is declared and was not seen.
fn never_broken(name: &str, declared: &BTreeSet<Law>, broken: &BTreeSet<Law>) -> Option<String> {
    let unseen: Vec<Law> = declared.difference(broken).copied().collect();
    let complaint = || format!("{name} declares that it breaks {unseen:?}, and never did");
    (!unseen.is_empty()).then(complaint)
}

#[test]
fn strategies_break_exactly_the_laws_they_declare() {
    let mut wrong = Vec::new();
    for spec in sampled(on_trial()) {
        let declared: BTreeSet<Law> = spec.breaks().unwrap().into_iter().collect();
        let broken = RefCell::new(BTreeSet::new());
        let wants_more = || *broken.borrow() != declared;
        let held = for_all(wants_more, |prepared| {
            with_both_models(&spec, prepared, |seen, answer| {
                let laws = seen.broken;
                prop_assert!(laws.is_subset(&declared), "breaks {laws:?} with {answer:?}");
                broken.borrow_mut().extend(laws);
                Ok(())
            })
        });
        let name = spec.name();
        wrong.extend(held.err().map(|why| format!("{name} {why}")));
        wrong.extend(never_broken(name, &declared, &broken.into_inner()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn kinds_of_stages_break_exactly_the_laws_they_declare() {
    let mut wrong = Vec::new();
    // What a program of somebody's own does is not declared.
    for kind in STAGES.iter().filter(|kind| kind.name != "external") {
        let (knobs, before) = at_work(kind.name);
        let text = format!("{before}[[stage]]\nkind = '{}'\n{knobs}", kind.name);
        let spec = own("own", &text);
        let declared: BTreeSet<Law> = kind.breaks().into_iter().collect();
        let broken = RefCell::new(BTreeSet::new());
        let acted = RefCell::new(false);
        let wants_more = || *broken.borrow() != declared || !*acted.borrow();
        let held = for_all(wants_more, |prepared| {
            with_both_models(&spec, prepared, |mut seen, answer| {
                *acted.borrow_mut() |= seen.changed.contains(kind.name);
                // What the stage before it did is not its own doing.
                seen.broken.remove(&Law::NeverLarger);
                if seen.grown.contains(kind.name) {
                    seen.broken.insert(Law::NeverLarger);
                }
                let laws = seen.broken;
                prop_assert!(laws.is_subset(&declared), "breaks {laws:?} with {answer:?}");
                broken.borrow_mut().extend(laws);
                Ok(())
            })
        });
        let name = kind.name;
        wrong.extend(held.err().map(|why| format!("{name} {why}")));
        wrong.extend(never_broken(name, &declared, &broken.into_inner()));
        // A law that nothing was held against says nothing.
        if !acted.into_inner() {
            wrong.push(format!("{name} never did anything"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_shortest_sessions_pass_through_every_strategy() {
    for spec in on_trial() {
        for messages in [vec![said("hello")], vec![typed("hello")], vec![typed("a"), said("b")]] {
            let prepared = prepared(session(messages));
            observed(&spec, &prepared, &Ok(response("a short summary")));
        }
    }
}

/// No session is empty: the border refuses it. A context may be, before the first message.
#[test]
fn an_empty_session_is_refused_and_an_empty_context_stays_empty() {
    let parts = SessionParts { id: "empty".to_owned(), ..SessionParts::default() };
    assert!(matches!(Session::new(parts), Err(SessionError::NoMessages)));
    let one = prepared(session(vec![typed("hello")]));
    let answer = Ok(response("a short summary"));
    for spec in on_trial() {
        let name = spec.name();
        let mut strategy = spec.build().unwrap();
        let mut caller = Fixed::new(&answer);
        let cx = Situation::first(Window::new(WINDOW), one.counts().clone());
        let done = drive(strategy.before_call(Context::default(), &cx), &mut caller);
        assert!(done.applied.is_empty(), "{name}: {done:?}");
        assert!(done.outcome.is_ok(), "{name}: {done:?}");
        assert!(done.context.entries().is_empty(), "{name}");
        let done = drive(strategy.after_call(Context::default(), &cx), &mut caller);
        assert!(done.applied.is_empty(), "{name}: {done:?}");
        assert!(done.context.entries().is_empty(), "{name}");
        let overflow = Overflow { prompt: WINDOW, attempt: 0 };
        let refused = Situation { overflow: Some(overflow), ..cx.clone() };
        let step = strategy.on_overflow(Context::default(), &refused);
        let done = drive(step, &mut caller);
        assert!(done.applied.is_empty(), "{name}: {done:?}");
        assert!(done.context.entries().is_empty(), "{name}");
        assert_eq!(caller.asked, 0, "{name} asks a model about nothing");
    }
}

/// Presets and controls pass through them in `recorded.rs`.
#[test]
fn shared_recordings_pass_through_every_stage() {
    let Some(folder) = shared::folder("sessions/claude-code") else {
        return;
    };
    let files = sampled(shared::files(&folder));
    let mut wrong = Vec::new();
    let sessions = files.flat_map(|file| import::load(&file).unwrap());
    // Each session passes through a third of them.
    for (at, session) in sessions.enumerate() {
        let prepared = prepared(session);
        for spec in stages().into_iter().skip(at % 3).step_by(3) {
            let replay = replay_observed(
                &prepared,
                cell(spec.name()),
                Replayed::Strategy(Box::new(spec.build().unwrap()), Window::new(Tokens(40_000))),
                &models(Scripted::new().reply(|_| Ok(response("a summary")))),
                &NoClock,
                vec![Box::new(Validity::default())],
            );
            let may_break = spec.breaks().unwrap().contains(&Law::ValidContext);
            let mut violations = replay.record.violations.iter();
            let rejected = violations.find(|it| it.level == Level::Rejected && !may_break);
            let failed = matches!(replay.record.end, End::Failed { .. });
            if failed || rejected.is_some() {
                let (name, id) = (spec.name(), prepared.session().id());
                let end = &replay.record.end;
                wrong.push(format!("{name} on {id}: {end:?}, {rejected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
