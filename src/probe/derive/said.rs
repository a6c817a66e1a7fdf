//! Rules and requests of the user.

use std::collections::BTreeSet;

use super::own::typed;
use super::{Proposal, Texts, messages_of, proposal, weighed};
use crate::probe::holds;
use crate::script::word_count;
use crate::session::Session;
use crate::session::ground_truth::{Fact, Revision, RuleForm};

/// Sentences that begin with one of these, or hold one of them after a comma, set a rule.
const DEMANDS: &str = "\
    always|avoid|do not|don't|don’t|ensure|keep|make sure|never|only|you must|you should not|\
    please avoid|please do not|please don't|please never";

/// The least and the most words of a rule.
const RULE_WORDS: std::ops::RangeInclusive<usize> = 4..=40;

/// The words of a topic.
const TOPIC_WORDS: usize = 3;

/// Words that no topic holds: they say what is demanded, or stand in every sentence.
const NO_TOPICS: &str = "\
    about absolutely accordingly after again against ahead alone already also although altogether \
    always among another anyone anything anyway around avoid banned because become becomes been \
    before behind being below beneath beside besides between beyond both cannot clearly correctly could currently does doing \
    done down during each either else ensure especially even ever every everyone everything except \
    exclusively explicitly first forbidden from further going have having here however instead \
    intact into itself just keep kept know least leave like likewise made make makes making many \
    might mind more most much must myself necessary need needs neither never next none nothing \
    often once only onto other others otherwise ought over perhaps permission please possible \
    prohibited properly rather really refrain remain same shall should simply since some someone something \
    sometimes soon still stop strictly such sure than that their theirs them themselves then there \
    these they thing things this those though through throughout together toward towards trying unchanged \
    under unless unmodified until untouched upon used using very want wanted wants were what \
    whatever when whenever where wherever whether which while whoever whom whose will with within \
    without would your yours yourself";

/// A request of fewer words is a nod: "yes, commit it".
const REQUEST_WORDS: usize = 4;

/// Characters up to which a request is quoted, in whole lines.
const REQUEST_CHARS: usize = 600;

/// Words by which a person stresses a sentence.
const STRESSING: &str = "\
    absolutely always critical crucial essential important mandatory must mustn't never \
    strictly vital";

/// Words that stress where they are written in capitals. Most capitals are names: JSON, API.
const STRESSED: &str = "\
    ALL ANY AVOID BEFORE DO DON'T DON’T ENSURE EVERY EXACTLY FIRST KEEP NO NONE NOT ONLY \
    PLEASE STOP";

/// Whether the person who says this stresses it: by a word such as "must", by capitals, or by an
/// exclamation mark.
pub(super) fn is_stressed(sentence: &str) -> bool {
    let words = sentence.split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '’'));
    let mut words = words.filter(|word| !word.is_empty());
    let stresses = |word: &str| holds(STRESSED, word) || holds(STRESSING, &word.to_lowercase());
    sentence
        .trim_end_matches(['"', '*', ')', ' '])
        .ends_with('!')
        || words.any(stresses)
}

/// The sentences of a text, without the marks of a list before them.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter(|line| line.len() < 600);
    lines
        .flat_map(|line| line.split_inclusive(". "))
        .map(|sentence| sentence.trim().trim_start_matches(['-', '*', ' ']))
}

/// Sentences in which the user demands something, each once.
///
/// It is of high importance only if the user stressed it, by words or by saying it again.
pub(super) fn rules(texts: &Texts<'_>) -> Vec<Proposal> {
    let mut proposals: Vec<Proposal> = Vec::new();
    let typed = typed(texts.session);
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for (_, text) in &typed {
        for sentence in sentences(text) {
            let lower = sentence.to_lowercase();
            if behind_demand(&lower).is_none()
                || !RULE_WORDS.contains(&sentence.split_whitespace().count())
                || !known.insert(sentence)
            {
                continue;
            }
            let topic = texts.rarest(&topic_words(sentence), TOPIC_WORDS);
            let messages = texts.session.messages().iter().enumerate();
            let holding = messages.filter(|(_, message)| {
                let mut texts = message.model_text().iter();
                texts.any(|text| text.contains(sentence))
            });
            let evidence: Vec<usize> = holding.map(|(at, _)| at).collect();
            // A sentence that others repeat too is not evidence of a demand.
            let is_users = |at: &usize| {
                let mut own = typed.iter();
                own.any(|(of, text)| of == at && text.contains(sentence))
            };
            let Some(topic) = topic.filter(|_| evidence.iter().all(is_users)) else {
                continue;
            };
            let topic = topic.join(" ");
            let question = format!("What did the user demand about: {topic}?");
            let is_high = evidence.len() > 1 || is_stressed(sentence);
            let fact = Fact::Constraint {
                topic,
                statement: sentence.to_owned(),
                form: RuleForm::Open,
            };
            proposals.push(weighed(is_high, proposal(question, evidence, fact)));
        }
    }
    proposals
}

