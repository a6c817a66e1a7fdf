//! Facts that take more than a key and a value: failures with code and place, series of events, and
//! those that show whether a memory can be used, and not only searched: what was started and not
//! ended, what was taken back, a value that is asked for in other words or found by way of another.

use super::{Channel, Class, Names, Numbers, Pair, Planned, ask, position, unsaid};
use crate::session::ground_truth::{Fact, Handle, Importance, Revision};
use crate::session::synthetic::output;
use crate::session::synthetic::random::Random;
use crate::session::synthetic::words::FACTS;

/// A key among at least so many others of its type is asked for by itself.
const AMONG: usize = 3;

/// A series has so many events,
const EVENTS: (usize, usize) = (4, 6);

/// or so many handles,
const HANDLES: (usize, usize) = (4, 5);

/// of which so many are ended.
const ENDED: (usize, usize) = (1, 2);

/// Where values are said. The person types none of them: each would interrupt the work.
const SHOWN: [Channel; 3] = [Channel::Config, Channel::Log, Channel::Runbook];

/// A made-up name.
fn name(random: &mut Random, syllables: usize) -> String {
    (0..syllables)
        .map(|_| random.pick(&FACTS.syllables.facts))
        .collect()
}

/// A made-up name with a number.
fn numbered(random: &mut Random) -> String {
    format!("{}{}", name(random, 3), random.digits(4))
}

/// Every other key that is among enough others: one of those is asked for, too.
pub(super) fn beside(random: &mut Random, planned: &mut [Planned]) {
    let among = planned
        .iter_mut()
        .filter(|fact| fact.distractors.len() >= AMONG);
    let mut number = 0;
    for fact in among.step_by(2) {
        let Some(own) = &fact.pair else {
            continue;
        };
        let mut others: Vec<&Pair> = fact.distractors.iter().collect();
        let asked = others.remove(random.index(others.len()));
        others.push(own);
        number += 1;
        let question = ask(random, &asked.key, fact.ways);
        let binding = Fact::Binding {
            key: asked.key.clone(),
            value: asked.value.clone(),
            others: others.into_iter().map(Pair::known).collect(),
        };
        let id = format!("binding-{number:02}");
        fact.beside = Some(unsaid(id, question, Importance::Normal, binding));
    }
}

/// Failures with a code and a place.
pub(super) fn errors(random: &mut Random, names: &mut Names, numbers: Numbers) -> Vec<Planned> {
    let (count, ways) = (numbers.errors, numbers.ways);
    (0..count)
        .map(|at| {
            let attempt = names.key(random, FACTS.attempts[at % FACTS.attempts.len()]);
            let code = format!("{}{}", random.pick(&["F", "ERR", "X"]), random.digits(8));
            let (folder, suffix) = random.pick(&FACTS.folders);
            let file = format!("{}_{}", name(random, 3), random.digits(3));
            let place = format!("{folder}/{file}.{suffix}:{}", random.between(11, 940));
            let fault = output::fault(random);
            let slots = [
                ("place", place.as_str()),
                ("code", &code),
                ("fault", &fault),
                ("attempt", &attempt),
            ];
            let due = position(random, at, count);
            let line = Some(ways.say(random, &FACTS.failed, &slots));
            let asked = "With which code did the {attempt} fail, and at which file and line?";
            let question = ways.fill(asked, &slots[3..]);
            let fact = Fact::Error {
                attempt,
                code,
                place,
            };
            let id = format!("error-{:02}", at + 1);
            let fact = unsaid(id, question, Importance::Normal, fact);
            Planned {
                line,
                ..Planned::new(ways, due, Channel::Failure, fact)
            }
        })
        .collect()
}

