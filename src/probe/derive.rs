//! Facts of a recorded session that can be asked for: found by rule, one kind per function.
//!
//! A derived fact is a proposal. A person can edit the file, `proctor probes check` compares it
//! with its session, and the caller keeps only the facts that the full history answers. A fact is
//! proposed only if its value is unique: a value that is in two messages is not a planted value.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use regex::Captures;

use super::kind::Part;
use super::{Pattern, ProbeKind};
use crate::probe::{ProbeExt as _, Specified as _};
use crate::session::ground_truth::{
    ArtifactVerb, Fact, GroundTruth, Importance, PlantedFact, Revision,
};
use crate::session::{Session, ToolUse};
use crate::units::ContentHash;

pub mod decisions;
mod entities;
mod own;
mod said;
mod stated;
mod work;

/// The greatest number of proposals of each kind, spread over the session.
const MOST: usize = 12;

/// The same for plain statements: a person would ask for them, and there are few.
const MOST_STATED: usize = 48;

/// The number of proposed keys per decoy,
const KEYS_PER_DECOY: usize = 3;
/// and the least number of decoys.
const LEAST_DECOYS: usize = 2;

/// Names the files that a tool use touches and what it does to them; the caller knows the tools.
pub type FilesTouched<'a> = &'a dyn Fn(&ToolUse) -> Vec<(ArtifactVerb, String)>;

/// Facts that can be asked for, and what was passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DerivedFacts {
    /// The facts.
    pub truth: GroundTruth,
    /// Plain statements that make no fact, by reason.
    pub passed_over: BTreeMap<SkipReason, usize>,
}

/// Why a plain statement makes no fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkipReason {
    /// Other text holds its value too: it could be found without the statement.
    ElsewhereToo,
    /// Several values of its key are stated in one message, or one of them again later.
    NoOrder,
    /// A setting with several values: it is asked for as one that was revised, if it can be.
    Revised,
    /// Enough others of its kind were taken.
    TooMany,
}

impl SkipReason {
    /// In words, behind a number of statements.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::ElsewhereToo => "whose value stands elsewhere too",
            Self::NoOrder => "whose key has several values in no clear order",
            Self::Revised => "of settings with several values",
            Self::TooMany => "beyond the most that are taken of one kind",
        }
    }
}

/// Proposes facts of every kind that rules can find: all but decisions, which take a model.
pub fn derive(session: &Session, touched: FilesTouched<'_>) -> DerivedFacts {
    let texts = Texts::new(session, touched);
    let (stated, mut passed_over) = stated::statements(&texts);
    let too_many = stated.len().saturating_sub(MOST_STATED);
    if too_many > 0 {
        passed_over.insert(SkipReason::TooMany, too_many);
    }
    let stated = spread(stated, MOST_STATED).into_iter();
    let (mut updates, mut recalls): (Vec<_>, Vec<_>) =
        stated.partition(|it| it.kind() == ProbeKind::Update);
    let is_new = |known: &[Proposal], proposal: &Proposal| {
        let is_known = |part: Part<'_>| {
            let mut parts = known.iter().flat_map(|other| other.fact.spec().parts);
            parts.any(|other| other.text == part.text)
        };
        !proposal.fact.spec().parts.into_iter().any(is_known)
    };
    for proposal in spread(entities::recalls(&texts), MOST) {
        if is_new(&recalls, &proposal) && is_new(&updates, &proposal) {
            recalls.push(proposal);
        }
    }
    for proposal in spread(entities::revised(&texts), MOST) {
        if is_new(&updates, &proposal) {
            updates.push(proposal);
        }
    }
    let others: [Vec<Proposal>; 9] = [
        entities::bindings(&texts),
        work::errors(&texts),
        work::numbers(&texts),
        work::rejected(&texts),
        work::artifacts(&texts),
        work::order(&texts),
        work::plan(session),
        said::rules(&texts),
        said::requests(session),
    ];
    let others = others.into_iter().map(|proposals| spread(proposals, MOST));
    let mut facts: Vec<PlantedFact> = Vec::new();
    for chosen in [recalls, updates].into_iter().chain(others) {
        facts.extend((1..).zip(chosen).map(|(number, proposal)| PlantedFact {
            id: format!("{}-{number:02}", proposal.kind().name()),
            ..proposal
        }));
    }
    let keys = facts.iter().filter(|fact| fact.id.starts_with("recall"));
    let decoys = (keys.count() / KEYS_PER_DECOY).max(LEAST_DECOYS);
    facts.extend((0..decoys).filter_map(|at| decoy(&texts, at)));
    facts.sort_by(|a, b| a.id.cmp(&b.id));
    DerivedFacts {
        truth: GroundTruth::new(session.id(), facts),
        passed_over,
    }
}

