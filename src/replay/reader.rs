//! Asks probes of a prompt exactly as it was sent, all at once, and has the answers graded.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::meter::{Aside, Meter, Put};
use super::observe::CallView;
use super::{Fitness, PreparedSession, ceiling};
use crate::context::Origin;
use crate::model::{CallFailure, Model, Purpose, Request, Response, Stop};
use crate::probe::judge::sentinel;
use crate::probe::judge::{self, Judge, Judging};
use crate::probe::{Item, OTHER_ORDER, Probe, Unscored, Verdict};
use crate::record::{AnswerRecord, Arm, ProbeRecord, SentinelRecord};
use crate::session::{ContentBlock, Message, Role, ToolSchema};
use crate::step::{Answer, drive_all};
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
#[derive(Debug, Default)]
pub(super) struct ItemAnswers {
    /// One, or as many as are asked for, to tell noise from loss.
    scored: Vec<AnswerRecord>,
    qualifying: Option<AnswerRecord>,
    from_summary: Option<AnswerRecord>,
    /// Whether the prompt was the evidence and the newest history, in place of all of it.
    of_evidence: bool,
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

/// An answer that is wanted: the requests of one question, and what the answer is for.
struct Wanted<'a> {
    /// Index of the item.
    item: usize,
    probe: &'a Probe,
    purpose: Use,
    requests: Vec<Request>,
    /// Questions of the same number are put to the same prompt.
    prompt: usize,
}

/// What an answer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It counts; of several to the same question, the one of this number.
    Scored(u32),
    Qualifying,
    FromSummary,
}

/// The prompt as it was sent.
const WHOLE_PROMPT: usize = 0;

/// The summaries in it alone.
const SUMMARIES: usize = 1;

/// The evidence of the first item; of the others, so many more.
const EVIDENCE: usize = 2;

