//! Recordings in front of the program and of strategies; what importers make of files is tested in `proctor-formats`.

use std::sync::Arc;

use proctor::model::offline::Offline;
use proctor::record::End;
use proctor::replay::{Models, Repetitions};
use proctor::session::import;

use crate::support::{prepared, run};
use outline::{fixture, model, outline, read, read_use, result, round_trip, text, user, written};

pub(crate) mod forks;
mod listed;
#[cfg(target_os = "linux")]
mod memory;
#[path = "../../crates/proctor-formats/tests/it/outline.rs"]
mod outline;
mod places;
mod real_agents;
mod views;

#[test]
fn the_recorded_strategy_sends_a_plan_alone_where_the_product_did() {
    let sessions = import::load(&fixture("claude-code/cleared.jsonl")).unwrap();
    let prepared = prepared(sessions[0].clone());
    let models = Models {
        summariser: Arc::new(Offline::new(prepared.counts().clone())),
        reader: None,
        judge: None,
        times: Repetitions::default(),
    };
    let replay = run(&prepared, "recorded", 200_000, &models);
    let prompts: Vec<u64> = replay.record.prompt_tokens.iter().map(|it| it.0).collect();
    assert!(matches!(replay.record.end, End::Completed), "{:?}", replay.record.end);
    assert_eq!(replay.record.compactions.len(), 1);
    assert!(prompts[2] < prompts[0] + 10 && prompts[2] < prompts[1], "{prompts:?}");
}
