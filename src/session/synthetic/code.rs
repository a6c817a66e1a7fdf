//! Source files in three languages: one abstract function, and templates of how each writes it.

use serde::Deserialize;

use super::files::File;
use super::output::Place;
use super::prose;
use super::random::Random;
use super::words::{Bank, NAMES, camel, fill, pascal};

/// A language of the simulated repository: a template for each thing that it writes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CodeLanguage {
    pub(crate) name: &'static str,
    /// Whether functions and variables are spelled `likeThis`.
    #[serde(default)]
    camel_case: bool,
    comment: &'static str,
    path: &'static str,
    test_path: &'static str,
    import: &'static str,
    about: &'static str,
    /// The beginning, a field, the types of fields, and the end of a type.
    open: &'static str,
    field: &'static str,
    types: Bank,
    close: &'static str,
    /// What marks an exported function.
    public: &'static str,
    function: &'static str,
    indent: &'static str,
    bind: &'static str,
    guard: &'static str,
    each: &'static str,
    trace: &'static str,
    end: &'static str,
    test_name: &'static str,
    test: &'static str,
    pub(crate) test_case: &'static str,
    /// A line of a test run, and the marks of success and failure. They are no list: the words of
    /// other programs are not the generator's own.
    pub(crate) test_line: &'static str,
    pub(crate) pass: &'static str,
    pub(crate) fail: &'static str,
    pub(crate) failure: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) diagnostic: &'static str,
    /// Codes of diagnostics, where they have any.
    pub(crate) codes: Option<(u64, u64)>,
    pub(crate) check_command: &'static str,
    pub(crate) test_command: &'static str,
}

impl CodeLanguage {
    /// The mark of a test, or of a run of tests.
    pub(crate) fn mark(&self, is_failed: bool) -> String {
        let mark = if is_failed { self.fail } else { self.pass };
        mark.to_owned()
    }

    /// How the language spells the name of a function or variable.
    pub(crate) fn identifier(&self, snake: &str) -> String {
        if self.camel_case {
            camel(snake)
        } else {
            snake.to_owned()
        }
    }

    /// A line comment.
    pub(crate) fn comment(&self, text: &str) -> String {
        fill(self.comment, &[("text", text)])
    }

    /// The path of a file that plays `role` in the module `noun`.
    pub(crate) fn path(&self, noun: &str, role: &str) -> String {
        fill(self.path, &[("noun", noun), ("role", role)])
    }

    fn imports(&self, file: &File) -> impl Iterator<Item = String> {
        file.imports.iter().map(|Import { noun, role, symbol }| {
            fill(
                self.import,
                &[("noun", noun), ("role", role), ("symbol", symbol)],
            )
        })
    }
}

/// A definition of another file that a file uses.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) noun: &'static str,
    pub(crate) role: &'static str,
    pub(crate) symbol: String,
}

/// Adds the lines of a filled template, each indented.
fn write(lines: &mut Vec<String>, indent: &str, template: &str, slots: &[(&str, &str)]) {
    let text = fill(template, slots);
    lines.extend(text.lines().map(|line| format!("{indent}{line}")));
}

fn size(lines: &[String]) -> usize {
    lines.iter().map(|line| line.len() + 1).sum()
}

/// The lines of a file of about `bytes` bytes: all its exported functions, then private ones until
/// it is long enough.
pub(crate) fn file(random: &mut Random, file: &File, bytes: usize) -> Vec<String> {
    let mut lines = header(random, file);
    let mut written = size(&lines);
    let mut number = 0;
    while number < file.functions.len().min(1) || written < bytes {
        let from = lines.len();
        if let Some(name) = file.functions.get(number) {
            function(random, file, name, file.language.public, &mut lines);
        } else {
            let name = private_name(random, file.language, number);
            function(random, file, &name, "", &mut lines);
        }
        written += size(&lines[from..]);
        number += 1;
    }
    lines
}

/// A file of tests for the functions of a file: path, lines, names of the tests.
pub(crate) fn test_file(
    random: &mut Random,
    file: &File,
    topic: &str,
    bytes: usize,
) -> (String, Vec<String>, Vec<String>) {
    let language = file.language;
    let mut lines: Vec<String> = language.imports(file).collect();
    let mut names = Vec::new();
    let mut written = 0;
    while names.is_empty() || written < bytes {
        let (fault, object) = (random.pick(&NAMES.faults), random.pick(&NAMES.objects));
        let name = format!(
            "{}_{fault}_{object}_{}",
            language.test_name,
            names.len() + 1
        );
        let name = language.identifier(&name);
        let callee = callee(random, file);
        let limit = random.between(12, 9_000);
        let slots = [
            ("name", name.as_str()),
            ("callee", &callee),
            ("limit", &limit.to_string()),
            ("over", &(limit + 1).to_string()),
            ("fault", &pascal(random.pick(&NAMES.faults))),
            ("type", &file.type_name),
        ];
        let block = fill(language.test, &slots);
        written += block.len();
        lines.extend(block.lines().map(str::to_owned));
        names.push(name);
    }
    let slots = [("noun", file.noun), ("role", file.role), ("topic", topic)];
    (fill(language.test_path, &slots), lines, names)
}

