//! A session that begins with something else: a little script and some talk, and then the work.
//!
//! Nothing that is planted falls into it, and nothing later refers to it; that the script was
//! created stays true.

use serde_json::json;

use super::author::Author;
use crate::session::ContentBlock;
use crate::session::synthetic::code_review::act::Action;
use crate::session::synthetic::code_review::profile::Away;
use crate::session::synthetic::random::Random;
use crate::session::synthetic::tools::Tool;
use crate::session::synthetic::workspace::numbered;

/// Shorter sessions begin with the work: the talk takes up to a fifth of this.
pub(super) const LEAST_ROUNDS: u64 = 40;

/// How the person begins.
const FIRST: &[&str] = &[
    "hi! help me create {file}, it only has to print a greeting",
    "Hello there. Could you make me a tiny {file} that says hello?",
    "hey, first time I use this. write {file} for me please, one greeting is enough",
];

/// What is greeted.
const GREETED: &[&str] = &[
    "world",
    "kitchen",
    "harbour",
    "rooftop",
    "orchard",
    "lighthouse",
];

/// What the person asks for next.
const SECOND: &[&str] = &[
    "nice! can it greet the {other} as well?",
    "Works. Now let it say hello to the {other} too.",
];

/// What is talked about, and what the agent answers.
const CHAT: &[(&str, &str)] = &[
    (
        "haha great. do you like mornings or evenings better?",
        "I have no mornings, so every request is a fine time of the day to me.",
    ),
    (
        "Cool. What is the oldest programming joke you know?",
        "Probably the moth in the relay: the first bug that was taped into a logbook.",
    ),
    (
        "thanks! is it normal to enjoy tiny scripts this much?",
        "Quite normal. A script of three lines that does what it says is a small joy.",
    ),
    (
        "Lovely. Which colour should my terminal have?",
        "Whatever you can look at for hours; a dark green has many friends.",
    ),
];

/// What the agent says before it uses a tool.
const SAID: [&[&str]; 4] = [
    &["Sure, that is one short file.", "With pleasure."],
    &["Let me run it.", "A quick run to see the greeting."],
    &["One more line will do.", "Easy, I'll add a line."],
    &["Here it is once more.", "A last look at the whole of it."],
];

/// What the agent says when it is done.
const DONE: &[&str] = &[
    "There you go: `{file}` greets as you wanted.",
    "Done. `{file}` says hello.",
];

const FILE: &str = "hello.py";

impl Author<'_> {
    /// The talk: two requests about the script, and one or two about nothing.
    pub(super) fn small_talk(&mut self) {
        let random = &mut self.out.random;
        let mut greeted = GREETED.to_vec();
        random.shuffle(&mut greeted);
        let mut lines = vec![format!("print(\"Hello, {}!\")", greeted[0])];
        let first = random.pick(FIRST).replace("{file}", FILE);
        self.chat(first);
        let content = lines.join("\n") + "\n";
        self.use_tool(
            0,
            Tool::Write,
            json!({"file_path": FILE, "content": content}),
            format!("Created {FILE}: 1 line, {} bytes.", content.len()),
        );
        self.run_script(&greeted[..1]);
        self.reply();
        let second = self.pick(SECOND).replace("{other}", greeted[1]);
        self.chat(second);
        let old = lines[0].clone();
        lines.push(format!("print(\"Hello, {}!\")", greeted[1]));
        let new = lines.join("\n");
        let shown = numbered(&lines, 0);
        self.use_tool(
            2,
            Tool::Edit,
            json!({"file_path": FILE, "old_string": old, "new_string": new}),
            format!("Changed {FILE}. The lines around the change are now:\n{shown}"),
        );
        self.run_script(&greeted[..2]);
        self.use_tool(3, Tool::Read, json!({"file_path": FILE}), shown);
        self.reply();
        let (asked, answered) = self.out.random.pick(CHAT);
        self.chat(asked.to_owned());
        self.out.respond(vec![ContentBlock::Text(answered.into())]);
    }

    fn pick(&mut self, bank: &[&'static str]) -> &'static str {
        Random::pick(&mut self.out.random, bank)
    }

    fn chat(&mut self, text: String) {
        self.out.pass(Away::Never);
        self.out.typed(text, &[]);
    }

    fn reply(&mut self) {
        let text = self.pick(DONE).replace("{file}", FILE);
        self.out.respond(vec![ContentBlock::Text(text.into())]);
    }

    fn run_script(&mut self, greeted: &[&str]) {
        let printed: Vec<String> = greeted.iter().map(|it| format!("Hello, {it}!")).collect();
        let input = json!({
            "command": format!("python3 {FILE}"),
            "description": "run the script",
        });
        self.use_tool(1, Tool::Bash, input, printed.join("\n"));
    }

    /// The agent uses one tool; nobody will need the result.
    fn use_tool(&mut self, said: usize, tool: Tool, input: serde_json::Value, output: String) {
        let text = self.pick(SAID[said]);
        let asking = self.out.next();
        self.artifacts.record(tool, &input, asking);
        let action = Action {
            tool,
            input,
            output,
            failed: false,
        };
        let ids = self
            .out
            .act(vec![ContentBlock::Text(text.into())], vec![action]);
        self.spent.push((asking + 1, ids));
    }
}
