//! A run in parts: together they are the run, whoever makes them and however they are joined.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proctor::model::cassette;
use proctor::record::journal::merge::merge;
use proctor::record::journal::{Journal, read_manifest, read_shard};
use proctor::record::shard::{Division, Partition, Shard, work};
use proctor::runner::Plan;
use proctor::scenario::Scenario;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use tempfile::TempDir;

use crate::import::forks::recording;
use crate::live::KEY;
use crate::live::server::{Reply, Server};
use crate::models::reply;
use crate::support::{run_in, scenario};

/// Sessions of different lengths, and a control that follows a strategy.
const SMALL: &str = "name = 'small'\ncounter = 'chars/4'\n[window]\ntokens = 12_000\n\
    [[sessions]]\nsynthetic = { family = 'code-review', seed = 1, rounds = 6 }\ncount = 4\n\
    [[sessions]]\nsynthetic = { family = 'debugging', seed = 1, rounds = 14 }\ncount = 3\n\
    [[strategies]]\npreset = 'observation-masking'\nset = { clear_results.keep_last = 2 }\n";

fn small() -> Scenario {
    scenario(SMALL, Path::new(".")).with_controls()
}

/// The files of a run that are the same bytes on every machine.
fn bytes(run: &Path) -> [Vec<u8>; 2] {
    ["run.json", "cells.jsonl"].map(|name| fs::read(run.join(name)).unwrap())
}

/// Runs a part, whose plan may know the manifest of the whole.
fn run_part(folder: &Path, part: Partition, planned: Option<&Plan>) -> PathBuf {
    let plan = if let Some(whole) = planned {
        Plan::planned(small(), (whole.manifest(), whole.sources()), part).unwrap()
    } else {
        let mut plan = Plan::new(small()).unwrap();
        plan.keep_part(part);
        plan
    };
    let folder = folder.join(format!("{}-{}-of-{}", part.by.name(), part.shard, part.of));
    let shard = Shard::new(part, Vec::new());
    drop(Journal::open_shard(&folder, plan.manifest(), &shard).unwrap());
    run_in(&folder, &plan, 2);
    folder
}

