//! What `[models]` may say.

use serde_json::{Value, json};

use super::{fraction, object, text, whole};

pub(super) fn models() -> Value {
    let none = json!({ "enum": ["offline", "none"] });
    object(
        &json!({
            "summariser": {
                "description": "who writes summaries",
                "oneOf": [{ "const": "offline" }, model()],
                "default": "offline",
            },
            "reader": {
                "description": "who answers probes; survival is measured all the same",
                "oneOf": [none, model()],
                "default": "offline",
            },
            "judge": {
                "description": "who judges answers; several vote",
                "oneOf": [{ "const": "none" }, model(), { "type": "array", "items": model() }],
                "default": "none",
            },
            "judging": {
                "description": "which answers are judged: those that rules cannot grade, or all",
                "enum": ["needed", "all"],
                "default": "needed",
            },
            "answers": whole(1, 100, "how often each probe is answered, in each repeat", Some(1)),
            "judgements": whole(1, 100, "how often each judge grades an answer", Some(1)),
            "qualify": {
                "description": "ask a reader that is a model every probe once more, under full history \
                    and under an empty context, to see which probes the context decides",
                "type": "boolean",
                "default": true,
            },
            "reader_scope": {
                "description": "whether a reader that is a model is also asked of the summaries alone",
                "enum": ["context", "context+summary"],
                "default": "context",
            },
            "reader_window": whole(1, 1_000_000_000, "the context window of a reader that is a model, prompt and \
                answer together; where full history does not fit it, the ceiling is the evidence and the newest \
                history that fits. Without it that of the price file, less 4,096", None),
            "calibrations": {
                "description": "files that `proctor calibrate -o` wrote of the judges; reports say what they found",
                "type": "array",
                "items": { "type": "string" },
            },
            "cassette": text("the file in which answers are kept; by default one in the run's folder"),
            "replay": {
                "description": "what recorded answers are for",
                "enum": ["auto", "strict", "record", "off"],
                "default": "auto",
            },
            "pace": object(
                &json!({
                    "at_once": whole(1, 1_000, "requests under way at most, per address", Some(16)),
                    "tokens_per_minute": whole(1, u64::MAX, "tokens a minute, per address", None),
                    "retries": whole(0, 1_000, "how often a request is sent again", Some(8)),
                    "longest_wait_seconds": whole(0, 86_400, "a provider that asks to be left alone for longer is given up", Some(300)),
                }),
                &[],
            ),
            "budget": object(
                &json!({
                    "usd": { "description": "money", "type": "number", "minimum": 0 },
                    "tokens": whole(1, u64::MAX, "tokens, prompts and answers", None),
                    "minutes": whole(1, 1_000_000, "minutes from the start", None),
                    "least_coverage": fraction("share of cells below which a run that reached its budget failed"),
                }),
                &[],
            ),
        }),
        &[],
    )
}

/// A model other than a word names.
fn model() -> Value {
    object(
        &json!({
            "kind": {
                "description": "whose API it is behind, or where its answers come from",
                "enum": ["offline", "openai", "anthropic", "scripted", "cassette"],
            },
            "model": text("the model's id; of a scripted model its name in reports"),
            "base_url": text("the base URL, for a server that is not the provider's own"),
            "key": text("the name of the environment variable that holds the key"),
            "authority": text("PEM file with certificates of a private authority"),
            "temperature": { "type": "number", "minimum": 0 },
            "limit": {
                "description": "what an OpenAI-compatible server calls the limit of the output",
                "enum": ["max_tokens", "max_completion_tokens"],
            },
            "thinking_tokens": whole(0, 1_000_000, "room for what the model thinks, added to the limit of every \
                answer; 4,096 for kind openai, else 0", None),
            "structured": {
                "description": "ask for verdicts with a JSON schema; true for the providers' own APIs, false \
                    where base_url is set",
                "type": "boolean",
            },
            "script": text("with `scripted`: the file of answers"),
            "provider": {
                "description": "with `cassette`: whose API the model was asked through",
                "enum": ["anthropic", "openai"],
                "default": "anthropic",
            },
        }),
        &["kind"],
    )
}
