//! A session that begins with something else: a little script and some talk, and then the work.
//!
//! Nothing that is planted falls into it, and nothing later refers to it; that the script was
//! created stays true.

use serde_json::{Value, json};

use super::Writer;
use crate::session::ContentBlock;
use crate::session::synthetic::files::numbered;
use crate::session::synthetic::words::SMALL_TALK;
use crate::session::synthetic::workspace::Action;

const FILE: &str = "hello.py";

impl Writer<'_> {
    /// The talk: two requests about the script, and one or two about nothing.
    pub(super) fn small_talk(&mut self) {
        let words = &*SMALL_TALK;
        let random = &mut self.out.random;
        let mut greeted = words.greeted.clone();
        random.shuffle(&mut greeted);
        let mut lines = vec![format!("print(\"Hello, {}!\")", greeted[0])];
        let first = random.pick(&words.first).replace("{file}", FILE);
        self.chat(first);
        let content = lines.join("\n") + "\n";
        let output = format!("Created {FILE}: 1 line, {} bytes.", content.len());
        self.use_tool(
            0,
            "Write",
            json!({"file_path": FILE, "content": content}),
            output,
        );
        self.run_script(&greeted[..1]);
        self.reply();
        let second = self
            .out
            .random
            .pick(&words.second)
            .replace("{other}", greeted[1]);
        self.chat(second);
        let old = lines[0].clone();
        lines.push(format!("print(\"Hello, {}!\")", greeted[1]));
        let new = lines.join("\n");
        let shown = numbered(&lines, 0);
        let output = format!("Changed {FILE}. The lines around the change are now:\n{shown}");
        let input = json!({"file_path": FILE, "old_string": old, "new_string": new});
        self.use_tool(2, "Edit", input, output);
        self.run_script(&greeted[..2]);
        self.use_tool(3, "Read", json!({"file_path": FILE}), shown);
        self.reply();
        let (asked, answered) = self.out.random.pick(&words.chat);
        self.chat(asked.to_owned());
        self.out.respond(vec![ContentBlock::Text(answered.into())]);
    }

    fn chat(&mut self, text: String) {
        self.out.pass(0);
        self.out.typed(text, &[]);
    }

    fn reply(&mut self) {
        let text = self
            .out
            .random
            .pick(&SMALL_TALK.done)
            .replace("{file}", FILE);
        self.out.respond(vec![ContentBlock::Text(text.into())]);
    }

    fn run_script(&mut self, greeted: &[&str]) {
        let printed: Vec<String> = greeted.iter().map(|it| format!("Hello, {it}!")).collect();
        let command = format!("python3 {FILE}");
        let input = json!({"command": command, "description": "run the script"});
        self.use_tool(1, "Bash", input, printed.join("\n"));
    }

    /// The agent uses one tool; nobody will need the result.
    fn use_tool(&mut self, said: usize, tool: &'static str, input: Value, output: String) {
        let text = self.out.random.pick(&SMALL_TALK.said[said]).to_owned();
        let asking = self.out.next();
        let ids = self.act(None, &[text], vec![Action::new(tool, input, output)]);
        self.phases.spent.push((asking + 1, ids));
    }
}
