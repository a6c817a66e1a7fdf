//! `[cache]`: what is said of the provider's prompt cache and prices.

use serde::Serialize;
use std::path::{Path, PathBuf};

use crate::model::price::{CacheScheme, Placement};
use crate::settings::{Place, Reader, SettingError};

/// Seconds from call to call in a session without times, unless the scenario says otherwise: any
/// number below five minutes keeps every cache alive.
const PACING_SECONDS: u64 = 30;

/// What is said of the provider's prompt cache and prices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheSetting {
    /// A price file that goes before the built-in ones, and what named it.
    #[serde(skip)]
    pub prices: Option<(PathBuf, Place)>,
    /// The model whose prices count, whatever the sessions say.
    pub model: Option<String>,
    /// A scheme beside the built-in ones, which the comparison then shows.
    pub scheme: Option<CacheScheme>,
    /// Where the client puts its breakpoints.
    pub breakpoints: Placement,
    /// Seconds from call to call in a session without times.
    pub pacing_seconds: u64,
}

impl Default for CacheSetting {
    fn default() -> Self {
        Self {
            prices: None,
            model: None,
            scheme: None,
            breakpoints: Placement::Usual,
            pacing_seconds: PACING_SECONDS,
        }
    }
}

/// Reads `[cache]`; `folder` is where relative paths start.
pub(super) fn read(
    reader: Option<Reader<'_>>,
    folder: &Path,
) -> Result<CacheSetting, SettingError> {
    let mut cache = CacheSetting::default();
    let Some(mut reader) = reader else {
        return Ok(cache);
    };
    if let Some(path) = reader.text("prices")? {
        let setting = reader.setting("prices");
        let place = setting.map_or(reader.place(), |setting| &setting.place);
        cache.prices = Some((folder.join(path), place.clone()));
    }
    cache.model = reader.text("model")?.map(str::to_owned);
    let placements = Placement::ALL.map(Placement::name);
    let breakpoints = reader.choice("breakpoints", &placements)?;
    let mut placements = Placement::ALL.into_iter();
    cache.breakpoints = placements
        .find(|placement| breakpoints == Some(placement.name()))
        .unwrap_or_default();
    if let Some(seconds) = reader.whole("pacing_seconds", 0, 1_000_000_000)? {
        cache.pacing_seconds = seconds;
    }
    if let Some(reader) = reader.table("scheme")? {
        cache.scheme = Some(CacheScheme::read(reader)?);
    }
    reader.finish()?;
    Ok(cache)
}
