//! Facts that show whether a memory can be used, and not only searched: what was started and not
//! ended, what was taken back, a value that is asked for in other words or found by way of another,
//! values that have to arrive in one call.

use std::collections::BTreeSet;

use super::more::name;
use super::{Bank, Channel, Class, Names, Numbers, Pair, Planned, Ways, position};
use crate::session::ground_truth::{Fact, Handle, Importance, KeyValue, PlantedFact};
use crate::session::synthetic::random::Random;

/// A series of handles has so many,
const HANDLES: (usize, usize) = (4, 5);

/// and so many of them are ended.
const ENDED: (usize, usize) = (1, 2);

/// Of so many keys that were said, two or three have to arrive in one call.
const RECALLS_PER_ACT: usize = 6;

/// Where values are said. The person types none of them: each would interrupt the work.
const SHOWN: [Channel; 3] = [Channel::Config, Channel::Log, Channel::Runbook];

/// What is started and ended,
fn owners(bank: Bank) -> &'static [&'static str] {
    match bank {
        Bank::Repository => &["tunnels", "workers", "locks"],
        Bank::Desk => &["callbacks", "holds", "parcel searches"],
    }
}

/// how the start is reported,
const STARTED: &[&str] = &[
    "{handle} started for the {owner}",
    "{owner}: {handle} is running now",
    "opened {handle} ({owner})",
];

/// how the end is,
const FINISHED: &[&str] = &[
    "{handle} ended for the {owner}",
    "{owner}: {handle} is no longer running",
    "closed {handle} ({owner})",
];

/// and how they are asked for.
const LEFT_OPEN: &str = "Which of the {owner} were started and have not ended yet?";

/// What an instruction is about,
fn subjects(bank: Bank) -> &'static [&'static str] {
    match bank {
        Bank::Repository => &["cost code", "log label", "owner tag"],
        Bank::Desk => &["cost code", "letter code", "shelf mark"],
    }
}

/// how it is given,
const INSTRUCTED: &[&str] = &[
    "From now on, put {value} wherever the {key} is needed.",
    "Until I say otherwise, the {key} is {value}.",
    "Write {value} into the {key} each time.",
];

/// how it is taken back,
const WITHDRAWN: &[&str] = &[
    "I take back what I said about the {key}: {value} must not be used there any more.",
    "Forget {value} as the {key}, that instruction is void.",
    "The {key} is cancelled: nothing gets {value} from here on.",
];

/// and how it is asked for.
const STILL: &str = "Does the user's instruction to use {value} as the {key} still hold?";

/// What has a place of its own, how that is said, and how a value of the place is asked for.
#[derive(Debug)]
struct Way {
    system: &'static str,
    led: &'static [&'static str],
    attributes: &'static [(&'static str, Class)],
    asked: &'static str,
}

fn way(bank: Bank) -> &'static Way {
    match bank {
        Bank::Repository => &Way {
            system: "service",
            led: &[
                "The {key} runs on {via}.",
                "{via} hosts the {key}.",
                "They put the {key} on {via}.",
            ],
            attributes: &[
                ("socket", Class::Endpoint),
                ("digest", Class::Checksum),
                ("image", Class::Build),
            ],
            asked: "What is the {attribute} of the machine that the {key} runs on?",
        },
        Bank::Desk => &Way {
            system: "round",
            led: &[
                "The {key} is looked after by {via}.",
                "{via} takes care of the {key}.",
                "They gave the {key} to {via}.",
            ],
            attributes: &[
                ("cash box", Class::Account),
                ("dossier", Class::Ticket),
                ("roster", Class::Build),
            ],
            asked: "What is the {attribute} of the team that looks after the {key}?",
        },
    }
}

/// A key, what kind of value it has, and a question that shares no content word with it.
type Rewording = (&'static str, Class, &'static str);

fn rewordings(bank: Bank) -> &'static [Rewording] {
    match bank {
        Bank::Repository => REPOSITORY,
        Bank::Desk => DESK,
    }
}

const REPOSITORY: &[Rewording] = &[
    (
        "on-call pager",
        Class::Build,
        "Which number reaches the engineer at night?",
    ),
    (
        "rollback anchor",
        Class::Release,
        "To what would we return if a deploy goes wrong?",
    ),
    (
        "invoice recipient",
        Class::Account,
        "Who gets billed for all this work?",
    ),
    (
        "golden template",
        Class::Checksum,
        "From what are fresh machines made?",
    ),
    (
        "standby listener",
        Class::Endpoint,
        "Where do requests go once the main server is down?",
    ),
    (
        "outage dossier",
        Class::Ticket,
        "Under what reference was the last breakdown filed?",
    ),
    (
        "telemetry sink",
        Class::Endpoint,
        "Which address do metrics flow to?",
    ),
    (
        "freeze exemption",
        Class::Ticket,
        "By what approval may we ship during holidays?",
    ),
];

