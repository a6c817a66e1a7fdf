//! The plain words of results: what was asked and by whom, what it cost, how it was judged. Those who measure use them,
//! and so do those who only read what was measured.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::units::Factor;
use crate::units::Tokens;
pub use prices::{CallPrice, CallPrices, DatedModel, LongPrompts, PerToken, Rates, RelativePrice};

mod prices;

/// Below this accuracy under full history a reader cannot do the task: its answers say nothing about strategies.
pub const LOWEST_CEILING: f64 = 0.6;

/// The weight of a fact of high importance: a gate fails where one is lost, and reports name it.
pub const HIGH_WEIGHT: u8 = 3;

/// The product that writes recordings of a format, by its own name; the format where there is none here.
pub(crate) fn product(format: &str) -> &str {
    match format {
        "aider" => "Aider",
        "amp" => "Amp",
        "claude-code" | "claude-code-web" => "Claude Code",
        "cline" => "Cline",
        "codex" | "codex-exec" => "Codex",
        "copilot-chat" => "Copilot Chat",
        "copilot-cli" => "Copilot CLI",
        "crush" => "Crush",
        "cursor" => "Cursor",
        "gemini-cli" => "Gemini CLI",
        "kimi-cli" => "Kimi CLI",
        "kimi-code" => "Kimi Code",
        "openhands" => "OpenHands",
        "qwen-code" => "Qwen Code",
        format => format,
    }
}

/// The use to which a model's answers may be put.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// Rules instead of a language model: good for pipelines, says nothing about quality.
    Deterministic,
    /// Answers written beforehand by a test.
    Scripted,
    /// A language model.
    Live,
}

/// How near a strategy is to the product that it is called after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fidelity {
    /// Recordings of the product, or its library's own output, show the same prompts.
    Exact,
    /// Constants and order are those of its source.
    Close,
    /// Written from documents alone.
    Outline,
}

impl Fidelity {
    /// All of them, the nearest first.
    pub const ALL: [Self; 3] = [Self::Exact, Self::Close, Self::Outline];

    /// The word in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Close => "close",
            Self::Outline => "outline",
        }
    }
}

/// What a strategy says of itself beside the product that it is called after.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worth {
    /// How near it is.
    pub fidelity: Fidelity,
    /// The product; empty where none is named.
    pub product: String,
    /// What of the product is not there, and what that changes, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

impl Worth {
    /// `close to Codex`, `an outline of Codex`; `None` of what is exact.
    pub fn in_words(&self) -> Option<String> {
        let product = match &*self.product {
            "" => "its product",
            product => product,
        };
        match self.fidelity {
            Fidelity::Exact => None,
            Fidelity::Close => Some(format!("close to {product}")),
            Fidelity::Outline => Some(format!("an outline of {product}")),
        }
    }

    /// ` (an outline of Codex)` of an outline, else nothing: what stands behind its name where it may be recommended.
    pub fn outline(&self) -> String {
        let words = self.in_words().filter(|_| self.fidelity == Fidelity::Outline);
        words.map_or_else(String::new, |words| format!(" ({words})"))
    }
}

/// Whose bill a call goes on.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The agent's own call.
    Agent,
    /// A compaction before a call.
    Compaction,
    /// Work beside the agent's: notes, indexes.
    Background,
    /// A compaction after the provider refused a prompt.
    Recovery,
    /// A probe question; never on a strategy's bill.
    Probe,
    /// The same question, asked only to see whether it is worth asking; on an account of its own.
    Qualification,
    /// A verdict; never on a strategy's bill.
    Judge,
}

impl Purpose {
    /// The purpose as a model may see it: a question that qualifies a probe looks like any other.
    #[must_use]
    pub fn as_asked(self) -> Self {
        match self {
            Self::Qualification => Self::Probe,
            other => other,
        }
    }
}

/// The name by which strategies mean the small model of the agent's provider.
pub const FAST: &str = "fast";

/// Which breakpoints the simulated client sets.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Those of the recorded product, else those that the provider recommends.
    #[default]
    Usual,
    /// As usual, but the breakpoint of the tools moves in front of the lowest entry that the strategy
    /// still means to change. The breakpoint of the system prompt covers the tools.
    Edge,
    /// A lower bound: the longest live prefix is read, and a block is written only where later reads
    /// pay for it.
    Ideal,
}

impl Placement {
    /// All placements, in the order of reports.
    pub const ALL: [Self; 3] = [Self::Usual, Self::Edge, Self::Ideal];

