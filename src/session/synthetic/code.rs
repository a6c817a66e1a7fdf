//! Source files in three languages: one abstract function, and templates of how each writes it.

use super::files::File;
use super::grammar::{WORDS, fill};
use super::output::Place;
use super::random::Random;

/// A language of the simulated repository, by the name of its table of templates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CodeLanguage(&'static str);

impl CodeLanguage {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        WORDS.bank("languages").iter().map(|name| Self(name))
    }

    /// One of its templates, filled with draws, too.
    pub(crate) fn say(self, random: &mut Random, rule: &str, slots: &[(&str, &str)]) -> String {
        WORDS.say(random, &format!("{}.{rule}", self.0), slots)
    }

    /// One of its templates that draws nothing.
    pub(crate) fn fill(self, rule: &str, slots: &[(&str, &str)]) -> String {
        let bank = WORDS.bank(&format!("{}.{rule}", self.0));
        fill(bank.first().unwrap_or(&""), slots)
    }

    /// How the language spells the name of a function or variable.
    pub(crate) fn identifier(self, snake: &str) -> String {
        self.fill("identifier", &[("snake", snake)])
    }

    /// The path of a file that plays `role` in the module `noun`.
    pub(crate) fn path(self, noun: &str, role: &str) -> String {
        self.fill("path", &[("noun", noun), ("role", role)])
    }
}

/// A definition of another file that a file uses.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) noun: &'static str,
    pub(crate) role: &'static str,
    pub(crate) symbol: String,
}

/// Adds the lines of a text, each indented.
fn add(code: &mut String, indent: &str, text: &str) {
    for line in text.lines() {
        code.extend([indent, line, "\n"]);
    }
}

fn add_imports(code: &mut String, file: &File) {
    for Import { noun, role, symbol } in &file.imports {
        let slots = [("noun", *noun), ("role", role), ("symbol", symbol)];
        add(code, "", &file.language.fill("import", &slots));
    }
}

fn lines(code: &str) -> Vec<String> {
    code.lines().map(str::to_owned).collect()
}

/// The lines of a file of about `bytes` bytes: all its exported functions, then private ones until
/// it is long enough.
pub(crate) fn file(random: &mut Random, file: &File, bytes: usize) -> Vec<String> {
    let language = file.language;
    let mut code = String::new();
    add_header(random, file, &mut code);
    let mut number = 0;
    while number == 0 || code.len() < bytes {
        if let Some(name) = file.functions.get(number) {
            let public = language.fill("public", &[]);
            add_function(random, file, name, &public, &mut code);
        } else {
            let name = WORDS.say(random, "private", &[]);
            let end = match number {
                0..=40 => WORDS.pick(random, "endings"),
                _ => &number.to_string(),
            };
            let name = language.identifier(&format!("{name}_{end}"));
            add_function(random, file, &name, "", &mut code);
        }
        number += 1;
    }
    lines(&code)
}

/// A file of tests for the functions of a file: path, lines, names of the tests.
pub(crate) fn test_file(
    random: &mut Random,
    file: &File,
    topic: &str,
    bytes: usize,
) -> (String, Vec<String>, Vec<String>) {
    let language = file.language;
    let mut code = String::new();
    add_imports(&mut code, file);
    let mut names = Vec::new();
    let mut written = 0;
    while names.is_empty() || written < bytes {
        let prefix = language.fill("test_name", &[]);
        let case = WORDS.say(random, "refused", &[("prefix", &prefix)]);
        let name = language.identifier(&format!("{case}_{}", names.len() + 1));
        let callee = callee(random, file);
        let limit = random.between(12, 9_000);
        let slots = [
            ("name", name.as_str()),
            ("callee", callee),
            ("limit", &limit.to_string()),
            ("over", &(limit + 1).to_string()),
            ("fault", &WORDS.say(random, "error", &[])),
            ("type", &file.type_name),
        ];
        let test = language.fill("test", &slots);
        written += test.len();
        add(&mut code, "", &test);
        names.push(name);
    }
    let slots = [("noun", file.noun), ("role", file.role), ("topic", topic)];
    (language.fill("test_path", &slots), lines(&code), names)
}