const DESK: &[Rewording] = &[
    (
        "night switchboard",
        Class::Build,
        "Which number reaches someone after closing time?",
    ),
    (
        "goodwill pot",
        Class::Account,
        "From where are small gestures to customers paid?",
    ),
    (
        "carrier grievance",
        Class::Ticket,
        "Under what reference did we complain about late deliveries?",
    ),
    (
        "faulty lot",
        Class::Build,
        "Which production run has to come back to us?",
    ),
    (
        "wholesale agreement",
        Class::Account,
        "Which deal covers bulk buyers?",
    ),
    (
        "fire inspection",
        Class::Ticket,
        "Under what reference was our safety checked?",
    ),
];

/// All of it, but calls: see [`acts`].
pub(super) fn planned(random: &mut Random, names: &mut Names, numbers: Numbers) -> Vec<Planned> {
    let mut planned = Vec::new();
    for number in 1..=numbers.handles {
        planned.extend(handles(random, names, numbers, number));
    }
    for number in 1..=numbers.obsolete {
        planned.extend(instructions(random, names, numbers, number));
    }
    let mut deck = rewordings(numbers.bank).to_vec();
    random.shuffle(&mut deck);
    deck.truncate(numbers.indirect);
    let count = deck.len();
    for (at, rewording) in deck.into_iter().enumerate() {
        let due = position(random, at, count);
        planned.push(indirect(random, names, numbers, (at, due), rewording));
    }
    for number in 1..=numbers.two_steps {
        planned.extend(steps(random, names, numbers, number));
    }
    planned
}

/// A fact of a line, or of a key and a value, without anything beside it.
fn plain(
    ways: Ways,
    due: u64,
    channel: Channel,
    id: String,
    question: String,
    fact: Fact,
) -> Planned {
    Planned {
        due,
        channel,
        pair: None,
        distractors: Vec::new(),
        line: None,
        ways,
        beside: None,
        id,
        question,
        importance: Importance::Normal,
        fact,
    }
}

/// The starts and ends of one series, each by itself. Tools report all of them, so that they are
/// said in the order in which they are due.
fn handles(
    random: &mut Random,
    names: &mut Names,
    numbers: Numbers,
    number: usize,
) -> Vec<Planned> {
    let ways = numbers.ways;
    let noun = random.pick(owners(numbers.bank));
    let owner = names.key(random, noun);
    let count = random.count(HANDLES.0, HANDLES.1);
    let ended = random.count(ENDED.0, ENDED.1);
    let mut order: Vec<usize> = (0..count).collect();
    random.shuffle(&mut order);
    let mut planned = Vec::new();
    for at in 0..count {
        let handle = format!("{}-{}", name(random, 2), random.hex(6));
        let started = position(random, at, count) * 4 / 5;
        // Before the last twelfth of the session, so that there is a question behind it.
        let finished = started + 20 + random.below(900 - started);
        let is_ended = order[..ended].contains(&at);
        let moments = [(started, STARTED, None), (finished, FINISHED, Some(0))];
        for (due, bank, ended) in moments.into_iter().take(1 + usize::from(is_ended)) {
            let slots = [("handle", handle.as_str()), ("owner", &owner)];
            let line = ways.fill(ways.pick(random, bank), &slots);
            let question = ways.fill(LEFT_OPEN, &[("owner", &owner)]);
            let fact = Fact::OpenHandle {
                owner: owner.clone(),
                handles: vec![Handle {
                    name: handle.clone(),
                    started: 0,
                    ended,
                }],
            };
            let id = format!("open-handle-{number:02}");
            planned.push(Planned {
                line: Some(line),
                importance: Importance::High,
                ..plain(ways, due, Channel::Log, id, question, fact)
            });
        }
    }
    planned
}

/// Two instructions in one message, and the message that takes one of them back.
fn instructions(
    random: &mut Random,
    names: &mut Names,
    numbers: Numbers,
    number: usize,
) -> Vec<Planned> {
    let ways = numbers.ways;
    let subject = random.pick(subjects(numbers.bank));
    let class = random.pick(numbers.bank.classes());
    let withdrawn = names.pair(random, class, subject);
    let standing = names.pair(random, class, subject);
    let template = ways.pick(random, INSTRUCTED);
    let filled = |template: &str, pair: &Pair| {
        ways.fill(template, &[("key", &pair.key), ("value", &pair.value)])
    };
    let mut given = [&withdrawn, &standing].map(|pair| filled(template, pair));
    random.shuffle(&mut given);
    let withdrawal = filled(ways.pick(random, WITHDRAWN), &withdrawn);
    let fact = Fact::Obsolete {
        withdrawn: known(&withdrawn),
        withdrawal: withdrawal.clone(),
        standing: known(&standing),
        standing_question: filled(STILL, &standing),
    };
    let first = position(random, number - 1, numbers.obsolete) * 2 / 3;
    let second = first + 60 + random.below(240);
    [(first, given.join("\n")), (second, withdrawal)]
        .into_iter()
        .map(|(due, line)| {
            let id = format!("obsolete-{number:02}");
            let question = filled(STILL, &withdrawn);
            Planned {
                line: Some(line),
                importance: Importance::High,
                ..plain(ways, due, Channel::User, id, question, fact.clone())
            }
        })
        .collect()
}

