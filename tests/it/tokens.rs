//! Counts against the reference on real sessions, and against what peers counted.

use std::collections::BTreeSet;
use std::sync::Arc;

use proctor::model::scripted::Scripted;
use proctor::replay::{Models, NoClock, PreparedSession, Replay, Replayed, replay};
use proctor::session::import;
use proctor::tokens::{CharsPer4, Cl100k, Cl100kContent, CountedTexts, O200k, TokenCounter};
use proctor::units::Tokens;
use rayon::prelude::*;
use serde_json::Value;

use crate::shared::{files, folder};
use crate::support;

mod reference;

use reference::Reference;

/// All strings in a JSON value.
fn strings(value: &Value, found: &mut BTreeSet<Arc<str>>) {
    match value {
        Value::String(text) => {
            found.insert(text.as_str().into());
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn shared_counts_equal_the_reference_on_every_text_of_every_session() {
    let Some(folder) = folder("sessions") else {
        return;
    };
    let mut texts: BTreeSet<Arc<str>> = BTreeSet::new();
    for path in files(&folder) {
        let content = std::fs::read_to_string(&path).unwrap();
        // Whatever the format: every string of every record.
        for value in serde_json::Deserializer::from_str(&content).into_iter::<Value>() {
            let Ok(value) = value else {
                texts.extend(content.lines().map(Arc::from));
                break;
            };
            strings(&value, &mut texts);
        }
    }
    assert!(texts.len() > 10_000, "{} texts", texts.len());
    texts.into_par_iter().for_each(|text| {
        let start: String = text.chars().take(200).collect();
        for (fast, slow) in [
            (O200k.count(&text), Reference::O200k.count(&text)),
            (Cl100k.count(&text), Reference::Cl100k.count(&text)),
        ] {
            assert_eq!(fast, slow, "{start}");
        }
    });
}

/// What the peers were given, counted by their rule.
fn long() -> Option<PreparedSession> {
    let path = folder("oracles/peers/sessions")?.join("long.anthropic.json");
    let session = import::load(&path).unwrap().swap_remove(0);
    let counts = Arc::new(CountedTexts::new(Arc::new(Cl100kContent)));
    Some(PreparedSession::new(Arc::new(session), counts, Vec::new()).unwrap())
}

/// Calls, largest prompt, and all prompts together.
fn sizes(replay: &Replay) -> (usize, Option<Tokens>, Tokens) {
    let prompts = &replay.record.prompt_tokens;
    let peak = prompts.iter().copied().max();
    (prompts.len(), peak, prompts.iter().copied().sum())
}

#[test]
fn shared_the_full_history_costs_what_peers_say_it_costs() {
    let Some(long) = long() else {
        return;
    };
    let models: Models = support::models(Scripted::new());
    let full = replay(&long, support::cell("full"), Replayed::Full, &models, &NoClock);
    assert_eq!(sizes(&full), (170, Some(Tokens(321_639)), Tokens(27_760_349)));
}

#[test]
fn shared_masking_the_way_of_peers_costs_what_they_say_it_costs() {
    let Some(long) = long() else {
        return;
    };
    let masking = "observation-masking[clear_results.keep_last=10,\
                   clear_results.keep_first_observation=false,\
                   clear_results.placeholder='[observation masked]']";
    let masked = support::run(&long, masking, 1_000_000, &support::models(Scripted::new()));
    assert_eq!(sizes(&masked), (170, Some(Tokens(76_182)), Tokens(3_660_587)));
}

/// The published table is of 22 demonstrations, of which a part is here: the savings are those of
/// other files too, and so agree within some points only. An action is counted with its tool's name
/// here, as its text there.
#[test]
fn shared_masking_of_demonstrations_saves_about_what_is_published() {
    let Some(folder) = folder("sessions/swe-agent") else {
        return;
    };
    let demonstrations: Vec<PreparedSession> = files(&folder)
        .into_iter()
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("sweagent__")
        })
        .map(|path| {
            let session = import::load(&path).unwrap().swap_remove(0);
            let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
            PreparedSession::new(Arc::new(session), counts, Vec::new()).unwrap()
        })
        .collect();
    assert!(demonstrations.len() >= 12, "{}", demonstrations.len());
    let models = support::models(Scripted::new());
    let all = |strategy: &str| -> u64 {
        let replays = demonstrations.iter();
        let replays = replays.map(|it| support::run(it, strategy, 1_000_000, &models));
        replays.map(|replay| sizes(&replay).2.0).sum()
    };
    let full = all("none");
    for (keep_last, published) in [(1, 29.5), (3, 18.1), (5, 10.1), (10, 1.9)] {
        let masking = format!(
            "observation-masking[clear_results.keep_last={keep_last},\
             clear_results.keep_first_observation=true]"
        );
        let saved = 100.0 * (1.0 - all(&masking) as f64 / full as f64);
        println!("keep {keep_last}: {saved:.1} %, published {published} %");
        assert!((saved - published).abs() < 3.5, "keep {keep_last}: {saved}");
    }
}
