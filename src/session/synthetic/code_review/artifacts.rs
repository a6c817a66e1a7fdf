//! Which files the agent touched, read from its tool uses.

use serde_json::Value;

use crate::session::ground_truth::{ArtifactVerb, Fact, FileLog, Importance, PlantedFact};
use crate::session::synthetic::tools::Tool;

/// What was done to each path, and from which message on.
#[derive(Debug, Default)]
pub(crate) struct Artifacts(FileLog);

impl Artifacts {
    /// Notes a tool use of the message of that index.
    pub(crate) fn record(&mut self, tool: Tool, input: &Value, message: usize) {
        if tool == Tool::Bash
            && let Some(command) = input.get("command").and_then(Value::as_str)
        {
            self.0.record_command(command, message);
        }
        let Some(verb) = tool.verb() else {
            return;
        };
        let Some(path) = input.get("file_path").and_then(Value::as_str) else {
            return;
        };
        self.0.record(verb, path, message);
    }

    /// One fact per verb that occurred.
    pub(crate) fn facts(self) -> Vec<PlantedFact> {
        let verbs = [
            (
                ArtifactVerb::Read,
                "read",
                "Which files were only read, and neither created nor changed?",
            ),
            (
                ArtifactVerb::Created,
                "created",
                "Which files did the agent create?",
            ),
            (
                ArtifactVerb::Modified,
                "modified",
                "Which existing files did the agent change?",
            ),
        ];
        let mut facts = Vec::new();
        for (verb, name, question) in verbs {
            let files = self.0.files(verb);
            if files.is_empty() {
                continue;
            }
            let mut evidence: Vec<usize> = files.iter().map(|file| file.message).collect();
            evidence.dedup();
            facts.push(PlantedFact {
                id: format!("artifact-{name}"),
                fact: Fact::Artifact {
                    verb,
                    files,
                    optional: self.0.optional(verb),
                },
                question: question.to_owned(),
                evidence,
                importance: Importance::Normal,
            });
        }
        facts
    }
}
