//! The family `code-review`: two hours with one repository, and most of the tokens are files read.
//!
//! Other families are the same work in another shape: see [`Profile`].

use std::sync::Arc;

use super::facts::{self, Channel, Numbers, Planned};
use super::grammar::prose;
use super::random::{Quantiles, Random};
use super::tools::{self, Tool};
use super::workspace::Workspace;
use super::{Family, Generated, Length, Recipe, session_id};
use crate::session::ground_truth::{GroundTruth, PlantedFact};
use crate::session::{
    ContentBlock, JsonText, Message, Role, Session, SessionError, SessionParts, Source, Tag,
    Thinking, ToolResult, ToolUse,
};
use crate::tokens::CountedTexts;
use crate::units::{ApiCallId, Timestamp, Tokens};

pub(super) mod act;
pub(super) mod artifacts;
pub(super) mod profile;

use act::{Action, Memory};
use artifacts::Artifacts;
use profile::{Away, Limits, Profile};

/// An agent reviews and repairs a repository.
pub(super) static FAMILY: Profile = Profile {
    name: "code-review",
    description: "reviews and repairs a repository for about two hours, with extensive file reads",
    // Measured over seeds 1 to 60 at 120 rounds with the counter `o200k`.
    tokens_per_round: 1_850,
    weights: [42, 9, 9, 9, 12, 8, 6, 2, 4],
    task: (4, 9),
    interrupts: true,
    said_by: 1_000,
    large_percent: 0,
    at_once_percent: 0,
    away: Away::Never,
};

impl Family for Profile {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn generate(&self, recipe: &Recipe, counts: &CountedTexts) -> Result<Generated, SessionError> {
        Author::new(self, recipe, counts).write(recipe)
    }
}

/// So many calls pass before the agent asks for its conversation to be summarised, and between two
/// times: a first one falls into sessions of about 80,000 tokens.
const COMPACT_EVERY: (u64, u64) = (36, 60);

/// Milliseconds between a tool result and the next response.
const THINKING_TIME: &Quantiles = &[
    (0, 3_000),
    (50_000, 16_000),
    (80_000, 45_000),
    (95_000, 120_000),
    (100_000, 280_000),
];

/// Milliseconds until a person has read an answer and typed the next request.
const READING_TIME: &Quantiles = &[(0, 15_000), (50_000, 70_000), (100_000, 290_000)];

/// Milliseconds that tools run.
const RUNNING_TIME: &Quantiles = &[(0, 40), (60_000, 900), (95_000, 20_000), (100_000, 110_000)];

/// Monday, 5 January 2026, 08:00 UTC.
const FIRST_MORNING: i64 = 1_767_600_000_000;

/// Writes one session, message by message.
struct Author<'a> {
    profile: &'a Profile,
    /// How often the person was away.
    absences: u64,
    counts: &'a CountedTexts,
    length: Length,
    random: Random,
    workspace: Workspace,
    memory: Memory,
    artifacts: Artifacts,
    pending: Vec<Planned>,
    facts: Vec<PlantedFact>,
    system: Arc<str>,
    tools: Vec<crate::session::ToolSchema>,
    messages: Vec<Arc<Message>>,
    tokens: Tokens,
    now: i64,
    calls: u64,
    uses: u64,
    /// The number of calls from which on the agent compacts.
    compact_at: u64,
}

impl<'a> Author<'a> {
    fn new(profile: &'a Profile, recipe: &Recipe, counts: &'a CountedTexts) -> Self {
        let rounds = match recipe.length {
            Length::Rounds(rounds) => u64::from(rounds),
            Length::Tokens(tokens) => tokens.0 / profile.tokens_per_round + 1,
        };
        let scaled = |per: u64, cap: u64| {
            let number = (rounds / per).min(cap) * u64::from(recipe.fact_percent) / 100;
            usize::try_from(number).unwrap_or(0)
        };
        let numbers = Numbers {
            recalls: scaled(4, 24),
            // The bank of rules has 42 topics.
            constraints: scaled(8, 12).min(42),
            decoys: scaled(1, 6).max(1),
        };
        let (mut pending, decoys) = facts::plan(recipe.seed, numbers);
        pending.reverse();
        for fact in &mut pending {
            fact.due = fact.due * profile.said_by / 1_000;
        }
        let files = usize::try_from(40 + rounds * 4 / 5).unwrap_or(usize::MAX);
        let system: Arc<str> = Arc::from(tools::SYSTEM);
        let tools = tools::schemas();
        let mut tokens = Tokens::ZERO;
        if let Length::Tokens(_) = recipe.length {
            tokens = counts.size(&system).tokens;
            tokens += tools
                .iter()
                .map(|tool| counts.size(tool.text()).tokens)
                .sum();
        }
        let mut random = Random::new(recipe.seed, profile.name);
        let compact_at = random.between(COMPACT_EVERY.0, COMPACT_EVERY.1);
        let mut workspace = Workspace::new(recipe.seed, files);
        let memory = Memory::new(&mut workspace, &mut random);
        let days = i64::try_from(random.below(200)).unwrap_or(0);
        let minutes = i64::try_from(random.below(300)).unwrap_or(0);
        Self {
            profile,
            absences: 0,
            counts,
            length: recipe.length,
            now: FIRST_MORNING + days * 86_400_000 + minutes * 60_000,
            random,
            workspace,
            memory,
            artifacts: Artifacts::default(),
            pending,
            facts: decoys,
            system,
            tools,
            messages: Vec::new(),
            tokens,
            calls: 0,
            uses: 0,
            compact_at,
        }
    }

