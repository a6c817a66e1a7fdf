//! Confirms answers by rule: what is exactly one known thing, or a plain abstention.
//!
//! A rule says that an answer is exactly right, that it plainly abstains, or that it is exactly an
//! older or another item's value; where the answer set is closed (a letter, one call, a list of known
//! entries) it says what follows from that. Every other answer is for a judge: rules never call one
//! wrong or invented because they cannot read it. Each kind brings its own rules in its
//! `Spec`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization as _;

use self::exact::{Around, words};
use super::kind::{SearchBy, Spec};
use super::survival::{canonical_path, is_same_quantity};
use super::{GradeVerdict, OTHER_ORDER, Outcome, Probe, ProbeKind, Unscored};
use crate::probe::Specified as _;
use crate::script::is_unspaced;

pub(super) mod call;
pub(super) mod exact;
pub(super) mod lists;
mod peel;
pub(super) mod words;

/// From 0 to 1, and in what way the answer is right or wrong.
pub(super) type GradeScore = (f64, Outcome);

pub(super) const RIGHT: GradeScore = (1.0, Outcome::Right);

pub(super) fn wrong(outcome: Outcome) -> GradeScore {
    (0.0, outcome)
}

/// Confirms by rule, without a model.
#[derive(Debug)]
pub struct GradingRules {
    known: Vec<KnownValue>,
    /// Canonical paths of all lists of files.
    pub(super) paths: BTreeSet<String>,
    /// Normalised items of all plans.
    pub(super) items: BTreeSet<String>,
}

/// A value that answers a probe of the session, or once did.
#[derive(Debug)]
struct KnownValue {
    /// The probe; `None` where it answers no probe.
    owner: Option<String>,
    words: Vec<String>,
}

/// An answer to one probe, and what its kind's rules compare it with.
pub(super) struct GradedAnswer<'a> {
    pub(super) rules: &'a GradingRules,
    probe: &'a Probe,
    pub(super) current: Vec<&'a str>,
    /// Files that the answer may list or leave out.
    pub(super) optional: Vec<&'a str>,
    pub(super) text: &'a str,
}

impl GradingRules {
    /// Rules for the probes of one session: an answer may be the value of another of them.
    pub fn new(probes: &[Probe]) -> Self {
        let mut rules = Self { known: Vec::new(), paths: BTreeSet::new(), items: BTreeSet::new() };
        for probe in probes {
            let spec = probe.fact.spec();
            let own = spec
                .values
                .iter()
                .map(|value| KnownValue { owner: Some(probe.id.clone()), words: words(value) });
            rules.known.extend(own);
            if spec.kind == ProbeKind::Binding {
                let others =
                    spec.others.iter().map(|other| KnownValue { owner: None, words: words(other) });
                rules.known.extend(others);
            }
            for part in &spec.parts {
                match part.search {
                    SearchBy::Path => {
                        rules.paths.insert(canonical_path(part.text));
                    }
                    SearchBy::Item => rules.items.extend(lists::normalised([part.text])),
                    _ => {}
                }
            }
            let optional = spec.optional.iter().map(|file| canonical_path(&file.path));
            rules.paths.extend(optional);
        }
        rules
    }

    /// The words of every value that answers a probe of the session.
    pub(super) fn known_values(&self) -> impl Iterator<Item = &[String]> {
        self.known.iter().map(|known| known.words.as_slice())
    }

    /// The verdict on `answer` to `probe` as asked before the message of index `before`.
    pub fn verdict(&self, probe: &Probe, before: usize, answer: &str) -> GradeVerdict {
        if answer.trim().is_empty() {
            return GradeVerdict::unscored(Unscored::NoAnswer);
        }
        let spec = probe.fact.spec();
        let graded = spec.grade.as_ref().and_then(|grade| {
            let texts = [answer, &peel::peeled(answer)];
            let mut answers =
                (texts.iter()).map(|text| GradedAnswer::new(self, probe, &spec, before, text));
            // A word such as `none` may be the value itself, so that abstentions come second.
            let found = answers.find_map(|answer| grade(&answer));
            let score = found
                .or_else(|| abstains_in_one_order(answer).then_some(wrong(Outcome::Abstained)))?;
            // "None" may be a count.
            let count = spec.current(before).last() == Some(&"0");
            (score.1 != Outcome::Abstained || !count).then_some(score)
        });
        match graded {
            Some((score, outcome)) => GradeVerdict::Scored { score, outcome },
            None => GradeVerdict::unscored(Unscored::NeedsJudge),
        }
    }
}

