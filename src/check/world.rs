//! The sessions that strategies are checked with: small, and with everything in them that a law is about.
//!
//! A scene is a session with what its messages say, in the window in which it is played. Every scene but the long one
//! has at most a dozen rounds; their results are as large as the window asks for.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::model::fault::{Fault, FaultSchedule, Faults};
use crate::probe::faithful::Quote;
use crate::session::wire::images::image;
use crate::session::{
    ContentBlock, JsonText, Message, ResumePoint, Role, Session, SessionParts, Tag,
};
use crate::units::Tokens;

/// The kinds of facts that a summary is expected to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FactKind {
    /// A number, a name, the handle of something that runs.
    Value,
    /// A rule of the user.
    Rule,
}

/// A fact of a scene.
#[derive(Debug, Clone)]
pub(super) struct Fact {
    pub(super) kind: FactKind,
    /// The sentence that states it, as it stands in a message.
    pub(super) evidence: &'static str,
    /// The words in it that have to stay as they are.
    pub(super) value: &'static str,
}

/// A session with its window.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    /// Its name, for whoever wants to repeat a finding.
    pub(super) name: String,
    pub(super) session: Arc<Session>,
    pub(super) window: Tokens,
    pub(super) facts: &'static [Fact],
    pub(super) subject: Matter,
}

impl Scene {
    /// The words that a summary of it should keep; of the plan the newest state.
    pub(super) fn quotes(&self) -> Vec<Quote> {
        let facts = self.facts.iter().map(|fact| vec![fact.evidence.into()]);
        let plan = ["[ ]", "[x]"].map(|state| format!("{state} {DONE}").into());
        facts.chain([plan.to_vec()]).collect()
    }

    /// Whether it is played several times, for what needs another summariser or a second replay.
    pub(super) fn is_usual(&self) -> bool {
        matches!(
            self.subject,
            Matter::Work | Matter::Chinese | Matter::Loaded | Matter::Long
        )
    }

    /// The faults that are played in it.
    pub(super) fn faults(&self) -> Faults {
        let mut faults = Faults::default();
        if self.subject == Matter::Refused {
            let calls = FaultSchedule::Calls {
                calls: REFUSED.into(),
                attempts: 1,
            };
            faults.schedules.insert(Fault::OverflowAt, calls);
        }
        faults
    }

    /// Whether it is the one in which faults are tried.
    pub(super) fn is_first(&self) -> bool {
        self.subject == Matter::Work && self.window == Tokens(32_000)
    }
}

/// The subject of a scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Matter {
    /// Work with two requests, rules, a plan, a running task, thinking and parallel calls.
    Work,
    /// Enough rounds for several compactions.
    Generations,
    /// The same growth, as a share of the window.
    Growth,
    /// Pictures, more bytes than a request may have.
    Pictures,
    /// Many small rounds, for what counts messages.
    Long,
    /// A conversation in Chinese.
    Chinese,
    /// An earlier session was loaded.
    Loaded,
    /// Work of which the provider refuses some prompts as too long, though they fit the window that it states.
    Refused,
}

const fn fact(kind: FactKind, evidence: &'static str, value: &'static str) -> Fact {
    Fact {
        kind,
        evidence,
        value,
    }
}

/// The facts of the scenes in English.
const FACTS: [Fact; 7] = [
    fact(
        FactKind::Value,
        "The staging host is kestrel-4821.internal.",
        "kestrel-4821.internal",
    ),
    fact(FactKind::Value, "It listens on port 48213.", "48213"),
    fact(
        FactKind::Rule,
        "You must never push to main without asking me first.",
        "must never push to main",
    ),
    fact(
        FactKind::Rule,
        "Always keep the table audit_2019 as it is.",
        "Always keep the table audit_2019",
    ),
    fact(
        FactKind::Value,
        "Background task bg-51937 writes to /var/tmp/bg-51937.log.",
        "bg-51937",
    ),
    fact(
        FactKind::Value,
        "The export holds 73519 invoices with total < 500 && state = 'open'.",
        "73519 invoices with total < 500 && state = 'open'",
    ),
    fact(
        FactKind::Rule,
        "Only the ledger team may change src/ledger/rates.rs.",
        "Only the ledger team may change",
    ),
];

/// The same in Chinese.
const CHINESE: [Fact; 3] = [
    fact(
        FactKind::Value,
        "测试主机是 kestrel-4821.internal。",
        "kestrel-4821.internal",
    ),
    fact(
        FactKind::Rule,
        "没有我的同意绝不能推送到主分支。",
        "绝不能推送到主分支",
    ),
    fact(
        FactKind::Rule,
        "必须保留审计表，不得修改。",
        "必须保留审计表",
    ),
];

