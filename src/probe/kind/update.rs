//! The newest value of a key that was revised.

use super::prelude::*;

pub(super) fn spec<'a>(key: &'a str, values: &'a [Revision]) -> Spec<'a> {
    let parts = SpecPart::revisions(SearchBy::Version, key, values);
    Spec { answers: AnswerSet::Newest, ..Spec::new(ProbeKind::Update, AnswerFormat::Value, parts) }
}
