//! `proctor sessions import --list`: what recordings are there, without reading them.

use rayon::prelude::*;
use serde_json::{Value, json};

use crate::cli::find_sessions::Input;
use crate::cli::sessions::recorded_in_utc;
use crate::cli::{Exit, Result, prose, say_error, show, template};
use crate::report::display::many;
use crate::report::escape::plain;
use crate::session::import::file_info::{FileInfo, file_info};

/// Prints a line for each recording, in the order of the paths, and holds none of them for it.
pub(super) fn list(inputs: Vec<Input>, as_json: bool) -> Result<Exit> {
    let parallel = inputs.into_par_iter();
    let looked: Vec<_> = parallel.map(|input| (file_info(&input.path), input)).collect();
    let mut worst = Exit::Done;
    let (mut passed_over, mut rows) = (0, Vec::new());
    for (info, input) in looked {
        match info {
            Ok(info) => {
                let facts = row(&input, &info);
                if !as_json {
                    prose::say(&plain(&template::fill(LINE, &facts)?))?;
                }
                rows.push(facts);
            }
            Err(error) if !input.is_named && error.is_no_recording() => passed_over += 1,
            Err(error) => worst = say_error(&error.into()),
        }
    }
    let empty = rows.is_empty();
    if as_json {
        let facts = json!({ "recordings": rows, "passed_over": passed_over });
        show(true, "proctor-recordings", facts, "")?;
    }
    if passed_over > 0 {
        let files = many(passed_over, "file", "files");
        say!("passed over: {files} of no known format");
    }
    Ok(super::or_nothing(worst, empty))
}

/// The line of one recording.
const LINE: &str =
    r#"{{ file }}: {{ format }}, {{ bytes }} bytes, {{ first or "–" }} to {{ last or "–" }}"#;

fn row(input: &Input, info: &FileInfo) -> Value {
    json!({
        "file": input.path.display().to_string(),
        "format": info.format,
        "bytes": info.bytes,
        "first": info.first.and_then(recorded_in_utc),
        "last": info.last.and_then(recorded_in_utc),
    })
}
