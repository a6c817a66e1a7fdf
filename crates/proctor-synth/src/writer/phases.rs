//! Sessions in chapters of four phases, each ended by a person.

use std::sync::Arc;

use serde_json::json;

use super::Writer;
use crate::family::Phases;
use crate::random::Random;
use crate::workspace::{Action, WorkChoice};
use proctor_sessions::Tag;

/// The number of calls between two times that the agent marks results as not needed.
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
    pub(super) fn new(rounds: u64, random: &Random) -> Self {
        Self { rounds, snip_at: random.between(SNIP_EVERY.0, SNIP_EVERY.1), ..Self::default() }
    }
}

impl Writer<'_> {
    pub(super) fn write_phases(&mut self, phases: &Phases) {
        let mut opening = None;
        if phases.small_talk && self.phases.rounds >= LEAST_ROUNDS {
            self.small_talk();
            opening = Some("");
        }
        self.request("openings", false, opening);
        if opening.is_some() {
            self.snip_all();
        }
        let mut is_fresh = true;
        loop {
            let (last, closing) = self.out.ends(&self.facts);
            if last {
                break;
            }
            let stage = self.stage_now(phases);
            if closing {
                self.report_phase();
                self.request("farewells", closing, Some(self.hint(3)));
                is_fresh = true;
            } else if is_fresh {
                self.work(phases);
                is_fresh = false;
            } else if stage != self.phases.stage {
                self.report_phase();
                let ended = self.phases.stage.1;
                let rule = format!("turns.{}", ended + 1);
                self.request(&rule, false, Some(self.hint(ended)));
                // A phase that one long result passed over is passed over.
                self.phases.stage = stage;
                is_fresh = true;
            } else if self.facts.is_typed_due(self.out.progress()) {
                self.report_phase();
                // A remark asks for nothing.
                self.workspace.turn();
                let said = self.say("remarks");
                self.type_in(said, false, None);
                is_fresh = true;
            } else if self.is_compaction_due() {
                let text = self.out.random.pick(self.bank("condensing"));
                let (said, focus) = text.split_once('\n').unwrap_or((text, ""));
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

    /// The templates of a rule of sessions in phases.
    fn bank(&self, rule: &str) -> &'static [&'static str] {
        self.family.phrases.bank(&format!("phases.{rule}"))
    }

    /// The hint for a compaction at the end of a phase; empty for none.
    fn hint(&self, phase: usize) -> &'static str {
        self.bank("hints").get(phase).unwrap_or(&"")
    }

    /// The chapter and the phase that the session has come to.
    fn stage_now(&self, phases: &Phases) -> (u64, usize) {
        let chapters = self.facts.chapters();
        let far = (self.out.progress() * chapters).min(chapters * 1_000 - 1);
        let percent = far % 1_000 / 10;
        let phase = phases.ends.iter().filter(|end| **end <= percent).count();
        (far / 1_000, phase)
    }

    /// The template about the topic and the chapter.
    fn about(&self, template: &str) -> String {
        let chapter = self.facts.chapter(self.phases.stage.0);
        self.workspace.topic().fill(template, &[("chapter", chapter)])
    }

    fn say(&self, rule: &str) -> String {
        self.about(self.out.random.pick(self.bank(rule)))
    }

    /// The user asks for something, which may end a phase.
    fn request(&mut self, rule: &str, closing: bool, phase_end: Option<&str>) {
        if !closing {
            self.workspace.turn();
        }
        let request = self.say(rule);
        let request = self.facts.request(request, self.out.next());
        self.type_in(request, closing, phase_end);
    }

    /// The user types this and all that is due to be said now; at the close, what was not said yet.
    fn type_in(&mut self, said: String, closing: bool, phase_end: Option<&str>) {
        let (progress, message) = (self.out.progress(), self.out.next());
        let mut parts = vec![said];
        parts.extend(self.facts.typed(progress, message, closing));
        self.out.pass(self.family.away_percent);
        let slots = [("chapter", self.facts.chapter(self.phases.stage.0))];
        let hint = phase_end.map(|hint| self.recipe.language.fill(hint, &slots));
        self.out.typed(parts.join("\n\n"), hint);
    }

    fn report_phase(&mut self) {
        let report = self.say("reports");
        self.report(report);
    }

    /// One round of work: the agent uses tools, and the tools answer.
    fn work(&mut self, phases: &Phases) {
        let moment = self.out.moment(self.out.largest_result());
        let moment = self.out.lean(moment);
        let weights = WorkChoice::Weighted(&phases.weights[self.phases.stage.1]);
        let mut round = self.workspace.round(weights, moment);
        let concluded = self.facts.conclusions(moment.asking);
        let (told, _) = self.facts.shown(moment, &mut *self.workspace);
        let spent = told.actions.is_empty() && told.paragraphs.is_empty();
        round.paragraphs = [concluded, told.paragraphs, round.paragraphs].concat();
        round.actions.extend(told.actions);
        let ids = self.act(round);
        if spent {
            self.phases.spent.push((moment.asking + 1, ids));
        }
    }

    /// The agent marks results as not needed: all but the newest of those that gave it nothing that
    /// lasts.
    fn snip(&mut self) {
        let next = self.out.random.between(SNIP_EVERY.0, SNIP_EVERY.1);
        self.phases.snip_at = self.out.calls + next;
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
        let said = self.out.random.pick(self.bank("snipping"));
        let said = self.recipe.language.say(said).to_owned();
        let ids: Vec<&str> = ids.iter().map(AsRef::as_ref).collect();
        let answer = format!("{} results are marked.", ids.len());
        let action = Action::new("snip", json!({ "results": ids }), answer);
        self.say_and_act(said, action);
    }
}
