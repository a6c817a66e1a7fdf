//! Values that somebody states in plain words: "the port of svc7 is 4049", `port = 4049`, "call it
//! quill".
//!
//! One statement makes a fact to recall; several values of one key, one after the other, make a key
//! that was revised. Each statement that makes none is counted with its reason.

use std::collections::{BTreeMap, BTreeSet};

use super::{Proposal, SkipReason, Texts, own, proposal, tokens, weighed};
use crate::probe::{Pattern, holds};
use crate::session::Role;
use crate::session::ground_truth::{Fact, Revision};

/// The most words of a key.
const KEY_WORDS: usize = 7;

/// A sentence of more bytes is not a plain statement.
const SENTENCE_BYTES: usize = 300;

/// A value of fewer characters is guessed too easily, and is part of many words.
const VALUE_CHARS: usize = 3;

/// Between a key and its value.
const COPULAS: &[&str] = &[" is now ", " is called ", " is set to ", " is at ", " is "];

/// Before a name that is given.
const NAMINGS: &[&str] = &["call it ", "name it ", "call this ", "name this "];

/// Words before a key that do not belong to it.
const BEFORE_KEYS: &str = "\
    a also and but important: its my note: ok, okay, our please remember remember: so that \
    the their this your";

/// Words of a key that name nothing: "it is 4049" has no key.
const NO_KEYS: &str = "he here it she that there they this what which";

/// Words that make a sentence a condition: "if it runs, the port is 4049".
const CONDITIONS: &str = "\
    assuming if once provided suppose supposing unless until when whenever where wherever \
    whether while";

/// Conditions of several words.
const CONDITION_PHRASES: &[&str] = &[" as long as ", " in case "];

/// Words of a key that make its sentence a belief, a wish or a part of another.
const NO_STATEMENTS: &str = "\
    although as because believe believes but doubt how i i'd i'll i'm i've let let's likely maybe \
    perhaps probably seems since so sure than that think thinks though what which who whose why wish";

/// Verbs that ask for something: "check port is 4049", but not "the check port is 4049".
const IMPERATIVES: &str = "assume check confirm ensure make test verify";

/// Before a noun.
const DETERMINERS: &str = "a an her his its my our that the their these this those your";

/// Between a noun and the determiner of another one in a key: "the port of the server". Behind any
/// other word a sentence of its own begins: "we know the port".
const PREPOSITIONS: &str = "\
    across after all at before behind between by both for from in inside into of on over per to \
    under with within";

/// Adjectives of a measure: "the parser is 120 lines long" does not say what the parser is.
const MEASURES: &str = "\
    above ago ahead apart away behind below big deep faster high higher large larger late less \
    long longer lower more old older short shorter slower small smaller tall thick wide";

/// The most bytes of a value in quotes.
const QUOTED_BYTES: usize = 80;

/// One statement.
#[derive(Debug, PartialEq, Eq)]
struct Statement<'a> {
    key: String,
    value: &'a str,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// "The port of svc7 is 4049."
    Sentence,
    /// `port = 4049`
    Assignment,
    /// "Call it quill."
    Naming,
}

impl Form {
    fn question(self, key: &str) -> String {
        match self {
            Self::Sentence => format!("What is the {key}?"),
            Self::Assignment => format!("Which value has `{key}`?"),
            Self::Naming => format!("Which name was given beside the words: {key}?"),
        }
    }
}

/// A key with all that was stated of it.
#[derive(Debug, Default)]
struct StatedKey {
    /// The value with the messages that state it, in the order in which values came.
    values: Vec<(String, BTreeSet<usize>)>,
    form: Option<Form>,
    key: String,
    is_stressed: bool,
}

