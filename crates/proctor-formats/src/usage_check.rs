//! Counters that were written down before the answer they count was whole.
//!
//! A product that writes each block of an answer as it comes writes the usage of that moment beside
//! it: a token or two where thousands follow. Where it never writes a later one, what the model
//! wrote is known by its text alone.

use crate::prelude::*;

/// The warning about such a call.
const PARTIAL: &str = "output tokens are partial: a call wrote more than they say";

/// More characters than a token holds on average in anything a model writes: English prose has
/// about 4, code about 3. Of 442 calls of recordings whose last record was written at the end of
/// its answer, none has more; of the other calls of such files, two in five have.
const MOST_CHARS: u64 = 8;

/// A shorter answer shows nothing: one token may be a run of spaces or a rule of dashes.
const SHORTEST: u64 = 100;

/// Whether a message is an answer that its counter cannot have counted.
fn is_partial(message: &Message) -> bool {
    message.role() == Role::Assistant
        && message.details.usage.is_some_and(|usage: Usage| {
            let chars = written(message);
            chars >= SHORTEST && chars > usage.output.0.saturating_mul(MOST_CHARS)
        })
}

/// The characters that the model itself wrote: what a provider's own tools found is in its answer
/// too.
fn written(message: &Message) -> u64 {
    let blocks = message.content().iter().map(|block| match block {
        ContentBlock::Text(text) => text.chars().count(),
        ContentBlock::Thinking(thinking) => thinking.text.chars().count(),
        ContentBlock::ToolUse(call) => call.input.as_str().chars().count(),
        ContentBlock::ToolResult(_) | ContentBlock::Image(_) | ContentBlock::Opaque(_) => 0,
    });
    blocks.sum::<usize>() as u64
}

/// Counts the calls whose counters are partial among the session's warnings.
pub(super) fn warn(session: &mut Session) {
    let found = session.parts().messages.iter().filter(|message| is_partial(message)).count();
    if found > 0 {
        session.parts_mut().source.warnings.insert(PARTIAL.to_owned(), found as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctor_sessions::units::{Tokens, Usage};

    #[track_caller]
    fn check(output: u64, text: &str, expected: bool) {
        let mut message = Message::text(Role::Assistant, text);
        message.details.usage = Some(Usage { output: Tokens(output), ..Usage::default() });
        assert_eq!(is_partial(&message), expected, "{output}: {text}");
        message.details.usage = None;
        assert!(!is_partial(&message));
    }

    #[test]
    fn a_counter_that_its_text_exceeds_by_far_is_partial_and_a_whole_one_is_not() {
        let prose = "The valve was closed since Monday, so the pump ran dry. ".repeat(10);
        check(1, &prose, true);
        check(8, &prose, true);
        // The count of a counter: 13 tokens a sentence.
        check(130, &prose, false);
        check(0, "Done.", false);
        // More than the text, for the thinking is not shown.
        check(4_000, &prose, false);
    }
}
