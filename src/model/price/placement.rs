//! Where a client puts its cache breakpoints.

/// The cache breakpoints of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    /// Whether it sets a breakpoint behind the tools. It always sets one behind the system prompt.
    pub marks_tools: bool,
    /// How many of the newest messages have a breakpoint.
    pub messages: usize,
    /// The senders of these messages.
    pub senders: Senders,
    /// Whether its own summary requests go on with the agent's prompt, tools included.
    pub forks: bool,
}

/// Messages that may carry a breakpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Senders {
    /// The user's, tool results among them.
    User,
    /// All.
    All,
}

impl Client {
    /// Anthropic's recommendation for conversations: tools, system prompt and the last two messages of
    /// the user.
    pub const RECOMMENDED: Self =
        Self { marks_tools: true, messages: 2, senders: Senders::User, forks: false };

    /// The product that wrote a recording of this format. Seen in requests of pi 0.73.1, opencode
    /// 1.18.33 and the OpenHands SDK 1.58.0. Their summary requests are short and separate, and Codex
    /// offers no tools in its own.
    pub fn of(format: &str) -> Self {
        let newest = Self { marks_tools: false, messages: 1, senders: Senders::All, forks: false };
        match format {
            "pi" => Self { marks_tools: true, ..newest },
            "opencode" => Self { messages: 2, ..newest },
            "openhands" => newest,
            "claude-code" => Self { forks: true, ..Self::RECOMMENDED },
            _ => Self::RECOMMENDED,
        }
    }
}
