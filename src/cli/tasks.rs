//! `proctor tasks`: small repositories with work to be done, an agent that does it, and tests that say whether it did.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use serde_json::{Value, json};

use super::inputs::Inputs;
use super::live::{EVENTS, Loop, Passed};
use super::record::{listen, now};
use super::run::stop_on_interrupt;
use super::{CliError, Exit, make_folder, read_text, refuse_existing, say, show, stop, stop_with};
use super::{models, report};
use crate::runner::live_run::TaskOutcome;
use crate::scenario::Scenario;
use crate::session::wire::Provider;
use crate::settings::{Place, SettingError};
use crate::strategy::preset::split_at_commas;
use crate::units::is_valid_id;

mod bench;
mod file;

use bench::{Agent, Bench, Cut, Outcome, Shell, Trial, Upstream};
use file::Task;

/// The name and the text of a task's file.
macro_rules! task {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../scenarios/tasks/", $name, ".toml")),
        )
    };
}

/// The tasks that are compiled in: one file and one line each.
const TASKS: &[(&str, &str)] = &[
    task!("calendar"),
    task!("config-migration"),
    task!("csv-report"),
    task!("dependency-resolver"),
    task!("expression-parser"),
    task!("inventory"),
    task!("journal-store"),
    task!("line-diff"),
    task!("log-analyser"),
    task!("rate-limiter"),
    task!("stack-machine"),
    task!("state-machine"),
    task!("template-engine"),
    task!("text-wrapper"),
];

/// The strategy that changes nothing.
const NONE: &str = "none";

/// Arguments of `proctor tasks`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without `--model`, a scripted model plays the steps of each task. It takes every fact that a step \
                  needs from the prompt it was sent, so a task is solved only if the prompts still hold what it needs. \
                  Nothing but this machine is contacted. Needs `sh` and `python3` (3.9 or later)."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct Args {
    /// Task files, or names of built-in tasks; without any, all built-in tasks
    #[arg(value_name = "TASK")]
    tasks: Vec<String>,
    /// List the tasks, and run nothing
    #[arg(long)]
    list: bool,
    /// Strategies, separated by commas: presets, files of presets, or those of the scenario
    #[arg(
        long,
        alias = "strategy",
        value_name = "NAMES",
        default_value = "none,observation-masking,codex"
    )]
    strategies: Vec<String>,
    /// Context window in tokens
    #[arg(long, value_name = "TOKENS", default_value = "16000")]
    window: String,
    /// Scenario file for the models that write summaries, and for other settings
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Models of the strategies")]
    models: models::ModelOptions,
    /// Runs of each task under each strategy
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    repeats: u16,
    /// Continue from the history of a whole run under `none`, cut after these shares of its calls, in percent
    #[arg(long, value_name = "PERCENTS", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=99))]
    cuts: Vec<u8>,
    /// API that the agent speaks
    #[arg(long, default_value = Provider::default().name(), value_parser = Provider::ALL.map(Provider::name))]
    api: String,
    /// Model to ask, in place of the scripted one
    #[arg(long, value_name = "NAME", requires = "upstream")]
    model: Option<String>,
    /// Base URL of the API that has the model; keys are read from `ANTHROPIC_API_KEY` and `OPENAI_API_KEY`
    #[arg(long, value_name = "URL", requires = "model")]
    upstream: Option<String>,
    /// Agent of your own, a command for `sh`: it finds the API at `ANTHROPIC_BASE_URL` and `OPENAI_BASE_URL`, the file
    /// with its task at `PROCTOR_PROMPT`, and works in the current folder
    #[arg(long, value_name = "COMMAND", requires = "model", conflicts_with_all = ["cuts", "container"])]
    agent_cmd: Option<String>,
    /// Run commands that a model or a task file of yours names on this machine, with your rights
    #[arg(long, conflicts_with = "container")]
    allow_shell: bool,
    /// Run commands in containers of this image, with `docker` and without a network
    #[arg(long, value_name = "IMAGE")]
    container: Option<String>,
    /// Seconds after which an agent is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 3_600)]
    timeout: u64,
    /// Tasks that are run at once
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    /// Folder for `outcomes.jsonl`, one line for each run, the log and the run that is reported
    #[arg(long, value_name = "DIR", default_value = "reports/tasks")]
    out: PathBuf,
    /// Write over the outcomes that are there
    #[arg(short, long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    printed: report::Printed,
    #[command(flatten)]
    output: report::Output,
}

