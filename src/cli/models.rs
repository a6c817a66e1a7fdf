//! Models on the command line: who is asked, what that may cost, and which answers are recorded.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::parts::PartOptions;
use super::{CliError, Exit, Result, environment, forecast, say, stop_with};
use crate::metric::forecast::{ForecastRange, Spend};
use crate::model::cassette::{ReplayMode, Sharing};
#[cfg(feature = "http")]
use crate::model::http::Notice;
use crate::model::price::Prices;
use crate::model::{CallFailure, Model, ModelKind, Request};
use crate::record::CellKey;
#[cfg(feature = "http")]
use crate::report::escape;
#[cfg(feature = "http")]
use crate::runner::live_run;
use crate::runner::{Access, Plan, RunModels, RunOutcome, prices};
use crate::scenario::ModelsSetting;
#[cfg(feature = "http")]
use crate::scenario::Scenario;
use crate::settings::{Place, SettingTable};
use crate::step::CallResult;
use crate::tokens::TokenCounter;
use crate::units::{Tokens, Usd, many};

/// The file next to the folders of runs that holds the answers by which they qualify probes.
const QUALIFYING: &str = "qualification.jsonl";

/// Dollars that are spent without asking: a mistake in a scenario should cost no more.
const DEFAULT_LIMIT: f64 = 1.0;

/// How many requests are under way by default, at most.
const MOST_THREADS: usize = 64;

/// How recorded answers are used, in every command that asks models.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct ModelOptions {
    /// Use of recorded answers: `auto` asks only for missing ones, `strict` never asks, `record`
    /// asks for all of them again, `off` neither reads nor writes any
    #[arg(long, value_name = "MODE", value_parser = mode)]
    replay: Option<ReplayMode>,
    /// Open no socket: live models answer from recorded answers only
    #[arg(long)]
    offline: bool,
}

fn mode(typed: &str) -> Result<ReplayMode, String> {
    ReplayMode::ALL.into_iter().find(|mode| mode.name() == typed).ok_or_else(|| {
        let names = ReplayMode::ALL.map(ReplayMode::name);
        format!("it must be one of {}", names.join(", "))
    })
}

/// Access to models that are asked and whose answers are kept nowhere. What goes wrong is told.
pub(super) fn asking() -> Access<'static> {
    Access {
        variable: &environment,
        is_offline: false,
        replay: None,
        cassette: PathBuf::new(),
        #[cfg(feature = "http")]
        notice: Some(Notice(Arc::new(|words| say(&escape::plain(words))))),
    }
}

impl ModelOptions {
    /// Access to the models; `scenario` is the mode of a scenario that the flag takes the place of.
    fn access(self, cassette: PathBuf, scenario: ReplayMode) -> Result<Access<'static>> {
        if self.offline && self.replay.unwrap_or(scenario) == ReplayMode::Record {
            let problem = "`record` asks models for all answers again, and `--offline` asks none";
            let hint = "leave out `--offline`, or answer from the cassette with `--replay strict`";
            return stop_with(Exit::Usage, problem, hint);
        }
        Ok(Access { is_offline: self.offline, replay: self.replay, cassette, ..asking() })
    }

    /// Whether no socket may be opened, by what is typed.
    pub(super) fn is_offline(self) -> bool {
        self.offline || self.replay == Some(ReplayMode::Strict)
    }

    /// Connects the models of a scenario that has no recorded sessions; answers are kept in this folder if it names
    /// no other place.
    #[cfg(feature = "http")]
    pub(super) fn of_scenario(self, scenario: &Scenario, folder: &Path) -> Result<RunModels> {
        let access = self.access(folder.join("cassette.jsonl"), scenario.models.replay)?;
        Ok(live_run::models(scenario, &access)?)
    }

    /// Connects the models of a plan; answers are kept in the run's folder if the scenario names no
    /// other place. Parts whose folders are beside one another share them.
    pub(super) fn connect(self, plan: &mut Plan, folder: &Path, part: &PartOptions) -> Result<()> {
        plan.connect(&self.access(folder.join("cassette.jsonl"), plan.scenario().models.replay)?)?;
        let models = &plan.scenario().models;
        if models.has_live()
            && let Some(cassette) = plan.models().and_then(|models| models.cassette.as_ref())
        {
            let beside = folder.parent().unwrap_or(Path::new(""));
            if part.partition.is_some() {
                let name = format!("answers-{}.jsonl", &plan.manifest().fingerprint[..8]);
                cassette.share(&beside.join(name), Sharing::All)?;
            }
            // A cassette that the scenario names may be shared already.
            if models.cassette.is_none() {
                cassette.share(&beside.join(QUALIFYING), Sharing::Qualifying)?;
            }
        }
        Ok(())
    }
}

