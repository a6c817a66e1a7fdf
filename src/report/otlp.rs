//! A trace of OpenTelemetry in JSON: a span for each cell, with its metrics and probe items as events
//! `gen_ai.evaluation.result`, for a collector or a tool that shows traces.
//!
//! Ids are hashes of the run's fingerprint and of the cell. A run records no time of day, so that
//! equal runs have equal reports: the trace begins in 1970, and each call of a session is a second.

use serde_json::{Value, json};

use super::columns::{self, ValueReader};
use super::{AskedItem, Report, asked_items, display, escape};
use crate::metric::{CellSummary, metric};
use crate::units::ContentHash;

pub(super) fn render(report: &Report) -> String {
    let run = report.run.as_ref();
    let fingerprint = run.map_or("", |run| &*run.fingerprint);
    let trace = ContentHash::of(fingerprint).hex(32);
    let mut items = asked_items(&report.records).into_iter();
    let spans = report
        .cells
        .iter()
        .zip(&report.records)
        .map(|(cell, record)| span(&trace, cell, items.by_ref().take(record.probes.len())));
    let spans = display::joined(spans, ",\n");
    let resource = [
        text("service.name", "proctor"),
        text("service.version", run.map_or("", |run| &*run.proctor)),
        text("proctor.scenario", run.map_or("", |run| &*run.scenario)),
        text("proctor.run", fingerprint),
    ];
    let resource = json!({"attributes": resource});
    escape::json(&format!(
        "{{\"resourceSpans\":[{{\"resource\":{resource},\
         \"scopeSpans\":[{{\"scope\":{{\"name\":\"proctor\"}},\"spans\":[\n{spans}\n]}}]}}]}}\n"
    ))
}

fn span<'a>(trace: &str, cell: &CellSummary, items: impl Iterator<Item = AskedItem<'a>>) -> Value {
    let key = json!([trace, cell.session, cell.strategy, cell.repeat]);
    let at = &cell.completion;
    let (end, message) = match (at.died_at, at.failed_at) {
        (Some(call), _) => ("died", format!("the prompt no longer fitted at call {call}")),
        (None, Some(call)) => ("failed", format!("the strategy failed at call {call}")),
        (None, None) => ("completed", String::new()),
    };
    let mut events = results(cell, end);
    for item in items {
        events.extend(probed(&item));
    }
    let mut span = json!({
        "traceId": trace,
        "spanId": ContentHash::of_values([key]).hex(16),
        "name": format!("evaluate {}", cell.strategy),
        "kind": 1,
        "startTimeUnixNano": "0",
        "endTimeUnixNano": time(cell.completion.reached),
        "attributes": [
            text("gen_ai.conversation.id", &cell.session),
            text("proctor.strategy", &cell.strategy),
            text("proctor.arm", &display::name_of(&cell.arm)),
            number("proctor.repeat", cell.repeat as usize),
        ],
        "events": events,
    });
    if end != "completed" {
        span["status"] = json!({"code": 2, "message": message});
    }
    span
}

fn doc(name: &str) -> Option<&'static str> {
    metric(name).map(|metric| metric.doc)
}

/// The metrics that the cell has a value of, and how it ended.
fn results(cell: &CellSummary, end: &str) -> Vec<Value> {
    let at = cell.completion.reached;
    let (share, texts) = (cell.completion.share(), [Some(end), doc("completion")]);
    let mut events = vec![event(at, "completion", share, texts, &[])];
    for column in columns::cells() {
        let value = match &column.read {
            ValueReader::Number(read) => read(cell),
            ValueReader::Count(read) => read(cell).map(|count| count as f64),
            ValueReader::Text(_) => None,
        };
        if let (Some(value), Some(doc)) = (value, doc(column.name)) {
            events.push(event(at, column.name, Some(value), [None, Some(doc)], &[]));
        }
    }
    events
}

/// Whether the value of a probe item is in the prompt, and how the reader answered.
fn probed(asked: &AskedItem<'_>) -> Vec<Value> {
    let item = asked.probe;
    let about = [
        text("proctor.probe", &item.probe),
        text("proctor.probe.kind", item.kind.name()),
        number("proctor.probe.percent", usize::from(item.percent)),
    ];
    let found = &item.survival;
    let lost = found
        .lost_at
        .as_ref()
        .map(|lost| format!("lost at call {} by {}: {}", lost.call, lost.stage, lost.reason));
    let fate = display::name_of(&found.fate);
    let (score, texts) = (Some(found.score), [Some(&*fate), lost.as_deref()]);
    let mut events = vec![event(item.call, "probe.survival", score, texts, &about)];
    if let Some(verdict) = item.verdict() {
        let scored = verdict.scored();
        let label = scored.map_or("unscored".to_owned(), |(_, outcome)| display::name_of(&outcome));
        let score = scored.map(|(score, _)| score);
        let question =
            asked.text.map(|text| format!("{} Expected: {}. ", text.question, text.gold));
        let answer = item.answer.as_ref().and_then(|answer| answer.text.as_deref());
        let answered = answer.map(|answer| format!("Answer: {answer}"));
        let said = question.into_iter().chain(answered).collect::<String>();
        let texts = [Some(&*label), Some(&*said).filter(|said| !said.is_empty())];
        events.push(event(item.call, "probe.answer", score, texts, &about));
    }
    events
}

/// The result of an evaluation at a call, with its label and its explanation.
fn event(
    call: usize,
    name: &str,
    score: Option<f64>,
    [label, explanation]: [Option<&str>; 2],
    about: &[Value],
) -> Value {
    let mut attributes = vec![text("gen_ai.evaluation.name", name)];
    if let Some(score) = score {
        let value = json!({"doubleValue": score});
        attributes.push(json!({"key": "gen_ai.evaluation.score.value", "value": value}));
    }
    attributes.extend(label.map(|label| text("gen_ai.evaluation.score.label", label)));
    attributes.extend(explanation.map(|words| text("gen_ai.evaluation.explanation", words)));
    attributes.extend_from_slice(about);
    let at = time(call);
    json!({"timeUnixNano": at, "name": "gen_ai.evaluation.result", "attributes": attributes})
}

/// The time of a call: a second each.
fn time(call: usize) -> String {
    (call as u64).saturating_mul(1_000_000_000).to_string()
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn number(key: &str, value: usize) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}
