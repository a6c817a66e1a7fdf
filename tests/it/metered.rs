//! What a run is billed by a provider that meters as its documents say, against what `plan` foresaw.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use proctor::model::cassette;
use proctor::units::Tokens;
use serde_json::Value;

use crate::live::server::{Reply, Server};
use provider::{Billed, Provider};

mod provider;

/// List prices of the two models, in dollars per million tokens: input, written, read, output.
const OPENAI: (&str, [f64; 4]) = ("gpt-5.4-mini", [0.75, 0.0, 0.075, 4.5]);
const ANTHROPIC: (&str, [f64; 4]) = ("claude-opus-4-8", [5.0, 6.25, 0.5, 25.0]);

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proctor"));
    command
        .current_dir(folder)
        .env_remove("PROCTOR_WINDOW")
        .env_remove("PROCTOR_SEED")
        .env("PROCTOR_COUNTER", "chars/4")
        .args(arguments);
    command
}

#[track_caller]
fn proctor(folder: &Path, arguments: &[&str]) -> Output {
    let output = command(folder, arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    output
}

fn metering(provider: &Arc<Provider>) -> Server {
    let provider = provider.clone();
    Server::routing(move |head, body| provider.answer(head, body))
}

/// A model as a scenario names it, at this server.
fn model(kind: &str, server: &Server) -> String {
    let (name, path) = match kind {
        "openai" => (OPENAI.0, "/v1"),
        _ => (ANTHROPIC.0, ""),
    };
    let url = server.base_url() + path;
    format!("{{ kind = '{kind}', model = '{name}', base_url = '{url}' }}")
}

fn dollars(kind: &str, billed: &[Billed]) -> f64 {
    let (_, [input, written, read, output]) = if kind == "openai" { OPENAI } else { ANTHROPIC };
    let cost = |bill: &Billed| {
        let whole = bill.input as f64 * input
            + bill.written as f64 * written
            + bill.read as f64 * read
            + bill.output as f64 * output;
        whole / if bill.in_batch { 2e6 } else { 1e6 }
    };
    billed.iter().map(cost).sum()
}

fn foreseen(folder: &Path, scenario: &str, figure: &str) -> f64 {
    let plan = proctor(folder, &["run", "--dry-run", scenario, "--json"]);
    let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
    let dollars = plan["spend"][figure]["expected"].as_f64();
    dollars.unwrap_or_else(|| panic!("{}", plan["spend"]))
}

#[track_caller]
fn holds(what: &str, foreseen: f64, billed: f64) {
    let share = foreseen / billed;
    println!("{what}: foreseen ${foreseen:.4}, billed ${billed:.4}, {share:.3}");
    assert!((0.85..=1.15).contains(&share), "{what}: foreseen ${foreseen:.4}, billed ${billed:.4}");
}

/// Plans and runs a scenario at both providers; `models` is what stands behind the reader.
#[track_caller]
fn check(name: &str, scenario: &str, models: &dyn Fn(&str) -> String) {
    for kind in ["openai", "anthropic"] {
        let folder = tempfile::tempdir().unwrap();
        let provider = Arc::new(Provider::default());
        let server = metering(&provider);
        let model = model(kind, &server);
        let text = format!(
            "name = '{name}'\ncounter = 'chars/4'\n{scenario}\n[models]\nreader = {model}\n{}\n",
            models(&model)
        );
        fs::write(folder.path().join("s.toml"), text).unwrap();
        let expected = foreseen(folder.path(), "s.toml", "dollars");
        proctor(folder.path(), &["run", "s.toml", "-y", "--anyway", "--out", "run"]);
        let billed = provider.billed();
        let read: u64 = billed.iter().map(|bill| bill.read).sum();
        assert!(read > 0, "{name} at {kind}: nothing was cached");
        holds(&format!("{name} at {kind}"), expected, dollars(kind, &billed));
    }
}

fn sessions(family: &str, tokens: u32, count: u32) -> String {
    format!(
        "[window]\nmode = 'fit'\nfraction = 0.6\n[[sessions]]\nsynthetic = {{ family = '{family}', \
         seed = 3, tokens = {tokens} }}\ncount = {count}\n"
    )
}

fn strategies(names: &[&str]) -> String {
    let one = |name: &&str| format!("[[strategies]]\npreset = '{name}'\n");
    names.iter().map(one).collect()
}

#[test]
fn a_plan_foresees_what_is_billed_for_questions_at_four_points() {
    let scenario = sessions("code-review", 16_000, 2)
        + &strategies(&["observation-masking", "tail@4000"])
        + "[probes]\nitems = 40\n";
    check("points", &scenario, &|_| String::new());
}

#[test]
fn a_plan_foresees_what_is_billed_where_every_answer_is_judged() {
    let scenario = sessions("debugging", 16_000, 1)
        + &strategies(&["none", "learn-claude-code-s06"])
        + "[probes]\npoints = [50, 100]\n";
    check("judged", &scenario, &|model| format!("judge = {model}\njudging = 'all'"));
}

#[test]
fn a_plan_foresees_what_is_billed_where_a_model_summarises() {
    let scenario = sessions("feature-phases", 16_000, 1)
        + &strategies(&["codex", "observation-masking"])
        + "[probes]\npoints = [100]\nitems = 30\n";
    check("summarised", &scenario, &|model| format!("summariser = {model}"));
}

#[test]
fn a_plan_foresees_what_is_billed_for_several_answers_and_repeats() {
    let scenario = "repeats = 2\n".to_owned()
        + &sessions("policy-support", 12_000, 1)
        + &strategies(&["tail@4000"])
        + "[probes]\npoints = [75, 100]\nitems = 24\n";
    check("repeated", &scenario, &|_| "answers = 2\nqualify = false".to_owned());
}

#[test]
fn a_plan_foresees_what_is_billed_for_few_questions_of_one_kind() {
    let scenario = sessions("teaching", 16_000, 2)
        + &strategies(&["observation-masking", "none", "tail@3000"])
        + "[probes]\nkinds = ['recall', 'decoy', 'update']\nitems = 12\n";
    check("few", &scenario, &|_| String::new());
}

#[test]
fn questions_of_one_prompt_are_under_way_at_once_behind_the_first_and_recorded_in_order() {
    let scenario = |server: &Server, at_once: usize| {
        format!(
            "name = 'many'\ncounter = 'chars/4'\n[[sessions]]\nsynthetic = {{ family = 'code-review', \
             seed = 1, tokens = 30000, fact_percent = 300 }}\n[[strategies]]\npreset = 'none'\n[probes]\npoints = [100]\n\
             [models]\nreader = {}\n[models.pace]\nat_once = {at_once}\n",
            model("openai", server)
        )
    };
    // What is answered depends on the question alone, and some answers are no answers.
    let play = |body: &str| {
        let length = body.len() % 7;
        match length {
            0 => Reply::openai("", 100, 1),
            1 => Reply::status(400, "{}"),
            _ => Reply::openai(&"word ".repeat(length), 100, 5),
        }
    };
    let recorded = |server: &Server, at_once: usize| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("s.toml"), scenario(server, at_once)).unwrap();
        let arguments = ["run", "s.toml", "-y", "--anyway", "-j", "1", "--out", "run"];
        let output = command(folder.path(), &arguments).output().unwrap();
        let cells = fs::read_to_string(folder.path().join("run/cells.jsonl"));
        cells.unwrap_or_else(|_| panic!("{output:?}"))
    };
    let held = Server::holding(64, play);
    let at_once = recorded(&held, 64);
    assert_eq!(held.most_at_once(), 64);
    // The prompt is in the cache before any other question of it is sent.
    let requests = held.requests();
    assert!(requests.len() > 128, "{}", requests.len());
    let one_by_one = Server::answering(play);
    assert_eq!(at_once, recorded(&one_by_one, 1));
    assert_eq!(one_by_one.most_at_once(), 1);
    assert_eq!(requests.len(), one_by_one.requests().len());
    assert_eq!(requests[0].body, one_by_one.requests()[0].body);
}

