//! Reads Rust source as far as the architecture test needs: words, signs and strings, without comments
//! and test code.

/// A word, a sign or a string of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    /// The word; the sign as one character, `::` as one token; or the string with a quotation mark before it.
    pub(super) text: String,
    /// The line it stands in, from 1.
    pub(super) line: usize,
}

/// What a source file says outside its tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Source {
    /// The tokens.
    pub(super) tokens: Vec<Token>,
    /// Names of the modules that are compiled in tests only and live in files of their own.
    pub(super) test_modules: Vec<String>,
}

/// Scans one file.
pub(super) fn scan(text: &str) -> Source {
    without_tests(&lex(text))
}

/// All tokens of a file. Comments, characters, numbers and lifetimes are left out.
fn lex(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut lexer = Lexer {
        chars: &chars,
        at: 0,
        line: 1,
    };
    let mut tokens = Vec::new();
    while let Some(sign) = lexer.peek(0) {
        let line = lexer.line;
        let mut push = |text: String| tokens.push(Token { text, line });
        match sign {
            '/' if lexer.peek(1) == Some('/') => lexer.skip_while(|c| c != '\n'),
            '/' if lexer.peek(1) == Some('*') => lexer.block_comment(),
            '"' => push(lexer.string()),
            '\'' => lexer.quote(),
            ':' if lexer.peek(1) == Some(':') => {
                lexer.skip(2);
                push("::".into());
            }
            _ if sign.is_ascii_digit() => lexer.skip_while(|c| c.is_alphanumeric() || c == '_'),
            _ if is_word(sign) => {
                let word = lexer.word();
                match (word.as_str(), lexer.peek(0)) {
                    ("r" | "br" | "cr", Some('"' | '#')) if lexer.raw_string() => {}
                    // `r#type` is the word `type`.
                    ("r", Some('#')) => lexer.skip(1),
                    ("b" | "c", Some('"')) => push(lexer.string()),
                    ("b", Some('\'')) => lexer.quote(),
                    _ => push(word),
                }
            }
            _ => {
                lexer.skip(1);
                if !sign.is_whitespace() {
                    push(sign.into());
                }
            }
        }
    }
    tokens
}

fn is_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

struct Lexer<'a> {
    chars: &'a [char],
    at: usize,
    line: usize,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.line += usize::from(self.peek(0) == Some('\n'));
            self.at += 1;
        }
    }

    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        while self.peek(0).is_some_and(&wanted) {
            self.skip(1);
        }
    }

    fn word(&mut self) -> String {
        let start = self.at;
        self.skip_while(is_word);
        self.chars[start..self.at].iter().collect()
    }

    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        while let Some(sign) = self.peek(0) {
            match (sign, self.peek(1)) {
                ('/', Some('*')) => {
                    depth += 1;
                    self.skip(2);
                }
                ('*', Some('/')) => {
                    depth -= 1;
                    self.skip(2);
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.skip(1),
            }
        }
    }

    /// The string with the quotation mark before it, escapes as they are written.
    fn string(&mut self) -> String {
        let start = self.at;
        self.skip(1);
        while let Some(sign) = self.peek(0).filter(|sign| *sign != '"') {
            self.skip(if sign == '\\' { 2 } else { 1 });
        }
        let text = self.chars.iter().take(self.at).skip(start).collect();
        self.skip(1);
        text
    }

    /// `"…"` after `r` and any number of `#`; whether there was one.
    fn raw_string(&mut self) -> bool {
        let mut hashes = 0;
        while self.peek(hashes) == Some('#') {
            hashes += 1;
        }
        if self.peek(hashes) != Some('"') {
            return false;
        }
        self.skip(hashes + 1);
        while let Some(sign) = self.peek(0) {
            self.skip(1);
            if sign == '"' && (0..hashes).all(|ahead| self.peek(ahead) == Some('#')) {
                self.skip(hashes);
                break;
            }
        }
        true
    }

    /// A character or a lifetime.
    fn quote(&mut self) {
        self.skip(1);
        if self.peek(0) == Some('\\') {
            self.skip(2);
            self.skip_while(|c| c != '\'');
            self.skip(1);
        } else if self.peek(1) == Some('\'') {
            self.skip(2);
        } else {
            self.skip_while(is_word);
        }
    }
}

