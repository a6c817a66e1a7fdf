//! Cursor's transcripts as text: `user:` and `assistant:` on lines of their own, and in what the model
//! said marks at the beginning of a line.
//!
//! - `[Thinking]` goes to the end of its line.
//! - `[Tool call] NAME` is followed by the arguments, one a line and not escaped: they are kept as a
//!   text. `[Tool result] NAME` is followed by the result, or by nothing.

use super::CursorReading;
use crate::prelude::*;

const CALL: &str = "[Tool call] ";
const RESULT: &str = "[Tool result] ";
const THOUGHT: &str = "[Thinking]";

pub(super) fn detect(head: &Head) -> bool {
    let marks = ["<user_query>", CALL, RESULT, THOUGHT];
    head.text.lines().next() == Some("user:") && marks.iter().any(|mark| head.text.contains(mark))
}

/// A section: its mark, and the lines below it.
enum CursorSection<'t> {
    User,
    Model,
    Thought(&'t str),
    Call(&'t str),
    Result(&'t str),
}

pub(super) fn read(text: &str, reading: &mut CursorReading) {
    let mut sections: Vec<(CursorSection<'_>, String)> = Vec::new();
    for line in text.lines() {
        let section = match (line, sections.last()) {
            ("user:", _) => Some(CursorSection::User),
            ("assistant:", _) => Some(CursorSection::Model),
            (_, None | Some((CursorSection::User, _))) => None,
            _ => marked(line),
        };
        match section {
            Some(section) => sections.push((section, String::new())),
            None => match sections.last_mut() {
                Some((_, below)) => {
                    below.push_str(line);
                    below.push('\n');
                }
                None if line.is_empty() => {}
                None => reading.assembler.skip("line before the first message"),
            },
        }
    }
    let mut call = Call::default();
    for (section, below) in sections {
        let text = below.trim_matches('\n');
        let text = (!text.is_empty()).then(|| ContentBlock::Text(text.into()));
        match section {
            CursorSection::User => {
                call.ends(reading);
                reading.hears(text.into_iter().collect());
            }
            CursorSection::Model => {
                call.ends(reading);
                call.said.extend(text);
            }
            CursorSection::Thought(thought) => {
                call.said.push(ContentBlock::thinking(thought.trim(), None));
                call.said.extend(text);
            }
            CursorSection::Call(name) => {
                let name: Arc<str> = name.trim().into();
                let id = numbered("call", &mut reading.calls);
                call.open.entry(name.clone()).or_default().push_back(id.clone());
                let arguments = JsonText::string(below.trim_end());
                call.said.push(ContentBlock::tool_use(id, name, arguments));
            }
            CursorSection::Result(name) => {
                let asked = call.open.get_mut(name.trim()).and_then(VecDeque::pop_front);
                let id = asked.unwrap_or_else(|| numbered("call", &mut reading.calls));
                let result = text.map(|text| ContentBlock::tool_result(id, vec![text], false));
                call.results.extend(result);
            }
        }
    }
    call.ends(reading);
}

/// The section that a mark begins in what the model said.
fn marked(line: &str) -> Option<CursorSection<'_>> {
    let thought = line.strip_prefix(THOUGHT).map(CursorSection::Thought);
    let call = thought.or_else(|| line.strip_prefix(CALL).map(CursorSection::Call));
    call.or_else(|| line.strip_prefix(RESULT).map(CursorSection::Result))
}

/// What the model said in one section, and the results below it.
#[derive(Default)]
struct Call {
    said: Blocks,
    results: Blocks,
    /// Tool uses that no mark of a result followed yet, by the names of their tools.
    open: BTreeMap<Arc<str>, VecDeque<Arc<str>>>,
}

impl Call {
    fn ends(&mut self, reading: &mut CursorReading) {
        let call = std::mem::take(self);
        if !call.said.is_empty() {
            reading.says(call.said);
        }
        if !call.results.is_empty() {
            reading.hears(call.results);
        }
    }
}
