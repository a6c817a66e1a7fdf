//! Sessions in chapters of four phases, each ended by a person.

use std::sync::Arc;

use serde_json::json;

use super::Writer;
use crate::session::Tag;
use crate::session::synthetic::facts::Planned;
use crate::session::synthetic::family::Phases;
use crate::session::synthetic::random::Random;
use crate::session::synthetic::timeline;
use crate::session::synthetic::workspace::{Action, Choice, Limits};

/// So many calls pass between two times that the agent marks results as not needed.
const SNIP_EVERY: (u64, u64) = (9, 17);

/// Shorter sessions begin with the work: small talk takes up to a fifth of this.
const LEAST_ROUNDS: u64 = 40;

/// How far a session in phases is.
#[derive(Debug, Default)]
pub(super) struct PhaseState {
    /// The expected number of rounds.
    rounds: u64,
    /// Chapter and phase.
    stage: (u64, usize),
    /// The number of calls from which on the agent marks results as not needed.
    snip_at: u64,
    /// Results that are not needed later: message and ids of the tool uses.
    pub(super) spent: Vec<(usize, Vec<Arc<str>>)>,
}

impl PhaseState {
    pub(super) fn new(rounds: u64, random: &mut Random) -> Self {
        Self {
            rounds,
            snip_at: random.between(SNIP_EVERY.0, SNIP_EVERY.1),
            ..Self::default()
        }
    }
}

