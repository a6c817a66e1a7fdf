//! The reference of strategies, as Markdown: `docs/strategies.md` is what this writes.
//!
//! Values are those that the presets set. The comment beside a constant is its source, the comment above
//! a table is said of it as a whole: both stand where the constants do, and nowhere else. What a preset
//! leaves alone is listed behind its table, with the value that its kind of stage gives it.

use std::fmt::Write as _;

use super::control::CONTROLS;
use super::guard::DEFAULTS;
use super::law::Law;
use super::preset::{PRESETS, StrategySpec};
use super::stage::{self, STAGES};
use super::trigger::{CONDITIONS, Condition, Takes, Trigger};
use crate::settings::{Place, Setting, SettingError, Table, Value};

const HEAD: &str = "# Strategies

Every preset with its source and its constants, every control, trigger and kind of stage. This page
is written from the preset files (`presets/`) and the tables in the code; a test holds them together.

A preset is data: `proctor strategies show NAME` prints it as TOML to start your own from, and any
constant can be changed on the spot, as in `--strategy 'codex[summarize.when={window_fraction=0.8}]'`.
Behind each table stands what the preset leaves as its kinds of stages have it.
";

const OWN_PROMPT: &str = "
## A prompt of your own

Every stage that asks a model (`summarize`, `collapse_groups`, `session_memory`) takes a prompt of your
own in place of the built-in one:

```toml
[[strategies]]
preset = \"compact-directly\"
set = { summarize.prompt = \"prompts/handover.md\" }
```

The path starts at the folder of the file that names it, and at the working directory where a flag does.
The text is part of the run's fingerprint and stands in its manifest (as `prompt_text`). What stands in
double braces is filled:

| variable | what stands there |
|---|---|
| `{{conversation}}` | the messages that are summarised, as JSON; not with `mode = \"append\"`, where they stand in front of the prompt |
| `{{previous_summary}}` | the summary that is continued, empty at the first compaction; needs `previous = \"update\"` in `summarize`, and is the notes so far in `session_memory` |
| `{{focus}}` | `instructions`, and the words of a person who asked for the compaction; only in `summarize` |
| `{{max_output_tokens}}` | how long the answer may be |
| `{{window_tokens}}` | the effective window of the agent's model |

What a prompt does not name stands behind it: the focus, the previous summary, the conversation. Any other
name in double braces is an error. A prompt that asks for `<summary>` or `<state_snapshot>` has the summary
read out of that element, and the offline summariser follows its Markdown headings. Prompts are compared like
any other setting:

```
proctor sweep --strategy compact-directly -P summarize.prompt=short.md,long.md
```
";

/// All presets with their constants, all controls, conditions and kinds of stages.
///
/// Fails where a preset does not read, which a test rules out for those that are compiled in.
pub fn reference() -> Result<String, SettingError> {
    let mut out = HEAD.to_owned();
    out.push_str("\n## Presets\n");
    for (name, text) in PRESETS {
        preset(&mut out, name, text)?;
    }
    out.push_str("\n## Controls\n\n| control | what it does |\n|---|---|\n");
    for (name, doc) in CONTROLS {
        let _ = writeln!(out, "| `{name}` | {} |", cell(doc));
    }
    out.push_str("\n## When a stage fires\n\n| `when` | takes | it fires |\n|---|---|---|\n");
    for kind in CONDITIONS {
        let takes = match kind.takes {
            Takes::Word(_) => "the word alone, or `true`".to_owned(),
            Takes::Whole(low, u64::MAX, _) => format!("a whole number ≥ {low}"),
            Takes::Whole(low, high, _) => format!("a whole number {low}..={high}"),
            Takes::Fraction(_) => "a number 0..=1".to_owned(),
            Takes::Text(_) => "text".to_owned(),
            Takes::Conditions(_) => "a list of conditions".to_owned(),
        };
        let _ = writeln!(out, "| `{}` | {takes} | {} |", kind.name, cell(kind.doc));
    }
    out.push_str(OWN_PROMPT);
    out.push_str("\n## Kinds of stages\n");
    for kind in STAGES {
        let _ = write!(
            out,
            "\n### {}\n\n{}.\n",
            kind.name,
            sentence(kind.description)
        );
        if !kind.breaks.is_empty() {
            let laws: Vec<&str> = kind.breaks.iter().map(|law| law.name()).collect();
            let _ = write!(out, "\nBreaks by design: `{}`.\n", laws.join("`, `"));
        }
        if kind.knobs.is_empty() {
            continue;
        }
        out.push_str("\n| knob | takes | default | |\n|---|---|---|---|\n");
        for knob in kind.knobs {
            let _ = writeln!(
                out,
                "| `{}` | {} | {} | {} |",
                knob.name,
                cell(&knob.kind.to_string()),
                code(&knob.default.to_string()),
                cell(knob.doc)
            );
        }
    }
    Ok(out)
}

