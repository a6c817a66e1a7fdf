//! The tasks for agents, their runner and attacks on it: `examples/tasks/`.

use std::path::Path;
use std::process::Command;

/// Runs one class or test of `test_tasks.py`; says `skipped` where there is no Python that reads TOML.
#[track_caller]
fn check(name: &str) {
    let reads_toml = Command::new("python3").args(["-c", "import tomllib"]).output();
    if !reads_toml.is_ok_and(|output| output.status.success()) {
        assert!(
            std::env::var_os("PROCTOR_SHARED_REQUIRED").is_none(),
            "python3 of 3.11 or later is missing"
        );
        println!("skipped: there is no python3 of 3.11 or later");
        return;
    }
    let tasks = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/tasks");
    let output = Command::new("python3")
        .args(["-B", "test_tasks.py", name])
        .current_dir(tasks)
        .env("PROCTOR", env!("CARGO_BIN_EXE_proctor"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn tasks_are_solved_by_their_solutions_and_not_before() {
    check("Tasks");
}

#[test]
fn the_agent_reads_and_writes_files_of_its_repository_alone() {
    check("Files");
}

#[cfg(feature = "http")]
#[test]
fn the_table_says_which_strategy_solves_which_task() {
    check("Runner.test_the_table_says_which_strategy_solves_which_task");
}

#[cfg(feature = "http")]
#[test]
fn tasks_go_on_after_a_kill() {
    check("Runner.test_goes_on_after_a_kill");
}

#[cfg(feature = "http")]
#[test]
fn problems_of_the_runner_are_said_and_no_tracebacks() {
    check("Runner.test_problems_are_said_and_no_tracebacks");
}

#[cfg(feature = "http")]
#[test]
fn a_trial_without_an_api_has_no_score_and_is_run_again() {
    check("Runner.test_a_trial_without_an_api_has_no_score_and_is_run_again");
}

#[cfg(feature = "http")]
#[test]
fn a_trial_that_fails_is_that_trials_outcome() {
    check("Runner.test_a_trial_that_fails_is_that_trials_outcome");
}
