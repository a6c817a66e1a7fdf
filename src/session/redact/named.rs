//! Finds secrets by the name they stand behind: `client_secret = "…"`.

use std::collections::BTreeMap;

use super::Class;
use super::found::{Found, run};

/// Parts of names behind which a secret stands, whatever it looks like.
const STRONG: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "authtoken",
    "accesstoken",
    "refreshtoken",
    "credential",
    "encryptionkey",
    "signingkey",
    "masterkey",
    "sharedkey",
    "accountkey",
    "storagekey",
    "hmackey",
];

/// Ends of names behind which a secret may stand.
const WEAK: &[&str] = &[
    "token",
    "key",
    "auth",
    "cookie",
    "authorization",
    "signature",
    "sig",
];

/// Ends of names that end like those of secrets, and are none: places in stores, pages of lists.
const HARMLESS: &[&str] = &[
    "publickey",
    "primarykey",
    "foreignkey",
    "partitionkey",
    "sortkey",
    "cachekey",
    "idempotencykey",
    "objectkey",
    "bundlekey",
    "translationkey",
    "pagetoken",
    "nexttoken",
    "continuationtoken",
];

/// A longer signature is a provider's proof of what its model thought.
const SIGNATURE: usize = 160;

/// Ends of names that say what is known of a secret.
const ABOUT: &[&str] = &[
    "file", "path", "dir", "url", "uri", "name", "type", "length", "count", "hash", "policy",
];

/// Values behind names that say that they are secret.
pub(super) fn values(text: &str, found: &mut Vec<Found>) {
    for (at, sign) in text.match_indices([':', '=']) {
        let Some(name) = name_before(&text[..at]) else {
            continue;
        };
        let after = &text[at + 1..];
        // A comparison says nothing of what a name holds.
        if sign == "=" && (after.starts_with('=') || text[..at].ends_with(['=', '!', '<', '>'])) {
            continue;
        }
        let after = after.strip_prefix(['=', '>']).unwrap_or(after);
        let after = after.trim_start_matches([' ', '\t']);
        let unescaped = after.trim_start_matches('\\');
        let quote = unescaped.chars().next().filter(|c| "\"'`".contains(*c));
        let (value, is_quoted) = if let Some(quote) = quote {
            let inner = &unescaped[1..];
            let end = run(inner, |c| c != quote && c != '\\' && c != '\n');
            (&inner[..end], true)
        } else {
            let is_part = |c: char| !c.is_whitespace() && !",;&\"'`()<>[]{}|\\".contains(c);
            (&after[..run(after, is_part)], false)
        };
        if is_secret(name, value, is_quoted) {
            let start = value.as_ptr().addr() - text.as_ptr().addr();
            found.push((start..start + value.len(), Class::Secret));
        }
    }
}

/// The name that ends where a sign of assignment stands.
fn name_before(text: &str) -> Option<&str> {
    let text = text.trim_end_matches([' ', '\t']);
    let text = text.trim_end_matches(['"', '\'', '`', '\\', ']']);
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let before = text.trim_end_matches(is_part).len();
    let name = &text[before..];
    (!name.is_empty() && name.len() <= 64).then_some(name)
}

/// Whether a value behind that name is a secret.
pub(super) fn is_secret(name: &str, value: &str, is_quoted: bool) -> bool {
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let is_about = ABOUT.iter().chain(HARMLESS).any(|end| plain.ends_with(end));
    if is_about || !is_constant(value) || !is_quoted && is_code(value) {
        return false;
    }
    let has = |is: fn(&char) -> bool| value.chars().any(|c| is(&c));
    let is_mixed = has(char::is_ascii_digit) && has(char::is_ascii_alphabetic);
    if STRONG.iter().any(|part| plain.contains(part)) {
        let is_odd = has(|c| !c.is_ascii_alphabetic());
        return value.len() >= 8 && is_mixed
            || is_quoted && value.len() >= 12 && is_odd && entropy(value) >= 3.0;
    }
    let is_weak = WEAK.iter().any(|end| plain.ends_with(end)) && plain != "key";
    let is_proof = plain.ends_with("signature") && value.len() > SIGNATURE;
    // Keys of stores are paths, hashes and ids.
    let is_name = plain.ends_with("key") && (is_hash(value) || has_file(value));
    is_weak && !is_proof && !is_name && value.len() >= 20 && is_mixed && entropy(value) >= 3.5
}

/// Whether an unquoted value is code or the output of a search: `9:import`, `module.Name.call`.
fn is_code(value: &str) -> bool {
    let rest = value.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_found = rest.len() < value.len() && rest.starts_with([':', '-']);
    let is_name = |part: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let digits = part.chars().filter(char::is_ascii_digit).count();
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(is_part)
            && part.len() <= 32
            && digits * 5 <= part.len()
    };
    let is_dotted = value.contains('.') && value.split('.').all(is_name);
    is_found && rest.len() < 64 && !rest[1..].contains(':') || is_dotted
}

/// Whether a value is a hash in hexadecimal digits or a UUID.
fn is_hash(value: &str) -> bool {
    let digits = value.chars().filter(char::is_ascii_hexdigit).count();
    let dashes = value.matches('-').count();
    let is_uuid = value.len() == 36 && dashes == 4;
    (digits == value.len() && [32, 40, 56, 64, 96, 128].contains(&value.len()))
        || is_uuid && digits == 32
}

/// Whether a value is a path that ends in the name of a file.
fn has_file(value: &str) -> bool {
    let name = value.rsplit_once('/').map(|(_, name)| name);
    let extension = name.and_then(|name| name.rsplit_once('.'));
    extension.is_some_and(|(_, end)| {
        (1..=6).contains(&end.len()) && end.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

/// Whether a value is written out, rather than taken from somewhere, left out or a path.
fn is_constant(value: &str) -> bool {
    let is_taken = [
        "${",
        "{{",
        "process.env",
        "os.environ",
        "getenv",
        "...",
        "***",
        "://",
    ];
    let is_path = value.starts_with(['/', '.', '~', '$', '%', '<']) || value.contains(":\\");
    let is_word = |c: char| c.is_ascii_graphic() || !c.is_ascii();
    value.len() <= 4_096
        && value.chars().all(is_word)
        && !is_filled(value)
        && !is_path
        && !is_taken.iter().any(|part| value.contains(part))
}

/// Whether a value is a form that is filled with one character: `sk-xxxxxxxx`.
fn is_filled(value: &str) -> bool {
    let mut last = None;
    let mut length = 0;
    value.chars().any(|c| {
        length = if last == Some(c) { length + 1 } else { 1 };
        last = Some(c);
        length >= 6
    })
}

/// Bits per character, were they drawn as often as they stand in the text (Shannon).
fn entropy(text: &str) -> f64 {
    let mut counts: BTreeMap<char, u32> = BTreeMap::new();
    for c in text.chars() {
        *counts.entry(c).or_default() += 1;
    }
    let whole = f64::from(counts.values().sum::<u32>());
    let share = |count: &u32| f64::from(*count) / whole;
    counts
        .values()
        .map(|count| -share(count) * libm::log2(share(count)))
        .sum()
}
