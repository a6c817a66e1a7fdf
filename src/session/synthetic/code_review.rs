//! The family `code-review`: two hours with one repository, and most of the tokens are files read.
//!
//! Other families are the same work in another shape: see [`Profile`].

use super::facts::{self, Bank, Channel, Numbers, Pending, Planned, Requests, Ways};
use super::grammar::prose;
use super::plot::{Moment, Plot, Site, Telling};
use super::random::Quantiles;
use super::tools::{self, Tool};
use super::transcript::{Pace, Transcript};
use super::{Family, Generated, Language, Recipe};
use crate::session::ground_truth::{GroundTruth, PlantedFact};
use crate::session::{ContentBlock, SessionError, Thinking};
use crate::tokens::CountedTexts;

pub(super) mod act;
pub(super) mod artifacts;
pub(super) mod profile;
pub(super) mod repository;
pub(super) mod words;

use artifacts::Artifacts;
use profile::{Away, Limits, Profile};
use repository::Repository;

/// An agent reviews and repairs a repository.
pub(super) static FAMILY: Profile = Profile {
    name: "code-review",
    description: "reviews and repairs a repository for about two hours, with extensive file reads",
    // 1,642 over seeds 1 to 60 at 120 rounds with the counter `o200k`.
    tokens_per_round: 1_600,
    weights: [42, 9, 9, 9, 12, 8, 6, 2, 4],
    task: (4, 9),
    interrupts: true,
    said_by: 1_000,
    large_percent: 0,
    at_once_percent: 0,
    away: Away::Never,
    plot: Plot {
        seed: "code-review-schedule",
        rounds_per_chapter: 48,
        most_chapters: 8,
        density: profile::DENSITY,
        phrases: words::PHRASES,
    },
};

impl Family for Profile {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn languages(&self) -> &'static [Language] {
        self.plot.phrases.languages
    }

    fn generate(&self, recipe: &Recipe, counts: &CountedTexts) -> Result<Generated, SessionError> {
        Author::new(self, recipe, counts).write(recipe)
    }
}

/// So many calls pass before the agent asks for its conversation to be summarised, and between two
/// times: a first one falls into sessions of about 80,000 tokens.
const COMPACT_EVERY: (u64, u64) = (36, 60);

static PACE: Pace = Pace {
    // Monday, 5 January 2026, 08:00 UTC.
    first_morning: 1_767_600_000_000,
    thinking: &[
        (0, 3_000),
        (50_000, 16_000),
        (80_000, 45_000),
        (95_000, 120_000),
        (100_000, 280_000),
    ],
    reading: READING_TIME,
};

/// No gap reaches five minutes.
const READING_TIME: &Quantiles = &[(0, 15_000), (50_000, 70_000), (100_000, 290_000)];

/// Writes one session, message by message.
struct Author<'a> {
    profile: &'a Profile,
    out: Transcript<'a>,
    repository: Repository,
    artifacts: Artifacts,
    pending: Pending,
    requests: Requests,
    telling: Telling<'a>,
    facts: Vec<PlantedFact>,
    /// The number of calls from which on the agent compacts.
    compact_at: u64,
    language: Language,
}

impl<'a> Author<'a> {
    fn new(profile: &'a Profile, recipe: &Recipe, counts: &'a CountedTexts) -> Self {
        let rounds = recipe.rounds(profile.tokens_per_round);
        let numbers = Numbers::of(recipe, Bank::Repository, rounds, (4, 24), (8, 12));
        let (mut pending, decoys) = facts::plan(recipe.seed, numbers);
        pending.hasten(profile.said_by);
        let system = recipe.language.say(tools::SYSTEM);
        let mut out = Transcript::new(recipe, counts, &PACE, system, tools::schemas());
        let compact_at = out.random.between(COMPACT_EVERY.0, COMPACT_EVERY.1);
        let repository = Repository::new(recipe, 40 + rounds * 4 / 5, &mut out.random);
        out.set_out();
        Self {
            profile,
            out,
            repository,
            artifacts: Artifacts::default(),
            pending,
            requests: Requests::new(recipe.seed, numbers),
            telling: Telling::new(&profile.plot, recipe, rounds, profile.said_by),
            facts: decoys,
            compact_at,
            language: recipe.language,
        }
    }

    fn write(mut self, recipe: &Recipe) -> Result<Generated, SessionError> {
        self.request(false);
        let mut task = 0;
        let mut task_length = self.task_length();
        loop {
            let (last, closing) = self.out.ends(self.pending.is_empty());
            if last {
                break;
            }
            let waiting =
                self.profile.interrupts && self.pending.is_due(self.out.progress(), Channel::User);
            if closing || task >= task_length || (waiting && task > 0) {
                self.report();
                self.request(closing);
                task = 0;
                task_length = self.task_length();
            } else if task > 0 && self.out.calls >= self.compact_at {
                self.compact();
                task += 1;
            } else {
                self.work(task == 0);
                task += 1;
            }
        }
        self.report();
        let mut facts = facts::gathered(self.facts, Ways::of(recipe));
        facts.extend(self.requests.fact());
        facts.extend(self.artifacts.facts());
        facts.extend(self.telling.facts());
        facts.sort_by(|a, b| a.id.cmp(&b.id));
        let session = self.out.finish(recipe)?;
        let truth = GroundTruth::new(session.id(), facts);
        Ok(Generated { session, truth })
    }

