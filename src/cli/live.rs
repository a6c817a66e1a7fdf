//! `proctor live`: stands in front of a model's API, and compacts what running agents send.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::inputs::Inputs;
use super::models;
use super::report;

/// Arguments of `proctor live`.
#[derive(Debug, clap::Args)]
#[command(mut_args(without_recordings))]
pub(super) struct Args {
    /// Base URL of the API, such as `https://api.anthropic.com`, or a server of your own
    #[arg(long, value_name = "URL", required_unless_present = "check")]
    upstream: Option<String>,
    /// Address to listen at; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Seconds that an agent waits for a strategy at most; then its own request is sent
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    timeout: f64,
    /// Folder for the log, the strategies' answers and the run; an existing log is continued
    #[arg(long, value_name = "DIR", default_value = "reports/live")]
    out: PathBuf,
    /// How tasks ended: results of Harbor, SWE-bench or Inspect, or lines of JSON with `task`, `score` from 0 to 1, and
    /// where they matter `strategy` and `trial`; a file or a folder, read when the run is written; may be repeated
    #[arg(long, value_name = "[STRATEGY=]PATH")]
    outcomes: Vec<String>,
    /// The tasks' prompts: a request that holds one belongs to its task; a folder of tasks of Harbor, or lines of JSON
    /// with `instance_id` and `problem_statement`, as of SWE-bench
    #[arg(long, value_name = "PATH")]
    task_prompts: Option<PathBuf>,
    /// Regular expression whose first group, in the first prompt that matches, is the name of the task
    #[arg(long, value_name = "REGEX", value_parser = with_group)]
    task_pattern: Option<regex::Regex>,
    /// Do not listen: replay the log, and report calls that would now be sent differently
    #[arg(long)]
    check: bool,
    #[command(flatten, next_help_heading = "Strategies")]
    inputs: Inputs,
    #[command(flatten, next_help_heading = "Models of the strategies")]
    models: models::ModelOptions,
    /// Print the report as JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten, next_help_heading = "Output")]
    printed: report::Printed,
    #[command(flatten, next_help_heading = "Output")]
    output: report::ReportOutput,
}

/// A regular expression with a group.
fn with_group(typed: &str) -> std::result::Result<regex::Regex, String> {
    let pattern = regex::Regex::new(typed).map_err(|error| error.to_string())?;
    if pattern.captures_len() < 2 {
        return Err("it has no group: `task: ([a-z-]+)` names what is in the brackets".to_owned());
    }
    Ok(pattern)
}

/// Leaves out of the help what has no meaning while agents run.
fn without_recordings(arg: clap::Arg) -> clap::Arg {
    match arg.get_id().as_str() {
        "named" => arg
            .value_name("SCENARIO")
            .help("Scenario file with the strategies, the window and the models"),
        "session" | "sample" => arg.hide(true),
        _ => arg,
    }
}

fn seconds(typed: &str) -> Result<f64, String> {
    let parsed: Option<f64> = typed.parse().ok();
    let number = parsed.filter(|seconds| (0.001..=86_400.0).contains(seconds));
    number.ok_or_else(|| "it must be a number of seconds".to_owned())
}

#[cfg(feature = "http")]
pub(super) use with_http::run;

#[cfg(feature = "http")]
mod with_http {
    use std::collections::BTreeMap;
    use std::fs::{File, OpenOptions};
    use std::io::{self, Read as _};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::time::Duration;

    use super::Args;
    use crate::cli::interrupt::stop_on_interrupt;
    use crate::cli::record::{ENDING, KeepExchange, RequestTally, keep_private, listen, now};
    use crate::cli::report::{Printed, ReportOutput, print_as};
    use crate::cli::{
        CliError, Exit, Result, cannot, listed, make_folder, models, print, say, stop, stop_with,
    };
    use crate::files;
    use crate::live::{Event, Live, Log as EventLog, TaskNames, Ticket, read_log};
    use crate::naming::short_name;
    use crate::proxy::ProxiedExchange;
    use crate::record::journal::RecordedRun;
    use crate::report::Report;
    use crate::report::escape::{plain, short};
    use crate::runner::RunModels;
    use crate::runner::live_run::{self, LiveRunError};
    use crate::scenario::Scenario;
    use crate::session::import::outcomes::{self, OutcomeError, TrialOutcome};
    use crate::session::import::request::READER;
    use crate::strategy::StrategySpec;
    use crate::units::many;
    use crate::window::PromptSizes;

