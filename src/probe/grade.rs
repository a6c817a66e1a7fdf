//! Grades answers by rule: exact values, sets of files, the words of a sentence, abstention.

use std::collections::{BTreeMap, BTreeSet};

use super::survival::{PARAPHRASE, canonical_path, content_word_recall, is_flipped};
use super::{Gold, Grader, Outcome, Probe, Unscored, Verdict};
use crate::step::Step;

/// Sentences that share less than [`PARAPHRASE`] of a rule's words, but at least this share, are
/// left to a judge: on COMPINT's labelled summaries the two kinds of error lie on either side.
const DOUBTFUL: f64 = 0.2;

/// What readers write where they do not find an answer, after normalising.
const ABSTENTIONS: &[&str] = &[
    "not in context",
    "not in the context",
    "not in the conversation",
    "not found in the context",
    "not mentioned in the context",
    "not mentioned in the conversation",
    "unknown",
    "n/a",
];

/// Grades by rule, without a model.
#[derive(Debug)]
pub struct Rules {
    /// Normalised value → the probes whose answer it is.
    values: BTreeMap<String, BTreeSet<String>>,
}

impl Rules {
    /// Rules for the probes of one session: an answer that belongs to another of them is told
    /// from one that belongs to none.
    pub fn new(probes: &[Probe]) -> Self {
        let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for probe in probes {
            if let Gold::Value { value, .. } = &probe.gold {
                values
                    .entry(normalise(value))
                    .or_default()
                    .insert(probe.id.clone());
            }
        }
        Self { values }
    }

    /// The verdict on `answer` to `probe` as asked before the message of index `before`.
    pub fn verdict(&self, probe: &Probe, before: usize, answer: &str) -> Verdict {
        if answer.trim().is_empty() {
            return Verdict::Unscored {
                reason: Unscored::NoAnswer,
            };
        }
        let abstains = abstains(answer);
        let (score, outcome) = match &probe.gold {
            Gold::Absent { .. } if abstains => (1.0, Outcome::Right),
            Gold::Absent { .. } => (0.0, Outcome::Invented),
            Gold::Value { .. } | Gold::Files { .. } | Gold::Statement { .. } if abstains => {
                (0.0, Outcome::Abstained)
            }
            Gold::Value { value, .. } => self.value(probe, value, answer),
            Gold::Files { .. } => files(&probe.gold.files_before(before), answer),
            Gold::Statement { statement, .. } => {
                let recall = content_word_recall(statement, answer);
                if recall >= PARAPHRASE && !is_flipped(statement, answer) {
                    (1.0, Outcome::Right)
                } else if (DOUBTFUL..PARAPHRASE).contains(&recall) {
                    return Verdict::Unscored {
                        reason: Unscored::NeedsJudge,
                    };
                } else {
                    (0.0, Outcome::Wrong)
                }
            }
        };
        Verdict::Scored { score, outcome }
    }

