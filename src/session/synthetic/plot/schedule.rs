//! What happens when: decisions, revisions, counts, failures and steps, each with its moment.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{Counts, Plot};
use crate::session::ground_truth::{Fact, Importance, PlanItem, PlantedFact, Revision};
use crate::session::synthetic::Recipe;
use crate::session::synthetic::facts::Ways;
use crate::session::synthetic::grammar::names::NOUNS;
use crate::session::synthetic::random::Random;

/// What waits for its moment.
#[derive(Debug)]
pub(super) struct Event {
    /// In thousandths of the session.
    pub(super) due: u64,
    /// Whether the user says it.
    pub(super) is_typed: bool,
    pub(super) what: What,
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// A decision falls.
    Decide(usize),
    /// A setting gets its first or another value.
    Revise(usize),
    /// A suite prints how many cases it has.
    Count(usize),
    /// An approach fails.
    Fail(usize),
    /// A plan is written, or its next step ticked off.
    Step(usize),
}

/// A key whose value changes.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) key: String,
    /// The values to come, the next one last.
    pub(super) ahead: Vec<String>,
    said: Vec<Revision>,
    is_count: bool,
}

/// A question that is settled.
#[derive(Debug)]
pub(super) struct Decision {
    key: String,
    choice: String,
    reason: String,
    rejected: Vec<String>,
    said: Option<usize>,
}

/// Something that fails.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) approach: String,
    pub(super) reason: String,
    /// Where it was said: in a result, and in what the agent made of it.
    pub(super) said: Vec<usize>,
}

/// The steps of one feature.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) items: Vec<PlanItem>,
    written: Vec<usize>,
}

/// Syllables of made-up names: six of them are more than 22 bits.
const SYLLABLES: &[&str] = &[
    "bal", "cor", "dra", "fen", "gul", "hes", "ivo", "jun", "kar", "lor", "mib", "nax", "osk",
    "pel", "rud", "syl", "tov", "ume", "vir", "yon",
];

/// Everything that happens in one session.
#[derive(Debug)]
pub(super) struct Schedule<'a> {
    plot: &'a Plot,
    ways: Ways,
    /// The earliest last.
    pub(super) events: Vec<Event>,
    pub(super) decisions: Vec<Decision>,
    pub(super) series: Vec<Series>,
    pub(super) attempts: Vec<Attempt>,
    pub(super) plans: Vec<Plan>,
    /// The names of the chapters.
    pub(super) chapters: Vec<String>,
    names: BTreeSet<String>,
}

/// So many of each kind are planted in one chapter, at most.
#[derive(Debug, Clone, Copy)]
struct PerChapter {
    decisions: u64,
    settings: u64,
    suites: u64,
    attempts: u64,
    steps: u64,
}

impl<'a> Schedule<'a> {
    /// A schedule for so many rounds; all of it is due by that thousandth of the session.
    pub(super) fn new(plot: &'a Plot, recipe: &Recipe, rounds: u64, said_by: u64) -> Self {
        let percent = u64::from(recipe.fact_percent);
        let chapters = (rounds / plot.rounds_per_chapter).clamp(1, plot.most_chapters);
        let rounds = (rounds / chapters).min(2 * plot.rounds_per_chapter);
        let mut random = Random::new(recipe.seed, plot.seed);
        let mut schedule = Self {
            plot,
            ways: Ways::of(recipe),
            events: Vec::new(),
            decisions: Vec::new(),
            series: Vec::new(),
            attempts: Vec::new(),
            plans: Vec::new(),
            chapters: Vec::new(),
            names: BTreeSet::new(),
        };
        let density = &plot.density;
        let scaled = |(per, cap): (u64, u64)| (rounds / per).min(cap) * percent / 100;
        let numbers = PerChapter {
            decisions: scaled(density.decisions),
            settings: scaled(density.settings),
            suites: scaled(density.suites),
            attempts: scaled(density.attempts),
            steps: if rounds < 12 || percent == 0 {
                0
            } else {
                (rounds / density.steps.0).clamp(4, density.steps.1)
            },
        };
        for chapter in 0..chapters {
            let name = schedule.name(&mut random, 3);
            schedule.chapters.push(name);
            // All that is planted falls into the first 92 %.
            let span = (chapter * 920 / chapters, (chapter + 1) * 920 / chapters);
            schedule.add_chapter(&mut random, span, numbers);
        }
        let standing = (chapters * rounds / 8).min(density.standing) * percent / 100;
        for _ in 0..standing {
            let revisions = random.between(6, 14);
            schedule.add_series(&mut random, false, revisions, (0, 920), (0, 100));
        }
        let events = &mut schedule.events;
        for event in events.iter_mut() {
            event.due = event.due * said_by / 1_000;
        }
        events.sort_by_key(|event| Reverse((event.due, event.what)));
        schedule
    }

