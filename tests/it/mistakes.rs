//! Mistakes of a first week, one a line: each answer says what is wrong, where, and what to do.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output};

use rayon::prelude::*;
use tempfile::TempDir;

/// A line for each mistake: exit code, command line, and the words of the answer, in their order between ` … `.
const TABLE: &str = "tests/it/mistakes.tsv";

/// An answer is read at a glance.
const LINES: usize = 12;

const SCENARIO: &str =
    "[[sessions]]\npath = 's.jsonl'\n[window]\ntokens = 9_000\n[[strategies]]\npreset = 'codex'\n";

const KEY: &str = "sk-first-0123456789abcdefghij";

const NATIVE: &str = r#"{"format":"proctor-session","version":1,"id":"x"}"#;
const MESSAGE: &str = r#"{"role":"user","content":[{"type":"text","text":"hi"}]}"#;

/// Runs the program with these words; those in front with a `=` are environment variables.
fn proctor(folder: &Path, words: &[String]) -> Output {
    let variables = words.iter().map_while(|word| word.split_once('='));
    let arguments = &words[variables.clone().count()..];
    let mut command = Command::new(env!("CARGO_BIN_EXE_proctor"));
    for name in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "PROCTOR_WINDOW"] {
        command.env_remove(name);
    }
    let command = command.current_dir(folder).args(arguments).envs(variables);
    command.env("HOME", folder).output().unwrap()
}

fn words(line: &str) -> Vec<String> {
    shlex::split(line).unwrap()
}