/// Limits on spending on live models.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct Consent {
    /// Dollars that live models may cost without your consent
    #[arg(long, value_name = "USD", default_value_t = DEFAULT_LIMIT, value_parser = dollars)]
    pub(super) cost_limit: f64,
    /// Agree to the cost of the models
    #[arg(short, long)]
    pub(super) yes: bool,
}

/// Reads an amount of dollars, of at least 0.
pub(super) fn dollars(typed: &str) -> Result<f64, String> {
    number(typed.trim_start_matches('$'), "an amount of dollars, such as 2.50")
}

/// Reads a finite number of at least 0; `what` says what it must be.
pub(super) fn number(typed: &str, what: &str) -> Result<f64, String> {
    let parsed = typed.parse().ok();
    let number = parsed.filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("it must be {what}"))
}

impl Consent {
    /// Forecasts the cost of a plan's unfinished cells, and asks whether to spend it.
    pub(super) fn to_run(
        self,
        plan: &Plan,
        done: &BTreeSet<CellKey>,
        in_batches: bool,
    ) -> Result<Spend> {
        let cassette = plan.models().and_then(|models| models.cassette.as_ref());
        let recorded = cassette.is_some_and(|cassette| cassette.mode() == ReplayMode::Strict);
        if !forecast::asks_live_models(plan) || recorded || self.yes {
            return Ok(Spend::default());
        }
        let mut cells = plan.forecast()?;
        cells.retain(|cell| !done.contains(&cell.record.key()));
        let mut spend = forecast::spend_of(plan, &cells);
        say(&forecast::spend_in_words(plan, &spend)?);
        if in_batches {
            spend.dollars = spend.batch_dollars;
        }
        let hint = "`--yes` agrees to it, `--cost-limit` says what may be spent unasked, and \
                            `--dry-run` shows where it goes";
        self.to_spend(&spend, hint)?;
        Ok(spend)
    }

    /// Asks on a terminal whether to spend more than the limit, and refuses where it cannot ask.
    fn to_spend(self, spend: &Spend, hint: &str) -> Result<()> {
        match self.question(spend) {
            Some(question) => agree(&question, hint, Exit::Usage),
            None => Ok(()),
        }
    }

    /// The question to ask where the cost may be above the limit, or is not known.
    fn question(self, spend: &Spend) -> Option<String> {
        if self.yes || (spend.calls == 0 && spend.judged_at_most == 0) {
            return None;
        }
        let limit = Usd::of_dollars(self.cost_limit);
        match spend.dollars {
            Some(dollars) if dollars.high <= limit => None,
            Some(dollars) => Some(format!(
                "this run may cost {} ({} expected), above the limit of {limit}",
                dollars.high, dollars.expected
            )),
            None => Some(format!(
                "this run asks live models {} times, and no price file knows what that costs",
                spend.calls
            )),
        }
    }
}

/// Asks on a terminal whether to go on; anything but a yes ends the program, as it does where nobody can be asked.
pub(super) fn agree(question: &str, hint: &str, exit: Exit) -> Result<()> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return stop_with(exit, question, hint);
    }
    say(&format!("{question}; go on? [y/N]"));
    let mut typed = String::new();
    io::stdin().lock().read_line(&mut typed)?;
    if matches!(typed.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    stop_with(exit, "nothing was run", hint)
}

/// How judges outside a scenario are asked, and what that may cost.
#[derive(Debug, clap::Args)]
pub(super) struct JudgeOptions {
    #[command(flatten)]
    recorded: ModelOptions,
    #[command(flatten)]
    consent: Consent,
}

impl JudgeOptions {
    /// Connects models that are typed behind this flag: each as `KIND:MODEL`, or as a table as a scenario writes it.
    pub(super) fn connect(&self, flag: &str, typed: &[String], kept: &Path) -> Result<RunModels> {
        let written = typed.iter().map(|typed| written(flag, typed));
        let judges = written.collect::<Result<Vec<String>>>()?.join(", ");
        let place = format!("{flag} {}", typed.join(&format!(" {flag} ")));
        let table = SettingTable::parse(&place, &format!("judge = [{judges}]"))?;
        let models = ModelsSetting::of_judges(&table, &Place::Flag(place.into()))?;
        let access = self.recorded.access(kept.to_owned(), models.replay)?;
        let prices = prices::asked(&models, &Prices::built_in()?);
        Ok(RunModels::new(&models, &prices, &access)?)
    }

