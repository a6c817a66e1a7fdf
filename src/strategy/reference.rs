//! The reference of strategies, as Markdown: `docs/strategies.md` is what this writes.
//!
//! Values are those that the presets set, and what is said beside them are the comments of the
//! preset files: the reasons and sources stand where the constants do, and nowhere else.

use std::fmt::Write as _;

use super::control::CONTROLS;
use super::law::Law;
use super::preset::{PRESETS, StrategySpec};
use super::stage::STAGES;
use super::trigger::{CONDITIONS, Condition, Takes, Trigger};
use crate::settings::{Place, Setting, SettingError, Table, Value};

const HEAD: &str = "# Strategies

Every preset with its source and its constants, every control, trigger and kind of stage. This page
is written from the preset files (`presets/`) and the tables in the code; a test holds them together.

A preset is data: `proctor strategies show NAME` prints it as TOML to start your own from, and any
constant can be changed on the spot, as in `--strategy 'codex[summarize.when={window_fraction=0.8}]'`.
A constant that is not listed under a preset has the default of its kind of stage.
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
    for (key, setting) in spec.table().entries() {
        match (key.as_str(), &setting.value) {
            ("guards" | "overflow", Value::Table(table)) => block(&mut rows, key, table, &lines),
            ("stage", Value::List(stages)) => {
                for stage in stages {
                    if let Value::Table(table) = &stage.value {
                        let named = ["name", "kind"].iter().find_map(|key| text_of(table, key));
                        block(&mut rows, named.unwrap_or(key), table, &lines);
                    }
                }
            }
            _ => {}
        }
    }
    if !rows.is_empty() {
        out.push_str("\n| where | constant | value | said of it |\n|---|---|---|---|\n");
        out.push_str(&rows);
    }
    Ok(())
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

/// One row for each constant of a table; what stands above the table is said of its first.
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
        let said: Vec<String> = above
            .take()
            .into_iter()
            .chain(beside.map(str::to_owned))
            .collect();
        let _ = writeln!(
            rows,
            "| `{name}` | `{key}` | {} | {} |",
            code(&shown(&setting.value)),
            cell(&said.join(" "))
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
            "| `clear_results` | `keep_last` | `3` | The lesson keeps three. |\n\
             | `clear_results` | `min_chars` | `100` | strictly more |\n\
             | `clear_results` | `placeholder` | `\"#\"` |  |\n"
        );
    }
}
