//! Limits of a provider's requests beside the window: bytes, images, pixels.

use serde::Serialize;
use std::fmt;

use LimitedProperty::{ImageBytes, ImageEdge, Images, RequestBytes};

use crate::settings::{Reader, SettingError};
use crate::units::Tokens;

/// The measures of a request that limits bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestSize {
    /// Bytes of its texts and of its images as they are sent.
    pub bytes: u64,
    /// Images.
    pub images: u64,
    /// Bytes of its largest image.
    pub largest_image: u64,
    /// The longest side of an image, in pixels.
    pub longest_edge: u64,
}

/// The property that a limit bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum LimitedProperty {
    /// The bytes of a request.
    RequestBytes,
    /// The images of a request.
    Images,
    /// The bytes of one image.
    ImageBytes,
    /// The longer side of one image.
    ImageEdge,
}

/// Every property, with its word in price files and the unit of its limit.
const LIMITED: [(&str, LimitedProperty, &str); 4] = [
    ("request_bytes", RequestBytes, "bytes in a request"),
    ("images", Images, "images in a request"),
    ("image_bytes", ImageBytes, "bytes in an image"),
    ("image_edge", ImageEdge, "pixels on an image's side"),
];

/// A limit of a provider's, over which a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestLimit {
    /// The property that it bounds.
    pub of: LimitedProperty,
    /// The most that is accepted.
    pub most: u64,
    /// It holds for models whose window is at most this.
    pub window_up_to: Option<Tokens>,
    /// It holds for models whose window is more than this.
    pub window_over: Option<Tokens>,
    /// It holds for requests of more images than this.
    pub images_over: Option<u64>,
    /// The document that names it.
    pub document: String,
    /// When the document was read.
    pub date: String,
}

impl RequestLimit {
    pub(super) fn read(mut reader: Reader<'_>) -> Result<Self, SettingError> {
        let name = reader.choice("of", &LIMITED.map(|(name, ..)| name))?;
        let of = LIMITED.into_iter().find(|(word, ..)| Some(*word) == name);
        let (_, of, _) = of.ok_or_else(|| reader.must_be_set("of"))?;
        let most = reader.whole("most", 1, u64::MAX)?;
        let limit = Self {
            of,
            most: most.ok_or_else(|| reader.must_be_set("most"))?,
            window_up_to: reader.whole("window_up_to", 1, u64::MAX)?.map(Tokens),
            window_over: reader.whole("window_over", 1, u64::MAX)?.map(Tokens),
            images_over: reader.whole("images_over", 0, u64::MAX)?,
            document: reader.required("document")?,
            date: reader.required("date")?,
        };
        reader.finish()?;
        Ok(limit)
    }

    /// Whether it holds for a model of this window.
    pub(super) fn holds_for(&self, window: Tokens) -> bool {
        self.window_up_to.is_none_or(|most| window <= most)
            && self.window_over.is_none_or(|least| window > least)
    }

    /// Whether a request of this size is refused.
    pub fn refuses(&self, request: &RequestSize) -> bool {
        let size = match self.of {
            RequestBytes => request.bytes,
            Images => request.images,
            ImageBytes => request.largest_image,
            ImageEdge => request.longest_edge,
        };
        size > self.most && self.images_over.is_none_or(|most| request.images > most)
    }
}

/// The limit in words: `at most 100 images in a request`.
impl fmt::Display for RequestLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, _, counted) = LIMITED[self.of as usize];
        write!(f, "at most {} {counted}", self.most)?;
        match self.images_over {
            Some(images) => write!(f, ", with more than {images} images"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::price::Prices;

    #[test]
    fn a_provider_refuses_what_its_documents_name() {
        let refused = |provider: &str, model: &str, request: RequestSize| -> Vec<String> {
            let limits = Prices::built_in().unwrap().limits(provider, Some(model));
            limits.iter().filter(|limit| limit.refuses(&request)).map(ToString::to_string).collect()
        };
        let images =
            |images, longest_edge| RequestSize { images, longest_edge, ..RequestSize::default() };
        // The window of the first model is 200,000, that of the second a million.
        let hundred = "at most 100 images in a request";
        assert_eq!(refused("anthropic", "claude-opus-4-5", images(100, 800)), [""; 0]);
        assert_eq!(refused("anthropic", "claude-opus-4-5", images(101, 800)), [hundred]);
        assert_eq!(refused("anthropic", "claude-opus-4-8", images(101, 800)), [""; 0]);
        assert_eq!(
            refused("anthropic", "claude-opus-4-8", images(601, 800)),
            ["at most 600 images in a request"]
        );
        // No model of the name: the default window.
        assert_eq!(refused("anthropic", "somebody", images(101, 800)), [hundred]);
        assert_eq!(refused("anthropic", "claude-opus-4-5", images(20, 2_001)), [""; 0]);
        assert_eq!(
            refused("anthropic", "claude-opus-4-5", images(21, 2_001)),
            ["at most 2000 pixels on an image's side, with more than 20 images"]
        );
        assert_eq!(
            refused("anthropic", "claude-opus-4-5", images(1, 8_001)),
            ["at most 8000 pixels on an image's side"]
        );
        let large = RequestSize { bytes: 60_000_000, ..images(501, 100) };
        assert_eq!(
            refused("openai", "gpt-5-codex", large),
            ["at most 50000000 bytes in a request", "at most 500 images in a request"]
        );
    }

    #[test]
    fn a_mistake_in_a_limit_is_named() {
        let head = "format = 'proctor-prices'\nversion = 1\nprovider = 'x'\n\
             date = '2026-01-02'\ndocument = 'd'\n[[limits]]\n";
        let says = |text: &str| {
            let prices = Prices::built_in().unwrap();
            let text = format!("{head}{text}");
            prices.with_file("p.toml", &text).unwrap_err().to_string()
        };
        assert!(says("of = 'imagse'\nmost = 1").contains("`limits.of` must be one of"));
        assert!(says("of = 'images'").contains("`limits.most` must be set"));
        assert!(
            says("of = 'images'\nmost = 1\nmoss = 2\ndocument = 'd'\ndate = 'd'")
                .contains("unknown key")
        );
    }
}
