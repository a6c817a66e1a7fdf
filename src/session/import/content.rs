//! The content of a message, as every product writes it: a text, or a list of parts.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::assemble::{Assembler, count};
use crate::session::{ContentBlock, Image, JsonText, Opaque};

/// The blocks of a content: none for nothing and for an empty text, one for a text, and one for
/// each item of a list, as `part` reads it.
pub(super) fn blocks(
    raw: Option<&RawValue>,
    assembler: &mut Assembler,
    part: fn(&RawValue, &mut Assembler) -> ContentBlock,
) -> Vec<ContentBlock> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else {
        return Vec::new();
    };
    if let Some(text) = text(raw) {
        let text = Some(text).filter(|text| !text.is_empty());
        return text.map(ContentBlock::Text).into_iter().collect();
    }
    match serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
        Ok(parts) => parts.into_iter().map(|raw| part(raw, assembler)).collect(),
        Err(_) => vec![unknown("content", raw, assembler)],
    }
}

/// The value, if it is a text.
pub(super) fn text(raw: &RawValue) -> Option<Arc<str>> {
    serde_json::from_str(raw.get()).ok()
}

/// A picture, with its source as recorded.
pub(super) fn image(source: &RawValue) -> ContentBlock {
    ContentBlock::Image(Image {
        source: JsonText::from(source),
    })
}

/// A block that is kept as it is.
pub(super) fn kept(kind: &str, raw: &RawValue) -> ContentBlock {
    ContentBlock::Opaque(Opaque {
        kind: kind.into(),
        json: JsonText::from(raw),
    })
}

/// A block that is kept without being understood, and counted.
pub(super) fn unknown(kind: &str, raw: &RawValue, assembler: &mut Assembler) -> ContentBlock {
    count(&mut assembler.source.unknown, &format!("block {kind}"));
    kept(kind, raw)
}
