//! Layout: which columns fit a width, how wide each gets, and where texts break.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::Column;

/// Blanks between columns.
pub(crate) const GAP: usize = 2;

/// A name without a blank or a bracket may break after a sign once it is longer than this.
pub(crate) const LONGEST_WORD: usize = 24;

/// The same where room is short: the names of a wide table.
pub(crate) const LONGEST_NAME: usize = 15;

/// The same before a column has to go: no interval of shares is wider.
pub(crate) const SHORTEST: usize = 10;

/// Columns an item of text takes up on a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The blanks that fill a text up to a width.
pub(crate) fn blanks(text: &str, to: usize) -> String {
    " ".repeat(to.saturating_sub(width(text)))
}

/// [`width`] of one character.
fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// A text of at most `limit` columns: of a longer one the beginning and the end, with `…` between them.
pub(crate) fn cut_middle(text: &str, limit: usize) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let room = limit.saturating_sub(1);
    let end: Vec<char> = fitting(text.chars().rev(), room / 2);
    let end: String = end.into_iter().rev().collect();
    let start = fitting(text.chars(), room - width(&end));
    start.into_iter().chain(['…']).chain(end.chars()).collect()
}

/// A text of at most `limit` columns, cut at its end with `…`.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let start = fitting(text.chars(), limit.saturating_sub(1));
    start.into_iter().chain(['…']).collect()
}

/// The first of these characters, as many as fit `room` columns.
fn fitting(text: impl Iterator<Item = char>, room: usize) -> Vec<char> {
    let mut used = 0;
    text.take_while(|c: &char| {
        used += char_width(*c);
        used <= room
    })
    .collect()
}

/// A piece of text that is never broken, and whether a blank precedes it.
struct TextPiece<'a> {
    text: &'a str,
    blank: bool,
}

/// Breaks `text` into lines of at most `limit` columns: at blanks, before `[`, and inside a long
/// name after a sign; nowhere else unless a piece alone is too wide.
pub(crate) fn wrap(text: &str, limit: usize) -> Vec<String> {
    wrap_after(text, limit, limit)
}

/// The same, where the first line is as wide as `first` and the others as `rest`.
pub(crate) fn wrap_after(text: &str, first: usize, rest: usize) -> Vec<String> {
    let mut limit = first.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for piece in pieces(text, LONGEST_NAME.min(rest.max(1))) {
        let blank = usize::from(piece.blank && !line.is_empty());
        if !line.is_empty() && width(&line) + blank + width(piece.text) > limit {
            lines.push(std::mem::take(&mut line));
            limit = rest.max(1);
        } else if blank == 1 {
            line.push(' ');
        }
        for c in piece.text.chars() {
            if !line.is_empty() && width(&line) + char_width(c) > limit {
                lines.push(std::mem::take(&mut line));
                limit = rest.max(1);
            }
            line.push(c);
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// The narrowest width at which words break at their signs only, and only words of more than `longest`
/// columns. A piece of more than `widest` columns asks for no more: it breaks wherever it has to.
pub(crate) fn narrowest(text: &str, longest: usize, widest: usize) -> usize {
    pieces(text, longest).into_iter().map(|piece| width(piece.text)).max().unwrap_or(0).min(widest)
}

fn pieces(text: &str, longest: usize) -> Vec<TextPiece<'_>> {
    let mut pieces = Vec::new();
    // A blank between a number and its sign does not break.
    for (index, word) in words(text.trim_end()).into_iter().enumerate() {
        let mut blank = index > 0;
        let mut rest = word;
        while !rest.is_empty() {
            let end = piece_end(rest, longest);
            let (piece, after) = rest.split_at(end);
            pieces.push(TextPiece { text: piece, blank });
            blank = false;
            rest = after;
        }
    }
    pieces
}

/// Words between blanks; `61.2 %` is one.
pub(crate) fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(' ') {
        if text[at + 1..].starts_with('%') || at < start {
            continue;
        }
        words.push(&text[start..at]);
        start = at + 1;
    }
    words.push(&text[start..]);
    words
}

/// Where the first piece of a word ends: before a bracket, after a sign in a long word, or between
/// sessions and items of an `n=12/1043`.
fn piece_end(word: &str, longest: usize) -> usize {
    if word.starts_with("n=")
        && let Some(at) = word.find('/')
    {
        return at + 1;
    }
    // Code is typed as it stands.
    let mut brackets = word.match_indices('[').map(|(at, _)| at);
    let bracket = brackets.find(|at| *at > 0 && !word.contains('`')).unwrap_or(word.len());
    if width(&word[..bracket]) <= longest {
        return bracket;
    }
    // `clear_results.keep_last` has its joint at the point, `61.2–98.5` between its ends.
    let signs: [&[char]; 2] = [&['.', ',', '/', ':', '@', '–'], &['-', '_', '=']];
    let end = signs.into_iter().find_map(|signs| {
        let found = word[..bracket].match_indices(signs).take_while(|(at, _)| *at < longest);
        let ends = found.map(|(at, sign)| (sign, at + sign.len())).filter(|(sign, end)| {
            // A number does not break at its point.
            !matches!(*sign, "." | ",") || !word[*end..].starts_with(|c: char| c.is_ascii_digit())
        });
        ends.map(|(_, end)| end).last()
    });
    end.unwrap_or(bracket)
}

/// A column to be laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnSpec {
    /// 0 is the most important. Columns with a larger number are left out first, among equals the
    /// last; [`Column::FILES_ONLY`] is never shown.
    pub(crate) priority: u8,
    /// The narrowest it may get.
    pub(crate) narrowest: usize,
    /// The width beyond which more is of no use.
    pub(crate) widest: usize,
}

