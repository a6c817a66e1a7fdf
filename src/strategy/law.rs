//! Laws: what every strategy keeps, unless it says that it does not.
//!
//! A stage or preset that breaks one by design declares it; tests assert that exactly the
//! declared ones break.

/// A promise about what a strategy makes of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// A prompt keeps the provider's rules wherever the full history does.
    ValidContext,
    /// Every entry's origin is true.
    TrueOrigins,
    /// The newest user message is still there, word for word.
    KeepsLastUserMessage,
    /// Without a model the context never gets larger.
    NeverLarger,
    /// Asked twice in a row, it changes nothing the second time.
    IdempotentAtRest,
    /// A model that fails leaves the context as it was.
    SafeFailure,
}

impl Law {
    /// All laws.
    pub const ALL: [Self; 6] = [
        Self::ValidContext,
        Self::TrueOrigins,
        Self::KeepsLastUserMessage,
        Self::NeverLarger,
        Self::IdempotentAtRest,
        Self::SafeFailure,
    ];

    /// The name used in presets: `breaks = ["keeps_last_user_message"]`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ValidContext => "valid_context",
            Self::TrueOrigins => "true_origins",
            Self::KeepsLastUserMessage => "keeps_last_user_message",
            Self::NeverLarger => "never_larger",
            Self::IdempotentAtRest => "idempotent_at_rest",
            Self::SafeFailure => "safe_failure",
        }
    }

    /// The law of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|law| law.name() == name)
    }
}
