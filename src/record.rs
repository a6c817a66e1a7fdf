//! The files of a run: one manifest, and one line per finished cell.
//!
//! Everything a report says is computed from these; nothing is read from anywhere else.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};

use crate::units::Tokens;
use crate::window::Window;
pub use crate::window::{KnownBy, NativeWindow};

pub mod cache;
pub mod calibration;
pub mod calls;
pub mod compaction;
pub mod evaluators;
pub mod forecast;
pub mod journal;
pub mod live;
pub(crate) mod order;
pub mod probe;
mod program;
pub mod session;
pub mod shard;
mod strategy;
pub mod trail;
pub mod verdicts;
pub mod words;

pub use crate::session::ground_truth::ArtifactVerb;
pub use cache::{
    BILLED, CacheBasis, CacheBreaks, CacheRecord, ObservedCache, PriceEntry, SessionCache,
};
pub use calibration::{CalibrationStatus, JudgeCalibration};
pub use calls::{KeptCall, LostCall, ModelCall, SentinelRecord};
pub use compaction::{
    Ailment, CompactionChange, EntryEdit, Excerpt, MessageKind, Portion, PromptEntry, PutEntry,
    SummaryHealth, UnhealthySummary,
};
pub use forecast::{Asks, ForecastCell, ProbesDue, PromptDue, SentinelsDue};
pub use live::LiveRecord;
pub use probe::{
    AnswerRecord, Fate, LostAt, PlaceInPrompt, ProbeRecord, ProbeText, RecoveredItem,
    RecoveryRecord, SurvivalRecord,
};
pub(crate) use program::kinds_of;
pub use program::{Plumbing, ProgramState};
pub use session::{SessionEntry, repairs};
pub use strategy::{OWN_MECHANISM, StrategyEntry};
pub use trail::{ArtifactTrail, Reread, SummaryAtoms, TrailCounts, UnsupportedAtom};
pub use words::{
    Drop, Factor, Fit, HeldOut, HiddenThinking, Level, ModelKind, Prediction, ServerWindow,
    SessionSizes, Sizes,
};

/// Version of the run folder's files.
pub const FORMAT_VERSION: u32 = 1;

/// A JSON Schema (draft 2020-12) of `run.json`, or of any other file of a run folder.
pub fn schema() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut generator = settings.into_generator();
    let files = [
        generator.subschema_for::<Manifest>(),
        generator.subschema_for::<CellRecord>(),
        generator.subschema_for::<verdicts::GivenVerdict>(),
        generator.subschema_for::<JudgeCalibration>(),
        generator.subschema_for::<shard::Shard>(),
        generator.subschema_for::<shard::PlannedSource>(),
    ];
    let mut definitions = generator.take_definitions(true);
    for definition in files.iter().filter_map(|schema| schema.as_value()["$ref"].as_str()) {
        let name = definition.rsplit('/').next().unwrap_or_default();
        definitions.get_mut(name).map(with_checksum);
    }
    serde_json::json!({
        "$schema": generator.settings().meta_schema,
        "title": "A file of a Proctor run folder",
        "description": "The object in `run.json`, or `shard.json`, or one line of `cells.jsonl`, `verdicts.jsonl`, `calibrations.jsonl` or `sources.jsonl`.",
        "oneOf": files,
        "$defs": definitions,
    })
}

/// Adds the checksum to the schema of an object that is kept with one.
pub(crate) fn with_checksum(schema: &mut serde_json::Value) {
    schema["properties"]["check"] = serde_json::json!({
        "description": "The checksum of the bytes before it: the first digits of their SHA-256.",
        "type": "string",
        "pattern": "^[0-9a-f]{8}$",
    });
}

/// A JSON Schema (draft 2020-12) of what is written of a type.
pub(crate) fn schema_of<T: JsonSchema>() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<T>();
    schema.to_value()
}

