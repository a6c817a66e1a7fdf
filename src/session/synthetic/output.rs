//! What tools print: test runs, compilers, logs, JSON, history, web pages.

use super::code::CodeLanguage;
use super::prose;
use super::random::Random;
use super::words::{NAMES, fill, pascal};

/// Something of the repository that output can refer to.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) noun: &'static str,
    pub(crate) path: String,
    pub(crate) symbol: String,
    pub(crate) language: &'static CodeLanguage,
}

/// Text of a tool, with the names in it that the agent may use again.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) lines: Vec<String>,
    pub(crate) requests: Vec<String>,
    pub(crate) tests: Vec<String>,
    pub(crate) commits: Vec<String>,
    pub(crate) failed: bool,
}

impl Output {
    fn size(&self) -> usize {
        self.lines.iter().map(|line| line.len() + 1).sum()
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
pub(crate) fn log(random: &mut Random, place: &Place, now: i64, bytes: usize) -> Output {
    let mut output = Output::default();
    let count = bytes / 105 + 1;
    let mut at = now - i64::try_from(count).unwrap_or(0) * 700;
    let mut size = 0;
    while size < bytes {
        at += i64::try_from(random.between(3, 1_400)).unwrap_or(3);
        let line = log_line(random, place, at, &mut output.requests);
        size += line.len() + 1;
        output.lines.push(line);
    }
    output
}

/// One line of a service's log.
pub(crate) fn log_line(
    random: &mut Random,
    place: &Place,
    at: i64,
    requests: &mut Vec<String>,
) -> String {
    let request = match requests.last() {
        Some(last) if random.percent(60) => last.clone(),
        _ => {
            let request = format!("req-{}", random.hex(6));
            requests.push(request.clone());
            request
        }
    };
    let Place {
        noun, path, symbol, ..
    } = place;
    let (level, text) = match random.weighted(&[70, 18, 8, 4]) {
        0 => ("INFO ", prose::event(random, noun)),
        1 => (
            "DEBUG",
            format!("{symbol} took {} ms", random.between(1, 900)),
        ),
        2 => {
            let fault = fault(random);
            let pause = random.between(50, 4_000);
            ("WARN ", format!("{fault}, retrying in {pause} ms"))
        }
        _ => {
            let fault = pascal(random.pick(&NAMES.faults));
            let line = random.between(12, 420);
            ("ERROR", format!("{symbol} failed: {fault} ({path}:{line})"))
        }
    };
    let object = random.pick(&NAMES.objects);
    let number = random.between(1, 99_999);
    format!(
        "{} {level} {noun}: {text} {object}={number} id={request}",
        clock(at)
    )
}

/// What goes wrong, in words.
pub(crate) fn fault(random: &mut Random) -> String {
    random.pick(&NAMES.faults).replace('_', " ")
}

/// A test run that names the functions under test.
pub(crate) fn test_run(random: &mut Random, places: &[Place], now: i64, bytes: usize) -> Output {
    let mut output = Output::default();
    let Some(place) = places.first() else {
        return output;
    };
    let failing = random.weighted(&[55, 25, 15, 5]);
    let mut failures = Vec::new();
    let mut passed = 0_u64;
    let reserve = bytes * 2 / 5 * failing.min(1);
    let mut size = 0;
    while failures.len() < failing || size < bytes - reserve {
        let at = &places[random.index(places.len())];
        let name = test_name(random, at);
        let fails = failures.len() < failing && (random.percent(12) || size >= bytes - reserve);
        let percent = (size * 100 / bytes.max(1)).min(100);
        let mut slots = vec![
            ("name", name.clone()),
            ("mark", place.language.mark(fails)),
            ("percent", format!("{percent:>3}")),
        ];
        if place.language.test_line.contains("{milliseconds}") {
            slots.push(("milliseconds", random.between(1, 380).to_string()));
        }
        let line = filled(place.language.test_line, &slots);
        size += line.len() + 1;
        output.lines.push(line);
        if fails {
            failures.push((name, at));
        } else {
            passed += 1;
        }
    }
    for (name, at) in &failures {
        let share = reserve / failures.len().max(1);
        output.lines.push(String::new());
        output.lines.push(format!("---- {name} ----"));
        let slots = [
            ("name", name.clone()),
            ("path", at.path.clone()),
            ("left", random.between(1, 9_999).to_string()),
            ("right", random.between(1, 9_999).to_string()),
            ("line", random.between(20, 400).to_string()),
        ];
        output.lines.push(filled(at.language.failure, &slots));
        let captured = log(random, at, now, share.saturating_sub(160));
        output.lines.extend(captured.lines);
        output.requests.extend(captured.requests);
        output.tests.push(name.clone());
    }
    output.failed = !failures.is_empty();
    let slots = [
        ("mark", place.language.mark(output.failed)),
        ("passed", passed.to_string()),
        ("failed", failures.len().to_string()),
        (
            "time",
            format!("{}.{:02}s", random.between(0, 48), random.below(100)),
        ),
    ];
    output.lines.push(String::new());
    output.lines.push(filled(place.language.summary, &slots));
    output
}

fn filled(template: &str, slots: &[(&str, String)]) -> String {
    let slots = slots.iter().map(|(name, value)| (*name, value.as_str()));
    fill(template, &slots.collect::<Vec<_>>())
}

fn test_name(random: &mut Random, place: &Place) -> String {
    let (verb, object) = (random.pick(&NAMES.verbs), random.pick(&NAMES.objects));
    let moment = random.pick(&NAMES.moments);
    let case = format!("{verb}_{object}_{moment}");
    let slots = [
        ("noun", place.noun),
        ("symbol", &place.symbol),
        ("case", &case),
        ("words", &case.replace('_', " ")),
    ];
    fill(place.language.test_case, &slots)
}

/// What a compiler or type checker says.
pub(crate) fn diagnostics(random: &mut Random, places: &[Place], bytes: usize) -> Output {
    let mut output = Output::default();
    let mut count = 0;
    while output.size() < bytes && !places.is_empty() {
        let place = &places[random.index(places.len())];
        let (line, column) = (random.between(8, 420), random.between(5, 60));
        let object = random.pick(&NAMES.objects);
        let code = place
            .language
            .codes
            .map(|(low, high)| random.between(low, high));
        count += 1;
        let slots = [
            ("path", place.path.clone()),
            ("symbol", place.symbol.clone()),
            ("line", line.to_string()),
            ("padded", format!("{line:>3}")),
            ("column", column.to_string()),
            ("object", object.to_owned()),
            ("type", pascal(object)),
            ("code", code.unwrap_or(0).to_string()),
        ];
        let text = filled(place.language.diagnostic, &slots);
        output.lines.extend(text.lines().map(str::to_owned));
    }
    output.lines.push(format!("found {count} errors"));
    output.failed = true;
    output
}

/// The answer of a JSON interface: records with ids and numbers.
pub(crate) fn json(random: &mut Random, place: &Place, bytes: usize) -> Output {
    let mut output = Output::default();
    output.lines.push("[".to_owned());
    let mut size = 0;
    while size < bytes {
        let request = format!("req-{}", random.hex(6));
        let line = format!(
            "  {{\"id\": \"{}-{}\", \"{}\": {}, \"state\": \"{}\", \"request\": \"{request}\", \"tags\": [\"{}\", \"{}\"], \"note\": \"{}\"}},",
            place.noun,
            random.between(1_000, 99_999),
            random.pick(&NAMES.objects),
            random.between(0, 999_999),
            random.pick(&["open", "held", "settled", "lapsed"]),
            random.pick(&NAMES.objects),
            random.pick(&NAMES.verbs),
            prose::event(random, place.noun),
        );
        size += line.len() + 1;
        output.lines.push(line);
        output.requests.push(request);
    }
    if let Some(last) = output.lines.last_mut() {
        last.pop();
    }
    output.lines.push("]".to_owned());
    output
}

/// A one-line history.
pub(crate) fn history(random: &mut Random, place: &Place, bytes: usize) -> Output {
    let mut output = Output::default();
    let mut size = 0;
    while size < bytes {
        let commit = random.hex(9);
        let text = match random.below(3) {
            0 => format!("{}: {}", place.noun, prose::event(random, place.noun)),
            1 => format!("{} in {}", prose::reason(random), place.symbol),
            _ => {
                let (noun, verb) = (random.pick(&NAMES.nouns), random.pick(&NAMES.verbs));
                format!("{noun}: {verb} the {}", prose::object(random))
            }
        };
        let line = format!("{commit} {text}");
        size += line.len() + 1;
        output.lines.push(line);
        output.commits.push(commit);
    }
    output
}

/// A page of documentation.
pub(crate) fn page(random: &mut Random, place: &Place, bytes: usize) -> Output {
    let mut output = Output::default();
    let title = format!("# {} {} guide", pascal(place.noun), prose::object(random));
    output.lines.push(title);
    while output.size() < bytes {
        output.lines.push(String::new());
        if random.percent(30) {
            let (one, other) = (random.pick(&NAMES.objects), random.pick(&NAMES.objects));
            output.lines.push(format!("## {one} and {other}"));
            output.lines.push(String::new());
        }
        let paragraph: Vec<String> = (0..random.count(2, 6))
            .map(|_| prose::doc(random, place.noun))
            .collect();
        output.lines.push(paragraph.join(" "));
    }
    output
}
