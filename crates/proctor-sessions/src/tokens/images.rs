//! The tokens of a picture: each provider's documented formula, by width and height.

use crate::units::Tokens;

/// Tokens counted for a picture whose size cannot be read.
///
/// Anthropic's documentation on vision gives about 1,600 tokens for the largest picture that most
/// models do not scale down.
pub const IMAGE_TOKENS: Tokens = Tokens(1_600);

/// A picture as counters see it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Picture {
    /// Its size, where it can be read.
    pub pixels: Option<Pixels>,
    /// Bytes that it adds to a request: base64 data, or an address.
    pub bytes: u64,
}

/// Width and height of a picture; neither is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pixels {
    /// From left to right.
    pub width: u32,
    /// From top to bottom.
    pub height: u32,
}

impl Pixels {
    /// A size; none where a side is zero.
    pub fn new(width: u32, height: u32) -> Option<Self> {
        (width > 0 && height > 0).then_some(Self { width, height })
    }

    /// The longer side.
    pub fn long_edge(self) -> u32 {
        self.width.max(self.height)
    }

    /// The number of squares of this side that cover it.
    fn squares(self, side: u64) -> u64 {
        u64::from(self.width).div_ceil(side) * u64::from(self.height).div_ceil(side)
    }

    /// The same proportions with the longer side of `edge`.
    fn scaled(self, edge: u32) -> Self {
        let long = u64::from(self.long_edge());
        let side = |side: u32| {
            let scaled = u64::from(side) * u64::from(edge) / long;
            u32::try_from(scaled).unwrap_or(side).max(1)
        };
        Self { width: side(self.width), height: side(self.height) }
    }

    /// The largest size of the same proportions with the longer side of at most `longest`, and of at
    /// most so many squares of 28.
    fn within(self, longest: u32, squares: u64) -> Self {
        let edge = longest.min(self.long_edge());
        if self.scaled(edge).squares(28) <= squares {
            return self.scaled(edge);
        }
        let (mut fits, mut exceeds) = (1, edge);
        while fits + 1 < exceeds {
            let middle = u32::midpoint(fits, exceeds);
            if self.scaled(middle).squares(28) <= squares {
                fits = middle;
            } else {
                exceeds = middle;
            }
        }
        self.scaled(fits)
    }

    /// So many patches of 32 cover it. Where they are more than `most`, it is scaled down until one
    /// side is a whole number of patches.
    fn patches(self, most: u64) -> u64 {
        let patches = self.squares(32);
        if patches <= most {
            return patches;
        }
        let (width, height) = (u64::from(self.width), u64::from(self.height));
        let by = |own: u64, other: u64| {
            let whole = (most * own / other).isqrt().max(1);
            whole * (whole * other).div_ceil(own)
        };
        by(width, height).min(by(height, width)).min(most)
    }
}

/// A provider's formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageRule {
    /// Anthropic's: one token for each square of 28, after scaling down to a longest side and a
    /// number of squares.
    Squares {
        /// The longest side that is not scaled down.
        edge: u32,
        /// The most squares.
        most: u32,
    },
    /// OpenAI's newer models: patches of 32, after scaling down to 2,048 and a number of patches.
    Patches {
        /// The most patches.
        most: u32,
        /// Thousandths of a token for a patch.
        per_patch: u32,
    },
    /// OpenAI's older models: tiles of 512, after scaling to 2,048 and the short side to 768.
    Tiles {
        /// Tokens for any picture.
        base: u32,
        /// Tokens for a tile.
        tile: u32,
    },
    /// Gemini 2: 258 tokens up to 384 × 384, else for each tile of 768.
    Tiles768,
    /// The same for every picture.
    Flat(Tokens),
}

impl ImageRule {
    /// Anthropic, "Vision", read 2026-11-22: ⌈width / 28⌉ × ⌈height / 28⌉ tokens, after scaling to
    /// 1,568 pixels and as many tokens (about 1.15 megapixels). Taken where no rule of the model is
    /// known.
    pub const STANDARD: Self = Self::Squares { edge: 1_568, most: 1_568 };

    /// The same page: 2,576 pixels and 4,784 tokens from Claude Opus 4.7 on.
    const HIGH_RESOLUTION: Self = Self::Squares { edge: 2_576, most: 4_784 };

    const fn patches(per_patch: u32) -> Self {
        Self::Patches { most: 1_536, per_patch }
    }

    const fn tiles(base: u32, tile: u32) -> Self {
        Self::Tiles { base, tile }
    }

    /// The rule of a model, by its name as recorded.
    pub fn of(model: Option<&str>) -> Self {
        let own = model.unwrap_or_default().rsplit('/').next().unwrap_or_default();
        let rule = RULES.iter().find(|(name, _)| own.starts_with(name));
        rule.map_or(Self::STANDARD, |(_, rule)| *rule)
    }

