//! A test bench for context compaction.
//!
//! Proctor replays long agent sessions, recorded or synthetic, through compaction strategies. It
//! measures what each strategy saves (tokens, calls, cost) and what it loses (planted facts, details
//! that the agent's later actions need, prompts that the provider accepts).
//!
//! ```text
//!  sessions ──► context ──► strategy ──► replay ──► records ──► stats ──► report
//!  (immutable)  (projection) (plans       (the loop,  (JSONL,     (pure)    (bytes)
//!                            patches)      the meter)  versioned)
//!                               ▲             │
//!                               └── model ◄───┘   the only code that waits
//! ```
//!
//! The modules are listed in the order in which data flows. Each uses only earlier ones; a test
//! checks this. Start with [`session`], [`context`] and [`strategy`]: the rest builds on their terms.
//! Modules that only the program, its tests and its benchmarks use are hidden from this page.
//!
//! # Words
//!
//! Code, files, flags and reports use one word for one thing:
//!
//! | word | meaning | elsewhere |
//! |---|---|---|
//! | session | one recorded conversation, complete | transcript, trajectory, thread |
//! | tool use, tool result | the model asks, the tool answers; paired by id | function call and output, action and observation |
//! | API call | one request to the agent's model and its response | step, turn |
//! | context | the messages that are sent to the model now | view, prompt |
//! | context window | the model's limit in tokens; the *effective window* is what the reserved output leaves | context limit |
//! | compaction | replacing a context with a shorter one | condensation, compression |
//! | stage | one way to shorten a context: clear old results, summarise | layer, processor |
//! | trigger | when a stage fires | threshold |
//! | guard | what happens when a stage fails or gains nothing | circuit breaker, fallback |
//! | strategy | stages with their triggers and guards: one policy | compactor, pipeline |
//! | preset | a named strategy in a TOML file | profile |
//! | `full`, `empty` | the reference: the whole history at every call, no window; the floor: no history | ceiling, oracle; blank |
//! | overflow | the provider refuses a prompt as too long | `prompt_too_long`, 413 |
//! | scenario | a file: sessions, window, strategies, models, probes, faults | experiment, suite |
//! | cell | one session × one strategy × one repeat | job |
//! | probe | a question about the past whose answer is known | needle, evaluation item |
//! | evidence | the messages that hold a probe's answer | gold turns |
//! | facts kept | share of planted values that are still in the prompt, by string matching: the evaluator `survival` | retention |
//! | answers right | share of probes that a model answers correctly | accuracy, recall |
//! | fidelity | answers right relative to full history, same probes and reader | quality |
//! | reader, judge, summariser | the models that answer, grade and summarise | answerer, grader |
//! | baseline | the result that others are compared with | reference |
//! | doing nothing | what the recorded product did where it compacted, else full history | status quo |
//! | control | `tail@S`: the newest rounds in the size that strategy S has | ablation |
//! | margin | by how much a number may be worse and still count as *not worse* | δ, tolerance |
//! | estimate | a number with its interval and its n | |
//!
//! # A strategy of one's own
//!
//! A [`strategy::Stage`] plans a patch and stands in a [`strategy::Pipeline`] (`examples/custom_stage.rs`); a
//! [`strategy::Strategy`] owns the context and may ask a model (`examples/custom_strategy.rs`); a program in any language
//! speaks the protocol of [`strategy::external`].
//!
//! # Versions
//!
//! Semantic versioning holds for what this page shows: before 1.0 a minor version may change it, with an entry in
//! `CHANGELOG.md` that says how to follow; a patch version does not. Hidden modules promise nothing. Files, exit codes and
//! the protocol of external strategies have version numbers of their own, and a build reads every earlier one from 0.1 on.
//!
//! # One cell
//!
//! ```
//! use std::sync::Arc;
//! use proctor::model::offline::Offline;
//! use proctor::replay::{CellName, Models, NoClock, PreparedSession, Repetitions, Replayed, replay};
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
//! let models = Models { summariser: offline, reader: None, judge: None, times: Repetitions::default() };
//! let cell = CellName { strategy: masking.name().to_owned(), repeat: 0 };
//! let arranged = Replayed::Strategy(Box::new(masking.build()?), Window::new(Tokens(200_000)));
//! let record = replay(&session, cell, arranged, &models, &NoClock).record;
//!
//! assert_eq!(record.reached_calls, 30);
//! assert!(!record.compactions.is_empty());
//! # Ok(())
//! # }
//! ```

#[doc(hidden)]
pub use proctor_sessions::{files, script};
pub use proctor_sessions::{tokens, units};
#[doc(hidden)]
pub mod stop;
#[doc(hidden)]
pub mod process;
#[doc(hidden)]
pub mod naming;
pub mod settings;
pub mod window;
pub mod session;
#[doc(hidden)]
pub mod patterns;
pub mod context;
#[doc(hidden)]
pub mod bill;
pub mod model;
pub mod step;
pub mod strategy;
#[doc(hidden)]
pub mod probe;
#[doc(hidden)]
pub mod scenario;
#[doc(hidden)]
pub mod stats;
pub mod record;
#[doc(hidden)]
pub mod metric;
mod walk;
pub mod replay;
#[doc(hidden)]
pub mod check;
#[doc(hidden)]
pub mod live;
#[doc(hidden)]
pub mod runner;
#[doc(hidden)]
pub mod compare;
pub mod report;
#[doc(hidden)]
pub mod autopsy;
#[cfg(feature = "http")]
#[doc(hidden)]
pub mod proxy;
#[doc(hidden)]
pub mod cli;
