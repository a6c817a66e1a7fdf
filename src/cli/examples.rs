//! Examples in the help of each command: one table, and a test that each of them is a valid call.

use clap::Command;

/// Commands with their examples: the call, and what it does.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
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
                "proctor run suite.toml -o report.html --tables=lost",
                "a scenario; a page, and one table",
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
        "sessions",
        &[
            ("proctor sessions", "what there is to replay"),
            ("proctor sessions -n 100 --json", "as JSON"),
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
        ],
    ),
    (
        "gate",
        &[
            (
                "proctor gate reports/run --baseline main",
                "exit code 100 if anything got worse",
            ),
            (
                "proctor gate reports/run --baseline main -o comment.md",
                "and the comment for a pull request",
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
        ],
    ),
    (
        "view",
        &[(
            "proctor view reports/run",
            "the page, while the run goes on",
        )],
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
        &[(
            "proctor record --upstream https://api.anthropic.com -o recordings",
            "then run the agent, and `proctor run recordings`",
        )],
    ),
    (
        "import",
        &[
            (
                "proctor import ~/.codex/sessions --list",
                "what there is, without writing",
            ),
            (
                "proctor import session.jsonl -o sessions",
                "one recording in the native format",
            ),
        ],
    ),
    (
        "probes",
        &[(
            "proctor probes derive recordings",
            "facts to ask about, beside each recording",
        )],
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
    ("init", &[("proctor init", "proctor.toml, to start from")]),
    (
        "validate",
        &[(
            "proctor validate suite.toml",
            "the first mistake, with its line",
        )],
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
        "plan",
        &[
            (
                "proctor plan suite.toml --graded openai:gpt-5.4-mini --usd 5",
                "what five dollars buy",
            ),
            (
                "proctor plan suite.toml --shards 16 --out plan",
                "16 parts, for `proctor run --plan`",
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
        "baseline",
        &[(
            "proctor baseline save reports/run main",
            "baselines/main.json, for git",
        )],
    ),
    (
        "generate",
        &[(
            "proctor generate code-review --tokens 200000 -o sessions",
            "a session and its facts",
        )],
    ),
    (
        "budget",
        &[(
            "proctor budget --window 200000 --preset codex",
            "where compaction starts",
        )],
    ),
    (
        "completions",
        &[("proctor completions bash", "for the shell to read")],
    ),
];

/// The first example of a command, by its whole name.
pub(super) fn of(name: &str) -> Option<&'static str> {
    let calls = EXAMPLES.iter().flat_map(|(_, examples)| *examples);
    let mut calls = calls.map(|(call, _)| *call);
    calls.find(|call| call.starts_with(name))
}

/// The same command with the examples in front of what its help ends with.
pub(super) fn with_examples(mut command: Command) -> Command {
    for (name, examples) in EXAMPLES {
        command = command.mut_subcommand(name, |it| {
            let lines = examples
                .iter()
                .map(|(call, does)| format!("  {call}\n      {does}\n"));
            let mut help = format!("Examples:\n{}", lines.collect::<String>());
            if let Some(more) = it.get_after_help() {
                help = format!("{help}\n{more}");
            }
            it.after_help(help)
        });
    }
    command
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn each_example_is_a_valid_call_of_its_command() {
        for (name, examples) in EXAMPLES {
            for (call, _) in *examples {
                let parsed = Cli::command().try_get_matches_from(call.split(' '));
                let parsed = parsed.unwrap_or_else(|error| panic!("{call}: {error}"));
                assert_eq!(parsed.subcommand_name(), Some(*name), "{call}");
            }
        }
    }
}
