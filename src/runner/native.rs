//! The window of a session's own model, as its product used it.

use crate::bill::Bill;
use crate::model::price::Prices;
use crate::session::Session;
use crate::units::Tokens;
use crate::window::{AUTO_COMPACT_BUFFER, KnownBy, NativeWindow, Window};

/// The larger window of a model for which no price file names one: that of all models with two.
const LARGER: Tokens = Tokens(1_000_000);

/// The native window of a session: what the recording says, else the model's, else 200,000. Where a
/// larger prompt was billed, the next larger window.
///
/// Claude Code uses a window of 200,000 tokens unless it is configured otherwise, whatever the
/// model offers, and compacts by itself at a fixed distance before its end: a bill beyond that line
/// without any automatic compaction was one in a larger window, where the model has one.
pub fn window(session: &Session, bill: &Bill, prices: &Prices) -> NativeWindow {
    let model = session.model().and_then(|model| prices.of(model));
    let model = model.map(|(_, price)| price);
    let offered = model.map_or(&[][..], |price| &price.windows);
    let smallest = offered.first().copied();
    let is_claude_code = session.source().format == "claude-code";
    let max_output = if is_claude_code {
        let known = model.and_then(|price| price.max_output);
        known.unwrap_or(Window::LARGEST_RESERVED_OUTPUT)
    } else {
        Tokens::ZERO
    };
    let (tokens, known_by) = match (session.context_window(), smallest) {
        (Some(recorded), _) => (recorded, KnownBy::Recording),
        (None, Some(smallest)) if is_claude_code => {
            (smallest.min(Window::DEFAULT_TOKENS), KnownBy::Model)
        }
        (None, Some(smallest)) => (smallest, KnownBy::Model),
        (None, None) => (Window::DEFAULT_TOKENS, KnownBy::Assumed),
    };
    let own = Window {
        max_output,
        ..Window::new(tokens)
    };
    let mut events = session.compactions().iter();
    let compacts = events.any(|event| event.trigger.as_deref() == Some("auto"));
    let largest = bill.largest();
    let passes_line = largest > own.effective() - AUTO_COMPACT_BUFFER;
    let mut larger = match offered {
        [] => &[LARGER][..],
        offered => offered,
    }
    .iter()
    .filter(|larger| **larger > tokens && **larger >= largest);
    let next = if largest > tokens {
        Some(larger.next().copied().unwrap_or(largest))
    } else if is_claude_code && !compacts && passes_line {
        larger.next().copied()
    } else {
        None
    };
    NativeWindow {
        tokens: next.unwrap_or(tokens),
        max_output,
        known_by: next.map_or(known_by, |_| KnownBy::Bill),
    }
}