/// Leaves out what is compiled in tests only.
fn without_tests(tokens: &[Token]) -> Source {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut source = Source::default();
    let mut at = 0;
    while at < tokens.len() {
        let inner = usize::from(text(at + 1) == "!");
        if text(at) != "#" || !is_cfg_test(tokens, at + 1 + inner) {
            source.tokens.push(tokens[at].clone());
            at += 1;
            continue;
        }
        if inner == 1 {
            // The whole file.
            return Source::default();
        }
        at = close(tokens, at + 1);
        while text(at) == "#" {
            at = close(tokens, at + 1);
        }
        let end = item_end(tokens, at);
        if text(end.saturating_sub(1)) == ";" && text(end.saturating_sub(3)) == "mod" {
            source.test_modules.push(text(end - 2).to_owned());
        }
        at = end;
    }
    source
}

/// Whether `[cfg(test)]` or `[cfg(all(test, …))]` begins here; `not` and `any` are other things.
fn is_cfg_test(tokens: &[Token], at: usize) -> bool {
    let texts = tokens[at..].iter().take(5).map(|token| token.text.as_str());
    let texts: Vec<&str> = texts.collect();
    matches!(
        texts[..],
        ["[", "cfg", "(", "test", ")"] | ["[", "cfg", "(", "all", "("]
    ) && (texts[3] == "test" || tokens.get(at + 5).is_some_and(|token| token.text == "test"))
}

/// Behind the bracket that closes the one at `at`.
fn close(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return index + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// Behind the item, field or statement that begins at `at`. Where in doubt it is short: what is
/// seen by mistake is a complaint, what is missed is a hole.
fn item_end(tokens: &[Token], mut at: usize) -> usize {
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            ";" | "," => return at + 1,
            "{" => return close(tokens, at),
            "(" | "[" => at = close(tokens, at),
            ")" | "]" | "}" => return at,
            _ => at += 1,
        }
    }
    tokens.len()
}

/// The word that follows `root` in every path, with its line: `crate::{a::X, b}` gives `a` and
/// `b`. A path that ends at the root, or takes everything, gives `*`.
pub(super) fn paths(tokens: &[Token], root: &[&str]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for start in 0..tokens.len() {
        let matches = root.iter().enumerate().all(|(at, word)| {
            tokens
                .get(start + 2 * at)
                .is_some_and(|token| token.text == *word)
                && (at == 0 || tokens[start + 2 * at - 1].text == "::")
        });
        // Not the middle of a longer path.
        let is_start = start == 0 || tokens[start - 1].text != "::";
        if matches && is_start {
            follow(tokens, start + 2 * root.len() - 1, &mut found);
        }
    }
    found
}

/// The words that follow this one in every path: `a::stage::{b, c}` gives `b` and `c` for `stage`.
pub(super) fn behind(tokens: &[Token], word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for at in (0..tokens.len()).filter(|at| tokens[*at].text == word) {
        follow(tokens, at + 1, &mut found);
    }
    found.into_iter().map(|(name, _)| name).collect()
}

