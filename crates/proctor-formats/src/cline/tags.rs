//! Calls that are tags in the model's text, and results that are text in the user's.
//!
//! A call is `<tool><parameter>value</parameter></tool>`; of several in a message only the first is
//! made. Its result begins `[tool for '…'] Result:`. The text is cut at the call, so that the
//! session holds it once. Versions of 2026 give the model tools, and may still answer in such texts:
//! one for the first call, and for each other one why it was not made.

use crate::prelude::*;

/// The tools of both products.
const TOOLS: &str = include_str!("tools.txt");

/// The beginning of the block that ends a result.
const ENVIRONMENT: &str = "<environment_details>";

/// The product's words if a tool failed.
const FAILED: &str = "The tool execution failed";

/// The text before the name of a tool that was not used.
const NOT_USED: [&str; 2] = ["Tool [", "Skipping tool ["];

/// The calls of one task, numbered.
#[derive(Debug, Default)]
pub(super) struct Calls {
    made: usize,
    /// The calls of the last message that were not answered yet: their ids and their tools.
    open: Vec<(Arc<str>, Arc<str>)>,
}

impl Calls {
    /// Tells the call in the model's text as a tool use, unless there are tool uses.
    pub(super) fn call(&mut self, blocks: &mut Blocks) {
        if !blocks.iter().any(ContentBlock::is_use) {
            self.call_in_text(blocks);
        }
        let uses = blocks.iter().filter_map(ContentBlock::as_use);
        self.open = uses.map(|one| (one.id.clone(), one.name.clone())).collect();
    }

    fn call_in_text(&mut self, blocks: &mut Blocks) {
        let mut texts = blocks.iter().enumerate();
        let found = texts.find_map(|(at, block)| Some((at, tagged(block.as_text()?)?)));
        let Some((at, (tool, input, rest))) = found else {
            return;
        };
        let id = numbered("call", &mut self.made);
        let tool_use = ContentBlock::tool_use(id, tool.into(), JsonText::of(&Value::Object(input)));
        cut(blocks, at, rest, tool_use);
    }

    /// Tells what came of the last calls as their results: each ends where the next one begins.
    pub(super) fn answer(&mut self, blocks: &mut Blocks) {
        for result in blocks.iter().filter_map(ContentBlock::as_result) {
            self.open.retain(|(id, _)| *id != result.tool_use_id);
        }
        let mut open: Option<(Arc<str>, Blocks)> = None;
        for block in std::mem::take(blocks) {
            let text = block.as_text();
            let answered = text.and_then(|text| self.answered(text));
            let ends = text.is_some_and(|text| text.trim_start().starts_with(ENVIRONMENT));
            if ends || answered.is_some() {
                blocks.extend(open.take().map(result));
            }
            match (answered, &mut open) {
                (Some(id), _) => open = Some((id, vec![block])),
                (None, Some((_, content))) => content.push(block),
                (None, None) => blocks.push(block),
            }
        }
        blocks.extend(open.map(result));
        self.open.clear();
    }

    /// The call that is answered from this text on.
    fn answered(&mut self, text: &str) -> Option<Arc<str>> {
        let mut not_used = NOT_USED.iter().filter_map(|mark| text.strip_prefix(mark));
        let named = text.strip_prefix('[').filter(|rest| rest.contains("Result:"));
        let tool = named.or_else(|| not_used.next())?.split([' ', ']']).next();
        let at = self.open.iter().position(|(_, name)| Some(&**name) == tool)?;
        Some(self.open.remove(at).0)
    }
}

/// The result of a call; its first text says what it answers.
fn result((id, content): (Arc<str>, Blocks)) -> ContentBlock {
    let first = content.first().and_then(ContentBlock::as_text);
    let failed = !first.is_some_and(|text| text.starts_with('['))
        || texts(&content).any(|text| text.contains(FAILED));
    ContentBlock::tool_result(id, content, failed)
}

/// The first call in a text: its tool, its input, and the text without it.
fn tagged(text: &str) -> Option<(&'static str, Map<String, Value>, String)> {
    let opened = TOOLS.split_whitespace().filter_map(|tool| {
        let (open, close) = (format!("<{tool}>"), format!("</{tool}>"));
        let (before, rest) = text.split_once(&open)?;
        let (inside, after) = rest.split_once(&close)?;
        Some((before, tool, inside, after))
    });
    let (before, tool, inside, after) = opened.min_by_key(|(before, ..)| before.len())?;
    let parts = [before.trim_end(), after.trim_start()].into_iter();
    let rest = parts.filter(|part| !part.is_empty()).collect::<Vec<&str>>().join("\n");
    Some((tool, parameters(inside), rest))
}

/// The parameters of a call; a text without any is a parameter of its own.
fn parameters(text: &str) -> Map<String, Value> {
    let mut parameters = Map::new();
    let mut rest = text;
    while let Some((_, tag)) = rest.split_once('<') {
        rest = tag;
        let Some((name, inside)) = tag.split_once('>') else {
            break;
        };
        if name.is_empty() || !name.chars().all(|c: char| c.is_ascii_lowercase() || c == '_') {
            continue;
        }
        let close = format!("</{name}>");
        // A file that is written may hold such a tag itself.
        let found = match name {
            "content" | "diff" => inside.rsplit_once(&close),
            _ => inside.split_once(&close),
        };
        if let Some((value, after)) = found {
            parameters.insert(name.to_owned(), value.trim_matches('\n').into());
            rest = after;
        }
    }
    if parameters.is_empty() && !text.trim().is_empty() {
        parameters.insert("text".to_owned(), text.trim().into());
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tool, its input and the rest of a text; `-` if there is no call.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let got = tagged(text).map(|(tool, input, rest)| {
            let input = Value::Object(input);
            format!("{tool} {input} {rest:?}")
        });
        assert_eq!(got.as_deref().unwrap_or("-"), expected, "{text}");
    }

    #[test]
    fn the_first_call_in_a_text_is_told_with_its_parameters() {
        check(
            "I look.\n<read_file>\n<path>a.rs</path>\n</read_file>",
            r#"read_file {"path":"a.rs"} "I look.""#,
        );
        check(
            "<write_to_file>\n<path>a</path>\n<content>\n<path>x</path></content>y\n</content>\n</write_to_file>\nDone.",
            r#"write_to_file {"path":"a","content":"<path>x</path></content>y"} "Done.""#,
        );
        check(
            "<list_files></list_files><read_file><path>b</path></read_file>",
            r#"list_files {} "<read_file><path>b</path></read_file>""#,
        );
        check("<execute_command>ls</execute_command>", r#"execute_command {"text":"ls"} """#);
        check("<read_file><path>cut", "-");
        check("<unknown_tool><path>a</path></unknown_tool>", "-");
        check("a < b", "-");
    }
}
