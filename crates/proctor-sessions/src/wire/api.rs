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

impl Api {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Messages,
        Self::ChatCompletions,
        Self::Responses,
        Self::GenerateContent,
    ];

    /// The API that a request to this path speaks to, if its calls are kept.
    pub fn of_path(path: &str) -> Option<Self> {
        let path = path.trim_end_matches('/');
        [
            ("/messages", Self::Messages),
            ("/chat/completions", Self::ChatCompletions),
            ("/responses", Self::Responses),
            (":generateContent", Self::GenerateContent),
            (":streamGenerateContent", Self::GenerateContent),
        ]
        .into_iter()
        .find_map(|(end, api)| path.ends_with(end).then_some(api))
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
            ("/v1/models", None),
            (
                "/v1beta/models/gemini-2.5-pro:streamGenerateContent",
                Some(Api::GenerateContent),
            ),
            ("/v1internal:generateContent", Some(Api::GenerateContent)),
            ("/v1beta/models/gemini-2.5-pro:countTokens", None),
        ] {
            assert_eq!(Api::of_path(path), api, "{path}");
        }
    }
}
