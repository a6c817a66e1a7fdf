//! Asks probes of a prompt exactly as it was sent, all at once, and has the answers graded.

use std::ops::Range;
use std::sync::Arc;

use super::meter::{EvaluatorRequest, Meter, RequestBill};
use super::observe::CallView;
use super::{Fitness, KnownAnswerResults, MissedAnswer, PreparedSession, ceiling};
use crate::context::Origin;
use crate::model::{CallFailure, Model, Purpose, Request, Response, Stop};
use crate::probe::ProbeExt as _;
use crate::probe::judge::{self, Judge, JudgeTask, Judging};
use crate::probe::{GradeVerdict, OTHER_ORDER, Outcome, Probe, Unscored};
use crate::record::{AnswerRecord, Arm, Fate, ProbeRecord, SentinelRecord};
use crate::session::{ContentBlock, Message, Role, ToolSchema};
use crate::step::{CallResult, Step, drive_all};
use crate::units::Usage;

/// How often a question is repeated, to distinguish noise from loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repetitions {
    /// How often a reader answers each probe.
    pub answers: u32,
    /// How often each judge grades an answer.
    pub judgements: u32,
}

impl Default for Repetitions {
    fn default() -> Self {
        Self { answers: 1, judgements: 1 }
    }
}

/// The models that judge answers: one, or several that vote.
#[derive(Debug, Clone)]
pub struct Judges {
    /// The judges.
    pub models: Vec<Arc<dyn Model>>,
    /// Which answers they are shown.
    pub judging: Judging,
    /// Their verdicts on the known answers.
    pub fitness: Fitness,
}

impl Judges {
    /// The results of each judge on the known answers. One that could not be asked has none, which leaves the cell without
    /// a record.
    fn on_known_answers(&self, meter: &mut Meter<'_>) -> Vec<Arc<KnownAnswerResults>> {
        let mut known = Vec::new();
        for judge in &self.models {
            match self.fitness.of(&**judge, meter.counts) {
                Ok(results) => known.push(results),
                Err(failure) => {
                    let reason = MissedAnswer::of(&**judge, &Err(failure));
                    meter.unanswered = meter.unanswered.take().or(reason);
                }
            }
        }
        known
    }
}

/// Everything that asking a probe needs.
pub(super) struct Questioner<'a, 'm> {
    pub(super) view: CallView<'a>,
    pub(super) prepared: &'a PreparedSession,
    pub(super) judges: Option<&'a Judges>,
    pub(super) times: Repetitions,
    /// Whose prompt it is.
    pub(super) arm: Arm,
    pub(super) meter: &'a mut Meter<'m>,
}

/// One question to a reader, and what its answer is for.
#[derive(Debug)]
pub(super) struct Enquiry {
    /// Index of the item.
    item: usize,
    purpose: AnswerPurpose,
    /// Requests that it is put in: in both orders of a choice.
    requests: usize,
    /// Questions of the same number are put to the same prompt.
    prompt: usize,
}

/// The purpose of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerPurpose {
    /// It counts; of several to the same question, the one of this number.
    Scored(u32),
    Qualifying,
    FromSummary,
}

/// The prompt as it was sent.
const WHOLE_PROMPT: usize = 0;

/// The summaries in it alone.
const SUMMARIES: usize = 1;

/// The evidence of the first item of the session; the index of an item is added to it.
const EVIDENCE: usize = 2;

/// Questions with their answers.
pub(super) type AnsweredQuestions = Vec<(Enquiry, AnswerRecord)>;

