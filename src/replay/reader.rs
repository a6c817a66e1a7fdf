//! Asks a probe of a prompt exactly as it was sent, and has the answer graded.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::meter::Meter;
use super::observe::CallView;
use super::{Fitness, PreparedSession, ceiling};
use crate::context::Origin;
use crate::model::{CallFailure, Model, Purpose, Request, Response, Stop};
use crate::probe::judge::sentinel;
use crate::probe::judge::{self, Judge, Judging};
use crate::probe::{Item, OTHER_ORDER, Probe, Unscored, Verdict};
use crate::record::{AnswerRecord, Arm, ProbeRecord, SentinelRecord};
use crate::session::{ContentBlock, Message, Role, ToolSchema};
use crate::step::{Caller, drive};
use crate::units::Tokens;

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
    /// What they made of the answers whose verdict is known.
    pub fitness: Fitness,
}

/// What was answered to one item: the answer that counts, and those that are asked beside it.
#[derive(Debug)]
pub(super) struct ItemAnswers {
    /// One, or as many as are asked for, to tell noise from loss.
    scored: Vec<AnswerRecord>,
    qualifying: Option<AnswerRecord>,
    from_summary: Option<AnswerRecord>,
    /// Whether the prompt was the evidence and the newest history, in place of all of it.
    of_evidence: bool,
}

/// What an item is asked of.
enum Shown {
    /// The prompt exactly as it was sent.
    Prompt(Vec<Arc<Message>>),
    /// The evidence and the newest history that fits.
    Evidence(Vec<Arc<Message>>),
    /// Nothing: not even the evidence fits.
    Nothing,
}

/// Everything that asking a probe needs.
pub(super) struct Questioner<'a, 'm> {
    pub(super) view: CallView<'a>,
    pub(super) prepared: &'a PreparedSession,
    pub(super) panel: Option<&'a Panel>,
    pub(super) times: Times,
    /// Whose prompt it is.
    pub(super) arm: Arm,
    pub(super) meter: &'a mut Meter<'m>,
}

impl Questioner<'_, '_> {
    /// Asks `probe` of the prompt in `view`, and beside it what `asking` says. The context is not
    /// changed; nothing is billed to the strategy.
    pub(super) fn ask(&mut self, probe: &Probe) -> ItemAnswers {
        let is_model = self.meter.has_model_reader();
        let is_anchor = self.arm != Arm::Strategy;
        let shown = self.shown(probe);
        let (messages, of_evidence) = match shown {
            Shown::Prompt(messages) => (messages, false),
            Shown::Evidence(messages) => (messages, true),
            Shown::Nothing => return self.too_long(),
        };
        let scored = (0..self.times.answers.max(1))
            .map(|turn| {
                self.meter.answer_again(turn);
                self.put(probe, self.requests(probe, &messages))
            })
            .collect();
        self.meter.answer_again(0);
        let qualifying = (is_model && self.prepared.asking.qualifies && is_anchor).then(|| {
            let mut requests = self.requests(probe, &messages);
            for request in &mut requests {
                request.purpose = Purpose::Qualification;
            }
            self.put(probe, requests)
        });
        let from_summary = (is_model && self.prepared.asking.summaries && !is_anchor)
            .then(|| self.summaries_about(probe))
            .flatten()
            .map(|summaries| self.put(probe, judge::questions(None, &[summaries], probe)));
        ItemAnswers {
            scored,
            qualifying,
            from_summary,
            of_evidence,
        }
    }

    /// What the item is asked of: the prompt as it was sent, unless it is full history and does not
    /// fit the window of a reader that is a model.
    fn shown(&self, probe: &Probe) -> Shown {
        let view = &self.view;
        let entries = view.context.entries();
        let whole = || {
            let messages = entries.iter().map(|entry| entry.message.clone());
            Shown::Prompt(messages.collect())
        };
        let window = self.prepared.asking.window;
        let Some(window) = window.filter(|_| self.arm == Arm::Reference) else {
            return whole();
        };
        if !self.meter.has_model_reader() {
            return whole();
        }
        let counts = &self.prepared.counts;
        let evidence = probe.evidence_before(view.before);
        let taken = view.fixed.tokens + judge::MAX_ANSWER + ceiling::question(probe, counts);
        let room = Tokens(window.0.saturating_sub(taken.0));
        if view.context.size().tokens <= room {
            return whole();
        }
        ceiling::of_evidence(entries, &evidence, room, counts)
            .map_or(Shown::Nothing, Shown::Evidence)
    }

