//! All fuzz targets in one binary: `PROCTOR_FUZZ` names the one that runs.
//!
//! One binary is linked once, and building it is most of the cost of a short run. `list` as the
//! target prints the names. A target reads any bytes; what comes out must be an error that names the
//! file, or sessions that can be written and read again.
#![no_main]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use proctor::bill::Sizes;
use proctor::files::checked;
use proctor::live::{Live, LiveCell, StrategySetting};
use proctor::model::api::IncomingAnswer;
use proctor::model::cassette::{Cassette, ReplayMode};
use proctor::model::offline::Offline;
use proctor::model::price::Prices;
use proctor::probe::check::TruthFile;
use proctor::record::journal;
use proctor::replay::{self, Models, NoClock, PreparedSession, Replayed, replay};
use proctor::session::export::export;
use proctor::session::import::request::READER;
use proctor::session::import::{IMPORTERS, ImportError, Importer, importer, load, outcomes};
use proctor::session::redact::Redactor;
use proctor::session::synthetic::{Length, Recipe, generate};
use proctor::session::wire::Provider;
use proctor::session::wire::stream::Api;
use proctor::session::{Session, native};
use proctor::settings::{Place, Setting, SettingTable};
use proctor::strategy::StrategySpec;
use proctor::strategy::external::Host;
use proctor::strategy::trigger::Trigger;
use proctor::tokens::{CharsPer4, CountedTexts};
use proctor::units::{Timestamp, Tokens};
use proctor::window::Window;

/// How the file is called in errors.
const NAME: &str = "some/file.jsonl";

