//! One stage on trial: a context, a stage, and what it makes of it.

#![cfg(test)]

use super::prelude::*;
use crate::model::scripted;
use crate::session::{JsonText, tool_names};
use crate::settings::{SettingError, SettingTable};
use crate::step::{CallResult, Caller, drive};
use crate::strategy::knob::Knobs;
use crate::strategy::situation::Overflow;
use crate::tokens::{CharsPer4, CountedTexts};
use crate::window::Window;

/// Something the user typed.
pub(crate) fn typed(text: &str) -> Message {
    Message::text(Role::User, text).with_tags([Tag::TypedUser])
}

/// Something the model said.
pub(crate) fn said(text: &str) -> Message {
    Message::text(Role::Assistant, text)
}

/// The model asks for tools: id, name, arguments as JSON.
pub(crate) fn asks(uses: &[(&str, &str, &str)]) -> Message {
    let block = |(id, name, input): &(&str, &str, &str)| {
        ContentBlock::ToolUse(Box::new(ToolUse {
            id: (*id).into(),
            name: (*name).into(),
            class: tool_names::class_of(name),
            input: JsonText::parse(input).unwrap(),
        }))
    };
    Message::new(Role::Assistant, uses.iter().map(block).collect())
}

/// The tools answer: id, text.
pub(crate) fn answers(results: &[(&str, &str)]) -> Message {
    let block = |(id, text): &(&str, &str)| {
        ContentBlock::ToolResult(Box::new(ToolResult {
            tool_use_id: (*id).into(),
            content: vec![ContentBlock::Text((*text).into())],
            is_error: false,
        }))
    };
    Message::new(Role::User, results.iter().map(block).collect())
}

/// A tool answers that it failed.
pub(super) fn fails(id: &str, text: &str) -> Message {
    let result = ToolResult {
        tool_use_id: id.into(),
        content: vec![ContentBlock::Text(text.into())],
        is_error: true,
    };
    Message::new(Role::User, vec![ContentBlock::ToolResult(result.into())])
}

/// A stage of that kind, or why it cannot be built.
pub(super) fn build(kind: &str, knobs: &str) -> Result<Box<dyn Stage>, SettingError> {
    let table = SettingTable::parse("own.toml", knobs)?;
    let kind = super::kind(kind).unwrap();
    (kind.build)(&Knobs::new(&table, kind.name, kind)?)
}

/// A stage and its context; messages of the session are numbered from 0.
#[derive(Debug)]
pub(super) struct Trial {
    stage: Box<dyn Stage>,
    pub(super) context: Context,
    pub(super) cx: Situation,
    /// The failures after calls.
    pub(super) failures: Vec<StageError>,
    next: usize,
    model: CannedAnswers,
}

/// Gives out answers, and notes what was asked.
#[derive(Debug, Default)]
struct CannedAnswers {
    answers: VecDeque<CallResult>,
    asked: Vec<Request>,
}

impl Caller for CannedAnswers {
    fn call(&mut self, requests: Vec<Request>) -> Vec<CallResult> {
        self.asked.extend(requests.iter().cloned());
        let answer = |_| Ok(scripted::response("S"));
        requests
            .iter()
            .map(|request| self.answers.pop_front().unwrap_or_else(|| answer(request)))
            .collect()
    }
}

/// The present before the first call, in a window of 200,000 tokens.
pub(crate) fn situation(counts: Arc<CountedTexts>) -> Situation {
    Situation::first(Window::new(Tokens(200_000)), counts)
}

impl Trial {
    /// A window of 200,000 tokens; four characters to a token; a model that writes `S`.
    pub(super) fn new(kind: &str, knobs: &str) -> Self {
        let stage = build(kind, knobs).unwrap_or_else(|error| panic!("{error}"));
        let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
        let cx = situation(counts);
        Self {
            stage,
            context: Context::default(),
            cx,
            failures: Vec::new(),
            next: 0,
            model: CannedAnswers::default(),
        }
    }

    /// The window has this size.
    pub(super) fn within(mut self, tokens: u64) -> Self {
        self.cx.window = Window::new(Tokens(tokens));
        self
    }

    /// The provider has just refused the prompt.
    pub(super) fn refused(mut self) -> Self {
        self.cx.overflow = Some(Overflow { prompt: self.cx.prompt(&self.context), attempt: 0 });
        self
    }

    /// The lowest entry that the stage still means to change.
    pub(super) fn edge(&self) -> Option<usize> {
        self.stage.edge(&self.context)
    }

    /// Sets the model's next answer; `S` if there is none left.
    pub(super) fn will_answer(&mut self, answer: CallResult) {
        self.model.answers.push_back(answer);
    }

    /// Requests so far.
    pub(super) fn asked(&self) -> &[Request] {
        &self.model.asked
    }

    /// Appends messages as replay does: past the stage's write-time work, and past its work after
    /// a call where the model has spoken.
    pub(super) fn append(&mut self, messages: impl IntoIterator<Item = Message>) {
        for message in messages {
            let is_answer = message.role() == Role::Assistant;
            let origin = Origin::Verbatim(self.next);
            self.next += 1;
            let entry = Entry::new(origin, Arc::new(message), &self.cx.counts);
            self.stage.take_note_of(&entry);
            let patch = self.stage.on_append(&entry, &self.cx).unwrap();
            let mut single = Context::default();
            single.append(entry);
            single.apply(patch.edits).unwrap();
            for entry in single.into_entries() {
                self.context.append(entry);
            }
            if is_answer {
                let done = self.after_call();
                self.failures.extend(done.err());
                self.cx.call += 1;
            }
        }
    }

    /// The stage's work after a call.
    fn after_call(&mut self) -> Result<(), StageError> {
        let step = self.stage.after_call(&self.context, &self.cx);
        let patch = drive(step, &mut self.model)?;
        self.context.apply(patch.edits).unwrap();
        Ok(())
    }

    /// Plans and applies; the reason, or `None` if nothing was planned.
    pub(super) fn fire(&mut self) -> Result<Option<String>, StageError> {
        let step = self.stage.plan(&self.context, &self.cx);
        let patch = drive(step, &mut self.model)?;
        let is_planned = !patch.edits.is_empty();
        self.context.apply(patch.edits).unwrap();
        Ok(is_planned.then_some(patch.reason))
    }

    /// The edits that are planned; nothing is applied.
    pub(super) fn planned(&mut self) -> Vec<Edit> {
        let step = self.stage.plan(&self.context, &self.cx);
        drive(step, &mut self.model).unwrap().edits
    }

    /// Plans, applies and takes back, as a guard does; how many edits were planned.
    pub(super) fn refuse(&mut self) -> usize {
        let step = self.stage.plan(&self.context, &self.cx);
        let patch = drive(step, &mut self.model).unwrap();
        let edits = patch.edits.len();
        let change = self.context.apply(patch.edits).unwrap();
        self.context.revert(&change);
        edits
    }

    /// Another stage replaces entries: one note for all of them.
    pub(super) fn replace(&mut self, entries: std::ops::Range<usize>, note: &str) {
        let origin = Origin::derived_from(&self.context.entries()[entries.clone()]);
        let message = Arc::new(Message::text(Role::User, note).with_tags([Tag::CompactSummary]));
        let with = vec![Entry::new(origin, message, &self.cx.counts)];
        let edit = Edit::replacing(entries, with);
        self.context.apply(vec![edit]).unwrap();
    }

    /// The context, one text per block.
    pub(super) fn texts(&self) -> Vec<&str> {
        let entries = self.context.entries().iter();
        entries.flat_map(|entry| entry.message.model_text()).map(|text| &**text).collect()
    }
}
