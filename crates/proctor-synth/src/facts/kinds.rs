//! One function for each kind of facts: what it is about, who says it, and how it is asked for.

use super::planner::{ChapterSpan, Planner, Share, WHOLE};
use super::{Channel, Content};
use crate::family::CountTrend;
use crate::grammar::bank;
use crate::random::whole;
use crate::words::RuleWords;
use proctor_sessions::ground_truth::{AllowedCall, Fact, KeyValue, PlanItem, RuleForm};

/// The rules that the banks have objects for.
const MOST_RULES: usize = 42;

/// A key is asked for by itself if at least this many others of its type are beside it.
const AMONG: usize = 3;

/// The fewest and the most events of a series,
const EVENTS: (usize, usize) = (4, 6);

/// its handles,
const HANDLES: (usize, usize) = (4, 5);

/// and the handles that are ended.
const ENDED: (usize, usize) = (1, 2);

/// The fewest and the most values of a key that is revised from beginning to end.
const STANDING: (u64, u64) = (6, 14);

/// The smallest and the largest count: nobody guesses one of seven digits.
const COUNTS: (u64, u64) = (1_000_003, 7_999_999);

/// Rounds between two values of a key, at least.
const ROUNDS_PER_VALUE: u64 = 4;

/// Where values are said. The user types none of them: each would interrupt the work.
const SHOWN: [Channel; 3] = [Channel::Config, Channel::Log, Channel::Runbook];

impl Planner {
    /// Rules of the user. Of those that are asked for as a choice, the first of a pair is set each
    /// other time, so that the longer rule and the one with a negation are set as often as not.
    pub(super) fn constraints(&mut self) {
        let count = self.number("constraint").min(MOST_RULES);
        let mut kinds: Vec<&RuleWords> = Vec::new();
        let mut is_first = self.aside.percent(50);
        for at in 0..count {
            if kinds.is_empty() {
                kinds.extend(&self.words.rules);
                self.random.shuffle(&mut kinds);
            }
            let Some(rule) = kinds.pop() else { break };
            let about = self.deal(rule.abouts[0], &rule.abouts);
            let [name, spare] = [(); 2].map(|()| self.draw("names"));
            let number = self.random.between(2, 9);
            // Another number of one digit, all of them equally likely.
            let other = (number - 2 + self.aside.between(1, 7)) % 8 + 2;
            let (number, other) = (number.to_string(), other.to_string());
            let slots = [
                ("name", name.as_str()),
                ("spare", &spare),
                ("about", about),
                ("number", &number),
                ("other", &other),
            ];
            let ways = self.ways;
            let topic = ways.fill(rule.topic, &slots);
            let (statement, form) = if at % 2 == 1 && !rule.pairs.is_empty() {
                let (first, second) = ways.pick(&self.random, &rule.pairs);
                is_first = !is_first;
                let sides = if is_first { [first, second] } else { [second, first] };
                let [statement, foil] = sides.map(|side| ways.fill(side, &slots));
                (statement, RuleForm::Choice { foil })
            } else {
                let statement = ways.say(&self.random, &rule.templates, &slots);
                let form = match rule.task {
                    "" => RuleForm::Open,
                    task => {
                        let slots = [("name", spare.as_str()), ("about", about)];
                        let free = ways.fill(rule.topic, &slots);
                        RuleForm::Call {
                            task: ways.fill(task, &[("place", &topic)]),
                            allowed: Some(AllowedCall {
                                task: ways.fill(task, &[("place", &free)]),
                                target: free,
                            }),
                            forbidden: topic.clone(),
                        }
                    }
                };
                (statement, form)
            };
            let lead = ways.language.say(self.random.word("rule_leads"));
            let line = Content::Line(format!("{lead}{statement}"));
            let question = ways.fill(rule.asked, &slots);
            let fact = Fact::Constraint { topic, statement, form };
            let fact = self.add("constraint", question, fact);
            self.plant(self.moment(at, count), Channel::User, line, fact);
        }
    }

