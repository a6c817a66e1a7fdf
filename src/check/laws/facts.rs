//! Laws about what summaries are made of, and what becomes of them.

use std::collections::BTreeSet;

use super::prompts::text_of;
use super::{Judged, StrategyFacts};
use crate::check::play::{Asked, Played, Plays, SentPrompt, SummaryWriter};
use crate::check::world::{DONE, FactKind, Matter};
use crate::probe::faithful::{OPENING, said_in};
use crate::session::{ContentBlock, Message, Role, Session};
use crate::units::many;

/// Characters by which a text is known again in a request: products cut what is long.
const MARK: usize = 24;

/// The fewest words of a line that may be an invention.
const FEWEST_WORDS: usize = 4;

/// The share of the words of a line that nobody wrote, above which it is invented.
const INVENTED: f64 = 0.5;

/// Two texts that share so much of their words are one.
const ALIKE: f64 = 0.8;

/// Texts of a prompt that are compared with each other.
const MOST_COMPARED: usize = 20;

/// The share of the characters of an answer that stay, at least.
const STAYS: f64 = 0.5;

/// The beginning of the first text of a message, by which it is known; thinking need not be sent to a summariser.
fn mark(message: &Message) -> Option<String> {
    let blocks = message.content().iter().zip(message.model_text());
    let mut texts = blocks
        .filter(|(block, _)| !matches!(block, ContentBlock::Thinking(_) | ContentBlock::Opaque(_)))
        .map(|(_, text)| text.trim());
    let text = texts.find(|text| !text.is_empty())?;
    Some(text.chars().take(MARK).collect())
}

/// A text as JSON writes it where other letters than those of ASCII are escaped: a transcript may be JSON.
fn in_json(text: &str) -> String {
    let text = serde_json::to_string(text).unwrap_or_default();
    let units =
        text.trim_matches('"').encode_utf16().map(|unit| match char::from_u32(unit.into()) {
            Some(c) if c.is_ascii() => c.to_string(),
            _ => format!("\\u{unit:04x}"),
        });
    units.collect()
}

/// Whether requests hold a text, as it is or as JSON.
fn holds(sent: &str, text: &str) -> bool {
    sent.contains(text) || sent.contains(&in_json(text))
}

