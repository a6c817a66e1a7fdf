//! Tells what happens, when it is due: in what the person types, what the agent says, and what tools
//! print.

use serde_json::{Value, json};

use super::schedule::{Event, Schedule, What};
use super::{Plot, Site, Spot};
use crate::session::ground_truth::PlantedFact;
use crate::session::synthetic::Recipe;
use crate::session::synthetic::code_review::act::Action;
use crate::session::synthetic::facts::{self, Pair, Ways};
use crate::session::synthetic::grammar::names::FAULTS;
use crate::session::synthetic::grammar::prose::Topic;
use crate::session::synthetic::random::Random;
use crate::session::synthetic::tools::Tool;

/// What happens in one session, and what of it was told.
#[derive(Debug)]
pub(crate) struct Telling<'a> {
    plot: &'a Plot,
    schedule: Schedule<'a>,
    ways: Ways,
    /// Attempts that failed, and about which the agent said nothing yet.
    failed: Vec<usize>,
}

/// When the agent acts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// In thousandths of the session.
    pub(crate) progress: u64,
    /// The index of the message in which it asks for tools.
    pub(crate) asking: usize,
    pub(crate) now: i64,
    /// About so many bytes may be shown besides what is told.
    pub(crate) room: usize,
}

impl Moment {
    /// Where the work is now.
    fn spot(self, random: &mut Random, site: &dyn Site) -> Spot {
        Spot {
            place: site.here(random),
            now: self.now,
            room: self.room,
        }
    }
}

/// What the agent has to say and to do besides its work.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) paragraphs: Vec<String>,
    pub(crate) actions: Vec<Action>,
    /// Whether anything happened.
    pub(crate) is_any: bool,
}

impl<'a> Telling<'a> {
    /// What happens in a session of so many rounds, all of it by that thousandth.
    pub(crate) fn new(plot: &'a Plot, recipe: &Recipe, rounds: u64, said_by: u64) -> Self {
        Self {
            plot,
            schedule: Schedule::new(plot, recipe, rounds, said_by),
            ways: Ways::of(recipe),
            failed: Vec::new(),
        }
    }

    /// How many chapters there are.
    pub(crate) fn chapters(&self) -> u64 {
        self.schedule.chapters.len() as u64
    }

    /// The name of a chapter.
    pub(crate) fn chapter(&self, at: u64) -> &str {
        let chapter = usize::try_from(at).ok();
        let chapter = chapter.and_then(|at| self.schedule.chapters.get(at));
        chapter.map_or("it", String::as_str)
    }

    /// Whether there is something for the person to type.
    pub(crate) fn is_typed_due(&self, progress: u64) -> bool {
        let events = self.schedule.events.iter().rev();
        events
            .take_while(|event| event.due < progress)
            .any(|event| event.is_typed)
    }

