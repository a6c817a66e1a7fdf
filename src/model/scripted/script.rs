//! Scripts: files of answers written beforehand, for scenarios that need no key.
//!
//! A script is a list of rules; the first that fits a request answers it. What such a model says is
//! its author's alone, and every report that shows it says so.

use super::{Scripted, response};
use crate::model::{AGAIN, Purpose, Request};
use crate::settings::{Reader, SettingError, SettingTable};

/// The value of `format` in a script.
pub const FORMAT: &str = "proctor-script";

/// One rule: the text that a request must hold, and the answer.
#[derive(Debug, Clone, PartialEq)]
struct ScriptRule {
    purpose: Option<Purpose>,
    /// The last text, which holds the question, must hold this.
    asked: Option<String>,
    /// Some text before it must hold this: a script that knows an answer says it only where the
    /// prompt still has it.
    holds: Option<String>,
    /// Of the words between `<reference>` tags, this share must be between `<answer>` tags.
    alike: Option<f64>,
    /// Only the first answer to the same request, 1, or one of the further ones.
    turn: Option<u64>,
    text: String,
}

const PURPOSES: [(&str, Purpose); 5] = [
    ("compaction", Purpose::Compaction),
    ("background", Purpose::Background),
    ("recovery", Purpose::Recovery),
    ("probe", Purpose::Probe),
    ("judge", Purpose::Judge),
];

/// Reads a script.
pub fn parse(file: &str, text: &str) -> Result<Scripted, SettingError> {
    let table = SettingTable::parse(file, text)?;
    let mut reader = Reader::new(&table, "");
    if reader.text("format")? != Some(FORMAT) {
        let problem = format!("this is no script: it does not say `format = \"{FORMAT}\"`");
        return Err(SettingError::new(table.place(), problem));
    }
    reader.whole("version", 1, 1)?;
    let mut rules = Vec::new();
    for table in reader.tables("answer")? {
        rules.push(rule(Reader::new(table, "answer"))?);
    }
    reader.finish()?;
    Ok(Scripted::new().answer_in(move |request: &Request, repeat| {
        let turn = u64::from(repeat / AGAIN) + 1;
        let rule = rules
            .iter()
            .find(|rule: &&ScriptRule| rule.turn.unwrap_or(turn) == turn && rule.fits(request))?;
        Some(Ok(response(rule.text.as_str())))
    }))
}

fn rule(mut reader: Reader<'_>) -> Result<ScriptRule, SettingError> {
    let purpose = reader.choice("purpose", &PURPOSES.map(|(name, _)| name))?;
    let purpose = PURPOSES.iter().find(|(name, _)| Some(*name) == purpose);
    let rule = ScriptRule {
        purpose: purpose.map(|(_, purpose)| *purpose),
        asked: reader.text("asked")?.map(str::to_owned),
        holds: reader.text("holds")?.map(str::to_owned),
        alike: reader.fraction("alike")?,
        turn: reader.whole("turn", 1, 100)?,
        text: reader.required("text")?,
    };
    reader.finish()?;
    Ok(rule)
}

impl ScriptRule {
    fn fits(&self, request: &Request) -> bool {
        let purpose = request.purpose.as_asked();
        if self.purpose.is_some_and(|wanted| wanted != purpose) {
            return false;
        }
        let mut texts: Vec<&str> = request.system.iter().map(|text| &**text).collect();
        let messages = request.messages.iter().flat_map(|m| m.model_text());
        texts.extend(messages.map(|text| &**text));
        let question = texts.pop().unwrap_or_default();
        self.asked.as_ref().is_none_or(|part| question.contains(part))
            && self.holds.as_ref().is_none_or(|part| texts.iter().any(|text| text.contains(part)))
            && self.alike.is_none_or(|share| likeness(question) >= share)
    }
}

/// The share of the reference's words that the answer holds.
fn likeness(prompt: &str) -> f64 {
    let reference = words_between(prompt, "<reference>", "</reference>").unwrap_or_default();
    let answer = words_between(prompt, "<answer>", "</answer>").unwrap_or_default();
    if reference.is_empty() {
        return 0.0;
    }
    reference.iter().filter(|word| answer.contains(word)).count() as f64 / reference.len() as f64
}

fn words_between(text: &str, open: &str, close: &str) -> Option<Vec<String>> {
    let (_, rest) = text.split_once(open)?;
    Some(words(rest.split_once(close)?.0))
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{CallFailure, Model, Task};
    use crate::session::{Message, Role};
    use crate::units::Tokens;

    const SCRIPT: &str = r#"
format = "proctor-script"
version = 1
[[answer]]
purpose = "probe"
asked = "port"
holds = "48213"
text = "48213"
[[answer]]
purpose = "probe"
text = "not in context"
[[answer]]
purpose = "judge"
alike = 0.5
text = "same"
"#;

    #[test]
    fn the_first_rule_that_fits_answers_and_knowledge_needs_the_prompt() {
        let script = parse("s.toml", SCRIPT).unwrap();
        let ask = |purpose, before: &str, question: &str| {
            let messages = [before, question].map(|text| Arc::new(Message::text(Role::User, text)));
            let answer = script.respond(&Request {
                purpose,
                task: Task::Judge,
                system: None,
                tools: None,
                messages: messages.to_vec(),
                max_output: Tokens(9),
                model: None,
            });
            answer.map(|response| response.text.to_string())
        };
        assert_eq!(ask(Purpose::Probe, "it is 48213", "which port?").unwrap(), "48213");
        assert_eq!(ask(Purpose::Probe, "", "port 48213?").unwrap(), "not in context");
        let judged = "<reference>\nuse tabs only\n</reference><answer>\nTabs, only.\n</answer>";
        assert_eq!(ask(Purpose::Judge, "", judged).unwrap(), "same");
        let other = "<reference>\nuse tabs only\n</reference><answer>\nspaces\n</answer>";
        assert_eq!(ask(Purpose::Judge, "", other), Err(CallFailure::NoAnswer));
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        let says = |text: &str| parse("s.toml", text).unwrap_err().to_string();
        assert!(says("x = 1").contains("this is no script"));
        let wrong = "format = \"proctor-script\"\n[[answer]]\ntxt = \"a\"\ntext = \"b\"";
        assert!(says(wrong).contains("line 3: unknown key `answer.txt`, did you mean `text`?"));
    }
}
