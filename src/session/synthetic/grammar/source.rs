//! Source files in three languages: one abstract function, three ways to write it.

use super::names::{FAULTS, OBJECTS, VERBS, camel, pascal};
use super::prose;
use crate::session::synthetic::random::Random;

/// The languages of the simulated repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Language {
    Rust,
    Python,
    TypeScript,
}

impl Language {
    pub(crate) const ALL: [Self; 3] = [Self::Rust, Self::Python, Self::TypeScript];

    /// How the language spells the name of a function or variable.
    pub(crate) fn name(self, snake: &str) -> String {
        match self {
            Self::Rust | Self::Python => snake.to_owned(),
            Self::TypeScript => camel(snake),
        }
    }

    /// A line comment.
    pub(crate) fn comment(self, text: &str) -> String {
        match self {
            Self::Rust | Self::TypeScript => format!("// {text}"),
            Self::Python => format!("# {text}"),
        }
    }

    /// The path of a file that plays `role` in the module `noun`.
    pub(crate) fn path(self, noun: &str, role: &str) -> String {
        match self {
            Self::Rust => format!("crates/{noun}/src/{role}.rs"),
            Self::Python => format!("services/{noun}/{role}.py"),
            Self::TypeScript => format!("web/src/{noun}/{role}.ts"),
        }
    }

    /// The path of a test file for it.
    pub(crate) fn test_path(self, noun: &str, role: &str, topic: &str) -> String {
        match self {
            Self::Rust => format!("crates/{noun}/tests/{role}_{topic}.rs"),
            Self::Python => format!("services/{noun}/tests/test_{role}_{topic}.py"),
            Self::TypeScript => format!("web/src/{noun}/{role}.{topic}.test.ts"),
        }
    }

    fn import(self, import: &Import) -> String {
        let Import { noun, role, symbol } = import;
        match self {
            Self::Rust => format!("use {noun}::{role}::{symbol};"),
            Self::Python => format!("from services.{noun}.{role} import {symbol}"),
            Self::TypeScript => format!("import {{ {symbol} }} from \"../{noun}/{role}\";"),
        }
    }
}

/// A definition of another file that a file uses.
#[derive(Debug, Clone)]
pub(crate) struct Import {
    pub(crate) noun: &'static str,
    pub(crate) role: &'static str,
    pub(crate) symbol: String,
}

/// What is fixed about a file before its text is written.
#[derive(Debug)]
pub(crate) struct Outline<'a> {
    pub(crate) language: Language,
    pub(crate) noun: &'a str,
    pub(crate) type_name: &'a str,
    pub(crate) functions: &'a [String],
    pub(crate) imports: &'a [Import],
}

enum Statement {
    Bind {
        name: String,
        callee: String,
        argument: String,
    },
    Guard {
        subject: String,
        limit: u64,
        fault: &'static str,
    },
    Each {
        item: &'static str,
        list: String,
        callee: String,
    },
    Note(String),
    Trace {
        text: String,
        subject: String,
    },
}

/// The lines of a file of about `bytes` bytes: all its exported functions, then private ones until
/// it is long enough.
pub(crate) fn file(random: &mut Random, outline: &Outline<'_>, bytes: usize) -> Vec<String> {
    let language = outline.language;
    let mut lines = header(random, outline);
    let mut size: usize = lines.iter().map(|line| line.len() + 1).sum();
    let mut number = 0;
    while number < outline.functions.len().min(1) || size < bytes {
        let (name, exported) = match outline.functions.get(number) {
            Some(name) => (name.clone(), true),
            None => (private_name(random, language, number), false),
        };
        let function = function(random, outline, &name, exported);
        size += function.iter().map(|line| line.len() + 1).sum::<usize>();
        lines.extend(function);
        number += 1;
    }
    lines
}

/// A file of tests for the functions of `outline`.
pub(crate) fn test_file(
    random: &mut Random,
    outline: &Outline<'_>,
    bytes: usize,
) -> (Vec<String>, Vec<String>) {
    let language = outline.language;
    let mut lines: Vec<String> = outline.imports.iter().map(|i| language.import(i)).collect();
    let mut names = Vec::new();
    let mut size = 0;
    while names.is_empty() || size < bytes {
        let name = language.name(&format!(
            "{}_{}_{}_{}",
            if language == Language::Python {
                "test_refuses"
            } else {
                "refuses"
            },
            random.pick(FAULTS),
            random.pick(OBJECTS),
            names.len() + 1
        ));
        let callee = callee(random, outline);
        let limit = random.between(12, 9_000);
        let fault = pascal(random.pick(FAULTS));
        let block = match language {
            Language::Rust => format!(
                "\n#[test]\nfn {name}() {{\n    let fixture = {}::with_limit({limit});\n    \
                 let outcome = {callee}(&fixture, {});\n    \
                 assert!(matches!(outcome, Err(Fault::{fault} {{ limit: {limit} }})));\n}}",
                outline.type_name,
                limit + 1,
            ),
            Language::Python => format!(
                "\n\ndef {name}():\n    fixture = {}(limit={limit})\n    \
                 with pytest.raises({fault}) as caught:\n        {callee}(fixture, {})\n    \
                 assert caught.value.limit == {limit}",
                outline.type_name,
                limit + 1,
            ),
            Language::TypeScript => format!(
                "\nit(\"{name}\", async () => {{\n  const fixture = new {}({{ limit: {limit} }});\n  \
                 await expect({callee}(fixture, {})).rejects.toThrow({fault});\n}});",
                outline.type_name,
                limit + 1,
            ),
        };
        size += block.len();
        lines.extend(block.lines().map(str::to_owned));
        names.push(name);
    }
    (lines, names)
}

