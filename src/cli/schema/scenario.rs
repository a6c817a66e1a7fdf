//! The schema of scenario files, made from the tables that readers, help and docs share.

use serde_json::{Map, Value, json};

use crate::bill::Sizes;
use crate::compare::COMPARED;
use crate::model::fault::Fault;
use crate::model::price::Placement;
use crate::probe::ProbeKind;
use crate::probe::recovery::Recovery;
use crate::session::synthetic::{
    FAMILIES, Language, MOST_DISTRACTORS, MOST_FACTS, OBSERVATIONS, RESULTS,
};
use crate::session::wire::Provider;
use crate::strategy::StageKind;
use crate::strategy::knob::{Knob, KnobKind};
use crate::strategy::preset::PRESETS;
use crate::strategy::stage::STAGES;
use crate::strategy::trigger::{CONDITIONS, ConditionKind, Takes, measures};
use crate::tokens::COUNTERS;

mod models;

/// What may stand in a scenario file. It refuses what the reader refuses by name, type and range;
/// what depends on two settings at once only the reader knows.
pub(super) fn schema() -> Value {
    let counters: Vec<&str> = COUNTERS.iter().map(|(name, _)| *name).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Proctor scenario",
        "type": "object",
        "additionalProperties": false,
        "required": ["sessions", "strategies"],
        "properties": {
            "name": {
                "description": "becomes part of the run folder's name",
                "type": "string",
                "pattern": "^[a-z0-9][a-z0-9._@-]*$",
                "maxLength": 60,
                "default": "scenario",
            },
            "description": text("one sentence, printed above the table"),
            "seed": whole(0, u64::MAX, "orders strategies within a session", Some(1)),
            "counter": {
                "description": "the token counter",
                "enum": counters,
                "default": "o200k",
            },
            "provider": {
                "description": "whose rules prompts are checked by",
                "enum": Provider::ALL.map(Provider::name),
                "default": "anthropic",
            },
            "repeats": whole(1, 1_000, "repeats of each cell", Some(1)),
            "sizes": { "description": "prompts as billed, where a session carries usage, or by the counter alone", "enum": Sizes::NAMES, "default": "billed" },
            "window": window(),
            "models": models::models(),
            "probes": probes(),
            "recovery": recovery(),
            "faults": faults(),
            "cache": cache(),
            "gate": gate(),
            "sessions": { "type": "array", "minItems": 1, "items": session() },
            "strategies": { "type": "array", "minItems": 1, "items": strategy() },
        },
        "$defs": {
            "when": when(),
            "condition": condition(),
            "guards": guards(),
            "stage": { "oneOf": STAGES.iter().map(stage).collect::<Vec<_>>() },
        },
    })
}

fn text(description: &str) -> Value {
    json!({ "description": description, "type": "string" })
}

fn whole(low: u64, high: u64, description: &str, default: Option<u64>) -> Value {
    let mut schema = json!({
        "description": description,
        "type": "integer",
        "minimum": low,
    });
    if high != u64::MAX {
        schema["maximum"] = json!(high);
    }
    if let Some(default) = default {
        schema["default"] = json!(default);
    }
    schema
}

fn fraction(description: &str) -> Value {
    json!({ "description": description, "type": "number", "minimum": 0, "maximum": 1 })
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "required": required,
    })
}

fn window() -> Value {
    object(
        &json!({
            "mode": {
                "description": "`native`: so many tokens; `fit`: a share of each session's largest prompt; \
                    `matched`: either, and all strategies compact at `trigger`",
                "enum": ["native", "fit", "matched"],
                "default": "native",
            },
            "fraction": fraction("with `fit` or `matched`: the share"),
            "tokens": whole(
                1,
                u64::MAX,
                "with `native` or `matched`: the window; without it the session's own, else 200,000",
                None,
            ),
            "max_output": whole(0, u64::MAX, "tokens the model may write in one response", Some(0)),
            "overflow_reserve": whole(
                0,
                u64::MAX,
                "tokens the provider adds to the prompt when it decides whether it fits",
                Some(0),
            ),
            "head_tokens": whole(
                0,
                100_000_000,
                "tokens of system prompt and tools in front of every prompt of a session that neither holds them nor tells their size",
                None,
            ),
            "trigger": {
                "description": "when the controls compact",
                "$ref": "#/$defs/when",
                "default": { "window_fraction": 0.8 },
            },
        }),
        &[],
    )
}

