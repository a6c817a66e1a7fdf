//! The log of what came in: enough to do it all again.
//!
//! A request repeats the one before it, and adds a little. So of a body only what is new is written, between what it
//! shares with an earlier one at its beginning and its end: the log grows with the conversation, and not with its square.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

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
        /// The parts of its body that an earlier one has as well.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shared: Option<Shared>,
        /// The rest of its body between those, byte for byte but for the keys in it, which are blanked.
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
    /// A request of a task was answered that no strategy saw.
    Apart {
        /// The cell that it belongs to.
        cell: LiveCell,
        /// The API that was spoken to.
        api: Api,
        /// The answer.
        response: String,
    },
    /// It failed when so much of its answer had come, which the provider bills.
    Cut {
        /// The call.
        ticket: Ticket,
        /// As much of the answer as came.
        response: String,
    },
}

/// The bytes that a body shares with the last one of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shared {
    /// The number of that conversation, which need not be its own.
    conversation: usize,
    /// At the beginning.
    start: usize,
    /// At the end.
    end: usize,
}

/// Conversations whose last body is remembered at most.
const MOST_BODIES: usize = 256;

/// The last bodies of conversations, the latest at the back: so many that the reader of a log has each that its
/// writer had, even where the writer was started anew.
#[derive(Debug, Default)]
pub(super) struct Bodies(VecDeque<(usize, Arc<str>)>);

impl Bodies {
    fn of(&self, conversation: usize) -> Option<&(usize, Arc<str>)> {
        self.0.iter().rfind(|(its, _)| *its == conversation)
    }

    fn remember(&mut self, conversation: usize, body: Arc<str>) {
        self.0.retain(|(its, _)| *its != conversation);
        self.0.push_back((conversation, body));
        if self.0.len() > MOST_BODIES {
            self.0.pop_front();
        }
    }

    /// Takes out of a body the parts that it shares with the last one of its conversation, or else the last one of all.
    fn shorten(&mut self, conversation: usize, body: &mut String) -> Option<Shared> {
        let whole: Arc<str> = std::mem::take(body).into();
        let before = self.of(conversation).or(self.0.back());
        let shared = before.map(|(conversation, before)| {
            let (start, end) = common(before, &whole);
            whole[start..whole.len() - end].clone_into(body);
            Shared { conversation: *conversation, start, end }
        });
        if shared.is_none() {
            whole.as_ref().clone_into(body);
        }
        self.remember(conversation, whole);
        shared
    }

    /// The whole body; `None` where the one that it shares parts with is not there.
    pub(super) fn whole(
        &mut self,
        conversation: usize,
        shared: Option<Shared>,
        body: &str,
    ) -> Option<Arc<str>> {
        let whole: Arc<str> = match shared {
            None => body.into(),
            Some(shared) => {
                let (_, before) = self.of(shared.conversation)?;
                let end = before.len().checked_sub(shared.end)?;
                let parts = [before.get(..shared.start)?, body, before.get(end..)?];
                parts.concat().into()
            }
        };
        self.remember(conversation, whole.clone());
        Some(whole)
    }
}

/// Bytes that two texts have in common at their beginning, and after that at their end; no character is cut.
fn common(before: &str, body: &str) -> (usize, usize) {
    let pairs = before.bytes().zip(body.bytes());
    let mut start = pairs.take_while(|(before, byte)| before == byte).count();
    while !body.is_char_boundary(start) {
        start -= 1;
    }
    let rests = before[start..].bytes().rev().zip(body[start..].bytes().rev());
    let mut end = rests.take_while(|(before, byte)| before == byte).count();
    while !body.is_char_boundary(body.len() - end) {
        end -= 1;
    }
    (start, end)
}

/// Where the log is written.
pub struct Log {
    out: Box<dyn Write + Send>,
    bodies: Bodies,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

impl Log {
    /// A log that is written here, line by line.
    pub fn new(out: impl Write + Send + 'static) -> Self {
        Self { out: Box::new(out), bodies: Bodies::default() }
    }

