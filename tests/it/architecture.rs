//! The architecture as a test: who may import whom, who may print, open files and read the
//! environment, and how large a file gets. The table below is the design; a new edge is a decision
//! and changes it.

mod features;
mod scan;

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use scan::{Source, Token};

/// The modules in the order in which data flows, each with all that it may import.
///
/// Inside one of them everything may import everything. Absences that matter:
/// - no strategy can see probes, patterns or records, and no probe can see a strategy;
/// - `stats` knows numbers only; `report` sees records, never sessions or contexts;
/// - `replay` measures and never computes metrics.
const EDGES: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("files", &["units"]),
    ("script", &[]),
    ("settings", &["units"]),
    ("window", &["units", "settings"]),
    ("tokens", &["units"]),
    ("session", &["units", "tokens"]),
    ("patterns", &["units", "tokens", "session"]),
    ("context", &["units", "tokens", "session"]),
    ("bill", &["units", "tokens", "session"]),
    (
        "model",
        &[
            "units", "files", "script", "settings", "tokens", "session", "patterns",
        ],
    ),
    ("step", &["units", "model"]),
    (
        "strategy",
        &[
            "units", "script", "settings", "window", "tokens", "session", "context", "bill",
            "model", "step",
        ],
    ),
    (
        "probe",
        &[
            "units", "script", "tokens", "session", "patterns", "context", "model", "step",
        ],
    ),
    (
        "scenario",
        &[
            "units", "settings", "window", "tokens", "session", "bill", "model", "strategy",
            "probe",
        ],
    ),
    ("stats", &["units"]),
    (
        "record",
        &[
            "units", "files", "window", "tokens", "session", "context", "bill", "model", "probe",
            "stats",
        ],
    ),
    (
        "metric",
        &["units", "window", "model", "probe", "record", "stats"],
    ),
    (
        "replay",
        &[
            "units", "script", "window", "tokens", "session", "patterns", "context", "bill",
            "model", "step", "strategy", "probe", "record",
        ],
    ),
    (
        "check",
        &[
            "units", "window", "tokens", "session", "context", "model", "step", "strategy",
            "record", "replay",
        ],
    ),
    (
        "live",
        &[
            "units", "window", "tokens", "session", "context", "bill", "model", "step", "strategy",
            "replay",
        ],
    ),
    (
        "runner",
        &[
            "units", "settings", "window", "tokens", "session", "patterns", "context", "bill",
            "model", "step", "strategy", "probe", "scenario", "record", "replay", "live",
        ],
    ),
    (
        "compare",
        &[
            "units", "files", "model", "probe", "record", "metric", "stats",
        ],
    ),
    (
        "report",
        &[
            "units", "script", "window", "model", "probe", "record", "metric", "stats", "compare",
        ],
    ),
    ("proxy", &["units", "session", "live"]),
    (
        "cli",
        &[
            "units", "settings", "window", "tokens", "session", "patterns", "context", "bill",
            "model", "step", "strategy", "probe", "scenario", "record", "metric", "replay",
            "check", "live", "runner", "stats", "compare", "report", "proxy",
        ],
    ),
];

/// Where files may be opened.
const OPENS_FILES: &[&str] = &[
    "cli",
    "files",
    "session/import",
    "record/journal",
    "runner",
    "model/cassette",
    "strategy/external",
];

/// The only code that prints and reads the environment.
const FACES_THE_USER: &[&str] = &["cli", "main"];

const MOST_LINES: usize = 600;

const MOST_LINES_OF_MAIN: usize = 40;

/// A file of `src`: its module path with slashes, and its text.
struct File {
    module: String,
    text: String,
    source: Source,
}

impl File {
    fn new(path: &str, text: &str) -> Self {
        Self {
            module: path.trim_end_matches(".rs").to_owned(),
            source: scan::scan(text),
            text: text.to_owned(),
        }
    }

    fn path(&self) -> Vec<&str> {
        self.module.split('/').collect()
    }

    fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| {
            let rest = self.module.strip_prefix(place);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    fn is_root(&self) -> bool {
        self.is_in(&["lib", "main"])
    }

    /// The top modules that the file names, with the line.
    fn imports(&self) -> Vec<(String, usize)> {
        let tokens = &self.source.tokens;
        let mut found = scan::paths(tokens, &["crate"]);
        let depth = self.path().len();
        // `super` once per step up leads to the crate's root; inline modules go deeper, and one
        // `super` more leads there.
        for supers in depth..depth + 3 {
            found.extend(scan::paths(tokens, &vec!["super"; supers]));
        }
        found.retain(|(name, _)| name != "super");
        found
    }
}

/// All that is wrong with some files.
fn complaints(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        let mut complain = |line: usize, text: String| {
            complaints.push(format!("src/{}.rs:{line}: {text}", file.module));
        };
        check_shape(file, &mut complain);
        if is_test_file(file, files) {
            continue;
        }
        check_imports(file, &mut complain);
        check_effects(file, &mut complain);
    }
    complaints
}

