//! What real recordings show: what is read of them against their catalogue, how far the counter is
//! off, and the products' own compactions beside the strategies. `docs/reference/recordings.md` is made here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proctor::metric::support::Support;
use proctor::metric::survival::Survival;
use proctor::metric::tokens::peak_prompt;
use proctor::model::offline::Offline;
use proctor::probe::derive::derive;
use proctor::record::{CellRecord, End};
use proctor::replay::verify::unsound;
use proctor::replay::{Models, NoClock, PreparedSession, Replayed, replay};
use proctor::session::import::{self, ImportError};
use proctor::session::{CompactedTo, Message, Recorded, Session, Tag};
use proctor::tokens::{CharsPer4, CountedTexts, counter};
use proctor::units::Tokens;
use proctor::window::Window;
use rayon::prelude::*;

use crate::goldens::golden;
use crate::shared;
use crate::support::{cell, strategy};

const PAGE: &str = "docs/reference/recordings.md";

const INTRODUCTION: &str = "# What real recordings show

Proctor's importers are held against public recordings of many products. They are not part of this repository; a catalogue lists them,
with what another reader counted in each. This page is made by `tests/it/recordings.rs` from the recordings (`PROCTOR_SHARED` names
their folder, `PROCTOR_BLESS=1` writes the page), and the same test fails where it no longer says what the program does.

Codex writes 95 % of its window into a rollout; the session has the whole one. Where a rollout names the response that wrote a summary,
that response is no call of the agent's. A Claude Code file that goes on with a new root after a cleared context has a compaction there
that keeps nothing, if the next prompt was billed smaller. Images count by width and height, where their data says them.

";

const IMPORTED: &str = "## Every file, against the catalogue

Tool uses, compactions and tokens are read / catalogued, and one number where both say the same. Tokens are `chars/4`, the system
prompt and what compactions wrote included, and are the same where they differ by less than 2 percent. Letters name why they differ.

| file | format | sessions | messages | tool uses | results | orphans | tokens | compactions | unknown | |
|---|---|---|---|---|---|---|---|---|---|---|
";

const USED: &str = "
## The counter and the cache, where usage is recorded