fn gate() -> Value {
    let margins: Map<String, Value> = COMPARED
        .iter()
        .map(|metric| {
            let mut schema = json!({
                "description": "how much worse it may be; an amount's margin is a share",
                "type": "number",
                "minimum": 0,
            });
            if let Some(margin) = metric.margin {
                schema["default"] = json!(margin);
            }
            (metric.name.to_owned(), schema)
        })
        .collect();
    object(
        &json!({
            "margins": object(&Value::Object(margins), &[]),
            "only": {
                "description": "whether only the metrics of `margins` are gated",
                "type": "boolean",
                "default": false,
            },
            "target": {
                "description": "what verdicts are about; by default `suite` where nothing depends on chance",
                "enum": ["suite", "population"],
            },
            "hard_break": {
                "description": "whether a lost probe of high importance fails the gate",
                "type": "boolean",
                "default": true,
            },
            "coverage": fraction("share of what the baseline scored that must be scored again"),
            "fail_on": {
                "description": "what fails besides `regressed`",
                "enum": ["inconclusive"],
            },
            "baseline": text("the baseline of `run --gate`"),
            "anchor": text("an older baseline that must hold as well"),
        }),
        &[],
    )
}

fn probes() -> Value {
    object(
        &json!({
            "files": {
                "description": "files of facts (`ID.truth.json`), relative to the scenario: each takes \
                    the place of what is known about its session",
                "type": "array",
                "items": { "type": "string" },
                "default": [],
            },
            "points": {
                "description": "how far the session is where probes are asked, in percent of its calls, ascending",
                "type": "array",
                "items": { "type": "integer", "minimum": 1, "maximum": 100 },
                "minItems": 1,
                "uniqueItems": true,
                "default": [25, 50, 75, 100],
            },
            "items": whole(
                1,
                1_000_000,
                "items of a session, at most: each kind keeps at least one and otherwise its share, drawn \
                 by the seed; without it all are asked",
                None,
            ),
            "kinds": {
                "description": "the kinds of probes that are asked; without it all are",
                "type": "array",
                "items": { "enum": ProbeKind::ALL.map(ProbeKind::name) },
                "minItems": 1,
            },
        }),
        &[],
    )
}

fn recovery() -> Value {
    let usual = Recovery::default();
    object(
        &json!({
            "snippets": whole(1, 1_000, "snippets that each search brings back", Some(usual.snippets as u64)),
            "snippet_tokens": whole(10, 100_000, "about so many tokens a snippet", Some(usual.snippet_tokens)),
        }),
        &[],
    )
}

fn cache() -> Value {
    let amount = |description: &str| json!({ "description": description, "type": "number", "minimum": 0, "maximum": 1_000 });
    let scheme = json!({
        "name": {
            "description": "its name in reports",
            "type": "string",
            "pattern": "^[a-z0-9][a-z0-9._@-]*$",
            "maxLength": 80,
            "not": { "const": "none" },
            "default": "custom",
        },
        "reuse": {
            "description": "`breakpoints`: prefixes that end at a breakpoint of an earlier prompt; \
                `longest_prefix`: whatever an earlier prompt began with",
            "enum": ["breakpoints", "longest_prefix"],
            "default": "longest_prefix",
        },
        "write": amount("price of writing, relative to input; without it a write is plain input"),
        "read": amount("price of reading, relative to input"),
        "output": amount("price of output, relative to input"),
        "minimum_tokens": whole(0, u64::MAX, "the shortest prefix that is cached", Some(0)),
        "step_tokens": whole(1, u64::MAX, "what is read comes in multiples of this", Some(1)),
        "breakpoints": whole(1, 100, "breakpoints in a prompt, at most", Some(4)),
        "look_back_positions": whole(
            1,
            u64::MAX,
            "positions at which a breakpoint looks for an earlier one, itself the first; a run of \
             tool uses or of tool results is one; without it all",
            None,
        ),
        "ttl_seconds": whole(
            1,
            u64::MAX,
            "how long a prefix lives after its last use; without it for ever",
            None,
        ),
    });
    object(
        &json!({
            "prices": text("a price file that goes before the built-in ones"),
            "model": text("the model whose prices count, whatever the sessions say"),
            "breakpoints": {
                "description": "where the client puts its cache breakpoints: `usual`, those of the \
                    recorded product; `edge`, one in front of what the strategy changes next; \
                    `ideal`, a lower bound",
                "enum": Placement::ALL.map(Placement::name),
                "default": "usual",
            },
            "pacing_seconds": whole(
                0,
                1_000_000_000,
                "seconds from call to call in a session without times",
                Some(30),
            ),
            "scheme": object(&scheme, &[]),
        }),
        &[],
    )
}

