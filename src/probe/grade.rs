//! Confirms answers by rule: what is exactly one known thing, or a plain abstention.
//!
//! A rule says that an answer is exactly right, that it plainly abstains, or that it is exactly an
//! older or another item's value; where the answer set is closed (a letter, one call, a list of known
//! entries) it says what follows from that. Every other answer is for a judge: rules never call one
//! wrong or invented because they cannot read it.

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization as _;

use self::exact::{Around, BECAUSE, words};
use super::survival::canonical_path;
use super::{Fact, OTHER_ORDER, Outcome, Probe, Unscored, Verdict};
use crate::model::AnswerFormat;
use crate::script::is_unspaced;
use crate::session::ground_truth::RuleForm;

mod abstention;
mod exact;
mod lists;
mod paired;

/// Rules do not suffice.
const NEEDS_JUDGE: Verdict = Verdict::Unscored {
    reason: Unscored::NeedsJudge,
};

/// Confirms by rule, without a model.
#[derive(Debug)]
pub struct Rules {
    known: Vec<Known>,
    /// Canonical paths of all lists of files.
    paths: BTreeSet<String>,
    /// Normalised items of all plans.
    items: BTreeSet<String>,
}

/// A value that answers a probe of the session, or once did.
#[derive(Debug)]
struct Known {
    /// The probe; nothing where it is no probe's answer, and so another's than any probe's.
    owner: Option<String>,
    words: Vec<String>,
}

impl Rules {
    /// Rules for the probes of one session: an answer that belongs to another of them is told
    /// from one that belongs to none.
    pub fn new(probes: &[Probe]) -> Self {
        let mut rules = Self {
            known: Vec::new(),
            paths: BTreeSet::new(),
            items: BTreeSet::new(),
        };
        let known = |owner: Option<&String>, value: &str| Known {
            owner: owner.cloned(),
            words: words(value),
        };
        for probe in probes {
            let own = probe.fact.values();
            let own = own.iter().map(|value| known(Some(&probe.id), value));
            rules.known.extend(own);
            match &probe.fact {
                Fact::Binding { others, .. } => {
                    let others = others.iter().map(|other| known(None, &other.value));
                    rules.known.extend(others);
                }
                Fact::Artifact {
                    files, optional, ..
                } => {
                    let files = files.iter().chain(optional);
                    rules
                        .paths
                        .extend(files.map(|file| canonical_path(&file.path)));
                }
                Fact::Continuation { items, .. } => {
                    let items = items.iter().map(|item| item.item.as_str());
                    rules.items.extend(lists::normalised(items));
                }
                _ => {}
            }
        }
        rules
    }

    /// The verdict on `answer` to `probe` as asked before the message of index `before`.
    pub fn verdict(&self, probe: &Probe, before: usize, answer: &str) -> Verdict {
        if answer.trim().is_empty() {
            return Verdict::unscored(Unscored::NoAnswer);
        }
        let graded = match &probe.fact {
            Fact::Decoy { .. } | Fact::Unanswerable => self.never_said(probe, answer),
            // A share of omissions is no share of answers: an open question is a judge's as a whole.
            Fact::Open { .. } => None,
            // A word such as `none` may be the value itself.
            _ => self
                .confirmed(probe, before, answer)
                .or_else(|| abstained(probe, before, answer)),
        };
        match graded {
            Some((score, outcome)) => Verdict::Scored { score, outcome },
            None => NEEDS_JUDGE,
        }
    }

    /// The verdict on an answer that a reader copied from the prompt word for word.
    ///
    /// It says nothing in words of its own, so that its answer set is closed: a copied value that is not
    /// exactly right is wrong. A copied line is right where it holds the known words; else only a judge
    /// could tell what it says.
    pub fn verdict_of_copied(&self, probe: &Probe, before: usize, answer: &str) -> Verdict {
        let verdict = self.verdict(probe, before, answer);
        if verdict != NEEDS_JUDGE || matches!(probe.fact, Fact::Open { .. }) {
            return verdict;
        }
        let scored = |score, outcome| Verdict::Scored { score, outcome };
        let own = match &probe.fact {
            fact @ (Fact::Error { .. } | Fact::RejectedPath { .. }) => fact.current(before),
            fact => fact.words_before(before),
        };
        let own: Vec<String> = own.into_iter().map(normalise).collect();
        let mut halves = answer.split(OTHER_ORDER).map(normalise);
        let is_line = !own.is_empty() && probe.answer_format() != AnswerFormat::Items;
        if is_line && halves.all(|half| own.iter().all(|own| exact::has_phrase(&half, own))) {
            return scored(1.0, Outcome::Right);
        }
        match probe.answer_format() {
            _ if probe.kind().is_never_said() => scored(0.0, Outcome::Invented),
            AnswerFormat::Sentence | AnswerFormat::Choice => NEEDS_JUDGE,
            _ => scored(0.0, Outcome::Wrong),
        }
    }

