//! Sentences: comments in code, log events, and what the agent and the user say.

use super::fill;
use super::names::{FAULTS, NOUNS, OBJECTS, VERBS};
use crate::session::synthetic::Language;
use crate::session::synthetic::random::Random;

const PARTICIPLES: &[&str] = &[
    "written",
    "billed",
    "indexed",
    "replayed",
    "forwarded",
    "archived",
    "acknowledged",
    "retried",
    "published",
    "matched",
];

const PURPOSES: &[&str] = &[
    "Keeps every {noun} {object} in the order in which it arrived.",
    "Turns a {noun} {object} into what the {other} side expects.",
    "Decides which {noun} {object} is handled first when several are open.",
    "The boundary between {noun} and {other}: nothing else crosses it.",
    "Reads {noun} {object}s in pages and forgets them once they are {done}.",
];

const DOCS: &[&str] = &[
    "{Verb}s the {object} before the {other} {thing} is {done}.",
    "Returns the {object} that the {noun} {thing} belongs to, if it is still open.",
    "Called once for each {object}; the {thing} must already be {done}.",
    "Stops at the first {object} whose {thing} has not been {done}.",
    "Fails where the {thing} is older than the {object} it refers to.",
    "Never blocks: a {thing} that is not ready is {done} on the next pass.",
];

const REASONS: &[&str] = &[
    "the {other} side sends the {object} twice when it reconnects",
    "a {object} can be {done} while we still hold the {thing}",
    "older clients leave the {thing} empty",
    "the order matters here: {thing} first, then {object}",
    "without this the {object} is {done} once per {thing}",
    "kept for the {other} import, which has no {thing}",
    "cheap enough to repeat, and the {object} may have moved",
];

const EVENTS: &[&str] = &[
    "{noun} {object} {done}",
    "{verb} {object} for {other}",
    "skipped {object}: {thing} not {done}",
    "{thing} of {noun} changed while {object} was open",
    "waiting for {other} {thing}",
    "{object} {done} after second attempt",
];

fn words(random: &mut Random, noun: &str, templates: &[&str]) -> String {
    let verb = random.pick(VERBS);
    let mut capital = verb[..1].to_ascii_uppercase();
    capital.push_str(&verb[1..]);
    let (object, thing) = (random.pick(OBJECTS), random.pick(OBJECTS));
    fill(
        random.pick(templates),
        &[
            ("noun", noun),
            ("other", random.pick(NOUNS)),
            ("verb", verb),
            ("Verb", &capital),
            ("object", &object.replace('_', " ")),
            ("thing", &thing.replace('_', " ")),
            ("done", random.pick(PARTICIPLES)),
        ],
    )
}

/// What a file is for.
pub(crate) fn purpose(random: &mut Random, noun: &str) -> String {
    words(random, noun, PURPOSES)
}

/// What a function does.
pub(crate) fn doc(random: &mut Random, noun: &str) -> String {
    words(random, noun, DOCS)
}

/// Why a line is there.
pub(crate) fn reason(random: &mut Random) -> String {
    let noun = random.pick(NOUNS);
    words(random, noun, REASONS)
}

/// What happened: the text of a log line.
pub(crate) fn event(random: &mut Random, noun: &str) -> String {
    words(random, noun, EVENTS)
}

/// What the agent and the user talk about at the moment.
#[derive(Debug, Clone)]
pub(crate) struct Topic {
    pub(crate) language: Language,
    pub(crate) noun: &'static str,
    pub(crate) path: String,
    pub(crate) symbol: String,
    pub(crate) elsewhere: String,
    pub(crate) earlier: String,
}

/// What a round of the agent is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    Orient,
    Read,
    Search,
    Test,
    Observe,
    Edit,
    Create,
    History,
    Fetch,
    /// Something besides the work, told by itself.
    Aside,
}

fn intents(intent: Intent) -> &'static [&'static str] {
    match intent {
        Intent::Orient => &[
            "Let me see how the {noun} module is laid out.",
            "I'll start by listing what belongs to {noun}.",
            "First an overview of the files around `{symbol}`.",
        ],
        Intent::Read => &[
            "I'll read `{path}` in full before judging it.",
            "`{path}` is the next place to look.",
            "Now the file that defines `{symbol}`.",
            "Reading `{path}` to see how the {object} is handled.",
            "I want to compare this with `{path}`.",
        ],
        Intent::Search => &[
            "Let me find every caller of `{symbol}`.",
            "Who else depends on `{symbol}`?",
            "Searching for `{symbol}` across the repository.",
            "The definition is clear; the call sites of `{symbol}` are not.",
        ],
        Intent::Test => &[
            "Running the {noun} tests to see where we stand.",
            "Let me check that this still passes.",
            "The {noun} suite should tell whether `{symbol}` behaves.",
            "I'll run the tests again with the change in place.",
        ],
        Intent::Observe => &[
            "The log of the {noun} worker should show when this happens.",
            "Let me look at what the service writes while it does this.",
            "I'll look at the recorded output for {noun}.",
        ],
        Intent::Edit => &[
            "I'll add the missing check to `{path}`.",
            "This needs a guard before the call in `{path}`.",
            "Making the change in `{path}` now.",
            "A small change in `{path}` is enough.",
        ],
        Intent::Create => &[
            "I'll pin this down with a regression test.",
            "There is no test for that path yet, so I'll write one.",
            "Adding a test file that covers the case we just saw.",
        ],
        Intent::History => &[
            "The history of `{path}` may explain why it is written this way.",
            "Let me see who touched this last, and why.",
            "Checking what changed around `{symbol}`.",
        ],
        Intent::Fetch => &[
            "The behaviour of the client library is documented; let me check it.",
            "I'll look up what the protocol says about this.",
        ],
        Intent::Aside => &[
            "Then back to `{path}`.",
            "After that I'll go on with `{symbol}`.",
            "`{path}` is next.",
            "This first, and then {noun} again.",
        ],
    }
}

