//! Whoever makes sessions, whoever summarises and reads them, and whoever measures what is left
//! share no list of words: a summariser that knew the generator's words would find what was
//! planted by knowing how it was planted.

use proctor::probe::ProbeKind;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Negations, articles, pronouns, prepositions, and the verbs that go with them. No text is
/// without them, and none of them says what a text is about. To say something is among them: it is
/// how a question is put, and how an answer that knows nothing begins.
const FUNCTION_WORDS: &[&str] = &[
    "a", "always", "an", "and", "are", "as", "at", "be", "before", "by", "do", "don't", "dont",
    "for", "from", "i", "in", "is", "it", "just", "me", "never", "no", "not", "of", "on", "only",
    "or", "say", "so", "that", "the", "then", "this", "to", "was", "when", "with", "without",
    "you", "your",
];

/// The three sides, each with its sources and tables.
const SIDES: [(&str, &[&str]); 3] = [
    ("generator", &["crates/proctor-synth/src", "crates/proctor-synth/families"]),
    ("offline model", &["src/model/offline.rs", "src/model/offline"]),
    // Not the graders: their words stand around an answer that is exact without them.
    ("survival", &["src/probe/survival.rs", "src/probe/survival"]),
];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A string, as written between its quotes.
    Text(String),
    Word(String),
    Sign(char),
}

/// Words, signs and strings of a source, without comments and without its tests.
fn tokens(source: &str) -> Vec<Token> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
    let chars: Vec<char> = source.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => {
                while at < chars.len() && chars[at] != '\n' {
                    at += 1;
                }
            }
            '"' => {
                let mut text = String::new();
                at += 1;
                while at < chars.len() && chars[at] != '"' {
                    if chars[at] == '\\' {
                        text.push(chars[at]);
                        at += 1;
                    }
                    text.push(chars[at]);
                    at += 1;
                }
                at += 1;
                tokens.push(Token::Text(text));
            }
            // A character, or else a lifetime.
            '\'' if chars.get(at + 1) == Some(&'\\') => {
                at += 3;
                while at < chars.len() && chars[at] != '\'' {
                    at += 1;
                }
                at += 1;
            }
            '\'' if chars.get(at + 2) == Some(&'\'') => at += 3,
            c if c.is_alphanumeric() || c == '_' => {
                let from = at;
                while at < chars.len() && (chars[at].is_alphanumeric() || chars[at] == '_') {
                    at += 1;
                }
                tokens.push(Token::Word(chars[from..at].iter().collect()));
            }
            c if c.is_whitespace() => at += 1,
            c => {
                tokens.push(Token::Sign(c));
                at += 1;
            }
        }
    }
    tokens
}

fn words_of(tokens: &[Token]) -> Vec<String> {
    let texts = tokens.iter().filter_map(|token| match token {
        Token::Text(text) => Some(text.split('|')),
        Token::Word(_) | Token::Sign(_) => None,
    });
    let words = texts.flatten().map(|word| word.trim().to_lowercase());
    words.filter(|word| !word.is_empty()).collect()
}

/// The strings of every `const` or `static` that is a list of them.
fn constant_lists(tokens: &[Token]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_constant = matches!(token, Token::Word(word) if word == "const" || word == "static");
        if !is_constant || !matches!(tokens.get(at + 2), Some(Token::Sign(':'))) {
            continue;
        }
        let rest = &tokens[at..];
        let Some(value) = rest.iter().position(|token| *token == Token::Sign('=')) else {
            continue;
        };
        let kind = &rest[..value];
        let of_strings = kind.contains(&Token::Word("str".to_owned()));
        if !of_strings || !kind.contains(&Token::Sign('[')) {
            continue;
        }
        let mut depth = 0;
        let end = rest[value..].iter().position(|token| {
            match token {
                Token::Sign('[' | '(' | '{') => depth += 1,
                Token::Sign(']' | ')' | '}') => depth -= 1,
                _ => {}
            }
            depth == 0 && *token == Token::Sign(';')
        });
        found.extend(words_of(&rest[value..value + end.unwrap_or(0)]));
    }
    found
}

