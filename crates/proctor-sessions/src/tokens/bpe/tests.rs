//! The fast engine against the reference.

use std::ops::Range;

use proptest::prelude::*;
use rayon::prelude::*;

use super::*;

/// Code points to a block: what is encoded at once, and drawn at once.
const BLOCK: u32 = 64;

/// One block in so many is scanned, unless all are asked for.
const SAMPLE: u32 = 80;

/// Contexts that tell apart the classes by which the vocabularies split, letters, digits, marks,
/// white space and all else, by what becomes of the ASCII text beside the code point.
fn class_contexts(c: char) -> [String; 4] {
    [format!("{c}.com"), format!("!!{c}.com"), format!("1{c}23"), format!("   {c}a")]
}

/// Contexts that look for merges across the border, and for the two cases of letters.
fn merge_contexts(c: char) -> [String; 4] {
    let code_point = c as u32;
    let before = char::from_u32(code_point.wrapping_sub(1)).unwrap_or('x');
    let after = char::from_u32(code_point + 1).unwrap_or('x');
    [
        format!("{c}{c} {c}\n{c}"),
        format!("a{c}b A{c}B A{c}b"),
        format!("'{c}{c}'s"),
        format!("{before}{c}{after}"),
    ]
}

/// Everything that is tried with these code points, each context after a line of its own.
fn contexts(code_points: Range<u32>) -> String {
    let mut out = String::new();
    for c in code_points.filter_map(char::from_u32) {
        let is_assigned_plane = c < '\u{40000}' || ('\u{E0000}'..'\u{F0000}').contains(&c);
        let merges = is_assigned_plane.then(|| merge_contexts(c));
        for text in class_contexts(c).iter().chain(merges.iter().flatten()) {
            out.push_str(text);
            out.push_str("\nq\n");
        }
    }
    out
}

/// Those of `code_points` whose contexts are encoded differently.
fn differing(code_points: Range<u32>, differ: &dyn Fn(&str) -> bool) -> Vec<u32> {
    if !differ(&contexts(code_points.clone())) {
        return Vec::new();
    }
    if code_points.len() == 1 {
        return vec![code_points.start];
    }
    let middle = code_points.start.midpoint(code_points.end);
    let mut found = differing(code_points.start..middle, differ);
    found.extend(differing(middle..code_points.end, differ));
    found
}

/// With `PROCTOR_SCAN=all` every code point is tried, in about a hundred seconds of processor time;
/// without it one block in eighty.
#[test]
#[expect(clippy::disallowed_methods, reason = "asks whether to scan everything")]
fn the_engine_and_the_reference_agree_on_every_code_point() {
    let all = std::env::var_os("PROCTOR_SCAN").is_some_and(|value| value == "all");
    let engines = [
        (tiktoken::encoding::o200k_base(), tiktoken_rs::o200k_base_singleton()),
        (tiktoken::encoding::cl100k_base(), tiktoken_rs::cl100k_base_singleton()),
    ];
    let differ = |text: &str| {
        engines.iter().any(|(fast, slow): &(CoreBpe, &tiktoken_rs::CoreBPE)| {
            fast.encode(text) != slow.encode_ordinary(text)
        })
    };
    // A multiplicative hash: the blocks are far apart and of every plane.
    let is_drawn = |block: &u32| (block.wrapping_mul(0x9E37_79B1) >> 16).is_multiple_of(SAMPLE);
    let blocks: Vec<u32> = (0..0x11_0000 / BLOCK).filter(|block| all || is_drawn(block)).collect();
    let found: Vec<u32> = blocks
        .par_iter()
        .flat_map_iter(|block| differing(block * BLOCK..(block + 1) * BLOCK, &differ))
        .collect();
    assert!(found.is_empty(), "they differ on {found:#X?}");
}

/// The count of OpenAI's own encoder.
fn reference(encoding: &tiktoken_rs::CoreBPE, text: &str) -> Tokens {
    Tokens(encoding.count_ordinary(text) as u64)
}

fn check(text: &str) {
    let (o200k, cl100k) =
        (tiktoken_rs::o200k_base_singleton(), tiktoken_rs::cl100k_base_singleton());
    assert_eq!(O200k.count(text), reference(o200k, text), "{text:?}");
    assert_eq!(Cl100k.count(text), reference(cl100k, text), "{text:?}");
}

#[test]
fn counts_published_examples() {
    // From the README of OpenAI's tiktoken and its cookbook page on counting tokens.
    for (text, o200k, cl100k) in [
        ("hello world", 2, 2),
        ("tiktoken is great!", 6, 6),
        ("antidisestablishmentarianism", 6, 6),
        ("2 + 2 = 4", 7, 7),
        ("お誕生日おめでとう", 8, 9),
    ] {
        assert_eq!(O200k.count(text), Tokens(o200k), "{text}");
        assert_eq!(Cl100k.count(text), Tokens(cl100k), "{text}");
    }
}

#[test]
fn special_tokens_are_plain_text() {
    check("<|endoftext|><|fim_prefix|> <|endofprompt|>");
    assert!(O200k.count("<|endoftext|>") > Tokens(1));
}

/// A stretch of one thing is counted in linear time. The reference can stand a shorter one: there the
/// counts are equal.
#[test]
fn a_stretch_of_one_thing_is_counted_and_in_time() {
    for unit in [" ", "a", "\n", "漢", "\u{301}", "aGVsbG8gd29ybGQ"] {
        check(&unit.repeat(20_000 / unit.len()));
        let text = unit.repeat(1_000_000 / unit.len());
        let tokens = O200k.count(&text).0;
        assert!(tokens > 0 && tokens <= text.len() as u64, "{unit:?}: {tokens}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn counts_equal_the_reference(text in "\\PC{0,200}") {
        check(&text);
    }

    /// White space, line ends and control characters among the rest.
    #[test]
    fn any_text_counts_like_the_reference(text in prop::collection::vec(any::<char>(), 0..100)) {
        check(&text.into_iter().collect::<String>());
    }

    /// Pieces of sources and logs, in any order.
    #[test]
    fn classes_in_any_order_count_like_the_reference(
        parts in prop::collection::vec(
            "[a-z]{1,9}|[A-Z]{1,3}|[0-9]{1,7}|[ \\t\u{a0}\u{3000}]{1,4}|[\\r\\n]{1,3}|'([stdm]|ll|VE|re)|[.,:/#'\"-]{1,4}|[äßÉ漢字한🙂\u{301}]{1,3}",
            0..64,
        ),
    ) {
        check(&parts.concat());
    }
}
