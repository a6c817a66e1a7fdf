//! Grades answers by rule: exact values, numbers, sets, the words of a sentence, abstention.

use std::collections::{BTreeMap, BTreeSet};

use unicode_normalization::UnicodeNormalization as _;

use super::survival::{PARAPHRASE, canonical_path, content_word_recall, is_flipped};
use super::{Gold, Grader, OTHER_ORDER, Outcome, Probe, Unscored, Verdict};
use crate::script::{is_unspaced, word_count};
use crate::session::ground_truth::{Revision, RuleForm};
use crate::step::Step;

mod abstention;
mod exact;
mod lists;
mod paired;
mod reasoned;

pub use abstention::abstains;

/// Sentences that share less than [`PARAPHRASE`] of a rule's words, but at least this share, are
/// left to a judge. Of COMPINT's 50 labelled summaries none of the 25 that preserve their rule is
/// below it, and 23 of the 25 that lost it are.
const DOUBTFUL: f64 = 0.2;

/// An answer of at most so many words is a value, whatever it is made of.
const VALUE_WORDS: usize = 2;

/// Rules do not suffice.
const NEEDS_JUDGE: Verdict = Verdict::Unscored {
    reason: Unscored::NeedsJudge,
};

/// Whether there are answers to such a question that rules cannot grade.
pub fn may_need_judge(gold: &Gold) -> bool {
    match gold {
        Gold::Requests { .. }
        | Gold::Choice { .. }
        | Gold::Arguments { .. }
        | Gold::Answer { .. }
        | Gold::Absent { .. } => true,
        Gold::Statement { form, .. } => match form {
            RuleForm::Choice { .. } | RuleForm::Call { .. } => false,
            RuleForm::Open => true,
        },
        Gold::Value { .. }
        | Gold::Among { .. }
        | Gold::Fault { .. }
        | Gold::Sequence { .. }
        | Gold::Versions { .. }
        | Gold::Files { .. }
        | Gold::Plan { .. }
        | Gold::Handles { .. }
        | Gold::Obsolete { .. }
        | Gold::Steps { .. }
        | Gold::Untold
        | Gold::Tried { .. } => false,
    }
}

/// Grades by rule, without a model.
#[derive(Debug)]
pub struct Rules {
    /// Normalised value → the probes whose answer it is, or was.
    values: BTreeMap<String, BTreeSet<String>>,
    /// What is counted anywhere.
    units: BTreeSet<String>,
}

impl Rules {
    /// Rules for the probes of one session: an answer that belongs to another of them is told
    /// from one that belongs to none.
    pub fn new(probes: &[Probe]) -> Self {
        let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for probe in probes {
            let known: Vec<&str> = match &probe.gold {
                Gold::Value { value, .. } => vec![value],
                Gold::Versions { values, .. } => values
                    .iter()
                    .filter(|said| !said.unasked)
                    .map(|said| said.value.as_str())
                    .collect(),
                Gold::Tried { reason, .. } => vec![reason],
                Gold::Among { value, others, .. } => {
                    // They are nobody's answer, and so another's than anybody's.
                    for other in others {
                        values.entry(normalise(other)).or_default();
                    }
                    vec![value]
                }
                Gold::Fault { code, .. } => vec![code],
                Gold::Steps { steps } => steps.iter().map(|step| step.value.as_str()).collect(),
                Gold::Choice { .. }
                | Gold::Statement { .. }
                | Gold::Files { .. }
                | Gold::Plan { .. }
                | Gold::Sequence { .. }
                | Gold::Requests { .. }
                | Gold::Handles { .. }
                | Gold::Obsolete { .. }
                // Other probes ask for them one by one.
                | Gold::Arguments { .. }
                | Gold::Answer { .. }
                | Gold::Untold
                | Gold::Absent { .. } => Vec::new(),
            };
            for value in known {
                let owners = values.entry(normalise(value)).or_default();
                owners.insert(probe.id.clone());
            }
        }
        let units = probes.iter().filter_map(|probe| match &probe.gold {
            Gold::Versions { unit, .. } => unit.clone(),
            _ => None,
        });
        Self {
            values,
            units: units.collect(),
        }
    }

