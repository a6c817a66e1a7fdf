//! Programs of the user's own: what scenarios and flags name as strategies, found and ready to be started.

use std::collections::BTreeMap;
use std::path::Path;

use super::environment;
use super::interrupt::end_programs_on_interrupt;
use crate::settings::{Place, Setting, SettingError, SettingTable};
use crate::strategy::external::{ALWAYS, CallingProgram, Host};
use crate::strategy::preset::StrategySpec;
use crate::units::{is_valid_id, to_valid_id};

/// The command of the program that started this process: it speaks on standard input and output.
pub(super) const CALLER: &str = "-";

/// A longer name is cut.
const LONGEST_NAME: usize = 40;

/// Finds the programs of each of these strategies.
pub(super) fn locate(strategies: &mut [StrategySpec]) -> Result<(), SettingError> {
    for spec in strategies {
        if spec.has_unlocated_program() {
            *spec = locate_one(spec.clone())?;
        }
    }
    Ok(())
}

/// A word of a command that names a file is passed as its absolute path, for a program runs in a folder of its own.
/// Paths start at the folder of the file that names them, and at the working directory where a flag does.
fn locate_one(spec: StrategySpec) -> Result<StrategySpec, SettingError> {
    let mut host = Host {
        folder: std::env::temp_dir(),
        search: environment("PATH")
            .map_or_else(Vec::new, |path| std::env::split_paths(&path).collect()),
        groups: end_programs_on_interrupt(),
        ..Host::default()
    };
    for (command, names, place) in spec.programs() {
        if *command == [CALLER] && matches!(place, Place::Flag(_)) {
            let (source, sink) = (std::io::stdin(), std::io::stdout());
            host.caller = Some(CallingProgram::over(Box::new(source), Box::new(sink)));
            continue;
        }
        let names = ALWAYS.into_iter().chain(names);
        host.environment
            .extend(names.filter_map(|name| Some((name.into(), environment(name)?.into()))));
        let folder = place.folder();
        if let Some(script) = missing_script(&command, folder) {
            return Err(SettingError::new(place, format!("there is no file `{script}`")).with_hint(
                "check the path; it starts at the working directory, or at the folder of the file that names it",
            ));
        }
        for word in command {
            let path = folder.join(word);
            if !path.is_file() {
                continue;
            }
            let absolute = std::path::absolute(&path).map_err(|error| {
                SettingError::new(place, format!("cannot find `{}`: {error}", path.display()))
            })?;
            host.files.insert(word.to_owned(), absolute);
        }
    }
    spec.with_programs(host)
}

/// Programs that run a script which a later word names.
const LAUNCHERS: [&str; 12] =
    ["python", "pypy", "uv", "env", "node", "bun", "deno", "tsx", "sh", "bash", "ruby", "perl"];

/// The script that a command runs by its launcher, where it is not there.
fn missing_script<'a>(command: &[&'a str], folder: &Path) -> Option<&'a str> {
    let [launcher, script, ..] = command else {
        return None;
    };
    let named = is_launcher(launcher) && Path::new(script).extension().is_some();
    (named && !script.starts_with('-') && !folder.join(script).exists()).then_some(*script)
}

/// Whether a word is one of these, whatever its folder and version: `../venv/bin/python3.12`.
fn is_launcher(word: &str) -> bool {
    let file = Path::new(word).file_name().unwrap_or_default().to_string_lossy();
    let name = file.trim_end_matches(".exe");
    LAUNCHERS.contains(&name.trim_end_matches(|last: char| last.is_ascii_digit() || last == '.'))
}

/// The strategies of `--strategy-cmd`, each named after its program's file. Where several have one name, a name is made of
/// what sets its command apart, so that it stays that command's in any order; commands that are the same are numbered.
pub(super) fn of_flags(commands: &[String]) -> Result<Vec<Setting>, SettingError> {
    let typed: Vec<(Place, Vec<String>)> =
        commands.iter().map(|command| words_of(command)).collect::<Result<_, _>>()?;
    let all: Vec<&[String]> = typed.iter().map(|(_, words)| &**words).collect();
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    let mut settings = Vec::new();
    for (place, words) in &typed {
        let mut name = name_among(words, &all);
        let number = taken.entry(name.clone()).or_default();
        *number += 1;
        if *number > 1 {
            if words == &[CALLER] {
                let problem = "standard input and output are one program's";
                return Err(SettingError::new(place, problem.to_owned()));
            }
            name = format!("{name}-{number}");
        }
        let mut entry = SettingTable::new(place.clone());
        entry.put("name", name, place);
        let command = words.iter().map(|word| Setting::new(word.clone(), place));
        entry.put("command", command.collect::<Vec<_>>(), place);
        settings.push(Setting::new(entry, place));
    }
    Ok(settings)
}

