//! A summariser's prompt of the user's own: `prompt = "file.md"` on a stage that asks a model.
//!
//! The file is read where scenarios are, and its text travels as `prompt_text`: a stage opens no
//! file, and a manifest holds what was asked. A variable in double braces is replaced by what is
//! known when the summary is asked for; a text that does not name the conversation has it at its
//! end.

use std::collections::BTreeSet;

use super::knob::Knobs;
use super::situation::Situation;
use super::template::{self, Template};
use crate::settings::{SettingError, with_suggestion};
use crate::units::Tokens;

/// The knob that names the file.
const PROMPT: &str = "prompt";

/// The messages that are summarised, as JSON.
pub(super) const CONVERSATION: &str = "conversation";
/// The summary that is continued; empty at the first compaction.
pub(super) const PREVIOUS_SUMMARY: &str = "previous_summary";
/// The focus of the summary: `instructions`, and the words of a person who asked for the
/// compaction.
pub(super) const FOCUS: &str = "focus";

type ValueOf = for<'v> fn(&'v PromptValues<'_>) -> &'v str;

/// The variables of a prompt.
const VARIABLES: [(&str, ValueOf); 5] = [
    (CONVERSATION, |given| given.conversation),
    (PREVIOUS_SUMMARY, |given| given.previous),
    (FOCUS, |given| given.focus),
    ("max_output_tokens", |given| &given.max_output),
    ("window_tokens", |given| &given.window),
];

/// The signs around the name of a variable.
const BRACES: [&str; 2] = ["{{", "}}"];

/// A prompt, read once.
#[derive(Debug)]
pub(super) struct OwnPrompt {
    text: String,
    used: BTreeSet<&'static str>,
    sections: Vec<String>,
    /// How the summary is read out of the answer: as the built-in template is that asks for the same
    /// element.
    reads: &'static Template,
}

impl OwnPrompt {
    /// The prompt that a stage names; `None` if it names none, or if the file is not read yet.
    /// Variables that the stage cannot fill are refused with the reason.
    pub(super) fn read(
        knobs: &Knobs<'_>,
        unfits: &[(&str, &str)],
    ) -> Result<Option<Self>, SettingError> {
        let (name, text) = (knobs.text(PROMPT), knobs.text("prompt_text"));
        if text.is_empty() {
            return Ok(None);
        }
        let shown =
            if name.is_empty() { "the prompt".to_owned() } else { format!("the prompt `{name}`") };
        if text.trim().is_empty() {
            return Err(knobs.wrong(PROMPT, &format!("is blank: {shown} says nothing")));
        }
        let (mut used, mut unknown) = (BTreeSet::new(), None);
        filled(text, BRACES, |name, at| -> Option<&str> {
            match VARIABLES.iter().find(|(known, _)| *known == name) {
                Some((known, _)) => _ = used.insert(*known),
                None => _ = unknown.get_or_insert((name, at)),
            }
            None
        });
        if let Some((unknown, at)) = unknown {
            let line = 1 + text[..at].matches('\n').count();
            let mut error = knobs.wrong(PROMPT, "names an unknown variable");
            error.problem = format!("{shown}, line {line}: unknown variable `{unknown}`");
            return Err(with_suggestion(error, unknown, VARIABLES.map(|(name, _)| name)));
        }
        if let Some((name, why)) = unfits.iter().find(|(name, _)| used.contains(name)) {
            let mut error = knobs.wrong(PROMPT, "names a variable that has no value here");
            error.problem = format!("{shown} names `{{{{{name}}}}}`, {why}");
            return Err(error);
        }
        Ok(Some(Self {
            sections: sections(text),
            reads: template::asking_for(text),
            text: text.to_owned(),
            used,
        }))
    }

