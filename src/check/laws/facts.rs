//! Laws about what summaries are made of, and what becomes of them.

use std::collections::BTreeSet;

use super::prompts::text_of;
use super::{Judged, Known};
use crate::check::faithful::{OPENING, said_in};
use crate::check::play::{Asked, Played, Plays, Prompt, Writer};
use crate::check::world::{DONE, Fact, FactKind, Matter};
use crate::session::{Message, Role, Session};

/// Characters by which a text is known again in a request: products cut what is long.
const MARK: usize = 24;

/// The fewest words of a line that may be an invention.
const FEWEST_WORDS: usize = 4;

/// The share of the words of a line that nobody wrote, above which it is invented.
const INVENTED: f64 = 0.5;

/// Two texts that share so much of their words are one.
const ALIKE: f64 = 0.8;

/// The share of the characters of an answer that stay, at least.
const STAYS: f64 = 0.5;

/// The beginning of the first text of a message, by which it is known.
fn mark(message: &Message) -> Option<String> {
    let mut texts = message.model_text().iter();
    let text = texts.find(|text| !text.trim().is_empty())?;
    Some(text.trim().chars().take(MARK).collect())
}

impl Played {
    /// All texts that a model was sent before this call.
    fn requests_until(&self, call: usize) -> String {
        let asked = self.asked.iter().filter(|asked| asked.call <= call);
        let texts: Vec<String> = asked.map(|asked| said_in(&asked.request)).collect();
        texts.join("\n")
    }

    /// Each whole answer with the first prompt that was changed after it, and the request behind it.
    fn adopted(&self) -> impl Iterator<Item = (&Asked, &str, &Prompt)> {
        self.asked.iter().filter_map(|asked| {
            let answer = &*asked.answer.as_ref()?.text;
            let mut events = self.record.compactions.iter();
            let event = events.find(|event| event.call >= asked.call)?;
            let prompt = self
                .prompts
                .iter()
                .find(|prompt| prompt.call >= event.call)?;
            answer
                .starts_with(OPENING)
                .then_some((asked, answer, prompt))
        })
    }
}

/// The first facts of this kind that an answer held, and that the prompt made of it does not.
fn changed(plays: &Plays<'_>, kind: FactKind) -> Judged {
    let played = plays.usual();
    let facts = || plays.scene.facts.iter().filter(|fact| fact.kind == kind);
    let mut had_chance = false;
    let found = played.adopted().find_map(|(_, answer, prompt)| {
        let text = prompt.text();
        let held = |fact: &&Fact| answer.contains(fact.value);
        had_chance |= facts().any(|fact| held(&fact));
        let lost = facts()
            .filter(held)
            .find(|fact| !text.contains(fact.value))?;
        Some(format!(
            "call {}: the model wrote `{}`, and the prompt does not say `{}`",
            prompt.call, lost.evidence, lost.value
        ))
    });
    Judged::by(had_chance, found)
}

pub(super) fn values(plays: &Plays<'_>, _: &Known) -> Judged {
    changed(plays, FactKind::Value)
}

pub(super) fn rules(plays: &Plays<'_>, _: &Known) -> Judged {
    changed(plays, FactKind::Rule)
}

pub(super) fn kept(plays: &Plays<'_>, _: &Known) -> Judged {
    let played = plays.usual();
    let adopted: Vec<(&Asked, &str, &Prompt)> = played.adopted().collect();
    let pairs = adopted.iter().zip(adopted.iter().skip(1));
    let found = pairs
        .clone()
        .find_map(|((_, before, first), (asked, _, prompt))| {
            let (request, text, was) = (said_in(&asked.request), prompt.text(), first.text());
            let mut facts = plays.scene.facts.iter();
            let lost = facts.find(|fact| {
                let was_kept = before.contains(fact.value) && was.contains(fact.value);
                was_kept && !request.contains(fact.value) && !text.contains(fact.value)
            })?;
            Some(format!(
                "call {}: `{}`, which the summary before held, was in no request and is gone",
                prompt.call, lost.value
            ))
        });
    Judged::by(pairs.count() > 0, found)
}

