//! How a planted fact is said: by the user, in a log, in a configuration file.

use super::{Pair, Planned};
use crate::session::ground_truth::Fact;
use crate::session::synthetic::random::Random;
use crate::session::synthetic::words::FACTS;

/// One line that says what a key is, as a person writes it.
pub(crate) fn said(random: &mut Random, pair: &Pair) -> String {
    let slots = [("key", pair.key.as_str()), ("value", &pair.value)];
    pair.ways.say(random, &FACTS.said, &slots)
}

/// What the user types to say a fact: a rule as it stands, or a key among others.
pub(crate) fn typed(random: &mut Random, fact: &Planned) -> String {
    if let Some(line) = &fact.line {
        if !matches!(fact.fact.fact, Fact::Constraint { .. }) {
            return line.clone();
        }
        let lead = random.pick(&FACTS.rule_leads);
        return format!("{}{line}", fact.ways.language.say(lead));
    }
    let lines: Vec<String> = shuffled(random, fact)
        .iter()
        .map(|pair| said(random, pair))
        .collect();
    lines.join("\n")
}

/// The key and value of a fact among its distractors, in random order.
pub(crate) fn shuffled(random: &mut Random, fact: &Planned) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = fact.pair.iter().chain(&fact.distractors).cloned().collect();
    random.shuffle(&mut pairs);
    pairs
}

/// The text of a log line that says what a key is.
pub(crate) fn logged(random: &mut Random, pair: &Pair) -> String {
    let slots = [("key", pair.key.as_str()), ("value", &pair.value)];
    pair.ways.say(random, &FACTS.logged, &slots)
}

/// A configuration file in one of four notations: path and lines.
pub(crate) fn configuration(
    random: &mut Random,
    noun: &str,
    pairs: &[Pair],
) -> (String, Vec<String>) {
    let number = random.between(10, 99_999);
    let (end, head, joint, before, middle, after) = match random.below(4) {
        0 => (
            "toml",
            format!("# settings for {noun}\n[service]"),
            ".",
            "",
            " = \"",
            "\"",
        ),
        1 => (
            "yaml",
            format!("service:\n  name: {noun}"),
            "-",
            "  ",
            ": \"",
            "\"",
        ),
        2 => (
            "json",
            format!("{{\n  \"service\": \"{noun}\","),
            " ",
            "  \"",
            "\": \"",
            "\",",
        ),
        _ => (
            "properties",
            format!("; {noun}, generated, do not sort"),
            ".",
            "",
            ": ",
            "",
        ),
    };
    let mut lines: Vec<String> = head.lines().map(str::to_owned).collect();
    for Pair { key, value, .. } in pairs {
        lines.push(format!(
            "{before}{}{middle}{value}{after}",
            key.replace(' ', joint)
        ));
    }
    match end {
        "toml" => lines.push(format!("timeout_ms = {}", random.between(100, 9_000))),
        "yaml" => lines.push(format!("  workers: {}", random.between(2, 64))),
        "json" => lines.extend([
            format!("  \"retries\": {}", random.between(1, 9)),
            "}".to_owned(),
        ]),
        _ => {}
    }
    (format!("deploy/{noun}-{number}.{end}"), lines)
}
