//! Checksums in JSON that is kept: a flipped bit is an error, and never another number.
//!
//! The last key of an object, `check`, is a hash of the bytes before it. So a file with checksums is still JSON, or
//! JSON lines.

use serde_json::Value;

use crate::units::ContentHash;

/// How the checksum is written: the text before its digits, and that behind them.
pub type Layout = [&'static str; 2];

/// Of an object in one line, without its line feed.
pub const LINE: Layout = [",\"check\":\"", "\"}"];
/// Of an object in many lines.
pub const DOCUMENT: Layout = [",\n  \"check\": \"", "\"\n}\n"];

/// Enough that one damaged text in four billion is taken for whole, however many bits of it are flipped.
const DIGITS: usize = 8;

/// Why an object is not what was written.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// It was edited, or another program wrote it.
    #[error("it has no checksum")]
    NoChecksum,
    /// Its bytes are others, or its checksum is.
    #[error("its checksum does not match")]
    WrongChecksum,
    /// It is what was written, and says something else than this build reads.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Adds its checksum to an object that has some keys.
pub fn sign(json: &mut String, layout: Layout) {
    json.truncate(json.trim_end().len());
    json.pop();
    json.truncate(json.trim_end().len());
    json.push_str(&end(ContentHash::of(&json), layout));
}

/// The end of an object whose bytes before it have this hash: its checksum, and its closing brace.
pub fn end(hash: ContentHash, [before, behind]: Layout) -> String {
    [before, &hash.hex(DIGITS), behind].concat()
}

/// The object of a document, and whether it has a checksum: a caller that knows what else the file may be refuses
/// it without one.
pub fn document(mut json: Vec<u8>) -> Result<(Value, bool), Damage> {
    let signed = match verify(&mut json, DOCUMENT) {
        Err(Damage::NoChecksum) => false,
        verified => verified.map(|()| true)?,
    };
    Ok((serde_json::from_slice(&json)?, signed))
}

/// Takes its checksum away from an object, and compares it.
pub fn verify(json: &mut Vec<u8>, [before, behind]: Layout) -> Result<(), Damage> {
    let split = json.strip_suffix(behind.as_bytes()).and_then(<[u8]>::split_last_chunk::<DIGITS>);
    let parts = split.map(|(text, digits)| (text.strip_suffix(before.as_bytes()), digits));
    let Some((Some(text), digits)) = parts else {
        return Err(Damage::NoChecksum);
    };
    if ContentHash::of(text).hex(DIGITS).as_bytes() != digits {
        return Err(Damage::WrongChecksum);
    }
    json.truncate(text.len());
    json.push(b'}');
    Ok(())
}
