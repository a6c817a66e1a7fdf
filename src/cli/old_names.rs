//! Words of earlier command lines, and the command line of today with the user's own arguments.

use std::ffi::OsString;

use crate::report::escape::shell;

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

/// Commands that read a scenario.
const OF_SCENARIOS: &[&str] = &["run", "sweep", "doctor", "live", "inspect"];

/// Flags that are keys or other flags today, with the commands that had them; `*` stands for the value.
const FLAGS: &[(&[&str], &str, &str)] = &[
    (OF_SCENARIOS, "--counter *", "--set counter=*"),
    (OF_SCENARIOS, "--sizes *", "--set sizes=*"),
    (OF_SCENARIOS, "--seed *", "--set seed=*"),
    (OF_SCENARIOS, "--repeats *", "--set repeats=*"),
    (OF_SCENARIOS, "--prices *", "--set cache.prices=*"),
    (
        OF_SCENARIOS,
        "--token-limit *",
        "--set models.budget.tokens=*",
    ),
    (
        OF_SCENARIOS,
        "--time-limit *",
        "--set models.budget.minutes=*",
    ),
    (OF_SCENARIOS, "--no-side-chains", "--set side_chains=false"),
    (OF_SCENARIOS, "--strict", "--set strict=true"),
    (&["sessions"], "--facts *", "--set fact_percent=*"),
    (
        &["sessions"],
        "--observations *",
        "--set observation_percent=*",
    ),
    (&["sessions"], "--results *", "--set result_percent=*"),
    (&["sessions"], "--distractors *", "--set distractors=*"),
    (&["sessions"], "--phrasings *", "--set phrasings=*"),
    (&["sessions"], "--head-tokens *", "--set head_tokens=*"),
    (&["sessions"], "--language *", "--set language=*"),
    (&["run"], "--message-format *", "--json"),
    (&["run"], "--baseline-lenient *", "--baseline *"),
    (&["run"], "--fail-on *", "--set gate.fail_on=*"),
    (&["run"], "--anchor *", "--set gate.anchor=*"),
    (&["run"], "--target *", "--set gate.target=*"),
];

/// Prints the command line of today for one with old names; false where it has none.
pub(super) fn are_said(typed: &[OsString]) -> bool {
    // `proctor help plan` asks for a command, too.
    let words = typed.iter().skip(1).skip_while(|word| *word == "help");
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let Some((old, today)) = of_today(&words) else {
        return false;
    };
    let (verb, old) = (if old.len() == 1 { "is" } else { "are" }, old.join("`, `"));
    say!("error: `{}` {verb} written in another way now", old);
    let line = today.iter().map(|word| shell(word)).collect::<Vec<_>>();
    say!(" hint: `proctor {}`", line.join(" "));
    true
}

/// The old names of a command line, and its words without them; `None` where it has none.
fn of_today(words: &[String]) -> Option<(Vec<String>, Vec<String>)> {
    let line = words.join(" ") + " ";
    let mut commands = COMMANDS.iter();
    let moved = commands.find(|(name, _)| line.starts_with(&format!("{name} ")));
    let (name, now) = moved
        .copied()
        .or_else(|| Some((words.first()?, words.first()?)))?;
    let mut old = Vec::from_iter(moved.map(|(name, _)| format!("proctor {name}")));
    let mut today: Vec<String> = now.split(' ').map(str::to_owned).collect();
    let command = today[0].clone();
    let mut rest = words[name.split(' ').count()..].iter();
    while let Some(word) = rest.next() {
        let (typed, value) = word.split_once('=').unwrap_or((word, ""));
        let found = FLAGS.iter().find(|(commands, flag, _)| {
            commands.contains(&&*command) && flag.split(' ').next() == Some(typed)
        });
        let Some((_, flag, now)) = found else {
            today.push(word.clone());
            if word == "--" {
                break;
            }
            continue;
        };
        let value = match rest.as_slice() {
            [next, ..] if flag.ends_with('*') && typed == word => {
                rest.next();
                next
            }
            _ => value,
        };
        old.push(typed.to_owned());
        today.extend(now.split(' ').map(|word| word.replace('*', value)));
    }
    today.extend(rest.cloned());
    (!old.is_empty()).then_some((old, today))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(typed: &str, now: &str) {
        let words: Vec<String> = typed.split(' ').map(str::to_owned).collect();
        let today = of_today(&words).map(|(_, today)| today.join(" "));
        assert_eq!(today.unwrap_or_default(), now, "{typed}");
    }

    #[test]
    fn an_old_command_line_is_said_in_the_words_of_today() {
        for (typed, now) in [
            (
                "gate r --baseline main -o x.md",
                "compare --gate r --baseline main -o x.md",
            ),
            ("plan s.toml --seed 4", "run --dry-run s.toml --set seed=4"),
            ("validate s.toml", "doctor s.toml"),
            ("view r --port 80", "report --serve r --port 80"),
            ("import a b -o c", "sessions import a b -o c"),
            ("probes check f.json", "sessions facts --check f.json"),
            ("score r --judge m", "judge score r --judge m"),
            ("calibrate --answers a", "judge test --answers a"),
            ("eval", "run"),
            (
                "run --counter=chars/4 --seed 2",
                "run --set counter=chars/4 --set seed=2",
            ),
            (
                "run s.toml --message-format json --repeats 3",
                "run s.toml --json --set repeats=3",
            ),
            (
                "run --prices p.toml --strict",
                "run --set cache.prices=p.toml --set strict=true",
            ),
            (
                "run --gate --fail-on inconclusive",
                "run --gate --set gate.fail_on=inconclusive",
            ),
            // These are no old names.
            ("run s.toml --bogus", ""),
            ("check --seed 3", ""),
            ("live --upstream u -- --seed 3", ""),
            ("", ""),
        ] {
            check(typed, now);
        }
    }
}
