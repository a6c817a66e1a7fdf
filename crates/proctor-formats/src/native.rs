//! Proctor's own session format: one JSON object per line, `*.session.jsonl`.
//!
//! The first line is the header, every other line a message, in order. A compaction that the
//! recorded product made is a line of its own, before the message it preceded. Writing, reading and
//! writing again gives the same bytes: JSON that came from elsewhere (tool arguments, tool
//! definitions, image sources, unknown blocks) is embedded as it was written. Where such JSON holds
//! a line break, it is a string under the same key with `_text` added. [`schema`] says the same as
//! a JSON Schema.
//!
//! ```
//! use proctor_formats as import;
//!
//! let file = r#"{"format":"proctor-session","version":1,"id":"hello"}
//! {"role":"user","content":[{"type":"text","text":"Say hello."}],"tags":["typed_user"]}
//! {"role":"assistant","content":[{"type":"text","text":"Hello."}],"api_call":"call-1"}
//! "#;
//! let native = import::importer("native").expect("a known format");
//! let sessions = native.import("hello.session.jsonl".as_ref(), &mut file.as_bytes())?;
//! assert_eq!(sessions[0].id(), "hello");
//! assert_eq!(sessions[0].calls(), [1]);
//! # Ok::<(), proctor_formats::ImportError>(())
//! ```

use super::prelude::*;
use std::io::{BufRead as _, BufReader, Read};

mod lines;

pub use lines::write;

/// The value of `format` in the header.
pub const FORMAT: &str = "proctor-session";

/// The version this build writes, and the latest it reads.
///
/// - 1: the first.
pub const VERSION: u64 = 1;

/// The shape of the first line.
const SHAPE: &str = "format=proctor-session";

/// Reads the native format.
pub(super) const IMPORTER: Importer = Importer::of_file("native", Detect::First(SHAPE), import);

fn import(file: SourceFile) -> Result<Vec<Recording>> {
    let text = file.strict_text()?;
    let mut lines = text.own_lines();
    let first = lines.next().ok_or_else(|| ImportError::Empty(text.path.clone()))?;
    let mut parts = lines::header(&first?)?;
    for line in lines {
        lines::entry(&line?, &mut parts)?;
    }
    Ok(vec![checked(parts, &text.path)?.into()])
}

/// A JSON Schema (draft 2020-12) of one line of a session file.
pub fn schema() -> serde_json::Value {
    serde_json::from_str(include_str!("native/session.schema.json")).unwrap_or_default()
}

/// The name of a session's file without `.session.jsonl`, compressed or not; none if it is named otherwise.
pub fn stem(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy();
    let plain = [".zst", ".gz"].iter().find_map(|ending| name.strip_suffix(ending));
    Some(plain.unwrap_or(&name).strip_suffix(".session.jsonl")?.to_owned())
}

/// The id of the session in a file, by its first line alone.
pub fn id_in(path: &Path) -> Option<String> {
    let mut first = String::new();
    let file = compressed::open(path).ok()?;
    // A compressed file may unpack to any length.
    BufReader::new(file.take(crate::MAX_FILE)).read_line(&mut first).ok()?;
    let header: serde_json::Value = serde_json::from_str(&first).ok()?;
    Some(header.get("id")?.as_str()?.to_owned())
}
