//! Writes one session, message by message: what the work of all families has in common.

use std::sync::Arc;

use serde_json::json;

use super::facts::{self, Facts, Ways};
use super::family::{Family, Work};
use super::grammar::WORDS;
use super::resumed::resumption;
use super::tools;
use super::transcript::Transcript;
use super::workspace::{Action, Round, Workspace};
use super::{Generated, Recipe};
use proctor_sessions::ground_truth::{ArtifactVerb, Fact, FileLog, GroundTruth, PlantedFact};
use proctor_sessions::tokens::CountedTexts;
use proctor_sessions::{ContentBlock, SessionError};

mod phases;
mod small_talk;
mod tasks;

use phases::PhaseState;

/// Writes one session.
pub(super) struct Writer<'a> {
    family: &'static Family,
    recipe: &'a Recipe,
    out: Transcript<'a>,
    workspace: Box<dyn Workspace>,
    /// Which files the agent touched.
    files: FileLog,
    facts: Facts,
    /// The number of calls from which on the agent has its conversation summarised.
    compact_at: u64,
    phases: PhaseState,
}

/// Makes one session of a family.
pub(super) fn generate(
    family: &'static Family,
    recipe: &Recipe,
    counts: &CountedTexts,
) -> Result<Generated, SessionError> {
    let mut writer = Writer::new(family, recipe, counts);
    let mut is_resumed = false;
    match &family.work {
        Work::Tasks(tasks) => {
            writer.write_tasks(tasks);
            is_resumed = tasks.resumed;
        }
        Work::Phases(phases) => writer.write_phases(phases),
    }
    let mut made = writer.finish()?;
    if is_resumed && let Some(resumed) = resumption(&made.session) {
        made.session = made.session.resume(resumed)?;
    }
    Ok(made)
}

impl<'a> Writer<'a> {
    fn new(family: &'static Family, recipe: &'a Recipe, counts: &'a CountedTexts) -> Self {
        let rounds = recipe.rounds(family.tokens_per_round);
        let (system, is_in_phases) = match &family.work {
            Work::Tasks(_) => (WORDS.one("system"), false),
            Work::Phases(_) => (family.phrases.one("phases.system"), true),
        };
        let tools = tools::schemas(family.workspace, is_in_phases);
        let mut out = Transcript::new(family, recipe, counts, recipe.language.say(system), tools);
        let (every, files) = (out.pace.compact_every, 40 + rounds * out.pace.files_percent / 100);
        let mut phases = PhaseState::default();
        let compact_at;
        let workspace;
        if is_in_phases {
            out.set_out();
            workspace = family.workspace.open(recipe, files, &out.random);
            compact_at = out.random.between(every.0, every.1);
            phases = PhaseState::new(rounds, &out.random);
        } else {
            compact_at = out.random.between(every.0, every.1);
            workspace = family.workspace.open(recipe, files, &out.random);
            out.set_out();
        }
        let facts = Facts::plan(family, recipe, rounds, &out.random);
        Self {
            family,
            recipe,
            out,
            workspace,
            files: FileLog::default(),
            facts,
            compact_at,
            phases,
        }
    }

    fn finish(self) -> Result<Generated, SessionError> {
        let mut facts = self.facts.gathered();
        facts.extend(artifacts(&self.files, Ways::of(self.recipe)));
        facts.sort_by(|a, b| a.id.cmp(&b.id));
        let session = self.out.finish()?;
        let truth = GroundTruth::new(session.id(), facts);
        Ok(Generated { session, truth })
    }

    /// The agent answers in words only, and says what it makes of what failed.
    fn report(&mut self, report: String) {
        let message = self.out.next();
        let mut paragraphs = vec![report];
        paragraphs.extend(self.facts.conclusions(message));
        let text = paragraphs.join("\n\n");
        self.out.respond(vec![ContentBlock::Text(text.into())]);
    }

    /// The agent thinks, speaks and uses tools, and the tools answer; the ids of the tool uses.
    fn act(&mut self, round: Round) -> Vec<Arc<str>> {
        let mut blocks = Vec::new();
        if let Some(thought) = round.thought {
            let signature = self.out.random.hex(64).into();
            blocks.push(ContentBlock::thinking(thought, Some(signature)));
        }
        blocks.push(ContentBlock::Text(round.paragraphs.join("\n\n").into()));
        let asking = self.out.next();
        for Action { tool, input, .. } in &round.actions {
            if let Some(command) = input["command"].as_str() {
                self.files.record_command(command, asking);
            }
            let verb = match *tool {
                "Read" => ArtifactVerb::Read,
                "Edit" => ArtifactVerb::Modified,
                "Write" => ArtifactVerb::Created,
                _ => continue,
            };
            if let Some(path) = input["file_path"].as_str() {
                self.files.record(verb, path, asking);
            }
        }
        self.out.act(blocks, round.actions)
    }

    /// The agent speaks and uses one tool.
    fn say_and_act(&mut self, said: String, action: Action) -> Vec<Arc<str>> {
        self.act(Round { thought: None, paragraphs: vec![said], actions: vec![action] })
    }

    /// Whether the agent has its conversation summarised now; the next time comes later.
    fn is_compaction_due(&mut self) -> bool {
        let due = self.out.calls >= self.compact_at;
        if due {
            let (least, most) = self.out.pace.compact_every;
            self.compact_at = self.out.calls + self.out.random.between(least, most);
        }
        due
    }

    /// The agent has the conversation summarised. The full history goes on; a strategy may act on it.
    fn compact(&mut self, said: String, focus: &str) {
        let answer = "The conversation will be condensed before the next step.";
        let action = Action::new("compact", json!({ "focus": focus }), answer.to_owned());
        self.say_and_act(said, action);
    }
}

/// One fact per verb that occurred.
fn artifacts(files: &FileLog, ways: Ways) -> Vec<PlantedFact> {
    let verbs = [
        (ArtifactVerb::Read, "artifact-read"),
        (ArtifactVerb::Created, "artifact-created"),
        (ArtifactVerb::Modified, "artifact-modified"),
    ];
    let facts = verbs.into_iter().map(|(verb, id)| {
        let (files, optional) = (files.files(verb), files.optional(verb));
        let mut evidence: Vec<usize> = files.iter().map(|file| file.message).collect();
        evidence.dedup();
        let fact = Fact::Artifact { verb, files, optional };
        PlantedFact {
            id: id.to_owned(),
            evidence,
            ..facts::unsaid("artifact", 1, ways.ask(id, &[]), fact)
        }
    });
    facts.filter(|fact| !fact.evidence.is_empty()).collect()
}
