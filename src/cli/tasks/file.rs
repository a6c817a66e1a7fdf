//! Task files: a repository, the work to be done in it, the check of the result, and a script for the model.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use regex::bytes::RegexBuilder;
use serde_json::{Map, Value, json};

use crate::settings::{Reader, Setting, SettingError, Table};

/// Texts of files by their paths below a repository.
pub(super) type Files = BTreeMap<String, String>;

/// A task for an agent.
#[derive(Debug)]
pub(super) struct Task {
    /// The stem of its file's name.
    pub(super) name: String,
    pub(super) about: String,
    /// The user's words to the agent.
    pub(super) prompt: String,
    /// The repository as the agent finds it.
    pub(super) files: Files,
    /// The command that says by its exit status whether the task is solved.
    pub(super) check: String,
    /// Files that the check needs, written over the agent's.
    pub(super) check_files: Files,
    /// Goal, facts and steps, which the scripted model reads.
    pub(super) script: Option<Value>,
}

impl Task {
    /// Reads a task; `file` names it in errors.
    pub(super) fn parse(name: &str, file: &str, text: &str) -> Result<Self, SettingError> {
        let table = Table::parse(file, text)?;
        let mut reader = Reader::new(&table, "");
        let about = required(&mut reader, "about")?;
        let prompt = required(&mut reader, "prompt")?;
        let files = files(&mut reader)?;
        let script = script(&mut reader, &prompt)?;
        let Some(mut check) = reader.table("check")? else {
            return Err(reader.must_be_set("check"));
        };
        let task = Self {
            name: name.to_owned(),
            about,
            prompt,
            files,
            check: required(&mut check, "command")?,
            check_files: self::files(&mut check)?,
            script,
        };
        check.finish()?;
        reader.finish()?;
        Ok(task)
    }
}

fn required(reader: &mut Reader<'_>, key: &str) -> Result<String, SettingError> {
    let text = reader.text(key)?.map(str::to_owned);
    text.ok_or_else(|| reader.must_be_set(key))
}

/// Reads the table `files`. A path must stay below the repository.
fn files(reader: &mut Reader<'_>) -> Result<Files, SettingError> {
    let Some(mut texts) = reader.table("files")? else {
        return Ok(Files::new());
    };
    let table = reader.setting("files").and_then(Setting::as_table);
    let mut files = Files::new();
    for (path, setting) in table.into_iter().flat_map(Table::entries) {
        let mut parts = Path::new(path).components();
        if path.is_empty() || !parts.all(|part| matches!(part, Component::Normal(_))) {
            let problem = format!("`{path}` is no path below the repository");
            return Err(SettingError::new(&setting.place, problem));
        }
        files.insert(path.clone(), required(&mut texts, path)?);
    }
    Ok(files)
}

/// Reads what the scripted model needs, where the file has steps.
fn script(reader: &mut Reader<'_>, prompt: &str) -> Result<Option<Value>, SettingError> {
    let steps = reader.tables("steps")?;
    let facts = reader.tables("facts")?;
    if steps.is_empty() {
        return match reader.setting("facts").or_else(|| reader.setting("goal")) {
            Some(setting) => {
                let problem = "a task without `steps` needs neither `goal` nor `facts`";
                Err(SettingError::new(&setting.place, problem))
            }
            None => Ok(None),
        };
    }
    let goal = required(reader, "goal")?;
    if !is_found(reader, "goal", &goal, 0)?.is_match(prompt.as_bytes()) {
        let problem = format!("`goal` (`{goal}`) is not found in the prompt");
        return Err(SettingError::new(reader.place(), problem));
    }
    let steps = steps.into_iter().map(step).collect::<Result<Vec<_>, _>>()?;
    let written = Value::from(steps.clone()).to_string();
    let fact = |table| fact(table, &written);
    let facts = facts.into_iter().map(fact).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(
        json!({ "goal": goal, "facts": facts, "steps": steps }),
    ))
}