    /// An item that nobody could be asked.
    fn too_long(&mut self) -> ItemAnswers {
        ItemAnswers {
            scored: vec![unanswered(Unscored::TooLong, self.meter)],
            qualifying: None,
            from_summary: None,
            of_evidence: true,
        }
    }

    /// The messages, with the question at their end.
    fn requests(&self, probe: &Probe, messages: &[Arc<Message>]) -> Vec<Request> {
        let view = &self.view;
        let mut requests = judge::questions(view.session.system(), messages, probe);
        if self.meter.has_model_reader() {
            // The prompt exactly as it was sent has its tools.
            let tools: Arc<[ToolSchema]> = view.session.tools().into();
            for request in &mut requests {
                request.tools = Some(tools.clone());
            }
        }
        requests
    }

    /// All texts in the prompt that were written in place of messages, as one message of the user's;
    /// nothing where none of them stands for a message of the evidence. What was never said can be
    /// asked of any summary.
    fn summaries_about(&self, probe: &Probe) -> Option<Arc<Message>> {
        let evidence = probe.evidence_before(self.view.before);
        let mut is_about = probe.kind.is_never_said();
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
                Some(Err(CallFailure::Overflow)) => return unanswered(Unscored::TooLong, meter),
                Some(Err(_)) | None => return unanswered(Unscored::NoAnswer, meter),
            }
        }
        let text = &*texts.join(OTHER_ORDER);
        let before = self.view.before;
        let rules = self.prepared.watched.rules();
        let typed = if meter.has_model_reader() {
            rules.verdict(probe, before, text)
        } else {
            rules.verdict_of_copied(probe, before, text)
        };
        let is_open = matches!(
            typed,
            Verdict::Unscored {
                reason: Unscored::NeedsJudge
            }
        );
        let panel = self
            .panel
            .filter(|panel| is_open || panel.judging == Judging::All);
        let mut graded = Vec::new();
        if let Some(panel) = panel {
            for turn in 0..self.times.judgements.max(1) {
                meter.judge_again(turn);
                let judge = Judge {
                    probes: self.prepared.watched.probes(),
                };
                graded.push(judged(panel, judge, (probe, before), text, meter));
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
            let mut scored = answers.scored.into_iter();
            record.answer = scored.next();
            record.more = scored.collect();
            record.qualifying = answers.qualifying;
            record.from_summary = answers.from_summary;
            record.of_evidence = answers.of_evidence;
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
    judge: Judge<'_>,
    (probe, before): (&Probe, usize),
    answer: &str,
    meter: &mut Meter<'_>,
) -> Vec<Verdict> {
    let models = panel.judges.iter().enumerate();
    models
        .map(|(at, model)| {
            let met = panel.fitness.of(&**model, meter.counts());
            if met.is_some_and(|met| met.is_unfit) {
                let reason = Unscored::JudgeUnfit;
                return Verdict::Unscored { reason };
            }
            meter.turn_to(at);
            drive(judge.grade(probe, before, answer), meter)
        })
        .collect()
}

/// What each judge made of the answers whose verdict is known.
pub(super) fn sentinels(panel: &Panel, meter: &mut Meter<'_>) -> Vec<SentinelRecord> {
    meter.take_aside();
    let mut records = Vec::new();
    if meter.is_unanswered() {
        return records;
    }
    for (at, judge) in panel.judges.iter().enumerate() {
        if let Some(met) = panel.fitness.of(&**judge, meter.counts()) {
            records.extend(met.records.iter().cloned());
            meter.lose(panel.fitness.take_lost());
            continue;
        }
        // It could not be asked: that is for the meter to see, and leaves the cell without a record.
        meter.turn_to(at);
        let first = sentinel::sentinels().into_iter().next();
        meter.call(first.iter().map(sentinel::Sentinel::request).collect());
    }
    records
}
