//! Asks a probe of a prompt exactly as it was sent, and has the answer graded.

use std::sync::Arc;

use super::Models;
use super::meter::Meter;
use super::observe::CallView;
use crate::model::{Model, Response, Stop};
use crate::probe::grade::Rules;
use crate::probe::judge::sentinel;
use crate::probe::judge::{self, Judge, Judging};
use crate::probe::{Grader, OTHER_ORDER, Probe, Unscored, Verdict};
use crate::record::{AnswerRecord, SentinelRecord};
use crate::session::ToolSchema;
use crate::step::{Caller, drive};

/// How often the same is asked, to tell noise from loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// How often a reader answers each probe.
    pub answers: u32,
    /// How often each judge grades an answer.
    pub judgements: u32,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            answers: 1,
            judgements: 1,
        }
    }
}

/// Who judges answers: one model, or several that vote.
#[derive(Debug, Clone)]
pub struct Panel {
    /// The judges.
    pub judges: Vec<Arc<dyn Model>>,
    /// Which answers they are shown.
    pub judging: Judging,
}

/// Asks `probe` of the prompt in `view`, as often as it is to be asked.
pub(super) fn ask(
    view: &CallView<'_>,
    probe: &Probe,
    rules: &Rules,
    models: &Models,
    meter: &mut Meter<'_>,
) -> Vec<AnswerRecord> {
    (0..models.times.answers.max(1))
        .map(|turn| {
            meter.answer_again(turn);
            ask_once(view, probe, rules, models, meter)
        })
        .collect()
}

/// Asks `probe` of the prompt in `view`. The context is not changed; nothing is billed to the
/// strategy. Judges are asked where the rules do not suffice, or always.
fn ask_once(
    view: &CallView<'_>,
    probe: &Probe,
    rules: &Rules,
    models: &Models,
    meter: &mut Meter<'_>,
) -> AnswerRecord {
    let entries = view.context.entries().iter();
    let messages: Vec<_> = entries.map(|entry| entry.message.clone()).collect();
    let mut requests = judge::questions(view.session.system(), &messages, probe);
    if meter.has_model_reader() {
        // The prompt exactly as it was sent has its tools.
        let tools: Arc<[ToolSchema]> = view.session.tools().into();
        for request in &mut requests {
            request.tools = tools.clone();
        }
    }
    // One question per prompt, both orders of a choice included.
    let mut texts = Vec::with_capacity(requests.len());
    for request in requests {
        match meter.call(vec![request]).pop() {
            Some(Ok(Response {
                stop: Stop::Refusal | Stop::ContentFilter,
                ..
            })) => return unanswered(Unscored::Refused, meter),
            Some(Ok(response)) => texts.push(response.text),
            Some(Err(_)) | None => return unanswered(Unscored::NoAnswer, meter),
        }
    }
    let is_choice = texts.len() > 1;
    let text = &*texts.join(OTHER_ORDER);
    let typed = drive(rules.grade(probe, view.before, text), meter);
    let is_open = matches!(
        typed,
        Verdict::Unscored {
            reason: Unscored::NeedsJudge
        }
    );
    let panel = models
        .judge
        .as_ref()
        .filter(|panel| is_open || (panel.judging == Judging::All && !is_choice));
    let mut graded = Vec::new();
    if let Some(panel) = panel {
        for turn in 0..models.times.judgements.max(1) {
            meter.judge_again(turn);
            graded.push(judged(panel, probe, view.before, text, meter));
        }
        meter.judge_again(0);
    }
    let mut votes = graded.iter().filter_map(|verdicts| judge::vote(verdicts));
    let judged = votes.next();
    let rejudged = votes.collect();
    let verdicts = graded.into_iter().next().unwrap_or_default();
    let aside = meter.take_aside();
    AnswerRecord {
        text: Some(text.to_owned()),
        typed,
        judged,
        rejudged,
        panel: if verdicts.len() > 1 {
            verdicts
        } else {
            Vec::new()
        },
        usage: aside.reader,
        judge_usage: aside.judge,
        calls: aside.calls,
    }
}

/// Nobody can grade what was not answered.
fn unanswered(reason: Unscored, meter: &mut Meter<'_>) -> AnswerRecord {
    let aside = meter.take_aside();
    AnswerRecord {
        text: None,
        typed: Verdict::Unscored { reason },
        judged: None,
        rejudged: Vec::new(),
        panel: Vec::new(),
        usage: aside.reader,
        judge_usage: aside.judge,
        calls: aside.calls,
    }
}

/// What each judge of the panel makes of an answer.
fn judged(
    panel: &Panel,
    probe: &Probe,
    before: usize,
    answer: &str,
    meter: &mut Meter<'_>,
) -> Vec<Verdict> {
    (0..panel.judges.len())
        .map(|at| {
            meter.turn_to(at);
            drive(Judge.grade(probe, before, answer), meter)
        })
        .collect()
}

/// Puts the answers whose verdict is known to each judge.
pub(super) fn sentinels(panel: &Panel, meter: &mut Meter<'_>) -> Vec<SentinelRecord> {
    meter.take_aside();
    let mut records = Vec::new();
    for (at, judge) in panel.judges.iter().enumerate() {
        meter.turn_to(at);
        for sentinel in sentinel::sentinels() {
            let verdict = drive(Judge.grade(&sentinel.probe, 0, sentinel.answer), meter);
            let aside = meter.take_aside();
            records.push(SentinelRecord {
                judge: judge.name().to_owned(),
                name: sentinel.name.to_owned(),
                is_right: sentinel.is_right,
                verdict,
                usage: aside.judge,
                calls: aside.calls,
            });
        }
    }
    records
}
