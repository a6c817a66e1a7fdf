//! The pipeline: which stages are asked, in which order, and what happens when they fail.

use proctor::model::scripted::Scripted;
use proctor::record::CellRecord;
use proctor::replay::{NoClock, Replayed, replay};
use proctor::session::Message;
use proctor::settings::{SettingError, Table};
use proctor::strategy::StrategySpec;
use proctor::strategy::trigger::Trigger;
use proctor::units::Tokens;
use proctor::window::Window;

use crate::support::{answers, asks, cell, models, prepared, said, session, typed};

/// A strategy written in TOML.
fn own(stages: &str) -> Result<StrategySpec, SettingError> {
    let table = Table::parse("own.toml", stages).unwrap();
    StrategySpec::of("own", table, &Trigger::always())
}

/// Replays `messages` through stages written in TOML, with these answers of the model.
fn through(messages: Vec<Message>, stages: &str, window: u64, model: Scripted) -> CellRecord {
    let strategy = Box::new(own(stages).unwrap().build().unwrap());
    let replayed = Replayed::Strategy(strategy, Window::new(Tokens(window)));
    let prepared = prepared(session(messages));
    replay(&prepared, cell("own"), replayed, &models(model), &NoClock).record
}

/// What fired: `call stage`, in order.
fn fired(record: &CellRecord) -> Vec<String> {
    let events = record.compactions.iter();
    events
        .map(|event| format!("{} {}", event.call, event.stage))
        .collect()
}

/// So many rounds, each reading 4,000 characters.
fn reads(rounds: usize) -> Vec<Message> {
    let mut messages = vec![typed("go")];
    for round in 0..rounds {
        let id = format!("t{round}");
        messages.push(asks(&id, "Read", "a"));
        messages.push(answers(&id, &format!("{round:04} ").repeat(800)));
    }
    messages.push(said("done"));
    messages
}

/// Two stages that each fire once there is something to do for them.
const CLEAR: &str = "[[stage]]\nkind = 'clear_results'\nname = 'clear'\nkeep_last = 1\n\
     when = { results_over = 2 }\n";

/// The calls at which a stage that always fails was tried.
fn tried(record: &CellRecord) -> Vec<usize> {
    record.failures.iter().map(|failure| failure.call).collect()
}

#[test]
fn a_stage_may_wait_for_what_an_earlier_one_did() {
    // From the third result on there is a newly old one at each call.
    for (when, calls) in [
        ("{ after = 'clear' }", &[3, 4, 5][..]),
        ("{ unless = 'clear' }", &[0, 1, 2]),
        (
            "{ all = [{ unless = 'clear' }, { results_over = 1 }] }",
            &[2],
        ),
        (
            "{ any = [{ after = 'clear' }, { results_over = 1 }] }",
            &[2, 3, 4, 5],
        ),
    ] {
        let stages = format!(
            "{CLEAR}[[stage]]\nkind = 'summarize'\nwhen = {when}\n\
             guards.max_consecutive_failures = 0"
        );
        let record = through(reads(5), &stages, 200_000, Scripted::new());
        assert_eq!(tried(&record), calls, "{when}");
    }
}

#[test]
fn what_follows_a_recovery_happens_at_the_refused_call() {
    let stages = "[[stage]]\nkind = 'summarize'\nwhen = { after = 'overflow' }\n\
         guards.max_consecutive_failures = 0\n\
         [overflow]\nstage = 'drop_oldest'\nfit_fraction = 0.5";
    let record = through(reads(8), stages, 3_500, Scripted::new());
    assert_eq!(record.overflows, [4, 7]);
    assert_eq!(fired(&record), ["4 overflow", "7 overflow"]);
    assert_eq!(tried(&record), [4, 7]);
}

#[test]
fn a_stage_waits_for_no_stage_that_comes_later() {
    let other = "[[stage]]\nkind = 'normalize'\n";
    for (stages, says) in [
        (
            format!("{other}when = {{ after = 'normalise' }}"),
            "`own.toml`: line 3: `normalize.when` names `normalise`, and the strategy has no such stage",
        ),
        (
            format!("{other}when = {{ unless = 'clear' }}\n{CLEAR}"),
            "`own.toml`: line 3: `normalize.when` names `clear`, which does not stand before it",
        ),
        (
            format!("{other}when = {{ after = 'normalize' }}"),
            "`own.toml`: line 3: `normalize.when` names `normalize`, which does not stand before it",
        ),
        (
            format!("{CLEAR}{other}when = {{ any = ['marker', {{ after = 'cler' }}] }}"),
            "`own.toml`: line 8: `normalize.when` names `cler`, and the strategy has no such stage, \
             did you mean `clear`?",
        ),
        (
            format!("{CLEAR}{other}when = {{ after = 'overflow' }}"),
            "`own.toml`: line 8: `normalize.when` names `overflow`, and the strategy has no such stage",
        ),
    ] {
        let error = own(&stages).unwrap_err().to_string();
        assert_eq!(error, says);
    }
}
