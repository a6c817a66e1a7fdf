//! Was a request refused because its prompt is too long? Every server says it in its own words.
//!
//! [`refusal`] reads a status and a body as they came, from the servers that `overflow.txt` names, and from
//! LiteLLM, which wraps what another server said. It takes the token numbers out of the message where there are any.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::units::Tokens;

/// A prompt that was refused as too long, with what the server said about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptRefusal {
    /// The prompt's size.
    pub prompt: Option<Tokens>,
    /// The output that was asked for, where the server counts it in.
    pub output: Option<Tokens>,
    /// The limit of the prompt, or of prompt and output.
    pub limit: Option<Tokens>,
}

impl PromptRefusal {
    /// The tokens that are left for an answer where the prompt fits, and only the output that was asked for beside it
    /// does not.
    pub fn room(&self) -> Option<Tokens> {
        let (prompt, limit) = (self.prompt?, self.limit?);
        (self.output.is_some() && prompt < limit).then(|| limit - prompt)
    }
}

/// How servers put it, special before general. Blanks, letter case and backticks do not matter;
/// `{total}` is prompt and output together, `{_}` any number.
const PHRASES: &str = include_str!("overflow.txt");

/// The codes in `code` or `type`.
const CODES: &[&str] = &[
    "context_length_exceeded",
    LLAMA_CPP,
    "model_max_prompt_tokens_exceeded",
    "prompt_too_long",
    "request_too_large",
];

const LLAMA_CPP: &str = "exceed_context_size_error";

/// Statuses of requests that were refused for another reason, or not for good: a rate limit also
/// speaks of tokens that are too many.
const OTHER_REASONS: &[u16] = &[401, 402, 403, 404, 408, 409, 429, 502, 503, 504, 529];

/// The refusal of a prompt that is too long; `None` where the server says something else.
///
/// `status` is the HTTP status, `body` the body as it came: JSON, a list of it, or text. A body
/// that came with a success is believed only where llama.cpp has put its error into it.
pub fn refusal(status: u16, body: &str) -> Option<PromptRefusal> {
    if OTHER_REASONS.contains(&status) {
        return None;
    }
    let mut said = RefusalBody::default();
    match serde_json::from_str::<Value>(body) {
        Ok(value) => said.listen(&value),
        Err(_) => said.messages.push(body.to_owned()),
    }
    let code = said.codes.iter().find(|code| CODES.contains(&&***code));
    if (200..300).contains(&status) && code.is_none_or(|code| code != LLAMA_CPP) {
        return None;
    }
    let found = said.messages.iter().find_map(|message| in_words(message));
    let mut refusal = match (found, code) {
        (Some(found), _) => found,
        (None, Some(_)) => PromptRefusal::default(),
        (None, None) => return None,
    };
    refusal.prompt = refusal.prompt.or(said.prompt);
    refusal.limit = refusal.limit.or(said.limit);
    Some(refusal)
}

/// The parts of a body that may say why a request was refused.
#[derive(Default)]
struct RefusalBody {
    messages: Vec<String>,
    codes: Vec<String>,
    prompt: Option<Tokens>,
    limit: Option<Tokens>,
}

impl RefusalBody {
    /// Reads an error object, wherever it is wrapped in `error`s and lists. Nothing else is looked
    /// at: a body may repeat what the user said.
    fn listen(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.listen(item)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    match (&**key, value) {
                        ("message" | "detail" | "error", Value::String(text)) => {
                            self.messages.push(text.clone());
                        }
                        ("code" | "type", Value::String(text)) => self.codes.push(text.clone()),
                        ("error", inner) => self.listen(inner),
                        ("n_prompt_tokens", number) => self.prompt = number.as_u64().map(Tokens),
                        ("n_ctx", number) => self.limit = number.as_u64().map(Tokens),
                        _ => {}
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// The phrases as patterns, each number in a group of its name.
static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let phrases = PHRASES.lines().filter(|line| !line.starts_with('#'));
    let patterns = phrases.filter_map(|phrase| {
        let numbered = regex::escape(&squeezed(phrase)).replace(r"\{_\}", "[0-9]+");
        let named = numbered.replace(r"\{", "(?P<").replace(r"\}", ">[0-9]+)");
        Regex::new(&named).ok()
    });
    patterns.collect()
});

/// The first phrase that is in a message, with its numbers.
fn in_words(message: &str) -> Option<PromptRefusal> {
    let message = squeezed(message);
    let found = PATTERNS.iter().find_map(|pattern| pattern.captures(&message))?;
    let [prompt, output, total, limit] = ["prompt", "output", "total", "limit"]
        .map(|name| found.name(name)?.as_str().parse().ok().map(Tokens));
    let rest = total.map(|total| total - output.unwrap_or_default());
    Some(PromptRefusal { prompt: prompt.or(rest), output, limit })
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && *c != '`').flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prompt, output and limit, 0 where the message names none.
    #[track_caller]
    fn check(status: u16, body: &str, prompt: u64, output: u64, limit: u64) {
        let some = |number| (number > 0).then_some(Tokens(number));
        let expected =
            PromptRefusal { prompt: some(prompt), output: some(output), limit: some(limit) };
        assert_eq!(refusal(status, body), Some(expected), "{body}");
    }