    /// Asks whether live models may be sent these requests, each of a list so often. An answer that is
    /// recorded costs nothing.
    pub(super) fn confirm(
        &self,
        judges: &RunModels,
        requests: &[(&[Request], u32)],
        counter: &dyn TokenCounter,
    ) -> Result<()> {
        let spend = spend(&judges.judges, requests, counter)?;
        if spend.calls > 0 {
            let money = match spend.dollars {
                Some(dollars) => format!("at most {}", dollars.high),
                None => "an unknown price".to_owned(),
            };
            let (calls, tokens) = (spend.calls, spend.input_tokens);
            say!(
                "live models are asked at most {calls} times, with {tokens} tokens of prompts, for {money}"
            );
        }
        let hint = "`--yes` agrees to it, and `--cost-limit` says what may be spent unasked";
        self.consent.to_spend(&spend, hint)
    }
}

/// The most that judges cost: no prompt is cached, and every verdict is as long as it may be.
fn spend(
    judges: &[Arc<dyn Model>],
    requests: &[(&[Request], u32)],
    counter: &dyn TokenCounter,
) -> Result<Spend> {
    let prices = Prices::built_in()?;
    let mut spend = Spend { dollars: Some(ForecastRange::default()), ..Spend::default() };
    for judge in judges.iter().filter(|judge| judge.kind() == ModelKind::Live) {
        let price = prices.of(judge.name()).map(|(_, price)| price.per_token);
        let each = requests.iter();
        for (request, repeats) in each.flat_map(|(all, often)| all.iter().map(|one| (one, *often)))
        {
            let texts = request.messages.iter().flat_map(|message| message.model_text());
            let texts = request.system.iter().chain(texts);
            let prompt: Tokens = texts.map(|text| counter.count(text)).sum();
            let output = ForecastRange {
                low: Tokens::ZERO,
                expected: request.max_output,
                high: judge.longest(request),
            };
            let missing = (0..repeats).filter(|repeat| !judge.is_kept(request, *repeat));
            missing.for_each(|_| spend.add_requests(1, prompt, output, price));
        }
    }
    Ok(spend)
}

/// A model as a scenario writes it: `KIND:MODEL`, at another address `KIND:MODEL@URL`, or a table.
pub(super) fn written(flag: &str, typed: &str) -> Result<String> {
    if typed.trim_start().starts_with('{') {
        return Ok(typed.trim().to_owned());
    }
    let Some((kind, model)) = typed.split_once(':') else {
        let problem = format!("`{flag} {typed}` names no model");
        let hint = "as in `openai:gpt-5-mini`, `anthropic:claude-haiku-4-5`, or \
                    `{ kind = \"openai\", model = \"…\", base_url = \"…\", key = \"VARIABLE\" }`";
        return stop_with(Exit::Usage, problem, hint);
    };
    let (model, url) = match model.find("@http") {
        Some(at) => (&model[..at], Some(&model[at + 1..])),
        None => (model, None),
    };
    // A key never goes to the provider for a model whose name was meant as an address.
    if url.is_none()
        && let Some((_, address)) = model.split_once('@')
        && (address.contains(['/', ':']) || address == "localhost")
    {
        let problem = format!("`{flag} {typed}`: `{address}` is an address without `http://`");
        let hint = format!("write `{kind}:MODEL@http://{address}`, or `https://`");
        return stop_with(Exit::Usage, problem, hint);
    }
    let key = match kind {
        "scripted" => "script",
        _ => "model",
    };
    let mut table = toml::Table::new();
    table.insert("kind".to_owned(), kind.into());
    table.insert(key.to_owned(), model.into());
    table.extend(url.map(|url| ("base_url".to_owned(), url.into())));
    Ok(toml::Value::Table(table).to_string())
}

/// The names of judges, as a calibration names them.
pub(super) fn names(judges: &RunModels) -> String {
    let names: Vec<&str> = judges.judges.iter().map(|judge| judge.name()).collect();
    names.join(" + ")
}

/// Ends a command whose model could not be asked, or has no recorded answer: that says nothing about
/// the model, and whatever rested on the answer is not to be written.
pub(super) fn heard(model: &dyn Model, answer: &CallResult) -> Result<(), CliError> {
    match answer {
        Err(failure) if *failure == CallFailure::NotRecorded || failure.is_of_the_way() => {
            Err(unheard(model, failure))
        }
        _ => Ok(()),
    }
}

/// The end of a command whose model could not be asked.
pub(super) fn unheard(model: &dyn Model, failure: &CallFailure) -> CliError {
    let problem = format!("{} could not be asked: {failure}", model.name());
    let hint = "nothing was written but the answers that came; the same command continues, and pays \
                nothing twice";
    CliError::new(Exit::Outstanding, problem).with_hint(hint)
}