    /// Rounds between two requests.
    fn task_length(&mut self) -> u64 {
        let (least, most) = self.profile.task;
        self.out.random.between(least, most)
    }

    /// The user types: a new request, and whatever else is to be said now.
    fn request(&mut self, closing: bool) {
        let progress = self.out.progress();
        let said = if closing {
            self.pending.rest()
        } else {
            let is_typed = |fact: &Planned| fact.channel == Channel::User;
            self.pending.take(progress, usize::MAX, is_typed)
        };
        let random = &mut self.out.random;
        let text = if closing {
            prose::wrap_up(random, self.language)
        } else {
            let Repository { workspace, memory } = &mut self.repository;
            let topic = memory.turn(workspace, random);
            prose::request(random, &topic)
        };
        let message = self.out.next();
        let random = &mut self.out.random;
        let mut parts = vec![self.requests.ask(text, message)];
        for fact in &said {
            let part = facts::typed(random, fact);
            if random.percent(35) {
                parts.insert(0, part);
            } else {
                parts.push(part);
            }
        }
        // Nobody interrupts a task to revise a setting: it is told with the next request.
        parts.extend(self.telling.typed(random, progress, message));
        self.facts
            .extend(said.into_iter().flat_map(|fact| fact.planted(message)));
        self.out.pass(self.profile.away);
        self.out.typed(parts.join("\n\n"), &[]);
    }

    /// The agent answers in words only.
    fn report(&mut self) {
        let random = &mut self.out.random;
        let topic = self.repository.topic(random);
        let mut paragraphs = vec![prose::report(random, &topic)];
        let message = self.out.next();
        let random = &mut self.out.random;
        paragraphs.extend(self.telling.conclusions(random, message));
        let text = paragraphs.join("\n\n");
        self.out.respond(vec![ContentBlock::Text(text.into())]);
    }

    /// What is drawn for this round: a huge result, or many files in one go.
    fn limits(&mut self) -> Limits {
        let profile = self.profile;
        let mut limits = Limits::up_to(if profile.large_percent > 0 {
            self.out.largest_huge_result()
        } else {
            self.out.largest_result()
        });
        let random = &mut self.out.random;
        if profile.large_percent > 0 && random.percent(profile.large_percent) {
            limits.least = random.between(profile::LARGE.0, profile::LARGE.1);
        } else if profile.at_once_percent > 0 && random.percent(profile.at_once_percent) {
            limits.reads = profile::READS_AT_ONCE;
        }
        self.out.lean(limits)
    }

    /// One round of work: the agent uses tools, and the tools answer.
    fn work(&mut self, first: bool) {
        let limits = self.limits();
        let weights = match limits.reads {
            0 => (!first).then_some(&self.profile.weights),
            _ => Some(&profile::READ_ONLY),
        };
        let (asking, now) = (self.out.next(), self.out.now);
        let progress = self.out.progress();
        let moment = Moment {
            progress,
            asking,
            now,
            // Two things may happen at once.
            room: limits.aside / 2,
        };
        let random = &mut self.out.random;
        let mut paragraphs = self.telling.conclusions(random, asking);
        let told = self.telling.shown(random, moment, &self.repository);
        let Repository { workspace, memory } = &mut self.repository;
        // It takes the place of the work of this round, as one tool is mostly used at a time.
        let round = if told.actions.is_empty() || !limits.are_usual() {
            memory.round(workspace, random, weights, now, limits)
        } else {
            memory.aside(workspace, random, limits)
        };
        paragraphs.extend(told.paragraphs);
        paragraphs.push(round.text);
        let mut actions = round.actions;
        actions.extend(told.actions);
        let is_shown = |fact: &Planned| fact.channel != Channel::User;
        // All of it is to be told in time where it is told early.
        let most = if self.profile.said_by < 1_000 { 3 } else { 2 };
        for fact in self.pending.take(progress, most, is_shown) {
            let action = memory.reveal(workspace, random, &fact, now, limits);
            actions.push(action);
            self.facts.extend(fact.planted(asking + 1));
        }
        let mut blocks = Vec::new();
        if let Some(thought) = round.thought {
            blocks.push(ContentBlock::Thinking(Thinking {
                text: thought.into(),
                signature: Some(random.hex(64).into()),
            }));
        }
        blocks.push(ContentBlock::Text(paragraphs.join("\n\n").into()));
        for action in &actions {
            self.artifacts.record(action.tool, &action.input, asking);
        }
        self.out.act(blocks, actions);
    }

    /// The agent calls `compact`. The full history goes on; a strategy may act on it.
    fn compact(&mut self) {
        let random = &mut self.out.random;
        let every = random.between(COMPACT_EVERY.0, COMPACT_EVERY.1);
        self.compact_at = self.out.calls + every;
        let topic = self.repository.topic(random);
        let (said, focus) = prose::compacting(random, &topic);
        let input = serde_json::json!({ "focus": focus });
        let answer = "The conversation will be condensed before the next step.";
        self.out.keep_house(said, Tool::Compact, input, answer);
    }
}
