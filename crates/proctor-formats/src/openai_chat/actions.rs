//! Actions in the model's text, if an agent was given no tools.
//!
//! The text is cut at the action, so that the session holds it once: as a tool use. What came of it
//! is the next message of the user's role.

use crate::prelude::*;

/// SWE-agent's own commands; every other action is the shell's.
const COMMANDS: &str = "create edit find_file goto insert open scroll_down scroll_up search_dir search_file \
    str_replace_editor submit view_image";

/// The marks around an action: lines that begin so, or tags of one name.
const FENCE: &str = "```";

/// How mini-swe-agent's model marks the block that is its action.
const LANGUAGES: &[&str] = &["bash", "mswea_bash_command"];

/// Actions of one run, numbered.
#[derive(Debug, Default)]
pub(super) struct Actions {
    made: usize,
    /// The action that nothing came of yet.
    open: Text,
}

impl Actions {
    /// A tool use for the action, and the text without it.
    pub(super) fn act(&mut self, text: &str, action: &str) -> (String, ContentBlock) {
        let id = numbered("action", &mut self.made);
        self.open = Some(id.clone());
        let word = action.split_whitespace().next().unwrap_or_default();
        let name: Arc<str> = if is_one_of(COMMANDS, word) { word } else { "bash" }.into();
        let input = JsonText::of(&serde_json::json!({ "command": action }));
        (without(text, action), ContentBlock::tool_use(id, name, input))
    }

    /// The action that the next message of the user's role answers.
    pub(super) fn answered(&mut self) -> Text {
        self.open.take()
    }
}

/// The one fenced block that is an action; none where there is none, or more than one.
pub(super) fn fenced(text: &str) -> Option<&str> {
    let mut blocks = text.match_indices(FENCE).filter_map(|(at, _)| {
        let rest = &text[at + FENCE.len()..];
        let (language, body) = rest.split_once('\n')?;
        let end = body.find("\n```")?;
        LANGUAGES.contains(&language.trim_end()).then(|| body[..end].trim())
    });
    let first = blocks.next()?;
    (blocks.next().is_none() && !first.is_empty()).then_some(first)
}

/// The text without the action and the marks around it; the whole text where it is not found.
fn without(text: &str, action: &str) -> String {
    let around = unmarked(text, action.trim()).or_else(|| around_function(text));
    let Some((before, after)) = around else {
        return text.to_owned();
    };
    let parts = [before.trim_end(), after.trim_start()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<&str>>().join("\n")
}

/// The text before and after the action and the marks around it.
fn unmarked<'t>(text: &'t str, action: &str) -> Option<(&'t str, &'t str)> {
    let at = text.rfind(action)?;
    let before = text[..at].trim_end();
    let after = text[at + action.len()..].trim_start();
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    if before.is_empty() && after.is_empty() {
        return Some(("", ""));
    }
    let fenced = after.strip_prefix(FENCE).filter(|_| before[line..].starts_with(FENCE));
    fenced.map(|after| (&before[..line], after)).or_else(|| untagged(before, after))
}

/// The text before and after a function call that the model wrote as text, of which the action was made.
fn around_function(text: &str) -> Option<(&str, &str)> {
    let (before, call) = text.split_once("<function=")?;
    let after = call.split_once("</function>").map(|(_, after)| after);
    Some((before, after.unwrap_or_default()))
}

/// The text before and after a pair of tags that enclose the action.
fn untagged<'t>(before: &'t str, after: &'t str) -> Option<(&'t str, &'t str)> {
    let (said, name) = before.strip_suffix('>')?.rsplit_once('<')?;
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)) {
        return None;
    }
    Some((said, after.strip_prefix("</")?.strip_prefix(name)?.strip_prefix('>')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, action: &str, expected: &str) {
        assert_eq!(without(text, action), expected, "{text}");
    }

    #[test]
    fn an_action_is_cut_out_with_the_marks_around_it() {
        check("Look.\n```\nls -l\n```", "ls -l\n", "Look.");
        check("Look.\n\n```bash\nls\n```\nThen more.", "ls", "Look.\nThen more.");
        check("Look.\n<command>\nls\n</command>", "ls", "Look.");
        check("Look.\n<bash_command>ls</bash_command>", "ls", "Look.");
        check("Is 1 <b>ls</c>?", "ls", "Is 1 <b>ls</c>?");
        check(
            "Look.\n\n<function=bash>\n<parameter=command>ls</parameter>\n</function>\nWait.",
            "ls",
            "Look.\nWait.",
        );
        check("Done: submit.\n<function=submit>\n", "submit", "Done: submit.");
        check("ls", "ls", "");
        check("```\nls\n```", "ls", "");
        // Text that is not a mark stays, and so does a text that does not hold the action.
        check("I run ls now.", "ls", "I run ls now.");
        check("Look.", "cat", "Look.");
    }

    #[test]
    fn an_action_is_the_one_block_of_its_language() {
        assert_eq!(fenced("a\n```bash\nls\n```\nb"), Some("ls"));
        assert_eq!(fenced("```mswea_bash_command\nls\n\ncat\n```"), Some("ls\n\ncat"));
        assert_eq!(fenced("```bash\nls\n```\n```bash\ncat\n```"), None);
        assert_eq!(fenced("```python\nprint()\n```"), None);
        assert_eq!(fenced("```bash\nls"), None);
        assert_eq!(fenced("```bash\n\n```"), None);
        assert_eq!(fenced("no block"), None);
    }
}