/// What runs on the bytes.
enum Target {
    /// All importers look at the first bytes.
    Detect,
    /// The importer that claims the bytes reads them.
    Any,
    /// One importer reads whatever it is given.
    One(&'static Importer),
    /// Sessions that were read are written as somebody's API has them, and read again.
    Export,
    /// Sessions that were read are rid of secrets: twice is as once.
    Redact,
    /// The files of a folder are read as one session.
    Folder,
    /// An archive is read.
    Archive,
    /// The answer of a model comes in.
    Answer,
    /// An agent's requests pass through the closed loop, and their answers.
    Agent,
    /// A strategy outside Proctor writes whatever it likes.
    Program,
    /// The results of a harness are read.
    Outcomes,
    /// The files of a run folder are read, and the cassette beside it.
    Run,
    /// A strategy, a price list and a file of facts that somebody wrote are read.
    Settings,
    /// A database is read.
    #[cfg(feature = "sqlite")]
    Database,
}

/// Names of the targets that are no importers.
const OTHERS: &[&str] = &[
    "detect",
    "any",
    "export",
    "redact",
    "folder",
    "archive",
    "answer",
    "agent",
    "program",
    "outcomes",
    "run",
    "settings",
    #[cfg(feature = "sqlite")]
    "database",
];

static TARGET: OnceLock<Target> = OnceLock::new();

fn chosen() -> Target {
    let name = std::env::var("PROCTOR_FUZZ").unwrap_or_else(|_| "any".to_owned());
    match name.as_str() {
        "detect" => Target::Detect,
        "any" => Target::Any,
        "export" => Target::Export,
        "redact" => Target::Redact,
        "folder" => Target::Folder,
        "archive" => Target::Archive,
        "answer" => Target::Answer,
        "agent" => Target::Agent,
        "program" => Target::Program,
        "outcomes" => Target::Outcomes,
        "run" => Target::Run,
        "settings" => Target::Settings,
        #[cfg(feature = "sqlite")]
        "database" => Target::Database,
        "list" => {
            let mut out = std::io::stdout().lock();
            for name in OTHERS.iter().copied().chain(IMPORTERS.iter().map(|it| it.format())) {
                let _ = writeln!(out, "{name}");
            }
            std::process::exit(0);
        }
        format => match importer(format) {
            Some(importer) => Target::One(importer),
            None => panic!("there is no target `{format}`"),
        },
    }
}

fuzz_target!(
    init: {
        let _ = TARGET.set(chosen());
        // As in any Rust program; libFuzzer begins in C++.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    },
    |bytes: &[u8]| {
        match TARGET.get_or_init(chosen) {
            Target::Detect => {
                for importer in IMPORTERS {
                    let _ = importer.detect(bytes);
                }
            }
            Target::Any => drop(read(claimed(bytes), bytes)),
            Target::One(importer) => drop(read(Some(*importer), bytes)),
            Target::Export => {
                for session in read(claimed(bytes), bytes) {
                    for provider in [Provider::Anthropic, Provider::OpenAi] {
                        exported(&session, provider);
                    }
                }
            }
            Target::Redact => {
                for session in read(claimed(bytes), bytes) {
                    redacted(&session);
                }
            }
            Target::Folder => folders(bytes),
            Target::Archive => {
                let path = scratch().join("file.eval");
                std::fs::write(&path, bytes).expect("room for a file");
                loaded(&path, "file.eval");
            }
            Target::Answer => answers(bytes),
            Target::Agent => agents(bytes),
            Target::Program => programs(bytes),
            Target::Outcomes => harness_results(bytes),
            Target::Run => run_folder(bytes),
            Target::Settings => own_settings(bytes),
            #[cfg(feature = "sqlite")]
            Target::Database => databases(bytes),
        }
    }
);

/// The bytes as an answer of each API, streamed or not: in pieces as they are whole.
fn answers(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else {
        return;
    };
    for (provider, is_stream) in Provider::ALL.into_iter().flat_map(|it| [(it, true), (it, false)]) {
        let read = |size: usize| {
            let mut answer = IncomingAnswer::new(provider, is_stream, 1 << 20);
            for piece in bytes.chunks(size) {
                answer.push(piece);
            }
            answer.finish()
        };
        let [whole, pieces] = [bytes.len().max(1), usize::from(*piece).max(1)].map(read);
        assert!(whole == pieces, "in pieces of {piece} it is {pieces:?}, and whole {whole:?}");
    }
}

fn counts() -> Arc<CountedTexts> {
    Arc::new(CountedTexts::new(Arc::new(CharsPer4)))
}

/// Each line as an agent's request, and the next one as the answer to it.
fn agents(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().take(12).collect();
    for api in Api::ALL {
        let counts = counts();
        let setting = StrategySetting {
            spec: StrategySpec::parse("observation-masking[clear_results.keep_last=1]", &Trigger::always(), &Place::BuiltIn)
                .expect("a preset"),
            window: Window::new(Tokens(2_000)),
            sizes: Sizes::Counted,
            summariser: Arc::new(Offline::new(counts.clone())),
            counts,
        };
        let live = Live::new(vec![setting], Duration::from_mins(1), READER);
        for (line, at) in lines.iter().zip(0..) {
            let sent = live.send(&LiveCell::default(), api, line, Timestamp(at));
            if let Some(body) = sent.body {
                serde_json::from_str::<serde::de::IgnoredAny>(&body).expect("what is sent is JSON");
            }
            let next = usize::try_from(at + 1).ok().and_then(|next| lines.get(next));
            if let Some(ticket) = sent.ticket {
                live.answered(ticket, next.copied(), Timestamp(at));
            }
        }
    }
}

/// The session that programs are given.
static PREPARED: OnceLock<PreparedSession> = OnceLock::new();

/// The bytes as the lines of a program that says `hello` first. It reads nothing, and ends after them.
fn programs(bytes: &[u8]) {
    let path = scratch().join("lines");
    let is_greeting = bytes.starts_with(b"{\"type\":\"hello\"");
    let hello: &[u8] = if is_greeting { b"" } else { b"{\"type\":\"hello\",\"protocol\":2}\n" };
    std::fs::write(&path, [hello, bytes].concat()).expect("room for lines");
    // One line for each that wants one, with its number where it is an object, and all of the rest at the end of input.
    let script = "exec 3<\"$1\"; while read -r asked; do case $asked in '{\"id\":'*) ;; *) continue ;; esac
        IFS= read -r line <&3 || break; id=${asked#*:}
        case $line in '{'*) printf '{\"id\":%s,%s\\n' \"${id%%,*}\" \"${line#?}\" ;; *) printf '%s\\n' \"$line\" ;; esac; done; cat <&3";
    let mut table = SettingTable::parse("own", "").expect("an empty table");
    let place = table.place().clone();
    let words = ["sh", "-c", script, "sh", path.to_str().expect("a plain path")].map(|word| Setting::new(word, &place));
    table.put("command", words.to_vec(), &place);
    let host = Host {
        environment: [("PATH".into(), std::env::var_os("PATH").unwrap_or_default())].into(),
        folder: std::env::temp_dir(),
        ..Host::default()
    };
    let spec = StrategySpec::of("own", table, &Trigger::default()).expect("a strategy");
    let spec = spec.with_programs(host).expect("a program");
    let prepared = PREPARED.get_or_init(|| {
        let (counts, length) = (counts(), Length::Rounds(6));
        let made = generate(&Recipe { length, ..Recipe::default() }, &counts).expect("a recipe");
        PreparedSession::new(Arc::new(made.session), counts, Vec::new()).expect("no probes")
    });
    let models = Models {
        summariser: Arc::new(Offline::new(counts())),
        reader: None,
        judge: None,
        times: replay::Repetitions::default(),
    };
    let cell = replay::CellName { strategy: "own".to_owned(), repeat: 0 };
    let strategy = Box::new(spec.build().expect("a strategy"));
    let replayed = Replayed::Strategy(strategy, Window::new(Tokens(100_000)));
    let record = replay(prepared, cell, replayed, &models, &NoClock).record;
    assert!(record.reached_calls <= record.planned_calls);
}

/// The bytes as what a harness writes: a file, and the same in a folder of trials.
fn harness_results(bytes: &[u8]) {
    let folder = scratch();
    for name in ["result.json", "outcomes.jsonl", "a/b/report.json", "a/b/result.json", "a/config.json"] {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("in a folder")).expect("room for a folder");
        std::fs::write(&path, bytes).expect("room for a file");
    }
    for path in [folder.join("result.json"), folder.join("outcomes.jsonl"), folder] {
        match outcomes::read(&path) {
            Ok(read) => {
                let mut scores = read.iter().flat_map(|outcome| &outcome.score);
                assert!(scores.all(|score| (0.0..=1.0).contains(score)), "{read:?}");
                let _ = outcomes::merge(read);
            }
            Err(error) => assert!(error.to_string().contains("proctor-fuzz"), "{error}"),
        }
    }
}

/// The bytes as each file of a run folder, with checksums that are right where a line is an object; and as a cassette.
fn run_folder(bytes: &[u8]) {
    let folder = scratch();
    let text = String::from_utf8_lossy(bytes);
    let mut signed = String::new();
    for line in text.lines().filter(|line| line.starts_with('{') && line.ends_with('}')) {
        let mut line = line.to_owned();
        checked::sign(&mut line, checked::LINE);
        signed += &line;
        signed.push('\n');
    }
    let mut manifest = text.trim().to_owned();
    if manifest.starts_with('{') && manifest.ends_with('}') {
        checked::sign(&mut manifest, checked::DOCUMENT);
    }
    for (name, content) in [
        (journal::MANIFEST, &manifest),
        (journal::CELLS, &signed),
        (journal::VERDICTS, &signed),
        (journal::SHARD, &manifest),
        (journal::SOURCES, &signed),
        ("cassette.jsonl", &signed),
    ] {
        std::fs::write(folder.join(name), content).expect("room for a file");
    }
    let _ = journal::RecordedRun::read(&folder);
    let _ = journal::read_shard(&folder);
    let _ = journal::read_sources(&folder);
    let _ = journal::timings(&folder);
    if let Ok(cassette) = Cassette::open(&folder.join("cassette.jsonl"), ReplayMode::Auto) {
        cassette.close().expect("what was read can be sorted");
        Cassette::open(cassette.path(), ReplayMode::Strict).expect("what was sorted can be read");
    }
}

/// The bytes as a strategy, as a price list and as a file of facts.
fn own_settings(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(spec) = StrategySpec::parse(&text, &Trigger::always(), &Place::BuiltIn) {
        let _ = spec.build();
    }
    if let Ok(table) = SettingTable::parse(NAME, &text) {
        let _ = StrategySpec::of("own", table, &Trigger::always()).map(|spec| spec.build());
    }
    let built_in = Prices::built_in().expect("the built-in prices are right");
    let _ = built_in.with_file(NAME, &text);
    let _ = TruthFile::read(&text);
}

fn claimed(bytes: &[u8]) -> Option<&'static Importer> {
    let head = &bytes[..bytes.len().min(1 << 16)];
    IMPORTERS.iter().find(|importer| importer.detect(head))
}

