//! Synthetic sessions: seeded, byte-identical on every platform, with known ground truth.

use super::Session;
use super::ground_truth::GroundTruth;
use crate::tokens::CountedTexts;
use crate::units::Tokens;

/// A session made to order.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// Name of the family, as in [`FAMILIES`].
    pub family: String,
    /// Same recipe, same bytes.
    pub seed: u64,
    /// How long it gets.
    pub length: Length,
}

/// How long a synthetic session gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// This many rounds (API calls).
    Rounds(u32),
    /// Rounds are added until the full history has at least this many tokens.
    Tokens(Tokens),
}

/// A generated session with what was planted in it.
#[derive(Debug, Clone)]
pub struct Generated {
    /// What the strategies see.
    pub session: Session,
    /// What they must not see.
    pub truth: GroundTruth,
}

/// A kind of work that sessions can be generated of: one file, one line in [`FAMILIES`].
pub trait Family: Sync {
    /// The name used in scenarios.
    fn name(&self) -> &'static str;

    /// One sentence: what such a session stresses.
    fn description(&self) -> &'static str;

    /// Makes one session. `counts` measures it where the recipe asks for tokens.
    fn generate(&self, recipe: &Recipe, counts: &CountedTexts) -> Generated;
}

/// All families, in the order of the documentation.
pub static FAMILIES: &[&dyn Family] = &[];