/// The facts that plain statements make, and why the others make none.
pub(super) fn statements(texts: &Texts<'_>) -> (Vec<Proposal>, BTreeMap<SkipReason, usize>) {
    let session = texts.session;
    let mut keys: BTreeMap<Vec<String>, StatedKey> = BTreeMap::new();
    let mut note = |at: usize, sentence: &str, is_users: bool| {
        let Some(said) = statement(sentence, texts) else {
            return;
        };
        let mut words = words_of(&said.key);
        words.sort();
        let known = keys.entry(words).or_default();
        known.form.get_or_insert(said.form);
        if known.key.is_empty() {
            known.key = said.key;
        }
        known.is_stressed |= is_users && super::said::is_stressed(sentence);
        match known.values.last_mut() {
            Some((value, messages)) if value == said.value => {
                messages.insert(at);
            }
            _ => {
                let of_it = (said.value.to_owned(), BTreeSet::from([at]));
                known.values.push(of_it);
            }
        }
    };
    for (at, text) in own::typed(session) {
        for sentence in super::said::sentences(text) {
            note(at, sentence, true);
        }
    }
    for (at, message) in session.messages().iter().enumerate() {
        let texts = message
            .texts()
            .filter(|_| message.role() == Role::Assistant);
        for sentence in texts.flat_map(|(_, text)| super::said::sentences(text)) {
            note(at, sentence, false);
        }
    }
    // Of a tool's output only settings are statements, and only those in a single message:
    // the others are revised, or belong to a file.
    let is_shown = |at: usize| {
        let message = session.messages().get(at);
        message.is_some_and(|message| message.tool_results().next().is_some())
    };
    for (at, line) in texts.lines().filter(|(at, _)| is_shown(*at)) {
        if let Some((key, value)) = setting(line)
            && texts.frequency(key) == 1
            && texts.is_unique(value)
        {
            note(at, line, false);
        }
    }
    let mut proposals = Vec::new();
    let mut passed_over = BTreeMap::new();
    let values = keys.values().flat_map(|stated| &stated.values);
    let counts = texts.frequencies(values.map(|(value, _)| &**value));
    for stated in keys.values() {
        match stated.proposal(&counts) {
            Ok(proposal) => proposals.push(proposal),
            Err(why) => *passed_over.entry(why).or_default() += 1,
        }
    }
    proposals.sort_by_key(|proposal| proposal.evidence.first().copied());
    (proposals, passed_over)
}

impl StatedKey {
    /// The fact that it makes; `counts` holds the number of messages that hold each value.
    fn proposal(&self, counts: &BTreeMap<&str, usize>) -> Result<Proposal, SkipReason> {
        let form = self.form.unwrap_or(Form::Sentence);
        let is_its_own = |(value, messages): &(String, BTreeSet<usize>)| {
            counts.get(&**value) == Some(&messages.len())
        };
        if !self.values.iter().all(is_its_own) {
            return Err(SkipReason::ElsewhereToo);
        }
        let question = form.question(&self.key);
        let key = self.key.clone();
        if let [(value, messages)] = &self.values[..] {
            let (value, evidence) = (value.clone(), messages.iter().copied().collect());
            let proposal = proposal(question, evidence, Fact::Recall { key, value });
            return Ok(weighed(self.is_stressed, proposal));
        }
        let firsts = self.values.iter().map(|(_, messages)| messages);
        let firsts: Vec<usize> = firsts.filter_map(|it| it.first().copied()).collect();
        if !firsts.is_sorted_by(|a, b| a < b) || self.values.iter().any(|(_, at)| at.len() > 1) {
            return Err(SkipReason::NoOrder);
        }
        // A setting that was shown with several values is revised within its file, or none.
        if form == Form::Assignment {
            return Err(SkipReason::Revised);
        }
        let values = self.values.iter().zip(&firsts);
        let values = values
            .map(|((value, _), at)| Revision::new(&**value, *at))
            .collect();
        let question = match form {
            Form::Sentence => format!("What is the {key} now?"),
            Form::Assignment | Form::Naming => question,
        };
        let proposal = proposal(question, firsts, Fact::Update { key, values });
        Ok(weighed(self.is_stressed, proposal))
    }
}

