//! Tests of the run folder.

use super::*;
use crate::record::ModelEntry;
use crate::record::words::ModelKind;
use crate::units::Tokens;

pub(super) fn manifest(fingerprint: &str) -> Manifest {
    let model = ModelEntry { name: "offline".to_owned(), kind: ModelKind::Deterministic };
    Manifest {
        format: FORMAT.to_owned(),
        version: FORMAT_VERSION,
        proctor: "0".to_owned(),
        fingerprint: fingerprint.to_owned(),
        scenario: "s".to_owned(),
        counter: "chars/4".to_owned(),
        seed: 1,
        window: "native".to_owned(),
        summariser: model,
        reader: None,
        judge: None,
        sessions: Vec::new(),
        sample: None,
        left_out: BTreeMap::new(),
        strategies: Vec::new(),
        repeats: 1,
        answers: 1,
        judgements: 1,
        faults: None,
        conditions: BTreeMap::new(),
        servers: BTreeMap::new(),
        margins: BTreeMap::new(),
        calibrations: Vec::new(),
    }
}

pub(super) fn cell(session: &str) -> CellRecord {
    CellRecord {
        session: session.to_owned(),
        strategy: "none".to_owned(),
        planned_calls: 1,
        reached_calls: 1,
        prompt_tokens: vec![Tokens(1)],
        ..CellRecord::default()
    }
}

#[test]
fn a_torn_last_line_is_dropped_and_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(folder.path(), &manifest("a")).unwrap();
    journal.append(&cell("one")).unwrap();
    journal.append(&cell("two")).unwrap();
    drop(journal);
    let path = folder.path().join(CELLS);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 7]).unwrap();
    let mut journal = Journal::open(folder.path(), &manifest("a")).unwrap();
    assert_eq!(journal.done().len(), 1);
    journal.append(&cell("two")).unwrap();
    drop(journal);
    assert_eq!(fs::read(&path).unwrap(), whole);
    assert_eq!(RecordedRun::read(folder.path()).unwrap().cells, [cell("one"), cell("two")]);
}

#[test]
fn cells_are_put_into_the_order_that_is_asked_for_and_more_may_follow() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(CELLS);
    let order: Vec<CellKey> = ["b", "a", "c"].map(|id| cell(id).key()).to_vec();
    let written = || {
        let text = fs::read_to_string(&path).unwrap();
        let records = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let session = |cell: serde_json::Value| cell["session"].as_str().unwrap().to_owned();
        let ids: Vec<String> = records.map(session).collect();
        ids.concat()
    };
    let mut journal = Journal::open(folder.path(), &manifest("x")).unwrap();
    // A cell outside the plan stays, after all others.
    for id in ["z", "c", "a"] {
        journal.append(&cell(id)).unwrap();
    }
    journal.put_in_order(&order).unwrap();
    assert_eq!(written(), "acz");
    journal.append(&cell("b")).unwrap();
    assert_eq!(written(), "aczb");
    drop(journal);
    let mut journal = Journal::open(folder.path(), &manifest("x")).unwrap();
    journal.put_in_order(&order).unwrap();
    assert_eq!(written(), "bacz");
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    journal.put_in_order(&order).unwrap();
    let after = fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(before, after, "what is in order is not written again");
    // If the sorted file cannot be written, all lines keep their order, and more may be
    // appended.
    let elsewhere = folder.path().with_extension("moved");
    fs::rename(folder.path(), &elsewhere).unwrap();
    let backwards: Vec<CellKey> = order.iter().rev().cloned().collect();
    journal.put_in_order(&backwards).unwrap_err();
    fs::rename(&elsewhere, folder.path()).unwrap();
    journal.append(&cell("y")).unwrap();
    assert_eq!(written(), "baczy");
}

#[test]
#[cfg(unix)]
fn a_folder_that_was_removed_or_replaced_takes_no_further_cell() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    for is_replaced in [false, true] {
        let mut journal = Journal::open(&folder, &manifest("a")).unwrap();
        journal.append(&cell("one")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        if is_replaced {
            drop(Journal::open(&folder, &manifest("a")).unwrap());
        }
        let gone = journal.append(&cell("two")).unwrap_err();
        assert!(matches!(gone, JournalError::Gone(_)), "{gone:?}");
        assert_eq!(folder.exists(), is_replaced);
    }
    assert_eq!(RecordedRun::read(&folder).unwrap().cells, []);
}

#[test]
fn half_a_line_of_measured_times_damages_nothing_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let timing = Timing {
        session: "one".to_owned(),
        strategy: "none".to_owned(),
        repeat: 0,
        cell_cpu_ns: 1,
        strategy_cpu_ns: 2,
        p50_ns: 3,
        p95_ns: 4,
    };
    let call = serde_json::json!({ "milliseconds": 5 });
    for name in [TIMINGS, CALL_TIMES] {
        fs::write(folder.path().join(name), "{\"session\":\"on").unwrap();
    }
    let mut journal = Journal::open(folder.path(), &manifest("a")).unwrap();
    journal.time(TIMINGS, &timing).unwrap();
    journal.time(CALL_TIMES, &call).unwrap();
    assert_eq!(timings(folder.path()).unwrap(), [timing]);
    let calls = fs::read_to_string(folder.path().join(CALL_TIMES)).unwrap();
    assert!(calls.starts_with("{\"milliseconds\":5,\"check\":") && calls.ends_with("\"}\n"));
}

#[test]
fn another_run_a_second_process_and_damage_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let open = |fingerprint| Journal::open(folder.path(), &manifest(fingerprint));
    let first = open("a").unwrap();
    assert!(matches!(open("a"), Err(JournalError::Locked { .. })));
    drop(first);
    assert!(matches!(open("b"), Err(JournalError::AnotherRun { .. })));
    fs::write(folder.path().join(CELLS), "{}\n").unwrap();
    assert!(matches!(open("a"), Err(JournalError::BadLine(_, 1, _))));
    assert_eq!(fs::read_to_string(folder.path().join(CELLS)).unwrap(), "{}\n");
    fs::remove_file(folder.path().join(CELLS)).unwrap();
    let path = folder.path().join(MANIFEST);
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.replace("\"seed\": 1", "\"seed\": 3")).unwrap();
    let damaged = open("a").unwrap_err();
    assert!(matches!(damaged, JournalError::Damaged(_, Damage::WrongChecksum)));
    let (content, _) = whole.rsplit_once(',').unwrap();
    fs::write(&path, format!("{content}}}")).unwrap();
    let unsigned = open("a").unwrap_err();
    assert!(matches!(unsigned, JournalError::Damaged(_, Damage::NoChecksum)));
    assert!(unsigned.hint().unwrap().contains("--out"));
    let mut newer = content.replace("\"version\": 1", "\"version\": 99") + "}";
    checked::sign(&mut newer, DOCUMENT);
    fs::write(&path, newer).unwrap();
    assert!(matches!(open("a"), Err(JournalError::Newer(_, Some(99), _))));
}
