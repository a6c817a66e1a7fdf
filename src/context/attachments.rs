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

    /// Those of some entries.
    pub(super) fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut attachments = Self::default();
        for entry in entries {
            attachments.add(entry);
        }
        attachments
    }

    pub(super) fn add(&mut self, entry: &Entry) {
        self.documents += documents_of(entry);
        for image in entry.message.blocks().flat_map(|block| block.images) {
            self.images += 1;
            self.bytes = self.bytes.saturating_add(image.bytes);
            *self.sizes.entry(image.bytes).or_default() += 1;
            if let Some(pixels) = image.pixels {
                *self.edges.entry(pixels.long_edge()).or_default() += 1;
            }
        }
    }

    pub(super) fn remove(&mut self, entry: &Entry) {
        self.documents = self.documents.saturating_sub(documents_of(entry));
        for image in entry.message.blocks().flat_map(|block| block.images) {
            self.images = self.images.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(image.bytes);
            take_one(&mut self.sizes, &image.bytes);
            if let Some(pixels) = image.pixels {
                take_one(&mut self.edges, &pixels.long_edge());
            }
        }
    }
}

fn take_one<K: Ord>(counts: &mut BTreeMap<K, u64>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

fn documents_of(entry: &Entry) -> u64 {
    entry.message.content().iter().map(documents_in).sum()
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
