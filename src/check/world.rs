//! The sessions that strategies are checked with: small, and with everything in them that a law is about.
//!
//! A scene is a session with what its messages say, in the window in which it is played. Every scene but the long one
//! has at most a dozen rounds; their results are as large as the window asks for.

use std::sync::Arc;

use serde_json::json;

use crate::model::fault::{Fault, FaultSchedule, Faults};
use crate::probe::faithful::Quote;
use crate::session::{ContentBlock, JsonText, Message, ResumePoint, Role, Session, SessionParts};
use crate::units::Tokens;

mod script;

use script::{Script, picture};

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
pub(super) struct SceneFact {
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
    pub(super) facts: &'static [SceneFact],
    pub(super) subject: Matter,
    /// Summaries of this scene have numbers above this one, which no other scene has.
    pub(super) first_answer: usize,
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
        matches!(self.subject, Matter::Work | Matter::Chinese | Matter::Loaded | Matter::Long)
    }

    /// The faults that are played in it.
    pub(super) fn faults(&self) -> Faults {
        let mut faults = Faults::default();
        let (fault, calls, attempts) = match self.subject {
            Matter::Refused => (Fault::OverflowAt, REFUSED.into(), 1),
            Matter::Outage => (Fault::SummaryTimeout, (0..OUTAGE).collect(), u32::MAX),
            _ => return faults,
        };
        let schedule = FaultSchedule::Calls { calls, attempts };
        faults.schedules.insert(fault, schedule);
        faults
    }

    /// Whether it is replayed where sets have another order: most files are in the one, most tools in the other.
    pub(super) fn shows_order(&self) -> bool {
        let names = (self.subject, self.window);
        matches!(names, (Matter::Growth, Tokens(32_000)) | (Matter::Work, Tokens(200_000)))
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
    /// An earlier session was loaded that is larger than the window; most of it are arguments of calls.
    Overfull,
    /// No summary is answered until the window is nearly full.
    Outage,
    /// Work of which the provider refuses some prompts as too long, though they fit the window that it states.
    Refused,
}

const fn fact(kind: FactKind, evidence: &'static str, value: &'static str) -> SceneFact {
    SceneFact { kind, evidence, value }
}

/// The facts of the scenes in English.
const FACTS: [SceneFact; 8] = [
    fact(FactKind::Value, "The staging host is kestrel-4821.internal.", "kestrel-4821.internal"),
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
        "/var/tmp/bg-51937.log",
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
    // Functions that replace text read these signs in the replacement.
    fact(FactKind::Value, "The label of a total reads US$$ 4218 ($& net).", "US$$ 4218 ($& net)"),
];

/// The same in Chinese.
const CHINESE: [SceneFact; 3] = [
    fact(FactKind::Value, "测试主机是 kestrel-4821.internal。", "kestrel-4821.internal"),
    fact(FactKind::Rule, "没有我的同意绝不能推送到主分支。", "绝不能推送到主分支"),
    fact(FactKind::Rule, "必须保留审计表，不得修改。", "必须保留审计表"),
];

/// The item of the plan that is finished in the course of the work, and one that stays open.
pub(super) const DONE: &str = "copy the ledger tables";
const OPEN: &str = "switch the invoices over";

/// Calls whose prompt is refused: early in the work, and after the second request.
const REFUSED: [usize; 2] = [6, 9];

/// The first call of [`Matter::Outage`] at which a summary is answered: nine tenths of its window are full.
pub(super) const OUTAGE: usize = 87;

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
    script.loaded = (subject == Matter::Loaded).then_some(7);
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
        ("Bash", json!({ "command": "make export", "run_in_background": true }), FACTS[4].evidence),
        ("Grep", json!({ "pattern": "audit" }), "3 files name the table"),
        ("Read", json!({ "file_path": "README.md" }), FACTS[6].evidence),
        ("TaskList", json!({}), FACTS[7].evidence),
    ]);
    script.plan("[x]");
    script.read(FACTS[5].evidence);
    script.read("Error: the view ledger_v has no such column");
    script.typed_beside("Please write the comments in British English.");
    script.says("The tables are copied; the export runs.");
    script.pasted(
        &format!(
            "Now rename the column account_ref to ledger_ref everywhere. {}",
            FACTS[3].evidence
        ),
        2_000,
    );
    for says in ["it names the column twice", "a view needs it", "a test needs it"] {
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
    for round in 0..24 {
        // Every fourth time it reads the part before once more.
        let part = round - usize::from(round % 4 == 0 && round > 0);
        script.read_again(part, "one part of many");
    }
    script.says("All parts are read.");
    script.scene(Matter::Growth, Tokens(window), &[])
}

