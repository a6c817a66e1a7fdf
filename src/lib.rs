//! A test bench for context compaction.
//!
//! Proctor replays long agent sessions, recorded or synthetic, through compaction strategies, and
//! measures what each strategy saves (tokens, calls) and what it loses (planted facts, what the
//! agent's own later actions need, rules of the provider).
//!
//! ```text
//!  sessions ──► context ──► strategy ──► replay ──► records ──► stats ──► report
//!  (immutable)  (projection) (plans       (the loop,  (JSONL,     (pure)    (bytes)
//!                            patches)      the meter)  versioned)
//!                               ▲             │
//!                               └── model ◄───┘   the only code that waits
//! ```
//!
//! The modules stand in the order in which data flows; each uses only earlier ones, and a test
//! holds them to it. Start with [`session`], [`context`] and [`strategy`]: everything else is
//! written in their words.
//!
//! ```
//! use std::sync::Arc;
//! use proctor::model::offline::Offline;
//! use proctor::replay::{CellName, Models, NoClock, PreparedSession, Replayed, Times, replay};
//! use proctor::session::synthetic::{Length, Recipe, generate};
//! use proctor::settings::Place;
//! use proctor::strategy::{StrategySpec, trigger::Trigger};
//! use proctor::tokens::{CharsPer4, CountedTexts};
//! use proctor::units::Tokens;
//! use proctor::window::Window;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A session of 30 calls with planted facts, counted once.
//! let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
//! let made = generate(&Recipe { length: Length::Rounds(30), ..Recipe::default() }, &counts)?;
//! let session = PreparedSession::new(Arc::new(made.session), counts.clone(), Vec::new())?;
//!
//! // One strategy, one cell.
//! let masking = StrategySpec::named("observation-masking", &Trigger::always(), &Place::BuiltIn)?;
//! let offline = Arc::new(Offline::new(counts));
//! let models = Models { summariser: offline, reader: None, judge: None, times: Times::default() };
//! let cell = CellName { strategy: masking.name().to_owned(), repeat: 0 };
//! let arranged = Replayed::Strategy(Box::new(masking.build()?), Window::new(Tokens(200_000)));
//! let record = replay(&session, cell, arranged, &models, &NoClock).record;
//!
//! assert_eq!(record.reached_calls, 30);
//! assert!(!record.compactions.is_empty());
//! # Ok(())
//! # }
//! ```

pub mod units;
pub mod settings;
pub mod window;
pub mod tokens;
pub mod session;
pub mod needles;
pub mod context;
pub mod model;
pub mod step;
pub mod strategy;
pub mod probe;
pub mod scenario;
pub mod record;
pub mod metric;
pub mod replay;
pub mod runner;
pub mod stats;
pub mod compare;
pub mod report;
#[cfg(feature = "http")]
pub mod proxy;
pub mod cli;
