//! `proctor generate --describe`: what families and recordings are like, side by side.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Args, make};
use crate::cli::columns::grouped;
use crate::cli::{Exit, Facts, Format, chain, print, print_json, say, stop_with, walk};
use crate::report::escape::{plain, short};
use crate::session::import::{self, ImportError};
use crate::session::session_profile::{self, Profiler, SessionProfile, Spread};
use crate::session::synthetic::FAMILIES;
use crate::tokens::{CountedTexts, O200k};

/// Sessions that are made of each family where `--count` does not say.
const COUNT: u64 = 4;

/// Columns of a name.
const NAME: usize = 22;

/// The sign of what was not measured.
const DASH: &str = "–";

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let names: Vec<String> = if args.targets.is_empty() {
        let families = FAMILIES.iter();
        families.map(|family| family.name.to_owned()).collect()
    } else {
        args.targets.clone()
    };
    let mut rows = Vec::new();
    let mut worst = Exit::Done;
    // Recordings that are named take the place of the known ones as a comparison.
    let mut recorded = session_profile::recorded()?;
    for name in names {
        let path = Path::new(&name);
        let profile = if FAMILIES.iter().any(|family| family.name == name) {
            of_family(args, &name)?
        } else if path.exists() {
            recorded.clear();
            of_recordings(path, &mut worst)
        } else {
            let problem = format!("`{name}` is no family, and no file or folder");
            let hint = "`proctor generate list` names them";
            return stop_with(Exit::Usage, problem, hint);
        };
        rows.push((name, profile));
    }
    if args.json || args.format == Format::Json {
        let row = |(name, profile): &(String, SessionProfile)| {
            let mut value = serde_json::to_value(profile)?;
            value["name"] = json!(name);
            anyhow::Ok(value)
        };
        let rows = rows
            .iter()
            .map(row)
            .collect::<anyhow::Result<Vec<Value>>>()?;
        let facts = json!({ "counter": "o200k", "rows": rows, "recorded": recorded });
        print_json(&Facts::new("proctor-habits", facts))?;
    } else {
        print(&tables(&rows, &recorded))?;
    }
    Ok(worst)
}

fn of_family(args: &Args, family: &str) -> anyhow::Result<SessionProfile> {
    let mut profiler = Profiler::default();
    for n in 0..args.count.unwrap_or(COUNT) {
        let (made, counts) = make(&args.recipe(family, n))?;
        profiler.add(&made.session, &counts);
    }
    Ok(profiler.profile())
}

/// All recordings of a file or folder. Says what cannot be read, and goes on.
fn of_recordings(path: &Path, worst: &mut Exit) -> SessionProfile {
    let mut profiler = Profiler::default();
    for input in walk::inputs(&[path.to_owned()]) {
        // Each file by itself: no text is kept for longer than that.
        let counts = CountedTexts::new(Arc::new(O200k));
        let sessions = input.and_then(|input| Ok(import::load(&input.path)?));
        let error = match sessions {
            Ok(sessions) => {
                let sessions = sessions.iter();
                sessions.for_each(|session| profiler.add(session, &counts));
                continue;
            }
            Err(error) => error,
        };
        let cause = error.downcast_ref();
        if cause.is_some_and(ImportError::is_no_recording) && path.is_dir() {
            say(&format!("passed over: {}", plain(&error.to_string())));
        } else {
            say(&format!("error: {}", chain(&error)));
            *worst = Exit::Invalid;
        }
    }
    profiler.profile()
}

/// A column: both lines of its heading, its width, and its cell.
type Column = (
    &'static str,
    &'static str,
    usize,
    fn(&SessionProfile) -> String,
);

const RESULTS: &[Column] = &[
    ("", "sessions", 8, |it| it.sessions.to_string()),
    ("tool", "results", 8, |it| it.results.to_string()),
    ("", "p10", 7, |it| bytes(it, |bytes| bytes.p10)),
    ("", "p50", 7, |it| bytes(it, |bytes| bytes.p50)),
    ("", "p90", 7, |it| bytes(it, |bytes| bytes.p90)),
    ("", "p99", 7, |it| bytes(it, |bytes| bytes.p99)),
    ("", "max", 7, |it| bytes(it, |bytes| bytes.max)),
];

const CALLS: &[Column] = &[
    ("calls/", "request", 8, |it| {
        let calls = it.calls_per_request.map(|calls| format!("{calls:.1}"));
        calls.unwrap_or(DASH.to_owned())
    }),
    ("tokens", "seen", 6, |it| percent(it.observation_share)),
    ("reads", "again", 6, |it| percent(it.reread_share)),
    ("calls in", "parallel", 8, |it| percent(it.parallel_share)),
    ("", "p50", 5, |it| seconds(it, |gap| gap.p50)),
    ("", "p95", 6, |it| seconds(it, |gap| gap.p95)),
    ("", "> 5m", 5, |it| percent(it.gaps_over_5_minutes)),
    ("", "> 1h", 5, |it| percent(it.gaps_over_1_hour)),
];

/// Two tables of at most 80 columns, recordings below what is described.
fn tables(
    rows: &[(String, SessionProfile)],
    recorded: &BTreeMap<String, SessionProfile>,
) -> String {
    let table = |columns: &[Column], own: usize, group: &str| {
        let line = |name: &str, columns: &[Column], cell: &dyn Fn(&Column) -> String| {
            let cells = columns.iter().map(|it| format!(" {:>1$}", cell(it), it.2));
            format!("{name:NAME$}{}", cells.collect::<String>())
        };
        let upper = line("", &columns[..own], &|column| column.0.to_owned());
        let lower = line("", columns, &|column| column.1.to_owned());
        let row = |(name, profile): (&String, &SessionProfile)| {
            line(&shown(name), columns, &|column| (column.3)(profile)) + "\n"
        };
        let described: String = rows
            .iter()
            .map(|(name, profile)| row((name, profile)))
            .collect();
        let known: String = recorded.iter().map(row).collect();
        let rule = match known.as_str() {
            "" => "",
            _ => "recorded sessions, for comparison:\n",
        };
        format!("{upper} | {group}\n{lower}\n{described}{rule}{known}")
    };
    format!(
        "{}\n{}\n\
         tokens seen: share of the messages' tokens that tool results have (o200k)\n\
         reads again: of the reads of files, those of a file that was read before\n\
         calls in parallel: of the calls that use tools, those that use several\n",
        table(RESULTS, 2, "bytes of a tool result"),
        table(CALLS, 4, "from call to call")
    )
}

/// The last part of a path, which says more than its beginning.
fn shown(name: &str) -> String {
    let last = Path::new(name).file_name();
    let last = last.map_or(name.into(), std::ffi::OsStr::to_string_lossy);
    short(&plain(&last), NAME)
}

fn percent(share: Option<f64>) -> String {
    match share {
        None => DASH.to_owned(),
        Some(share) if share > 0.0 && share < 0.095 => format!("{:.1}%", share * 100.0),
        Some(share) => format!("{:.0}%", share * 100.0),
    }
}

fn bytes(profile: &SessionProfile, of: fn(Spread) -> u64) -> String {
    let bytes = profile.result_bytes.map(of);
    bytes.map_or(DASH.to_owned(), grouped)
}

fn seconds(profile: &SessionProfile, of: fn(Spread) -> u64) -> String {
    match profile.gap_seconds.map(of) {
        None => DASH.to_owned(),
        Some(seconds @ 0..120) => format!("{seconds}s"),
        Some(seconds @ 120..7_200) => format!("{}m", seconds / 60),
        Some(seconds) => format!("{}h", seconds / 3_600),
    }
}