/// `run.json`: the settings of the run. It holds no time and no path: same inputs, same bytes.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Always `proctor-run`.
    pub format: String,
    /// [`FORMAT_VERSION`] of the build that wrote it.
    pub version: u32,
    /// Version of Proctor.
    pub proctor: String,
    /// Hash of all that decides the results: two folders with the same one hold the same cells.
    pub fingerprint: String,
    /// The scenario's name.
    pub scenario: String,
    /// The token counter.
    pub counter: String,
    /// The seed that orders strategies within a session.
    pub seed: u64,
    /// The window mode, as written: `native`, `fit:0.6`.
    pub window: String,
    /// Who writes summaries.
    pub summariser: ModelEntry,
    /// Who answers probes, if anyone does.
    pub reader: Option<ModelEntry>,
    /// Who judges answers, if anyone does.
    pub judge: Option<ModelEntry>,
    /// The sessions, in the order of the scenario.
    pub sessions: Vec<SessionEntry>,
    /// How many sessions were drawn from those of the scenario, where not all are replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<usize>,
    /// Sessions of the scenario that are not replayed, by the reason in words, with their number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, usize>,
    /// The strategies, in the order of the scenario; `full` and `empty` are not listed.
    pub strategies: Vec<StrategyEntry>,
    /// Repeats of each cell.
    pub repeats: u32,
    /// Answers to each probe in each repeat.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub answers: u32,
    /// Verdicts of each judge on each answer.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub judgements: u32,
    /// The injected faults, in words; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<String>,
    /// The other conditions of the scenario that decide results, apart from sessions, strategies
    /// and models: by name, in words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conditions: BTreeMap<String, String>,
    /// The servers on this machine, by the names of their models. A run that goes on takes them from here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, ServerWindow>,
    /// By how much a strategy may be worse, by the name of the number, where that is not the usual. No cell
    /// depends on it: a run that goes on takes the newest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub margins: BTreeMap<String, f64>,
    /// The calibration of each calibrated judge against people's labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calibrations: Vec<JudgeCalibration>,
}

fn once() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_once(times: &u32) -> bool {
    *times == 1
}

/// In [`Manifest::conditions`]: the rubric by which the judge's verdicts were given.
pub const JUDGE_RUBRIC: &str = "judge rubric";

/// In [`Manifest::conditions`]: all that the judge was sent with an answer, and how its replies were read.
pub const JUDGE_PROMPT: &str = "judge prompt";

/// In [`Manifest::conditions`]: which answers the judge was shown.
pub const JUDGED: &str = "judged answers";

/// A model in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEntry {
    /// Its name.
    pub name: String,
    /// The kind of model: it decides how its answers may be read.
    pub kind: ModelKind,
}

/// Which column of the comparison a cell belongs to.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// `full`: the whole history at every call, no window.
    Reference,
    /// `empty`: system prompt and question only.
    Floor,
    /// A strategy.
    #[default]
    Strategy,
}

