//! Layout: which columns fit a width, how wide each gets, and where texts break.

/// Blanks between columns.
pub(crate) const GAP: usize = 2;

/// A name without a blank or a bracket may break after a sign once it is longer than this.
pub(crate) const LONGEST_WORD: usize = 24;

/// The same where room is short: the names of a wide table.
pub(crate) const LONGEST_NAME: usize = 15;

/// Columns an item of text takes up on a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// East Asian wide characters and emoji take two columns (Unicode Standard Annex 11, by block).
fn char_width(c: char) -> usize {
    match u32::from(c) {
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x2_0000..=0x3_fffd => 2,
        _ => 1,
    }
}

/// A piece of text that is never broken, and whether a blank stands before it.
struct Piece<'a> {
    text: &'a str,
    blank: bool,
}

/// Breaks `text` into lines of at most `limit` columns: at blanks, before `[`, and inside a long
/// name after a sign; nowhere else unless a piece alone is too wide.
pub(crate) fn wrap(text: &str, limit: usize) -> Vec<String> {
    let limit = limit.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for piece in pieces(text, LONGEST_NAME) {
        let blank = usize::from(piece.blank && !line.is_empty());
        if !line.is_empty() && width(&line) + blank + width(piece.text) > limit {
            lines.push(std::mem::take(&mut line));
        } else if blank == 1 {
            line.push(' ');
        }
        for c in piece.text.chars() {
            if !line.is_empty() && width(&line) + char_width(c) > limit {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// The narrowest width at which no word of up to `longest` columns is broken.
pub(crate) fn narrowest(text: &str, longest: usize) -> usize {
    pieces(text, longest)
        .iter()
        .map(|piece| width(piece.text))
        .max()
        .unwrap_or(0)
        .min(longest + longest / 3)
}

fn pieces(text: &str, longest: usize) -> Vec<Piece<'_>> {
    // A blank between a number and its sign does not break.
    let text = text.trim_end();
    let mut pieces = Vec::new();
    for (index, word) in words(text).into_iter().enumerate() {
        let mut blank = index > 0;
        let mut rest = word;
        while !rest.is_empty() {
            let end = piece_end(rest, longest);
            let (piece, after) = rest.split_at(end);
            pieces.push(Piece { text: piece, blank });
            blank = false;
            rest = after;
        }
    }
    pieces
}

/// Words between blanks; `61.2 %` is one.
fn words(text: &str) -> Vec<&str> {
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
    let bracket = word
        .char_indices()
        .skip(1)
        .find(|(_, c)| *c == '[')
        .map_or(word.len(), |(at, _)| at);
    if width(&word[..bracket]) <= longest {
        return bracket;
    }
    let last = |signs: &[char]| {
        word[..bracket]
            .char_indices()
            .take_while(|(at, _)| *at < longest)
            .filter(|(_, c)| signs.contains(c))
            .map(|(at, c)| at + c.len_utf8())
            .last()
    };
    // `clear_results.keep_last` has its joint at the point.
    last(&['.', ',', '/', ':', '@'])
        .or_else(|| last(&['-', '_', '=']))
        .unwrap_or(bracket)
}

/// A column to be laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    /// Columns with a higher rank go first; 0 never goes, and [`Self::NEVER`] never comes in.
    pub(crate) rank: u8,
    /// The narrowest it may get.
    pub(crate) narrowest: usize,
    /// As wide as it would like to be.
    pub(crate) widest: usize,
}

impl Wish {
    /// Rank of a column that takes no room.
    pub(crate) const NEVER: u8 = u8::MAX;
}

/// The width of each column, `None` for those that do not fit `limit`.
///
/// Columns come in by rank, in their order among equals, each with its narrowest width. Where one did
/// not fit, none of a higher rank comes in: what matters less never stands where what matters more
/// is missing. What is left goes to those that would like more, from the left.
pub(crate) fn columns(wishes: &[Wish], limit: usize) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..wishes.len()).collect();
    order.sort_by_key(|at| wishes[*at].rank);
    let mut widths: Vec<Option<usize>> = vec![None; wishes.len()];
    let mut used = 0;
    let mut highest = Wish::NEVER - 1;
    for at in order {
        let wish = wishes[at];
        let gap = if used == 0 { 0 } else { GAP };
        if wish.rank == 0 || (wish.rank <= highest && used + gap + wish.narrowest <= limit) {
            widths[at] = Some(wish.narrowest);
            used += gap + wish.narrowest;
        } else {
            highest = highest.min(wish.rank);
        }
    }
    // Columns that never go may not fit either: then the widest gives way, and its names break.
    while used > limit {
        match widths.iter_mut().flatten().rev().max() {
            Some(widest) if *widest > 1 => *widest -= 1,
            Some(_) | None => break,
        }
        used -= 1;
    }
    for (width, wish) in widths.iter_mut().zip(wishes) {
        if let Some(width) = width {
            let more = wish
                .widest
                .saturating_sub(*width)
                .min(limit.saturating_sub(used));
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
        assert_eq!(narrowest("61.2 %", LONGEST_WORD), 6);
        assert_eq!(narrowest("[clear_results.keep_last=5]", LONGEST_WORD), 15);
        assert_eq!(narrowest("learn-claude-code-s06", LONGEST_WORD), 21);
        assert_eq!(narrowest("learn-claude-code-s06", LONGEST_NAME), 13);
        assert_eq!(narrowest("n=12/1043", LONGEST_WORD), 5);
    }

    #[test]
    fn columns_of_a_high_rank_make_room() {
        let wish = |rank, narrowest, widest| Wish {
            rank,
            narrowest,
            widest,
        };
        let wishes = [wish(0, 10, 20), wish(2, 10, 10), wish(1, 10, 10)];
        assert_eq!(columns(&wishes, 34), [Some(10), Some(10), Some(10)]);
        assert_eq!(columns(&wishes, 33), [Some(20), None, Some(10)]);
        assert_eq!(columns(&wishes, 5), [Some(5), None, None]);
        // What matters less does not come in where what matters more did not fit.
        let wishes = [
            wish(0, 10, 10),
            wish(1, 20, 20),
            wish(2, 5, 5),
            wish(1, 6, 6),
        ];
        assert_eq!(columns(&wishes, 20), [Some(10), None, None, Some(6)]);
        let wishes = [wish(0, 10, 10), wish(Wish::NEVER, 1, 1)];
        assert_eq!(columns(&wishes, 90), [Some(10), None]);
    }
}