const FINDINGS: &[&str] = &[
    "`{symbol}` takes the {object} by position, while `{elsewhere}` passes it by key.",
    "The {object} is read before the {thing} is {done}, which is the wrong way round.",
    "As far as I can see the {thing} is never {done} when {fault} is raised.",
    "`{path}` and `{elsewhere}` disagree about who owns the {object}.",
    "The limit in `{symbol}` is compared with the wrong {object}.",
    "Nothing here handles {fault}, so the caller sees an empty {thing}.",
    "That matches what we saw in `{earlier}` a while ago.",
    "The same pattern was used for `{earlier}`, and it worked there.",
    "The {thing} is copied twice, but that is only slow, not wrong.",
    "So far this confirms the suspicion about `{earlier}`.",
];

const NEXT: &[&str] = &[
    "If that holds, the fix is local to `{path}`.",
    "After that I'll check `{elsewhere}`.",
    "I'll keep `{earlier}` in mind, because it follows the same route.",
    "Then the tests for {noun} decide.",
    "I'd rather not touch `{elsewhere}` unless it is needed.",
    "That leaves the {thing} as the only open question.",
];

const THOUGHTS: &[&str] = &[
    "The user cares about {noun}, so I should not wander off into `{elsewhere}`.",
    "Two explanations are left: either the {object} is stale, or the {thing} was {done} twice.",
    "If the {object} were stale, `{symbol}` would raise {fault}, and it does not.",
    "I have not looked at `{earlier}` since the beginning; it may share the mistake.",
    "A guard is the smallest change, but the cause may be one level up.",
    "Let me first make sure that the test fails for the reason I think it does.",
    "The name suggests that the {thing} is optional, and the code assumes that it is not.",
    "`{elsewhere}` would be the wrong place for this, because it never sees the {thing}.",
    "There may be a reason for the order: the {object} has to be {done} before anyone asks.",
    "What would prove me wrong is a {thing} without its {object}.",
    "The test data hardly ever contains {fault}, so a green run says little.",
    "I should verify this against the call in `{path}` before I claim it.",
];

const REPORT_HEADS: &[&str] = &[
    "Here is where the {noun} review stands.",
    "Done with this part of {noun}.",
    "That was the cause: the {object} in `{path}`.",
    "I have a clear picture of `{symbol}` now.",
];

const REPORT_POINTS: &[&str] = &[
    "`{path}`: the {object} is now checked before it is {done}",
    "`{elsewhere}` still relies on the {thing}; I left it as it is",
    "`{symbol}` reports {fault} instead of an empty {thing}",
    "callers of `{earlier}` need no change",
    "the {thing} is {done} once, no matter how often the {object} arrives",
    "one open point: whether the {object} may outlive the {thing}",
    "the suite for {noun} covers the new branch",
    "the log line for {fault} now names the {object}",
    "not done: the {thing} is still {done} in `{elsewhere}` as well",
    "`{symbol}` is the only function that changes the {object}",
];

const REQUESTS: &[&str] = &[
    "Please review the {noun} module next. Something about `{symbol}` looks off to me: the {object} comes back empty under load.",
    "Could you look at {noun}? Support says that a {object} is sometimes {done} twice.",
    "Next one: customers see {fault} in {noun} right after a deploy. Find out why and fix it.",
    "I don't trust the way {noun} handles its {object}. Read it carefully and tell me what you would change.",
    "The {noun} tests are flaky since last week. Start from `{path}`.",
    "Let's continue with {noun}. Check that the {thing} is released on every path, also where `{symbol}` fails.",
    "Good. Now go through {noun} the same way, and compare it with `{earlier}` from before.",
    "Thanks, that makes sense. Please do the same check for {noun}, especially `{symbol}`.",
];

const OPENINGS: &[&str] = &[
    "Hi! I'd like you to go through this repository with me today. Start with {noun}: a {object} is sometimes {done} twice.",
    "Please review this repository, module by module. Begin with {noun}, where `{symbol}` looks wrong to me.",
    "We ship next week and I want a second pair of eyes. First {noun}: read `{path}` and tell me what happens on {fault}.",
];

