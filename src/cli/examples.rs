//! Commands in the order of their work, each with examples: one table, and a test that every example is a valid call.

use clap::Command;

/// How many of the commands are in the help; the others work, and are hidden.
const SHOWN: usize = 15;

/// A command, and its examples: a call, and what it does.
type Examples = (&'static str, &'static [(&'static str, &'static str)]);

/// The commands in the order of the help.
const COMMANDS: &[Examples] = &[
    (
        "run",
        &[
            ("proctor run", "the built-in quick start"),
            (
                "proctor run ~/.claude/projects/PROJECT --strategy codex --strategy observation-masking",
                "all recordings of a folder",
            ),
            (
                "proctor run --strategy-cmd 'python3 mine.py'",
                "a program of your own as strategy",
            ),
            (
                "proctor run suite.toml --graded openai:gpt-5.4-mini --usd 5 --dry-run",
                "what five dollars would buy, without spending them",
            ),
        ],
    ),
    (
        "sweep",
        &[
            (
                "proctor sweep --strategy observation-masking",
                "how often it fires and how much it keeps, on the quick start",
            ),
            (
                "proctor sweep recordings --strategy codex --apply",
                "on your own sessions; what is recommended becomes `codex-tuned.toml`",
            ),
            (
                "proctor sweep --strategy observation-masking -P clear_results.keep_last=2..12:5 -P clear_results.every=1,5,10",
                "knobs and values of your own",
            ),
        ],
    ),
    (
        "compare",
        &[
            (
                "proctor compare reports/before reports/after",
                "two runs, strategy by strategy",
            ),
            (
                "proctor compare reports/run::codex reports/run::claude-code",
                "two strategies of one run",
            ),
            (
                "proctor compare --gate reports/run --baseline main -o comment.md",
                "exit code 100 if anything got worse, and the comment for a pull request",
            ),
        ],
    ),
    (
        "autopsy",
        &[
            (
                "proctor autopsy",
                "the newest sessions on this machine, the worst first",
            ),
            (
                "proctor autopsy session.jsonl -o autopsy.html",
                "one session: a screen, and a page with all that it found",
            ),
            (
                "proctor autopsy ~/.claude/projects/PROJECT --json",
                "all sessions of a folder, as JSON",
            ),
        ],
    ),
    (
        "live",
        &[
            (
                "proctor live --strategy none --strategy codex --upstream https://api.anthropic.com --listen 127.0.0.1:8787",
                "then run the agent at http://127.0.0.1:8787/t/TASK/s/1",
            ),
            (
                "proctor live --strategy none --strategy codex --check",
                "whether the log gives the same contexts again",
            ),
        ],
    ),
    (
        "record",
        &[
            (
                "proctor record --upstream https://api.anthropic.com -o recordings",
                "then run the agent, and `proctor run recordings`",
            ),
            (
                "proctor record --upstream http://127.0.0.1:8000 --listen 127.0.0.1:8787",
                "in front of a server of your own, at a port of your choice",
            ),
        ],
    ),
    (
        "sessions",
        &[
            ("proctor sessions", "what there is to replay"),
            ("proctor sessions -n 100 --json", "as JSON"),
        ],
    ),
    (
        "sessions import",
        &[
            (
                "proctor sessions import ~/.codex/sessions --list",
                "what there is, without writing",
            ),
            (
                "proctor sessions import session.jsonl -o sessions --redact",
                "one recording in the native format, without keys and names",
            ),
        ],
    ),
    (
        "sessions generate",
        &[
            (
                "proctor sessions generate code-review --tokens 200000 -o sessions",
                "a session and its facts",
            ),
            (
                "proctor sessions generate --describe code-review recordings",
                "whether it is like your own sessions",
            ),
        ],
    ),
    (
        "sessions facts",
        &[
            (
                "proctor sessions facts recordings",
                "facts to ask about, beside each recording",
            ),
            (
                "proctor sessions facts --check ID.truth.json",
                "after an edit: each mistake with its line",
            ),
        ],
    ),
    (
        "strategies",
        &[
            ("proctor strategies", "the presets"),
            (
                "proctor strategies show codex",
                "one as TOML, with its knobs",
            ),
        ],
    ),
    (
        "check",
        &[
            (
                "proctor check -- python3 mine.py",
                "a program, in windows of 6,000 to 1,000,000 tokens",
            ),
            (
                "proctor check --allow idempotent_at_rest --junit check.xml -- ./mine",
                "without one law, and for a build server",
            ),
        ],
    ),
    (
        "init",
        &[
            ("proctor init", "proctor.toml, to start from"),
            ("proctor init suite.toml", "another name"),
        ],
    ),
    (
        "inspect",
        &[
            (
                "proctor inspect session.jsonl --strategy codex --window 80k --at 30",
                "the prompt of call 30",
            ),
            (
                "proctor inspect reports/run --cell code-review-s1-t100000/codex --metric bill_saved",
                "what a number is made of",
            ),
        ],
    ),
    (
        "report",
        &[
            ("proctor report reports/run --tables", "every table"),
            (
                "proctor report reports/run -o report.html -o report.csv",
                "a page, and the numbers of every cell",
            ),
            (
                "proctor report reports/run --serve",
                "the page in a browser, while the run goes on",
            ),
        ],
    ),
    (
        "baseline",
        &[
            (
                "proctor baseline save reports/run main",
                "baselines/main.json, for git",
            ),
            ("proctor baseline list", "what was saved"),
        ],
    ),
    ("judge", &[]),
    (
        "judge score",
        &[
            (
                "proctor judge score reports/run --judge openai:gpt-5-mini",
                "grade what rules could not",
            ),
            (
                "proctor judge score reports/run --judge openai:gpt-5-mini --judge anthropic:claude-haiku-4-5 --all",
                "two judges vote on every answer",
            ),
        ],
    ),
    (
        "judge test",
        &[
            (
                "proctor judge test --from-run reports/run -o labels.csv",
                "answers for people to label",
            ),
            (
                "proctor judge test labels.csv --judge openai:gpt-5-mini -o judge.json",
                "whether the judge agrees with the labels",
            ),
        ],
    ),
    (
        "doctor",
        &[
            (
                "proctor doctor suite.toml",
                "the first mistake with its line, or what the scenario would run",
            ),
            (
                "proctor doctor --all",
                "every setting, and where it comes from",
            ),
        ],
    ),
    (
        "merge",
        &[(
            "proctor merge shard-1 shard-2 shard-3 --out run",
            "three parts as one run",
        )],
    ),
    (
        "budget",
        &[(
            "proctor budget --window 200000 --preset codex",
            "where compaction starts",
        )],
    ),
    ("cache", &[]),
    (
        "cache list",
        &[(
            "proctor cache list reports/run/cassette.jsonl",
            "its answers, by model and purpose",
        )],
    ),
    (
        "cache verify",
        &[(
            "proctor cache verify reports/run/cassette.jsonl",
            "whether each answer is whole",
        )],
    ),
    (
        "schema",
        &[("proctor schema scenario", "for an editor that checks TOML")],
    ),
    (
        "explain",
        &[("proctor explain", "the codes that it explains")],
    ),
    (
        "completions",
        &[("proctor completions bash", "for the shell to read")],
    ),
    ("man", &[("proctor man -o man", "all pages, in a folder")]),
];

