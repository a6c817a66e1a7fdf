//! Strategies in front of running agents: what is sent is what a replay of the same session sends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proctor::live::{Event, Live, LiveCell, Log, StrategySetting, Ticket, read_log};
use proctor::model::offline::Offline;
use proctor::record::{End, Sizes};
use proctor::replay::observe::{CallView, Observer};
use proctor::replay::{self, Models, NoClock, PreparedSession, Repetitions, Replayed};
use proctor::session::import::request::READER;
use proctor::session::wire::anthropic_json;
use proctor::session::wire::stream::Api;
use proctor::session::{ContentBlock, JsonText, Message, Role, ToolClass, ToolResult, ToolUse};
use proctor::settings::Place;
use proctor::strategy::StrategySpec;
use proctor::strategy::trigger::Trigger;
use proctor::tokens::{CharsPer4, CountedTexts};
use proctor::units::{Timestamp, Tokens};
use proctor::window::Window;
use proptest::prelude::{Just, ProptestConfig, Strategy as _};
use proptest::prop_oneof;
use proptest::{prop_assert_eq, proptest};
use serde_json::{Value, json};

mod apis;
mod compacting;
mod overlapping;

const WINDOW: Tokens = Tokens(4_000);

/// Strategies of every kind: none, clearing, a summary, a sliding window, several stages.
const STRATEGIES: [&str; 5] = [
    "none",
    "observation-masking[clear_results.keep_last=2]",
    "codex",
    "langchain-trim",
    "claude-code",
];

fn spec(name: &str) -> StrategySpec {
    StrategySpec::parse(name, &Trigger::always(), &Place::BuiltIn).unwrap()
}

fn front(log: Option<&Bytes>) -> (Live, Arc<CountedTexts>) {
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let settings = STRATEGIES.map(|name| StrategySetting {
        spec: spec(name),
        window: Window::new(WINDOW),
        sizes: Sizes::Counted,
        summariser: Arc::new(Offline::new(counts.clone())),
        counts: counts.clone(),
    });
    let live = Live::new(settings.into(), Duration::from_mins(1), READER);
    if let Some(log) = log {
        live.keep(Log::new(log.clone()), true);
    }
    (live, counts)
}

/// A log in memory.
#[derive(Debug, Clone, Default)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Bytes {
    fn events(&self) -> Vec<Event> {
        read_log(&self.0.lock().unwrap()).unwrap().0
    }
}

/// One action of an agent.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// A person types, and the model answers in words.
    Ask(usize),
    /// The model calls this many tools at once, each with a result of this length.
    Call(usize, usize),
    /// The last request is sent again, though it was answered.
    Repeat,
    /// A request fails and is sent again.
    Fail,
    /// The agent changes the first result in its history.
    Edit,
    /// The agent puts a summary of its own in the place of its history.
    Compact,
    /// The agent leaves out the last answer, and asks something else.
    Withdraw,
    /// The proxy is started again.
    Restart,
}

/// One conversation of an agent.
#[derive(Debug, Clone, Default)]
struct Agent {
    history: Vec<Message>,
    calls: usize,
}

struct World {
    live: Live,
    log: Bytes,
    counts: Arc<CountedTexts>,
    now: i64,
    names: usize,
    /// The messages that were sent last for each call.
    sent: BTreeMap<Ticket, Vec<Value>>,
}

fn message_json(message: &Message) -> Value {
    serde_json::from_str(&anthropic_json(message)).unwrap()
}

impl World {
    fn new() -> Self {
        let log = Bytes::default();
        let (live, counts) = front(Some(&log));
        Self { live, log, counts, now: 1_700_000_000_000, names: 0, sent: BTreeMap::new() }
    }

    fn restart(&mut self) {
        let (live, counts) = front(None);
        assert_eq!(live.restore(&self.log.events()), Ok(Vec::new()));
        live.keep(Log::new(self.log.clone()), false);
        (self.live, self.counts) = (live, counts);
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("n{}", self.names)
    }

