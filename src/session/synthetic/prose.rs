//! Sentences: comments in code, log events, and what the agent and the user say.

use super::Language;
use super::output::fault;
use super::random::Random;
use super::words::{NAMES, PROSE, capital, fill};
use super::workspace::Intent;

/// An object of the repository, in words.
pub(crate) fn object(random: &mut Random) -> String {
    random.pick(&NAMES.objects).replace('_', " ")
}

fn words(random: &mut Random, noun: &str, templates: &[&str]) -> String {
    let verb = random.pick(&NAMES.verbs);
    let (object, thing) = (object(random), object(random));
    let template = random.pick(templates);
    let slots = [
        ("noun", noun),
        ("other", random.pick(&NAMES.nouns)),
        ("verb", verb),
        ("Verb", &capital(verb)),
        ("object", &object),
        ("thing", &thing),
        ("done", random.pick(&NAMES.participles)),
    ];
    fill(template, &slots)
}

/// What a file is for.
pub(crate) fn purpose(random: &mut Random, noun: &str) -> String {
    words(random, noun, &PROSE.purposes)
}

/// What a function does.
pub(crate) fn doc(random: &mut Random, noun: &str) -> String {
    words(random, noun, &PROSE.docs)
}

/// Why a line is there.
pub(crate) fn reason(random: &mut Random) -> String {
    let noun = random.pick(&NAMES.nouns);
    words(random, noun, &PROSE.reasons)
}

/// The text of a log line.
pub(crate) fn event(random: &mut Random, noun: &str) -> String {
    words(random, noun, &PROSE.events)
}

/// The subject of the conversation at the moment.
#[derive(Debug, Clone)]
pub(crate) struct Topic {
    pub(crate) language: Language,
    pub(crate) noun: &'static str,
    pub(crate) path: String,
    pub(crate) symbol: String,
    pub(crate) elsewhere: String,
    /// Something that was looked at before; empty at the beginning.
    pub(crate) earlier: String,
}

impl Topic {
    /// A template about it; slots that it does not know are among `more`.
    pub(crate) fn fill(&self, template: &str, more: &[(&str, &str)]) -> String {
        let mut slots = vec![
            ("noun", self.noun),
            ("path", &self.path),
            ("symbol", &self.symbol),
            ("elsewhere", &self.elsewhere),
        ];
        slots.extend(more);
        self.language.fill(template, &slots)
    }
}

/// Draws a template that is not among `used`, and that needs nothing earlier where there is
/// nothing earlier; after so many misses, any.
pub(crate) fn template(
    random: &mut Random,
    topic: &Topic,
    bank: &[&'static str],
    used: &[&'static str],
    misses: usize,
) -> &'static str {
    let mut drawn = random.pick(bank);
    for _ in 0..misses {
        let early = topic.earlier.is_empty() && drawn.contains("{earlier}");
        if !early && !used.contains(&drawn) {
            break;
        }
        drawn = random.pick(bank);
    }
    drawn
}

fn said(random: &mut Random, topic: &Topic, template: &str) -> String {
    let (object, thing, fault) = (object(random), object(random), fault(random));
    let is_first = topic.earlier.is_empty();
    let slots = [
        (
            "earlier",
            if is_first {
                topic.symbol.as_str()
            } else {
                &topic.earlier
            },
        ),
        ("object", &object),
        ("thing", &thing),
        ("done", random.pick(&NAMES.participles)),
        ("fault", &fault),
    ];
    topic.fill(template, &slots)
}

fn sentences(random: &mut Random, topic: &Topic, banks: &[&[&'static str]]) -> String {
    list(random, topic, banks).join(topic.language.gap())
}

fn list(random: &mut Random, topic: &Topic, banks: &[&[&'static str]]) -> Vec<String> {
    let mut used = Vec::new();
    banks
        .iter()
        .map(|bank| {
            let template = template(random, topic, bank, &used, 12);
            used.push(template);
            said(random, topic, template)
        })
        .collect()
}

/// What the agent says before it uses tools: one to four sentences.
pub(crate) fn announcement(random: &mut Random, topic: &Topic, intent: Intent) -> String {
    let opening: &[&str] = PROSE.intents.get(&intent).map_or(&[], Vec::as_slice);
    let (findings, next) = (&PROSE.findings[..], &PROSE.next[..]);
    match random.below(4) {
        0 => sentences(random, topic, &[opening]),
        1 => sentences(random, topic, &[findings, opening]),
        2 => sentences(random, topic, &[findings, opening, next]),
        _ => sentences(random, topic, &[findings, findings, opening, next]),
    }
}

/// What the agent thinks before it speaks.
pub(crate) fn thought(random: &mut Random, topic: &Topic) -> String {
    let thoughts = &PROSE.thoughts[..];
    let banks = vec![thoughts; random.count(3, thoughts.len())];
    sentences(random, topic, &banks)
}

/// A longer explanation, with a quotation of code where there is one.
pub(crate) fn explanation(random: &mut Random, topic: &Topic, code: &[String]) -> String {
    let (findings, thoughts) = (&PROSE.findings[..], &PROSE.thoughts[..]);
    let first = sentences(random, topic, &[findings, findings, findings, thoughts]);
    let banks = [thoughts, findings, thoughts, findings, &PROSE.next];
    let second = sentences(random, topic, &banks);
    if code.is_empty() {
        return format!("{first}\n\n{second}");
    }
    format!("{first}\n\n```\n{}\n```\n\n{second}", code.join("\n"))
}

/// The end of a piece of work: what was found, as a list.
pub(crate) fn report(random: &mut Random, topic: &Topic) -> String {
    let head = sentences(random, topic, &[&PROSE.report_heads]);
    let points = &PROSE.report_points[..];
    let banks = vec![points; random.count(3, points.len())];
    let points = list(random, topic, &banks).join("\n- ");
    let end = sentences(random, topic, &[&PROSE.findings, &PROSE.next]);
    format!("{head}\n\n- {points}\n\n{end}")
}

/// What the user asks for.
pub(crate) fn request(random: &mut Random, topic: &Topic) -> String {
    let is_first = topic.earlier.is_empty();
    let bank = if is_first {
        &PROSE.openings
    } else {
        &PROSE.requests
    };
    sentences(random, topic, &[bank])
}

/// The agent has the conversation summarised: what it says, and what the summary must keep.
pub(crate) fn compacting(random: &mut Random, topic: &Topic) -> (String, String) {
    let said = sentences(random, topic, &[&PROSE.compacting]);
    (said, sentences(random, topic, &[&PROSE.focus]))
}

/// The user ends the session.
pub(crate) fn wrap_up(random: &mut Random, language: Language) -> String {
    language.say(random.pick(&PROSE.wrap_ups)).to_owned()
}