/// An example of a command, by its whole name: the first that has this word, else the first.
pub(super) fn of(name: &str, word: &str) -> Option<&'static str> {
    let calls = COMMANDS.iter().flat_map(|(_, examples)| *examples);
    let mut calls = calls
        .map(|(call, _)| *call)
        .filter(|call| call.starts_with(name));
    let first = calls.clone().next();
    calls.find(|call| call.contains(word)).or(first)
}

/// The same command, its subcommands in the order of the table and with examples in front of what their help ends with.
pub(super) fn with_examples(command: Command) -> Command {
    let order = COMMANDS.iter().filter(|(name, _)| !name.contains(' '));
    let order: Vec<&str> = order.map(|(name, _)| *name).collect();
    command.mut_subcommands(|own| {
        let place = order.iter().position(|name| *name == own.get_name());
        let place = place.unwrap_or(order.len());
        let own = own.display_order(place).hide(place >= SHOWN);
        with_own_examples(own, "")
    })
}

/// A command below `parent` with its examples, and those of its own subcommands.
fn with_own_examples(command: Command, parent: &str) -> Command {
    let path = format!("{parent}{}", command.get_name());
    let below = format!("{path} ");
    let command = command.mut_subcommands(|own| with_own_examples(own, &below));
    let found = COMMANDS.iter().find(|(name, _)| *name == path);
    let Some((_, examples @ [_, ..])) = found else {
        return command;
    };
    let lines = examples
        .iter()
        .map(|(call, does)| format!("  {call}\n      {does}\n"));
    let mut help = format!("Examples:\n{}", lines.collect::<String>());
    if let Some(more) = command.get_after_help() {
        help = format!("{help}\n{more}");
    }
    command.after_help(help)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn each_example_is_a_valid_call_of_its_command() {
        for (name, examples) in COMMANDS {
            for (call, _) in *examples {
                let parsed = Cli::command().try_get_matches_from(call.split(' '));
                let parsed = parsed.unwrap_or_else(|error| panic!("{call}: {error}"));
                let own = parsed.subcommand_name().unwrap_or_default();
                assert!(name.starts_with(own), "{call}");
            }
        }
    }

    #[test]
    fn each_command_has_a_place_in_the_help() {
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            assert!(COMMANDS.iter().any(|(known, _)| *known == name), "{name}");
        }
    }
}
