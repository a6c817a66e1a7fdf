//! The family `feature-phases`: features are researched, planned, implemented and verified, and a
//! person says when each phase is over.
//!
//! What changes its value is here: settings that are revised, counts that grow, plans of which more
//! and more is done. So is what was settled: options taken and left, and roads that led nowhere.

use std::sync::Arc;

use serde_json::{Value, json};

use super::code_review::act::{Action, Memory};
use super::code_review::artifacts::Artifacts;
use super::code_review::profile::Limits;
use super::facts::{self, Channel, Numbers, Pair, Planned};
use super::grammar::fill;
use super::grammar::names::FAULTS;
use super::grammar::output;
use super::tools::{self, Tool};
use super::transcript::Transcript;
use super::workspace::Workspace;
use super::{Family, Generated, Length, Recipe};
use crate::session::ground_truth::{GroundTruth, PlantedFact};
use crate::session::{ContentBlock, SessionError, Tag, Thinking};
use crate::tokens::CountedTexts;

mod schedule;
mod words;

use schedule::{Event, Schedule, What};

/// Features are built in phases.
#[derive(Debug)]
pub(crate) struct FeaturePhases;

impl Family for FeaturePhases {
    fn name(&self) -> &'static str {
        "feature-phases"
    }

    fn description(&self) -> &'static str {
        "builds features in phases: research, plan, implementation, verification, each ended by a \
         marker"
    }

    fn generate(&self, recipe: &Recipe, counts: &CountedTexts) -> Result<Generated, SessionError> {
        Author::new(recipe, counts).write(recipe)
    }
}

/// Measured over seeds 1 to 8 at 120 rounds with the counter `o200k`; it only sets how many facts
/// and files a session of a given number of tokens gets.
const TOKENS_PER_ROUND: u64 = 1_800;

/// A feature takes about so many rounds,
const ROUNDS_PER_FEATURE: u64 = 64;

/// and a session has at most so many: longer ones have longer phases.
const MOST_FEATURES: u64 = 8;

/// So many calls pass between two times that the agent has its conversation summarised,
const COMPACT_EVERY: (u64, u64) = (40, 64);

/// and between two times that it marks results as not needed.
const SNIP_EVERY: (u64, u64) = (9, 17);

/// Where the phases of a feature end, in percent.
const PHASE_ENDS: [u64; 3] = [32, 45, 80];

/// What the agent does in each phase: read, search, test, observe, edit, create, look into the
/// history, plan, fetch. Plans are written when a step is due.
const WEIGHTS: [[u64; 9]; 4] = [
    [48, 16, 0, 8, 0, 0, 8, 0, 14],
    [40, 28, 0, 10, 0, 0, 14, 0, 8],
    [22, 8, 14, 3, 34, 16, 2, 0, 1],
    [14, 8, 38, 22, 6, 2, 10, 0, 0],
];

/// Writes one session.
struct Author<'a> {
    out: Transcript<'a>,
    workspace: Workspace,
    memory: Memory,
    artifacts: Artifacts,
    /// Keys, rules and decoys, as in every family; the earliest last.
    pending: Vec<Planned>,
    schedule: Schedule,
    facts: Vec<PlantedFact>,
    /// Attempts that failed, and about which the agent said nothing yet.
    failed: Vec<usize>,
    /// Results that nobody will need: message and ids of the tool uses.
    spent: Vec<(usize, Vec<Arc<str>>)>,
    /// Feature and phase.
    stage: (u64, usize),
    features: u64,
    compact_at: u64,
    snip_at: u64,
}

impl<'a> Author<'a> {
    fn new(recipe: &Recipe, counts: &'a CountedTexts) -> Self {
        let rounds = match recipe.length {
            Length::Rounds(rounds) => u64::from(rounds),
            Length::Tokens(tokens) => tokens.0 / TOKENS_PER_ROUND + 1,
        };
        let percent = u64::from(recipe.fact_percent);
        let scaled = |per: u64, cap: u64| {
            let number = (rounds / per).min(cap) * percent / 100;
            usize::try_from(number).unwrap_or(0)
        };
        let numbers = Numbers {
            recalls: scaled(6, 18),
            // The bank of rules has 42 topics.
            constraints: scaled(10, 9).min(42),
            decoys: scaled(1, 6).max(1),
        };
        let (mut pending, decoys) = facts::plan(recipe.seed, numbers);
        pending.reverse();
        let features = (rounds / ROUNDS_PER_FEATURE).clamp(1, MOST_FEATURES);
        let per_feature = (rounds / features).min(2 * ROUNDS_PER_FEATURE);
        let system = words::SYSTEM;
        let mut out = Transcript::new(recipe, counts, system, tools::schemas_with_snip());
        let files = usize::try_from(40 + rounds * 3 / 5).unwrap_or(usize::MAX);
        let mut workspace = Workspace::new(recipe.seed, files);
        let memory = Memory::new(&mut workspace, &mut out.random);
        Self {
            compact_at: out.random.between(COMPACT_EVERY.0, COMPACT_EVERY.1),
            snip_at: out.random.between(SNIP_EVERY.0, SNIP_EVERY.1),
            out,
            workspace,
            memory,
            artifacts: Artifacts::default(),
            pending,
            schedule: Schedule::new(recipe.seed, features, per_feature, percent),
            facts: decoys,
            failed: Vec::new(),
            spent: Vec::new(),
            stage: (0, 0),
            features,
        }
    }

