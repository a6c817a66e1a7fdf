//! `proctor sessions generate --describe`: what families and recordings are like, side by side.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Args;
use crate::cli::{Exit, Result, find_sessions, print, say_error, show, stop_with, template};
use crate::report::escape::{plain, short};
use crate::session::import;
use crate::session::session_profile::{self, Profiler, SessionProfile};
use crate::session::synthetic::FAMILIES;
use crate::tokens::{CountedTexts, O200k};

/// Sessions that are made of each family where `--count` does not say.
const COUNT: u64 = 4;

/// Columns of a name.
const NAME: usize = 22;

pub(super) fn run(args: &Args) -> Result<Exit> {
    let mut names = args.targets.clone();
    if names.is_empty() {
        names.extend(FAMILIES.iter().map(|family| family.name.to_owned()));
    }
    let mut rows = Vec::new();
    let mut worst = Exit::Done;
    // Recordings that are named take the place of the known ones as a comparison.
    let mut recorded = session_profile::recorded()?;
    for name in names {
        let path = Path::new(&name);
        let mut profiler = Profiler::default();
        if FAMILIES.iter().any(|family| family.name == name) {
            for made in args.make(&name, args.count.map_or(COUNT, NonZeroU64::get))? {
                let (made, counts) = made?;
                profiler.add(&made.session, &counts);
            }
        } else if path.exists() {
            recorded.clear();
            add_recordings(path, &mut profiler, &mut worst);
        } else {
            let problem = format!("`{name}` is not a family, a file or a folder");
            let hint = "`proctor sessions generate list` names them";
            return stop_with(Exit::Usage, problem, hint);
        }
        rows.push((name, profiler.profile()));
    }
    if args.output.json {
        let rows: Vec<Value> = rows.into_iter().map(row).collect::<Result<_, _>>()?;
        let facts = json!({ "counter": "o200k", "rows": rows, "recorded": recorded });
        show(true, "proctor-habits", facts, "")?;
    } else {
        let described = rows.iter().map(|(name, profile)| (shown(name), profile));
        let facts = json!({ "described": described.collect::<Vec<_>>(), "recorded": recorded });
        let template = include_str!("../../text/habits.txt");
        print(&template::fill(template, facts)?)?;
    }
    Ok(worst)
}

fn row((name, profile): (String, SessionProfile)) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(profile)?;
    value["name"] = json!(name);
    Ok(value)
}

/// Adds all recordings of a file or folder. It reports those that cannot be read, and continues.
fn add_recordings(path: &Path, profiler: &mut Profiler, worst: &mut Exit) {
    for input in find_sessions::inputs(&[path.to_owned()]) {
        // Each file by itself: its texts are freed before the next.
        let counts = CountedTexts::new(Arc::new(O200k));
        match import::load(&input.path) {
            Ok(sessions) => (sessions.iter()).for_each(|session| profiler.add(session, &counts)),
            Err(error) if error.is_no_recording() && path.is_dir() => {
                say!("passed over: {error}");
            }
            Err(error) => *worst = say_error(&error.into()),
        }
    }
}

/// The last part of a path, which says more than its beginning.
fn shown(name: &str) -> String {
    let last = Path::new(name).file_name().map_or(name.into(), std::ffi::OsStr::to_string_lossy);
    short(&plain(&last), NAME)
}