/// The events of all series, each by itself: they are gathered when all is said.
pub(super) fn orders(random: &mut Random, names: &mut Names, numbers: Numbers) -> Vec<Planned> {
    let ways = numbers.ways;
    let mut planned = Vec::new();
    for number in 1..=numbers.orders {
        let sequence = random.pick(&numbers.words.series);
        let sequence = names.key(random, sequence);
        let count = random.count(EVENTS.0, EVENTS.1);
        for at in 0..count {
            let event = numbered(random);
            let slots = [("event", event.as_str()), ("series", &sequence)];
            let due = position(random, at, count);
            let channel = random.pick(&[Channel::User, Channel::Log, Channel::Log]);
            let line = Some(ways.say(random, &FACTS.passed, &slots));
            let asked = "In which order did the {sequence} get past its gates?";
            let question = ways.fill(asked, &[("sequence", &sequence)]);
            let fact = Fact::Order {
                sequence: sequence.clone(),
                events: vec![Revision::new(event, 0)],
            };
            let fact = unsaid(
                format!("order-{number:02}"),
                question,
                Importance::Normal,
                fact,
            );
            planned.push(Planned {
                line,
                ..Planned::new(ways, due, channel, fact)
            });
        }
    }
    planned
}

/// The facts that have to be used.
pub(super) fn used(random: &mut Random, names: &mut Names, numbers: Numbers) -> Vec<Planned> {
    let mut planned = Vec::new();
    for number in 1..=numbers.handles {
        handles(random, names, numbers, number, &mut planned);
    }
    for number in 1..=numbers.obsolete {
        planned.extend(instructions(random, names, numbers, number));
    }
    let mut deck = numbers.words.rewordings.clone();
    random.shuffle(&mut deck);
    deck.truncate(numbers.indirect);
    let count = deck.len();
    for (at, rewording) in deck.into_iter().enumerate() {
        planned.push(indirect(random, names, (at, count), rewording));
    }
    for number in 1..=numbers.two_steps {
        planned.extend(steps(random, names, numbers, number));
    }
    planned
}

/// Adds the starts and ends of one series, each by itself. Tools report all of them, so that they
/// are said in the order in which they are due.
fn handles(
    random: &mut Random,
    names: &mut Names,
    numbers: Numbers,
    number: usize,
    planned: &mut Vec<Planned>,
) {
    let ways = numbers.ways;
    let owner = random.pick(&numbers.words.owners);
    let owner = names.key(random, owner);
    let count = random.count(HANDLES.0, HANDLES.1);
    let ended = random.count(ENDED.0, ENDED.1);
    let mut order: Vec<usize> = (0..count).collect();
    random.shuffle(&mut order);
    for at in 0..count {
        let handle = format!("{}-{}", name(random, 2), random.hex(6));
        let started = position(random, at, count) * 4 / 5;
        // Before the last twelfth of the session, so that there is a question behind it.
        let finished = started + 20 + random.below(900 - started);
        let is_ended = order[..ended].contains(&at);
        let moments = [
            (started, &FACTS.started, None),
            (finished, &FACTS.finished, Some(0)),
        ];
        for (due, bank, ended) in moments.into_iter().take(1 + usize::from(is_ended)) {
            let slots = [("handle", handle.as_str()), ("owner", &owner)];
            let line = Some(ways.say(random, bank, &slots));
            let asked = "Which of the {owner} were started and have not ended yet?";
            let question = ways.fill(asked, &slots[1..]);
            let handle = Handle {
                name: handle.clone(),
                started: 0,
                ended,
            };
            let fact = Fact::OpenHandle {
                owner: owner.clone(),
                handles: vec![handle],
            };
            let fact = unsaid(
                format!("open-handle-{number:02}"),
                question,
                Importance::High,
                fact,
            );
            planned.push(Planned {
                line,
                ..Planned::new(ways, due, Channel::Log, fact)
            });
        }
    }
}

