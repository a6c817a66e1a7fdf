//! The contents of a recording, in one line or as JSON.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::{Result, template};
use crate::session::import::{Recording, SharedPrefix};
use crate::session::redact::Class;
use crate::session::{Missing, Tag};
use crate::units::Tokens;

/// The result of an import, as JSON.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "Imported")]
pub(super) struct ImportReport {
    /// Always `proctor-import`.
    format: &'static str,
    /// 1: the first.
    version: u32,
    /// The recordings that were read, in the order of the paths.
    pub(super) recordings: Vec<Tally>,
    /// Files in folders that are not recordings, and copies of files that were read, each with the reason.
    pub(super) passed_over: Vec<String>,
    /// The errors, in words.
    pub(super) errors: Vec<String>,
}

impl Default for ImportReport {
    fn default() -> Self {
        Self {
            format: "proctor-import",
            version: 1,
            recordings: Vec::new(),
            passed_over: Vec::new(),
            errors: Vec::new(),
        }
    }
}

/// A session that was written.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "Written")]
pub(super) struct WrittenSession {
    /// Its id.
    session: String,
    /// The file it was written to.
    file: String,
    /// The file of facts about it, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) truth: Option<String>,
}

/// The counts of a recording's sessions.
#[derive(Debug, Default, JsonSchema, Serialize)]
pub(super) struct Tally {
    /// The recording.
    file: String,
    /// Its format.
    format: String,
    /// The sessions it holds.
    pub(super) sessions: Vec<WrittenSession>,
    /// Messages of all sessions.
    messages: usize,
    /// API calls.
    calls: usize,
    /// Calls without a bill, of sessions that have one of other calls: an answer that was cut, for one.
    unbilled_calls: usize,
    /// Uses of tools.
    tool_uses: usize,
    /// Answers of tools.
    results: usize,
    /// Answers without a tool use, kept as messages of the user.
    orphans: usize,
    /// Compactions that the recorded product made itself.
    compactions: usize,
    /// Tokens of system prompt, tools and messages, by the counter that was asked for.
    tokens: Tokens,
    /// Things that the importer does not know, with counts.
    unknown: BTreeMap<String, u64>,
    /// Things that it repaired, with counts.
    warnings: BTreeMap<String, u64>,
    /// Things that it knows and leaves out, with counts.
    skipped: BTreeMap<String, u64>,
    /// Things that the written format cannot hold, with counts.
    not_carried: BTreeMap<String, u64>,
    /// Facts that the recording names itself.
    facts: usize,
    /// Questions of the recording that cannot be asked.
    questions_left_out: usize,
    /// The missing data of the first session that lacks any.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_recorded: Option<Missing>,
    /// The parts that earlier sessions hold as well.
    repeated: Vec<String>,
    /// Places that were replaced, by class; `None` where nothing was to be replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    redacted: Option<BTreeMap<&'static str, u64>>,
}

impl Tally {
    /// Nothing of the file at `path` yet.
    pub(super) fn of(path: &Path) -> Self {
        let file = path.display().to_string();
        Self { file, ..Self::default() }
    }

    /// Lists the replaced places by class, never the replaced text.
    pub(super) fn redacted(&mut self, counts: &BTreeMap<Class, u64>) {
        let places = counts.iter().map(|(class, count)| (class.name(), *count));
        self.redacted = Some(places.collect());
    }

    /// Adds a session that was written to `target`.
    pub(super) fn add(
        &mut self,
        recording: &Recording,
        target: &Path,
        tokens: Tokens,
        left_out: &BTreeMap<&'static str, u64>,
        repeated: Option<&SharedPrefix>,
    ) {
        let session = &recording.session;
        let source = session.source();
        if self.sessions.is_empty() {
            self.format.clone_from(&source.format);
        }
        self.sessions.push(WrittenSession {
            session: session.id().to_owned(),
            file: target.display().to_string(),
            truth: None,
        });
        for message in session.messages() {
            self.tool_uses += message.tool_uses().count();
            self.results += message.tool_results().count();
            self.orphans += usize::from(message.has_tag(Tag::Orphan));
        }
        self.messages += session.messages().len();
        self.calls += session.calls().len();
        match session.calls().iter().filter_map(|at| session.message(*at).details.usage).count() {
            0 => {}
            billed => self.unbilled_calls += session.calls().len() - billed,
        }
        self.compactions += session.compactions().len();
        self.tokens += tokens;
        for (all, some) in [
            (&mut self.skipped, &source.skipped),
            (&mut self.unknown, &source.unknown),
            (&mut self.warnings, &source.warnings),
        ] {
            for (what, count) in some {
                *all.entry(what.clone()).or_default() += count;
            }
        }
        for (what, count) in left_out {
            *self.not_carried.entry((*what).to_owned()).or_default() += count;
        }
        self.not_recorded = self.not_recorded.or(source.missing);
        self.repeated.extend(repeated.map(SharedPrefix::to_string));
        let truth = recording.truth.as_ref();
        self.facts += truth.map_or(0, |truth| truth.facts.len());
        self.questions_left_out += recording.left_out;
    }

    /// One line for the file.
    pub(super) fn line(&self) -> Result<String> {
        template::fill(include_str!("../../text/import.txt"), self)
    }
}