impl Args {
    /// The names of the strategies. Overrides in brackets have commas of their own.
    fn strategies(&self) -> impl Iterator<Item = &str> {
        let typed = self.strategies.iter();
        typed
            .flat_map(|typed| split_at_commas(typed))
            .map(str::trim)
    }
}

/// Set by the first Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);

/// Set when no agent runs any more.
static OVER: AtomicBool = AtomicBool::new(false);

/// How long an agent waits for a strategy at most.
const WAIT: Duration = Duration::from_mins(5);

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let tasks = tasks(&args.tasks)?;
    if args.list {
        let about = tasks
            .iter()
            .map(|it| json!({ "name": it.name, "about": it.about }));
        let facts = json!({ "tasks": about.collect::<Vec<_>>() });
        let template = include_str!("text/task_list.txt");
        return show(args.json, "proctor-task-list", facts, template);
    }
    let scenario = scenario(args)?;
    args.output.check()?;
    let mut bench = bench(args, &tasks)?;
    make_folder(&args.out)?;
    let outcomes = Outcomes::begin(&args.out.join("outcomes.jsonl"), args.force)?;
    // The log of what the outcomes were of.
    drop(std::fs::remove_file(args.out.join(EVENTS)));
    let models = args.models.of_scenario(&scenario, &args.out)?;
    let (held, _) = Loop::open(scenario, &models, WAIT, &args.out)?;
    held.keep(true)?;
    let proxy = listen(([127, 0, 0, 1], 0).into(), bench.upstream())?;
    bench.pass_through(proxy.address());
    stop_on_interrupt(
        &STOP,
        "interrupted: finishing what is under way; once more to leave at once",
    );
    let repeats = (0..usize::from(args.repeats))
        .flat_map(|repeat| tasks.iter().map(move |task| (repeat, task)));
    let repeats: Vec<(usize, &Task)> = repeats.collect();
    let threads = ThreadPoolBuilder::new()
        .num_threads(usize::from(args.jobs))
        .build()?;
    std::thread::scope(|scope| {
        let front = Some(held.front.clone());
        let serving = scope.spawn(|| proxy.serve(Passed::default(), front, now, &OVER));
        let done = threads.install(|| {
            let runs = repeats.par_iter();
            runs.try_for_each(|(repeat, task)| run_task(args, &bench, (task, *repeat), &outcomes))
        });
        OVER.store(true, Ordering::SeqCst);
        let served = serving.join();
        done?;
        match served {
            Ok(served) => {
                served?;
                Ok(())
            }
            Err(_) => stop(Exit::Internal, "the proxy failed"),
        }
    })?;
    if !args.json {
        let facts = outcomes.facts();
        show(
            false,
            "proctor-tasks",
            facts,
            include_str!("text/tasks.txt"),
        )?;
    }
    let shown = (args.json, &args.printed, &args.output);
    let exit = match held.end(&outcomes.results(), shown)? {
        // An agent of one's own may have asked nobody.
        Exit::NothingSelected => Exit::Done,
        other => other,
    };
    models::close(Some(&models), false)?;
    if outcomes.all_failed() {
        return stop(Exit::TooManyFailures, "every agent failed");
    }
    Ok(if STOP.load(Ordering::Relaxed) {
        Exit::Interrupted
    } else {
        exit
    })
}

/// An error of a strategy, with the flag that this command has.
fn as_typed(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<SettingError>() {
        Ok(mut error) => {
            if let Place::Flag(flag) = &error.place
                && let Some(name) = flag.strip_prefix("--strategy ")
            {
                error.place = Place::Flag(format!("--strategies {name}").into());
            }
            error.into()
        }
        Err(error) => error,
    }
}

/// The settings of the strategies.
fn scenario(args: &Args) -> anyhow::Result<Scenario> {
    if args.models.has_limits() {
        let problem = "`--token-limit` and `--time-limit` say nothing here";
        return stop_with(Exit::Usage, problem, "`--timeout` ends an agent");
    }
    let inputs = Inputs {
        named: args.scenario.clone().into_iter().collect(),
        strategy: args.strategies().map(str::to_owned).collect(),
        window: Some(args.window.clone()),
        of_agents: args.model.is_some(),
        ..Inputs::default()
    };
    let mut scenario = inputs.read().map_err(as_typed)?;
    "tasks".clone_into(&mut scenario.name);
    Ok(scenario)
}

