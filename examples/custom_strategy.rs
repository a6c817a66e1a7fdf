//! A strategy of one's own, in Rust: it owns the context between calls, and asks a model for a summary where the window
//! gets full.
//!
//! ```console
//! $ cargo run --example custom_strategy
//! ```

#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::error::Error;
use std::sync::Arc;

use proctor::context::{Applied, Context, Edit, Entry, Origin};
use proctor::model::{Purpose, Request, Task};
use proctor::replay::{CellName, Models, NoClock, PreparedSession, Replayed, replay};
use proctor::session::synthetic::{Length, Recipe, generate};
use proctor::session::{Message, Role};
use proctor::step::Step;
use proctor::strategy::{Compaction, Situation, Strategy};
use proctor::tokens::{CharsPer4, CountedTexts};
use proctor::units::Tokens;
use proctor::window::Window;

/// A summary of everything takes its place when the prompt reaches four fifths of the window.
#[derive(Debug)]
struct SummariseAll;

impl Strategy for SummariseAll {
    fn on_append(&mut self, context: Context, _: &Situation) -> Compaction {
        Compaction::unchanged(context)
    }

    fn before_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        if cx.prompt(&context).0 * 5 < cx.window.tokens.0 * 4 {
            return Step::Done(Compaction::unchanged(context));
        }
        let mut messages: Vec<Arc<Message>> =
            context.entries().iter().map(|it| it.message.clone()).collect();
        messages
            .push(Arc::new(Message::text(Role::User, "Sum up what was done and what comes next.")));
        let request = Request {
            purpose: Purpose::Compaction,
            task: Task::Summarise { sections: Vec::new() },
            system: None,
            tools: None,
            messages,
            max_output: Tokens(1_000),
            model: None,
        };
        Step::ask(request, move |answer| {
            let mut compaction = Compaction::unchanged(context);
            // A model that fails leaves the context as it was.
            let Ok(response) = answer else {
                return Step::Done(compaction);
            };
            let all = compaction.context.entries();
            let summary = Arc::new(Message::text(Role::User, response.text));
            let entry = Entry::new(Origin::derived_from(all), summary, &cx.counts);
            let edit = Edit::replacing(0..all.len(), [entry]);
            if let Ok(change) = compaction.context.apply(vec![edit]) {
                compaction.applied.push(Applied {
                    call: cx.call,
                    stage: "summarise_all".into(),
                    reason: "four fifths of the window".to_owned(),
                    change,
                    is_still_over: false,
                    prepared_at: None,
                });
            }
            Step::Done(compaction)
        })
    }

    fn on_overflow<'a>(&'a mut self, context: Context, _: &'a Situation) -> Step<'a, Compaction> {
        Step::Done(Compaction::unchanged(context))
    }

    fn after_call<'a>(&'a mut self, context: Context, _: &'a Situation) -> Step<'a, Compaction> {
        Step::Done(Compaction::unchanged(context))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let recipe = Recipe { length: Length::Rounds(60), ..Recipe::default() };
    let session = Arc::new(generate(&recipe, &counts)?.session);
    let prepared = PreparedSession::new(session, counts.clone(), Vec::new())?;

    let name = CellName { strategy: "summarise-all".to_owned(), repeat: 0 };
    let arranged = Replayed::Strategy(Box::new(SummariseAll), Window::new(Tokens(30_000)));
    let record = replay(&prepared, name, arranged, &Models::offline(&counts), &NoClock).record;
    for (event, asked) in record.compactions.iter().zip(&record.model_calls) {
        let usage = asked.usage;
        println!(
            "call {}: {} to {} tokens, for {} tokens read and {} written",
            event.call,
            event.before,
            event.after,
            usage.prompt(),
            usage.output
        );
    }
    println!("{} of {} calls sent: {:?}", record.reached_calls, record.planned_calls, record.end);
    Ok(())
}