impl<'a> Questioner<'a, '_> {
    /// Asks the items of these numbers of the prompt in `view`, and has the answers graded. Judges are
    /// asked where the rules do not suffice, or always. The context is not changed; nothing is billed
    /// to the strategy.
    pub(super) fn ask(&mut self, items: Range<usize>) -> AnsweredQuestions {
        let mut answers = Vec::new();
        let (mut questions, mut puts) = (Vec::new(), Vec::new());
        // How prompts of evidence begin, and their numbers: where nothing is quoted they are one.
        let mut fronts: Vec<(Arc<Message>, usize)> = Vec::new();
        // Of full history no more is sent than fits.
        let window = self.prepared.asking.window.filter(|_| self.arm == Arm::Reference);
        for item in items {
            let probe = self.probe(item);
            let mut question = Enquiry {
                item,
                purpose: AnswerPurpose::Scored(0),
                requests: 0,
                prompt: EVIDENCE + item,
            };
            let shown = ceiling::shown(&self.view, probe, window, &self.prepared.counts);
            let Some((messages, of_evidence)) = shown else {
                answers.push((question, ungraded(Err((Unscored::TooLong, None)))));
                continue;
            };
            if !of_evidence {
                question.prompt = WHOLE_PROMPT;
            } else if let Some(front) = messages.first() {
                let known = fronts.iter().find(|(known, _)| known == front);
                question.prompt = known.map_or(question.prompt, |(_, prompt)| *prompt);
                fronts.push((front.clone(), question.prompt));
            }
            for purpose in self.purposes() {
                let (requests, prompt) = match purpose {
                    AnswerPurpose::Scored(_) | AnswerPurpose::Qualifying => {
                        (self.requests(probe, &messages), question.prompt)
                    }
                    AnswerPurpose::FromSummary => {
                        let requests = self.summaries_about(probe).into_iter().flat_map(|one| {
                            judge::questions(None, &[one], probe, self.prepared.asking)
                        });
                        (requests.collect(), SUMMARIES)
                    }
                };
                let turn = match purpose {
                    AnswerPurpose::Scored(turn) => turn,
                    AnswerPurpose::Qualifying | AnswerPurpose::FromSummary => 0,
                };
                if requests.is_empty() {
                    continue;
                }
                questions.push(Enquiry { purpose, requests: requests.len(), prompt, ..question });
                puts.extend(requests.into_iter().map(|mut request| {
                    if purpose == AnswerPurpose::Qualifying {
                        request.purpose = Purpose::Qualification;
                    }
                    EvaluatorRequest { request, prompt, judge: 0, turn }
                }));
            }
        }
        answers.extend(self.put(questions, &puts));
        self.judge(&mut answers);
        answers
    }

    fn probe(&self, item: usize) -> &'a Probe {
        let watched = &self.prepared.watched;
        &watched.probes()[watched.items()[item].probe]
    }

    /// The purposes for which each item is asked.
    fn purposes(&self) -> Vec<AnswerPurpose> {
        let anchor = self.arm != Arm::Strategy;
        let asking = &self.prepared.asking;
        let scored = (0..self.times.answers.max(1)).map(AnswerPurpose::Scored);
        let qualifying = (asking.qualifies && anchor).then_some(AnswerPurpose::Qualifying);
        let of_summary = (asking.summaries && !anchor).then_some(AnswerPurpose::FromSummary);
        scored.chain(qualifying).chain(of_summary).collect()
    }

    /// The messages, with the question at their end.
    fn requests(&self, probe: &Probe, messages: &[Arc<Message>]) -> Vec<Request> {
        let view = &self.view;
        let asking = self.prepared.asking;
        let mut requests = judge::questions(view.session.system(), messages, probe, asking);
        if asking.omits_tools {
            return requests;
        }
        // The prompt exactly as it was sent has its tools.
        let tools: Arc<[ToolSchema]> = view.session.tools().into();
        for request in &mut requests {
            request.tools = Some(tools.clone());
        }
        requests
    }

    /// All texts in the prompt that were written in place of messages, as one message of the
    /// user's; `None` if none of them represents a message of the evidence. What was never said can
    /// be asked of any summary.
    fn summaries_about(&self, probe: &Probe) -> Option<Arc<Message>> {
        let evidence = probe.evidence_before(self.view.before);
        let mut is_about = probe.kind().is_never_said();
        let mut texts = Vec::new();
        for entry in self.view.context.entries() {
            if let Origin::Derived(ranges) = &entry.origin {
                is_about |=
                    evidence.iter().any(|at: &usize| ranges.iter().any(|range| range.contains(at)));
                let written = entry.message.model_text().iter().cloned();
                texts.extend(written.map(ContentBlock::Text));
            }
        }
        (is_about && !texts.is_empty()).then(|| Arc::new(Message::new(Role::User, texts)))
    }

    /// Sends the requests of all questions, and has the rules grade the answers.
    fn put(&mut self, questions: Vec<Enquiry>, puts: &[EvaluatorRequest]) -> AnsweredQuestions {
        let before = self.view.before;
        let mut came = self.meter.ask(puts).into_iter();
        let rules = &self.prepared.watched.rules;
        let graded = questions.into_iter().map(|question| {
            let (answers, booked): (Vec<CallResult>, Vec<RequestBill>) =
                came.by_ref().take(question.requests).unzip();
            let mut record = ungraded(text_of(answers));
            if let Some(text) = &record.text {
                let probe = self.probe(question.item);
                record.typed = rules.verdict(probe, before, text);
            }
            record.usage = booked.iter().map(RequestBill::total).sum();
            record.calls = booked.into_iter().filter_map(|bill| bill.kept).collect();
            (question, record)
        });
        graded.collect()
    }

    /// Has the judges grade all answers that need a verdict, at once.
    fn judge(&mut self, answers: &mut AnsweredQuestions) {
        let Some(judges) = self.judges else {
            return;
        };
        let (probes, before) = (self.prepared.watched.probes(), self.view.before);
        let items = self.prepared.watched.items();
        let open = answers.iter_mut().filter(|(_, answer)| is_judged(answer, judges));
        let asked = open.map(|(question, answer)| AskedVerdict {
            probe: &probes[items[question.item].probe],
            before,
            answer,
        });
        verdicts(judges, probes, self.times, self.meter, asked.collect());
    }
}

