//! What happens when: decisions, revisions, counts, failures and steps, each with its moment.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{Event, Item, Kind, Timeline};
use crate::session::ground_truth::{Fact, Importance, PlanItem};
use crate::session::synthetic::Recipe;
use crate::session::synthetic::facts::{self, Ways};
use crate::session::synthetic::family::{Counts, Family};
use crate::session::synthetic::random::Random;
use crate::session::synthetic::words::{FACTS, NAMES};

/// So many of each kind are planted in one chapter, at most.
#[derive(Debug, Clone, Copy)]
struct PerChapter {
    decisions: u64,
    settings: u64,
    suites: u64,
    attempts: u64,
    steps: u64,
}

/// A key whose value is revised so many times, in a share of a span in percent.
struct Series {
    is_count: bool,
    revisions: u64,
    span: (u64, u64),
    share: (u64, u64),
}

impl Timeline {
    /// A schedule for so many rounds; all of it is due by that thousandth of the session.
    pub(crate) fn new(family: &'static Family, recipe: &Recipe, rounds: u64, said_by: u64) -> Self {
        let plan = &family.timeline;
        let percent = u64::from(recipe.fact_percent);
        let chapters = (rounds / plan.rounds_per_chapter).clamp(1, plan.most_chapters);
        let rounds = (rounds / chapters).min(2 * plan.rounds_per_chapter);
        let mut random = Random::new(recipe.seed, plan.seed);
        let mut timeline = Self {
            plan,
            phrases: &family.phrases,
            ways: Ways::of(recipe),
            chapters: Vec::new(),
            items: Vec::new(),
            events: Vec::new(),
            names: BTreeSet::new(),
            failed: Vec::new(),
        };
        let scaled = |(per, cap): (u64, u64)| (rounds / per).min(cap) * percent / 100;
        let has_plan = rounds >= 12 && percent > 0;
        let numbers = PerChapter {
            decisions: scaled(plan.decisions),
            settings: scaled(plan.settings),
            suites: scaled(plan.suites),
            attempts: scaled(plan.attempts),
            steps: if has_plan {
                (rounds / plan.steps.0).clamp(4, plan.steps.1)
            } else {
                0
            },
        };
        for chapter in 0..chapters {
            // All that is planted falls into the first 92 %.
            let span = (chapter * 920 / chapters, (chapter + 1) * 920 / chapters);
            timeline.add_chapter(&mut random, span, numbers);
        }
        let standing = (chapters * rounds / 8).min(plan.standing) * percent / 100;
        for _ in 0..standing {
            let series = Series {
                is_count: false,
                revisions: random.between(6, 14),
                span: (0, 920),
                share: (0, 100),
            };
            timeline.add_series(&mut random, &series);
        }
        for event in &mut timeline.events {
            event.due = event.due * said_by / 1_000;
        }
        timeline
            .events
            .sort_by_key(|event| Reverse((event.due, event.kind, event.item)));
        timeline
    }

    fn add_chapter(&mut self, random: &mut Random, span: (u64, u64), numbers: PerChapter) {
        let chapter = self.name(random, 3);
        self.chapters.push(chapter.clone());
        let mut aspects = self.phrases.aspects.clone();
        random.shuffle(&mut aspects);
        for (part, aspect) in (0..numbers.decisions).zip(aspects.iter().cycle()) {
            let item = self.add_decision(random, &chapter, aspect);
            let due = within(random, span, (10, 60), part, numbers.decisions);
            self.plant(due, false, Kind::Decide, item);
        }
        for at in 0..numbers.settings + numbers.suites {
            let is_count = at >= numbers.settings;
            let (least, most) = self.plan.revisions;
            let series = Series {
                is_count,
                revisions: random.between(least, most),
                span,
                share: if is_count {
                    self.plan.counted
                } else {
                    (0, 100)
                },
            };
            self.add_series(random, &series);
        }
        for part in 0..numbers.attempts {
            let item = self.add_attempt(random);
            let due = within(random, span, (15, 80), part, numbers.attempts);
            self.plant(due, false, Kind::Fail, item);
        }
        if numbers.steps > 0 {
            let item = self.add_plan(random, chapter, numbers.steps);
            let due = within(random, span, (32, 40), 0, 1);
            self.plant(due, false, Kind::Step, item);
            // Two steps are left for later.
            for part in 0..numbers.steps - 2 {
                let due = within(random, span, (45, 98), part, numbers.steps - 2);
                self.plant(due, false, Kind::Step, item);
            }
        }
    }

    fn plant(&mut self, due: u64, is_typed: bool, kind: Kind, item: usize) {
        self.events.push(Event {
            due,
            is_typed,
            kind,
            item,
        });
    }

    /// Adds something that happens; the number in its id counts the things of its kind. Its index.
    fn add(
        &mut self,
        kinds: &[&str],
        question: String,
        importance: Importance,
        fact: Fact,
        ahead: Vec<String>,
    ) -> usize {
        let of_kind = |id: &str| kinds.iter().any(|kind| id.starts_with(kind));
        let known = self
            .items
            .iter()
            .filter(|item| of_kind(&item.fact.id))
            .count();
        let id = format!("{}-{:02}", kinds[0], known + 1);
        let fact = facts::unsaid(id, question, importance, fact);
        self.items.push(Item { fact, ahead });
        self.items.len() - 1
    }

