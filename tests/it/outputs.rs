//! What programs and machines read: CSV, JSON lines, messages, schemas, scripts, manual pages.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::refusal;

const SMALL: &str = "name = 'small'\ncontrols = false\n[window]\ntokens = 12_000\n\
    [[sessions]]\nsynthetic = { family = 'code-review', seed = 1, rounds = 12 }\ncount = 2\n\
    [[strategies]]\npreset = 'observation-masking'\nset = { clear_results.keep_last = 2 }\n\
    [[strategies]]\npreset = 'none'\n";

fn proctor(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder)
        .env_remove("PROCTOR_WINDOW")
        .env_remove("PROCTOR_SEED")
        .env("PROCTOR_COUNTER", "chars/4")
        .env("OPENAI_API_KEY", "sk-not-to-be-shown")
        .args(arguments)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn small() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    folder
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_is_refused_by_its_name_where_the_build_writes_none() {
    let folder = small();
    let output = proctor(folder.path(), &["run", "small.toml", "-o", "r.parquet"]);
    let says = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{says}");
    assert!(says.contains("--features parquet") && says.contains(".csv"), "{says}");
    assert!(!folder.path().join("reports").exists(), "nothing was run");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_holds_the_rows_of_the_csv_files_with_their_types() {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;

    let folder = small();
    let files = ["-o", "r.csv", "-o", "r.parquet"];
    let output = proctor(folder.path(), &[&["run", "small.toml"], &files[..]].concat());
    assert!(output.status.success(), "{output:?}");
    for name in ["r", "r.probes"] {
        let file = |ending: &str| fs::File::open(folder.path().join(format!("{name}.{ending}")));
        let mut csv = csv::Reader::from_reader(file("csv").unwrap());
        let head: Vec<String> = csv.headers().unwrap().iter().map(str::to_owned).collect();
        let expected: Vec<Vec<String>> =
            csv.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
        let reader = SerializedFileReader::new(file("parquet").unwrap()).unwrap();
        let mut numbers = 0;
        let found: Vec<Vec<String>> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| {
                let columns = row.unwrap().into_columns();
                assert!(columns.iter().map(|(name, _)| name).eq(&head));
                let text = |field: Field| match field {
                    Field::Null => "NA".to_owned(),
                    // CSV escapes what a terminal would obey.
                    Field::Str(text) => text.replace('\n', "\\u{a}"),
                    Field::Long(count) => count.to_string(),
                    Field::Double(number) => {
                        numbers += 1;
                        number.to_string()
                    }
                    other => panic!("{other:?}"),
                };
                columns.into_iter().map(|it| it.1).map(text).collect()
            })
            .collect();
        assert!(!found.is_empty() && numbers > 0);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn a_run_for_programs_launches_first_and_is_done_last() {
    let folder = small();
    let arguments = ["run", "small.toml", "--json", "-o", "r.csv", "-o", "r.jsonl"];
    let output = proctor(folder.path(), &arguments);
    let text = stdout(&output);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds = |kind: &str| lines.iter().filter(|line| line["type"] == kind).count();
    assert_eq!(lines[0]["type"], "launch");
    assert_eq!(lines[0]["cells"]["planned"], 8);
    assert_eq!((kinds("cell"), kinds("session"), kinds("done")), (8, 2, 1));
    let done = lines.last().unwrap();
    assert_eq!(done["type"], "done");
    assert_eq!(done["outcome"], "complete");
    assert_eq!(done["controls"], "passed");
    assert_eq!(done["exit_code"].as_i64(), output.status.code().map(i64::from));

    // One row per cell, and one per probe item in a second file.
    let read = |name: &str| {
        let bytes = fs::read(folder.path().join(name)).unwrap();
        let mut reader = csv::Reader::from_reader(&bytes[..]);
        let head: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        (head, rows)
    };
    let (head, cells) = read("r.csv");
    assert_eq!(cells.len(), 8);
    assert!(cells.iter().all(|row| row.iter().all(|field| !field.is_empty())));
    let (_, items) = read("r.probes.csv");
    let at = head.iter().position(|name| name == "facts_items").unwrap();
    let decoys = head.iter().position(|name| name == "decoy_items").unwrap();
    let sum =
        |at: usize| -> usize { cells.iter().map(|row| row[at].parse::<usize>().unwrap()).sum() };
    let of_decoys = items.iter().filter(|row| row.iter().any(|field| field == "decoy")).count();
    assert_eq!(items.len() - of_decoys, sum(at));
    // Decoys after a death are asked of nobody.
    assert!(of_decoys >= sum(decoys) && sum(decoys) > 0);
    let text = fs::read_to_string(folder.path().join("r.jsonl")).unwrap();
    let summaries: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(summaries.len(), 8);
    assert_eq!(summaries[0]["run"], lines[0]["fingerprint"]);
    assert!(
        fs::read_dir(folder.path()).unwrap().all(|entry| !entry
            .unwrap()
            .path()
            .to_string_lossy()
            .ends_with(".part"))
    );
}

/// One path to each number, by strategy and by the name that the screen has, wherever a program reads it.
#[test]
fn numbers_of_a_run_are_flat_and_the_same_in_file_and_messages() {
    let folder = small();
    let priced = ["run", "small.toml", "--window", "60000", "--set", "cache.model=claude-opus-5"];
    let with = |more: &[&str]| proctor(folder.path(), &[&priced[..], more].concat());
    let report: Value = serde_json::from_str(&stdout(&with(&["-o", "-"]))).unwrap();
    let results = &report["results"];
    for (strategy, metric, unit) in [
        ("none", "bill", "dollars"),
        ("observation-masking[clear_results.keep_last=2]", "bill_saved", "share"),
        ("observation-masking[clear_results.keep_last=2]", "calls", "count"),
    ] {
        let figure = &results[strategy][metric];
        assert_eq!(figure["unit"], unit, "{strategy} {metric}");
        let [value, low, high] = ["value", "low", "high"].map(|key| figure[key].as_f64());
        let is_inside = |end: Option<f64>, sign: f64| {
            end.is_none_or(|end| (value.unwrap() - end) * sign >= 0.0)
        };
        assert!(is_inside(low, 1.0) && is_inside(high, -1.0), "{figure}");
    }
    assert_eq!(results["none"]["bill_saved"]["value"], 0.0);
    assert!(report["verdict"].is_object(), "{report}");
    let messages = stdout(&with(&["--json"]));
    let last: Value = serde_json::from_str(messages.lines().last().unwrap()).unwrap();
    assert_eq!((&last["results"], &last["verdict"]), (results, &report["verdict"]));
    assert!(stdout(&with(&["-o", "-.md"])).contains("| bill"));
    let refused = with(&["-o", "-.csv"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_run_that_cannot_be_reported_is_done_all_the_same() {
    let folder = small();
    let absent = ["run", "small.toml", "-o", "absent/r.md"];
    let output = proctor(folder.path(), &absent);
    assert_eq!(output.status.code(), Some(110));
    assert!(stdout(&output).is_empty(), "said before anything is run");
    // That a folder stands in the place of the second file shows only when it is written.
    fs::create_dir(folder.path().join("taken.probes.csv")).unwrap();
    let output = proctor(folder.path(), &["run", "small.toml", "--json", "-o", "taken.csv"]);
    assert_eq!(output.status.code(), Some(110));
    let text = stdout(&output);
    let done: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&done["type"], &done["exit_code"]), (&"done".into(), &110.into()));
}

#[test]
fn doctor_refuses_what_run_refuses() {
    let folder = small();
    for mistake in [
        ["--strategy-cmd", "no-such-program"],
        ["--set", "cache.prices=nothing.toml"],
        ["--set", "probes.files=[\"nothing.truth.json\"]"],
        ["--session", "small.toml"],
    ] {
        for command in ["doctor", "run"] {
            let output = proctor(folder.path(), &[&[command, "small.toml"][..], &mistake].concat());
            assert_eq!(output.status.code(), Some(3), "{command} {mistake:?}");
            assert!(output.stderr.starts_with(b"error: "), "{command} {mistake:?}: {output:?}");
            assert!(!stdout(&output).contains("is valid"), "{command} {mistake:?}");
        }
    }
}

#[test]
fn doctor_says_where_each_setting_comes_from_and_shows_no_key() {
    let folder = small();
    let output = proctor(
        folder.path(),
        &["doctor", "small.toml", "--all", "--set", "seed=9", "--set", "window.max_output=500"],
    );
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0));
    let line = |words: &str| {
        text.lines()
            .find(|line| line.trim_start().starts_with(words))
            .unwrap_or_else(|| panic!("{words}\n{text}"))
            .to_owned()
    };
    assert!(line("window.tokens").ends_with("12000  (small.toml:4)"));
    assert!(line("seed ").ends_with("9  (flag --set seed=9)"));
    assert!(line("window.max_output").ends_with("500  (flag --set window.max_output=500)"));
    assert!(line("counter  ").ends_with("\"chars/4\"  (environment PROCTOR_COUNTER)"));
    assert!(line("repeats").ends_with("1  (default)"));
    assert!(line("clear_results.keep_last").ends_with("2  (small.toml:10)"));
    assert!(line("key OPENAI_API_KEY").ends_with("present"));
    assert!(line("reports folder").ends_with("is not there yet, and can be made"));
    assert!(!text.contains("sk-not"));
    fs::write(folder.path().join("bad.toml"), "sede = 1").unwrap();
    let output = proctor(folder.path(), &["doctor", "bad.toml"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).starts_with("!! the scenario is invalid: "));
}

#[test]
fn scripts_and_manual_pages_name_every_command() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&proctor(folder.path(), &["completions", shell]));
        assert!(script.contains("max-error-rate"), "{shell}");
    }
    assert!(stdout(&proctor(folder.path(), &["man"])).contains("proctor"));
    let output = proctor(folder.path(), &["man", "-o", "man"]);
    assert!(output.status.success());
    for name in [
        "proctor.1",
        "proctor-run.1",
        "proctor-inspect.1",
        "proctor-judge-score.1",
        "proctor-judge-test.1",
        "proctor-cache-verify.1",
    ] {
        assert!(folder.path().join("man").join(name).is_file(), "{name}");
    }
}