    /// Right is the value alone, or a sentence in which no other value stands.
    fn value(&self, probe: &Probe, gold: &str, answer: &str) -> (f64, Outcome) {
        let (gold, answer) = (normalise(gold), normalise(answer));
        if answer == gold {
            return (1.0, Outcome::Right);
        }
        let mut others = false;
        let mut found = false;
        let mut misbound = false;
        for token in answer.split_whitespace().map(trim_punctuation) {
            if token == gold {
                found = true;
            } else if let Some(owners) = self.values.get(token) {
                misbound |= !owners.contains(&probe.id);
                others = true;
            } else if token.contains(|c: char| c.is_ascii_digit()) {
                others = true;
            }
        }
        // A value of several words is no single token.
        found |= gold.contains(' ') && has_phrase(&answer, &gold);
        misbound |= self
            .values
            .get(&answer)
            .is_some_and(|owners| !owners.contains(&probe.id));
        match (found, others, misbound) {
            (true, false, _) => (1.0, Outcome::Right),
            (true, true, _) => (0.0, Outcome::Partial),
            (false, _, true) => (0.0, Outcome::Misbound),
            (false, _, false) => (0.0, Outcome::Wrong),
        }
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

fn has_phrase(text: &str, phrase: &str) -> bool {
    let word = |c: char| c.is_alphanumeric();
    text.match_indices(phrase)
        .any(|(at, _)| !text[..at].ends_with(word) && !text[at + phrase.len()..].starts_with(word))
}

/// Whether the reader says that it does not know: the one place that decides it.
pub fn abstains(answer: &str) -> bool {
    let answer = normalise(answer);
    ABSTENTIONS
        .iter()
        .any(|known| answer == *known || (known.contains(' ') && has_phrase(&answer, known)))
}

/// A value as it is compared.
///
/// Lower case; one space between words; straight quotes and hyphens; `/` for `\`; full-width ASCII
/// as ASCII; no invisible characters; no quotes, brackets or punctuation around it. This stands in
/// for NFKC, which would need Unicode's tables: other compatibility characters stay different.
pub fn normalise(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        let c = match c {
            '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{ad}' => continue,
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xff01 + 0x21).unwrap_or(c),
            '‘' | '’' => '\'',
            '“' | '”' => '"',
            '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
            '\\' => '/',
            c if c.is_whitespace() => ' ',
            c => c,
        };
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

/// Set F1 on canonical paths: `2·|answered ∩ gold| / (|answered| + |gold|)`.
fn files(gold: &[&str], answer: &str) -> (f64, Outcome) {
    let gold: BTreeSet<String> = gold.iter().map(|path| canonical_path(path)).collect();
    let answered: BTreeSet<String> = answer
        .split(['\n', ','])
        .map(|line| line.trim().trim_start_matches(['-', '*', '•']).trim())
        .map(trim_punctuation)
        .filter(|path| !path.is_empty())
        .map(canonical_path)
        .collect();
    let common = gold.intersection(&answered).count();
    if common == 0 {
        return (0.0, Outcome::Wrong);
    }
    let score = 2.0 * common as f64 / (gold.len() + answered.len()) as f64;
    if common == gold.len() && common == answered.len() {
        (1.0, Outcome::Right)
    } else {
        (score, Outcome::Partial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::ProbeKind;
    use crate::session::ground_truth::{ArtifactVerb, Importance};

    fn probe(id: &str, kind: ProbeKind, gold: Gold) -> Probe {
        Probe {
            id: id.to_owned(),
            kind,
            question: String::new(),
            gold,
            evidence: Vec::new(),
            importance: Importance::Normal,
        }
    }

    fn probes() -> Vec<Probe> {
        let value = |key: &str, value: &str| Gold::Value {
            key: key.to_owned(),
            value: value.to_owned(),
        };
        let statement = "Never touch the migrations folder on this branch.".to_owned();
        vec![
            probe("a", ProbeKind::Recall, value("staging port", "48213")),
            probe("b", ProbeKind::Recall, value("billing port", "48214")),
            probe("c", ProbeKind::Recall, value("log", "D:\\Logs\\Today")),
            probe(
                "d",
                ProbeKind::Constraint,
                Gold::Statement {
                    topic: "migrations".to_owned(),
                    statement,
                },
            ),
            probe(
                "e",
                ProbeKind::Artifact,
                Gold::Files {
                    verb: ArtifactVerb::Created,
                    files: vec![("src/a.rs".into(), 1), ("b.rs".into(), 3), ("c".into(), 9)],
                },
            ),
            probe(
                "f",
                ProbeKind::Decoy,
                Gold::Absent {
                    key: "cache port".to_owned(),
                    value: "59999".to_owned(),
                },
            ),
        ]
    }

    fn check(id: &str, answer: &str, score: f64, outcome: Outcome) {
        let probes = probes();
        let probe = probes.iter().find(|probe| probe.id == id).unwrap();
        let Step::Done(verdict) = Rules::new(&probes).grade(probe, 5, answer) else {
            panic!("rules ask nobody");
        };
        let Verdict::Scored {
            score: found,
            outcome: how,
        } = verdict
        else {
            panic!("{id}: {answer}: {verdict:?}");
        };
        assert_eq!(how, outcome, "{id}: {answer}");
        assert!((found - score).abs() < 1e-9, "{id}: {answer}: {found}");
    }

    #[test]
    fn answers_are_graded_by_the_kind_of_probe() {
        use Outcome::{Abstained, Invented, Misbound, Partial, Right, Wrong};
        check("a", "48213", 1.0, Right);
        check("a", " “48213”. ", 1.0, Right);
        check("a", "４８２１３", 1.0, Right);
        check("a", "The port is `48213`.", 1.0, Right);
        check("a", "48213 or 48214", 0.0, Partial);
        check("a", "48214", 0.0, Misbound);
        check("a", "1", 0.0, Wrong);
        check("a", "148213", 0.0, Wrong);
        check("a", "Not in context.", 0.0, Abstained);
        check("c", "d:/logs/today", 1.0, Right);
        check("d", "do not touch migrations on this branch", 1.0, Right);
        check(
            "d",
            "touch the migrations folder on this branch",
            0.0,
            Wrong,
        );
        check("d", "write tests", 0.0, Wrong);
        check("e", "- ./src/a.rs\n- `b.rs`\n", 1.0, Right);
        check("e", "src/a.rs", 2.0 / 3.0, Partial);
        check("e", "src/a.rs, b.rs, x.rs, y.rs", 2.0 / 3.0, Partial);
        check("e", "x.rs", 0.0, Wrong);
        check(
            "f",
            "This is not mentioned in the conversation.",
            1.0,
            Right,
        );
        check("f", "unknown", 1.0, Right);
        check("f", "an unknown port, 59999", 0.0, Invented);
    }

    #[test]
    fn what_rules_cannot_tell_is_not_scored() {
        let probes = probes();
        let rules = Rules::new(&probes);
        let unscored = |reason| Verdict::Unscored { reason };
        assert_eq!(
            rules.verdict(&probes[3], 5, "stay out of that branch"),
            unscored(Unscored::NeedsJudge)
        );
        assert_eq!(
            rules.verdict(&probes[0], 5, " \n"),
            unscored(Unscored::NoAnswer)
        );
    }
}
