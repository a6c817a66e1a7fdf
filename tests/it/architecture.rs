//! The architecture as a test, as far as Cargo does not refuse what is against it: which module imports which, who
//! reads formats, prints, opens files and reads the environment, and how large a file gets. The table is the design; a
//! new edge is a decision and changes it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use regex::Regex;

/// The modules of the root crate in the order in which data flows, each with its room and all that it may import.
///
/// Rooms 1 to 3 are crates: `proctor-sessions`, which all use, `proctor-formats` and `proctor-synth`. Inside a module
/// everything may import everything. Absences that matter:
/// - no strategy can see probes, patterns or records, and no probe can see a strategy;
/// - `words`, which is `record::words`, sees nothing: who makes strategies, who measures and who reads results share it;
/// - `stats` knows numbers only; `report` sees records, never sessions or contexts;
/// - a record is judged again by a panel (`probe`), and its answers are joined (`model`): `metric` and `compare` see neither;
/// - `replay` measures and never computes metrics.
const EDGES: &[(u8, &str, &str)] = &[
    (7, "words", ""),
    (5, "stop", ""),
    (5, "process", "stop"),
    (5, "naming", ""),
    (5, "settings", ""),
    (5, "window", "settings"),
    (5, "patterns", ""),
    (5, "context", "words"),
    (5, "bill", "words"),
    (4, "model", "words stop settings patterns"),
    (5, "step", "model"),
    (5, "strategy", "words process naming settings window context bill model step"),
    (6, "probe", "words patterns context model step"),
    (11, "scenario", "settings window bill model strategy probe"),
    (9, "stats", ""),
    (7, "record", "words window model probe stats"),
    (9, "metric", "words naming window record stats"),
    (8, "walk", "context bill step strategy"),
    (8, "replay", "window patterns context bill model step strategy probe record walk"),
    (8, "check", "stop window context model step strategy probe record replay"),
    (8, "live", "window context bill model step strategy walk replay"),
    (
        11,
        "runner",
        "stop settings window patterns context bill model step strategy probe scenario record replay live",
    ),
    (9, "compare", "words naming record metric stats"),
    (10, "report", "words naming window probe record metric stats compare"),
    (
        12,
        "autopsy",
        "words window patterns context bill strategy probe record replay runner report",
    ),
    (12, "proxy", "stop model live"),
    (
        12,
        "cli",
        "stop process naming settings window patterns context bill model step strategy probe scenario record metric replay check live \
         runner stats compare report autopsy proxy",
    ),
];

/// The rooms that read and make sessions; all others are given them.
const SEES_FORMATS: [u8; 2] = [11, 12];

/// Where files may be opened.
const OPENS_FILES: [&str; 7] = [
    "cli",
    "main",
    // Whose a process is, in `/proc`.
    "process",
    "record/journal",
    "runner",
    "model/cassette",
    "strategy/external",
];

const MOST_LINES: usize = 600;

/// A file of `src`: its module path with slashes, and its lines of code up to its tests, with their numbers.
struct File {
    module: String,
    code: Vec<(usize, String)>,
    lines: Vec<String>,
}

impl File {
    fn new(module: &str, text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let numbered = lines.iter().enumerate();
        let code = numbered
            .take_while(|(at, line)| {
                let next = lines.get(at + 1).map_or("", |next| next.as_str());
                !(line.trim() == "#[cfg(test)]" && next.contains("mod ") && next.ends_with('{'))
            })
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
            .map(|(at, line)| (at + 1, line.clone()));
        Self { module: module.to_owned(), code: code.collect(), lines: lines.clone() }
    }

    fn is_in(&self, place: &str) -> bool {
        let rest = self.module.strip_prefix(place);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn is_test(&self) -> bool {
        self.module.ends_with("tests")
            || self.module.contains("/tests/")
            || self.lines.iter().any(|line| line == "#![cfg(test)]")
    }
}

/// Whether a line of code opens a file to read it, which would wait for the writer of a pipe.
fn opens(line: &str) -> bool {
    let opens = Regex::new(r"\bfs::read(_to_string)?\(|\bFile::open\(").unwrap();
    opens.is_match(line)
}

/// All that is wrong with a file.
fn complaints(file: &File) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut complain = |line: usize, what: String| {
        wrong.push(format!("src/{}.rs:{line}: {what}", file.module));
    };
    if file.lines.len() > MOST_LINES {
        complain(file.lines.len(), "too long: look for the second idea".into());
    }
    if !file.lines[0].starts_with("//! ") {
        complain(1, "the first line says what the module is: `//! …`".into());
    }
    let own = match &*file.module {
        "record/words" => "words",
        module => module.split('/').next().unwrap_or_default(),
    };
    if file.is_test() || ["lib", "session"].contains(&own) {
        return wrong;
    }
    let edge = EDGES.iter().find(|(_, module, _)| *module == own);
    let (room, _, allowed) = edge.unwrap_or(&(12, "main", ""));
    let effects = Regex::new(r"\b(e?print(ln)?!|dbg!|std::env\b)").unwrap();
    let files =
        Regex::new(r"\bstd::fs\b|\b(File|OpenOptions|tempfile)::|\bfiles::(open|read)").unwrap();
    let path = Regex::new(r"\bcrate::(\w+)(?:::(\w+))?").unwrap();
    for (at, line) in &file.code {
        for found in path.captures_iter(line) {
            let part = found.get(2).map_or("", |part| part.as_str());
            let other = if part == "words" { part } else { &found[1] };
            let is_module = EDGES.iter().any(|(_, module, _)| *module == other);
            if is_module && other != own && !allowed.split(' ').any(|it| it == other) {
                complain(*at, format!("`{own}` may not import `{other}`"));
            }
            let reads = &found[1] == "session" && ["import", "export", "synthetic"].contains(&part);
            if reads && !SEES_FORMATS.contains(room) {
                complain(*at, format!("`{own}` is given its sessions: `session::{part}`"));
            }
        }
        if own != "cli" && own != "main" && effects.is_match(line) {
            complain(*at, "only `cli` prints and reads the environment".into());
        }
        if opens(line) {
            complain(*at, "a pipe is waited for: `files::read` refuses it".into());
        }
        if files.is_match(line) && !OPENS_FILES.iter().any(|place| file.is_in(place)) {
            complain(*at, format!("files are opened in {OPENS_FILES:?} only"));
        }
    }
    wrong
}

