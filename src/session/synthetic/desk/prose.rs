//! What is said at the help desk: events, clauses of the policy, notes, letters.

use super::Errand;
use crate::session::synthetic::Language;
use crate::session::synthetic::grammar::fill;
use crate::session::synthetic::grammar::prose::Topic;
use crate::session::synthetic::random::Random;

/// What is sold.
pub(super) const ITEMS: &[&str] = &[
    "folding bicycle",
    "desk lamp",
    "rain barrel",
    "espresso grinder",
    "hiking tent",
    "wool blanket",
    "bread oven",
    "garden bench",
    "travel piano",
    "bookshelf",
    "paddle board",
    "sewing machine",
];

/// Who carries it.
pub(super) const CARRIERS: &[&str] =
    &["Gullwing", "Nordpost", "Railbox", "Twowheel", "Harbourline"];

/// What an order can be; the first four before anybody changes it.
pub(super) const STATES: &[&str] = &[
    "paid",
    "packed",
    "in transit",
    "handed over",
    "on hold",
    "rerouted",
    "returned",
    "called off",
];

/// What the policy is about.
pub(super) const SUBJECTS: &[&str] = &[
    "returns after thirty days",
    "damaged parcels",
    "price guarantees",
    "address corrections",
    "gift wrapping",
    "bulk purchases",
    "lost parcels",
    "late payments",
];

const EVENTS: &[&str] = &[
    "{carrier} scanned the parcel in depot {number}",
    "{carrier} tried to hand it over, nobody at home",
    "label printed for {carrier}, weight {number} g",
    "payment of instalment {number} booked",
    "{carrier} reports a detour of {number} km",
    "warehouse shelf {number} emptied",
];

const CLAUSES: &[&str] = &[
    "{number}. As to {subject}: a claim is open for {days} days from the hand-over.",
    "{number}. Whoever handles {subject} writes a note with the reason.",
    "{number}. Amounts above {days}0.00 need a second pair of eyes when it is about {subject}.",
    "{number}. {subject}: the carrier answers first, the warehouse second.",
    "{number}. Nothing in this article changes what was promised in writing.",
    "{number}. Exceptions for {subject} end after {days} days without an answer.",
];

const NOTES: &[&str] = &[
    "asked about {path}, wants an answer by phone",
    "{noun}: second complaint, stay friendly",
    "agreed to wait for {elsewhere}",
    "prefers a replacement over money for {path}",
];

const LETTERS: &[&str] = &[
    "Thank you for your patience with {path}. The {noun} is on its way again.",
    "We looked into {path} and found the cause. You will not be charged for it.",
    "About your {noun}: the parcel was found, and {elsewhere} follows separately.",
    "We are sorry about {path}. Please keep the {noun} until the carrier comes.",
];

const FINDINGS: &[&str] = &[
    "{path} and {elsewhere} went out in one parcel, so they share their fate.",
    "The history of {symbol} shows no earlier claim of this kind.",
    "The {noun} left the warehouse in time; the delay is the carrier's.",
    "This looks like {earlier}, where a call to the depot was enough.",
    "Nothing is owed on {path}, so money is not the question here.",
    "{symbol} is entitled to an answer today.",
];

const THOUGHTS: &[&str] = &[
    "If {path} is still with the carrier, changing it now only makes a second label.",
    "The policy has two articles that could apply to the {noun}; the stricter one goes first.",
    "I must not promise anything about {elsewhere} before I have seen it.",
    "A refund and a replacement together would be one too many.",
    "What {symbol} asks for is not quite what the notes say.",
    "{earlier} ended well because somebody wrote down the reason.",
];

fn openings(errand: Errand) -> &'static [&'static str] {
    match errand {
        Errand::Find => &[
            "Let me open the account {symbol}.",
            "First, who is {symbol}?",
        ],
        Errand::List => &["Which orders are there?", "Listing the orders of {symbol}."],
        Errand::Look => &["Looking at {path}.", "Now {path} in detail."],
        Errand::Policy => &[
            "Let me see what the policy says.",
            "The policy decides this.",
        ],
        Errand::Change => &["I'll change {path} accordingly.", "Setting {path} right."],
        Errand::Refund => &["A refund on {path} is due.", "Paying back part of {path}."],
        Errand::History => &["What happened so far?", "The history of {symbol} may tell."],
        Errand::Note => &["I'll leave a note for whoever comes next."],
        Errand::Write => &["Writing to {symbol} now.", "{symbol} should hear about it."],
    }
}

fn said(random: &mut Random, topic: &Topic, bank: &[&'static str]) -> String {
    let mut template = random.pick(bank);
    for _ in 0..8 {
        if topic.earlier.is_empty() && template.contains("{earlier}") {
            template = random.pick(bank);
        }
    }
    let earlier = if topic.earlier.is_empty() {
        &topic.path
    } else {
        &topic.earlier
    };
    topic.language.fill(
        template,
        &[
            ("noun", topic.noun),
            ("path", &topic.path),
            ("symbol", &topic.symbol),
            ("elsewhere", &topic.elsewhere),
            ("earlier", earlier),
        ],
    )
}

/// What the agent says before it looks something up or changes it.
pub(super) fn announcement(random: &mut Random, topic: &Topic, errand: Errand) -> String {
    let opening = said(random, topic, openings(errand));
    if random.percent(40) {
        let finding = said(random, topic, FINDINGS);
        format!("{finding}{}{opening}", topic.language.gap())
    } else {
        opening
    }
}

/// A longer explanation.
pub(super) fn explanation(random: &mut Random, topic: &Topic) -> String {
    let sentences: Vec<String> = (0..random.count(3, 6))
        .map(|at| said(random, topic, if at % 2 == 0 { FINDINGS } else { THOUGHTS }))
        .collect();
    sentences.join(topic.language.gap())
}

/// What the agent thinks before it speaks.
pub(super) fn thought(random: &mut Random, topic: &Topic) -> String {
    let sentences: Vec<String> = (0..random.count(2, 5))
        .map(|_| said(random, topic, THOUGHTS))
        .collect();
    sentences.join(topic.language.gap())
}

/// A note about the customer.
pub(super) fn note(random: &mut Random, topic: &Topic) -> String {
    said(random, topic, NOTES)
}

/// A message to the customer.
pub(super) fn letter(random: &mut Random, topic: &Topic) -> String {
    let first = said(random, topic, LETTERS);
    format!(
        "{first}{}{}",
        topic.language.gap(),
        said(random, topic, LETTERS)
    )
}

/// A line in a language, and the bytes of the English one.
fn line(language: Language, template: &str, slots: &[(&str, &str)]) -> (String, usize) {
    (language.fill(template, slots), fill(template, slots).len())
}

/// What happened to a parcel, and the bytes of the English line.
pub(super) fn event(random: &mut Random, carrier: &str, language: Language) -> (String, usize) {
    let number = random.between(2, 9_999).to_string();
    let slots = [("carrier", carrier), ("number", &number)];
    line(language, random.pick(EVENTS), &slots)
}

/// A clause of the policy, and the bytes of the English one.
pub(super) fn clause(random: &mut Random, subject: &str, language: Language) -> (String, usize) {
    let number = random.between(1, 99).to_string();
    let days = random.between(3, 90).to_string();
    let slots = [
        ("number", number.as_str()),
        ("days", &days),
        ("subject", subject),
    ];
    line(language, random.pick(CLAUSES), &slots)
}
