//! `[cache]`: the provider's prompt cache and prices.

use serde::Serialize;
use std::path::{Path, PathBuf};

use super::Result;
use crate::model::price::{CacheScheme, Placement};
use crate::settings::{CheckedTable, Place};

/// The provider's prompt cache and prices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheSetting {
    /// A price file that goes before the built-in ones, and what named it.
    #[serde(skip)]
    pub prices: Option<(PathBuf, Place)>,
    /// The model whose prices count, in place of those of the sessions.
    pub model: Option<String>,
    /// The place that names it.
    #[serde(skip)]
    pub model_place: Place,
    /// A scheme in addition to the built-in ones, which the comparison then shows.
    pub scheme: Option<CacheScheme>,
    /// Where the client puts its breakpoints.
    pub breakpoints: Placement,
    /// Seconds from call to call in a session without times.
    pub pacing_seconds: u64,
}

/// Reads `[cache]`; `folder` is where relative paths start.
pub(super) fn read(keys: &CheckedTable<'_>, folder: &Path) -> Result<CacheSetting> {
    let breakpoints = keys.one_of("breakpoints", Placement::ALL, Placement::name);
    let scheme = keys.reader().table("scheme")?;
    Ok(CacheSetting {
        prices: keys.file("prices", folder),
        model: keys.text("model").map(str::to_owned),
        model_place: keys.place_of("model").clone(),
        scheme: scheme.map(CacheScheme::read).transpose()?,
        breakpoints: breakpoints.unwrap_or_default(),
        pacing_seconds: keys.whole("pacing_seconds").unwrap_or_default(),
    })
}
