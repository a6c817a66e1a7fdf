//! `proctor autopsy`: what the compactions of a session lost, what was needed of it later, and what that cost.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::inputs::Inputs;
use super::{
    Exit, Facts, find_sessions, print, print_json, prose, say, sessions, stop_with, template,
    terminal, write_output,
};
use crate::autopsy::{Autopsy, Totals, with_sub_agents};
use crate::report::escape;
use crate::report::screen::LINES;
use crate::runner::Plan;

/// Arguments of `proctor autopsy`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Recordings, and folders of recordings; without any, the newest that agents left on this machine
    #[arg(value_name = "SESSION|FOLDER")]
    named: Vec<PathBuf>,
    /// Session to look at, if there are several
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Look at so many of the newest, where none is named
    #[arg(short = 'n', long, value_name = "N", default_value_t = 16)]
    limit: usize,
    /// Price file that takes precedence over the built-in ones
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Write a file: `.md`, `.html` or `.json` (repeatable)
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Vec<PathBuf>,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Rows of each table that a screen shows where there is room.
const MOST_ROWS: usize = 5;

/// The words that all texts have in common.
const WORDS: &str = include_str!("text/autopsy_words.txt");

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    if let Some(file) = args.output.iter().find(|file| template_of(file).is_none()) {
        let problem = format!("`{}` has no ending that is known", file.display());
        return stop_with(Exit::Usage, problem, "write `.md`, `.html` or `.json`");
    }
    let session = match &args.named[..] {
        [] => sessions::newest(args.limit),
        named => named.to_vec(),
    };
    if session.is_empty() {
        let problem = "there is no recording where agents keep theirs";
        let hint = "name a recording or a folder: `proctor autopsy FOLDER`";
        return stop_with(Exit::NothingSelected, problem, hint);
    }
    let strategy = vec!["recorded".to_owned()];
    let prices = args.prices.iter();
    let set = prices.map(|file| format!("cache.prices={}", file.display()));
    let inputs = Inputs {
        session,
        strategy,
        set: set.collect(),
        ..Inputs::default()
    };
    let plan = Plan::new(inputs.read()?)?;
    find_sessions::say_passed_over(&plan);
    let mut all: Vec<Autopsy> = Vec::new();
    for looked in plan.each_session(Autopsy::of) {
        match looked.map(|found| found.map_err(|error| error.to_string())) {
            Ok(Ok(found)) => all.push(found),
            Ok(Err(why)) | Err(why) => say(&format!("not looked at: {}", escape::plain(&why))),
        }
    }
    if let Some(id) = &args.id {
        all.retain(|found| found.session == *id || found.main.as_ref() == Some(id));
    }
    let all = with_sub_agents(all);
    if all.is_empty() {
        let hint = "`proctor autopsy --json` without `--id` names all";
        return stop_with(Exit::NothingSelected, "there is no such session", hint);
    }
    let mut facts = json!({ "total": Totals::of(&all), "sessions": &all });
    for file in &args.output {
        let template = template_of(file).unwrap_or_default();
        let bytes = if template.is_empty() {
            let facts = Facts::new("proctor-autopsy", &facts);
            escape::json(&serde_json::to_string_pretty(&facts)?).into_bytes()
        } else {
            let text = template::fill(&format!("{WORDS}{template}"), &facts)?;
            let lines = text.lines().map(|line| escape::plain(line) + "\n");
            lines.collect::<String>().into_bytes()
        };
        write_output(file, &bytes)?;
    }
    if args.json {
        print_json(&Facts::new("proctor-autopsy", facts))?;
        return Ok(Exit::Done);
    }
    let template = concat!(
        include_str!("text/autopsy_words.txt"),
        include_str!("text/autopsy.txt")
    );
    facts["columns"] = json!(terminal().columns());
    facts["again"] = json!(again(args, &all[0]));
    let mut text = String::new();
    // Fewer rows where there is no room for more.
    for few in (0..=MOST_ROWS).rev() {
        facts["few"] = json!(few);
        let lines = template::fill(template, &facts)?;
        let lines = lines.lines().map(|line| escape::plain(line) + "\n");
        text = prose::folded(&lines.collect::<String>(), 0);
        if text.lines().count() <= LINES {
            break;
        }
    }
    print(&text)?;
    Ok(Exit::Done)
}

/// The arguments that show one of several sessions by itself: its file, or where its sub-agents have files of their own, all
/// that was looked at.
fn again(args: &Args, session: &Autopsy) -> String {
    let is_one_file = (session.sub_agents.iter()).all(|agent| agent.file == session.file);
    let places = match &args.named[..] {
        _ if is_one_file => escape::shell(&session.file),
        [] => format!("-n {}", args.limit),
        named => {
            let named = named
                .iter()
                .map(|path| escape::shell(&path.display().to_string()));
            named.collect::<Vec<_>>().join(" ")
        }
    };
    format!("{places} --id {}", session.session)
}

/// The template of a file with this ending; an empty one of JSON.
fn template_of(file: &Path) -> Option<&'static str> {
    match file.extension()?.to_str()? {
        "md" => Some(include_str!("text/autopsy.md")),
        "html" => Some(include_str!("text/autopsy.html")),
        "json" => Some(""),
        _ => None,
    }
}
