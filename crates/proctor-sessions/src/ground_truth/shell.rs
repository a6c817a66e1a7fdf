//! Finds the files that a shell command shows.

/// Commands that print files, or parts of them, to the person or agent that runs them.
const SHOWS: &[&str] = &[
    "bat", "cat", "egrep", "fgrep", "grep", "head", "jq", "less", "more", "nl", "rg", "sed",
    "tail", "wc", "xxd",
];

/// Those of them whose first argument is a pattern or a script.
const PATTERN_FIRST: &[&str] = &["egrep", "fgrep", "grep", "jq", "rg", "sed"];

/// Options whose value is the next word.
const WITH_VALUE: &[&str] = &["-A", "-B", "-C", "-c", "-m", "-n"];

/// The paths that a command line shows, in the order of their first mention.
///
/// A path has a slash or a dot in it and no pattern; what is written to is none. Files that are named
/// by a variable or found by another command are not seen.
pub(super) fn shown_files(command: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for words in commands(command) {
        for path in shown_by(&words) {
            if is_path(path) && !found.iter().any(|known| known == path) {
                found.push(path.to_owned());
            }
        }
    }
    found
}

/// The arguments of one command that may be files it shows.
fn shown_by(command: &[String]) -> Vec<&str> {
    let mut words = command.iter().map(String::as_str);
    let path = words.next().unwrap_or_default();
    let program = path.rsplit('/').next().unwrap_or(path);
    if !SHOWS.contains(&program) {
        return Vec::new();
    }
    let mut is_pattern = PATTERN_FIRST.contains(&program);
    let mut shown = Vec::new();
    while let Some(word) = words.next() {
        if word.starts_with('>') {
            break;
        }
        if program == "sed" && word.starts_with("-i") {
            return Vec::new();
        }
        if word.starts_with('-') {
            // `sed -n` and `grep -n` take no value.
            let switch = word == "-n" && PATTERN_FIRST.contains(&program);
            if WITH_VALUE.contains(&word) && !switch {
                words.next();
            }
        } else if !std::mem::take(&mut is_pattern) {
            shown.push(word);
        }
    }
    shown
}

fn is_path(word: &str) -> bool {
    word.contains(['/', '.']) && !word.contains(['*', '$', '<', '>', '`', '(', '{', '?', '='])
}

/// The words of each command of a line, without their quotes.
pub fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut quote = None;
    for c in line.chars().chain([' ']) {
        if quote == Some(c) {
            quote = None;
        } else if quote.is_some() {
            word.push(c);
        } else if matches!(c, '\'' | '"') {
            quote = Some(c);
        } else if c.is_whitespace() || matches!(c, '|' | ';' | '&' | '(' | ')') {
            if let Some(command) = commands.last_mut()
                && !word.is_empty()
            {
                command.push(std::mem::take(&mut word));
            }
            if matches!(c, '|' | ';' | '&' | '(' | ')' | '\n') {
                commands.push(Vec::new());
            }
        } else {
            word.push(c);
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, expected: &[&str]) {
        assert_eq!(shown_files(command), expected, "{command}");
    }

    #[test]
    fn files_that_a_command_prints_are_found_and_no_patterns_counts_or_targets() {
        check("cat a.rs src/b", &["a.rs", "src/b"]);
        check("tail -n 43 logs/webhook.log", &["logs/webhook.log"]);
        check("head -20 'docs/x.md' 2>/dev/null", &["docs/x.md"]);
        check("sed -n 10,25p src/lib.rs", &["src/lib.rs"]);
        check("sed -n '1,2p; 7p' src/lib.rs", &["src/lib.rs"]);
        check("sed -i s/a.b/c/ src/lib.rs", &[]);
        check("grep -n \"two words.\" src/a.rs", &["src/a.rs"]);
        check("cd x && grep -rn needle.x src/ | head -5", &["src/"]);
        check("cat > new.txt", &[]);
        check("cargo test --lib a.b", &[]);
        check("cat $FILE *.rs", &[]);
        check("(cd x && cat a.rs) && wc $(ls b.rs)", &["a.rs"]);
    }
}
