//! Evaluators with their versions: numbers of two versions of one evaluator make no difference.
//!
//! Whoever changes what an evaluator says of the same prompt raises its version here.

/// String matching of planted values.
pub const SURVIVAL: &str = "survival v1";

/// The version of the rules that confirm answers.
pub const GRADING: &str = "rules v1";

/// The rules of the providers.
pub const VALIDITY: &str = "validity v1";

/// In [`Manifest::conditions`](super::Manifest::conditions): the evaluators, separated by commas.
pub const EVALUATORS: &str = "evaluators";

/// All of them, as the manifest names them.
pub fn all() -> String {
    [SURVIVAL, GRADING, VALIDITY].join(", ")
}
