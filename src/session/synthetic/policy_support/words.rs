//! The words of the family: what is settled, counted and refused at a help desk.

use crate::session::synthetic::Language;
use crate::session::synthetic::plot::Phrases;
use crate::session::synthetic::story::Words;

/// Of its frame.
pub(super) const WORDS: Words = Words {
    system: SYSTEM,
    openings: OPENINGS,
    turns: TURNS,
    hints: [""; 4],
    remarks: REMARKS,
    reports: REPORTS,
    farewells: FAREWELLS,
    snipping: SNIPPING,
    condensing: CONDENSING,
};

/// Of what happens.
pub(super) const PHRASES: Phrases = Phrases {
    languages: &Language::ALL,
    listing: LISTING,
    aspects: ASPECTS,
    designs: DESIGNS,
    grounds: GROUNDS,
    decided: DECIDED,
    settings: SETTINGS,
    revised: REVISED,
    suites: SUITES,
    counted: COUNTED,
    unit: "claims",
    methods: METHODS,
    approach: "{method} through {name}",
    collapsed: COLLAPSED,
    given_up: GIVEN_UP,
    tried: "Was the {approach} tried, and what came back?",
    steps: STEPS,
};

/// What is decided about a case.
const ASPECTS: &[&str] = &[
    "remedy",
    "return route",
    "compensation",
    "carrier",
    "answer",
    "replacement",
];

/// What an option is.
const DESIGNS: &[&str] = &[
    "voucher", "exchange", "pickup", "discount", "repair", "credit",
];

/// Why an option was taken; the name in it is made up for the occasion.
const GROUNDS: &[&str] = &[
    "the {name} contract promises it in writing",
    "the {name} depot has one on the shelf",
    "the customer asked for it in the {name} survey",
    "it is what the {name} article allows without a second signature",
    "it arrives before the {name} holidays",
];

/// How a decision is said.
const DECIDED: &[&str] = &[
    "Possible for the {key}: {all}.\nThe {key} will be {choice}, because {reason}.",
    "I could offer {all} as the {key}.\nFor the {key} I take {choice}: {reason}.",
    "The policy leaves {all}.\nSo the {key} is {choice}, given that {reason}.",
];

/// What has a value that is revised.
const SETTINGS: &[&str] = &[
    "pickup code",
    "return label",
    "voucher code",
    "case number",
    "delivery slot",
    "call-back line",
];

/// How a revised value is said by the supervisor.
const REVISED: &[&str] = &[
    "The {key} changed again, it is {value} now.",
    "Please use {value} as the {key}.",
    "{key}: {value}, straight from the carrier.",
    "I was given {value} for the {key}.",
];

/// What is counted over all accounts.
const SUITES: &[&str] = &[
    "open queue",
    "return pile",
    "morning batch",
    "carrier backlog",
];

/// How a count is printed.
const COUNTED: &[&str] = &[
    "{key}: {value} claims",
    "{value} claims wait in the {key}",
    "claims in the {key}, all accounts: {value}",
];

/// What is tried in vain.
const METHODS: &[&str] = &[
    "bank transfer",
    "express label",
    "address correction",
    "partial refund",
    "carrier claim",
    "store pickup",
    "insurance claim",
    "phone confirmation",
];

/// How a tool says that it did not work.
const COLLAPSED: &[&str] = &[
    "{approach} refused: {reason} ({fault})",
    "{reason} on {approach}, {fault}",
    "no {approach} possible, {fault}, see {reason}",
];

/// What the agent concludes.
const GIVEN_UP: &[&str] = &[
    "The {approach} was refused with {reason}, so that is no way.",
    "No luck with the {approach}: {reason}. Something else then.",
    "{reason} is what the {approach} ends in; I won't try it twice.",
];

/// Steps of a plan.
const STEPS: &[&str] = &[
    "confirm {name} with the carrier",
    "attach the {name} receipt",
    "answer the {name} complaint",
    "book {name} back into stock",
    "ask {name} for a photo",
    "close the {name} enquiry",
    "send the {name} label",
    "check {name} against the policy",
    "inform {name} about the delay",
    "hand {name} to accounting",
];

/// What the supervisor says to begin.
const OPENINGS: &[&str] = &[
    "Good morning. The first case today is {chapter}, account {symbol}. Find out who that is and what was ordered.",
    "Hello, you are on the desk now. Case {chapter}: {symbol} writes about a {noun}. Begin with the account.",
];

/// What ends each phase and begins the next: identify, look up, settle, close.
const TURNS: [&[&str]; 4] = [
    &[
        "That is the right account for {chapter}. What does the policy say?",
        "Fine, now the rules: what can be done for {chapter}?",
    ],
    &[
        "Good, go ahead and settle {chapter}.",
        "The policy is clear on {chapter}. Put {path} right, please.",
    ],
    &[
        "{chapter} looks settled. Write to the customer and leave a note.",
        "Please finish {chapter}: message, note, list.",
    ],
    &[
        "{chapter} is done. Next in the queue is {symbol}, something about a {noun}.",
        "Thank you. Another one: account {symbol}, order {path}.",
    ],
];

/// What the supervisor throws in between.
const REMARKS: &[&str] = &[
    "A word from upstairs.",
    "While you have it open:",
    "I have a message here for you.",
    "Careful, something changed.",
];

/// How the agent reports at the end of a phase.
const REPORTS: &[&str] = &[
    "{chapter}: {symbol} waits for {path}, and {elsewhere} is not affected.",
    "The state of {chapter}: the {noun} is the question, everything else is paid and settled.",
    "For {chapter} there is one open point left, and it is {path}.",
];

/// What the agent says when it marks results as not needed.
const SNIPPING: &[&str] = &[
    "The look-ups of the last case can go.",
    "I have written down what matters; these results are not needed.",
    "Clearing the desk.",
];

/// What the agent says when it has the conversation summarised, and what must be kept.
const CONDENSING: &[(&str, &str)] = &[
    (
        "Many cases behind us; I'll condense them.",
        "every rule I was given, the open promises, and the newest codes",
    ),
    (
        "Let me tidy up before the next customer.",
        "what was promised in {chapter}, and which steps are left",
    ),
];

/// What the agent says when it writes its list.
const LISTING: &[&str] = &[
    "My checklist for this case.",
    "Ticking that off.",
    "The checklist, brought up to date.",
];

/// What the supervisor says at the end.
const FAREWELLS: &[&str] = &[
    "Your shift is over. A few lines for the colleague after you, please.",
    "That was the last one. Sum up the day briefly.",
];

/// The system prompt.
const SYSTEM: &str = "\
You work at the help desk of a mail-order house. A supervisor hands you one case after another and \
says when it is time for the next step: identify, look up, settle, close.

- Look before you promise. What an order is like says `get_order`, not your memory.
- The policy holds for every case; what the supervisor tells you holds from then on, for all of them.
- Never name one customer to another. Ids of accounts and orders are quoted exactly.
- Independent look-ups go out together.
- Keep the checklist of a case with `TodoWrite`, and leave a note before you close it.
- Results that you will not need again can be marked with `snip`; a long conversation can be \
condensed with `compact`.";
