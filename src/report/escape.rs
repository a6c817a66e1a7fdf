//! Escaping: session ids, stage names and reasons come from untrusted files.
//!
//! A terminal obeys escape sequences, Markdown obeys markup, and both show text in the order its
//! direction marks ask for. Every text of a report passes through here on its way out.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

use super::layout;

/// Marks that one letter may carry; more would cover the lines above.
const MOST_MARKS: usize = 4;

/// `text` on one line, without control characters and invisible characters.
///
/// Control characters, direction marks, invisible characters and unassigned ones become
/// `\u{1b}`; letters of all scripts stay, with the marks that combine with them.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut marks = MOST_MARKS;
    for c in text.chars() {
        marks = if c.width() == Some(0) { marks + 1 } else { 0 };
        if is_safe(c) && marks <= MOST_MARKS {
            out.push(c);
        } else {
            let _ = write!(out, "{}", c.escape_unicode());
        }
    }
    out
}

/// [`plain`], cut to `columns` of a terminal with `…` in place of the rest.
pub fn short(text: &str, columns: usize) -> String {
    let text = plain(text);
    layout::cut(&text, columns)
}

/// [`plain`], with everything escaped that Markdown or HTML would take for markup.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            // A name after this sign notifies its owner.
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '!' | '|' | '~'
            | '$' => out.extend(['\\', c]),
            c => push_markup(&mut out, c),
        }
    }
    out
}

/// [`plain`], with everything escaped that XML would take for markup.
pub fn xml(text: &str) -> String {
    let mut out = String::new();
    for c in plain(text).chars() {
        match c {
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            c => push_markup(&mut out, c),
        }
    }
    out
}

/// Escapes the signs that open markup in every language.
fn push_markup(out: &mut String, c: char) {
    match c {
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '&' => out.push_str("&amp;"),
        c => out.push(c),
    }
}

/// JSON text in which everything is escaped that a terminal would execute when it is printed.
///
/// Such characters occur in strings only, where `\u001b` means the same.
pub fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || is_safe(c) {
            out.push(c);
        } else {
            let mut units = [0_u16; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

/// Whether a character is printed as itself and moves nothing around it.
fn is_safe(c: char) -> bool {
    match c {
        '\'' | '"' | '\\' => true,
        // Isolates, fillers, selectors and tags: the standard library counts them as printable or might one day.
        '\u{034f}'
        | '\u{061c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{e0000}'..='\u{e0fff}' => false,
        // Escapes controls, format characters and unassigned code points; behind a letter no mark that combines
        // with it.
        c => String::from_iter(['a', c]).escape_debug().count() == 2,
    }
}

/// A word as a POSIX shell takes it.
pub(crate) fn shell(word: &str) -> String {
    let mut chars = word.chars();
    if !word.is_empty() && chars.all(|c| c.is_ascii_alphanumeric() || "._-/:=@,+".contains(c)) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A flag and its value in one word of a command that is shown.
pub(crate) fn flag(name: &str, value: &str) -> String {
    format!("{name} {}", shell(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_that_was_recorded() {
        for (text, shown) in [
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("two\nlines\r", "two\\u{a}lines\\u{d}"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("\u{202e}evil", "\\u{202e}evil"),
            ("zero\u{200b}width", "zero\\u{200b}width"),
            ("Grüße, 世界, it's \"ok\"", "Grüße, 世界, it's \"ok\""),
            ("e\u{301} हिन्दी ไทย", "e\u{301} हिन्दी ไทย"),
            ("\u{301}first", "\\u{301}first"),
            ("a\u{e0041}\u{3164}", "a\\u{e0041}\\u{3164}"),
        ] {
            assert_eq!(plain(text), shown);
        }
        assert_eq!(short("0123456789", 5), "0123…");
        assert_eq!(short("01234", 5), "01234");
        assert_eq!(short("世界世界", 5), "世界…");
        let stacked = format!("a{}", "\u{301}".repeat(9));
        assert_eq!(plain(&stacked).matches("\\u{301}").count(), 9 - MOST_MARKS);
    }

    #[test]
    fn markdown_takes_nothing_for_markup() {
        assert_eq!(
            markdown("a|b`c`<script>\n[x](y) @who"),
            "a\\|b\\`c\\`&lt;script&gt;\\\\u\\{a\\}\\[x\\]\\(y\\) &#64;who"
        );
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = "\u{1b}\u{9b}\u{202e}\u{e0001}x";
        let text = json(&serde_json::to_string(value).unwrap());
        assert!(text.is_ascii());
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), value);
    }

    #[test]
    fn a_shell_reads_the_word_that_was_typed() {
        assert_eq!(shell("a/b.toml"), "a/b.toml");
        assert_eq!(shell("codex[a.b=1]"), "'codex[a.b=1]'");
        assert_eq!(shell("it's"), r"'it'\''s'");
        assert_eq!(shell(""), "''");
    }
}
