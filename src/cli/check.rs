//! `proctor check`: holds a strategy against the laws, over small sessions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Exit, Result, listed, outputs, programs, prompts, show, stop_with};
use crate::check::{self, BrokenLaw, CheckOutcome, Checked, LawLevel, LawState, Settings};
use crate::record::journal::write_whole;
use crate::report::escape;
use crate::report::junit::{self, Suite, TestCase};
use crate::session::ContentBlock;
use crate::settings::{Place, Setting, SettingTable, SettingValue};
use crate::stop::StopToken;
use crate::strategy::StrategySpec;
use crate::strategy::law::Law;
use crate::strategy::trigger::Trigger;

/// Characters of a block that are shown of a session.
const SHOWN: usize = 60;

/// Columns of what was seen.
const GOT: usize = 400;

/// Columns of a message.
const LINE: usize = 74;

/// Messages of a session that are shown: the first, and of the others the last ones.
const MESSAGES: usize = 12;

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
    #[command(flatten)]
    clients: ForClients,
    /// Fail for laws that should hold, too
    #[arg(long)]
    strict: bool,
    /// A law that is broken on purpose (repeatable); a program declares its own in `hello`
    #[arg(long, value_name = "LAW")]
    allow: Vec<String>,
    /// Look at this law alone (repeatable)
    #[arg(long, value_name = "LAW")]
    only: Vec<String>,
    /// Seed of the sessions
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Seconds that a program has for one answer
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    timeout: u64,
    /// Seconds that a program has to start
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    start_timeout: u64,
    /// Seconds for the whole check: laws that are not judged by then are named, and the exit code is 5
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    max_seconds: u64,
    /// Write an XML file for build servers as well
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    junit: Option<PathBuf>,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Options of test runners.
#[derive(Debug, clap::Args)]
struct ForClients {
    /// Check the program that started this one: it speaks the protocol on standard input and output, and nothing else is
    /// printed there
    #[arg(long, group = "checked", requires = "results")]
    strategy_stdio: bool,
    /// Write the outcome of each law to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// List the names of the laws, a line each
    #[arg(long, group = "checked")]
    laws: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    let mut named = args.allow.iter().chain(&args.only);
    if let Some(name) = named.find(|name| !check::laws().any(|law| law == **name)) {
        let hint = format!("the laws are {}", listed(check::laws()));
        return stop_with(Exit::Usage, format!("there is no law `{name}`"), hint);
    }
    if args.clients.laws {
        let laws: Vec<&str> = check::laws().collect();
        return super::print(&format!("{}\n", laws.join("\n")));
    }
    args.junit.iter().chain(&args.clients.results).try_for_each(|file| outputs::check(file))?;
    let spec = args.spec()?;
    let settings = args.settings(&spec)?;
    let outcome = if args.clients.strategy_stdio {
        // There is one connection: one play at a time.
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
        one.install(|| check::check(&spec, &settings))?
    } else {
        check::check(&spec, &settings)?
    };
    if let Some(path) = &args.junit {
        let text = junit::of_suites("proctor check", &[suite(spec.name(), &outcome, args.strict)])?;
        super::write_output(path, text.as_bytes())?;
    }
    let broken = [LawLevel::Must, LawLevel::Should].map(|level| outcome.broken(level));
    let laws: Vec<Value> = outcome.laws.iter().map(|law| facts(law, args)).collect();
    if let Some(path) = &args.clients.results {
        let lines: Vec<String> = laws.iter().map(|law| format!("{law}\n")).collect();
        write_whole(path, lines.concat().as_bytes())?;
    }
    let unjudged =
        outcome.laws.iter().filter(|law| matches!(law.state, LawState::OutOfTime)).count();
    let (changed, sessions) = outcome.changed;
    let all = json!({
        "strategy": spec.name(),
        "kind": outcome.kind.name(),
        "seed": args.seed,
        "changed": changed,
        "sessions": sessions,
        "broken": broken[0],
        "findings": broken[1],
        "unjudged": unjudged,
        "max_seconds": args.max_seconds,
        "laws": laws,
    });
    if !args.clients.strategy_stdio {
        let template = include_str!("text/check.txt");
        show(args.json, "proctor-check", all, template)?;
    }
    Ok(match unjudged {
        _ if broken[0] > 0 || args.strict && broken[1] > 0 => Exit::GateFailed,
        0 => Exit::Done,
        _ => Exit::Outstanding,
    })
}