/// The sessions in the bytes, each of which can be written and read again.
fn read(importer: Option<&Importer>, bytes: &[u8]) -> Vec<Session> {
    let Some(importer) = importer else {
        return Vec::new();
    };
    let recordings = importer.import_with_truth(Path::new(NAME), &mut &bytes[..]);
    let recordings = match recordings {
        Ok(recordings) => recordings,
        Err(error) => {
            assert!(error.to_string().contains(NAME), "{error}");
            return Vec::new();
        }
    };
    assert!(!recordings.is_empty(), "neither a session nor an error");
    let sessions: Vec<Session> = recordings.into_iter().map(|it| it.session).collect();
    for session in &sessions {
        assert!(!session.source().format.is_empty());
        again(session);
    }
    sessions
}

fn again(session: &Session) {
    let mut written = Vec::new();
    native::write(session, &mut written).expect("a vector takes everything");
    let read = native_file(&written).expect("what was written can be read");
    let mut second = Vec::new();
    native::write(&read[0], &mut second).expect("a vector takes everything");
    assert!(written == second, "written, read and written again is another file");
}

fn native_file(bytes: &[u8]) -> Result<Vec<Session>, ImportError> {
    let native = importer("native").expect("the native format has an importer");
    native.import(Path::new(NAME), &mut &bytes[..])
}

