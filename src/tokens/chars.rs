//! The estimate most agents use where they have no tokeniser: four characters to a token.

use super::TokenCounter;
use crate::units::Tokens;

/// Characters (Unicode scalar values) divided by four, rounded up per text.
#[derive(Debug, Clone, Copy)]
pub struct CharsPer4;

impl TokenCounter for CharsPer4 {
    fn name(&self) -> &'static str {
        "chars/4"
    }

    fn count(&self, text: &str) -> Tokens {
        Tokens((text.chars().count() as u64).div_ceil(4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_up_and_counts_characters_not_bytes() {
        for (text, tokens) in [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("äöüß", 1)] {
            assert_eq!(CharsPer4.count(text), Tokens(tokens), "{text}");
        }
    }
}
