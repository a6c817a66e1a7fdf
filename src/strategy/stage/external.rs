//! Lets a program outside Proctor decide.

use std::borrow::Cow;
use std::time::Duration;

use super::prelude::*;
use crate::model::{CallFailure, Response, Stop, Task};
use crate::settings::SettingError;
use crate::step::CallResult;
use crate::strategy::external::protocol::{
    AskLine, EditLine, FromProgram, History, Moment, ToProgram, Turn, WindowLine, Wording,
};
use crate::strategy::external::{
    AnswerReader, Hello, Launch, LoadedFiles, Process, ProgramError, Programs, SentMessages,
    edits_to, message_line, raw,
};
use crate::strategy::history::{SeenHistory, standing};

/// A program that asks a model so often for one answer does not end.
const MOST_ASKS: usize = 100;

/// A program that serves this cell.
#[derive(Debug)]
struct External {
    launch: Launch,
    programs: Programs,
    /// Running once it was asked, and back among those that wait when the cell is over.
    process: Option<Process>,
    sent: SentMessages,
    /// The session's messages as they came in, for a program that wants the whole history.
    history: SeenHistory,
    /// Whether no answer is due, and none was wrong: the next cell may have the process.
    is_at_rest: bool,
    /// What the process had used when it was taken.
    cpu_before: Duration,
    /// Requests to a model since the last line that wants an answer.
    asks: usize,
}

pub(super) fn build(knobs: &Knobs<'_>) -> StageResult {
    let launch: Launch = knobs.read()?;
    if launch.command.is_empty() {
        let wrong: SettingError = knobs.wrong("command", "names no program");
        return Err(wrong.with_hint("as in `command = [\"python3\", \"mine.py\"]`"));
    }
    Ok(Box::new(External {
        launch,
        programs: knobs.programs.clone(),
        process: None,
        sent: SentMessages::default(),
        history: SeenHistory::default(),
        is_at_rest: true,
        cpu_before: Duration::ZERO,
        asks: 0,
    }))
}

impl Stage for External {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        let moment = match cx.overflow {
            Some(_) => Moment::Overflow,
            None => Moment::BeforeCall,
        };
        self.turn(moment, context, cx)
    }

    fn take_note_of(&mut self, entry: &Entry) {
        self.history.append(entry);
    }

    fn on_append(&mut self, entry: &Entry, cx: &Situation) -> Result<Patch, StageError> {
        if self.wants(Moment::Append, cx)?.is_none() {
            return Ok(Patch::default());
        }
        self.exchange(&ToProgram::Append { call: cx.call, message: message_line(entry) })?;
        let (answer, line) = self.read()?;
        let patch = match answer {
            FromProgram::Unchanged { .. } => Patch::default(),
            FromProgram::Message { message, reason } => {
                let base = std::slice::from_ref(entry);
                // Whatever it says, it is this message.
                let mut piece = message;
                if let Value::Object(keys) = &mut piece {
                    keys.insert("of".to_owned(), 0.into());
                }
                let read = AnswerReader::of(base, &cx.counts).entries(&[piece], 0..1);
                let target = read.map_err(|problem| self.wrong(problem, &line))?;
                Patch::new(reason.unwrap_or_default(), edits_to(base, target))
            }
            _ => {
                let problem = "`append` is answered by `unchanged` or `message`".to_owned();
                return Err(self.wrong(problem, &line));
            }
        };
        self.is_at_rest = true;
        Ok(patch)
    }

    fn on_rewrite(&mut self, messages: &[usize]) {
        self.history.rewrite(messages);
    }

    fn after_call<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        self.turn(Moment::AfterCall, context, cx)
    }

    fn end(&mut self) -> Result<(), StageError> {
        let quiet = self.process.as_mut().map_or(Ok(()), Process::must_be_quiet);
        self.is_at_rest &= quiet.is_ok();
        quiet.map_err(StageError::Program)
    }

    fn program_cpu(&self) -> Duration {
        self.process.as_ref().map_or(Duration::ZERO, Process::cpu).saturating_sub(self.cpu_before)
    }

    fn loaded_files(&self) -> LoadedFiles {
        self.programs.loaded(&self.launch)
    }

    fn declared(&self) -> Option<Result<Hello, ProgramError>> {
        Some(self.programs.hello(&self.launch))
    }
}

