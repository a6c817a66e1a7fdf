//! Puts attachments back where they belong.
//!
//! A reference, `attachment://` (at first `tc://`) and 32 hexadecimal digits, may be anywhere in a
//! text. Text and attachment are both JSON strings, so the attachment's inner part is put in as it
//! was written.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::{MAX_SAMPLE, Texts};
use crate::prelude::*;

static REFERENCE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("(?-u)(?:attachment|tc)://([[:xdigit:]]{32})").ok());

/// The JSON text with its attachments; none if they would make it larger than any sample is.
pub(super) fn resolved<'t>(
    text: &'t str,
    attachments: &Texts<'_>,
    assembler: &mut Assembler,
) -> Option<Cow<'t, str>> {
    let mut whole = String::new();
    let mut copied = 0;
    for found in REFERENCE.as_ref()?.captures_iter(text.as_bytes()) {
        let (reference, name) = (found.get(0)?.range(), found.get(1)?.range());
        let attachment = attachments.get(&text[name]).map(|raw| raw.get());
        let inner = attachment.and_then(|json| json.strip_prefix('"')?.strip_suffix('"'));
        if inner.is_none() {
            assembler.warn("an attachment is not in the log");
        }
        whole.push_str(&text[copied..reference.start]);
        whole.push_str(inner.unwrap_or(&text[reference.clone()]));
        if whole.len() > MAX_SAMPLE {
            return None;
        }
        copied = reference.end;
    }
    if copied == 0 {
        return Some(Cow::Borrowed(text));
    }
    whole.push_str(&text[copied..]);
    Some(Cow::Owned(whole))
}
