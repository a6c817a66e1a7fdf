//! Commands that have another name today.

/// The old words, and those of today.
const COMMANDS: &str = include_str!("text/old_names.txt");

/// The command line of today for one that begins with an old command.
pub(super) fn command_of_today(line: &str) -> Option<String> {
    COMMANDS.lines().find_map(|row| {
        let (old, now) = row.split_once(": ")?;
        let rest = line.strip_prefix(old)?;
        (rest.is_empty() || rest.starts_with(' ')).then(|| format!("proctor {now}{rest}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_command_line_is_said_in_the_words_of_today() {
        for (typed, now) in [
            ("gate r --baseline main", "proctor compare --gate r --baseline main"),
            ("plan", "proctor run --dry-run"),
            ("probes check f.json", "proctor sessions facts --check f.json"),
            ("probes f.json", "proctor sessions facts f.json"),
        ] {
            assert_eq!(command_of_today(typed).as_deref(), Some(now));
        }
        assert_eq!(command_of_today("planned s.toml"), None);
    }
}
