//! The images and documents of a context: running sums, as its size is one.

use std::collections::BTreeMap;

use super::Entry;
use crate::session::ContentBlock;

/// The images and documents in all messages together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attachments {
    documents: u64,
    images: u64,
    bytes: u64,
    /// The number of images by their longer side in pixels.
    edges: BTreeMap<u32, u64>,
    /// The number of images by their bytes.
    sizes: BTreeMap<u64, u64>,
}

impl Attachments {
    /// Images.
    pub fn images(&self) -> u64 {
        self.images
    }

    /// Images and documents.
    pub fn count(&self) -> u64 {
        self.images + self.documents
    }

    /// Bytes of the images as they are sent.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the largest image.
    pub fn largest(&self) -> u64 {
        self.sizes.last_key_value().map_or(0, |(bytes, _)| *bytes)
    }

    /// The longest side of an image, in pixels.
    pub fn longest_edge(&self) -> u32 {
        self.edges.last_key_value().map_or(0, |(edge, _)| *edge)
    }

    pub(super) fn add(&mut self, entry: &Entry) {
        self.change(entry, u64::saturating_add);
    }

    pub(super) fn remove(&mut self, entry: &Entry) {
        self.change(entry, u64::saturating_sub);
    }

    fn change(&mut self, entry: &Entry, by: fn(u64, u64) -> u64) {
        let documents = entry.message.content().iter().map(documents_in).sum();
        self.documents = by(self.documents, documents);
        for image in entry.message.blocks().flat_map(|block| block.images) {
            self.images = by(self.images, 1);
            self.bytes = by(self.bytes, image.bytes);
            change_one(&mut self.sizes, image.bytes, by);
            if let Some(pixels) = image.pixels {
                change_one(&mut self.edges, pixels.long_edge(), by);
            }
        }
    }
}

fn change_one<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K, by: fn(u64, u64) -> u64) {
    match by(counts.get(&key).copied().unwrap_or(0), 1) {
        0 => _ = counts.remove(&key),
        count => _ = counts.insert(key, count),
    }
}

fn documents_in(block: &ContentBlock) -> u64 {
    match block {
        ContentBlock::Opaque(opaque) => u64::from(&*opaque.kind == "document"),
        ContentBlock::ToolResult(result) => result.content.iter().map(documents_in).sum(),
        ContentBlock::Text(_)
        | ContentBlock::Thinking(_)
        | ContentBlock::ToolUse(_)
        | ContentBlock::Image(_) => 0,
    }
}