    fn write(mut self, recipe: &Recipe) -> Result<Generated, SessionError> {
        self.request(words::OPENINGS, &[]);
        let mut is_fresh = true;
        loop {
            let (last, closing) = self.out.ends(self.pending.is_empty());
            if last {
                break;
            }
            let stage = self.stage_now();
            if closing {
                self.report();
                self.close();
                is_fresh = true;
            } else if stage != self.stage && !is_fresh {
                self.report();
                let turn = words::TURNS[self.stage.1];
                self.request(turn, &[Tag::PhaseEnd]);
                // A phase that one long result passed over is passed over.
                self.stage = stage;
                is_fresh = true;
            } else if self.is_typed_due() && !is_fresh {
                self.report();
                self.request(words::REMARKS, &[]);
                is_fresh = true;
            } else if self.out.calls >= self.compact_at && !is_fresh {
                self.compact();
            } else if self.out.calls >= self.snip_at && self.spent.len() > 2 && !is_fresh {
                self.snip();
            } else {
                self.work();
                is_fresh = false;
            }
        }
        self.report();
        let mut facts = self.facts;
        facts.extend(self.artifacts.facts());
        facts.extend(self.schedule.facts());
        facts.sort_by(|a, b| a.id.cmp(&b.id));
        let session = self.out.finish(recipe)?;
        let truth = GroundTruth::new(session.id(), facts);
        Ok(Generated { session, truth })
    }

    /// The feature and the phase that the session has come to.
    fn stage_now(&self) -> (u64, usize) {
        let far = (self.out.progress() * self.features).min(self.features * 1_000 - 1);
        let percent = far % 1_000 / 10;
        let phase = PHASE_ENDS.iter().filter(|end| **end <= percent).count();
        (far / 1_000, phase)
    }

    fn is_typed_due(&self) -> bool {
        let progress = self.out.progress();
        let is_waiting = |fact: &&Planned| fact.due < progress;
        let mut waiting = self.pending.iter().rev().take_while(is_waiting);
        let mut events = self.schedule.events.iter().rev();
        waiting.any(|fact| fact.channel == Channel::User)
            || events
                .by_ref()
                .take_while(|event| event.due < progress)
                .any(|event| event.is_typed)
    }

    /// Takes up to `limit` due facts that `fits`.
    fn take_due(&mut self, limit: usize, fits: impl Fn(&Planned) -> bool) -> Vec<Planned> {
        let progress = self.out.progress();
        let due = |fact: &&Planned| fact.due < progress;
        let first = self.pending.len() - self.pending.iter().rev().take_while(due).count();
        let mut taken = Vec::new();
        let mut at = self.pending.len();
        while at > first && taken.len() < limit {
            at -= 1;
            if fits(&self.pending[at]) {
                taken.push(self.pending.remove(at));
            }
        }
        taken
    }

    /// Takes up to `limit` due events, of each thing at most one.
    fn take_events(&mut self, limit: usize, is_typed: bool) -> Vec<What> {
        let progress = self.out.progress();
        let events = &mut self.schedule.events;
        let due = |event: &&Event| event.due < progress;
        let first = events.len() - events.iter().rev().take_while(due).count();
        let mut taken: Vec<What> = Vec::new();
        let mut at = events.len();
        while at > first && taken.len() < limit {
            at -= 1;
            let Event { what, .. } = events[at];
            if events[at].is_typed == is_typed && !taken.contains(&what) {
                events.remove(at);
                taken.push(what);
            }
        }
        taken
    }

    fn say(&mut self, bank: &[&str]) -> String {
        let template = self.out.random.pick(bank);
        self.said(template)
    }

    fn said(&mut self, template: &str) -> String {
        let random = &mut self.out.random;
        let topic = self.memory.topic(&self.workspace, random);
        let feature = usize::try_from(self.stage.0).unwrap_or(0);
        let feature = self.schedule.features.get(feature);
        let slots = [
            ("feature", feature.map_or("it", String::as_str)),
            ("noun", topic.noun),
            ("path", &topic.path),
            ("symbol", &topic.symbol),
            ("elsewhere", &topic.elsewhere),
        ];
        fill(template, &slots)
    }

