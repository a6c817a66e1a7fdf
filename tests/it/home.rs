//! Models on this machine: a server that knows every answer that it can see, and what a run does with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::live::server::{Reply, Server};

const FAMILY: &str = "code-review";

/// One loads the model; two prompts are read, read again, and written behind.
const TIMING_REQUESTS: usize = 7;

fn proctor(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder)
        .env_remove("PROCTOR_COUNTER")
        .args(arguments)
        .output()
        .unwrap()
}

#[track_caller]
fn run(folder: &Path, arguments: &[&str], exit: i32) -> (String, String) {
    let output = proctor(folder, &[&["run", "home.toml"], arguments].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, shown) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(exit), "{said}\n{shown}");
    (said, shown)
}

/// Seven small sessions, with what may be asked of them: question to known values.
fn bench() -> (TempDir, BTreeMap<String, Vec<String>>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut known = BTreeMap::new();
    for seed in 1..8 {
        let seed = seed.to_string();
        let made =
            ["sessions", "generate", FAMILY, "--for-window", "8k", "--seed", &seed, "-o", "gen"];
        assert!(proctor(path, &made).status.success());
    }
    for file in fs::read_dir(path.join("gen")).unwrap() {
        let file = file.unwrap().path();
        if !file.to_string_lossy().ends_with(".truth.json") {
            continue;
        }
        let shown =
            proctor(path, &["sessions", "facts", "--show", file.to_str().unwrap(), "--json"]);
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        for probe in shown["probes"].as_array().unwrap() {
            let texts = |key: &str| -> Vec<String> {
                let texts = probe[key].as_array().unwrap().iter();
                texts.map(|text| text.as_str().unwrap().to_owned()).collect()
            };
            for question in texts("asked") {
                known.insert(question, texts("current"));
            }
        }
    }
    let scenario = format!(
        "name = 'home'\ncounter = 'chars/4'\ncontrols = false\n[window]\nmax_output = 1000\n\
         [probes]\nkinds = ['recall', 'binding']\npoints = [100]\nitems = 10\n\
         [[sessions]]\nsynthetic = {{ family = '{FAMILY}', seed = 1, for_window = 8000 }}\ncount = 7\n\
         [[strategies]]\npreset = 'tail@2000'\n[[strategies]]\npreset = 'tail@4000'\n"
    );
    fs::write(path.join("home.toml"), scenario).unwrap();
    (folder, known)
}

/// How the server behaves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mind {
    Knows,
    Abstains,
    /// It uses up the room for an answer unless that is large.
    Thinks,
    ThinksForEver,
    /// From its fiftieth answer on it is another model.
    Swapped,
    /// It knows, and says so in German.
    SpeaksGerman,
}

/// Seconds that a slow server takes whose last request was `before`: for the new tokens of the messages, and for the
/// pairs of each and one in front of it. Nobody waits for them.
fn takes(before: &str, body: &str) -> f64 {
    let messages = [before, body].map(|body| body.split_once("\"messages\""));
    let [old, new] = messages.map(|split| split.map_or("", |(_, messages)| messages));
    let mut both = old.bytes().zip(new.bytes());
    let differs = both.position(|(old, new)| old != new);
    let same = differs.unwrap_or(old.len().min(new.len()));
    let [known, all] = [same, new.len()].map(|bytes| bytes as f64 / 4.0);
    0.01 + 2e-5 * (all - known) + 1e-8 * (all * all - known * known)
}

/// A server that says what it is, and answers what it can see.
fn server(known: BTreeMap<String, Vec<String>>, mind: Mind) -> Server {
    server_of(known, mind, 32_768)
}

