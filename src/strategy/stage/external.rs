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
        let line = ToProgram::Append { call: cx.call, message: message_line(entry) };
        self.exchange(&line)?;
        let (answer, line) = self.read()?;
        self.is_at_rest = true;
        match answer {
            FromProgram::Unchanged { .. } => Ok(Patch::default()),
            FromProgram::Message { message, reason } => {
                let base = std::slice::from_ref(entry);
                // Whatever it says, it is this message.
                let mut piece = message;
                if let Value::Object(keys) = &mut piece {
                    keys.insert("of".to_owned(), 0.into());
                }
                let read = AnswerReader::of(base, &cx.counts).entries(&[piece], 0..1);
                let target = read.map_err(|problem| self.wrong(problem, &line))?;
                Ok(Patch::new(reason.unwrap_or_default(), edits_to(base, target)))
            }
            _ => {
                let problem = "`append` is answered by `unchanged` or `message`".to_owned();
                Err(self.wrong(problem, &line))
            }
        }
    }

    fn on_rewrite(&mut self, messages: &[usize]) {
        self.history.rewrite(messages);
    }

    fn after_call<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        self.turn(Moment::AfterCall, context, cx)
    }

    fn end(&mut self) -> Result<(), StageError> {
        match self.process.as_mut().map(Process::must_be_quiet) {
            Some(Err(error)) => Err(self.failed(error)),
            _ => Ok(()),
        }
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
        let entries = context.entries();
        let (history, wording) = match self.wants(moment, cx) {
            Err(error) => return Step::Done(Err(error)),
            Ok(None) => return Step::Done(Ok(Patch::default())),
            Ok(Some(wanted)) => wanted,
        };
        let base: Cow<'_, [Entry]> = match history {
            History::Kept => Cow::Borrowed(entries),
            History::Full => Cow::Owned(self.history.entries(entries)),
        };
        let by_changes = wording == Wording::Changes;
        let fixed = cx.scale.prompt(cx.fixed);
        let turn = Turn {
            call: cx.call,
            messages: self.sent.list(&base, by_changes),
            prompt_tokens: cx.prompt(context).0,
            fixed_tokens: fixed.0,
            budget_tokens: cx.room(cx.window.effective()).0,
            seconds: cx.now.map(|now| now.0.div_euclid(1_000)),
            attempt: cx.overflow.map(|overflow| overflow.attempt),
        };
        let sent = self.exchange(&match moment {
            Moment::Overflow => ToProgram::Overflow(turn),
            Moment::AfterCall => ToProgram::AfterCall(turn),
            Moment::BeforeCall | Moment::Append => ToProgram::BeforeCall(turn),
        });
        if let Err(error) = sent {
            return Step::Done(Err(error));
        }
        self.answer(base, entries, cx)
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
            Err(error) => return Step::Done(Err(error)),
        };
        let FromProgram::Ask(ask) = answer else {
            self.is_at_rest = true;
            let planned = patch(answer, &base, entries, cx);
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
            if let Err(error) = self.send(&answer_line(answer)) {
                return Step::Done(Err(error));
            }
            self.answer(Cow::Owned(base), &entries, cx)
        })
    }

    /// Starts the program where it does not run yet; in which form it wants this line, if it does.
    fn wants(
        &mut self,
        moment: Moment,
        cx: &Situation,
    ) -> Result<Option<(History, Wording)>, StageError> {
        let process = if let Some(process) = self.process.take() {
            process
        } else {
            let started = self.programs.take(&self.launch);
            let mut process = started.map_err(|error| self.failed(error))?;
            self.cpu_before = process.cpu();
            let sent = process.send(&session(cx));
            sent.map_err(|error| self.failed(error))?;
            process
        };
        let hello = &self.process.insert(process).hello;
        let wanted = hello.moments.contains(&moment)
            && !(matches!(moment, Moment::Append | Moment::AfterCall)
                && hello.history == History::Full);
        Ok(wanted.then_some((hello.history, hello.context)))
    }

    /// Sends a line that wants an answer.
    fn exchange(&mut self, line: &ToProgram) -> Result<(), StageError> {
        (self.is_at_rest, self.asks) = (false, 0);
        self.send(line)
    }

    fn send(&mut self, line: &ToProgram) -> Result<(), StageError> {
        let process = self.process.as_mut();
        let sent = process.map_or(Err(ProgramError::NotLocated), |process| process.send(line));
        sent.map_err(|error| self.failed(error))
    }

    fn read(&mut self) -> Result<(FromProgram, String), StageError> {
        let read = match &mut self.process {
            Some(process) => process.read(),
            None => Err(ProgramError::NotLocated),
        };
        let answered = read.and_then(|(answer, line)| match answer {
            FromProgram::Error { message } => Err(ProgramError::GaveUp(message)),
            answer => Ok((answer, line)),
        });
        answered.map_err(|error| self.failed(error))
    }

    fn wrong(&mut self, problem: String, line: &str) -> StageError {
        let error = match &self.process {
            Some(process) => process.wrong(problem, line),
            None => ProgramError::NotLocated,
        };
        self.failed(error)
    }

    fn failed(&mut self, error: ProgramError) -> StageError {
        self.is_at_rest = false;
        StageError::Program(error)
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
    let mut reading = AnswerReader::of(base, &cx.counts);
    let (read, reason) = match answer {
        FromProgram::Unchanged { .. } => return Ok(Patch::default()),
        FromProgram::Messages { messages, reason } => {
            reading.claim(&messages)?;
            (reading.entries(&messages, 0..base.len()), reason)
        }
        FromProgram::Edits { edits, reason } => (spliced(&mut reading, base, &edits), reason),
        FromProgram::Summary { from, to, text, reason } => {
            let message = serde_json::json!({ "role": "user", "content": text });
            let with = vec![message];
            let edit = EditLine { from, to, with };
            (spliced(&mut reading, base, &[edit]), reason)
        }
        FromProgram::Hello(_)
        | FromProgram::Message { .. }
        | FromProgram::Ask(_)
        | FromProgram::Error { .. } => return Err("this is no answer to what was asked".to_owned()),
    };
    let target = read?;
    if target.is_empty() {
        return Err("a context of no messages cannot be sent".to_owned());
    }
    let edits = edits_to(entries, standing(&target, entries));
    Ok(Patch::new(reason.unwrap_or_default(), edits))
}

/// The entries of `base` with these edits made.
fn spliced(
    reading: &mut AnswerReader<'_>,
    base: &[Entry],
    edits: &[EditLine],
) -> Result<Vec<Entry>, String> {
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
