//! Probe items: what is asked, what became of the value, what was answered and how it was graded.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::KeptCall;
use crate::probe::judge::Brief;
use crate::record::words::{GradeVerdict, Outcome, ProbeKind};
use crate::units::{Tokens, Usage};

/// One probe item.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeRecord {
    /// The probe's id.
    pub probe: String,
    /// The kind of fact it asks about.
    pub kind: ProbeKind,
    /// How much it weighs in the score of its session, from 0 to 3.
    pub weight: u8,
    /// Whether it is asked what the agent would do: any answer is a call then, or none, and so no
    /// claim to know anything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_call: bool,
    /// How far the session was, in percent of its calls.
    pub percent: u8,
    /// The call at which it was asked, or would have been.
    pub call: usize,
    /// The first call whose prompt could hold the answer; `None` for decoys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said_at: Option<usize>,
    /// The result of the evaluator `survival`.
    pub survival: SurvivalRecord,
    /// The reader's answer; `None` after a death.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerRecord>,
    /// Further answers to the same question at the same prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<AnswerRecord>,
    /// The reader's answer in the qualification pass, which is never scored: only on the reference
    /// and the floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qualifying: Option<AnswerRecord>,
    /// The reader's answer from the summaries in the prompt alone; `None` where none of them
    /// replaces the evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_summary: Option<AnswerRecord>,
    /// Whether the reader was shown the evidence and the newest history that fits its window, in place
    /// of the full history, which does not: only on the reference.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_evidence: bool,
}

/// The fate of a planted value, by string matching. It says nothing about answers.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurvivalRecord {
    /// The fate of the value in the whole prompt.
    pub fate: Fate,
    /// From 0 to 1: 1 for `kept`, the share of paths for lists, 0 otherwise: what is shown to be there.
    pub score: f64,
    /// The score if all that string matching cannot tell were kept; `None` where it can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
    /// The place of the best match.
    pub place: Option<PlaceInPrompt>,
    /// The score in the compacted region alone (edited, derived and restored entries), where the
    /// evidence is no longer wholly verbatim; `None` where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted_score: Option<f64>,
    /// Where the value was lost, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_at: Option<LostAt>,
    /// What the prompt says of a fact that is changed or unsure: the sentence, or the older value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// What judges said of it, where string matching could not tell: fate and score are theirs then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Box<AnswerRecord>>,
}

impl SurvivalRecord {
    /// What is said in its place, where it is changed.
    pub fn changed_to(&self) -> Option<&str> {
        self.said.as_deref().filter(|_| self.fate == Fate::Changed)
    }

    /// Where it was lost, and what is said in its place: `call 57 by summarize, changed to "…"`.
    pub fn where_lost(&self) -> Option<String> {
        let lost = self.lost_at.as_ref()?;
        let mut at = format!("call {} by {}", lost.call, lost.stage);
        if let Some(said) = self.changed_to() {
            let _ = write!(at, ", changed to \"{said}\"");
        }
        Some(at)
    }
}

/// The fate of a planted value.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It is in the prompt, bound to its key, and means what it meant.
    Kept,
    /// A part of the list is in the prompt.
    Partial,
    /// Gone, but the context names a place where it can be read again.
    Reachable,
    /// The prompt speaks of it, and string matching cannot tell: a value without its key, old and new values without an
    /// order, a rule without its force.
    Unsure,
    /// Something else is in its place: another or an older value, a weaker rule, one that is taken back.
    Changed,
    /// It is not in the prompt, or the session died before.
    Lost,
}

/// A place in a prompt.
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

impl PlaceInPrompt {
    /// The places, best first: where a value is in several, the first one is reported.
    pub const ALL: [Self; 6] =
        [Self::Pinned, Self::Verbatim, Self::Edited, Self::Derived, Self::Restored, Self::Authored];
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
    /// Whether the summariser had been sent it: then the summary lost it, and else it was gone, or
    /// was left out, before. `None` where no summariser was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_by_summariser: Option<bool>,
}

/// A reader's answer and its grades.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerRecord {
    /// The answer; `None` where the reader failed.
    pub text: Option<String>,
    /// What the provider said, where it refused the question for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The verdict of the rules.
    pub typed: GradeVerdict,
    /// The verdict of the judge, where one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<GradeVerdict>,
    /// The verdict of each judge of a panel, in the order of the scenario; empty for a single
    /// judge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub panel: Vec<GradeVerdict>,
    /// The verdicts of the judges when they were asked again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejudged: Vec<GradeVerdict>,
    /// The reader's usage; it is on no strategy's bill.
    pub usage: Usage,
    /// The judges' usage; it is on no strategy's bill and not part of the reader's.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub judge_usage: Usage,
    /// The answers and verdicts that are kept in a cassette.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<KeptCall>,
}

