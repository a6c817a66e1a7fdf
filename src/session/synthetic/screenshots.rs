//! The family `screenshots`: whatever the agent does, it is shown the screen.

use serde_json::json;

use super::Recipe;
use super::code_review::profile::{Away, DENSITY, Profile};
use super::code_review::words::PHRASES;
use super::plot::Plot;
use super::random::Random;
use crate::session::{ContentBlock, Image, JsonText, ToolClass};

/// Work in front of a screen.
pub(super) static FAMILY: Profile = Profile {
    name: "screenshots",
    description: "a screenshot after each command and each change: images, bytes and pixels fill requests before tokens do",
    tokens_per_round: 2_200,
    weights: [42, 9, 9, 9, 12, 8, 6, 2, 4],
    task: (3, 7),
    interrupts: true,
    said_by: 1_000,
    large_percent: 0,
    at_once_percent: 0,
    away: Away::Never,
    plot: Plot {
        seed: "screenshots-schedule",
        rounds_per_chapter: 48,
        most_chapters: 8,
        density: DENSITY,
        phrases: PHRASES,
    },
};

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
    /// The screen, where the recipe asks for one.
    pub(super) fn of(recipe: &Recipe) -> Option<Self> {
        if recipe.family != FAMILY.name {
            return None;
        }
        let mut random = Random::new(recipe.seed, "screenshots-screen");
        let (width, height) = random.pick(&SCREENS);
        Some(Self {
            width,
            height,
            random,
        })
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
        Some(ContentBlock::Image(Image {
            source: JsonText::of(&source),
        }))
    }
}
