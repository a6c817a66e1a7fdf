//! Whether a later tool call does what a lost rule forbids, where the rule names exactly what that is.

use super::RuleFate;
use crate::patterns::{Boundary, Pattern, Patterns};
use crate::probe::survival::marks;
use crate::session::{Session, ToolClass, ToolUse};
use crate::strategy::files;

/// A ban begins a sentence: what comes before so many words is no condition.
const FIRST_WORDS: usize = 6;

/// What a rule forbids: `Never run `git push --force`.` names it in full at its end.
#[derive(Debug, PartialEq, Eq)]
enum Forbidden {
    /// A command.
    Command(String),
    /// A change of a file, or of all below a folder.
    Change(String),
}

/// The first call after the rule was changed or lost that breaks it; `None` where it is not shown that one does.
pub(super) fn first_call(rule: &RuleFate, session: &Session) -> Option<usize> {
    let (gone_at, _) = rule.gone_at()?;
    // Where a later compaction's prompt holds the rule again, the user had repeated it.
    let mut fates = rule.fates.range(gone_at + 1..);
    let back = fates
        .find(|(_, fate)| !super::is_gone(**fate))
        .map(|(call, _)| *call);
    let forbidden = forbidden(&rule.rule)?;
    let mut calls = session.calls().iter().enumerate().skip(gone_at);
    let found = calls.find(|(_, answer)| {
        let mut uses = session.message(**answer).tool_uses();
        uses.any(|(_, tool)| forbidden.is_done_by(tool))
    });
    let call = found.map(|(call, _)| call);
    call.filter(|call| back.is_none_or(|back| *call < back))
}

/// What a sentence forbids, if it begins with the ban, quotes one thing, and ends with it.
fn forbidden(rule: &str) -> Option<Forbidden> {
    let (before, rest) = rule.split_once('`')?;
    let (quoted, after) = rest.split_once('`')?;
    let is_whole = after.chars().all(|c| c.is_ascii_punctuation() && c != '`');
    let is_short = before.split_whitespace().count() <= FIRST_WORDS && !before.contains(',');
    if !is_whole || !is_short || quoted.trim().is_empty() || !marks(before).only_forbids() {
        return None;
    }
    let is_path = quoted.contains('/') && !quoted.contains(' ');
    let quoted = quoted.trim().to_owned();
    Some(if is_path {
        Forbidden::Change(quoted.trim_start_matches("./").to_owned())
    } else {
        Forbidden::Command(quoted)
    })
}

impl Forbidden {
    fn is_done_by(&self, tool: &ToolUse) -> bool {
        match self {
            Self::Command(text) if tool.class == ToolClass::Shell => {
                let pattern = Pattern {
                    text: text.clone(),
                    boundary: Boundary::Word,
                };
                let found = Patterns::new(vec![pattern]);
                found.is_ok_and(|patterns| !patterns.search(tool.input.as_str()).is_empty())
            }
            Self::Command(_) => false,
            Self::Change(path) => {
                let written = files::written_by(tool).map(|(path, _)| path);
                let changed = files::changed_by(tool).into_iter().chain(written);
                let below = format!("/{}", path.trim_start_matches('/'));
                changed
                    .into_iter()
                    .any(|file| match path.strip_suffix('/') {
                        Some(_) => format!("/{file}").contains(&below),
                        None => format!("/{file}").ends_with(&below),
                    })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_ban_that_names_all_of_what_it_forbids_can_be_broken() {
        let command = |text: &str| Some(Forbidden::Command(text.to_owned()));
        for (rule, expected) in [
            ("Never run `git push --force`.", command("git push --force")),
            ("Please do not use `npm install`!", command("npm install")),
            (
                "Never edit `src/generated/`.",
                Some(Forbidden::Change("src/generated/".to_owned())),
            ),
            // A condition, an alternative, or no word for what is meant.
            ("If tests fail, never run `make deploy`.", None),
            ("Never run `make deploy` without asking.", None),
            ("Never use `npm`, use `pnpm`.", None),
            ("Always run `cargo fmt`.", None),
            ("Never push by force.", None),
        ] {
            assert_eq!(forbidden(rule), expected, "{rule}");
        }
    }
}