impl<'a> Questioner<'a, '_> {
    /// Asks all `items` of the prompt in `view`, and beside them what `asking` says. The context is not
    /// changed; nothing is billed to the strategy.
    pub(super) fn ask(&mut self, items: &[Item]) -> Vec<(Item, ItemAnswers)> {
        let mut answers: Vec<ItemAnswers> = Vec::with_capacity(items.len());
        let mut wanted = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let probe = &self.prepared.watched.probes()[item.probe];
            let Some((messages, of_evidence)) = self.shown(probe) else {
                answers.push(ItemAnswers {
                    scored: vec![unanswered(Unscored::TooLong, Aside::default())],
                    of_evidence: true,
                    ..ItemAnswers::default()
                });
                continue;
            };
            answers.push(ItemAnswers {
                of_evidence,
                ..ItemAnswers::default()
            });
            let prompt = if of_evidence {
                EVIDENCE + at
            } else {
                WHOLE_PROMPT
            };
            self.want(at, probe, &messages, prompt, &mut wanted);
        }
        for (question, record) in self.put(wanted) {
            let of_item = &mut answers[question.item];
            match question.purpose {
                Use::Scored(_) => of_item.scored.push(record),
                Use::Qualifying => of_item.qualifying = Some(record),
                Use::FromSummary => of_item.from_summary = Some(record),
            }
        }
        items.iter().copied().zip(answers).collect()
    }

    /// Everything that is to be asked of one item.
    fn want(
        &self,
        item: usize,
        probe: &'a Probe,
        messages: &[Arc<Message>],
        prompt: usize,
        wanted: &mut Vec<Wanted<'a>>,
    ) {
        let is_model = self.meter.has_model_reader();
        let is_anchor = self.arm != Arm::Strategy;
        let mut want = |purpose, requests, prompt| {
            wanted.push(Wanted {
                item,
                probe,
                purpose,
                requests,
                prompt,
            });
        };
        for turn in 0..self.times.answers.max(1) {
            want(Use::Scored(turn), self.requests(probe, messages), prompt);
        }
        if is_model && self.prepared.asking.qualifies && is_anchor {
            let mut requests = self.requests(probe, messages);
            for request in &mut requests {
                request.purpose = Purpose::Qualification;
            }
            want(Use::Qualifying, requests, prompt);
        }
        if is_model && self.prepared.asking.summaries && !is_anchor {
            let summaries = self.summaries_about(probe);
            let requests = summaries.map(|one| judge::questions(None, &[one], probe));
            if let Some(requests) = requests {
                want(Use::FromSummary, requests, SUMMARIES);
            }
        }
    }

    /// The messages that the item is asked of: the prompt as it was sent, unless it is full history and
    /// does not fit the window of a reader that is a model. Then it is the evidence and the newest
    /// history that fits, as the flag says; nothing where not even the evidence fits.
    fn shown(&self, probe: &Probe) -> Option<(Vec<Arc<Message>>, bool)> {
        let view = &self.view;
        let entries = view.context.entries();
        let whole = || {
            let messages = entries.iter().map(|entry| entry.message.clone());
            Some((messages.collect(), false))
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
        let messages = ceiling::of_evidence(entries, &evidence, room, counts)?;
        Some((messages, true))
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
        let mut is_about = probe.kind().is_never_said();
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

    /// Sends the requests of all questions, and has the answers graded. Judges are asked where the rules
    /// do not suffice, or always.
    fn put(&mut self, mut wanted: Vec<Wanted<'a>>) -> Vec<(Wanted<'a>, AnswerRecord)> {
        let before = self.view.before;
        let counts: Vec<usize> = wanted.iter().map(|one| one.requests.len()).collect();
        let mut puts = Vec::with_capacity(counts.iter().sum());
        for question in &mut wanted {
            let turn = match question.purpose {
                Use::Scored(turn) => turn,
                Use::Qualifying | Use::FromSummary => 0,
            };
            // One question per prompt, both orders of a choice included.
            puts.extend(question.requests.drain(..).map(|request| Put {
                request,
                prompt: question.prompt,
                judge: 0,
                turn,
            }));
        }
        let mut came = self.meter.ask(&puts).into_iter();
        let rules = self.prepared.watched.rules();
        let is_model = self.meter.has_model_reader();
        let read: Vec<Read<'a>> = wanted
            .into_iter()
            .zip(counts)
            .map(|(question, count)| {
                let mut cost = Aside::default();
                let answers = came.by_ref().take(count).map(|(answer, own)| {
                    cost.add(own);
                    answer
                });
                let text = text_of(answers.collect());
                let typed = match &text {
                    Ok(text) if is_model => rules.verdict(question.probe, before, text),
                    Ok(text) => rules.verdict_of_copied(question.probe, before, text),
                    Err(reason) => Verdict::Unscored { reason: *reason },
                };
                Read {
                    question,
                    text,
                    typed,
                    cost,
                }
            })
            .collect();
        self.judge(read)
    }

    /// Has the panel judge what is to be judged, all answers at once.
    fn judge(&mut self, mut read: Vec<Read<'a>>) -> Vec<(Wanted<'a>, AnswerRecord)> {
        let before = self.view.before;
        let turns = self.times.judgements.max(1);
        let mut verdicts: Vec<Vec<Vec<Verdict>>> = read.iter().map(|_| Vec::new()).collect();
        let panel = self
            .panel
            .filter(|panel| read.iter().any(|one| one.text_for(panel).is_some()));
        if let Some(panel) = panel {
            let judge = Judge {
                probes: self.prepared.watched.probes(),
            };
            let unfit: Vec<bool> = panel
                .judges
                .iter()
                .map(|model| {
                    let met = panel.fitness.of(&**model, self.meter.counts);
                    met.is_some_and(|met| met.is_unfit)
                })
                .collect();
            let reason = Unscored::JudgeUnfit;
            let mut of: Vec<(usize, usize, u32)> = Vec::new();
            let mut steps = Vec::new();
            for (at, one) in read.iter().enumerate() {
                let Some(text) = one.text_for(panel) else {
                    continue;
                };
                for turn in 0..turns {
                    // No verdict is paid for that would not count.
                    verdicts[at].push(vec![Verdict::Unscored { reason }; unfit.len()]);
                    for (number, _) in unfit.iter().enumerate().filter(|(_, unfit)| !**unfit) {
                        of.push((at, number, turn));
                        steps.push(judge.grade(one.question.probe, before, text));
                    }
                }
            }
            let mut costs: Vec<(usize, Aside)> = Vec::new();
            let graded = drive_all(steps, |requests| {
                let put = |(step, request): (usize, Request)| Put {
                    request,
                    // No two verdicts share more than the instructions.
                    prompt: step,
                    judge: of[step].1,
                    turn: of[step].2,
                };
                let asked: Vec<usize> = requests.iter().map(|(step, _)| of[*step].0).collect();
                let puts: Vec<Put> = requests.into_iter().map(put).collect();
                let came = self.meter.ask(&puts);
                let settle = |(at, (answer, cost))| {
                    costs.push((at, cost));
                    answer
                };
                asked.into_iter().zip(came).map(settle).collect()
            });
            for ((at, number, turn), verdict) in of.into_iter().zip(graded) {
                verdicts[at][turn as usize][number] = verdict;
            }
            for (at, cost) in costs {
                read[at].cost.add(cost);
            }
        }
        let records = read.into_iter().zip(verdicts);
        records
            .map(|(one, verdicts)| one.graded(verdicts))
            .collect()
    }
}

/// A question that was answered, or was not.
struct Read<'a> {
    question: Wanted<'a>,
    text: Result<String, Unscored>,
    /// What the rules say.
    typed: Verdict,
    cost: Aside,
}

