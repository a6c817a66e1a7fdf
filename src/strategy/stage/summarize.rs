//! A model writes a summary, and the summary takes the place of what it summarises.
//!
//! What is summarised and what stays is chosen in `select`, what the model is asked in
//! `prompt`, what happens when it fails in `retry`, and what stands in the context afterwards
//! in `place`. Until there is a summary nothing changes: an answer that is none is a failure.

use crate::context::{Context, Patch};
use crate::step::Step;

mod knobs;
mod retry;
pub(super) mod place;
mod prompt;
mod select;

use crate::strategy::{Law, Planned, Situation, Stage, StageKind};
use place::Placement;
use prompt::Prompt;
use retry::{Attempt, Retry};
use select::Select;

/// `kind = "summarize"`.
pub const KIND: StageKind = StageKind {
    name: "summarize",
    description: "a model writes a summary that takes the place of the messages",
    page: include_str!("../../../docs/stages/summarize.md"),
    knobs: knobs::KNOBS,
    breaks: &[Law::KeepsLastUserMessage, Law::IdempotentAtRest],
    build: knobs::build,
};

#[derive(Debug)]
struct Summarize {
    select: Select,
    prompt: Prompt,
    retry: Retry,
    place: Placement,
}

impl Stage for Summarize {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> Planned<'a> {
        let stage = &*self;
        let Some(selected) = stage.select.of(context, cx) else {
            return Step::Done(Ok(Patch::default()));
        };
        let shown = stage.prompt.shown(context.entries(), &selected);
        let span = selected.span;
        let patch = stage.place.prepare(context, selected, cx);
        let summary = Attempt::new(stage, cx, shown, span).ask();
        summary.map(move |summary| Ok(patch(&summary?)))
    }
}