/// The tasks with these names or in these files; all that are built in, where none is named.
fn tasks(names: &[String]) -> anyhow::Result<Vec<Task>> {
    let mut tasks = Vec::new();
    for (name, text) in TASKS {
        if names.is_empty() || names.iter().any(|it| it == name) {
            tasks.push(Task::parse(name, &format!("{name}.toml"), text)?);
        }
    }
    for file in names {
        let is_built_in = TASKS.iter().any(|(name, _)| file == name);
        if is_built_in {
            continue;
        }
        let path = Path::new(file);
        if !path.exists() {
            let problem = format!("`{file}` is neither a file nor a built-in task");
            return stop_with(
                Exit::Invalid,
                problem,
                "`proctor tasks --list` names the tasks",
            );
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if !is_valid_id(&name) {
            let problem = format!(
                "`{file}`: a task is named after its file, in small letters, digits and `._@-`"
            );
            return stop_with(Exit::Invalid, problem, "give the file such a name");
        }
        tasks.push(Task::parse(&name, file, &read_text("task ", path)?)?);
    }
    let mut seen = std::collections::BTreeSet::new();
    match tasks.iter().find(|task| !seen.insert(&task.name)) {
        Some(task) => {
            let problem = format!("two tasks are named `{}`", task.name);
            stop_with(Exit::Invalid, problem, "give one of the files another name")
        }
        None => Ok(tasks),
    }
}

/// The agent and the model that the arguments name.
fn bench(args: &Args, tasks: &[Task]) -> anyhow::Result<Bench> {
    let agent = match &args.agent_cmd {
        Some(command) => Agent::Command(command.clone()),
        None => Agent::Own(args.api.clone()),
    };
    let upstream = match (&args.upstream, &args.model) {
        (Some(url), Some(model)) => Upstream::Api {
            url: url.clone(),
            model: model.clone(),
        },
        _ => Upstream::Scripted,
    };
    let is_foreign = |task: &Task| TASKS.iter().all(|(name, _)| *name != task.name);
    let runs_own_commands = matches!(upstream, Upstream::Scripted) && !tasks.iter().any(is_foreign);
    let shell = match &args.container {
        Some(image) => Shell::Container(image.clone()),
        None if args.allow_shell || runs_own_commands => Shell::Host,
        None => {
            let problem = "commands of a model, and of task files of your own, may do anything on this machine";
            let hint =
                "`--container IMAGE` runs them in containers; `--allow-shell` runs them here";
            return stop_with(Exit::Usage, problem, hint);
        }
    };
    let unscripted = tasks.iter().find(|task| task.script.is_none());
    if let (Upstream::Scripted, Some(task)) = (&upstream, unscripted) {
        let problem = format!("task `{}` has no `steps` for the scripted model", task.name);
        return stop_with(
            Exit::Invalid,
            problem,
            "`--model` and `--upstream` name a model that can think",
        );
    }
    Bench::new(
        (agent, upstream, shell),
        Duration::from_secs(args.timeout),
        tasks,
    )
}

/// Runs a task under every strategy, from the beginning or from the cuts.
fn run_task(
    args: &Args,
    bench: &Bench,
    (task, repeat): (&Task, usize),
    outcomes: &Outcomes,
) -> anyhow::Result<()> {
    let begin = |(number, strategy), cut| Trial {
        task,
        strategy,
        number,
        repeat,
        cut,
    };
    let run = |trial: &Trial<'_>| {
        if STOP.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let (outcome, messages) = bench.run(trial)?;
        outcomes.keep(outcome)?;
        anyhow::Ok(messages)
    };
    if args.cuts.is_empty() {
        for (at, strategy) in args.strategies().enumerate() {
            run(&begin((at, strategy), None))?;
        }
        return Ok(());
    }
    let whole = args.strategies().position(|name| name == NONE);
    let messages = run(&begin((whole.unwrap_or(0), NONE), None))?;
    for percent in &args.cuts {
        let Some((calls, messages)) = cut(&messages, *percent) else {
            say(&format!(
                "`{}`: too few calls for a cut at {percent} %",
                task.name
            ));
            continue;
        };
        for (at, strategy) in args.strategies().enumerate() {
            let percent = *percent;
            let cut = Cut {
                percent,
                calls,
                messages,
            };
            run(&begin((at, strategy), Some(cut)))?;
        }
    }
    Ok(())
}

