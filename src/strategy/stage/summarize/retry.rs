//! How a summary is got from a model that fails: again, or with less to read.

use super::Summarize;
use super::prompt::{RequestReduction, SummaryPrompt};
use crate::context::validity::summary::{missing_identifiers, reads_as_summary};
use crate::model::CallFailure;
use crate::step::CallResult;
use crate::strategy::guard::{Guards, OnNoSummary, OnSummaryOverflow};
use crate::strategy::model_text;
use crate::strategy::stage::prelude::*;
use crate::strategy::template::{self, SummarySpan, VERIFY};

/// The retries before an attempt fails.
#[derive(Debug, Deserialize)]
pub(super) struct SummaryRetry {
    stream_retries: u64,
    verify: Verify,
    #[serde(skip)]
    pub(super) guards: Guards,
}

/// How a summary is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verify {
    None,
    /// The model checks it and writes it again.
    SecondPass,
    /// The model writes it again where it lacks identifiers of the newest messages.
    Identifiers,
}

/// One attempt at a summary: what it is of, and what it has tried so far.
pub(super) struct SummaryAttempt<'a> {
    stage: &'a Summarize,
    cx: &'a Situation,
    shown: Vec<Entry>,
    span: SummarySpan,
    less: RequestReduction,
    /// How often less was asked for.
    reduced: u32,
    /// How often the request as it is was sent again.
    repeated: u64,
    /// How often it was sent again for want of a summary.
    insisted: bool,
}

impl<'a> SummaryAttempt<'a> {
    pub(super) fn new(
        stage: &'a Summarize,
        cx: &'a Situation,
        shown: Vec<Entry>,
        span: SummarySpan,
    ) -> Self {
        Self {
            stage,
            cx,
            shown,
            span,
            less: RequestReduction::default(),
            reduced: 0,
            repeated: 0,
            insisted: false,
        }
    }

    /// Asks until there is a summary, or nothing left to try.
    pub(super) fn ask(mut self) -> Step<'a, Result<Arc<str>, StageError>> {
        let prompt = &self.stage.prompt;
        let request = prompt.request(&self.shown, self.span, self.less, self.cx);
        let checked = (self.stage.retry.verify != Verify::None).then(|| request.clone());
        Step::ask(request, move |answer| {
            let error = match self.summary_of(&answer) {
                Ok(summary) => return self.verified(checked, answer, summary),
                Err(error) => error,
            };
            if self.may_ask_again(&error) { self.ask() } else { Step::Done(Err(error)) }
        })
    }

    /// The summary, if the answer is one. A history is never replaced by anything else.
    fn summary_of(&self, answer: &CallResult) -> Result<Arc<str>, StageError> {
        let text = model_text::text_of(answer.clone())?;
        let summary = self.stage.prompt.template().summary_in(&text);
        if summary.trim().is_empty() {
            return Err(StageError::EmptySummary);
        }
        let read = self.shown.iter().flat_map(|entry| entry.message.model_text());
        if self.stage.retry.guards.on_chat != OnNoSummary::Apply
            && !reads_as_summary(std::slice::from_ref(&summary), read)
        {
            return Err(StageError::NotASummary);
        }
        Ok(summary)
    }

    /// The summary as the model corrects it; as it was, where the check brings none.
    fn verified(
        self,
        request: Option<Request>,
        answer: CallResult,
        summary: Arc<str>,
    ) -> Step<'a, Result<Arc<str>, StageError>> {
        let (Some(request), Ok(answer)) = (request, answer) else {
            return Step::Done(Ok(summary));
        };
        let words = match self.stage.retry.verify {
            Verify::Identifiers => {
                let texts = self.shown.iter().rev().flat_map(|entry| entry.message.model_text());
                let missing = missing_identifiers(&summary, texts);
                if missing.is_empty() {
                    return Step::Done(Ok(summary));
                }
                template::with_missing(&missing)
            }
            Verify::None | Verify::SecondPass => VERIFY.trim_end().to_owned(),
        };
        let request = SummaryPrompt::verification(request, &answer.text, words);
        Step::ask(request, move |answer| {
            Step::Done(Ok(self.summary_of(&answer).unwrap_or(summary)))
        })
    }

    /// Whether another request is left to try, and makes it the next one.
    fn may_ask_again(&mut self, error: &StageError) -> bool {
        let guards = &self.stage.retry.guards;
        let insist = match error {
            StageError::Call(CallFailure::Overflow) => return self.can_reduce(),
            StageError::Call(
                CallFailure::Server(_)
                | CallFailure::Timeout
                | CallFailure::RateLimited
                | CallFailure::Network(_)
                | CallFailure::Cut,
            ) => {
                self.repeated += 1;
                return self.repeated <= self.stage.retry.stream_retries;
            }
            StageError::EmptySummary => guards.on_empty,
            StageError::ToolCall => guards.on_tool_call,
            StageError::NotASummary => guards.on_chat,
            _ => OnNoSummary::Keep,
        };
        insist == OnNoSummary::Retry && !std::mem::replace(&mut self.insisted, true)
    }

    /// Leaves out more, if there is more to leave out.
    fn can_reduce(&mut self) -> bool {
        let guards = &self.stage.retry.guards;
        if self.reduced >= guards.summary_overflow_tries {
            return false;
        }
        self.reduced += 1;
        self.repeated = 0;
        let (_, rounds) = cut::rounds(&self.shown[self.less.from..]);
        let gone = match guards.on_summary_overflow {
            OnSummaryOverflow::Fail => return false,
            OnSummaryOverflow::DropOldestRound => 1,
            OnSummaryOverflow::Halve => rounds.len().div_ceil(2),
            OnSummaryOverflow::ShrinkResults => {
                // The shares of goose, after a first request with all results.
                let percent = [10, 20, 50, 100].get(self.reduced as usize - 1);
                self.less.results_percent = percent.copied().unwrap_or(100);
                let mut blocks = self.shown.iter().flat_map(|entry| entry.message.content());
                return percent.is_some() && blocks.any(ContentBlock::is_result);
            }
            OnSummaryOverflow::ShrinkEach => {
                // OpenHands: hard_context_reset_context_scaling.
                let texts = self.shown.iter().flat_map(|entry| entry.message.model_text());
                let known = self.less.longest_chars;
                let longest = known.or_else(|| texts.map(|text| text.chars().count()).max());
                self.less.longest_chars = longest.map(|chars| chars * 4 / 5);
                return longest.is_some_and(|chars| chars > 1);
            }
        };
        // The entries before the first round go with it; the newest round stays.
        let first = rounds.get(gone).filter(|_| gone > 0);
        self.less.from += first.map_or(0, |first| first.start);
        first.is_some()
    }
}