impl Writer<'_> {
    pub(super) fn write_phases(&mut self, phases: &Phases) {
        let words = &self.family.phrases.phases;
        let mut opening = None;
        if phases.small_talk && self.phases.rounds >= LEAST_ROUNDS {
            self.small_talk();
            opening = Some("");
        }
        self.request(&words.openings, opening);
        if opening.is_some() {
            self.snip_all();
        }
        let mut is_fresh = true;
        loop {
            let (last, closing) = self.out.ends(self.pending.is_empty());
            if last {
                break;
            }
            let stage = self.stage_now(phases);
            if closing {
                self.report_phase();
                self.close();
                is_fresh = true;
            } else if is_fresh {
                self.work(phases);
                is_fresh = false;
            } else if stage != self.phases.stage {
                self.report_phase();
                let ended = self.phases.stage.1;
                self.request(&words.turns[ended], Some(words.hints[ended]));
                // A phase that one long result passed over is passed over.
                self.phases.stage = stage;
                is_fresh = true;
            } else if self.is_typed_due() {
                self.report_phase();
                // A remark asks for nothing.
                self.workspace.turn(&mut self.out.random);
                let said = self.say(&words.remarks);
                self.type_with_due(said, None);
                is_fresh = true;
            } else if self.is_compaction_due() {
                let (said, focus) = self.out.random.pick(&words.condensing);
                let focus = self.about(focus);
                self.compact(self.recipe.language.say(said).to_owned(), &focus);
            } else if self.out.calls >= self.phases.snip_at && self.phases.spent.len() > 2 {
                self.snip();
            } else {
                self.work(phases);
            }
        }
        self.report_phase();
    }

    /// The chapter and the phase that the session has come to.
    fn stage_now(&self, phases: &Phases) -> (u64, usize) {
        let chapters = self.timeline.chapters();
        let far = (self.out.progress() * chapters).min(chapters * 1_000 - 1);
        let percent = far % 1_000 / 10;
        let phase = phases.ends.iter().filter(|end| **end <= percent).count();
        (far / 1_000, phase)
    }

    fn is_typed_due(&self) -> bool {
        let progress = self.out.progress();
        self.pending.is_typed_due(progress) || self.timeline.is_typed_due(progress)
    }

    /// The template about the topic and the chapter.
    fn about(&mut self, template: &str) -> String {
        let topic = self.workspace.topic(&mut self.out.random);
        timeline::about(template, &topic, self.timeline.chapter(self.phases.stage.0))
    }

    fn say(&mut self, bank: &[&'static str]) -> String {
        let template = self.out.random.pick(bank);
        self.about(template)
    }

    /// The user asks for something by one of these templates, which may end a phase.
    fn request(&mut self, bank: &[&'static str], phase_end: Option<&str>) {
        self.workspace.turn(&mut self.out.random);
        let said = self.say(bank);
        let said = self.requests.ask(said, self.out.next());
        self.type_with_due(said, phase_end);
    }

    /// The user types this, and all that is due to be said now.
    fn type_with_due(&mut self, said: String, phase_end: Option<&str>) {
        let (progress, message) = (self.out.progress(), self.out.next());
        let mut parts = vec![said];
        parts.extend(self.timeline.typed(&mut self.out.random, progress, message));
        let planned = self.pending.take(progress, usize::MAX, true);
        self.type_in(parts, planned, phase_end);
    }

    /// The user ends the session, and says what was not said yet.
    fn close(&mut self) {
        let words = &self.family.phrases.phases;
        let said = self.say(&words.farewells);
        let parts = vec![self.requests.ask(said, self.out.next())];
        let planned = self.pending.rest();
        self.type_in(parts, planned, Some(words.hints[3]));
    }

    fn type_in(&mut self, mut parts: Vec<String>, planned: Vec<Planned>, phase_end: Option<&str>) {
        for fact in planned {
            parts.push(self.type_fact(fact));
        }
        self.out.pass(self.family.away_percent);
        let text = parts.join("\n\n");
        let slots = [("chapter", self.timeline.chapter(self.phases.stage.0))];
        match phase_end {
            None => self.out.typed(text, &[]),
            Some("") => self.out.typed(text, &[Tag::PhaseEnd]),
            Some(hint) => self
                .out
                .phase_ends(text, &self.recipe.language.fill(hint, &slots)),
        }
    }

    fn report_phase(&mut self) {
        let report = self.say(&self.family.phrases.phases.reports);
        self.report(report);
    }

    /// One round of work: the agent uses tools, and the tools answer.
    fn work(&mut self, phases: &Phases) {
        let limits = Limits::up_to(self.out.largest_result());
        let limits = self.out.lean(limits);
        let moment = self.moment(limits);
        let weights = Choice::Weighted(&phases.weights[self.phases.stage.1]);
        let random = &mut self.out.random;
        let round = self.workspace.round(random, weights, moment.now, limits);
        let mut actions = round.actions;
        let mut paragraphs = self.timeline.conclusions(random, moment.asking);
        let revealed = self.reveal(moment, 1, limits);
        let random = &mut self.out.random;
        let told = self.timeline.shown(random, moment, &*self.workspace);
        let is_spent = revealed.is_empty() && told.is_none();
        let told = told.unwrap_or_default();
        actions.extend(revealed);
        actions.extend(told.actions);
        paragraphs.extend(told.paragraphs);
        paragraphs.push(round.text);
        let ids = self.act(round.thought, &paragraphs, actions);
        if is_spent {
            self.phases.spent.push((moment.asking + 1, ids));
        }
    }

    /// The agent marks results as not needed: all but the newest of those that told it nothing that
    /// lasts.
    fn snip(&mut self) {
        let random = &mut self.out.random;
        self.phases.snip_at = self.out.calls + random.between(SNIP_EVERY.0, SNIP_EVERY.1);
        let newest = self.phases.spent.split_off(self.phases.spent.len() - 2);
        self.snip_all();
        self.phases.spent = newest;
    }

    fn snip_all(&mut self) {
        let mut ids: Vec<Arc<str>> = Vec::new();
        for (message, own) in std::mem::take(&mut self.phases.spent) {
            self.out.tag(message, Tag::Snip);
            ids.extend(own);
        }
        let said = self.out.random.pick(&self.family.phrases.phases.snipping);
        let said = self.recipe.language.say(said).to_owned();
        let ids: Vec<&str> = ids.iter().map(AsRef::as_ref).collect();
        let answer = format!("{} results are marked.", ids.len());
        self.act(
            None,
            &[said],
            vec![Action::new("snip", json!({ "results": ids }), answer)],
        );
    }
}
