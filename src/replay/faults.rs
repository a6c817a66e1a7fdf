//! Injects faults into a cell: the loop and the meter get failures and altered answers.

use std::sync::Arc;

use crate::model::fault::{Attempt, Fault, FaultTarget, Faults};
use crate::model::{CallFailure, Response, Stop};
use crate::record::FaultEvent;
use crate::step::CallResult;
use crate::tokens::{CountedTexts, Size};
use crate::units::{Tokens, Usage};

/// The faults of one cell, and those that were injected so far.
#[derive(Debug)]
pub(super) struct FaultInjector {
    pub(super) faults: Arc<Faults>,
    session: Arc<str>,
    pub(super) repeat: u32,
    pub(super) call: usize,
    /// Requests of the strategy at this call.
    pub(super) requests: u32,
    /// The faults so far, in order.
    pub(super) injected: Vec<FaultEvent>,
}

impl FaultInjector {
    /// The faults of one repeat of one session, the same for every strategy.
    pub(super) fn new(faults: Arc<Faults>, session: &str, repeat: u32) -> Self {
        Self { faults, session: session.into(), repeat, call: 0, requests: 0, injected: Vec::new() }
    }

    /// The fault that the strategy's next request at this call meets.
    pub(super) fn inject_in_request(&mut self) -> Option<Fault> {
        let attempt = self.requests;
        self.requests += 1;
        self.inject(FaultTarget::Summary, attempt)
    }

    /// The fault that this attempt meets.
    pub(super) fn inject(&mut self, target: FaultTarget, attempt: u32) -> Option<Fault> {
        if self.faults.is_empty() {
            return None;
        }
        let at = Attempt { session: &self.session, repeat: self.repeat, call: self.call, attempt };
        let fault = self.faults.injected(target, at)?;
        self.injected.push(FaultEvent { call: self.call, fault: fault.name().to_owned() });
        Some(fault)
    }
}

/// The answer that the strategy gets from no model; `None` if the model answers first.
pub(super) fn without_model(fault: Fault) -> Option<CallResult> {
    Some(match fault {
        Fault::SummaryError => Err(CallFailure::SERVER),
        Fault::SummaryTimeout => Err(CallFailure::Timeout),
        Fault::SummaryOverflow => Err(CallFailure::Overflow),
        Fault::SummaryEmpty => Ok(written("", Stop::End)),
        Fault::SummaryIsToolCall => Ok(written(TOOL_CALL, Stop::ToolUse)),
        Fault::SummaryIsChat => Ok(written(CHAT, Stop::End)),
        _ => return None,
    })
}

/// Alters a model's answer; `history` is the size of the messages that the strategy has.
pub(super) fn alter(fault: Fault, whole: &mut Response, history: Size, counts: &CountedTexts) {
    if fault == Fault::SummaryInflates {
        *whole = written(&longer_than(history, &whole.text, counts), Stop::End);
    } else if fault == Fault::SummaryTruncated {
        let half = whole.text.chars().count() / 2;
        let text: String = whole.text.chars().take(half).collect();
        *whole = written(&text, Stop::Length);
    }
}

/// The cost of a failed attempt at the agent's own call, and the reason of the failure in words.
///
/// A call that was refused costs nothing. One on which the server failed has been read. Of an
/// answer that breaks off, half has been written.
pub(super) fn failed_attempt(fault: Fault, prompt: Tokens, response: Tokens) -> (Usage, String) {
    match fault {
        Fault::RateLimited => (Usage::default(), CallFailure::RateLimited.to_string()),
        Fault::StreamCut => {
            let usage = Usage::uncached(prompt, Tokens(response.0 / 2));
            (usage, "the answer broke off".to_owned())
        }
        _ => (Usage::uncached(prompt, Tokens::ZERO), CallFailure::SERVER.to_string()),
    }
}

const TOOL_CALL: &str = r#"{"tool":"Read","input":{"path":"README.md"}}"#;

const CHAT: &str = "Sure, I will go on from here. Shall I begin with the next file?";

/// Its cost is left to the meter, which counts what was sent and written.
fn written(text: &str, stop: Stop) -> Response {
    Response { text: text.into(), stop, usage: Usage::default(), model: Arc::from("fault") }
}

/// The summary, repeated until it has more tokens than the messages, by any counter: it names what
/// they name, and only its length distinguishes it from a good one.
fn longer_than(history: Size, summary: &str, counts: &CountedTexts) -> String {
    const OPEN: &str = "<summary>";
    let start = summary.find(OPEN).map_or(0, |at| at + OPEN.len());
    let end = summary[start..].find("</summary>").map_or(summary.len(), |at| start + at);
    let mut text = summary[start..end].to_owned() + "\nThis was said, and then once more.\n";
    while counts.counter().count(&text) <= history.tokens {
        let again = text.clone();
        text.push_str(&again);
    }
    format!("{}{text}{}", &summary[..start], &summary[end..])
}