    /// Where Gemini's own API is served, and Google's tools' form of it.
    const GEMINI: [&str; 2] =
        ["://generativelanguage.googleapis.com", "://cloudcode-pa.googleapis.com"];

    /// The file of the log.
    const EVENTS: &str = "events.jsonl";

    pub(crate) fn run(args: &Args) -> Result<Exit> {
        let typed = &args.inputs;
        if typed.named.is_empty() && typed.strategy.is_empty() && typed.strategy_cmd.is_empty() {
            let hint = "as in `--strategy observation-masking`; `proctor strategies` lists them";
            return stop_with(Exit::Usage, "no strategy is named", hint);
        }
        typed.refuse_caller("live")?;
        if typed.has_recordings() || typed.sample.is_some() {
            let problem = "recordings and `--sample` say nothing here: agents run as often as they are started";
            let hint =
                "`proctor run RECORDING` replays one; a scenario's sessions are left out here";
            return stop_with(Exit::Usage, problem, hint);
        }
        args.output.check(args.json)?;
        keep_private();
        let upstream = args.upstream.as_deref().unwrap_or_default();
        if GEMINI.iter().any(|host| upstream.contains(host)) && !upstream.contains("/openai") {
            let hint = "record the agent with `proctor record` and replay it with `proctor run`, or let it use \
                        `https://generativelanguage.googleapis.com/v1beta/openai`";
            return stop_with(Exit::Usage, "`live` does not read Gemini's API", hint);
        }
        let mut inputs = args.inputs.clone();
        inputs.of_agents = true;
        let mut scenario = inputs.read()?;
        "live".clone_into(&mut scenario.name);
        let connected = args.models.of_scenario(&scenario, &args.out)?;
        let timeout = Duration::from_secs_f64(args.timeout);
        let prompts = args.task_prompts.as_deref().map(outcomes::prompts).transpose().map_err(|error| {
            CliError::new(Exit::Usage, plain(&error.to_string())).with_hint(
                "`--task-prompts` takes a folder of tasks of Harbor, or lines of JSON with `instance_id` and \
                 `problem_statement`",
            )
        })?;
        let tasks =
            TaskNames { pattern: args.task_pattern.clone(), prompts: prompts.unwrap_or_default() };
        if args.check && !args.out.join(EVENTS).exists() {
            let problem = format!("there is no `{}`", args.out.join(EVENTS).display());
            let hint = "`--check` reads the log of an earlier `proctor live --out DIR`";
            return stop_with(Exit::Usage, problem, hint);
        }
        let (held, events) = Loop::open(scenario, &connected, (timeout, tasks), &args.out)?;
        if args.check {
            return check(&held, &events);
        }
        held.warn_of_windows();
        let proxy = listen(args.listen, upstream)?;
        if !events.is_empty() {
            let again = held.restore(&events)?;
            say!("continuing from {} logged events", events.len());
            if !again.is_empty() {
                say!(
                    "warning: {} calls would now be sent differently, because the strategies or their models' answers changed",
                    again.len()
                );
            }
        }
        held.keep(events.is_empty())?;
        let stop = stop_on_interrupt(ENDING);
        print(&format!("listening at http://{}\n", proxy.address()))?;
        say!(
            "strategies: {}; the log is `{}`; Ctrl-C ends",
            listed(held.scenario.strategies.iter().map(StrategySpec::name)),
            held.path.display()
        );
        let (live, path) = (held.live.clone(), held.path.clone());
        let watched = RequestTally::of(LogWatch { live, path, is_told: false });
        let mut tally = proxy.serve(watched, Some(held.live.clone()), now, &stop)?;
        let answered = tally.answered;
        say(&format!("{answered} requests were answered, {}", tally.rest()));
        let outcomes = read_outcomes(&args.outcomes, &held)?;
        let exit = held.end(&outcomes, (args.json, &args.printed, &args.output))?;
        models::close(Some(&connected), false)?;
        Ok(exit)
    }

