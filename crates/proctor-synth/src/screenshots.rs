//! Screenshots: after each command and each change the agent is shown the screen.

use serde_json::json;

use super::random::Random;
use proctor_sessions::{ContentBlock, Image, JsonText, ToolClass};

/// Usual sizes of a screen; a session has one.
const SCREENS: [(u64, u64); 4] = [(1_024, 768), (1_280, 800), (1_440, 900), (1_920, 1_080)];

/// Base64 bytes of a PNG for a thousand pixels of a screen: plain pages and busy ones.
const BYTES_PER_THOUSAND: (u64, u64) = (100, 600);

/// The screen of a session.
pub(super) struct Screen {
    width: u64,
    height: u64,
    random: Random,
}

impl Screen {
    pub(super) fn new(seed: u64) -> Self {
        let random = Random::new(seed, "screenshots-screen");
        let (width, height) = random.pick(&SCREENS);
        Self { width, height, random }
    }

    /// The screenshot that follows a use of a tool; none where nothing on the screen changes.
    ///
    /// Its size is declared: the data of a session's screenshots would be tens of megabytes.
    pub(super) fn shot(&mut self, class: ToolClass) -> Option<ContentBlock> {
        if !matches!(class, ToolClass::Shell | ToolClass::Edit | ToolClass::Write) {
            return None;
        }
        let (least, most) = BYTES_PER_THOUSAND;
        let bytes = self.width * self.height * self.random.between(least, most) / 1_000;
        let source = json!({
            "type": "image-size",
            "media_type": "image/png",
            "width": self.width,
            "height": self.height,
            "bytes": bytes,
        });
        Some(ContentBlock::Image(Image { source: JsonText::of(&source) }))
    }
}
