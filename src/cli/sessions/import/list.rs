//! `proctor sessions import --list`: what recordings are there, without reading them.

use rayon::prelude::*;
use serde_json::{Value, json};

use crate::cli::find_sessions::{Input, is_something_else};
use crate::cli::{Exit, Facts, print_json, prose, say, say_error};
use crate::report::display::many;
use crate::report::escape::plain;
use crate::session::import::file_info::{FileInfo, file_info};
use crate::units::Timestamp;

/// Prints a line for each recording, in the order of the paths, and holds none of them for it.
pub(super) fn list(inputs: Vec<Input>, as_json: bool) -> anyhow::Result<Exit> {
    let looked: Vec<_> = inputs
        .into_par_iter()
        .map(|input| (file_info(&input.path), input))
        .collect();
    let mut worst = Exit::Done;
    let (mut passed, mut shown, mut rows) = (0, 0, Vec::new());
    for looked in looked {
        match looked {
            (Ok(seen), input) => {
                shown += 1;
                if as_json {
                    rows.push(row(&input, &seen));
                } else {
                    prose::say(&(plain(&line(&input, &seen)) + "\n"))?;
                }
            }
            (Err(error), input) if !input.is_named && is_something_else(&error) => passed += 1,
            (Err(error), _) => worst = say_error(&error.into()),
        }
    }
    if as_json {
        let facts = json!({ "recordings": rows, "passed_over": passed });
        print_json(&Facts::new("proctor-recordings", facts))?;
    }
    if passed > 0 {
        say(&format!(
            "passed over: {} of no known format",
            many(passed, "file", "files")
        ));
    }
    if shown == 0 && worst == Exit::Done {
        say(
            "error: there is no recording in these folders\n hint: `proctor sessions` lists those on this machine",
        );
        worst = Exit::NothingSelected;
    }
    Ok(worst)
}

fn time(time: Option<Timestamp>) -> Option<String> {
    let time = jiff::Timestamp::from_millisecond(time?.0).ok()?;
    Some(format!("{time:.0}"))
}

fn row(input: &Input, seen: &FileInfo) -> Value {
    json!({
        "file": input.path.display().to_string(),
        "format": seen.format,
        "bytes": seen.bytes,
        "first": time(seen.first),
        "last": time(seen.last),
    })
}

fn line(input: &Input, seen: &FileInfo) -> String {
    let [first, last] = [seen.first, seen.last].map(|at| time(at).unwrap_or_else(|| "–".into()));
    let (path, format, bytes) = (input.path.display(), &seen.format, seen.bytes);
    format!("{path}: {format}, {bytes} bytes, {first} to {last}")
}