/// Something that can be asked for, without an id.
type Proposal = PlantedFact;

fn proposal(question: impl Into<String>, evidence: Vec<usize>, fact: Fact) -> Proposal {
    PlantedFact {
        id: String::new(),
        fact,
        question: question.into(),
        evidence,
        importance: Importance::Normal,
    }
}

fn messages_of(said: &[Revision]) -> Vec<usize> {
    let mut messages: Vec<usize> = said.iter().map(|said| said.message).collect();
    messages.dedup();
    messages
}

/// The same, of high importance where the user stressed it.
fn weighed(is_stressed: bool, mut proposal: Proposal) -> Proposal {
    if is_stressed {
        proposal.importance = Importance::High;
    }
    proposal
}

/// At most `most` of them, at equal distances.
fn spread<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let count = all.len();
    let wanted: BTreeSet<usize> = match count.checked_sub(most) {
        Some(1..) => (0..most).map(|at| at * count / most).collect(),
        _ => (0..count).collect(),
    };
    let all = all.into_iter().enumerate();
    let chosen = all.filter(|(at, _)| wanted.contains(at));
    chosen.map(|(_, proposal)| proposal).collect()
}

/// A key that is never named, made from the session's id.
fn decoy(texts: &Texts<'_>, at: usize) -> Option<PlantedFact> {
    const SYLLABLES: [&str; 16] = [
        "quo", "mis", "tar", "vel", "dro", "pim", "lus", "gan", "fer", "hok", "zat", "ned", "cul",
        "ryb", "wof", "jat",
    ];
    let seed = format!("{} decoy {at}", texts.session.id());
    let hash = ContentHash::of(seed.as_bytes()).hex(32);
    let digit = |digit: char| usize::try_from(digit.to_digit(16)?).ok();
    let digits: Vec<usize> = hash.chars().filter_map(digit).collect();
    let word = |from: usize| -> String {
        let digits = digits.iter().skip(from).take(4);
        let syllables = digits.filter_map(|digit| SYLLABLES.get(*digit));
        syllables.copied().collect()
    };
    let key = format!("{} {}", word(0), word(4));
    let value = hash.get(12..24)?.to_owned();
    let is_said =
        key.split(' ').any(|word| texts.frequency(word) > 0) || texts.frequency(&value) > 0;
    let question = format!("Which value belongs to {key}?");
    (!is_said).then(|| PlantedFact {
        id: format!("decoy-{:02}", at + 1),
        ..proposal(question, Vec::new(), Fact::Decoy { key, value })
    })
}

/// A session with the number of messages that hold each word and each token, and the lines: looked
/// up, never searched again. JSON inside of JSON is decoded, so that no escape sticks to a word.
struct Texts<'s> {
    session: &'s Session,
    touched: FilesTouched<'s>,
    words: BTreeMap<String, Occurrences>,
    /// The lines that somebody reads, with their messages.
    lines: Vec<(usize, String)>,
}

/// A line of more bytes than this is not read by a person.
const LINE_BYTES: usize = 400;

