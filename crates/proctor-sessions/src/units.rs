//! Quantities with their units in the type: tokens, times, usage, content hashes.
//!
//! This is the leaf of the crate. Nothing here knows what a session is.

use std::fmt::{self, Write as _};
use std::io;
use std::sync::Arc;

use derive_more::{Add, AddAssign, Sub, Sum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Whether a value is the one that a file need not name.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// `1 session`, `6 sessions`.
pub fn many(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// The whole part of a number. It is 0 below 0 and for NaN, and the largest whole number for
/// anything above it.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub fn whole(number: f64) -> u64 {
    number as u64
}

/// The same, as a count or an index.
pub fn index(number: f64) -> usize {
    usize::try_from(whole(number)).unwrap_or(usize::MAX)
}

/// A number of tokens. Subtraction saturates at zero: a context cannot owe tokens.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Tokens(pub u64);

impl Tokens {
    /// No tokens.
    pub const ZERO: Self = Self(0);

    /// The share `self / whole`, or `None` when the whole is zero.
    pub fn share_of(self, whole: Self) -> Option<f64> {
        (whole.0 > 0).then(|| self.0 as f64 / whole.0 as f64)
    }

    /// `12.3k`: three digits and a letter for thousands, millions or thousands of millions.
    #[must_use]
    pub fn in_short(self) -> String {
        const THOUSAND: f64 = 1_000.0;
        let value = self.0 as f64;
        match self.0 {
            0..1_000 => self.0.to_string(),
            // 999,950 and above round to 1,000.0k.
            1_000..999_950 => format!("{:.1}k", value / THOUSAND),
            999_950..999_950_000 => format!("{:.1}M", value / THOUSAND / THOUSAND),
            _ => format!("{:.1}G", value / THOUSAND / THOUSAND / THOUSAND),
        }
    }

    /// These tokens so many times.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }

    /// The largest whole number of tokens that is not above `fraction × self`.
    ///
    /// `fraction` is clamped to `0.0..=1.0`; a fraction that is not a number counts as zero.
    #[must_use]
    pub fn fraction(self, fraction: f64) -> Self {
        let fraction = if fraction.is_nan() { 0.0 } else { fraction.clamp(0.0, 1.0) };
        Self(whole(self.0 as f64 * fraction))
    }
}

/// Sums that stop at the largest number.
macro_rules! add {
    ($($number:ident),*) => {$(
        impl std::ops::Add for $number {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl std::ops::AddAssign for $number {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl std::iter::Sum for $number {
            fn sum<I: Iterator<Item = Self>>(numbers: I) -> Self {
                numbers.fold(Self(0), |sum, number| sum + number)
            }
        }
    )*};
}

add!(Tokens, Usd);

impl std::ops::Sub for Tokens {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Money in whole nano-dollars, so that no sum is rounded.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Usd(pub u64);

impl Usd {
    /// An amount in dollars, of at least 0.
    pub fn of_dollars(dollars: f64) -> Self {
        Self(whole((dollars * 1e9).round()))
    }

    /// The amount in dollars.
    pub fn in_dollars(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The price of this many tokens at this price of one.
    #[must_use]
    pub fn times(self, tokens: Tokens) -> Self {
        Self(self.0.saturating_mul(tokens.0))
    }
}

impl fmt::Display for Usd {
    /// Dollars and cents; below a dollar to the hundredth of a cent, rounded down.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1_000_000_000 {
            return write!(f, "$0.{:04}", self.0 / 100_000);
        }
        let cents = (self.0.saturating_add(5_000_000)) / 10_000_000;
        write!(f, "${}.{:02}", cents / 100, cents % 100)
    }
}

/// Milliseconds since the Unix epoch, UTC.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// The provider's name for one API call: assistant records that share it came from one response.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ApiCallId(pub Arc<str>);

/// Billed tokens for each counted token, in parts per million.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Factor(pub u64);

impl Factor {
    /// Every counted token is billed as one.
    pub const ONE: Self = Self(1_000_000);

    /// `billed / counted`, rounded half up; `None` where nothing was counted.
    pub fn of(billed: Tokens, counted: Tokens) -> Option<Self> {
        let rounded = u128::from(billed.0) * 1_000_000 + u128::from(counted.0) / 2;
        let parts = rounded.checked_div(u128::from(counted.0))?;
        u64::try_from(parts).ok().map(Self)
    }

    /// The same, rounded down: what it bills is never above `billed`.
    pub fn within(billed: Tokens, counted: Tokens) -> Option<Self> {
        let parts = (u128::from(billed.0) * 1_000_000).checked_div(u128::from(counted.0))?;
        u64::try_from(parts).ok().map(Self)
    }

    /// Counted tokens as billed, rounded half up.
    #[must_use]
    pub fn bill(self, counted: Tokens) -> Tokens {
        self.parts(counted, 500_000)
    }

    /// The same, rounded down.
    #[must_use]
    pub fn share(self, counted: Tokens) -> Tokens {
        self.parts(counted, 0)
    }

    fn parts(self, counted: Tokens, rounding: u128) -> Tokens {
        if self == Self::ONE {
            return counted;
        }
        let parts = u128::from(counted.0) * u128::from(self.0) + rounding;
        quotient(parts, Self::ONE.0)
    }

    /// The largest count whose bill is at most `billed`, to a rounding.
    #[must_use]
    pub fn count(self, billed: Tokens) -> Tokens {
        if self == Self::ONE {
            return billed;
        }
        quotient(u128::from(billed.0) * 1_000_000, self.0)
    }

    /// The ratio, for display.
    pub fn ratio(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// `parts / of`, and `parts` of nothing.
fn quotient(parts: u128, of: u64) -> Tokens {
    Tokens(u64::try_from(parts.checked_div(u128::from(of)).unwrap_or(parts)).unwrap_or(u64::MAX))
}

/// Tokens billed for one call. The five kinds are disjoint; their sum is what was processed.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Add,
    AddAssign,
    Sub,
    Sum,
    JsonSchema,
    Serialize,
    Deserialize,
)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Prompt tokens neither read from nor written to the provider's cache.
    pub input_uncached: Tokens,
    /// Prompt tokens written to the five-minute cache.
    pub cache_write_5m: Tokens,
    /// Prompt tokens written to the one-hour cache.
    pub cache_write_1h: Tokens,
    /// Prompt tokens read from the cache.
    pub cache_read: Tokens,
    /// Tokens the model wrote, thinking included.
    pub output: Tokens,
}

impl Usage {
    /// A call that used no cache.
    pub fn uncached(input: Tokens, output: Tokens) -> Self {
        Self { input_uncached: input, output, ..Self::default() }
    }

    /// Tokens of the prompt: everything but the output.
    pub fn prompt(&self) -> Tokens {
        self.input_uncached + self.cache_write_5m + self.cache_write_1h + self.cache_read
    }

    /// The part of the prompt that was read from the cache.
    #[must_use]
    pub fn read(&self) -> Self {
        Self { cache_read: self.cache_read, ..Self::default() }
    }

    /// The part of the prompt that was written to the cache.
    #[must_use]
    pub fn written(&self) -> Self {
        Self {
            cache_write_5m: self.cache_write_5m,
            cache_write_1h: self.cache_write_1h,
            ..Self::default()
        }
    }

    /// Prompt and output.
    pub fn total(&self) -> Tokens {
        self.prompt() + self.output
    }

    /// The larger of each counter.
    ///
    /// Several records of one streamed response repeat the input counters and grow the output;
    /// adding them up would bill the call once per record.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            input_uncached: self.input_uncached.max(other.input_uncached),
            cache_write_5m: self.cache_write_5m.max(other.cache_write_5m),
            cache_write_1h: self.cache_write_1h.max(other.cache_write_1h),
            cache_read: self.cache_read.max(other.cache_read),
            output: self.output.max(other.output),
        }
    }
}

/// The SHA-256 of some bytes: the name under which anything stored is found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Hashes `bytes`.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(Sha256::digest(bytes.as_ref()).into())
    }

    /// Hashes several parts, each preceded by its length so that no two lists collide.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// Hashes values by their canonical JSON: keys sorted, no white space, each preceded by its length.
    pub fn of_values(values: impl IntoIterator<Item = serde_json::Value>) -> Self {
        let texts: Vec<String> = values
            .into_iter()
            .map(|mut value| {
                value.sort_all_objects();
                value.to_string()
            })
            .collect();
        Self::of_parts(texts.iter().map(String::as_bytes))
    }

    /// Hashes the bytes that `write` writes, which are never all in memory.
    pub fn of_written(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> Self {
        let mut hasher = HashWriter::default();
        let mut out = io::BufWriter::new(&mut hasher);
        // A hash takes every byte. If writing failed, the hash would be of fewer bytes.
        let _ = write(&mut out).and_then(|()| io::Write::flush(&mut out));
        drop(out);
        hasher.finish()
    }

    /// The hash itself.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// A number from 0 to 1, 1 excluded: the first 52 bits.
    pub fn fraction(&self) -> f64 {
        u64::from_str_radix(&self.hex(13), 16).unwrap_or(0) as f64 / (1_u64 << 52) as f64
    }

    /// The first `digits` lower-case hexadecimal digits, at most 64.
    pub fn hex(&self, digits: usize) -> String {
        let mut text = String::with_capacity(64);
        for byte in self.0 {
            let _ = write!(text, "{byte:02x}");
        }
        text.truncate(digits);
        text
    }
}

