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

/// The variables of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Variable {
    /// The messages that are summarised, as JSON.
    Conversation,
    /// The summary that is continued; empty at the first compaction.
    PreviousSummary,
    /// The focus of the summary: `instructions`, and the words of a person who asked for the
    /// compaction.
    Focus,
    /// How long the summary may be.
    MaxOutputTokens,
    /// The effective window of the agent's model.
    WindowTokens,
}

const VARIABLES: [(&str, Variable); 5] = [
    ("conversation", Variable::Conversation),
    ("previous_summary", Variable::PreviousSummary),
    ("focus", Variable::Focus),
    ("max_output_tokens", Variable::MaxOutputTokens),
    ("window_tokens", Variable::WindowTokens),
];

/// A piece of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(Variable),
}

/// A prompt, read once.
#[derive(Debug)]
pub(super) struct OwnPrompt {
    pieces: Vec<Piece>,
    used: BTreeSet<Variable>,
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
        unfits: &[(Variable, &str)],
    ) -> Result<Option<Self>, SettingError> {
        let (name, text) = (knobs.text(PROMPT), knobs.text("prompt_text"));
        if text.is_empty() {
            return Ok(None);
        }
        let shown = if name.is_empty() {
            "the prompt".to_owned()
        } else {
            format!("the prompt `{name}`")
        };
        if text.trim().is_empty() {
            return Err(knobs.wrong(PROMPT, &format!("is blank: {shown} says nothing")));
        }
        let pieces = pieces(text).map_err(|(unknown, line)| {
            let mut error = knobs.wrong(PROMPT, "names an unknown variable");
            error.problem = format!("{shown}, line {line}: unknown variable `{unknown}`");
            with_suggestion(error, unknown, VARIABLES.map(|(name, _)| name))
        })?;
        let used = pieces.iter().filter_map(|piece| match piece {
            Piece::Variable(variable) => Some(*variable),
            Piece::Text(_) => None,
        });
        let used: BTreeSet<Variable> = used.collect();
        let unfit = |(variable, _): &&(Variable, &str)| used.contains(variable);
        if let Some((variable, why)) = unfits.iter().find(unfit) {
            let mut named = VARIABLES.iter().filter(|(_, one)| one == variable);
            let name = named.next().map_or("", |(name, _)| name);
            let mut error = knobs.wrong(PROMPT, "names a variable that has no value here");
            error.problem = format!("{shown} names `{{{{{name}}}}}`, {why}");
            return Err(error);
        }
        Ok(Some(Self {
            sections: sections(text),
            reads: template::asking_for(text),
            pieces,
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
        let uses = |variable| self.used.contains(&variable);
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(words) => text.push_str(words),
                Piece::Variable(variable) => match variable {
                    Variable::Conversation => text.push_str(given.conversation),
                    Variable::PreviousSummary => text.push_str(given.previous),
                    Variable::Focus => text.push_str(given.focus),
                    Variable::MaxOutputTokens => text.push_str(&given.max_output.0.to_string()),
                    Variable::WindowTokens => text.push_str(&given.window.0.to_string()),
                },
            }
        }
        let mut text = text.trim_end().to_owned();
        if !uses(Variable::Focus) {
            add(&mut text, given.focus);
        }
        if !uses(Variable::PreviousSummary) && !given.previous.is_empty() {
            add(&mut text, template::UPDATE);
            add(&mut text, given.previous);
        }
        if !uses(Variable::Conversation) {
            add(&mut text, given.conversation);
        }
        (text, self.sections.clone())
    }
}

/// The values of a prompt's variables; empty if there is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct PromptValues<'a> {
    /// The messages as JSON; empty if they are in the request themselves.
    pub(super) conversation: &'a str,
    /// The earlier summary that is shown apart.
    pub(super) previous: &'a str,
    /// The focus of the summary.
    pub(super) focus: &'a str,
    /// How long the summary may be.
    pub(super) max_output: Tokens,
    /// The effective window.
    pub(super) window: Tokens,
}

impl<'a> PromptValues<'a> {
    /// The values at a call where there is neither an earlier summary nor a focus.
    pub(super) fn new(conversation: &'a str, max_output: Tokens, cx: &Situation) -> Self {
        Self {
            conversation,
            previous: "",
            focus: "",
            max_output,
            window: cx.window.effective(),
        }
    }
}

/// Adds a paragraph, if it says something.
pub(super) fn add(text: &mut String, paragraph: &str) {
    let paragraph = paragraph.trim_end();
    if !text.is_empty() && !paragraph.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(paragraph);
}

/// The text cut at its variables; an unknown one with its line.
fn pieces(text: &str) -> Result<Vec<Piece>, (&str, usize)> {
    let mut pieces = Vec::new();
    let (mut from, mut next) = (0, 0);
    while let Some(found) = text[next..].find("{{") {
        let start = next + found;
        next = start + 2;
        let Some(length) = text[next..].find("}}") else {
            break;
        };
        let name = text[next..next + length].trim();
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if !is_name {
            continue;
        }
        let Some((_, variable)) = VARIABLES.into_iter().find(|(it, _)| *it == name) else {
            return Err((name, 1 + text[..start].matches('\n').count()));
        };
        pieces.push(Piece::Text(text[from..start].to_owned()));
        pieces.push(Piece::Variable(variable));
        next += length + 2;
        from = next;
    }
    pieces.push(Piece::Text(text[from..].to_owned()));
    Ok(pieces)
}

/// The Markdown headings of a text.
fn sections(text: &str) -> Vec<String> {
    let headings = text.lines().filter_map(|line| {
        let title = line.trim_start_matches('#');
        let is_heading = title.len() < line.len() && title.starts_with(' ');
        is_heading.then(|| title.trim().to_owned())
    });
    headings.filter(|title| !title.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_once_and_unknown_ones_have_a_line() {
        let shown = |text: &str| match pieces(text) {
            Err((name, line)) => format!("{name}@{line}"),
            Ok(pieces) => pieces
                .iter()
                .map(|piece| match piece {
                    Piece::Text(text) => text.clone(),
                    Piece::Variable(variable) => {
                        let named = VARIABLES.iter().find(|(_, one)| one == variable);
                        format!("<{}>", named.unwrap().0)
                    }
                })
                .collect(),
        };
        for (text, expected) in [
            ("Sum it up.", "Sum it up."),
            (
                "a {{focus}} b {{ window_tokens }}",
                "a <focus> b <window_tokens>",
            ),
            ("one\ntwo {{fokus}}", "fokus@2"),
            ("`{{ a b }}` and {{ stay", "`{{ a b }}` and {{ stay"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
        assert_eq!(
            sections("# Goal\ntext\n## Next steps\n#no\n"),
            ["Goal", "Next steps"]
        );
    }
}
