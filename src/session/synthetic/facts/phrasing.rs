//! How a planted fact is said: by the user, in a log, in a configuration file.

use super::{Pair, Planned};
use crate::session::ground_truth::Fact;
use crate::session::synthetic::random::Random;

/// One line that says what a key is, as a person writes it.
pub(crate) fn said(random: &mut Random, pair: &Pair) -> String {
    let templates = [
        "The {key} is {value}.",
        "For the {key}, take {value}.",
        "By the way, {value} is the {key}.",
        "I looked it up: {key} {value}.",
        "They moved the {key} to {value} this morning.",
        "You will see {value} in some places, that is the {key}.",
    ];
    pair.ways.fill(
        pair.ways.pick(random, &templates),
        &[("key", &pair.key), ("value", &pair.value)],
    )
}

/// What the user types to say a fact: a rule as it stands, or a key among others.
pub(crate) fn typed(random: &mut Random, fact: &Planned) -> String {
    if let Some(statement) = fact.statement() {
        if !matches!(fact.fact, Fact::Constraint { .. }) {
            return statement.to_owned();
        }
        let lead = random.pick(&[
            "",
            "One more thing. ",
            "For the whole session: ",
            "Also: ",
            "Before I forget. ",
        ]);
        return format!("{}{statement}", fact.ways.language.say(lead));
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
    let templates = [
        "resolved {key} to {value}",
        "{key} = {value}",
        "using {value} as {key}",
        "{key} changed, now {value}",
        "registered {value} ({key})",
    ];
    pair.ways.fill(
        pair.ways.pick(random, &templates),
        &[("key", &pair.key), ("value", &pair.value)],
    )
}

/// A configuration file in one of four notations: path and lines.
pub(crate) fn configuration(
    random: &mut Random,
    noun: &str,
    pairs: &[Pair],
) -> (String, Vec<String>) {
    let number = random.between(10, 99_999);
    let quoted = |pair: &Pair, joint: &str| pair.key.replace(' ', joint);
    match random.below(4) {
        0 => {
            let mut lines = vec![format!("# settings for {noun}"), "[service]".to_owned()];
            lines.extend(
                pairs
                    .iter()
                    .map(|p| format!("{} = \"{}\"", quoted(p, "."), p.value)),
            );
            lines.push(format!("timeout_ms = {}", random.between(100, 9_000)));
            (format!("deploy/{noun}-{number}.toml"), lines)
        }
        1 => {
            let mut lines = vec!["service:".to_owned(), format!("  name: {noun}")];
            lines.extend(
                pairs
                    .iter()
                    .map(|p| format!("  {}: \"{}\"", quoted(p, "-"), p.value)),
            );
            lines.push(format!("  workers: {}", random.between(2, 64)));
            (format!("deploy/{noun}-{number}.yaml"), lines)
        }
        2 => {
            let mut lines = vec!["{".to_owned(), format!("  \"service\": \"{noun}\",")];
            lines.extend(
                pairs
                    .iter()
                    .map(|p| format!("  \"{}\": \"{}\",", p.key, p.value)),
            );
            lines.push(format!("  \"retries\": {}", random.between(1, 9)));
            lines.push("}".to_owned());
            (format!("deploy/{noun}-{number}.json"), lines)
        }
        _ => {
            let mut lines = vec![format!("; {noun}, generated, do not sort")];
            lines.extend(
                pairs
                    .iter()
                    .map(|p| format!("{}: {}", quoted(p, "."), p.value)),
            );
            (format!("deploy/{noun}-{number}.properties"), lines)
        }
    }
}
