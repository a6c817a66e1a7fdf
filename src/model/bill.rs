//! The tokens of a call: the provider's numbers, or counted here if it reports none.

use super::{CallFailure, Request, Response};
use crate::tokens::CountedTexts;
use crate::units::{Tokens, Usage};

/// The cost of an answer. A prompt of 0 tokens means that the provider did not say: llama.cpp reports its
/// usage when it begins to write, and 0 where that is half a character.
pub fn answered(request: &Request, response: &Response, counts: &CountedTexts) -> Usage {
    let usage = response.usage;
    if usage.prompt() > Tokens::ZERO {
        return usage;
    }
    let output = match usage.output {
        Tokens::ZERO => counts.size(&response.text).tokens,
        told => told,
    };
    Usage::uncached(input(request, counts), output)
}

/// The cost of an attempt without an answer. One that timed out, failed on the server or broke off
/// has been read: its input is billed. One that was refused, or never sent, costs nothing.
pub fn failed(request: &Request, failure: &CallFailure, counts: &CountedTexts) -> Usage {
    let was_read = matches!(
        failure,
        CallFailure::Timeout | CallFailure::Server(_) | CallFailure::Cut | CallFailure::Unreadable
    );
    if was_read {
        Usage::uncached(input(request, counts), Tokens::ZERO)
    } else {
        Usage::default()
    }
}

fn input(request: &Request, counts: &CountedTexts) -> Tokens {
    let blocks = request.messages.iter().flat_map(|message| message.blocks());
    let system = request.system.iter().map(|text| counts.size(text));
    let tools = request.tools().iter();
    let tools = tools.map(|tool| counts.schema(tool.text()));
    let sizes = blocks.map(|block| counts.block(&block));
    let sizes = sizes.chain(system).chain(tools);
    sizes.map(|size| size.tokens).sum()
}