/// The files of `src`, in order of their paths.
fn files(folder: &Path, prefix: &str, out: &mut Vec<File>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(Result::unwrap).collect();
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() {
            files(&path, &format!("{prefix}{name}/"), out);
        } else if let Some(name) = name.strip_suffix(".rs") {
            let text = fs::read_to_string(&path).unwrap();
            out.push(File::new(&format!("{prefix}{name}"), &text));
        }
    }
}

fn all() -> Vec<File> {
    let mut all = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut all);
    assert!(all.len() > EDGES.len(), "the source was not found");
    all
}

#[test]
fn the_source_keeps_to_the_architecture() {
    let wrong: Vec<String> = all().iter().flat_map(complaints).collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// What Cargo does not refuse in the other crates: files too long, or without a line that says what they are.
#[test]
fn the_files_of_the_crates_have_the_shape_of_all_files() {
    for name in ["proctor-sessions", "proctor-formats", "proctor-synth"] {
        let folder = format!("{}/crates/{name}/src", env!("CARGO_MANIFEST_DIR"));
        let mut all = Vec::new();
        files(Path::new(&folder), "", &mut all);
        assert!(all.len() > 10, "{name}: the source was not found");
        for file in all.iter().filter(|file| file.module != "lib") {
            assert!(file.lines.len() <= MOST_LINES, "{name}: {} is too long", file.module);
            assert!(file.lines[0].starts_with("//! "), "{name}: {}", file.module);
            let mut code = file.code.iter().filter(|_| file.module != "files" && !file.is_test());
            let opened = code.find(|(_, line)| opens(line));
            assert_eq!(opened, None, "{name}: {}: `files::read`", file.module);
        }
    }
}

#[test]
fn modules_are_listed_in_the_order_in_which_data_flows() {
    let listed = Regex::new(r"(?m)^(?:pub )?mod (\w+);").unwrap();
    let text = include_str!("../../src/lib.rs");
    let listed: Vec<&str> = listed
        .captures_iter(text)
        .map(|found| found.extract::<1>().1[0])
        .filter(|module| *module != "session")
        .collect();
    let table = EDGES.iter().map(|(_, module, _)| *module);
    let table: Vec<&str> = table.filter(|module| *module != "words").collect();
    assert_eq!(listed, table);
    let mut earlier = BTreeSet::new();
    for (_, module, allowed) in EDGES {
        for other in allowed.split_whitespace() {
            assert!(earlier.contains(other), "`{module}` comes before `{other}`");
        }
        earlier.insert(*module);
    }
}

#[test]
fn what_is_against_the_architecture_is_found() {
    let check = |module: &str, line: &str, expected: &[&str]| {
        let file = File::new(
            module,
            &format!("//! A file.\n{line}\n#[cfg(test)]\nmod tests {{\nuse crate::cli;\n"),
        );
        let expected: Vec<String> =
            expected.iter().map(|what| format!("src/{module}.rs:2: {what}")).collect();
        assert_eq!(complaints(&file), expected, "{line}");
    };
    check("stats/paired", "use crate::units::Usd;", &[]);
    check("stats/paired", "// use crate::record::End;", &[]);
    check("stats/paired", "fn a() -> crate::record::End {}", &["`stats` may not import `record`"]);
    check("runner/load", "use crate::session::import;", &[]);
    check(
        "strategy/stage/clear",
        "use crate::session::import;",
        &["`strategy` is given its sessions: `session::import`"],
    );
    check("cli/run", "println!();", &[]);
    check("report/html", "println!();", &["only `cli` prints and reads the environment"]);
    assert_eq!(complaints(&File::new("report/html", "let a;\n")).len(), 1);
    assert_eq!(complaints(&File::new("report/html", &"//! A\n".repeat(601))).len(), 1);
}

/// Reports compare no strategy by what a model would have written, and know its stages by name.
#[test]
fn every_stage_that_asks_a_model_is_known_to_reports() {
    let all = all();
    let asks = |file: &File| file.code.iter().any(|(_, line)| line.contains("Step::ask"));
    let stages = all.iter().filter_map(|file| file.module.strip_prefix("strategy/stage/"));
    let asking: BTreeSet<&str> = stages
        .filter_map(|path| path.split('/').next())
        .filter(|stage| {
            let own = format!("strategy/stage/{stage}");
            all.iter().any(|file| file.is_in(&own) && asks(file))
        })
        // What one asks for was recorded: no model writes it. The other asks with one of its methods only.
        .filter(|stage| !["recorded", "select"].contains(stage))
        .collect();
    assert!(asking.len() > 2, "{asking:?}");
    let written =
        all.iter().find(|file| file.module == "report/sections/comparison/written").unwrap();
    for stage in asking {
        let name = format!("\"{stage}\"");
        let is_known = written.code.iter().any(|(_, line)| line.contains(&name));
        assert!(is_known, "`{stage}` asks a model");
    }
}
