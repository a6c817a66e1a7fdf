//! Long recordings are read in a part of their size, and thousands are listed in none of it.
//!
//! The system holds the program to the ceiling: one byte more, and it dies.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Output};

use super::{model, read_use, result, user};

/// The size of each file: one that is read piece by piece.
const SIZE: usize = 17 << 20;

/// The size of each text: the largest message.
const TEXT: usize = 120_000;

/// How many kilobytes the program may hold beside its code: about half of a file.
const CEILING: usize = 9 << 10;

/// What stands before the messages of a file, between two, and after them; and a message.
struct Shape {
    name: &'static str,
    before: &'static str,
    between: &'static str,
    after: &'static str,
    message: fn(usize, &str) -> String,
}

const SHAPES: &[Shape] = &[
    Shape {
        name: "claude-code.jsonl",
        before: "",
        between: "\n",
        after: "\n",
        message: |at, text| match at {
            0 => user("r0", "", text),
            at => {
                let (call, answer, id) = (format!("a{at}"), format!("r{at}"), format!("t{at}"));
                let call_of = model(&call, &format!("r{}", at - 1), &call, &read_use(&id));
                format!("{call_of}\n{}", result(&answer, &call, &id, text))
            }
        },
    },
    Shape {
        name: "goose.jsonl",
        before: "",
        between: "\n",
        after: "",
        message: |at, text| {
            let role = role(at);
            format!(
                r#"{{"role":"{role}","created":{at},"content":[{{"type":"text","text":"{text}"}}]}}"#
            )
        },
    },
    Shape {
        name: "gemini-cli.jsonl",
        before: "{\"sessionId\":\"s\",\"projectHash\":\"p\",\"startTime\":\"2026-03-01T09:00:00Z\"}\n",
        between: "\n",
        after: "",
        message: |at, text| {
            let kind = ["user", "gemini"][at % 2];
            format!(r#"{{"id":"{at}","type":"{kind}","content":"{text}"}}"#)
        },
    },
    Shape {
        name: "opencode.json",
        before: r#"{"info":{"id":"s","directory":"/d","title":"t"},"messages":["#,
        between: ",\n",
        after: "]}",
        message: |at, text| {
            let role = role(at);
            format!(
                r#"{{"info":{{"id":"m{at}","role":"{role}"}},"parts":[{{"type":"text","text":"{text}"}}]}}"#
            )
        },
    },
    Shape {
        name: "mini.traj.json",
        before: r#"{"info":{"mini_version":"1"},"messages":["#,
        between: ",",
        after: "]}",
        message: said,
    },
    Shape {
        name: "run.traj",
        before: r#"{"trajectory":[{"action":"a","observation":"b","response":"c"}],"history":["#,
        between: ",",
        after: "]}",
        message: called,
    },
    Shape {
        name: "task.json",
        before: "[",
        between: ",",
        after: "]",
        message: |at, text| called(at, text).replace("{\"role\"", "{\"ts\":1,\"role\""),
    },
    Shape {
        name: "openai-chat.json",
        before: r#"{"messages":["#,
        between: ",",
        after: "]}",
        message: said,
    },
    Shape {
        name: "anthropic.json",
        before: r#"{"model":"m","system":"Be brief.","messages":["#,
        between: ",",
        after: "]}",
        message: said,
    },
    Shape {
        name: "openai-responses.json",
        before: r#"{"model":"m","input":["#,
        between: ",\n",
        after: "]}",
        message: |at, text| {
            format!(
                r#"{{"type":"function_call","call_id":"c{at}","name":"look","arguments":"{{}}"}},
                {{"type":"function_call_output","call_id":"c{at}","output":"{text}"}}"#
            )
        },
    },
    Shape {
        name: "langchain.json",
        before: "[",
        between: ",",
        after: "]",
        message: |at, text| {
            let kind = ["human", "ai"][at % 2];
            format!(r#"{{"type":"{kind}","content":"{text}"}}"#)
        },
    },
    Shape {
        name: "openhands.json",
        before: "[",
        between: ",\n",
        after: "]",
        message: |at, text| {
            let source = ["user", "agent"][at % 2];
            format!(
                r#"{{"id":{at},"source":"{source}","action":"message","args":{{"content":"{text}"}}}}"#
            )
        },
    },
    // From here on, each is a conversation of its own.
    Shape {
        name: "rows.jsonl",
        before: "",
        between: "\n",
        after: "\n",
        message: |_, text| format!(r#"{{"messages":[{},{}]}}"#, said(0, text), said(1, "Well.")),
    },
    Shape {
        name: "longmemeval.json",
        before: "[",
        between: ", ",
        after: "]",
        message: |at, text| {
            format!(
                r#"{{"question_id":"q{at}","question_type":"t","question":"What?","answer":"Well",
                "haystack_dates":["2023/05/20 (Sat) 02:21"],"haystack_sessions":[[{},{}]]}}"#,
                said(0, text),
                said(1, "Well."),
            )
        },
    },
    Shape {
        name: "tau2.json",
        before: r#"{"info":{"environment_info":{"policy":"Be kind."}},"tasks":[],"simulations":["#,
        between: ",",
        after: "]}",
        message: |at, text| {
            format!(
                r#"{{"task_id":"{at}","messages":[{},{}]}}"#,
                said(0, text),
                said(1, "Well.")
            )
        },
    },
    Shape {
        name: "inspect.json",
        before: r#"{"version":2,"status":"success","eval":{"model":"m"},"samples":["#,
        between: ",",
        after: r#"],"stats":{}}"#,
        message: |at, text| {
            format!(
                r#"{{"id":{at},"epoch":1,"target":"x","messages":[{},{}]}}"#,
                said(0, text),
                said(1, "Well.")
            )
        },
    },
];

fn role(at: usize) -> &'static str {
    ["user", "assistant"][at % 2]
}

