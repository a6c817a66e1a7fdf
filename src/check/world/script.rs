//! Writes the sessions of the scenes, round by round.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Begin, DONE, Matter, OPEN, Scene, SceneFact, session_of};
use crate::session::wire::images::image;
use crate::session::{ContentBlock, JsonText, Message, Opaque, Role, Tag};
use crate::units::Tokens;

/// The beginning of a result that says that its tool failed.
const FAILED: &str = "Error: ";

/// A message that somebody typed.
fn typed(text: &str) -> Message {
    Message::text(Role::User, text).with_tags([Tag::TypedUser])
}

/// A picture of so many bytes, as it is sent.
pub(super) fn picture(seed: u64, bytes: usize) -> ContentBlock {
    let data = format!("{seed:0>8}").repeat(bytes / 8);
    image(&json!({ "type": "base64", "media_type": "image/png", "data": data }))
}

/// Builds a session, round by round.
pub(super) struct Script {
    pub(super) messages: Vec<Message>,
    /// Characters of each result.
    filler: usize,
    pub(super) rounds: usize,
    /// Messages that were loaded, of a session that goes on.
    pub(super) loaded: Option<usize>,
    seed: u64,
    pub(super) has_thinking: bool,
    /// The words of each line of a result.
    pub(super) line: &'static str,
    pub(super) system: Option<String>,
}

impl Script {
    /// A session whose results have so many tokens, of four characters each.
    pub(super) fn of(tokens: u64, seed: u64) -> Self {
        Self {
            messages: Vec::new(),
            filler: usize::try_from(tokens * 4).unwrap_or(usize::MAX),
            rounds: 0,
            loaded: None,
            seed,
            has_thinking: false,
            line: "let row = ledger.row",
            system: None,
        }
    }

    pub(super) fn typed(&mut self, text: &str) {
        self.messages.push(typed(text));
    }

    /// A request with a picture of so many bytes.
    pub(super) fn pasted(&mut self, text: &str, bytes: usize) {
        let content = vec![picture(self.seed, bytes), ContentBlock::Text(text.into())];
        let message = Message::new(Role::User, content);
        self.messages.push(message.with_tags([Tag::TypedUser]));
    }

    /// The text of a part: a line that no other part has, `says`, and lines up to the size.
    fn part(&self, part: usize, says: &str, size: usize) -> String {
        let mut text = format!("part_{part}.rs of run {}: {says}\n", self.seed);
        // Cuts at the same place of several parts meet other characters.
        let width = 6 + part % 4;
        let mut line = 0;
        while text.len() < size {
            line += 1;
            let sum = (line * 7919 + part * 104_729) % 99_991;
            let _ = writeln!(text, "{line:>width$}  {}({part}, {sum});", self.line);
        }
        text
    }

    /// A request in which somebody pastes a part of so many bytes.
    pub(super) fn paste(&mut self, part: usize, size: usize) {
        let text = self.part(part, "this is the log", size);
        self.typed(&text);
    }

    /// Somebody types while the tools of the newest round run.
    pub(super) fn typed_beside(&mut self, text: &str) {
        if let Some(last) = self.messages.pop() {
            let mut content = last.content().to_vec();
            content.push(ContentBlock::Text(text.into()));
            self.messages.push(last.with_content(content));
        }
    }

    /// One call of each of these tools, with its input and what the result says.
    pub(super) fn calls(&mut self, uses: &[(&str, Value, &str)]) {
        self.calls_on(self.rounds, uses);
    }

    /// The same, with the text of this part in the first result. A command says at the end how it ended.
    fn calls_on(&mut self, part: usize, uses: &[(&str, Value, &str)]) {
        let round = self.rounds;
        let mut said = Vec::new();
        if self.has_thinking {
            let thought = format!(
                "Thought {round}: the next part is needed, and what it exports has to be compared with the ledger."
            );
            said.push(ContentBlock::thinking(thought, Some(format!("sig-{round}-0f3a").into())));
            let json = json!({ "type": "redacted_thinking", "data": format!("red-{round}-7c1e") });
            said.push(ContentBlock::Opaque(Box::new(Opaque {
                kind: "redacted_thinking".into(),
                json: JsonText::of(&json),
            })));
        }
        said.push(ContentBlock::Text(format!("Step {round}: I go on with part {round}.").into()));
        let mut results = Vec::new();
        for (at, (name, input, says)) in uses.iter().enumerate() {
            let id: Arc<str> = format!("call-{round}-{at}").into();
            said.push(ContentBlock::tool_use(id.clone(), (*name).into(), JsonText::of(input)));
            let text = match *name {
                _ if at > 0 => (*says).to_owned(),
                "TodoWrite" => (*says).to_owned(),
                "Bash" => self.part(part, "the command runs", self.filler) + says,
                _ => self.part(part, says, self.filler),
            };
            let text = vec![ContentBlock::Text(text.into())];
            results.push(ContentBlock::tool_result(id, text, says.starts_with(FAILED)));
        }
        self.messages.push(Message::new(Role::Assistant, said));
        self.messages.push(Message::new(Role::User, results));
        self.rounds += 1;
    }

    pub(super) fn read(&mut self, says: &str) {
        self.read_again(self.rounds, says);
    }

    /// Reads a part that may have been read before, as it was then.
    pub(super) fn read_again(&mut self, part: usize, says: &str) {
        let path = format!("src/ledger/part_{part}.rs");
        self.calls_on(part, &[("Read", json!({ "file_path": path }), says)]);
    }

    /// Reads a file that others change meanwhile.
    pub(super) fn look(&mut self, says: &str) {
        self.calls(&[("Read", json!({ "file_path": "src/ledger/rates.rs" }), says)]);
    }

    /// A round in which the call is long, and not its result.
    pub(super) fn write(&mut self, says: &str) {
        let content = self.part(self.rounds, says, self.filler);
        let input = json!({ "file_path": format!("src/ledger/new_{}.rs", self.rounds), "content": content });
        self.calls(&[
            ("TodoWrite", json!({ "todos": [] }), "- the plan is as it was"),
            ("Write", input, says),
        ]);
    }

    pub(super) fn plan(&mut self, done: &str) {
        let status = if done == "[x]" { "completed" } else { "pending" };
        let todos = json!({ "todos": [
            { "content": DONE, "status": status },
            { "content": OPEN, "status": "pending" },
        ] });
        let says = format!("- {done} {DONE}\n- [ ] {OPEN}");
        self.calls(&[("TodoWrite", todos, &says)]);
    }

    pub(super) fn says(&mut self, text: &str) {
        self.messages.push(Message::text(Role::Assistant, text));
    }

    pub(super) fn scene(
        self,
        subject: Matter,
        window: Tokens,
        facts: &'static [SceneFact],
    ) -> Option<Scene> {
        let kind = format!("{subject:?}").to_lowercase();
        let name = format!("{kind}-{}k", window.0 / 1_000);
        let begin = Begin { loaded: self.loaded, system: self.system.map(Into::into) };
        let session = session_of(&name, self.messages, begin)?;
        Some(Scene { name, session, window, facts, subject, first_answer: 0 })
    }
}