/// One line of `cells.jsonl`: everything that was measured on one session × strategy × repeat.
///
/// Series are indexed by call, from 0 to the last call that was reached.
#[derive(Debug, Default, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellRecord {
    /// The session's id.
    pub session: String,
    /// The strategy's name, or `full` or `empty`.
    pub strategy: String,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// Which column of the comparison it belongs to.
    pub arm: Arm,
    /// How it ended.
    pub end: End,
    /// Calls the session has.
    pub planned_calls: usize,
    /// Calls that were sent.
    pub reached_calls: usize,
    /// The window it ran in; `None` for the reference and the floor.
    pub window: Option<Window>,
    /// Size of system prompt and tool definitions: part of every prompt.
    pub fixed_tokens: Tokens,
    /// Size of each prompt that was sent.
    pub prompt_tokens: Vec<Tokens>,
    /// Requests that the strategy made, and attempts at the agent's own calls that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_calls: Vec<ModelCall>,
    /// Requests of this cell, by the strategy, the reader or a judge, that were paid and whose
    /// answers were not kept: refused, verdicts that cannot be read, attempts that failed and were
    /// made again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_calls: Vec<LostCall>,
    /// Verdicts that were given after the run and are kept: read from `verdicts.jsonl`, and never part of
    /// a line.
    #[serde(skip)]
    pub later_calls: Vec<KeptCall>,
    /// Patches that were applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compactions: Vec<CompactionEvent>,
    /// The messages that each of them removed and added, in the same order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<CompactionChange>,
    /// Stages that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureEvent>,
    /// Rules of the provider that a prompt broke and the full history at that call did not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// Calls at which the prompt was refused as too long, recovered or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overflows: Vec<usize>,
    /// Those of them that were refused by a limit other than the window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Refusal>,
    /// The injected faults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultEvent>,
    /// Calls before which the user typed something when the prompt had reached the window's
    /// blocking line: a product would have refused it; the replay continues.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_turns: Vec<usize>,
    /// Calls whose response started a sub-agent when the prompt filled the share of the effective
    /// window at which a product that collapses refuses to start one (`block_at` of the strategy,
    /// else 95 %); the replay continues.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_agents: Vec<usize>,
    /// Tool results the model never saw as they were.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub unseen: UnseenResults,
    /// The context that the agent's own tool calls needed, per call.
    pub action_support: ActionSupport,
    /// Probe items, by call and probe; those after a death are there, and lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeRecord>,
    /// The counter's error against recorded usage; only on the reference, only with usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter_error: Option<CounterError>,
    /// The simulated prompt cache of the provider, by scheme; the one whose figures stand in the
    /// comparison comes first. Empty for the floor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompt_cache: Vec<CacheRecord>,
    /// The cache reads that the provider reports; only on the reference and `recorded`, only with usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_cache: Option<ObservedCache>,
    /// The session's messages as far as they were appended, in order; only on the reference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<PromptEntry>,
    /// Index of the message that answered each call: full history at a call is every message before it.
    /// Only on the reference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answered_by: Vec<usize>,
    /// Size of each recorded answer of the agent, counted or billed, whichever is larger; only on the
    /// reference, for all arms have the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_tokens: Vec<Tokens>,
    /// The summaries that models wrote, with their defects; zero where no model was asked.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub summary_health: SummaryHealth,
    /// Texts that stages put aside.
    pub saved_texts: u64,
    /// The judges' verdicts on answers whose verdict is known; only on the reference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sentinels: Vec<SentinelRecord>,
    /// The texts that the agent would have had to read again, each once; `None` for the floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rereads: Option<Vec<Reread>>,
    /// Which files can be told from the prompts, by what was done to them; `None` for the floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trail: Option<ArtifactTrail>,
    /// Unsupported names in summaries; `None` if no summary was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_atoms: Option<SummaryAtoms>,
    /// The questions, each with the answer at that point; only on the reference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probe_texts: Vec<ProbeText>,
    /// The facts that it keeps under a faithful summariser; only of a program that asks for summaries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plumbing: Option<Plumbing>,
    /// The lost items that a search over the removed text finds; only where the scenario asks for
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryRecord>,
    /// Usage and the outcome of the task; only where an agent ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveRecord>,
}

impl CellRecord {
    /// The cell's name: `session/strategy/repeat`.
    pub fn key(&self) -> CellKey {
        CellKey {
            session: self.session.clone(),
            strategy: self.strategy.clone(),
            repeat: self.repeat,
        }
    }
}

/// Names one cell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct CellKey {
    /// The session's id.
    pub session: String,
    /// The strategy's name, or `full` or `empty`.
    pub strategy: String,
    /// Which repeat, from 0.
    pub repeat: u32,
}

impl std::fmt::Display for CellKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.session, self.strategy, self.repeat)
    }
}

/// How a cell ended.
#[derive(Debug, Default, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case", deny_unknown_fields)]
pub enum End {
    /// Every call was sent.
    #[default]
    Completed,
    /// This call was never answered.
    Died {
        /// The call.
        call: usize,
        /// The prompt's size.
        prompt: Tokens,
        /// Why not.
        cause: DeathCause,
    },
    /// The strategy failed.
    Failed {
        /// The call.
        call: usize,
        /// Why, in words.
        error: String,
    },
    /// The recording does not show how the strategy would have acted. This is not a failure: the
    /// cell counts in no number, its figures go to the call before.
    NotMeasurable {
        /// The call.
        call: usize,
        /// Why not, in words.
        why: String,
    },
}

impl End {
    /// Whether the cell's figures are a measurement.
    pub fn is_measured(&self) -> bool {
        !matches!(self, Self::NotMeasurable { .. })
    }

