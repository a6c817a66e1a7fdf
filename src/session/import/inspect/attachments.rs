//! Puts attachments back where they belong.
//!
//! A reference, `attachment://` (at first `tc://`) and 32 hexadecimal digits, may stand anywhere in a text. Text and
//! attachment are both JSON strings, so the attachment's inner part is put in as it was written.

use std::borrow::Cow;

use super::super::prelude::*;
use super::{MAX_SAMPLE, Texts};

const SCHEMES: [&str; 2] = ["attachment://", "tc://"];

/// The length of an attachment's name.
const NAME: usize = 32;

/// The JSON text with its attachments; none if they would make it larger than any sample is.
pub(super) fn resolved<'t>(
    text: &'t str,
    attachments: &Texts<'_>,
    assembler: &mut Assembler,
) -> Option<Cow<'t, str>> {
    if next(text).is_none() {
        return Some(Cow::Borrowed(text));
    }
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, scheme)) = next(rest) {
        let (before, reference) = rest.split_at(at);
        whole.push_str(before);
        let name = reference.get(scheme.len()..scheme.len() + NAME);
        let is_name = |name: &&str| name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(name) = name.filter(is_name) else {
            // Somebody wrote of attachments.
            whole.push_str(scheme);
            rest = &reference[scheme.len()..];
            continue;
        };
        let found = attachments.get(name).map(|raw| raw.get());
        let inner = found.and_then(|json| json.strip_prefix('"')?.strip_suffix('"'));
        if inner.is_none() {
            assembler.warn("an attachment is not in the log");
        }
        whole.push_str(inner.unwrap_or(&reference[..scheme.len() + NAME]));
        if whole.len() > MAX_SAMPLE {
            return None;
        }
        rest = &reference[scheme.len() + NAME..];
    }
    whole.push_str(rest);
    Some(Cow::Owned(whole))
}

/// The next place where a reference may stand, and how it begins.
fn next(text: &str) -> Option<(usize, &'static str)> {
    let found = SCHEMES
        .iter()
        .filter_map(|scheme| Some((text.find(scheme)?, *scheme)));
    found.min()
}
