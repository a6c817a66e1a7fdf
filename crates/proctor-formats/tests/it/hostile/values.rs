//! Files of which one value is missing, odd, absurd or another one.

use super::*;

/// Values that stand for the file as a whole: without them there is nothing to read.
const NEEDED: &[(&str, &str)] = &[
    ("atif", "*"),
    ("amp", "*"),
    ("amp", "*/.messages"),
    ("anthropic", "*"),
    ("anthropic", "*/.messages"),
    ("chatgpt", "*"),
    ("claude-ai", "*"),
    ("claude-code-web", "*"),
    ("claude-code-web", "*/.loglines"),
    ("cline", "*"),
    ("cline", "*/.messages"),
    ("convomem", "*"),
    ("convomem", "*/.evidence_items"),
    ("convomem", "*/*"),
    ("convomem", "*/*/.conversations"),
    ("copilot-chat", "*"),
    ("copilot-chat", "*/.requests"),
    ("copilot-cli", "*"),
    ("copilot-cli", "*/.chatMessages"),
    ("gemini-cli", "*"),
    ("gemini-cli", "*/.messages"),
    ("goose", "*"),
    ("goose", "*/.conversation"),
    ("inspect", "*"),
    ("inspect", "*/.samples"),
    ("langchain", "*"),
    ("langchain", "*/*"),
    ("langchain", "*/.messages"),
    ("langfuse", "*"),
    ("langfuse", "*/.observations"),
    ("locomo", "*"),
    ("locomo", "*/*"),
    ("locomo", "*/*/.conversation"),
    ("locomo", "*/*/.conversation/.session_1"),
    ("longmemeval", "*"),
    ("mini-swe-agent", "*"),
    ("mini-swe-agent", "*/*"),
    ("mini-swe-agent", "*/.messages"),
    ("openai-chat", "*"),
    ("openai-chat", "*/.messages"),
    ("openai-responses", "*"),
    ("openai-responses", "*/.request"),
    ("openai-responses", "*/.request/.input"),
    ("opencode", "*"),
    ("opencode", "*/.info"),
    ("opencode", "*/.messages"),
    ("openhands", "*"),
    ("swe-agent", "*"),
    ("swe-agent", "*/.history"),
    ("tau-bench", "*"),
    ("tau-bench", "*/*/.traj"),
    ("tau2", "*"),
    ("tau2", "*/.simulations"),
    ("tau2", "*/.simulations/*"),
    ("tau2", "*/.simulations/*/.messages"),
];

/// The odd values that are put in each place.
///
/// Every place gets nothing and an empty object; of the others each gets two in turn.
pub(in super::super) fn odd_values(turn: usize) -> Vec<Value> {
    let others = [json!(true), json!(-1), json!(1e300), json!(""), json!([]), json!([[{}]])];
    let count = others.len();
    let mut odd = vec![Value::Null, json!({})];
    odd.extend([turn, turn + 3].map(|it| others[it % count].clone()));
    odd
}