    /// Keys with values, which the user says and tools show by turns. Every other one that has
    /// enough others of its type beside it asks for one of them, too.
    pub(super) fn recalls(&mut self) {
        const CHANNELS: [Channel; 6] = [
            Channel::User,
            Channel::User,
            Channel::Config,
            Channel::Log,
            Channel::Comment,
            Channel::Runbook,
        ];
        let count = self.number("recall");
        let mut channels = Vec::new();
        let mut is_among = false;
        for at in 0..count {
            if channels.is_empty() {
                channels = CHANNELS.to_vec();
                self.random.shuffle(&mut channels);
            }
            let channel = channels.pop().unwrap_or(Channel::User);
            let (class, attribute) = self.class();
            let others = match (self.distractors, channel) {
                (Some(number), _) => whole(number.into()),
                (None, Channel::User) => self.random.count(0, 2),
                (None, _) => self.random.count(3, 6),
            };
            let mut pairs: Vec<KeyValue> =
                (0..=others).map(|_| self.pair(attribute, class)).collect();
            let KeyValue { key, value } = pairs[0].clone();
            let question = self.ask_for(&key);
            let fact = self.add("recall", question, Fact::Recall { key, value });
            let mut binding = None;
            if others >= AMONG {
                is_among = !is_among;
                binding = is_among.then(|| self.binding(&pairs));
            }
            self.random.shuffle(&mut pairs);
            self.plant(self.moment(at, count), channel, Content::Pairs(pairs), fact);
            if let Some(event) = self.events.last_mut() {
                event.second_fact = binding;
            }
        }
    }

    /// Asks for a second key of a text that says these pairs.
    fn binding(&mut self, pairs: &[KeyValue]) -> usize {
        let mut others = pairs.to_vec();
        let asked = 1 + self.random.index(others.len() - 1);
        let KeyValue { key, value } = others.remove(asked);
        others.rotate_left(1);
        let question = self.ask_for(&key);
        self.add("binding", question, Fact::Binding { key, value, others })
    }

    /// Failures with a code and a place.
    pub(super) fn errors(&mut self) {
        let count = self.number("error");
        for at in 0..count {
            let attempt = self.deal("attempts", bank("attempts"));
            let attempt = self.key(attempt);
            let [code, place] = ["error_code", "error_place"].map(|rule| self.draw(rule));
            let slots = [
                ("place", place.as_str()),
                ("code", &code),
                ("fault", &self.random.draw("fault")),
                ("attempt", &attempt),
            ];
            let line = Content::Line(self.ways.say(&self.random, bank("failed"), &slots));
            let question = self.ways.ask("error", &slots);
            let fact = Fact::Error { attempt, code, place };
            let fact = self.add("error", question, fact);
            self.plant(self.moment(at, count), Channel::Failure, line, fact);
        }
    }

    /// The events of all series, each by itself.
    pub(super) fn orders(&mut self) {
        for _ in 0..self.number("order") {
            let series = self.deal("series", &self.words.series);
            let series = self.key(series);
            let question = self.ways.ask("order", &[("series", &series)]);
            let (sequence, events) = (series.clone(), Vec::new());
            let fact = self.add("order", question, Fact::Order { sequence, events });
            let count = self.random.count(EVENTS.0, EVENTS.1);
            for at in 0..count {
                let event = self.draw("numbered");
                let slots = [("event", event.as_str()), ("series", &series)];
                let line = self.ways.say(&self.random, bank("passed"), &slots);
                let channels = [Channel::User, Channel::Log, Channel::Log];
                let channel = self.random.pick(&channels);
                self.plant(self.moment(at, count), channel, Content::Part(line, event), fact);
            }
        }
    }

    /// The starts and ends of handles, each by itself. Tools report all of them, so that they are
    /// said in the order in which they are due.
    pub(super) fn open_handles(&mut self) {
        for _ in 0..self.number("open-handle") {
            let owner = self.deal("owners", &self.words.owners);
            let owner = self.key(owner);
            let question = self.ways.ask("open-handle", &[("owner", &owner)]);
            let fact = Fact::OpenHandle { owner: owner.clone(), handles: Vec::new() };
            let fact = self.add("open-handle", question, fact);
            let count = self.random.count(HANDLES.0, HANDLES.1);
            let ended = self.random.count(ENDED.0, ENDED.1);
            let mut order: Vec<usize> = (0..count).collect();
            self.random.shuffle(&mut order);
            for at in 0..count {
                let name = self.draw("handle");
                let slots = [("handle", name.as_str()), ("owner", &owner)];
                let started = self.moment(at, count) * 4 / 5;
                // Before the last twelfth of the session, so that there is a question behind it.
                let finished = started + 20 + self.random.below(900_u64.saturating_sub(started));
                let moments = [(started, "started"), (finished, "finished")];
                let ends = order[..ended].contains(&at);
                for (due, rule) in moments.into_iter().take(1 + usize::from(ends)) {
                    let line = self.ways.say(&self.random, bank(rule), &slots);
                    self.plant(due, Channel::Log, Content::Part(line, name.clone()), fact);
                }
            }
        }
    }

