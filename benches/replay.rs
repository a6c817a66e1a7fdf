//! Whole cells: a session of 100,000 tokens through each strategy, and one call on which nothing
//! fires at growing lengths.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use proctor::model::offline::Offline;
use proctor::replay::{CellName, Models, NoClock, PreparedSession, Replayed, replay};
use proctor::session::synthetic::{Length, Recipe, generate};
use proctor::settings::{Place, SettingError};
use proctor::strategy::StrategySpec;
use proctor::strategy::trigger::{Condition, Trigger};
use proctor::tokens::{CountedTexts, O200k};
use proctor::units::Tokens;
use proctor::window::Window;

fn prepared(tokens: u64) -> Option<(PreparedSession, Models)> {
    let recipe = Recipe {
        family: "code-review".to_owned(),
        seed: 1,
        length: Length::Tokens(Tokens(tokens)),
        ..Recipe::default()
    };
    let counts = Arc::new(CountedTexts::new(Arc::new(O200k)));
    let made = generate(&recipe, &counts).ok()?;
    let probes = made.truth.facts.clone();
    let offline = Arc::new(Offline::new(counts.clone()));
    let models = Models {
        summariser: offline.clone(),
        reader: None,
        judge: None,
        times: proctor::replay::Repetitions::default(),
    };
    Some((PreparedSession::new(Arc::new(made.session), counts, probes).ok()?, models))
}

fn strategy(name: &str) -> Result<StrategySpec, SettingError> {
    let trigger = Trigger::of(Condition::window_fraction(0.8));
    StrategySpec::parse(name, &trigger, &Place::BuiltIn)
}

fn cells(c: &mut Criterion) {
    let Some((session, models)) = prepared(100_000) else {
        return;
    };
    let mut group = c.benchmark_group("replay 100k tokens");
    let cell = |name: &str| CellName { strategy: name.to_owned(), repeat: 0 };
    group.bench_function("full", |b| {
        b.iter(|| black_box(replay(&session, cell("full"), Replayed::Full, &models, &NoClock)));
    });
    for name in ["none", "observation-masking", "learn-claude-code-s06", "tail@20000"] {
        let Ok(spec) = strategy(name) else { continue };
        group.bench_function(name, |b| {
            b.iter(|| {
                let Ok(pipeline) = spec.build() else { return };
                let window = Window::new(Tokens(80_000));
                let replayed = Replayed::Strategy(Box::new(pipeline), window);
                black_box(replay(&session, cell(name), replayed, &models, &NoClock));
            });
        });
    }
    group.finish();
}

fn growth(c: &mut Criterion) {
    let mut group = c.benchmark_group("observation-masking by length");
    group.sample_size(10);
    for thousands in [100_u64, 400, 1_600] {
        let Some((session, models)) = prepared(thousands * 1_000) else {
            continue;
        };
        let Ok(spec) = strategy("observation-masking") else {
            continue;
        };
        group.bench_function(BenchmarkId::from_parameter(format!("{thousands}k")), |b| {
            b.iter(|| {
                let Ok(pipeline) = spec.build() else { return };
                let window = Window::new(Tokens(10_000_000));
                let replayed = Replayed::Strategy(Box::new(pipeline), window);
                let name = CellName { strategy: "observation-masking".to_owned(), repeat: 0 };
                black_box(replay(&session, name, replayed, &models, &NoClock));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, cells, growth);
criterion_main!(benches);
