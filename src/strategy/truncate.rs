//! Parts of a text within a number of tokens.

use crate::tokens::TokenCounter;
use crate::units::Tokens;

/// The longest beginning of the text within `tokens` tokens.
pub(crate) fn head<'t>(text: &'t str, tokens: Tokens, counter: &dyn TokenCounter) -> &'t str {
    longest(text, tokens, counter, KeptEnd::Head)
}

/// The longest end of the text within `tokens` tokens.
pub(crate) fn tail<'t>(text: &'t str, tokens: Tokens, counter: &dyn TokenCounter) -> &'t str {
    longest(text, tokens, counter, KeptEnd::Tail)
}

/// The end of a text that stays.
#[derive(Clone, Copy)]
enum KeptEnd {
    Head,
    Tail,
}

impl KeptEnd {
    /// About `length` bytes of the text, in whole characters.
    fn part(self, text: &str, length: usize) -> &str {
        match self {
            Self::Head => &text[..text.floor_char_boundary(length)],
            Self::Tail => &text[text.ceil_char_boundary(text.len() - length)..],
        }
    }

    /// A part without the `inner` bytes that lie at its own end of the text.
    fn beyond(self, part: &str, inner: usize) -> &str {
        match self {
            Self::Head => &part[inner..],
            Self::Tail => &part[..part.len() - inner],
        }
    }

    /// The bytes of `part` up to the last place that [always cuts](TokenCounter::always_cuts), as far
    /// as one is near.
    fn cut(self, part: &str, counter: &dyn TokenCounter) -> usize {
        const NEAR: usize = 4_096;
        let (bytes, length) = (part.as_bytes(), part.len());
        let mut near = (1..length).take(NEAR);
        let mut near_end = (1..length).rev().take(NEAR);
        match self {
            Self::Head => near_end.find(|at| is_cut(bytes, *at, counter)).unwrap_or(0),
            Self::Tail => near.find(|at| is_cut(bytes, *at, counter)).map_or(0, |at| length - at),
        }
    }
}

fn is_cut(bytes: &[u8], at: usize, counter: &dyn TokenCounter) -> bool {
    counter.always_cuts(bytes[at - 1], bytes[at])
}

/// The longest head or tail of a text within `tokens` tokens.
///
/// Longer parts have more tokens, but for a few at the seams: the search is a bisection. It begins
/// at four bytes to a token, so that of a huge text little more than what stays is ever counted. What
/// lies before the last certain cut of a part that fits is not counted again.
fn longest<'t>(text: &'t str, tokens: Tokens, counter: &dyn TokenCounter, end: KeptEnd) -> &'t str {
    let length = text.len();
    let (mut good, mut bad) = (0, length + 1);
    let start = usize::try_from(tokens.0.saturating_mul(4)).unwrap_or(usize::MAX);
    let mut next = start.clamp(1, length.max(1));
    let mut counted = (0, Tokens::ZERO);
    while good + 1 < bad {
        let part = end.part(text, next);
        let rest = end.beyond(part, counted.0);
        let beyond = end.cut(rest, counter);
        let outer = end.beyond(rest, beyond);
        let inner = counted.1 + counter.count(end.part(rest, beyond));
        if inner + counter.count(outer) <= tokens {
            good = next;
            counted = (counted.0 + beyond, inner);
        } else {
            bad = next;
        }
        next = if bad > length {
            good.saturating_mul(2).clamp(good + 1, length.max(good + 1))
        } else {
            good.midpoint(bad)
        };
    }
    end.part(text, good)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tokens::{CharsPer4, O200k};

    /// A counter that is never certain of a cut.
    #[derive(Debug)]
    struct Uncut;

    impl TokenCounter for Uncut {
        fn name(&self) -> &'static str {
            "uncut"
        }

        fn count(&self, text: &str) -> Tokens {
            O200k.count(text)
        }
    }

    proptest! {
        #[test]
        fn what_is_not_counted_again_changes_no_part(
            text in "([a-zé]{1,6}|[0-9]{1,5}|[ \n./漢]{1,3}){0,200}",
            tokens in 0_u64..200,
        ) {
            let tokens = Tokens(tokens);
            prop_assert_eq!(head(&text, tokens, &O200k), head(&text, tokens, &Uncut));
            prop_assert_eq!(tail(&text, tokens, &O200k), tail(&text, tokens, &Uncut));
        }
    }

    #[test]
    fn a_part_is_as_long_as_it_may_be() {
        for (text, tokens, first, last) in [
            ("abcdefghij", 2, "abcdefgh", "cdefghij"),
            ("abcdefghij", 0, "", ""),
            ("abcdefghij", 9, "abcdefghij", "abcdefghij"),
            ("", 1, "", ""),
            ("äöüßéèê", 1, "äöüß", "ßéèê"),
        ] {
            assert_eq!(head(text, Tokens(tokens), &CharsPer4), first, "{text} {tokens}");
            assert_eq!(tail(text, Tokens(tokens), &CharsPer4), last, "{text} {tokens}");
        }
    }
}
