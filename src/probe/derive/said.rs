//! Rules that the user repeats or corrects, and the user's last request.

use std::collections::{BTreeMap, BTreeSet};

use super::own::typed;
use super::proposal;
use crate::probe::survival::{Marks, content_word_recall, marks};
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

/// Later rules with the same marks that are compared with one rule.
const COMPARED: usize = 16;

/// A request of fewer words is a nod: "yes, commit it".
const REQUEST_WORDS: usize = 4;

/// Characters up to which a request can be quoted.
const REQUEST_CHARS: usize = 600;

/// A sentence that sets a rule.
#[derive(Debug)]
struct Rule<'s> {
    message: usize,
    sentence: &'s str,
    marks: Marks,
    is_typed: bool,
}

impl Rule<'_> {
    /// The anchors, or where it has none the whole sentence: rules with the same ones are the same.
    fn key(&self) -> Marks {
        let mut key = self.marks.clone();
        if key.anchors.is_empty() {
            key.anchors.insert(self.sentence.to_lowercase());
        }
        key
    }

    /// The key behind an empty text, and the marks without each of the anchors behind that anchor.
    fn keys(&self) -> impl Iterator<Item = (&str, Marks)> {
        let but_one = self.marks.anchors.iter().map(|anchor| {
            let mut key = self.marks.clone();
            key.anchors.remove(anchor);
            (anchor.as_str(), key)
        });
        std::iter::once(("", self.key())).chain(but_one)
    }

    /// The message that says it again, or with one other anchor.
    fn use_in(&self, typed: &BTreeMap<Marks, Vec<(&str, &Self)>>) -> Option<usize> {
        let of_key = |(anchor, key): (&str, Marks)| {
            let all = typed.get(&key)?;
            let later = all.partition_point(|(_, later)| later.message <= self.message);
            let mut later = all[later..].iter().take(COMPARED).filter(|(other, later)| {
                // Another file is another rule; another number is the same one, corrected.
                let is_corrected = !anchor.is_empty()
                    && !other.is_empty()
                    && anchor != *other
                    && (!key.anchors.is_empty() || (has_digit(anchor) && has_digit(other)));
                (is_corrected || (anchor.is_empty() && other.is_empty()))
                    && content_word_recall(self.sentence, later.sentence) >= SAME_WORDS
            });
            later.next().map(|(_, later)| later.message)
        };
        self.keys().filter_map(of_key).min()
    }
}

/// Rules that a later typed message repeats, or corrects in one anchor: each is asked until then.
pub(super) fn rules(session: &Session) -> Vec<PlantedFact> {
    let mut rules = rules_of_files(session);
    rules.extend(typed_rules(session));
    rules.sort_by_key(|rule| rule.message);
    let mut typed: BTreeMap<Marks, Vec<(&str, &Rule<'_>)>> = BTreeMap::new();
    for rule in rules.iter().filter(|rule| rule.is_typed) {
        for (anchor, key) in rule.keys() {
            typed.entry(key).or_default().push((anchor, rule));
        }
    }
    let mut known = BTreeSet::new();
    let first = rules.iter().filter(|rule| known.insert(rule.key()));
    first
        .filter_map(|rule| asked(rule, rule.use_in(&typed)?))
        .collect()
}

fn has_digit(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
}

/// The question about a rule: it names a path or a name in it, or the words before its first anchor.
fn asked(rule: &Rule<'_>, used: usize) -> Option<PlantedFact> {
    let words: Vec<&str> = rule.sentence.split_whitespace().collect();
    let bare = |word: &&str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let is_anchor = |word: &String| rule.marks.anchors.contains(&word.to_lowercase());
    let named = words
        .iter()
        .map(bare)
        .find(|word| is_anchor(word) && !has_digit(word));
    let (topic, question) = if let Some(named) = named {
        let question = format!("Which rule did the user set about `{named}`? Quote it.");
        (named, question)
    } else {
        let begin = words.iter().take_while(|word| !has_digit(word)).take(4);
        let begin = begin.copied().collect::<Vec<&str>>().join(" ");
        let question = format!("How does the user's rule go on that begins “{begin}”? Quote it.");
        (begin, question)
    };
    if word_count(&topic) == words.len() || topic.is_empty() {
        return None;
    }
    let fact = Fact::Constraint {
        topic,
        statement: rule.sentence.to_owned(),
        form: RuleForm::Open,
    };
    Some(PlantedFact {
        until: Some(used),
        importance: Importance::High,
        ..proposal(question, vec![rule.message], fact)
    })
}

/// The sentences of a text without the marks of a list before them, and whether a mark was there. Lines that are neither
/// items nor end as sentences do are output, code or headings.
fn sentences(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let lines = text.lines().filter(|line| line.len() <= RULE_BYTES);
    lines.flat_map(|line| {
        let line = line.trim_start_matches(|c: char| c.is_ascii_digit() || " \t→|".contains(c));
        let item = line.trim_start_matches(['-', '*', '•', '.', ')', ' ']);
        let is_item = item.len() < line.len();
        let sentences = item.split_inclusive(". ").map(str::trim);
        let begins = |sentence: &&str| sentence.starts_with(char::is_alphanumeric);
        let sentences = sentences.filter(move |sentence| is_item || sentence.ends_with(ends));
        sentences
            .filter(begins)
            .map(move |sentence| (sentence, is_item))
    })
}

fn ends(c: char) -> bool {
    ends_sentence(c) || matches!(c, '.' | '!')
}

/// The sentences that set a rule: with a word of force and an anchor, or in a list of rules.
fn rules_in(text: &str, message: usize, is_typed: bool) -> impl Iterator<Item = Rule<'_>> {
    sentences(text).filter_map(move |(sentence, is_item)| {
        let marks = marks(sentence);
        // A name alone stands in sentences of every sort: "I don't have my ID".
        let is_exact = |anchor: &String| !anchor.chars().all(char::is_alphabetic);
        let is_rule = marks.has_force() && marks.anchors.iter().any(is_exact);
        let is_rule = is_rule || (!is_typed && is_item);
        (is_rule && word_count(sentence) >= RULE_WORDS).then_some(Rule {
            message,
            sentence,
            marks,
            is_typed,
        })
    })
}