/// Has the judges say of each fact that string matching cannot tell whether the prompt still says it. What they say is
/// right is kept; else it is changed, or lost where a part is missing.
pub(super) fn judge_unsure(
    records: &mut [ProbeRecord],
    prepared: &PreparedSession,
    judges: &Judges,
    times: Repetitions,
    meter: &mut Meter<'_>,
) {
    // It will be no record, and a verdict would be paid for nothing.
    if meter.unanswered.is_some() {
        return;
    }
    let (probes, items) = (prepared.watched.probes(), prepared.watched.items());
    let calls = prepared.session.calls();
    let mut unsure = Vec::new();
    for (record, item) in records.iter_mut().zip(items) {
        let found = &mut record.survival;
        if let (Fate::Unsure, Some(text)) = (found.fate, found.said.clone()) {
            let mut answer = ungraded(Ok(text));
            answer.typed = GradeVerdict::unscored(Unscored::NeedsJudge);
            unsure.push((found, item, answer));
        }
    }
    let asked = unsure.iter_mut().map(|(_, item, answer)| AskedVerdict {
        probe: &probes[item.probe],
        before: calls[item.call],
        answer,
    });
    verdicts(judges, probes, times, meter, asked.collect());
    for (found, _, answer) in unsure {
        if let Some((score, outcome)) = answer.verdict().scored() {
            found.fate = match outcome {
                Outcome::Right => Fate::Kept,
                Outcome::Partial | Outcome::Abstained => Fate::Lost,
                _ => Fate::Changed,
            };
            (found.score, found.most) = (score, None);
        }
        found.judged = Some(Box::new(answer));
    }
}

/// An answer whose text judges are asked about.
struct AskedVerdict<'a> {
    probe: &'a Probe,
    before: usize,
    answer: &'a mut AnswerRecord,
}

