//! Probe items: what is asked, what became of the value, what was answered and how it was graded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::KeptCall;
use crate::probe::judge::Brief;
use crate::probe::{Outcome, ProbeKind, Verdict};
use crate::session::ground_truth::Importance;
use crate::units::{Tokens, Usage};

/// One probe item.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeRecord {
    /// The probe's id.
    pub probe: String,
    /// What it asks about.
    pub kind: ProbeKind,
    /// How much a lost answer matters.
    pub importance: Importance,
    /// Whether it is asked what the agent would do: any answer is a call then, or none, and so no
    /// claim to know anything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_call: bool,
    /// How far the session was, in percent of its calls.
    pub percent: u8,
    /// The call at which it was asked, or would have been.
    pub call: usize,
    /// The first call whose prompt could hold the answer; nothing for decoys, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said_at: Option<usize>,
    /// What the evaluator `survival` found.
    pub survival: SurvivalRecord,
    /// What the reader answered; nothing after a death.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerRecord>,
    /// Further answers to the same question at the same prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<AnswerRecord>,
    /// What it answered in the qualification pass, which is never scored: only on the reference and
    /// the floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qualifying: Option<AnswerRecord>,
    /// What it answered when it saw nothing but the summaries in the prompt; nothing where none of
    /// them stands for the evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_summary: Option<AnswerRecord>,
    /// Whether the reader was shown the evidence and the newest history that fits its window, in place
    /// of the full history, which does not: only on the reference.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_evidence: bool,
}

/// What became of a planted value, by string matching. Never a statement about answers.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurvivalRecord {
    /// What was found in the whole prompt.
    pub fate: Fate,
    /// From 0 to 1: 1 for `survived`, the share of paths for lists, 0 otherwise.
    pub score: f64,
    /// Where the best match stands.
    pub place: Option<PlaceInPrompt>,
    /// The score in the compacted region alone (edited, derived and restored entries), where the
    /// evidence is no longer wholly verbatim; nothing where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted_score: Option<f64>,
    /// Where the value was lost, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_at: Option<LostAt>,
}

/// What became of a planted value.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It stands there, bound to its key.
    Survived,
    /// A list of which a part stands there.
    Partial,
    /// Gone, but the context names a place where it can be read again.
    Reachable,
    /// The value stands there, its key does not.
    Unbound,
    /// The words stand there, with the meaning turned round.
    Distorted,
    /// Only older values stand there.
    Stale,
    /// Old and new stand side by side without order.
    Ambiguous,
    /// It stands nowhere; or the session died before.
    Lost,
}

/// Where in a prompt something stands.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum PlaceInPrompt {
    /// In the system prompt or the tool definitions.
    Pinned,
    /// In a message as it was.
    Verbatim,
    /// In a message of which some blocks were changed.
    Edited,
    /// In a summary or extract.
    Derived,
    /// In something that was put back.
    Restored,
    /// In something the strategy wrote.
    Authored,
}

/// Where a value was lost.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LostAt {
    /// Before or after this call.
    pub call: usize,
    /// The stage that removed its last occurrence; `overflow death` where the session died.
    pub stage: String,
    /// Why it did, in words.
    pub reason: String,
    /// Whether the summariser had been sent it: then the summary lost it, and else it was gone, or was
    /// left out, before. Nothing where no summariser was asked, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_by_summariser: Option<bool>,
}

/// What a reader answered, and how that was graded.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerRecord {
    /// The answer; nothing where the reader failed.
    pub text: Option<String>,
    /// What rules made of it.
    pub typed: Verdict,
    /// What the judge made of it, where one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Verdict>,
    /// What each judge of a panel made of it, in the order of the scenario; nothing where there is
    /// but one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub panel: Vec<Verdict>,
    /// What the judges made of it when they were asked again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejudged: Vec<Verdict>,
    /// What the reader cost; on no strategy's bill.
    pub usage: Usage,
    /// What the judges cost; on no strategy's bill, and not the reader's.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub judge_usage: Usage,
    /// The answers and verdicts that are kept in a cassette.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<KeptCall>,
}

impl AnswerRecord {
    /// The verdict that counts: the judge's where there is one, else the rules'. A judge that was asked
    /// several times has one in the mean.
    pub fn verdict(&self) -> Verdict {
        together(&self.verdicts()).unwrap_or(self.typed)
    }

    /// What it was graded, once for each time the judges were asked; the rules' alone without a judge.
    pub fn verdicts(&self) -> Vec<Verdict> {
        match self.judged {
            Some(first) => [first]
                .into_iter()
                .chain(self.rejudged.iter().copied())
                .map(|judged| self.with_its_way(judged))
                .collect(),
            None => vec![self.typed],
        }
    }

    /// A judge says right or wrong. In which way a wrong answer is wrong, rules may know better: an
    /// older value stays stale, and another key's misbound.
    fn with_its_way(&self, judged: Verdict) -> Verdict {
        match (judged.scored(), self.typed.scored()) {
            (
                Some((_, Outcome::Wrong)),
                Some((_, outcome @ (Outcome::Stale | Outcome::Misbound))),
            ) => Verdict::Scored {
                score: 0.0,
                outcome,
            },
            _ => judged,
        }
    }
}

impl ProbeRecord {
    /// All answers that are scored, the first one first.
    pub fn answers(&self) -> impl Iterator<Item = &AnswerRecord> {
        self.answer.iter().chain(&self.more)
    }

    /// All that was ever answered to it: what is scored, what qualified it, what was read from
    /// summaries.
    pub fn every_answer(&self) -> impl Iterator<Item = &AnswerRecord> {
        let beside = self.qualifying.iter().chain(&self.from_summary);
        self.answers().chain(beside)
    }