/// The number of the first calls that make up this share, and the messages to the last result of them.
fn cut(messages: &[Value], percent: u8) -> Option<(usize, &[Value])> {
    let answers = messages
        .iter()
        .enumerate()
        .filter(|(_, it)| it["role"] == "assistant");
    let answers: Vec<usize> = answers.map(|(at, _)| at).collect();
    let calls = answers.len() * usize::from(percent) / 100;
    let end = *answers.get(calls).filter(|_| calls > 0)?;
    messages.get(..end).map(|messages| (calls, messages))
}

/// The outcomes so far, and their file, to which each is written at once.
struct Outcomes(Mutex<(File, Vec<Outcome>)>);

impl Outcomes {
    fn begin(path: &Path, force: bool) -> anyhow::Result<Self> {
        refuse_existing(path, force)?;
        let file = File::create(path).map_err(|error| not_written(path, &error))?;
        Ok(Self(Mutex::new((file, Vec::new()))))
    }

    fn keep(&self, outcome: Outcome) -> anyhow::Result<()> {
        let result = if outcome.score == 1 {
            "solved"
        } else {
            "not solved"
        };
        say(&format!("{}: {result}, {}", outcome.session, outcome.end));
        let line = serde_json::to_string(&outcome)? + "\n";
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let written = kept.0.write_all(line.as_bytes());
        written.map_err(|error| not_written(Path::new("outcomes.jsonl"), &error))?;
        kept.1.push(outcome);
        Ok(())
    }

    /// The scores, as a run takes them.
    fn results(&self) -> Vec<TaskOutcome> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let results = kept.1.iter().map(|outcome| TaskOutcome {
            task: outcome.cell.clone(),
            strategy: Some(outcome.strategy.clone()),
            repeat: u32::try_from(outcome.repeat).unwrap_or(u32::MAX),
            score: f64::from(outcome.score),
        });
        results.collect()
    }

    /// Whether there are outcomes, and all of agents that failed.
    fn all_failed(&self) -> bool {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ends = kept.1.iter().map(|it| &it.end);
        !kept.1.is_empty() && ends.all(|end| end.starts_with("failed"))
    }

    /// By strategy and cut: how many are solved, which are not, and the calls.
    fn facts(&self) -> Value {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows: BTreeMap<(&str, Option<u8>), Vec<&Outcome>> = BTreeMap::new();
        for outcome in &kept.1 {
            let row = (outcome.strategy.as_str(), outcome.cut);
            rows.entry(row).or_default().push(outcome);
        }
        let rows = rows.into_iter().map(|((strategy, cut), outcomes)| {
            let unsolved = outcomes.iter().filter(|it| it.score == 0);
            let mut unsolved: Vec<&str> = unsolved.map(|it| it.task.as_str()).collect();
            unsolved.sort_unstable();
            json!({
                "strategy": strategy,
                "cut": cut,
                "runs": outcomes.len(),
                "solved": outcomes.len() - unsolved.len(),
                "calls": outcomes.iter().filter_map(|it| it.calls).sum::<usize>(),
                "unsolved": unsolved,
            })
        });
        json!({ "rows": rows.collect::<Vec<_>>() })
    }
}

fn not_written(path: &Path, error: &std::io::Error) -> CliError {
    let problem = format!("cannot write `{}`: {error}", path.display());
    CliError::new(Exit::NotWritten, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_of_the_folder_is_built_in_and_has_a_script() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/tasks");
        let files = std::fs::read_dir(folder).unwrap();
        let names = files.filter_map(|it| {
            let name = it.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".toml").map(str::to_owned)
        });
        let mut names: Vec<String> = names.collect();
        names.sort();
        let tasks = tasks(&[]).unwrap();
        assert_eq!(
            names,
            tasks.iter().map(|it| it.name.clone()).collect::<Vec<_>>()
        );
        assert!(tasks.iter().all(|task| task.script.is_some()));
    }

    #[test]
    fn a_cut_keeps_the_answer_to_its_last_call() {
        let message = |role: &str| json!({ "role": role });
        let messages: Vec<Value> = [
            "user",
            "assistant",
            "tool",
            "tool",
            "assistant",
            "user",
            "assistant",
        ]
        .map(message)
        .to_vec();
        let cut = |percent| cut(&messages, percent).map(|(calls, kept)| (calls, kept.len()));
        assert_eq!(
            [cut(25), cut(50), cut(75)],
            [None, Some((1, 4)), Some((2, 6))]
        );
    }
}
