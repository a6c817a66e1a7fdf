//! Tool calls that a reader says it would make.

use super::normalise;

/// Answers that make no call.
const NO_CALL: &[&str] = &["ask", "no call", "none", "nothing", "stop"];

/// How names of tools begin that ask the user: `AskUserQuestion`, `request_user_input`.
const ASKING: [&str; 4] = ["ask", "confirm", "request_approval", "request_user"];

/// The next action of a reader.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// It asks the user first, or does nothing.
    Asks,
    /// It makes one call; the call as it is compared.
    Made(String),
}

impl Call {
    /// One call, or none; `None` where the answer says more.
    pub(crate) fn read(answer: &str) -> Option<Self> {
        let answer = normalise(answer);
        if NO_CALL.contains(&answer.as_str()) {
            return Some(Self::Asks);
        }
        // Trimming took the bracket at the end.
        let (name, arguments) = answer.split_once(['(', ':'])?;
        let of_name = |c: char| c.is_alphanumeric() || "_.-".contains(c);
        if name.is_empty() || !name.chars().all(of_name) || arguments.contains('\n') {
            return None;
        }
        if ASKING.iter().any(|asking| name.starts_with(asking)) {
            return Some(Self::Asks);
        }
        let is_one = answer.contains('(') && !arguments.contains('(');
        let is_said = arguments.split_whitespace().count() > 12 || arguments.contains(") ");
        (is_one && !is_said).then_some(Self::Made(answer))
    }
}
