//! A session that begins with something else: a little script and some talk, and then the work.
//!
//! Nothing is planted in it, and nothing later refers to it; that the script was created stays true.

use serde_json::{Value, json};

use super::Writer;
use crate::files::numbered;
use crate::grammar::bank;
use crate::workspace::Action;
use proctor_sessions::ContentBlock;

const FILE: &str = "hello.py";

impl Writer<'_> {
    /// The talk: two requests about the script, and one about nothing.
    pub(super) fn small_talk(&mut self) {
        let random = &self.out.random;
        let mut greeted = bank("talk.greeted").to_vec();
        random.shuffle(&mut greeted);
        let [first, second] = [0, 1].map(|at| format!("print(\"Hello, {}!\")", greeted[at]));
        let asked = random.say("talk.first", &[("file", FILE)]);
        self.chat(asked);
        let content = format!("{first}\n");
        let output = format!("Created {FILE}: 1 line, {} bytes.", content.len());
        let input = json!({"file_path": FILE, "content": content});
        self.use_tool("create", "Write", input, output);
        self.run_script(&greeted[..1]);
        self.reply();
        let asked = self.out.random.say("talk.second", &[("other", greeted[1])]);
        self.chat(asked);
        let new = format!("{first}\n{second}");
        let input = json!({"file_path": FILE, "old_string": first, "new_string": new});
        let shown = numbered(&[first, second], 0);
        let output = format!("Changed {FILE}. The lines around the change are now:\n{shown}");
        self.use_tool("extend", "Edit", input, output);
        self.run_script(&greeted[..2]);
        self.use_tool("show", "Read", json!({"file_path": FILE}), shown);
        self.reply();
        let chat = self.out.random.word("talk.chat");
        let (asked, answered) = chat.split_once('\n').unwrap_or((chat, ""));
        self.chat(asked.to_owned());
        self.out.respond(vec![ContentBlock::Text(answered.into())]);
    }

    fn chat(&mut self, text: String) {
        self.out.pass(0);
        self.out.typed(text, None);
    }

    fn reply(&mut self) {
        let text = self.out.random.say("talk.done", &[("file", FILE)]);
        self.out.respond(vec![ContentBlock::Text(text.into())]);
    }

    fn run_script(&mut self, greeted: &[&str]) {
        let printed: Vec<String> = greeted.iter().map(|name| format!("Hello, {name}!")).collect();
        let command = format!("python3 {FILE}");
        let input = json!({"command": command, "description": "run the script"});
        self.use_tool("run", "Bash", input, printed.join("\n"));
    }

    /// The agent uses one tool, whose result is not needed later.
    fn use_tool(&mut self, said: &str, tool: &'static str, input: Value, output: String) {
        let text = self.out.random.word(&format!("talk.{said}")).to_owned();
        let asking = self.out.next();
        let ids = self.say_and_act(text, Action::new(tool, input, output));
        self.phases.spent.push((asking + 1, ids));
    }
}