/// Asks the judges about all of these, at once, and enters what they say and what it cost.
fn verdicts(
    judges: &Judges,
    probes: &[Probe],
    times: Repetitions,
    meter: &mut Meter<'_>,
    mut asked: Vec<AskedVerdict<'_>>,
) {
    // In batches the known answers go out with the questions of readers.
    let defers = judges.models.iter().any(|model| model.defers());
    if asked.is_empty() && !defers {
        return;
    }
    let known = judges.on_known_answers(meter);
    // One is asked for no verdict before its task is known.
    if known.len() < judges.models.len() {
        return;
    }
    let tasks: Vec<Option<JudgeTask>> = known.iter().map(|results| results.task).collect();
    let turns = times.judgements.max(1);
    // The text, the judge and the turn of each verdict.
    let mut of: Vec<(usize, usize, u32)> = Vec::new();
    let mut steps = Vec::new();
    let texts = asked.iter().map(|one| one.answer.text.clone().unwrap_or_default());
    let texts: Vec<String> = texts.collect();
    for (at, (one, text)) in asked.iter().zip(&texts).enumerate() {
        for turn in 0..turns {
            for (number, task) in tasks.iter().enumerate() {
                of.push((at, number, turn));
                // No verdict is paid for that would not count.
                steps.push(match *task {
                    None => Step::Done(GradeVerdict::unscored(Unscored::JudgeUnfit)),
                    Some(task) => Judge { probes, task }.grade(one.probe, one.before, text),
                });
            }
        }
    }
    let graded = drive_all(steps, |requests| {
        let numbers: Vec<usize> = requests.iter().map(|(step, _)| *step).collect();
        let puts = requests.into_iter().map(|(step, request)| {
            let (_, judge, turn) = of[step];
            // No two verdicts share more than the instructions.
            EvaluatorRequest { request, prompt: step, judge, turn }
        });
        let answered = meter.ask(&puts.collect::<Vec<_>>());
        let answers = numbers.into_iter().zip(answered).map(|(step, (answer, cost))| {
            let judged = &mut *asked[of[step].0].answer;
            judged.judge_usage += cost.total();
            judged.calls.extend(cost.kept);
            answer
        });
        answers.collect()
    });
    let panel = tasks.len().max(1);
    let of_texts = graded.chunks(panel * turns as usize);
    for (one, verdicts) in asked.iter_mut().zip(of_texts) {
        let mut votes = verdicts.chunks(panel).filter_map(judge::vote);
        one.answer.judged = votes.next();
        one.answer.rejudged = votes.collect();
        let first = verdicts.chunks(panel).next().filter(|_| panel > 1);
        one.answer.panel = first.map_or_else(Vec::new, <[GradeVerdict]>::to_vec);
    }
}

/// Whether these judges grade an answer.
fn is_judged(answer: &AnswerRecord, judges: &Judges) -> bool {
    let open = answer.typed == GradeVerdict::unscored(Unscored::NeedsJudge);
    answer.text.is_some() && (open || judges.judging == Judging::All)
}

/// The answer to a question that was put once, or in both orders.
fn text_of(answers: Vec<CallResult>) -> Result<String, (Unscored, Option<String>)> {
    let mut texts = Vec::with_capacity(answers.len());
    for answer in answers {
        match answer {
            Ok(Response { stop: Stop::Refusal | Stop::ContentFilter, .. }) => {
                return Err((Unscored::Refused, None));
            }
            Ok(response) => texts.push(response.text),
            Err(CallFailure::Overflow) => return Err((Unscored::TooLong, None)),
            Err(CallFailure::Rejected(why)) => return Err((Unscored::Rejected, Some(why))),
            Err(_) => return Err((Unscored::NoAnswer, None)),
        }
    }
    Ok(texts.join(OTHER_ORDER))
}

/// Puts the answers of a reader into the records of the items they answer.
pub(super) fn attach(records: &mut [ProbeRecord], answers: AnsweredQuestions) {
    for (question, answer) in answers {
        let Some(record) = records.get_mut(question.item) else {
            continue;
        };
        record.of_evidence |= question.prompt >= EVIDENCE;
        match question.purpose {
            AnswerPurpose::Scored(0) => record.answer = Some(answer),
            AnswerPurpose::Scored(_) => record.more.push(answer),
            AnswerPurpose::Qualifying => record.qualifying = Some(answer),
            AnswerPurpose::FromSummary => record.from_summary = Some(answer),
        }
    }
}

/// An answer before it is graded, or why there is none.
fn ungraded(text: Result<String, (Unscored, Option<String>)>) -> AnswerRecord {
    let (text, reason, refusal) = match text {
        Ok(text) => (Some(text), Unscored::NoAnswer, None),
        Err((reason, refusal)) => (None, reason, refusal),
    };
    AnswerRecord {
        typed: GradeVerdict::unscored(reason),
        refusal,
        text,
        judged: None,
        rejudged: Vec::new(),
        panel: Vec::new(),
        usage: Usage::default(),
        judge_usage: Usage::default(),
        calls: Vec::new(),
    }
}

/// Each judge's verdicts on the known answers.
pub(super) fn known_answers(judges: &Judges, meter: &mut Meter<'_>) -> Vec<SentinelRecord> {
    if meter.unanswered.is_some() {
        return Vec::new();
    }
    let known = judges.on_known_answers(meter);
    if known.len() == judges.models.len() {
        meter.lost.extend(judges.fitness.take_lost());
    }
    known.iter().flat_map(|results| results.records.clone()).collect()
}