fn faults() -> Value {
    let mut properties = Map::new();
    let seed = whole(0, u64::MAX, "decides where probabilities strike", Some(1));
    properties.insert("seed".to_owned(), seed);
    let retries = "how often the agent's own call is sent again";
    let retries = whole(0, 100, retries, Some(2));
    properties.insert("agent_retries".to_owned(), retries);
    let calls = || {
        json!({
            "type": "array",
            "items": whole(0, u64::MAX, "a call of the agent, from 0", None),
        })
    };
    for fault in Fault::ALL {
        let attempts = whole(1, 1_000, "attempts that are struck at each", Some(1));
        let table = json!({ "calls": calls(), "attempts": attempts });
        let strike = json!({
            "description": format!("{}: a probability, or calls", fault.doc()),
            "oneOf": [
                fraction("each attempt by itself"),
                calls(),
                object(&table, &["calls"]),
            ],
        });
        properties.insert(fault.name().to_owned(), strike);
    }
    object(&Value::Object(properties), &[])
}

fn session() -> Value {
    let families: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
    let (least, most) = OBSERVATIONS.into_inner();
    let (smallest, largest) = RESULTS.into_inner();
    let recipe = object(
        &json!({
            "family": { "description": "`proctor generate list` names them", "enum": families },
            "seed": whole(0, u64::MAX, "same seed, same session", Some(1)),
            "rounds": whole(1, 1_000_000, "length in API calls; or `tokens`", None),
            "tokens": whole(1_000, 1_000_000_000, "length in tokens; or `rounds`", None),
            "fact_percent": whole(0, MOST_FACTS.into(), "facts planted, in percent of the family's number", Some(100)),
            "observation_percent": whole(least.into(), most.into(), "share of the messages' tokens that tool results have; by default as the family has it", None),
            "result_percent": whole(smallest.into(), largest.into(), "usual size of a result, in percent of the family's own; the largest stay", Some(100)),
            "distractors": whole(0, MOST_DISTRACTORS.into(), "other keys beside each planted one; by default as the family has it", None),
            "head_tokens": whole(0, 1_000_000, "tokens of system prompt and tools in front of every prompt, beside those the session holds; the default is the median of seven agents", Some(7_400)),
            "phrasings": whole(1, 100, "in how many ways a planted fact may be said; by default all there are", None),
            "language": { "description": "language in which the session is held and facts are planted; not every family has all", "enum": Language::ALL.map(Language::code), "default": "en" },
        }),
        &["family"],
    );
    object(
        &json!({
            "path": text("a recording, relative to this file; or `synthetic`"),
            "synthetic": recipe,
            "count": whole(1, 100_000, "sessions with consecutive seeds, with `synthetic`", Some(1)),
        }),
        &[],
    )
}

fn strategy() -> Value {
    let presets: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
    object(
        &json!({
            "preset": {
                "description": "`proctor strategies` lists them; overrides in brackets, or `set`",
                "type": "string",
                "examples": presets,
            },
            "name": text("another name, or that of a strategy of your own"),
            "set": {
                "description": "knobs that are changed, as in `{ clear_results.keep_last = 5 }`",
                "type": "object",
            },
            "description": text("one sentence"),
            "source": text("where its settings were taken from"),
            "breaks": {
                "description": "laws it breaks by design",
                "type": "array",
                "items": { "type": "string" },
            },
            "guards": { "$ref": "#/$defs/guards" },
            "stage": {
                "description": "the stages, in order",
                "type": "array",
                "items": { "$ref": "#/$defs/stage" },
            },
            // Knobs of the stage that is named stand beside these two.
            "overflow": {
                "description": "the stage that is asked once a prompt was refused",
                "type": "object",
                "required": ["stage"],
                "properties": {
                    "stage": text("a stage of this strategy, or a kind of stage"),
                    "max_retries": whole(0, 100, "how often it is asked", Some(1)),
                    "max_retries_per": {
                        "description": "what that is counted over: one call, or all calls that \
                            answer what a person typed",
                        "enum": ["call", "turn"],
                        "default": "call",
                    },
                },
            },
        }),
        &[],
    )
}

fn stage(kind: &StageKind) -> Value {
    let mut properties = Map::new();
    properties.insert("kind".to_owned(), json!({ "const": kind.name }));
    properties.insert(
        "name".to_owned(),
        text("its path in settings; the kind without one"),
    );
    properties.insert(
        "enabled".to_owned(),
        json!({
            "description": "whether the stage is asked at all",
            "type": "boolean",
            "default": true,
        }),
    );
    properties.insert("when".to_owned(), json!({ "$ref": "#/$defs/when" }));
    properties.insert("guards".to_owned(), json!({ "$ref": "#/$defs/guards" }));
    for knob in kind.knobs {
        properties.insert(knob.name.to_owned(), of_knob(knob, &kind.doc(knob.name)));
    }
    let mut schema = object(&Value::Object(properties), &["kind"]);
    schema["description"] = json!(kind.description);
    schema
}

