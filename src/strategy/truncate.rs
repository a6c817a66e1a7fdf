//! Parts of a text within a number of tokens.

use crate::tokens::TokenCounter;
use crate::units::Tokens;

/// The longest beginning of the text within `tokens` tokens.
pub(crate) fn head<'t>(text: &'t str, tokens: Tokens, counter: &dyn TokenCounter) -> &'t str {
    let head = |length| &text[..text.floor_char_boundary(length)];
    longest(text.len(), tokens, counter, head)
}

/// The longest end of the text within `tokens` tokens.
pub(crate) fn tail<'t>(text: &'t str, tokens: Tokens, counter: &dyn TokenCounter) -> &'t str {
    let tail = |length| &text[text.ceil_char_boundary(text.len() - length)..];
    longest(text.len(), tokens, counter, tail)
}

/// Where the first `chars` characters end, in bytes.
pub(crate) fn after_chars(text: &str, chars: usize) -> usize {
    let mut ends = text.char_indices().map(|(at, _)| at);
    ends.nth(chars).unwrap_or(text.len())
}

/// The longest `part` of a text of `length` bytes (a head or a tail) within `tokens` tokens.
///
/// Longer parts have more tokens, but for a few at the seams: the search is a bisection. It begins
/// at four bytes to a token, so that of a huge text little more than what stays is ever counted.
fn longest<'t>(
    length: usize,
    tokens: Tokens,
    counter: &dyn TokenCounter,
    part: impl Fn(usize) -> &'t str,
) -> &'t str {
    let (mut good, mut bad) = (0, length + 1);
    let start = usize::try_from(tokens.0.saturating_mul(4)).unwrap_or(usize::MAX);
    let mut next = start.clamp(1, length.max(1));
    while good + 1 < bad {
        if counter.count(part(next)) <= tokens {
            good = next;
        } else {
            bad = next;
        }
        next = if bad > length {
            good.saturating_mul(2).clamp(good + 1, length.max(good + 1))
        } else {
            good.midpoint(bad)
        };
    }
    part(good)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::CharsPer4;

    #[test]
    fn a_part_is_as_long_as_it_may_be() {
        for (text, tokens, first, last) in [
            ("abcdefghij", 2, "abcdefgh", "cdefghij"),
            ("abcdefghij", 0, "", ""),
            ("abcdefghij", 9, "abcdefghij", "abcdefghij"),
            ("", 1, "", ""),
            ("äöüßéèê", 1, "äöüß", "ßéèê"),
        ] {
            assert_eq!(
                head(text, Tokens(tokens), &CharsPer4),
                first,
                "{text} {tokens}"
            );
            assert_eq!(
                tail(text, Tokens(tokens), &CharsPer4),
                last,
                "{text} {tokens}"
            );
        }
    }
}
