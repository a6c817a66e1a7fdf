//! Words of earlier command lines, with those of today.

/// Commands that have another name or place: the old words, and those of today.
const COMMANDS: &[(&str, &str)] = &[
    ("eval", "run"),
    ("gate", "compare --gate"),
    ("plan", "run --dry-run"),
    ("validate", "doctor"),
    ("view", "report --serve"),
    ("import", "sessions import"),
    ("generate", "sessions generate"),
    ("probes derive", "sessions facts"),
    ("probes check", "sessions facts --check"),
    ("probes show", "sessions facts --show"),
    ("probes", "sessions facts"),
    ("score", "judge score"),
    ("calibrate", "judge test"),
    ("tasks", "live"),
];

/// Flags that are keys or other flags today, with how the names of the commands begin that had them.
const FLAGS: &[(&str, &str, &str)] = &[
    ("proctor sessions", "--facts", "--set fact_percent=…"),
    (
        "proctor sessions",
        "--observations",
        "--set observation_percent=…",
    ),
    ("proctor sessions", "--results", "--set result_percent=…"),
    ("proctor sessions", "--distractors", "--set distractors=…"),
    ("proctor sessions", "--phrasings", "--set phrasings=…"),
    ("proctor sessions", "--head-tokens", "--set head_tokens=…"),
    ("proctor sessions", "--language", "--set language=…"),
    ("proctor run", "--message-format", "--json"),
    ("proctor run", "--baseline-lenient", "--baseline …"),
    ("proctor run", "--fail-on", "--set gate.fail_on=…"),
    ("proctor run", "--anchor", "--set gate.anchor=…"),
    ("proctor run", "--target", "--set gate.target=…"),
    ("proctor", "--counter", "--set counter=…"),
    ("proctor", "--sizes", "--set sizes=…"),
    ("proctor", "--seed", "--set seed=…"),
    ("proctor", "--repeats", "--set repeats=…"),
    ("proctor", "--prices", "--set cache.prices=…"),
    ("proctor", "--token-limit", "--set models.budget.tokens=…"),
    ("proctor", "--time-limit", "--set models.budget.minutes=…"),
    ("proctor", "--no-side-chains", "--set side_chains=false"),
    ("proctor", "--strict", "--set strict=true"),
];

/// The command line of today for one that begins with an old command.
pub(super) fn command_of_today(line: &str) -> Option<String> {
    COMMANDS.iter().find_map(|(old, now)| {
        let rest = line.strip_prefix(old)?;
        let is_whole = rest.is_empty() || rest.starts_with(' ');
        is_whole.then(|| format!("proctor {now}{rest}"))
    })
}

/// What an old flag of a command that takes settings is written as today.
pub(super) fn flag_of_today(command: &str, typed: &str) -> Option<&'static str> {
    let mut flags = FLAGS.iter();
    let found = flags.find(|(name, old, _)| command.starts_with(name) && *old == typed);
    found.map(|(.., now)| *now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_command_line_is_said_in_the_words_of_today() {
        for (typed, now) in [
            (
                "gate r --baseline main",
                "proctor compare --gate r --baseline main",
            ),
            ("plan", "proctor run --dry-run"),
            (
                "probes check f.json",
                "proctor sessions facts --check f.json",
            ),
            ("probes f.json", "proctor sessions facts f.json"),
        ] {
            assert_eq!(command_of_today(typed).as_deref(), Some(now));
        }
        assert_eq!(command_of_today("planned s.toml"), None);
    }
}
