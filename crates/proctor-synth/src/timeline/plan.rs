//! When things happen: decisions, revisions, counts, failures and steps, each with its moment.

use std::collections::BTreeMap;

use super::{Item, Timeline};
use crate::Recipe;
use crate::facts::{self, Ways};
use crate::family::{Counts, Family, TimelinePlan};
use crate::grammar::Grammar;
use crate::random::{Random, Unique, whole};
use crate::schedule::{Event, Schedule};
use proctor_sessions::ground_truth::{Fact, PlanItem};

/// A part of a session, in thousandths.
type Span = (u64, u64);

/// A part of a span, in percent.
type Share = (u64, u64);

/// Draws the items and the events of a timeline.
struct Planner {
    random: Random,
    plan: &'static TimelinePlan,
    phrases: &'static Grammar,
    ways: Ways,
    /// Rounds of a chapter.
    rounds: u64,
    /// How much is planted, in percent of the plan.
    percent: u64,
    /// Everything is said by this thousandth of the session.
    said_by: u64,
    chapters: Vec<String>,
    items: Vec<Item>,
    /// How many items there are of each kind; revised values and counts are numbered together.
    numbers: BTreeMap<&'static str, usize>,
    events: Vec<Event<usize>>,
    names: Unique,
}

impl Timeline {
    /// A timeline for that number of rounds, made with these draws.
    pub(crate) fn new(
        family: &'static Family,
        recipe: &Recipe,
        rounds: u64,
        random: &Random,
    ) -> Self {
        let plan = &family.timeline;
        let chapters = (rounds / plan.rounds_per_chapter).clamp(1, plan.most_chapters);
        let mut planner = Planner {
            random: Random::new(recipe.seed, plan.seed),
            plan,
            phrases: &family.phrases,
            ways: Ways::of(recipe),
            rounds: (rounds / chapters).min(2 * plan.rounds_per_chapter),
            percent: recipe.fact_percent.into(),
            said_by: family.said_by,
            chapters: Vec::new(),
            items: Vec::new(),
            numbers: BTreeMap::new(),
            events: Vec::new(),
            names: Unique::default(),
        };
        for chapter in 0..chapters {
            // All that is planted falls into the first 92 %.
            planner.add_chapter((chapter * 920 / chapters, (chapter + 1) * 920 / chapters));
        }
        let standing = (chapters * planner.rounds / 8).min(plan.standing) * planner.percent / 100;
        for _ in 0..standing {
            let revisions = planner.random.between(6, 14);
            planner.add_series(false, revisions, (0, 920), (0, 100));
        }
        Self {
            random: random.clone(),
            phrases: planner.phrases,
            ways: planner.ways,
            chapters: planner.chapters,
            items: planner.items,
            events: Schedule::new(planner.events),
            failed: Vec::new(),
        }
    }
}

impl Planner {
    /// The number of items in a chapter for one every `per` rounds, up to a cap.
    fn scaled(&self, (per, cap): (u64, u64)) -> u64 {
        (self.rounds / per).min(cap) * self.percent / 100
    }

    fn add_chapter(&mut self, span: Span) {
        let plan = self.plan;
        let chapter = self.name("short_name");
        self.chapters.push(chapter.clone());
        let mut aspects = self.phrases.bank("aspects").to_vec();
        self.random.shuffle(&mut aspects);
        let decisions = self.scaled(plan.decisions);
        for (part, aspect) in (0..decisions).zip(aspects.iter().cycle()) {
            let item = self.add_decision(&chapter, aspect);
            self.schedule(item, span, (10, 60), (part, decisions));
        }
        let (settings, suites) = (self.scaled(plan.settings), self.scaled(plan.suites));
        for at in 0..settings + suites {
            let is_count = at >= settings;
            let revisions = self.random.between(plan.revisions.0, plan.revisions.1);
            let share = if is_count { plan.counted } else { (0, 100) };
            self.add_series(is_count, revisions, span, share);
        }
        let attempts = self.scaled(plan.attempts);
        for part in 0..attempts {
            let item = self.add_attempt();
            self.schedule(item, span, (15, 80), (part, attempts));
        }
        if self.rounds >= 12 && self.percent > 0 {
            let steps = (self.rounds / plan.steps.0).clamp(4, plan.steps.1);
            let item = self.add_plan(chapter, steps);
            self.schedule(item, span, (32, 40), (0, 1));
            // Two steps are left for later.
            for part in 0..steps - 2 {
                self.schedule(item, span, (45, 98), (part, steps - 2));
            }
        }
    }

