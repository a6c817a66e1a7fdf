//! Lines that are cut where a terminal ends, so that a screen has as many lines as were counted.

use super::{Exit, print, template, terminal};
use crate::report::escape::plain;
use crate::report::layout::width;

/// Prints the text that a template makes of these facts; the ends of lines that are too long are left out.
pub(super) fn show_cut(facts: impl serde::Serialize, template: &str) -> anyhow::Result<Exit> {
    let columns = terminal().columns();
    let text = template::fill(template, facts)?;
    let lines = text.lines();
    let lines = lines.map(|line| cut(&plain(line), columns, columns - 1) + "\n");
    print(&lines.collect::<String>())?;
    Ok(Exit::Done)
}

/// The text in at most so many columns: a name keeps its start and its end.
pub(super) fn cut_middle(text: &str, columns: usize) -> String {
    cut(text, columns, columns / 2)
}

/// The text in at most `columns` columns: `head` of them hold its start, the others `…` and its end.
fn cut(text: &str, columns: usize, head: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let tail = columns.saturating_sub(head + 1);
    let start: String = fitting(text.chars(), head).collect();
    let end: Vec<char> = fitting(text.chars().rev(), tail).collect();
    start + "…" + &end.into_iter().rev().collect::<String>()
}

/// The first characters that fit.
fn fitting(chars: impl Iterator<Item = char>, columns: usize) -> impl Iterator<Item = char> {
    chars
        .scan(0, |used, c| {
            *used += width(c.encode_utf8(&mut [0; 4]));
            Some((*used, c))
        })
        .take_while(move |(used, _)| *used <= columns)
        .map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_has_the_columns_that_it_may_have() {
        for (text, columns, expected) in [
            ("short.jsonl", 11, "short.jsonl"),
            ("/home/ada/a-long-name.jsonl", 12, "/home/…jsonl"),
            ("会话记录会话记录.jsonl", 13, "会话记….jsonl"),
        ] {
            let shown = cut_middle(text, columns);
            assert!(width(&shown) <= columns, "{shown}");
            assert_eq!(shown, expected);
        }
        assert_eq!(cut("one line", 5, 4), "one …");
    }
}