    #[test]
    fn a_prompt_that_fits_leaves_room() {
        let room = |prompt: u64, output: u64| {
            let message = format!(
                "This model's maximum context length is 4096 tokens. However, you requested {output} output \
                 tokens and your prompt contains at least {prompt} input tokens, for a total of at least {} tokens.",
                prompt + output
            );
            refusal(400, &message).unwrap().room()
        };
        assert_eq!(room(3_073, 1_024), Some(Tokens(1_023)));
        assert_eq!(room(4_097, 5), None);
    }

    #[test]
    fn servers_of_many_makers() {
        let check = |message: &str, prompt, output, limit| {
            let body = serde_json::json!({"error": {"message": message, "type": "x"}});
            check(400, &body.to_string(), prompt, output, limit);
        };
        // vLLM, SGLang, xAI, Ollama, LM Studio.
        check(
            "This model's maximum context length is 4096 tokens. However, you requested 1024 output tokens and \
             your prompt contains at least 3073 input tokens, for a total of at least 4097 tokens.",
            3_073,
            1_024,
            4_096,
        );
        check(
            "You passed 4097 input tokens and requested 5 output tokens. However, the model's context length is \
             only 4096 tokens, resulting in a maximum input length of 4096 tokens.",
            4_097,
            5,
            4_096,
        );
        check(
            "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total \
             of 5000 tokens: 4000 tokens from the input messages and 1000 tokens for the completion.",
            4_000,
            1_000,
            4_096,
        );
        check(
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            537_812,
            0,
            131_072,
        );
        check("prompt too long; exceeded max context length by 11 tokens", 0, 0, 0);
        check(
            "The number of tokens to keep from the initial prompt is greater than the context length.",
            0,
            0,
            0,
        );
        // Mistral, Bedrock, Copilot, Kimi, DashScope, and whoever speaks as OpenAI does.
        check(
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            40_000,
            0,
            32_768,
        );
        check("Input is too long for requested model.", 0, 0, 0);
        check("prompt token count of 70000 exceeds the limit of 64000", 70_000, 0, 64_000);
        check("Your request exceeded model token limit: 262144 (requested: 270000)", 0, 0, 262_144);
        check("Range of input length should be [1, 129024]", 0, 0, 129_024);
        check(
            "This model's maximum context length is 8192 tokens, which the request exceeds.",
            0,
            0,
            8_192,
        );
    }

    #[test]
    fn anthropic() {
        let body = |kind: &str, message: &str| {
            format!(
                r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_1"}}"#
            )
        };
        let invalid = |message| body("invalid_request_error", message);
        check(400, &invalid("prompt is too long: 207 tokens > 200 maximum"), 207, 0, 200);
        check(
            400,
            &invalid(
                "input length and `max_tokens` exceed context limit: 188 + 21 > 200, decrease \
                 input length or `max_tokens` and try again",
            ),
            188,
            21,
            200,
        );
        check(413, &invalid("Prompt is too long"), 0, 0, 0);
        check(413, &body("request_too_large", "Request exceeds the maximum size"), 0, 0, 0);
    }

    #[test]
    fn openai() {
        let body = |message: &str| {
            format!(
                r#"{{"error":{{"message":"{message}","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}}}"#
            )
        };
        check(
            400,
            &body(
                "This model's maximum context length is 8192 tokens. However, your messages \
                 resulted in 8227 tokens. Please reduce the length of the messages.",
            ),
            8_227,
            0,
            8_192,
        );
        check(
            400,
            &body(
                "This model's maximum context length is 4097 tokens. However, you requested \
                 4120tokens (3120 in the messages, 1000 in the completion).",
            ),
            3_120,
            1_000,
            4_097,
        );
        check(
            400,
            &body(
                "This model's maximum context length is 4097 tokens. However, you requested 4200 \
                 tokens (3000 in the messages, 200 in the functions, and 1000 in the completion).",
            ),
            3_200,
            1_000,
            4_097,
        );
        check(
            400,
            &body(
                "This model's maximum context length is 4097 tokens, however you requested 4231 \
                 tokens (3975 in your prompt; 256 for the completion).",
            ),
            3_975,
            256,
            4_097,
        );
        check(
            400,
            &body(
                "Your input exceeds the context window of this model. Please adjust your input \
                 and try again.",
            ),
            0,
            0,
            0,
        );
        // The words are new, but the code is known.
        check(400, &body("Too much."), 0, 0, 0);
        check(
            400,
            r#"{"error":{"message":"Input tokens exceed the configured limit of 272 tokens. Your messages resulted in 509 tokens.","code":null}}"#,
            509,
            0,
            272,
        );
    }

