//! Puts attachments back where they belong.
//!
//! A reference, `attachment://` and 32 hexadecimal digits, may stand anywhere in a text. Text and
//! attachment are both JSON strings, so the attachment's inner part is put in as it was written.

use std::borrow::Cow;

use super::{MAX_SAMPLE, Texts};
use crate::session::import::assemble::Assembler;

const SCHEME: &str = "attachment://";

/// The length of an attachment's name.
const NAME: usize = 32;

/// The JSON text with its attachments; none if they would make it larger than any sample is.
pub(super) fn resolved<'t>(
    text: &'t str,
    attachments: &Texts<'_>,
    assembler: &mut Assembler,
) -> Option<Cow<'t, str>> {
    if !text.contains(SCHEME) {
        return Some(Cow::Borrowed(text));
    }
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(SCHEME) {
        let (before, reference) = rest.split_at(at);
        whole.push_str(before);
        let name = reference.get(SCHEME.len()..SCHEME.len() + NAME);
        let is_name = |name: &&str| name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(name) = name.filter(is_name) else {
            // Somebody wrote of attachments.
            whole.push_str(SCHEME);
            rest = &reference[SCHEME.len()..];
            continue;
        };
        let found = attachments.get(name).map(|raw| raw.get());
        let inner = found.and_then(|json| json.strip_prefix('"')?.strip_suffix('"'));
        if inner.is_none() {
            assembler.warn("an attachment is not in the log");
        }
        whole.push_str(inner.unwrap_or(&reference[..SCHEME.len() + NAME]));
        if whole.len() > MAX_SAMPLE {
            return None;
        }
        rest = &reference[SCHEME.len() + NAME..];
    }
    whole.push_str(rest);
    Some(Cow::Owned(whole))
}
