//! Calls that are tags in the model's text, and results that are text in the user's.
//!
//! A call is `<tool><parameter>value</parameter></tool>`; of several in a message only the first is
//! made. Its result begins `[tool for '…'] Result:`. The text is cut at the call, so that the
//! session holds it once.

use crate::prelude::*;

/// The tools of both products.
const TOOLS: &str = include_str!("tools.txt");

/// The beginning of the block that ends a result.
const ENVIRONMENT: &str = "<environment_details>";

/// The product's words if a tool failed.
const FAILED: &str = "The tool execution failed";

/// The calls of one task, numbered.
#[derive(Debug, Default)]
pub(super) struct Calls {
    made: usize,
    /// The call that was not answered yet: its id and its tool.
    open: Option<(Arc<str>, &'static str)>,
}

impl Calls {
    /// Tells the call in the model's text as a tool use.
    pub(super) fn call(&mut self, blocks: &mut Blocks) {
        self.open = None;
        if blocks.iter().any(ContentBlock::is_use) {
            return;
        }
        let mut texts = blocks.iter().enumerate();
        let found = texts.find_map(|(at, block)| Some((at, tagged(block.as_text()?)?)));
        let Some((at, (tool, input, rest))) = found else {
            return;
        };
        self.made += 1;
        let id: Arc<str> = format!("call-{}", self.made).into();
        self.open = Some((id.clone(), tool));
        let input = JsonText::of(&Value::Object(input));
        cut(
            blocks,
            at,
            rest,
            ContentBlock::tool_use(id, tool.into(), input),
        );
    }

    /// Tells what came of the last call as its result.
    pub(super) fn answer(&mut self, blocks: &mut Blocks) {
        let Some((id, tool)) = self.open.take() else {
            return;
        };
        let is_told = |block: &ContentBlock| {
            let text = block.as_text().and_then(|text| text.strip_prefix('['));
            let rest = text.and_then(|text| text.strip_prefix(tool));
            rest.is_some_and(|rest| rest.contains("Result:"))
        };
        let Some(from) = blocks.iter().position(is_told) else {
            return;
        };
        let is_end = |block: &ContentBlock| {
            let text = block.as_text();
            text.is_some_and(|text| text.trim_start().starts_with(ENVIRONMENT))
        };
        let length = blocks[from..].iter().position(is_end);
        let end = length.map_or(blocks.len(), |length| from + length);
        let content: Blocks = blocks.drain(from..end).collect();
        let mut texts = content.iter().filter_map(ContentBlock::as_text);
        let is_error = texts.any(|text| text.contains(FAILED));
        blocks.insert(from, ContentBlock::tool_result(id, content, is_error));
    }
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
    let parts = parts.filter(|part| !part.is_empty());
    let rest = parts.collect::<Vec<&str>>().join("\n");
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
        let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
        if name.is_empty() || !name.chars().all(is_part) {
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
        check(
            "<execute_command>ls</execute_command>",
            r#"execute_command {"text":"ls"} """#,
        );
        check("<read_file><path>cut", "-");
        check("<unknown_tool><path>a</path></unknown_tool>", "-");
        check("a < b", "-");
    }
}
