//! The commands in the order of their work, each with examples: one text, and a test that every example is a valid call.

use clap::Command;

/// A block for each command, behind a blank line: its name, and its examples as they are shown.
const EXAMPLES: &str = include_str!("text/examples.txt");

/// Commands below this block are not in the help.
const HIDDEN: &str = "hidden";

/// How the help of some commands ends: a block for each, behind two blank lines.
const ENDS: &str = include_str!("text/help_ends.txt");

/// The names of commands with their examples.
fn blocks() -> impl Iterator<Item = (&'static str, &'static str)> {
    parts(EXAMPLES, "\n\n")
}

fn parts(
    text: &'static str,
    gap: &'static str,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.split(gap).skip(1).map(|part| {
        let block = part.trim_end();
        block.split_once('\n').unwrap_or((block, ""))
    })
}

/// An example of a command, by its whole name: the first that has this word, else the first.
pub(super) fn of(name: &str, word: &str) -> Option<&'static str> {
    let mut calls = EXAMPLES.lines().map(str::trim).filter(|call| call.starts_with(name));
    let first = calls.clone().next();
    calls.find(|call| call.contains(word)).or(first)
}

/// The place of a command in the help.
fn place(name: &str) -> Option<usize> {
    blocks().position(|(known, _)| known == name)
}

/// The same command, its subcommands in the order of the text and with examples in front of what their help ends with.
pub(super) fn with_examples(command: Command) -> Command {
    command.mut_subcommands(|own| {
        let number = place(own.get_name()).unwrap_or(usize::MAX);
        with_own_examples(own.display_order(number).hide(Some(number) > place(HIDDEN)), "")
    })
}

/// A command below `parent` with its examples, and those of its own subcommands.
fn with_own_examples(bare: Command, parent: &str) -> Command {
    let path = format!("{parent}{}", bare.get_name());
    let below = format!("{path} ");
    let command = bare.mut_subcommands(|own| with_own_examples(own, &below)).mut_args(|arg| {
        // The reader of a number says why it takes no negative one.
        let takes_one = arg.get_action().takes_values() && !arg.is_positional();
        arg.allow_negative_numbers(takes_one)
    });
    let own = command.get_after_help().map(ToString::to_string);
    let ending = parts(ENDS, "\n\n\n").find(|(name, _)| *name == path);
    let end = ending.map(|(_, end)| end.to_owned()).or(own);
    let block = blocks().find(|(name, examples)| *name == path && !examples.is_empty());
    let examples = block.map(|(_, examples)| format!("Examples:\n{examples}"));
    let help: Vec<String> = examples.into_iter().chain(end).collect();
    if help.is_empty() {
        return command;
    }
    command.after_help(help.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn each_example_is_a_valid_call_of_its_command() {
        for (name, examples) in blocks() {
            for call in examples.lines().filter(|line| !line.starts_with("   ")).map(str::trim) {
                let words = call.split(' ').collect::<Vec<_>>();
                let parsed = Cli::command().try_get_matches_from(&words);
                parsed.unwrap_or_else(|error| panic!("{call}: {error}"));
                assert!(call.starts_with(&format!("proctor {name}")), "{call}");
            }
        }
    }

    #[test]
    fn each_command_has_a_place_in_the_help() {
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            assert!(place(name).is_some(), "{name}");
        }
    }
}
