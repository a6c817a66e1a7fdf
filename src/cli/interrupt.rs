//! Ctrl-C: the first asks the command to end, the second ends the program.

use super::{Exit, say};
use crate::stop::StopToken;

/// Said by commands that finish what is under way.
pub(super) const FINISHING: &str =
    "interrupted: finishing what is under way; once more to leave at once";

/// The token that the first Ctrl-C requests, which also prints `words`.
pub(super) fn stop_on_interrupt(words: &'static str) -> StopToken {
    let stop = StopToken::default();
    let asked = stop.clone();
    // Where no handler can be set, Ctrl-C ends the program as usual.
    let _ = ctrlc::set_handler(move || {
        if asked.request() {
            return say(words);
        }
        #[expect(clippy::exit, reason = "the second Ctrl-C asks for exactly this")]
        std::process::exit(i32::from(Exit::Interrupted.code()));
    });
    stop
}
