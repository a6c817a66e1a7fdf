//! A digest by rule: what the user asked, what the agent answered, which files and commands it used.
//!
//! No model is asked, so that it costs nothing and invents nothing; what it leaves out is all that
//! tools said.

use super::prelude::*;
use crate::script::shortened;

pub(super) fn build(knobs: &Knobs<'_>) -> StageResult {
    Ok(Box::new(Digest { sizes: knobs.sizes.clone(), ..knobs.read()? }))
}

#[derive(Debug, Deserialize)]
struct Digest {
    keep_last_messages: usize,
    cut: Cut,
    target_tokens: Tokens,
    max_prompt_chars: usize,
    max_answer_chars: usize,
    max_files: usize,
    max_commands: usize,
    max_command_chars: usize,
    /// In place of the target and the number of messages that stay: by call, the size that the
    /// strategy which is followed came to. The newest messages stay in up to half of it.
    #[serde(skip)]
    sizes: Option<BTreeMap<usize, Tokens>>,
    /// The facts to write, in order.
    #[serde(skip)]
    facts: Vec<DigestFact>,
    /// Tool uses without an answer so far.
    #[serde(skip)]
    asked: BTreeMap<Arc<str>, ToolUse>,
    /// The model's last words, if it asked for no tool with them, and their message.
    #[serde(skip)]
    said: Option<(usize, String)>,
}

/// One thing that a message says.
#[derive(Debug)]
struct DigestFact {
    message: usize,
    kind: DigestKind,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DigestKind {
    Prompt,
    Changed,
    Answer,
    Read,
    Command,
}

/// With their headings, in the order in which a digest says them, and the reverse of that in which they go.
const KINDS: [(DigestKind, &str); 5] = [
    (DigestKind::Prompt, "The user said:"),
    (DigestKind::Changed, "Files changed:"),
    (DigestKind::Answer, "The agent answered:"),
    (DigestKind::Read, "Files read:"),
    (DigestKind::Command, "Commands run:"),
];

impl Stage for Digest {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        let entries = context.entries();
        let nothing = Step::Done(Ok(Patch::default()));
        let (end, target) = match &self.sizes {
            None => {
                let kept = entries.len().saturating_sub(self.keep_last_messages);
                (self.cut.snap_back(entries, kept), self.target_tokens)
            }
            Some(sizes) => {
                let size = sizes.get(&cx.call);
                let Some(size) = size.filter(|size| context.size().tokens > **size) else {
                    return nothing;
                };
                let end = self.end_within(entries, Tokens(size.0 / 2));
                let stays: Tokens = entries[end..].iter().map(|entry| entry.size().tokens).sum();
                (end, (*size - stays).max(Tokens(1)))
            }
        };
        let replaced = &entries[..end];
        if replaced.is_empty() || matches!(replaced, [only] if is_digest(only)) {
            return nothing;
        }
        let origin = Origin::derived_from(replaced);
        let text = self.text(&origin, target, cx);
        let entry = Entry::written(origin, text, Tag::CompactSummary, &cx.counts);
        let before: Tokens = replaced.iter().map(|entry| entry.size().tokens).sum();
        if entry.size().tokens >= before {
            return nothing;
        }
        Step::Done(Ok(Patch::replacing(
            format!("a digest in place of {end} messages"),
            0..end,
            vec![entry],
        )))
    }

    fn take_note_of(&mut self, entry: &Entry) {
        let (Origin::Verbatim(at) | Origin::Edited { message: at, .. }) = entry.origin else {
            return;
        };
        let message = &entry.message;
        match message.role() {
            Role::Assistant => {
                let uses = message.tool_uses();
                self.asked.extend(uses.map(|(_, tool)| (tool.id.clone(), tool.clone())));
                let text = text_of(message);
                let answers = message.tool_uses().next().is_none() && !text.is_empty();
                self.said = answers.then_some((at, text));
            }
            Role::User => {
                for (_, result) in message.tool_results() {
                    if let Some(tool) = self.asked.remove(&result.tool_use_id) {
                        self.used(&tool, result.is_error, at);
                    }
                }
                if entry.is_typed() {
                    if let Some((at, text)) = self.said.take() {
                        self.note(at, DigestKind::Answer, shortened(&text, self.max_answer_chars));
                    }
                    let text = shortened(&text_of(message), self.max_prompt_chars);
                    self.note(at, DigestKind::Prompt, text);
                }
            }
        }
    }
}