    /// Adds an event of an item somewhere in the `part`-th of `parts` equal parts of a share of the
    /// span.
    fn schedule(&mut self, item: usize, span: Span, share: Share, (part, parts): (u64, u64)) {
        let (from, to) = (share.0 * 1_000, share.1 * 1_000);
        let width = (to - from) / parts.max(1);
        let at = from + part * width + self.random.below(width.max(1));
        let due = span.0 + (span.1 - span.0) * at / 100_000;
        let fact = &self.items[item].fact.fact;
        // The order in which kinds happen at the same moment.
        let kind = match fact {
            Fact::Decision { .. } => 0,
            Fact::Update { .. } => 1,
            Fact::Numeric { .. } => 2,
            Fact::RejectedPath { .. } => 3,
            _ => 4,
        };
        let is_revised = matches!(fact, Fact::Update { .. });
        self.events.push(Event {
            due: due * self.said_by / 1_000,
            key: format!("{kind} {item:06}"),
            is_typed: is_revised && self.random.percent(self.plan.typed),
            what: item,
        });
    }

    /// Adds an item, and asks for it. Its index.
    fn add(
        &mut self,
        kind: &'static str,
        question: String,
        fact: Fact,
        ahead: Vec<String>,
    ) -> usize {
        let group = if kind == "numeric" { "update" } else { kind };
        let number = self.numbers.entry(group).or_default();
        *number += 1;
        let fact = facts::unsaid(kind, *number, question, fact);
        self.items.push(Item { fact, ahead });
        self.items.len() - 1
    }

    /// A made-up name that no other thing has.
    fn name(&mut self, rule: &str) -> String {
        self.names.draw(&self.random, rule)
    }

    fn add_decision(&mut self, chapter: &str, aspect: &str) -> usize {
        let (ways, phrases) = (self.ways, self.phrases);
        let design = self.random.pick(phrases.bank("designs"));
        let count = self.random.count(3, 4);
        let options = (0..count).map(|_| {
            let name = self.name("long_name");
            ways.fill("{name} {design}", &[("name", &name), ("design", design)])
        });
        let mut rejected: Vec<String> = options.collect();
        let choice = rejected.pop().unwrap_or_default();
        let name = self.name("short_name");
        let slots = [("chapter", chapter), ("aspect", aspect)];
        let key = ways.fill("{chapter} {aspect}", &slots);
        let reason = ways.fill(
            self.random.pick(phrases.bank("grounds")),
            &[("name", &name)],
        );
        let question = ways.ask("decision", &[("key", &key)]);
        let fact = Fact::Decision {
            key,
            choice,
            reason,
            rejected,
        };
        self.add("decision", question, fact, Vec::new())
    }

    /// Adds a key with revised values, or a suite with revised counts.
    fn add_series(&mut self, is_count: bool, revisions: u64, span: Span, share: Share) {
        const COUNTS: (u64, u64) = (1_000_003, 7_999_999);
        let (ways, phrases) = (self.ways, self.phrases);
        let name = self.name("short_name");
        let bank = phrases.bank(if is_count { "suites" } else { "settings" });
        let slots = [("name", name.as_str()), ("setting", self.random.pick(bank))];
        let key = ways.fill("{name} {setting}", &slots);
        let mut count = self.random.between(COUNTS.0, COUNTS.1);
        let values = (0..revisions).map(|_| {
            if !is_count {
                return self.random.draw("revision");
            }
            count = match self.plan.counts {
                Counts::Grow => count + self.random.between(1_009, 90_007),
                Counts::Vary => self.random.between(COUNTS.0, COUNTS.1),
            };
            count.to_string()
        });
        let mut ahead: Vec<String> = values.collect();
        ahead.reverse();
        let unit = ways.language.say(phrases.one("unit"));
        let kind = if is_count { "numeric" } else { "update" };
        let question = ways.ask(kind, &[("unit", unit), ("key", &key)]);
        let (unit, values) = (unit.to_owned(), Vec::new());
        let fact = if is_count {
            Fact::Numeric { key, unit, values }
        } else {
            Fact::Update { key, values }
        };
        let item = self.add(kind, question, fact, ahead);
        for part in 0..revisions {
            self.schedule(item, span, share, (part, revisions));
        }
    }

    fn add_attempt(&mut self) -> usize {
        let (ways, phrases) = (self.ways, self.phrases);
        let method = self.random.pick(phrases.bank("methods"));
        let name = self.name("short_name");
        let slots = [("method", method), ("name", name.as_str())];
        let approach = ways.fill(phrases.one("approach"), &slots);
        let reason = self.random.draw("reason_code");
        let question = ways.fill(phrases.one("tried"), &[("approach", &approach)]);
        let fact = Fact::RejectedPath { approach, reason };
        self.add("rejected-path", question, fact, Vec::new())
    }

    fn add_plan(&mut self, plan: String, steps: u64) -> usize {
        let ways = self.ways;
        let mut templates = self.phrases.bank("steps").to_vec();
        self.random.shuffle(&mut templates);
        templates.truncate(whole(steps));
        let items = templates.into_iter().map(|template| {
            let name = self.name("long_name");
            let noun = self.random.word("nouns");
            PlanItem {
                item: ways.fill(template, &[("name", &name), ("noun", noun)]),
                done: None,
            }
        });
        let items = items.collect();
        let question = ways.ask("continuation", &[("plan", &plan)]);
        let fact = Fact::Continuation { plan, items };
        self.add("continuation", question, fact, Vec::new())
    }
}
