//! Synthetic sessions: seeded, byte-identical on every platform, with known ground truth.
//!
//! A [`Recipe`] names a family, a seed and a length; [`generate`] makes the session and, apart
//! from it, the facts that were planted in it. The words and grammars are the generator's own:
//! nothing that later measures a session may know them.

use std::ops::RangeInclusive;

use super::ground_truth::GroundTruth;
use super::{Session, SessionError};
use crate::tokens::CountedTexts;
use crate::units::Tokens;

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
mod schedule;
mod screenshots;
mod timeline;
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
    /// How many other keys of its kind stand beside each planted key, at most 12; nothing for the
    /// family's own.
    pub distractors: Option<u32>,
    /// Tokens of system prompt and tools that stand in front of every prompt beside those the session
    /// holds: real agents send far more of them than a made-up one.
    pub head_tokens: Tokens,
    /// In how many ways a planted fact may be said, at least 1; nothing for all there are. With
    /// one, its words give every fact away.
    pub phrasings: Option<u32>,
    /// In which language the session is held and facts are planted.
    pub language: Language,
}

/// The name of the format of made-up sessions.
pub const FORMAT: &str = "synthetic";

/// The head of a synthetic session for which a scenario names none: the median of seven agents, in
/// tokens of system prompt and tools. Measured on the requests of `OpenHands` 1.58 (5,600), opencode
/// 1.18 (7,400), Codex 0.169 (9,500), Qwen Code 0.15 (19,700), pi 0.73 (1,350) and mini-swe-agent 2.4
/// (780) in characters divided by four; Claude Code (35,000) on the bills of public recordings.
pub const HEAD_TOKENS: Tokens = Tokens(7_400);

impl Recipe {
    /// How many rounds it has, or will have with so many tokens a round.
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
    /// What the strategies see.
    pub session: Session,
    /// What they must not see.
    pub truth: GroundTruth,
}

/// Makes the session a recipe asks for.
pub fn generate(recipe: &Recipe, counts: &CountedTexts) -> Result<Generated, SyntheticError> {
    let Some(family) = FAMILIES.iter().find(|family| family.name == recipe.family) else {
        return Err(SyntheticError::UnknownFamily {
            family: recipe.family.clone(),
        });
    };
    if matches!(
        recipe.length,
        Length::Rounds(0) | Length::Tokens(Tokens::ZERO)
    ) {
        return Err(SyntheticError::NoLength {
            family: recipe.family.clone(),
        });
    }
    check_controls(recipe)?;
    if !family.languages.contains(&recipe.language) {
        return Err(SyntheticError::Untranslated {
            family: recipe.family.clone(),
            language: recipe.language.code(),
            written: families_in(recipe.language),
        });
    }
    writer::generate(family, recipe, counts).map_err(|source| SyntheticError::Session {
        family: recipe.family.clone(),
        source,
    })
}

/// The shares of observations that can be asked for, in percent.
pub const OBSERVATIONS: RangeInclusive<u32> = 26..=84;

/// The usual sizes of results that can be asked for, in percent of a family's own.
pub const RESULTS: RangeInclusive<u32> = 5..=400;

/// The most facts, in percent of a family's own number.
pub const MOST_FACTS: u32 = 400;

/// The most other keys beside a planted one.
pub const MOST_DISTRACTORS: u32 = 12;

/// The families that are written in a language, as a sentence lists them.
pub fn families_in(language: Language) -> String {
    let families = FAMILIES.iter();
    let written = families.filter(|family| family.languages.contains(&language));
    let names: Vec<String> = written.map(|family| format!("`{}`", family.name)).collect();
    names.join(", ")
}

fn check_controls(recipe: &Recipe) -> Result<(), SyntheticError> {
    let percent = recipe.fact_percent;
    if percent > MOST_FACTS {
        return Err(SyntheticError::TooManyFacts { percent });
    }
    if let Some(percent) = recipe.observation_percent
        && !OBSERVATIONS.contains(&percent)
    {
        return Err(SyntheticError::Observations { percent });
    }
    let percent = recipe.result_percent;
    if !RESULTS.contains(&percent) {
        return Err(SyntheticError::Results { percent });
    }
    if let Some(number) = recipe.distractors
        && number > MOST_DISTRACTORS
    {
        return Err(SyntheticError::TooManyDistractors { number });
    }
    if recipe.phrasings == Some(0) {
        return Err(SyntheticError::NoPhrasing);
    }
    Ok(())
}

/// The id of the session a recipe makes: `code-review-s7-r40`, and what is set apart from the
/// family's own: `code-review-s7-r40-f50-o60-d3-p1-zh`.
fn session_id(recipe: &Recipe) -> String {
    let length = match recipe.length {
        Length::Rounds(rounds) => format!("r{rounds}"),
        Length::Tokens(tokens) => format!("t{tokens}"),
    };
    let facts = (recipe.fact_percent != 100).then_some(recipe.fact_percent);
    let results = (recipe.result_percent != 100).then_some(recipe.result_percent);
    let controls = [
        ('f', facts),
        ('o', recipe.observation_percent),
        ('z', results),
        ('d', recipe.distractors),
        ('p', recipe.phrasings),
    ];
    let set = controls
        .into_iter()
        .filter_map(|(letter, value)| Some(format!("-{letter}{}", value?)));
    let set: String = set.collect();
    let language = match recipe.language {
        Language::English => String::new(),
        Language::Chinese => format!("-{}", recipe.language.code()),
    };
    format!("{}-s{}-{length}{set}{language}", recipe.family, recipe.seed)
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
    /// More facts than there are distinct keys for.
    #[error("`fact_percent` is {percent}, and at most {MOST_FACTS} can be planted")]
    TooManyFacts {
        /// What was asked for.
        percent: u32,
    },
    /// No session can hold less or more than that of what tools say.
    #[error(
        "`observation_percent` is {percent}: results can have {} to {} percent of the tokens",
        OBSERVATIONS.start(),
        OBSERVATIONS.end()
    )]
    Observations {
        /// What was asked for.
        percent: u32,
    },
    /// No result gets so small or so large.
    #[error(
        "`result_percent` is {percent}: usual results can have {} to {} percent of their size",
        RESULTS.start(),
        RESULTS.end()
    )]
    Results {
        /// What was asked for.
        percent: u32,
    },
    /// More other keys than there are words for.
    #[error("`distractors` is {number}, and at most {MOST_DISTRACTORS} can stand beside a fact")]
    TooManyDistractors {
        /// What was asked for.
        number: u32,
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
    /// A fact is said in one way at least.
    #[error("`phrasings` is 0: a fact is said in at least 1 way")]
    NoPhrasing,
    /// The family broke a rule of sessions: a bug of the generator.
    #[error("the `{family}` family made an invalid session")]
    Session {
        /// The family.
        family: String,
        /// What is wrong with it.
        #[source]
        source: SessionError,
    },
}