    fn add_chapter(&mut self, random: &mut Random, span: (u64, u64), numbers: PerChapter) {
        let chapter = self.chapters.last().cloned().unwrap_or_default();
        let words = &self.plot.phrases;
        let mut aspects = words.aspects.to_vec();
        random.shuffle(&mut aspects);
        for part in 0..numbers.decisions {
            let aspect = aspects[usize::try_from(part).unwrap_or(0) % aspects.len()];
            let at = self.decisions.len();
            let decision = self.decision(random, &chapter, aspect);
            self.decisions.push(decision);
            let due = within(random, span, (10, 60), part, numbers.decisions);
            self.plant(due, false, What::Decide(at));
        }
        for at in 0..numbers.settings + numbers.suites {
            let is_count = at >= numbers.settings;
            let (least, most) = self.plot.density.revisions;
            let revisions = random.between(least, most);
            let share = if is_count {
                self.plot.density.counted
            } else {
                (0, 100)
            };
            self.add_series(random, is_count, revisions, span, share);
        }
        for part in 0..numbers.attempts {
            let method = random.pick(words.methods);
            let name = self.name(random, 3);
            let slots = [("method", method), ("name", name.as_str())];
            let approach = self.ways.fill(words.approach, &slots);
            let reason = format!("E{}", random.digits(8));
            let at = self.attempts.len();
            self.attempts.push(Attempt {
                approach,
                reason,
                said: Vec::new(),
            });
            let due = within(random, span, (15, 80), part, numbers.attempts);
            self.plant(due, false, What::Fail(at));
        }
        if numbers.steps > 0 {
            let plan = self.plan(random, &chapter, numbers.steps);
            let at = self.plans.len();
            self.plans.push(plan);
            let due = within(random, span, (32, 40), 0, 1);
            self.plant(due, false, What::Step(at));
            // Two steps are left for later.
            for part in 0..numbers.steps - 2 {
                let due = within(random, span, (45, 98), part, numbers.steps - 2);
                self.plant(due, false, What::Step(at));
            }
        }
    }

    /// A key whose value is revised, within a share of the span in percent.
    fn add_series(
        &mut self,
        random: &mut Random,
        is_count: bool,
        revisions: u64,
        span: (u64, u64),
        share: (u64, u64),
    ) {
        let series = self.setting(random, is_count, revisions);
        let at = self.series.len();
        self.series.push(series);
        for part in 0..revisions {
            let due = within(random, span, share, part, revisions);
            if is_count {
                self.plant(due, false, What::Count(at));
            } else {
                let is_typed = random.percent(self.plot.density.typed);
                self.plant(due, is_typed, What::Revise(at));
            }
        }
    }

    fn plant(&mut self, due: u64, is_typed: bool, what: What) {
        self.events.push(Event {
            due,
            is_typed,
            what,
        });
    }