    /// Says at once that the log cannot be written any more. The strategies keep it themselves.
    struct LogWatch {
        live: Arc<Live>,
        path: PathBuf,
        is_told: bool,
    }

    impl KeepExchange for LogWatch {
        fn keep(&mut self, _: &ProxiedExchange) -> io::Result<()> {
            if !self.is_told
                && let Some(error) = self.live.broken()
            {
                self.is_told = true;
                let path = self.path.display();
                say!(
                    "warning: `{path}` ends here: {error}; a restart would know nothing of what follows"
                );
            }
            Ok(())
        }
    }

    /// Feeds the log to the strategies again.
    fn check(held: &Loop, events: &[Event]) -> Result<Exit> {
        if events.is_empty() {
            let problem = format!("`{}` is empty", held.path.display());
            return stop(Exit::NothingSelected, problem);
        }
        let again = held.restore(events)?;
        let calls = events.iter().filter(|event| matches!(event, Event::Sent { .. }));
        let (same, differ) = (calls.count() - again.len(), again.len());
        print(&format!("{same} calls are the same again, {differ} are not\n"))?;
        for Ticket { conversation, call } in again.iter().take(10) {
            print(&format!("conversation {conversation}, call {call}\n"))?;
        }
        Ok(if differ == 0 { Exit::Done } else { Exit::GateFailed })
    }

    /// Strategies in front of an API, with the log that is kept of them.
    struct Loop {
        scenario: Scenario,
        live: Arc<Live>,
        folder: PathBuf,
        path: PathBuf,
        log: File,
        /// The bytes of its whole lines.
        whole: u64,
    }

    impl Loop {
        /// Opens the log in the folder, and reads what it holds.
        fn open(
            scenario: Scenario,
            models: &RunModels,
            (timeout, tasks): (Duration, TaskNames),
            folder: &Path,
        ) -> Result<(Self, Vec<Event>)> {
            let settings = live_run::settings(&scenario, models).map_err(|error| match error {
                LiveRunError::Plan(error) => anyhow::Error::from(error),
                other => CliError::new(Exit::Usage, other.to_string()).into(),
            })?;
            make_folder(folder)?;
            let path = folder.join(EVENTS);
            let unusable = cannot(Exit::NotWritten, "use", &path);
            let mut options = OpenOptions::new();
            options.read(true).append(true).create(true);
            let mut log = files::open_own(&path, &mut options).map_err(&unusable)?;
            if matches!(log.try_lock(), Err(std::fs::TryLockError::WouldBlock)) {
                let problem = format!("another program writes `{}`", path.display());
                return stop(Exit::NotWritten, problem);
            }
            let mut bytes = Vec::new();
            log.read_to_end(&mut bytes).map_err(&unusable)?;
            let (events, whole) = read_log(&bytes).map_err(|(line, error)| {
                let problem = format!("{}:{line}: {error}", path.display());
                CliError::new(Exit::Usage, problem).with_hint("name another folder with `--out`")
            })?;
            if whole < bytes.len() {
                let (lost, path) = (bytes.len() - whole, path.display());
                say!(
                    "the last {lost} bytes of `{path}` cannot be read, and are left out: they were cut off"
                );
            }
            let live = Live::new(settings, timeout, READER).with_tasks(tasks);
            let held = Self {
                scenario,
                live: Arc::new(live),
                folder: folder.to_owned(),
                path,
                log,
                whole: whole as u64,
            };
            Ok((held, events))
        }