fn exported(session: &Session, provider: Provider) {
    let format = match provider {
        Provider::Anthropic => "anthropic",
        Provider::OpenAi => "openai-chat",
    };
    let exported = export(session, provider);
    let importer = importer(format).expect("both APIs have importers");
    let read = importer.import(Path::new(NAME), &mut exported.json.as_bytes());
    // A session may hold nothing that the API can carry.
    if let Err(error) = read {
        assert!(matches!(error, ImportError::NoConversation { .. }), "{error}");
    }
}

fn redacted(session: &Session) {
    let once = Redactor::new().session(session).expect("a session stays one");
    let twice = Redactor::new().session(&once).expect("a session stays one");
    assert_eq!(once.messages().len(), session.messages().len());
    assert!(once.messages() == twice.messages(), "what was redacted is redacted again");
}

/// A folder of this process, empty.
fn scratch() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("proctor-fuzz-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder for files");
    folder
}

/// Reads the file or folder; errors name it.
fn loaded(path: &Path, name: &str) {
    match load(path) {
        Ok(sessions) => sessions.iter().for_each(again),
        Err(error) => assert!(error.to_string().contains(name), "{error}"),
    }
}

/// The bytes as a database; what begins as a log of one is put beside it.
#[cfg(feature = "sqlite")]
fn databases(bytes: &[u8]) {
    let is_log = |it: &[u8]| it == [0x37, 0x7f, 0x06, 0x82] || it == [0x37, 0x7f, 0x06, 0x83];
    let at = bytes.windows(4).position(is_log).unwrap_or(bytes.len());
    let folder = scratch();
    let path = folder.join("file.db");
    std::fs::write(&path, &bytes[..at]).expect("room for a file");
    if at < bytes.len() {
        std::fs::write(folder.join("file.db-wal"), &bytes[at..]).expect("room for a log");
    }
    loaded(&path, "file.db");
}

/// The bytes as every kind of folder that is a session: whole in each of two files, and line by line.
fn folders(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n').take(12);
    let events: Vec<(String, &[u8])> = lines
        .enumerate()
        .map(|(at, line)| (format!("events/event-{at:05}-e{at}.json"), line))
        .collect();
    let calls: Vec<(String, &[u8])> = events
        .iter()
        .enumerate()
        .map(|(at, (_, line))| (format!("{at}.json"), *line))
        .collect();
    let mut stored: Vec<(String, &[u8])> = vec![("session/p/ses_a.json".to_owned(), bytes)];
    for (at, (_, line)) in events.iter().enumerate() {
        stored.push((format!("message/ses_a/msg_{at}.json"), *line));
        stored.push((format!("part/msg_0/prt_{at}.json"), *line));
    }
    let named = |names: [&str; 2]| names.map(|name| (name.to_owned(), bytes)).to_vec();
    let task = named(["api_conversation_history.json", "ui_messages.json"]);
    let mut conversation = named(["base_state.json", "TASKS.json"]);
    conversation.extend(events);
    for files in [task, conversation, calls, stored] {
        let folder = scratch();
        std::fs::create_dir_all(folder.join("events")).expect("room for a folder");
        for (name, content) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().expect("in a folder")).expect("room for a folder");
            std::fs::write(path, content).expect("room for a file");
        }
        loaded(&folder, "proctor-fuzz");
    }
}