#[test]
fn a_key_that_is_missing_or_odd_is_no_reason_to_refuse_a_recording() {
    let mut refused: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut tried = BTreeSet::new();
    for sample in json_samples() {
        let format = sample.importer.format();
        let places = places(&sample.values).into_iter().enumerate();
        let places = places.map(|(turn, (place, pointer))| (turn, place.join("/"), pointer));
        // Others need not show again what one file of a format shows.
        let is_new = |(_, place, _): &(usize, String, String)| {
            seen.insert((format, sample.is_lines(), place.clone()))
        };
        for (turn, place, pointer) in sampled(places.filter(is_new)) {
            tried.insert(format!("{format} {place}"));
            let mut note = |what: String, read: Result<Vec<Session>, ImportError>| {
                if let Err(error) = read {
                    let place = format!("{format} {place}");
                    refused.entry(place).or_default().insert(format!("{what}: {error}"));
                }
            };
            let values = without(&sample.values, &pointer);
            let what = format!("without {place}");
            note("missing".to_owned(), sample.read(&what, &file_of(&values)));
            for odd in odd_values(turn) {
                let mut all = Value::Array(sample.values.clone());
                *all.pointer_mut(&pointer).unwrap() = odd.clone();
                let what = format!("{place} = {odd}");
                let read = sample.read(&what, &file_of(&into_list(all)));
                note(odd.to_string(), read);
            }
        }
    }
    let needed: BTreeSet<String> =
        NEEDED.iter().map(|(format, place)| format!("{format} {place}")).collect();
    let mut wrong: Vec<String> = Vec::new();
    for (place, errors) in &refused {
        if !needed.contains(place) && !place.starts_with("native ") {
            wrong.push(format!("{place}: {errors:?}"));
        }
    }
    wrong.extend(
        needed
            .iter()
            .filter(|it| tried.contains(*it) && !refused.contains_key(*it))
            .map(|it| format!("{it}: read, so not needed")),
    );
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn keys_in_another_order_and_keys_nobody_knows_change_no_message() {
    let mut wrong: Vec<String> = Vec::new();
    for sample in json_samples() {
        if sample.importer.format() == "native" {
            continue;
        }
        let good = sample.read("unchanged", &sample.bytes).unwrap();
        let backwards = |_: &str, value: &Value| -> Option<Value> {
            fn turn(value: &Value) -> Value {
                match value {
                    Value::Object(object) => {
                        let pairs = object.iter().rev();
                        let pairs = pairs.map(|(key, value)| (key.clone(), turn(value)));
                        Value::Object(pairs.collect::<Map<_, _>>())
                    }
                    Value::Array(items) => items.iter().map(turn).collect(),
                    other => other.clone(),
                }
            }
            Some(turn(value))
        };
        let more = |_: &str, value: &Value| -> Option<Value> {
            fn grow(value: &Value) -> Value {
                match value {
                    Value::Object(object) => {
                        let pairs = object.iter().map(|(key, value)| (key.clone(), grow(value)));
                        let mut grown: Map<String, Value> = pairs.collect();
                        // Sessions of a benchmark are told by their keys alone.
                        grown.insert("x-brand-new".to_owned(), json!({"deep": [1, "two"]}));
                        Value::Object(grown)
                    }
                    Value::Array(items) => items.iter().map(grow).collect(),
                    other => other.clone(),
                }
            }
            Some(grow(value))
        };
        let changes: [(&str, Change<'_>); 2] = [("backwards", &backwards), ("more keys", &more)];
        for (what, change) in changes {
            let values: Vec<Value> = sample.values.iter().map(|it| changed(it, change)).collect();
            let bytes = file_of(&values);
            let name = sample.name();
            match sample.read(what, &bytes) {
                Ok(read) if shapes(&read) == shapes(&good) => {}
                Ok(read) => wrong.push(format!(
                    "{name}: {what}: {:?} for {:?}",
                    shapes(&read),
                    shapes(&good)
                )),
                Err(error) => wrong.push(format!("{name}: {what}: {error}")),
            }
            let claimed = IMPORTERS.iter().find(|importer| importer.detect(&bytes));
            let claimed = claimed.map(proctor_formats::Importer::format);
            if claimed != Some(sample.importer.format()) {
                wrong.push(format!("{name}: {what}: taken for {claimed:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn ids_that_are_all_the_same_or_lead_in_a_circle_are_followed_once() {
    let is_id = |key: &str| {
        let key = key.to_ascii_lowercase();
        key.ends_with("id") || key.ends_with("ids") || key.ends_with("cause")
    };
    for sample in json_samples() {
        type Change<'a> = Box<dyn Fn(&str, &Value) -> Option<Value> + 'a>;
        let table: [(&str, Change<'_>); 4] = [
            (
                "one id for all",
                Box::new(|key, value| (is_id(key) && value.is_string()).then(|| json!("same"))),
            ),
            (
                "one number for all",
                Box::new(|key, value| (is_id(key) && value.is_number()).then(|| json!(0))),
            ),
            (
                "empty ids",
                Box::new(|key, value| (is_id(key) && value.is_string()).then(|| json!(""))),
            ),
            (
                "everybody is everybody's parent",
                Box::new(|key, value| {
                    let parent = key.to_ascii_lowercase().contains("parent");
                    (parent && !value.is_object()).then(|| {
                        let id = |it: &Value| it.get("uuid").or(it.get("id")).cloned();
                        sample.values.iter().rev().find_map(id).unwrap_or(json!("p"))
                    })
                }),
            ),
        ];
        for (what, change) in table {
            check_changed(&sample, what, &change);
        }
    }
}

/// A recording of which these values are others is read; the native format may refuse it.
fn check_changed(sample: &Sample, what: &str, change: Change<'_>) {
    let values = sample.values.iter();
    let values: Vec<Value> = values.map(|value| changed(value, change)).collect();
    let read = sample.read(what, &file_of(&values));
    let native = sample.importer.format() == "native";
    assert!(read.is_ok() || native, "{}: {what}: {:?}", sample.name(), read.err());
}

#[test]
fn absurd_numbers_and_times_are_read_or_counted() {
    for sample in json_samples() {
        for odd in [
            json!(-1),
            json!(i64::MIN),
            json!(u64::MAX),
            json!(1e308),
            json!(-1e308),
            json!(0.5),
            json!(0),
        ] {
            let change = |_: &str, value: &Value| value.is_number().then(|| odd.clone());
            check_changed(&sample, &format!("all numbers {odd}"), &change);
        }
        for odd in ["", "now", "-9999-99-99T99:99:99Z", "9999-12-31T23:59:59.999999999Z", "0000"] {
            let is_time = |key: &str| {
                let key = key.to_ascii_lowercase();
                key.contains("time") || key.ends_with("_at") || key.contains("date")
            };
            let change =
                |key: &str, value: &Value| (is_time(key) && value.is_string()).then(|| json!(odd));
            check_changed(&sample, &format!("all times {odd}"), &change);
        }
    }
}
