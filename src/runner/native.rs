//! The window of a session's own model, as its product used it.

use crate::bill::Bill;
use crate::model::price::Prices;
use crate::session::Session;
use crate::units::Tokens;
use crate::window::{AUTO_COMPACT_BUFFER, KnownBy, NativeWindow, Window};

/// Windows that a model may have beyond the one that is known: those in the price files
/// (`src/model/price`), and two that other providers sell.
const LARGER: [Tokens; 4] = [
    Tokens(272_000),
    Tokens(400_000),
    Tokens(1_000_000),
    Tokens(2_000_000),
];

/// The native window of a session: what the recording says, else the model's, else 200,000. Where a
/// larger prompt was billed, the next larger window.
///
/// Claude Code uses a window of 200,000 tokens unless it is told otherwise, whatever the model offers,
/// and compacts by itself at a fixed distance before its end: a bill behind that line without any
/// automatic compaction was one in a larger window, where the model has one.
pub fn window(session: &Session, bill: &Bill, prices: &Prices) -> NativeWindow {
    let model = session.model().and_then(|model| prices.of(model));
    let model = model.map(|(_, price)| price);
    let offered = model.and_then(|price| price.window);
    let is_claude_code = session.source().format == "claude-code";
    let max_output = match is_claude_code {
        true => model
            .and_then(|price| price.max_output)
            .unwrap_or(Window::LARGEST_RESERVED_OUTPUT),
        false => Tokens::ZERO,
    };
    let (tokens, known_by) = match (session.context_window(), offered) {
        (Some(recorded), _) => (recorded, KnownBy::Recording),
        (None, Some(offered)) if is_claude_code => {
            (offered.min(Window::DEFAULT_TOKENS), KnownBy::Model)
        }
        (None, Some(offered)) => (offered, KnownBy::Model),
        (None, None) => (Window::DEFAULT_TOKENS, KnownBy::Assumed),
    };
    let own = Window {
        max_output,
        ..Window::new(tokens)
    };
    let mut events = session.compactions().iter();
    let compacts = events.any(|event| event.trigger.as_deref() == Some("auto"));
    let line = own.effective() - AUTO_COMPACT_BUFFER;
    let larger = offered.into_iter().chain(LARGER);
    let larger = larger.filter(|larger| *larger >= bill.largest() && *larger > tokens);
    let next = if bill.largest() > tokens {
        Some(larger.min().unwrap_or(bill.largest()))
    } else if is_claude_code && !compacts && bill.largest() > line {
        offered.filter(|offered| *offered > tokens)
    } else {
        None
    };
    match next {
        Some(tokens) => NativeWindow {
            tokens,
            max_output,
            known_by: KnownBy::Bill,
        },
        None => NativeWindow {
            tokens,
            max_output,
            known_by,
        },
    }
}
