//! Which settings of a scenario make two runs incomparable, key by key.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use proctor::compare::ComparedRun;
use proctor::runner::Plan;
use proctor::scenario::Scenario;
use proctor::settings::SettingTable;
use serde_json::{Value, json};

use crate::goldens::golden;

/// One row per key: the key, lines without it, lines with it, and the conditions that then differ, which
/// `PROCTOR_BLESS=1` writes.
const TABLE: &str = "tests/it/conditions.tsv";

/// Sections that decide no condition: sessions are compared by their hash and strategies by their
/// definition; the others decide verdicts, speed or where a run ends.
const APART: &str = "session recipe strategy overflow gate margins pace budget";

/// A scenario with these lines in it, and the conditions of its results, by name.
fn read(lines: &str) -> (Scenario, Vec<(String, Value)>) {
    let text = format!(
        "{}\n[[sessions]]\nsynthetic = {{ family = 'code-review', rounds = 4 }}\n\
         [[strategies]]\npreset = 'observation-masking'\n",
        lines.replace("; ", "\n")
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table =
        SettingTable::parse("s.toml", &text).unwrap_or_else(|error| panic!("{lines}: {error}"));
    let scenario = Scenario::read(&table, root).unwrap_or_else(|error| panic!("{lines}: {error}"));
    let plan = Plan::new(scenario.clone()).unwrap_or_else(|error| panic!("{lines}: {error}"));
    let conditions = json!(ComparedRun::of(plan.manifest(), &[]).conditions);
    let conditions = conditions.as_object().unwrap().iter();
    let named = conditions.flat_map(|(name, value)| match value {
        Value::Object(settings) if name == "settings" => settings.clone().into_iter().collect(),
        value => vec![(name.clone(), value.clone())],
    });
    (scenario, named.collect())
}

#[test]
fn every_key_is_a_condition_or_is_known_to_be_none() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let keys = fs::read_to_string(root.join("src/scenario/keys.toml")).unwrap();
    let keys: toml::Table = keys.parse().unwrap();
    let sections = keys.iter().filter(|(section, _)| !APART.split(' ').any(|it| it == *section));
    let wanted = sections.flat_map(|(section, keys)| {
        let keys = keys.as_table().unwrap().iter();
        // A section is in the table key by key.
        let keys = keys.filter(|(_, key)| key.get("table").is_none());
        keys.map(move |(key, _)| format!("{section}.{key}"))
    });
    let wanted: BTreeSet<String> = wanted.collect();
    let table = fs::read_to_string(root.join(TABLE)).unwrap();
    let mut lines = table.lines();
    let mut made = format!("{}\n", lines.next().unwrap());
    let mut found = BTreeSet::new();
    for line in lines {
        let row: Vec<&str> = line.split('\t').collect();
        let [key, before, after, ..] = row[..] else {
            panic!("no row: {line}");
        };
        found.insert(key.to_owned());
        let (one, old) = read(before);
        let (other, new) = read(after);
        let is_read = format!("{one:?}") != format!("{other:?}");
        assert!(is_read, "nothing reads `{key}`");
        let differ = old.iter().filter(|it| !new.contains(it));
        let differ = differ.chain(new.iter().filter(|it| !old.contains(it)));
        let differ: BTreeSet<&str> = differ.map(|(name, _)| name.as_str()).collect();
        let differ = differ.into_iter().collect::<Vec<_>>().join(", ");
        made += &[key, before, after, &differ].join("\t");
        made += "\n";
    }
    // Every scenario names sessions and strategies. Facts are compared by the hash of a session's probes,
    // and calibrations decide no result.
    let files = ["models.calibrations", "probes.files"];
    let named = ["scenario.sessions", "scenario.strategies"];
    found.extend(files.into_iter().chain(named).map(str::to_owned));
    assert_eq!(found, wanted);
    golden(TABLE, &made);
}

#[test]
fn what_a_strategy_is_worth_is_no_part_of_a_runs_fingerprint() {
    let fingerprint = |lines: &str| {
        let text = format!(
            "[[sessions]]\nsynthetic = {{ family = 'code-review', rounds = 4 }}\n[[strategies]]\nname = 'own'\n\
             {lines}\n[[strategies.stage]]\nkind = 'clear_results'\n"
        );
        let scenario = crate::support::scenario(&text, Path::new(""));
        let plan = Plan::new(scenario).unwrap();
        plan.manifest().fingerprint.clone()
    };
    let plain = fingerprint("");
    for lines in [
        "fidelity = 'exact'",
        "fidelity = 'outline'\nmissing = 'All of it.'",
        "source = 'a book'",
        "[[strategies.source]]\ndocument = 'a book'",
    ] {
        assert_eq!(fingerprint(lines), plain, "{lines}");
    }
    assert_ne!(fingerprint("guards = { min_gain_tokens = 1 }"), plain);
}
