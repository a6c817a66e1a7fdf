//! Rules that the user repeats or corrects, and the user's last request.

use std::collections::BTreeSet;

use super::own::typed;
use super::proposal;
use crate::probe::survival::{
    RuleMarks, content_word_recall, has_digit, heads_rules, is_order, marks,
};
use crate::script::{ends_sentence, word_count};
use crate::session::ground_truth::{Fact, Importance, PlantedFact, Revision, RuleForm};
use crate::session::{ContentBlock, Role, Session};

/// The files in which users keep their rules.
const RULE_FILES: [&str; 2] = ["CLAUDE.md", "AGENTS.md"];

/// A text of more characters, some 2,000 tokens, is a document or a product's prompt: nobody typed it.
const TYPED_CHARS: usize = 8_000;

/// Bytes up to which a sentence is quoted as a rule, and the fewest words that it has.
const RULE_BYTES: usize = 400;
const RULE_WORDS: usize = 3;

/// The share of a rule's content words that a later sentence about it says again.
const SAME_WORDS: f64 = 0.5;

/// A request of fewer words is a nod: "yes, commit it".
const REQUEST_WORDS: usize = 4;

/// Characters up to which a request can be quoted.
const REQUEST_CHARS: usize = 600;

/// A sentence that sets a rule.
#[derive(Debug)]
struct UserRule<'s> {
    message: usize,
    sentence: &'s str,
    marks: RuleMarks,
    is_typed: bool,
    is_listed: bool,
    /// Whether its heading says that it is one.
    is_headed: bool,
}

impl UserRule<'_> {
    /// Whether it has a word of force and something exact, or stands in a list of rules.
    fn is_set(&self) -> bool {
        (self.is_exact() && self.marks.has_force()) || (self.is_listed && !self.is_typed)
    }

    /// Whether it names something exact. A name alone stands in sentences of every sort: "I don't have my ID".
    fn is_exact(&self) -> bool {
        self.marks.anchors.iter().any(|anchor| !anchor.chars().all(char::is_alphabetic))
    }

    /// The anchors, or where it has none the whole sentence: rules with the same ones are the same.
    fn key(&self) -> RuleMarks {
        let mut key = self.marks.clone();
        if key.anchors.is_empty() {
            key.anchors.insert(self.sentence.to_lowercase());
        }
        key
    }

    /// Whether a later rule says it again, or with one other anchor.
    fn is_used_in(&self, later: &Self) -> bool {
        later.message > self.message
            && (self.is_repeated_in(later) || self.is_corrected_in(later))
            && content_word_recall(self.sentence, later.sentence) >= SAME_WORDS
    }

    fn is_repeated_in(&self, later: &Self) -> bool {
        self.marks == later.marks && (!self.marks.anchors.is_empty() || self.key() == later.key())
    }

    /// Whether all marks but one anchor are the same. Another file alone is another rule; another number is the same one.
    fn is_corrected_in(&self, later: &Self) -> bool {
        let changed = self.marks.but_one(&later.marks);
        changed.is_some_and(|anchors| {
            self.marks.anchors.len() > 1 || anchors.iter().all(|anchor| has_digit(anchor))
        })
    }
}

/// Rules that a later typed message repeats, or corrects in one anchor: each is asked until then.
pub(super) fn rules(session: &Session) -> Vec<PlantedFact> {
    let mut rules = all_rules(session);
    rules.retain(UserRule::is_set);
    let mut known = BTreeSet::new();
    let facts = rules.iter().filter(|rule| known.insert(rule.key())).filter_map(|rule| {
        let mut typed = rules.iter().filter(|later| later.is_typed);
        let used = typed.find(|later| rule.is_used_in(later))?.message;
        asked(rule, Some(used))
    });
    facts.collect()
}

/// The user's own instructions: the rules that begin with a word of force, and what a file lists under a heading of rules;
/// each once, used again or not.
pub(crate) fn instructions(session: &Session) -> Vec<PlantedFact> {
    let mut known = BTreeSet::new();
    let mut rules = all_rules(session);
    rules.retain(|rule| {
        let named = rule.is_exact() || rule.sentence.contains('`') || !rule.is_typed;
        (is_order(rule.sentence) || (rule.is_headed && rule.is_listed && !rule.is_typed))
            && named
            && known.insert(rule.key())
    });
    let asked = rules.iter().filter_map(|rule| asked(rule, None));
    let numbered = asked
        .enumerate()
        .map(|(at, fact)| PlantedFact { id: format!("rule-{:03}", at + 1), ..fact });
    numbered.collect()
}

/// The rules of files and of typed messages, in the order in which the session shows them.
fn all_rules(session: &Session) -> Vec<UserRule<'_>> {
    let mut rules = rules_of_files(session);
    rules.extend(typed_rules(session));
    rules.sort_by_key(|rule| rule.message);
    rules
}

