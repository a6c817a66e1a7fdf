//! What the protocol of external strategies costs for each call, beside the same in process. The program is this binary:
//! it answers that nothing is to be done, and so shows the exchange and nothing else.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::{BufRead, Write, stdin, stdout};
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput};
use proctor::replay::{CellName, Models, NoClock, PreparedSession, Replayed, replay_observed};
use proctor::session::synthetic::{Length, Recipe, generate};
use proctor::settings::{Place, Setting, SettingTable};
use proctor::strategy::StrategySpec;
use proctor::strategy::external::Host;
use proctor::strategy::trigger::Trigger;
use proctor::tokens::{CharsPer4, CountedTexts};
use proctor::units::Tokens;
use proctor::window::Window;

/// The word that makes this binary a strategy that does nothing.
const PROGRAM: &str = "program";

fn main() {
    if let Some(context) = std::env::args().skip_while(|word| word != PROGRAM).nth(1) {
        serve(&context);
        return;
    }
    let mut criterion = Criterion::default().configure_from_args();
    exchanges(&mut criterion);
    criterion.final_summary();
}

fn serve(context: &str) {
    for line in stdin().lock().lines().map_while(Result::ok) {
        // The `id` comes first; the line without one wants no answer.
        let id = line.strip_prefix("{\"id\":").and_then(|rest| rest.split_once(','));
        let Some((id, _)) = id else {
            continue;
        };
        let answer = if line.contains("\"type\":\"hello\"") {
            format!("{{\"type\":\"hello\",\"id\":{id},\"protocol\":2,\"context\":\"{context}\"}}\n")
        } else {
            format!("{{\"type\":\"unchanged\",\"id\":{id}}}\n")
        };
        if stdout().write_all(answer.as_bytes()).and_then(|()| stdout().flush()).is_err() {
            return;
        }
    }
}

fn program(context: &str) -> Option<StrategySpec> {
    let place = Place::BuiltIn;
    let itself = std::env::current_exe().ok()?.display().to_string();
    let words = [&*itself, PROGRAM, context].map(|word| Setting::new(word, &place));
    let mut table = SettingTable::new(place.clone());
    table.put("command", Vec::from(words), &place);
    let host =
        Host { environment: BTreeMap::new(), folder: std::env::temp_dir(), ..Host::default() };
    let spec = StrategySpec::of(context, table, &Trigger::default()).ok()?;
    spec.with_programs(host).ok()
}

fn exchanges(c: &mut Criterion) {
    let mut group = c.benchmark_group("calls of a strategy that does nothing");
    for rounds in [100, 800] {
        let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
        let recipe = Recipe { length: Length::Rounds(rounds), ..Recipe::default() };
        let Ok(made) = generate(&recipe, &counts) else {
            return;
        };
        let session = Arc::new(made.session);
        let Ok(prepared) = PreparedSession::new(session.clone(), counts.clone(), Vec::new()) else {
            return;
        };
        let models = Models::offline(&counts);
        group.throughput(Throughput::Elements(session.calls().len() as u64));
        let none = StrategySpec::named("none", &Trigger::default(), &Place::BuiltIn).ok();
        for (name, spec) in [
            ("in process", none),
            ("program, changes", program("changes")),
            ("program, whole", program("whole")),
        ] {
            // Every call gets the whole list: with the calls squared.
            if name == "program, whole" && rounds > 100 {
                continue;
            }
            let Some(spec) = spec else {
                return;
            };
            group.bench_function(BenchmarkId::new(name, rounds), |b| {
                b.iter(|| {
                    let Ok(strategy) = spec.build() else {
                        return;
                    };
                    let cell = CellName { strategy: name.to_owned(), repeat: 0 };
                    let window = Window::new(Tokens(10_000_000));
                    let replayed = Replayed::Strategy(Box::new(strategy), window);
                    black_box(replay_observed(
                        &prepared,
                        cell,
                        replayed,
                        &models,
                        &NoClock,
                        Vec::new(),
                    ));
                });
            });
        }
    }
    group.finish();
}
