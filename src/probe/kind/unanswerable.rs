//! A person's question that the conversation does not answer.

use super::decoy;
use super::prelude::*;

pub(super) fn spec<'a>() -> Spec<'a> {
    decoy::unsaid(ProbeKind::Unanswerable, AnswerFormat::Sentence, Vec::new())
}