Growth of the prompt from call to call, counted with `o200k` against what was billed; *ratio* is all counted over all billed.
`o200k` is the vocabulary of OpenAI's models: those of others count 20 percent more and upwards for the same text. What models read
and the recording does not hold (reminders, thinking whose words were left out, encrypted reasoning) lowers the ratio as well.
*Cache read* is the share of all billed prompt tokens that was read from the provider's cache. `proctor run --session FILE
--strategy none` prints both for one file.

| file | calls with usage | increments | median error | 95th percentile | ratio | cache read |
|---|---|---|---|---|---|---|
";

const COMPACTED: &str = "
## Claude Code's own compactions beside the strategies

Every Claude Code recording that holds a compaction with a readable summary and what came before it, counted with `chars/4`.
`recorded` replays that compaction where it happened, with its own summary, in whatever window. The others run in a window of which
the context filled nine tenths at that call, so that they fire near it; their summaries are the offline stand-in's, a digest of
sentences and no model's, and so a floor. *Entities* is the mean share kept of the facts that `proctor sessions facts` finds in the
recording: rules, requests, and what was fetched again. *Actions supported* is the share of the paths, names and numbers in
the agent's tool calls that stood in the prompt.

| file | strategy | compactions | first: before | after | largest prompt | entities | actions supported | end |
|---|---|---|---|---|---|---|---|---|
";

/// What the catalogue says of a file.
struct Listed {
    file: String,
    tool_uses: usize,
    tokens: u64,
    compactions: usize,
}

fn catalogue(folder: &Path) -> Vec<Listed> {
    let text = std::fs::read_to_string(folder.join("CATALOG.md")).unwrap();
    let rows = text.lines().filter_map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        Some(Listed {
            file: cells.get(1).filter(|it| it.contains('/'))?.to_string(),
            tool_uses: cells.get(4)?.parse().ok()?,
            tokens: cells.get(5)?.parse().ok()?,
            compactions: cells.get(7)?.parse().ok()?,
        })
    });
    rows.collect()
}

/// What is read of a file.
#[derive(Default)]
struct Read {
    format: String,
    sessions: usize,
    messages: usize,
    tool_uses: usize,
    results: usize,
    orphans: usize,
    chars: usize,
    compactions: usize,
    unknown: u64,
}

fn chars(message: &Message) -> usize {
    let texts = message.model_text().iter();
    texts.map(|text| text.chars().count()).sum()
}

impl Read {
    fn of(sessions: &[Session]) -> Self {
        let mut read = Self { sessions: sessions.len(), ..Self::default() };
        for session in sessions {
            read.format.clone_from(&session.source().format);
            read.unknown += session.source().unknown.values().sum::<u64>();
            read.chars += session.system().map_or(0, |text| text.chars().count());
            for message in session.messages() {
                read.messages += 1;
                read.tool_uses += message.tool_uses().count();
                read.results += message.tool_results().count();
                read.orphans += usize::from(message.has_tag(Tag::Orphan));
                read.chars += chars(message);
            }
            for compaction in session.compactions() {
                read.compactions += 1;
                // A summary is a message of the file, beside the history here.
                if let CompactedTo::Replaced(pieces) = &compaction.after {
                    for piece in pieces {
                        if let Recorded::Written(message) = piece {
                            read.chars += chars(message);
                        }
                    }
                }
            }
        }
        read
    }
}

/// Why a quantity is not the catalogue's: beginning of the file's name, quantity, reason. Tokens
/// that differ by less than 2 percent are the same.
const DIFFERENCES: &[(&str, &str, &str)] = &[
    (
        "claude-code/",
        "tokens",
        "attachments that the model read (reminders, files, output of hooks) are counted",
    ),
    ("cline/", "tokens", "attached files and results that are no text are rendered in other ways"),
    ("codex/", "tokens", "base instructions and reasoning items are counted"),
    (
        "copilot-cli/",
        "tokens",
        "the model's reasoning and the messages of failed tools are counted",
    ),
    ("iflow/", "tool uses", "each tool use is written twice, and counted once"),
    ("iflow/", "tokens", "results are counted once, as the text that the model read"),
    ("openai-chat/oh-sdk", "tool uses", "the answer beside the request is a message too"),
    ("openai-chat/oh-sdk", "tokens", "the answer beside the request is a message too"),
    (
        "opencode/nimbus__5c",
        "compactions",
        "results that were cleared (`time.compacted`) are a compaction",
    ),
    (
        "openhands/",
        "tokens",
        "calls are told by the model's own response where the file holds it, and by the action where not",
    ),
    ("pi/", "tokens", "the output of commands that the user ran is counted"),
    ("swe-agent/sweagent", "tool uses", "actions stand in the model's text, and are no tool uses"),
];

/// Files that hold no conversation a model was sent, with the reason.
const UNREAD: &[(&str, &str)] = &[
    (
        "tau-bench/MockRetailDomainEnv-few_shot.jsonl",
        "examples for a prompt, each one text; no messages",
    ),
    ("tau2-bench/voice__", "speech in ticks; no messages"),
];

fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

fn percent(share: Option<f64>) -> String {
    share.map_or("–".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// A file's name, short enough for a table.
fn short(file: &str) -> String {
    let (product, name) = file.split_once('/').unwrap();
    let name: String = if name.chars().count() > 44 {
        let end: String = name.chars().rev().take(12).collect();
        let end: String = end.chars().rev().collect();
        name.chars().take(30).collect::<String>() + "…" + &end
    } else {
        name.to_owned()
    };
    format!("{product}/{name}")
}

/// What is read of each file beside what the catalogue says; differences have a reason.
fn imported(rows: &[Listed], read: &BTreeMap<&str, Vec<Session>>) -> String {
    let mut table = IMPORTED.to_owned();
    let mut reasons: Vec<&str> = Vec::new();
    let mut named_ones: BTreeSet<usize> = BTreeSet::new();
    for row in rows {
        let Some(sessions) = read.get(row.file.as_str()) else {
            continue;
        };
        let it = Read::of(sessions);
        assert_eq!(it.unknown, 0, "{}: unknown records", row.file);
        let tokens = it.chars as u64 / 4;
        let is_near = tokens.abs_diff(row.tokens) * 50 <= row.tokens;
        let mut letters = BTreeSet::new();
        let mut shown = |what: &str, own: u64, listed: u64, is_same: bool| {
            if is_same {
                return number(own);
            }
            let named = DIFFERENCES
                .iter()
                .position(|(file, quantity, _)| row.file.starts_with(file) && *quantity == what);
            let named = named.unwrap_or_else(|| {
                panic!("{}: {own} {what}, and {listed} in the catalogue: why?", row.file)
            });
            named_ones.insert(named);
            let reason = DIFFERENCES[named].2;
            let at = reasons.iter().position(|it| *it == reason).unwrap_or_else(|| {
                reasons.push(reason);
                reasons.len() - 1
            });
            letters.insert(char::from(b'a' + u8::try_from(at).unwrap()));
            format!("{} / {}", number(own), number(listed))
        };
        let same = |own: usize, listed: usize| (own as u64, listed as u64, own == listed);
        let (own, listed, is_same) = same(it.tool_uses, row.tool_uses);
        let uses = shown("tool uses", own, listed, is_same);
        let tokens = shown("tokens", tokens, row.tokens, is_near);
        let (own, listed, is_same) = same(it.compactions, row.compactions);
        let compactions = shown("compactions", own, listed, is_same);
        let letters: String = letters.into_iter().collect();
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {uses} | {} | {} | {tokens} | {compactions} | {} | {letters} |",
            short(&row.file),
            it.format,
            it.sessions,
            it.messages,
            it.results,
            it.orphans,
            it.unknown,
        );
    }
    assert_eq!(named_ones.len(), DIFFERENCES.len(), "a difference that is none: {named_ones:?}");
    table.push('\n');
    for (at, reason) in reasons.iter().enumerate() {
        let letter = char::from(b'a' + u8::try_from(at).unwrap());
        let _ = writeln!(table, "- {letter}: {reason}");
    }
    table.push_str("\nNo session is in:\n\n");
    for row in rows.iter().filter(|it| !read.contains_key(it.file.as_str())) {
        let why = UNREAD.iter().find(|(file, _)| row.file.starts_with(file));
        let (_, why) = why.unwrap_or_else(|| panic!("{} is not read", row.file));
        let _ = writeln!(table, "- {}: {why}", row.file);
    }
    table
}

fn offline(counts: &Arc<CountedTexts>) -> Models {
    Models {
        summariser: Arc::new(Offline::new(counts.clone())),
        reader: None,
        judge: None,
        times: proctor::replay::Repetitions::default(),
    }
}

/// How far `o200k` is off, and how much the recorded provider read from its cache.
fn usage(read: &BTreeMap<&str, Vec<Session>>) -> String {
    let mut table = USED.to_owned();
    let files: Vec<(&str, &Vec<Session>)> = read.iter().map(|(file, it)| (*file, it)).collect();
    let rows: Vec<Option<String>> = files
        .into_par_iter()
        .map(|(file, sessions)| {
            let session = sessions.iter().max_by_key(|it| it.calls().len())?;
            let usages = session.messages().iter().filter_map(|it| it.details.usage);
            let billed: Vec<_> = usages.filter(|it| it.prompt() > Tokens::ZERO).collect();
            if billed.is_empty() {
                return None;
            }
            let counts = Arc::new(CountedTexts::new(counter("o200k").unwrap()));
            let models = offline(&counts);
            let prepared =
                PreparedSession::new(Arc::new(session.clone()), counts, Vec::new()).unwrap();
            let full = replay(&prepared, cell("full"), Replayed::Full, &models, &NoClock).record;
            let prompt: u64 = billed.iter().map(|it| it.prompt().0).sum();
            let cached: u64 = billed.iter().map(|it| it.cache_read.0).sum();
            let error = full.counter_error;
            let of = |value: fn(&proctor::record::CounterError) -> f64| {
                percent(error.as_ref().map(value))
            };
            Some(format!(
                "| {} | {} | {} | {} | {} | {} | {} |\n",
                short(file),
                billed.len(),
                error.as_ref().map_or(0, |it| it.increments),
                of(|it| it.median),
                of(|it| it.p95),
                of(|it| it.ratio),
                percent(Some(cached as f64 / prompt as f64)),
            ))
        })
        .collect();
    let rows: Vec<String> = rows.into_iter().flatten().collect();
    assert!(rows.len() >= 20, "{} files with usage", rows.len());
    table.extend(rows);
    table
}

const STRATEGIES: &[&str] = &[
    "recorded",
    "claude-code",
    "claude-code-session-memory",
    "codex",
    "observation-masking",
    "tail@20000",
];

/// The products' own compactions against strategies that fire at the same place.
fn recorded(read: &BTreeMap<&str, Vec<Session>>) -> String {
    let mut table = COMPACTED.to_owned();
    // Where a file begins with a summary, the history before it is in no file.
    let is_written = |piece: &Recorded| matches!(piece, Recorded::Written(_));
    let is_readable = |session: &&Session| {
        let has_summary = |after: &CompactedTo| match after {
            CompactedTo::Replaced(pieces) => pieces.iter().any(is_written),
            CompactedTo::Encrypted | CompactedTo::Missing => false,
        };
        session.source().format == "claude-code"
            && session.compactions().iter().any(|it| has_summary(&it.after))
    };
    let sessions: Vec<(&str, &Session)> = read
        .iter()
        .flat_map(|(file, sessions)| sessions.iter().map(|it| (*file, it)))
        .filter(|(_, it)| is_readable(it))
        .collect();
    assert!(sessions.len() >= 3, "{} sessions", sessions.len());
    let rows: Vec<String> =
        sessions.into_par_iter().map(|(file, session)| compared(file, session)).collect();
    table.extend(rows);
    table
}

fn compared(file: &str, session: &Session) -> String {
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let models = offline(&counts);
    let session = Arc::new(session.clone());
    let with = |probes| PreparedSession::new(session.clone(), counts.clone(), probes).unwrap();
    let mut truth = derive(&session);
    let odd: BTreeSet<String> =
        unsound(&with(truth.facts.clone())).into_iter().map(|it| it.probe).collect();
    truth.facts.retain(|fact| !odd.contains(&fact.id));
    let prepared = with(truth.facts.clone());
    let full = replay(&prepared, cell("full"), Replayed::Full, &models, &NoClock).record;
    let at = session.compactions()[0].at;
    let call = session.calls().iter().filter(|it| **it < at).count();
    let filled = full.prompt_tokens[call.saturating_sub(1)];
    let near = Window::new(Tokens(filled.0 * 10 / 9));
    let mut rows = row(file, &full, &full);
    for name in STRATEGIES {
        // What the product did, it did in its own window.
        let window = if *name == "recorded" { Window::new(Tokens(10_000_000)) } else { near };
        let strategy = Box::new(strategy(name).build().unwrap());
        let replayed = Replayed::Strategy(strategy, window);
        let record = replay(&prepared, cell(name), replayed, &models, &NoClock).record;
        assert!(
            *name != "recorded" || !record.compactions.is_empty(),
            "{file}: nothing was replayed"
        );
        rows.push_str(&row(file, &record, &full));
    }
    rows
}

fn row(file: &str, record: &CellRecord, full: &CellRecord) -> String {
    let first = record.compactions.first();
    let tokens = |tokens: Option<Tokens>| tokens.map_or("–".to_owned(), |it| number(it.0));
    let end = match &record.end {
        End::Completed => "",
        End::Died { .. } => "died",
        End::Failed { .. } => "failed",
        End::NotMeasurable { .. } => "not measurable",
    };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {end} |\n",
        short(file),
        record.strategy,
        record.compactions.len(),
        tokens(first.map(|it| it.before)),
        tokens(first.map(|it| it.after)),
        tokens(peak_prompt(record)),
        percent(Survival::of(record).planted().mean()),
        percent(Support::of(record, Some(full)).share()),
    )
}

#[test]
fn shared_the_page_on_recordings_says_what_they_show() {
    let Some(folder) = shared::folder("sessions") else {
        return;
    };
    let rows = catalogue(&folder);
    assert!(rows.len() >= 59, "{} files", rows.len());
    let loaded: Vec<(&str, Vec<Session>)> = rows
        .par_iter()
        .filter_map(|row| {
            let path: PathBuf = folder.join(&row.file);
            match import::load(&path) {
                Ok(sessions) => Some((row.file.as_str(), sessions)),
                Err(ImportError::UnknownFormat { .. } | ImportError::NoMessages { .. }) => None,
                Err(error) => panic!("{error}"),
            }
        })
        .collect();
    let read: BTreeMap<&str, Vec<Session>> = loaded.into_iter().collect();
    let page = INTRODUCTION.to_owned() + &imported(&rows, &read) + &usage(&read) + &recorded(&read);
    golden(PAGE, &page);
}
