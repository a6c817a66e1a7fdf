//! Asks a probe of a prompt exactly as it was sent, and has the answer graded.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::PreparedSession;
use super::meter::Meter;
use super::observe::CallView;
use crate::context::Origin;
use crate::model::{Model, Purpose, Request, Response, Stop};
use crate::probe::judge::sentinel;
use crate::probe::judge::{self, Judge, Judging};
use crate::probe::{Grader, Item, OTHER_ORDER, Probe, ProbeKind, Unscored, Verdict};
use crate::record::{AnswerRecord, ProbeRecord, SentinelRecord};
use crate::session::{ContentBlock, Message, Role, ToolSchema};
use crate::step::{Caller, drive};

/// Who judges answers: one model, or several that vote.
#[derive(Debug, Clone)]
pub struct Panel {
    /// The judges.
    pub judges: Vec<Arc<dyn Model>>,
    /// Which answers they are shown.
    pub judging: Judging,
}

/// What was answered to one item: the answer that counts, and those that are asked beside it.
#[derive(Debug)]
pub(super) struct ItemAnswers {
    scored: AnswerRecord,
    qualifying: Option<AnswerRecord>,
    from_summary: Option<AnswerRecord>,
}

/// Everything that asking a probe needs.
pub(super) struct Questioner<'a, 'm> {
    pub(super) view: CallView<'a>,
    pub(super) prepared: &'a PreparedSession,
    pub(super) panel: Option<&'a Panel>,
    /// Whether the prompt is that of the reference or the floor.
    pub(super) is_anchor: bool,
    pub(super) meter: &'a mut Meter<'m>,
}

impl Questioner<'_, '_> {
    /// Asks `probe` of the prompt in `view`, and beside it what `asking` says. The context is not
    /// changed; nothing is billed to the strategy.
    pub(super) fn ask(&mut self, probe: &Probe) -> ItemAnswers {
        let scored = self.put(probe, self.requests(probe));
        let is_model = self.meter.has_model_reader();
        let qualifying =
            (is_model && self.prepared.asking.qualifies && self.is_anchor).then(|| {
                let mut requests = self.requests(probe);
                for request in &mut requests {
                    request.purpose = Purpose::Qualification;
                }
                self.put(probe, requests)
            });
        let from_summary = (is_model && self.prepared.asking.summaries && !self.is_anchor)
            .then(|| self.summaries_about(probe))
            .flatten()
            .map(|summaries| self.put(probe, judge::questions(None, &[summaries], probe)));
        ItemAnswers {
            scored,
            qualifying,
            from_summary,
        }
    }

    /// The prompt exactly as it was sent, with the question at its end.
    fn requests(&self, probe: &Probe) -> Vec<Request> {
        let view = &self.view;
        let entries = view.context.entries().iter();
        let messages: Vec<_> = entries.map(|entry| entry.message.clone()).collect();
        let mut requests = judge::questions(view.session.system(), &messages, probe);
        if self.meter.has_model_reader() {
            // The prompt exactly as it was sent has its tools.
            let tools: Arc<[ToolSchema]> = view.session.tools().into();
            for request in &mut requests {
                request.tools = tools.clone();
            }
        }
        requests
    }

    /// All texts in the prompt that were written in place of messages, as one message of the user's;
    /// nothing where none of them stands for a message of the evidence. What was never said can be
    /// asked of any summary.
    fn summaries_about(&self, probe: &Probe) -> Option<Arc<Message>> {
        let evidence = probe.evidence_before(self.view.before);
        let mut is_about = probe.kind == ProbeKind::Decoy;
        let mut texts = Vec::new();
        for entry in self.view.context.entries() {
            if let Origin::Derived(ranges) = &entry.origin {
                let covers = |at: &usize| ranges.iter().any(|range| range.contains(at));
                is_about |= evidence.iter().any(covers);
                let written = entry.message.model_text().iter().cloned();
                texts.extend(written.map(ContentBlock::Text));
            }
        }
        (is_about && !texts.is_empty()).then(|| Arc::new(Message::new(Role::User, texts)))
    }

    /// Sends the requests of one probe, and has the answer graded. Judges are asked where the rules do
    /// not suffice, or always.
    fn put(&mut self, probe: &Probe, requests: Vec<Request>) -> AnswerRecord {
        let meter = &mut *self.meter;
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
        let before = self.view.before;
        let typed = drive(
            self.prepared.watched.rules().grade(probe, before, text),
            meter,
        );
        let is_open = matches!(
            typed,
            Verdict::Unscored {
                reason: Unscored::NeedsJudge
            }
        );
        let verdicts = self
            .panel
            .filter(|panel| is_open || (panel.judging == Judging::All && !is_choice))
            .map(|panel| judged(panel, probe, before, text, meter))
            .unwrap_or_default();
        let aside = meter.take_aside();
        AnswerRecord {
            text: Some(text.to_owned()),
            typed,
            judged: judge::vote(&verdicts),
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
}

/// Puts the answers of a reader into the records of the items they answer.
pub(super) fn attach(
    records: &mut [ProbeRecord],
    probes: &[Probe],
    answers: impl IntoIterator<Item = (Item, ItemAnswers)>,
) {
    let mut by_item: BTreeMap<(usize, &str), ItemAnswers> = answers
        .into_iter()
        .filter_map(|(item, answers)| {
            let probe = probes.get(item.probe)?;
            Some(((item.call, probe.id.as_str()), answers))
        })
        .collect();
    for record in records {
        if let Some(answers) = by_item.remove(&(record.call, record.probe.as_str())) {
            record.answer = Some(answers.scored);
            record.qualifying = answers.qualifying;
            record.from_summary = answers.from_summary;
        }
    }
}

/// Nobody can grade what was not answered.
fn unanswered(reason: Unscored, meter: &mut Meter<'_>) -> AnswerRecord {
    let aside = meter.take_aside();
    AnswerRecord {
        text: None,
        typed: Verdict::Unscored { reason },
        judged: None,
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
