//! Limits of a provider's requests beside the window: images, bytes, pixels.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use proctor::model::offline::Offline;
use proctor::model::price::Prices;
use proctor::record::{CellRecord, DeathCause, End};
use proctor::replay::Models;
use proctor::report::Report;
use proctor::runner::Plan;
use proctor::session::{ContentBlock, Image, JsonText, Message, Role, Session, ToolResult};

use crate::support::{asks, prepared, run, run_plan, said, scenario, session, typed};

/// A session whose tool shows so many pictures of this size, one after the other.
fn shown(pictures: usize, width: u32, height: u32, bytes: u64) -> Session {
    let source =
        format!(r#"{{"type":"image-size","width":{width},"height":{height},"bytes":{bytes}}}"#);
    let image = ContentBlock::Image(Image { source: JsonText::parse(&source).unwrap() });
    let mut messages = vec![typed("Look at all the pages.")];
    for number in 0..pictures {
        let id = format!("t{number}");
        messages.push(asks(&id, "Bash", &format!("page {number}")));
        let result = ContentBlock::ToolResult(Box::new(ToolResult {
            tool_use_id: id.into(),
            content: vec![ContentBlock::Text("shown".into()), image.clone()],
            is_error: false,
        }));
        messages.push(Message::new(Role::User, vec![result]));
    }
    messages.push(said("All of them are seen."));
    session(messages)
}

/// What a strategy does with such a session in a window that is large enough.
fn replayed(session: Session, strategy: &str) -> CellRecord {
    let limits = Prices::built_in().unwrap().limits("anthropic", None);
    let mut prepared = prepared(session);
    prepared.limits = limits;
    let models = Models {
        summariser: Arc::new(Offline::new(prepared.counts().clone())),
        reader: None,
        judge: None,
        times: proctor::replay::Repetitions::default(),
    };
    run(&prepared, strategy, 10_000_000, &models).record
}

#[test]
fn a_prompt_over_a_limit_is_refused_by_name_and_room_is_made_as_for_tokens() {
    for (session, limit) in [
        (shown(110, 800, 600, 1_000), "at most 100 images in a request"),
        (shown(40, 800, 600, 1_000_000), "at most 32000000 bytes in a request"),
        (
            shown(25, 2_001, 600, 1_000),
            "at most 2000 pixels on an image's side, with more than 20 images",
        ),
    ] {
        let record = replayed(session.clone(), "none");
        let End::Died { call, cause, .. } = record.end else {
            panic!("{limit}: {:?}", record.end);
        };
        assert_eq!(cause, DeathCause::Overflow, "{limit}");
        let [refusal] = &record.refusals[..] else {
            panic!("{limit}: {:?}", record.refusals);
        };
        assert_eq!((refusal.call, &*refusal.limit), (call, limit));
        assert!(refusal.document.starts_with("https://"));
        // Masking keeps few results with their pictures: nothing is refused.
        let record = replayed(session.clone(), "observation-masking");
        assert_eq!((&record.end, record.refusals.len()), (&End::Completed, 0), "{limit}");
        // A recovery drops the oldest, as it does for tokens.
        let record = replayed(session, "codex");
        assert_eq!(record.end, End::Completed, "{limit}");
        assert!(!record.refusals.is_empty() && record.refusals.len() == record.overflows.len());
    }
    // Twenty large pictures are accepted, and what a product sent was accepted.
    assert_eq!(replayed(shown(20, 2_001, 600, 1_000), "none").end, End::Completed);
    assert_eq!(replayed(shown(110, 800, 600, 1_000), "recorded").end, End::Completed);
}

#[test]
fn screenshots_reach_a_limit_before_the_window_and_the_report_names_it() {
    let mut text = String::from(
        "counter = \"chars/4\"\n[models]\nreader = \"none\"\n[window]\ntokens = 2_000_000\n",
    );
    text.push_str(
        "[[sessions]]\nsynthetic = { family = \"screenshots\", seed = 1, rounds = 400 }\n",
    );
    for name in ["none", "observation-masking"] {
        let _ = writeln!(text, "[[strategies]]\npreset = \"{name}\"");
    }
    let plan = Plan::new(scenario(&text, Path::new(""))).unwrap();
    let (_, read) = run_plan(&plan);
    let refused = |name: &str| -> Vec<String> {
        let cells = read.cells.iter().filter(|cell| cell.strategy == name);
        let limits = cells.flat_map(|cell| &cell.refusals);
        limits.map(|refusal| refusal.limit.clone()).collect()
    };
    let limits = refused("none");
    assert_eq!(limits.len(), 1, "{limits:?}");
    assert!(refused("observation-masking").is_empty());
    let report = Report::of(&read.manifest, &read.cells);
    let said = |id: &str| format!("{:?}", report.section(id).unwrap());
    let ended = format!("died: the provider takes {}", limits[0]);
    assert!(said("ended_early").contains(&ended), "{}", said("ended_early"));
    let note = format!("The provider takes {} (https://", limits[0]);
    assert!(said("overflows").contains(&note), "{}", said("overflows"));
}