/// Sorts the cassette. Answers that could not be kept end the command. If every answer
/// `must_be_recorded`, a missing one ends the command.
pub(super) fn close(connected: Option<&RunModels>, must_be_recorded: bool) -> Result<()> {
    let Some(connected) = connected else {
        return Ok(());
    };
    for (model, why) in connected.refused_schemas() {
        say!(
            "warning: the server of {model} refused the JSON schema for verdicts ({why}); they were asked for in \
             words. `structured = false` asks so at once"
        );
    }
    let Some(cassette) = &connected.cassette else {
        return Ok(());
    };
    if let Some(failure) = cassette.failure() {
        let path = cassette.path().display();
        let problem = format!("answers could not be kept in `{path}`: {failure}");
        let hint =
            "what was finished is kept: once the file can be written to, the same command goes on";
        return stop_with(Exit::NotWritten, problem, hint);
    }
    cassette.close()?;
    match cassette.missed() {
        Some((_, first)) if must_be_recorded => {
            let hint =
                "`--replay auto` sends the missing requests to the model and keeps the answers";
            stop_with(Exit::ReplayMiss, first, hint)
        }
        _ => Ok(()),
    }
}

/// The sum that this run paid, if it paid anything.
pub(super) fn spent(plan: &Plan) -> Option<String> {
    let spent = plan.models()?.spending.so_far();
    if spent.calls == 0 {
        return None;
    }
    let money = match (spent.money + spent.batched, spent.unpriced) {
        (money, 0) => money.to_string(),
        (Usd(0), _) => "at unknown prices".to_owned(),
        (money, _) => format!("{money} and more, some prices are unknown"),
    };
    let disbelieved = match spent.disbelieved {
        0 => String::new(),
        count => format!(
            "; the provider reported an impossible usage for {count} of them, whose tokens were counted here"
        ),
    };
    let unreported = match spent.unreported {
        0 => String::new(),
        count => format!(
            "; the provider did not report the size of the prompt for {count} of them, so that a server that cuts \
             prompts would not be noticed"
        ),
    };
    Some(format!(
        "asked now: {}, {} tokens, {money}; all other answers were recorded before{disbelieved}{unreported}",
        many(spent.calls.try_into().unwrap_or(usize::MAX), "request", "requests"),
        spent.tokens + spent.batched_tokens
    ))
}

/// Reads a number of at least 1.
pub(super) fn at_least_one(typed: &str) -> Result<usize, String> {
    let number = typed.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "it must be a whole number of at least 1".to_owned())
}

/// Reads a number of threads.
pub(super) fn jobs(typed: &str) -> Result<usize, String> {
    /// More cells than this are run at once on no machine: a larger number is a slip.
    const MOST: usize = 1_024;
    let jobs = at_least_one(typed)?;
    (jobs <= MOST).then_some(jobs).ok_or_else(|| format!("it must be at most {MOST}"))
}

/// How many cells run at once: as many as `--jobs` says, as models may be asked, or as there are
/// processors.
pub(super) fn threads(jobs: Option<usize>, plan: &Plan) -> usize {
    jobs.or_else(|| plan.at_once().map(|most| most.min(MOST_THREADS)))
        .or_else(|| std::thread::available_parallelism().ok().map(usize::from))
        .unwrap_or(1)
}

/// The exit code of a run whose only problem is outstanding cells.
pub(super) fn exit_of(plan: &Plan, outcome: &RunOutcome, planned: usize) -> Exit {
    let least = plan.models().map(|models| models.budget.least_coverage);
    let done = (planned - outcome.outstanding) as f64;
    if outcome.budget.is_some() && done < least.unwrap_or(0.0) * planned as f64 {
        return Exit::BudgetReached;
    }
    Exit::Outstanding
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(high: Option<f64>, cost_limit: f64, yes: bool, question: Option<&str>) {
        let spend = Spend {
            calls: 3,
            dollars: high.map(|high| ForecastRange::exact(Usd::of_dollars(high))),
            ..Spend::default()
        };
        let asked = Consent { cost_limit, yes }.question(&spend);
        assert_eq!(asked.as_deref(), question);
    }

    #[test]
    fn what_costs_more_than_the_limit_or_who_knows_what_is_asked_about() {
        let unknown =
            Some("this run asks live models 3 times, and no price file knows what that costs");
        check(Some(1.0), 1.0, false, None);
        check(
            Some(2.5),
            0.5,
            false,
            Some("this run may cost $2.50 ($2.50 expected), above the limit of $0.5000"),
        );
        check(Some(9.0), 1.0, true, None);
        check(None, 1.0, false, unknown);
        check(None, 1.0, true, None);
        let free = Consent { cost_limit: 0.0, yes: false };
        assert_eq!(free.question(&Spend::default()), None);
    }

    #[test]
    fn an_amount_is_dollars_and_never_less_than_nothing() {
        assert_eq!(dollars("2.50"), Ok(2.5));
        assert_eq!(dollars("$3"), Ok(3.0));
        for wrong in ["-1", "much", "inf", "NaN", ""] {
            assert!(dollars(wrong).is_err(), "{wrong}");
        }
    }
}