/// What comes after the root of a path; `at` is behind the root.
fn follow(tokens: &[Token], at: usize, found: &mut Vec<(String, usize)>) {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let line = tokens
        .get(at.saturating_sub(1))
        .map_or(0, |token| token.line);
    match (text(at), text(at + 1)) {
        ("::", "{") => {
            let end = close(tokens, at + 1);
            let mut item = at + 2;
            while item + 1 < end {
                let name = &tokens[item];
                if name.text != "," {
                    let name = if name.text == "self" { "*" } else { &name.text };
                    found.push((name.to_owned(), tokens[item].line));
                }
                // To the comma that ends this name.
                while item + 1 < end && text(item) != "," {
                    item = if text(item) == "{" {
                        close(tokens, item)
                    } else {
                        item + 1
                    };
                }
                item += 1;
            }
        }
        ("::", name) => found.push((name.to_owned(), tokens[at + 1].line)),
        ("as", _) => found.push(("*".to_owned(), line)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_words(text: &str, expected: &str) {
        let words: Vec<String> = scan(text)
            .tokens
            .into_iter()
            .map(|token| token.text)
            .filter(|text| !text.starts_with('"'))
            .collect();
        assert_eq!(words.join(" "), expected, "{text}");
    }

    fn check_paths(text: &str, root: &[&str], expected: &str) {
        let found: Vec<String> = paths(&scan(text).tokens, root)
            .into_iter()
            .map(|(name, line)| format!("{name}@{line}"))
            .collect();
        assert_eq!(found.join(" "), expected, "{text}");
    }

    #[test]
    fn comments_and_strings_are_no_words() {
        check_words("a // crate::b\nc", "a c");
        check_words("/// [`x`](crate::b)\n//! crate::c\nd", "d");
        check_words("a /* b /* crate::c */ d */ e", "a e");
        check_words(r#"a "crate::b \" c" d"#, "a d");
        check_words(
            r##"a r"\" b r#"crate::"c" "# d br"e" b"f" c"g" h"##,
            "a b d h",
        );
        check_words("a 'b' '\\'' '\"' b'c' '\\u{41}' d", "a d");
        check_words(
            "fn a<'b>(c: &'b str) -> &'static str",
            "fn a < > ( c : & str ) - > & str",
        );
        check_words("r#type 1_000u64 0xff 1.5", "type .");
    }

    #[test]
    fn test_code_is_left_out() {
        check_words("a #[cfg(test)] mod tests { b { c } } d", "a d");
        check_words(
            "a #[cfg(test)] #[expect(x, reason = \"]\")] pub(crate) mod t { b } d",
            "a d",
        );
        check_words("a #[cfg(all(test, unix))] fn b(c: [u8; 3]) { d } e", "a e");
        check_words("a #[cfg(test)] use b::c; d", "a d");
        check_words("a { #[cfg(test)] b: c, d }", "a { d }");
        check_words("a { #[cfg(test)] b } c", "a { } c");
        check_words("#[cfg(not(test))] a", "# [ cfg ( not ( test ) ) ] a");
        check_words(
            "#[cfg(any(test, unix))] a",
            "# [ cfg ( any ( test , unix ) ) ] a",
        );
        check_words("#![cfg(test)] a", "");
        check_words("a \"#[cfg(test)] mod b {\" c", "a c");
        let source = scan("#[cfg(test)] pub(crate) mod short; #[cfg(test)] mod tests { mod x; }");
        assert_eq!(source.test_modules, ["short"]);
    }

    #[test]
    fn every_path_is_found() {
        let root = &["crate"];
        check_paths("use crate::a::B;\nlet x = crate::c::d();", root, "a@1 c@2");
        check_paths("use crate::{a::X, b::{C, D},\nc};", root, "a@1 b@1 c@2");
        check_paths("use crate::{a::{B, c::{D, E}}, f as g,};", root, "a@1 f@1");
        check_paths(
            "use crate::*; use crate as k; use crate::{self, a};",
            root,
            "*@1 *@1 *@1 a@1",
        );
        check_paths("pub(crate) fn a(); pub(in crate::b) fn c();", root, "b@1");
        check_paths("$crate::a! { crate :: /* x */ b }", root, "a@1 b@1");
        check_paths("use a::{b, crate::c};", root, "c@1");
        check_paths(
            "use super::super::a; use super::b;",
            &["super", "super"],
            "a@1",
        );
        check_paths(
            "use super::super::{a::X, b};",
            &["super", "super"],
            "a@1 b@1",
        );
        check_paths(
            "use std::{env, fs::File}; std::io::x; my::std::y",
            &["std"],
            "env@1 fs@1 io@1",
        );
    }
}