#[test]
fn the_schema_takes_the_scenarios_that_the_reader_takes() {
    let folder = tempfile::tempdir().unwrap();
    let schema: Value =
        serde_json::from_str(&stdout(&proctor(folder.path(), &["schema", "scenario"]))).unwrap();
    let check = |text: &str| {
        let value: toml::Value = toml::from_str(text).unwrap();
        refusal(&schema, &serde_json::to_value(value).unwrap())
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for entry in fs::read_dir(root.join("scenarios")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let refusal = check(&fs::read_to_string(&path).unwrap());
            assert_eq!(refusal, None, "{}", path.display());
        }
    }
    // A preset is a strategy written out.
    for entry in fs::read_dir(root.join("presets")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() || path.ends_with("defaults.toml") || path.ends_with("nearest.toml") {
            continue;
        }
        let mut preset: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
        preset.insert("name".into(), "own".into());
        let value = serde_json::to_value(preset).unwrap();
        let mut strategy = schema["properties"]["strategies"]["items"].clone();
        strategy["$defs"] = schema["$defs"].clone();
        assert_eq!(refusal(&strategy, &value), None, "{}", path.display());
    }
    assert_eq!(check(SMALL), None);
    for (good, bad) in [
        ("name = 'small'", "nam = 'small'"),
        ("tokens = 12_000", "tokens = 0"),
        ("'code-review'", "'code-revue'"),
        ("rounds = 12", "rounds = 'many'"),
    ] {
        assert!(check(&SMALL.replace(good, bad)).is_some(), "{bad}");
    }
}