    /// Tokens of a picture.
    pub fn tokens(self, picture: &Picture) -> Tokens {
        let Some(pixels) = picture.pixels else {
            return IMAGE_TOKENS;
        };
        Tokens(match self {
            Self::Flat(tokens) => tokens.0,
            Self::Tiles768 if pixels.long_edge() <= 384 => 258,
            Self::Tiles768 => pixels.squares(768).saturating_mul(258),
            Self::Squares { edge, most } => pixels.within(edge, most.into()).squares(28),
            Self::Patches { most, per_patch } => {
                let patches = pixels.scaled(pixels.long_edge().min(2_048));
                (patches.patches(most.into()) * u64::from(per_patch)).div_ceil(1_000)
            }
            Self::Tiles { base, tile } => {
                let fitted = pixels.scaled(pixels.long_edge().min(2_048));
                let short = fitted.width.min(fitted.height);
                let edge = u64::from(fitted.long_edge()) * 768 / u64::from(short.max(768));
                let tiled = fitted.scaled(u32::try_from(edge).unwrap_or(2_048));
                u64::from(base) + tiled.squares(512) * u64::from(tile)
            }
        })
    }
}

/// The rules by the beginnings of names; the first that fits holds.
///
/// Read on 2026-11-22: Anthropic's "Vision"; OpenAI's "Images and vision", *Calculating costs*;
/// Google's "Understand and count tokens" and "Image understanding".
const RULES: &[(&str, ImageRule)] = &[
    ("claude-opus-4-7", ImageRule::HIGH_RESOLUTION),
    ("claude-opus-4.7", ImageRule::HIGH_RESOLUTION),
    ("claude-opus-4-8", ImageRule::HIGH_RESOLUTION),
    ("claude-opus-4.8", ImageRule::HIGH_RESOLUTION),
    ("claude-opus-5", ImageRule::HIGH_RESOLUTION),
    ("claude-fable-5", ImageRule::HIGH_RESOLUTION),
    ("gpt-4o-mini", ImageRule::tiles(2_833, 5_667)),
    ("gpt-4.1-mini", ImageRule::patches(1_620)),
    ("gpt-4.1-nano", ImageRule::patches(2_460)),
    ("gpt-4", ImageRule::tiles(85, 170)),
    ("gpt-5-mini", ImageRule::patches(1_620)),
    ("gpt-5-nano", ImageRule::patches(2_460)),
    ("gpt-5.4-mini", ImageRule::patches(1_620)),
    ("gpt-5.4-nano", ImageRule::patches(2_460)),
    ("gpt-5.2", ImageRule::patches(1_000)),
    ("gpt-5.3", ImageRule::patches(1_000)),
    ("gpt-5.", ImageRule::Patches { most: 2_500, per_patch: 1_000 }),
    ("gpt-5", ImageRule::tiles(70, 140)),
    ("o4-mini", ImageRule::patches(1_720)),
    ("o1", ImageRule::tiles(75, 150)),
    ("o3", ImageRule::tiles(75, 150)),
    ("computer-use", ImageRule::tiles(65, 129)),
    ("gemini-2", ImageRule::Tiles768),
    ("gemini-3", ImageRule::Flat(Tokens(1_120))),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_cost_what_the_documents_of_their_provider_say() {
        let check = |model: &str, width, height, expected: u64| {
            let pixels = Pixels::new(width, height);
            let picture = Picture { pixels, bytes: 0 };
            let tokens = ImageRule::of(Some(model)).tokens(&picture).0;
            assert_eq!(tokens, expected, "{model} {width} × {height}");
        };
        // Anthropic: not scaled; scaled to 1,568 tokens at most; the newer models' limit.
        check("claude-sonnet-4-5", 34, 30, 4);
        check("claude-sonnet-4-5", 1_092, 1_092, 39 * 39);
        check("claude-sonnet-4-5", 1_568, 784, 56 * 28);
        check("claude-opus-4-7", 2_576, 1_300, 92 * 47);
        check("anthropic/claude-opus-4-8", 200, 200, 64);
        // OpenAI's own examples: 765 and 1,105 tokens; patches 1,024 and 1,452 times 1.62.
        check("gpt-4o-2024-08-06", 1_024, 1_024, 765);
        check("gpt-4o", 2_048, 4_096, 1_105);
        check("gpt-5-mini", 1_024, 1_024, 1_659);
        check("gpt-5.2", 1_800, 2_400, 1_452);
        check("gpt-5", 512, 512, 210);
        // Google's.
        check("gemini-2.5-pro", 384, 384, 258);
        check("gemini-2.5-pro", 960, 540, 516);
        check("gemini-3-pro", 960, 540, 1_120);
        // No name of a model: the standard rule.
        check("", 280, 28, 10);
    }

    #[test]
    fn no_size_exceeds_the_limits_of_a_rule_or_overflows() {
        for width in [1, 27, 1_567, 1_569, 8_000, u32::MAX] {
            for height in [1, 28, 1_568, 3_000, u32::MAX] {
                let picture = Picture { pixels: Pixels::new(width, height), bytes: u64::MAX };
                assert!(ImageRule::STANDARD.tokens(&picture).0 <= 1_568, "{width} × {height}");
                assert!(ImageRule::of(Some("gpt-5.4")).tokens(&picture).0 <= 2_500);
                for (_, rule) in RULES {
                    assert!(rule.tokens(&picture) > Tokens::ZERO);
                }
            }
        }
        assert_eq!(Pixels::new(0, 7), None);
        assert_eq!(ImageRule::STANDARD.tokens(&Picture::default()), IMAGE_TOKENS);
    }
}