const COMPACTING: &[&str] = &[
    "We have come a long way since `{earlier}`; I'll tidy up before I go on.",
    "This has become a long conversation. Let me condense it now that {noun} is half done.",
    "Before I open `{elsewhere}` I'll make room.",
];

const FOCUS: &[&str] = &[
    "the open question about the {object} in `{path}`, and every wish of the owner",
    "what was changed so far, and why `{symbol}` is suspected",
    "the owner's rules, the numbers that were mentioned, and the state of {noun}",
];

const WRAP_UPS: &[&str] = &[
    "That's enough for today. Please sum up what you changed and what is still open.",
    "Let's stop here. Write me a short closing summary, please.",
    "I need to go. Give me the final state in a few lines.",
];

/// Draws a template that is not among `used`, and that needs nothing earlier where there is
/// nothing earlier; after a few misses, any.
fn template(
    random: &mut Random,
    topic: &Topic,
    bank: &[&'static str],
    used: &mut Vec<&'static str>,
) -> &'static str {
    let mut drawn = random.pick(bank);
    for _ in 0..12 {
        let early = topic.earlier.is_empty() && drawn.contains("{earlier}");
        if !early && !used.contains(&drawn) {
            break;
        }
        drawn = random.pick(bank);
    }
    used.push(drawn);
    drawn
}

fn said(random: &mut Random, topic: &Topic, template: &str) -> String {
    let (object, thing) = (random.pick(OBJECTS), random.pick(OBJECTS));
    let fault = random.pick(FAULTS).replace('_', " ");
    let earlier = if topic.earlier.is_empty() {
        &topic.symbol
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
            ("object", &object.replace('_', " ")),
            ("thing", &thing.replace('_', " ")),
            ("done", random.pick(PARTICIPLES)),
            ("fault", &fault),
        ],
    )
}

fn sentences(random: &mut Random, topic: &Topic, banks: &[&[&'static str]]) -> String {
    list(random, topic, banks).join(topic.language.gap())
}

fn list(random: &mut Random, topic: &Topic, banks: &[&[&'static str]]) -> Vec<String> {
    let mut used = Vec::new();
    banks
        .iter()
        .map(|bank| {
            let template = template(random, topic, bank, &mut used);
            said(random, topic, template)
        })
        .collect()
}

/// What the agent says before it uses tools: one to four sentences.
pub(crate) fn announcement(random: &mut Random, topic: &Topic, intent: Intent) -> String {
    let opening = intents(intent);
    match random.below(4) {
        0 => sentences(random, topic, &[opening]),
        1 => sentences(random, topic, &[FINDINGS, opening]),
        2 => sentences(random, topic, &[FINDINGS, opening, NEXT]),
        _ => sentences(random, topic, &[FINDINGS, FINDINGS, opening, NEXT]),
    }
}

/// What the agent thinks before it speaks.
pub(crate) fn thought(random: &mut Random, topic: &Topic) -> String {
    let banks = vec![THOUGHTS; random.count(3, THOUGHTS.len())];
    sentences(random, topic, &banks)
}

/// A longer explanation, with a quotation of code where there is one.
pub(crate) fn explanation(random: &mut Random, topic: &Topic, code: &[String]) -> String {
    let first = sentences(random, topic, &[FINDINGS, FINDINGS, FINDINGS, THOUGHTS]);
    let second = sentences(
        random,
        topic,
        &[THOUGHTS, FINDINGS, THOUGHTS, FINDINGS, NEXT],
    );
    if code.is_empty() {
        return format!("{first}\n\n{second}");
    }
    let code = code.join("\n");
    format!("{first}\n\n```\n{code}\n```\n\n{second}")
}

/// The end of a piece of work: what was found, as a list.
pub(crate) fn report(random: &mut Random, topic: &Topic) -> String {
    let mut text = sentences(random, topic, &[REPORT_HEADS]);
    text.push('\n');
    let banks = vec![REPORT_POINTS; random.count(3, REPORT_POINTS.len())];
    for point in list(random, topic, &banks) {
        text.push_str("\n- ");
        text.push_str(&point);
    }
    text.push_str("\n\n");
    text.push_str(&sentences(random, topic, &[FINDINGS, NEXT]));
    text
}

/// What the user asks for.
pub(crate) fn request(random: &mut Random, topic: &Topic) -> String {
    let bank = if topic.earlier.is_empty() {
        OPENINGS
    } else {
        REQUESTS
    };
    sentences(random, topic, &[bank])
}

/// The agent has the conversation summarised: what it says, and what the summary must keep.
pub(crate) fn compacting(random: &mut Random, topic: &Topic) -> (String, String) {
    let said = sentences(random, topic, &[COMPACTING]);
    (said, sentences(random, topic, &[FOCUS]))
}

/// The user ends the session.
pub(crate) fn wrap_up(random: &mut Random, language: Language) -> String {
    language.say(random.pick(WRAP_UPS)).to_owned()
}
