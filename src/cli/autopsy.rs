//! `proctor autopsy`: what the compactions of a session lost, what was needed of it later, and what that cost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::decisions::Proposer;
use super::inputs::Inputs;
use super::models::{JudgeOptions, at_least_one};
use super::{
    CliFacts, Exit, Result, find_sessions, outputs, print, print_json, prose, sessions, stop_with,
    template, terminal, write_output,
};
use crate::autopsy::{Autopsy, Totals, follows_decisions, with_sub_agents};
use crate::probe::Probe;
use crate::report::display::many;
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
    #[arg(short = 'n', long, value_name = "N", default_value_t = 16, value_parser = at_least_one)]
    limit: usize,
    /// Price file that takes precedence over the built-in ones
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Ask a model for the decisions of each session, and say what its compactions made of them: `openai:gpt-5.4-mini`
    #[arg(long, value_name = "KIND:MODEL", help_heading = "Models")]
    graded: Option<String>,
    /// File that keeps the model's replies
    #[arg(long, value_name = "FILE", help_heading = "Models")]
    #[arg(default_value = "autopsy.cassette.jsonl")]
    cassette: PathBuf,
    #[command(flatten, next_help_heading = "Models")]
    models: JudgeOptions,
    /// Write a file: `.md`, `.html` or `.json` (repeatable)
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Vec<PathBuf>,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Rows of each table that a screen shows where there is room.
const MOST_ROWS: usize = 5;

pub(super) fn run(args: &Args) -> Result<Exit> {
    if let Some(file) = args.output.iter().find(|file| template_of(file).is_none()) {
        let problem = format!("`{}` has no ending that is known", file.display());
        return stop_with(Exit::Usage, problem, "write `.md`, `.html` or `.json`");
    }
    args.output.iter().try_for_each(|file| outputs::check(file))?;
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
    let set = args.prices.iter().map(|file| format!("cache.prices={}", file.display()));
    let inputs = Inputs { session, strategy, set: set.collect(), ..Inputs::default() };
    let plan = find_sessions::plan(inputs.read()?)?;
    let decisions = decided(args, &plan)?;
    let mut all: Vec<Autopsy> = Vec::new();
    let looked = plan.each_session(|planned| {
        let own = decisions.get(&planned.entry.id);
        Autopsy::of(planned, own.map_or(&[], Vec::as_slice))
    });
    for looked in looked {
        match looked.map(|found| found.map_err(|error| error.to_string())) {
            Ok(Ok(found)) => all.push(found),
            Ok(Err(why)) | Err(why) => say!("not looked at: {why}"),
        }
    }
    all.retain(|found| args.is_meant(&found.session, found.main.as_ref()));
    let all = with_sub_agents(all);
    if all.is_empty() {
        let hint = "`proctor autopsy --json` without `--id` names all";
        return stop_with(Exit::NothingSelected, "there is no such session", hint);
    }
    let mut facts = json!({ "total": Totals::of(&all), "sessions": &all });
    for file in &args.output {
        let bytes = match template_of(file) {
            Some(page) if !page.is_empty() => {
                filled(&[page, include_str!("text/autopsy_page.txt")], &facts)?
            }
            _ => {
                let facts = CliFacts::new("proctor-autopsy", &facts);
                escape::json(&serde_json::to_string_pretty(&facts)?)
            }
        };
        write_output(file, bytes.as_bytes())?;
    }
    if args.json {
        return print_json(&CliFacts::new("proctor-autopsy", facts));
    }
    facts["columns"] = json!(terminal().columns());
    facts["again"] = json!(again(args, &all[0]));
    let mut text = String::new();
    // Fewer rows where there is no room for more.
    for few in (0..=MOST_ROWS).rev() {
        facts["few"] = json!(few);
        text = filled(&[include_str!("text/autopsy.txt")], &facts)?;
        // A command is copied as one line.
        let command = text.split_off(text.rfind("\nNext ").map_or(text.len(), |at| at + 1));
        text = prose::folded(&text, 0) + &command;
        if text.lines().count() <= LINES {
            break;
        }
    }
    print(&text)
}

impl Args {
    /// Whether a session is one that was asked for, or a sub-agent of one.
    fn is_meant(&self, session: &str, main: Option<&String>) -> bool {
        let id = self.id.as_deref();
        id.is_none_or(|id| id == session || main.is_some_and(|main| main == id))
    }
}

/// The decisions that `--graded` asks for, by session; only those whose fate can be followed through a compaction are asked for.
fn decided(args: &Args, plan: &Plan) -> Result<BTreeMap<String, Vec<Probe>>> {
    let Some(model) = &args.graded else {
        return Ok(BTreeMap::new());
    };
    let looked = plan.each_session(|planned| {
        let entry = planned.entry;
        let meant = args.is_meant(&entry.id, entry.cluster.as_ref());
        let session = planned.prepared.session();
        meant.then(|| (entry.id.clone(), session.clone()))
    });
    let meant = looked.into_iter().flatten().flatten();
    let (mut ids, mut asked, mut calm) = (Vec::new(), Vec::new(), 0);
    for (id, session) in meant {
        if follows_decisions(&session) {
            ids.push(id);
            asked.push(session);
        } else if session.compactions().is_empty() {
            calm += 1;
        } else {
            let id = escape::plain(&id);
            say!("not asked for decisions: `{id}`, whose compactions cannot be followed");
        }
    }
    if calm > 0 {
        let count = many(calm, "session", "sessions");
        say!("not asked for decisions: {count} without a compaction");
    }
    let proposer =
        Proposer { flag: "--graded", model, cassette: &args.cassette, options: &args.models };
    let mut found = BTreeMap::new();
    for (id, decided) in ids.into_iter().zip(proposer.decided(&asked)?) {
        match decided {
            Ok(decisions) => {
                found.insert(id, decisions);
            }
            Err(why) => say!("no decisions of `{id}`: {why}"),
        }
    }
    Ok(found)
}

/// The text of these templates, without what would give a terminal orders.
fn filled(templates: &[&str], facts: &Value) -> Result<String> {
    let words = include_str!("text/autopsy_words.txt");
    let text = template::fill(&format!("{words}{}", templates.concat()), facts)?;
    let lines = text.lines().map(|line| escape::plain(line) + "\n");
    Ok(lines.collect())
}

/// The arguments that show one of several sessions by itself: its file, or where its sub-agents have files of their own, all
/// that was looked at.
fn again(args: &Args, session: &Autopsy) -> String {
    let one_file = (session.sub_agents.iter()).all(|agent| agent.file == session.file);
    let places = match &args.named[..] {
        _ if one_file => escape::shell(&session.file),
        [] => format!("-n {}", args.limit),
        named => {
            let words = named.iter().map(|path| escape::shell(&path.display().to_string()));
            words.collect::<Vec<_>>().join(" ")
        }
    };
    format!("{places} --id {}", session.session)
}

/// The words of a page with this ending; none of JSON.
fn template_of(file: &Path) -> Option<&'static str> {
    match file.extension()?.to_str()? {
        "md" => Some(include_str!("text/autopsy_md.txt")),
        "html" => Some(include_str!("text/autopsy_html.txt")),
        "json" => Some(""),
        _ => None,
    }
}