/// The rest of a lower-case sentence behind the demanding words that begin it, if there are any.
fn behind_demand(lower: &str) -> Option<&str> {
    DEMANDS.split('|').find_map(|cue| {
        let rest = lower.strip_prefix(cue)?.strip_prefix(' ')?;
        Some(behind_demand(rest).unwrap_or(rest))
    })
}

/// The words of a rule that say what it is about, and not what it demands: its first verb does.
fn topic_words(sentence: &str) -> Vec<String> {
    let lower = sentence.to_lowercase();
    let rest = behind_demand(&lower).unwrap_or(&lower);
    let rest = rest.strip_prefix("to ").unwrap_or(rest);
    let (_, object) = rest.split_once(' ').unwrap_or_default();
    let from = sentence.len().saturating_sub(object.len());
    let object = &sentence[sentence.floor_char_boundary(from)..];
    let mut words = super::key_words(object, "\u{0}");
    words.retain(|word| !holds(NO_TOPICS, word));
    words
}

/// The text as it is quoted: whole lines up to [`REQUEST_CHARS`], or as much of the first one.
fn quoted(text: &str) -> String {
    let mut request = String::new();
    for line in text.trim().lines() {
        if request.len() + line.len() > REQUEST_CHARS {
            break;
        }
        if !request.is_empty() {
            request.push('\n');
        }
        request.push_str(line);
    }
    if request.is_empty() {
        let first = text.trim().lines().next().unwrap_or_default();
        request = first.chars().take(REQUEST_CHARS).collect();
    }
    request.trim().to_owned()
}

/// The user's requests, one a message.
///
/// Every message ends the request before it. One that is too short to be recognised, that an earlier
/// one holds as well, or whose lines are too long to be quoted, does nothing more.
pub(super) fn requests(session: &Session) -> Vec<Proposal> {
    let is_short = |text: &str| word_count(text) < REQUEST_WORDS;
    let mut messages: Vec<(usize, &str)> = Vec::new();
    for (message, text) in typed(session) {
        match messages.last_mut() {
            // Of several texts, the first that says enough.
            Some((last, said)) if *last == message => {
                if is_short(said) {
                    *said = text;
                }
            }
            _ => messages.push((message, text)),
        }
    }
    let mut requests: Vec<Revision> = Vec::new();
    for (message, text) in messages {
        let value = quoted(text);
        let is_known = requests.iter().any(|other| other.value.contains(&value));
        let is_cut_short = text.trim().lines().next().map_or(0, str::len) > REQUEST_CHARS;
        requests.push(Revision {
            unasked: is_known || is_cut_short || is_short(&value),
            value,
            message,
        });
    }
    if requests.iter().all(|request| request.unasked) {
        return Vec::new();
    }
    let question = "What did the user ask for last? Quote it word for word.";
    let evidence = messages_of(&requests);
    vec![proposal(question, evidence, Fact::LastRequest { requests })]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_does_not_say_what_is_demanded() {
        for (sentence, expected) in [
            ("Never touch the migrations folder.", "migrations folder"),
            ("Always make sure to look at the open file.", "open file"),
            ("Avoid inventing our own.", ""),
            (
                "Only review pre-existing code that wasn't modified.",
                "existing code modified",
            ),
            (
                "Keep the vendored grammar's files untouched.",
                "vendored grammar files",
            ),
            ("Please don’t be a zealot about style.", "zealot style"),
            ("Don't flag it as a bug if you're unsure", "unsure"),
        ] {
            assert_eq!(topic_words(sentence).join(" "), expected, "{sentence}");
        }
    }

    #[test]
    fn only_what_the_user_stresses_is_stressed() {
        for (sentence, expected) in [
            ("Keep the JSON API as it is.", false),
            ("Please don't rename the endpoints.", false),
            ("Never push to main.", true),
            ("The port must be 4049.", true),
            ("Do NOT rename it.", true),
            ("Only the tests, please!", true),
        ] {
            assert_eq!(is_stressed(sentence), expected, "{sentence}");
        }
    }
}