impl Digest {
    /// The start of the newest messages within a number of tokens, one message at least. Cuts a
    /// little later, where that is legal, rather than above the size.
    fn end_within(&self, entries: &[Entry], room: Tokens) -> usize {
        let last = entries.len().saturating_sub(1);
        let kept = cut::newest_within(entries, room).min(last);
        (kept..entries.len())
            .find(|at| self.cut.snap_back(entries, *at) == *at)
            .unwrap_or_else(|| self.cut.snap_back(entries, kept))
    }

    fn note(&mut self, message: usize, kind: DigestKind, text: String) {
        self.facts.push(DigestFact { message, kind, text });
    }

    /// Takes note of a tool use once it is answered.
    fn used(&mut self, tool: &ToolUse, failed: bool, at: usize) {
        if tool.class == ToolClass::Shell
            && let Some(command) = command_of(tool)
        {
            let mut text = shortened(&command, self.max_command_chars);
            if failed {
                text.push_str(" (failed)");
            }
            self.note(at, DigestKind::Command, text);
        }
        if failed {
            return;
        }
        for path in files::changed_by(tool) {
            self.note(at, DigestKind::Changed, path);
        }
        if let Some(view) = files::view_of(tool) {
            self.note(at, DigestKind::Read, view.path);
        }
    }

    /// The digest of the messages of an origin, within the target.
    fn text(&self, origin: &Origin, target: Tokens, cx: &Situation) -> String {
        let counter = cx.counts.counter();
        let ranges = origin.replaced();
        let noted = self.facts.iter();
        let facts: Vec<&DigestFact> =
            noted.filter(|fact| ranges.iter().any(|range| range.contains(&fact.message))).collect();
        let mut kinds = &KINDS[..];
        loop {
            let text = self.written(&facts, kinds);
            if target == Tokens::ZERO || counter.count(&text) <= target {
                return text;
            }
            match kinds.split_last() {
                // The user's words and the changes are dropped last, from the end.
                Some((_, fewer)) if fewer.len() > 1 => kinds = fewer,
                _ => return truncate::head(&text, target, &**counter).to_owned(),
            }
        }
    }

    fn written(&self, facts: &[&DigestFact], kinds: &[(DigestKind, &str)]) -> String {
        let mut text = TITLE.to_owned();
        for (kind, heading) in kinds {
            let said = matches!(kind, DigestKind::Prompt | DigestKind::Answer);
            let limit = match kind {
                DigestKind::Prompt | DigestKind::Answer => usize::MAX,
                DigestKind::Changed | DigestKind::Read => self.max_files,
                DigestKind::Command => self.max_commands,
            };
            let mut lines: Vec<&str> = Vec::new();
            // Of what is done several times, the last time counts.
            for fact in facts.iter().rev().filter(|fact| fact.kind == *kind) {
                if lines.len() < limit && (said || !lines.contains(&&*fact.text)) {
                    lines.push(&fact.text);
                }
            }
            if !lines.is_empty() {
                text.push_str("\n\n");
                text.push_str(heading);
                for line in lines.iter().rev() {
                    text.push_str("\n- ");
                    text.push_str(line);
                }
            }
        }
        text
    }
}

const TITLE: &str = "[Digest of the conversation so far]";

fn is_digest(entry: &Entry) -> bool {
    matches!(entry.origin, Origin::Derived(_)) && entry.message.has_tag(Tag::CompactSummary)
}

