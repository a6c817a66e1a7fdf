//! Results of a program of the user's own are shown only while it is the program that made them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proctor::record::journal::RecordedRun;
use proctor::record::{CellRecord, End};

/// A program that reads its answer from a file beside it.
const SCRIPT: &str = r#"say() { answer=$(cat "${0%/*}/answer"); id=${line#*:}; printf '%s,"id":%s}\n' "${answer%\}}" ${id%%,*}; }
read -r line; echo '{"type":"hello","protocol":2,"id":0}'
while read -r line; do case $line in *'"type":"session"'*) ;; *) say ;; esac; done"#;

const UNCHANGED: &str = r#"{"type":"unchanged"}"#;
const SUMMARY: &str = r#"{"type":"summary","from":0,"to":1,"text":"a text of several words"}"#;

struct Bench(tempfile::TempDir);

/// What a command left: the exit code, what was said, and the cells of the program by session.
struct Ran {
    code: Option<i32>,
    said: String,
    own: BTreeMap<String, CellRecord>,
}

impl Bench {
    /// The folder of a scenario that runs the program, and full history kept, on three sessions.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scenario = "name = 'own'\ncontrols = false\nwindow = { mode = 'native', tokens = 30_000 }\n\
            [[sessions]]\nsynthetic = { family = 'debugging', seed = 1, rounds = 8 }\n\
            [[sessions]]\nsynthetic = { family = 'debugging', seed = 2, rounds = 8 }\n\
            [[sessions]]\nsynthetic = { family = 'debugging', seed = 3, rounds = 8 }\n\
            [[strategies]]\nname = 'own'\ncommand = ['sh', 'own.sh']\n[[strategies]]\npreset = 'none'\n";
        fs::write(folder.path().join("own.toml"), scenario).unwrap();
        let bench = Self(folder);
        bench.write("own.sh", SCRIPT);
        bench.write("answer", UNCHANGED);
        bench
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), format!("{text}\n")).unwrap();
    }

    fn proctor(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = assert_cmd::Command::cargo_bin("proctor").unwrap();
        let done = command.args(arguments).current_dir(self.0.path());
        let done = done.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        (done.status.code(), said)
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let (code, said) =
            self.proctor(&[&["run", "own.toml", "--out", "run"], arguments].concat());
        let cells = RecordedRun::read(&self.path("run")).unwrap().cells;
        let own = cells.into_iter().filter(|cell| cell.strategy == "own");
        let own = own.map(|cell| (cell.session.clone(), cell)).collect();
        Ran { code, said, own }
    }

    /// Makes a finished folder one that was killed: its last cell is gone, which is none of the program.
    fn forget_last(&self, folder: &str) {
        let path = self.path(folder).join("cells.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        let last = text.lines().last().unwrap();
        assert!(!last.contains("\"strategy\":\"own\""), "{last}");
        fs::write(&path, &text[..text.len() - last.len() - 1]).unwrap();
    }
}

fn bytes(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap()
}

#[test]
fn an_unfinished_run_goes_on_with_the_same_program_and_with_no_other() {
    let bench = Bench::new();
    let first = bench.run(&[]);
    assert_eq!((first.code, first.own.len()), (Some(0), 3), "{}", first.said);
    let whole = bytes(&bench.path("run/cells.jsonl"));
    bench.forget_last("run");
    let same = bench.run(&[]);
    assert!(!same.said.contains("computed again"), "{}", same.said);
    assert_eq!(bytes(&bench.path("run/cells.jsonl")), whole);
    bench.forget_last("run");
    // Not its script: a file that it reads.
    bench.write("answer", SUMMARY);
    let other = bench.run(&[]);
    assert!(other.said.contains("3 finished cells are"), "{}", other.said);
    let changed = |cell: &CellRecord| !cell.compactions.is_empty();
    assert!(other.own.values().all(changed));
    assert!(other.said.contains(": own: bill "), "{}", other.said);
    assert!(other.said.contains("; 1 as before"), "{}", other.said);
    bench.forget_last("run");
    let again = bench.run(&[]);
    assert!(!again.said.contains("computed again"), "the new program is known: {}", again.said);
}

#[test]
fn a_run_of_another_strategy_is_no_run_before() {
    let bench = Bench::new();
    for strategy in ["none", "tail@3000", "codex"] {
        let (code, said) = bench.proctor(&["run", "own.toml", "--strategy", strategy]);
        assert_eq!(code, Some(0), "{said}");
        assert!(!said.contains("since the run"), "{strategy}: {said}");
    }
}

