//! The model's context window, and how much of it a prompt may fill.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Tokens;

mod lines;

pub use lines::{
    AUTO_COMPACT_BUFFER, BLOCKING_BUFFER, DRAWN_PERCENT, ERROR_BUFFER, Flags, Lines,
    WARNING_BUFFER, WarningFrom, Zone,
};

/// The window a strategy works in.
///
/// `tokens` is the model's limit. A prompt of more than `tokens − overflow_reserve` is refused by
/// the provider. The *effective window* is what is left after the output is reserved; triggers
/// such as `window_fraction` and `reserve_tokens` are measured against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The model's limit.
    pub tokens: Tokens,
    /// Tokens the model may write in one response.
    pub max_output: Tokens,
    /// Tokens the provider adds to the prompt when it decides whether the prompt fits: zero for
    /// providers that count the prompt alone, `max_output` for those that count both.
    pub overflow_reserve: Tokens,
}

impl Window {
    /// The window that is assumed where neither scenario nor session names one.
    pub const DEFAULT_TOKENS: Tokens = Tokens(200_000);

    /// Output above this is not reserved: the largest reservation Claude Code makes for a
    /// summary, from which its effective window is computed.
    pub const LARGEST_RESERVED_OUTPUT: Tokens = Tokens(20_000);

    /// A window of `tokens` that reserves no output.
    pub const fn new(tokens: Tokens) -> Self {
        Self { tokens, max_output: Tokens::ZERO, overflow_reserve: Tokens::ZERO }
    }

    /// `tokens − min(max_output, 20,000)`.
    pub fn effective(&self) -> Tokens {
        self.tokens - self.max_output.min(Self::LARGEST_RESERVED_OUTPUT)
    }

    /// The tokens of one of its parts.
    pub fn part(&self, part: WindowPart) -> Tokens {
        match part {
            WindowPart::Window => self.tokens,
            WindowPart::Input => self.tokens - self.max_output,
            WindowPart::Effective => self.effective(),
        }
    }

    /// Whether the provider refuses a prompt of this size.
    pub fn overflows(&self, prompt: Tokens) -> bool {
        prompt + self.overflow_reserve > self.tokens
    }
}

/// The sizes of a session's prompts, by which a window is found too small.
#[derive(Debug, Clone, Copy, Default)]
pub struct PromptSizes {
    /// The fixed part of each.
    pub head: Tokens,
    /// The mean of its rounds.
    pub round: Tokens,
    /// The prompt of its last call, with the full history.
    pub largest: Tokens,
}

/// A part of a window that shares and reserves are measured against.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowPart {
    /// The model's limit.
    Window,
    /// The limit less all that the model may write in one response.
    Input,
    /// [`Window::effective`].
    #[default]
    Effective,
}

impl fmt::Display for WindowPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Window => "the whole window",
            Self::Input => "the window less the output",
            Self::Effective => "the effective window",
        })
    }
}

/// The window of a session's own model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeWindow {
    /// The model's limit.
    pub tokens: Tokens,
    /// The tokens that the recorded product reserves for output.
    #[serde(default)]
    pub max_output: Tokens,
    /// How it is known.
    pub known_by: KnownBy,
}

impl NativeWindow {
    /// The window that the product works in.
    pub fn own(&self) -> Window {
        Window { max_output: self.max_output, ..Window::new(self.tokens) }
    }
}

/// How a native window is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KnownBy {
    /// The recording says it.
    Recording,
    /// A price file names it for the model.
    Model,
    /// Nothing does: it is assumed.
    Assumed,
    /// A larger prompt was billed than the window that one of these names: it is the model's next
    /// larger one, or that prompt where none is known.
    Bill,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_reserved_up_to_a_limit() {
        let window =
            |max_output| Window { max_output: Tokens(max_output), ..Window::new(Tokens(200_000)) };
        assert_eq!(window(16_384).effective(), Tokens(183_616));
        assert_eq!(window(64_000).effective(), Tokens(180_000));
    }

    #[test]
    fn a_prompt_that_fills_the_window_still_fits() {
        let window = Window { overflow_reserve: Tokens(10), ..Window::new(Tokens(100)) };
        assert!(!window.overflows(Tokens(90)));
        assert!(window.overflows(Tokens(91)));
    }
}