impl Args {
    fn spec(&self) -> Result<StrategySpec> {
        if let Some(name) = &self.strategy {
            let place = Place::Flag(format!("--strategy {name}").into());
            let spec = StrategySpec::parse(name, &Trigger::default(), &place)?;
            return Ok(prompts::read_one(spec)?);
        }
        if self.command == [programs::CALLER] {
            let hint = "`--strategy-stdio` checks the program that started this one";
            return stop_with(Exit::Usage, "`-` is not a program", hint);
        }
        let place = Place::Flag("check".into());
        let mut table = SettingTable::new(place.clone());
        let caller = self.clients.strategy_stdio.then_some(programs::CALLER);
        let command = self.command.iter().map(|word| &**word);
        let words: Vec<Setting> =
            caller.into_iter().chain(command).map(|word| Setting::new(word, &place)).collect();
        table.put("command", words, &place);
        for (key, seconds) in
            [("timeout_seconds", self.timeout), ("start_seconds", self.start_timeout)]
        {
            let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
            table.put(key, SettingValue::Integer(seconds), &place);
        }
        let mut specs = [StrategySpec::of("program", table, &Trigger::default())?];
        programs::locate(&mut specs)?;
        let [spec] = specs;
        Ok(spec)
    }

    /// The flags that are not at their defaults.
    fn flags(&self) -> String {
        let limits = [
            ("--seed", self.seed, 1),
            ("--timeout", self.timeout, 5),
            ("--start-timeout", self.start_timeout, 30),
            ("--max-seconds", self.max_seconds, 300),
        ];
        let flags = limits.into_iter().filter(|(_, value, usual)| value != usual);
        flags.map(|(name, value, _)| format!(" {name} {value}")).collect::<Vec<_>>().concat()
    }

    /// The laws that are broken on purpose: by a preset, and as the flags say.
    fn settings(&self, spec: &StrategySpec) -> Result<Settings> {
        let broken = spec.breaks()?.into_iter().flat_map(laws_of);
        let declared = broken.map(|law| ((*law).to_owned(), "the preset declares it".to_owned()));
        let mut allowed: BTreeMap<String, String> = declared.collect();
        let flags = self.allow.iter().cloned();
        allowed.extend(flags.map(|law| (law, "`--allow`".to_owned())));
        Ok(Settings {
            seed: self.seed,
            allowed,
            only: self.only.iter().cloned().collect(),
            stop: requested_after(Duration::from_secs(self.max_seconds)),
        })
    }
}

/// A token that is requested by itself once this time is over.
fn requested_after(time: Duration) -> StopToken {
    let stop = StopToken::default();
    let token = stop.clone();
    std::thread::spawn(move || {
        std::thread::sleep(time);
        token.request();
    });
    stop
}

/// The laws of a check that a law of stages is about.
fn laws_of(law: Law) -> &'static [&'static str] {
    match law {
        Law::ValidContext => &["valid_context"],
        Law::TrueOrigins => &[],
        Law::KeepsLastUserMessage => &["newest_request_stays", "newest_results_stay"],
        Law::NeverLarger => &["never_larger"],
        Law::IdempotentAtRest => &["idempotent_at_rest"],
        Law::SafeFailure => &["safe_failure"],
    }
}

fn facts(checked: &Checked, args: &Args) -> Value {
    let (state, _) = state(checked);
    let (sessions, reason) = match &checked.state {
        LawState::Held(count) => (Some(count), None),
        LawState::Declared(why) => (None, Some(why)),
        _ => (None, None),
    };
    json!({
        "law": checked.law,
        "level": checked.level.name(),
        "expected": checked.expected,
        "state": state,
        "sessions": sessions,
        "reason": reason,
        "finding": checked.finding().map(|finding| found(checked.law, finding, args)),
    })
}