impl External {
    /// One exchange with the program.
    fn turn<'a>(
        &'a mut self,
        moment: Moment,
        context: &Context,
        cx: &'a Situation,
    ) -> PlannedPatch<'a> {
        match self.tell(moment, context, cx) {
            Ok(Some(base)) => self.answer(base, context.entries(), cx),
            Ok(None) => Step::Done(Ok(Patch::default())),
            Err(error) => Step::Done(Err(error.into())),
        }
    }

    /// Tells the program of a moment, if it wants to hear of it; the messages that it answers about.
    fn tell<'c>(
        &mut self,
        moment: Moment,
        context: &'c Context,
        cx: &Situation,
    ) -> Result<Option<Cow<'c, [Entry]>>, ProgramError> {
        let Some((history, wording)) = self.wants(moment, cx)? else {
            return Ok(None);
        };
        let base: Cow<'_, [Entry]> = match history {
            History::Kept => Cow::Borrowed(context.entries()),
            History::Full => Cow::Owned(self.history.entries(context.entries())),
        };
        let turn = Turn {
            call: cx.call,
            messages: self.sent.list(&base, wording == Wording::Changes),
            prompt_tokens: cx.prompt(context).0,
            fixed_tokens: cx.scale.prompt(cx.fixed).0,
            budget_tokens: cx.room(cx.window.effective()).0,
            seconds: cx.now.map(|now| now.0.div_euclid(1_000)),
            attempt: cx.overflow.map(|overflow| overflow.attempt),
        };
        self.exchange(&match moment {
            Moment::Overflow => ToProgram::Overflow(turn),
            Moment::AfterCall => ToProgram::AfterCall(turn),
            Moment::BeforeCall | Moment::Append => ToProgram::BeforeCall(turn),
        })?;
        Ok(Some(base))
    }

    /// Reads answers until one is none that asks a model.
    fn answer<'a>(
        &'a mut self,
        base: Cow<'_, [Entry]>,
        entries: &[Entry],
        cx: &'a Situation,
    ) -> PlannedPatch<'a> {
        let (answer, line) = match self.read() {
            Ok(read) => read,
            Err(error) => return Step::Done(Err(error.into())),
        };
        let FromProgram::Ask(ask) = answer else {
            let planned = patch(answer, &base, entries, cx);
            self.is_at_rest = planned.is_ok();
            return Step::Done(planned.map_err(|problem| self.wrong(problem, &line)));
        };
        self.asks += 1;
        let request = match request(ask, &base, cx) {
            Ok(request) if self.asks <= MOST_ASKS => request,
            Ok(_) => {
                let problem = format!("a model was asked {MOST_ASKS} times for one answer");
                return Step::Done(Err(self.wrong(problem, &line)));
            }
            Err(problem) => return Step::Done(Err(self.wrong(problem, &line))),
        };
        let (base, entries) = (base.into_owned(), entries.to_vec());
        Step::ask(request, move |answer| {
            match self.running().and_then(|process| process.send(&answer_line(answer))) {
                Ok(()) => self.answer(Cow::Owned(base), &entries, cx),
                Err(error) => Step::Done(Err(error.into())),
            }
        })
    }

    /// Starts the program where it does not run yet; in which form it wants this line, if it does.
    fn wants(
        &mut self,
        moment: Moment,
        cx: &Situation,
    ) -> Result<Option<(History, Wording)>, ProgramError> {
        if self.process.is_none() {
            let mut process = self.programs.take(&self.launch)?;
            self.cpu_before = process.cpu();
            process.send(&session(cx))?;
            self.process = Some(process);
        }
        let hello = &self.running()?.hello;
        let wanted = hello.moments.contains(&moment)
            && !(matches!(moment, Moment::Append | Moment::AfterCall)
                && hello.history == History::Full);
        Ok(wanted.then_some((hello.history, hello.context)))
    }

    fn running(&mut self) -> Result<&mut Process, ProgramError> {
        self.process.as_mut().ok_or(ProgramError::NotLocated)
    }

    /// Sends a line that wants an answer.
    fn exchange(&mut self, line: &ToProgram) -> Result<(), ProgramError> {
        (self.is_at_rest, self.asks) = (false, 0);
        self.running()?.send(line)
    }

    fn read(&mut self) -> Result<(FromProgram, String), ProgramError> {
        match self.running()?.read()? {
            (FromProgram::Error { message }, _) => Err(ProgramError::GaveUp(message)),
            read => Ok(read),
        }
    }

    fn wrong(&mut self, problem: String, line: &str) -> StageError {
        self.running().map_or_else(Into::into, |process| process.wrong(problem, line).into())
    }
}