/// A key and its value; the question uses none of their words.
fn indirect(
    random: &mut Random,
    names: &mut Names,
    numbers: Numbers,
    (at, due): (usize, u64),
    (key, class, question): Rewording,
) -> Planned {
    let ways = numbers.ways;
    let pair = Pair {
        key: ways.fill(key, &[]),
        value: names.value(random, class),
        ways,
    };
    let channel = random.pick(&SHOWN);
    let fact = Fact::Indirect {
        key: pair.key.clone(),
        value: pair.value.clone(),
    };
    let id = format!("indirect-{:02}", at + 1);
    Planned {
        pair: Some(pair),
        ..plain(ways, due, channel, id, ways.fill(question, &[]), fact)
    }
}

/// What leads to a place, and a value of the place beside one of another place.
fn steps(random: &mut Random, names: &mut Names, numbers: Numbers, number: usize) -> Vec<Planned> {
    let ways = numbers.ways;
    let way = way(numbers.bank);
    let (attribute, class) = random.pick(way.attributes);
    let key = names.key(random, way.system);
    let mut place = || format!("{}{}", name(random, 3), random.digits(4));
    let (via, elsewhere) = (place(), place());
    let mut of = |via: &str| Pair {
        key: ways.fill(
            "{via} {attribute}",
            &[("via", via), ("attribute", attribute)],
        ),
        value: names.value(random, class),
        ways,
    };
    let (pair, other) = (of(&via), of(&elsewhere));
    let slots = [("key", key.as_str()), ("attribute", attribute)];
    let question = ways.fill(way.asked, &slots);
    let slots = [("key", key.as_str()), ("via", &via)];
    let line = ways.fill(ways.pick(random, way.led), &slots);
    let fact = Fact::TwoStep {
        steps: vec![
            KeyValue {
                key,
                value: via.clone(),
            },
            known(&pair),
        ],
    };
    let id = format!("two-step-{number:02}");
    let mut due =
        [0, 1].map(|half| position(random, 2 * (number - 1) + half, 2 * numbers.two_steps));
    // Either may come first.
    random.shuffle(&mut due);
    let led = Planned {
        line: Some(line),
        ..plain(
            ways,
            due[0],
            Channel::Log,
            id.clone(),
            question.clone(),
            fact.clone(),
        )
    };
    let valued = Planned {
        pair: Some(pair),
        distractors: vec![other],
        ..plain(ways, due[1], random.pick(&SHOWN), id, question, fact)
    };
    vec![led, valued]
}

fn known(pair: &Pair) -> KeyValue {
    KeyValue {
        key: pair.key.clone(),
        value: pair.value.clone(),
    }
}

/// Calls that need two or three of the keys that were said, each in a message of its own and far
/// from one another.
pub(super) fn acts(facts: &[PlantedFact], ways: Ways) -> Vec<PlantedFact> {
    let mut said: Vec<(usize, KeyValue)> = facts
        .iter()
        .filter_map(|fact| match &fact.fact {
            Fact::Recall { key, value } => Some((
                *fact.evidence.first()?,
                KeyValue {
                    key: key.clone(),
                    value: value.clone(),
                },
            )),
            _ => None,
        })
        .collect();
    said.sort_by_key(|(message, _)| *message);
    let mut acts = Vec::new();
    for at in 0..said.len() / RECALLS_PER_ACT {
        let (first, middle) = (at * 3, said.len() / 2 + at * 3);
        let is_three = at % 2 == 1;
        let places = [first, middle, middle + 1];
        let taken = places.iter().take(2 + usize::from(is_three));
        let taken: Vec<&(usize, KeyValue)> = taken.filter_map(|at| said.get(*at)).collect();
        let evidence: BTreeSet<usize> = taken.iter().map(|(message, _)| *message).collect();
        if evidence.len() < taken.len() {
            continue;
        }
        let template = if is_three {
            "Write the one tool call `open_case(…)` whose arguments are the {first}, the {second} \
             and the {third}."
        } else {
            "Write the one tool call `open_case(…)` whose arguments are the {first} and the {second}."
        };
        let names = ["first", "second", "third"].into_iter();
        let slots = names.zip(taken.iter().map(|(_, pair)| pair.key.as_str()));
        let question = ways.fill(template, &slots.collect::<Vec<_>>());
        acts.push(PlantedFact {
            id: format!("act-{:02}", acts.len() + 1),
            question,
            fact: Fact::Act {
                arguments: taken.into_iter().map(|(_, pair)| pair.clone()).collect(),
            },
            evidence: evidence.into_iter().collect(),
            importance: Importance::Normal,
        });
    }
    acts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::synthetic::Language;
    use crate::session::synthetic::facts::phrasing;

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
        for (key, _, question) in REPOSITORY.iter().chain(DESK) {
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
