//! Where a client puts its cache breakpoints.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which breakpoints the simulated client sets.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    JsonSchema,
    Serialize,
    Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Those of the recorded product, else those that the provider recommends.
    #[default]
    Usual,
    /// As usual, but the breakpoint of the tools moves in front of the lowest entry that the strategy
    /// still means to change. The breakpoint of the system prompt covers the tools.
    Edge,
    /// A lower bound: the longest live prefix is read, and a block is written only where later reads
    /// pay for it.
    Ideal,
}

impl Placement {
    /// All placements, in the order of reports.
    pub const ALL: [Self; 3] = [Self::Usual, Self::Edge, Self::Ideal];

    /// The word in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::Edge => "edge",
            Self::Ideal => "ideal",
        }
    }

    /// Whether it is the default, which records leave out.
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    pub fn is_usual(&self) -> bool {
        *self == Self::Usual
    }
}

/// The breakpoints that a client sets when nothing is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breakpoints {
    /// Whether one stands behind the tools. One stands behind the system prompt in any case.
    pub tools: bool,
    /// How many of the newest messages have one.
    pub messages: usize,
    /// Whose messages.
    pub senders: Senders,
}

/// Messages that may carry a breakpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Senders {
    /// The user's, tool results among them.
    User,
    /// All.
    All,
}

impl Breakpoints {
    /// Anthropic's recommendation for conversations: tools, system prompt and the last two messages of
    /// the user.
    pub const RECOMMENDED: Self = Self {
        tools: true,
        messages: 2,
        senders: Senders::User,
    };

    /// The breakpoints of the product that wrote a recording of this format. Seen in requests of pi
    /// 0.73.1, opencode 1.18.33 and the OpenHands SDK 1.58.0.
    pub fn of(format: &str) -> Self {
        match format {
            "pi" => Self {
                tools: true,
                messages: 1,
                senders: Senders::All,
            },
            "opencode" => Self {
                tools: false,
                messages: 2,
                senders: Senders::All,
            },
            "openhands" => Self {
                tools: false,
                messages: 1,
                senders: Senders::All,
            },
            _ => Self::RECOMMENDED,
        }
    }
}