    /// The call at which the cell ended early.
    pub fn call(&self) -> Option<usize> {
        match self {
            Self::Completed => None,
            Self::Died { call, .. }
            | Self::Failed { call, .. }
            | Self::NotMeasurable { call, .. } => Some(*call),
        }
    }
}

/// A prompt that was refused by a limit of the provider other than the window.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// At this call of the agent.
    pub call: usize,
    /// The limit in words: `at most 100 images in a request`.
    pub limit: String,
    /// The document that names it.
    pub document: String,
}

/// Why a call was never answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeathCause {
    /// The prompt was too long, and no recovery made it fit.
    #[default]
    Overflow,
    /// The provider failed, however often the prompt was sent.
    Unanswered,
}

/// Something that went wrong on purpose.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultEvent {
    /// At this call of the agent.
    pub call: usize,
    /// The fault's name in the scenario.
    pub fault: String,
}

/// A patch that was applied.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompactionEvent {
    /// Before or after this call.
    pub call: usize,
    /// The stage's name in its strategy.
    pub stage: String,
    /// Why, in words.
    pub reason: String,
    /// Tokens of the messages before.
    pub before: Tokens,
    /// Tokens of the messages after.
    pub after: Tokens,
    /// Whether the context, once the strategy was done with it at this call, was still at or over
    /// the size that the stage waits for; never where it waits for none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub still_over: bool,
    /// The call before which it was asked for, where that was done in the background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepared_at: Option<usize>,
}

/// A stage that failed.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureEvent {
    /// Before or after this call.
    pub call: usize,
    /// The stage's name in its strategy.
    pub stage: String,
    /// Why, in words.
    pub error: String,
}

/// A rule of the provider that a prompt broke.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Violation {
    /// The first call at which it stood.
    pub call: usize,
    /// How many calls it stood, that one included.
    pub calls: usize,
    /// The rule's name.
    pub rule: String,
    /// How bad it is.
    pub level: Level,
    /// The part that broke it: a tool use id, an entry.
    pub subject: String,
}

/// Tool results, when the first call was sent that would have shown them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnseenResults {
    /// All of them, over the calls that were sent.
    pub results: u64,
    /// Of these, shortened, replaced or gone by then.
    pub altered: u64,
    /// Altered results that were replaced by a path to exactly their content.
    pub reachable: u64,
    /// Altered results that were saved to a file before that call, even if the path to it was lost
    /// since.
    pub saved: u64,
}

/// The context that the agent's own tool calls needed, per call.
///
/// An *atom* is a path, identifier, number or quoted string of a tool call's arguments that
/// appeared earlier in the full history; it is *present* when the prompt of that call holds it.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionSupport {
    /// Atoms needed.
    pub wanted: Vec<u32>,
    /// Of these, present.
    pub present: Vec<u32>,
    /// Of the atoms needed, those of which some occurrence has been compacted.
    pub compacted_wanted: Vec<u32>,
    /// Of these, present.
    pub compacted_present: Vec<u32>,
    /// Of the atoms needed, those that are gone and could be read again; `None` for the floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reachable: Option<Vec<u32>>,
}

/// The error of the counter against the provider's bill.
///
/// Compared are *increments*: between two calls with no compaction between them, the growth of
/// the recorded prompt against the count of what was appended. Fitting a system prompt to the
/// first call would hide the error.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CounterError {
    /// Pairs of calls compared.
    pub increments: usize,
    /// Median of `|counted − billed| / billed`.
    pub median: f64,
    /// 95th percentile of the same.
    pub p95: f64,
    /// All counted over all billed: above 1 the counter counts too much.
    pub ratio: f64,
}

/// Processor time of one cell, in nanoseconds: one line of `timings.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// The session's id.
    pub session: String,
    /// The strategy's name, or `full` or `empty`.
    pub strategy: String,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// Everything: strategy, observers, probes.
    pub cell_cpu_ns: u64,
    /// The strategy's own code and, on Linux, the program that it runs, over all calls; its model calls left out.
    pub strategy_cpu_ns: u64,
    /// The same at one call, in the median of the calls.
    pub p50_ns: u64,
    /// The same at one call, at the 95th percentile of the calls.
    pub p95_ns: u64,
}
