//! What simulating the prompt cache costs: processor time of cells with and without it, on one session
//! of five million tokens, under all four schemes at once.
//!
//! `cargo bench --bench cache_share`; a number behind `--` is another size in tokens.
#![expect(clippy::print_stdout, reason = "what is measured is the output of this program")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use proctor::model::offline::Offline;
use proctor::model::price::Prices;
use proctor::replay::{CellName, CpuClock, Models, PreparedSession, Replayed, replay};
use proctor::session::synthetic::{Length, Recipe, generate};
use proctor::settings::Place;
use proctor::strategy::StrategySpec;
use proctor::strategy::trigger::{Condition, Trigger};
use proctor::tokens::{CharsPer4, CountedTexts};
use proctor::units::Tokens;
use proctor::window::Window;

/// Processor time of this thread.
struct ThreadTime;

impl CpuClock for ThreadTime {
    fn now(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(
            u64::try_from(time.tv_sec).unwrap_or(0),
            u32::try_from(time.tv_nsec).unwrap_or(0),
        )
    }
}

const STRATEGIES: [Option<&str>; 4] =
    [None, Some("observation-masking"), Some("claude-code"), Some("codex")];

/// Times of each cell; the best of so many counts.
const TIMES: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let mut asked = std::env::args().filter_map(|argument| argument.parse().ok());
    let tokens = Tokens(asked.next().unwrap_or(5_000_000));
    let recipe = Recipe {
        family: "code-review".to_owned(),
        seed: 1,
        length: Length::Tokens(tokens),
        ..Recipe::default()
    };
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let session = Arc::new(generate(&recipe, &counts)?.session);
    let prepared = || PreparedSession::new(session.clone(), counts.clone(), Vec::new());
    let without = prepared()?;
    let schemes = Prices::built_in()?.schemes("anthropic", None);
    let names: Vec<&str> = schemes.iter().map(|scheme| scheme.name.as_str()).collect();
    println!("{} tokens, {} calls; {}", tokens.0, session.calls().len(), names.join(", "));
    let with = prepared()?.with_cache(schemes, 30);
    let offline = Arc::new(Offline::new(counts.clone()));
    let models = Models {
        summariser: offline,
        reader: None,
        judge: None,
        times: proctor::replay::Repetitions::default(),
    };
    let time =
        |prepared: &PreparedSession, name: Option<&str>| -> Result<Duration, Box<dyn Error>> {
            let mut best = Duration::MAX;
            for _ in 0..TIMES {
                let replayed = match name {
                    None => Replayed::Full,
                    Some(name) => {
                        let trigger = Trigger::of(Condition::window_fraction(0.8));
                        let spec = StrategySpec::named(name, &trigger, &Place::BuiltIn)?;
                        Replayed::Strategy(Box::new(spec.build()?), Window::new(Tokens(200_000)))
                    }
                };
                let cell = CellName { strategy: name.unwrap_or("full").to_owned(), repeat: 0 };
                best = best.min(replay(prepared, cell, replayed, &models, &ThreadTime).cell_cpu);
            }
            Ok(best)
        };
    let mut sums = [Duration::ZERO; 2];
    for name in STRATEGIES {
        let pair = [time(&without, name)?, time(&with, name)?];
        print_line(name.unwrap_or("full"), pair);
        sums = [sums[0] + pair[0], sums[1] + pair[1]];
    }
    print_line("together", sums);
    Ok(())
}

fn print_line(name: &str, [without, with]: [Duration; 2]) {
    let more = with.saturating_sub(without).as_secs_f64();
    println!(
        "{name:<24} without {:>9.3} ms, with {:>9.3} ms: {:>5.1} % of the cell",
        without.as_secs_f64() * 1e3,
        with.as_secs_f64() * 1e3,
        100.0 * more / with.as_secs_f64()
    );
}