#[derive(Debug, Clone, Copy)]
struct Occurrences {
    /// How many messages hold it.
    messages: usize,
    /// How often it occurs there, in all.
    times: usize,
    /// The last message that holds it.
    last: usize,
}

impl<'s> Texts<'s> {
    fn new(session: &'s Session, touched: FilesTouched<'s>) -> Self {
        let mut words: BTreeMap<String, Occurrences> = BTreeMap::new();
        let mut note = |token: &str, message: usize| {
            let seen = words.entry(token.to_owned()).or_insert(Occurrences {
                messages: 0,
                times: 0,
                last: usize::MAX,
            });
            seen.times += 1;
            if seen.last != message {
                seen.messages += 1;
                seen.last = message;
            }
        };
        let pinned = session.messages().len();
        let mut lines = Vec::new();
        for (at, text) in Self::sent(session) {
            let text = &*decoded(text);
            if at < pinned {
                let read = text.lines().filter(|line| line.len() <= LINE_BYTES);
                lines.extend(read.map(|line| (at, line.to_owned())));
            }
            // A path of Windows is one word, whether JSON escapes it or not.
            for path in text
                .split(|c| c != '\\' && is_between(c))
                .filter(|it| it.contains('\\'))
            {
                note(&plain(path).replace("\\\\", "\\"), at);
            }
            for token in tokens(text) {
                note(token, at);
                let lower = token.to_lowercase();
                for word in lower.split(|c: char| !c.is_alphanumeric()) {
                    if !word.is_empty() && word != token {
                        note(word, at);
                    }
                }
            }
        }
        Self {
            session,
            touched,
            words,
            lines,
        }
    }

    /// The texts of the session with their messages; then those of every prompt, as one message more:
    /// a value in every prompt is not a secret.
    fn sent(session: &Session) -> impl Iterator<Item = (usize, &Arc<str>)> {
        let pinned = session.messages().len();
        let fixed = session.system().into_iter();
        let fixed = fixed.chain(session.tools().iter().map(crate::session::ToolSchema::text));
        let messages = session.messages().iter().enumerate();
        let messages = messages
            .flat_map(|(at, message)| message.model_text().iter().map(move |text| (at, text)));
        messages.chain(fixed.map(move |text| (pinned, text)))
    }

    /// The lines of the session, with their messages.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines.iter().map(|(at, line)| (*at, line.as_str()))
    }

    /// The number of messages that hold a word or a token.
    fn frequency(&self, token: &str) -> usize {
        self.words.get(token).map_or(0, |seen| seen.messages)
    }

    /// The number of messages that hold each text. One pass over the session finds all texts of
    /// several tokens.
    fn frequencies<'t>(&self, texts: impl Iterator<Item = &'t str>) -> BTreeMap<&'t str, usize> {
        let counted = texts.map(|text| (text, self.frequency(text)));
        let mut counts: BTreeMap<&str, usize> = counted.collect();
        let searched: Vec<&str> = counts
            .iter()
            .filter(|(text, count)| **count == 0 && !tokens(text).eq([**text]))
            .map(|(text, _)| *text)
            .collect();
        let spellings = searched
            .iter()
            .flat_map(|text| [(*text).to_owned(), text.replace('"', "\\\"")]);
        // Texts that are too many for an automaton keep the count 0, and make no fact.
        let Ok(automaton) = AhoCorasick::new(spellings) else {
            return counts;
        };
        let mut last = vec![usize::MAX; searched.len()];
        for (at, said) in Self::sent(self.session) {
            for found in automaton.find_overlapping_iter(&**said) {
                let of = found.pattern().as_usize() / 2;
                if last[of] != at {
                    last[of] = at;
                    *counts.entry(searched[of]).or_default() += 1;
                }
            }
        }
        counts
    }

    /// Whether it occurs once, in one message.
    fn is_unique(&self, token: &str) -> bool {
        let seen = self.words.get(token);
        seen.is_some_and(|seen| seen.messages == 1 && seen.times == 1)
    }

    /// The rarest words of a line but for a value, in their order: they are a key where at least two
    /// are left.
    fn key_of(&self, line: &str, but: &str, most: usize) -> Option<Vec<String>> {
        self.rarest(&key_words(line, but), most)
    }

    /// The rarest of these words, in their order; at least two.
    fn rarest(&self, words: &[String], most: usize) -> Option<Vec<String>> {
        let mut by_rarity: Vec<usize> = (0..words.len()).collect();
        by_rarity.sort_by_key(|at| self.frequency(&words[*at]));
        by_rarity.truncate(most);
        by_rarity.sort_unstable();
        let rarest: Vec<String> = by_rarity.into_iter().map(|at| words[at].clone()).collect();
        (rarest.len() >= 2).then_some(rarest)
    }
}

