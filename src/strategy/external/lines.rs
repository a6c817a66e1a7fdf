//! Lines to and from a program, over any two streams: threads of their own read and write them.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::process::PATIENCE;

/// Lines that a program may print while it ends: each may take as much of the time as any other.
const LAST_LINES: u32 = 100;

/// A piece of a program's output.
#[derive(Debug)]
pub(super) enum Chunk {
    Line(Vec<u8>),
    TooLong,
    Closed,
}

/// Both directions of a connection, and how far the conversation is. By default both are closed.
#[derive(Debug, Default)]
pub(super) struct ProgramLines {
    /// A thread of its own writes, so that a program that does not read is no deadlock.
    input: Option<Sender<Vec<u8>>>,
    /// Pieces, and whether the program had written more by then.
    output: Option<Receiver<(Chunk, bool)>>,
    /// The `id` of the line that was sent last; none before the first.
    pub(super) last_id: Option<u64>,
    /// Whether more output lay there when the last line was read.
    is_followed: bool,
}

impl ProgramLines {
    /// Reads lines of at most `longest` bytes from `source`, and writes to `sink`.
    pub(super) fn over(
        source: Box<dyn Read + Send>,
        sink: Box<dyn Write + Send>,
        longest: usize,
    ) -> Self {
        let (input, lines) = channel();
        let (found, output) = sync_channel(4);
        std::thread::spawn(move || write_lines(sink, &lines));
        std::thread::spawn(move || read_lines(source, longest, &found));
        Self { input: Some(input), output: Some(output), ..Self::default() }
    }

    /// The number of the next line that wants an answer.
    pub(super) fn next_id(&mut self) -> u64 {
        let id = self.last_id.map_or(0, |last| last + 1);
        self.last_id = Some(id);
        id
    }

    /// Has a line written. That nobody reads it shows when an answer is due.
    pub(super) fn send(&self, line: Vec<u8>) {
        if let Some(input) = &self.input {
            let _ = input.send(line);
        }
    }

    /// The next piece of output, within this time.
    pub(super) fn next(&mut self, limit: Duration) -> Result<Chunk, RecvTimeoutError> {
        let Some(output) = &self.output else {
            return Err(RecvTimeoutError::Disconnected);
        };
        let (piece, is_followed) = output.recv_timeout(limit)?;
        self.is_followed = is_followed;
        Ok(piece)
    }

    /// How long to wait for output that should not be there: more was seen behind the last line, or nothing was.
    pub(super) fn followed(&self) -> Duration {
        if self.is_followed { PATIENCE } else { Duration::ZERO }
    }

    /// Drops what was answered too late, as far as it has arrived.
    pub(super) fn forget_answers(&mut self) {
        while let Ok(Chunk::Line(_)) = self.next(self.followed()) {}
    }

    /// Closes the input. A program that is done reads its end, and ends.
    pub(super) fn hang_up(&mut self, grace: Duration) {
        self.input = None;
        for _ in 0..LAST_LINES {
            match self.next(grace / LAST_LINES) {
                Ok(Chunk::Line(_)) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Chunk::TooLong | Chunk::Closed) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    }
}

/// The program that started this process and speaks the protocol with it: one connection, which one cell has at a time.
/// Clones share it.
#[derive(Debug, Clone)]
pub struct CallingProgram(Arc<Mutex<Option<ProgramLines>>>);

impl CallingProgram {
    /// The longest line that is read, in bytes: as a program that is started has by default.
    const LONGEST: usize = 64 << 20;

    /// Speaks over these streams.
    pub fn over(source: Box<dyn Read + Send>, sink: Box<dyn Write + Send>) -> Self {
        let lines = ProgramLines::over(source, sink, Self::LONGEST);
        Self(Arc::new(Mutex::new(Some(lines))))
    }

    /// The connection, unless a cell has it.
    pub(super) fn take(&self) -> Option<ProgramLines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The connection comes back.
    pub(super) fn give_back(&self, lines: ProgramLines) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(lines);
    }
}

fn write_lines(mut sink: impl Write, lines: &Receiver<Vec<u8>>) {
    for line in lines {
        if sink.write_all(&line).and_then(|()| sink.flush()).is_err() {
            return;
        }
    }
}

fn read_lines(source: impl Read, longest: usize, found: &SyncSender<(Chunk, bool)>) {
    let mut source = BufReader::new(source);
    loop {
        let mut line = Vec::new();
        let most = longest as u64 + 1;
        let read = (&mut source).take(most).read_until(b'\n', &mut line);
        let output = match read {
            // A line without an end is cut off.
            Ok(_) if line.last() == Some(&b'\n') => Chunk::Line(line),
            Ok(_) if line.len() > longest => Chunk::TooLong,
            _ => Chunk::Closed,
        };
        let ended = !matches!(output, Chunk::Line(_));
        if found.send((output, !source.buffer().is_empty())).is_err() || ended {
            return;
        }
    }
}