impl Drop for External {
    fn drop(&mut self) {
        // One that failed, or still waits for a model, is in a state that the next cell must not meet.
        if let Some(process) = self.process.take().filter(|_| self.is_at_rest) {
            self.programs.give_back(process);
        }
    }
}

fn session(cx: &Situation) -> ToProgram {
    let tools = cx.tools.iter().map(|tool| raw(tool.definition.as_str().to_owned()));
    ToProgram::Session {
        system: cx.system.as_deref().map(str::to_owned),
        tools: tools.collect(),
        window: WindowLine {
            tokens: cx.window.tokens.0,
            effective_tokens: cx.window.effective().0,
        },
        seed: cx.lot,
    }
}

fn request(ask: AskLine, base: &[Entry], cx: &Situation) -> Result<Request, String> {
    let messages = AnswerReader::of(base, &cx.counts).messages(&ask.messages)?;
    Ok(Request {
        purpose: cx.purpose(),
        task: Task::Summarise { sections: Vec::new() },
        system: ask.system.map(Arc::from).or_else(|| cx.system.clone().filter(|_| ask.with_prefix)),
        tools: ask.with_prefix.then(|| cx.tools.clone()),
        messages,
        max_output: Tokens(ask.max_tokens),
        model: ask.model.map(Arc::from),
    })
}

fn answer_line(answer: CallResult) -> ToProgram {
    let (text, stop, error) = match answer {
        Ok(Response { text, stop, .. }) => {
            let stop = match stop {
                Stop::End => "end",
                Stop::Length => "max_tokens",
                Stop::ToolUse => "tool_use",
                Stop::Refusal | Stop::ContentFilter => "refusal",
            };
            (Some(text.to_string()), Some(stop), None)
        }
        Err(failure) => {
            let error = match failure {
                CallFailure::Overflow => "too_long",
                CallFailure::Timeout => "timeout",
                CallFailure::RateLimited => "rate_limited",
                CallFailure::Server(_) => "server",
                _ => "failed",
            };
            (None, None, Some(error))
        }
    };
    ToProgram::Answer { text, stop, error }
}

/// The patch that makes the answer's context of the one that stands; or why there is none.
fn patch(
    answer: FromProgram,
    base: &[Entry],
    entries: &[Entry],
    cx: &Situation,
) -> Result<Patch, String> {
    let (edits, reason) = match answer {
        FromProgram::Unchanged { .. } => return Ok(Patch::default()),
        FromProgram::Messages { messages, reason } => {
            (vec![EditLine { from: 0, to: base.len(), with: messages }], reason)
        }
        FromProgram::Edits { edits, reason } => (edits, reason),
        FromProgram::Summary { from, to, text, reason } => {
            let message = serde_json::json!({ "role": "user", "content": text });
            (vec![EditLine { from, to, with: vec![message] }], reason)
        }
        FromProgram::Hello(_)
        | FromProgram::Message { .. }
        | FromProgram::Ask(_)
        | FromProgram::Error { .. } => return Err("this is no answer to what was asked".to_owned()),
    };
    let target = spliced(base, &edits, cx)?;
    if target.is_empty() {
        return Err("a context of no messages cannot be sent".to_owned());
    }
    let planned = edits_to(entries, standing(&target, entries));
    Ok(Patch::new(reason.unwrap_or_default(), planned))
}

/// The entries of `base` with these edits made.
fn spliced(base: &[Entry], edits: &[EditLine], cx: &Situation) -> Result<Vec<Entry>, String> {
    let mut reading = AnswerReader::of(base, &cx.counts);
    let mut next = 0;
    for EditLine { from, to, with } in edits {
        reading.range(*from, *to)?;
        if *from < next {
            return Err(format!("the edit of [{from},{to}] is out of order"));
        }
        reading.claim_range(next..*from)?;
        reading.claim(with)?;
        next = *to;
    }
    reading.claim_range(next..base.len())?;
    let (mut target, mut next) = (Vec::new(), 0);
    for EditLine { from, to, with } in edits {
        target.extend_from_slice(&base[next..*from]);
        target.extend(reading.entries(with, *from..*to)?);
        next = *to;
    }
    target.extend_from_slice(&base[next..]);
    Ok(target)
}
