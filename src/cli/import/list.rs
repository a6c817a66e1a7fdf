//! `proctor import --list`: what recordings are there, without reading them.

use rayon::prelude::*;

use super::Input;
use crate::cli::{Exit, chain, explain, print, say};
use crate::report::escape::plain;
use crate::session::import::ImportError;
use crate::session::import::glance::{Glance, glance};
use crate::units::Timestamp;

/// Prints a line for each recording, in the order of the paths.
pub(super) fn list(inputs: Vec<anyhow::Result<Input>>) -> anyhow::Result<Exit> {
    let looked: Vec<_> = inputs
        .into_par_iter()
        .map(|input| {
            let input = input?;
            let seen = glance(&input.path);
            Ok((input, seen))
        })
        .collect::<Vec<anyhow::Result<(Input, Result<Glance, ImportError>)>>>();
    let mut worst = Exit::Done;
    let (mut passed, mut shown) = (0, 0);
    for looked in looked {
        let problem: anyhow::Error = match looked {
            Ok((input, Ok(seen))) => {
                shown += 1;
                print(&(plain(&line(&input, &seen)) + "\n"))?;
                continue;
            }
            Ok((input, Err(error))) if !input.is_named && is_something_else(&error) => {
                passed += 1;
                continue;
            }
            Ok((_, Err(error))) => error.into(),
            Err(error) => error,
        };
        let (exit, hint) = explain(&problem);
        say(&format!("error: {}", chain(&problem)));
        if let Some(hint) = hint {
            say(&format!(" hint: {hint}"));
        }
        worst = exit;
    }
    if passed > 0 {
        say(&format!("passed over: {passed} files of no known format"));
    }
    if shown == 0 && worst == Exit::Done {
        say("error: there is no recording in these folders");
        worst = Exit::NothingSelected;
    }
    Ok(worst)
}

fn is_something_else(error: &ImportError) -> bool {
    matches!(
        error,
        ImportError::NotJson { .. }
            | ImportError::Empty { .. }
            | ImportError::UnknownFormat { .. }
            | ImportError::NoDatabase { .. }
            | ImportError::Utf16 { .. }
    )
}

fn line(input: &Input, seen: &Glance) -> String {
    let time = |time: Option<Timestamp>| {
        let time = time.and_then(|time| jiff::Timestamp::from_millisecond(time.0).ok());
        time.map_or_else(|| "–".to_owned(), |time| format!("{time:.0}"))
    };
    format!(
        "{}: {}, {} bytes, {} to {}",
        input.path.display(),
        seen.format,
        seen.bytes,
        time(seen.first),
        time(seen.last)
    )
}