        /// Warns of strategies that could only fire before every call.
        fn warn_of_windows(&self) {
            for setting in self.live.settings() {
                let window = setting.window;
                let prompts = PromptSizes { largest: window.tokens, ..PromptSizes::default() };
                if let Err(error) = setting.spec.check_window(window, &prompts) {
                    say!("warning: {error}");
                }
            }
        }

        /// Replays the log; the calls that would now be sent differently.
        fn restore(&self, events: &[Event]) -> Result<Vec<Ticket>> {
            self.live.restore(events).map_err(|error| {
                let problem = format!("`{}`: {error}", self.path.display());
                let hint = "name another folder with `--out`, or the strategies and the window of that log";
                CliError::new(Exit::Usage, problem).with_hint(hint).into()
            })
        }

        /// Writes what happens from now on.
        fn keep(&self, is_empty: bool) -> Result<()> {
            let unusable = cannot(Exit::NotWritten, "use", &self.path);
            self.log.set_len(self.whole).map_err(&unusable)?;
            let log = EventLog::new(self.log.try_clone().map_err(&unusable)?);
            self.live.keep(log, is_empty);
            Ok(())
        }

        /// Writes the run, and returns its folder; nothing where no call was answered.
        fn write(&self, outcomes: &[TrialOutcome]) -> Result<Option<PathBuf>> {
            let live = &self.live;
            if let Some(error) = live.broken() {
                let path = self.path.display();
                say!("warning: `{path}` is not whole: {error}");
            }
            for (why, count) in live.untouched() {
                say!("{count} requests were passed on as they came: {why}");
            }
            let finished = live.finished();
            if finished.is_empty() {
                return Ok(None);
            }
            let lost = live_run::unanswered(outcomes, &finished, &self.scenario);
            for outcome in outcomes {
                if finished.iter().any(|one| live_run::is_of(outcome, one, &self.scenario)) {
                    continue;
                }
                let (task, repeat) = (&outcome.task, outcome.trial);
                let strategy = outcome.strategy.as_deref().unwrap_or("any strategy");
                let counts = if lost.keys().any(|key| {
                    (&key.session, &*key.strategy, key.repeat) == (task, strategy, repeat)
                }) {
                    "it counts as a trial without a bill"
                } else {
                    "its score is in no figure"
                };
                say!(
                    "warning: no answered call belongs to task `{task}` under `{strategy}`, repeat {repeat}: {counts}"
                );
            }
            let folder = live_run::write(&self.scenario, finished, outcomes, &self.folder)?;
            Ok(Some(folder))
        }

        /// Writes the run, and prints its report.
        fn end(
            &self,
            outcomes: &[TrialOutcome],
            (is_json, printed, output): (bool, &Printed, &ReportOutput),
        ) -> Result<Exit> {
            let Some(folder) = self.write(outcomes)? else {
                say("no answered call went through a strategy: there is no run");
                return Ok(Exit::NothingSelected);
            };
            let run = RecordedRun::read(&folder)?;
            let report = Report::of(&run.manifest, &run.cells);
            if is_json {
                print_as(&report, true)?;
            } else if !output.takes_stdout() {
                printed.print(&report, None)?;
            }
            let exit = output.write(&report)?;
            let (folder, cells) = (folder.display(), run.cells.len());
            say!("run `{folder}`: {cells} cells");
            Ok(match exit {
                Exit::Done if self.live.broken().is_some() => Exit::NotWritten,
                exit => exit,
            })
        }
    }

