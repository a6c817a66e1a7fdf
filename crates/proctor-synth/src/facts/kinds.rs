//! Facts that take more than a key and a value: failures with code and place, series of events, and
//! those that show whether a memory can be used, and not only searched: what was started and not
//! ended, what was taken back, a value that is asked for in other words or found by way of another.

use super::{Channel, Content, Planner};
use crate::grammar::bank;
use proctor_sessions::ground_truth::{Fact, KeyValue};

/// A key is asked for by itself if at least this many others of its type are beside it.
const AMONG: usize = 3;

/// The fewest and the most events of a series,
const EVENTS: (usize, usize) = (4, 6);

/// its handles,
const HANDLES: (usize, usize) = (4, 5);

/// and the handles that are ended.
const ENDED: (usize, usize) = (1, 2);

/// Where values are said. The user types none of them: each would interrupt the work.
const SHOWN: [Channel; 3] = [Channel::Config, Channel::Log, Channel::Runbook];

impl Planner {
    /// Asks for a second key of every other text that names enough of them.
    pub(super) fn bindings(&mut self) {
        let among = self.planned.iter().enumerate().filter_map(|(at, planned)| {
            let Content::Pairs(pairs) = &planned.what.content else {
                return None;
            };
            (pairs.len() > AMONG).then(|| (at, pairs.clone()))
        });
        let among: Vec<(usize, Vec<KeyValue>)> = among.step_by(2).collect();
        for (number, (at, mut others)) in among.into_iter().enumerate() {
            let asked = 1 + self.random.index(others.len() - 1);
            let KeyValue { key, value } = others.remove(asked);
            others.rotate_left(1);
            let question = self.ask_for(&key);
            let fact = Fact::Binding { key, value, others };
            let fact = self.add("binding", number + 1, question, fact);
            self.planned[at].what.second_fact = Some(fact);
        }
    }

    /// Failures with a code and a place.
    pub(super) fn errors(&mut self) {
        let count = self.number("error");
        for at in 0..count {
            let attempts = bank("attempts");
            let attempt = self.key(attempts[at % attempts.len()]);
            let rules = ["error_code", "error_place", "fault"];
            let [code, place, fault] = rules.map(|rule| self.random.draw(rule));
            let slots = [
                ("place", place.as_str()),
                ("code", &code),
                ("fault", &fault),
                ("attempt", &attempt),
            ];
            let due = self.position(at, count);
            let line = self.ways.say(&self.random, bank("failed"), &slots);
            let question = self.ways.ask("error", &slots);
            let fact = Fact::Error {
                attempt,
                code,
                place,
            };
            let fact = self.add("error", at + 1, question, fact);
            self.plant(due, Channel::Failure, Content::Line(line), fact);
        }
    }

    /// The events of all series, each by itself.
    pub(super) fn orders(&mut self) {
        for number in 1..=self.number("order") {
            let series = self.random.pick(&self.words.series);
            let series = self.key(series);
            let count = self.random.count(EVENTS.0, EVENTS.1);
            let fact = Fact::Order {
                sequence: series.clone(),
                events: Vec::new(),
            };
            let question = self.ways.ask("order", &[("series", &series)]);
            let fact = self.add("order", number, question, fact);
            for at in 0..count {
                let event = self.random.draw("numbered");
                let slots = [("event", event.as_str()), ("series", &series)];
                let due = self.position(at, count);
                let channels = [Channel::User, Channel::Log, Channel::Log];
                let channel = self.random.pick(&channels);
                let line = self.ways.say(&self.random, bank("passed"), &slots);
                self.plant(due, channel, Content::Part(line, event), fact);
            }
        }
    }