impl AnswerRecord {
    /// The verdict that counts: the judge's where there is one, else the rules'. A judge that was asked
    /// several times has one in the mean.
    pub fn verdict(&self) -> GradeVerdict {
        together(&self.verdicts()).unwrap_or(self.typed)
    }

    /// Its verdicts, one for each time the judges were asked; without a judge, the verdict of the
    /// rules.
    pub fn verdicts(&self) -> Vec<GradeVerdict> {
        let judged = self.judged.iter().chain(&self.rejudged);
        match self.judged {
            Some(_) => judged.map(|verdict| self.with_its_way(*verdict)).collect(),
            None => vec![self.typed],
        }
    }

    /// A judge says right or wrong. Rules may classify a wrong answer more precisely: an older
    /// value stays stale, and another key's misbound.
    fn with_its_way(&self, judged: GradeVerdict) -> GradeVerdict {
        let score = 0.0;
        match (judged.scored(), self.typed.scored()) {
            (
                Some((_, Outcome::Wrong)),
                Some((_, outcome @ (Outcome::Stale | Outcome::Misbound))),
            ) => GradeVerdict::Scored { score, outcome },
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
        let judged = self.survival.judged.as_deref();
        let beside = self.qualifying.iter().chain(&self.from_summary);
        self.answers().chain(beside).chain(judged)
    }

    /// The common verdict of all answers; `None` where no reader was asked.
    pub fn verdict(&self) -> Option<GradeVerdict> {
        let verdicts: Vec<GradeVerdict> = self.answers().map(AnswerRecord::verdict).collect();
        together(&verdicts)
    }
}

/// Several verdicts as one: the mean of those that scored, with the outcome that most have, the first of
/// these among equals. One that scored nothing has no part in it, unless there is no other.
fn together(verdicts: &[GradeVerdict]) -> Option<GradeVerdict> {
    let scored: Vec<(f64, Outcome)> =
        verdicts.iter().filter_map(|verdict| verdict.scored()).collect();
    // Of several with the same count the last is taken.
    let usual = scored
        .iter()
        .rev()
        .max_by_key(|(_, own)| scored.iter().filter(|(_, other)| other == own).count());
    let Some((_, outcome)) = usual.copied() else {
        return verdicts.first().copied();
    };
    let score = scored.iter().map(|(score, _)| score).sum::<f64>() / scored.len() as f64;
    Some(GradeVerdict::Scored { score, outcome })
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
    /// How the answer is asked for.
    pub form: String,
    /// Earlier right answers, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub older: Vec<String>,
    /// Some values that answer other items of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
}

impl ProbeText {
    /// An item of a session, described by this brief.
    pub fn of(probe: &str, percent: u8, question: &str, brief: Brief) -> Self {
        let other = brief.question != question.trim();
        Self {
            probe: probe.to_owned(),
            percent,
            question: question.to_owned(),
            gold: brief.reference,
            asked: other.then_some(brief.question),
            form: brief.form.unwrap_or_default(),
            older: brief.older,
            others: brief.others,
        }
    }

    /// The item as a judge sees it.
    pub fn brief(&self) -> Brief {
        let question = self.asked.as_deref().unwrap_or(self.question.trim());
        Brief {
            question: question.to_owned(),
            form: Some(self.form.clone()),
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

    fn scored(score: f64, outcome: Outcome) -> GradeVerdict {
        GradeVerdict::Scored { score, outcome }
    }

    #[track_caller]
    fn check(verdicts: &[GradeVerdict], expected: Option<GradeVerdict>) {
        assert_eq!(together(verdicts), expected, "{verdicts:?}");
    }

    #[test]
    fn several_verdicts_are_their_mean_with_the_outcome_that_most_have() {
        let (right, wrong) = (scored(1.0, Outcome::Right), scored(0.0, Outcome::Wrong));
        let stale = scored(0.0, Outcome::Stale);
        let reason = crate::record::words::Unscored::NoAnswer;
        let nothing = GradeVerdict::Unscored { reason };
        check(&[], None);
        check(&[right], Some(right));
        check(&[wrong, right, right, right], Some(scored(0.75, Outcome::Right)));
        check(&[wrong, stale, right, stale], Some(scored(0.25, Outcome::Stale)));
        check(&[right, wrong], Some(scored(0.5, Outcome::Right)));
        // A failure is left out of the mean and does not count as 0.
        check(&[nothing, right], Some(right));
        check(&[nothing, nothing], Some(nothing));
    }

    fn check_judged(judged: Option<GradeVerdict>, typed: Outcome, expected: GradeVerdict) {
        let answer = AnswerRecord {
            refusal: None,
            text: None,
            typed: GradeVerdict::Scored { score: 0.5, outcome: typed },
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
        let silent = GradeVerdict::Unscored { reason: crate::record::words::Unscored::JudgeFailed };
        check_judged(Some(silent), Outcome::Right, silent);
    }
}
