//! The examples for build servers, executed step by step as a runner would.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::goldens;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn example(name: &str) -> String {
    fs::read_to_string(root().join("examples/ci").join(name)).unwrap()
}

/// A step of a workflow: its keys, and its script.
#[derive(Debug, Default)]
struct Step {
    keys: BTreeMap<String, String>,
    environment: BTreeMap<String, String>,
}

/// Reads the steps of the small part of YAML that the examples are written in: `- key: value`, blocks
/// behind `|`, and `env:` with a table below.
fn steps(text: &str) -> Vec<Step> {
    let mut lines = text.lines().skip_while(|line| line.trim() != "steps:").skip(1).peekable();
    let mut steps: Vec<Step> = Vec::new();
    let indent = |line: &str| line.len() - line.trim_start().len();
    while let Some(line) = lines.next() {
        let depth = indent(line);
        let mut content = line.trim_start();
        if let Some(rest) = content.strip_prefix("- ") {
            steps.push(Step::default());
            content = rest;
        }
        let Some(step) = steps.last_mut() else {
            continue;
        };
        if content.starts_with('#') {
            continue;
        }
        let (key, value) = content.split_once(':').unwrap();
        let mut block = Vec::new();
        while let Some(next) = lines.peek() {
            let deeper = indent(next) > depth && !next.trim_start().starts_with("- ");
            let nested = value.trim().is_empty() || value.trim() == "|";
            if !(nested && deeper) {
                break;
            }
            block.push(lines.next().unwrap().trim_start().to_owned());
        }
        if key == "env" {
            for line in block {
                let (name, value) = line.split_once(':').unwrap();
                step.environment.insert(name.to_owned(), value.trim().to_owned());
            }
        } else if value.trim() == "|" {
            step.keys.insert(key.to_owned(), block.join("\n"));
        } else {
            step.keys.insert(key.to_owned(), value.trim().to_owned());
        }
    }
    steps
}

/// What a runner puts in place of an expression, for pull request 7.
fn expression(value: &str) -> String {
    match value {
        "${{ github.token }}" => "a-token".to_owned(),
        "${{ github.event.pull_request.number }}" => "7".to_owned(),
        other => {
            assert!(!other.contains("${{"), "{other}");
            other.to_owned()
        }
    }
}

/// A repository as `docs/ci.md` lays it out, with a baseline of main.
struct Repository(TempDir);

impl Repository {
    fn new() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        repository.write("compaction/suite.toml", &example("suite.toml"));
        repository.write("compaction/ours.toml", &example("ours.toml"));
        // What the page says to do once, on main.
        let page = fs::read_to_string(root().join("docs/ci.md")).unwrap();
        let command = page.lines().find(|line| line.contains("--save-baseline")).unwrap();
        let (code, said, _) = repository.sh(&format!("{command} --out main-run"), &BTreeMap::new());
        assert_eq!(code, 0, "{said}");
        // Stands in for GitHub's program: keeps the comment that it is given.
        repository.write("bin/gh", "#!/bin/sh\necho \"$@\" > gh-arguments\n");
        let (code, said, _) = repository.sh("chmod +x bin/gh", &BTreeMap::new());
        assert_eq!(code, 0, "{said}");
        repository
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs a script as a runner does; the exit code, what it said, and the outputs it set.
    fn sh(&self, script: &str, environment: &BTreeMap<String, String>) -> (i32, String, String) {
        let program = Path::new(env!("CARGO_BIN_EXE_proctor")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{}:{path}", self.path("bin").display(), program.display());
        let output = Command::new("bash")
            // A variable that neither the step nor the runner sets is a mistake of the example.
            .args(["-e", "-u", "-o", "pipefail", "-c", script])
            .current_dir(self.0.path())
            .env_remove("PR_NUMBER")
            .envs(environment)
            .env("PATH", path)
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_BASE_REF", "main")
            .env("GITHUB_OUTPUT", self.path("outputs"))
            .env("GITHUB_STEP_SUMMARY", self.path("summary"))
            .env_remove("COLUMNS")
            .output()
            .unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.code().unwrap(), said.into_owned(), self.outputs())
    }

    /// The outputs that the steps set.
    fn outputs(&self) -> String {
        fs::read_to_string(self.path("outputs")).unwrap_or_default()
    }

