//! Source files in three languages: one abstract function, and templates of how each writes it.

use super::files::File;
use super::grammar::{WORDS, bank, fill};
use super::random::Random;

/// A language of the simulated repository, by the name of its table of templates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CodeLanguage(&'static str);

impl CodeLanguage {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        bank("languages").iter().map(|name| Self(name))
    }

    /// One of its templates, filled with draws, too.
    pub(crate) fn say(self, random: &Random, rule: &str, slots: &[(&str, &str)]) -> String {
        random.say(&format!("{}.{rule}", self.0), slots)
    }

    /// One of its templates that draws nothing.
    pub(crate) fn fill(self, rule: &str, slots: &[(&str, &str)]) -> String {
        fill(WORDS.one(&format!("{}.{rule}", self.0)), slots)
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

/// The text of a file while it is written.
struct Code<'a> {
    random: &'a Random,
    file: &'a File,
    text: String,
}

/// The lines of a file of about `bytes` bytes: all its exported functions, then private ones until
/// it is long enough.
pub(crate) fn file(random: &Random, file: &File, bytes: usize) -> Vec<String> {
    let language = file.language;
    let mut code = Code::new(random, file);
    code.add_header();
    let mut number = 0;
    while number == 0 || code.text.len() < bytes {
        if let Some(name) = file.functions.get(number) {
            code.add_function(name, &language.fill("public", &[]));
        } else {
            let name = random.draw("private");
            let end = match number {
                0..=40 => random.word("endings"),
                _ => &number.to_string(),
            };
            code.add_function(&language.identifier(&format!("{name}_{end}")), "");
        }
        number += 1;
    }
    code.lines()
}

/// A file of tests for the functions of a file: path, lines, names of the tests.
pub(crate) fn test_file(
    random: &Random,
    file: &File,
    topic: &str,
    bytes: usize,
) -> (String, Vec<String>, Vec<String>) {
    let language = file.language;
    let mut code = Code::new(random, file);
    code.add_imports();
    let head = code.text.len();
    let mut names = Vec::new();
    while names.is_empty() || code.text.len() < head + names.len() + bytes {
        let prefix = language.fill("test_name", &[]);
        let case = random.say("refused", &[("prefix", &prefix)]);
        let name = language.identifier(&format!("{case}_{}", names.len() + 1));
        let callee = code.callee();
        let limit = random.between(12, 9_000);
        let slots = [
            ("name", name.as_str()),
            ("callee", callee),
            ("limit", &limit.to_string()),
            ("over", &(limit + 1).to_string()),
            ("fault", &random.draw("error")),
            ("type", &file.type_name),
        ];
        code.add("test", &slots);
        names.push(name);
    }
    let slots = [("noun", file.noun), ("role", file.role), ("topic", topic)];
    (language.fill("test_path", &slots), code.lines(), names)
}

/// The name that a line of a function binds, if it binds one.
pub(crate) fn bound_name(line: &str) -> Option<String> {
    let (left, right) = line.trim_start().split_once(" = ")?;
    let name = left.trim_start_matches("let ").trim_start_matches("const ");
    (right.contains("(source, ") && !name.contains(' ')).then(|| name.to_owned())
}

/// The lines of a check of `subject` that an edit inserts, at the given indentation.
pub(crate) fn inserted_guard(
    random: &Random,
    file: &File,
    indent: &str,
    subject: &str,
) -> Vec<String> {
    let mut code = Code::new(random, file);
    code.add_at(indent, "note", &[]);
    let limit = random.between(3, 99_999).to_string();
    code.add_at(indent, "guard", &[("subject", subject), ("limit", &limit)]);
    code.lines()
}

impl<'a> Code<'a> {
    fn new(random: &'a Random, file: &'a File) -> Self {
        let text = String::new();
        Self { random, file, text }
    }

    fn lines(&self) -> Vec<String> {
        self.text.lines().map(str::to_owned).collect()
    }

    /// Adds a template of the file's language.
    fn add(&mut self, rule: &str, slots: &[(&str, &str)]) {
        self.add_at("", rule, slots);
    }

    /// Adds a template, each line indented, and returns it.
    fn add_at(&mut self, indent: &str, rule: &str, slots: &[(&str, &str)]) -> String {
        let text = self.file.language.say(self.random, rule, slots);
        for line in text.lines() {
            self.text.extend([indent, line, "\n"]);
        }
        text
    }

    fn add_imports(&mut self) {
        for Import { noun, role, symbol } in &self.file.imports {
            self.add("import", &[("noun", noun), ("role", role), ("symbol", symbol)]);
        }
    }

    fn add_header(&mut self) {
        let (random, file) = (self.random, self.file);
        self.add("about", &[("noun", file.noun)]);
        self.add_imports();
        self.text.push('\n');
        let fields: Vec<&str> = (0..random.count(2, 5)).map(|_| random.word("objects")).collect();
        self.add("open", &[("name", &file.type_name)]);
        for field in fields {
            self.add("field", &[("field", &file.language.identifier(field))]);
        }
        self.add("close", &[]);
    }

    /// One of the functions that the file defines or imports.
    fn callee(&self) -> &'a str {
        let imported = self.file.imports.iter().map(|import| &import.symbol);
        let all: Vec<&str> =
            self.file.functions.iter().chain(imported).map(String::as_str).collect();
        self.random.pick(&all)
    }

    fn add_function(&mut self, name: &str, public: &str) {
        let (random, file) = (self.random, self.file);
        let doc = random.say("doc", &[("noun", file.noun)]);
        let mut argument = file.language.identifier(random.word("objects"));
        let result = random.draw("type");
        let slots = [
            ("doc", doc.as_str()),
            ("public", public),
            ("name", name),
            ("type", &file.type_name),
            ("argument", &argument),
            ("result", &result),
        ];
        self.add("function", &slots);
        for _ in 0..random.count(2, 7) {
            let statement = self.add_statement(&argument);
            argument = bound_name(&statement).unwrap_or(argument);
        }
        self.add("end", &[("result", &result), ("argument", &argument)]);
    }

    /// Adds a statement about `argument`, and returns it.
    fn add_statement(&mut self, argument: &str) -> String {
        let (random, language) = (self.random, self.file.language);
        let statement = random.word("statements");
        let (name, limit);
        let mut slots = vec![("noun", self.file.noun), ("subject", argument)];
        match statement {
            "bind" => {
                name = language.identifier(&random.draw("bound"));
                slots.extend([("name", name.as_str()), ("callee", self.callee())]);
            }
            "guard" => {
                limit = random.between(2, 65_536).to_string();
                slots.push(("limit", &limit));
            }
            "each" => slots.extend([("item", random.word("items")), ("callee", self.callee())]),
            _ => {}
        }
        self.add_at(&language.fill("indent", &[]), statement, &slots)
    }
}
