//! A value that is asked for in other words than it was said in.

use super::prelude::*;

pub(super) fn spec<'a>(key: &'a str, value: &'a str) -> Spec<'a> {
    let parts = vec![SpecPart::value(key, value)];
    Spec::new(ProbeKind::Indirect, AnswerFormat::Value, parts)
}