/// A Claude Code recording of so many turns.
fn recording(id: &str, turns: usize) -> String {
    let turn = |at: usize| {
        let head = |kind: &str, uuid: String, parent: String| {
            format!(
                r#"{{"type":"{kind}","sessionId":"{id}","uuid":"{uuid}","parentUuid":{parent},"cwd":"/w","version":"2.0.0","timestamp":"2026-01-01T00:{at:02}:00.000Z","#
            )
        };
        let parent = match at {
            0 => "null".to_owned(),
            _ => format!(r#""{id}-a{}""#, at - 1),
        };
        let asked = head("user", format!("{id}-u{at}"), parent);
        let answered = head("assistant", format!("{id}-a{at}"), format!(r#""{id}-u{at}""#));
        format!(
            r#"{asked}"message":{{"role":"user","content":"Step {at} of {id}, please."}}}}
{answered}"message":{{"id":"{id}-m{at}","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{{"type":"text","text":"Step {at} of {id} is done."}}],"usage":{{"input_tokens":1000,"output_tokens":9}}}}}}
"#
        )
    };
    (0..turns).map(turn).collect()
}

/// Facts of these ids about a session.
fn truth(session: &str, ids: &[&str]) -> String {
    let facts = ids.iter().map(|id| {
        format!(
            r#"{{"id":"{id}","fact":{{"kind":"recall","key":"k","value":"hi"}},"question":"?","evidence":[0],"importance":"normal"}}"#
        )
    });
    let facts = facts.collect::<Vec<_>>().join(",");
    format!(
        r#"{{"format":"proctor-ground-truth","version":1,"session":"{session}","facts":[{facts}]}}"#
    )
}

/// The folder in which every mistake is made.
fn bench() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let whole = recording("first", 6);
    let (begin, rest) = whole.split_at(whole.find('\n').unwrap() + 1);
    for folder in ["empty", "notes", "page.html", "linked", "named", "gone", "own"] {
        fs::create_dir(path.join(folder)).unwrap();
    }
    let strategies = "[[sessions]]\npath = 's.jsonl'\n[[strategies]]\nname = 'a'\npreset = 'codex'\n\
        [[strategies]]\nname = 'a'\npreset = 'goose'\n";
    for (name, text) in [
        ("s.jsonl", &*whole),
        ("other.jsonl", &recording("second", 6)),
        ("rec.json", &whole),
        ("joined.jsonl", &format!("{whole}{}", recording("second", 6))),
        ("linked/s.jsonl", &whole),
        ("named/f.jsonl", &whole),
        ("named/f.truth.json", &truth("f", &["b"])),
        ("asked.session.jsonl", &format!("{NATIVE}\n{MESSAGE}\n").replace("\"x\"", "\"asked\"")),
        ("asked.truth.json", &truth("asked", &["b", "b"])),
        ("cut.jsonl", &whole[..whole.len() - 30]),
        ("middle.jsonl", &format!("{begin}{{\"type\": bad\n{rest}")),
        ("bad.json", "{\"a\":1"),
        ("array.json", "[]"),
        ("settings.json", r#"{"model":"x","permissions":{}}"#),
        ("words.txt", "hello world\n"),
        ("words.jsonl", "hello\n"),
        ("table.csv", "x,y\n1,2\n"),
        ("zero.jsonl", ""),
        ("notes/a.md", "# hello\n"),
        ("preset.toml", include_str!("../../presets/codex.toml")),
        ("lfs.jsonl", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
        ("own/run.json", "{\"run\": 1}\n"),
        ("mine.py", "print('x')\n"),
        ("noexec.sh", "#!/bin/sh\necho hi\n"),
        ("garbage.sh", "#!/bin/sh\necho garbage\ncat > /dev/null\n"),
        ("fails.sh", "#!/bin/sh\necho first >&2; echo boom >&2; exit 1\n"),
        ("hangs.sh", "#!/bin/sh\nsleep 100\n"),
        ("suite.toml", SCENARIO),
        (
            "key.toml",
            &format!(
                "{SCENARIO}[models]\nreader = {{ kind = 'openai', model = 'm', key = '{KEY}' }}\n"
            ),
        ),
        ("output.toml", &SCENARIO.replace("9_000", "9_000\nmax_output = 9_000")),
        ("reserve.toml", &SCENARIO.replace("9_000", "9_000\noverflow_reserve = 9_001")),
        ("kinds.toml", &format!("{SCENARIO}[probes]\nkinds = ['open']\n")),
        ("empty.toml", "# nothing yet\n"),
        ("typo.toml", &SCENARIO.replace("'codex'", "'codx'")),
        ("unit.toml", &SCENARIO.replace("9_000", "'80k'")),
        ("type.toml", &format!("repeats = 'three'\n{SCENARIO}")),
        ("table.toml", &SCENARIO.replace("[[sessions]]", "[sessions]")),
        ("singular.toml", &SCENARIO.replace("[[sessions]]", "[[session]]")),
        ("gone.toml", &SCENARIO.replace("s.jsonl", "gone.jsonl")),
        ("broken.toml", "name = 'x\n"),
        ("twice.toml", strategies),
        ("no-strategy.toml", "[[sessions]]\npath = 's.jsonl'\n"),
        ("no-session.toml", "[[strategies]]\npreset = 'codex'\n"),
        ("proctor.toml", "mine\n"),
        ("labels.csv", "question;answer\nq;a\n"),
        ("blank.csv", "question,answer\r\na,b\r\n,b\r\n"),
        ("sede.toml", &format!("\nsede = 7\n{SCENARIO}")),
        ("knob.toml", &format!("{SCENARIO}set = {{ summarize.max_output_tokens = -1 }}\n")),
        ("model.toml", &format!("{SCENARIO}[cache]\nmodel = 'claude-sonnet-5_5'\n")),
        (
            "both.toml",
            "[[sessions]]\npath = 'x'\nsynthetic = { family = 'ci-agent', seed = 1, rounds = 5 }\n",
        ),
        ("bare.session.jsonl", &format!("{NATIVE}\n")),
        (
            "headless.session.jsonl",
            &format!("{}\n{MESSAGE}\n", NATIVE.replace(r#""format":"proctor-session","#, "")),
        ),
        (
            "seconds.session.jsonl",
            &format!("{NATIVE}\n{}\n", MESSAGE.replace("}]", r#"}],"timestamp":1772355603"#)),
        ),
        (
            "torn.session.jsonl",
            &format!(
                "{NATIVE}\n{MESSAGE}\n{{\"role\":\"assistant\",\"content\":[{{\"type\"\n{MESSAGE}\n"
            ),
        ),
    ] {
        fs::write(path.join(name), text).unwrap();
    }
    for name in ["garbage.sh", "fails.sh", "hangs.sh"] {
        fs::set_permissions(path.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(path.join("binary.jsonl"), [0xff, 0x00, 0x80, 0x01].repeat(99)).unwrap();
    fs::write(path.join("utf16.jsonl"), b"\xff\xfeh\0i\0").unwrap();
    fs::write(path.join("utf16.toml"), b"\xff\xfea\0=\0a\0").unwrap();
    fs::write(path.join("a.jsonl.xz"), b"\xfd7zXZ\0\0\x04").unwrap();
    fs::write(path.join("a.zip"), b"PK\x03\x04\x14\0\xff\0\x08\0").unwrap();
    let mut archive = b"s.jsonl".to_vec();
    archive.resize(257, 0);
    archive.extend_from_slice(b"ustar\x0000");
    archive.resize(512, 0);
    archive.extend_from_slice(whole.as_bytes());
    fs::write(path.join("a.tar"), archive).unwrap();
    symlink("nothing", path.join("linked/z.jsonl")).unwrap();
    let pipe = Command::new("mkfifo").arg(path.join("pipe.jsonl")).status();
    assert!(pipe.unwrap().success());
    for (session, out) in [("s.jsonl", "ok"), ("other.jsonl", "else")] {
        let made = format!("run {session} --strategy codex --out {out}");
        let made = proctor(path, &words(&made));
        assert!(made.status.success(), "{made:?}");
    }
    fs::copy(path.join("ok/run.json"), path.join("gone/run.json")).unwrap();
    fs::create_dir(path.join("hurt")).unwrap();
    fs::write(path.join("hurt/run.json"), "{").unwrap();
    folder
}

/// The names of all files below a folder, each with its length.
fn names(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let length = path.symlink_metadata().unwrap().len();
            names.push(format!("{} {length}", path.display()));
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    names.sort();
    names
}

/// The flaws of an answer.
fn flaws(code: i32, output: &Output, parts: &str) -> Vec<String> {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut flaws = Vec::new();
    let mut check = |is_so: bool, flaw: &str| {
        if !is_so {
            flaws.push(flaw.to_owned());
        }
    };
    check(output.status.code() == Some(code), &format!("exit code {}", output.status));
    let begins = |start: &str| said.lines().any(|line| line.starts_with(start));
    if code == 0 {
        check(begins("!!") || printed.contains("\n!!"), "no warning");
    } else {
        check(begins("error: "), "no error");
        check(printed.is_empty(), "prints a result");
        check(said.lines().count() <= LINES, "too long");
        let ways_out = [" hint: ", "did you mean `", " must be ", " is called `"];
        check(ways_out.iter().any(|way| said.contains(way)), "no way out");
    }
    for never in ["panicked", "internal error", "os error", KEY] {
        check(!said.contains(never) && !printed.contains(never), never);
    }
    let mut flags = said.split("flag `").skip(1);
    check(flags.all(|flag| flag.starts_with('-')), "a flag that is none");
    let mut rest = &*format!("{said}\n{printed}");
    for part in parts.split(" … ") {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => check(false, &format!("does not say `{part}`")),
        }
    }
    if !flaws.is_empty() {
        flaws.push(said);
    }
    flaws
}

#[test]
fn every_mistake_gets_a_full_answer() {
    let table = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(TABLE)).unwrap();
    let lines: Vec<&str> = table.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() >= 70, "{} mistakes", lines.len());
    let bench = bench();
    let before = names(bench.path());
    let (writing, others): (Vec<&str>, Vec<&str>) =
        lines.into_iter().partition(|line| line.starts_with('0'));
    let check = |line: &&str| {
        let mut cells = line.split('\t');
        let mut cell = || cells.next().unwrap();
        let (code, call, parts) = (cell().parse().unwrap(), cell(), cell());
        let flaws = flaws(code, &proctor(bench.path(), &words(call)), parts);
        (!flaws.is_empty()).then(|| format!("proctor {call}\n  {}", flaws.join("\n  ")))
    };
    let mut wrong: Vec<String> = others.par_iter().filter_map(check).collect();
    if names(bench.path()) != before {
        wrong.push("a refused call wrote something".to_owned());
    }
    wrong.extend(writing.par_iter().filter_map(check).collect::<Vec<_>>());
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
}

/// The program of the README and its two commands, in an empty folder: the client is found where none is.
#[test]
fn the_own_code_of_the_readme_works_as_it_is_printed() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let (_, section) = include_str!("../../README.md").split_once("```python mine.py\n").unwrap();
    let (program, section) = section.split_once("```").unwrap();
    let (_, commands) = section.split_once("```console\n").unwrap();
    let (commands, _) = commands.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine.py"), program).unwrap();
    let calls = commands.lines().filter_map(|line| {
        let (_, call) = line.split_once("cargo run --release -- ")?;
        call.split(" #").next()
    });
    let calls: Vec<&str> = calls.collect();
    assert_eq!(calls.len(), 2);
    for call in calls {
        let output = proctor(folder.path(), &words(call));
        assert!(output.status.success(), "{call}: {output:?}");
    }
}