#[test]
fn a_program_that_does_not_start_is_refused_and_one_that_fails_twice_is_a_result() {
    let bench = Bench::new();
    bench.write("own.sh", "echo 'no module named helper' >&2; exit 1");
    let (code, said) = bench.proctor(&["run", "own.toml", "--out", "run"]);
    assert_eq!(code, Some(3), "{said}");
    for part in ["does not start", "no module named helper"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    bench.write("own.sh", SCRIPT);
    let mended = bench.run(&[]);
    assert_eq!((mended.code, mended.own.len()), (Some(0), 3), "{}", mended.said);
    bench.write("answer", "no message of the protocol");
    let failed = bench.run(&[]);
    assert_eq!(failed.code, Some(104), "{}", failed.said);
    assert!(failed.own.values().all(|cell| matches!(cell.end, End::Failed { .. })));
}

#[test]
fn a_program_that_is_edited_while_it_runs_leaves_no_cell() {
    let bench = Bench::new();
    // The plan shows it one session twice; in the third one it edits what it reads.
    let edits = "*'\"type\":\"session\"'*) n=$((n+1)); \
        [ $n -lt 4 ] || echo '{\"type\":\"unchanged\",\"reason\":\"x\"}' > \"${0%/*}/answer\" ;;";
    bench.write("own.sh", &SCRIPT.replace("*'\"type\":\"session\"'*) ;;", edits));
    let edited = bench.run(&["-j", "1"]);
    assert_eq!((edited.code, edited.own.len()), (Some(5), 0), "{}", edited.said);
    assert!(edited.said.contains("edited meanwhile: `answer` changed"), "{}", edited.said);
}

#[test]
fn parts_go_on_with_the_same_program_and_are_joined_with_no_other() {
    let bench = Bench::new();
    let whole = bench.run(&[]);
    assert_eq!(whole.code, Some(0), "{}", whole.said);
    let part = |number: usize| {
        let (partition, out) = (format!("cost:{number}/2"), format!("part-{number}"));
        bench.proctor(&["run", "own.toml", "--partition", &partition, "--out", &out])
    };
    assert_eq!((part(1).0, part(2).0), (Some(0), Some(0)));
    bench.forget_last("part-1");
    let (_, said) = part(1);
    assert!(!said.contains("computed again"), "{said}");
    let (_, said) = part(1);
    assert!(!said.contains("computed again"), "a finished part stands too: {said}");
    let merge = |out: &str| bench.proctor(&["merge", "part-1", "part-2", "--out", out]);
    assert_eq!(merge("merged").0, Some(0));
    for name in ["cells.jsonl", "run.json"] {
        assert!(
            bytes(&bench.path("merged").join(name)) == bytes(&bench.path("run").join(name)),
            "{name}"
        );
    }
    bench.write("answer", SUMMARY);
    let (_, said) = part(2);
    assert!(said.contains("computed again"), "{said}");
    let (code, said) = merge("again");
    assert_ne!(code, Some(0));
    assert!(said.contains("program of `own`") && said.contains("`answer`"), "{said}");
}

#[test]
fn a_part_of_a_plan_asks_its_program_and_runs_no_session_of_another() {
    let bench = Bench::new();
    // A log is no source of the program.
    bench.write("own.sh", &SCRIPT.replace("/answer\"", "/answer.log\""));
    bench.write("answer.log", UNCHANGED);
    let plan = ["run", "own.toml", "--dry-run", "--shards", "2", "--out", "plan"];
    assert_eq!(bench.proctor(&plan).0, Some(0));
    let part = |number: usize| {
        let (partition, out) = (format!("cost:{number}/2"), format!("part-{number}"));
        let words = ["--partition", &partition, "--plan", "plan", "--out", &out];
        bench.proctor(&[&["run", "own.toml"], &words[..]].concat())
    };
    assert_eq!((part(1).0, part(2).0), (Some(0), Some(0)));
    let cells = ["part-1", "part-2"].map(|out| {
        let text = fs::read_to_string(bench.path(out).join("cells.jsonl")).unwrap();
        text.lines().filter(|line| line.contains("\"strategy\":\"own\"")).count()
    });
    assert_eq!(cells.iter().sum::<usize>(), 3);
    bench.write("answer.log", SUMMARY);
    for (code, said) in [part(1), part(2)] {
        assert_ne!(code, Some(0));
        assert!(said.contains("its answers changed"), "{said}");
    }
}
