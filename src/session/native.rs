//! Proctor's own session format: one JSON object per line, `*.session.jsonl`.
//!
//! The first line is the header, every other line a message, in order. A compaction that the
//! recorded product made is a line of its own, before the message it preceded. Writing, reading
//! and writing again gives the same bytes: JSON that came from elsewhere (tool arguments, tool
//! definitions, image sources, unknown blocks) is embedded as it was written. Where such JSON
//! holds a line break, it stands as a string under the same key with `_text` added. [`schema`] says
//! the same as a JSON Schema.
//!
//! ```
//! use proctor::session::{import::Importer, native};
//!
//! let file = r#"{"format":"proctor-session","version":1,"id":"hello"}
//! {"role":"user","content":[{"type":"text","text":"Say hello."}],"tags":["typed_user"]}
//! {"role":"assistant","content":[{"type":"text","text":"Hello."}],"api_call":"call-1"}
//! "#;
//! let sessions = native::Native.import("hello.session.jsonl".as_ref(), &mut file.as_bytes())?;
//! assert_eq!(sessions[0].id(), "hello");
//! assert_eq!(sessions[0].calls(), [1]);
//! # Ok::<(), proctor::session::import::ImportError>(())
//! ```

use std::io::BufRead;
use std::path::Path;

use super::import::lines::{Lines, Strictness, strip_bom};
use super::import::{ImportError, Importer};
use super::{Session, SessionParts};

mod lines;

pub use lines::write;

/// The value of `format` in the header.
pub const FORMAT: &str = "proctor-session";

/// The version this build writes, and the latest it reads.
///
/// - 1: the first.
pub const VERSION: u64 = 1;

/// Reads the native format.
#[derive(Debug, Clone, Copy)]
pub struct Native;

impl Importer for Native {
    fn format(&self) -> &'static str {
        "native"
    }

    fn detect(&self, head: &[u8]) -> bool {
        // The header may be longer than the head: tool definitions are large.
        let text = String::from_utf8_lossy(strip_bom(head));
        let line = text.trim_start().lines().next().unwrap_or_default();
        let Some((_, after)) = line.split_once("\"format\"") else {
            return false;
        };
        let value = after.trim_start().strip_prefix(':').unwrap_or_default();
        line.starts_with('{') && value.trim_start().starts_with("\"proctor-session\"")
    }

    fn import(&self, path: &Path, file: &mut dyn BufRead) -> Result<Vec<Session>, ImportError> {
        let mut input = Lines::new(path, file, Strictness::Strict);
        let mut parts: Option<SessionParts> = None;
        while let Some(line) = input.next()? {
            match &mut parts {
                None => parts = Some(lines::header(&line)?),
                Some(parts) => lines::entry(&line, parts)?,
            }
        }
        let Some(parts) = parts else {
            return Err(ImportError::Empty {
                path: path.to_owned(),
            });
        };
        let session = Session::new(parts).map_err(|source| ImportError::Session {
            path: path.to_owned(),
            source,
        })?;
        Ok(vec![session])
    }
}

/// A JSON Schema (draft 2020-12) of one line of a session file.
pub fn schema() -> serde_json::Value {
    serde_json::from_str(include_str!("../../docs/session.schema.json")).unwrap_or_default()
}