/// The text blocks of a message, line by line.
fn text_of(message: &Message) -> String {
    let texts: Vec<&str> =
        message.texts().map(|(_, text)| text.trim()).filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

/// The command of a shell's tool use: a text, or a list of words.
fn command_of(tool: &ToolUse) -> Option<String> {
    let input = tool.input.value();
    let command = ["command", "cmd"].iter().find_map(|key| input.get(key))?;
    if let Some(words) = command.as_array() {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        return Some(words.join(" "));
    }
    Some(command.as_str()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use crate::strategy::stage::trial::{Trial, answers, asks, fails, said, typed};

    /// Two turns with tools, and one that begins.
    fn trial(knobs: &str) -> Trial {
        let mut trial = Trial::new("digest", knobs);
        let output = "x".repeat(2_000);
        trial.append([
            typed("Fix the parser."),
            said("I will look."),
            asks(&[
                ("1", "Read", r#"{"file_path":"a.rs"}"#),
                ("2", "Bash", r#"{"command":"cargo test"}"#),
                ("3", "exec", r#"{"cmd":["ls","-l"]}"#),
            ]),
            answers(&[("1", &output), ("3", &output)]),
            fails("2", &output),
            asks(&[
                ("4", "Edit", r#"{"file_path":"b.rs"}"#),
                ("5", "Bash", r#"{"command":"ls -l"}"#),
            ]),
            answers(&[("4", "ok"), ("5", &output)]),
            said("The parser is fixed."),
            typed("Now the printer."),
            asks(&[
                ("6", "Read", r#"{"file_path":"c.rs"}"#),
                ("7", "Read", r#"{"file_path":"a.rs"}"#),
            ]),
            answers(&[("6", &output)]),
            fails("7", "no"),
        ]);
        trial
    }

    const WHOLE: &str = "[Digest of the conversation so far]\n\nThe user said:\n- Fix the parser.\n\
        - Now the printer.\n\nFiles changed:\n- b.rs\n\nThe agent answered:\n- The parser is fixed.\n\n\
        Files read:\n- a.rs\n- c.rs\n\nCommands run:\n- cargo test (failed)\n- ls -l";

    #[test]
    fn a_digest_says_what_was_asked_answered_and_done() {
        let all = "keep_last_messages = 0\n";
        let without = |from: &str| WHOLE[..WHOLE.find(from).unwrap()].trim_end().to_owned();
        for (knobs, expected) in [
            ("", WHOLE.to_owned()),
            ("max_commands = 1", WHOLE.replace("- cargo test (failed)\n", "")),
            ("max_files = 1", WHOLE.replace("- a.rs\n", "")),
            ("max_command_chars = 5", WHOLE.replace("cargo test", "cargo…")),
            (
                "max_prompt_chars = 3",
                WHOLE.replace("Fix the parser.", "Fix…").replace("Now the printer.", "Now…"),
            ),
            ("max_answer_chars = 10", WHOLE.replace("The parser is fixed.", "The parser…")),
            // 57 tokens, and 46, 39 and 28 with one section less each time.
            ("target_tokens = 57", WHOLE.to_owned()),
            ("target_tokens = 56", without("Commands run:")),
            ("target_tokens = 45", without("Files read:")),
            ("target_tokens = 38", without("The agent answered:")),
            ("target_tokens = 9", "[Digest of the conversation so far]\n".to_owned()),
        ] {
            let mut trial = trial(&format!("{all}{knobs}"));
            assert_eq!(trial.fire().unwrap().unwrap(), "a digest in place of 12 messages");
            assert_eq!(trial.texts(), [expected], "{knobs}");
            assert_eq!(trial.fire().unwrap(), None, "{knobs}");
        }
    }

    #[test]
    fn a_later_digest_says_what_the_earlier_one_did_and_nothing_twice() {
        let mut trial = trial("keep_last_messages = 1");
        trial.fire().unwrap();
        let first = WHOLE.replace("- c.rs\n", "");
        // The last round stays, and what is only in it is not in the digest.
        assert_eq!(trial.texts()[0], first);
        assert_eq!(trial.context.entries().len(), 4);
        trial.append([said("Done."), typed("Thanks."), said("Welcome.")]);
        assert_eq!(trial.fire().unwrap().unwrap(), "a digest in place of 6 messages");
        let second = WHOLE
            .replace("- Now the printer.\n", "- Now the printer.\n- Thanks.\n")
            .replace("is fixed.\n", "is fixed.\n- Done.\n");
        assert_eq!(trial.texts(), [&*second, "Welcome."]);
    }

    #[test]
    fn a_digest_that_is_longer_is_not_made() {
        let mut trial = Trial::new("digest", "keep_last_messages = 0");
        trial.append([typed("hi"), said("ho")]);
        assert_eq!(trial.fire().unwrap(), None);
    }
}
