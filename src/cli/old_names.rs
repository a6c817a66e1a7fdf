//! Commands that have another name today.

/// The old words, and those of today.
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

/// The command line of today for one that begins with an old command.
pub(super) fn command_of_today(line: &str) -> Option<String> {
    COMMANDS.iter().find_map(|(old, now)| {
        let rest = line.strip_prefix(old)?;
        let is_whole = rest.is_empty() || rest.starts_with(' ');
        is_whole.then(|| format!("proctor {now}{rest}"))
    })
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