    /// Writes a line. The body of a request is given whole.
    pub(super) fn write(&mut self, mut event: Event) -> io::Result<()> {
        if let Event::Request { ticket, shared, body, .. } = &mut event {
            *shared = self.bodies.shorten(ticket.conversation, body);
        }
        let mut line = serde_json::to_vec(&event)?;
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.out.flush()
    }
}

/// Reads a log, and says how many of its bytes are whole lines. An end that is no JSON is left out: a crash or a power cut
/// left it. Any other line that cannot be read is an error, with its number.
pub fn read_log(bytes: &[u8]) -> Result<(Vec<Event>, usize), (usize, serde_json::Error)> {
    let (mut events, mut whole, mut at) = (Vec::new(), 0, 0);
    let mut unread = None;
    for (number, line) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
        let ended = line.ends_with(b"\n");
        at += line.len();
        match (serde_json::from_slice(line), unread.take()) {
            (Ok(_), Some(unread)) => return Err(unread),
            (Ok(event), None) if ended => {
                events.push(event);
                whole = at;
            }
            // No log begins so.
            (Err(error), _) if ended && (error.is_data() || events.is_empty()) => {
                return Err((number, error));
            }
            (Ok(_), None) => {}
            (Err(error), earlier) => unread = earlier.or(Some((number, error))),
        }
    }
    Ok((events, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bodies of conversations as the log shortens them; checks that they are whole again when it is read.
    fn shortened(bodies: &[(usize, String)]) -> Vec<String> {
        let (mut writer, mut reader) = (Bodies::default(), Bodies::default());
        let mut shortened = Vec::new();
        for (conversation, whole) in bodies {
            // The program is started again now and then.
            if shortened.len() % 700 == 600 {
                writer = Bodies::default();
            }
            let mut body = whole.clone();
            let shared = writer.shorten(*conversation, &mut body);
            let read = reader.whole(*conversation, shared, &body).unwrap();
            assert_eq!(*read, **whole);
            shortened.push(body);
        }
        shortened
    }

    #[test]
    fn a_body_is_what_is_new_in_it() {
        let tools = "a tool and its description ".repeat(5);
        let bodies = ["1é", "1é,2è", "1é,2ê", "1é,2ê"].map(|messages| {
            let body = format!("{{\"messages\":[{messages}],\"tools\":\"{tools}\"}}");
            (0, body)
        });
        assert_eq!(shortened(&bodies)[1..], [",2è", "ê", ""]);
    }

    #[test]
    fn bodies_are_forgotten_by_writer_and_reader_alike() {
        let bodies = (0..2_000).map(|at| (at * at % 300, format!("number {at} of many")));
        let shortened = shortened(&bodies.collect::<Vec<_>>());
        assert_eq!(shortened.iter().filter(|body| body.len() > 4).count(), 3);
        let lost = Shared { conversation: 9, start: 1, end: 0 };
        assert_eq!(Bodies::default().whole(0, Some(lost), "x"), None);
    }

    #[test]
    fn a_garbled_end_is_left_out_and_anything_else_that_cannot_be_read_is_an_error() {
        let line = "{\"refused\":{\"ticket\":{\"conversation\":0,\"call\":1}}}\n";
        let read = |end: &[u8]| read_log(&[line.as_bytes(), line.as_bytes(), end].concat());
        let ends: [&[u8]; 6] =
            [b"", b"{\"half", b"\0\0\0", b"\xffx\n", b"}{\nx\n\0", b"\0\n\n{\"a\":"];
        for end in ends {
            let (events, whole) = read(end).unwrap();
            assert_eq!((events.len(), whole), (2, 2 * line.len()), "{end:?}");
        }
        let middle = [b"x\n", line.as_bytes()].concat();
        let others: [&[u8]; 2] = [b"{\"later\":1}\n", &middle];
        for end in others {
            assert_eq!(read(end).unwrap_err().0, 3, "{end:?}");
        }
        assert_eq!(read_log(b"some text\n").unwrap_err().0, 1);
        assert_eq!(read_log(b"{\"be").unwrap(), (Vec::new(), 0));
    }
}
