//! Failures with code and place, series of events, and questions about keys that stand beside
//! planted ones.

use super::{Bank, Beside, Channel, Names, Numbers, Planned, Ways, ask, memory, position};
use crate::session::ground_truth::{Fact, Importance, KeyValue, PlantedFact, Revision};
use crate::session::synthetic::grammar::names::FAULTS;
use crate::session::synthetic::random::Random;

/// A key among at least so many others of its type is asked for by itself.
const AMONG: usize = 3;

/// A series has so many events.
const EVENTS: (usize, usize) = (4, 6);

/// Fewer events that were said make no order.
const LEAST_EVENTS: usize = 3;

/// What can fail,
const ATTEMPTS: &[&str] = &["drill", "rehearsal", "warmup", "handshake"];

/// how that is printed,
const FAILED: &[&str] = &[
    "{place}: {code} {fault} during the {attempt}",
    "{attempt} stopped with {code} ({fault}) in {place}",
    "{code}: {attempt} broke off at {place}, {fault}",
];

/// and in which files.
const FOLDERS: &[(&str, &str)] = &[
    ("crates/glue/src", "rs"),
    ("services/glue", "py"),
    ("web/glue", "ts"),
];

/// Fewer handles are no list.
const LEAST_HANDLES: usize = 2;

/// What goes on in steps,
fn series(bank: Bank) -> &'static [&'static str] {
    match bank {
        Bank::Repository => &["rollout", "migration", "certification"],
        Bank::Desk => &["stocktaking", "relocation", "inspection"],
    }
}

/// and how a step is reported.
const PASSED: &[&str] = &[
    "Gate {event} is behind us, that is for the {series}.",
    "The {series} got past {event}.",
    "{event} has cleared on the {series}.",
    "For the {series}: {event}, cleared.",
];

/// Syllables of made-up names.
const SYLLABLES: &[&str] = &[
    "ab", "cle", "dun", "esk", "fro", "gar", "hob", "ist", "jem", "kul", "lan", "mur", "nob", "ost",
];

pub(super) fn name(random: &mut Random, syllables: usize) -> String {
    (0..syllables).map(|_| random.pick(SYLLABLES)).collect()
}

/// Every other key that stands among enough others: one of those is asked for, too.
pub(super) fn beside(random: &mut Random, planned: &mut [Planned]) {
    let mut number = 0;
    let among = planned
        .iter_mut()
        .filter(|fact| fact.distractors.len() >= AMONG);
    for fact in among.step_by(2) {
        let Some(own) = &fact.pair else {
            continue;
        };
        let asked = random.index(fact.distractors.len());
        let others = fact.distractors.iter().enumerate();
        let others = others.filter(|(at, _)| *at != asked).map(|(_, pair)| pair);
        let others = others.chain([own]).map(|pair| KeyValue {
            key: pair.key.clone(),
            value: pair.value.clone(),
        });
        let others = others.collect();
        let pair = &fact.distractors[asked];
        number += 1;
        fact.beside = Some(Beside {
            id: format!("binding-{number:02}"),
            question: ask(random, &pair.key, fact.ways),
            fact: Fact::Binding {
                key: pair.key.clone(),
                value: pair.value.clone(),
                others,
            },
        });
    }
}

