//! A model writes a summary, and the summary takes the place of what it summarises.
//!
//! `select` chooses the messages to summarise and those that stay, `prompt` makes the request,
//! `retry` handles failures, and `place` writes the result into the context. Until there is a
//! summary nothing changes: an answer that is not a summary is a failure.

use super::prelude::*;
use overlap::Overlap;
use place::SummaryPlacement;
use prompt::{Previous, PromptMode, SummaryPrompt};
use retry::{SummaryAttempt, SummaryRetry};
use select::{KeptTail, SummarySelect};

mod overlap;
mod retry;
pub(super) mod place;
mod prompt;
mod select;

#[derive(Debug)]
struct Summarize {
    select: SummarySelect,
    tail: KeptTail,
    overlap: Overlap,
    prompt: SummaryPrompt,
    retry: SummaryRetry,
    place: SummaryPlacement,
}

pub(super) fn build(knobs: &Knobs<'_>) -> StageResult {
    let mut tail: KeptTail = knobs.read()?;
    tail.of = knobs.when.of;
    if tail.keep_max_tokens.is_some_and(|max| tail.keep_min_tokens > max) {
        return Err(knobs.wrong("keep_min_tokens", "is more than `keep_max_tokens`"));
    }
    let mut prompt: SummaryPrompt = knobs.read()?;
    let appended = prompt.mode != PromptMode::Fresh;
    let mut unfit = Vec::new();
    if appended {
        let why = "and where `mode` is `append` the conversation stands in front of the prompt";
        unfit.push((own_prompt::CONVERSATION, why));
    }
    if prompt.previous != Previous::Update {
        let why = "which needs `previous = \"update\"`: else an earlier summary is not shown apart";
        unfit.push((own_prompt::PREVIOUS_SUMMARY, why));
    }
    prompt.own = OwnPrompt::read(knobs, &unfit)?;
    prompt.when = knobs.when.clone();
    if prompt.model.is_empty() {
        return Err(knobs.wrong("model", "must name a model, or be `same` or `fast`"));
    }
    if appended && prompt.other_model().is_some() {
        let problem = "must be `same` where `mode` is `append`: another model has another cache";
        return Err(knobs.wrong("model", problem));
    }
    if appended && let Some(limit) = prompt.limit() {
        return Err(knobs.wrong(limit, "has no meaning where `mode` is `append`"));
    }
    let overlap: Overlap = knobs.read()?;
    if appended && overlap.is_wanted() {
        let problem =
            "has no meaning where `mode` is `append`: the request goes on with the agent's prompt";
        return Err(knobs.wrong("overlap_turns", problem));
    }
    let mut retry: SummaryRetry = knobs.read()?;
    retry.guards = knobs.guards;
    let mut place: SummaryPlacement = knobs.read()?;
    place.when = knobs.when.clone();
    Ok(Box::new(Summarize { select: knobs.read()?, tail, overlap, prompt, retry, place }))
}

impl Stage for Summarize {
    fn take_note_of(&mut self, entry: &Entry) {
        self.place.take_note_of(entry);
        self.overlap.take_note_of(entry);
    }

    fn least_kept(&self, window: Window) -> Tokens {
        self.select.least_kept(&self.tail, window)
    }

    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        let stage = &*self;
        let Some(selected) = stage.select.of(&stage.tail, context, cx) else {
            return Step::Done(Ok(Patch::default()));
        };
        let entries = context.entries();
        let shown = stage.prompt.shown(entries, &selected, &stage.overlap);
        let span = selected.span;
        let patch = stage.place.prepare(context, selected, cx);
        let summary = SummaryAttempt::new(stage, cx, shown, span).ask();
        summary.map(move |summary| Ok(patch(&summary?)))
    }
}
