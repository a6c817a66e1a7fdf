//! Lines of text folded to the width of the terminal: the rest of a long line is indented under its
//! start.

use serde::Serialize;

use super::{Exit, Result, print, template, terminal, terminal_width};
use crate::report::escape::plain;
use crate::report::layout::{cut, width, words};

/// Nothing is folded narrower than this: one could not read it.
const NARROWEST: usize = 40;

/// Prints lines of text, in which nothing is left that a terminal obeys. They are folded for a terminal, and where `COLUMNS` says how wide one is; another program gets
/// them whole.
pub(super) fn say(text: &str) -> Result<Exit> {
    let lines = text.lines().map(|line| plain(line) + "\n");
    print(&folded(&lines.collect::<String>(), 0))
}

/// Prints the text that a template makes of these facts; the ends of lines that are too long are left out, so that a
/// screen has as many lines as were counted.
pub(super) fn show_cut(facts: impl Serialize, template: &str) -> Result<Exit> {
    let columns = terminal().columns();
    let text = template::fill(template, facts)?;
    let lines = text.lines().map(|line| cut(&plain(line), columns) + "\n");
    print(&lines.collect::<String>())
}

/// The same lines, with `free` columns left free.
pub(super) fn folded(text: &str, free: usize) -> String {
    match terminal_width() {
        Some(columns) => fold(text, columns.saturating_sub(free)),
        None => text.to_owned(),
    }
}

/// Every line of `text`, folded at `columns`. Words stay whole, even those that do not fit.
fn fold(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        fold_line(line, columns.max(NARROWEST), &mut out);
        out.push('\n');
    }
    out
}

fn fold_line(line: &str, columns: usize, out: &mut String) {
    if width(line) <= columns {
        out.push_str(line);
        return;
    }
    let (head, hang) = head(line, columns);
    out.push_str(head);
    let mut at = width(head);
    let parts = words(&line[head.len()..]).into_iter();
    for (number, word) in parts.filter(|word| !word.is_empty()).enumerate() {
        if number > 0 && at + 1 + width(word) > columns {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', hang));
            at = hang;
        } else if number > 0 {
            out.push(' ');
            at += 1;
        }
        out.push_str(word);
        at += width(word);
    }
}

/// The start of a line that is not folded, and the indent of the following lines: under the second
/// column where two blanks separate one in the left two thirds, and a little further than the line
/// otherwise.
fn head(line: &str, columns: usize) -> (&str, usize) {
    let lead = line.len() - line.trim_start_matches(' ').len();
    let body = &line[lead..];
    if let Some(gap) = body.find("  ") {
        let start = lead + gap + (body[gap..].len() - body[gap..].trim_start_matches(' ').len());
        let second = width(&line[..start]);
        if second <= columns * 2 / 3 {
            return (&line[..start], second);
        }
    }
    (&line[..lead], lead + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, folded: &str) {
        assert_eq!(fold(text, 40), folded);
    }

    #[test]
    fn a_line_that_fits_stays_as_it_is() {
        check("short\n\n  and  apart\n", "short\n\n  and  apart\n");
    }

    #[test]
    fn prose_goes_on_a_little_further_in() {
        check(
            "Nothing of what was said here is longer than it has to be, 61.2 % of it.\n",
            "Nothing of what was said here is longer\n  than it has to be, 61.2 % of it.\n",
        );
    }

    #[test]
    fn what_stands_in_a_second_column_goes_on_in_it() {
        check(
            "codex       everything is summarised at 90 % of the window\n",
            "codex       everything is summarised at\n            90 % of the window\n",
        );
        // One that begins far to the right is text like any other.
        check(
            "claude-code-session-memory  notes stand for a summary\n",
            "claude-code-session-memory notes stand\n  for a summary\n",
        );
    }

    #[test]
    fn a_word_that_is_too_long_is_not_broken() {
        check(
            "see reports/a-folder-with-a-name-that-is-rather-long/run.json there\n",
            "see\n  reports/a-folder-with-a-name-that-is-rather-long/run.json\n  there\n",
        );
    }
}