/// Hashes what is written.
#[derive(Debug, Default)]
pub struct HashWriter(Sha256);

impl HashWriter {
    /// The hash of all bytes written.
    pub fn finish(self) -> ContentHash {
        ContentHash(self.0.finalize().into())
    }
}

impl io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex(64))
    }
}

/// Whether `id` is one Proctor prints and accepts: `[a-z0-9][a-z0-9._@-]*`, at most 80 bytes.
///
/// Ids become parts of file names, so nothing else is ever let through.
pub fn is_valid_id(id: &str) -> bool {
    let bytes = id.as_bytes();
    bytes.len() <= 80
        && matches!(bytes.first(), Some(b'a'..=b'z' | b'0'..=b'9'))
        && bytes
            .iter()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'@' | b'-'))
}

/// The nearest valid id to `text`: lower-cased, everything else replaced by `-`, cut to `length`.
pub fn to_valid_id(text: &str, length: usize) -> String {
    let plain = text.chars().map(|c| match c.to_ascii_lowercase() {
        part @ ('a'..='z' | '0'..='9' | '.' | '_' | '@') => part,
        _ => '-',
    });
    let mut id: String = plain.skip_while(|c| !c.is_ascii_alphanumeric()).take(length).collect();
    if id.is_empty() {
        id.push('x');
    }
    id
}

