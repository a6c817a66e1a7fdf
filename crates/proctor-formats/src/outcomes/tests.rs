//! Files of each harness, whole and damaged.

use std::io::Write as _;

use super::*;

/// Reads a file with this content, and prints its outcomes, or the error, without the path.
#[track_caller]
fn check(content: impl AsRef<[u8]>, expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, content).unwrap();
    let shown = match read(&path).and_then(merge) {
        Ok((outcomes, _)) => {
            let each = outcomes.iter().map(|outcome| {
                let strategy = outcome.strategy.as_deref().unwrap_or("any");
                let score = match &outcome.score {
                    Ok(score) => score.to_string(),
                    Err(why) => format!("({why})"),
                };
                let unread: String =
                    outcome.unread.iter().flat_map(|what| [" [", what, "]"]).collect();
                let (task, trial) = (&outcome.task, outcome.trial);
                format!("{task} {strategy} {trial} {score}{unread}")
            });
            each.collect::<Vec<_>>().join(", ")
        }
        Err(error) => error.to_string(),
    };
    assert_eq!(shown.replace(&*path.to_string_lossy(), "FILE"), expected);
}

/// A trial of Harbor.
fn trial(rest: &str) -> String {
    format!(r#"{{"task_name": "org/Name", "trial_name": "name__x7", "more": [], {rest}}}"#)
}

#[test]
fn lines_of_our_own_are_read() {
    check(
        "{\"task\": \"a\", \"score\": 1}\n\n{\"task\": \"b\", \"strategy\": \"codex\", \"trial\": 2, \"score\": 0.5, \"why\": {}}\n",
        "a any 0 1, b codex 2 0.5",
    );
    check(r#"{"task": "a", "repeat": 1, "score": 1}"#, "a any 1 1");
    check(r#"{"task": "a", "score": 7}"#, "`FILE`:1: a score is from 0 to 1, not 7");
    check(
        "{\"task\": \"a\", \"score\": 1}\n{\"task\": \"a\", \"trial\": 10000, \"score\": 1}",
        "`FILE`:2: a trial is a number from 0 to 9999",
    );
    check(
        "{\"task\": \"a\", \"score\": 1}\n{\"task\"",
        "`FILE`:2: EOF while parsing an object at line 1 column 7",
    );
    check(r#"{"task": "a", "strategy": 1, "score": true}"#, "a 1 0 1");
    check(
        r#"{"task": "a", "strategy": ["none"], "score": 1}"#,
        r#"`FILE`:1: a strategy is a name or a number, not `["none"]`"#,
    );
    check(
        r#"{"task": "a", "score": "good"}"#,
        r#"a any 0 ("score" is `\"good\"`, which is no score)"#,
    );
    let busy = r#"{"task": "a", "score": null, "error": "429"}"#;
    check(busy, "a any 0 (429)");
    // A score counts, whatever else is said.
    for (rest, expected) in [
        (r#""score": 0, "error": "it crashed""#, "0"),
        (r#""score": 1, "error": """#, "1"),
        (r#""score": 1, "error": false"#, "1"),
        (r#""score": 1, "error": {"code": 1}"#, "1"),
        (r#""score": -1, "error": "late""#, "(late)"),
        (r#""score": null, "error": {"code": 1}"#, r#"({"code":1})"#),
        (r#""score": null, "error": """#, r#"("score" is `null`, which is no score)"#),
    ] {
        check(format!(r#"{{"task": "a", {rest}}}"#), &format!("a any 0 {expected}"));
    }
    // It was run again.
    check(format!("{busy}\n{{\"task\": \"a\", \"score\": 1}}"), "a any 0 1");
}

#[test]
fn two_scores_for_one_trial_are_an_error() {
    let twice = "task `a` has two scores for one trial: 1 in `FILE`:1, and 0 in `FILE`:2";
    let [first, second] = [r#""score": 1"#, r#""score": 0"#];
    check(format!("{{\"task\": \"a\", {first}}}\n{{\"task\": \"a\", {second}}}"), twice);
    check(
        format!("{{\"task\": \"a\", {first}}}\n{{\"task\": \"a\", \"trial\": 1, {second}}}"),
        "a any 0 1, a any 1 0",
    );
}

#[test]
fn trials_of_harbor_are_read() {
    check(trial(r#""verifier_result": {"rewards": {"reward": 1.0}}"#), "org-name any 0 1");
    check(
        trial(r#""verifier_result": {"rewards": {"style": 0.2, "reward": 0}}"#),
        "org-name any 0 0",
    );
    check(
        trial(
            r#""verifier_result": {"rewards": {"a": 0.5}}, "config": {"agent": {"base_url": "http://10.0.0.1:8787/s/codex/r/2"}}"#,
        ),
        "org-name codex 2 0.5",
    );
    check(
        trial(
            r#""exception_info": {"exception_type": "AgentTimeoutError"}, "config": {"agent": {"env": {"ANTHROPIC_BASE_URL": "http://h:1/s/1/v1"}}}"#,
        ),
        "org-name 1 0 0",
    );
    check(
        trial(r#""verifier_result": null, "exception_info": null"#),
        "`FILE` has no outcome of a task",
    );
    let failed = |kind: &str, is_valid: bool, rewards: &str| {
        trial(&format!(
            r#""verifier_result": {rewards}, "exception_info": {{"exception_type": "{kind}", "exception_message": "…",
               "policy": {{"has_valid_reward": {is_valid}}}}}"#
        ))
    };
    // Harbor itself says which rewards mean nothing.
    let none = r#"{"rewards": {"reward": 0}}"#;
    check(failed("ApiRateLimitError", false, none), "org-name any 0 (ApiRateLimitError: …)");
    check(failed("AgentTimeoutError", true, none), "org-name any 0 0");
    check(failed("AgentTimeoutError", true, "null"), "org-name any 0 0");
    check(
        trial(
            r#""verifier_result": {"rewards": {"reward": 1}}, "step_results": [{"exception_info": {"exception_type": "Timeout",
               "policy": {"has_valid_reward": false}}}]"#,
        ),
        "org-name any 0 (Timeout: )",
    );
    check(
        trial(r#""verifier_result": {"rewards": {"reward": {"x": 1}}}"#),
        r#"org-name any 0 ("reward" is `{\"x\": 1}`, which is no score)"#,
    );
    check(
        trial(r#""verifier_result": {"rewards": {"a\u001b": 1, "b": 0}}"#),
        "`FILE`: trial \"name__x7\": two scores for one trial: \"a\\u{1b}\" is 1, and \"b\" 0",
    );
    // The result of the whole job.
    check(
        r#"{"id": "x", "stats": {"evals": {}}, "n_total_trials": 3}"#,
        "`FILE` has no outcome of a task",
    );
}

#[test]
fn reports_of_swe_bench_are_read() {
    check(
        r#"{"django__django-1": {"patch_exists": true, "resolved": true}, "sympy__sympy-2": {"resolved": false}}"#,
        "django__django-1 any 0 1, sympy__sympy-2 any 0 0",
    );
    check(
        r#"{"total_instances": 5, "resolved_ids": ["a__1"], "unresolved_ids": ["b__2"], "empty_patch_ids": ["c__3"],
            "error_ids": ["d__4"], "incomplete_ids": ["e__5"], "schema_version": 2}"#,
        "a__1 any 0 1, b__2 any 0 0, c__3 any 0 0, d__4 any 0 0",
    );
}

/// A log of inspect.
fn log(samples: &str) -> String {
    format!(r#"{{"version": 2, "status": "success", "eval": {{}}, "samples": [{samples}]}}"#)
}

#[test]
fn logs_of_inspect_are_read() {
    check(
        log(
            r#"{"id": "x", "epoch": 1, "scores": {"match": {"value": "C"}}}, {"id": 7, "epoch": 2, "scores": {"match": {"value": 0.25}}},
               {"id": "late", "epoch": 1, "error": {"message": "…"}}, {"id": "unscored", "epoch": 1}"#,
        ),
        "7 any 1 0.25, late any 0 (…), x any 0 1",
    );
    check(
        log(
            r#"{"id": "x", "epoch": 1, "scores": {"a": {"value": {"f1": 1}}, "b": {"value": true}}}, {"id": "y", "scores": {"a": {"value": [1]}}}"#,
        ),
        r#"x any 0 1 ["a" is `{\"f1\": 1}`, which is no score], y any 0 ("a" is `[1]`, which is no score)"#,
    );
    check(
        log(r#"{"id": "x", "epoch": 1, "scores": {"a": {"value": "C"}, "b": {"value": "I"}}}"#),
        "`FILE`: sample \"x\", epoch 1: two scores for one trial: \"a\" is 1, and \"b\" 0",
    );
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in [
        ("header.json", r#"{"eval": {}}"#),
        ("samples/x_epoch_1.json", r#"{"id": "x", "epoch": 1, "scores": {"a": {"value": "I"}}}"#),
    ] {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    check(archive.finish().unwrap().into_inner(), "x any 0 0");
}

#[test]
fn what_is_no_result_is_refused() {
    check("", "`FILE` has no outcome of a task");
    check("{}", "`FILE` has no outcome of a task");
    check("[1]", "`FILE`:1: invalid type: integer `1`, expected a string at line 1 column 2");
    let deep = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    check(deep, "`FILE` has no outcome of a task");
}

#[test]
fn attempts_at_one_base_url_have_the_mean_of_their_scores() {
    let folder = tempfile::tempdir().unwrap();
    for (attempt, reward) in [("a", 1), ("b", 0), ("c", 0), ("d", 1)] {
        let text = format!(
            r#"{{"task_name": "t", "trial_name": "t__{attempt}", "verifier_result": {{"rewards": {{"reward": {reward}}}}}}}"#
        );
        write(folder.path(), &format!("{attempt}/result.json"), &text);
    }
    let (merged, several) = merge(read(folder.path()).unwrap()).unwrap();
    let scores: Vec<_> = merged.into_iter().map(|one| one.score).collect();
    assert_eq!((scores, several), (vec![Ok(0.5)], 1));
    // The same job read twice.
    let twice = [(); 2].map(|()| read(folder.path()).unwrap()).concat();
    let error = merge(twice).unwrap_err().to_string();
    assert!(error.contains("two scores for one trial"), "{error}");
    // An attempt that did not run is in the bill too: it is told of, and told of once.
    let late = TrialOutcome {
        attempt: Some("t__e".to_owned()),
        ..TrialOutcome::new("t", 0, Err("late".to_owned()), "")
    };
    let mut all = read(folder.path()).unwrap();
    all.extend([late.clone(), late.clone()]);
    let (merged, several) = merge(all).unwrap();
    let scores: Vec<_> = merged.into_iter().map(|one| one.score).collect();
    assert_eq!((scores, several), (vec![Ok(0.5), late.score.clone()], 1));
    let again = TrialOutcome { score: Ok(1.0), ..late.clone() };
    assert_eq!(merge(vec![late, again.clone()]).unwrap(), (vec![again], 0));
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn results_below_a_folder_are_read_and_other_files_are_not() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "result.json", r#"{"id": "x", "stats": {}}"#);
    write(
        folder.path(),
        "a__1/result.json",
        &trial(r#""verifier_result": {"rewards": {"reward": 1}}"#),
    );
    write(folder.path(), "a__1/agent/trajectory.json", "no JSON");
    write(folder.path(), "a__1/agent/log.txt", "words");
    let outcomes = read(folder.path()).unwrap();
    assert_eq!(outcomes.len(), 1);
    std::fs::remove_dir_all(folder.path().join("a__1")).unwrap();
    let error = read(folder.path()).unwrap_err();
    assert!(matches!(error, OutcomeError::None(_)), "{error}");
}

#[test]
fn prompts_of_tasks_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let prompt = "Fix the parser\n  of dates, please.\n";
    write(folder.path(), "a__1/instruction.md", prompt);
    write(folder.path(), "B/instruction.md", prompt);
    write(folder.path(), "B/task.toml", "[task]\nname = \"org/other\"\n");
    write(folder.path(), "c/instruction.md", "Short");
    write(
        folder.path(),
        "lines.jsonl",
        r#"{"instance_id": "x__2", "problem_statement": "It prints the wrong date.", "patch": ""}"#,
    );
    let found = prompts(folder.path()).unwrap();
    let words = "Fix the parser of dates, please.".to_owned();
    assert_eq!(found, [("org-other".to_owned(), words.clone()), ("a__1".to_owned(), words)]);
    let found = prompts(&folder.path().join("lines.jsonl")).unwrap();
    assert_eq!(found, [("x__2".to_owned(), "It prints the wrong date.".to_owned())]);
    prompts(&folder.path().join("c")).unwrap_err();
}
