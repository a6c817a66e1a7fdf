//! Writes one session of a story, round by round.

use std::sync::Arc;

use serde_json::json;

use super::scene::Scene;
use super::{Opening, Scenery, Story, small_talk};
use crate::session::ground_truth::{GroundTruth, PlantedFact};
use crate::session::synthetic::code_review::artifacts::Artifacts;
use crate::session::synthetic::code_review::profile::Limits;
use crate::session::synthetic::facts::{
    self, Bank, Channel, Numbers, Pending, Planned, Requests, Ways,
};
use crate::session::synthetic::plot::{self, Moment, Telling};
use crate::session::synthetic::random::Quantiles;
use crate::session::synthetic::tools::Tool;
use crate::session::synthetic::transcript::{Pace, Transcript};
use crate::session::synthetic::{Generated, Language, Recipe};
use crate::session::{ContentBlock, SessionError, Tag, Thinking};
use crate::tokens::CountedTexts;

/// So many calls pass between two times that the agent has its conversation summarised,
const COMPACT_EVERY: (u64, u64) = (40, 64);

/// and between two times that it marks results as not needed.
const SNIP_EVERY: (u64, u64) = (9, 17);

static PACE: Pace = Pace {
    // Monday, 2 February 2026, 08:00 UTC.
    first_morning: 1_770_019_200_000,
    thinking: &[
        (0, 2_500),
        (50_000, 14_000),
        (80_000, 40_000),
        (95_000, 110_000),
        (100_000, 240_000),
    ],
    reading: READING_TIME,
};

/// No gap reaches five minutes.
const READING_TIME: &Quantiles = &[(0, 20_000), (50_000, 90_000), (100_000, 280_000)];

/// Writes one session.
pub(super) struct Author<'a> {
    story: &'a Story,
    pub(super) out: Transcript<'a>,
    scene: Scene,
    pub(super) artifacts: Artifacts,
    /// Keys, rules and decoys, as in every family.
    pending: Pending,
    requests: Requests,
    telling: Telling<'a>,
    facts: Vec<PlantedFact>,
    /// Results that nobody will need: message and ids of the tool uses.
    pub(super) spent: Vec<(usize, Vec<Arc<str>>)>,
    /// Chapter and phase.
    stage: (u64, usize),
    /// About so many rounds there will be.
    rounds: u64,
    compact_at: u64,
    snip_at: u64,
    language: Language,
}

impl<'a> Author<'a> {
    pub(super) fn new(story: &'a Story, recipe: &Recipe, counts: &'a CountedTexts) -> Self {
        let rounds = recipe.rounds(story.tokens_per_round);
        let bank = match story.scenery {
            Scenery::Repository => Bank::Repository,
            Scenery::Desk => Bank::Desk,
        };
        let numbers = Numbers::of(recipe, bank, rounds, story.recalls, story.constraints);
        let (pending, decoys) = facts::plan(recipe.seed, numbers);
        let tools = story.scenery.tools();
        let mut out = Transcript::new(
            recipe,
            counts,
            &PACE,
            recipe.language.say(story.words.system),
            tools,
        );
        out.set_out();
        let scene = Scene::new(story.scenery, recipe, rounds, &mut out.random);
        Self {
            story,
            compact_at: out.random.between(COMPACT_EVERY.0, COMPACT_EVERY.1),
            snip_at: out.random.between(SNIP_EVERY.0, SNIP_EVERY.1),
            out,
            scene,
            artifacts: Artifacts::default(),
            pending,
            requests: Requests::new(recipe.seed, numbers),
            telling: Telling::new(&story.plot, recipe, rounds, 1_000),
            facts: decoys,
            spent: Vec::new(),
            stage: (0, 0),
            rounds,
            language: recipe.language,
        }
    }

    pub(super) fn write(mut self, recipe: &Recipe) -> Result<Generated, SessionError> {
        let words = &self.story.words;
        match self.story.opening {
            Opening::SmallTalk if self.rounds >= small_talk::LEAST_ROUNDS => {
                self.small_talk();
                self.request(words.openings, Some(""));
                self.snip_all();
            }
            Opening::SmallTalk | Opening::Work => self.request(words.openings, None),
        }
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
                let turn = words.turns[self.stage.1];
                self.request(turn, Some(words.hints[self.stage.1]));
                // A phase that one long result passed over is passed over.
                self.stage = stage;
                is_fresh = true;
            } else if self.is_typed_due() && !is_fresh {
                self.report();
                self.request(words.remarks, None);
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
        let mut facts = facts::gathered(self.facts, Ways::of(recipe));
        facts.extend(self.requests.fact());
        facts.extend(self.artifacts.facts());
        facts.extend(self.telling.facts());
        facts.sort_by(|a, b| a.id.cmp(&b.id));
        let session = self.out.finish(recipe)?;
        let truth = GroundTruth::new(session.id(), facts);
        Ok(Generated { session, truth })
    }

    /// The chapter and the phase that the session has come to.
    fn stage_now(&self) -> (u64, usize) {
        let chapters = self.telling.chapters();
        let far = (self.out.progress() * chapters).min(chapters * 1_000 - 1);
        let percent = far % 1_000 / 10;
        let ends = &self.story.phase_ends;
        let phase = ends.iter().filter(|end| **end <= percent).count();
        (far / 1_000, phase)
    }

