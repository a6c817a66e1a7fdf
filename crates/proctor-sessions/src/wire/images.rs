//! Pictures as Anthropic's API takes them, whatever a product keeps them as.

use serde_json::{Value, json};

use super::object::Object;
use crate::{ContentBlock, Image, JsonText};

/// A picture with this source.
pub fn image(source: &Value) -> ContentBlock {
    ContentBlock::Image(Image { source: JsonText::of(source) })
}

/// A picture with its data and its type in a part's `data` and `mimeType`.
pub fn attached(part: &mut Object<'_>) -> Option<ContentBlock> {
    let media_type = part.take_text("mimeType")?;
    let data = part.take_text("data").filter(|_| media_type.starts_with("image/"))?;
    Some(image(&embedded(&(*media_type).into(), &(*data).into())))
}

/// The source of a picture whose data is in the recording.
pub fn embedded(media_type: &Value, data: &Value) -> Value {
    json!({"type": "base64", "media_type": media_type, "data": data})
}

/// The source of a picture by its address; one that holds the data itself becomes an embedded one.
pub fn addressed(url: &str) -> Value {
    match data_url(url) {
        Some((kind, data)) => embedded(&kind.into(), &data.into()),
        None => json!({"type": "url", "url": url}),
    }
}

/// The type and the base64 of an address that holds the data itself.
pub(crate) fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}
