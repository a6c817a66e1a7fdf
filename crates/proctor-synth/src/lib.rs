#![doc = include_str!("../README.md")]
//!
//! The words and grammars are the generator's own: nothing that later measures a session may know them.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use proctor_sessions::ground_truth::GroundTruth;
use proctor_sessions::tokens::CountedTexts;
use proctor_sessions::units::Tokens;
use proctor_sessions::{Session, SessionError};

mod code;
mod facts;
mod family;
mod files;
mod grammar;
mod help_desk;
mod language;
mod output;
mod prose;
mod random;
mod repository;
mod resumed;
mod screenshots;
mod tools;
mod transcript;
mod words;
mod workspace;
mod writer;

pub use family::{FAMILIES, Family};
pub use language::Language;

/// A session made to order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// Name of the family, as in [`FAMILIES`].
    pub family: String,
    /// Same recipe, same bytes. Where the length is in tokens, the same counter too.
    pub seed: u64,
    /// How long it gets.
    pub length: Length,
    /// How many facts are planted, in percent of the family's own number; at most 400.
    pub fact_percent: u32,
    /// The share of the messages' tokens that tool results are to have, in percent, from 26 to 84;
    /// nothing for the family's own.
    pub observation_percent: Option<u32>,
    /// The usual size of a result, in percent of the family's own, from 5 to 400. The middle of the
    /// distribution is scaled; its largest twentieth stays.
    pub result_percent: u32,
    /// The number of other keys of its kind beside each planted key, at most 12; nothing for the
    /// family's own.
    pub distractors: Option<u32>,
    /// Tokens of system prompt and tools in front of every prompt beside those the session holds:
    /// real agents send far more of them than a made-up one.
    pub head_tokens: Tokens,
    /// The window of the model that the session is made for, from 2,000 tokens; nothing for one of
    /// 200,000. No result takes more than about a twelfth of it. See [`Recipe::for_window`].
    pub window: Option<u32>,
    /// In how many ways a planted fact may be said, at least 1; nothing for all there are. With
    /// one, its words give every fact away.
    pub phrasings: Option<u32>,
    /// In which language the session is held and facts are planted.
    pub language: Language,
}

/// The name of the format of made-up sessions.
pub const FORMAT: &str = proctor_sessions::SYNTHETIC;

/// The model that generated sessions name: no provider has it.
pub const MODEL: &str = "synthetic-agent";

/// The head of a synthetic session for which a scenario names none: the median of seven agents, in
/// tokens of system prompt and tools. Measured on the requests of `OpenHands` 1.58 (5,600), opencode
/// 1.18 (7,400), Codex 0.169 (9,500), Qwen Code 0.15 (19,700), pi 0.73 (1,350) and mini-swe-agent 2.4
/// (780) in characters divided by four; Claude Code (35,000) on the bills of public recordings.
pub const HEAD_TOKENS: Tokens = Tokens(7_400);

/// Windows below this one are of models that run beside the user, whose agents send hardly any head.
const LEAST_WITH_HEAD: u64 = 16_000;

/// The part of a window that a head takes at most, and a session's length in windows: so that it is
/// compacted a few times.
const WINDOW_PER_HEAD: u64 = 8;
const WINDOWS: u64 = 4;

impl Recipe {
    /// The same for a model with this window: four times as long, with a head and with results that
    /// leave room in it.
    #[must_use]
    pub fn for_window(self, window: u32) -> Self {
        let tokens = u64::from(window);
        let head = (tokens / WINDOW_PER_HEAD).min(HEAD_TOKENS.0);
        Self {
            length: Length::Tokens(Tokens(tokens * WINDOWS)),
            head_tokens: Tokens(if tokens < LEAST_WITH_HEAD { 0 } else { head }),
            window: Some(window),
            ..self
        }
    }

    /// The number of rounds, estimated from `tokens_per_round` if the length is in tokens.
    fn rounds(&self, tokens_per_round: u64) -> u64 {
        match self.length {
            Length::Rounds(rounds) => u64::from(rounds),
            Length::Tokens(tokens) => tokens.0 / tokens_per_round + 1,
        }
    }
}

impl Default for Recipe {
    /// Two hours of code review.
    fn default() -> Self {
        Self {
            family: "code-review".to_owned(),
            seed: 1,
            length: Length::Rounds(120),
            fact_percent: 100,
            observation_percent: None,
            result_percent: 100,
            distractors: None,
            head_tokens: Tokens::ZERO,
            window: None,
            phrasings: None,
            language: Language::English,
        }
    }
}

/// How long a synthetic session gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// This many rounds (API calls).
    Rounds(u32),
    /// Rounds are added until the full history (system prompt, tool definitions and messages) has
    /// at least this many tokens; the final answer follows.
    Tokens(Tokens),
}

impl std::fmt::Display for Length {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rounds(rounds) => write!(f, "{rounds} rounds"),
            Self::Tokens(tokens) => write!(f, "{tokens} tokens"),
        }
    }
}

/// A generated session with what was planted in it.
#[derive(Debug, Clone)]
pub struct Generated {
    /// The session that strategies see.
    pub session: Session,
    /// The truth that they must not see.
    pub truth: GroundTruth,
}