fn preset(out: &mut String, name: &str, text: &str) -> Result<(), SettingError> {
    let trigger = Trigger::of(Condition::WindowFraction(0.8));
    let spec = StrategySpec::named(name, &trigger, &Place::BuiltIn)?;
    let lines: Vec<&str> = text.lines().collect();
    let _ = write!(out, "\n### {name}\n\n{}.\n", sentence(spec.description()));
    let stages = spec.stages()?;
    if stages.is_empty() {
        return Ok(());
    }
    out.push('\n');
    if let Some(Value::Text(source)) = spec.table().get("source").map(|setting| &setting.value) {
        let _ = writeln!(out, "- Source: {source}");
    }
    let laws = spec.breaks()?;
    if !laws.is_empty() {
        let laws: Vec<&str> = laws.into_iter().map(Law::name).collect();
        let _ = writeln!(out, "- Breaks by design: `{}`", laws.join("`, `"));
    }
    let _ = writeln!(out, "- Stages, in order: {}", stages.join("; "));
    let mut rows = String::new();
    let mut left = Vec::new();
    let set = |key: &str| match spec.table().get(key).map(|setting| &setting.value) {
        Some(Value::Table(table)) => Some(table),
        _ => None,
    };
    let guards = set("guards");
    if let Some(table) = guards {
        block(&mut rows, "guards", table, &lines);
    }
    let is_set = |key: &str| guards.is_some_and(|table| table.get(key).is_some());
    let unset = DEFAULTS.iter().filter(|(key, _)| !is_set(key));
    left.push((
        "guards",
        unset.map(|(key, value)| inherited(key, value)).collect(),
    ));
    let stages = match spec.table().get("stage").map(|setting| &setting.value) {
        Some(Value::List(stages)) => stages.as_slice(),
        _ => &[],
    };
    for stage in stages {
        if let Value::Table(table) = &stage.value {
            let kind = text_of(table, "kind").unwrap_or_default();
            let name = text_of(table, "name").unwrap_or(kind);
            block(&mut rows, name, table, &lines);
            left.push((name, unset_knobs(kind, table)));
        }
    }
    if let Some(table) = set("overflow") {
        block(&mut rows, "overflow", table, &lines);
        let of = text_of(table, "stage").unwrap_or_default();
        let is_stage = left.iter().any(|(name, _)| *name == of);
        left.push(if is_stage {
            ("overflow", vec![format!("the rest as `{of}` above has it")])
        } else {
            ("overflow", unset_knobs(of, table))
        });
    }
    if !rows.is_empty() {
        out.push_str(
            "\n| where | constant | value | source | said of it |\n|---|---|---|---|---|\n",
        );
        out.push_str(&rows);
    }
    out.push_str("\nLeft as they are:\n\n");
    for (name, knobs) in left.iter().filter(|(_, knobs)| !knobs.is_empty()) {
        let _ = writeln!(out, "- `{name}`: {}", knobs.join(", "));
    }
    Ok(())
}

/// A constant that a preset leaves alone.
fn inherited(key: &str, value: &str) -> String {
    format!("`{key}` {}", code(value))
}