/// The number of the answer that begins here, which no other answer of the play has.
fn number(answer: &str) -> Option<usize> {
    let behind = answer.strip_prefix(OPENING)?;
    let (number, rest) = behind.split_once('.')?;
    // With `10,001` or `10.001` for 10001 it is a changed number, and not that of another answer.
    number.parse().ok().filter(|_| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// The numbers of all answers in a text.
fn numbers(text: &str) -> Vec<usize> {
    let begin = text.match_indices(OPENING);
    begin.filter_map(|(at, _)| number(&text[at..])).collect()
}

impl Played {
    /// Each whole answer with the first prompt that was changed after it, and the request behind it. Of several answers
    /// before one change the last is meant.
    fn adopted(&self) -> impl Iterator<Item = (&Asked, &str, &SentPrompt)> {
        self.asked.iter().enumerate().filter_map(|(at, asked)| {
            let answer = &*asked.answer.as_ref()?.text;
            let event = self.record.compactions.iter().find(|event| event.call >= asked.call)?;
            let mut later = self.asked[at + 1..].iter();
            let last = !later.any(|other| other.call <= event.call);
            let prompt = self.prompts.iter().find(|prompt| prompt.call >= event.call)?;
            (last && number(answer).is_some()).then_some((asked, answer, prompt))
        })
    }
}

/// The first facts of this kind that an answer held, and that the prompt made of it does not.
fn changed(plays: &Plays<'_>, kind: FactKind) -> Judged {
    let played = plays.usual();
    let facts = plays.scene.facts.iter().filter(|fact| fact.kind == kind);
    let mut had_chance = false;
    let found = played.adopted().find_map(|(_, answer, prompt)| {
        let text = prompt.text();
        let mut held = facts.clone().filter(|fact| answer.contains(fact.value)).peekable();
        had_chance |= held.peek().is_some();
        let lost = held.find(|fact| !text.contains(fact.value))?;
        Some(format!(
            "call {}: the model wrote `{}`, and the prompt does not say `{}`",
            prompt.call, lost.evidence, lost.value
        ))
    });
    Judged::by(had_chance, found)
}

pub(super) fn values(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    changed(plays, FactKind::Value)
}

pub(super) fn rules(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    changed(plays, FactKind::Rule)
}

pub(super) fn kept(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let played = plays.usual();
    let adopted: Vec<(&Asked, &str, &SentPrompt)> = played.adopted().collect();
    let mut pairs = adopted.iter().zip(adopted.iter().skip(1));
    let found = pairs.find_map(|((_, before, first), (asked, _, prompt))| {
        let (request, text, was) = (said_in(&asked.request), prompt.text(), first.text());
        let lost = plays.scene.facts.iter().find(|fact| {
            let kept = before.contains(fact.value) && was.contains(fact.value);
            kept && !request.contains(fact.value) && !text.contains(fact.value)
        })?;
        Some(format!(
            "call {}: `{}`, which the summary before held, was in no request and is gone",
            prompt.call, lost.value
        ))
    });
    Judged::by(adopted.len() > 1, found)
}

pub(super) fn unseen(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let played = plays.usual();
    let session = &plays.scene.session;
    let mut had_chance = false;
    let (mut read, mut sent) = (0, String::new());
    let found = played.changes().find_map(|(before, now, _)| {
        let present = now.present(session);
        while let Some(asked) = played.asked.get(read).filter(|one| one.call <= now.call) {
            read += 1;
            sent.push_str(&said_in(&asked.request));
        }
        // In a call that was refused it may have changed the context twice, and nobody saw what was between.
        if sent.is_empty() || played.record.overflows.contains(&now.call) {
            return None;
        }
        let text = now.text();
        let unseen = before.messages(session).zip(&before.entries).find_map(|(at, entry)| {
            let begin = mark(&entry.message)?;
            let gone = at.is_none_or(|at| !present.contains(&at)) && !text.contains(&begin);
            had_chance |= gone;
            let said = text_of(&entry.message);
            let unseen_fact = plays.scene.facts.iter().map(|fact| fact.evidence).find(|evidence| {
                // A transcript may escape what markup escapes.
                let plain = evidence.split(['<', '&']).next().unwrap_or_default();
                said.contains(evidence) && !holds(&sent, plain)
            });
            let unseen = match unseen_fact {
                Some(evidence) => evidence.to_owned(),
                // A note of the strategy itself, with no summary and no fact in it, is no loss.
                None if at.is_none() && numbers(&said).is_empty() => return None,
                None if holds(&sent, &begin) => return None,
                None => format!("{begin}…"),
            };
            gone.then_some((at, unseen))
        });
        let (at, mark) = unseen?;
        let message = at.map(|at| format!("message {at}"));
        let what = message.as_deref().unwrap_or("a text of the strategy");
        Some(format!("call {}: {what}, `{mark}`, is gone, and no model was sent it", now.call))
    });
    Judged::by(had_chance, found)
}

pub(super) fn done(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let played = plays.usual();
    let session = &plays.scene.session;
    let [closed, open] = ["[x]", "[ ]"].map(|state| format!("{state} {DONE}"));
    let mut messages = session.messages().iter();
    let Some(finished) = messages.position(|message| text_of(message).contains(&closed)) else {
        return Judged::NoChance;
    };
    let mut had_chance = false;
    let mut later = played.prompts.iter().skip_while(|prompt| prompt.before <= finished);
    let found = later.find_map(|prompt| {
        let written: Vec<String> = prompt.written_texts().collect();
        had_chance |= written.iter().any(|text| text.contains(DONE));
        // The newest state is the last one, be it in a summary or in a message that stayed.
        let text = prompt.text();
        let reopened = text.rfind(&open) > text.rfind(&closed)
            && written.iter().any(|text| text.contains(&open));
        reopened.then(|| {
            format!("call {}: `{DONE}`, which is finished, is open in the prompt", prompt.call)
        })
    });
    Judged::by(had_chance, found)
}

pub(super) fn once(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let played = plays.usual();
    let mut had_chance = false;
    let found = played.prompts.iter().find_map(|prompt| {
        let found = numbers(&prompt.text());
        had_chance |= !found.is_empty();
        let mut seen = BTreeSet::new();
        if let Some(twice) = found.iter().find(|number| !seen.insert(**number)) {
            return Some(format!("call {}: summary {twice} is in the prompt twice", prompt.call));
        }
        found.iter().find_map(|number| {
            let asked = played.asked.iter().find(|asked| {
                let answer = asked.answer.as_ref();
                answer.is_some_and(|answer| self::number(&answer.text) == Some(*number))
            })?;
            let inner = numbers(&said_in(&asked.request));
            inner.into_iter().find(|inner| seen.contains(inner)).map(|inner| (*number, inner))
        }).map(|(outer, inner)| {
            format!("call {}: summary {inner} is in the prompt beside summary {outer}, which was made of it", prompt.call)
        })
    });
    Judged::by(had_chance, found.or_else(|| said_twice(played, &plays.scene.session)))
}

/// Finds a prompt in which two texts of the strategy are alike.
fn said_twice(played: &Played, session: &Session) -> Option<String> {
    let known: BTreeSet<String> =
        session.messages().iter().filter_map(|message| mark(message)).collect();
    let prompt = played.prompts.iter().find(|prompt| {
        // A program may write a message of the session anew.
        let own = prompt
            .written()
            .map(|entry| &entry.message)
            .filter(|message| mark(message).is_some_and(|mark| !known.contains(&mark)))
            .map(|message| text_of(message))
            .filter(|text| !text.contains(OPENING))
            .take(MOST_COMPARED);
        let written: Vec<BTreeSet<String>> = own.map(|text| words(&text)).collect();
        written.iter().enumerate().any(|(at, one)| {
            written[..at].iter().any(|other| one.len() > FEWEST_WORDS && are_alike(one, other))
        })
    })?;
    Some(format!("call {}: two texts of the strategy say the same", prompt.call))
}

fn are_alike(one: &BTreeSet<String>, other: &BTreeSet<String>) -> bool {
    let shared = one.intersection(other).count() as f64;
    shared >= ALIKE * one.len().max(other.len()) as f64
}

pub(super) fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    words.map(str::to_lowercase).collect()
}

/// The words of a text in their order, without signs: a quote may be cut, escaped as JSON, or on one line.
fn plain(text: &str) -> String {
    let text = text.replace("\\n", " ").to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

fn chinese_characters(text: &str) -> usize {
    text.chars().filter(|c| ('\u{4e00}'..='\u{9fff}').contains(c)).count()
}

pub(super) fn language(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    if plays.scene.subject != Matter::Chinese {
        return Judged::NoChance;
    }
    let played = plays.usual();
    let mut had_chance = false;
    let found = played.adopted().find_map(|(_, answer, prompt)| {
        let wrote = chinese_characters(answer);
        had_chance |= wrote > 0;
        let written: usize = prompt.written_texts().map(|text| chinese_characters(&text)).sum();
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
pub(super) fn safe_failure(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    dropped(plays, &[(SummaryWriter::Fails, "failed"), (SummaryWriter::Empty, "was empty")])
}

/// The same of an answer that broke off, that declines or that calls a tool.
pub(super) fn whole(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let answers = [
        (SummaryWriter::Cut, "broke off"),
        (SummaryWriter::Refuses, "declined"),
        (SummaryWriter::CallsTool, "called a tool"),
    ];
    dropped(plays, &answers)
}

fn dropped(plays: &Plays<'_>, answers: &[(SummaryWriter, &str)]) -> Judged {
    // One that asks for nothing here does so whatever the answer would be.
    if !plays.scene.is_usual() || plays.usual().asked.is_empty() {
        return Judged::NoChance;
    }
    let session = &plays.scene.session;
    let window = plays.scene.window;
    let mut had_chance = false;
    for (writer, how) in answers {
        let Some(played) = plays.with(*writer) else {
            return Judged::OutOfTime;
        };
        had_chance |= !played.asked.is_empty();
        let asked: BTreeSet<usize> = played.asked.iter().map(|asked| asked.call).collect();
        for (before, now, _) in played.changes() {
            let fits = now.history <= window && asked.contains(&now.call);
            let present = now.present(session);
            let gone: Vec<usize> = before.present(session).difference(&present).copied().collect();
            if fits && !gone.is_empty() {
                return Judged::Broken(format!(
                    "call {}: the answer {how}, and {} gone, from message {} on",
                    now.call,
                    many(gone.len(), "message is", "messages are"),
                    gone[0]
                ));
            }
        }
    }
    Judged::by(had_chance, None)
}

pub(super) fn invention(plays: &Plays<'_>, known: &StrategyFacts) -> Judged {
    let played = plays.usual();
    let session = &plays.scene.session;
    // One line is a frame if it is seen elsewhere, and there has to be an elsewhere: prompts are refused in few scenes,
    // and one is in Chinese.
    let rare = [Matter::Refused, Matter::Overfull, Matter::Chinese];
    if known.fired < 2 || rare.contains(&plays.scene.subject) {
        return Judged::NoChance;
    }
    let mut had_chance = false;
    if let Some(found) = other_session(played) {
        return Judged::Broken(found);
    }
    let source = SaidTexts::of(played, session);
    let mut judged: BTreeSet<String> = BTreeSet::new();
    let request = played.asked.first().and_then(|asked| asked.request.messages.last());
    let text = request.map_or_else(String::new, |message| text_of(message));
    let instruction: BTreeSet<&str> = text.lines().map(str::trim).collect();
    let found = played.prompts.iter().find_map(|prompt| {
        let entries = prompt.written();
        entries.filter(|entry| entry.message.role() == Role::User).find_map(|entry| {
            had_chance = true;
            let text = text_of(&entry.message);
            if !judged.insert(text.clone()) {
                return None;
            }
            let invented = source.lines(&text).find(|line| {
                // Frames that a request has in its last message are an instruction for the summariser.
                let framed =
                    known.frames.contains(&frame(line)) && !instruction.contains(line.trim());
                source.puts_words_into_a_mouth(line) || !framed && source.is_new(line)
            })?;
            Some(format!(
                "call {}: neither the session nor a model's answer says `{}`",
                prompt.call,
                invented.trim()
            ))
        })
    });
    Judged::by(had_chance, found)
}

/// Finds a summary in a prompt or a request which no model wrote in this session.
fn other_session(played: &Played) -> Option<String> {
    let own: BTreeSet<usize> = played.answers().filter_map(|one| number(&one.text)).collect();
    let prompts = played.prompts.iter();
    let written = prompts.flat_map(|one| one.written_texts().map(|text| (one.call, text)));
    let sent = played.asked.iter().map(|asked| (asked.call, said_in(&asked.request)));
    sent.chain(written).find_map(|(call, text)| {
        let foreign = numbers(&text).into_iter().find(|number| !own.contains(number))?;
        Some(format!("call {call}: a text of another session is there, `{OPENING}{foreign}`"))
    })
}

/// All that was said in a play by the session and by models.
struct SaidTexts {
    text: String,
    plain: String,
    lines: BTreeSet<String>,
    words: BTreeSet<String>,
}

impl SaidTexts {
    fn of(played: &Played, session: &Session) -> Self {
        let said = session.messages().iter().map(|message| text_of(message));
        let answers = played.answers().map(|answer| answer.text.to_string());
        let text = said.chain(answers).collect::<Vec<_>>().join("\n");
        let lines = text.lines().map(|line| line.trim().to_owned()).collect();
        Self { words: words(&text), plain: plain(&text), text, lines }
    }

    /// The lines that are long enough to say something, and that nobody else said.
    fn lines<'t>(&'t self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let lines = text.lines().filter(|line| line.split_whitespace().count() >= FEWEST_WORDS);
        lines.filter(|line| !self.lines.contains(line.trim()))
    }

    /// Whether most of its words are nobody's.
    fn is_new(&self, line: &str) -> bool {
        let own = words(line);
        let new = own.difference(&self.words).count();
        new as f64 > INVENTED * own.len() as f64 && !self.text.contains(line.trim())
    }

    /// Whether it quotes the user with words that nobody said.
    fn puts_words_into_a_mouth(&self, line: &str) -> bool {
        let parts: Vec<&str> = line.split('"').collect();
        // Every second part is quoted; an odd sign quotes nothing.
        let quoted = parts.iter().skip(1).step_by(2).take((parts.len() - 1) / 2);
        // A quote that is cut in the middle is several.
        let mut pieces = quoted.flat_map(|quote| quote.split('…').flat_map(|one| one.split("...")));
        words(line).contains("user")
            && pieces.any(|words| {
                words.split_whitespace().count() >= FEWEST_WORDS
                    && !self.plain.contains(&plain(words))
            })
    }
}

/// A line without its numbers, handles and hashes: without every word that has a digit.
fn frame(line: &str) -> String {
    let words = line.split_whitespace().filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
    words.collect::<Vec<_>>().join(" ")
}

/// The lines that the strategy wrote in a play, each with its numbers left out: one line may be there in several
/// versions.
pub(in crate::check) fn frames(played: &Played, session: &Session) -> Vec<String> {
    let source = SaidTexts::of(played, session);
    let texts: BTreeSet<String> =
        played.prompts.iter().flat_map(SentPrompt::written_texts).collect();
    let versions: BTreeSet<&str> = texts.iter().flat_map(|text| source.lines(text)).collect();
    versions.into_iter().map(frame).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_number_is_not_that_of_another_summary() {
        for (text, expected) in
            [("12.\n- a", Some(12)), ("10,001. - a", None), ("10.001. - a", None)]
        {
            assert_eq!(number(&format!("{OPENING}{text}")), expected, "{text}");
        }
    }

    #[test]
    fn a_quote_of_the_user_may_be_cut_or_escaped_and_not_invented() {
        let text = "Please rename the column.\nThe tests have to stay green.".to_owned();
        let source =
            SaidTexts { plain: plain(&text), lines: BTreeSet::new(), words: words(&text), text };
        for (line, is_invented) in [
            (r#"- User: "Please rename the col…""#, false),
            (r#"- User: "Please rename the column. ... tests have to stay green.""#, false),
            (r#"{"role": "user", "text": "rename the column.\nThe tests have to stay"}"#, false),
            (r#"The user said: "Rename the tests and stay green.""#, true),
        ] {
            assert_eq!(source.puts_words_into_a_mouth(line), is_invented, "{line}");
        }
    }
}
