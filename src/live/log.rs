//! The log of what came in: enough to do it all again.

use std::fmt;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::{LiveCell, Skip, Ticket};
use crate::session::wire::stream::Api;
use crate::units::Timestamp;

/// One thing that happened: a line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// The first line: each strategy, with a hash of all that decides what it does.
    Began {
        /// Name and hash.
        strategies: Vec<(String, String)>,
    },
    /// A request came.
    Request {
        /// The call that it is.
        ticket: Ticket,
        /// When it came.
        at: Timestamp,
        /// The API that was spoken to.
        api: Api,
        /// The cell that it belongs to.
        cell: LiveCell,
        /// Its body, byte for byte but for the keys in it, which are blanked.
        body: String,
    },
    /// It is passed on.
    Sent {
        /// The call.
        ticket: Ticket,
        /// The request or refusal that this came of: how many of these the log has before it.
        number: usize,
        /// Why the strategy had no part in it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        skipped: Option<Skip>,
        /// The hash of the body that was sent, where it is another than the agent's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hash: Option<String>,
    },
    /// It was refused as too long, and the strategy is asked for a shorter one. `Sent` says what came of it: without a hash
    /// there is none.
    Refused {
        /// The call.
        ticket: Ticket,
    },
    /// It was answered, or failed.
    Answer {
        /// The call.
        ticket: Ticket,
        /// When the answer was whole.
        at: Timestamp,
        /// The answer, put together where it was streamed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response: Option<String>,
    },
}

/// Where the log is written.
pub struct Log(Box<dyn Write + Send>);

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

impl Log {
    /// A log that is written here, line by line.
    pub fn new(out: impl Write + Send + 'static) -> Self {
        Self(Box::new(out))
    }

    pub(super) fn write(&mut self, event: &Event) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        self.0.write_all(&line)?;
        self.0.flush()
    }
}

/// Reads a log. A last line that was cut off is left out; another line that cannot be read is an error, with its
/// number.
pub fn read_log(text: &str) -> Result<Vec<Event>, (usize, serde_json::Error)> {
    let mut events = Vec::new();
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        match serde_json::from_str(line) {
            Ok(event) => events.push(event),
            Err(_) if !line.ends_with('\n') => {}
            Err(error) => return Err((number, error)),
        }
    }
    Ok(events)
}