    /// Runs the steps of the workflow: after a failure only those that run where the gate has a verdict. The first
    /// failure.
    fn workflow(&self, text: &str) -> i32 {
        let mut failed = 0;
        let _ = fs::remove_file(self.path("outputs"));
        let steps = steps(text);
        assert!(
            steps.iter().filter(|step| step.keys.contains_key("run")).count() >= 3,
            "{steps:?}"
        );
        for step in steps {
            let Some(script) = step.keys.get("run") else {
                assert!(step.keys["uses"].starts_with("actions/"), "{step:?}");
                continue;
            };
            let runs = match step.keys.get("if").map(String::as_str) {
                None => failed == 0,
                Some("always() && steps.gate.outputs.verdict != ''") => {
                    self.outputs().contains("verdict=")
                }
                Some(other) => panic!("{other}"),
            };
            if runs {
                let environment = step
                    .environment
                    .iter()
                    .map(|(name, value)| (name.clone(), expression(value)))
                    .collect();
                let (code, said, _) = self.sh(script, &environment);
                println!("{script}\n{said}");
                failed = if failed == 0 { code } else { failed };
            }
        }
        failed
    }
}

fn regressing() -> String {
    example("ours.toml").replace("keep_last = 3", "keep_last = 1")
}

#[test]
fn the_example_workflow_passes_a_change_of_nothing_and_fails_one_for_the_worse() {
    let repository = Repository::new();
    assert_eq!(repository.workflow(&example("workflow.yml")), 0);
    assert!(repository.read("comment.md").starts_with("# ✅ Proctor: non-inferior"));
    repository.write("compaction/ours.toml", &regressing());
    fs::remove_dir_all(repository.path("proctor-run")).unwrap();
    assert_eq!(repository.workflow(&example("workflow.yml")), 100);
    let comment = repository.read("comment.md");
    assert!(comment.starts_with("# ❌ Proctor: regressed"), "{comment}");
    assert!(comment.len() <= 60_000);
    // Each lost fact is named by what was asked and what was right.
    assert!(comment.contains("| What is the "), "{comment}");
    assert_eq!(
        repository.read("gh-arguments").trim(),
        "pr comment 7 --body-file comment.md --edit-last --create-if-none"
    );
    assert!(repository.read("gate.junit.xml").contains("<failure "));
    // The page shows this very comment.
    let page = fs::read_to_string(root().join("docs/ci.md")).unwrap();
    let (before, rest) = page.split_once("<!-- comment: made by a test -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    let shown: Vec<String> = comment
        .lines()
        .take_while(|line| !line.starts_with("## ours: probes"))
        .map(|line| format!("> {line}").trim_end().to_owned())
        .collect();
    let made = format!(
        "{before}<!-- comment: made by a test -->\n{}\n>\n> … and, folded, the facts that changed.\n<!-- end \
         -->{after}",
        shown.join("\n").trim_end_matches("\n>")
    );
    goldens::golden("docs/ci.md", &made);
}

/// Somebody's own repository, their own function in Python, and a change that breaks it.
#[test]
fn the_example_in_python_fails_a_function_that_got_worse() {
    if Command::new("python3").arg("--version").output().is_err() {
        assert!(std::env::var_os("PROCTOR_SHARED_REQUIRED").is_none(), "python3 is missing");
        println!("skipped: there is no python3");
        return;
    }
    let repository = Repository::new();
    let client = fs::read_to_string(root().join("clients/python/proctor_strategy.py")).unwrap();
    repository.write("compaction/proctor_strategy.py", &client);
    repository.write("compaction/ours.py", &example("ours.py"));
    let save = "rm -r compaction/baselines && proctor run compaction/suite.toml \
                --strategy-cmd 'python3 compaction/ours.py' --save-baseline main \
                --baselines compaction/baselines --out python-run";
    let (code, said, _) = repository.sh(save, &BTreeMap::new());
    assert_eq!(code, 0, "{said}");
    assert_eq!(repository.workflow(&example("python.yml")), 0);
    let worse = example("ours.py").replace("KEEP_LAST = 3", "KEEP_LAST = 1");
    repository.write("compaction/ours.py", &worse);
    fs::remove_dir_all(repository.path("proctor-run")).unwrap();
    assert_eq!(repository.workflow(&example("python.yml")), 100);
    let comment = repository.read("comment.md");
    assert!(comment.starts_with("# ❌ Proctor: regressed: ours: lost"), "{comment}");
}

/// Saves every edit of the context for itself: fewer tokens, and a larger bill.
fn at_every_call() -> String {
    example("ours.toml").replace("every = 10", "every = 1")
}

#[test]
fn the_example_gate_asks_for_money_and_facts_and_not_for_tokens() {
    let repository = Repository::new();
    let run = "proctor run compaction/suite.toml --strategy compaction/ours.toml --gate \
               --baselines compaction/baselines --comparison-output c.json --out";
    let verdict = |metric: &str| {
        let json: serde_json::Value = serde_json::from_str(&repository.read("c.json")).unwrap();
        let metrics = json["comparisons"][0]["gated"]["metrics"].clone();
        let metrics = metrics.as_array().unwrap().clone();
        let found = metrics.into_iter().find(|it| it["metric"] == metric);
        found.map(|it| it["verdict"].as_str().unwrap().to_owned())
    };
    repository.write("compaction/ours.toml", &at_every_call());
    let (code, said, _) = repository.sh(&format!("{run} dearer"), &BTreeMap::new());
    assert_eq!(code, 100, "{said}");
    assert_eq!(verdict("bill").as_deref(), Some("regressed"));
    assert_eq!(verdict("tokens"), None);
    // And back again.
    let save = format!("{run} again --save-baseline main").replace("--gate ", "");
    let save = save.replace("--comparison-output c.json ", "");
    let (code, said, _) = repository.sh(&save, &BTreeMap::new());
    assert_eq!(code, 0, "{said}");
    repository.write("compaction/ours.toml", &example("ours.toml"));
    let (code, said, _) = repository.sh(&format!("{run} cheaper"), &BTreeMap::new());
    assert_eq!(code, 0, "{said}");
    assert_eq!(verdict("bill").as_deref(), Some("improved"));
}

#[test]
fn the_example_of_a_base_branch_needs_no_stored_baseline() {
    let repository = Repository::new();
    let commit = "rm -r compaction/baselines main-run && git init -q && git add compaction && \
                  git -c user.name=a -c user.email=a@b commit -q -m a && \
                  git update-ref refs/remotes/origin/main HEAD";
    let (code, said, _) = repository.sh(commit, &BTreeMap::new());
    assert_eq!(code, 0, "{said}");
    repository.write("compaction/ours.toml", &regressing());
    assert_eq!(repository.workflow(&example("base-branch.yml")), 100);
    let comment = repository.read("comment.md");
    assert!(comment.starts_with("# ❌ Proctor: regressed"), "{comment}");
}

#[test]
fn no_example_posts_a_comment_that_its_gate_did_not_write() {
    for name in ["workflow.yml", "python.yml", "base-branch.yml"] {
        let repository = Repository::new();
        repository.write("comment.md", "# ✅ of another gate");
        repository.write("compaction/suite.toml", "no scenario");
        assert_ne!(repository.workflow(&example(name)), 0, "{name}");
        assert!(!repository.path("gh-arguments").exists(), "{name}");
    }
}

#[test]
fn the_gitlab_example_writes_the_results_it_names() {
    let text = example("gitlab-ci.yml");
    let script = text.lines().find_map(|line| line.trim().strip_prefix("- proctor run")).unwrap();
    let repository = Repository::new();
    repository.write("compaction/ours.toml", &regressing());
    let (code, said, _) = repository.sh(&format!("proctor run{script}"), &BTreeMap::new());
    assert_eq!(code, 100, "{said}");
    let junit = text.lines().find_map(|line| line.trim().strip_prefix("junit: ")).unwrap();
    assert!(repository.read(junit).contains("<testsuites name=\"proctor compare --gate\""));
}

/// Runs a step of the action with these inputs, in pull request 7 and with `environment` beside what the step sets;
/// inputs that are not given are empty.
fn action(
    repository: &Repository,
    id: &str,
    inputs: &[(&str, &str)],
    environment: &[(&str, &str)],
) -> (i32, String, String) {
    let text = fs::read_to_string(root().join("action.yml")).unwrap();
    let step = steps(&text).into_iter().find(|step| step.keys["id"] == id).unwrap();
    let value_of = |name: &str| match name {
        "github.token" => "a-token".to_owned(),
        "github.event.pull_request.number" => "7".to_owned(),
        "github.action_repository" => "owner/proctor".to_owned(),
        "github.action_path" => root().display().to_string(),
        "steps.install.outputs.proctor" => "proctor".to_owned(),
        "steps.gate.outputs.verdict" => {
            let outputs = repository.outputs();
            let verdict = outputs.lines().find_map(|line| line.strip_prefix("verdict="));
            verdict.unwrap_or_default().to_owned()
        }
        input => {
            let input = input.strip_prefix("inputs.").unwrap();
            assert!(text.contains(&format!("\n  {input}:\n")), "{input}");
            let given = inputs.iter().find(|(name, _)| *name == input);
            given.map_or(String::new(), |(_, value)| (*value).to_owned())
        }
    };
    let mut all: BTreeMap<String, String> = step
        .environment
        .iter()
        .map(|(name, value)| {
            let expression = value.strip_prefix("${{ ").unwrap();
            let expression = expression.strip_suffix(" }}").unwrap();
            let mut values = expression.split(" || ").map(value_of);
            let value = values.find(|value| !value.is_empty()).unwrap_or_default();
            (name.clone(), value)
        })
        .collect();
    let runner = [
        ("RUNNER_TEMP", repository.0.path().to_str().unwrap()),
        ("RUNNER_OS", "Linux"),
        ("RUNNER_ARCH", "X64"),
        ("GITHUB_REPOSITORY", "someone/theirs"),
    ];
    for (name, value) in runner.iter().chain(environment) {
        all.insert((*name).to_owned(), (*value).to_owned());
    }
    repository.sh(&step.keys["run"], &all)
}

const GATE: [(&str, &str); 6] = [
    ("scenario", "compaction/suite.toml"),
    ("baseline", "main"),
    ("baselines", "compaction/baselines"),
    ("strategy", "compaction/ours.toml"),
    ("comment", "c.md"),
    ("junit", "c.junit.xml"),
];

#[test]
fn the_action_gates_and_sets_its_outputs() {
    let repository = Repository::new();
    repository.write("compaction/ours.toml", &regressing());
    let (code, said, outputs) = action(&repository, "gate", &GATE, &[]);
    assert_eq!(code, 100, "{said}");
    let text = fs::read_to_string(root().join("action.yml")).unwrap();
    for name in ["verdict", "metric", "delta", "ci_low"] {
        assert!(text.contains(&format!("steps.gate.outputs.{name} ")), "{name}");
        assert!(outputs.contains(&format!("{name}=")), "{outputs}");
    }
    assert!(repository.read("c.md").starts_with("# ❌"));
}

/// GitHub's program with the comments of a pull request in a folder: its `--jq` knows one question, the comments that
/// begin with a marker.
const COMMENTS: &str = r#"#!/bin/bash
test "$GH_TOKEN" = a-token && test ! -e read-only || exit 1
mkdir -p comments
all=$*
body=${all##*body=@}
case $all in
  *"--paginate repos/someone/theirs/issues/7/comments --jq "*)
    grep -slF "$(grep -o '<!--.*-->' <<<"$all")" comments/* | xargs -r -n 1 basename ;;
  *"--method POST repos/someone/theirs/issues/7/comments -F body=@"*)
    cp "$body" "comments/$(($(ls comments | wc -l)))" ;;
  *"--method PATCH repos/someone/theirs/issues/comments/"*)
    id=${all##*issues/comments/}
    id=${id%% *}
    test -e "comments/$id" && cp "$body" "comments/$id" ;;
  *) exit 2 ;;
esac
"#;

/// The comments of the pull request, without their markers.
fn posted(repository: &Repository) -> Vec<String> {
    let texts = (0..).map_while(|number| {
        let text = fs::read_to_string(repository.path(&format!("comments/{number}"))).ok()?;
        Some(text.split_once("-->\n").unwrap().1.to_owned())
    });
    texts.collect()
}

#[test]
fn the_action_posts_one_comment_for_each_gate_and_updates_it() {
    let repository = Repository::new();
    repository.write("bin/gh", COMMENTS);
    let comment = |strategy: &str, text: &str| {
        repository.write("c.md", text);
        repository.write("outputs", "verdict=regressed\n");
        let inputs = [("scenario", "s.toml"), ("strategy", strategy), ("comment", "c.md")];
        let (code, said, _) = action(&repository, "comment", &inputs, &[]);
        assert_eq!(code, 0, "{said}");
        said
    };
    let posted = || posted(&repository);
    assert_eq!(comment("ours", "worse"), "");
    assert_eq!(comment("theirs", "same"), "");
    assert_eq!(comment("ours", "better"), "");
    assert_eq!(posted(), ["better", "same"]);
    // A token that may only read: a notice, and no failure.
    repository.write("read-only", "");
    assert!(comment("ours", "again").starts_with("::notice::no comment was posted"));
    assert_eq!(posted(), ["better", "same"]);
}

#[cfg(unix)]
#[test]
fn the_action_posts_the_comment_of_its_own_gate_or_none() {
    let repository = Repository::new();
    repository.write("bin/gh", COMMENTS);
    let put = |name: &str, is_link: bool| {
        let _ = fs::remove_file(repository.path(name));
        if is_link {
            std::os::unix::fs::symlink("theirs", repository.path(name)).unwrap();
        } else {
            repository.write(name, "# ✅ of another gate");
        }
    };
    repository.write("theirs", "# ✅ of another gate");
    for is_link in [false, true] {
        put("c.md", is_link);
        put("c.junit.xml", is_link);
        repository.write("compaction/suite.toml", "no scenario");
        // The program that would remove them as well does not start.
        let inputs = [&GATE[..], &[("proctor", "no-such-program")]].concat();
        for inputs in [&GATE[..], &inputs] {
            let (code, said, _) = action(&repository, "gate", inputs, &[]);
            assert_ne!(code, 0, "{said}");
            let (code, said, _) = action(&repository, "comment", inputs, &[]);
            assert_eq!(code, 0, "{said}");
            assert!(said.starts_with("::notice::there is no comment"), "{said}");
            assert_eq!(posted(&repository), [""; 0]);
            for name in ["c.md", "c.junit.xml"] {
                assert!(repository.path(name).symlink_metadata().is_err(), "{name}");
                put(name, is_link);
            }
        }
        assert_eq!(repository.read("theirs"), "# ✅ of another gate");
    }
    repository.write("compaction/suite.toml", &example("suite.toml"));
    fs::create_dir(repository.path("proctor-run")).unwrap();
    repository.write("proctor-run/run.json", "of another gate");
    assert_eq!(action(&repository, "gate", &GATE, &[]).0, 0);
    assert_eq!(action(&repository, "comment", &GATE, &[]).1, "");
    assert_eq!(posted(&repository), [repository.read("c.md")]);
}

/// Serves the files of a folder until the test ends; the URL.
fn serve(folder: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request: Vec<String> = BufReader::new(&stream)
                .lines()
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let path = request[0].split(' ').nth(1).unwrap();
            let file = fs::read(folder.join(path.trim_start_matches('/')));
            let status = if file.is_ok() { 200 } else { 404 };
            let body = file.unwrap_or_default();
            let head = format!(
                "HTTP/1.1 {status} -\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(&[head.as_bytes(), &body].concat());
        }
    });
    url
}

#[test]
fn the_action_installs_the_program_of_a_release_whose_sum_is_right() {
    let repository = Repository::new();
    repository.write("bin/cargo", "#!/bin/sh\necho \"$@\" > cargo-arguments\n");
    let pack = "chmod +x bin/cargo; cd server/owner/proctor/releases/download/v7.0.0
        name=proctor-bench-7.0.0-linux-x64; chmod +x $name/proctor; tar -czf $name.tar.gz $name
        (sha256sum $name.tar.gz || shasum -a 256 $name.tar.gz) > SHA256SUMS";
    let release = "server/owner/proctor/releases/download/v7.0.0";
    let program = format!("{release}/proctor-bench-7.0.0-linux-x64/proctor");
    repository.write(&program, "#!/bin/sh\necho released\n");
    let (code, said, _) = repository.sh(pack, &BTreeMap::new());
    assert_eq!(code, 0, "{said}");
    let url = serve(repository.path("server"));
    let install = |version: &str| {
        let _ = fs::remove_file(repository.path("outputs"));
        let server = [("GITHUB_SERVER_URL", url.as_str())];
        action(&repository, "install", &[("version", version)], &server)
    };
    let (code, said, outputs) = install("v7.0.0");
    assert_eq!((code, said.as_str()), (0, ""));
    let program = outputs.trim().strip_prefix("proctor=").unwrap();
    let output = Command::new(program).output().unwrap();
    assert_eq!(output.stdout, b"released\n");
    // Without a release, the version is built: that of the action from its own source.
    let (code, said, outputs) = install("");
    assert_eq!(code, 0, "{said}");
    let version = env!("CARGO_PKG_VERSION");
    assert!(said.contains(&format!("/releases/download/v{version}:")));
    assert!(outputs.trim().ends_with("/bin/proctor"), "{outputs}");
    let arguments = repository.read("cargo-arguments");
    assert!(arguments.trim().ends_with(&format!("--path {}", root().display())), "{arguments}");
    assert_eq!(install("7.0.1").0, 0);
    let arguments = repository.read("cargo-arguments");
    assert!(arguments.trim().ends_with(" proctor-bench@7.0.1"), "{arguments}");
    // Another file than the one that was released is no reason to build: somebody put it there.
    repository.write(&format!("{release}/SHA256SUMS"), "00  proctor\n");
    let (code, said, outputs) = install("7.0.0");
    assert_eq!((code, outputs.as_str()), (1, ""));
    assert!(said.starts_with("::error::"), "{said}");
}