/// The name that a line of a function binds, if it binds one.
pub(crate) fn bound_name(line: &str) -> Option<String> {
    let (left, right) = line.trim_start().split_once(" = ")?;
    let name = left.trim_start_matches("let ").trim_start_matches("const ");
    (right.contains("(source, ") && !name.contains(' ')).then(|| name.to_owned())
}

/// Adds a check of `subject` that an edit inserts, at the given indentation.
pub(crate) fn insert_guard(
    random: &mut Random,
    language: &CodeLanguage,
    indent: &str,
    subject: &str,
    lines: &mut Vec<String>,
) {
    let comment = language.comment(&prose::reason(random));
    lines.push(format!("{indent}{comment}"));
    guard(random, language, indent, subject, (3, 99_999), lines);
}

fn guard(
    random: &mut Random,
    language: &CodeLanguage,
    indent: &str,
    subject: &str,
    limits: (u64, u64),
    lines: &mut Vec<String>,
) {
    let limit = random.between(limits.0, limits.1).to_string();
    let fault = pascal(random.pick(&NAMES.faults));
    let slots = [("subject", subject), ("limit", &limit), ("fault", &fault)];
    write(lines, indent, language.guard, &slots);
}

fn header(random: &mut Random, file: &File) -> Vec<String> {
    let language = file.language;
    let mut lines = Vec::new();
    let about = prose::purpose(random, file.noun);
    write(&mut lines, "", language.about, &[("about", &about)]);
    lines.extend(language.imports(file));
    lines.push(String::new());
    let fields: Vec<String> = (0..random.count(2, 5))
        .map(|_| language.identifier(random.pick(&NAMES.objects)))
        .collect();
    write(&mut lines, "", language.open, &[("name", &file.type_name)]);
    for field in &fields {
        let slots = [
            ("field", field.as_str()),
            ("type", random.pick(&language.types)),
        ];
        write(&mut lines, "", language.field, &slots);
    }
    write(&mut lines, "", language.close, &[]);
    lines
}

fn private_name(random: &mut Random, language: &CodeLanguage, number: usize) -> String {
    let (verb, object) = (random.pick(&NAMES.verbs), random.pick(&NAMES.objects));
    let end = match number {
        0..=40 => random.pick(&["inner", "once", "by_key", "at", "or_skip"]),
        _ => &number.to_string(),
    };
    language.identifier(&format!("{verb}_{object}_{end}"))
}

/// One of the functions that a file defines or imports.
fn callee(random: &mut Random, file: &File) -> String {
    let imported = file.imports.iter().map(|import| &import.symbol);
    let all: Vec<&String> = file.functions.iter().chain(imported).collect();
    let at = random.index(all.len().max(1));
    all.get(at)
        .map_or_else(|| "load".to_owned(), |name| (*name).clone())
}

fn function(random: &mut Random, file: &File, name: &str, public: &str, lines: &mut Vec<String>) {
    let language = file.language;
    let doc = prose::doc(random, file.noun);
    let mut argument = language.identifier(random.pick(&NAMES.objects));
    let result = pascal(random.pick(&NAMES.objects));
    let slots = [
        ("doc", doc.as_str()),
        ("public", public),
        ("name", name),
        ("type", &file.type_name),
        ("argument", &argument),
        ("result", &result),
    ];
    write(lines, "", language.function, &slots);
    for _ in 0..random.count(2, 7) {
        statement(random, file, &mut argument, lines);
    }
    let slots = [("result", result.as_str()), ("argument", &argument)];
    write(lines, "", language.end, &slots);
}

/// Adds a statement about `argument`, which becomes the name that it binds.
fn statement(random: &mut Random, file: &File, argument: &mut String, lines: &mut Vec<String>) {
    let language = file.language;
    let indent = language.indent;
    match random.weighted(&[40, 22, 14, 10, 14]) {
        0 => {
            let age = random.pick(&["later", "open", "due", "raw", "kept"]);
            let name = format!("{age}_{}", random.pick(&NAMES.objects));
            let name = language.identifier(&name);
            let callee = callee(random, file);
            let slots = [
                ("name", name.as_str()),
                ("callee", &callee),
                ("argument", argument),
            ];
            write(lines, indent, language.bind, &slots);
            *argument = name;
        }
        1 => guard(random, language, indent, argument, (2, 65_536), lines),
        2 => {
            let item = random.pick(&["item", "line", "part", "piece"]);
            let callee = callee(random, file);
            let slots = [("item", item), ("list", argument), ("callee", &callee)];
            write(lines, indent, language.each, &slots);
        }
        3 => {
            let reason = prose::reason(random);
            write(lines, indent, language.comment, &[("text", &reason)]);
        }
        _ => {
            let event = prose::event(random, file.noun);
            let slots = [("text", event.as_str()), ("subject", argument)];
            write(lines, indent, language.trace, &slots);
        }
    }
}

/// What output can say about a function of a file.
pub(crate) fn place(random: &mut Random, file: &File) -> Place {
    Place {
        noun: file.noun,
        path: file.path.clone(),
        symbol: file.functions[random.index(file.functions.len())].clone(),
        language: file.language,
    }
}
