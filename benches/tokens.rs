//! Counting tokens: exact and estimated, beside `tiktoken-rs` alone, cold and remembered.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use proctor::session::synthetic::{Length, Recipe, generate};
use proctor::tokens::{COUNTERS, CharsPer4, CountedTexts, O200k, TokenCounter, counter};

fn texts() -> Vec<Arc<str>> {
    let recipe = Recipe { length: Length::Rounds(60), ..Recipe::default() };
    let counts = CountedTexts::new(Arc::new(CharsPer4));
    generate(&recipe, &counts)
        .map_or_else(|_| Vec::new(), |made| made.session.texts().cloned().collect())
}

fn tokens(c: &mut Criterion) {
    let texts = texts();
    let bytes: u64 = texts.iter().map(|text| text.len() as u64).sum();
    let mut group = c.benchmark_group("tokens");
    group.throughput(Throughput::Bytes(bytes));
    let count = |counter: &dyn TokenCounter| -> u64 {
        texts.iter().map(|text| counter.count(text).0).sum()
    };
    for (name, _) in COUNTERS {
        if let Some(counter) = counter(name) {
            group.bench_function(*name, |b| b.iter(|| black_box(count(&*counter))));
        }
    }
    for (name, encoding) in [
        ("tiktoken-rs o200k", tiktoken_rs::o200k_base_singleton()),
        ("tiktoken-rs cl100k", tiktoken_rs::cl100k_base_singleton()),
    ] {
        let count = |text: &Arc<str>| encoding.count_ordinary(text);
        group.bench_function(name, |b| {
            b.iter(|| black_box(texts.iter().map(count).sum::<usize>()));
        });
    }
    group.bench_function("preload on all cores", |b| {
        b.iter(|| CountedTexts::new(Arc::new(O200k)).preload(&texts));
    });
    let warm = CountedTexts::new(Arc::new(O200k));
    warm.preload(&texts);
    group.bench_function("remembered", |b| {
        b.iter(|| black_box(texts.iter().map(|text| warm.size(text).tokens.0).sum::<u64>()));
    });
    group.finish();
}

criterion_group!(benches, tokens);
criterion_main!(benches);