/// The median of ascending numbers: of two in the middle, the number between them.
pub fn median<T: Copy>(ascending: &[T], midpoint: fn(T, T) -> T) -> Option<T> {
    let lower = *ascending.get(ascending.len().saturating_sub(1) / 2)?;
    Some(midpoint(lower, *ascending.get(ascending.len() / 2)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_five_counters_of_a_call_add_up() {
        let usage = Usage {
            input_uncached: Tokens(1),
            cache_write_5m: Tokens(20),
            cache_write_1h: Tokens(300),
            cache_read: Tokens(4_000),
            output: Tokens(50_000),
        };
        assert_eq!(usage.prompt(), Tokens(4_321));
        assert_eq!(usage.total(), Tokens(54_321));
        assert_eq!(usage.max(Usage::uncached(Tokens(9), Tokens(1))).input_uncached, Tokens(9));
    }

    #[test]
    fn money_is_whole_and_prints_as_dollars() {
        // Three dollars per million tokens are 3,000 nano-dollars per token.
        let price = Usd(3_000).times(Tokens(1_500_000));
        assert_eq!(price, Usd(4_500_000_000));
        for (amount, text) in [
            (Usd(0), "$0.0000"),
            (Usd(12_345_678), "$0.0123"),
            (Usd(999_999_999), "$0.9999"),
            (Usd(1_000_000_000), "$1.00"),
            (price, "$4.50"),
            (Usd::of_dollars(10.885_5), "$10.89"),
        ] {
            assert_eq!(amount.to_string(), text);
        }
    }

    #[test]
    fn a_hash_is_the_published_one() {
        // FIPS 180-2, appendix B.1.
        assert_eq!(ContentHash::of("abc").hex(12), "ba7816bf8f01");
        assert_ne!(
            ContentHash::of_parts([&b"ab"[..], b"c"]),
            ContentHash::of_parts([&b"a"[..], b"bc"])
        );
    }

    #[test]
    fn ids_are_safe_as_file_names() {
        for good in ["a", "0-x", "observation-masking", "tail@20000", "session.4f3a21"] {
            assert!(is_valid_id(good), "{good}");
        }
        for bad in ["", ".", "..", "-a", "A", "a/b", "a b", "ä", &"a".repeat(81)] {
            assert!(!is_valid_id(bad), "{bad}");
        }
        assert_eq!(to_valid_id("../Etc/passwd", 40), "etc-passwd");
        assert!(is_valid_id(&to_valid_id("…", 40)));
    }

    #[test]
    fn a_fraction_never_exceeds_the_whole() {
        assert_eq!(Tokens(10).fraction(0.85), Tokens(8));
        assert_eq!(Tokens(10).fraction(7.0), Tokens(10));
        assert_eq!(Tokens(10).fraction(f64::NAN), Tokens::ZERO);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        let of = |numbers: &[u64]| median(numbers, u64::midpoint);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[7]), Some(7));
        assert_eq!(of(&[1, 1, 1, 2, 6, 8, 84, 199]), Some(4));
        assert_eq!(of(&[1, 2, 9]), Some(2));
    }
}