/// Runs in batches, and is killed while the first of them is under way.
#[track_caller]
fn check_batch(kind: &str) {
    let scenario = |server: &Server, judged: bool| {
        let model = model(kind, server);
        let judge =
            if judged { format!("judge = {model}\njudging = 'all'\n") } else { String::new() };
        format!(
            "name = 'batch'\ncounter = 'chars/4'\n{}{}[probes]\npoints = [100]\nitems = 20\n\
             [models]\nreader = {model}\n{judge}",
            sessions("code-review", 12_000, 1),
            strategies(&["tail@3000"])
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let provider = Arc::new(Provider::patient(1));
    let server = metering(&provider);
    fs::write(folder.path().join("s.toml"), scenario(&server, true)).unwrap();
    let expected = foreseen(folder.path(), "s.toml", "batch_dollars");
    let arguments = ["run", "s.toml", "-y", "--anyway", "--batch", "--out", "run"];
    let mut killed = command(folder.path(), &arguments);
    let mut killed = killed.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let since = Instant::now();
    while provider.polls() == 0 && since.elapsed() < Duration::from_mins(2) {
        std::thread::sleep(Duration::from_millis(10));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(provider.batches(), 1);
    assert_eq!(provider.billed().len(), 0, "nothing was asked by itself");
    // The second run takes the answers of the first one's batch, and sends one for the verdicts.
    let output = proctor(folder.path(), &arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("waiting for batch batch_0"), "{said}");
    assert_eq!(provider.batches(), 2, "{said}");
    let billed = provider.billed();
    assert!(billed.iter().all(|bill| bill.in_batch && bill.read + bill.written == 0));
    holds(&format!("batch at {kind}"), expected, dollars(kind, &billed));
    // What came in batches is what is answered one by one.
    let cells = fs::read_to_string(folder.path().join("run/cells.jsonl")).unwrap();
    proctor(folder.path(), &["run", "s.toml", "--offline", "--out", "run"]);
    let answered = cells.matches("\"not in context\"").count();
    assert!(answered > 20, "{answered}");
    let before = provider.billed().len();
    // The next run, of another strategy, finds the answers that qualify its questions.
    let text = scenario(&server, false).replace("tail@3000", "observation-masking");
    fs::write(folder.path().join("other.toml"), text).unwrap();
    proctor(folder.path(), &["run", "other.toml", "-y", "--anyway", "--out", "other"]);
    let other = fs::read_to_string(folder.path().join("other/cassette.jsonl")).unwrap();
    let of = |purpose: &str| other.matches(&format!("\"purpose\":\"{purpose}\"")).count();
    let asked = provider.billed().len() - before;
    assert!(of("qualification") > 0);
    assert_eq!(asked, of("probe"), "qualifying answers are not asked again");
}

#[test]
fn a_run_in_openai_batches_goes_on_behind_a_kill_and_pays_what_was_planned() {
    check_batch("openai");
}

#[test]
fn a_run_in_anthropic_batches_goes_on_behind_a_kill_and_pays_what_was_planned() {
    check_batch("anthropic");
}

/// A run that ends before it knows whether its batch was taken.
#[track_caller]
fn check_taken_batch(kind: &str) {
    let folder = tempfile::tempdir().unwrap();
    let provider = Arc::new(Provider::default());
    let lists = Arc::new(AtomicBool::new(true));
    let (behind, is_listing) = (provider.clone(), lists.clone());
    let server = Server::routing(move |head, body| {
        if head.contains("/batches?") && !is_listing.load(Ordering::SeqCst) {
            return Reply::status(404, "{}");
        }
        behind.answer(head, body)
    });
    let text = format!(
        "counter = 'chars/4'\n{}{}[models]\nreader = {}\ncassette = 'c.jsonl'\n",
        sessions("code-review", 8_000, 1),
        strategies(&["tail@3000"]),
        model(kind, &server)
    );
    fs::write(folder.path().join("s.toml"), text).unwrap();
    let run = |out: &str| {
        let arguments = ["run", "s.toml", "-y", "--anyway", "--batch", "--out", out];
        let output = command(folder.path(), &arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let tape = folder.path().join("c.jsonl");
    assert_eq!(run("whole").0, Some(0));
    let cassette = fs::read(&tape).unwrap();
    let lines = fs::read_to_string(folder.path().join("whole/batches.jsonl")).unwrap();
    provider.take_anothers();
    // What a run leaves that was killed while its batch was sent.
    let killed = |out: &str| {
        fs::remove_file(&tape).unwrap();
        fs::create_dir(folder.path().join(out)).unwrap();
        let intent = lines.split_inclusive('\n').next().unwrap();
        fs::write(folder.path().join(out).join("batches.jsonl"), intent).unwrap();
    };
    killed("found");
    let (code, said) = run("found");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("waiting for batch batch_0"), "{said}");
    assert_eq!(provider.batches(), 2, "{said}");
    assert!(fs::read(&tape).unwrap() == cassette);
    // Where that cannot be found out, no batch is sent until the user says so.
    killed("unknown");
    lists.store(false, Ordering::SeqCst);
    let (code, said) = run("unknown");
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("may have been sent"), "{said}");
    assert_eq!(provider.batches(), 2, "{said}");
    fs::write(folder.path().join("unknown/batches.jsonl"), "").unwrap();
    let (code, said) = run("unknown");
    assert_eq!((code, provider.batches()), (Some(0), 3), "{said}");
    assert!(fs::read(&tape).unwrap() == cassette);
}

#[test]
fn an_impossible_usage_in_a_batch_is_counted_here_and_reported() {
    for kind in ["openai", "anthropic"] {
        let folder = tempfile::tempdir().unwrap();
        let provider = Provider::exaggerating(1 << 40);
        let server = metering(&Arc::new(provider));
        let text = format!(
            "counter = 'chars/4'\n{}{}[probes]\npoints = [100]\nitems = 4\n[models]\nreader = {}\n",
            sessions("code-review", 8_000, 1),
            strategies(&["tail@3000"]),
            model(kind, &server)
        );
        fs::write(folder.path().join("s.toml"), text).unwrap();
        let arguments = ["run", "s.toml", "-y", "--anyway", "--batch", "--out", "run"];
        let said = proctor(folder.path(), &arguments).stderr;
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains("reported an impossible usage"), "{said}");
        let kept = cassette::read(&folder.path().join("run/cassette.jsonl")).unwrap();
        assert!(!kept.entries.is_empty());
        let most = kept.entries.iter().map(|it| it.answer.usage.total()).max();
        assert!(most < Some(Tokens(1_000_000)), "{most:?}");
    }
}

/// A batch whose file of answers is cut at first, whose answers are not all there, or whose state is no known one.
#[track_caller]
fn check_odd_batch(kind: &str) {
    let folder = tempfile::tempdir().unwrap();
    let provider = Arc::new(Provider::default());
    let (behind, fetched) = (provider.clone(), Arc::new(AtomicUsize::new(0)));
    let server = Server::routing(move |head, body| {
        let mut answer = behind.answer(head, body);
        if head.contains("/results") || head.contains("/content") {
            let lines: Vec<&str> = answer.body.split_inclusive('\n').collect();
            match fetched.fetch_add(1, Ordering::SeqCst) {
                0 => answer.body.truncate(answer.body.len() / 2),
                // All but two of them, and a line that is too long to be an answer.
                2 => answer.body = format!("{}{}\n7\n", lines[2..].concat(), "x".repeat(20 << 20)),
                _ => {}
            }
        } else if behind.batches() > 2 {
            answer.body = answer.body.replace(":\"ended\"", ":5").replace(":\"completed\"", ":5");
        }
        answer
    });
    let text = format!(
        "counter = 'chars/4'\n{}{}[models]\nreader = {}\n",
        sessions("code-review", 8_000, 1),
        strategies(&["tail@3000"]),
        model(kind, &server)
    );
    fs::write(folder.path().join("s.toml"), text).unwrap();
    let run = |out: &str| {
        let arguments = ["run", "s.toml", "-y", "--anyway", "--batch", "--out", out];
        let output = command(folder.path(), &arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let singly = provider.billed().iter().filter(|bill| !bill.in_batch).count();
        (output.status.code(), said, singly)
    };
    let (code, said, singly) = run("cut");
    assert_eq!((code, singly), (Some(0), 0), "{said}");
    let (code, said, singly) = run("short");
    assert_eq!((code, singly), (Some(0), 2), "{said}");
    assert!(
        said.contains("2 requests without an answer: asked one by one, for about $0."),
        "{said}"
    );
    let (code, said, singly) = run("odd");
    assert_eq!((code, singly), (Some(5), 2), "{said}");
    assert!(said.contains("its status is 5, which is none that is known"), "{said}");
}

#[test]
fn what_is_cut_of_a_batch_is_fetched_again_and_what_it_lacks_has_its_price_said() {
    check_odd_batch("openai");
    check_odd_batch("anthropic");
}

#[test]
fn a_batch_that_was_taken_before_a_kill_is_found_at_its_provider_and_not_sent_again() {
    check_taken_batch("openai");
    check_taken_batch("anthropic");
}

#[test]
fn an_amount_buys_a_graded_run_that_costs_no_more_and_says_what_it_shows() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Arc::new(Provider::default());
    let server = metering(&provider);
    let scenario = "name = 'sized'\n".to_owned()
        + &sessions("code-review", 8_000, 4)
        + &strategies(&["observation-masking", "tail@3000"]);
    fs::write(folder.path().join("s.toml"), scenario).unwrap();
    let named = format!("openai:{}@{}/v1", OPENAI.0, server.base_url());
    let graded =
        |amount| ["run", "s.toml", "--anyway", "--graded", &named, "--usd", amount, "--out", "run"];
    // Too little, and a price that nobody knows, are said before anything is asked.
    let refused = command(folder.path(), &graded("0.0001")).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains(" is the least"), "{said}");
    let unknown = ["run", "--dry-run", "s.toml", "--graded", "openai:nobodys", "--usd", "5"];
    let refused = command(folder.path(), &unknown).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    let hint = "`names = [\"nobodys\"]` with `input = …`, `output = …`";
    assert!(said.contains(hint), "{said}");
    assert_eq!(server.requests().len(), 0);
    let output = proctor(folder.path(), &graded("0.15"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("$0.1500 pays for ") && said.contains("it shows "), "{said}");
    let billed = dollars("openai", &provider.billed());
    println!("{billed} of 0.15\n{said}");
    assert!((0.05..0.18).contains(&billed), "{billed}: {said}");
    // The same command is the same run.
    let asked = provider.billed().len();
    proctor(folder.path(), &graded("0.15"));
    assert_eq!(provider.billed().len(), asked);
}

#[test]
fn a_cell_whose_answers_could_not_be_kept_is_outstanding_and_the_next_run_completes_the_cassette() {
    let folder = tempfile::tempdir().unwrap();
    let (tapes, away) = (folder.path().join("tapes"), folder.path().join("away"));
    let left = Arc::new(AtomicUsize::new(usize::MAX));
    let (counted, from, to) = (left.clone(), tapes.clone(), away.clone());
    let server = Server::answering(move |_| {
        // No folder is where a file is: from here on nothing can be kept.
        if counted.fetch_sub(1, Ordering::SeqCst) == 0 {
            fs::rename(&from, &to).unwrap();
            fs::write(&from, "").unwrap();
        }
        Reply::openai("48213", 100, 5)
    });
    let text = format!(
        "counter = 'chars/4'\n{}{}[probes]\npoints = [100]\nitems = 4\n[models]\nreader = {}\n\
         cassette = 'tapes/c.jsonl'\n[models.pace]\nat_once = 1\n",
        sessions("code-review", 8_000, 1),
        strategies(&["tail@3000"]),
        model("openai", &server)
    );
    fs::write(folder.path().join("s.toml"), text).unwrap();
    let run = |out: &str| {
        command(folder.path(), &["run", "s.toml", "-y", "--anyway", "--out", out]).output()
    };
    let kept = |out: &str| {
        let cells = fs::read(folder.path().join(out).join("cells.jsonl")).unwrap();
        (cells, fs::read(tapes.join("c.jsonl")).unwrap())
    };
    let whole = run("whole").unwrap();
    assert!(whole.status.success(), "{whole:?}");
    let asked = server.requests().len();
    let expected = kept("whole");
    // Also the last answer of a cell may be the one that cannot be kept.
    for number in 1..asked {
        fs::remove_dir_all(&tapes).unwrap();
        left.store(number, Ordering::SeqCst);
        let out = format!("run-{number}");
        let cut = run(&out).unwrap();
        let said = String::from_utf8_lossy(&cut.stderr);
        assert_eq!(cut.status.code(), Some(110), "{said}");
        assert!(said.contains("could not be kept in"), "{said}");
        fs::remove_file(&tapes).unwrap();
        fs::rename(&away, &tapes).unwrap();
        let again = run(&out).unwrap();
        assert!(again.status.success(), "{again:?}");
        assert!(kept(&out) == expected, "request {number}");
    }
}

/// The commands that a page shows, as they are typed.
fn shown(page: &str) -> Vec<Vec<&str>> {
    let lines = page.lines().map(|line| line.trim_start_matches("$ "));
    let lines = lines.filter(|line| line.starts_with("proctor "));
    lines.map(|line| line.split_whitespace().skip(1).collect()).collect()
}

#[test]
fn the_commands_of_the_page_on_live_models_work_against_a_local_server() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let provider = Arc::new(Provider::default());
    let server = metering(&provider);
    let url = server.base_url() + "/v1";
    // What the page takes for granted: a study, a run of it, a recording, and the repository's scenarios.
    let small = sessions("code-review", 8_000, 2) + &strategies(&["tail@3000"]);
    let study = format!(
        "name = 'study'\ncounter = 'chars/4'\n{small}[probes]\nitems = 12\n[models]\nreader = {{ kind = \
         'openai', model = '{}' }}\n",
        OPENAI.0
    );
    fs::write(at.join("study.toml"), study).unwrap();
    fs::create_dir_all(at.join("scenarios/graded")).unwrap();
    for file in ["graded.toml", "graded/script.toml", "graded/cassette.jsonl"] {
        let file = Path::new("scenarios").join(file);
        fs::copy(root.join(&file), at.join(&file)).unwrap();
    }
    let with_server = |arguments: &[&str]| {
        let mut command = command(at, arguments);
        command
            .env_remove("PROCTOR_COUNTER")
            .env("OPENAI_BASE_URL", &url)
            .env("OPENAI_API_KEY", "not-a-key");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
    };
    with_server(&["run", "study.toml", "-y", "--anyway", "--out", "reports/my-run"]);
    with_server(&["sessions", "generate", "debugging", "--rounds", "12", "-o", "talks"]);
    let mut talks = fs::read_dir(at.join("talks")).unwrap();
    let talk = talks.find_map(|file| {
        let path = file.unwrap().path();
        path.to_string_lossy().ends_with(".session.jsonl").then_some(path)
    });
    fs::copy(talk.unwrap(), at.join("talk.session.jsonl")).unwrap();
    let page = fs::read_to_string(root.join("docs/reference/live-models.md")).unwrap();
    let commands = shown(&page);
    assert!(commands.len() >= 8, "{commands:?}");
    // Nobody else's server is looked for here.
    let is_here = |typed: &&Vec<&str>| !typed.contains(&"local");
    for typed in commands.iter().filter(is_here) {
        let before = provider.billed().len();
        let mut arguments: Vec<String> =
            typed.iter().map(|part| part.replace("http://127.0.0.1:8000/v1", &url)).collect();
        // The quick start is a matter of minutes in a build for tests: the study stands for it.
        let is_sized = arguments.iter().any(|part| part == "--usd");
        if is_sized {
            arguments.insert(1, "study.toml".to_owned());
        }
        // Somebody at the terminal agrees.
        if typed[0] == "run" {
            arguments.push("--anyway".to_owned());
        }
        if !is_sized && (typed[0] == "run" || typed[..2] == ["sessions", "facts"]) {
            arguments.push("--yes".to_owned());
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        with_server(&arguments);
        let asked = provider.billed().len() - before;
        assert!(asked == 0 || !typed.contains(&"--dry-run"), "{typed:?} asked {asked} times");
    }
    assert!(provider.batches() > 0, "nothing went in a batch");
}