    /// A made-up name of so many syllables, in two parts from six on.
    fn name(&mut self, random: &mut Random, syllables: usize) -> String {
        loop {
            let mut name = String::new();
            for at in 0..syllables {
                if at == 3 {
                    name.push('-');
                }
                name.push_str(random.pick(&FACTS.syllables.timeline));
            }
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }

    fn add_decision(&mut self, random: &mut Random, chapter: &str, aspect: &str) -> usize {
        let (ways, phrases) = (self.ways, self.phrases);
        let design = random.pick(&phrases.designs);
        let count = random.count(3, 4);
        let mut rejected = Vec::new();
        for _ in 0..count {
            let name = self.name(random, 6);
            rejected.push(ways.fill("{name} {design}", &[("name", &name), ("design", design)]));
        }
        let choice = rejected.pop().unwrap_or_default();
        let name = self.name(random, 3);
        let key = ways.fill(
            "{chapter} {aspect}",
            &[("chapter", chapter), ("aspect", aspect)],
        );
        let reason = ways.fill(random.pick(&phrases.grounds), &[("name", &name)]);
        let asked = "Which option was taken for the {key}, and why?";
        let question = ways.fill(asked, &[("key", &key)]);
        let fact = Fact::Decision {
            key,
            choice,
            reason,
            rejected,
        };
        self.add(&["decision"], question, Importance::High, fact, Vec::new())
    }

    fn add_series(&mut self, random: &mut Random, series: &Series) {
        let &Series {
            is_count,
            revisions,
            span,
            share,
        } = series;
        let (ways, phrases) = (self.ways, self.phrases);
        let name = self.name(random, 3);
        let bank = if is_count {
            &phrases.suites
        } else {
            &phrases.settings
        };
        let slots = [("name", name.as_str()), ("setting", random.pick(bank))];
        let key = ways.fill("{name} {setting}", &slots);
        let mut count = random.between(1_000_003, 7_999_999);
        let mut ahead = Vec::new();
        for _ in 0..revisions {
            ahead.push(if is_count {
                count = match self.plan.counts {
                    Counts::Grow => count + random.between(1_009, 90_007),
                    Counts::Vary => random.between(1_000_003, 7_999_999),
                };
                count.to_string()
            } else {
                format!("{}-{}", random.hex(4), random.hex(6))
            });
        }
        ahead.reverse();
        let unit = ways.language.say(phrases.unit);
        let slots = [("unit", unit), ("key", &key)];
        let values = Vec::new();
        let item = if is_count {
            let question = ways.fill("How many {unit} did the {key} have at last?", &slots);
            let unit = unit.to_owned();
            let fact = Fact::Numeric { key, unit, values };
            self.add(
                &["numeric", "update"],
                question,
                Importance::High,
                fact,
                ahead,
            )
        } else {
            let question = ways.fill("What is the {key} now?", &slots[1..]);
            let fact = Fact::Update { key, values };
            self.add(
                &["update", "numeric"],
                question,
                Importance::High,
                fact,
                ahead,
            )
        };
        for part in 0..revisions {
            let due = within(random, span, share, part, revisions);
            if is_count {
                self.plant(due, false, Kind::Count, item);
            } else {
                let is_typed = random.percent(self.plan.typed);
                self.plant(due, is_typed, Kind::Revise, item);
            }
        }
    }

    fn add_attempt(&mut self, random: &mut Random) -> usize {
        let (ways, phrases) = (self.ways, self.phrases);
        let method = random.pick(&phrases.methods);
        let name = self.name(random, 3);
        let slots = [("method", method), ("name", name.as_str())];
        let approach = ways.fill(phrases.approach, &slots);
        let reason = format!("E{}", random.digits(8));
        let question = ways.fill(phrases.tried, &[("approach", &approach)]);
        let fact = Fact::RejectedPath { approach, reason };
        self.add(
            &["rejected-path"],
            question,
            Importance::Normal,
            fact,
            Vec::new(),
        )
    }

    fn add_plan(&mut self, random: &mut Random, plan: String, steps: u64) -> usize {
        let ways = self.ways;
        let mut templates = self.phrases.steps.clone();
        random.shuffle(&mut templates);
        templates.truncate(usize::try_from(steps).unwrap_or(4));
        let mut items = Vec::new();
        for template in templates {
            let name = self.name(random, 6);
            let slots = [("name", name.as_str()), ("noun", random.pick(&NAMES.nouns))];
            items.push(PlanItem {
                item: ways.fill(template, &slots),
                done: None,
            });
        }
        let slots = [("plan", plan.as_str())];
        let question = ways.fill("Which steps of the plan `{plan}` are left?", &slots);
        let fact = Fact::Continuation { plan, items };
        self.add(
            &["continuation"],
            question,
            Importance::High,
            fact,
            Vec::new(),
        )
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
