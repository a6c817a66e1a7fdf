//! Small sessions, a bench to replay them on, and whole runs.

use std::path::Path;
use std::sync::Arc;

use proctor::model::scripted::Scripted;
use proctor::record::CellRecord;
use proctor::record::journal::{Journal, RecordedRun};
use proctor::replay::{CellName, Models, NoClock, PreparedSession, Replay, Replayed, replay};
use proctor::runner::{self, Plan, Progress, RunOutcome, Workers};
use proctor::scenario::Scenario;
use proctor::session::{
    ContentBlock, JsonText, Message, RecordedCompaction, Role, Session, SessionParts, Tag,
    ToolClass, ToolResult, ToolUse,
};
use proctor::settings::{Place, SettingTable};
use proctor::stop::StopToken;
use proctor::strategy::StrategySpec;
use proctor::strategy::trigger::{Condition, Trigger};
use proctor::tokens::{CharsPer4, CountedTexts};
use proctor::units::Tokens;
use proctor::window::Window;

/// Presets that have every part of a strategy in them: the others are made of the same ones.
pub(crate) const EVERY_PART: [&str; 21] = [
    "none",
    "recorded",
    "observation-masking",
    "anthropic-clear-tool-uses",
    "learn-claude-code-s06",
    "learn-claude-code-s08",
    "learn-claude-code-s08-unguarded",
    "aloop-deletion",
    "aloop-sliding-window",
    "aloop-selective",
    "aloop-rfc005",
    "codex",
    "claude-code",
    "claude-code-snip-drop",
    "claude-code-cached-micro",
    "claude-code-session-memory",
    "claude-code-collapse",
    "claude-code-reactive-only",
    "manual-phases",
    "snip-then-compact",
    "compact-directly",
];

/// Something the user typed.
pub(crate) fn typed(text: &str) -> Message {
    Message::text(Role::User, text).with_tags([Tag::TypedUser])
}

/// Something the model said.
pub(crate) fn said(text: &str) -> Message {
    Message::text(Role::Assistant, text)
}

/// The model asks for a tool with one argument.
pub(crate) fn asks(id: &str, name: &str, argument: &str) -> Message {
    Message::new(Role::Assistant, vec![tool_use(id, name, argument)])
}

/// One tool use, as a block.
pub(crate) fn tool_use(id: &str, name: &str, argument: &str) -> ContentBlock {
    let class = match name {
        "Read" => ToolClass::Read,
        "Bash" => ToolClass::Shell,
        "Edit" => ToolClass::Edit,
        "Task" => ToolClass::Agent,
        _ => ToolClass::Other,
    };
    let input = JsonText::of(&serde_json::json!({ "argument": argument }));
    ContentBlock::ToolUse(Box::new(ToolUse { id: id.into(), name: name.into(), class, input }))
}

/// The tool answers.
pub(crate) fn answers(id: &str, text: &str) -> Message {
    Message::new(Role::User, vec![tool_result(id, text)])
}

/// One tool result, as a block.
pub(crate) fn tool_result(id: &str, text: &str) -> ContentBlock {
    ContentBlock::ToolResult(Box::new(ToolResult {
        tool_use_id: id.into(),
        content: vec![ContentBlock::Text(text.into())],
        is_error: false,
    }))
}

/// A session of these messages.
pub(crate) fn session(messages: Vec<Message>) -> Session {
    session_with(messages, Vec::new())
}

/// A session of these messages, in which the product compacted.
pub(crate) fn session_with(
    messages: Vec<Message>,
    compactions: Vec<RecordedCompaction>,
) -> Session {
    Session::new(SessionParts {
        id: "test".to_owned(),
        system: Some("You are a test.".into()),
        messages: messages.into_iter().map(Arc::new).collect(),
        compactions,
        ..SessionParts::default()
    })
    .unwrap()
}

/// A session of so many rounds: each reads a file of `chars` characters.
pub(crate) fn reading_session(rounds: usize, chars: usize) -> Session {
    let mut messages = vec![typed("Please read all the files.")];
    for round in 0..rounds {
        let id = format!("t{round}");
        messages.push(asks(&id, "Read", &format!("src/file_{round}.rs")));
        messages.push(answers(&id, &format!("content {round} ").repeat(chars / 10 + 1)[..chars]));
    }
    messages.push(said("All of them are read."));
    session(messages)
}

/// The session, counted with `chars/4`, without probes.
pub(crate) fn prepared(session: Session) -> PreparedSession {
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    PreparedSession::new(Arc::new(session), counts, Vec::new()).unwrap()
}

/// A summariser; nobody reads or judges.
pub(crate) fn models(summariser: Scripted) -> Models {
    Models {
        summariser: Arc::new(summariser),
        reader: None,
        judge: None,
        times: proctor::replay::Repetitions::default(),
    }
}

/// A strategy by name, overrides in brackets; controls fire at four fifths of the window.
pub(crate) fn strategy(name: &str) -> StrategySpec {
    let trigger = Trigger::of(Condition::window_fraction(0.8));
    StrategySpec::parse(name, &trigger, &Place::BuiltIn).unwrap_or_else(|error| panic!("{error}"))
}

/// Replays a session through a strategy in a window.
pub(crate) fn run(prepared: &PreparedSession, name: &str, window: u64, models: &Models) -> Replay {
    let strategy = strategy(name).build().unwrap();
    let replayed = Replayed::Strategy(Box::new(strategy), Window::new(Tokens(window)));
    replay(prepared, cell(name), replayed, models, &NoClock)
}

/// Names a cell.
pub(crate) fn cell(strategy: &str) -> CellName {
    CellName { strategy: strategy.to_owned(), repeat: 0 }
}

/// The scenario that this text describes, with files searched below `folder`.
#[track_caller]
pub(crate) fn scenario(text: &str, folder: &Path) -> Scenario {
    let table = SettingTable::parse("test.toml", text).unwrap_or_else(|error| panic!("{error}"));
    Scenario::read(&table, folder).unwrap_or_else(|error| panic!("{error}"))
}

#[derive(Debug)]
struct Silent;

impl Progress for Silent {
    fn cell(&self, _: &CellRecord, _: u64) {}
    fn session(&self, _: &str, _: usize) {}
}

/// Runs what is outstanding of a plan in this folder, and reads the folder.
#[track_caller]
pub(crate) fn run_in(folder: &Path, plan: &Plan, threads: usize) -> (RunOutcome, RecordedRun) {
    let mut journal = Journal::open(folder, plan.manifest()).unwrap();
    let workers = Workers { threads, stop: StopToken::default() };
    let outcome = runner::run(plan, &mut journal, &workers, &Silent).unwrap();
    drop(journal);
    (outcome, RecordedRun::read(folder).unwrap())
}

/// Runs the whole plan in a folder that is then removed.
#[track_caller]
pub(crate) fn run_plan(plan: &Plan) -> (RunOutcome, RecordedRun) {
    let folder = tempfile::tempdir().unwrap();
    run_in(folder.path(), plan, 2)
}

/// Does to a process what Ctrl-C does.
#[track_caller]
pub(crate) fn interrupt(process: &std::process::Child) {
    let mut kill = std::process::Command::new("kill");
    let sent = kill.args(["-INT", &process.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Why a JSON Schema refuses a value; nothing if it takes it.
pub(crate) fn refusal(schema: &serde_json::Value, value: &serde_json::Value) -> Option<String> {
    let validator = jsonschema::validator_for(schema).unwrap();
    let first = validator.iter_errors(value).next();
    first.map(|error| format!("{}: {error}", error.instance_path()))
}