fn said(at: usize, text: &str) -> String {
    format!(r#"{{"role":"{}","content":"{text}"}}"#, role(at))
}

/// A call of the model, and what came of it.
fn called(at: usize, text: &str) -> String {
    format!(
        r#"{{"role":"assistant","content":"{at}. Look."}},{{"role":"user","content":"{text}"}}"#
    )
}

/// Writes a file of the shape; returns how many messages it holds.
fn write(shape: &Shape, path: &Path) -> usize {
    let mut file = BufWriter::new(File::create(path).unwrap());
    file.write_all(shape.before.as_bytes()).unwrap();
    let count = SIZE / TEXT + 2;
    for at in 0..count {
        let text = text(at);
        let message = (shape.message)(at, &text);
        let between = if at == 0 { "" } else { shape.between };
        file.write_all(between.as_bytes()).unwrap();
        file.write_all(message.as_bytes()).unwrap();
    }
    file.write_all(shape.after.as_bytes()).unwrap();
    count
}

/// A long text; the first is short, for the format is told from the beginning.
fn text(at: usize) -> String {
    let line = "the quick brown fox jumps over the lazy dog\\n";
    let lines = if at == 0 { 0 } else { TEXT / line.len() };
    format!("{at}: {}", line.repeat(lines))
}

/// Writes parts of a recording, each with a long text; returns how many.
fn write_parts(write: &mut dyn FnMut(usize, &str)) -> usize {
    let count = SIZE / TEXT + 2;
    for at in 0..count {
        write(at, &text(at));
    }
    count
}

/// How many tokens a line says there were.
fn tokens(line: &str) -> usize {
    let tokens = line.split(" tokens").next().unwrap();
    let tokens = tokens.rsplit(' ').next().unwrap().replace(',', "");
    tokens.parse().unwrap()
}

/// Runs the program in so many kilobytes.
fn run(kilobytes: usize, folder: &Path, arguments: &[&str]) -> Output {
    Command::new("sh")
        .args(["-c", "ulimit -d \"$1\" && shift && exec \"$@\"", "sh"])
        .arg(kilobytes.to_string())
        .arg(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

#[track_caller]
fn check(kilobytes: usize, folder: &Path, arguments: &[&str]) -> String {
    let output = run(kilobytes, folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn long_recordings_are_imported_in_a_part_of_their_size() {
    let folder = tempfile::tempdir().unwrap();
    for shape in SHAPES {
        let path = folder.path().join(shape.name);
        let messages = write(shape, &path);
        let more: &[&str] = match shape.name {
            "goose.jsonl" => &["--to", "openai"],
            "opencode.json" => &["--to", "anthropic"],
            _ => &[],
        };
        let arguments = [
            &["import", shape.name, "-o", "out", "--counter", "chars/4"],
            more,
        ];
        let line = check(CEILING, folder.path(), &arguments.concat());
        assert!(tokens(&line) > messages * TEXT / 5, "{line}");
        std::fs::remove_dir_all(folder.path().join("out")).unwrap();
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn the_ceiling_is_below_what_reading_at_once_takes() {
    let folder = tempfile::tempdir().unwrap();
    let shape = Shape {
        name: "marked.json",
        // What looks like a mark has a file read at once.
        before: "{\"model\":\"\u{10fffd}\",\"messages\":[",
        between: ",",
        after: "]}",
        message: said,
    };
    write(&shape, &folder.path().join(shape.name));
    let arguments = ["import", shape.name, "-o", "out", "--counter", "chars/4"];
    let output = run(CEILING, folder.path(), &arguments);
    assert!(!output.status.success(), "{output:?}");
    check(8 * CEILING, folder.path(), &arguments);
}

#[test]
fn long_folders_and_archives_are_imported_in_a_part_of_their_size() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    };
    let event = |number: usize, text: &str| {
        let source = ["user", "agent"][number % 2];
        let event = format!(
            r#"{{"id":{number},"source":"{source}","action":"message","args":{{"content":"{text}"}}}}"#
        );
        std::fs::write(at(&format!("openhands/events/{number}.json")), event).unwrap();
    };
    let mut task = format!("[{}", called(0, "Begin."));
    let message = |number: usize, text: &str| {
        let _ = write!(task, ",{}", called(number, text));
    };
    let mut zip = zip::ZipWriter::new(File::create(at("log.eval")).unwrap());
    let sample = |number: usize, text: &str| {
        let sample = format!(
            r#"{{"id":{number},"epoch":1,"target":"x","messages":[{},{}]}}"#,
            said(0, text),
            said(1, "Well.")
        );
        let name = format!("samples/{number}_epoch_1.json");
        zip.start_file(name, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(sample.as_bytes()).unwrap();
    };
    let parts = [
        write_parts(&mut { event }),
        write_parts(&mut { message }),
        write_parts(&mut { sample }),
    ];
    zip.finish().unwrap();
    std::fs::write(at("task/api_conversation_history.json"), task + "]").unwrap();
    std::fs::write(at("task/ui_messages.json"), "[]").unwrap();
    for (name, parts) in ["openhands", "task", "log.eval"].into_iter().zip(parts) {
        let arguments = ["import", name, "-o", "out", "--counter", "chars/4"];
        let line = check(CEILING, folder.path(), &arguments);
        assert!(tokens(&line) > parts * TEXT / 5, "{line}");
    }
}

#[test]
fn what_steps_were_shown_is_read_one_step_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = BufWriter::new(File::create(folder.path().join("run.traj")).unwrap());
    // Each step was shown all that was said before it: together the square of the history.
    let steps = 400;
    let said: Vec<String> = (0..steps)
        .map(|at| called(at, &format!("{at}: {}", "Seen. ".repeat(40))))
        .collect();
    write!(run, r#"{{"trajectory":["#).unwrap();
    for at in 0..steps {
        let between = if at == 0 { "" } else { "," };
        let query = said[..at].join(",");
        let step = r#""action":"a","observation":"b","response":"c""#;
        write!(run, r#"{between}{{{step},"query":[{query}]}}"#).unwrap();
    }
    write!(run, r#"],"history":[{}]}}"#, said.join(",")).unwrap();
    run.into_inner().unwrap();
    let arguments = ["import", "run.traj", "-o", "out", "--counter", "chars/4"];
    let line = check(CEILING, folder.path(), &arguments);
    assert!(line.contains("800 messages, 400 calls"), "{line}");
}

/// Logs one request after the other, each with its answer; `text` stands beside them.
fn logged(at: usize, text: &str) -> String {
    let messages: Vec<String> = (0..=2 * at).map(|at| said(at, &format!("{at}."))).collect();
    // What a proxy keeps beside a request is no part of the conversation.
    format!(
        r#"{{"request":{{"model":"m","messages":[{}]}},"response":{{"id":"c{at}","model":"m",
        "choices":[{{"message":{{"role":"assistant","content":"{}."}}}}]}},"raw":"{text}"}}"#,
        messages.join(","),
        2 * at + 1,
    )
}

#[test]
fn logged_requests_take_the_memory_of_the_sessions_they_make() {
    let folder = tempfile::tempdir().unwrap();
    let shape = |name, [before, between, after]: [&'static str; 3]| Shape {
        name,
        before,
        between,
        after,
        message: logged,
    };
    let lines = shape("log.jsonl", ["", "\n", "\n"]);
    let list = shape("log.json", ["[", ",\n", "]"]);
    let requests = folder.path().join("requests");
    std::fs::create_dir(&requests).unwrap();
    write_parts(&mut |at, text| {
        std::fs::write(requests.join(format!("{at:04}.json")), logged(at, text)).unwrap();
    });
    for (name, shape) in [
        ("log.jsonl", Some(lines)),
        ("log.json", Some(list)),
        ("requests", None),
    ] {
        let count = shape.map(|shape| write(&shape, &folder.path().join(name)));
        let messages = 2 * count.unwrap_or(SIZE / TEXT + 2);
        let arguments = ["import", name, "-o", "out", "--counter", "chars/4"];
        let line = check(CEILING, folder.path(), &arguments);
        let shown = format!("1 session, {messages} messages");
        assert!(line.contains(&shown), "{line}\n{shown}");
    }
}

#[test]
fn thousands_of_recordings_are_listed_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    for at in 0..2_000 {
        let line = user("u", "", "Look.") + "\n";
        std::fs::write(folder.path().join(format!("{at}.jsonl")), line).unwrap();
    }
    write(&SHAPES[4], &folder.path().join("long.json"));
    let listed = check(CEILING, folder.path(), &["import", "--list", "."]);
    assert_eq!(listed.lines().count(), 2_001);
}
