//! What the model reads of the blocks of a message.

use std::sync::Arc;

use super::ContentBlock;
use crate::tokens::Picture;

/// The texts and pictures of the blocks of a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rendering {
    pub(super) texts: Box<[Arc<str>]>,
    /// Those of each block; empty if there are none.
    pub(super) pictures: Box<[Vec<Picture>]>,
}

impl Rendering {
    /// The rendering of these blocks. A single block whose own text is what the model reads needs none: a
    /// session may have a million such messages.
    pub(super) fn of(blocks: &[ContentBlock]) -> Option<Box<Self>> {
        if let [block] = blocks
            && block.own_text().is_some()
            && block.pictures().is_empty()
        {
            return None;
        }
        let mut pictures: Vec<_> = blocks.iter().map(ContentBlock::pictures).collect();
        if pictures.iter().all(Vec::is_empty) {
            pictures.clear();
        }
        Some(Box::new(Self {
            texts: blocks.iter().map(ContentBlock::render).collect(),
            pictures: pictures.into(),
        }))
    }

    /// Makes a block one text without pictures.
    pub(super) fn replace(&mut self, block: usize, text: Arc<str>) {
        self.texts[block] = text;
        if let Some(pictures) = self.pictures.get_mut(block) {
            pictures.clear();
        }
        if self.pictures.iter().all(Vec::is_empty) {
            self.pictures = Box::default();
        }
    }
}