    /// The verdict on `answer` to `probe` as asked before the message of index `before`.
    pub fn verdict(&self, probe: &Probe, before: usize, answer: &str) -> Verdict {
        if answer.trim().is_empty() {
            return Verdict::Unscored {
                reason: Unscored::NoAnswer,
            };
        }
        let own = probe.gold.words_before(before);
        let graded = match &probe.gold {
            Gold::Absent { .. } => self.absent(probe, answer),
            Gold::Untold => Some(untold(answer)),
            // One of two abstentions may be right.
            Gold::Obsolete { .. } => Some(paired::holds(answer)),
            // An omission alone could be told: what rules grade would be omissions only.
            Gold::Answer { .. } => None,
            _ if abstention::is_plain(answer, &own) => Some((0.0, Outcome::Abstained)),
            _ => match self.graded(probe, before, answer) {
                // What gives no value and says that there is none is an omission, in any words.
                None | Some((_, Outcome::Wrong))
                    if abstention::is_told(answer, &own) && !self.is_concrete(probe, answer) =>
                {
                    Some((0.0, Outcome::Abstained))
                }
                graded => graded,
            },
        };
        match graded {
            Some((score, outcome)) => Verdict::Scored { score, outcome },
            None => NEEDS_JUDGE,
        }
    }

    /// What an answer to a planted item is that does not abstain; nothing where rules cannot tell.
    fn graded(&self, probe: &Probe, before: usize, answer: &str) -> Option<(f64, Outcome)> {
        Some(match &probe.gold {
            Gold::Absent { .. } => return self.absent(probe, answer),
            Gold::Untold => untold(answer),
            Gold::Answer { .. } => return None,
            Gold::Value { value, .. } | Gold::Among { value, .. } => {
                self.value(probe, &[value], answer)
            }
            Gold::Fault { code, place, .. } => match exact::fault(code, place, answer) {
                Some(graded) => graded,
                None => match self.value(probe, &[code], answer) {
                    (_, Outcome::Misbound) => (0.0, Outcome::Misbound),
                    _ => (0.0, Outcome::Wrong),
                },
            },
            Gold::Obsolete { .. } => paired::holds(answer),
            Gold::Steps { steps } => {
                let last: Vec<&str> = steps.last().map(|step| &*step.value).into_iter().collect();
                self.value(probe, &last, answer)
            }
            Gold::Arguments { arguments } => return self.arguments(arguments, answer),
            Gold::Handles { .. } => lists::handles(&probe.gold, before, answer),
            Gold::Sequence { .. } => lists::sequence(&probe.gold.events_before(before), answer),
            Gold::Requests { .. } => {
                return exact::request(&probe.gold.versions_before(before), answer);
            }
            Gold::Versions { unit, .. } => {
                let versions = probe.gold.versions_before(before);
                match unit {
                    Some(unit) => {
                        let versions = probe.gold.revisions_before(before);
                        self.number(probe, &versions, unit, answer)
                    }
                    None => self.value(probe, &versions, answer),
                }
            }
            Gold::Files { .. } => lists::files(
                &probe.gold.files_before(before),
                &probe.gold.optional_before(before),
                answer,
            ),
            Gold::Plan { .. } => lists::items(&probe.gold, before, answer),
            Gold::Tried { reason, .. } => self.tried(probe, reason, answer),
            Gold::Choice {
                choice,
                reason,
                rejected,
                ..
            } => return reasoned::choice(choice, reason, rejected, answer),
            Gold::Statement {
                form: RuleForm::Choice { .. },
                ..
            } => exact::letters(answer),
            Gold::Statement {
                form: RuleForm::Call {
                    forbidden, allowed, ..
                },
                ..
            } => match allowed {
                Some(allowed) => paired::calls(forbidden, &allowed.target, answer),
                None => return exact::call(forbidden, answer),
            },
            Gold::Statement {
                topic, statement, ..
            } => {
                let recall = content_word_recall(statement, answer);
                if abstention::is_told(answer, &[statement])
                    && content_word_recall(statement, &without(answer, topic)) < PARAPHRASE
                {
                    (0.0, Outcome::Abstained)
                } else if content_word_recall(&without(statement, topic), answer) <= 0.0 {
                    // The question gives the words of the topic: repeating them answers nothing.
                    (0.0, Outcome::Wrong)
                } else if recall >= PARAPHRASE && !is_flipped(statement, answer) {
                    (1.0, Outcome::Right)
                } else if (DOUBTFUL..PARAPHRASE).contains(&recall) {
                    return None;
                } else {
                    (0.0, Outcome::Wrong)
                }
            }
        })
    }