/// The name of a law's state, and what a build server shows of it.
fn state(checked: &Checked) -> (&'static str, Option<String>) {
    match &checked.state {
        LawState::Held(_) => ("held", None),
        LawState::Broken(finding) => ("broken", Some(got(finding))),
        LawState::NoChance => ("no_chance", Some("it had no chance to be broken".to_owned())),
        LawState::NotAsked => ("not_asked", Some("not asked of this kind".to_owned())),
        LawState::Declared(reason) => ("declared", Some(format!("broken on purpose: {reason}"))),
        LawState::NotTried => ("not_tried", Some("not tried".to_owned())),
        LawState::OutOfTime => {
            ("out_of_time", Some("not judged in time (`--max-seconds`)".to_owned()))
        }
    }
}

/// The seen behaviour on one line: a program may have written it.
fn got(finding: &BrokenLaw) -> String {
    escape::short(&finding.got.trim().replace('\n', " ↵ "), GOT)
}

fn found(law: &str, finding: &BrokenLaw, args: &Args) -> Value {
    let words = args.command.iter().map(|word| " ".to_owned() + &escape::shell(word));
    let of = match &args.strategy {
        Some(name) => escape::flag("--strategy", name),
        None if args.clients.strategy_stdio => "--strategy-stdio --results FILE".to_owned(),
        None => "--".to_owned() + &words.collect::<String>(),
    };
    json!({
        "got": got(finding),
        "scene": finding.scene,
        "window": finding.window,
        "system": finding.session.system().map(|system| system.chars().count()),
        "repeat": format!("proctor check --only {law}{} {of}", args.flags()),
        "messages": finding.session.messages().len(),
        "lines": lines(finding),
    })
}

/// The messages of a session, a line each; of many the last ones.
fn lines(finding: &BrokenLaw) -> Vec<String> {
    let lines = finding.session.messages().iter().enumerate().map(|(at, message)| {
        let blocks = message.content().iter().zip(message.model_text());
        let blocks: Vec<String> = blocks.map(|(block, text)| in_words(block, text)).collect();
        let line = format!("{at} {}: {}", message.role().name(), blocks.join("; "));
        escape::short(&line, LINE)
    });
    let mut lines: Vec<String> = lines.collect();
    let more = lines.len().saturating_sub(MESSAGES);
    if more > 0 {
        let between = format!("… {more} more …");
        lines.splice(1..=more, [between]);
    }
    lines
}

/// `uses Read (call-3-0)`, `result of call-3-0: part_3.rs…`, `picture`, or the text.
fn in_words(block: &ContentBlock, text: &str) -> String {
    let start: String = text.chars().take(SHOWN).collect();
    let text = start.trim().replace('\n', " ↵ ");
    match block {
        ContentBlock::Text(_) | ContentBlock::Opaque(_) => text,
        ContentBlock::Thinking(_) => "thinking".to_owned(),
        ContentBlock::ToolUse(tool) => format!("uses {} ({})", tool.name, tool.id),
        ContentBlock::ToolResult(result) => format!("result of {}: {text}", result.tool_use_id),
        ContentBlock::Image(_) => "picture".to_owned(),
    }
}

fn suite(name: &str, outcome: &CheckOutcome, is_strict: bool) -> Suite {
    let cases = outcome.laws.iter().map(|checked| {
        let (state, says) = state(checked);
        let outcome = match state {
            "broken" if is_strict || checked.level == LawLevel::Must => {
                junit::CaseOutcome::Failed(checked.level.name())
            }
            "out_of_time" => junit::CaseOutcome::Failed("time"),
            "held" | "broken" => junit::CaseOutcome::Passed,
            _ => junit::CaseOutcome::Skipped,
        };
        let lines = checked.finding().map(lines).unwrap_or_default();
        TestCase {
            name: checked.law.to_owned(),
            outcome,
            messages: says.into_iter().chain(lines).collect(),
        }
    });
    Suite { name: name.to_owned(), cases: cases.collect() }
}