    /// The user types one of these, and whatever else is to be said now.
    fn request(&mut self, bank: &[&str], tags: &[Tag]) {
        let random = &mut self.out.random;
        let _ = self.memory.turn(&mut self.workspace, random);
        let mut parts = vec![self.say(bank)];
        let message = self.out.next();
        for what in self.take_events(usize::MAX, true) {
            if let What::Revise(at) = what
                && let Some(series) = self.schedule.series.get_mut(at)
                && let Some(value) = series.next(message)
            {
                let slots = [("key", series.key.as_str()), ("value", &value)];
                parts.push(fill(self.out.random.pick(words::REVISED), &slots));
            }
        }
        let planned = self.take_due(usize::MAX, |fact| fact.channel == Channel::User);
        self.type_in(parts, planned, tags);
    }

    /// The user ends the session, and says what was not said yet.
    fn close(&mut self) {
        let parts = vec![self.say(words::FAREWELLS)];
        let planned = std::mem::take(&mut self.pending);
        self.type_in(parts, planned, &[Tag::PhaseEnd]);
    }

    fn type_in(&mut self, mut parts: Vec<String>, planned: Vec<Planned>, tags: &[Tag]) {
        let message = self.out.next();
        for fact in planned {
            parts.push(facts::typed(&mut self.out.random, &fact));
            self.facts.push(fact.planted(message));
        }
        self.out.typed(parts.join("\n\n"), tags);
    }

    /// What the agent has to say about what failed, in the message of that index.
    fn conclusions(&mut self, message: usize) -> Vec<String> {
        let failed = std::mem::take(&mut self.failed);
        failed
            .into_iter()
            .filter_map(|at| {
                let attempt = self.schedule.attempts.get_mut(at)?;
                attempt.said.push(message);
                let slots = [
                    ("approach", attempt.approach.as_str()),
                    ("reason", &attempt.reason),
                ];
                Some(fill(self.out.random.pick(words::GIVEN_UP), &slots))
            })
            .collect()
    }

    /// The agent answers in words only.
    fn report(&mut self) {
        let mut text = self.say(words::REPORTS);
        let message = self.out.next();
        for line in self.conclusions(message) {
            text.push_str("\n\n");
            text.push_str(&line);
        }
        self.out.respond(vec![ContentBlock::Text(text.into())]);
    }

    /// One round of work: the agent uses tools, and the tools answer.
    fn work(&mut self) {
        let limits = Limits::up_to(self.out.largest_result());
        let (asking, now) = (self.out.next(), self.out.now);
        let weights = &WEIGHTS[self.stage.1];
        let random = &mut self.out.random;
        let (workspace, memory) = (&mut self.workspace, &mut self.memory);
        let round = memory.round(workspace, random, Some(weights), now, limits);
        let mut actions = round.actions;
        let mut paragraphs = self.conclusions(asking);
        let mut is_spent = true;
        for fact in self.take_due(1, |fact| fact.channel != Channel::User) {
            let random = &mut self.out.random;
            let workspace = &mut self.workspace;
            actions.push(self.memory.reveal(workspace, random, &fact, now));
            self.facts.push(fact.planted(asking + 1));
            is_spent = false;
        }
        for what in self.take_events(2, false) {
            is_spent = false;
            match what {
                What::Decide(at) => {
                    if let Some(decision) = self.schedule.decisions.get_mut(at) {
                        paragraphs.push(decision.say(&mut self.out.random, asking));
                    }
                }
                What::Revise(at) => actions.extend(self.revise(at, asking + 1)),
                What::Count(at) => actions.extend(self.count(at, asking + 1)),
                What::Fail(at) => actions.extend(self.fail(at, asking + 1)),
                What::Step(at) => {
                    paragraphs.push(self.say(words::LISTING));
                    actions.extend(self.step(at, asking));
                }
            }
        }
        paragraphs.push(round.text);
        let mut blocks = Vec::new();
        if let Some(thought) = round.thought {
            blocks.push(ContentBlock::Thinking(Thinking {
                text: thought.into(),
                signature: Some(self.out.random.hex(64).into()),
            }));
        }
        blocks.push(ContentBlock::Text(paragraphs.join("\n\n").into()));
        for action in &actions {
            self.artifacts.record(action.tool, &action.input, asking);
        }
        let ids = self.out.act(blocks, actions);
        if is_spent {
            self.spent.push((asking + 1, ids));
        }
    }