/// A pattern with at least so many groups.
fn is_found(
    reader: &Reader<'_>,
    key: &str,
    pattern: &str,
    groups: usize,
) -> Result<regex::bytes::Regex, SettingError> {
    let wrong = |problem: String| {
        let path = reader.path_of(key);
        SettingError::new(reader.place(), format!("`{path}` (`{pattern}`) {problem}"))
    };
    let mut builder = RegexBuilder::new(pattern);
    let regex = builder.unicode(false).multi_line(true).build();
    let regex = regex.map_err(|error| wrong(format!("is no regular expression: {error}")))?;
    if regex.captures_len() <= groups {
        return Err(wrong(
            "has no group in parentheses for the value".to_owned(),
        ));
    }
    Ok(regex)
}

fn fact(table: &Table, steps: &str) -> Result<Value, SettingError> {
    let mut reader = Reader::new(table, "facts");
    let name = required(&mut reader, "name")?;
    let pattern = required(&mut reader, "pattern")?;
    is_found(&reader, "pattern", &pattern, 1)?;
    let lookup = reader.text("again")?;
    if !steps.contains(&format!("{{{name}}}")) {
        let problem = format!("no step needs the fact `{name}`");
        return Err(SettingError::new(reader.place(), problem));
    }
    reader.finish()?;
    let mut fact = json!({ "name": name, "pattern": pattern });
    if let Some(lookup) = lookup {
        fact["again"] = lookup.into();
    }
    Ok(fact)
}

/// Words of the model, a tool call, or both.
fn step(table: &Table) -> Result<Value, SettingError> {
    let mut reader = Reader::new(table, "steps");
    let mut step = Map::new();
    for key in ["say", "bash", "read"] {
        if let Some(text) = reader.text(key)? {
            step.insert(key.to_owned(), text.into());
        }
    }
    if let Some(mut edit) = reader.table("edit")? {
        let mut texts = Map::new();
        for key in ["path", "old", "new"] {
            texts.insert(key.to_owned(), required(&mut edit, key)?.into());
        }
        edit.finish()?;
        step.insert("edit".to_owned(), texts.into());
    }
    let calls = step.len() - usize::from(step.contains_key("say"));
    if calls > 1 || step.is_empty() {
        let problem = "a step has `say`, one of `bash`, `read` and `edit`, or both";
        return Err(SettingError::new(reader.place(), problem));
    }
    reader.finish()?;
    Ok(step.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: &str = "about = \"a\"\nprompt = \"port 80, please\"\ngoal = \"please\"\n\
        facts = [{ name = \"port\", pattern = 'port (\\d+)' }]\nsteps = [{ bash = \"echo {port}\" }]\n\
        [check]\ncommand = \"true\"\n[files]\n\"a/b\" = \"text\"\n";

    #[test]
    fn a_task_file_with_a_mistake_is_refused_with_its_line() {
        assert!(Task::parse("a", "a.toml", TASK).is_ok());
        for (from, to, problem) in [
            ("about", "abuot", "line 1: unknown key `abuot`"),
            (
                "\"a/b\"",
                "\"../b\"",
                "line 9: `../b` is no path below the repository",
            ),
            (
                "\"a/b\"",
                "\"/b\"",
                "line 9: `/b` is no path below the repository",
            ),
            ("\"text\"", "5", "line 9: `files.a/b` must be text, not `5`"),
            (
                "(\\d+)",
                "\\d+",
                "line 4: `facts.pattern` (`port \\d+`) has no group in parentheses for the value",
            ),
            (
                "(\\d+)",
                "(\\d+",
                "line 4: `facts.pattern` (`port (\\d+`) is no regular expression: regex parse error",
            ),
            ("{port}", "80", "line 4: no step needs the fact `port`"),
            (
                "bash =",
                "shell =",
                "line 5: a step has `say`, one of `bash`, `read` and `edit`, or both",
            ),
            (
                "bash =",
                "read = \"a\", bash =",
                "line 5: a step has `say`, one of",
            ),
            (
                "goal = \"please\"",
                "goal = \"thanks\"",
                "`goal` (`thanks`) is not found in the prompt",
            ),
            (
                "steps =",
                "stages =",
                "`steps` needs neither `goal` nor `facts`",
            ),
            (
                "[check]\ncommand",
                "[check]\ncomand",
                "line 7: unknown key `check.comand`",
            ),
            ("[check]\ncommand = \"true\"\n", "", "`check` must be set"),
        ] {
            let text = TASK.replacen(from, to, 1);
            let error = Task::parse("a", "a.toml", &text).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}, not {problem}");
        }
    }
}