/// The item of the plan that is finished in the course of the work, and one that stays open.
pub(super) const DONE: &str = "copy the ledger tables";
const OPEN: &str = "switch the invoices over";

/// Calls whose prompt is refused: early in the work, and after the second request.
const REFUSED: [usize; 2] = [5, 9];

/// A message that somebody typed.
fn typed(text: &str) -> Message {
    Message::text(Role::User, text).with_tags([Tag::TypedUser])
}

/// A picture of so many bytes, as it is sent.
fn picture(seed: u64, bytes: usize) -> ContentBlock {
    let data = format!("{seed:0>8}").repeat(bytes / 8);
    image(&json!({ "type": "base64", "media_type": "image/png", "data": data }))
}

/// Builds a session, round by round.
struct Script {
    messages: Vec<Message>,
    /// Characters of each result.
    filler: usize,
    rounds: usize,
    seed: u64,
    has_thinking: bool,
    /// The words of each line of a result.
    line: &'static str,
    system: Option<String>,
}

impl Script {
    /// A session whose results have so many tokens, of four characters each.
    fn of(tokens: u64, seed: u64) -> Self {
        Self {
            messages: Vec::new(),
            filler: usize::try_from(tokens * 4).unwrap_or(usize::MAX),
            rounds: 0,
            seed,
            has_thinking: false,
            line: "let row = ledger.row",
            system: None,
        }
    }

    fn typed(&mut self, text: &str) {
        self.messages.push(typed(text));
    }

    /// A request with a picture of so many bytes.
    fn pasted(&mut self, text: &str, bytes: usize) {
        let content = vec![picture(self.seed, bytes), ContentBlock::Text(text.into())];
        let message = Message::new(Role::User, content);
        self.messages.push(message.with_tags([Tag::TypedUser]));
    }

    /// The text of a result: a line that no other result has, `says`, and lines up to the size.
    fn result(&self, says: &str) -> String {
        let (round, seed) = (self.rounds, self.seed);
        let mut text = format!("part_{round}.rs of run {seed}: {says}\n");
        let mut line = 0;
        while text.len() < self.filler {
            line += 1;
            let sum = (line * 7919 + round * 104_729) % 99_991;
            let _ = writeln!(text, "{line:>6}  {}({round}, {sum});", self.line);
        }
        text
    }

    /// One call of each of these tools, with its input and what the result says.
    fn calls(&mut self, uses: &[(&str, Value, &str)]) {
        let round = self.rounds;
        let mut said = Vec::new();
        if self.has_thinking {
            let thought = format!(
                "Thought {round}: the next part is needed, and what it exports has to be compared with the ledger."
            );
            said.push(ContentBlock::thinking(
                thought,
                Some(format!("sig-{round}-0f3a").into()),
            ));
        }
        said.push(ContentBlock::Text(
            format!("Step {round}: I go on with part {round}.").into(),
        ));
        let mut results = Vec::new();
        for (at, (name, input, says)) in uses.iter().enumerate() {
            let id: Arc<str> = format!("call-{round}-{at}").into();
            said.push(ContentBlock::tool_use(
                id.clone(),
                (*name).into(),
                JsonText::of(input),
            ));
            let text = if *name == "TodoWrite" || at > 0 {
                (*says).to_owned()
            } else {
                self.result(says)
            };
            results.push(ContentBlock::tool_result(
                id,
                vec![ContentBlock::Text(text.into())],
                false,
            ));
        }
        self.messages.push(Message::new(Role::Assistant, said));
        self.messages.push(Message::new(Role::User, results));
        self.rounds += 1;
    }

    fn read(&mut self, says: &str) {
        let path = format!("src/ledger/part_{}.rs", self.rounds);
        self.calls(&[("Read", json!({ "file_path": path }), says)]);
    }

    /// A round in which the call is long, and not its result.
    fn write(&mut self, says: &str) {
        let input = json!({ "file_path": format!("src/ledger/new_{}.rs", self.rounds), "content": self.result(says) });
        self.calls(&[
            (
                "TodoWrite",
                json!({ "todos": [] }),
                "- the plan is as it was",
            ),
            ("Write", input, says),
        ]);
    }

    fn plan(&mut self, done: &str) {
        let status = if done == "[x]" {
            "completed"
        } else {
            "pending"
        };
        let todos = json!({ "todos": [
            { "content": DONE, "status": status },
            { "content": OPEN, "status": "pending" },
        ] });
        let says = format!("- {done} {DONE}\n- [ ] {OPEN}");
        self.calls(&[("TodoWrite", todos, &says)]);
    }

