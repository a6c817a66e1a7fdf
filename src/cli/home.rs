//! Servers on this machine: found, asked what they are, and timed; what was measured is kept beside the runs, so
//! that the same command chooses the same size.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::{CliError, Exit, Result, listed, models, stop_with};
use crate::model::http::Engine;
use crate::model::http::home::PORTS;
use crate::model::timing::ServerTiming;
use crate::record::journal::read_manifest;
use crate::runner::time_server;
use crate::scenario::{LiveSetting, Scenario};
use crate::tokens::{TokenCounter, counter};
use crate::units::Tokens;

/// The file beside the folders of runs that holds what servers on this machine said and how fast they were.
const FILE: &str = "servers.json";

const HOW_TO_GET_ONE: &str = "start one, then run the same command:
    ollama run MODEL, with OLLAMA_CONTEXT_LENGTH=16384 set for `ollama serve`
    llama-server -m MODEL.gguf -c 16384 (llama.cpp)
    vllm serve MODEL
    lms server start (LM Studio)
  or name it: `--graded openai:NAME@http://127.0.0.1:PORT/v1`";

/// Finds a server on this machine, and names its model as `--graded` takes it.
pub(super) fn found(is_offline: bool) -> Result<String> {
    if is_offline {
        let problem = "`--graded local` looks for a server, and `--offline` opens no socket";
        let hint = "name the model whose answers are recorded: `--graded openai:NAME@http://127.0.0.1:PORT/v1`";
        return stop_with(Exit::Usage, problem, hint);
    }
    let engine = Engine::start()?;
    let urls = PORTS.map(|port| format!("http://127.0.0.1:{port}/v1"));
    let answers = urls.into_iter().filter_map(|url| {
        let facts = engine.facts(&url, None)?;
        // A name that `--graded` cannot take needs an alias.
        let mut names = facts.models.into_iter();
        Some((url, names.find(|name| !name.contains([' ', '\\', '@']))?))
    });
    let answers: Vec<String> =
        answers.map(|(url, model)| format!("openai:{model}@{url}")).collect();
    let Some((first, others)) = answers.split_first() else {
        let ports = listed(PORTS);
        let problem = format!("no server with a model answers on this machine (ports {ports})");
        return stop_with(Exit::NothingSelected, problem, HOW_TO_GET_ONE);
    };
    say!("found a server on this machine: `--graded {first}`");
    for other in others {
        say!("note: another one is `--graded {other}`");
    }
    Ok(first.clone())
}

/// The known servers on this machine.
#[derive(Debug)]
pub(super) struct Homes {
    path: PathBuf,
    /// By address, model and counter.
    known: BTreeMap<String, KnownHome>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct KnownHome {
    window: Option<Tokens>,
    slots: Option<usize>,
    timing: Option<ServerTiming>,
}

impl Homes {
    /// Reads the file that earlier runs wrote. If it cannot be read, servers are asked again.
    pub(super) fn read(reports: &Path) -> Self {
        let path = reports.join(FILE);
        let text = crate::files::read_to_string(&path).unwrap_or_default();
        let known = serde_json::from_str(&text).unwrap_or_default();
        Self { path, known }
    }

    /// Asks the servers of a scenario what they are, and how fast where that is wanted. One that does not answer
    /// is taken to be as it was.
    pub(super) fn ask(
        mut self,
        scenario: &mut Scenario,
        is_offline: bool,
        is_timed: bool,
    ) -> Result<()> {
        if scenario.models.homes().next().is_none() {
            return Ok(());
        }
        let name = scenario.counter.clone();
        let engine = Engine::start()?;
        let before = self.known.clone();
        let mut asked = BTreeSet::new();
        for live in scenario.models.homes_mut() {
            let url = live.base_url.clone().unwrap_or_default();
            let key = format!("{url} {} {name}", live.dialect.model);
            let known = self.known.entry(key.clone()).or_default();
            if !is_offline && asked.insert(key) {
                if is_timed
                    && known.timing.is_none()
                    && let Some(counter) = counter(&name)
                {
                    known.timing = Some(timed(live, &url, &*counter)?);
                }
                // It may have loaded the model only now.
                if let Some(facts) = engine.facts(&url, Some(&live.dialect.model)) {
                    // One that has not loaded the model does not know them.
                    known.window = facts.window.or(known.window);
                    known.slots = facts.slots.or(known.slots);
                }
            }
            settle(live, *known);
        }
        if self.known != before {
            self.write();
        }
        Ok(())
    }

    /// Without the file servers are only asked again.
    fn write(&self) {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let text = serde_json::to_string_pretty(&self.known).unwrap_or_default();
        let written = std::fs::create_dir_all(folder);
        if let Err(error) = written.and_then(|()| std::fs::write(&self.path, text)) {
            let path = self.path.display();
            say!("note: `{path}` was not written: {error}");
        }
    }
}

fn timed(live: &LiveSetting, url: &str, counter: &dyn TokenCounter) -> Result<ServerTiming> {
    let model = &live.dialect.model;
    say!("timing {model} at {url}");
    let count = |text: &str| counter.count(text);
    let timing = time_server(live, &models::asking(), &nonce(), &count)?.map_err(|failure| {
        let problem = format!("`{model}` at {url} was to be timed: {failure}");
        CliError::new(Exit::NothingSelected, problem).with_hint(HOW_TO_GET_ONE)
    })?;
    let longest = timing.longest.unwrap_or_default();
    say!(
        "{:.0} tokens a second read at first, {:.0} behind {longest} tokens, {:.0} written",
        timing.latency.prefill_per_second,
        timing.read_behind(longest),
        timing.latency.decode_per_second
    );
    Ok(timing)
}

/// Takes the servers of a run that goes on as it began with them: which sessions it has, and what its reader is sent,
/// does not depend on how they were started again.
pub(super) fn go_on(scenario: &mut Scenario, folder: &Path) {
    let Ok(begun) = read_manifest(folder) else {
        return;
    };
    let mut noted = BTreeSet::new();
    for live in scenario.models.homes_mut() {
        let (Some(home), Some(server)) = (&mut live.home, begun.servers.get(&live.dialect.model))
        else {
            continue;
        };
        if home.window.is_some()
            && home.window != server.tokens
            && noted.insert(live.dialect.model.clone())
        {
            let window = server.tokens.map(|tokens| format!("{tokens} tokens"));
            say!(
                "note: the run in `{}` began with a window of {} ({}), and goes on with it; another `--out` takes \
                 that of its server",
                folder.display(),
                live.dialect.model,
                window.as_deref().unwrap_or("not known")
            );
        }
        (home.window, home.counted) = (server.tokens, server.counted);
    }
}

/// No setting of the scenario gives way.
fn settle(live: &mut LiveSetting, known: KnownHome) {
    let Some(home) = &mut live.home else {
        return;
    };
    if !home.is_told {
        home.slots = known.slots.unwrap_or(home.slots);
    }
    home.counted = known.timing.map_or(1.0, |timing| timing.counted);
    home.window = known.window;
    home.timing = known.timing;
}

/// Words that no server has seen yet.
#[expect(
    clippy::disallowed_methods,
    reason = "a server remembers prompts: only a new one tells how fast it reads"
)]
fn nonce() -> String {
    format!("{:?}", SystemTime::now())
}
