//! `proctor generate --describe`: what families and recordings are like, side by side.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Args, Format};
use crate::cli::{Exit, Stop, chain, print, say};
use crate::report::escape::{self, plain, short};
use crate::session::habits::{self, Counting, Habits, Spread};
use crate::session::import::{self, ImportError};
use crate::session::synthetic::{self, FAMILIES};
use crate::tokens::{CountedTexts, O200k};

/// So many sessions of each family are made where `--count` does not say.
const COUNT: u64 = 4;

/// Columns of a name.
const NAME: usize = 22;

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let names: Vec<String> = if args.targets.is_empty() {
        let families = FAMILIES.iter();
        families.map(|family| family.name.to_owned()).collect()
    } else {
        args.targets.clone()
    };
    let mut rows = Vec::new();
    let mut worst = Exit::Done;
    // Where somebody brings recordings, these are what families are held against.
    let mut recorded = habits::recorded()?;
    for name in names {
        let is_family = FAMILIES.iter().any(|family| family.name == name);
        let path = Path::new(&name);
        if !is_family && !path.exists() {
            let stop = Stop::new(
                Exit::Usage,
                format!("`{name}` is no family, and no file or folder"),
            );
            return Err(stop.with_hint("`proctor generate list` names them").into());
        }
        let habits = if is_family {
            of_family(args, &name)?
        } else {
            recorded.clear();
            of_recordings(path, &mut worst)
        };
        rows.push((name, habits));
    }
    let text = match (args.format, args.json) {
        (Format::Text, false) => table(&rows, &recorded),
        (Format::Json, _) | (Format::Text, true) => {
            let rows = rows.iter().map(|(name, habits)| row(name, habits));
            let rows: Result<Vec<Value>, _> = rows.collect();
            let object = json!({
                "format": "proctor-habits",
                "version": 1,
                "counter": O200K,
                "rows": rows?,
                "recorded": recorded,
            });
            escape::json(&serde_json::to_string_pretty(&object)?) + "\n"
        }
    };
    print(&text)?;
    Ok(worst)
}

const O200K: &str = "o200k";

fn row(name: &str, habits: &Habits) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(habits)?;
    value["name"] = json!(name);
    Ok(value)
}

fn of_family(args: &Args, family: &str) -> anyhow::Result<Habits> {
    let mut counting = Counting::default();
    for n in 0..args.count.unwrap_or(COUNT) {
        let counts = CountedTexts::new(Arc::new(O200k));
        let recipe = args.recipe(family, n);
        let made = synthetic::generate(&recipe, &counts)
            .map_err(|error| Stop::new(Exit::Usage, error.to_string()))?;
        counting.add(&made.session, &counts);
    }
    Ok(counting.habits())
}

/// All recordings of a file or folder. What cannot be read is told, and the others go on.
fn of_recordings(path: &Path, worst: &mut Exit) -> Habits {
    let mut counting = Counting::default();
    let mut files = Vec::new();
    if let Err(error) = files_below(path, &mut files) {
        say(&format!(
            "error: {}",
            plain(&format!("cannot read `{}`: {error}", path.display()))
        ));
        *worst = Exit::Invalid;
    }
    for file in files {
        // Each file by itself: no text is kept for longer than that.
        let counts = CountedTexts::new(Arc::new(O200k));
        match import::load(&file) {
            Ok(sessions) => sessions
                .iter()
                .for_each(|session| counting.add(session, &counts)),
            Err(
                error @ (ImportError::NotJson { .. }
                | ImportError::Empty { .. }
                | ImportError::NoConversation { .. }
                | ImportError::NoMessages { .. }
                | ImportError::UnknownFormat { .. }),
            ) if file != path => say(&format!("passed over: {}", plain(&error.to_string()))),
            Err(error) => {
                say(&format!("error: {}", chain(&error.into())));
                *worst = Exit::Invalid;
            }
        }
    }
    counting.habits()
}

/// The file, or those below the folder, in the order of their paths; what is hidden stays so.
fn files_below(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let mut entries = std::fs::read_dir(path)?.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        let is_link = entry.file_type()?.is_symlink() && entry.path().is_dir();
        if !is_hidden && !is_link {
            files_below(&entry.path(), files)?;
        }
    }
    Ok(())
}

/// Two tables of at most 80 columns, recordings below what is described.
fn table(rows: &[(String, Habits)], recorded: &BTreeMap<String, Habits>) -> String {
    let own = rows.iter().map(|(name, habits)| (name, habits));
    let rows: Vec<(&String, &Habits)> = own.chain(recorded).collect();
    let families = rows.len() - recorded.len();
    let rule = |at: usize| {
        if at == families {
            "recorded sessions, for comparison:\n"
        } else {
            ""
        }
    };
    let mut text = format!(
        "{:NAME$} {:>8} {:>8} | bytes of a tool result\n{:NAME$} {:>8} {:>8} {:>7} {:>7} {:>7} {:>7} {:>7}\n",
        "", "", "tool", "", "sessions", "results", "p10", "p50", "p90", "p99", "max"
    );
    for (at, (name, habits)) in rows.iter().enumerate() {
        let _ = write!(
            text,
            "{}{:NAME$} {:>8} {:>8}",
            rule(at),
            shown(name),
            habits.sessions,
            habits.results
        );
        let of = |get: fn(&Spread) -> u64| habits.result_bytes.as_ref().map(get);
        for value in [
            of(|it| it.p10),
            of(|it| it.p50),
            of(|it| it.p90),
            of(|it| it.p99),
            of(|it| it.max),
        ] {
            let _ = write!(text, " {:>7}", value.map_or(DASH.to_owned(), thousands));
        }
        text.push('\n');
    }
    let _ = write!(
        text,
        "\n{:NAME$} {:>8} {:>6} {:>6} {:>8} | from call to call\n{:NAME$} {:>8} {:>6} {:>6} {:>8} {:>5} {:>6} {:>5} {:>5}\n",
        "",
        "calls/",
        "tokens",
        "reads",
        "calls in",
        "",
        "request",
        "seen",
        "again",
        "parallel",
        "p50",
        "p95",
        "> 5m",
        "> 1h"
    );
    for (at, (name, habits)) in rows.iter().enumerate() {
        let gap = habits.gap_seconds;
        let _ = writeln!(
            text,
            "{}{:NAME$} {:>8} {:>6} {:>6} {:>8} {:>5} {:>6} {:>5} {:>5}",
            rule(at),
            shown(name),
            habits
                .calls_per_request
                .map_or(DASH.to_owned(), |it| format!("{it:.1}")),
            percent(habits.observation_share),
            percent(habits.reread_share),
            percent(habits.parallel_share),
            gap.map_or(DASH.to_owned(), |it| seconds(it.p50)),
            gap.map_or(DASH.to_owned(), |it| seconds(it.p95)),
            percent(habits.gaps_over_5_minutes),
            percent(habits.gaps_over_1_hour),
        );
    }
    text.push_str(
        "\ntokens seen: share of the messages' tokens that tool results have (o200k)\n\
         reads again: of the reads of files, those of a file that was read before\n\
         calls in parallel: of the calls that use tools, those that use several\n",
    );
    text
}

const DASH: &str = "–";

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

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn seconds(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200.. => format!("{}h", seconds / 3_600),
    }
}
