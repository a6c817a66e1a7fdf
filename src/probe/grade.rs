//! Grades answers by rule: exact values, numbers, sets, the words of a sentence, abstention.

use std::collections::{BTreeMap, BTreeSet};

use super::survival::{PARAPHRASE, canonical_path, content_word_recall, is_flipped};
use super::{Gold, Grader, Outcome, Probe, Unscored, Verdict};
use crate::step::Step;

mod reasoned;

/// Sentences that share less than [`PARAPHRASE`] of a rule's words, but at least this share, are
/// left to a judge. Of COMPINT's 50 labelled summaries none of the 25 that preserve their rule is
/// below it, and 23 of the 25 that lost it are.
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
                Gold::Versions { values, .. } => values.iter().map(|(v, _)| v.as_str()).collect(),
                Gold::Tried { reason, .. } => vec![reason],
                Gold::Choice { .. }
                | Gold::Statement { .. }
                | Gold::Files { .. }
                | Gold::Plan { .. }
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
        let abstains = abstains(answer);
        let (score, outcome) = match &probe.gold {
            Gold::Absent { .. } if abstains => (1.0, Outcome::Right),
            Gold::Absent { .. } => (0.0, Outcome::Invented),
            _ if abstains => (0.0, Outcome::Abstained),
            Gold::Value { value, .. } => self.value(probe, &[value], answer),
            Gold::Versions { unit, .. } => {
                let versions = probe.gold.versions_before(before);
                match unit {
                    Some(unit) => self.number(probe, &versions, unit, answer),
                    None => self.value(probe, &versions, answer),
                }
            }
            Gold::Files { .. } => files(&probe.gold.files_before(before), answer),
            Gold::Plan { .. } => self::items(&probe.gold, before, answer),
            Gold::Tried { reason, .. } => self.tried(probe, reason, answer),
            Gold::Choice {
                choice,
                reason,
                rejected,
                ..
            } => match reasoned::choice(choice, reason, rejected, answer) {
                Some(graded) => graded,
                None => {
                    return Verdict::Unscored {
                        reason: Unscored::NeedsJudge,
                    };
                }
            },
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

    /// Right is the newest number, with its unit or without; an older one is stale. Numbers that
    /// belong to nothing planted (a time, a share) do not matter beside it.
    fn number(&self, probe: &Probe, versions: &[&str], unit: &str, answer: &str) -> (f64, Outcome) {
        let Some((gold, older)) = versions.split_last() else {
            return (0.0, Outcome::Wrong);
        };
        let (mut found, mut others, mut stale, mut misbound) = (false, false, false, false);
        for (number, behind) in reasoned::numbers(&normalise(answer)) {
            if number == *gold {
                let of_another = behind != unit && self.units.contains(&behind);
                found |= !of_another;
                others |= of_another;
            } else if older.contains(&number.as_str()) {
                stale = true;
            } else if let Some(owners) = self.values.get(&number) {
                misbound |= !owners.contains(&probe.id);
                others = true;
            }
        }
        outcome(found, others || stale, missed(stale, misbound))
    }

    /// Right is a yes, said or meant, with the reason.
    fn tried(&self, probe: &Probe, reason: &str, answer: &str) -> (f64, Outcome) {
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
    let answered: BTreeSet<String> = listed(answer, &['\n', ','])
        .map(trim_punctuation)
        .filter(|path| !path.is_empty())
        .map(canonical_path)
        .collect();
    let common = gold.intersection(&answered).count();
    (
        f1(common, gold.len(), answered.len()),
        shares(common, gold.len(), answered.len()),
    )
}

/// Set F1 on items. A list that holds all that is left and something that was done by then is
/// stale: it is the plan as it was.
fn items(gold: &Gold, before: usize, answer: &str) -> (f64, Outcome) {
    let Gold::Plan { items, .. } = gold else {
        return (0.0, Outcome::Wrong);
    };
    let pending = normalised(gold.pending_before(before));
    let all = normalised(items.iter().map(|(item, _)| item.as_str()));
    let answered: BTreeSet<String> = normalised(listed(answer, &['\n']));
    let common = pending.intersection(&answered).count();
    let done = answered.iter().filter(|item| all.contains(*item)).count() - common;
    let score = f1(common, pending.len(), answered.len());
    let outcome = match shares(common, pending.len(), answered.len()) {
        Outcome::Partial | Outcome::Wrong
            if done > 0 && (common == pending.len() || common == 0) =>
        {
            Outcome::Stale
        }
        outcome => outcome,
    };
    (score, outcome)
}

fn normalised<'a>(items: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    let items = items.into_iter().map(normalise);
    items.filter(|item| !item.is_empty()).collect()
}

/// The entries of a list, without bullets, boxes and numbers.
fn listed<'a>(answer: &'a str, between: &'a [char]) -> impl Iterator<Item = &'a str> {
    answer.split(between).map(|line| {
        let line = line.trim().trim_start_matches(['-', '*', '•']).trim();
        let line = line.strip_prefix("[ ]").unwrap_or(line);
        match line.split_once(['.', ')']) {
            Some((number, rest))
                if !number.is_empty()
                    && number.bytes().all(|byte| byte.is_ascii_digit())
                    && rest.starts_with(' ') =>
            {
                rest.trim()
            }
            _ => line.trim(),
        }
    })
}