    fn says(&mut self, text: &str) {
        self.messages.push(Message::text(Role::Assistant, text));
    }

    fn scene(self, subject: Matter, window: Tokens, facts: &'static [Fact]) -> Option<Scene> {
        let kind = format!("{subject:?}").to_lowercase();
        let name = format!("{kind}-{}k", window.0 / 1_000);
        let begin = Begin {
            loaded: (subject == Matter::Loaded).then_some(LOADED),
            system: self.system.map(Into::into),
        };
        let session = session_of(&name, self.messages, begin)?;
        Some(Scene {
            name,
            session,
            window,
            facts,
            subject,
        })
    }
}

/// Messages of the session that was loaded.
const LOADED: usize = 7;

/// The part of a session in front of its first call.
#[derive(Debug, Default)]
pub(super) struct Begin {
    /// Messages that were loaded, of a session that goes on.
    loaded: Option<usize>,
    system: Option<Arc<str>>,
}

impl Begin {
    pub(super) fn of(session: &Session) -> Self {
        Self {
            loaded: session.resumed().map(|resumed| resumed.at),
            system: session.system().cloned(),
        }
    }
}

/// A session of these messages; `None` where they are none.
pub(super) fn session_of(id: &str, messages: Vec<Message>, begin: Begin) -> Option<Arc<Session>> {
    let parts = SessionParts {
        id: id.to_owned(),
        system: begin.system,
        messages: messages.into_iter().map(Arc::new).collect(),
        resumed: begin.loaded.map(|at| ResumePoint { at, notes: None }),
        ..SessionParts::default()
    };
    let session = Session::new(parts).ok()?;
    // A conversation begins with somebody who wants something.
    let begins = session.messages().first()?.role() == Role::User;
    (begins && !session.calls().is_empty()).then(|| Arc::new(session))
}

/// Two requests with rules, a plan, a running task, thinking and parallel calls; 1.6 times as large as the window.
fn work(window: u64, subject: Matter, seed: u64) -> Option<Scene> {
    let mut script = Script::of(window * 14 / 100, seed);
    script.has_thinking = true;
    // As text the picture would nearly fill the window; a provider counts its pixels.
    let bytes = usize::try_from(window * 3).unwrap_or(usize::MAX);
    script.pasted(
        &format!(
            "Please migrate the billing service to the new ledger. {} {} {}",
            FACTS[0].evidence, FACTS[1].evidence, FACTS[2].evidence
        ),
        bytes,
    );
    script.plan("[ ]");
    script.read("the old ledger has four tables");
    script.calls(&[
        (
            "Bash",
            json!({ "command": "make export", "run_in_background": true }),
            FACTS[4].evidence,
        ),
        (
            "Grep",
            json!({ "pattern": "audit" }),
            "3 files name the table",
        ),
        (
            "Read",
            json!({ "file_path": "README.md" }),
            FACTS[6].evidence,
        ),
    ]);
    script.plan("[x]");
    script.read(FACTS[5].evidence);
    script.read("rows are copied in order");
    script.says("The tables are copied; the export runs.");
    script.pasted(
        &format!(
            "Now rename the column account_ref to ledger_ref everywhere. {}",
            FACTS[3].evidence
        ),
        2_000,
    );
    for says in [
        "it names the column twice",
        "a view needs it",
        "a test needs it",
    ] {
        script.read(says);
        // Somebody types while the agent works: two messages of the user follow each other.
        if says == "a view needs it" {
            script.typed("By the way, the tests have to stay green.");
        }
        script.write("written");
    }
    script.says("The column is renamed.");
    script.typed("Thank you. List what is still open.");
    script.says("The invoices are still to be switched over.");
    script.scene(subject, Tokens(window), &FACTS)
}

/// Equal rounds, that fill the window to 120 %; in that of 32,000 tokens beside a system prompt of a quarter of it.
fn growth(window: u64, seed: u64) -> Option<Scene> {
    let mut script = Script::of(window / 20, seed);
    if window == 32_000 {
        let bytes = usize::try_from(window).unwrap_or(usize::MAX);
        let rules = "You are careful with the ledger. ";
        script.system = Some(rules.repeat(bytes / rules.len()));
    }
    script.typed(
        "Please read all parts of the ledger, one after the other, and list what each exports.",
    );
    (0..24).for_each(|_| script.read("one part of many"));
    script.says("All parts are read.");
    script.scene(Matter::Growth, Tokens(window), &[])
}

