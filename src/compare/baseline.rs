//! Baselines: what a run scored, as a file that is made for git.
//!
//! A baseline is canonical JSON: sorted keys, no time, no path, one line per probe item. Two runs of
//! the same thing give the same bytes, and a probe that changed is one changed line. Its last line is its checksum.

use super::{ComparedRun, canonical};
use crate::files::checked::{self, DOCUMENT, Damage};
use crate::record::{schema_of, with_checksum};

/// The value of `format`.
pub const FORMAT: &str = "proctor-baseline";

/// Version of the format.
pub const VERSION: u32 = 1;

/// Why a file cannot be used as a baseline.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BaselineError {
    /// It is not JSON of this shape.
    #[error("not a baseline")]
    Json(#[source] serde_json::Error),
    /// It is not what was written.
    #[error("it is damaged: {0}")]
    Damaged(Damage),
    /// It says that it is something else.
    #[error("`format` is `{0}`, not `{FORMAT}`")]
    Format(String),
    /// It was written by a newer Proctor.
    #[error("it has format version {0}, and this build reads up to {VERSION}: use a newer proctor")]
    Newer(u32),
}

impl BaselineError {
    /// How it is mended.
    pub fn hint(&self) -> Option<&'static str> {
        matches!(self, Self::Damaged(_)).then_some(
            "bring the committed file back, or write it anew from a run of the same: `proctor baseline save RUN NAME`",
        )
    }
}

/// A JSON Schema (draft 2020-12) of the file.
pub fn schema() -> serde_json::Value {
    let mut schema = schema_of::<ComparedRun>();
    with_checksum(&mut schema);
    schema
}

impl ComparedRun {
    /// Reads a file. Git may have given its lines other ends.
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        let read = checked::document(text.replace("\r\n", "\n").into_bytes());
        let (value, is_signed) = read.map_err(BaselineError::Damaged)?;
        let format = value.get("format").and_then(serde_json::Value::as_str);
        if format != Some(FORMAT) {
            return Err(BaselineError::Format(format.unwrap_or("").to_owned()));
        }
        let number = value.get("version").and_then(serde_json::Value::as_u64);
        let version = number.and_then(|number| u32::try_from(number).ok());
        if let Some(version) = version.filter(|version| *version > VERSION) {
            return Err(BaselineError::Newer(version));
        }
        if !is_signed {
            return Err(BaselineError::Damaged(Damage::NoChecksum));
        }
        let mut found: Self = serde_json::from_value(value).map_err(BaselineError::Json)?;
        for (name, sample) in &mut found.strategies {
            sample.strategy.clone_from(name);
        }
        found.place_all();
        Ok(found)
    }

    /// The file's text.
    pub fn to_text(&self) -> Result<String, BaselineError> {
        let value = serde_json::to_value(self).map_err(BaselineError::Json)?;
        // strategies / NAME / sessions / ID / probes / ITEM: an item takes one line.
        let mut text = canonical::write(&value, &|path| {
            let price = matches!(path, ["conditions", "prices", _] | ["rates", _]);
            path.len() >= 6 || price || path.last() == Some(&"billed")
        });
        checked::sign(&mut text, DOCUMENT);
        Ok(text)
    }
}
