//! Faults, as they strike a cell: what the loop and the meter are told instead of the truth.

use std::sync::Arc;

use crate::model::fault::{Acts, Attempt, Fault, Faults};
use crate::model::{CallFailure, Request, Response, Stop};
use crate::record::FaultEvent;
use crate::step::Answer;
use crate::tokens::{CountedTexts, Size};
use crate::units::{Tokens, Usage};

/// What goes wrong in one cell, and what has.
#[derive(Debug)]
pub(super) struct Weather {
    faults: Arc<Faults>,
    session: Arc<str>,
    repeat: u32,
    call: usize,
    /// Requests of the strategy at this call.
    requests: u32,
    struck: Vec<FaultEvent>,
}

impl Weather {
    /// Which repeat this is.
    pub(super) fn repeat(&self) -> u32 {
        self.repeat
    }

    /// The faults of one repeat of one session, the same for every strategy.
    pub(super) fn new(faults: Arc<Faults>, session: &str, repeat: u32) -> Self {
        Self {
            faults,
            session: session.into(),
            repeat,
            call: 0,
            requests: 0,
            struck: Vec::new(),
        }
    }

    /// What follows belongs to this call of the agent.
    pub(super) fn start_call(&mut self, call: usize) {
        self.call = call;
        self.requests = 0;
    }

    /// Whether the provider refuses this call's prompt though it fits. Asked once per call.
    pub(super) fn refuses_prompt(&mut self) -> bool {
        self.strike(Acts::Prompt, 0).is_some()
    }

    /// What becomes of the strategy's next request at this call.
    pub(super) fn request(&mut self) -> Option<Fault> {
        let attempt = self.requests;
        self.requests += 1;
        self.strike(Acts::Summary, attempt)
    }

    /// What becomes of the agent's own call.
    pub(super) fn agent(&mut self, attempt: u32) -> Option<Fault> {
        self.strike(Acts::Agent, attempt)
    }

    /// How often the agent's own call is sent again.
    pub(super) fn agent_retries(&self) -> u32 {
        self.faults.agent_retries
    }

    /// What has struck, in order.
    pub(super) fn into_struck(self) -> Vec<FaultEvent> {
        self.struck
    }

    fn strike(&mut self, acts: Acts, attempt: u32) -> Option<Fault> {
        if self.faults.is_empty() {
            return None;
        }
        let at = Attempt {
            session: &self.session,
            repeat: self.repeat,
            call: self.call,
            attempt,
        };
        let fault = self.faults.struck(acts, at)?;
        self.struck.push(FaultEvent {
            call: self.call,
            fault: fault.name().to_owned(),
        });
        Some(fault)
    }
}

/// What the strategy is answered where `fault` strikes its request.
///
/// `history` is the size of the messages it stands before; `model` asks the true model, which
/// only summaries that break off or run on need.
pub(super) fn answer(
    fault: Fault,
    request: &Request,
    history: Size,
    counts: &CountedTexts,
    model: impl FnOnce(&Request) -> Answer,
) -> Answer {
    match fault {
        Fault::SummaryError => Err(CallFailure::Server),
        Fault::SummaryTimeout => Err(CallFailure::Timeout),
        Fault::SummaryOverflow => Err(CallFailure::Overflow),
        Fault::SummaryEmpty => Ok(written("", Stop::End)),
        Fault::SummaryIsToolCall => Ok(written(TOOL_CALL, Stop::ToolUse)),
        Fault::SummaryIsChat => Ok(written(CHAT, Stop::End)),
        Fault::SummaryInflates => model(request).map(|whole| {
            let text = longer_than(history, &whole.text, counts);
            written(&text, Stop::End)
        }),
        Fault::SummaryTruncated => model(request).map(|whole| {
            let half = whole.text.chars().count() / 2;
            let text: String = whole.text.chars().take(half).collect();
            written(&text, Stop::Length)
        }),
        // These act elsewhere; a request they are named for is answered.
        Fault::OverflowAt | Fault::RateLimited | Fault::ServerError | Fault::StreamCut => {
            model(request)
        }
    }
}

/// What a failed attempt at the agent's own call costs, and why it failed, in words.
///
/// A call that was refused costs nothing. One on which the server failed has been read. Of an
/// answer that breaks off, half has been written.
pub(super) fn failed_attempt(fault: Fault, prompt: Tokens, response: Tokens) -> (Usage, String) {
    let read = |written| Usage::uncached(prompt, written);
    match fault {
        Fault::RateLimited => (Usage::default(), CallFailure::RateLimited.to_string()),
        Fault::StreamCut => (
            read(Tokens(response.0 / 2)),
            "the answer broke off".to_owned(),
        ),
        Fault::ServerError
        | Fault::OverflowAt
        | Fault::SummaryError
        | Fault::SummaryTimeout
        | Fault::SummaryOverflow
        | Fault::SummaryEmpty
        | Fault::SummaryIsToolCall
        | Fault::SummaryIsChat
        | Fault::SummaryInflates
        | Fault::SummaryTruncated => (read(Tokens::ZERO), CallFailure::Server.to_string()),
    }
}

const TOOL_CALL: &str = r#"{"tool":"Read","input":{"path":"README.md"}}"#;

const CHAT: &str = "Sure, I will go on from here. Shall I begin with the next file?";

/// Its cost is left to the meter, which counts what was sent and written.
fn written(text: &str, stop: Stop) -> Response {
    Response {
        text: text.into(),
        stop,
        usage: Usage::default(),
        model: Arc::from("fault"),
    }
}

/// The summary, repeated until it has more tokens than the messages, by any counter: it names what they
/// name, and nothing tells it from a good one but its length.
fn longer_than(history: Size, summary: &str, counts: &CountedTexts) -> String {
    const OPEN: &str = "<summary>";
    let start = summary.find(OPEN).map_or(0, |at| at + OPEN.len());
    let end = summary[start..].find("</summary>");
    let end = end.map_or(summary.len(), |at| start + at);
    let mut text = summary[start..end].to_owned() + "\nThis was said, and then once more.\n";
    while counts.counter().count(&text) <= history.tokens {
        let again = text.clone();
        text.push_str(&again);
    }
    format!("{}{text}{}", &summary[..start], &summary[end..])
}