    /// The word in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::Edge => "edge",
            Self::Ideal => "ideal",
        }
    }
}

/// How long a call takes: `start + (uncached + written)/prefill + read/cached + output/decode`.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Milliseconds before anything is read.
    pub start_ms: f64,
    /// Tokens read in a second that are not in the cache.
    pub prefill_per_second: f64,
    /// Tokens read in a second that are in the cache.
    pub cached_per_second: f64,
    /// Tokens written in a second.
    pub decode_per_second: f64,
}

/// How fast a server is, and how its tokens compare with ours.
///
/// A token takes longer the more tokens are in front of it, because attention looks at all of them: `n` tokens of
/// a new prompt take `a·n + b·n²`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ServerTiming {
    /// How long a call takes apart from attention.
    pub latency: Latency,
    /// Nanoseconds that each token of a new prompt takes for each one in front of it: `2b`.
    pub read_attention_ns: f64,
    /// The same for each token that it writes: these come one by one, which takes longer.
    pub write_attention_ns: f64,
    /// The longest prompt that was timed; `None` for a latency that a price file names.
    pub longest: Option<Tokens>,
    /// Tokens that the server counts for each of ours.
    pub counted: f64,
}

/// What a server on this machine was taken to be when the run began: it decides which sessions the run has.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerWindow {
    /// Its context window, prompt and answer together; `None` where it was not known.
    pub tokens: Option<Tokens>,
    /// Tokens that it counts for each of the run's counter.
    pub counted: f64,
}

/// How bad a finding is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The provider accepts it, but something is off.
    Warning,
    /// The provider documents an error.
    Rejected,
}

/// Which sizes a run uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sizes {
    /// As billed, where the session carries usage.
    #[default]
    Billed,
    /// By the counter alone.
    Counted,
}

impl Sizes {
    /// The words that settings use.
    pub const NAMES: [&'static str; 2] = ["billed", "counted"];

    /// The word that settings use.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// How long a provider keeps thinking in the prompt whose words the recording leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HiddenThinking {
    /// It leaves the prompt at once.
    Dropped,
    /// It leaves the prompt when the user types the next message.
    KeptForTurn,
    /// It stays.
    Kept,
}

impl HiddenThinking {
    /// The words that reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::KeptForTurn => "kept for its turn",
            Self::Kept => "kept",
        }
    }
}

/// The sizes of a session's prompts, in the manifest of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionSizes {
    /// As billed, or by the counter alone.
    pub sizes: Sizes,
    /// Billed tokens in front of every prompt that the session does not hold; `None` where that is
    /// not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Tokens>,
    /// Billed tokens for each counted one, in parts per million, by model. Empty where sizes are
    /// counted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub factors: BTreeMap<String, Factor>,
    /// How hidden thinking was billed, where the session has any and its bill shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<HiddenThinking>,
    /// The fit compared with the bill; `None` where sizes are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    /// Calls at which the bill fell by more than a fifth, and no recorded compaction explains it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<Drop>,
    /// Why sizes, or parts of them, are not as billed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The bills of the full history, up to the first compaction.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// Calls whose bill is the size of their prompt.
    pub calls: usize,
    /// The prompt of the first of them.
    pub first: Tokens,
    /// The median one.
    pub median: Tokens,
    /// The last.
    pub last: Tokens,
    /// Counted over billed tokens of all of them, in parts per million.
    pub counted: Factor,
    /// How well bills are predicted that were not looked at.
    pub held_out: HeldOut,
}

/// Bills predicted from others: medians of predicted over billed prompts; `None` where there is nothing to predict
/// from.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldOut {
    /// The second half, from the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_half: Option<Prediction>,
    /// Ten in a row, from those around them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_a_row: Option<Prediction>,
    /// The first one after each compaction, from head, what was kept, and the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<Prediction>,
}

/// Predicted over billed tokens, in parts per million.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prediction {
    /// Where texts have the size that their bills show.
    pub by_anchors: Factor,
    /// With one factor for all texts of a model.
    pub by_factor: Factor,
}

/// A fall of the bill that nothing in the recording explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drop {
    /// The call with the smaller prompt.
    pub call: usize,
    /// The prompt billed before it.
    pub before: Tokens,
    /// Its own.
    pub after: Tokens,
}