impl<'a> Read<'a> {
    /// The answer, if this panel is to judge it.
    fn text_for(&self, panel: &Panel) -> Option<&str> {
        let is_open = matches!(
            self.typed,
            Verdict::Unscored {
                reason: Unscored::NeedsJudge
            }
        );
        let is_judged = is_open || panel.judging == Judging::All;
        self.text.as_deref().ok().filter(|_| is_judged)
    }

    /// The record, with the panel's verdicts, turn by turn.
    fn graded(self, verdicts: Vec<Vec<Verdict>>) -> (Wanted<'a>, AnswerRecord) {
        let text = match self.text {
            Ok(text) => text,
            Err(reason) => return (self.question, unanswered(reason, self.cost)),
        };
        let mut votes = verdicts.iter().filter_map(|one| judge::vote(one));
        let judged = votes.next();
        let rejudged = votes.collect();
        let first = verdicts.into_iter().next().unwrap_or_default();
        let record = AnswerRecord {
            text: Some(text),
            typed: self.typed,
            judged,
            rejudged,
            panel: if first.len() > 1 { first } else { Vec::new() },
            usage: self.cost.reader,
            judge_usage: self.cost.judge,
            calls: self.cost.calls,
        };
        (self.question, record)
    }
}

/// The answer to a question that was put once, or in both orders.
fn text_of(answers: Vec<Answer>) -> Result<String, Unscored> {
    let mut texts = Vec::with_capacity(answers.len());
    for answer in answers {
        match answer {
            Ok(Response {
                stop: Stop::Refusal | Stop::ContentFilter,
                ..
            }) => return Err(Unscored::Refused),
            Ok(response) => texts.push(response.text),
            Err(CallFailure::Overflow) => return Err(Unscored::TooLong),
            Err(_) => return Err(Unscored::NoAnswer),
        }
    }
    Ok(texts.join(OTHER_ORDER))
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
fn unanswered(reason: Unscored, cost: Aside) -> AnswerRecord {
    AnswerRecord {
        text: None,
        typed: Verdict::Unscored { reason },
        judged: None,
        rejudged: Vec::new(),
        panel: Vec::new(),
        usage: cost.reader,
        judge_usage: cost.judge,
        calls: cost.calls,
    }
}

/// What each judge made of the answers whose verdict is known.
pub(super) fn sentinels(panel: &Panel, meter: &mut Meter<'_>) -> Vec<SentinelRecord> {
    let mut records = Vec::new();
    if meter.unanswered.is_some() {
        return records;
    }
    for (at, judge) in panel.judges.iter().enumerate() {
        if let Some(met) = panel.fitness.of(&**judge, meter.counts) {
            records.extend(met.records.iter().cloned());
            meter.lost.extend(panel.fitness.take_lost());
            continue;
        }
        // It could not be asked: that is for the meter to see, and leaves the cell without a record.
        let first = sentinel::sentinels().into_iter().next();
        let puts = first.iter().map(|sentinel| Put {
            request: sentinel.request(),
            prompt: 0,
            judge: at,
            turn: 0,
        });
        meter.ask(&puts.collect::<Vec<_>>());
    }
    records
}
