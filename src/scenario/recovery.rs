//! `[recovery]`: whether what was removed is searched for what is lost, and how much each search
//! brings back.

use crate::probe::recovery::Recovery;
use crate::settings::Keyed;

/// Reads `[recovery]`.
pub(super) fn read(keys: &Keyed<'_>) -> Recovery {
    Recovery {
        snippets: keys.whole("snippets").unwrap_or_default(),
        snippet_tokens: keys.whole("snippet_tokens").unwrap_or_default(),
    }
}