/// Whether the file is declared as `#[cfg(test)] mod …;`.
fn is_test_file(file: &File, files: &[File]) -> bool {
    let (parent, name) = file
        .module
        .rsplit_once('/')
        .unwrap_or(("lib", &file.module));
    files.iter().any(|other| {
        other.module == parent && other.source.test_modules.iter().any(|it| it == name)
    })
}

fn check_shape(file: &File, complain: &mut impl FnMut(usize, String)) {
    let lines = file.text.lines().count();
    if file.path().last() == Some(&"mod") {
        complain(1, "no `mod.rs`: a module `a` lives in `a.rs`".into());
    }
    if !file.text.starts_with("//! ") {
        complain(1, "the first line says what the module is: `//! …`".into());
    }
    if lines > MOST_LINES {
        complain(lines, format!("{lines} lines: look for the second idea"));
    }
    if file.module == "main" && lines > MOST_LINES_OF_MAIN {
        complain(
            lines,
            format!("{lines} lines: parse, run, exit code, and no more"),
        );
    }
}

fn check_imports(file: &File, complain: &mut impl FnMut(usize, String)) {
    if file.module == "main" {
        for (name, line) in scan::paths(&file.source.tokens, &["proctor"]) {
            if name != "cli" {
                complain(line, format!("`main` uses `{name}`: it may use `cli` only"));
            }
        }
        return;
    }
    if file.is_root() {
        return;
    }
    let own = file.path()[0];
    let Some((_, allowed)) = EDGES.iter().find(|(module, _)| *module == own) else {
        complain(1, format!("`{own}` is not in the table of modules"));
        return;
    };
    for (name, line) in file.imports() {
        // The root's own paths are no modules; everything at once is everything.
        let is_module = name == "*" || EDGES.iter().any(|(module, _)| *module == name);
        if is_module && name != own && !allowed.contains(&name.as_str()) {
            complain(line, format!("`{own}` may not import `{name}`"));
        }
    }
}

fn check_effects(file: &File, complain: &mut impl FnMut(usize, String)) {
    let tokens = &file.source.tokens;
    let next = |at: usize| {
        tokens
            .get(at + 1)
            .map_or("", |token: &Token| token.text.as_str())
    };
    if !file.is_in(FACES_THE_USER) {
        for (at, token) in tokens.iter().enumerate() {
            let prints = ["print", "println", "eprint", "eprintln", "dbg"];
            if prints.contains(&token.text.as_str()) && next(at) == "!" {
                complain(token.line, format!("only `cli` prints: `{}!`", token.text));
            }
        }
        for (name, line) in scan::paths(tokens, &["std"]) {
            if name == "env" {
                complain(line, "only `cli` reads the environment".into());
            }
        }
    }
    if !file.is_in(OPENS_FILES) && file.module != "main" {
        for line in opened(tokens) {
            complain(line, format!("files are opened in {OPENS_FILES:?} only"));
        }
    }
}

/// The lines in which files are opened.
fn opened(tokens: &[Token]) -> Vec<usize> {
    let paths = scan::paths(tokens, &["std"]).into_iter();
    let named = paths.filter(|(name, _)| name == "fs").map(|(_, line)| line);
    let opens = |token: &Token| ["File", "OpenOptions", "tempfile"].contains(&token.text.as_str());
    let made = tokens.windows(2);
    let made = made.filter(|two| opens(&two[0]) && two[1].text == "::");
    named.chain(made.map(|two| two[0].line)).collect()
}

/// The files of `src`, in order of their paths.
fn files(folder: &Path, prefix: &str, out: &mut Vec<File>) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if path.is_dir() {
            files(&path, &format!("{prefix}{name}/"), out)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(File::new(
                &format!("{prefix}{name}"),
                &fs::read_to_string(&path)?,
            ));
        }
    }
    Ok(())
}

#[test]
fn the_source_keeps_to_the_architecture() {
    let mut all = Vec::new();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    files(&src, "", &mut all).unwrap();
    assert!(all.len() > EDGES.len(), "the source was not found");
    let complaints = complaints(&all);
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
    for place in OPENS_FILES {
        let mut there = all.iter().filter(|file| file.is_in(&[place]));
        let opens = there.any(|file| !opened(&file.source.tokens).is_empty());
        assert!(opens, "`{place}` opens no file, and is listed");
    }
}

#[test]
fn modules_are_listed_in_the_order_in_which_data_flows() {
    let text = include_str!("../../src/lib.rs");
    let tokens = scan::scan(text).tokens;
    let listed: Vec<&str> = tokens
        .windows(3)
        .filter(|three| three[0].text == "mod" && three[2].text == ";")
        .map(|three| three[1].text.as_str())
        .collect();
    let table: Vec<&str> = EDGES.iter().map(|(module, _)| *module).collect();
    assert_eq!(listed, table);
    let mut earlier = BTreeSet::new();
    for (module, allowed) in EDGES {
        for other in *allowed {
            assert!(earlier.contains(other), "`{module}` comes before `{other}`");
        }
        earlier.insert(module);
    }
}

