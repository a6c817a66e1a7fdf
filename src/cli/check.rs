//! `proctor check`: holds a strategy against the laws and the faults, over generated sessions.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Exit, programs, prompts, show, stop_with};
use crate::check::{self, Checked, Finding, Outcome, Settings};
use crate::report::escape;
use crate::session::wire::anthropic_json;
use crate::settings::{Place, Setting, Table, Value as SettingValue};
use crate::strategy::StrategySpec;
use crate::strategy::trigger::Trigger;
use crate::units::Tokens;

/// Arguments of `proctor check`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("checked").required(true))]
pub(super) struct Args {
    /// The program and its arguments, after `--`
    #[arg(last = true, group = "checked", value_name = "COMMAND")]
    command: Vec<String>,
    /// Check this strategy instead of a program: the name of a preset, with overrides in brackets
    #[arg(long, value_name = "NAME", group = "checked")]
    strategy: Option<String>,
    /// Sessions that are tried
    #[arg(long, value_name = "N", default_value_t = 40)]
    sessions: usize,
    /// Seed of the sessions
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Window in which they are replayed: small, so that there is something to compact
    #[arg(long, value_name = "TOKENS", default_value = "6000")]
    window: String,
    /// Seconds that a program has for one answer
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    timeout: u64,
    /// A rule that is broken on purpose (repeatable)
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// Write an XML file for build servers as well
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let Some(window) = super::token_count(&args.window) else {
        let problem = format!("`{}` is no number of tokens", args.window);
        return stop_with(Exit::Usage, problem, "as in `--window 6000`");
    };
    let unknown = args
        .allow
        .iter()
        .find(|name| !check::rules().contains(*name));
    if let Some(name) = unknown {
        let hint = format!("the rules are {}", check::rules().join(", "));
        return stop_with(Exit::Usage, format!("there is no rule `{name}`"), hint);
    }
    let spec = args.spec()?;
    let settings = Settings {
        window: Tokens(window),
        sessions: args.sessions,
        seed: args.seed,
        allowed: args.allow.iter().cloned().collect::<BTreeSet<String>>(),
    };
    let outcome = check::check(&spec, &settings);
    if let Some(path) = &args.junit {
        super::write_output(path, junit(spec.name(), &outcome).as_bytes())?;
    }
    let rules = outcome.rules.iter().map(|checked| facts(checked, args));
    let broken = outcome
        .rules
        .iter()
        .filter(|it| it.finding.is_some())
        .count();
    let all = json!({
        "strategy": spec.name(),
        "window": window,
        "seed": args.seed,
        "changed": outcome.changed,
        "has_asked": outcome.has_asked,
        "broken": broken,
        "untried": untried(&outcome),
        "rules": rules.collect::<Vec<_>>(),
    });
    show(
        args.json,
        "proctor-check",
        all,
        include_str!("text/check.txt"),
    )?;
    Ok(if broken > 0 {
        Exit::GateFailed
    } else {
        Exit::Done
    })
}

impl Args {
    fn spec(&self) -> anyhow::Result<StrategySpec> {
        if let Some(name) = &self.strategy {
            let place = Place::Flag(format!("--strategy {name}").into());
            return Ok(prompts::read_one(StrategySpec::parse(
                name,
                &Trigger::default(),
                &place,
            )?)?);
        }
        let place = Place::Flag("check".into());
        let mut table = Table::new(place.clone());
        let words = self
            .command
            .iter()
            .map(|word| Setting::new(word.as_str(), &place));
        table.put("command", words.collect::<Vec<_>>(), &place);
        table.put(
            "timeout_seconds",
            SettingValue::Integer(i64::try_from(self.timeout).unwrap_or(i64::MAX)),
            &place,
        );
        let mut specs = [StrategySpec::of("program", table, &Trigger::default())?];
        programs::locate(&mut specs)?;
        let [spec] = specs;
        Ok(spec)
    }
}

fn facts(checked: &Checked, args: &Args) -> Value {
    let finding = checked.finding.as_ref();
    json!({
        "rule": checked.rule,
        "expected": checked.expected,
        "sessions": checked.sessions,
        "finding": finding.map(|finding| json!({
            "got": finding.got,
            "repeat": format!("--seed {} --sessions {}", args.seed, finding.number + 1),
            "messages": messages(finding),
            "lines": messages(finding).iter().map(Value::to_string).collect::<Vec<_>>(),
        })),
    })
}

/// The messages of the session, each as JSON.
fn messages(finding: &Finding) -> Vec<Value> {
    let messages = finding.session.messages().iter();
    messages
        .filter_map(|message| serde_json::from_str(&anthropic_json(message)).ok())
        .collect()
}

/// Rules that no session was held against: the program did not even answer.
fn untried(outcome: &Outcome) -> usize {
    outcome.rules.iter().filter(|it| it.sessions == 0).count()
}

fn junit(name: &str, outcome: &Outcome) -> String {
    let failures = outcome
        .rules
        .iter()
        .filter(|it| it.finding.is_some())
        .count();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" skipped=\"{}\">\n",
        escape::xml(name),
        outcome.rules.len(),
        untried(outcome),
    );
    for checked in &outcome.rules {
        let _ = write!(
            text,
            "<testcase classname=\"proctor.check\" name=\"{}\"",
            escape::xml(&checked.rule)
        );
        let Some(finding) = &checked.finding else {
            let end = if checked.sessions == 0 {
                "><skipped message=\"not tried\"/></testcase>\n"
            } else {
                "/>\n"
            };
            text.push_str(end);
            continue;
        };
        let messages: Vec<String> = messages(finding).iter().map(Value::to_string).collect();
        let _ = writeln!(
            text,
            "><failure message=\"{}\">expected: {}\n{}</failure></testcase>",
            escape::xml(&finding.got),
            escape::xml(&checked.expected),
            escape::xml(&messages.join("\n")),
        );
    }
    text.push_str("</testsuite>\n</testsuites>\n");
    text
}
