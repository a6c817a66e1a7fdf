//! One value among others of its type, each of another key.

use super::prelude::*;

pub(super) fn spec<'a>(key: &'a str, value: &'a str, others: &'a [KeyValue]) -> Spec<'a> {
    let parts = vec![SpecPart::value(key, value)];
    Spec {
        others: others.iter().map(|other| other.value.as_str()).collect(),
        ..Spec::new(ProbeKind::Binding, AnswerFormat::Value, parts)
    }
}