impl<'a> GradedAnswer<'a> {
    pub(super) fn new(
        rules: &'a GradingRules,
        probe: &'a Probe,
        spec: &Spec<'a>,
        before: usize,
        text: &'a str,
    ) -> Self {
        Self { rules, probe, current: spec.current(before), optional: spec.optional(before), text }
    }

    /// The words that claim nothing around an answer to this question, with more that are usual around one of this form.
    pub(super) fn around<'w>(&self, more: impl IntoIterator<Item = &'w str>) -> Around {
        Around::new(&self.probe.question, more)
    }

    /// See [`Self::one_of_around`].
    pub(super) fn one_of(&self, versions: &[&str]) -> Option<GradeScore> {
        self.one_of_around(&self.around([]), versions, &words(self.text))
    }

    /// Right is exactly the newest of the values; exactly an older one is stale, and exactly the value of
    /// another item is that item's. Where one value holds another, the longest that fits is meant.
    pub(super) fn one_of_around(
        &self,
        around: &Around,
        versions: &[&str],
        answer: &[String],
    ) -> Option<GradeScore> {
        let versions: Vec<Vec<String>> = versions.iter().map(|value| words(value)).collect();
        let newest = versions.last();
        let said = (versions.iter()).filter(|value| around.holds_only(answer, value));
        // Of a value that came back, the newest counts.
        match said.max_by_key(|value| (value.len(), Some(*value) == newest)) {
            Some(value) if Some(value) == newest => Some(RIGHT),
            Some(_) => Some(wrong(Outcome::Stale)),
            None if newest.is_some_and(|value| around.holds_amount(answer, &value.join(" "))) => {
                Some(RIGHT)
            }
            None if self.is_anothers(around, answer) => Some(wrong(Outcome::Misbound)),
            None => None,
        }
    }

    /// Whether the answer is exactly a value of another item, and of none of this one's, however that is written.
    pub(super) fn is_anothers(&self, around: &Around, answer: &[String]) -> bool {
        let mut said: Vec<&KnownValue> = self.rules.known.iter().collect();
        said.retain(|known| around.holds_only(answer, &known.words));
        let mut own = said.iter().filter(|known| {
            let value = known.words.join(" ");
            let mut current = self.current.iter();
            known.owner.as_ref() == Some(&self.probe.id)
                || current.any(|own| is_same_quantity(own, &value))
        });
        !said.is_empty() && own.next().is_none()
    }
}

/// Whole answers that say that there is none, after normalising: the form that is asked for, and others in the languages
/// of the file.
static ABSTENTIONS: LazyLock<BTreeSet<String>> =
    LazyLock::new(|| include_str!("grade/abstentions.txt").lines().map(normalise).collect());

/// Whether an answer says that there is none, and nothing else.
pub(super) fn abstains(answer: &str) -> bool {
    let texts = [answer, &peel::peeled(answer)].map(normalise);
    texts.iter().any(|text| ABSTENTIONS.contains(text))
}

/// Whether an answer, or one of two answers to a question asked in both orders, is a plain abstention.
pub(super) fn abstains_in_one_order(answer: &str) -> bool {
    answer.split(OTHER_ORDER).any(abstains)
}

/// A value as it is compared.
///
/// Unicode's NFKC: compatibility characters (full-width letters, ligatures, superscripts) as what they
/// stand for, accents composed. Lower case; one space between words; straight quotes and hyphens; `/`
/// for `\`; no invisible characters; no quotes, brackets or punctuation around it. A space parts
/// Chinese, Japanese and Korean from other words: 端口是48213 holds the value 48213.
pub fn normalise(value: &str) -> String {
    trim_punctuation(&spaced(value)).to_owned()
}

/// The same, with the punctuation around it.
pub(super) fn spaced(value: &str) -> String {
    // Of ASCII, `folded` changes only these.
    let text = if value.is_ascii() {
        value.to_ascii_lowercase().replace('\\', "/")
    } else {
        folded(value)
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// In lower case, with what looks alike as one character.
fn folded(value: &str) -> String {
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
    text
}

pub(super) fn trim_punctuation(text: &str) -> &str {
    const AROUND: &[char] = &[' ', '"', '\'', '`', '(', ')', '[', ']', '<', '>', '*'];
    let begun = text.trim_start_matches(AROUND);
    begun.trim_end_matches(|c| AROUND.contains(&c) || ".,;:!?".contains(c))
}

#[cfg(test)]
mod tests;