fn of_knob(knob: &Knob, doc: &str) -> Value {
    let (mut schema, default) = match knob.kind {
        KnobKind::Whole(low, default) => (whole(low, u64::MAX, doc, None), json!(default)),
        KnobKind::Range(low, high, default) => (whole(low, high, doc, None), json!(default)),
        KnobKind::Fraction(default) => (fraction(doc), json!(default)),
        KnobKind::Factor(default) => (
            json!({ "description": doc, "type": "number", "minimum": 1 }),
            json!(default),
        ),
        KnobKind::Text(default) => (text(doc), json!(default)),
        KnobKind::Flag(default) => (
            json!({ "description": doc, "type": "boolean" }),
            json!(default),
        ),
        KnobKind::Choice(words, default) => {
            (json!({ "description": doc, "enum": words }), json!(default))
        }
        KnobKind::Texts => (
            json!({ "description": doc, "type": "array", "items": { "type": "string" } }),
            json!([]),
        ),
    };
    schema["default"] = default;
    schema
}

fn conditions() -> Map<String, Value> {
    let of = |kind: &ConditionKind| match kind.takes {
        Takes::Word(_) => json!({ "description": kind.doc, "const": true }),
        Takes::Whole(low, high, _) => whole(low, high, kind.doc, None),
        Takes::Fraction(_) => fraction(kind.doc),
        Takes::Text(_) => text(kind.doc),
        Takes::Conditions(_) => json!({
            "description": kind.doc,
            "type": "array",
            "minItems": 1,
            "items": { "$ref": "#/$defs/condition" },
        }),
    };
    let named = |kind: &ConditionKind| (kind.name.to_owned(), of(kind));
    CONDITIONS.iter().map(named).collect()
}

/// The conditions that a word alone names, and other words.
fn words(others: &[&'static str]) -> Value {
    let is_word = |kind: &&ConditionKind| matches!(kind.takes, Takes::Word(_));
    let words = CONDITIONS.iter().filter(is_word).map(|kind| kind.name);
    json!({ "enum": words.chain(others.iter().copied()).collect::<Vec<_>>() })
}

fn condition() -> Value {
    json!({ "oneOf": [
        words(&[]),
        {
            "type": "object",
            "additionalProperties": false,
            "minProperties": 1,
            "maxProperties": 1,
            "properties": conditions(),
        },
    ] })
}

fn when() -> Value {
    let mut properties = conditions();
    let counter = json!({ "enum": measures(), "default": "scenario" });
    properties.insert("counter".to_owned(), counter);
    let scope = json!({ "enum": ["prompt", "messages"], "default": "prompt" });
    properties.insert("scope".to_owned(), scope);
    properties.insert(
        "min_rounds_between".to_owned(),
        whole(
            0,
            u64::MAX,
            "calls that must pass between two firings",
            Some(0),
        ),
    );
    json!({
        "description": "when it fires",
        "oneOf": [
            words(&["scenario"]),
            object(&Value::Object(properties), &[]),
        ],
    })
}

fn guards() -> Value {
    object(
        &json!({
            "max_consecutive_failures": whole(
                0,
                1_000,
                "a stage that fails so often in a row is not tried again; 0 for never giving up",
                Some(3),
            ),
            "min_gain_tokens": whole(0, u64::MAX, "a patch that frees less is not applied", Some(0)),
            "on_inflation": {
                "description": "what happens to a patch that makes the context larger",
                "enum": ["discard", "apply"],
                "default": "discard",
            },
            "post_check": {
                "description": "what happens to a patch after which the trigger would still fire for size",
                "enum": ["keep", "discard"],
                "default": "keep",
            },
            "on_summary_overflow": {
                "description": "what a stage does when what it was to summarise is refused as too long",
                "enum": ["fail", "drop_oldest_round", "shrink_results", "halve"],
                "default": "fail",
            },
            "summary_overflow_tries": whole(
                0,
                100_000,
                "how often it does that within one attempt",
                Some(3),
            ),
            "on_empty": {
                "description": "what a stage does when the model wrote nothing; `keep` keeps the history",
                "enum": ["keep", "retry"],
                "default": "keep",
            },
            "on_tool_call": {
                "description": "what a stage does when the model called a tool instead of writing",
                "enum": ["keep", "retry"],
                "default": "keep",
            },
            "on_chat": {
                "description": "what a stage does when the model wrote something else than a summary; `apply` uses it",
                "enum": ["keep", "retry", "apply"],
                "default": "keep",
            },
        }),
        &[],
    )
}