/// The words of a command, and its place.
fn words_of(command: &str) -> Result<(Place, Vec<String>), SettingError> {
    let place = Place::Flag(format!("--strategy-cmd {command}").into());
    let words = shlex::split(command).filter(|words| !words.is_empty());
    let Some(words) = words else {
        let problem = format!("`{command}` is no command: a quote is not closed, or it is empty");
        return Err(SettingError::new(&place, problem)
            .with_hint("as in `--strategy-cmd 'python3 mine.py'`"));
    };
    Ok((place, words))
}

/// The word of a command that names its program: the first file that is no launcher, else the first word.
fn program_of(words: &[String]) -> &String {
    let mut files = words.iter().filter(|word| Path::new(word).is_file());
    files.find(|word| !is_launcher(word)).unwrap_or(&words[0])
}

/// The name of a program by itself: that of its file.
fn stem_of(program: &str) -> String {
    let file = Path::new(program).file_stem().unwrap_or_default();
    let stem = file.to_string_lossy().to_lowercase().replace('_', "-");
    if is_valid_id(&stem) { stem } else { "program".to_owned() }
}

/// The name of a command among all: of its program, and of the words that another command with this name has not.
fn name_among(words: &[String], all: &[&[String]]) -> String {
    let program = program_of(words);
    let stem = stem_of(program);
    let alike = all.iter().filter(|other| stem_of(program_of(other)) == stem);
    let mut own: Vec<&String> = words.iter().collect();
    own.retain(|word| alike.clone().any(|other| !other.contains(word)));
    let mut parts = vec![stem.clone()];
    if own.contains(&program) {
        let path = Path::new(program).components().rev().take(2);
        parts = path.map(|part| part.as_os_str().to_string_lossy().into()).collect();
        parts.reverse();
    }
    own.retain(|word| *word != program && !is_launcher(word));
    parts.extend(own.iter().map(|word| word.trim_start_matches('-').to_owned()));
    to_valid_id(&parts.join("-"), LONGEST_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_named_after_its_script_whatever_runs_it() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["python3.12", "my_own.py", "mine.mjs", "mine", "settings.toml"] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        let at = folder.path().display();
        for (command, name) in [
            (format!("{at}/python3.12 {at}/my_own.py"), "my-own"),
            (format!("python3 {at}/my_own.py {at}/settings.toml"), "my-own"),
            (format!("uv run {at}/my_own.py"), "my-own"),
            (format!("node {at}/mine.mjs"), "mine"),
            (format!("{at}/mine {at}/settings.toml"), "mine"),
            ("pytest -q".to_owned(), "pytest"),
        ] {
            assert_eq!(names_of(&[&command]), [name], "{command}");
        }
    }

    fn names_of(commands: &[&str]) -> Vec<String> {
        let commands: Vec<String> = commands.iter().map(ToString::to_string).collect();
        let settings = of_flags(&commands).unwrap();
        let tables = settings.iter().filter_map(Setting::as_table);
        tables.filter_map(|entry| entry.text("name")).map(str::to_owned).collect()
    }

    #[test]
    fn a_name_stays_that_of_its_command_in_any_order() {
        for (commands, names) in [
            (["one 5", "one 10"], ["one-5", "one-10"]),
            (["one", "one --keep 5"], ["one", "one-keep-5"]),
            (["a/v1/one.py", "a/v2/one.py"], ["v1-one.py", "v2-one.py"]),
            (["one.py", "one.mjs"], ["one.py", "one.mjs"]),
            (["one", "two"], ["one", "two"]),
        ] {
            assert_eq!(names_of(&commands), names);
            let [first, second] = commands;
            assert_eq!(names_of(&[second, first]), [names[1], names[0]]);
        }
        assert_eq!(names_of(&["one", "one"]), ["one", "one-2"]);
    }
}