    /// Pairs of instructions in one message, and the messages that take one of them back.
    pub(super) fn obsoletes(&mut self) {
        let count = self.number("obsolete");
        let ways = self.ways;
        for at in 0..count {
            let subject = self.deal("subjects", &self.words.subjects);
            let (class, _) = self.class();
            let [withdrawn, standing] = [(); 2].map(|()| self.pair(subject, class));
            let instructed = [ways.pick(&self.random, bank("instructed"))];
            let mut given =
                [&withdrawn, &standing].map(|pair| ways.pair(&self.random, &instructed, pair));
            self.random.shuffle(&mut given);
            let withdrawal = ways.pair(&self.random, bank("withdrawn"), &withdrawn);
            let [question, standing_question] = [&withdrawn, &standing]
                .map(|pair| ways.pair(&self.random, bank("ask.obsolete"), pair));
            let fact = Fact::Obsolete {
                withdrawn,
                withdrawal: withdrawal.clone(),
                standing,
                standing_question,
            };
            let fact = self.add("obsolete", question, fact);
            let first = self.moment(at, count) * 2 / 3;
            let second = first + 60 + self.random.below(240);
            for (due, line) in [(first, given.join("\n")), (second, withdrawal)] {
                self.plant(due, Channel::User, Content::Line(line), fact);
            }
        }
    }

    /// Keys that are asked for in none of their words.
    pub(super) fn indirects(&mut self) {
        let mut deck = self.words.rewordings.clone();
        self.random.shuffle(&mut deck);
        deck.truncate(self.number("indirect"));
        let count = deck.len();
        for (at, (key, class, question)) in deck.into_iter().enumerate() {
            let pair = self.valued(self.ways.fill(key, &[]), class);
            let channel = self.random.pick(&SHOWN);
            let KeyValue { key, value } = pair.clone();
            let question = self.ways.fill(question, &[]);
            let fact = self.add("indirect", question, Fact::Indirect { key, value });
            self.plant(self.moment(at, count), channel, Content::Pairs(vec![pair]), fact);
        }
    }

    /// Lines that lead to a place, and values of the place beside one of another place.
    pub(super) fn two_steps(&mut self) {
        let count = self.number("two-step");
        let (ways, way) = (self.ways, &self.words.way);
        for at in 0..count {
            let (attribute, class) = self.random.pick(&way.attributes);
            let key = self.key(way.system);
            let [via, another_key] = [(); 2].map(|()| self.draw("numbered"));
            let mut pairs = [&via, &another_key].map(|via| {
                let slots = [("via", via.as_str()), ("attribute", attribute)];
                self.valued(ways.fill("{via} {attribute}", &slots), class)
            });
            let slots = [("key", key.as_str()), ("attribute", attribute), ("via", &via)];
            let question = ways.fill(way.asked, &slots);
            let line = Content::Line(ways.say(&self.random, &way.led, &slots));
            let first = KeyValue { key, value: via };
            let steps = vec![first, pairs[0].clone()];
            let fact = self.add("two-step", question, Fact::TwoStep { steps });
            self.random.shuffle(&mut pairs);
            let shown = Content::Pairs(pairs.to_vec());
            // Either may come first.
            let mut due = [0, 1].map(|half| self.moment(2 * at + half, 2 * count));
            self.random.shuffle(&mut due);
            self.plant(due[0], Channel::Log, line, fact);
            self.plant(due[1], self.random.pick(&SHOWN), shown, fact);
        }
    }

    /// Options of which the agent takes one, for a reason.
    pub(super) fn decisions(&mut self) {
        let count = self.number("decision");
        let (ways, phrases) = (self.ways, &self.family.phrases);
        for at in 0..count {
            let (span, part, parts) = self.place(at, count);
            let key = self.named("aspects");
            let design = self.random.pick(phrases.bank("designs"));
            let options = (0..self.random.count(3, 4)).map(|_| {
                let slots = [("name", &*self.draw("numbered")), ("design", design)];
                ways.fill("{name} {design}", &slots)
            });
            let mut options: Vec<String> = options.collect();
            let mut all = options.clone();
            let choice = options.pop().unwrap_or_default();
            self.random.shuffle(&mut all);
            let ground = self.phrase("grounds");
            let reason = ways.fill(ground, &[("name", &*self.draw("numbered"))]);
            let slots = [
                ("key", key.as_str()),
                ("all", &all.join(", ")),
                ("choice", &choice),
                ("reason", &reason),
            ];
            let line = Content::Line(ways.say(&self.random, phrases.bank("decided"), &slots));
            let question = ways.ask("decision", &slots[..1]);
            let fact = Fact::Decision { key, choice, reason, rejected: options };
            let fact = self.add("decision", question, fact);
            let due = self.within(span, (10, 60), part, parts);
            self.plant(due, Channel::Agent, line, fact);
        }
    }

