//! Mistakes in a command line, in the form of all other errors: what is wrong, and what to write instead.

use std::error::Error as _;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};

use super::CliError;
use super::Exit;
use super::{examples, listed, old_names};
use crate::metric::name::called;
use crate::report::escape::shell;
use crate::scenario;
use crate::settings::did_you_mean;

/// The error of a command line that clap refuses.
pub(super) fn explained(error: &Error, program: &Command, typed: &[OsString]) -> CliError {
    let typed: Vec<String> =
        typed.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let call = CalledCommand::of(program, &typed);
    let invalid = text(error, ContextKind::InvalidArg);
    let value = text(error, ContextKind::InvalidValue);
    let (problem, hint) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            call.unknown_command(&text(error, ContextKind::InvalidSubcommand))
        }
        ErrorKind::UnknownArgument => call.unknown_argument(&invalid),
        ErrorKind::InvalidValue if value.is_empty() => {
            let problem = format!("`{}` needs a value", flag_of(&invalid));
            (problem, format!("write `{}`", usage_of(&invalid)))
        }
        ErrorKind::InvalidValue => call.unknown_value(&invalid, &value, error),
        ErrorKind::ValueValidation => {
            let why = error.source().map(ToString::to_string).unwrap_or_default();
            let problem = format!("`{} {value}`: {}", flag_of(&invalid), wanted(&why, &value));
            (problem, call.help())
        }
        ErrorKind::MissingRequiredArgument => call.missing(error).unwrap_or_else(|| {
            (format!("`{}` needs {invalid}", call.name), call.example(flag_of(&invalid)))
        }),
        ErrorKind::ArgumentConflict if flag_of(&invalid) == flag_of(&prior(error)) => {
            let problem = format!("`{}` is given twice", flag_of(&invalid));
            (problem, "give it once".to_owned())
        }
        ErrorKind::ArgumentConflict => {
            let [one, other] = [&invalid, &prior(error)].map(|typed| flag_of(typed).to_owned());
            let problem = format!("`{one}` cannot be used with `{other}`");
            (problem, "leave one of them out".to_owned())
        }
        _ => {
            let all = error.to_string();
            let first = all.lines().next().unwrap_or_default();
            let problem = first.trim_start_matches("error: ").replace('\'', "`");
            (problem, call.example(""))
        }
    };
    CliError::new(Exit::Usage, problem).with_hint(hint)
}

fn prior(error: &Error) -> String {
    text(error, ContextKind::PriorArg)
}

fn text(error: &Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => listed(texts.iter().map(|text| format!("`{text}`"))),
        _ => String::new(),
    }
}

fn strings(error: &Error, kind: ContextKind) -> &[String] {
    match error.get(kind) {
        Some(ContextValue::Strings(texts)) => texts,
        _ => &[],
    }
}

/// The flag alone: `--out` of `--out <DIR>`.
fn flag_of(typed: &str) -> &str {
    let arg = typed.trim_matches(['`', '[', ']', '<', '>', '.']);
    arg.split([' ', '[', '=', '`']).next().unwrap_or(arg)
}

/// The reasons of parsers of numbers and addresses, each with words for people.
const REASONS: &str = include_str!("text/reasons.txt");

/// The reason for which a value is refused, in words for people.
fn wanted<'a>(why: &'a str, value: &str) -> &'a str {
    let digits = why == "invalid digit found in string" || why.contains(" is not in 0..");
    if value.starts_with('-') && digits {
        return "it must not be negative";
    }
    let mut rows = REASONS.lines().filter_map(|row| row.split_once(": "));
    rows.find(|(reason, _)| *reason == why).map_or(why, |(_, words)| words)
}

/// The command that was called.
struct CalledCommand<'a> {
    /// The program.
    program: &'a Command,
    command: &'a Command,
    /// `proctor baseline save`.
    name: String,
    /// The words behind the name.
    words: &'a [String],
}

impl<'a> CalledCommand<'a> {
    fn of(program: &'a Command, typed: &'a [String]) -> Self {
        let (mut command, mut words) = (program, typed);
        let mut name = program.get_name().to_owned();
        while let [first, rest @ ..] = words
            && let Some(found) = command.find_subcommand(first)
        {
            name = format!("{name} {}", found.get_name());
            (command, words) = (found, rest);
        }
        Self { program, command, name, words }
    }

    fn help(&self) -> String {
        format!("`{} --help` says what it takes", self.name)
    }

    /// A call that works, with this word where there is one, or else where calls are explained.
    fn example(&self, word: &str) -> String {
        let example = examples::of(&self.name, word);
        example.map_or_else(|| self.help(), |example| format!("as in `{example}`"))
    }