pub(super) fn unseen(plays: &Plays<'_>, _: &Known) -> Judged {
    let played = plays.usual();
    let session = &plays.scene.session;
    let mut had_chance = false;
    let found = played.changes().find_map(|(before, now, _)| {
        let present = now.present(session);
        let asked = played.requests_until(now.call);
        if asked.is_empty() {
            return None;
        }
        let (text, mut gone) = (now.text(), 0);
        let unseen = before
            .messages(session)
            .zip(&before.entries)
            .find_map(|(at, entry)| {
                let mark = mark(&entry.message)?;
                let is_gone = at.is_none_or(|at| !present.contains(&at)) && !text.contains(&mark);
                gone += usize::from(is_gone);
                (is_gone && !asked.contains(&mark)).then_some((at, mark))
            });
        had_chance |= gone > 0;
        let (at, mark) = unseen?;
        let what = at.map_or_else(
            || "a text of the strategy".to_owned(),
            |at| format!("message {at}"),
        );
        Some(format!(
            "call {}: {what}, `{mark}…`, is gone, and no model was sent it",
            now.call
        ))
    });
    Judged::by(had_chance, found)
}

pub(super) fn done(plays: &Plays<'_>, _: &Known) -> Judged {
    let played = plays.usual();
    let session = &plays.scene.session;
    let [closed, open] = ["[x]", "[ ]"].map(|state| format!("{state} {DONE}"));
    let finished = session
        .messages()
        .iter()
        .position(|message| text_of(message).contains(&closed));
    let Some(finished) = finished else {
        return Judged::NoChance;
    };
    let mut had_chance = false;
    let found = played
        .prompts
        .iter()
        .filter(|prompt| prompt.before > finished)
        .find_map(|prompt| {
            let written: Vec<String> = prompt
                .written()
                .map(|entry| text_of(&entry.message))
                .collect();
            had_chance |= written.iter().any(|text| text.contains(DONE));
            // The newest state is the last one, be it in a summary or in a message that stayed.
            let text = prompt.text();
            let is_open = text.rfind(&open) > text.rfind(&closed)
                && written.iter().any(|text| text.contains(&open));
            is_open.then(|| {
                format!(
                    "call {}: `{DONE}`, which is finished, is open in the prompt",
                    prompt.call
                )
            })
        });
    Judged::by(had_chance, found)
}

pub(super) fn once(plays: &Plays<'_>, _: &Known) -> Judged {
    let played = plays.usual();
    let numbers = |text: &str| -> Vec<usize> {
        let behind = text
            .match_indices(OPENING)
            .map(|(at, _)| &text[at + OPENING.len()..]);
        behind
            .filter_map(|rest| {
                rest.split(|c: char| !c.is_ascii_digit())
                    .next()?
                    .parse()
                    .ok()
            })
            .collect()
    };
    let mut had_chance = false;
    let found = played.prompts.iter().find_map(|prompt| {
        let found = numbers(&prompt.text());
        had_chance |= !found.is_empty();
        let mut seen = BTreeSet::new();
        if let Some(twice) = found.iter().find(|number| !seen.insert(**number)) {
            return Some(format!("call {}: summary {twice} is in the prompt twice", prompt.call));
        }
        let nested = found.iter().find_map(|number| {
            let asked = played.asked.get(number - 1)?;
            let inner = numbers(&said_in(&asked.request));
            inner.into_iter().find(|inner| seen.contains(inner)).map(|inner| (*number, inner))
        });
        nested.map(|(outer, inner)| {
            format!("call {}: summary {inner} is in the prompt beside summary {outer}, which was made of it", prompt.call)
        })
    });
    let alike = || {
        played.prompts.iter().find_map(|prompt| {
            let written: Vec<BTreeSet<String>> = prompt
                .written()
                .map(|entry| words(&text_of(&entry.message)))
                .collect();
            let is_twice = written.iter().enumerate().any(|(at, one)| {
                let mut others = written[..at].iter();
                others.any(|other| one.len() > FEWEST_WORDS && are_alike(one, other))
            });
            is_twice.then(|| {
                format!(
                    "call {}: two texts of the strategy say the same",
                    prompt.call
                )
            })
        })
    };
    Judged::by(had_chance, found.or_else(alike))
}

fn are_alike(one: &BTreeSet<String>, other: &BTreeSet<String>) -> bool {
    let shared = one.intersection(other).count() as f64;
    shared >= ALIKE * one.len().max(other.len()) as f64
}

fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

pub(super) fn language(plays: &Plays<'_>, _: &Known) -> Judged {
    if plays.scene.subject != Matter::Chinese {
        return Judged::NoChance;
    }
    let played = plays.usual();
    let is_own = |c: &char| ('\u{4e00}'..='\u{9fff}').contains(c);
    let count = |text: &str| text.chars().filter(is_own).count();
    let mut had_chance = false;
    let found = played.adopted().find_map(|(_, answer, prompt)| {
        let wrote = count(answer);
        had_chance |= wrote > 0;
        let written: usize = prompt
            .written()
            .map(|entry| count(&text_of(&entry.message)))
            .sum();
        ((written as f64) < STAYS * wrote as f64).then(|| {
            format!(
                "call {}: of {wrote} Chinese characters of the summary {written} are in the prompt",
                prompt.call
            )
        })
    });
    Judged::by(had_chance, found)
}