    /// Keys whose values are revised: in a chapter, or from beginning to end. The user says all
    /// values of a key, or tools show all of them: nobody overrules the other.
    pub(super) fn updates(&mut self) {
        let plan = &self.family.timeline;
        let (count, standing) = (self.number("update"), self.number("standing"));
        for at in 0..count + standing {
            let key = self.named("settings");
            let question = self.ways.ask("update", &[("key", &key)]);
            let (channel, said) = if self.random.percent(plan.typed) {
                (Channel::User, self.family.phrases.bank("revised"))
            } else {
                (Channel::Settings, bank("logged"))
            };
            let (span, range) = if at < count {
                (self.place(at, count).0, plan.revisions)
            } else {
                (WHOLE, STANDING)
            };
            let values = (0..self.revisions(range)).map(|_| self.draw("revision")).collect();
            let fact = Fact::Update { key: key.clone(), values: Vec::new() };
            let fact = self.add("update", question, fact);
            self.revise(fact, channel, (&key, values), said, (span, (0, 100)));
        }
    }

    /// Counts that move.
    pub(super) fn counts(&mut self) {
        let plan = &self.family.timeline;
        let phrases = &self.family.phrases;
        let unit = self.ways.language.say(phrases.one("unit"));
        let count = self.number("numeric");
        for at in 0..count {
            let key = self.named("suites");
            let question = self.ways.ask("numeric", &[("unit", unit), ("key", &key)]);
            let mut value = self.random.between(COUNTS.0, COUNTS.1);
            let drawn = (0..self.revisions(plan.revisions)).map(|_| {
                value = match plan.counts {
                    CountTrend::Grow => value + self.random.between(1_009, 90_007),
                    CountTrend::Vary => self.random.between(COUNTS.0, COUNTS.1),
                };
                value.to_string()
            });
            let values = drawn.collect();
            let fact =
                Fact::Numeric { key: key.clone(), unit: unit.to_owned(), values: Vec::new() };
            let fact = self.add("numeric", question, fact);
            let span = self.place(at, count).0;
            let said = phrases.bank("counted");
            self.revise(fact, Channel::Count, (&key, values), said, (span, plan.counted));
        }
    }

    /// A thing of the family with a name of its own.
    fn named(&mut self, rule: &'static str) -> String {
        let slots = [("name", &*self.draw("names")), ("thing", self.phrase(rule))];
        self.ways.fill("{name} {thing}", &slots)
    }

    /// How many values a key gets; few in a short session.
    fn revisions(&self, (least, most): (u64, u64)) -> u64 {
        let room = (self.rounds / ROUNDS_PER_VALUE).max(2);
        self.random.between(least.min(room), most.min(room))
    }

    /// Plants the values of a key one after another.
    fn revise(
        &mut self,
        fact: usize,
        channel: Channel,
        (key, values): (&str, Vec<String>),
        said: &[&str],
        (span, share): (ChapterSpan, Share),
    ) {
        let count = values.len();
        for (part, value) in values.into_iter().enumerate() {
            let slots = [("key", key), ("value", &value)];
            let line = self.ways.say(&self.random, said, &slots);
            let due = self.within(span, share, part, count);
            self.plant(due, channel, Content::Part(line, value), fact);
        }
    }

    /// Draws attempts that fail.
    pub(super) fn attempts(&mut self) {
        let count = self.number("rejected-path");
        let (ways, phrases) = (self.ways, &self.family.phrases);
        for at in 0..count {
            let method = self.phrase("methods");
            let slots = [("method", method), ("name", &*self.draw("names"))];
            let approach = ways.fill(phrases.one("approach"), &slots);
            let reason = self.draw("reason_code");
            let slots = [
                ("approach", approach.as_str()),
                ("reason", &reason),
                ("fault", &self.random.draw("fault")),
            ];
            let line = Content::Line(ways.say(&self.random, phrases.bank("collapsed"), &slots));
            let question = ways.fill(phrases.one("tried"), &slots);
            let fact = self.add("rejected-path", question, Fact::RejectedPath { approach, reason });
            let (span, part, parts) = self.place(at, count);
            let due = self.within(span, (15, 80), part, parts);
            self.plant(due, Channel::Failure, line, fact);
        }
    }