#[test]
fn the_schemas_take_what_a_run_writes() {
    let folder = small();
    let ran = proctor(folder.path(), &["run", "small.toml", "--out", "out", "-o", "r.json"]);
    assert!(ran.status.success());
    let schema = |what: &str| -> Value {
        serde_json::from_str(&stdout(&proctor(folder.path(), &["schema", what]))).unwrap()
    };
    let json = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();

    let record = schema("record");
    assert_eq!(refusal(&record, &json(&text("out/run.json"))), None);
    let cells = text("out/cells.jsonl");
    assert_eq!(cells.lines().count(), 8);
    for line in cells.lines() {
        assert_eq!(refusal(&record, &json(line)), None);
        assert!(refusal(&record, &json(&line.replace("planned_calls", "calls"))).is_some());
    }

    let (schema, written) = (schema("report"), text("r.json"));
    assert_eq!(refusal(&schema, &json(&written)), None);
    assert!(refusal(&schema, &json(&written.replace("\"rows\"", "\"lines\""))).is_some());
}

const PRICES: &str = "format = 'proctor-prices'\nversion = 1\nprovider = 'ours'\n\
    date = '2026-01-02'\ndocument = 'a letter'\n\
    [[models]]\nnames = ['our-model']\ninput = 1\ncache_write_5m = 2\ncache_write_1h = 3\n\
    cache_read = 0.5\noutput = 4\n\
    latency = { start_ms = 1_000, prefill_per_second = 1_000, cached_per_second = 10_000, \
    decode_per_second = 100 }\n";

