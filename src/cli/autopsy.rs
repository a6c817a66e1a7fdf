//! `proctor autopsy`: what the compactions of a session lost, what was needed of it later, and what that cost.

use std::path::{Path, PathBuf};

use super::inputs::Inputs;
use super::{Exit, Facts, print, print_json, say, sessions, stop_with, terminal, write_output};
use crate::autopsy::{Autopsy, report, screen, with_sub_agents};
use crate::report::{Kind, escape, markdown};
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
    /// Write a file: `.md`, `.html`, `.json` or `.txt` (repeatable)
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    for file in &args.output {
        if !["md", "html", "json", "txt"].contains(&ending(file)) {
            let problem = format!("`{}` has no ending that is known", file.display());
            return stop_with(
                Exit::Usage,
                problem,
                "write `.md`, `.html`, `.json` or `.txt`",
            );
        }
    }
    let mut session = args.named.clone();
    if session.is_empty() {
        session = sessions::newest(args.limit);
    }
    if session.is_empty() {
        let hint = "name a recording or a folder: `proctor autopsy FOLDER`";
        return stop_with(
            Exit::NothingSelected,
            "there is no recording where agents keep theirs",
            hint,
        );
    }
    let scenario = Inputs {
        session,
        strategy: vec!["recorded".to_owned()],
        prices: args.prices.clone(),
        ..Inputs::default()
    };
    let plan = Plan::new(scenario.read()?)?;
    super::find_sessions::say_passed_over(&plan);
    let (mut all, mut failures): (Vec<Autopsy>, Vec<String>) = (Vec::new(), Vec::new());
    for looked in plan.each_session(Autopsy::of) {
        match looked.map(|found| found.map_err(|error| error.to_string())) {
            Ok(Ok(found)) => all.push(found),
            Ok(Err(why)) | Err(why) => failures.push(why),
        }
    }
    all = with_sub_agents(all);
    if let Some(id) = &args.id {
        all = all
            .into_iter()
            .flat_map(split)
            .filter(|found| found.session == *id)
            .collect();
    }
    if all.is_empty() {
        let why = failures.first().cloned();
        let problem = why.unwrap_or_else(|| "there is no such session".to_owned());
        return stop_with(
            Exit::NothingSelected,
            problem,
            "`proctor autopsy` without `--id` names them",
        );
    }
    let found = report(&all, &failures);
    for file in &args.output {
        write_output(file, &bytes(file, &found, &all)?)?;
    }
    if args.json {
        print_json(&facts(&all))?;
    } else {
        print(&screen(&found, terminal()))?;
    }
    for why in &failures {
        say(&format!("not looked at: {}", escape::plain(why)));
    }
    Ok(Exit::Done)
}

/// A session, and those of its sub-agents.
fn split(mut found: Autopsy) -> Vec<Autopsy> {
    let agents = std::mem::take(&mut found.sub_agents);
    std::iter::once(found).chain(agents).collect()
}

fn ending(file: &Path) -> &str {
    file.extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default()
}

fn facts(all: &[Autopsy]) -> Facts<'static, serde_json::Value> {
    Facts::new("proctor-autopsy", serde_json::json!({ "sessions": all }))
}

fn bytes(file: &Path, found: &crate::report::Report, all: &[Autopsy]) -> anyhow::Result<Vec<u8>> {
    Ok(match ending(file) {
        "md" => markdown::render(found).into_bytes(),
        "json" => escape::json(&serde_json::to_string_pretty(&facts(all))?).into_bytes(),
        "txt" => crate::report::terminal::Terminal::plain(100)
            .render(found)
            .into_bytes(),
        _ => super::report::format_of(Kind::Run, file)?
            .render(found)?
            .into_iter()
            .flat_map(|it| it.bytes)
            .collect(),
    })
}