/// The question about a rule: it names a path or a name in it, or the words before its first anchor.
fn asked(rule: &UserRule<'_>, used: Option<usize>) -> Option<PlantedFact> {
    let words: Vec<&str> = rule.sentence.split_whitespace().collect();
    let mut bare = words.iter().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let named =
        bare.find(|word| rule.marks.anchors.contains(&word.to_lowercase()) && !has_digit(word));
    let (topic, question) = if let Some(named) = named {
        let question = format!("Which rule did the user set about `{named}`? Quote it.");
        (named.to_owned(), question)
    } else {
        let numbers = words.iter().position(|word| has_digit(word));
        // A rule of few words keeps one to ask for.
        let most = words.len().saturating_sub(1).clamp(1, 4);
        let begin = words[..numbers.unwrap_or(most).min(most)].join(" ");
        let question = format!("How does the user's rule go on that begins “{begin}”? Quote it.");
        (begin, question)
    };
    if word_count(&topic) == words.len() || topic.is_empty() {
        return None;
    }
    let fact =
        Fact::Constraint { topic, statement: rule.sentence.to_owned(), form: RuleForm::Open };
    Some(PlantedFact {
        until: used,
        importance: Importance::High,
        ..proposal(question, vec![rule.message], fact)
    })
}

/// The sentences of a text that may set a rule, without the marks of a list before them. Lines that are neither items nor
/// end as sentences do are output, code or headings.
fn rules_in(text: &str, message: usize, is_typed: bool) -> impl Iterator<Item = UserRule<'_>> {
    let mut headed = false;
    text.lines().flat_map(move |line| {
        let body = line.trim_start_matches(|c: char| c.is_ascii_digit() || " \t→|".contains(c));
        let item = body.trim_start_matches(['-', '*', '•', '.', ')', ' ']);
        let listed = item.len() < body.len();
        let ends_label = body.trim_end_matches('*').ends_with([':', '：']);
        if body.starts_with('#') || (ends_label && (!listed || body.starts_with("**"))) {
            headed = heads_rules(body);
        }
        let under = headed;
        let parts = item.split_inclusive(". ");
        let sentences = parts.flat_map(|part| part.split_inclusive(ends_sentence));
        let whole = sentences.map(str::trim).filter(move |sentence| {
            let begins = sentence.starts_with(|c: char| c.is_alphanumeric() || c == '`');
            begins
                && sentence.len() <= RULE_BYTES
                && word_count(sentence) >= RULE_WORDS
                && (listed || sentence.ends_with(ends))
        });
        whole.map(move |sentence| UserRule {
            message,
            sentence,
            marks: marks(sentence),
            is_typed,
            is_listed: listed,
            is_headed: under,
        })
    })
}

fn ends(c: char) -> bool {
    ends_sentence(c) || matches!(c, '.' | '!')
}

/// The rules of typed messages. A text that was sent before repeats nothing: a product sent it again.
fn typed_rules(session: &Session) -> Vec<UserRule<'_>> {
    let mut known = BTreeSet::new();
    let mut texts = typed(session);
    texts.retain(|(_, text)| text.chars().count() <= TYPED_CHARS && known.insert(*text));
    texts.into_iter().flat_map(|(message, text)| rules_in(text, message, true)).collect()
}

/// The rules in files of rules that the session shows: as the product puts them before the agent, or as a tool reads them.
fn rules_of_files(session: &Session) -> Vec<UserRule<'_>> {
    let mut reading = BTreeSet::new();
    let mut rules = Vec::new();
    for (message, said) in session.messages().iter().enumerate() {
        for (_, tool) in said.tool_uses() {
            if names_rule_file(tool.input.as_str()) {
                reading.insert(&*tool.id);
            }
        }
        for (block, content) in said.content().iter().enumerate() {
            let text = &*said.model_text()[block];
            let shown = match content {
                ContentBlock::ToolResult(result) => reading.contains(&*result.tool_use_id),
                ContentBlock::Text(_) => {
                    said.role() == Role::User
                        && (said.details.injected.contains(&block) || text.contains("</"))
                        && names_rule_file(text)
                }
                _ => false,
            };
            if shown {
                rules.extend(rules_in(text, message, false));
            }
        }
    }
    rules
}

fn names_rule_file(text: &str) -> bool {
    RULE_FILES.iter().any(|name| text.contains(name))
}

/// The user's requests, one a message.
///
/// Every message ends the request before it. One that is too short to be recognised or too long to be quoted, that was
/// said before, or on which the agent called no tool, as on thanks, does nothing more.
pub(super) fn requests(session: &Session) -> Vec<PlantedFact> {
    let mut acting = BTreeSet::new();
    for (at, message) in session.messages().iter().enumerate() {
        if message.tool_uses().next().is_some() {
            acting.insert(at);
        }
    }
    let mut all = typed(session);
    let mut requests: Vec<Revision> = Vec::new();
    let mut end = session.messages().len();
    for texts in all.chunk_by_mut(|one, other| one.0 == other.0).rev() {
        let length: usize = texts.iter().map(|(_, text)| text.chars().count()).sum();
        // Of several texts, the first that says enough.
        texts.sort_by_key(|(_, text)| word_count(text) < REQUEST_WORDS);
        let (message, text) = (texts[0].0, texts[0].1.trim());
        let idle = !acting.is_empty() && acting.range(message..end).next().is_none();
        requests.push(Revision {
            value: text.chars().take(REQUEST_CHARS).collect(),
            message,
            unasked: idle || length > REQUEST_CHARS || word_count(text) < REQUEST_WORDS,
        });
        end = message;
    }
    requests.reverse();
    let mut known: BTreeSet<String> = BTreeSet::new();
    for request in &mut requests {
        request.unasked |= !known.insert(request.value.clone());
    }
    if requests.iter().all(|request| request.unasked) {
        return Vec::new();
    }
    let question = "What did the user ask for last? Quote it word for word.";
    let evidence = requests.iter().map(|request| request.message).collect();
    vec![proposal(question, evidence, Fact::LastRequest { requests })]
}