fn check(path: &str, text: &str, expected: &[&str]) {
    let file = File::new(path, &format!("//! A file.\n{text}"));
    assert_eq!(complaints(&[file]), expected, "{path}: {text}");
}

#[test]
fn a_forbidden_import_is_found_however_it_is_written() {
    let stats = |line| format!("src/stats/paired.rs:{line}: `stats` may not import `record`");
    let path = "stats/paired.rs";
    check(
        path,
        "use crate::units::Usd;\nuse crate::stats::Estimate;",
        &[],
    );
    check(path, "use crate::record::CellRecord;", &[&stats(2)]);
    check(
        path,
        "use crate::{\n  units::Usd,\n  record::{CellRecord, End},\n};",
        &[&stats(4)],
    );
    check(path, "use super::super::record::End;", &[&stats(2)]);
    check(
        path,
        "use super::super::{record::End, units};",
        &[&stats(2)],
    );
    check(
        path,
        "mod inner { use super::super::super::record::End; }",
        &[&stats(2)],
    );
    check(
        path,
        "use super::Estimate; use super::super::units::Usd;",
        &[],
    );
    check(path, "fn a() -> crate::record::End {}", &[&stats(2)]);
    check(
        "stats.rs",
        "use super::record;",
        &["src/stats.rs:2: `stats` may not import `record`"],
    );
    check(
        path,
        "use crate as all;",
        &["src/stats/paired.rs:2: `stats` may not import `*`"],
    );
    check(
        path,
        "use crate::*;",
        &["src/stats/paired.rs:2: `stats` may not import `*`"],
    );
    check(
        path,
        "#[cfg(not(test))] use crate::record::End;",
        &[&stats(2)],
    );
}

#[test]
fn what_is_no_code_and_what_is_test_code_may_say_anything() {
    let path = "strategy/stage/clear.rs";
    check(
        path,
        "/// See [`crate::probe`].\nconst A: &str = \"crate::probe::x std::env\";",
        &[],
    );
    check(
        path,
        "const A: &str = r#\"println!(\"crate::probe\")\"#;",
        &[],
    );
    check(
        path,
        "#[cfg(test)]\nmod tests {\n use crate::record::End;\n}",
        &[],
    );
    let after = ["src/strategy/stage/clear.rs:3: `strategy` may not import `probe`"];
    check(
        path,
        "#[cfg(test)] mod tests { }\nuse crate::probe::Probe;",
        &after,
    );
    let parent = File::new("strategy.rs", "//! A.\n#[cfg(test)] mod short;");
    let child = File::new("strategy/short.rs", "//! A.\nuse crate::probe::Probe;");
    assert!(complaints(&[parent, child]).is_empty());
}

#[test]
fn effects_have_their_places() {
    let print = ["src/report.rs:2: only `cli` prints: `println!`"];
    check("report.rs", "fn a() { println!(); }", &print);
    check(
        "cli/run.rs",
        "fn a() { println!(); std::env::args(); std::fs::read(x); }",
        &[],
    );
    let environment = ["src/model.rs:2: only `cli` reads the environment"];
    check("model.rs", "use std::{env, fmt};", &environment);
    check("model.rs", "const A: &str = env!(\"X\");", &[]);
    let opened = format!("src/replay.rs:2: files are opened in {OPENS_FILES:?} only");
    check("replay.rs", "fn a() { std::fs::read(x); }", &[&opened]);
    check("replay.rs", "fn a() { File::open(x); }", &[&opened]);
    check(
        "session/import/native.rs",
        "fn a() { std::fs::read(x); }",
        &[],
    );
    check("record/journalist.rs", "", &[]);
}

#[test]
fn files_have_their_shape() {
    let complaint = |text: &str| complaints(&[File::new("stats.rs", text)]).len();
    assert_eq!(complaint("//! Good.\n"), 0);
    assert_eq!(complaint("use std::fmt;\n"), 1);
    assert_eq!(complaint(&"//! Long.\n".repeat(MOST_LINES + 1)), 1);
    assert_eq!(
        complaints(&[File::new("stats/mod.rs", "//! A.\n")]).len(),
        1
    );
    let main = "//! Main.\n".repeat(MOST_LINES_OF_MAIN + 1);
    assert_eq!(complaints(&[File::new("main.rs", &main)]).len(), 1);
    let main = "//! Main.\nfn main() { proctor::cli::run(); proctor::record::read(); }";
    assert_eq!(complaints(&[File::new("main.rs", main)]).len(), 1);
    assert_eq!(complaints(&[File::new("extras.rs", "//! A.\n")]).len(), 1);
}