    /// Says which of the flags requires another one, that is missing: the last of the fewest words that do.
    fn missing(&self, error: &Error) -> Option<(String, String)> {
        strings(error, ContextKind::InvalidArg).iter().find_map(|missing| {
            let mut ends = 0..=self.words.len();
            let end = ends.find(|end| self.missing_in(&self.words[..*end]).contains(missing))?;
            let flag = self.words[..end].iter().rfind(|word| word.starts_with('-'))?;
            let problem = format!("`{}` goes with `{}`", flag_of(flag), flag_of(missing));
            let typed: Vec<String> = self.words.iter().map(|word| shell(word)).collect();
            let line = format!("{} {} {}", self.name, typed.join(" "), usage_of(missing));
            Some((problem, format!("write `{line}`")))
        })
    }

    /// The arguments that the command misses where it has these words.
    fn missing_in(&self, words: &[String]) -> Vec<String> {
        let line = std::iter::once(self.command.get_name()).chain(words.iter().map(String::as_str));
        let refused = self.command.clone().try_get_matches_from(line).err();
        let refused = refused.filter(|error| error.kind() == ErrorKind::MissingRequiredArgument);
        refused.map_or_else(Vec::new, |error| strings(&error, ContextKind::InvalidArg).to_vec())
    }

    fn unknown_command(&self, typed: &str) -> (String, String) {
        let line: Vec<String> =
            self.words.iter().skip_while(|word| *word != typed).map(|word| shell(word)).collect();
        if let Some(now) = old_names::command_of_today(&line.join(" ")) {
            let problem = format!("`{} {typed}` is written in another way now", self.name);
            return (problem, format!("`{now}`"));
        }
        let all = self.command.get_subcommands();
        let shown = all.filter(|command| !command.is_hide_set());
        let names: Vec<&str> = shown.map(Command::get_name).collect();
        let problem = format!("`{}` has no command `{typed}`", self.name);
        if let Some(meant) = near(typed, names.iter().copied()) {
            return (format!("{problem}, did you mean `{meant}`?"), self.help());
        }
        let first = examples::of(&format!("{} ", self.name), "");
        let example = first.map_or_else(String::new, |example| format!("; as in `{example}`"));
        (problem, format!("it has {}{example}", names.join(", ")))
    }

    fn unknown_argument(&self, typed: &str) -> (String, String) {
        if !typed.starts_with('-') {
            let problem = format!("`{}` takes no `{typed}`", self.name);
            return if self.command.get_positionals().any(Arg::is_last_set) {
                let problem = format!("{problem} in front of `--`");
                (problem, format!("write `{} -- {}`", self.name, self.words.join(" ")))
            } else {
                (problem, self.example(""))
            };
        }
        let problem = format!("`{}` has no flag `{typed}`", self.name);
        let key = typed.trim_start_matches('-').replace('-', "_");
        let mut settings = scenario::defaults().into_iter().map(|(path, _)| path);
        let named = settings.find(|path| path.rsplit('.').next() == Some(&*key));
        if let Some(path) = named.filter(|_| has_flag(self.command, "--window")) {
            return (problem, format!("write `--set {path}=…`"));
        }
        let flags = self.command.get_arguments().filter_map(Arg::get_long);
        if let Some(meant) = near(typed.trim_start_matches('-'), flags) {
            return (format!("{problem}, did you mean `--{meant}`?"), self.help());
        }
        let mut others = self.program.get_subcommands();
        match others.find(|other| !other.is_hide_set() && has_flag(other, typed)) {
            Some(other) => (problem, format!("`proctor {}` has it", other.get_name())),
            None => (problem, self.help()),
        }
    }

    fn unknown_value(&self, arg: &str, value: &str, error: &Error) -> (String, String) {
        let valid = strings(error, ContextKind::ValidValue);
        let valid: Vec<&str> = valid.iter().map(String::as_str).collect();
        if let Some(problem) = called(value, &valid) {
            return (format!("`{} {value}`: {problem}", flag_of(arg)), self.help());
        }
        let problem = match flag_of(arg) {
            flag if flag.starts_with('-') => format!("`{flag} {value}`: there is no such value"),
            place => format!("`{value}` is no {}", place.trim_matches(['<', '>'])),
        };
        match did_you_mean(value, valid.iter().copied()) {
            Some(meant) => (format!("{problem}, did you mean `{meant}`?"), self.help()),
            None => (problem, format!("it is one of {}", valid.join(", "))),
        }
    }
}

/// The flag with its value, as the help writes it.
fn usage_of(arg: &str) -> String {
    let shown = arg.replace(['<', '>'], "");
    match shown.split_once("[=") {
        Some((flag, value)) => format!("{flag}={}", value.trim_end_matches(']')),
        None => shown,
    }
}

/// The name that was meant, where most of its letters were typed.
fn near<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let meant = did_you_mean(typed, names)?;
    (strsim::osa_distance(typed, meant) * 2 <= meant.len()).then_some(meant)
}

fn has_flag(command: &Command, typed: &str) -> bool {
    command.get_arguments().any(|argument| {
        let long = argument.get_long().map(|long| format!("--{long}"));
        let short = argument.get_short().map(|short| format!("-{short}"));
        [long, short].iter().flatten().any(|flag| flag == typed)
    })
}