    /// Sends the history of an agent; the ticket of the call.
    fn send(&mut self, agent: &Agent, strategy: usize) -> Ticket {
        let messages: Vec<Value> = agent.history.iter().map(message_json).collect();
        let body = json!({
            "model": "m", "system": "You are an agent.", "max_tokens": 100, "messages": messages, "odd": [1, 2],
        });
        let body = body.to_string();
        let cell = LiveCell { strategy, ..LiveCell::default() };
        self.now += 1_000;
        let sent = self.live.send(&cell, Api::Messages, &body, Timestamp(self.now));
        let mut read: Value = serde_json::from_str(sent.body.as_deref().unwrap_or(&body)).unwrap();
        let Value::Array(messages) = read["messages"].take() else {
            panic!("{read}");
        };
        // Nothing else was touched.
        let mut own: Value = serde_json::from_str(&body).unwrap();
        own["messages"].take();
        assert_eq!(read, own);
        if strategy == 0 {
            assert_eq!(sent.body, None);
        }
        let ticket = sent.ticket.unwrap();
        self.sent.insert(ticket, messages);
        ticket
    }

    fn answer(&mut self, agent: &mut Agent, ticket: Ticket, content: Vec<ContentBlock>) {
        let answer = Message::new(Role::Assistant, content);
        let mut response = message_json(&answer);
        response["type"] = json!("message");
        response["id"] = json!(format!("msg_{}", self.name()));
        self.now += 1_000;
        self.live.answered(ticket, Some(&response.to_string()), Timestamp(self.now));
        agent.history.push(answer);
        agent.calls += 1;
    }

    fn types(&mut self, agent: &mut Agent, length: usize) {
        let text = format!("{} please. {}", self.name(), "word ".repeat(length));
        match agent.history.last() {
            Some(last) if last.role() == Role::User => {}
            _ => agent.history.push(Message::text(Role::User, text)),
        }
    }

    fn act(&mut self, agent: &mut Agent, act: Act, strategy: usize) {
        match act {
            Act::Restart => self.restart(),
            Act::Ask(length) => {
                self.types(agent, length);
                let ticket = self.send(agent, strategy);
                let words = format!("It is {}.", self.name());
                self.answer(agent, ticket, vec![ContentBlock::Text(words.into())]);
            }
            Act::Call(tools, length) => {
                self.types(agent, 3);
                let ticket = self.send(agent, strategy);
                let ids: Vec<Arc<str>> = (0..tools).map(|_| self.name().into()).collect();
                let uses = ids.iter().map(|id| {
                    ContentBlock::ToolUse(
                        ToolUse {
                            id: id.clone(),
                            name: "Read".into(),
                            class: ToolClass::Read,
                            input: JsonText::parse(&format!("{{\"file_path\":\"/{id}\"}}"))
                                .unwrap(),
                        }
                        .into(),
                    )
                });
                self.answer(agent, ticket, uses.collect());
                let results = ids.into_iter().map(|id| {
                    let text = format!("{id}: {}", "line of text\n".repeat(length));
                    ContentBlock::ToolResult(
                        ToolResult {
                            tool_use_id: id,
                            content: vec![ContentBlock::Text(text.into())],
                            is_error: false,
                        }
                        .into(),
                    )
                });
                agent.history.push(Message::new(Role::User, results.collect()));
            }
            Act::Repeat | Act::Fail => {
                self.types(agent, 3);
                let ticket = self.send(agent, strategy);
                let first = self.sent[&ticket].clone();
                if matches!(act, Act::Fail) {
                    self.live.answered(ticket, None, Timestamp(self.now));
                }
                assert_eq!(self.send(agent, strategy), ticket, "the same request is the same call");
                assert_eq!(self.sent[&ticket], first, "and has the same context");
                let words = format!("Done with {}.", self.name());
                self.answer(agent, ticket, vec![ContentBlock::Text(words.into())]);
            }
            Act::Edit => {
                let found = agent.history.iter().position(|it| it.tool_results().next().is_some());
                if let Some(at) = found {
                    agent.history[at] = agent.history[at].with_block_text(0, &"[old]".into());
                }
            }
            Act::Compact => {
                if agent.history.len() > 4 {
                    let text = format!("Summary {}: all went well so far.", self.name());
                    agent.history = vec![Message::text(Role::User, text)];
                }
            }
            Act::Withdraw => {
                if agent.history.last().is_some_and(|it| it.role() == Role::Assistant) {
                    agent.history.pop();
                    agent.history.pop();
                }
            }
        }
    }
}