/// Two instructions in one message, and the message that takes one of them back.
fn instructions(
    random: &mut Random,
    names: &mut Names,
    numbers: Numbers,
    number: usize,
) -> [Planned; 2] {
    let ways = numbers.ways;
    let subject = random.pick(&numbers.words.subjects);
    let class = random.pick(&numbers.words.classes);
    let withdrawn = names.pair(random, class, subject);
    let standing = names.pair(random, class, subject);
    let template = ways.pick(random, &FACTS.instructed);
    let filled = |template: &str, pair: &Pair| {
        ways.fill(template, &[("key", &pair.key), ("value", &pair.value)])
    };
    let mut given = [&withdrawn, &standing].map(|pair| filled(template, pair));
    random.shuffle(&mut given);
    let withdrawal = filled(ways.pick(random, &FACTS.withdrawn), &withdrawn);
    let asked = "Does the user's instruction to use {value} as the {key} still hold?";
    let fact = Fact::Obsolete {
        withdrawn: withdrawn.known(),
        withdrawal: withdrawal.clone(),
        standing: standing.known(),
        standing_question: filled(asked, &standing),
    };
    let id = format!("obsolete-{number:02}");
    let fact = unsaid(id, filled(asked, &withdrawn), Importance::High, fact);
    let first = position(random, number - 1, numbers.obsolete) * 2 / 3;
    let second = first + 60 + random.below(240);
    [(first, given.join("\n")), (second, withdrawal)].map(|(due, line)| Planned {
        line: Some(line),
        ..Planned::new(ways, due, Channel::User, fact.clone())
    })
}

/// A key and its value; the question uses none of their words.
fn indirect(
    random: &mut Random,
    names: &mut Names,
    (at, count): (usize, usize),
    (key, class, question): (&str, Class, &str),
) -> Planned {
    let ways = names.ways;
    let due = position(random, at, count);
    let pair = names.valued(random, class, ways.fill(key, &[]));
    let channel = random.pick(&SHOWN);
    let fact = Fact::Indirect {
        key: pair.key.clone(),
        value: pair.value.clone(),
    };
    let id = format!("indirect-{:02}", at + 1);
    let fact = unsaid(id, ways.fill(question, &[]), Importance::Normal, fact);
    Planned {
        pair: Some(pair),
        ..Planned::new(ways, due, channel, fact)
    }
}

/// What leads to a place, and a value of the place beside one of another place.
fn steps(random: &mut Random, names: &mut Names, numbers: Numbers, number: usize) -> [Planned; 2] {
    let ways = numbers.ways;
    let way = &numbers.words.way;
    let (attribute, class) = random.pick(&way.attributes);
    let key = names.key(random, way.system);
    let (via, elsewhere) = (numbered(random), numbered(random));
    let [pair, other] = [&via, &elsewhere].map(|via| {
        let slots = [("via", via.as_str()), ("attribute", attribute)];
        names.valued(random, class, ways.fill("{via} {attribute}", &slots))
    });
    let slots = [
        ("key", key.as_str()),
        ("attribute", attribute),
        ("via", &via),
    ];
    let question = ways.fill(way.asked, &slots);
    let line = Some(ways.say(random, &way.led, &slots));
    let first = Pair {
        key,
        value: via,
        ways,
    }
    .known();
    let fact = Fact::TwoStep {
        steps: vec![first, pair.known()],
    };
    let fact = unsaid(
        format!("two-step-{number:02}"),
        question,
        Importance::Normal,
        fact,
    );
    let mut due =
        [0, 1].map(|half| position(random, 2 * (number - 1) + half, 2 * numbers.two_steps));
    // Either may come first.
    random.shuffle(&mut due);
    let led = Planned {
        line,
        ..Planned::new(ways, due[0], Channel::Log, fact.clone())
    };
    let valued = Planned {
        pair: Some(pair),
        distractors: vec![other],
        ..Planned::new(ways, due[1], random.pick(&SHOWN), fact)
    };
    [led, valued]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::session::synthetic::Language;
    use crate::session::synthetic::facts::{Ways, phrasing};
    use crate::session::synthetic::words::{HELP_DESK_FACTS, REPOSITORY_FACTS};

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
            for seed in 0..20 {
                let mut random = Random::new(seed, "test");
                let pair = Pair {
                    key: (*key).to_owned(),
                    value: "v".to_owned(),
                    ways: Ways {
                        most: usize::MAX,
                        language: Language::English,
                    },
                };
                for line in [
                    phrasing::said(&mut random, &pair),
                    phrasing::logged(&mut random, &pair),
                ] {
                    let said = words(&line);
                    let common: Vec<_> = asked.intersection(&said).collect();
                    assert!(common.is_empty(), "{question}: {line}: {common:?}");
                }
            }
        }
    }
}