    /// Takes up to `limit` due events, of each thing at most one.
    fn take(&mut self, progress: u64, limit: usize, is_typed: bool) -> Vec<What> {
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

    /// What the person has to tell now, in the message of that index.
    pub(crate) fn typed(
        &mut self,
        random: &mut Random,
        progress: u64,
        message: usize,
    ) -> Vec<String> {
        let mut parts = Vec::new();
        for what in self.take(progress, usize::MAX, true) {
            if let What::Revise(at) = what
                && let Some(series) = self.schedule.series.get_mut(at)
                && let Some(value) = series.next(message)
            {
                let slots = [("key", series.key.as_str()), ("value", &value)];
                let template = self.ways.pick(random, self.plot.phrases.revised);
                parts.push(self.ways.fill(template, &slots));
            }
        }
        parts
    }

    /// What the agent has to say about what failed, in the message of that index.
    pub(crate) fn conclusions(&mut self, random: &mut Random, message: usize) -> Vec<String> {
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
                let bank = self.plot.phrases.given_up;
                Some(self.ways.fill(self.ways.pick(random, bank), &slots))
            })
            .collect()
    }

    /// What the agent decides and writes down now, and what its tools show of what changed.
    pub(crate) fn shown(&mut self, random: &mut Random, moment: Moment, site: &dyn Site) -> Told {
        let mut told = Told::default();
        let Moment {
            progress, asking, ..
        } = moment;
        for what in self.take(progress, 2, false) {
            told.is_any = true;
            match what {
                What::Decide(at) => {
                    if let Some(decision) = self.schedule.decisions.get_mut(at) {
                        let bank = self.plot.phrases.decided;
                        let said = decision.say(random, asking, self.ways, bank);
                        told.paragraphs.push(said);
                    }
                }
                What::Revise(at) => told.actions.extend(self.revise(random, at, moment, site)),
                What::Count(at) => told.actions.extend(self.count(random, at, moment, site)),
                What::Fail(at) => told.actions.extend(self.fail(random, at, moment, site)),
                What::Step(at) => {
                    let template = random.pick(self.plot.phrases.listing);
                    let topic = site.topic(random);
                    let Some((chapter, list)) = self.step(at, asking) else {
                        continue;
                    };
                    told.paragraphs.push(about(template, &topic, &chapter));
                    told.actions.push(list);
                }
            }
        }
        told
    }

    /// A tool prints settings, one of which is a new value.
    fn revise(
        &mut self,
        random: &mut Random,
        at: usize,
        moment: Moment,
        site: &dyn Site,
    ) -> Option<Action> {
        let spot = moment.spot(random, site);
        let series = self.schedule.series.get_mut(at)?;
        let pair = Pair {
            key: series.key.clone(),
            value: series.next(moment.asking + 1)?,
            ways: self.ways,
        };
        let line = facts::logged(random, &pair);
        Some(site.settings(random, &spot, line))
    }

    /// A tool says how many there are by now.
    fn count(
        &mut self,
        random: &mut Random,
        at: usize,
        moment: Moment,
        site: &dyn Site,
    ) -> Option<Action> {
        let spot = moment.spot(random, site);
        let series = self.schedule.series.get_mut(at)?;
        let value = series.next(moment.asking + 1)?;
        let slots = [("key", series.key.as_str()), ("value", &value)];
        let bank = self.plot.phrases.counted;
        let line = self.ways.fill(self.ways.pick(random, bank), &slots);
        Some(site.count(random, &spot, line))
    }

    /// A tool fails; the agent says next what it makes of it.
    fn fail(
        &mut self,
        random: &mut Random,
        at: usize,
        moment: Moment,
        site: &dyn Site,
    ) -> Option<Action> {
        let spot = moment.spot(random, site);
        let attempt = self.schedule.attempts.get_mut(at)?;
        attempt.said.push(moment.asking + 1);
        self.failed.push(at);
        let fault = random.pick(FAULTS).replace('_', " ");
        let slots = [
            ("approach", attempt.approach.as_str()),
            ("reason", &attempt.reason),
            ("fault", &fault),
        ];
        let mut action = site.failure(random, &spot);
        let bank = self.plot.phrases.collapsed;
        let line = self.ways.fill(self.ways.pick(random, bank), &slots);
        action.output.push('\n');
        action.output.push_str(&line);
        Some(action)
    }

    /// The agent writes a plan, or ticks off its next step: the chapter, and the list.
    fn step(&mut self, at: usize, message: usize) -> Option<(String, Action)> {
        let plan = self.schedule.plans.get_mut(at)?;
        let name = plan.name.clone();
        let steps = plan.write(message);
        let open = steps.iter().filter(|(_, state)| *state != "done").count();
        let todos: Vec<Value> = steps
            .iter()
            .map(|(item, state)| json!({"task": item, "status": state}))
            .collect();
        let action = Action {
            tool: Tool::TodoWrite,
            output: format!(
                "The list of `{name}` was replaced: {open} of {} left.",
                todos.len()
            ),
            input: json!({"plan": name, "todos": todos}),
            failed: false,
        };
        Some((name, action))
    }

    /// What was told, as facts.
    pub(crate) fn facts(self) -> Vec<PlantedFact> {
        self.schedule.facts()
    }
}

/// A template about what is talked about, in a chapter of that name.
pub(crate) fn about(template: &str, topic: &Topic, chapter: &str) -> String {
    let slots = [
        ("chapter", chapter),
        ("noun", topic.noun),
        ("path", &topic.path),
        ("symbol", &topic.symbol),
        ("elsewhere", &topic.elsewhere),
    ];
    topic.language.fill(template, &slots)
}