#[test]
fn parts_join_to_the_bytes_of_the_run_in_any_order_in_steps_and_twice() {
    let root = tempfile::tempdir().unwrap();
    let plan = Plan::new(small()).unwrap();
    let whole = root.path().join("whole");
    run_in(&whole, &plan, 2);
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut below = |end: usize| usize::try_from(random.next_u64() % end as u64).unwrap();
    for (by, of) in
        [Division::Hash, Division::Cost].into_iter().flat_map(|by| [1, 2, 5, 9].map(|of| (by, of)))
    {
        let mut load = vec![0; of as usize];
        let manifest = plan.manifest();
        for (at, shard) in by.shards(of, manifest).into_iter().enumerate() {
            load[shard as usize - 1] += work(manifest, at);
        }
        let all = (0..manifest.sessions.len()).map(|at| work(manifest, at));
        let (sum, largest) = (all.clone().sum::<u64>(), all.max().unwrap());
        let most = load.iter().copied().max().unwrap();
        // As much as the largest session more than the mean, and no more.
        let is_even = most <= sum / u64::from(of) + largest;
        assert!(load.iter().sum::<u64>() == sum && (by == Division::Hash || is_even), "{load:?}");
        let parts = (1..=of).map(|shard| Partition { by, shard, of });
        let parts: Vec<PathBuf> = parts
            .map(|part| run_part(root.path(), part, (part.shard % 2 == 0).then_some(&plan)))
            .collect();
        for round in 0..4 {
            let mut left = parts.clone();
            // Some folders more than once, and a part that was killed: some of its cells, as they were finished.
            left.push(parts[below(parts.len())].clone());
            let torn = root.path().join(format!("begun-{}-{of}-{round}", by.name()));
            let from = &parts[below(parts.len())];
            copy(from, &torn);
            let cells = fs::read_to_string(torn.join("cells.jsonl")).unwrap();
            let mut lines: Vec<&str> = cells.split_inclusive('\n').collect();
            for at in (1..lines.len()).rev() {
                lines.swap(at, below(at + 1));
            }
            lines.truncate(below(lines.len() + 1));
            fs::write(torn.join("cells.jsonl"), lines.concat()).unwrap();
            left.push(torn);
            for step in 0.. {
                if left.len() == 1 {
                    break;
                }
                let count = 2 + below(left.len() - 1);
                let taken = (0..count).map(|_| left.remove(below(left.len())));
                let taken: Vec<PathBuf> = taken.collect();
                let out = root.path().join(format!("out-{}-{of}-{round}-{step}", by.name()));
                merge(&taken, &out).unwrap();
                left.push(out);
            }
            let run = &left[0];
            assert_eq!(bytes(run), bytes(&whole), "{by:?} {of}, {}", run.display());
            assert_eq!(read_shard(run).unwrap(), None, "it is the whole run");
            let again = merge(&parts, run).unwrap();
            assert_eq!((again.cells, again.missing.len()), (again.planned, 0));
            assert_eq!(bytes(run), bytes(&whole));
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proctor"));
    for name in ["PROCTOR_COUNTER", "PROCTOR_SEED", "PROCTOR_WINDOW"] {
        command.env_remove(name);
    }
    command.current_dir(folder).env("TEST_KEY", KEY);
    command.args(arguments);
    command
}

#[track_caller]
fn done(folder: &Path, arguments: &[&str], exit: i32) -> String {
    let output = command(folder, arguments).output().unwrap();
    said(arguments, &output, exit)
}

/// What the program said on standard error, once it ended as it should.
#[track_caller]
fn said(arguments: &[&str], output: &Output, exit: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {said}");
    said
}

/// A folder with the scenario, and with parts of it as the program made them.
fn made(parts: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    for part in parts {
        let out = part.replace([':', '/'], "-");
        let line = ["run", "small.toml", "--partition", part, "--out", &out];
        done(folder.path(), &line, 0);
    }
    folder
}

#[test]
fn a_part_that_cannot_be_joined_is_named_with_the_command_that_mends_it() {
    let folder = made(&["cost:1/3", "cost:2/3", "hash:2/3"]);
    let path = folder.path();
    let [one, two] = ["cost-1-3", "cost-2-3"];
    let check = |exit: i32, folders: &[&str], words: &[&str]| {
        let line: Vec<&str> = ["merge", "--out", "run"].iter().chain(folders).copied().collect();
        let said = done(path, &line, exit);
        for word in words {
            assert!(said.contains(word), "{word} is missing in\n{said}");
        }
        let kept = fs::read(path.join("run").join("cells.jsonl")).unwrap_or_default();
        assert_eq!(!kept.is_empty(), exit == 5, "{said}");
        drop(fs::remove_dir_all(path.join("run")));
    };
    let missing = "`proctor run small.toml --partition cost:3/3` makes them";
    check(5, &[one, two], &["part cost:3/3 is not there", missing]);
    check(3, &[one, "nothing"], &["`nothing` holds no run"]);
    check(3, &[one, "run"], &["`run` holds no run"]);
    check(3, &[one, "hash-2-3"], &["part cost:1/3", "part hash:2/3", "`cost:K/3`"]);
    done(path, &["run", "small.toml", "--set", "seed=9", "--out", "other"], 0);
    check(3, &[one, "other"], &["`other` is part of run", "one scenario"]);

    // Killed in the middle of a line, of a cell, and where a budget stopped it.
    let cells = path.join(two).join("cells.jsonl");
    let whole = fs::read(&cells).unwrap();
    fs::write(&cells, &whole[..whole.len() - 9]).unwrap();
    let again = "`proctor run small.toml --partition cost:2/3 --out cost-2-3` removes it";
    check(3, &[one, two], &["`cost-2-3` ends in half a line", again]);
    let end = whole[..whole.len() - 1].iter().rposition(|it| *it == b'\n').unwrap() + 1;
    fs::write(&cells, &whole[..end]).unwrap();
    check(5, &[one, two], &["part cost:2/3 is not complete: 1 cell missing"]);
    let mut shard = read_shard(&path.join(two)).unwrap().unwrap();
    shard.stopped = Some("$1.00 are spent".to_owned());
    let manifest = read_manifest(&path.join(two)).unwrap();
    let journal = Journal::open(&path.join(two), &manifest).unwrap();
    journal.keep_shard(&shard).unwrap();
    check(3, &[one, two], &["another process is running in `cost-2-3`"]);
    drop(journal);
    check(5, &[one, two], &["part cost:2/3 stopped at its budget ($1.00 are spent)"]);

    // The same cell with another content, a flipped bit, a cell of no session.
    copy(&path.join(one), &path.join("copy"));
    let text = fs::read_to_string(path.join("copy/cells.jsonl")).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let sign = |line: &str| {
        let body = line.rsplit_once(",\"check\"").unwrap().0;
        let check = proctor::units::ContentHash::of(body).hex(8);
        format!("{body},\"check\":\"{check}\"}}\n")
    };
    let changed = sign(&first.replacen("\"planned_calls\":", "\"planned_calls\":1", 1));
    let write = |line: &str| fs::write(path.join("copy/cells.jsonl"), format!("{line}{rest}"));
    write(&changed).unwrap();
    check(3, &[one, "copy"], &["and they differ", "leave out one of them"]);
    write(&changed.replacen(":1", ":2", 1)).unwrap();
    check(3, &["copy"], &["`copy/cells.jsonl`: line 1 is damaged", "delete line 1"]);
    write(&sign(&first.replacen("{\"session\":\"", "{\"session\":\"x", 1))).unwrap();
    check(3, &["copy"], &["`copy` holds x", "which the run does not have"]);

    // A merge onto a part, and onto another run.
    let said = done(path, &["merge", one, two, "--out", one], 3);
    assert!(said.contains("is both a part and the folder to write to"), "{said}");
    let said = done(path, &["merge", one, two, "--out", "other"], 3);
    assert!(said.contains("`other` holds run"), "{said}");
}

#[test]
fn a_part_that_reads_its_own_files_alone_knows_what_they_have_to_do_with_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let all = path.join("all");
    fs::create_dir_all(all.join("rec")).unwrap();
    // A main session and its sub-agents in files of their own, and a recording beside what was written from it.
    let fixture = |name: &str| Path::new(crate::FIXTURES).join(name);
    fs::copy(fixture("claude-code/side-chains.jsonl"), path.join("s.jsonl")).unwrap();
    done(path, &["sessions", "import", "s.jsonl", "-o", "all/own"], 0);
    fs::copy(fixture("openai-chat/conversations.jsonl"), all.join("rec/c.jsonl")).unwrap();
    done(path, &["sessions", "import", "all/rec", "-o", "all/rec"], 0);
    // Two forks of one recording, one of them of the other.
    let turns = [("Mend the gate.", "It hangs."), ("Oil it.", "Oiled."), ("Paint it.", "Done.")];
    let fork = [turns[0], turns[1], ("Sell it.", "Sold.")];
    let later = [turns[0], turns[1], fork[2], ("Buy it back.", "Bought.")];
    for (name, turns) in [("a", &turns[..]), ("b", &fork), ("c", &later)] {
        fs::write(all.join(format!("{name}.jsonl")), recording("s", turns)).unwrap();
    }
    fs::write(all.join("notes.json"), "{}").unwrap();
    let words = ["all", "--window", "64000"];
    let proctor =
        |command: &[&str], more: &[&str]| done(path, &[command, &words, more].concat(), 0);
    proctor(&["run"], &["--out", "whole"]);
    proctor(&["run", "--dry-run"], &["--shards", "5", "--out", "run"]);
    let sources = fs::read_to_string(path.join("run/sources.jsonl")).unwrap();
    assert_eq!(sources.matches("\"after\"").count(), 2, "{sources}");
    let parts: Vec<String> = (1..=5).map(|shard| format!("cost:{shard}/5")).collect();
    for part in &parts {
        let more = ["--partition", part, "--plan", "run", "--out", &part[5..6]];
        proctor(&["run"], &more);
    }
    done(path, &["merge", "1", "2", "3", "4", "5", "--out", "run"], 0);
    assert_eq!(bytes(&path.join("run")), bytes(&path.join("whole")));
    fs::remove_file(all.join("b.jsonl")).unwrap();
    let line = ["run", "all", "--window", "64000", "--partition", "cost:1/5", "--plan", "run"];
    let said = done(path, &line, 3);
    assert!(said.contains("`proctor run --dry-run --shards N --out DIR`"), "{said}");
}

#[test]
fn a_part_that_is_not_there_or_is_another_one_is_refused_before_it_is_run() {
    let folder = made(&["cost:1/2"]);
    done(folder.path(), &["run", "--dry-run", "small.toml", "--shards", "2", "--out", "plan"], 0);
    for (arguments, exit, words) in [
        (&["--partition", "cost:3/2"][..], 2, "there is no shard 3 of 2"),
        (&["--partition", "cost:0/2"], 2, "shards are counted from 1"),
        (&["--partition", "2/2"], 2, "write `cost:3/16`"),
        (&["--partition", "auto"], 2, "this is not the task of a batch engine"),
        (&["--partition", "cost:2/2", "--out", "cost-1-2"], 3, "holds part cost:1/2"),
        (&["--partition", "cost:1/2", "--save-baseline", "x"], 2, "leave one of them out"),
        (
            &["--partition", "cost:1/2", "--plan", "plan", "--set", "seed=5"],
            3,
            "the plan is of run",
        ),
        (&["--plan", "plan"], 2, "--partition"),
    ] {
        let line: Vec<&str> = ["run", "small.toml"].iter().chain(arguments).copied().collect();
        let said = done(folder.path(), &line, exit);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    // A part that is under way, on a file system whose locks do nothing: the next process finds no lock there.
    let part = folder.path().join("cost-1-2");
    let (manifest, shard) = (read_manifest(&part).unwrap(), read_shard(&part).unwrap().unwrap());
    let journal = Journal::open_shard(&part, &manifest, &shard).unwrap();
    fs::remove_file(part.join("lock")).unwrap();
    for line in [
        &["run", "small.toml", "--partition", "cost:1/2", "--out", "cost-1-2"][..],
        &["merge", "cost-1-2", "--out", "run"],
    ] {
        let said = done(folder.path(), line, 3);
        assert!(said.contains("another process is running in `cost-1-2`"), "{said}");
    }
    drop(journal);
    done(folder.path(), &["merge", "cost-1-2", "--out", "run"], 5);
    // A plan of fewer sessions.
    let text = SMALL.replace("count = 3", "count = 2");
    fs::write(folder.path().join("small.toml"), text).unwrap();
    let line = ["run", "small.toml", "--partition", "cost:1/2", "--plan", "plan"];
    let said = done(folder.path(), &line, 3);
    assert!(
        said.contains("the plan is of 7 files and generated sessions, and here are 6"),
        "{said}"
    );
}

#[test]
fn the_task_of_a_batch_engine_is_a_part() {
    let part = |variables: &[(&str, &str)]| {
        let variables: Vec<(String, String)> = { variables.iter() }
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let of = move |name: &str| {
            let mut own = variables.iter();
            own.find(|(own, _)| own == name).map(|(_, value)| value.clone())
        };
        Partition::of_engine(&of).map(|part| part.to_string())
    };
    let [id, count, min] =
        ["SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"];
    let kubernetes = ("JOB_COMPLETION_INDEX", "0");
    for (variables, expected) in [
        (&[(id, "1"), (count, "16"), (min, "1")][..], Ok("cost:1/16")),
        (&[(id, "15"), (count, "16"), (min, "0")], Ok("cost:16/16")),
        (&[(id, "15"), (count, "16")], Ok("cost:16/16")),
        (&[(id, "7"), (count, "1"), (min, "7")], Err("as in `cost:7/16`")),
        (
            &[(id, "5"), (count, "3"), (min, "1"), ("SLURM_ARRAY_TASK_MAX", "9")],
            Err("not those of a whole run"),
        ),
        (&[kubernetes, ("PROCTOR_SHARDS", "4")], Ok("cost:1/4")),
        (&[("CI_NODE_INDEX", "4"), ("CI_NODE_TOTAL", "4")], Ok("cost:4/4")),
        (&[kubernetes], Err("set it in the container's `env`")),
        (&[(id, "3")], Err("`sbatch --array=1-16` sets it")),
        (&[(id, "17"), (count, "16"), (min, "1")], Err("there is no shard 17 of 16")),
        (&[(id, "x"), (count, "16")], Err("is `x`, which is not a number")),
        (&[(id, "4294967295"), (count, "16")], Err("there is no shard")),
    ] {
        match (part(variables), expected) {
            (Ok(part), Ok(expected)) => assert_eq!(part, expected),
            (Err(why), Err(words)) => assert!(why.contains(words), "{why}"),
            other => panic!("{variables:?}: {other:?}"),
        }
    }
}

/// A reader and a judge at this server, in the words of a scenario.
fn graded(server: &Server) -> String {
    let url = server.base_url();
    let model = |name: &str| {
        format!("{{ kind = 'openai', model = '{name}', base_url = '{url}', key = 'TEST_KEY' }}")
    };
    let [reader, judge] = ["reader-x", "judge-x"].map(model);
    format!("[models]\nreader = {reader}\njudge = {judge}\njudging = 'all'\n")
}

/// The answers that a folder keeps.
fn answers(run: &Path) -> Vec<cassette::CassetteEntry> {
    let cassette = run.join("cassette.jsonl");
    cassette::read(&cassette).unwrap().entries
}

#[test]
fn a_graded_run_in_parts_that_run_at_once_pays_for_the_requests_of_one_run() {
    // Fifteen requests in a tenth of a second and no more, once there are parts.
    static IS_LIMITED: AtomicBool = AtomicBool::new(false);
    let begun = Mutex::new((Instant::now(), 0));
    let server = Server::answering(move |body| {
        let mut begun = begun.lock().unwrap();
        if begun.0.elapsed() > Duration::from_millis(100) {
            *begun = (Instant::now(), 0);
        }
        begun.1 += 1;
        if begun.1 > 15 && IS_LIMITED.load(Ordering::Relaxed) {
            return Reply::status(429, "{}").with_header("retry-after-ms", "50");
        }
        reply(body)
    });
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "{SMALL}{}[models.pace]\nretries = 50\n[models.budget]\ntokens = 90_000_000\n",
        graded(&server)
    );
    fs::write(folder.path().join("small.toml"), text).unwrap();
    let path = folder.path();
    let paid = || server.requests().iter().filter(|it| it.was_answered).count();
    let run = |more: &[&str]| {
        let line = [&["run", "small.toml", "--yes", "--anyway", "-j", "4"], more].concat();
        done(path, &line, 0);
    };
    run(&["--out", "alone/whole"]);
    let alone = paid();
    IS_LIMITED.store(true, Ordering::Relaxed);
    let parts: Vec<String> = (1..=8).map(|shard| format!("parts/{shard}")).collect();
    thread::scope(|threads| {
        for (shard, out) in (1..).zip(&parts) {
            let run = &run;
            threads.spawn(move || run(&["--out", out, "--partition", &format!("hash:{shard}/8")]));
        }
    });
    assert_eq!(paid(), alone * 2, "the parts pay for what one run does");
    assert!(server.requests().len() > paid(), "the server refused some");
    let line: Vec<&str> =
        ["merge", "--out", "run"].into_iter().chain(parts.iter().map(|it| &**it)).collect();
    done(path, &line, 0);
    let [apart, whole] = ["run", "alone/whole"].map(|run| answers(&path.join(run)));
    assert_eq!((apart.len(), &apart), (alone, &whole));
    // Some were asked by one part and used by another. All are in one file beside the parts, and nothing else is.
    let kept = parts.iter().map(|part| answers(&path.join(part)).len());
    assert!(kept.sum::<usize>() > alone);
    let beside = fs::read_dir(path.join("parts")).unwrap();
    let beside = beside.map(|it| it.unwrap().path());
    let [shared] = beside
        .filter(|it| it.to_string_lossy().contains("answers-"))
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    assert_eq!(cassette::read(&shared).unwrap().entries, whole);
    // From the answers alone it is the same run again.
    fs::remove_file(path.join("run/cells.jsonl")).unwrap();
    run(&["--replay", "strict", "--out", "run"]);
    assert_eq!(bytes(&path.join("run")), bytes(&path.join("alone/whole")));
}

/// A library that stands before the system's: no file can be locked, as on some shared file systems.
#[cfg(target_os = "linux")]
const NO_LOCKS: &str =
    "#include <errno.h>\nint flock(int file, int how) { errno = ENOLCK; return -1; }\n";

#[cfg(target_os = "linux")]
#[test]
fn where_no_file_can_be_locked_a_part_runs_and_its_lease_keeps_others_out() {
    let server = Server::answering(reply);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("no_locks.c"), NO_LOCKS).unwrap();
    // Whoever builds Rust has it.
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o", "no_locks.so", "no_locks.c"]);
    assert!(cc.current_dir(path).status().unwrap().success());
    let text = format!("{SMALL}{}", graded(&server));
    fs::write(path.join("small.toml"), text).unwrap();
    let run = |exit| {
        let part = ["--partition", "hash:2/9", "--out", "parts/2"];
        let line = [&["run", "small.toml", "--yes", "--anyway"], &part[..]].concat();
        let mut command = command(path, &line);
        command.env("LD_PRELOAD", path.join("no_locks.so"));
        said(&line, &command.output().unwrap(), exit)
    };
    run(0);
    let part = path.join("parts/2");
    assert_eq!(answers(&part).len(), server.requests().len());
    // Two parts could write into each other's lines.
    assert_eq!(fs::read_dir(path.join("parts")).unwrap().count(), 1);
    let shard = read_shard(&part).unwrap().unwrap();
    let journal = Journal::open_shard(&part, &read_manifest(&part).unwrap(), &shard).unwrap();
    assert!(run(3).contains("another process is running in `parts/2`"));
    drop(journal);
    run(0);
}

