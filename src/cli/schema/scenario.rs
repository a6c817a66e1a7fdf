//! The schema of scenario files, made from the tables that readers, help and docs share.

use serde_json::{Map, Value, json};

use crate::compare::{Axis, Margins};
use crate::scenario;
use crate::strategy::knob::KEYS;
use crate::strategy::preset::PROGRAM;
use crate::strategy::stage::{STAGES, StageKind};
use crate::strategy::trigger::condition;

/// The schema of a scenario file. It refuses what the reader refuses by name, type and range;
/// what depends on two settings at once only the reader knows.
pub(super) fn schema() -> Value {
    let mut properties = scenario::schema("scenario")["properties"].take();
    let margins = &mut properties["gate"]["properties"]["margins"];
    *margins = scenario::schema("margins");
    let shape = margins["properties"]["margin"].take();
    margins["properties"] = Axis::ALL
        .into_iter()
        .map(|axis| {
            let mut margin = shape.clone();
            if let Some(default) = Margins::default().get(axis) {
                margin["default"] = json!(default);
            }
            (axis.name().to_owned(), margin)
        })
        .collect::<Map<_, _>>()
        .into();
    // A strategy that is one program has the keys of its stage.
    let strategy = &mut properties["strategies"]["items"]["properties"];
    strategy["when"] = json!({ "$ref": "#/$defs/when" });
    add_properties(strategy, &KEYS.object(PROGRAM));
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
            "source": KEYS.object("source"),
            "tune": KEYS.object("tune"),
            "stage": { "oneOf": STAGES.iter().map(stage).collect::<Vec<_>>() },
        },
    })
}

fn stage(kind: &StageKind) -> Value {
    let mut schema = KEYS.object("stage");
    schema["properties"]["kind"] = json!({ "const": kind.name });
    add_properties(&mut schema["properties"], &KEYS.object(kind.name));
    schema["required"] = json!(["kind"]);
    schema["description"] = json!(kind.description());
    schema
}

/// Adds the properties of a table.
fn add_properties(to: &mut Value, table: &Value) {
    for (name, takes) in table["properties"].as_object().into_iter().flatten() {
        to[name] = takes.clone();
    }
}

/// The conditions that a word alone names, and other words.
fn words(others: &[&'static str]) -> Value {
    let words = [&condition::words(), others].concat();
    json!({ "enum": words })
}

fn condition() -> Value {
    let mut nested = KEYS.object("condition")["properties"].take();
    nested["of"] = KEYS.object("when")["properties"]["of"].take();
    json!({ "oneOf": [
        words(&[]),
        {
            "type": "object",
            "additionalProperties": false,
            "minProperties": 1,
            "maxProperties": 2,
            "properties": nested,
        },
    ] })
}

fn when() -> Value {
    let mut table = KEYS.object("when");
    let mut conditions = KEYS.object("condition")["properties"].take();
    add_properties(&mut conditions, &table);
    table["properties"] = conditions;
    json!({ "description": "when it fires", "oneOf": [words(&["scenario"]), table] })
}
