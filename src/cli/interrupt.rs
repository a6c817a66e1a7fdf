//! Ctrl-C: the first asks the command to end, the second ends the program and those that it started.

use std::sync::{LazyLock, Mutex, PoisonError};

use super::{Exit, say};
use crate::process::Groups;
use crate::stop::StopToken;

/// Said by commands that finish what is under way.
pub(super) const FINISHING: &str =
    "interrupted: finishing what is under way; once more to leave at once";

/// What the handler acts on: a process has only one.
static INTERRUPT: LazyLock<Interrupt> = LazyLock::new(Interrupt::default);

#[derive(Default)]
struct Interrupt {
    /// The words of the command, and its token once it ends in its own way.
    command: Mutex<(&'static str, Option<StopToken>)>,
    groups: Groups,
}

impl Interrupt {
    fn handle(&self) {
        let command = self.command.lock().unwrap_or_else(PoisonError::into_inner);
        let (words, stop) = &*command;
        match stop {
            None => say(words),
            Some(stop) if stop.request() => return say(words),
            Some(_) => {}
        }
        self.groups.kill();
        std::process::exit(i32::from(Exit::Interrupted.code()));
    }
}

/// Has Ctrl-C from now on print `words` before it ends the program: loading sessions may take long.
pub(super) fn say_on_interrupt(words: &'static str) {
    set(words, None);
}

/// The token that the first Ctrl-C from now on requests, which also prints `words`.
pub(super) fn stop_on_interrupt(words: &'static str) -> StopToken {
    let stop = StopToken::default();
    set(words, Some(stop.clone()));
    stop
}

/// The programs that Ctrl-C ends with this one.
pub(super) fn end_programs_on_interrupt() -> Groups {
    INTERRUPT.groups.clone()
}

fn set(words: &'static str, stop: Option<StopToken>) {
    let command = &INTERRUPT.command;
    *command.lock().unwrap_or_else(PoisonError::into_inner) = (words, stop);
    // It may be set already; where none can be set, Ctrl-C ends the program as usual.
    let _ = ctrlc::set_handler(|| INTERRUPT.handle());
}