/// Runs without white space, quotes and brackets, and without punctuation around them.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_between).filter_map(|token| {
        let token = plain(token);
        (!token.is_empty()).then_some(token)
    })
}

fn is_between(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '{' | '}')
        || matches!(c, '<' | '>' | ',' | ';' | '=' | '|' | '\\')
}

/// Without the punctuation around it.
fn plain(token: &str) -> &str {
    token.trim_matches(['.', ':', '!', '?', '*'])
}

/// JSON strings are nested at most so deep: a tool's answer in an agent's answer in an event.
const NESTED: usize = 3;

/// An escape of JSON strings.
static ESCAPE: Pattern = Pattern::new(r#"\\([nrt"\\/])"#);

/// The text with the escapes of JSON strings in it decoded. The backslashes of text without an escaped
/// quotation mark are paths or code.
fn decoded(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    if !text.contains("\\\"") {
        return text;
    }
    for _ in 0..NESTED {
        if !["\\n", "\\\""].iter().any(|escape| text.contains(escape)) {
            break;
        }
        let plain = ESCAPE.replaced(&text, |escape: &Captures<'_>| match &escape[1] {
            "n" | "r" => "\n".to_owned(),
            "t" => "\t".to_owned(),
            escaped => escaped.to_owned(),
        });
        text = Cow::Owned(plain.into_owned());
    }
    text
}

/// The words of a line that say what it is about: lower case, letters only, without `but`.
///
/// Only what a person would say again is a word: no part of an id, of a file's mode or of an escape.
fn key_words(line: &str, but: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let line = line.replace(but, " ");
    let written = line.split(|c: char| {
        c.is_whitespace() || (!c.is_alphanumeric() && !matches!(c, '-' | '_' | '\'' | '’' | '\\'))
    });
    for written in written {
        let mixes = written.contains(|c: char| c.is_ascii_digit()) || written.contains('\\');
        let parts = written.split(|c: char| !c.is_alphabetic() && !matches!(c, '\'' | '’'));
        for word in parts.filter(|_| !mixes) {
            let word = word.trim_matches(['\'', '’']);
            // A possessive names its noun. Other words with an apostrophe name nothing: "wasn't".
            let word = word
                .strip_suffix("'s")
                .or(word.strip_suffix("’s"))
                .unwrap_or(word);
            if word.contains(['\'', '’']) {
                continue;
            }
            // A name in camel case is one word to a search, and none to a person.
            let is_camel = word.chars().skip(1).any(char::is_uppercase)
                && word.chars().any(char::is_lowercase);
            let word = word.to_lowercase();
            if word.chars().count() > 3
                && !is_camel
                && !UNSPEAKABLE.is_match(&word)
                && !words.contains(&word)
            {
                words.push(word);
            }
        }
    }
    words
}

/// Nothing but consonants, or more of them in a row than in any word: `strengths` has five.
static UNSPEAKABLE: Pattern = Pattern::new("[b-df-hj-np-tv-xz]{6}|^[b-df-hj-np-tv-xz]*$");

#[cfg(test)]
mod tests;
