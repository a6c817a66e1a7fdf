//! The tokens of a call: the provider's numbers, or counted here if it reports none.

use super::{CallFailure, Request, Response};
use crate::tokens::{Block, CountedTexts};
use crate::units::{Tokens, Usage};

/// The cost of an answer. A prompt of 0 tokens means that the provider did not say: llama.cpp reports its
/// usage when it begins to write, and 0 where that is half a character. A usage that cannot be
/// ([`is_possible`]) says nothing either.
pub fn answered(request: &Request, response: &Response, counts: &CountedTexts) -> Usage {
    let usage = response.usage;
    let possible = is_possible(request, response, counts);
    if possible && usage.prompt() > Tokens::ZERO {
        return usage;
    }
    let output = match usage.output {
        told if possible && told > Tokens::ZERO => told,
        _ => counts.size(&response.text).tokens,
    };
    Usage::uncached(input(request, counts), output)
}

/// Tokens that every prompt and every answer may have, whatever its text: templates, images, thoughts
/// that are not shown.
const UNSEEN: Tokens = Tokens(1_000_000);

/// Whether a usage is possible: beyond a million tokens, a model has at most eight tokens for each that is
/// counted here, and an answer at most eight for each that it was allowed.
pub fn is_possible(request: &Request, response: &Response, counts: &CountedTexts) -> bool {
    let usage = response.usage;
    fits(usage.prompt(), || input(request, counts))
        && fits(usage.output, || request.max_output + counts.size(&response.text).tokens)
}

/// Whether a reported number is possible for what is `counted` here.
fn fits(reported: Tokens, counted: impl FnOnce() -> Tokens) -> bool {
    reported <= UNSEEN || reported.0 <= UNSEEN.0.saturating_add(counted().0.saturating_mul(8))
}

/// The cost of an attempt without an answer. One that timed out, failed on the server, broke off or was
/// not waited for has been read: its input is billed. One that was refused, or never sent, costs nothing.
pub fn failed(request: &Request, failure: &CallFailure, counts: &CountedTexts) -> Usage {
    match failure {
        CallFailure::Timeout
        | CallFailure::Stopped { was_sent: true }
        | CallFailure::Server(_)
        | CallFailure::Cut
        | CallFailure::Unreadable => Usage::uncached(input(request, counts), Tokens::ZERO),
        _ => Usage::default(),
    }
}

/// The tokens of a request. Its last text was written for this request alone (a question, or the record to be
/// summarised): it is counted and not remembered.
pub(super) fn input(request: &Request, counts: &CountedTexts) -> Tokens {
    let mut blocks: Vec<Block<'_>> =
        request.messages.iter().flat_map(|message| message.blocks()).collect();
    let counter = counts.counter();
    let last = blocks.pop().map_or(Tokens::ZERO, |block| {
        counter.count_block(&block, &|text| counter.count(text), counts.images(&block))
    });
    let system = request.system.iter().map(|text| counts.size(text));
    let tools = request.tools().iter().map(|tool| counts.schema(tool.text()));
    let sizes = blocks.iter().map(|block| counts.block(block)).chain(system).chain(tools);
    last + sizes.map(|size| size.tokens).sum()
}