    /// A command prints settings, one of which is a new value.
    fn revise(&mut self, at: usize, message: usize) -> Option<Action> {
        let place = self.memory.here(&self.workspace, &mut self.out.random);
        let series = self.schedule.series.get_mut(at)?;
        let value = series.next(message)?;
        let pair = Pair {
            key: series.key.clone(),
            value,
        };
        let random = &mut self.out.random;
        let mut lines = vec![facts::logged(random, &pair)];
        for _ in 0..random.count(4, 12) {
            let line = output::log_line(random, &place, self.out.now, &mut Vec::new());
            let slot = random.index(lines.len() + 1);
            lines.insert(slot, line);
        }
        Some(Action {
            tool: Tool::Bash,
            input: json!({
                "command": format!("scripts/settings show {}", place.noun),
                "description": "show the settings in force",
            }),
            output: lines.join("\n"),
            failed: false,
        })
    }

    /// A test run says how many cases a suite has by now.
    fn count(&mut self, at: usize, message: usize) -> Option<Action> {
        let random = &mut self.out.random;
        let place = self.memory.here(&self.workspace, random);
        let series = self.schedule.series.get_mut(at)?;
        let value = series.next(message)?;
        let slots = [("key", series.key.as_str()), ("value", &value)];
        let line = fill(random.pick(words::COUNTED), &slots);
        let size = random.count(400, 2_400);
        let mut run = output::test_run(random, std::slice::from_ref(&place), self.out.now, size);
        run.lines.push(line);
        Some(Action {
            tool: Tool::Bash,
            input: json!({
                "command": format!("scripts/verify {} --count", place.noun),
                "description": "run the tests and count the cases",
            }),
            output: run.lines.join("\n"),
            failed: run.failed,
        })
    }

    /// A command fails; the agent says next what it makes of it.
    fn fail(&mut self, at: usize, message: usize) -> Option<Action> {
        let random = &mut self.out.random;
        let place = self.memory.here(&self.workspace, random);
        let attempt = self.schedule.attempts.get_mut(at)?;
        attempt.said.push(message);
        self.failed.push(at);
        let fault = random.pick(FAULTS).replace('_', " ");
        let slots = [
            ("approach", attempt.approach.as_str()),
            ("reason", &attempt.reason),
            ("fault", &fault),
        ];
        let size = random.count(300, 1_800);
        let mut log = output::log(random, &place, self.out.now, size);
        log.lines.push(fill(random.pick(words::COLLAPSED), &slots));
        Some(Action {
            tool: Tool::Bash,
            input: json!({
                "command": format!("scripts/prototype {}", place.noun),
                "description": "try the idea on recorded traffic",
            }),
            output: log.lines.join("\n"),
            failed: true,
        })
    }

    /// The agent writes its plan, or ticks off the next step.
    fn step(&mut self, at: usize, message: usize) -> Option<Action> {
        let plan = self.schedule.plans.get_mut(at)?;
        let name = plan.name.clone();
        let steps = plan.write(message);
        let open = steps.iter().filter(|(_, state)| *state != "done").count();
        let todos: Vec<Value> = steps
            .iter()
            .map(|(item, state)| json!({"task": item, "status": state}))
            .collect();
        Some(Action {
            tool: Tool::TodoWrite,
            output: format!(
                "The list of `{name}` was replaced: {open} of {} left.",
                todos.len()
            ),
            input: json!({"plan": name, "todos": todos}),
            failed: false,
        })
    }

    /// The agent has the conversation summarised. The full history goes on.
    fn compact(&mut self) {
        let random = &mut self.out.random;
        self.compact_at = self.out.calls + random.between(COMPACT_EVERY.0, COMPACT_EVERY.1);
        let (said, focus) = random.pick(words::CONDENSING);
        let focus = self.said(focus);
        let answer = "The conversation will be condensed before the next step.";
        let input = json!({ "focus": focus });
        self.out
            .keep_house(said.to_owned(), Tool::Compact, input, answer);
    }

    /// The agent marks results as not needed: all but the newest of those that told it nothing that
    /// lasts.
    fn snip(&mut self) {
        let random = &mut self.out.random;
        self.snip_at = self.out.calls + random.between(SNIP_EVERY.0, SNIP_EVERY.1);
        let newest = self.spent.split_off(self.spent.len() - 2);
        let spent = std::mem::replace(&mut self.spent, newest);
        let mut ids: Vec<Arc<str>> = Vec::new();
        for (message, own) in spent {
            self.out.tag(message, Tag::Snip);
            ids.extend(own);
        }
        let said = self.out.random.pick(words::SNIPPING).to_owned();
        let ids: Vec<&str> = ids.iter().map(AsRef::as_ref).collect();
        let answer = format!("{} results are marked.", ids.len());
        let input = json!({ "results": ids });
        self.out.keep_house(said, Tool::Snip, input, &answer);
    }
}
