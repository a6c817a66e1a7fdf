//! Langfuse's exports: observations in a list or one per line, pages of its API, and traces with
//! their observations.
//!
//! Each generation is a request with its context. The shape is that of `langfuse/langfuse`,
//! `fern/apis/server/definition/commons.yml` (commit 0010e28), and of the fields that the documentation
//! lists for exports to blob storage, which have their words joined by underscores.
//!
//! Rules of this format, beside those every importer shares:
//! - Inputs and outputs are what the instrumented library gave: [`traces`] reads them.
//! - A session is a conversation. Without one, calls are joined by what they say.
//! - Details of the usage are counted apart from its input and its output, unless its total says
//!   otherwise.
//! - Other observations (spans, tools, agents) and the input and output of a trace repeat what the
//!   generations hold, and are skipped; so are scores. Media are kept as the references that they are.

use super::prelude::*;
use super::traces::{self, Exchange, TraceCall};

pub(super) const IMPORTER: Importer = Importer::new("langfuse", Detect::By(detect), import);

/// The shapes of an observation.
const SHAPES: &str = "traceId,trace_id usageDetails,usage_details,parentObservationId,parent_observation_id | \
     traceId,trace_id type=GENERATION,SPAN,EVENT,AGENT,TOOL,CHAIN,RETRIEVER,EVALUATOR,EMBEDDING,\
     GUARDRAIL";

fn detect(head: &Head) -> bool {
    let first = head.first_item();
    let mut found = ["", "/observations/0", "/data/0"].iter().filter_map(|at| first?.pointer(at));
    found.any(|value| is_shaped(value, SHAPES))
}

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let mut calls = Vec::new();
    let mut seen: BTreeSet<[Option<&str>; 3]> = BTreeSet::new();
    for value in file.values(source)? {
        // Lists and traces, with the session that they are of.
        let mut open = vec![(value.parse::<&RawValue>()?, None)];
        while let Some((raw, session)) = open.pop() {
            if let Some(inner) = items(raw) {
                open.extend(inner.into_iter().rev().map(|raw| (raw, session.clone())));
                continue;
            }
            let Some(mut object) = Object::read(raw) else {
                source.not_understood("value that is no observation");
                continue;
            };
            let of_trace = text(&mut object.inner("trace"), ["sessionId", "session_id"]);
            let session = text(&mut object, ["sessionId", "session_id"]).or(of_trace).or(session);
            if let Some(raw) = object.first(&["observations", "data"]) {
                open.push((raw, session));
                continue;
            }
            let key = ["id", "input", "output"].map(|key| object.get(key).map(RawValue::get));
            if !seen.insert(key) {
                source.skip("observation recorded twice");
            } else if is_generation(&object) {
                let start = time(&mut object, ["startTime", "start_time"]);
                calls.push(TraceCall::of(session, start, object));
            } else {
                let kind = object.take_text("type").unwrap_or_else(|| "unknown type".into());
                source.skip(&format!("observation {kind}"));
            }
        }
    }
    traces::sessions(calls, file, source, exchange)
}

fn is_generation(object: &Object<'_>) -> bool {
    match object.text("type") {
        Some(kind) => kind.eq_ignore_ascii_case("generation"),
        None => object.has("input") || object.has("output"),
    }
}

/// Takes the text out that is under one of these keys.
fn text(object: &mut Object<'_>, keys: [&str; 2]) -> Text {
    object.first_text(&keys).filter(|text| !text.is_empty())
}

/// Takes the time out that is under one of these keys.
fn time(object: &mut Object<'_>, keys: [&str; 2]) -> When {
    Some(time_or_local(&text(object, keys)?)?.0)
}

fn exchange(mut call: Object<'_>, source: &mut Source) -> Exchange {
    let model = call.first(&["model", "providedModelName", "provided_model_name"]);
    let details = call.first(&["usageDetails", "usage_details"]);
    let usage = details.filter(|details| details.get() != "{}").or_else(|| call.take("usage"));
    let mut exchange = Exchange {
        id: call.value("id"),
        model: model.map(value).unwrap_or_default(),
        end: time(&mut call, ["endTime", "end_time"]),
        usage: usage.and_then(|raw| billed(&traces::parsed(value(raw)), source)),
        ..Exchange::default()
    };
    exchange.ask(call.value("input"), source);
    exchange.answer(call.value("output"), source);
    exchange
}

fn billed(usage: &Value, source: &mut Source) -> Option<Usage> {
    let counters: &Map<String, Value> = usage.as_object()?;
    let [input, output, total] =
        ["input", "output", "total"].map(|key| counters.get(key).and_then(count_in));
    let sum = input.unwrap_or_default().checked_add(output.unwrap_or_default());
    if total.is_some() && total == sum {
        return unless_zero(usage_in(usage, CachedTokens::Within, source));
    }
    let mut billed = usage_in(usage, CachedTokens::Apart, source);
    for (key, detail) in counters {
        let detail = Tokens(count_in(detail).unwrap_or_default());
        match key.split_once('_') {
            // These are the input and the output themselves, or read already.
            Some((_, "tokens")) => {}
            Some(("input", detail_of)) if detail_of.starts_with("cache") => {}
            Some(("input", _)) => billed.input_uncached += detail,
            Some(("output", _)) => billed.output += detail,
            _ => {}
        }
    }
    unless_zero(billed)
}
