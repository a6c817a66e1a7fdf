//! The output of tools: test runs, compilers, logs, JSON, history, web pages.

use super::code::CodeLanguage;
use super::random::Random;

/// Something of the repository that output can refer to.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourcePlace {
    pub(crate) noun: &'static str,
    pub(crate) path: String,
    pub(crate) symbol: String,
    pub(crate) language: CodeLanguage,
}

impl SourcePlace {
    fn slots(&self) -> [(&str, &str); 3] {
        [("noun", self.noun), ("path", &self.path), ("symbol", &self.symbol)]
    }

    /// A template of a rule about the place.
    fn say(&self, random: &Random, rule: &str) -> String {
        random.say(rule, &self.slots())
    }
}

/// Names that the agent may use again.
#[derive(Debug, Default)]
pub(crate) struct OutputNames {
    pub(crate) requests: Vec<String>,
    pub(crate) tests: Vec<String>,
    pub(crate) commits: Vec<String>,
    pub(crate) pages: Vec<String>,
}

/// Text of a tool, with the names in it.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) lines: Vec<String>,
    pub(crate) names: OutputNames,
    pub(crate) failed: bool,
    /// The bytes of the lines that were pushed.
    size: usize,
}

impl Output {
    fn push(&mut self, line: &str) {
        self.size += line.len() + 1;
        self.lines.push(line.to_owned());
    }
}

impl From<Vec<String>> for Output {
    fn from(lines: Vec<String>) -> Self {
        Self { lines, ..Self::default() }
    }
}

/// The time of day of a moment in milliseconds, as `09:14:22.113`.
pub(crate) fn clock(milliseconds: i64) -> String {
    let day = milliseconds.rem_euclid(86_400_000);
    format!(
        "{:02}:{:02}:{:02}.{:03}",
        day / 3_600_000,
        day / 60_000 % 60,
        day / 1_000 % 60,
        day % 1_000
    )
}

/// Lines of a service's log, ending at `now`.
pub(crate) fn log(random: &Random, place: &SourcePlace, now: i64, bytes: usize) -> Output {
    let mut output = Output::default();
    let count = bytes / 105 + 1;
    let mut at = now - i64::try_from(count).unwrap_or(0) * 700;
    while output.size < bytes {
        at += random.milliseconds(3, 1_400);
        let line = log_line(random, place, at, &mut output.names.requests);
        output.push(&line);
    }
    output
}

/// One line of a service's log, mostly about the last of the requests.
pub(crate) fn log_line(
    random: &Random,
    place: &SourcePlace,
    at: i64,
    requests: &mut Vec<String>,
) -> String {
    let request = match requests.last() {
        Some(last) if random.percent(60) => last.clone(),
        _ => {
            let request = random.draw("request");
            requests.push(request.clone());
            request
        }
    };
    let time = clock(at);
    let mut slots = place.slots().to_vec();
    slots.extend([("clock", time.as_str()), ("request", &request)]);
    random.say("log_line", &slots)
}

/// A test run that names the functions under test; there is at least one place.
pub(crate) fn test_run(random: &Random, places: &[SourcePlace], now: i64, bytes: usize) -> Output {
    let mut output = Output::default();
    let language = places[0].language;
    let failing = random.weighted(&[55, 25, 15, 5]);
    let mut failures = Vec::new();
    let reserve = bytes * 2 / 5 * failing.min(1);
    while failures.len() < failing || output.size < bytes - reserve {
        let at = &places[random.index(places.len())];
        let name = at.language.say(random, "test_case", &at.slots());
        let fails =
            failures.len() < failing && (random.percent(12) || output.size >= bytes - reserve);
        let mark = language.fill(if fails { "fail" } else { "pass" }, &[]);
        let percent = (output.size * 100 / bytes.max(1)).min(100).to_string();
        let slots = [("name", name.as_str()), ("mark", &mark), ("percent", &percent)];
        output.push(&language.say(random, "test_line", &slots));
        if fails {
            failures.push((name, at));
        }
    }
    let passed = (output.lines.len() - failures.len()).to_string();
    let failed = failures.len().to_string();
    output.failed = !failures.is_empty();
    for (name, at) in failures {
        output.push("");
        output.push(&format!("---- {name} ----"));
        let slots = [("name", name.as_str()), ("path", &at.path)];
        output.push(&at.language.say(random, "failure", &slots));
        let share = reserve / failing.max(1);
        let captured = log(random, at, now, share.saturating_sub(160));
        output.lines.extend(captured.lines);
        output.names.requests.extend(captured.names.requests);
        output.names.tests.push(name);
    }
    let time = format!("{}.{:02}s", random.between(0, 48), random.below(100));
    let slots = [
        ("passed", passed.as_str()),
        ("mark", &language.fill(if output.failed { "fail" } else { "pass" }, &[])),
        ("failed", &failed),
        ("time", &time),
    ];
    output.push("");
    output.push(&language.fill("summary", &slots));
    output
}

/// The errors of a compiler or type checker.
pub(crate) fn diagnostics(random: &Random, places: &[SourcePlace], bytes: usize) -> Output {
    let mut output = Output::default();
    let mut count = 0;
    while output.size < bytes {
        let place = &places[random.index(places.len())];
        let text = place.language.say(random, "diagnostic", &place.slots());
        text.lines().for_each(|line| output.push(line));
        count += 1;
    }
    output.push(&format!("found {count} errors"));
    output.failed = true;
    output
}

/// Lines of a rule, each with an id of its own, and the ids.
fn listed(
    random: &Random,
    place: &SourcePlace,
    (rule, id): (&str, &str),
    bytes: usize,
) -> (Output, Vec<String>) {
    let mut output = Output::default();
    let mut ids = Vec::new();
    while output.size < bytes {
        let id = random.draw(id);
        let [noun, _, symbol] = place.slots();
        output.push(&random.say(rule, &[noun, symbol, ("id", &id)]));
        ids.push(id);
    }
    (output, ids)
}

/// The answer of a JSON interface: records with ids and numbers.
pub(crate) fn json(random: &Random, place: &SourcePlace, bytes: usize) -> Output {
    let (mut output, requests) = listed(random, place, ("record", "request"), bytes);
    output.names.requests = requests;
    let records = output.lines.join("\n");
    let json = format!("[\n{}\n]", records.trim_end_matches(','));
    Output { lines: json.lines().map(str::to_owned).collect(), ..output }
}

/// A one-line history.
pub(crate) fn history(random: &Random, place: &SourcePlace, bytes: usize) -> Output {
    let (mut output, commits) = listed(random, place, ("logged_commit", "commit"), bytes);
    output.names.commits = commits;
    output
}

/// A page of documentation.
pub(crate) fn page(random: &Random, place: &SourcePlace, bytes: usize) -> Output {
    let mut output = Output::default();
    output.push(&place.say(random, "page_title"));
    while output.size < bytes {
        output.push("");
        if random.percent(30) {
            output.push(&place.say(random, "page_heading"));
            output.push("");
        }
        let count = random.count(2, 6);
        let paragraph: Vec<String> = (0..count).map(|_| place.say(random, "doc")).collect();
        output.push(&paragraph.join(" "));
    }
    output
}