/// The strings of every list in brackets that holds nothing else. Values in JSON belong to the
/// protocol of a tool.
fn lists_in_place(tokens: &[Token]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_json = at > 0 && tokens[at - 1] == Token::Sign(':');
        if *token != Token::Sign('[') || is_json {
            continue;
        }
        let rest = &tokens[at + 1..];
        let is_part = |token: &Token| matches!(token, Token::Text(_) | Token::Sign(','));
        let length = rest.iter().take_while(|token| is_part(token)).count();
        let words = words_of(&rest[..length]);
        if rest.get(length) == Some(&Token::Sign(']')) && words.len() > 1 {
            found.extend(words);
        }
    }
    found
}

/// Each word with the file it stands in.
fn collect(path: &Path, in_place: bool, out: &mut BTreeMap<String, String>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            collect(&entry.unwrap().path(), in_place, out);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs") && path.exists() {
        let tokens = tokens(&fs::read_to_string(path).unwrap());
        let mut words = constant_lists(&tokens);
        if in_place {
            words.extend(lists_in_place(&tokens));
        }
        let name = path.display().to_string();
        out.extend(words.into_iter().map(|word| (word, name.clone())));
    } else if path.extension().is_some_and(|extension| extension == "toml") {
        let table: toml::Table = fs::read_to_string(path).unwrap().parse().unwrap();
        let mut words = Vec::new();
        listed(&toml::Value::Table(table), false, &mut words);
        let name = path.display().to_string();
        out.extend(words.into_iter().map(|word| (word, name.clone())));
    }
}

/// The strings in all lists of a table.
fn listed(value: &toml::Value, is_listed: bool, out: &mut Vec<String>) {
    match value {
        toml::Value::String(text) if is_listed => out.push(text.trim().to_lowercase()),
        toml::Value::Array(items) => items.iter().for_each(|item| listed(item, true, out)),
        toml::Value::Table(table) => table.values().for_each(|value| listed(value, false, out)),
        _ => {}
    }
}

#[test]
fn generator_offline_model_and_survival_share_no_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Kinds of facts are no words of a session.
    let kinds = ProbeKind::ALL.map(ProbeKind::name);
    let allowed: BTreeSet<&str> = FUNCTION_WORDS.iter().copied().chain(kinds).collect();
    let sides = SIDES.map(|(name, places)| {
        let mut words = BTreeMap::new();
        for place in places {
            collect(&root.join(place), name == "generator", &mut words);
        }
        (name, words)
    });
    for (name, words) in &sides {
        assert!(words.len() > 20, "{name}: the lists were not found");
    }
    let mut shared = Vec::new();
    for (at, (one, words)) in sides.iter().enumerate() {
        for (other, others) in &sides[at + 1..] {
            for (word, place) in words {
                if let Some(again) = others.get(word)
                    && !allowed.contains(word.as_str())
                {
                    shared.push(format!("{one} and {other}: `{word}` in {place} and {again}"));
                }
            }
        }
    }
    assert!(shared.is_empty(), "\n{}\n", shared.join("\n"));
}

#[test]
fn lists_are_found_however_they_are_written() {
    let check = |source: &str, constant: &[&str], in_place: &[&str]| {
        let tokens = tokens(source);
        assert_eq!(constant_lists(&tokens), constant, "{source}");
        assert_eq!(lists_in_place(&tokens), in_place, "{source}");
    };
    check(r#"const A: &[&str] = &["X ", "y\"z"];"#, &["x", "y\\\"z"], &["x", "y\\\"z"]);
    check(r#"const A: [(u8, &[&str]); 2] = [(1, &["a"]), (2, &["b"])];"#, &["a", "b"], &[]);
    check(r#"const A: &str = "a"; let b = pick(&["c", "d"]);"#, &[], &["c", "d"]);
    check(r#"json!({"enum": ["a", "b"], "x": '"'})"#, &[], &[]);
    check("fn a<'a>() {} // [\"a\", \"b\"]\n", &[], &[]);
    check("#[cfg(test)]\nmod tests { const A: &[&str] = &[\"a\"]; }", &[], &[]);
}