/// Failures with a code and a place.
pub(super) fn errors(random: &mut Random, names: &mut Names, numbers: Numbers) -> Vec<Planned> {
    let count = numbers.errors;
    (0..count)
        .map(|at| {
            let attempt = names.key(random, ATTEMPTS[at % ATTEMPTS.len()]);
            let code = format!("{}{}", random.pick(&["F", "ERR", "X"]), random.digits(8));
            let (folder, suffix) = random.pick(FOLDERS);
            let file = format!("{}_{}", name(random, 3), random.digits(3));
            let place = format!("{folder}/{file}.{suffix}:{}", random.between(11, 940));
            let fault = random.pick(FAULTS).replace('_', " ");
            let slots = [
                ("place", place.as_str()),
                ("code", &code),
                ("fault", &fault),
                ("attempt", &attempt),
            ];
            Planned {
                due: position(random, at, count),
                channel: Channel::Failure,
                pair: None,
                distractors: Vec::new(),
                line: Some(numbers.ways.fill(numbers.ways.pick(random, FAILED), &slots)),
                ways: numbers.ways,
                beside: None,
                id: format!("error-{:02}", at + 1),
                question: numbers.ways.fill(
                    "With which code did the {attempt} fail, and at which file and line?",
                    &[("attempt", &attempt)],
                ),
                importance: Importance::Normal,
                fact: Fact::Error {
                    attempt,
                    code,
                    place,
                },
            }
        })
        .collect()
}

/// The events of all series, each by itself: [`gathered`] puts them together.
pub(super) fn orders(random: &mut Random, names: &mut Names, numbers: Numbers) -> Vec<Planned> {
    let mut planned = Vec::new();
    for number in 1..=numbers.orders {
        let kind = random.pick(series(numbers.bank));
        let sequence = names.key(random, kind);
        let count = random.count(EVENTS.0, EVENTS.1);
        for at in 0..count {
            let event = format!("{}{}", name(random, 3), random.digits(4));
            let slots = [("event", event.as_str()), ("series", &sequence)];
            planned.push(Planned {
                due: position(random, at, count),
                channel: random.pick(&[Channel::User, Channel::Log, Channel::Log]),
                pair: None,
                distractors: Vec::new(),
                line: Some(numbers.ways.fill(numbers.ways.pick(random, PASSED), &slots)),
                ways: numbers.ways,
                beside: None,
                id: format!("order-{number:02}"),
                question: numbers.ways.fill(
                    "In which order did the {sequence} get past its gates?",
                    &[("sequence", &sequence)],
                ),
                importance: Importance::Normal,
                fact: Fact::Order {
                    sequence: sequence.clone(),
                    events: vec![Revision::new(event, 0)],
                },
            });
        }
    }
    planned
}

/// What was said in several messages becomes one fact, in the order in which it was said; what was
/// not said to its end becomes none. Calls are asked of what was said.
pub(crate) fn gathered(facts: Vec<PlantedFact>, ways: Ways) -> Vec<PlantedFact> {
    let mut gathered: Vec<PlantedFact> = Vec::new();
    for fact in facts {
        match gathered.iter_mut().find(|known| known.id == fact.id) {
            Some(known) => join(known, fact),
            None => gathered.push(fact),
        }
    }
    for fact in &mut gathered {
        if let Fact::Order { events, .. } = &mut fact.fact {
            events.sort_by_key(|event| event.message);
        }
        fact.evidence.sort_unstable();
    }
    gathered.retain(|fact| match &fact.fact {
        Fact::Order { events, .. } => events.len() >= LEAST_EVENTS,
        Fact::OpenHandle { handles, .. } => handles.len() >= LEAST_HANDLES,
        Fact::Obsolete { .. } | Fact::TwoStep { .. } => fact.evidence.len() == 2,
        _ => true,
    });
    gathered.extend(memory::acts(&gathered, ways));
    gathered
}

/// Adds what was said later of the same fact.
fn join(known: &mut PlantedFact, more: PlantedFact) {
    match (&mut known.fact, more.fact) {
        (Fact::Order { events, .. }, Fact::Order { events: more, .. }) => events.extend(more),
        (Fact::OpenHandle { handles, .. }, Fact::OpenHandle { handles: more, .. }) => {
            for handle in more {
                match handles.iter_mut().find(|known| known.name == handle.name) {
                    Some(known) => known.ended = handle.ended,
                    None => handles.push(handle),
                }
            }
        }
        _ => {}
    }
    known.evidence.extend(more.evidence);
}
