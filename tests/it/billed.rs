//! Closed loops: what providers billed decides, and what is modelled has a column of its own.

use std::path::Path;
use std::sync::Arc;

use proctor::compare::ComparedRun;
use proctor::live::{Finished, LiveCell, Measured};
use proctor::model::offline::Offline;
use proctor::record::Arm;
use proctor::record::journal::RecordedRun;
use proctor::report::Report;
use proctor::report::screen::ScreenOptions;
use proctor::report::terminal::Terminal;
use proctor::runner::live_run;
use proctor::scenario::Scenario;
use proctor::session::import::outcomes::TrialOutcome;
use proctor::session::{
    ContentBlock, JsonText, Message, Role, Session, SessionParts, Source, ToolClass, ToolResult,
    ToolUse,
};
use proctor::settings::{Place, SettingTable};
use proctor::strategy::StrategySpec;
use proctor::strategy::trigger::Trigger;
use proctor::tokens::{CharsPer4, CountedTexts};
use proctor::units::{Timestamp, Tokens, Usage};
use proctor::window::Window;

const STRATEGIES: [&str; 2] = ["none", "observation-masking[clear_results.keep_last=2]"];

const CALLS: usize = 12;

fn scenario() -> Scenario {
    scenario_of(STRATEGIES)
}

fn scenario_of([none, masking]: [&str; 2]) -> Scenario {
    let text = format!(
        "name = 'live'\n[window]\ntokens = 40_000\n[[sessions]]\npath = 'a'\n[[strategies]]\npreset = '{none}'\n\
         [[strategies]]\npreset = '{masking}'\n"
    );
    Scenario::read(&SettingTable::parse("s.toml", &text).unwrap(), Path::new("")).unwrap()
}

/// An agent that reads a file at each call, and is billed like this for each of its prompts.
fn session(task: &str, model: &str, usage: Option<Usage>) -> Session {
    let at = |message: Message, seconds: usize| {
        let mut message = message;
        message.details.timestamp = Some(Timestamp(1_000 * i64::try_from(seconds).unwrap()));
        message
    };
    let mut messages = vec![at(Message::text(Role::User, "Which file names the port?"), 0)];
    for call in 0..CALLS {
        let id: Arc<str> = format!("t{call}").into();
        let read = ToolUse {
            id: id.clone(),
            name: "Read".into(),
            class: ToolClass::Read,
            input: JsonText::parse(&format!("{{\"file_path\":\"/{call}\"}}")).unwrap(),
        };
        let result = ToolResult {
            tool_use_id: id,
            content: vec![ContentBlock::Text("a line of text\n".repeat(200).into())],
            is_error: false,
        };
        let mut answer = Message::new(Role::Assistant, vec![ContentBlock::ToolUse(read.into())]);
        answer.details.usage = usage;
        messages.push(at(answer, 3 * call + 2));
        let result = Message::new(Role::User, vec![ContentBlock::ToolResult(result.into())]);
        messages.push(at(result, 3 * call + 3));
    }
    messages.push(at(Message::text(Role::Assistant, "None."), 3 * CALLS + 2));
    let parts = SessionParts {
        id: task.to_owned(),
        model: Some(model.to_owned()),
        messages: messages.into_iter().map(Arc::new).collect(),
        source: Source { format: "live".to_owned(), ..Source::default() },
        ..SessionParts::default()
    };
    Session::new(parts).unwrap()
}

/// A trial whose every call is billed like this, if it is.
fn trial(task: &str, model: &str, strategy: usize, usage: Option<Usage>) -> Finished {
    trial_of(STRATEGIES, task, model, strategy, usage)
}

fn trial_of(
    strategies: [&str; 2],
    task: &str,
    model: &str,
    strategy: usize,
    usage: Option<Usage>,
) -> Finished {
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let place = &Place::BuiltIn;
    let spec = StrategySpec::parse(strategies[strategy], &Trigger::always(), place).unwrap();
    let calls = CALLS + 1;
    Finished {
        cell: LiveCell { strategy, ..LiveCell::default() },
        session: session(task, model, usage),
        counts: counts.clone(),
        window: Window::new(Tokens(40_000)),
        strategy: Box::new(spec.build().unwrap()),
        summariser: Arc::new(Offline::new(counts)),
        measured: Measured {
            billed: (0..calls).filter_map(|_| usage).sum(),
            calls,
            unbilled: if usage.is_some() { 0 } else { calls },
            ..Measured::default()
        },
    }
}

fn outcome(task: &str, strategy: usize, score: f64) -> TrialOutcome {
    TrialOutcome {
        task: task.to_owned(),
        strategy: Some(scenario().strategies[strategy].name().to_owned()),
        trial: 0,
        score: Ok(score),
        unread: None,
        attempt: None,
        place: String::new(),
    }
}

fn run(trials: Vec<Finished>, outcomes: &[TrialOutcome]) -> RecordedRun {
    let folder = tempfile::tempdir().unwrap();
    let run = live_run::write(&scenario(), trials, outcomes, folder.path()).unwrap();
    RecordedRun::read(&run).unwrap()
}

fn screen(run: &RecordedRun) -> String {
    let report = Report::of(&run.manifest, &run.cells);
    Terminal::plain(80).screen(&report, ScreenOptions::default())
}