/// The messages that a summariser would have to keep are gone, though it answered nothing whole and the prompt fits.
pub(super) fn safe_failure(plays: &Plays<'_>, _: &Known) -> Judged {
    let answers = [(Writer::Fails, "failed"), (Writer::Empty, "was empty")];
    dropped(plays, &answers)
}

/// The same of an answer that broke off.
pub(super) fn whole(plays: &Plays<'_>, _: &Known) -> Judged {
    dropped(plays, &[(Writer::Cut, "broke off")])
}

fn dropped(plays: &Plays<'_>, answers: &[(Writer, &str)]) -> Judged {
    if !plays.scene.is_usual() {
        return Judged::NoChance;
    }
    let session = &plays.scene.session;
    let window = plays.scene.window;
    let mut had_chance = false;
    let found = answers.iter().find_map(|(writer, how)| {
        let played = plays.with(*writer);
        had_chance |= !played.asked.is_empty();
        let asked: BTreeSet<usize> = played.asked.iter().map(|asked| asked.call).collect();
        let found = played.changes().find_map(|(before, now, _)| {
            let fits = now.history <= window && asked.contains(&now.call);
            let present = now.present(session);
            let gone: Vec<usize> = before.present(session).difference(&present).copied().collect();
            (fits && !gone.is_empty()).then(|| {
                format!("call {}: the answer {how}, and {} of the messages are gone, from message {} on", now.call, gone.len(), gone[0])
            })
        });
        found
    });
    Judged::by(had_chance, found)
}

pub(super) fn invention(plays: &Plays<'_>, known: &Known) -> Judged {
    let played = plays.usual();
    let session = &plays.scene.session;
    let mut had_chance = false;
    let source = Source::of(played, session);
    let found = played.prompts.iter().find_map(|prompt| {
        prompt
            .written()
            .filter(|entry| entry.message.role() == Role::User)
            .find_map(|entry| {
                had_chance = true;
                let text = text_of(&entry.message);
                let invented = source.lines(&text).find(|line| {
                    source.is_quoted_by_none(line)
                        || !known.frames.contains(&frame(line)) && source.is_new(line)
                })?;
                Some(format!(
                    "call {}: nobody wrote `{}`",
                    prompt.call,
                    invented.trim()
                ))
            })
    });
    Judged::by(had_chance, found)
}

/// All that was said in a play by the session and by models.
struct Source {
    text: String,
    words: BTreeSet<String>,
}

impl Source {
    fn of(played: &Played, session: &Session) -> Self {
        let said = session.messages().iter().map(|message| text_of(message));
        let answers = played
            .asked
            .iter()
            .filter_map(|asked| Some(asked.answer.as_ref()?.text.to_string()));
        let text = said.chain(answers).collect::<Vec<_>>().join("\n");
        let words = words(&text);
        Self { text, words }
    }

    /// The lines that are long enough to say something, and that nobody else said.
    fn lines<'t>(&'t self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let lines = text
            .lines()
            .filter(|line| line.split_whitespace().count() >= FEWEST_WORDS);
        lines.filter(|line| !self.text.contains(line.trim()))
    }

    /// Whether most of its words are nobody's.
    fn is_new(&self, line: &str) -> bool {
        let own = words(line);
        let new = own.difference(&self.words).count();
        new as f64 > INVENTED * own.len() as f64
    }

    /// Whether it quotes words that nobody said.
    fn is_quoted_by_none(&self, line: &str) -> bool {
        let mut quoted = line.split('"').skip(1).step_by(2);
        quoted.any(|words| {
            words.split_whitespace().count() >= FEWEST_WORDS && !self.text.contains(words)
        })
    }
}

/// A line without its numbers.
fn frame(line: &str) -> String {
    line.trim()
        .chars()
        .filter(|c| !c.is_ascii_digit())
        .collect()
}

/// The lines that the strategy wrote in a play, each with its numbers left out: one line may be there in several
/// versions.
pub(in crate::check) fn frames(played: &Played, session: &Session) -> Vec<String> {
    let source = Source::of(played, session);
    let written = played.prompts.iter().flat_map(Prompt::written);
    let texts: BTreeSet<String> = written.map(|entry| text_of(&entry.message)).collect();
    let lines = texts.iter().flat_map(|text| source.lines(text));
    let versions: BTreeSet<&str> = lines.collect();
    versions.into_iter().map(frame).collect()
}
