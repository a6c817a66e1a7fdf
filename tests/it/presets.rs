//! Every preset on a small session, call by call: what fired, why, what it cost, and what the
//! context was. Each stage of each preset has something to do in it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

use proctor::model::price::{FAST, Prices};
use proctor::model::scripted::response;
use proctor::model::{CallFailure, Purpose, Request};
use proctor::record::CellRecord;
use proctor::step::CallResult;
use proctor::strategy::preset::PRESETS;

use crate::support::{EVERY_PART, strategy};
use crate::walk::Walk;

mod libraries;
mod scripts;

/// Summarises, but for the requests with these numbers; recovers and takes notes whenever asked.
fn model(fails: Range<usize>) -> impl Fn(usize, &Request) -> CallResult + Send + Sync {
    move |number, request| match request.purpose {
        Purpose::Recovery => Ok(response("<summary>\nRECOVERED\n</summary>")),
        Purpose::Background => Ok(response("NOTES")),
        _ if fails.contains(&number) => Err(CallFailure::SERVER),
        _ => Ok(response("<analysis>\nthoughts\n</analysis>\n<summary>\nSUMMARY\n</summary>")),
    }
}

/// The walk in words: every call, and what is new in the context wherever something was done.
fn told(walk: &Walk) -> String {
    let record = &walk.record;
    let mut out = String::new();
    let mut before: BTreeSet<&str> = BTreeSet::new();
    let mut quiet = 0..0;
    for (call, tokens) in record.prompt_tokens.iter().enumerate() {
        if is_quiet(record, call) {
            quiet.end = call + 1;
        } else {
            skipped(record, quiet, &mut out);
            quiet = call + 1..call + 1;
            let _ = writeln!(out, "call {call}: {tokens} tokens");
        }
        for asked in record.model_calls.iter().filter(|asked| asked.call == call) {
            let usage = asked.usage;
            let _ = write!(out, "  asked ({:?}): ", asked.purpose);
            let _ = write!(out, "{} in, {} out", usage.input_uncached, usage.output);
            let failure = asked.failure.iter().map(|failure| format!(", {failure}"));
            let _ = writeln!(out, "{}", failure.collect::<String>());
        }
        for failure in record.failures.iter().filter(|failure| failure.call == call) {
            let _ = writeln!(out, "  {} failed: {}", failure.stage, failure.error);
        }
        let mut fired = false;
        for event in record.compactions.iter().filter(|event| event.call == call) {
            fired = true;
            let (before, after) = (event.before, event.after);
            let _ = writeln!(out, "  {}: {}, {before} to {after}", event.stage, event.reason);
        }
        let context = &walk.contexts[call];
        if fired {
            outline(context, &before, &mut out);
        }
        before = context.iter().map(String::as_str).collect();
    }
    skipped(record, quiet, &mut out);
    for (what, calls) in [
        ("prompts refused", &record.overflows),
        ("agents blocked", &record.blocked_agents),
        ("turns blocked", &record.blocked_turns),
    ] {
        if !calls.is_empty() {
            let _ = writeln!(out, "{what}: {calls:?}");
        }
    }
    for violation in &record.violations {
        let (level, from, rule) = (violation.level, violation.call, &violation.rule);
        let _ = writeln!(out, "{level:?} from call {from}: {rule}");
    }
    let _ = writeln!(out, "{:?}", record.end);
    out
}

/// Whether nothing was done before a call.
fn is_quiet(record: &CellRecord, call: usize) -> bool {
    record.model_calls.iter().all(|asked| asked.call != call)
        && record.failures.iter().all(|failure| failure.call != call)
        && record.compactions.iter().all(|event| event.call != call)
}

/// Calls before which nothing was done, in one line.
fn skipped(record: &CellRecord, calls: Range<usize>, out: &mut String) {
    let Some(last) = calls.end.checked_sub(1).filter(|_| !calls.is_empty()) else {
        return;
    };
    let tokens = &record.prompt_tokens;
    let _ = if calls.start == last {
        writeln!(out, "call {last}: {} tokens", tokens[last])
    } else {
        let (first, from, to) = (calls.start, tokens[calls.start], tokens[last]);
        writeln!(out, "calls {first} to {last}: {from} to {to} tokens")
    };
}

/// What is new in a context, with the messages between in numbers.
fn outline(context: &[String], before: &BTreeSet<&str>, out: &mut String) {
    let mut same = 0;
    let skipped = |same: &mut usize, out: &mut String| {
        if *same > 0 {
            let _ = writeln!(out, "    ({same} more)");
        }
        *same = 0;
    };
    for line in context {
        let number = line.split(':').next().unwrap_or_default();
        if before.contains(line.as_str()) || number.parse::<usize>().is_ok() {
            same += 1;
        } else {
            skipped(&mut same, out);
            let _ = writeln!(out, "    {line}");
        }
    }
    skipped(&mut same, out);
}

