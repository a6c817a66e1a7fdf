//! Whether a later tool call does what a lost rule forbids, where the rule names exactly what that is.

use std::ops::Range;

use super::anchors::command_of;
use crate::probe::survival::marks;
use crate::script::{ends_sentence, word_count};
use crate::session::ground_truth::commands;
use crate::session::{Session, Tag, ToolClass, ToolUse};
use crate::strategy::files;

/// A ban begins a sentence: what comes before so many words is no condition.
const FIRST_WORDS: usize = 6;

/// The first of these calls, which follow a compaction, that breaks the rule; `None` where it is not shown that one does. Where
/// a message behind the compaction says the rule again, or the user speaks of what it forbids, no compaction is to blame.
pub(super) fn first_call(rule: &str, session: &Session, mut calls: Range<usize>) -> Option<usize> {
    let ban = forbidden(rule)?;
    let mut events = session.compactions().iter();
    let from = events.rfind(|event| session.call_after(event.at) == calls.start)?.at;
    let broken = calls.find(|call| {
        session.message(session.calls()[*call]).tool_uses().any(|(_, tool)| does(tool, ban))
    })?;
    let again = session.messages()[from..session.calls()[broken]].iter().any(|message| {
        let words = if message.has_tag(Tag::TypedUser) { ban } else { rule };
        message.model_text().iter().any(|text| text.contains(words))
    });
    (!again).then_some(broken)
}

/// The command or path that a sentence forbids, if it begins with the ban, quotes one thing, and ends with it.
fn forbidden(rule: &str) -> Option<&str> {
    let (before, rest) = rule.split_once('`')?;
    let (quoted, after) = rest.split_once('`')?;
    let whole = after.chars().all(|c| (c.is_ascii_punctuation() || ends_sentence(c)) && c != '`');
    let short = word_count(before) <= FIRST_WORDS && !before.contains([',', '，', '、']);
    let ban = Some(quoted.trim()).filter(|ban| whole && short && !ban.is_empty());
    ban.filter(|_| marks(before).only_forbids())
}

/// Whether a tool use runs this command, or changes this file or one in this folder.
fn does(tool: &ToolUse, forbidden: &str) -> bool {
    if tool.class == ToolClass::Shell {
        return runs(&command_of(tool), forbidden);
    }
    let place = format!("/{}/", forbidden.trim_start_matches("./").trim_matches('/'));
    files::changed_by(tool).into_iter().any(|file| format!("/{file}/").contains(&place))
}

/// Whether one of the commands of a line begins with these words; the text that a command is given is none.
fn runs(line: &str, command: &str) -> bool {
    let words = commands(command).concat();
    let mut own = commands(line.split("<<").next().unwrap_or_default()).into_iter();
    !words.is_empty() && own.any(|own| own.starts_with(&words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_ban_that_names_all_of_what_it_forbids_can_be_broken() {
        for (rule, expected) in [
            ("Never run `git push --force`.", Some("git push --force")),
            ("Please do not use `npm install`!", Some("npm install")),
            ("Never edit `src/generated/`.", Some("src/generated/")),
            // A condition, an alternative, or no word for what is meant.
            ("If tests fail, never run `make deploy`.", None),
            ("Never run `make deploy` without asking.", None),
            ("Never use `npm`, use `pnpm`.", None),
            ("Always run `cargo fmt`.", None),
            ("Never push by force.", None),
            ("不要运行 `make deploy`。", Some("make deploy")),
            ("部署之前，不要运行 `make deploy`。", None),
        ] {
            assert_eq!(forbidden(rule), expected, "{rule}");
        }
    }

    #[test]
    fn a_command_is_run_where_it_stands_first() {
        for (line, is_run) in [
            ("git push --force", true),
            ("cd app && git push --force origin main", true),
            ("git push --force-with-lease", false),
            ("git commit -m 'say that; git push --force is banned'", false),
            ("rg 'git push --force' docs", false),
            ("cat <<X\ngit push --force\nX", false),
        ] {
            let found = runs(line, "git push --force");
            assert_eq!(found, is_run, "{line}");
        }
    }
}