/// Rounds in which the calls are long, of which those before the window is full were loaded.
fn overfull(window: u64, seed: u64) -> Option<Scene> {
    let mut script = Script::of(window / 20, seed);
    script.loaded = Some(45);
    script.typed("Please write all parts of the ledger anew.");
    (0..30).for_each(|_| script.write("written"));
    script.says("All parts are written.");
    script.scene(Matter::Overfull, Tokens(window), &[])
}

/// Fifty rounds, which fill the window six times.
fn generations(window: u64, seed: u64) -> Option<Scene> {
    let mut script = Script::of(window * 12 / 100, seed);
    script.typed(&format!(
        "Please migrate all parts of the ledger. {} {}",
        FACTS[0].evidence, FACTS[2].evidence
    ));
    if window == 200_000 {
        let size = usize::try_from(window * 15 / 100 * 4).unwrap_or(usize::MAX);
        (100..103).for_each(|log| script.paste(log, size));
        script.typed("These are the logs of the last nights.");
    }
    for round in 0..50 {
        script.read(if round == 3 { FACTS[5].evidence } else { "one part of fifty" });
        if round == 20 {
            script.says("Half of the parts are migrated.");
            script.typed(&format!("Go on. {}", FACTS[3].evidence));
        }
    }
    script.says("All parts are migrated.");
    script.scene(Matter::Generations, Tokens(window), &FACTS)
}

/// Many small rounds, for strategies that count messages, results or turns.
fn long(window: u64, subject: Matter, seed: u64) -> Option<Scene> {
    let mut script = Script::of(180, seed);
    for part in 0..24 {
        script.typed(&match part {
            0 => {
                format!("Please go through the ledger. {} {}", FACTS[1].evidence, FACTS[2].evidence)
            }
            _ => format!("Go on with chapter {part}."),
        });
        (0..4).for_each(|_| script.read("a small part"));
        script.says(&format!("Chapter {part} is done."));
    }
    script.scene(subject, Tokens(window), &FACTS)
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
        script.messages.push(Message::new(Role::Assistant, vec![use_of]));
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
    script.typed(&format!("请把计费服务迁移到新的账本。{}{}", host.evidence, push.evidence));
    // A name that has characters outside of the first plane, of two units in UTF-16.
    script.line = "𠮷𡈽𠮷𡈽𠮷𡈽𠮷𡈽𠮷𡈽𠮷𡈽𠮷𡈽𠮷𡈽𠮷𡈽𠮷𡈽𠮷𡈽𠮷𡈽";
    (0..4).for_each(|_| script.look("旧账本的一部分"));
    script.says("表已经复制完毕。");
    script.typed(&format!("现在请重命名列。{}", audit.evidence));
    (0..6).for_each(|_| script.look("这一部分用到了该列"));
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
        long(32_000, Matter::Long, seed + 6),
        growth(6_000, seed + 7),
        growth(32_000, seed + 8),
        growth(200_000, seed + 9),
        growth(1_000_000, seed + 10),
        pictures(seed + 11),
        overfull(32_000, seed + 13),
        long(16_000, Matter::Outage, seed + 14),
    ];
    let numbered = scenes.into_iter().flatten().zip((0..).step_by(1_000));
    numbered.map(|(scene, first_answer)| Scene { first_answer, ..scene }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scene_is_a_session_with_its_facts() {
        let scenes = scenes(1);
        let names: Vec<&str> = scenes.iter().map(|scene| scene.name.as_str()).collect();
        assert_eq!(names.len(), 15, "{names:?}");
        for scene in &scenes {
            let texts = scene.session.messages().iter().flat_map(|message| message.model_text());
            let text: String = texts.map(|text| &**text).collect();
            let missing = scene.facts.iter().find(|fact| !text.contains(fact.evidence));
            let has_all = matches!(
                scene.subject,
                Matter::Work | Matter::Loaded | Matter::Refused | Matter::Chinese
            );
            assert!(missing.is_none() || !has_all, "{}: {missing:?}", scene.name);
            assert!(scene.facts.iter().all(|fact| fact.evidence.contains(fact.value)));
        }
    }
}