    /// A list of steps in each chapter; two of them are left for later.
    pub(super) fn plans(&mut self) {
        let (per, most) = self.family.timeline.steps;
        let steps = whole((self.chapter_rounds / per).clamp(4, most));
        let (count, ways) = (self.number("continuation"), self.ways);
        for at in 0..count {
            let (span, part, _) = self.place(at, count);
            // One more plan in a chapter has a name of its own.
            let plan = match part {
                0 => self.chapters[span.0].clone(),
                _ => self.draw("names"),
            };
            let drawn = (0..steps).map(|_| {
                let noun = self.random.word("nouns");
                let slots = [("name", &*self.draw("numbered")), ("noun", noun)];
                PlanItem { item: ways.fill(self.phrase("steps"), &slots), done: None }
            });
            let items = drawn.collect();
            let question = ways.ask("continuation", &[("plan", &plan)]);
            let fact = self.add("continuation", question, Fact::Continuation { plan, items });
            let begun = self.within(span, (30, 40), 0, 1);
            let done = (0..steps - 2).map(|step| self.within(span, (45, 98), step, steps - 2));
            let moments: Vec<u64> = std::iter::once(begun).chain(done).collect();
            for due in moments {
                self.plant(due, Channel::List, Content::Line(String::new()), fact);
            }
        }
    }

    /// Keys that nobody says.
    pub(super) fn decoys(&mut self, count: usize) {
        for _ in 0..count {
            let (class, attribute) = self.class();
            let KeyValue { key, value } = self.pair(attribute, class);
            let question = self.ask_for(&key);
            self.add("decoy", question, Fact::Decoy { key, value });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::grammar::fill;
    use crate::words::{HELP_DESK_FACTS, REPOSITORY_FACTS};

    /// Content words: those that are in every question or sentence do not count.
    fn words(text: &str) -> BTreeSet<String> {
        const COMMON: &[&str] = &[
            "a", "all", "are", "by", "did", "do", "for", "from", "get", "gets", "has", "if", "is",
            "it", "of", "on", "that", "the", "this", "to", "was", "we", "what", "where", "which",
            "who", "would", "you",
        ];
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .filter(|word| !COMMON.contains(&word.as_str()))
            .collect()
    }

    #[test]
    fn an_indirect_question_shares_no_content_word_with_what_was_said() {
        let rewordings = REPOSITORY_FACTS.rewordings.iter();
        for (key, _, question) in rewordings.chain(&HELP_DESK_FACTS.rewordings) {
            let asked = words(question);
            for template in bank("said").iter().chain(bank("logged")) {
                let line = fill(template, &[("key", key), ("value", "v")]);
                let said = words(&line);
                let common: Vec<_> = asked.intersection(&said).collect();
                assert!(common.is_empty(), "{question}: {line}: {common:?}");
            }
        }
    }

    /// The words of a template, sorted; slots are words.
    fn sorted(template: &str) -> Vec<&str> {
        let mut words: Vec<&str> = template.split([' ', ',', '.', ';']).collect();
        words.retain(|word| !word.is_empty());
        words.sort_unstable();
        words
    }

    #[test]
    fn two_rules_of_a_pair_hold_the_same_slots_and_differ_in_few_words() {
        for kind in REPOSITORY_FACTS.rules.iter().chain(&HELP_DESK_FACTS.rules) {
            assert_eq!(kind.pairs.is_empty(), !kind.task.is_empty());
            for (first, second) in &kind.pairs {
                assert_ne!(first, second);
                for topic in ["{name}", "{about}"] {
                    assert!(first.contains(topic) && second.contains(topic), "{first}");
                }
                let second = second.replace("{other}", "{number}");
                let [first, second] = [sorted(first), sorted(&second)];
                let differs = |a: &[&str], b: &[&str]| {
                    let lower = |word: &str| word.to_lowercase();
                    let b: Vec<String> = b.iter().map(|word| lower(word)).collect();
                    a.iter().filter(|word| !b.contains(&lower(word))).count()
                };
                assert!(differs(&first, &second) <= 2, "{first:?}");
                assert!(differs(&second, &first) <= 2, "{second:?}");
            }
        }
    }
}