/// Keeps the context of each call.
#[derive(Debug, Clone, Default)]
struct Contexts(Arc<Mutex<Vec<Vec<Value>>>>);

impl Observer for Contexts {
    fn called(&mut self, view: &CallView<'_>) {
        let entries = view.context.entries().iter();
        let messages = entries.map(|entry| message_json(&entry.message)).collect();
        self.0.lock().unwrap().push(messages);
    }
}

/// The contexts of a replay, call by call, and whether they are the strategy's from the first to the last.
fn replayed(
    prepared: &PreparedSession,
    replayed: Replayed,
    models: &Models,
) -> (Vec<Vec<Value>>, bool) {
    let contexts = Contexts::default();
    let name = replay::CellName { strategy: "s".to_owned(), repeat: 0 };
    let more: Vec<Box<dyn Observer>> = vec![Box::new(contexts.clone())];
    let record = replay::replay_observed(prepared, name, replayed, models, &NoClock, more).record;
    let is_rewritten = record.compactions.iter().any(|it| it.stage == "agent");
    let is_whole = record.end == End::Completed && record.overflows.is_empty() && !is_rewritten;
    let found = contexts.0.lock().unwrap().clone();
    (found, is_whole)
}

fn acts() -> impl proptest::strategy::Strategy<Value = Vec<(usize, Act)>> {
    let act = prop_oneof![
        3 => (1_usize..80).prop_map(Act::Ask),
        8 => ((1_usize..4), (5_usize..120)).prop_map(|(tools, length)| Act::Call(tools, length)),
        1 => Just(Act::Repeat),
        1 => Just(Act::Fail),
        1 => Just(Act::Edit),
        1 => Just(Act::Compact),
        1 => Just(Act::Withdraw),
        1 => Just(Act::Restart),
    ];
    proptest::collection::vec((0_usize..3, act), 5..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever agents do, the log gives the same contexts again; and each conversation, replayed as a session under
    /// what its strategy did and under the strategy itself, has the contexts that were sent.
    #[test]
    fn a_replay_of_what_agents_did_sends_the_same_contexts(acts in acts(), strategy in 0..STRATEGIES.len()) {
        let mut world = World::new();
        // Two sessions of one agent, and a sub-agent with the same system prompt.
        let mut agents = [Agent::default(), Agent::default(), Agent::default()];
        for (of, act) in acts {
            world.act(&mut agents[of], act, strategy);
        }
        world.restart();
        let mut compared = 0;
        for cell in world.live.finished() {
            let number: usize = cell.session.id()["live-".len()..].parse().unwrap();
            let counts = cell.counts.clone();
            let prepared = PreparedSession::new(Arc::new(cell.session), counts, Vec::new()).unwrap();
            let models = |summariser| Models {
                summariser,
                reader: None,
                judge: None,
                times: Repetitions::default(),
            };
            let played = Replayed::Strategy(cell.strategy, cell.window);
            let (played, is_strategys) = replayed(&prepared, played, &models(cell.summariser));
            let own = spec(STRATEGIES[strategy]).build().unwrap();
            let own = Replayed::Strategy(Box::new(own), cell.window);
            let offline = Arc::new(Offline::new(world.counts.clone()));
            let (own, is_whole) = replayed(&prepared, own, &models(offline));
            for (call, context) in played.iter().enumerate() {
                let ticket = Ticket { conversation: number - 1, call };
                if let Some(sent) = world.sent.get(&ticket) {
                    prop_assert_eq!(sent, context, "conversation {}, call {}", number, call);
                    if is_whole && is_strategys {
                        prop_assert_eq!(sent, &own[call], "conversation {}, call {}", number, call);
                    }
                    compared += 1;
                }
            }
        }
        let calls: usize = agents.iter().map(|agent| agent.calls).sum();
        prop_assert_eq!(compared > 0, calls > 0);
    }
}