#[test]
fn prices_of_ones_own_make_dollars_and_seconds_and_doctor_names_them() {
    let folder = small();
    fs::write(folder.path().join("prices.toml"), PRICES).unwrap();
    let cells = |set: &[&str]| {
        let mut arguments = vec!["run", "small.toml", "--out", "out", "-o", "r.json"];
        arguments.extend(set);
        let output = proctor(folder.path(), &arguments);
        assert!(output.status.success(), "{output:?}");
        fs::remove_dir_all(folder.path().join("out")).unwrap();
        let report = fs::read_to_string(folder.path().join("r.json")).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        let sections = report["sections"].as_array().unwrap();
        let mut sections = sections.iter();
        let cost = sections.find(|section| section["id"] == "cost_by_scheme").unwrap();
        let columns = cost["table"]["columns"].as_array().unwrap();
        let at = |id: &str| columns.iter().position(|column| column["id"] == id).unwrap() - 1;
        let rows = cost["table"]["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| {
            row["name"] == "full" && row["cells"][at("scheme")]["value"]["text"] == "none"
        });
        let cells = row.unwrap()["cells"].clone();
        let value = |id: &str| cells[at(id)]["value"].clone();
        (value("uncached"), value("dollars"), value("waiting"))
    };
    let own = ["--set", "cache.prices=prices.toml", "--set", "cache.model=our-model"];
    let (uncached, dollars, seconds) = cells(&own);
    let (same, unknown, untimed) = cells(&[]);
    for nothing in [unknown, untimed] {
        assert_eq!(nothing, "not_measured");
    }
    assert_eq!(uncached, same, "a price moves no token");
    // One dollar per million tokens in, and more for what the agent wrote.
    let prompts = uncached["tokens"].as_u64().unwrap() as f64;
    let dollars = dollars["dollars"].as_f64().unwrap();
    assert!(dollars > prompts / 1e6 && dollars < 1.5 * prompts / 1e6, "{dollars} {prompts}");
    // A thousand tokens a second, and a second or more for every call.
    let seconds = seconds["seconds"].as_f64().unwrap();
    assert!(seconds > prompts / 1e3 + 20.0, "{seconds}");

    let output = proctor(
        folder.path(),
        &["doctor", "small.toml", "--all", "--set", "cache.prices=prices.toml"],
    );
    let text = stdout(&output);
    let first = text.lines().find(|line| line.contains("2026-01-02")).unwrap();
    assert!(first.contains("prices.toml: ours") && first.contains("a letter"), "{first}");
    assert!(text.contains("prices anthropic.toml: anthropic, 20"), "{text}");
    let output =
        proctor(folder.path(), &["run", "small.toml", "--set", "cache.prices=nowhere.toml"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("nowhere.toml") && said.contains("--set cache.prices"), "{said}");
}

#[test]
fn measured_times_are_shown_where_somebody_asks_and_nowhere_else() {
    let folder = small();
    let run = proctor(folder.path(), &["run", "small.toml", "--out", "run", "-o", "one.full.md"]);
    assert!(run.status.success(), "{run:?}");
    let report = |arguments: &[&str]| {
        let all: Vec<&str> = ["report", "run"].iter().chain(arguments).copied().collect();
        let output = proctor(folder.path(), &all);
        assert!(output.status.success(), "{output:?}");
        stdout(&output)
    };
    let title = "Measured time of the strategies' own code";
    assert!(!report(&[]).contains(title));
    let timed = report(&["--timings", "-o", "two.full.md"]);
    assert!(timed.contains(title), "{timed}");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    for part in [title, "CPU p50", "CPU p95", "CPU total"] {
        assert!(read("two.full.md").contains(part), "{part}");
        assert!(!read("one.full.md").contains(part), "{part}");
    }
    assert!(!timed.contains("waiting "), "no price file says it: {timed}");
    // With a price file it stands beside, in a column of its own.
    fs::write(folder.path().join("prices.toml"), PRICES).unwrap();
    let own = ["--set", "cache.prices=prices.toml", "--set", "cache.model=our-model"];
    let run = ["run", "small.toml", "--window", "40000", "--out", "priced"];
    let run = proctor(folder.path(), &[&run[..], &own].concat());
    assert!(run.status.success(), "{run:?}");
    let priced = ["report", "priced", "--timings", "-o", "priced.full.md"];
    assert!(proctor(folder.path(), &priced).status.success());
    let written = read("priced.full.md");
    let (_, table) = written.split_once(title).unwrap();
    let line = table.lines().find(|line| line.starts_with("| observation-masking")).unwrap();
    let modelled = line.split('|').nth(7).unwrap();
    assert!(modelled.trim().ends_with(" s"), "{line}");
    // A line that was cut off is left out; a damaged one is named.
    let path = folder.path().join("run/timings.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{whole}{{\"session\":")).unwrap();
    assert!(report(&["--timings"]).contains(title));
    fs::write(&path, format!("{{}}\n{whole}")).unwrap();
    let damaged = proctor(folder.path(), &["report", "run", "--timings"]);
    let said = String::from_utf8_lossy(&damaged.stderr).into_owned();
    assert!(said.contains("line 1 is damaged"), "{said}");
}