/// The knobs of a kind of stage that a table does not set.
fn unset_knobs(kind: &str, table: &Table) -> Vec<String> {
    let knobs = stage::kind(kind).map_or(&[][..], |kind| kind.knobs);
    let unset = knobs.iter().filter(|knob| table.get(knob.name).is_none());
    unset
        .map(|knob| inherited(knob.name, &knob.default.to_string()))
        .collect()
}

fn text_of<'a>(table: &'a Table, key: &str) -> Option<&'a str> {
    match table.get(key) {
        Some(Setting {
            value: Value::Text(text),
            ..
        }) => Some(text),
        _ => None,
    }
}

/// One row for each constant of a table, with the source that stands beside it; what stands above the
/// table is said of its first.
fn block(rows: &mut String, name: &str, table: &Table, lines: &[&str]) {
    let constants = table.entries().iter();
    let constants = constants.filter(|(key, _)| !matches!(key.as_str(), "kind" | "name"));
    let mut above = above(
        table
            .entries()
            .iter()
            .find_map(|(_, setting)| line(setting)),
        lines,
    );
    for (key, setting) in constants {
        let beside = line(setting).and_then(|at| comment(lines.get(at)?));
        let _ = writeln!(
            rows,
            "| `{name}` | `{key}` | {} | {} | {} |",
            code(&shown(&setting.value)),
            cell(beside.unwrap_or_default()),
            cell(&above.take().unwrap_or_default())
        );
    }
}

/// A value on one line: TOML spreads a text with line breaks over several.
fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}

/// Where a setting stands in its file, from 0.
fn line(setting: &Setting) -> Option<usize> {
    match &setting.place {
        Place::File(_, line) => line.checked_sub(1),
        Place::Flag(_) | Place::Environment(_) | Place::BuiltIn => None,
    }
}

/// The comment above the header of the table whose first constant stands at `first`.
fn above(first: Option<usize>, lines: &[&str]) -> Option<String> {
    let mut said: Vec<&str> = lines[..first?]
        .iter()
        .rev()
        .skip_while(|line| line.starts_with('['))
        .map_while(|line| line.strip_prefix('#'))
        .map(str::trim)
        .collect();
    said.reverse();
    (!said.is_empty()).then(|| said.join(" "))
}

/// What stands behind a `#` that is in no quotes.
fn comment(line: &str) -> Option<&str> {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '#') => return Some(line[at + 1..].trim()),
            _ => {}
        }
    }
    None
}

/// Text within a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// A value within a cell of a table.
fn code(value: &str) -> String {
    format!("`{}`", cell(value))
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_constant_of_every_preset_has_its_source() {
        let text = reference().unwrap();
        let presets = text.split("\n## Controls").next().unwrap();
        let mut rows = 0;
        for line in presets.lines().filter(|line| line.starts_with("| `")) {
            // A bar within a value is escaped.
            let line = line.replace("\\|", "/");
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            assert_eq!(cells.len(), 7, "{line}");
            assert!(!cells[4].is_empty(), "no source: {line}");
            rows += 1;
        }
        assert!(rows > 250, "{rows}");
    }

    #[test]
    fn what_is_said_of_a_constant_stands_above_its_table_or_beside_it() {
        let text = "# Not this.\n\n# The lesson keeps\n# three.\n[[stage]]\nkind = 'clear_results'\n\
                    keep_last = 3\nmin_chars = 100   # strictly more\nplaceholder = '#'\n";
        let table = Table::parse("t.toml", text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let Some(Value::List(stages)) = table.get("stage").map(|setting| &setting.value) else {
            panic!("no stages");
        };
        let Value::Table(stage) = &stages[0].value else {
            panic!("no table");
        };
        let mut rows = String::new();
        block(&mut rows, "clear_results", stage, &lines);
        assert_eq!(
            rows,
            "| `clear_results` | `keep_last` | `3` |  | The lesson keeps three. |\n\
             | `clear_results` | `min_chars` | `100` | strictly more |  |\n\
             | `clear_results` | `placeholder` | `\"#\"` |  |  |\n"
        );
    }
}