/// The same, with a window of so many tokens.
fn server_of(known: BTreeMap<String, Vec<String>>, mind: Mind, window: u64) -> Server {
    let answered = Arc::new(AtomicUsize::new(0));
    Server::routing(move |head, body| {
        if head.starts_with("GET /v1/models ") {
            return Reply::status(200, r#"{"data":[{"id":"home"}]}"#);
        }
        if head.starts_with("GET /props ") {
            let props =
                json!({ "default_generation_settings": { "n_ctx": window }, "total_slots": 1 });
            return Reply::status(200, &props.to_string());
        }
        if head.starts_with("GET ") {
            return Reply::status(404, "{}");
        }
        let at = answered.fetch_add(1, Ordering::SeqCst);
        let request: Value = serde_json::from_str(body).unwrap();
        let room = request["max_tokens"].as_u64().unwrap();
        let tokens = body.len() as u64 / 4;
        if mind == Mind::ThinksForEver || mind == Mind::Thinks && room < 4_096 {
            let thinking = r#"{"model":"home","choices":[{"index":0,"delta":{"reasoning_content":"hm"},"finish_reason":"length"}]}"#;
            let usage = json!({ "model": "home", "choices": [], "usage": { "prompt_tokens": tokens, "completion_tokens": room } });
            return Reply::stream(&format!(
                "data: {thinking}\n\ndata: {usage}\n\ndata: [DONE]\n\n"
            ));
        }
        let name = if mind == Mind::Swapped && at >= 50 { "other" } else { "home" };
        let said = match (mind, answer(body, &known)) {
            (Mind::Abstains, _) => "not in context".to_owned(),
            (Mind::SpeaksGerman, said) if said == "not in context" => {
                "Das steht nicht im Gespräch.".to_owned()
            }
            (Mind::SpeaksGerman, said) => format!("Der Wert lautet {said}, so der Benutzer."),
            (_, said) => said,
        };
        let said = json!({
            "model": name,
            "choices": [{ "index": 0, "message": { "content": said }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": tokens, "completion_tokens": 4 },
        });
        Reply::status(200, &said.to_string())
    })
}

/// The right answer, if its values are in the prompt.
fn answer(body: &str, known: &BTreeMap<String, Vec<String>>) -> String {
    let nothing = || "not in context".to_owned();
    let Some((prompt, asked)) = body.rsplit_once("Question: ") else {
        return "yes".to_owned();
    };
    let question = asked.split("\\n\\nUse only").next().unwrap();
    let question: String = serde_json::from_str(&format!("\"{question}\"")).unwrap();
    let Some(values) = known.get(&question) else {
        return nothing();
    };
    values.last().filter(|value| prompt.contains(*value)).cloned().unwrap_or_else(nothing)
}

fn graded(server: &Server) -> String {
    format!("openai:home@{}/v1", server.base_url())
}

/// A graded run without a judge, into this folder.
fn flags<'a>(graded: &'a str, out: &'a str) -> [&'a str; 6] {
    let judge = "models.judge=none";
    ["--graded", graded, "--set", judge, "--out", out]
}

/// The bodies of what was asked, without the timing requests.
fn asked(server: &Server) -> Vec<Value> {
    let requests = server.requests().into_iter().filter(|asked| asked.head.starts_with("POST "));
    let bodies = requests.map(|asked| serde_json::from_str(&asked.body).unwrap());
    bodies.skip(TIMING_REQUESTS).collect()
}

#[test]
fn a_server_on_this_machine_reads_each_prompt_once_and_costs_nothing() {
    let (folder, known) = bench();
    let server = server(known, Mind::Knows);
    let graded = graded(&server);
    let flags = flags(&graded, "runs/home");
    let (said, shown) = run(folder.path(), &flags, 0);
    assert!(
        said.contains("timing home at ") && said.contains("all of it fits 10 minutes: 7 sessions"),
        "{said}"
    );
    assert!(said.contains("On this machine nothing is paid for: home."), "{said}");
    assert!(shown.contains("home answers 100 % right"), "{shown}");
    let kept = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(kept.contains("Of 100 facts that it can use, tail@2000 keeps "), "{shown}");
    let bodies = asked(&server);
    assert!(bodies.len() > 100, "{}", bodies.len());
    for body in &bodies {
        assert_eq!(body["temperature"], 0.0, "{body}");
        assert!(body["max_tokens"].as_u64().unwrap() <= 1_024, "{body}");
    }
    // A prompt is the question's conversation: it leaves the one slot only when all was asked of it.
    let prompt = |body: &Value| {
        body.to_string().rsplit_once("Question: ").map(|(prompt, _)| prompt.to_owned())
    };
    let prompts: Vec<String> = bodies.iter().filter_map(prompt).collect();
    let changes = prompts.windows(2).filter(|pair| pair[0] != pair[1]).count() + 1;
    let distinct = prompts.iter().collect::<BTreeSet<_>>().len();
    // Of the empty prompt it is asked in every session, and of two prompts before all others.
    assert!(changes <= distinct + 7 + 2, "{changes} changes between {distinct} prompts");
    // The same command chooses the same run, and asks nobody.
    let before = asked(&server).len();
    let (said, _) = run(folder.path(), &flags, 0);
    assert!(!said.contains("timing"), "{said}");
    assert_eq!(asked(&server).len(), before);
}

#[test]
fn a_reader_that_knows_too_little_ends_the_run_and_decides_nothing() {
    let (folder, known) = bench();
    let server = server(known, Mind::Abstains);
    let graded = graded(&server);
    let flags = flags(&graded, "runs/home");
    let (said, _) = run(folder.path(), &flags, 102);
    assert!(
        said.contains(
            "home abstains on 5 of 5 planted items with all of the session in front of it"
        ),
        "{said}"
    );
    assert_eq!(asked(&server).len(), 10);
    let (_, shown) = run(folder.path(), &[&flags[..], &["--anyway"]].concat(), 0);
    assert!(shown.contains("does not read these prompts, and its answers say nothing"), "{shown}");
    assert!(shown.contains("facts") && !shown.contains("  answers  "), "{shown}");
}

/// Writes what is known of a server of a window of 65,536 tokens: how many it reads in a second at first, how many
/// nanoseconds each takes for one in front of it, and how many it writes in a second.
fn know(folder: &Path, server: &Server, [read, attention, written]: [f64; 3]) {
    let latency = json!({ "start_ms": 10.0, "prefill_per_second": read, "cached_per_second": 1e9, "decode_per_second": written });
    let timing = json!({ "latency": latency, "read_attention_ns": attention, "write_attention_ns": attention, "longest": 4_000, "counted": 1.0 });
    let at = format!("{}/v1 home chars/4", server.base_url());
    let known = json!({ (at): { "window": 65_536, "slots": 1, "timing": timing } });
    fs::create_dir(folder.join("runs")).unwrap();
    fs::write(folder.join("runs/servers.json"), known.to_string()).unwrap();
}

#[test]
fn too_few_minutes_are_a_look_that_somebody_agrees_to() {
    let (folder, known) = bench();
    let server = server(known, Mind::Knows);
    let graded = graded(&server);
    know(folder.path(), &server, [800.0, 0.0, 10.0]);
    let flags = ["--graded", &graded, "--minutes", "9", "--out", "runs/home"];
    let (said, _) = run(folder.path(), &flags, 107);
    assert!(said.contains("a verdict needs ") && said.contains("as a look"), "{said}");
    assert!(server.requests().iter().all(|asked| asked.head.starts_with("GET ")));
    let (said, shown) = run(folder.path(), &[&flags[..], &["--anyway"]].concat(), 102);
    assert!(
        said.contains("9 minutes are enough for ")
            && said.contains(" of 7 sessions")
            && said.contains(", without code-review-s"),
        "{said}"
    );
    assert!(shown.contains(" decide"), "{shown}");
    let plan = ["run", "--dry-run", "home.toml", "--graded", &graded, "--minutes", "9"];
    assert!(proctor(folder.path(), &plan).status.success());
}

#[test]
fn the_time_of_a_server_that_slows_down_in_long_prompts_is_foreseen() {
    // The second window does not hold full history: questions are put to the evidence.
    for window in [65_536, 16_384] {
        let (folder, known) = bench();
        foresees(folder.path(), &server_of(known, Mind::Knows, window));
    }
}

/// Holds the time that is foreseen equal to the time that the server takes.
#[track_caller]
fn foresees(folder: &Path, server: &Server) {
    let graded = graded(server);
    let flags = flags(&graded, "runs/home");
    know(folder, server, [50_000.0, 20.0, 1e9]);
    let plan = [&["run", "home.toml"], &flags[..], &["--dry-run", "--json"]].concat();
    let planned = proctor(folder, &plan).stdout;
    let planned: Value = serde_json::from_slice(&planned).unwrap();
    let foreseen = &planned["spend"]["milliseconds"]["expected"];
    let foreseen = foreseen.as_f64().unwrap() / 1_000.0;
    let (said, _) = run(folder, &flags, 0);
    assert!(said.contains("The longest prompts have "), "{said}");
    let requests = server.requests().into_iter();
    let bodies = requests.filter(|asked| asked.head.starts_with("POST "));
    let bodies: Vec<String> = bodies.map(|asked| asked.body).collect();
    let pairs = bodies.windows(2).map(|pair| takes(&pair[0], &pair[1]));
    let needed = pairs.sum::<f64>();
    // At the end of the longest prompt a token takes thirty times as long as at its beginning.
    assert!((foreseen / needed - 1.0).abs() < 0.3, "{foreseen} {needed} {said}");
}

#[test]
fn room_to_think_is_given_to_models_that_think_and_not_for_ever() {
    let (folder, known) = bench();
    let run_of = |server: &Server, out: &str, exit| {
        let graded = graded(server);
        let flags = flags(&graded, out);
        run(folder.path(), &flags, exit)
    };
    let thinking = server(known.clone(), Mind::Thinks);
    let (_, shown) = run_of(&thinking, "runs/thinks", 0);
    assert!(shown.contains("home answers 100 % right"), "{shown}");
    let small = |body: &&Value| body["max_tokens"].as_u64().unwrap() < 4_096;
    // Until it was seen to think.
    assert_eq!(asked(&thinking).iter().filter(small).count(), 1);
    let endless = server(known, Mind::ThinksForEver);
    let (said, _) = run_of(&endless, "runs/endless", 5);
    assert!(
        said.contains("it thinks for") && said.contains("`thinking_tokens` gives it more room"),
        "{said}"
    );
    assert!(endless.requests().len() < 40, "{}", endless.requests().len());
}

#[test]
fn a_reader_that_answers_in_another_language_is_not_said_to_abstain() {
    let (folder, known) = bench();
    let server = server(known, Mind::SpeaksGerman);
    let graded = graded(&server);
    let output =
        proctor(folder.path(), &[&["run", "home.toml"], &flags(&graded, "runs/home")[..]].concat());
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        shown.contains("in front of it, and none could") && !shown.contains("  answers  "),
        "{shown}"
    );
}

#[test]
fn sessions_whose_summaries_the_server_cannot_write_are_left_out_before_anything_is_asked() {
    let (folder, known) = bench();
    let scenario = "name = 'home'\ncounter = 'chars/4'\ncontrols = false\n[window]\nmax_output = 1000\n\
         [probes]\npoints = [100]\nitems = 10\n\
         [[sessions]]\nsynthetic = { family = 'code-review', seed = 1, for_window = 8000 }\n\
         [[sessions]]\nsynthetic = { family = 'code-review', seed = 2, for_window = 32000 }\n\
         [[strategies]]\nname = 'summarise'\n[[strategies.stage]]\nkind = 'summarize'\n\
         when = { window_fraction = 0.8 }\nmax_output_tokens = 300\n";
    fs::write(folder.path().join("home.toml"), scenario).unwrap();
    let tried = |window, more: &[&str], exit| {
        let server = server_of(known.clone(), Mind::Knows, window);
        let graded = graded(&server);
        let out = format!("runs-{window}/home");
        let (said, _) = run(folder.path(), &[&flags(&graded, &out)[..], more].concat(), exit);
        (said, asked(&server).len())
    };
    let (said, asked) = tried(2_048, &[], 4);
    assert!(
        said.contains("in 2 of 2 sessions, a strategy sends a prompt to be summarised that is larger than the window of home, 2048 tokens")
            && said.contains("`--max-model-len` of vLLM"),
        "{said}"
    );
    assert_eq!(asked, 0);
    let (said, _) = tried(16_384, &["--dry-run"], 0);
    assert!(
        said.contains("in 1 of 2 sessions, a strategy sends") && said.contains(": 1 session, "),
        "{said}"
    );
    let (said, _) = tried(65_536, &["--dry-run"], 0);
    assert!(!said.contains("a strategy sends"), "{said}");
    // The folder of a run says with which window it began, and which sessions that leaves out.
    let begun = |window, more: &[&str]| {
        let server = server_of(known.clone(), Mind::Knows, window);
        let graded = graded(&server);
        let flags = flags(&graded, "runs/home");
        let (said, _) = run(folder.path(), &[&flags[..], &["--dry-run"], more].concat(), 0);
        said
    };
    begun(16_384, &["--shards", "2"]);
    let manifest = fs::read_to_string(folder.path().join("runs/home/run.json")).unwrap();
    assert!(
        manifest.contains("to be summarised than its window holds, 16384 tokens\": 1"),
        "{manifest}"
    );
    let said = begun(65_536, &[]);
    assert!(
        said.contains("began with a window of home (16384 tokens)")
            && said.contains("in 1 of 2 sessions, a strategy sends"),
        "{said}"
    );
}

#[test]
fn a_server_that_answers_as_another_model_ends_the_run() {
    let (folder, known) = bench();
    let server = server(known, Mind::Swapped);
    let graded = graded(&server);
    let flags = flags(&graded, "runs/home");
    let (said, _) = run(folder.path(), &flags, 5);
    assert!(said.contains("answers as `other`, and answered as `home` before"), "{said}");
}

#[test]
fn where_no_server_answers_the_ways_to_one_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = proctor(folder.path(), &["run", "--graded", "local", "--offline"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("`--offline` opens no socket"), "{said}");
}

#[test]
fn without_a_scenario_a_server_on_this_machine_gets_one_for_small_models() {
    let server = server_of(BTreeMap::new(), Mind::Knows, 8_192);
    let graded = graded(&server);
    let folder = tempfile::tempdir().unwrap();
    let output = proctor(folder.path(), &["run", "--graded", &graded, "--dry-run", "--anyway"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.starts_with("Plan: local, "), "{said}{shown}");
}