    #[test]
    fn gemini() {
        let body = r#"{"error":{"code":400,"message":"The input token count (134) exceeds the maximum number of tokens allowed (131).","status":"INVALID_ARGUMENT"}}"#;
        check(400, body, 134, 0, 131);
        check(400, &format!("[{body}]"), 134, 0, 131);
        let without = r#"{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#;
        check(400, without, 0, 0, 1_048_576);
        // A client that puts the body into a message of its own.
        let wrapped = serde_json::json!({ "error": { "message": body, "code": 400 } });
        check(400, &wrapped.to_string(), 134, 0, 131);
    }

    #[test]
    fn vllm_and_sglang() {
        let flat = |message: &str| {
            format!(
                r#"{{"object":"error","message":"{message}","type":"BadRequestError","param":null,"code":400}}"#
            )
        };
        check(
            400,
            &flat(
                "This model's maximum context length is 6048 tokens. However, you requested 6616 \
                 tokens (568 in the messages, 6048 in the completion).",
            ),
            568,
            6_048,
            6_048,
        );
        check(
            400,
            &flat(
                "'max_tokens' or 'max_completion_tokens' is too large: 900. This model's maximum \
                 context length is 1000 tokens and your request has 200 input tokens \
                 (900 > 1000 - 200).",
            ),
            200,
            900,
            1_000,
        );
        check(
            400,
            &flat(
                "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
            ),
            5_000,
            0,
            4_096,
        );
        check(
            400,
            &flat(
                "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
            ),
            5_000,
            0,
            4_096,
        );
    }

    #[test]
    fn llama_cpp() {
        let body = r#"{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}"#;
        for status in [400, 500, 200] {
            check(status, body, 14_429, 0, 8_192);
        }
        check(
            400,
            r#"{"error":{"code":400,"message":"request (1407 tokens) exceeds the available context size (256 tokens), try increasing it","type":"exceed_context_size_error"}}"#,
            1_407,
            0,
            256,
        );
        check(
            500,
            r#"{"error":{"message":"Requested tokens (2285) exceed context window of 2048","type":"internal_server_error"}}"#,
            2_285,
            0,
            2_048,
        );
    }

    #[test]
    fn litellm_and_openrouter() {
        let inner = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 209 tokens > 200 maximum"}}"#;
        let message = format!("litellm.ContextWindowExceededError: AnthropicError - {inner}");
        let body = serde_json::json!({
            "error": { "message": message, "type": null, "param": null, "code": "400" }
        });
        check(400, &body.to_string(), 209, 0, 200);
        check(
            400,
            r#"{"error":{"message":"litellm.BadRequestError: litellm.ContextWindowExceededError: too large","code":"400"}}"#,
            0,
            0,
            0,
        );
        check(
            400,
            r#"{"error":{"message":"This endpoint's maximum context length is 327 tokens. However, you requested about 428 tokens (428 of text input).","code":400}}"#,
            428,
            0,
            327,
        );
    }

    #[test]
    fn what_is_refused_for_another_reason_is_no_overflow() {
        for (status, body) in [
            (
                429,
                r#"{"error":{"message":"Request too large: limit 30000 tokens per minute","code":"rate_limit_exceeded"}}"#,
            ),
            // A rate limit that quotes the very words.
            (429, r#"{"error":{"message":"prompt is too long"}}"#),
            (
                400,
                r#"{"error":{"message":"max_tokens must be at least 1","type":"invalid_request_error"}}"#,
            ),
            // A user's text is not a message of the server.
            (400, r#"{"error":{"message":"bad role"},"input":{"message":"prompt is too long"}}"#),
            (200, r#"{"type":"message","content":[{"text":"prompt is too long"}]}"#),
            (200, r#"{"message":"prompt is too long"}"#),
            (500, ""),
            (400, "null"),
            (400, "not json"),
        ] {
            assert_eq!(refusal(status, body), None, "{status} {body}");
        }
        check(413, "prompt is too long: 9 tokens > 8 maximum", 9, 0, 8);
    }
}
