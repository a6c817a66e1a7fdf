//! Pictures as Anthropic's API takes them, whatever a product keeps them as.

use serde_json::json;

use crate::session::{ContentBlock, Image, JsonText};

/// A picture whose data stands in the recording.
pub(super) fn embedded(media_type: &str, data: &str) -> ContentBlock {
    ContentBlock::Image(Image {
        source: JsonText::of(&json!({"type": "base64", "media_type": media_type, "data": data})),
    })
}

/// A picture by its address; one that holds the data itself becomes an embedded one.
pub(super) fn addressed(url: &str) -> ContentBlock {
    let data = url.strip_prefix("data:").and_then(|rest| {
        let (kind, data) = rest.split_once(',')?;
        Some((kind.strip_suffix(";base64")?, data))
    });
    match data {
        Some((media_type, data)) => embedded(media_type, data),
        None => ContentBlock::Image(Image {
            source: JsonText::of(&json!({"type": "url", "url": url})),
        }),
    }
}
