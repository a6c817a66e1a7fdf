//! Laws about messages that stay, but not as they were.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::words;
use super::{Judged, StrategyFacts};
use crate::check::play::{Plays, SentPrompt};
use crate::session::{ContentBlock, Message, Session, ToolResult};

/// Characters from the beginning of a result by which it is known, and which a cut of it keeps.
pub(super) const BEGIN: usize = 500;

/// A text that is cut once more loses a large part of what is left.
const LOSES: usize = 2;

/// Words by which a text says that all went well. An output may be "successfully" put aside.
const SUCCESS: [&str; 4] = ["ok", "passed", "succeeded", "success"];

/// Words by which it says that something did not.
const FAILURE: [&str; 8] =
    ["error", "errors", "fail", "failed", "fails", "failure", "failures", "not"];

/// The texts of a result.
pub(super) fn result_text(result: &ToolResult) -> String {
    let texts = result.content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(&**text),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The results of a session as its tools returned them, by their ids.
pub(super) struct Originals<'s>(BTreeMap<&'s str, (&'s Message, &'s ToolResult, String)>);

impl<'s> Originals<'s> {
    pub(super) fn of(session: &'s Session) -> Self {
        let mut originals = BTreeMap::new();
        for message in session.messages() {
            for (_, result) in message.tool_results() {
                let original = (&**message, result, result_text(result));
                originals.insert(&*result.tool_use_id, original);
            }
        }
        Self(originals)
    }

    pub(super) fn text(&self, id: &str) -> Option<&str> {
        self.0.get(id).map(|(_, _, text)| &**text)
    }
}

impl SentPrompt {
    /// All results of tools.
    pub(super) fn results(&self) -> impl Iterator<Item = &ToolResult> {
        let messages = self.entries.iter().map(|entry| &entry.message);
        messages.flat_map(|message| message.tool_results().map(|(_, result)| result))
    }

    /// The texts of the results that are not as their tools returned them, by their ids.
    fn edited(&self, originals: &Originals<'_>) -> BTreeMap<&str, String> {
        let results = self.results().map(|result| (&*result.tool_use_id, result_text(result)));
        results.filter(|(id, text)| originals.text(id).is_some_and(|was| was != text)).collect()
    }
}

pub(super) fn keep(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let played = plays.usual();
    let originals = Originals::of(&plays.scene.session);
    let mut had_chance = false;
    let found = played.changes().find_map(|(_, prompt, _)| {
        had_chance |= !prompt.edited(&originals).is_empty();
        let text = prompt.text();
        if text.contains(char::REPLACEMENT_CHARACTER) {
            return Some(format!("call {}: a character was cut in two", prompt.call));
        }
        let lost = prompt.results().find_map(|result| {
            let (message, original, was) = originals.0.get(&*result.tool_use_id)?;
            let id = &result.tool_use_id;
            let now = result_text(result);
            if original.is_error && (!result.is_error || says_success(&now, was)) {
                return Some(format!("`{id}` failed, and the prompt does not say so"));
            }
            if let Some(found) = (now != *was).then(|| spoiled(&now, was, message)).flatten() {
                return Some(format!("`{id}` {found}"));
            }
            let mut words = message.content().iter().filter_map(ContentBlock::as_text);
            let lost = words.find(|words| !text.contains(&***words))?;
            Some(format!("`{id}` is there without the words beside it, `{lost}`"))
        })?;
        Some(format!("call {}: result {lost}", prompt.call))
    });
    Judged::by(had_chance, found)
}

/// Whether the text of a failed result says that all went well, in words that the tool did not use.
fn says_success(now: &str, was: &str) -> bool {
    let [said, old] = [now, was].map(words);
    SUCCESS.iter().any(|word| said.contains(*word) && !old.contains(*word))
        && !FAILURE.iter().any(|word| said.contains(*word))
}

/// Finds the text of a result cut within a character, or exchanged for that of a parallel call.
fn spoiled(now: &str, was: &str, message: &Message) -> Option<String> {
    if has_half_a_character(now.chars(), was.chars())
        || has_half_a_character(now.chars().rev(), was.chars().rev())
    {
        return Some("is cut within a character".to_owned());
    }
    let mut others = message.tool_results();
    let (_, other) = others.find(|(_, other)| result_text(other) == now)?;
    Some(format!("is that of `{}`", other.tool_use_id))
}

/// Whether a text goes on as it was up to a character of two units in UTF-16, and a `?` stands for one of these.
fn has_half_a_character(now: impl Iterator<Item = char>, was: impl Iterator<Item = char>) -> bool {
    let first = now.zip(was).find(|(now, was)| now != was);
    first.is_some_and(|(now, was)| now == '?' && was.len_utf16() == 2)
}

pub(super) fn cuts(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let played = plays.usual();
    let originals = Originals::of(&plays.scene.session);
    let mut had_chance = false;
    let found = played.changes().find_map(|(before, now, _)| {
        let edited = now.edited(&originals);
        had_chance |= !edited.is_empty();
        let twice = cut_twice(&before.edited(&originals), &edited);
        let found = twice.or_else(|| dangling(now, &edited, &originals))?;
        Some(format!("call {}: result {found}", now.call))
    });
    Judged::by(had_chance, found)
}

/// Finds a result of which a long part was left, and about as much is left now.
fn cut_twice(before: &BTreeMap<&str, String>, now: &BTreeMap<&str, String>) -> Option<String> {
    now.iter().find_map(|(id, text)| {
        let was = before.get(id).filter(|was| *was != text && was.len() > BEGIN)?;
        let (was, left) = (was.len(), text.len());
        (left * LOSES > was)
            .then(|| format!("`{id}`, which was cut to {was} bytes, is cut again, to {left}"))
    })
}

/// Finds a result whose new text names another one that is gone or edited, too.
fn dangling(
    prompt: &SentPrompt,
    edited: &BTreeMap<&str, String>,
    originals: &Originals<'_>,
) -> Option<String> {
    let whole = prompt.results().map(|result| &*result.tool_use_id);
    let whole: BTreeSet<&str> = whole.filter(|id| !edited.contains_key(id)).collect();
    edited.iter().find_map(|(id, text)| {
        let mut others = originals.0.keys().filter(|other| *other != id && !whole.contains(*other));
        let gone = others.find(|other| text.contains(**other))?;
        Some(format!("`{id}` points to `{gone}`, which is not there as it was"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_result_may_be_cleared_and_not_called_a_success() {
        for (text, was, expected) in [
            ("OK", "Error: no such file", true),
            ("The command succeeded.", "exit code 1", true),
            ("[old tool result cleared]", "exit code 1", false),
            ("[output successfully saved to a file]", "exit code 1", false),
            ("Error: the check is not ok", "exit code 1", false),
            ("3 passed [cut]", "3 passed, and one panicked", false),
        ] {
            assert_eq!(says_success(text, was), expected, "{text}");
        }
    }

    #[test]
    fn half_a_character_is_a_question_mark_in_its_place() {
        for (now, was, expected) in [
            ("row ? [cut]", "row \u{20bb7} and more", true),
            ("row [cut]", "row \u{20bb7} and more", false),
            ("row ? [cut]", "row c and more", false),
        ] {
            assert_eq!(has_half_a_character(now.chars(), was.chars()), expected, "{now}");
        }
    }
}