    /// A made-up name of so many syllables, in two parts from six on.
    fn name(&mut self, random: &mut Random, syllables: usize) -> String {
        loop {
            let mut name = String::new();
            for at in 0..syllables {
                if at == 3 {
                    name.push('-');
                }
                name.push_str(random.pick(SYLLABLES));
            }
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }

    fn decision(&mut self, random: &mut Random, chapter: &str, aspect: &str) -> Decision {
        let words = &self.plot.phrases;
        let design = random.pick(words.designs);
        let mut options: Vec<String> = (0..random.count(3, 4))
            .map(|_| {
                let name = self.name(random, 6);
                self.ways
                    .fill("{name} {design}", &[("name", &name), ("design", design)])
            })
            .collect();
        let choice = options.pop().unwrap_or_default();
        let name = self.name(random, 3);
        Decision {
            key: self.ways.fill(
                "{chapter} {aspect}",
                &[("chapter", chapter), ("aspect", aspect)],
            ),
            choice,
            reason: self
                .ways
                .fill(random.pick(words.grounds), &[("name", &name)]),
            rejected: options,
            said: None,
        }
    }

    fn setting(&mut self, random: &mut Random, is_count: bool, revisions: u64) -> Series {
        let name = self.name(random, 3);
        let words = &self.plot.phrases;
        let bank = if is_count {
            words.suites
        } else {
            words.settings
        };
        let slots = [("name", name.as_str()), ("setting", random.pick(bank))];
        let key = self.ways.fill("{name} {setting}", &slots);
        let mut count = random.between(1_000_003, 7_999_999);
        let mut ahead: Vec<String> = (0..revisions)
            .map(|_| {
                if is_count {
                    count = match self.plot.density.counts {
                        Counts::Grow => count + random.between(1_009, 90_007),
                        Counts::Vary => random.between(1_000_003, 7_999_999),
                    };
                    count.to_string()
                } else {
                    format!("{}-{}", random.hex(4), random.hex(6))
                }
            })
            .collect();
        ahead.reverse();
        Series {
            key,
            ahead,
            said: Vec::new(),
            is_count,
        }
    }

    fn plan(&mut self, random: &mut Random, chapter: &str, steps: u64) -> Plan {
        let mut templates = self.plot.phrases.steps.to_vec();
        random.shuffle(&mut templates);
        let steps = usize::try_from(steps).unwrap_or(4);
        let items = templates
            .into_iter()
            .take(steps)
            .map(|template| {
                let name = self.name(random, 6);
                let slots = [("name", name.as_str()), ("noun", random.pick(NOUNS))];
                PlanItem {
                    item: self.ways.fill(template, &slots),
                    done: None,
                }
            })
            .collect();
        Plan {
            name: chapter.to_owned(),
            items,
            written: Vec::new(),
        }
    }

    /// The facts that were said.
    pub(super) fn facts(self) -> Vec<PlantedFact> {
        let words = &self.plot.phrases;
        let ways = self.ways;
        let unit = ways.language.say(words.unit);
        let mut facts = Vec::new();
        let mut add = |id: String, question, evidence: Vec<usize>, importance, fact| {
            if !evidence.is_empty() {
                facts.push(PlantedFact {
                    id,
                    fact,
                    question,
                    evidence,
                    importance,
                });
            }
        };
        for (at, decision) in self.decisions.into_iter().enumerate() {
            let question = ways.fill(
                "Which option was taken for the {key}, and why?",
                &[("key", &decision.key)],
            );
            let fact = Fact::Decision {
                key: decision.key,
                choice: decision.choice,
                reason: decision.reason,
                rejected: decision.rejected,
            };
            let evidence = decision.said.into_iter().collect();
            let id = format!("decision-{:02}", at + 1);
            add(id, question, evidence, Importance::High, fact);
        }
        for (at, series) in self.series.into_iter().enumerate() {
            let evidence = series.said.iter().map(|said| said.message).collect();
            let (kind, question, fact) = if series.is_count {
                (
                    "numeric",
                    ways.fill(
                        "How many {unit} did the {key} have at last?",
                        &[("unit", unit), ("key", &series.key)],
                    ),
                    Fact::Numeric {
                        key: series.key,
                        unit: unit.to_owned(),
                        values: series.said,
                    },
                )
            } else {
                (
                    "update",
                    ways.fill("What is the {key} now?", &[("key", &series.key)]),
                    Fact::Update {
                        key: series.key,
                        values: series.said,
                    },
                )
            };
            let id = format!("{kind}-{:02}", at + 1);
            add(id, question, evidence, Importance::High, fact);
        }
        for (at, attempt) in self.attempts.into_iter().enumerate() {
            let question = ways.fill(words.tried, &[("approach", &attempt.approach)]);
            let fact = Fact::RejectedPath {
                approach: attempt.approach,
                reason: attempt.reason,
            };
            let id = format!("rejected-path-{:02}", at + 1);
            add(id, question, attempt.said, Importance::Normal, fact);
        }
        for (at, plan) in self.plans.into_iter().enumerate() {
            let slots = [("plan", plan.name.as_str())];
            let question = ways.fill("Which steps of the plan `{plan}` are left?", &slots);
            let fact = Fact::Continuation {
                plan: plan.name,
                items: plan.items,
            };
            let id = format!("continuation-{:02}", at + 1);
            add(id, question, plan.written, Importance::High, fact);
        }
        facts
    }
}

/// Somewhere in the `part`-th of `parts` equal parts of a share of the span, in percent.
fn within(random: &mut Random, span: (u64, u64), share: (u64, u64), part: u64, parts: u64) -> u64 {
    let length = span.1 - span.0;
    let (from, to) = (share.0 * 1_000, share.1 * 1_000);
    let width = (to - from) / parts.max(1);
    let at = from + part * width + random.below(width.max(1));
    span.0 + length * at / 100_000
}

impl Series {
    /// The next value, said in the message of that index.
    pub(super) fn next(&mut self, message: usize) -> Option<String> {
        let value = self.ahead.pop()?;
        self.said.push(Revision::new(value.clone(), message));
        Some(value)
    }
}

impl Decision {
    /// The decision, said in the message of that index.
    pub(super) fn say(
        &mut self,
        random: &mut Random,
        message: usize,
        ways: Ways,
        bank: &[&str],
    ) -> String {
        self.said = Some(message);
        let mut all: Vec<&str> = self.rejected.iter().map(String::as_str).collect();
        all.push(&self.choice);
        random.shuffle(&mut all);
        let slots = [
            ("key", self.key.as_str()),
            ("all", &all.join(", ")),
            ("choice", &self.choice),
            ("reason", &self.reason),
        ];
        ways.fill(ways.pick(random, bank), &slots)
    }
}

impl Plan {
    /// The plan is written in the message of that index: for the first time, or with another step
    /// ticked off. The steps with their states.
    pub(super) fn write(&mut self, message: usize) -> Vec<(&str, &'static str)> {
        if !self.written.is_empty()
            && let Some(next) = self.items.iter_mut().find(|item| item.done.is_none())
        {
            next.done = Some(message);
        }
        self.written.push(message);
        let mut is_current = true;
        self.items
            .iter()
            .map(|item| {
                let state = match item.done {
                    Some(_) => "done",
                    None if std::mem::take(&mut is_current) => "in_progress",
                    None => "open",
                };
                (item.item.as_str(), state)
            })
            .collect()
    }
}