    fn is_typed_due(&self) -> bool {
        let progress = self.out.progress();
        self.pending.is_due(progress, Channel::User) || self.telling.is_typed_due(progress)
    }

    fn say(&mut self, bank: &[&'static str]) -> String {
        let template = self.out.random.pick(bank);
        self.said(template)
    }

    fn said(&mut self, template: &str) -> String {
        let topic = self.scene.topic(&mut self.out.random);
        plot::about(template, &topic, self.telling.chapter(self.stage.0))
    }

    /// The person types one of these, and whatever else is to be said now. Where a phase ends
    /// with it, there may be a hint for who compacts then.
    fn request(&mut self, bank: &[&'static str], phase_end: Option<&str>) {
        self.scene.turn(&mut self.out.random);
        let message = self.out.next();
        let said = self.say(bank);
        // A remark asks for nothing.
        let is_request = !std::ptr::eq(bank, self.story.words.remarks);
        let mut parts = vec![if is_request {
            self.requests.ask(said, message)
        } else {
            said
        }];
        let progress = self.out.progress();
        let random = &mut self.out.random;
        parts.extend(self.telling.typed(random, progress, message));
        let is_typed = |fact: &Planned| fact.channel == Channel::User;
        let planned = self.pending.take(progress, usize::MAX, is_typed);
        self.type_in(parts, planned, phase_end);
    }

    /// The person ends the session, and says what was not said yet.
    fn close(&mut self) {
        let said = self.say(self.story.words.farewells);
        let parts = vec![self.requests.ask(said, self.out.next())];
        let planned = self.pending.rest();
        self.type_in(parts, planned, Some(self.story.words.hints[3]));
    }

    fn type_in(&mut self, mut parts: Vec<String>, planned: Vec<Planned>, phase_end: Option<&str>) {
        let message = self.out.next();
        for fact in planned {
            parts.push(facts::typed(&mut self.out.random, &fact));
            self.facts.extend(fact.planted(message));
        }
        self.out.pass(self.story.away);
        let text = parts.join("\n\n");
        let slots = [("chapter", self.telling.chapter(self.stage.0))];
        match phase_end {
            None => self.out.typed(text, &[]),
            Some("") => self.out.typed(text, &[Tag::PhaseEnd]),
            Some(hint) => self.out.phase_ends(text, &self.language.fill(hint, &slots)),
        }
    }

    /// The agent answers in words only.
    fn report(&mut self) {
        let mut text = self.say(self.story.words.reports);
        let message = self.out.next();
        for line in self.telling.conclusions(&mut self.out.random, message) {
            text.push_str("\n\n");
            text.push_str(&line);
        }
        self.out.respond(vec![ContentBlock::Text(text.into())]);
    }

    /// One round of work: the agent uses tools, and the tools answer.
    fn work(&mut self) {
        let limits = Limits::up_to(self.out.largest_result());
        let limits = self.out.lean(limits);
        let (asking, now) = (self.out.next(), self.out.now);
        let weights = &self.story.weights[self.stage.1];
        let random = &mut self.out.random;
        let round = self.scene.round(random, weights, now, limits);
        let mut actions = round.actions;
        let mut paragraphs = self.telling.conclusions(random, asking);
        let mut is_spent = true;
        let progress = self.out.progress();
        let is_shown = |fact: &Planned| fact.channel != Channel::User;
        for fact in self.pending.take(progress, 1, is_shown) {
            let random = &mut self.out.random;
            actions.push(self.scene.reveal(random, &fact, now, limits));
            self.facts.extend(fact.planted(asking + 1));
            is_spent = false;
        }
        let moment = Moment {
            progress,
            asking,
            now,
            // Two things may happen at once.
            room: limits.aside / 2,
        };
        let random = &mut self.out.random;
        let told = self.telling.shown(random, moment, self.scene.site());
        is_spent &= !told.is_any;
        paragraphs.extend(told.paragraphs);
        actions.extend(told.actions);
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

    /// The agent has the conversation summarised. The full history goes on.
    fn compact(&mut self) {
        let random = &mut self.out.random;
        self.compact_at = self.out.calls + random.between(COMPACT_EVERY.0, COMPACT_EVERY.1);
        let (said, focus) = random.pick(self.story.words.condensing);
        let focus = self.said(focus);
        let answer = "The conversation will be condensed before the next step.";
        let input = json!({ "focus": focus });
        let said = self.language.say(said).to_owned();
        self.out.keep_house(said, Tool::Compact, input, answer);
    }

    /// The agent marks results as not needed: all but the newest of those that told it nothing that
    /// lasts.
    fn snip(&mut self) {
        let random = &mut self.out.random;
        self.snip_at = self.out.calls + random.between(SNIP_EVERY.0, SNIP_EVERY.1);
        let newest = self.spent.split_off(self.spent.len() - 2);
        self.snip_all();
        self.spent = newest;
    }

    fn snip_all(&mut self) {
        let mut ids: Vec<Arc<str>> = Vec::new();
        for (message, own) in std::mem::take(&mut self.spent) {
            self.out.tag(message, Tag::Snip);
            ids.extend(own);
        }
        let said = self.out.random.pick(self.story.words.snipping);
        let said = self.language.say(said).to_owned();
        let ids: Vec<&str> = ids.iter().map(AsRef::as_ref).collect();
        let answer = format!("{} results are marked.", ids.len());
        let input = json!({ "results": ids });
        self.out.keep_house(said, Tool::Snip, input, &answer);
    }
}