/// The verdict of a grader.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case", deny_unknown_fields)]
pub enum GradeVerdict {
    /// The answer was graded.
    Scored {
        /// From 0 to 1.
        score: f64,
        /// In what way it is right or wrong.
        outcome: Outcome,
    },
    /// The answer was not graded. Never counted as zero.
    Unscored {
        /// Why.
        reason: Unscored,
    },
}

impl GradeVerdict {
    pub(crate) fn unscored(reason: Unscored) -> Self {
        Self::Unscored { reason }
    }

    /// The score, and in what way the answer is right or wrong; `None` without a score.
    pub(crate) fn scored(self) -> Option<(f64, Outcome)> {
        match self {
            Self::Scored { score, outcome } => Some((score, outcome)),
            Self::Unscored { .. } => None,
        }
    }
}

/// In what way an answer is right or wrong.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The known answer; for a decoy, that nothing is known.
    Right,
    /// Incomplete: a part of what was asked for, or with something added. A list that rules read keeps its
    /// share; what a judge calls incomplete scores 0.
    Partial,
    /// Not right where the set of answers is closed: the foil's letter, the forbidden call, another copied
    /// value. Older records have it for every other value, and judges that say no more than `incorrect`.
    Wrong,
    /// A value that was true earlier.
    Stale,
    /// The value of another key.
    Misbound,
    /// The reader said that it is not in the context.
    Abstained,
    /// Something that was never said.
    Invented,
}

/// Why an answer was not graded.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Unscored {
    /// Rules cannot confirm the answer, and there is no judge. It may be right.
    NeedsJudge,
    /// The reader brought no answer.
    NoAnswer,
    /// The reader declined, or its provider held the answer back.
    Refused,
    /// The provider refused the request for good.
    Rejected,
    /// The judge brought no verdict.
    JudgeFailed,
    /// The judge's reply could not be read.
    Unparsable,
    /// As many judges of a panel said the one as the other.
    Split,
    /// Every judge that was asked misses too many answers whose verdict is known.
    JudgeUnfit,
    /// The prompt does not fit the reader's window, and of the reference not even the evidence does.
    TooLong,
}

/// The list of kinds of probes, given to a macro: the variant, its name in tables and files, and the file in `probe/kind`
/// with the fields of the fact that it takes. The order is that of tables.
macro_rules! kinds {
    ($then:ident) => {
        $then! {
            /// A value that was said once.
            Recall = "recall", recall(key, value);
            /// A rule the user set.
            Constraint = "constraint", constraint(topic, statement, form);
            /// Which files were read, created, modified or deleted.
            Artifact = "artifact", artifact(files, optional);
            /// A choice between options, and its reason.
            Decision = "decision", decision(key, choice, reason, rejected);
            /// The newest value of a key that was revised.
            Update = "update", update(key, values);
            /// The newest of counts that change.
            Numeric = "numeric", numeric(key, unit, values);
            /// Something that was tried and failed, and why.
            RejectedPath = "rejected-path", rejected_path(approach, reason);
            /// The open items of a plan.
            Continuation = "continuation", continuation(items);
            /// The code and the place of a failure.
            Error = "error", error(attempt, code, place);
            /// One value among others of its type.
            Binding = "binding", binding(key, value, others);
            /// In which order things happened.
            Order = "order", order(sequence, events);
            /// The last request of the user.
            LastRequest = "last-request", last_request(requests);
            /// Handles that were opened and not closed.
            OpenHandle = "open-handle", open_handle(owner, handles);
            /// An instruction that was taken back, beside one that is in force.
            Obsolete = "obsolete", obsolete(withdrawn, withdrawal, standing, standing_question);
            /// A value that is asked for in other words than it was said in.
            Indirect = "indirect", indirect(key, value);
            /// A value that is found by way of another.
            TwoStep = "two-step", two_step(steps);
            /// A tool call that needs values said at different places.
            Act = "act", act(arguments);
            /// A question whose answer has to be put together, in words that only a judge can grade.
            Open = "open", open(answer);
            /// Something that was never said.
            Decoy = "decoy", decoy(key, value);
            /// A person's question that the conversation does not answer.
            Unanswerable = "unanswerable", unanswerable();
        }
    };
}
pub(crate) use kinds;

/// Makes [`ProbeKind`] of the list.
macro_rules! probe_kind {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, $file:ident($($field:ident),*);)*) => {
        /// The subject of a probe.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
        )]
        #[serde(rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum ProbeKind {
            $($(#[$doc])* $kind,)*
        }

        impl ProbeKind {
            /// All kinds, in the order of tables.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$kind),*];

            /// The name in tables and files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

kinds!(probe_kind);