    /// Reads how tasks ended, each file or folder under the strategy named before it. Trials without a score are left out.
    fn read_outcomes(typed: &[String], held: &Loop) -> Result<Vec<TrialOutcome>> {
        let scenario = &held.scenario;
        let ran = held.live.strategies_that_ran();
        let only = ran.first().filter(|_| ran.len() == 1).map(|at| scenario.strategies[*at].name());
        let mut all = Vec::new();
        for typed in typed {
            let named = typed
                .match_indices('=')
                .find_map(|(at, _)| Some((strategy_of(&typed[..at], scenario)?, &typed[at + 1..])));
            let path = named.map_or(&**typed, |(_, path)| path);
            for mut outcome in outcomes::read(Path::new(path)).map_err(|error| unread(&error))? {
                let strategy = match &outcome.strategy {
                    Some(own) => strategy_of(own, scenario),
                    None => named.map(|(strategy, _)| strategy).or(only),
                };
                outcome.strategy = strategy.map(str::to_owned).or(outcome.strategy);
                all.push(outcome);
            }
        }
        let mut unnamed = all.iter().filter(|outcome| outcome.strategy.is_none());
        if let Some(first) = unnamed.next()
            && ran.len() > 1
        {
            let outcomes = many(1 + unnamed.count(), "outcome names", "outcomes name");
            let problem = format!(
                "{outcomes} no strategy, and {} strategies ran: the first is {}",
                ran.len(),
                plain(&first.place)
            );
            let hint =
                "name it, as in `--outcomes none=PATH`; with that, the same command continues";
            return stop_with(Exit::Usage, problem, hint);
        }
        let (mut all, several) = outcomes::merge(all).map_err(|error| unread(&error))?;
        if several > 0 {
            say!(
                "warning: {} several attempts at one base URL: the mean of their scores counts, and the bill is of all; \
                 `…/r/0` and `…/r/1` in the base URL keep attempts apart",
                many(several, "trial had", "trials had")
            );
        }
        warn_of_unread(&all);
        all.retain(|outcome| outcome.score.is_ok());
        Ok(all)
    }

    /// Says which trials have no score, strategy by strategy, and which values beside a score are none.
    fn warn_of_unread(outcomes: &[TrialOutcome]) {
        let mut missing: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let mut beside = Vec::new();
        for outcome in outcomes {
            let strategy = outcome.strategy.as_deref().unwrap_or("any strategy");
            if outcome.score.is_err() {
                let own = missing.entry(strategy).or_default();
                own.push(outcome.to_string());
            }
            beside.extend(outcome.unread.as_ref().map(|what| format!("{}: {what}", outcome.place)));
        }
        for (strategy, all) in missing {
            let trials = many(all.len(), "trial has", "trials have");
            let first = first_line(&all);
            say!(
                "warning: {trials} no score under `{strategy}`, which is neither solved nor failed: {first}"
            );
        }
        if !beside.is_empty() {
            let values = many(beside.len(), "value is", "values are");
            say!("warning: {values} no score, beside one that counts: {}", first_line(&beside));
        }
    }

    /// The longest reason of a harness that is shown.
    const LONGEST_REASON: usize = 300;

    fn first_line(reasons: &[String]) -> String {
        let first = reasons.iter().flat_map(|reason| reason.lines()).next();
        short(first.unwrap_or_default(), LONGEST_REASON)
    }

    /// The strategy of that name, short name or number.
    fn strategy_of<'s>(typed: &str, scenario: &'s Scenario) -> Option<&'s str> {
        let mut names = scenario.strategies.iter().map(StrategySpec::name);
        let named = names.clone().find(|name| *name == typed || short_name(name) == typed);
        named.or_else(|| names.nth(typed.parse().ok()?))
    }

    /// The outcomes cannot be read. Nothing is lost by it: the log is there.
    fn unread(error: &OutcomeError) -> anyhow::Error {
        let hint = match error {
            OutcomeError::Twice { .. } => {
                "give each trial a base URL of its own, `…/r/0`, `…/r/1`, and its results that number"
            }
            _ => {
                "they are results of Harbor, SWE-bench or Inspect, or lines such as \
                 `{\"task\": \"NAME\", \"strategy\": \"NAME\", \"score\": 1}`; once they are mended, the same command \
                 continues"
            }
        };
        anyhow::Error::from(CliError::new(Exit::Usage, plain(&error.to_string())).with_hint(hint))
    }
}