    /// How a summary is read out of an answer.
    pub(super) fn template(&self) -> &'static Template {
        self.reads
    }

    /// The request: the prompt with its variables filled, and behind it what it does not name; and
    /// its headings, which summaries are expected to have. Values are never read for variables
    /// themselves.
    pub(super) fn request(&self, given: &PromptValues<'_>) -> (String, Vec<String>) {
        let prompt = filled(&self.text, BRACES, |name, _| {
            let (_, value) = VARIABLES.iter().find(|(known, _)| *known == name)?;
            Some(value(given))
        });
        let mut text = prompt.trim_end().to_owned();
        if !self.used.contains(FOCUS) {
            add(&mut text, given.focus);
        }
        if !self.used.contains(PREVIOUS_SUMMARY) && !given.previous.is_empty() {
            add(&mut text, template::UPDATE);
            add(&mut text, given.previous);
        }
        if !self.used.contains(CONVERSATION) {
            add(&mut text, given.conversation);
        }
        (text, self.sections.clone())
    }
}

/// The values of a prompt's variables; empty if there is none.
#[derive(Debug, Clone)]
pub(super) struct PromptValues<'a> {
    /// The messages as JSON; empty if they are in the request themselves.
    pub(super) conversation: &'a str,
    /// The earlier summary that is shown apart.
    pub(super) previous: &'a str,
    /// The focus of the summary.
    pub(super) focus: &'a str,
    /// How long the summary may be.
    pub(super) max_output: String,
    /// The effective window.
    pub(super) window: String,
}

impl<'a> PromptValues<'a> {
    /// The values at a call where there is neither an earlier summary nor a focus.
    pub(super) fn new(conversation: &'a str, max_output: Tokens, cx: &Situation) -> Self {
        Self {
            conversation,
            previous: "",
            focus: "",
            max_output: max_output.0.to_string(),
            window: cx.window.effective().0.to_string(),
        }
    }
}

/// Adds a paragraph, if it says something.
pub(super) fn add(text: &mut String, paragraph: &str) {
    let trimmed = paragraph.trim_end();
    if !text.is_empty() && !trimmed.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(trimmed);
}

/// The text with the names that stand in `braces` replaced by their values. One that has none stays, and values are not
/// read for names.
pub(super) fn filled<'t, V: AsRef<str>>(
    text: &'t str,
    [open, close]: [&str; 2],
    mut value_at: impl FnMut(&'t str, usize) -> Option<V>,
) -> String {
    let mut filled = String::new();
    let (mut from, mut next) = (0, 0);
    while let Some(found) = text[next..].find(open) {
        let start = next + found;
        next = start + open.len();
        let Some(length) = text[next..].find(close) else {
            break;
        };
        let name = text[next..next + length].trim();
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        if name.is_empty() || !plain {
            continue;
        }
        if let Some(value) = value_at(name, start) {
            filled.push_str(&text[from..start]);
            filled.push_str(value.as_ref());
            next += length + close.len();
            from = next;
        }
    }
    filled.push_str(&text[from..]);
    filled
}

/// The Markdown headings of a text.
fn sections(text: &str) -> Vec<String> {
    let headings = text.lines().filter_map(|line| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len() && title.starts_with(' ')).then(|| title.trim().to_owned())
    });
    headings.filter(|title| !title.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_once_and_other_braces_stay() {
        for (text, expected) in [
            ("Sum it up.", "Sum it up."),
            ("a {{focus}} b {{ window_tokens }}", "a <focus> b <window_tokens>"),
            ("`{{ a b }}` and {{ stay", "`{{ a b }}` and {{ stay"),
            ("{{twice}}", "<twice>"),
        ] {
            let named = |name: &str, _| Some(format!("<{name}>").replace("twice", "{{twice}}"));
            let expected = expected.replace("twice", "{{twice}}");
            assert_eq!(filled(text, BRACES, named), expected, "{text}");
        }
        assert_eq!(sections("# Goal\ntext\n## Next steps\n#no\n"), ["Goal", "Next steps"]);
    }
}
