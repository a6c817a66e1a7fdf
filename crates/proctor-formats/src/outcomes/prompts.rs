//! The prompts of tasks, by which their requests are recognised.

use super::{OutcomeError, files, task_id};
use crate::prelude::*;

/// The id of a task, and its prompt with one space between its words.
type Prompt = (String, String);

/// A shorter prompt may be in that of another task by chance.
const SHORTEST: usize = 20;

/// Keys of the name and of the prompt, in lines of JSON.
const NAMES: [&str; 2] = ["instance_id", "task"];
const PROMPTS: [&str; 3] = ["problem_statement", "instruction", "prompt"];

/// The prompts of tasks: `instruction.md` of each task of Harbor below a folder, or lines of JSON.
pub fn prompts(path: &Path) -> Result<Vec<Prompt>, OutcomeError> {
    let mut prompts = Vec::new();
    if path.is_dir() {
        for path in files(path, |name, _| name == "instruction.md")? {
            let prompt = SourceFile::open(&path, MAX_FILE)?.text();
            let folder = path.parent().unwrap_or(&path);
            prompts.extend(prompt_of(&name_of(folder), &prompt.text));
        }
    } else {
        let (text, mut source) = (SourceFile::open(path, MAX_FILE)?.text(), Source::default());
        for line in text.raw_lines(&mut source)? {
            let mut line = Object::read(line).unwrap_or_default();
            let named = line.first_text(&NAMES).zip(line.first_text(&PROMPTS));
            prompts.extend(named.and_then(|(name, prompt)| prompt_of(&name, &prompt)));
        }
    }
    if prompts.is_empty() {
        let name = path.display().to_string().escape_debug().to_string();
        return Err(OutcomeError::Value(name, "no prompt of a task".to_owned()));
    }
    Ok(prompts)
}

fn prompt_of(name: &str, text: &str) -> Option<Prompt> {
    let prompt = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (prompt.len() >= SHORTEST).then(|| (task_id(name), prompt))
}

/// The name of a task of Harbor: in its settings, or that of its folder.
fn name_of(folder: &Path) -> String {
    let settings = SourceFile::open(&folder.join("task.toml"), MAX_FILE).ok();
    let named = settings.and_then(|settings| {
        let settings: toml::Table = settings.text().text.parse().ok()?;
        settings.get("task")?.get("name")?.as_str().map(str::to_owned)
    });
    let own = folder.file_name().unwrap_or_default();
    named.unwrap_or_else(|| own.to_string_lossy().into_owned())
}