/// Makes the session a recipe asks for.
pub fn generate(recipe: &Recipe, counts: &CountedTexts) -> Result<Generated, SyntheticError> {
    let Some(family) = FAMILIES.iter().find(|family| family.name == recipe.family) else {
        return Err(SyntheticError::UnknownFamily { family: recipe.family.clone() });
    };
    if matches!(recipe.length, Length::Rounds(0) | Length::Tokens(Tokens::ZERO)) {
        return Err(SyntheticError::NoLength { family: recipe.family.clone() });
    }
    for (name, _, range, value) in &CONTROLS {
        if let Some(value) = value(recipe)
            && !range.contains(&value)
        {
            let limits = match (range.start(), range.end()) {
                (least, &u32::MAX) => format!("at least {least}"),
                (least, most) => format!("from {least} to {most}"),
            };
            return Err(SyntheticError::OutOfRange { name, value, limits });
        }
    }
    if !family.languages.contains(&recipe.language) {
        return Err(SyntheticError::Untranslated {
            family: recipe.family.clone(),
            language: recipe.language.code(),
            written: families_in(recipe.language),
        });
    }
    writer::generate(family, recipe, counts)
        .map_err(|source| SyntheticError::Session { family: recipe.family.clone(), source })
}

/// The shares of observations that can be asked for, in percent.
const OBSERVATIONS: RangeInclusive<u32> = 26..=84;

/// The usual sizes of results that can be asked for, in percent of a family's own.
const RESULTS: RangeInclusive<u32> = 5..=400;

/// The most facts, in percent of a family's own number.
const MOST_FACTS: u32 = 400;

/// The smallest window that a session can be made for.
pub const LEAST_WINDOW: u32 = 2_000;

/// The most other keys beside a planted one.
const MOST_DISTRACTORS: u32 = 12;

/// The families that are written in a language, as a sentence lists them.
pub fn families_in(language: Language) -> String {
    let written = FAMILIES.iter().filter(|family| family.languages.contains(&language));
    let names: Vec<String> = written.map(|family| format!("`{}`", family.name)).collect();
    names.join(", ")
}

/// A number of a recipe that changes a session of the family: its name, the letter that names it in
/// the id of a session, its limits, and the number, unless the family's own is kept.
type Control = (&'static str, char, RangeInclusive<u32>, fn(&Recipe) -> Option<u32>);

const CONTROLS: [Control; 6] = [
    ("fact_percent", 'f', 0..=MOST_FACTS, |recipe| {
        Some(recipe.fact_percent).filter(|percent| *percent != 100)
    }),
    ("observation_percent", 'o', OBSERVATIONS, |recipe| recipe.observation_percent),
    ("result_percent", 'z', RESULTS, |recipe| {
        Some(recipe.result_percent).filter(|percent| *percent != 100)
    }),
    ("distractors", 'd', 0..=MOST_DISTRACTORS, |recipe| recipe.distractors),
    ("phrasings", 'p', 1..=u32::MAX, |recipe| recipe.phrasings),
    ("for_window", 'w', LEAST_WINDOW..=u32::MAX, |recipe| recipe.window),
];

/// The id of the session a recipe makes: `code-review-s7-r40`, or, where numbers and the language are
/// not the family's own, `code-review-s7-r40-f50-o60-d3-p1-zh`.
pub fn session_id(recipe: &Recipe) -> String {
    let mut id = match recipe.length {
        Length::Rounds(rounds) => format!("{}-s{}-r{rounds}", recipe.family, recipe.seed),
        Length::Tokens(tokens) => format!("{}-s{}-t{tokens}", recipe.family, recipe.seed),
    };
    for (_, letter, _, value) in &CONTROLS {
        if let Some(value) = value(recipe) {
            let _ = write!(id, "-{letter}{value}");
        }
    }
    match recipe.language {
        Language::English => id,
        Language::Chinese => format!("{id}-{}", recipe.language.code()),
    }
}

/// Why a recipe makes no session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyntheticError {
    /// No family has that name; [`FAMILIES`] lists them all.
    #[error("unknown synthetic family `{family}`")]
    UnknownFamily {
        /// The name.
        family: String,
    },
    /// A session has at least one round.
    #[error("a `{family}` session of zero length: ask for at least 1 round or 1 token")]
    NoLength {
        /// The family.
        family: String,
    },
    /// A number of the recipe is too small or too large.
    #[error("`{name}` is {value}: it must be {limits}")]
    OutOfRange {
        /// The number's name, as in a scenario.
        name: &'static str,
        /// The number.
        value: u32,
        /// The least and the most that can be asked for.
        limits: String,
    },
    /// The family has no table of that language.
    #[error("`{family}` is not written in `{language}`, only {written}")]
    Untranslated {
        /// The family.
        family: String,
        /// The code of the language.
        language: &'static str,
        /// The families that are.
        written: String,
    },
    /// The family broke a rule of sessions: a bug of the generator.
    #[error("the `{family}` family made an invalid session")]
    Session {
        /// The family.
        family: String,
        /// The session's error.
        #[source]
        source: SessionError,
    },
}