/// The statement of a sentence, if it states one value of one key.
fn statement<'a>(sentence: &'a str, texts: &Texts<'_>) -> Option<Statement<'a>> {
    if sentence.len() > SENTENCE_BYTES || sentence.contains('?') {
        return None;
    }
    if let Some((key, value)) = setting(sentence) {
        return Some(Statement {
            key: key.to_owned(),
            value,
            form: Form::Assignment,
        });
    }
    let lower = sentence.to_ascii_lowercase();
    for naming in NAMINGS {
        if let Some(at) = lower.find(naming) {
            let value = first_value(&sentence[at + naming.len()..], true)?;
            return Some(Statement {
                key: texts.key_of(&sentence[..at], value, 4)?.join(" "),
                value,
                form: Form::Naming,
            });
        }
    }
    let (at, copula) = COPULAS
        .iter()
        .filter_map(|copula| Some((lower.find(copula)?, *copula)))
        .min_by_key(|(at, copula)| (*at, usize::MAX - copula.len()))?;
    let value = first_value(&sentence[at + copula.len()..], false)?;
    let (_, behind) = sentence[at..].split_once(value)?;
    if is_condition(&lower[..at]) || is_condition(&behind.to_lowercase()) {
        return None;
    }
    // A clause before it is another matter: "as I said, the port is 4049".
    let before = sentence[..at].rsplit([',', ';', ':']).next()?;
    let words: Vec<&str> = before.split_whitespace().collect();
    let first = words
        .iter()
        .position(|word| !holds(BEFORE_KEYS, &word.to_lowercase()))?;
    let (before, words) = words.split_at(first);
    let key = words.join(" ");
    let names_it = words_of(&key)
        .iter()
        .any(|word| word.chars().count() >= 3 && !holds(NO_KEYS, word));
    let is_key = words.len() <= KEY_WORDS
        && names_it
        && !key.contains(value)
        && is_noun(
            before.last().copied(),
            &key.to_lowercase().replace('’', "'"),
        );
    is_key.then_some(Statement {
        key,
        value,
        form: Form::Sentence,
    })
}

/// The words of a key by which two of them are the same.
fn words_of(key: &str) -> Vec<String> {
    let words = key.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.'));
    let words = words.map(str::to_lowercase);
    words
        .filter(|word| !word.is_empty() && !matches!(&**word, "the" | "of" | "for" | "a" | "in"))
        .collect()
}

/// Whether a lower-case key names something, behind the word `before` it, and is no part of a sentence.
fn is_noun(before: Option<&str>, key: &str) -> bool {
    let words: Vec<&str> = spoken(key).collect();
    let is_determined = before.is_some_and(|word| holds(DETERMINERS, &word.to_lowercase()));
    let asks = !is_determined && words.first().is_some_and(|word| holds(IMPERATIVES, word));
    let mut pairs = words.windows(2);
    let is_broken = pairs.any(|pair| holds(DETERMINERS, pair[1]) && !holds(PREPOSITIONS, pair[0]));
    !asks && !is_broken && !words.iter().any(|word| holds(NO_STATEMENTS, word))
}

/// Whether a lower-case text holds a condition.
fn is_condition(text: &str) -> bool {
    let words: Vec<&str> = spoken(text).collect();
    let text = format!(" {} ", words.join(" "));
    let mut phrases = CONDITION_PHRASES.iter();
    words.iter().any(|word| holds(CONDITIONS, word)) || phrases.any(|it| text.contains(it))
}

/// The words of a lower-case text as they are spoken, apostrophes included.
fn spoken(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '’' | '-' | '_'))
        .filter(|word| !word.is_empty())
}

/// Quotation marks, each with the one that closes it.
const QUOTES: [(char, char); 5] = [('`', '`'), ('"', '"'), ('\'', '\''), ('“', '”'), ('‘', '’')];

/// A number with commas between its thousands.
static GROUPED: Pattern = Pattern::new(r"^[^\w\s]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?%?");

/// Digits that describe and are no value: `12th`, `64-bit`, `0-based`.
static DESCRIBING: Pattern = Pattern::new("^(?:[0-9]+(?:st|nd|rd|th)|[0-9]{1,3}-[a-z]+)$");

/// The value at the beginning of a text: all that is in quotes, or a token with a digit or parts of
/// its own that is the whole of what is said. A name may be any word.
fn first_value(text: &str, is_name: bool) -> Option<&str> {
    let text = text.trim_start().trim_start_matches('*');
    let mut quotes = QUOTES.iter();
    if let Some((open, close)) = quotes.find(|(open, _)| text.starts_with(*open)) {
        let inside = &text[open.len_utf8()..];
        let mut ends = inside.match_indices(*close).map(|(at, _)| at);
        let is_end = |at: &usize| {
            let behind = inside[at + close.len_utf8()..].chars().next();
            !behind.is_some_and(char::is_alphanumeric)
        };
        let (value, behind) = inside.split_at(ends.find(is_end)?);
        let (value, behind) = (value.trim(), &behind[close.len_utf8()..]);
        let is_second = |text: &str| text.starts_with(QUOTES.map(|(open, _)| open));
        let is_cut_short = value.contains("...") || value.contains('…');
        let is_value = !is_cut_short
            && value.len() <= QUOTED_BYTES
            && value.chars().count() >= VALUE_CHARS
            && is_whole(behind, is_second);
        return is_value.then_some(value);
    }
    let value = match GROUPED.matches(text).next() {
        Some(number) => number.get(0)?.as_str(),
        None => tokens(text).next()?,
    };
    let behind = text.strip_prefix(value)?;
    let is_number = |token: &str| token.contains(|c: char| c.is_ascii_digit());
    let is_second = |text: &str| {
        tokens(text).next().is_some_and(|second| {
            is_set(second)
                && is_number(second) == is_number(value)
                && second.starts_with(char::is_alphabetic) == value.starts_with(char::is_alphabetic)
        })
    };
    let is_value = value.chars().count() >= VALUE_CHARS
        && (is_name || is_set(value))
        && is_whole(behind, is_second);
    is_value.then_some(value)
}