/// The rules of typed messages. A text that was sent before repeats nothing: a product sent it again.
fn typed_rules(session: &Session) -> Vec<Rule<'_>> {
    let mut known = BTreeSet::new();
    let typed = typed(session).into_iter();
    let typed =
        typed.filter(|(_, text)| text.chars().count() <= TYPED_CHARS && known.insert(*text));
    typed
        .flat_map(|(message, text)| rules_in(text, message, true))
        .collect()
}

/// The rules in files of rules that the session shows: as the product puts them before the agent, or as a tool reads them.
fn rules_of_files(session: &Session) -> Vec<Rule<'_>> {
    let is_named = |text: &str| RULE_FILES.iter().any(|name| text.contains(name));
    let mut reading = BTreeSet::new();
    let mut rules = Vec::new();
    for (message, said) in session.messages().iter().enumerate() {
        let tools = said.tool_uses().map(|(_, tool)| tool);
        let named = tools.filter(|tool| is_named(tool.input.as_str()));
        reading.extend(named.map(|tool| &*tool.id));
        for (block, content) in said.content().iter().enumerate() {
            let text = &*said.model_text()[block];
            let is_shown = match content {
                ContentBlock::ToolResult(result) => reading.contains(&*result.tool_use_id),
                ContentBlock::Text(_) => {
                    let is_added = said.details.injected.contains(&block) || text.contains("</");
                    said.role() == Role::User && is_added && is_named(text)
                }
                _ => false,
            };
            if is_shown {
                rules.extend(rules_in(text, message, false));
            }
        }
    }
    rules
}

/// The user's requests, one a message.
///
/// Every message ends the request before it. One that is too short to be recognised or too long to be quoted, that was
/// said before, or on which the agent called no tool, as on thanks, does nothing more.
pub(super) fn requests(session: &Session) -> Vec<PlantedFact> {
    let messages = session.messages().iter().enumerate();
    let acting = messages.filter(|(_, message)| message.tool_uses().next().is_some());
    let acting: BTreeSet<usize> = acting.map(|(at, _)| at).collect();
    let mut typed = typed(session);
    let mut requests: Vec<Revision> = Vec::new();
    let mut end = session.messages().len();
    for texts in typed.chunk_by_mut(|one, other| one.0 == other.0).rev() {
        let length: usize = texts.iter().map(|(_, text)| text.chars().count()).sum();
        // Of several texts, the first that says enough.
        texts.sort_by_key(|(_, text)| word_count(text) < REQUEST_WORDS);
        let (message, text) = (texts[0].0, texts[0].1.trim());
        let acts = acting.is_empty() || acting.range(message..end).next().is_some();
        let is_said = length <= REQUEST_CHARS && word_count(text) >= REQUEST_WORDS;
        requests.push(Revision {
            value: text.chars().take(REQUEST_CHARS).collect(),
            message,
            unasked: !is_said || !acts,
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