/// The name that a line of a function binds, if it binds one.
pub(crate) fn bound_name(line: &str) -> Option<String> {
    let (left, right) = line.trim_start().split_once(" = ")?;
    let name = left.trim_start_matches("let ").trim_start_matches("const ");
    (right.contains("(source, ") && !name.contains(' ')).then(|| name.to_owned())
}

/// A check of `subject` that an edit inserts, at the given indentation.
pub(crate) fn inserted_guard(
    random: &mut Random,
    language: Language,
    indent: &str,
    subject: &str,
) -> Vec<String> {
    let reason = prose::reason(random);
    let mut lines = vec![format!("{indent}{}", language.comment(&reason))];
    let guard = Statement::Guard {
        subject: subject.to_owned(),
        limit: random.between(3, 99_999),
        fault: random.pick(FAULTS),
    };
    lines.extend(
        write(&guard, language)
            .into_iter()
            .map(|line| format!("{indent}{line}")),
    );
    lines
}

fn header(random: &mut Random, outline: &Outline<'_>) -> Vec<String> {
    let language = outline.language;
    let about = prose::purpose(random, outline.noun);
    let mut lines = match language {
        Language::Rust => vec![format!("//! {about}"), String::new()],
        Language::Python => vec![format!("\"\"\"{about}\"\"\""), String::new()],
        Language::TypeScript => vec![format!("/** {about} */")],
    };
    lines.extend(outline.imports.iter().map(|import| language.import(import)));
    lines.push(String::new());
    let fields: Vec<String> = (0..random.count(2, 5))
        .map(|_| language.name(random.pick(OBJECTS)))
        .collect();
    let name = outline.type_name;
    match language {
        Language::Rust => {
            lines.push("#[derive(Debug, Clone)]".to_owned());
            lines.push(format!("pub struct {name} {{"));
            for field in &fields {
                let ty = random.pick(&["u64", "String", "Vec<Entry>", "Duration", "Option<Lease>"]);
                lines.push(format!("    pub {field}: {ty},"));
            }
            lines.push("}".to_owned());
        }
        Language::Python => {
            lines.push("@dataclass(frozen=True)".to_owned());
            lines.push(format!("class {name}:"));
            for field in &fields {
                let ty = random.pick(&["int", "str", "list[Entry]", "timedelta", "Lease | None"]);
                lines.push(format!("    {field}: {ty}"));
            }
        }
        Language::TypeScript => {
            lines.push(format!("export interface {name} {{"));
            for field in &fields {
                let ty = random.pick(&["number", "string", "Entry[]", "Lease | undefined"]);
                lines.push(format!("  {field}: {ty};"));
            }
            lines.push("}".to_owned());
        }
    }
    lines
}

fn private_name(random: &mut Random, language: Language, number: usize) -> String {
    let (verb, object) = (random.pick(VERBS), random.pick(OBJECTS));
    let name = match number {
        0..=40 => format!(
            "{verb}_{object}_{}",
            random.pick(&["inner", "once", "by_key", "at", "or_skip"])
        ),
        _ => format!("{verb}_{object}_{number}"),
    };
    language.name(&name)
}

fn callee(random: &mut Random, outline: &Outline<'_>) -> String {
    let own = outline.functions.len();
    let all = own + outline.imports.len();
    let at = random.index(all.max(1));
    match outline.functions.get(at) {
        Some(name) => name.clone(),
        None => outline
            .imports
            .get(at.wrapping_sub(own))
            .map_or_else(|| "load".to_owned(), |import| import.symbol.clone()),
    }
}