/// Whether a token can be what something is set to. `read-only`, `and/or`, `e.g`, `~120` and `12th`
/// describe.
fn is_set(value: &str) -> bool {
    if value.contains('~') || DESCRIBING.is_match(value) {
        return false;
    }
    let mut parts = value.split(|c: char| !c.is_alphabetic());
    let is_described = value.starts_with(char::is_alphabetic)
        && value
            .chars()
            .all(|c| c.is_alphabetic() || matches!(c, '-' | '/'));
    value.contains(|c: char| c.is_ascii_digit())
        || (value.contains(['_', '-', '/', '.', '@'])
            && !is_described
            && parts.any(|part| part.chars().count() > 1))
}

/// Before the second value of a sentence: "4049 in staging and 4050 in production".
static JOINT: Pattern =
    Pattern::new(r"(?i)(?:[,;]\s+|\()(?:(?:and|or|but)\s+)?|\b(?:and|or|but)\s+");

/// Whether a value ends where the text `behind` it begins: nothing goes on, no second value of its
/// sort follows, and it measures nothing.
fn is_whole(behind: &str, is_second: impl Fn(&str) -> bool) -> bool {
    let marks: &[char] = &['.', ':', '!', '*', ',', ';', ')'];
    let next = behind.trim_start_matches(marks);
    if next.starts_with(|c: char| !c.is_whitespace()) {
        return false;
    }
    let is_list = behind.starts_with(',');
    let mut words = spoken(next);
    let (first, second) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let is_number = |word: &str| word.contains(|c: char| c.is_ascii_digit());
    let joins = matches!(first, "and" | "to" | "through" | "plus");
    let ends = behind.starts_with(['.', '!', ';']);
    let measures = || [first, second].iter().any(|word| holds(MEASURES, word));
    let mut joints = JOINT.matches(behind).filter_map(|joint| joint.get(0));
    let goes_on = first == "or"
        || (joins && is_number(second))
        || (is_list && is_number(first))
        || joints.any(|joint| is_second(behind[joint.end()..].trim_start_matches('*')));
    !goes_on && (ends || is_list || !measures())
}

/// Words before a key where it is set.
const BEFORE_SETTINGS: &str = "- * const export final let pub set static use var";

/// An assignment of which the line says nothing else: "it is documented here: …" sets nothing.
pub(super) fn setting(line: &str) -> Option<(&str, &str)> {
    let (key, value) = assignment(line)?;
    let (before, _) = line.split_once(key)?;
    let before = before.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
    let mut words = before.split_whitespace();
    words
        .all(|word| holds(BEFORE_SETTINGS, &word.to_lowercase()))
        .then_some((key, value))
}