/// Whether all columns of priority 0, which should always be shown, fit `limit`.
pub(crate) fn fits(specs: &[ColumnSpec], limit: usize) -> bool {
    let needed = specs.iter().filter(|spec| spec.priority == 0);
    let sum: usize = needed.map(|spec| spec.narrowest + GAP).sum();
    sum <= limit + GAP
}

/// The width of each column, `None` for those that do not fit `limit`.
///
/// The first column, which names the rows, is always shown. The others are added by priority, in
/// their order among equals, each with its narrowest width. Once a column does not fit, none with a
/// larger priority number is added: a less important column never replaces a more important one.
/// The remaining width is given to columns that can use more, from the left.
pub(crate) fn columns(specs: &[ColumnSpec], limit: usize) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..specs.len()).collect();
    order.sort_by_key(|at| (*at > 0, specs[*at].priority));
    let mut widths: Vec<Option<usize>> = vec![None; specs.len()];
    let mut used = 0;
    let mut highest = Column::FILES_ONLY - 1;
    for at in order {
        let spec = specs[at];
        if at == 0 {
            // Names that are wider than everything break.
            used = spec.narrowest.min(limit);
            widths[at] = Some(used);
        } else if spec.priority <= highest && used + GAP + spec.narrowest <= limit {
            widths[at] = Some(spec.narrowest);
            used += GAP + spec.narrowest;
        } else {
            highest = highest.min(spec.priority);
        }
    }
    for (width, spec) in widths.iter_mut().zip(specs) {
        if let Some(width) = width {
            let room = limit.saturating_sub(used);
            let more = spec.widest.saturating_sub(*width).min(room);
            *width += more;
            used += more;
        }
    }
    widths
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
        assert_eq!(cut("one line", 5), "one …");
    }

    #[test]
    fn names_break_at_brackets_and_sentences_at_blanks() {
        for (text, limit, lines) in [
            ("token savings", 7, vec!["token", "savings"]),
            (
                "observation-masking[clear_results.keep_last=5]",
                30,
                vec!["observation-masking", "[clear_results.keep_last=5]"],
            ),
            ("", 5, vec![""]),
            ("abcdef", 4, vec!["abcd", "ef"]),
            ("世界世界", 4, vec!["世界", "世界"]),
        ] {
            assert_eq!(wrap(text, limit), lines, "{text}");
        }
        for (text, longest, expected) in [
            ("61.2 %", LONGEST_WORD, 6),
            ("[clear_results.keep_last=5]", LONGEST_WORD, 15),
            ("learn-claude-code-s06", LONGEST_WORD, 21),
            ("learn-claude-code-s06", LONGEST_NAME, 13),
            ("learn-claude-code-s06", SHORTEST, 8),
            ("n=12/1043", LONGEST_WORD, 5),
            ("99.4–100.0", SHORTEST, 10),
            ("1,234,567.891", SHORTEST, 13),
        ] {
            assert_eq!(narrowest(text, longest, 32), expected, "{text}");
        }
        assert_eq!(narrowest(&"a".repeat(64), LONGEST_WORD, 32), 32);
    }

    #[test]
    fn a_number_is_broken_between_the_ends_of_an_interval_or_not_at_all() {
        assert_eq!(wrap("99.4–100.0", 7), ["99.4–", "100.0"]);
        assert_eq!(wrap("99.4–100.0", 10), ["99.4–100.0"]);
        assert_eq!(wrap("observation-masking", 12), ["observation-", "masking"]);
    }

    #[test]
    fn columns_of_a_high_rank_make_room() {
        let spec = |priority, narrowest, widest| ColumnSpec { priority, narrowest, widest };
        let specs = [spec(0, 10, 20), spec(2, 10, 10), spec(1, 10, 10)];
        assert_eq!(columns(&specs, 34), [Some(10), Some(10), Some(10)]);
        assert_eq!(columns(&specs, 33), [Some(20), None, Some(10)]);
        assert_eq!(columns(&specs, 5), [Some(5), None, None]);
        // Of equals the last is left out, even at the highest priority.
        let specs = [spec(0, 10, 20), spec(0, 10, 10), spec(0, 10, 10)];
        assert!(fits(&specs, 34) && !fits(&specs, 33));
        assert_eq!(columns(&specs, 33), [Some(20), Some(10), None]);
        // A less important column is not added where a more important one did not fit.
        let specs = [spec(0, 10, 10), spec(1, 20, 20), spec(2, 5, 5), spec(1, 6, 6)];
        assert_eq!(columns(&specs, 20), [Some(10), None, None, Some(6)]);
        let specs = [spec(0, 10, 10), spec(Column::FILES_ONLY, 1, 1)];
        assert_eq!(columns(&specs, 90), [Some(10), None]);
    }
}
