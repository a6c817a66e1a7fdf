//! What a text keeps of the facts of a session: as recorded, and as a compaction wrote it.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use proctor::probe::survival::{SurvivalSlots, WrittenBy};
use proctor::session::synthetic::{Length, Recipe, generate};
use proctor::tokens::{CharsPer4, CountedTexts};
use proctor::units::Tokens;

fn kept(c: &mut Criterion) {
    let recipe = Recipe { length: Length::Tokens(Tokens(100_000)), ..Recipe::default() };
    let counts = CountedTexts::new(Arc::new(CharsPer4));
    let Ok(made) = generate(&recipe, &counts) else {
        return;
    };
    let texts: Vec<Arc<str>> = made.session.texts().cloned().collect();
    let bytes: u64 = texts.iter().map(|text| text.len() as u64).sum();
    let facts = &made.truth.facts;
    let mut group = c.benchmark_group("kept");
    group.throughput(Throughput::Bytes(bytes));
    for (name, written_by) in [("recorded", WrittenBy::Session), ("written", WrittenBy::Compaction)]
    {
        // Each text is searched once: what was found is remembered.
        group.bench_function(name, |b| {
            b.iter_batched(
                || SurvivalSlots::new(facts),
                |survival| {
                    let found = survival.map(|survival| {
                        let found = texts.iter().map(|text| survival.find(text, written_by).len());
                        found.sum::<usize>()
                    });
                    black_box(found)
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, kept);
criterion_main!(benches);