    /// What all answers come to; nothing where nobody was asked.
    pub fn verdict(&self) -> Option<Verdict> {
        let verdicts: Vec<Verdict> = self.answers().map(AnswerRecord::verdict).collect();
        together(&verdicts)
    }
}

/// Several verdicts as one: the mean of those that scored, with the outcome that most have, the first of
/// these among equals. One that scored nothing has no part in it, unless there is no other.
fn together(verdicts: &[Verdict]) -> Option<Verdict> {
    let scored = verdicts.iter().filter_map(|verdict| verdict.scored());
    let scored: Vec<(f64, Outcome)> = scored.collect();
    let count = |outcome: Outcome| scored.iter().filter(|(_, other)| *other == outcome).count();
    let most = scored.iter().map(|(_, outcome)| count(*outcome)).max();
    let outcome = scored
        .iter()
        .map(|(_, outcome)| *outcome)
        .find(|outcome| Some(count(*outcome)) == most);
    match outcome {
        Some(outcome) => Some(Verdict::Scored {
            score: scored.iter().map(|(score, _)| score).sum::<f64>() / scored.len() as f64,
            outcome,
        }),
        None => verdicts.first().copied(),
    }
}

/// A question with its answer, as an item of a session is asked it.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeText {
    /// The probe's id.
    pub probe: String,
    /// How far the session was, in percent of its calls.
    pub percent: u8,
    /// The question.
    pub question: String,
    /// The answer at that point, in words.
    pub gold: String,
    /// The question as it is put, where that is another text: a task, or both orders with a line between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// How the answer is asked for; nothing in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    /// What was right earlier, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub older: Vec<String>,
    /// Some values that answer other items of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
}

impl ProbeText {
    /// An item of a session that a judge is told this much of.
    pub fn of(probe: &str, percent: u8, question: &str, brief: Brief) -> Self {
        let is_other = brief.question != question.trim();
        Self {
            probe: probe.to_owned(),
            percent,
            question: question.to_owned(),
            gold: brief.reference,
            asked: is_other.then_some(brief.question),
            form: brief.form,
            older: brief.older,
            others: brief.others,
        }
    }

    /// What a judge is told of the item.
    pub fn brief(&self) -> Brief {
        let question = self.asked.as_deref().unwrap_or(self.question.trim());
        Brief {
            question: question.to_owned(),
            form: self.form.clone(),
            reference: self.gold.clone(),
            older: self.older.clone(),
            others: self.others.clone(),
        }
    }
}

/// A search over what was removed from a prompt, with each question as the query. It says what could
/// be read again, by string matching: nothing about answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoveryRecord {
    /// Snippets that each search brings back, at most.
    pub snippets: usize,
    /// Tokens of a snippet, at most.
    pub snippet_tokens: u64,
    /// The items that did not survive, each with what its search brought back.
    pub items: Vec<RecoveredItem>,
}

/// One item that did not survive.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoveredItem {
    /// The probe's id.
    pub probe: String,
    /// How far the session was, in percent of its calls.
    pub percent: u8,
    /// Whether the snippets hold all of the answer, each value bound to its key.
    pub is_regained: bool,
    /// Tokens of the snippets: what a prompt would have to hold for it.
    pub tokens: Tokens,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(score: f64, outcome: Outcome) -> Verdict {
        Verdict::Scored { score, outcome }
    }

    #[track_caller]
    fn check(verdicts: &[Verdict], expected: Option<Verdict>) {
        assert_eq!(together(verdicts), expected, "{verdicts:?}");
    }

    #[test]
    fn several_verdicts_are_their_mean_with_the_outcome_that_most_have() {
        let (right, wrong) = (scored(1.0, Outcome::Right), scored(0.0, Outcome::Wrong));
        let stale = scored(0.0, Outcome::Stale);
        let reason = crate::probe::Unscored::NoAnswer;
        let nothing = Verdict::Unscored { reason };
        check(&[], None);
        check(&[right], Some(right));
        check(
            &[wrong, right, right, right],
            Some(scored(0.75, Outcome::Right)),
        );
        check(
            &[wrong, stale, right, stale],
            Some(scored(0.25, Outcome::Stale)),
        );
        check(&[right, wrong], Some(scored(0.5, Outcome::Right)));
        // A failure has no part in the mean, and is no zero.
        check(&[nothing, right], Some(right));
        check(&[nothing, nothing], Some(nothing));
    }

    fn check_judged(judged: Option<Verdict>, typed: Outcome, expected: Verdict) {
        let answer = AnswerRecord {
            text: None,
            typed: Verdict::Scored {
                score: 0.5,
                outcome: typed,
            },
            judged,
            rejudged: Vec::new(),
            panel: Vec::new(),
            usage: Usage::default(),
            judge_usage: Usage::default(),
            calls: Vec::new(),
        };
        assert_eq!(answer.verdict(), expected, "{judged:?} {typed:?}");
    }

    #[test]
    fn the_judge_says_whether_and_rules_say_in_which_way() {
        let wrong = Some(scored(0.0, Outcome::Wrong));
        let right = Some(scored(1.0, Outcome::Right));
        check_judged(wrong, Outcome::Stale, scored(0.0, Outcome::Stale));
        check_judged(wrong, Outcome::Misbound, scored(0.0, Outcome::Misbound));
        check_judged(wrong, Outcome::Right, scored(0.0, Outcome::Wrong));
        check_judged(wrong, Outcome::Partial, scored(0.0, Outcome::Wrong));
        check_judged(right, Outcome::Stale, scored(1.0, Outcome::Right));
        check_judged(None, Outcome::Stale, scored(0.5, Outcome::Stale));
        let silent = Verdict::Unscored {
            reason: crate::probe::Unscored::JudgeFailed,
        };
        check_judged(Some(silent), Outcome::Right, silent);
    }
}
