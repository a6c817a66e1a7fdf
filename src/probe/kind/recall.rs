//! A value that was said once.

use super::prelude::*;

pub(super) fn spec<'a>(key: &'a str, value: &'a str) -> Spec<'a> {
    let parts = vec![SpecPart::value(key, value)];
    Spec::new(ProbeKind::Recall, AnswerFormat::Value, parts)
}