/// Fifty rounds, which fill the window six times.
fn generations(window: u64, seed: u64) -> Option<Scene> {
    let mut script = Script::of(window * 12 / 100, seed);
    script.typed(&format!(
        "Please migrate all parts of the ledger. {} {}",
        FACTS[0].evidence, FACTS[2].evidence
    ));
    for round in 0..50 {
        script.read(if round == 3 {
            FACTS[5].evidence
        } else {
            "one part of fifty"
        });
        if round == 20 {
            script.says("Half of the parts are migrated.");
            script.typed(&format!("Go on. {}", FACTS[3].evidence));
        }
    }
    script.says("All parts are migrated.");
    script.scene(Matter::Generations, Tokens(window), &FACTS)
}

/// Many small rounds, for strategies that count messages, results or turns.
fn long(seed: u64) -> Option<Scene> {
    let mut script = Script::of(180, seed);
    for part in 0..24 {
        script.typed(&match part {
            0 => format!(
                "Please go through the ledger. {} {}",
                FACTS[1].evidence, FACTS[2].evidence
            ),
            _ => format!("Go on with chapter {part}."),
        });
        (0..4).for_each(|_| script.read("a small part"));
        script.says(&format!("Chapter {part} is done."));
    }
    script.scene(Matter::Long, Tokens(32_000), &FACTS)
}

/// Pictures of more than 32 MB together, in three results.
fn pictures(seed: u64) -> Option<Scene> {
    let mut script = Script::of(200, seed);
    script.typed("Please compare the screenshots of the ledger.");
    for round in 0..4 {
        let id: Arc<str> = format!("shots-{round}").into();
        let use_of = ContentBlock::tool_use(
            id.clone(),
            "Screenshot".into(),
            JsonText::of(&json!({ "page": round })),
        );
        let shots = (0..8).map(|at| picture(seed * 100 + round * 10 + at, 1_100_000));
        script
            .messages
            .push(Message::new(Role::Assistant, vec![use_of]));
        script.messages.push(Message::new(
            Role::User,
            vec![ContentBlock::tool_result(id, shots.collect(), false)],
        ));
    }
    script.says("They are equal.");
    script.scene(Matter::Pictures, Tokens(1_000_000), &[])
}

fn chinese(window: u64, seed: u64) -> Option<Scene> {
    let mut script = Script::of(window * 14 / 100, seed);
    let [host, push, audit] = &CHINESE;
    script.typed(&format!(
        "请把计费服务迁移到新的账本。{}{}",
        host.evidence, push.evidence
    ));
    script.line = "这一行用到了该列，需要重命名";
    (0..4).for_each(|_| script.read("旧账本的一部分"));
    script.says("表已经复制完毕。");
    script.typed(&format!("现在请重命名列。{}", audit.evidence));
    (0..6).for_each(|_| script.read("这一部分用到了该列"));
    script.says("列已经重命名。");
    script.scene(Matter::Chinese, Tokens(window), &CHINESE)
}

/// All scenes, the ones that show most in little first.
pub(super) fn scenes(seed: u64) -> Vec<Scene> {
    let scenes = [
        work(32_000, Matter::Work, seed),
        work(200_000, Matter::Work, seed + 1),
        chinese(32_000, seed + 2),
        work(32_000, Matter::Loaded, seed + 3),
        work(32_000, Matter::Refused, seed + 12),
        generations(32_000, seed + 4),
        generations(200_000, seed + 5),
        long(seed + 6),
        growth(6_000, seed + 7),
        growth(32_000, seed + 8),
        growth(200_000, seed + 9),
        growth(1_000_000, seed + 10),
        pictures(seed + 11),
    ];
    scenes.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scene_is_a_session_with_its_facts() {
        let scenes = scenes(1);
        let names: Vec<&str> = scenes.iter().map(|scene| scene.name.as_str()).collect();
        assert_eq!(names.len(), 13, "{names:?}");
        for scene in &scenes {
            let texts = scene.session.messages().iter();
            let texts = texts.flat_map(|message| message.model_text());
            let text: String = texts.map(|text| &**text).collect();
            let missing = scene
                .facts
                .iter()
                .find(|fact| !text.contains(fact.evidence));
            let has_all = matches!(
                scene.subject,
                Matter::Work | Matter::Loaded | Matter::Refused | Matter::Chinese
            );
            assert!(missing.is_none() || !has_all, "{}: {missing:?}", scene.name);
            assert!(
                scene
                    .facts
                    .iter()
                    .all(|fact| fact.evidence.contains(fact.value))
            );
        }
    }
}