    fn write(mut self, recipe: &Recipe) -> Result<Generated, SessionError> {
        self.request(false);
        let mut task = 0;
        let mut task_length = self.task_length();
        loop {
            let (last, closing) = match self.length {
                Length::Rounds(rounds) => {
                    let rounds = u64::from(rounds);
                    (self.calls + 1 >= rounds, self.calls + 2 >= rounds)
                }
                Length::Tokens(target) => {
                    let reached = self.tokens >= target;
                    (reached && self.pending.is_empty(), reached)
                }
            };
            if last {
                break;
            }
            let waiting =
                self.profile.interrupts && self.due().any(|fact| fact.channel == Channel::User);
            if closing || task >= task_length || (waiting && task > 0) {
                self.report();
                self.request(closing);
                task = 0;
                task_length = self.task_length();
            } else if task > 0 && self.calls >= self.compact_at {
                self.compact();
                task += 1;
            } else {
                self.work(task == 0);
                task += 1;
            }
        }
        self.report();
        let (id, mut facts) = (session_id(recipe), self.facts);
        facts.extend(self.artifacts.facts());
        facts.sort_by(|a, b| a.id.cmp(&b.id));
        let session = Session::new(SessionParts {
            id: id.clone(),
            system: Some(self.system),
            tools: self.tools,
            messages: self.messages,
            compactions: Vec::new(),
            model: Some("synthetic-agent".to_owned()),
            context_window: Some(Tokens(200_000)),
            source: Source {
                format: "synthetic".to_owned(),
                ..Source::default()
            },
            resumed: None,
        })?;
        Ok(Generated {
            session,
            truth: GroundTruth::new(id, facts),
        })
    }

    /// Rounds between two requests.
    fn task_length(&mut self) -> u64 {
        let (least, most) = self.profile.task;
        self.random.between(least, most)
    }

    /// How far the session is, in thousandths, when the next message is written.
    fn progress(&self) -> u64 {
        match self.length {
            Length::Rounds(rounds) => (self.calls + 1) * 1_000 / u64::from(rounds),
            Length::Tokens(target) => self.tokens.0 * 1_000 / target.0,
        }
    }

    /// The facts whose moment has come, the earliest last in `pending`.
    fn due(&self) -> impl Iterator<Item = &Planned> {
        let progress = self.progress();
        self.pending
            .iter()
            .rev()
            .take_while(move |fact| fact.due < progress)
    }

