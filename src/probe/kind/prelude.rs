//! The imports of nearly every kind.

pub(super) use std::collections::BTreeSet;

pub(super) use super::{
    AnswerSet, NEVER_SAID, ProbeKind, ProbeQuestion, SearchBy, Spec, SpecPart, drawn, own_and,
    two_answers,
};
pub(super) use crate::probe::AnswerFormat;
pub(super) use crate::probe::grade::call::ReadCall;
pub(super) use crate::probe::grade::exact::{Around, excepts, has_phrase, words};
pub(super) use crate::probe::grade::lists::{Gold, listed, normalised};
pub(super) use crate::probe::grade::words::WORDS;
pub(super) use crate::probe::grade::{GradeScore, GradedAnswer, RIGHT, abstains_in_one_order};
pub(super) use crate::probe::grade::{abstains, normalise, spaced, trim_punctuation, wrong};
pub(super) use crate::probe::survival::{canonical_path, says_rule};
pub(super) use crate::probe::{LazyPattern, OTHER_ORDER, Outcome, kendall};
pub(super) use crate::session::ground_truth::{
    Handle, KeyValue, PlanItem, Revision, RuleForm, TouchedFile,
};
