//! Tool calls that a reader says it would make.

use super::exact::has_phrase;
use super::normalise;
use super::words::WORDS;

/// Words in the arguments of one call.
const MOST_WORDS: usize = 12;

/// The next action of a reader.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadCall {
    /// It asks the user first, or does nothing.
    Asks,
    /// It makes one call; the call as it is compared.
    Made(String),
}

impl ReadCall {
    /// Whether it is a call that names this object.
    pub(crate) fn names(&self, object: &str) -> bool {
        match self {
            Self::Made(call) => has_phrase(call, &normalise(object)),
            Self::Asks => false,
        }
    }

    /// One call, or none; `None` where the answer says more.
    pub(crate) fn read(answer: &str) -> Option<Self> {
        let answer = normalise(answer);
        if WORDS.no_call.has(&answer.replace(' ', "_")) {
            return Some(Self::Asks);
        }
        // Trimming took the bracket at the end.
        let (name, arguments) = answer.split_once(['(', ':'])?;
        if name.is_empty()
            || name.contains(|c: char| !c.is_alphanumeric() && !"_.-".contains(c))
            || arguments.contains('\n')
        {
            return None;
        }
        if WORDS.asking.iter().any(|asking| answer.starts_with(asking)) {
            return Some(Self::Asks);
        }
        // In more words, or behind a second bracket, something is said about it.
        let alone = answer.contains('(')
            && !arguments.contains('(')
            && !arguments.contains(") ")
            && arguments.split_whitespace().count() <= MOST_WORDS;
        alone.then_some(Self::Made(answer))
    }
}