/// The name that a line of a function binds, if it binds one.
pub(crate) fn bound_name(line: &str) -> Option<String> {
    let (left, right) = line.trim_start().split_once(" = ")?;
    let name = left.trim_start_matches("let ").trim_start_matches("const ");
    (right.contains("(source, ") && !name.contains(' ')).then(|| name.to_owned())
}

/// The lines of a check of `subject` that an edit inserts, at the given indentation.
pub(crate) fn inserted_guard(
    random: &mut Random,
    language: CodeLanguage,
    indent: &str,
    subject: &str,
) -> Vec<String> {
    let mut code = String::new();
    add(&mut code, indent, &language.say(random, "note", &[]));
    let limit = random.between(3, 99_999).to_string();
    let slots = [("subject", subject), ("limit", &limit)];
    add(&mut code, indent, &language.say(random, "guard", &slots));
    lines(&code)
}

fn add_header(random: &mut Random, file: &File, code: &mut String) {
    let language = file.language;
    add(
        code,
        "",
        &language.say(random, "about", &[("noun", file.noun)]),
    );
    add_imports(code, file);
    code.push('\n');
    let fields: Vec<&str> = (0..random.count(2, 5))
        .map(|_| WORDS.pick(random, "objects"))
        .collect();
    add(
        code,
        "",
        &language.fill("open", &[("name", &file.type_name)]),
    );
    for field in fields {
        let field = language.identifier(field);
        add(
            code,
            "",
            &language.say(random, "field", &[("field", &field)]),
        );
    }
    add(code, "", &language.fill("close", &[]));
}

/// One of the functions that a file defines or imports.
fn callee<'a>(random: &mut Random, file: &'a File) -> &'a str {
    let imported = file.imports.iter().map(|import| &import.symbol);
    let all = file.functions.iter().chain(imported);
    let all: Vec<&str> = all.map(String::as_str).collect();
    random.pick(&all)
}

fn add_function(random: &mut Random, file: &File, name: &str, public: &str, code: &mut String) {
    let language = file.language;
    let doc = WORDS.say(random, "doc", &[("noun", file.noun)]);
    let mut argument = language.identifier(WORDS.pick(random, "objects"));
    let result = WORDS.say(random, "type", &[]);
    let slots = [
        ("doc", doc.as_str()),
        ("public", public),
        ("name", name),
        ("type", &file.type_name),
        ("argument", &argument),
        ("result", &result),
    ];
    add(code, "", &language.fill("function", &slots));
    for _ in 0..random.count(2, 7) {
        add_statement(random, file, &mut argument, code);
    }
    let slots = [("result", result.as_str()), ("argument", &argument)];
    add(code, "", &language.fill("end", &slots));
}

/// Adds a statement about `argument`, which becomes the name that it binds.
fn add_statement(random: &mut Random, file: &File, argument: &mut String, code: &mut String) {
    let language = file.language;
    let statement = WORDS.pick(random, "statements");
    let (name, limit);
    let mut slots = vec![("noun", file.noun), ("subject", argument.as_str())];
    match statement {
        "bind" => {
            name = language.identifier(&WORDS.say(random, "bound", &[]));
            slots.extend([("name", name.as_str()), ("callee", callee(random, file))]);
        }
        "guard" => {
            limit = random.between(2, 65_536).to_string();
            slots.push(("limit", &limit));
        }
        "each" => {
            let item = WORDS.pick(random, "items");
            slots.extend([("item", item), ("callee", callee(random, file))]);
        }
        _ => {}
    }
    let text = language.say(random, statement, &slots);
    add(code, &language.fill("indent", &[]), &text);
    if let Some(bound) = bound_name(&text) {
        *argument = bound;
    }
}

/// A function of a file, as output can name it.
pub(crate) fn place(random: &mut Random, file: &File) -> Place {
    Place {
        noun: file.noun,
        path: file.path.clone(),
        symbol: file.functions[random.index(file.functions.len())].clone(),
        language: file.language,
    }
}
