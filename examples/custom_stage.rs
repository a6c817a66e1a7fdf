//! A stage of one's own, in Rust: it keeps the newest entries, and stands in a pipeline with a trigger and guards like any
//! other.
//!
//! ```console
//! $ cargo run --example custom_stage
//! ```

#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::error::Error;
use std::sync::Arc;

use proctor::context::{Context, Edit, Patch};
use proctor::replay::{CellName, Models, NoClock, PreparedSession, Replayed, replay};
use proctor::session::Role;
use proctor::session::synthetic::{Length, Recipe, generate};
use proctor::step::Step;
use proctor::strategy::guard::Guards;
use proctor::strategy::pipeline::{Pipeline, Retries, Slot};
use proctor::strategy::trigger::{Condition, Trigger};
use proctor::strategy::{PlannedPatch, Situation, Stage};
use proctor::tokens::{CharsPer4, CountedTexts};
use proctor::units::Tokens;
use proctor::window::Window;

/// Keeps the first entry and about so many of the newest.
#[derive(Debug)]
struct KeepNewest {
    entries: usize,
}

impl Stage for KeepNewest {
    fn plan<'a>(&'a mut self, context: &Context, _: &'a Situation) -> PlannedPatch<'a> {
        let entries = context.entries();
        let from = entries.len().saturating_sub(self.entries);
        // A response begins an API round: a cut in front of it leaves no result without its call.
        let cut = (from..entries.len()).find(|at| entries[*at].message.role() == Role::Assistant);
        let mut patch = Patch::default();
        if let Some(cut) = cut.filter(|cut| *cut > 1) {
            patch.reason = format!("the newest {} entries", entries.len() - cut);
            patch.edits = vec![Edit::replacing(1..cut, [])];
        }
        Step::Done(Ok(patch))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let recipe = Recipe { length: Length::Rounds(60), ..Recipe::default() };
    let session = Arc::new(generate(&recipe, &counts)?.session);
    let prepared = PreparedSession::new(session, counts.clone(), Vec::new())?;

    let when = Trigger::of(Condition::window_fraction(0.8));
    let stage = Box::new(KeepNewest { entries: 20 });
    let slot = Slot::new("keep_newest".into(), when, Guards::default(), stage);
    let strategy = Box::new(Pipeline::new(vec![slot], Retries::default()));

    let name = CellName { strategy: "keep-newest".to_owned(), repeat: 0 };
    let arranged = Replayed::Strategy(strategy, Window::new(Tokens(30_000)));
    let record = replay(&prepared, name, arranged, &Models::offline(&counts), &NoClock).record;
    for event in &record.compactions {
        println!(
            "call {}: {}, {} to {} tokens",
            event.call, event.reason, event.before, event.after
        );
    }
    println!("{} of {} calls sent: {:?}", record.reached_calls, record.planned_calls, record.end);
    Ok(())
}