    /// Takes up to `limit` due facts that `fits`.
    fn take_due(&mut self, limit: usize, fits: impl Fn(&Planned) -> bool) -> Vec<Planned> {
        let first = self.pending.len() - self.due().count();
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

    /// The user types: a new request, and whatever else is to be said now.
    fn request(&mut self, closing: bool) {
        let said = if closing {
            std::mem::take(&mut self.pending)
        } else {
            self.take_due(usize::MAX, |fact| fact.channel == Channel::User)
        };
        let text = if closing {
            prose::wrap_up(&mut self.random)
        } else {
            let topic = self.memory.turn(&mut self.workspace, &mut self.random);
            prose::request(&mut self.random, &topic)
        };
        let mut parts = vec![text];
        for fact in &said {
            let part = facts::typed(&mut self.random, fact);
            if self.random.percent(35) {
                parts.insert(0, part);
            } else {
                parts.push(part);
            }
        }
        self.wait(READING_TIME);
        self.go_away();
        let message = self.messages.len();
        self.facts
            .extend(said.into_iter().map(|fact| fact.planted(message)));
        let message = Message::text(Role::User, parts.join("\n\n")).with_tags([Tag::TypedUser]);
        self.push(message);
    }

    /// The person is away before the next request, if the family has it.
    fn go_away(&mut self) {
        let Away::Percent(percent) = self.profile.away else {
            return;
        };
        if !self.messages.is_empty() && self.random.percent(percent) {
            // For a while, and for long: by turns, so that a session has both.
            let time = profile::AWAY[usize::from(self.absences % 2 == 1)];
            self.absences += 1;
            self.wait(time);
        }
    }

    /// The agent answers in words only.
    fn report(&mut self) {
        let topic = self.memory.topic(&self.workspace, &mut self.random);
        let text = prose::report(&mut self.random, &topic);
        self.respond(vec![ContentBlock::Text(text.into())]);
    }

    /// The most bytes a result may have now: about a sixth of the session, so that one huge log is
    /// not all there is to a short one; and not much more than what is left to write. In a family
    /// of huge results half a megabyte, or half of the session.
    fn largest_result(&self) -> u64 {
        let is_large = self.profile.large_percent > 0;
        match self.length {
            Length::Rounds(_) if is_large => profile::LARGE.1,
            Length::Rounds(rounds) => (u64::from(rounds) * 1_000).max(8_000),
            Length::Tokens(target) => (target.0 / 2 * if is_large { 4 } else { 1 })
                .min((target - self.tokens).0.saturating_mul(3))
                .max(900),
        }
    }

    /// What is drawn for this round: a huge result, or many files in one go.
    fn limits(&mut self) -> Limits {
        let profile = self.profile;
        let mut limits = Limits::up_to(self.largest_result());
        if profile.large_percent > 0 && self.random.percent(profile.large_percent) {
            limits.least = self.random.between(profile::LARGE.0, profile::LARGE.1);
        } else if profile.at_once_percent > 0 && self.random.percent(profile.at_once_percent) {
            limits.reads = profile::READS_AT_ONCE;
        }
        limits
    }

    /// One round of work: the agent uses tools, and the tools answer.
    fn work(&mut self, first: bool) {
        let limits = self.limits();
        let weights = match limits.reads {
            0 => (!first).then_some(&self.profile.weights),
            _ => Some(&profile::READ_ONLY),
        };
        let round = self.memory.round(
            &mut self.workspace,
            &mut self.random,
            weights,
            self.now,
            limits,
        );
        let mut actions: Vec<(Action, Option<Planned>)> = round
            .actions
            .into_iter()
            .map(|action| (action, None))
            .collect();
        for fact in self.take_due(2, |fact| fact.channel != Channel::User) {
            let action = self
                .memory
                .reveal(&mut self.workspace, &mut self.random, &fact, self.now);
            actions.push((action, Some(fact)));
        }
        let mut blocks = Vec::new();
        if let Some(thought) = round.thought {
            blocks.push(ContentBlock::Thinking(Thinking {
                text: thought.into(),
                signature: Some(self.random.hex(64).into()),
            }));
        }
        blocks.push(ContentBlock::Text(round.text.into()));
        let asking = self.messages.len();
        let mut answers = Vec::new();
        for (action, fact) in actions {
            self.uses += 1;
            let id: Arc<str> = format!("toolu_{}{:05}", self.random.hex(14), self.uses).into();
            let (name, class) = action.tool.name();
            self.artifacts.record(action.tool, &action.input, asking);
            blocks.push(ContentBlock::ToolUse(ToolUse {
                id: id.clone(),
                name: name.into(),
                class,
                input: JsonText::of(&action.input),
            }));
            answers.push(ContentBlock::ToolResult(ToolResult {
                tool_use_id: id,
                content: vec![ContentBlock::Text(action.output.into())],
                is_error: action.failed,
            }));
            self.facts.extend(fact.map(|fact| fact.planted(asking + 1)));
        }
        self.respond(blocks);
        self.wait(RUNNING_TIME);
        self.push(Message::new(Role::User, answers));
    }

    /// The agent calls `compact`. The full history goes on; a strategy may act on it.
    fn compact(&mut self) {
        let every = self.random.between(COMPACT_EVERY.0, COMPACT_EVERY.1);
        self.compact_at = self.calls + every;
        let topic = self.memory.topic(&self.workspace, &mut self.random);
        let (said, focus) = prose::compacting(&mut self.random, &topic);
        self.uses += 1;
        let id: Arc<str> = format!("toolu_{}{:05}", self.random.hex(14), self.uses).into();
        let (name, class) = Tool::Compact.name();
        self.respond(vec![
            ContentBlock::Text(said.into()),
            ContentBlock::ToolUse(ToolUse {
                id: id.clone(),
                name: name.into(),
                class,
                input: JsonText::of(&serde_json::json!({ "focus": focus })),
            }),
        ]);
        self.wait(RUNNING_TIME);
        let answer = "The conversation will be condensed before the next step.";
        self.push(Message::new(
            Role::User,
            vec![ContentBlock::ToolResult(ToolResult {
                tool_use_id: id,
                content: vec![ContentBlock::Text(answer.into())],
                is_error: false,
            })],
        ));
    }

    fn respond(&mut self, blocks: Vec<ContentBlock>) {
        self.wait(THINKING_TIME);
        self.calls += 1;
        let mut message = Message::new(Role::Assistant, blocks);
        let call = format!("msg_{}{:05}", self.random.hex(14), self.calls);
        message.api_call = Some(ApiCallId(call.into()));
        self.push(message);
    }

    fn wait(&mut self, time: &Quantiles) {
        let time = self.random.quantile(time).max(1);
        self.now += i64::try_from(time).unwrap_or(1);
    }

    fn push(&mut self, mut message: Message) {
        message.timestamp = Some(Timestamp(self.now));
        if let Length::Tokens(_) = self.length {
            let texts = message.model_text().iter();
            self.tokens += texts.map(|text| self.counts.size(text).tokens).sum();
        }
        self.messages.push(Arc::new(message));
    }
}