/// Tasks `a` and `b` under both strategies, with these bills of a call.
fn both(model: &str, bills: [Option<Usage>; 2]) -> Vec<Finished> {
    let tasks = ["a", "b"].into_iter();
    let trials =
        tasks.flat_map(|task| [0, 1].map(|strategy| trial(task, model, strategy, bills[strategy])));
    trials.collect()
}

fn plain(input: u64) -> Usage {
    Usage::uncached(Tokens(input), Tokens(20))
}

fn cached(uncached: u64, short: u64, long: u64, read: u64) -> Usage {
    Usage {
        input_uncached: Tokens(uncached),
        cache_write_5m: Tokens(short),
        cache_write_1h: Tokens(long),
        cache_read: Tokens(read),
        output: Tokens(20),
    }
}

const PRICED: &str = "claude-sonnet-4-5";

#[test]
fn a_bill_without_cached_tokens_is_no_simulated_cache() {
    let outcomes = [0, 1].map(|strategy| outcome("a", strategy, 1.0));
    let run = run(both(PRICED, [plain(6_000), plain(3_000)].map(Some)), &outcomes);
    insta::assert_snapshot!("billed_without_cache", screen(&run));
    let compared = ComparedRun::of(&run.manifest, &run.cells);
    let dollars = compared.strategies.values().map(|sample| {
        let session = &sample.sessions["a"];
        format!("{:.4}", session.metrics["dollars"][0])
    });
    // 13 calls: 3 dollars a million in, 15 out.
    assert_eq!(dollars.collect::<Vec<_>>(), ["0.2379", "0.1209"]);
}

#[test]
fn calls_of_other_models_count_at_their_own_prices() {
    let mut trials = both(PRICED, [plain(6_000), plain(3_000)].map(Some));
    for trial in &mut trials {
        // 1 dollar a million in, 5 out, where that of the conversation costs 3 and 15.
        let titles = Usage::uncached(Tokens(30_000), Tokens(600));
        let of_models = [(PRICED, trial.measured.billed), ("claude-haiku-4-5", titles)];
        let of_models = of_models.map(|(model, usage)| (model.into(), usage));
        trial.measured.by_model = of_models.into_iter().collect();
        trial.measured.billed += titles;
    }
    let run = run(trials, &[]);
    let compared = ComparedRun::of(&run.manifest, &run.cells);
    let dollars = compared.strategies.values().map(|sample| {
        let session = &sample.sessions["a"];
        format!("{:.4}", session.metrics["dollars"][0])
    });
    assert_eq!(dollars.collect::<Vec<_>>(), ["0.2709", "0.1539"]);
}

#[test]
fn without_prices_the_classes_of_tokens_stand_side_by_side() {
    let bills = [cached(10, 100, 200, 5_000), cached(10, 1_000, 2_000, 700)];
    let run = run(both("our-own", bills.map(Some)), &[]);
    insta::assert_snapshot!("billed_without_prices", screen(&run));
}

#[test]
fn trials_without_a_bill_count_in_none_and_lost_ones_are_trials() {
    let mut trials = both(PRICED, [cached(10, 300, 0, 5_000), cached(10, 3_000, 0, 700)].map(Some));
    trials[2].measured.unbilled = 1;
    let outcomes = ["a", "b", "lost"]
        .into_iter()
        .flat_map(|task| [0, 1].map(|strategy| outcome(task, strategy, f64::from(task != "lost"))));
    let outcomes: Vec<TrialOutcome> = outcomes.collect();
    insta::assert_snapshot!("billed_in_part", screen(&run(trials, &outcomes)));
}

#[test]
fn without_any_usage_bills_are_modelled_and_that_is_said() {
    insta::assert_snapshot!("billed_nowhere", screen(&run(both(PRICED, [None, None]), &[])));
}

#[test]
fn in_a_window_without_room_tasks_and_bills_count_and_the_replay_does_not() {
    let strategies = ["none", "pi"];
    let scenario = scenario_of(strategies);
    let trials = [0, 1].map(|strategy| {
        let usage = Some(plain(6_000));
        let mut trial = trial_of(strategies, "a", PRICED, strategy, usage);
        // It fires from 7,616 tokens on, and keeps 20,000.
        trial.window = Window::new(Tokens(24_000));
        trial
    });
    let outcomes = [0, 1].map(|strategy| TrialOutcome {
        strategy: Some(strategies[strategy].to_owned()),
        ..outcome("a", 0, f64::from(u8::from(strategy == 0)))
    });
    let folder = tempfile::tempdir().unwrap();
    let run = live_run::write(&scenario, trials.into(), &outcomes, folder.path()).unwrap();
    let run = RecordedRun::read(&run).unwrap();
    for cell in run.cells.iter().filter(|cell| cell.arm == Arm::Strategy) {
        let live = cell.live.as_ref().unwrap();
        let is_pi = cell.strategy == "pi";
        assert_eq!((live.no_room.is_some(), cell.action_support.wanted.is_empty()), (is_pi, is_pi));
        assert_eq!((live.score, live.is_billed()), (Some(f64::from(u8::from(!is_pi))), true));
    }
    let screen = screen(&run);
    for expected in ["pi: 0 of 1 tasks solved", "not measurable under pi (1 trial)"] {
        let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "{screen}");
    }
}
