//! One plan of each stage on a context of 100,000 tokens, and one on which nothing is to be done.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use proctor::context::{Context, Entry, Origin};
use proctor::model::{Request, scripted};
use proctor::session::synthetic::{Length, Recipe, generate};
use proctor::settings::SettingTable;
use proctor::step::{CallResult, Caller, drive};
use proctor::strategy::situation::Situation;
use proctor::strategy::stage::STAGES;
use proctor::strategy::trigger::Trigger;
use proctor::strategy::{Pipeline, Strategy, StrategySpec};
use proctor::tokens::{CountedTexts, O200k};
use proctor::units::Tokens;
use proctor::window::Window;

struct Canned;

impl Caller for Canned {
    fn call(&mut self, requests: Vec<Request>) -> Vec<CallResult> {
        requests.iter().map(|_| Ok(scripted::response("a summary of a few words"))).collect()
    }
}

fn situation(counts: Arc<CountedTexts>) -> Situation {
    Situation {
        call: 1,
        notes: Some("notes of an earlier session".into()),
        ..Situation::first(Window::new(Tokens(50_000)), counts)
    }
}

fn context() -> Option<(Context, Arc<CountedTexts>)> {
    let recipe = Recipe {
        family: "code-review".to_owned(),
        seed: 1,
        length: Length::Tokens(Tokens(100_000)),
        ..Recipe::default()
    };
    let counts = Arc::new(CountedTexts::new(Arc::new(O200k)));
    let made = generate(&recipe, &counts).ok()?;
    let mut context = Context::default();
    for (at, message) in made.session.messages().iter().enumerate() {
        context.append(Entry::new(Origin::Verbatim(at), message.clone(), &counts));
    }
    Some((context, counts))
}

fn pipeline(text: &str) -> Option<Pipeline> {
    let table = SettingTable::parse("bench", text).ok()?;
    StrategySpec::of("bench", table, &Trigger::always()).ok()?.build().ok()
}

/// What a stage needs to find work, or to do no more of it than it is for.
fn knobs(kind: &str) -> &'static str {
    match kind {
        "clear_results" => "keep_last = 10",
        "drop_middle" => "max_messages = 50",
        "drop_oldest" => "fit_fraction = 0.5",
        "select" => "budget_tokens = 20_000",
        "clear_inputs" => "max_chars = 200",
        "snip" => "marks = ['read_then_edited']",
        "truncate_output" => "max_tokens = 500",
        _ => "",
    }
}

fn stages(c: &mut Criterion) {
    let Some((context, counts)) = context() else {
        return;
    };
    let cx = situation(counts);
    let mut group = c.benchmark_group("stages");
    let mut kinds: Vec<(&str, String)> = STAGES
        .iter()
        .map(|kind| {
            let knobs = knobs(kind.name);
            (kind.name, format!("[[stage]]\nkind = '{}'\n{knobs}", kind.name))
        })
        .collect();
    kinds.push((
        "nothing to do",
        "[[stage]]\nkind = 'summarize'\nwhen = { tokens_over = 900_000 }".to_owned(),
    ));
    for (name, text) in &kinds {
        group.bench_function(*name, |b| {
            b.iter_batched(
                || (context.clone(), pipeline(text)),
                |(context, pipeline)| {
                    let mut pipeline = pipeline?;
                    let compacted = drive(pipeline.before_call(context, &cx), &mut Canned);
                    Some(black_box(compacted))
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, stages);
criterion_main!(benches);