#[test]
fn a_sweep_in_parts_chooses_as_one_that_is_not() {
    let folder = made(&[]);
    let path = folder.path();
    let server = Server::answering(reply);
    let text = format!("{SMALL}{}", graded(&server));
    fs::write(path.join("small.toml"), text).unwrap();
    let sweep = |more: &[&str], exit| {
        let line = ["sweep", "small.toml", "-P", "clear_results.keep_last=1,3", "--json", "--yes"];
        let line: Vec<&str> = line.iter().chain(more).copied().collect();
        let output = command(path, &line).output().unwrap();
        said(&line, &output, exit);
        String::from_utf8(output.stdout).unwrap()
    };
    let expected = sweep(&["--out", "whole/sweep"], 4);
    let asked = server.requests().len();
    for part in ["cost:1/2", "cost:2/2"] {
        sweep(&["--partition", part, "--out", &part.replace([':', '/'], "-")], 0);
    }
    done(path, &["merge", "cost-1-2", "cost-2-2", "--out", "joined"], 0);
    let tuned = |sweep: &str| {
        let tuned = fs::read_dir(path.join(sweep).join("tune")).unwrap().next().unwrap();
        bytes(&tuned.unwrap().path())
    };
    assert_eq!(tuned("joined"), tuned("whole/sweep"));
    assert_eq!(sweep(&["--out", "joined"], 4), expected);
    let [joined, whole] = ["joined", "whole/sweep"].map(|sweep| answers(&path.join(sweep)));
    assert_eq!(joined, whole);
    assert_eq!(server.requests().len(), asked * 2);
}

#[test]
fn a_sample_is_compared_with_the_baseline_of_all_sessions() {
    let folder = made(&[]);
    let path = folder.path();
    done(path, &["run", "small.toml", "--save-baseline", "main", "--out", "all"], 0);
    let line = ["run", "small.toml", "--sample", "4", "--baseline", "main", "--out", "few"];
    let said = done(path, &line, 0);
    assert!(said.contains("left out: 3 sessions: they are not in the sample of 4"), "{said}");
    let manifest = read_manifest(&path.join("few")).unwrap();
    let ids: Vec<&str> = manifest.sessions.iter().map(|it| &*it.id).collect();
    assert!(said.contains("is a sample: 3 of 7 sessions of `main` are not compared"), "{said}");
    assert_eq!(ids.len(), 4);
    let of = |family: &str| ids.iter().filter(|id| id.starts_with(family)).count();
    assert_eq!([of("code-review"), of("debugging")], [2, 2]);
}
