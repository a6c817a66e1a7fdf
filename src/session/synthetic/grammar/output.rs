//! What tools print: test runs, compilers, logs, JSON, history, web pages.

use super::names::{FAULTS, NOUNS, OBJECTS, VERBS, pascal};
use super::prose;
use super::source::Language;
use crate::session::synthetic::random::Random;

/// Something of the repository that output can refer to.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) noun: &'static str,
    pub(crate) path: String,
    pub(crate) symbol: String,
    pub(crate) language: Language,
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
    let (level, text) = match random.weighted(&[70, 18, 8, 4]) {
        0 => ("INFO ", prose::event(random, place.noun)),
        1 => (
            "DEBUG",
            format!("{} took {} ms", place.symbol, random.between(1, 900)),
        ),
        2 => (
            "WARN ",
            format!(
                "{}, retrying in {} ms",
                random.pick(FAULTS).replace('_', " "),
                random.between(50, 4_000)
            ),
        ),
        _ => (
            "ERROR",
            format!(
                "{} failed: {} ({}:{})",
                place.symbol,
                pascal(random.pick(FAULTS)),
                place.path,
                random.between(12, 420)
            ),
        ),
    };
    format!(
        "{} {level} {}: {text} {}={} id={request}",
        clock(at),
        place.noun,
        random.pick(OBJECTS),
        random.between(1, 99_999)
    )
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
        let line = match place.language {
            Language::Rust => format!("test {name} ... {}", if fails { "FAILED" } else { "ok" }),
            Language::Python => format!(
                "{name} {} [{:>3}%]",
                if fails { "FAILED" } else { "PASSED" },
                (size * 100 / bytes.max(1)).min(100)
            ),
            Language::TypeScript => format!(
                " {} {name} ({} ms)",
                if fails { "x" } else { "+" },
                random.between(1, 380)
            ),
        };
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
        let (left, right) = (random.between(1, 9_999), random.between(1, 9_999));
        let line = random.between(20, 400);
        output.lines.push(match at.language {
            Language::Rust => format!(
                "thread '{name}' panicked at {}:{line}:9: left: {left}, right: {right}",
                at.path
            ),
            Language::Python => format!(
                "{}:{line}: AssertionError: assert {left} == {right}",
                at.path
            ),
            Language::TypeScript => format!(
                "AssertionError: expected {left} to be {right} at {}:{line}:11",
                at.path
            ),
        });
        let captured = log(random, at, now, share.saturating_sub(160));
        output.lines.extend(captured.lines);
        output.requests.extend(captured.requests);
        output.tests.push(name.clone());
    }
    let failed = failures.len();
    let time = format!("{}.{:02}s", random.between(0, 48), random.below(100));
    output.lines.push(String::new());
    output.lines.push(match place.language {
        Language::Rust => format!(
            "test result: {}. {passed} passed; {failed} failed; 0 ignored; finished in {time}",
            if failed > 0 { "FAILED" } else { "ok" }
        ),
        Language::Python => format!("===== {failed} failed, {passed} passed in {time} ====="),
        Language::TypeScript => {
            format!("Tests  {failed} failed | {passed} passed\nDuration  {time}")
        }
    });
    output.failed = failed > 0;
    output
}

fn test_name(random: &mut Random, place: &Place) -> String {
    let case = format!(
        "{}_{}_{}",
        random.pick(VERBS),
        random.pick(OBJECTS),
        random.pick(&[
            "twice",
            "when_empty",
            "after_close",
            "in_order",
            "past_limit",
            "at_midnight"
        ])
    );
    match place.language {
        Language::Rust => format!("{}::tests::{case}", place.noun),
        Language::Python => format!("services/{}/tests/test_flow.py::test_{case}", place.noun),
        Language::TypeScript => format!("{} > {}", place.symbol, case.replace('_', " ")),
    }
}

/// What a compiler or type checker says.
pub(crate) fn diagnostics(random: &mut Random, places: &[Place], bytes: usize) -> Output {
    let mut output = Output::default();
    let mut count = 0;
    while output.size() < bytes && !places.is_empty() {
        let place = &places[random.index(places.len())];
        let (line, column) = (random.between(8, 420), random.between(5, 60));
        let object = random.pick(OBJECTS);
        count += 1;
        let text = match place.language {
            Language::Rust => format!(
                "error[E0{}]: mismatched types\n  --> {}:{line}:{column}\n   |\n{line:>3} |     {}(source, {object})?\n   |     ^^^^ expected `u64`, found `{}`\n",
                random.between(277, 599),
                place.path,
                place.symbol,
                pascal(object)
            ),
            Language::Python => format!(
                "{}:{line}: error: Argument \"{object}\" to \"{}\" has incompatible type \"{} | None\"  [arg-type]",
                place.path,
                place.symbol,
                pascal(object)
            ),
            Language::TypeScript => format!(
                "{}({line},{column}): error TS{}: Argument of type '{}' is not assignable to parameter of '{}'.",
                place.path,
                random.between(2_304, 2_769),
                pascal(object),
                place.symbol
            ),
        };
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
            random.pick(OBJECTS),
            random.between(0, 999_999),
            random.pick(&["open", "held", "settled", "lapsed"]),
            random.pick(OBJECTS),
            random.pick(VERBS),
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
            _ => format!(
                "{}: {} the {}",
                random.pick(NOUNS),
                random.pick(VERBS),
                random.pick(OBJECTS).replace('_', " ")
            ),
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
    output.lines.push(format!(
        "# {} {} guide",
        pascal(place.noun),
        random.pick(OBJECTS).replace('_', " ")
    ));
    while output.size() < bytes {
        output.lines.push(String::new());
        if random.percent(30) {
            output.lines.push(format!(
                "## {} and {}",
                random.pick(OBJECTS),
                random.pick(OBJECTS)
            ));
            output.lines.push(String::new());
        }
        let paragraph: Vec<String> = (0..random.count(2, 6))
            .map(|_| prose::doc(random, place.noun))
            .collect();
        output.lines.push(paragraph.join(" "));
    }
    output
}