    /// Of something that was never said, right is to say so and no more; exactly the value of another
    /// item is invented.
    fn never_said(&self, probe: &Probe, answer: &str) -> Option<(f64, Outcome)> {
        if abstention::is_plain(answer, &probe.question, &[]) {
            return Some((1.0, Outcome::Right));
        }
        let around = Around::new(&probe.question, &[]);
        self.is_anothers(probe, &around, &words(answer))
            .then_some((0.0, Outcome::Invented))
    }

    /// What an answer to a planted item exactly is; nothing where only a judge can tell.
    fn confirmed(&self, probe: &Probe, before: usize, answer: &str) -> Option<(f64, Outcome)> {
        let question = &probe.question;
        let plain = Around::new(question, &[]);
        let current = probe.fact.current(before);
        let one_of = |versions: &[&str]| self.one_of(probe, &plain, versions, &words(answer));
        match &probe.fact {
            Fact::Decoy { .. } | Fact::Unanswerable | Fact::Open { .. } => None,
            Fact::Recall { .. }
            | Fact::Indirect { .. }
            | Fact::Binding { .. }
            | Fact::Update { .. }
            | Fact::LastRequest { .. } => one_of(&current),
            Fact::TwoStep { steps } => one_of(&[steps.last()?.value.as_str()]),
            Fact::Act { arguments } => self.arguments(arguments, answer),
            Fact::OpenHandle { .. } => {
                let known = lists::normalised(probe.fact.parts().iter().map(|part| part.text));
                lists::items(&current, &known, &known, &['\n', ','], answer)
            }
            Fact::Continuation { .. } => {
                let all = lists::normalised(probe.fact.parts().iter().map(|part| part.text));
                lists::items(&current, &all, &self.items, &['\n'], answer)
            }
            Fact::Obsolete { .. } => paired::holds(question, answer),
            Fact::Error { code, place, .. } => {
                if exact::is_fault(question, code, place, answer) {
                    return RIGHT;
                }
                one_of(&[]).filter(|_| !words(answer).contains(&normalise(code)))
            }
            Fact::Numeric { unit, .. } => {
                let unit = normalise(unit);
                let around = Around::new(question, &[&unit, unit.trim_end_matches('s')]);
                let answer = words(&exact::joined_numbers(answer));
                self.one_of(probe, &around, &current, &answer)
            }
            Fact::Artifact { .. } => {
                let optional = probe.fact.optional_before(before);
                lists::files(&current, &optional, &self.paths, answer)
            }
            Fact::Order { .. } => lists::sequence(&current, answer),
            Fact::RejectedPath { reason, .. } => {
                exact::is_tried(question, reason, answer).then_some((1.0, Outcome::Right))
            }
            Fact::Decision {
                choice,
                reason,
                rejected,
                ..
            } => {
                let around = Around::new(question, BECAUSE);
                let said = words(answer);
                if around.holds_both(&said, &words(choice), &words(reason)) {
                    return RIGHT;
                }
                let mut rejected = rejected.iter().map(|option| words(option));
                let is_rejected = rejected.any(|option| plain.holds_only(&said, &option));
                is_rejected.then_some((0.0, Outcome::Misbound))
            }
            Fact::Constraint {
                statement, form, ..
            } => match form {
                RuleForm::Open => one_of(&[statement]),
                RuleForm::Choice { foil } => exact::letters(statement, foil, answer),
                RuleForm::Call {
                    forbidden, allowed, ..
                } => match allowed {
                    Some(allowed) => paired::calls(forbidden, &allowed.target, answer),
                    None => exact::call(forbidden, answer),
                },
            },
        }
    }

    /// Right is exactly the newest of the values; exactly an older one is stale, and exactly the value of
    /// another item is that item's. Where one value holds another, the longest that fits is meant.
    fn one_of(
        &self,
        probe: &Probe,
        around: &Around,
        versions: &[&str],
        answer: &[String],
    ) -> Option<(f64, Outcome)> {
        let versions: Vec<Vec<String>> = versions.iter().map(|value| words(value)).collect();
        let newest = versions.last();
        let said = versions
            .iter()
            .filter(|value| around.holds_only(answer, value))
            // Of a value that came back, the newest counts.
            .max_by_key(|value| (value.len(), Some(*value) == newest));
        match said {
            Some(value) if Some(value) == newest => RIGHT,
            Some(_) => Some((0.0, Outcome::Stale)),
            None => self
                .is_anothers(probe, around, answer)
                .then_some((0.0, Outcome::Misbound)),
        }
    }

    /// Whether the answer is exactly a value of another item, and of none of this one's.
    fn is_anothers(&self, probe: &Probe, around: &Around, answer: &[String]) -> bool {
        let is_own = |known: &Known| known.owner.as_ref() == Some(&probe.id);
        let mut said = self
            .known
            .iter()
            .filter(|known| around.holds_only(answer, &known.words))
            .peekable();
        said.peek().is_some() && said.all(|known| !is_own(known))
    }
}

const RIGHT: Option<(f64, Outcome)> = Some((1.0, Outcome::Right));

/// A plain abstention; of a question in both orders, in one of them.
fn abstained(probe: &Probe, before: usize, answer: &str) -> Option<(f64, Outcome)> {
    let own = probe.fact.words_before(before);
    exact::abstains_in_one_order(answer, &probe.question, &own).then_some((0.0, Outcome::Abstained))
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
