//! `[recovery]`: whether what was removed is searched for what is lost, and how much each search
//! brings back.

use crate::probe::recovery::Recovery;
use crate::settings::{Reader, SettingError};

/// Reads `[recovery]`; without the table nothing is searched.
pub(super) fn read(reader: Option<Reader<'_>>) -> Result<Option<Recovery>, SettingError> {
    let Some(mut reader) = reader else {
        return Ok(None);
    };
    let usual = Recovery::default();
    let snippets = reader.whole("snippets", 1, 1_000)?;
    let snippet_tokens = reader.whole("snippet_tokens", 10, 100_000)?;
    reader.finish()?;
    Ok(Some(Recovery {
        snippets: snippets
            .and_then(|number| usize::try_from(number).ok())
            .unwrap_or(usual.snippets),
        snippet_tokens: snippet_tokens.unwrap_or(usual.snippet_tokens),
    }))
}
