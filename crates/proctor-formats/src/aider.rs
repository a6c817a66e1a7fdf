//! aider keeps its chats in a project as Markdown (`.aider.chat.history.md`).
//!
//! Rules of this format, beside those every importer shares:
//! - `# aider chat started at TIME` begins a chat: each is a session.
//! - Lines with `####` are the user's, quoted lines (`> `) the product's, and the others are the
//!   model's, as the product itself reads its file. So a heading of that level in an answer is read
//!   as the user's, and an answer ends where a quoted line is. A mark without the space is the
//!   model's: an edit ends with `>>>>>>> REPLACE`.
//! - A command (`/add`) is not sent to the model, unless it is answered.
//! - There are no tool uses. The files that a prompt held, its system prompt, its repository map and
//!   its summaries are not recorded: a prompt was larger than what is read. What a call cost is
//!   rounded in the product's lines, and is not read.
//!
//! Source: Aider-AI/aider, `aider/utils.py` (`split_chat_history_markdown`) at 01592afac3.

use super::prelude::*;

const BEGINS: &str = "# aider chat started at ";

/// How the product names the model of a chat.
const MODEL: [&str; 2] = ["> Model: ", "> Main model: "];

pub(super) const IMPORTER: Importer = Importer::new("aider", Detect::Begins(&[BEGINS]), import);

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let mut chats = vec![AiderChat::default()];
    for line in file.plain(source).lines() {
        if line.starts_with(BEGINS) {
            chats.push(AiderChat::default());
        } else if let Some(chat) = chats.last_mut() {
            chat.line(line);
        }
    }
    sessions_of(chats.into_iter().map(AiderChat::end), source, file)
}

#[derive(Default)]
struct AiderChat {
    assembler: Assembler,
    /// Whether the user said something: before that, all lines are the product's.
    is_begun: bool,
    /// What the user says, and what he said without an answer.
    asking: String,
    asked: Vec<String>,
    answer: String,
}

impl AiderChat {
    fn line(&mut self, line: &str) {
        let asked = line.strip_prefix("####");
        if let Some(said) = asked.filter(|said| said.is_empty() || said.starts_with(' ')) {
            self.ends_answer();
            self.is_begun = true;
            self.asking.push_str(said.trim());
            self.asking.push('\n');
            return;
        }
        self.ends_question();
        if line.starts_with("> ") {
            self.ends_answer();
            let named = MODEL.iter().find_map(|mark| line.strip_prefix(mark)?.split(' ').next());
            let model = &mut self.assembler.header.model;
            *model = named.map(Arc::from).or(model.take());
            self.assembler.skip("line of the product's");
        } else if self.is_begun {
            self.answer.push_str(line);
            self.answer.push('\n');
        } else if !line.trim().is_empty() {
            self.assembler.skip("line before the first message");
        }
    }

    fn ends_answer(&mut self) {
        let written = std::mem::take(&mut self.answer);
        let answer = written.trim();
        if answer.is_empty() {
            return;
        }
        self.asks(self.asked.len().saturating_sub(1));
        self.assembler
            .assistant(None, ModelRecord::of(vec![ContentBlock::Text(answer.into())], None));
    }

    /// Adds what the user said. Of the commands, those from `answered` on were sent to the model.
    fn asks(&mut self, answered: usize) {
        for (at, said) in std::mem::take(&mut self.asked).into_iter().enumerate() {
            if said.starts_with('/') && at < answered {
                self.assembler.skip("command of the user's");
            } else {
                let said = vec![ContentBlock::Text(said.trim_end().into())];
                self.assembler.hear(None, said, None, [Tag::TypedUser]);
            }
        }
    }

    fn ends_question(&mut self) {
        let asking = std::mem::take(&mut self.asking);
        self.asked.extend(Some(asking).filter(|asking| !asking.is_empty()));
    }

    fn end(mut self) -> Assembler {
        self.ends_answer();
        self.ends_question();
        self.asks(usize::MAX);
        if !self.assembler.is_empty() {
            self.assembler.warn("the files and the system prompt of a chat are not recorded");
        }
        self.assembler
    }
}