fn function(random: &mut Random, outline: &Outline<'_>, name: &str, exported: bool) -> Vec<String> {
    let language = outline.language;
    let doc = prose::doc(random, outline.noun);
    let mut argument = language.name(random.pick(OBJECTS));
    let ty = outline.type_name;
    let result = pascal(random.pick(OBJECTS));
    let mut lines = vec![String::new()];
    let (indent, close) = match language {
        Language::Rust => {
            let public = if exported { "pub " } else { "" };
            lines.push(format!("/// {doc}"));
            lines.push(format!(
                "{public}fn {name}(source: &{ty}, {argument}: u64) -> Result<{result}, Fault> {{"
            ));
            ("    ", Some("}"))
        }
        Language::Python => {
            lines.push(String::new());
            lines.push(format!(
                "def {name}(source: {ty}, {argument}: int) -> {result}:"
            ));
            lines.push(format!("    \"\"\"{doc}\"\"\""));
            ("    ", None)
        }
        Language::TypeScript => {
            let public = if exported { "export " } else { "" };
            lines.push(format!("/** {doc} */"));
            lines.push(format!(
                "{public}async function {name}(source: {ty}, {argument}: number): Promise<{result}> {{"
            ));
            ("  ", Some("}"))
        }
    };
    for _ in 0..random.count(2, 7) {
        let statement = statement(random, outline, &argument);
        if let Statement::Bind { name, .. } = &statement {
            argument.clone_from(name);
        }
        lines.extend(
            write(&statement, language)
                .into_iter()
                .map(|line| format!("{indent}{line}")),
        );
    }
    lines.push(match language {
        Language::Rust => format!("{indent}Ok({result}::from({argument}))"),
        Language::Python => format!("{indent}return {result}({argument})"),
        Language::TypeScript => format!("{indent}return new {result}({argument});"),
    });
    lines.extend(close.map(str::to_owned));
    lines
}

fn statement(random: &mut Random, outline: &Outline<'_>, argument: &str) -> Statement {
    let language = outline.language;
    match random.weighted(&[40, 22, 14, 10, 14]) {
        0 => Statement::Bind {
            name: language.name(&format!(
                "{}_{}",
                random.pick(&["later", "open", "due", "raw", "kept"]),
                random.pick(OBJECTS)
            )),
            callee: callee(random, outline),
            argument: argument.to_owned(),
        },
        1 => Statement::Guard {
            subject: argument.to_owned(),
            limit: random.between(2, 65_536),
            fault: random.pick(FAULTS),
        },
        2 => Statement::Each {
            item: random.pick(&["item", "line", "part", "piece"]),
            list: argument.to_owned(),
            callee: callee(random, outline),
        },
        3 => Statement::Note(prose::reason(random)),
        _ => Statement::Trace {
            text: prose::event(random, outline.noun),
            subject: argument.to_owned(),
        },
    }
}

fn write(statement: &Statement, language: Language) -> Vec<String> {
    match (statement, language) {
        (
            Statement::Bind {
                name,
                callee,
                argument,
            },
            Language::Rust,
        ) => {
            vec![format!("let {name} = {callee}(source, {argument})?;")]
        }
        (
            Statement::Bind {
                name,
                callee,
                argument,
            },
            Language::Python,
        ) => {
            vec![format!("{name} = {callee}(source, {argument})")]
        }
        (
            Statement::Bind {
                name,
                callee,
                argument,
            },
            Language::TypeScript,
        ) => {
            vec![format!(
                "const {name} = await {callee}(source, {argument});"
            )]
        }
        (
            Statement::Guard {
                subject,
                limit,
                fault,
            },
            Language::Rust,
        ) => vec![
            format!("if {subject} > {limit} {{"),
            format!(
                "    return Err(Fault::{} {{ limit: {limit} }});",
                pascal(fault)
            ),
            "}".to_owned(),
        ],
        (
            Statement::Guard {
                subject,
                limit,
                fault,
            },
            Language::Python,
        ) => vec![
            format!("if {subject} > {limit}:"),
            format!("    raise {}(limit={limit})", pascal(fault)),
        ],
        (
            Statement::Guard {
                subject,
                limit,
                fault,
            },
            Language::TypeScript,
        ) => vec![
            format!("if ({subject} > {limit}) {{"),
            format!("  throw new {}({{ limit: {limit} }});", pascal(fault)),
            "}".to_owned(),
        ],
        (Statement::Each { item, list, callee }, Language::Rust) => vec![
            format!("for {item} in source.each({list}) {{"),
            format!("    {callee}(source, {item})?;"),
            "}".to_owned(),
        ],
        (Statement::Each { item, list, callee }, Language::Python) => vec![
            format!("for {item} in source.each({list}):"),
            format!("    {callee}(source, {item})"),
        ],
        (Statement::Each { item, list, callee }, Language::TypeScript) => vec![
            format!("for (const {item} of source.each({list})) {{"),
            format!("  await {callee}(source, {item});"),
            "}".to_owned(),
        ],
        (Statement::Note(text), language) => vec![language.comment(text)],
        (Statement::Trace { text, subject }, Language::Rust) => {
            vec![format!("tracing::debug!({subject}, \"{text}\");")]
        }
        (Statement::Trace { text, subject }, Language::Python) => {
            vec![format!(
                "log.debug(\"{text}\", extra={{\"{subject}\": {subject}}})"
            )]
        }
        (Statement::Trace { text, subject }, Language::TypeScript) => {
            vec![format!("logger.debug(\"{text}\", {{ {subject} }});")]
        }
    }
}