/// What a preset is told by a person, it does: the last thing in its script is `/compact`.
const ANSWER_A_PERSON: [&str; 8] = [
    "aloop-rfc005",
    "claude-code",
    "claude-code-snip-drop",
    "claude-code-cached-micro",
    "claude-code-session-memory",
    "claude-code-collapse",
    "claude-code-reactive-only",
    "manual-phases",
];

/// The preset, with the stage on that Claude Code has and switches off by default, for what little there is to clear.
fn with_every_stage(name: &str) -> String {
    match name {
        _ if name.starts_with("claude-code") || name == "manual-phases" => {
            format!("{name}[micro.enabled=true,micro.min_gain_tokens=0]")
        }
        _ => name.to_owned(),
    }
}

#[test]
fn every_preset_walks_through_its_session_and_no_stage_of_it_is_idle() {
    let mut wrong = Vec::new();
    for name in EVERY_PART {
        let script = scripts::of(name);
        let spec = strategy(&with_every_stage(name));
        let walk = Walk::of(script.session, &spec, script.window, model(script.fails));
        let stages = spec.stages().unwrap().join("\n");
        insta::assert_snapshot!(name, format!("{stages}\n\n{}", told(&walk)));
        let pipeline = spec.build().unwrap();
        let stages: BTreeSet<&str> = pipeline.breakers().map(|(stage, ..)| stage).collect();
        let events = walk.record.compactions.iter();
        let acted: BTreeSet<&str> = events.map(|event| &*event.stage).collect();
        if acted != stages {
            wrong.push(format!("{name}: {acted:?} of {stages:?}"));
        }
        let last = walk.record.prompt_tokens.len() - 1;
        if ANSWER_A_PERSON.contains(&name) {
            let mut events = walk.record.compactions.iter();
            if !events.any(|event| event.call == last) {
                wrong.push(format!("{name}: a person asked, and nothing was done"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn after_a_compaction_stand_boundary_summary_kept_messages_attachments_and_what_the_hook_reports() {
    let script = scripts::of("claude-code");
    let hook = "restore.hook_results='{messages} messages gone, {restored} things back.'";
    let spec = strategy(&format!("claude-code[{hook}]"));
    let walk = Walk::of(script.session, &spec, script.window, model(script.fails));
    // The one prompt that was refused: only there messages are kept.
    let [refused] = walk.record.overflows[..] else {
        panic!("{:?}", walk.record.overflows);
    };
    let kinds = walk.contexts[refused].iter().map(|line| {
        let (origin, said) = line.split_once(": ").unwrap();
        match origin {
            "authored" if said.contains("[Conversation compacted: overflow") => "boundary",
            "authored" if said.contains("21 messages gone, 4 things back.") => "hook",
            _ if origin.starts_with("of ") => "summary",
            _ if origin.ends_with("restored") => "attachment",
            _ if origin.parse::<usize>().is_ok() => "kept",
            _ => panic!("{line}"),
        }
    });
    let mut kinds: Vec<&str> = kinds.collect();
    kinds.dedup();
    assert_eq!(
        kinds,
        ["boundary", "summary", "kept", "attachment", "hook"],
        "{:#?}",
        walk.contexts[refused]
    );
}

/// The models that a preset names for its calls, wherever they stand in its file.
fn named_models(value: &toml::Value) -> Vec<&str> {
    match value {
        toml::Value::Table(table) => {
            let own = table.get("model").and_then(toml::Value::as_str);
            own.into_iter().chain(table.values().flat_map(named_models)).collect()
        }
        toml::Value::Array(items) => items.iter().flat_map(named_models).collect(),
        _ => Vec::new(),
    }
}

/// `same` is the model of the recording, whatever became of it.
#[test]
fn no_preset_is_billed_at_the_price_of_a_model_that_is_gone() {
    let prices = Prices::built_in().unwrap();
    let mut fast = 0;
    for (preset, text) in PRESETS {
        let file: toml::Value = toml::from_str(text).unwrap();
        for named in named_models(&file).into_iter().filter(|named| *named != "same") {
            fast += usize::from(named == FAST);
            for provider in prices.lists() {
                let meant = provider.fast.as_deref().filter(|_| named == FAST);
                let model = meant.unwrap_or(named);
                let (list, price) = prices.of(model).unwrap_or_else(|| panic!("{preset}: {model}"));
                assert!(list.serves(price), "{preset}: {model} was retired");
            }
        }
    }
    assert!(fast >= 5, "{fast}");
}