fn f1(common: usize, gold: usize, answered: usize) -> f64 {
    2.0 * common as f64 / (gold + answered).max(1) as f64
}

fn shares(common: usize, gold: usize, answered: usize) -> Outcome {
    if common == 0 {
        Outcome::Wrong
    } else if common == gold && common == answered {
        Outcome::Right
    } else {
        Outcome::Partial
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
                "g",
                ProbeKind::Update,
                Gold::Versions {
                    key: "signing key".to_owned(),
                    unit: None,
                    values: vec![("k-11".into(), 1), ("k-22".into(), 3), ("k-33".into(), 9)],
                },
            ),
            probe(
                "h",
                ProbeKind::Numeric,
                Gold::Versions {
                    key: "replay suite".to_owned(),
                    unit: Some("cases".to_owned()),
                    values: vec![("7340192".into(), 1), ("7351044".into(), 3)],
                },
            ),
            probe(
                "i",
                ProbeKind::Numeric,
                Gold::Versions {
                    key: "soak run".to_owned(),
                    unit: Some("seconds".to_owned()),
                    values: vec![("5512345".into(), 1)],
                },
            ),
            probe(
                "j",
                ProbeKind::Decision,
                Gold::Choice {
                    key: "wire format".to_owned(),
                    choice: "velmor-tharin".to_owned(),
                    reason: "it halves the traffic of the mirror link".to_owned(),
                    rejected: vec!["zelnim-fyrdos".to_owned(), "lunkep-wixhal".to_owned()],
                },
            ),
            probe(
                "k",
                ProbeKind::RejectedPath,
                Gold::Tried {
                    approach: "a lock per shard".to_owned(),
                    reason: "E-4821937".to_owned(),
                },
            ),
            probe(
                "l",
                ProbeKind::Continuation,
                Gold::Plan {
                    plan: "velmor".to_owned(),
                    items: vec![
                        ("Wire the parser.".into(), Some(2)),
                        ("write the guide".into(), Some(7)),
                        ("drop the shim".into(), None),
                    ],
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
    fn what_was_true_earlier_is_stale_and_what_came_later_does_not_count() {
        use Outcome::{Abstained, Misbound, Partial, Right, Stale, Wrong};
        check("g", "k-22", 1.0, Right);
        check("g", "The key is `K-22`.", 1.0, Right);
        check("g", "k-11", 0.0, Stale);
        check("g", "it was k-11", 0.0, Stale);
        check("g", "k-11, later k-22", 0.0, Partial);
        check("g", "k-33", 0.0, Wrong);
        check("g", "48213", 0.0, Misbound);
        check("g", "unknown", 0.0, Abstained);
        check("h", "7351044 cases", 1.0, Right);
        check("h", "7,351,044", 1.0, Right);
        check("h", "7 351 044 cases in 41.2 s", 1.0, Right);
        check("h", "7340192 cases", 0.0, Stale);
        check("h", "7351044 seconds", 0.0, Wrong);
        check("h", "5512345", 0.0, Misbound);
        check("h", "12 cases", 0.0, Wrong);
        check("l", "- write the guide\n- drop the shim", 1.0, Right);
        check("l", "1. write the guide\n2. drop the shim", 1.0, Right);
        check(
            "l",
            "Wire the parser\nwrite the guide\ndrop the shim",
            0.8,
            Stale,
        );
        check("l", "wire the parser", 0.0, Stale);
        check("l", "drop the shim", 2.0 / 3.0, Partial);
        check("l", "go home", 0.0, Wrong);
    }

    #[test]
    fn a_choice_needs_its_reason_and_a_yes_its_failure() {
        use Outcome::{Misbound, Partial, Right, Wrong};
        check(
            "j",
            "velmor-tharin, because it halves the mirror traffic",
            1.0,
            Right,
        );
        check(
            "j",
            "velmor-tharin over zelnim-fyrdos: halves mirror link traffic",
            1.0,
            Right,
        );
        check("j", "velmor-tharin", 0.5, Partial);
        check(
            "j",
            "lunkep-wixhal halves the traffic of the mirror",
            0.0,
            Wrong,
        );
        check("j", "something else", 0.0, Wrong);
        check("k", "Yes, it failed with E-4821937.", 1.0, Right);
        check("k", "E-4821937", 1.0, Right);
        check("k", "Yes, it was too slow.", 0.0, Partial);
        check("k", "No, E-4821937 is unrelated.", 0.0, Wrong);
        check("k", "Yes: 48213", 0.0, Misbound);
        let probes = probes();
        let decision = probes.iter().find(|probe| probe.id == "j").unwrap();
        let both = "velmor-tharin and zelnim-fyrdos";
        assert_eq!(
            Rules::new(&probes).verdict(decision, 5, both),
            Verdict::Unscored {
                reason: Unscored::NeedsJudge
            }
        );
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