    /// Of something that was never said, right is to say so; any concrete value is invented. An
    /// answer in other words without a value is left to a judge.
    fn absent(&self, probe: &Probe, answer: &str) -> Option<(f64, Outcome)> {
        let is_concrete = self.is_concrete(probe, answer);
        let is_told = abstention::is_told(answer, &[]);
        if abstention::is_plain(answer, &[]) || (is_told && !is_concrete) {
            Some((1.0, Outcome::Right))
        } else if is_told || (!is_concrete && word_count(answer) > VALUE_WORDS) {
            None
        } else {
            Some((0.0, Outcome::Invented))
        }
    }

    /// Whether the answer names a value: one that was planted, or anything with a digit that the
    /// question does not hold.
    fn is_concrete(&self, probe: &Probe, answer: &str) -> bool {
        let question = normalise(&probe.question);
        let answer = normalise(answer);
        let mut tokens = answer.split_whitespace().map(trim_punctuation);
        tokens.any(|token| {
            let is_value =
                self.values.contains_key(token) || token.contains(|c: char| c.is_ascii_digit());
            is_value && !has_phrase(&question, token)
        })
    }

    /// Right is the newest of the values alone, or a sentence in which no other value stands; an
    /// older one alone is stale.
    fn value(&self, probe: &Probe, versions: &[&str], answer: &str) -> (f64, Outcome) {
        let versions: Vec<String> = versions.iter().map(|value| normalise(value)).collect();
        let Some((gold, older)) = versions.split_last() else {
            return (0.0, Outcome::Wrong);
        };
        let answer = normalise(answer);
        if answer == *gold {
            return (1.0, Outcome::Right);
        }
        let mut others = false;
        let mut found = false;
        let mut stale = older.contains(&answer);
        let mut misbound = false;
        for token in answer.split_whitespace().map(trim_punctuation) {
            if token == gold {
                found = true;
            } else if older.iter().any(|old| old == token) {
                stale = true;
            } else if let Some(owners) = self.values.get(token) {
                misbound |= !owners.contains(&probe.id);
                others = true;
            } else if token.contains(|c: char| c.is_ascii_digit()) {
                others = true;
            }
        }
        // A value of several words is no single token.
        found |= gold.contains(' ') && has_phrase(&answer, gold);
        misbound |= self
            .values
            .get(&answer)
            .is_some_and(|owners| !owners.contains(&probe.id));
        outcome(found, others || stale, missed(stale, misbound))
    }

    /// Right is the newest number, with its unit or without; an older one is stale. A number that
    /// counts something else (a time, a share) does not matter beside it; one that claims to be the
    /// same count does, planted or not: two of them are no answer.
    fn number(
        &self,
        probe: &Probe,
        versions: &[&Revision],
        unit: &str,
        answer: &str,
    ) -> (f64, Outcome) {
        let Some((gold, older)) = versions.split_last() else {
            return (0.0, Outcome::Wrong);
        };
        let (mut found, mut others, mut stale, mut misbound) = (false, false, false, false);
        for said in reasoned::numbers(&normalise(answer)) {
            let of_another = said.behind != unit && self.units.contains(&said.behind);
            let is_claimed = said.behind == unit || said.is_alternative;
            // An older count that can be guessed is one only where it claims to be.
            let is_older = older.iter().any(|older| {
                older.value == said.digits && (is_claimed || (!older.unasked && !of_another))
            });
            if said.digits == gold.value {
                found |= !of_another;
                others |= of_another;
            } else if is_older {
                stale = true;
            } else if let Some(owners) = self.values.get(&said.digits) {
                misbound |= !owners.contains(&probe.id);
                others |= is_claimed || !of_another;
            } else {
                others |= is_claimed;
            }
        }
        outcome(found, others || stale, missed(stale, misbound))
    }

