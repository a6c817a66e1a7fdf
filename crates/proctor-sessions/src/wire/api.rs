//! The APIs whose calls are kept.

use serde::{Deserialize, Serialize};

/// An API whose calls are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// Anthropic's messages.
    Messages,
    /// OpenAI's chat completions.
    ChatCompletions,
    /// OpenAI's responses.
    Responses,
    /// Gemini's `generateContent`, streamed or not; and the same as Google's own tools wrap it.
    GenerateContent,
}

/// The end of the path at which OpenAI compacts a conversation.
const COMPACTION: &str = "/responses/compact";

impl Api {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Messages, Self::ChatCompletions, Self::Responses, Self::GenerateContent];

    /// The API that a request to this path speaks to, if its calls are kept.
    pub fn of_path(path: &str) -> Option<Self> {
        [
            ("/messages", Self::Messages),
            ("/chat/completions", Self::ChatCompletions),
            ("/responses", Self::Responses),
            (COMPACTION, Self::Responses),
            (":generateContent", Self::GenerateContent),
            (":streamGenerateContent", Self::GenerateContent),
        ]
        .into_iter()
        .find_map(|(end, api)| path.trim_end_matches('/').ends_with(end).then_some(api))
    }

    /// Whether a request to this path asks the provider to compact a conversation, and the model for no answer.
    pub fn is_compaction(path: &str) -> bool {
        path.trim_end_matches('/').ends_with(COMPACTION)
    }

    /// Whether a request to this path has a prompt counted, and asks the model for no answer.
    pub fn is_count(path: &str) -> bool {
        let path = path.trim_end_matches('/');
        ["/count_tokens", "/input_tokens", ":countTokens"].iter().any(|end| path.ends_with(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_of_models_are_kept() {
        for (path, api) in [
            ("/v1/messages", Some(Api::Messages)),
            ("/v1/messages/", Some(Api::Messages)),
            ("/v1/messages/count_tokens", None),
            ("/openai/v1/chat/completions", Some(Api::ChatCompletions)),
            ("/v1/responses", Some(Api::Responses)),
            ("/v1/responses/compact", Some(Api::Responses)),
            ("/v1/responses/input_tokens", None),
            ("/v1/models", None),
            ("/v1beta/models/gemini-2.5-pro:streamGenerateContent", Some(Api::GenerateContent)),
            ("/v1internal:generateContent", Some(Api::GenerateContent)),
            ("/v1beta/models/gemini-2.5-pro:countTokens", None),
        ] {
            assert_eq!(Api::of_path(path), api, "{path}");
            assert_eq!(Api::is_count(path), path.to_lowercase().contains("tokens"), "{path}");
        }
    }
}
