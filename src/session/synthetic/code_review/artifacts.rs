//! Which files the agent touched, read from its tool uses.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::session::ground_truth::{ArtifactVerb, Fact, Importance, PlantedFact, TouchedFile};
use crate::session::synthetic::tools::Tool;

/// For each path, the strongest thing done to it, and the message that first did it.
///
/// A file that was created stays created, and a file that was changed is no longer only read.
#[derive(Debug, Default)]
pub(crate) struct Artifacts(BTreeMap<String, (ArtifactVerb, usize)>);

impl Artifacts {
    /// Notes a tool use of the message of that index.
    pub(crate) fn record(&mut self, tool: Tool, input: &Value, message: usize) {
        let Some(verb) = tool.verb() else {
            return;
        };
        let Some(path) = input.get("file_path").and_then(Value::as_str) else {
            return;
        };
        let entry = self.0.entry(path.to_owned()).or_insert((verb, message));
        if entry.0 == ArtifactVerb::Read && verb != ArtifactVerb::Read {
            *entry = (verb, message);
        }
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
            let mut files: Vec<TouchedFile> = self
                .0
                .iter()
                .filter(|(_, (done, _))| *done == verb)
                .map(|(path, (_, message))| TouchedFile {
                    path: path.clone(),
                    message: *message,
                })
                .collect();
            if files.is_empty() {
                continue;
            }
            files.sort_by(|a, b| (a.message, &a.path).cmp(&(b.message, &b.path)));
            let mut evidence: Vec<usize> = files.iter().map(|file| file.message).collect();
            evidence.dedup();
            facts.push(PlantedFact {
                id: format!("artifact-{name}"),
                fact: Fact::Artifact { verb, files },
                question: question.to_owned(),
                evidence,
                importance: Importance::Normal,
            });
        }
        facts
    }
}