    /// Right is a yes, said or meant, with the reason.
    ///
    /// Asked in both orders, the second question takes a no: see [`Probe::questions`].
    fn tried(&self, probe: &Probe, reason: &str, answer: &str) -> (f64, Outcome) {
        if let Some((straight, turned)) = answer.split_once(OTHER_ORDER) {
            let (first, second) = (normalise(straight), normalise(turned));
            let second = second.split(|c: char| !c.is_alphanumeric()).next();
            if normalise(turned).is_empty() || abstains(turned) || first.is_empty() {
                return (0.0, Outcome::Abstained);
            }
            return match self.tried(probe, reason, straight) {
                (_, Outcome::Right) if second == Some("yes") => (0.0, Outcome::Partial),
                (_, Outcome::Right) => {
                    let turned = self.tried(probe, reason, &format!("yes: {turned}"));
                    if turned.1 == Outcome::Right {
                        turned
                    } else {
                        (0.0, Outcome::Partial)
                    }
                }
                graded => graded,
            };
        }
        let first = normalise(answer);
        let first = first.split(|c: char| !c.is_alphanumeric()).next();
        if first == Some("no") {
            return (0.0, Outcome::Wrong);
        }
        match self.value(probe, &[reason], answer) {
            (_, Outcome::Wrong) if first == Some("yes") => (0.0, Outcome::Partial),
            graded => graded,
        }
    }
}

/// What follows from the values in an answer; `missed` is what it is without the right one.
fn outcome(found: bool, others: bool, missed: Outcome) -> (f64, Outcome) {
    match (found, others) {
        (true, false) => (1.0, Outcome::Right),
        (true, true) => (0.0, Outcome::Partial),
        (false, _) => (0.0, missed),
    }
}

/// What an answer is that holds an older value, or else another key's.
fn missed(stale: bool, misbound: bool) -> Outcome {
    match (stale, misbound) {
        (true, _) => Outcome::Stale,
        (false, true) => Outcome::Misbound,
        (false, false) => Outcome::Wrong,
    }
}

/// Of what a person asks and the conversation does not tell, right is to say so, in any words; all
/// else is invented.
fn untold(answer: &str) -> (f64, Outcome) {
    if abstention::is_plain(answer, &[]) || abstention::is_told(answer, &[]) {
        (1.0, Outcome::Right)
    } else {
        (0.0, Outcome::Invented)
    }
}

impl Grader for Rules {
    fn name(&self) -> &'static str {
        "rules"
    }

    fn grade<'a>(&'a self, probe: &'a Probe, before: usize, answer: &'a str) -> Step<'a, Verdict> {
        Step::Done(self.verdict(probe, before, answer))
    }
}

/// The words of a text that are not among these.
fn without(text: &str, words: &str) -> String {
    let words = normalise(words);
    let mut left = text.to_owned();
    for word in words.split_whitespace() {
        left = normalise(&left).replace(word, " ");
    }
    left
}

fn has_phrase(text: &str, phrase: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() && !is_unspaced(c);
    text.match_indices(phrase)
        .any(|(at, _)| !text[..at].ends_with(word) && !text[at + phrase.len()..].starts_with(word))
}

/// A value as it is compared.
///
/// Unicode's NFKC: compatibility characters (full-width letters, ligatures, superscripts) as what they
/// stand for, accents composed. Lower case; one space between words; straight quotes and hyphens; `/`
/// for `\`; no invisible characters; no quotes, brackets or punctuation around it. A space parts
/// Chinese, Japanese and Korean from other words: 端口是48213 holds the value 48213.
pub fn normalise(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut last = ' ';
    for c in value.nfkc() {
        let c = match c {
            '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{ad}' => continue,
            '‘' | '’' => '\'',
            '“' | '”' | '「' | '」' | '『' | '』' | '《' | '》' => '"',
            '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
            '\\' => '/',
            '。' => '.',
            '、' => ',',
            c if c.is_whitespace() => ' ',
            c => c,
        };
        if is_unspaced(c) != is_unspaced(last) {
            text.push(' ');
        }
        last = c;
        text.extend(c.to_lowercase());
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    trim_punctuation(&words.join(" ")).to_owned()
}

fn trim_punctuation(text: &str) -> &str {
    let around = |c: char| {
        matches!(
            c,
            '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '<' | '>' | '*'
        )
    };
    let behind = |c: char| around(c) || matches!(c, '.' | ',' | ';' | ':' | '!' | '?') || c == ' ';
    text.trim_start_matches(|c| around(c) || c == ' ')
        .trim_end_matches(behind)
}

#[cfg(test)]
mod tests;
