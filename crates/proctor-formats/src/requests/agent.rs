//! Recognises the agent that sends a request.

use std::sync::Arc;

use proctor_sessions::Session;
use proctor_sessions::units::ContentHash;

/// Identifies an agent across its requests: its tools, system prompt and cache key.
pub(super) struct Agent {
    tools: ContentHash,
    pub(super) system: ContentHash,
    cache_key: Option<Arc<str>>,
}

impl Agent {
    pub(super) fn of(session: &Session, cache_key: Option<Arc<str>>) -> Self {
        let tools = session.parts().tools.iter();
        let tools: String = tools.map(|tool| tool.definition.as_str()).collect();
        let system = session.parts().system.as_deref().unwrap_or_default();
        Self {
            tools: ContentHash::of(tools.as_bytes()),
            system: ContentHash::of(system.as_bytes()),
            cache_key,
        }
    }

    pub(super) fn is_like(&self, other: &Self) -> bool {
        // A product may say what its system prompt said elsewhere, once it has compacted.
        let is_of_key = self.cache_key.is_some() && self.cache_key == other.cache_key;
        self.tools == other.tools && (self.system == other.system || is_of_key)
    }
}