/// `key = value` or `key: value`, the value a single token with a digit.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim().trim_end_matches([',', ';']);
    let (key, value) = line.split_once('=').or_else(|| line.split_once(": "))?;
    let key = key.trim().trim_matches(['"', '\'']);
    let key = key.rsplit(' ').next().unwrap_or(key);
    let value = value.trim().trim_matches(['"', '\'']);
    let is_key = key.len() >= 4
        && key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let is_value = value.len() >= 4
        && value.contains(|c: char| c.is_ascii_digit())
        && !value.contains(char::is_whitespace)
        && tokens(value).eq([value]);
    (is_key && is_value).then_some((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_read_in_the_usual_notations() {
        for (line, expected) in [
            ("port = 48213", Some(("port", "48213"))),
            ("  \"retries\": \"n5-x\",", Some(("retries", "n5-x"))),
            ("export TOKEN_TTL=90s;", None),
            ("let size = 4096 + 1;", None),
            ("image.tag: rel-48f1", Some(("image.tag", "rel-48f1"))),
        ] {
            assert_eq!(assignment(line), expected, "{line}");
        }
    }

    #[test]
    fn a_plain_statement_has_one_key_and_one_value() {
        let session = crate::session::Session::new(crate::session::SessionParts {
            id: "none".into(),
            messages: vec![std::sync::Arc::new(crate::session::Message::text(
                Role::User,
                "nothing",
            ))],
            ..Default::default()
        })
        .unwrap();
        let texts = Texts::new(&session, &|_| Vec::new());
        for (sentence, expected) in [
            ("The port of svc7 is 4049.", Some(("port of svc7", "4049"))),
            (
                "As I said, our quota is now 7,340 a day.",
                Some(("quota", "7,340")),
            ),
            ("The budget is 250,000.", Some(("budget", "250,000"))),
            (
                r#"The commit message is "Tidy flaky retries"."#,
                Some(("commit message", "Tidy flaky retries")),
            ),
            (
                "The user's rule is 'don't retry it'.",
                Some(("user's rule", "don't retry it")),
            ),
            (
                "The config is /etc/app.conf.",
                Some(("config", "/etc/app.conf")),
            ),
            ("The commit message is \"Tidy", None),
            ("The container is `div class=2 ...`", None),
            ("If the port is 4049, stop.", None),
            ("If it runs, the port is 4049.", None),
            ("When `status` is `pendingx`, skip it.", None),
            ("The port is 4049 unless it is taken.", None),
            ("The port is 4049, unless it is taken.", None),
            ("The limit is 4049, if I remember rightly.", None),
            ("In case the host is down, the port is 4049.", None),
            ("As long as nothing changes, the port is 4049.", None),
            ("The port is 4049, as long as nothing changes.", None),
            ("The mode is \"fast lane\" or \"slow lane\".", None),
            ("The mode is `fast lane`/`slow lane`.", None),
            ("The mode is 'fast lane' here and 'slow lane' there.", None),
            ("The build is 4049 in staging and 4050 in production.", None),
            ("The build is 4049 in staging (4050 in production).", None),
            (
                "The config is /etc/a.conf here, but /etc/b.conf there.",
                None,
            ),
            (
                "The port of svc7 is 4049, and we use it everywhere.",
                Some(("port of svc7", "4049")),
            ),
            (
                "The quota is 7,340 a day for 1,200 users and v2 clients.",
                Some(("quota", "7,340")),
            ),
            (
                "The mode is \"fast lane\", and the other one is gone.",
                Some(("mode", "fast lane")),
            ),
            ("I don't think the region is eu-west-1.", None),
            ("Make sure the port is 4049.", None),
            ("Check port is 4049.", None),
            ("We know the port is 4049.", None),
            (
                "The check port of our gateway is 4049.",
                Some(("check port of our gateway", "4049")),
            ),
            ("It restarts because the port is 4049.", None),
            ("The endpoint is read-only.", None),
            ("The eval is CLI/library-driven.", None),
            ("The renderer is ~2376 lines.", None),
            ("The parser is 1,200 lines long.", None),
            ("The deadline is 12th May.", None),
            ("The target is 64-bit.", None),
            ("The tool is e.g. a linter.", None),
            ("The port is 4049 or 4050.", None),
            ("The ports are one thing; the port is 4049, 4050.", None),
            ("The call is load_it(1, 2).", None),
            (
                "ok, the staging host is `quill`",
                Some(("staging host", "quill")),
            ),
            ("retry_limit = n5-x", Some(("retry_limit", "n5-x"))),
            (
                "Write the billing service and call it tharn!",
                Some(("write billing service", "tharn")),
            ),
            ("export RETRIES=n5-x", Some(("RETRIES", "n5-x"))),
            ("It is documented here: https://example.org/4049", None),
            ("It is 4049.", None),
            ("The build is broken.", None),
            ("Is the port of svc7 is 4049?", None),
        ] {
            let found = statement(sentence, &texts);
            let found = found.as_ref().map(|it| (it.key.as_str(), it.value));
            assert_eq!(found, expected, "{sentence}");
        }
    }
}
