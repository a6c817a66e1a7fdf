//! The schema of scenario files, made from the tables that readers, help and docs share.

use serde_json::{Map, Value, json};

use crate::compare::COMPARED;
use crate::scenario;
use crate::settings::{fraction_schema, whole_schema};
use crate::strategy::knob::KEYS;
use crate::strategy::stage::{STAGES, StageKind};
use crate::strategy::trigger::{CONDITIONS, ConditionKind, Takes};

/// The schema of a scenario file. It refuses what the reader refuses by name, type and range;
/// what depends on two settings at once only the reader knows.
pub(super) fn schema() -> Value {
    let mut properties = scenario::schema("scenario")["properties"].take();
    let margins = &mut properties["gate"]["properties"]["margins"];
    *margins = scenario::schema("margins");
    let margin = margins["properties"]["margin"].take();
    margins["properties"] = COMPARED
        .iter()
        .map(|metric| {
            let mut margin = margin.clone();
            if let Some(default) = metric.margin {
                margin["default"] = json!(default);
            }
            (metric.name.to_owned(), margin)
        })
        .collect::<Map<_, _>>()
        .into();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Proctor scenario",
        "type": "object",
        "additionalProperties": false,
        "required": ["sessions", "strategies"],
        "properties": properties,
        "$defs": {
            "when": when(),
            "condition": condition(),
            "guards": KEYS.object("guards"),
            "stage": { "oneOf": STAGES.iter().map(stage).collect::<Vec<_>>() },
        },
    })
}

/// A schema with what it is for in front.
fn described(doc: &str, schema: &Value) -> Value {
    let mut described = json!({ "description": doc });
    for (key, value) in schema.as_object().into_iter().flatten() {
        described[key] = value.clone();
    }
    described
}

fn stage(kind: &StageKind) -> Value {
    let mut schema = KEYS.object("stage");
    schema["properties"]["kind"] = json!({ "const": kind.name });
    for (knob, takes) in KEYS.object(kind.name)["properties"]
        .as_object()
        .into_iter()
        .flatten()
    {
        schema["properties"][knob] = takes.clone();
    }
    schema["required"] = json!(["kind"]);
    schema["description"] = json!(kind.description());
    schema
}

fn conditions() -> Map<String, Value> {
    let takes = |kind: &ConditionKind| match kind.takes {
        Takes::Word(_) => json!({ "const": true }),
        Takes::Whole(low, high, _) => whole_schema(low, high),
        Takes::Fraction(_) => fraction_schema(),
        Takes::Text(_) => json!({ "type": "string" }),
        Takes::Conditions(_) => {
            json!({ "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/condition" } })
        }
    };
    let conditions = CONDITIONS.iter();
    let conditions =
        conditions.map(|kind| (kind.name.to_owned(), described(kind.doc, &takes(kind))));
    conditions.collect()
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
    let mut table = KEYS.object("when");
    let mut properties = conditions();
    properties.extend(table["properties"].as_object().cloned().unwrap_or_default());
    table["properties"] = properties.into();
    json!({ "description": "when it fires", "oneOf": [words(&["scenario"]), table] })
}