    /// The starts and ends of handles, each by itself. Tools report all of them, so that they are
    /// said in the order in which they are due.
    pub(super) fn open_handles(&mut self) {
        for number in 1..=self.number("open-handle") {
            let owner = self.random.pick(&self.words.owners);
            let owner = self.key(owner);
            let count = self.random.count(HANDLES.0, HANDLES.1);
            let ended = self.random.count(ENDED.0, ENDED.1);
            let mut order: Vec<usize> = (0..count).collect();
            self.random.shuffle(&mut order);
            let fact = Fact::OpenHandle {
                owner: owner.clone(),
                handles: Vec::new(),
            };
            let question = self.ways.ask("open-handle", &[("owner", &owner)]);
            let fact = self.add("open-handle", number, question, fact);
            for at in 0..count {
                let name = self.random.draw("handle");
                let slots = [("handle", name.as_str()), ("owner", &owner)];
                let started = self.position(at, count) * 4 / 5;
                // Before the last twelfth of the session, so that there is a question behind it.
                let finished = started + 20 + self.random.below(900 - started);
                let moments = [(started, "started"), (finished, "finished")];
                let is_ended = order[..ended].contains(&at);
                for (due, rule) in moments.into_iter().take(1 + usize::from(is_ended)) {
                    let line = self.ways.say(&self.random, bank(rule), &slots);
                    let part = Content::Part(line, name.clone());
                    self.plant(due, Channel::Log, part, fact);
                }
            }
        }
    }

    /// Pairs of instructions in one message, and the messages that take one of them back.
    pub(super) fn obsoletes(&mut self) {
        let count = self.number("obsolete");
        let ways = self.ways;
        for number in 1..=count {
            let subject = self.random.pick(&self.words.subjects);
            let class = self.random.pick(&self.words.classes);
            let [withdrawn, standing] = [(); 2].map(|()| self.pair(subject, class));
            let instructed = ways.pick(&self.random, bank("instructed"));
            let mut given = [&withdrawn, &standing]
                .map(|pair| ways.fill(instructed, &[("key", &pair.key), ("value", &pair.value)]));
            self.random.shuffle(&mut given);
            let withdrawal = ways.pair(&self.random, bank("withdrawn"), &withdrawn);
            let [question, standing_question] = [&withdrawn, &standing]
                .map(|pair| ways.ask("obsolete", &[("key", &pair.key), ("value", &pair.value)]));
            let fact = Fact::Obsolete {
                withdrawn,
                withdrawal: withdrawal.clone(),
                standing,
                standing_question,
            };
            let fact = self.add("obsolete", number, question, fact);
            let first = self.position(number - 1, count) * 2 / 3;
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
            let due = self.position(at, count);
            let pair = self.valued(self.ways.fill(key, &[]), class);
            let channel = self.random.pick(&SHOWN);
            let KeyValue { key, value } = pair.clone();
            let question = self.ways.fill(question, &[]);
            let fact = self.add("indirect", at + 1, question, Fact::Indirect { key, value });
            self.plant(due, channel, Content::Pairs(vec![pair]), fact);
        }
    }

    /// Lines that lead to a place, and values of the place beside one of another place.
    pub(super) fn two_steps(&mut self) {
        let count = self.number("two-step");
        let ways = self.ways;
        let way = &self.words.way;
        for number in 1..=count {
            let (attribute, class) = self.random.pick(&way.attributes);
            let key = self.key(way.system);
            let [via, another_key] = [(); 2].map(|()| self.random.draw("numbered"));
            let [pair, other] = [&via, &another_key].map(|via| {
                let slots = [("via", via.as_str()), ("attribute", attribute)];
                self.valued(ways.fill("{via} {attribute}", &slots), class)
            });
            let slots = [
                ("key", key.as_str()),
                ("attribute", attribute),
                ("via", &via),
            ];
            let question = ways.fill(way.asked, &slots);
            let line = Content::Line(ways.say(&self.random, &way.led, &slots));
            let first = KeyValue { key, value: via };
            let steps = vec![first, pair.clone()];
            let fact = self.add("two-step", number, question, Fact::TwoStep { steps });
            let half = |half| 2 * (number - 1) + half;
            let mut due = [0, 1].map(|at| self.position(half(at), 2 * count));
            // Either may come first.
            self.random.shuffle(&mut due);
            self.plant(due[0], Channel::Log, line, fact);
            let channel = self.random.pick(&SHOWN);
            self.plant(due[1], channel, Content::Pairs(vec![pair, other]), fact);
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
}
