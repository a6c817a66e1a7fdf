//! What a recording held, in one line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::session::import::{Recording, Repeated};
use crate::session::{Missing, Tag};
use crate::units::Tokens;

/// Counts what the sessions of a recording hold.
#[derive(Debug, Default)]
pub(super) struct Tally {
    format: String,
    sessions: usize,
    messages: usize,
    calls: usize,
    uses: usize,
    results: usize,
    orphans: usize,
    compactions: usize,
    tokens: Tokens,
    unknown: BTreeMap<String, u64>,
    warnings: BTreeMap<String, u64>,
    skipped: BTreeMap<String, u64>,
    /// What the format that is written cannot carry.
    left_out: BTreeMap<String, u64>,
    facts: usize,
    /// Questions of the recording that cannot be asked.
    not_asked: usize,
    /// What the first session that misses anything does not say.
    missing: Option<Missing>,
    /// What earlier sessions hold of these.
    repeated: Vec<Repeated>,
}

impl Tally {
    /// Adds a session that was written.
    pub(super) fn add(
        &mut self,
        recording: &Recording,
        tokens: Tokens,
        left_out: &BTreeMap<&'static str, u64>,
        repeated: Option<Repeated>,
    ) {
        let session = &recording.session;
        let source = session.source();
        if self.sessions == 0 {
            self.format.clone_from(&source.format);
        }
        self.sessions += 1;
        for message in session.messages() {
            self.uses += message.tool_uses().count();
            self.results += message.tool_results().count();
            self.orphans += usize::from(message.has_tag(Tag::Orphan));
        }
        self.messages += session.messages().len();
        self.calls += session.calls().len();
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
            *self.left_out.entry((*what).to_owned()).or_default() += count;
        }
        self.missing = self.missing.or(source.missing);
        self.repeated.extend(repeated);
        let truth = recording.truth.as_ref();
        self.facts += truth.map_or(0, |truth| truth.facts.len());
        self.not_asked += recording.left_out;
    }

    /// What the file at `path` held.
    pub(super) fn line(&self, path: &Path) -> String {
        let mut line = format!(
            "{}: {}, {} sessions, {} messages, {} calls, {} tool uses, {} results, {} orphans, \
             {} tokens, {} compactions",
            path.display(),
            self.format,
            self.sessions,
            self.messages,
            self.calls,
            self.uses,
            self.results,
            self.orphans,
            self.tokens,
            self.compactions,
        );
        if let Some(missing) = self.missing {
            let what = match (missing.system_prompt, missing.tools) {
                (true, true) => "system prompt and tools",
                (true, false) => "system prompt",
                (false, _) => "tools",
            };
            let _ = write!(line, "; not recorded: {what}");
            if let Some(tokens) = missing.tokens {
                let _ = write!(line, ", about {tokens} tokens");
            }
        }
        for (name, counts) in [
            ("unknown", &self.unknown),
            ("warnings", &self.warnings),
            ("skipped", &self.skipped),
            ("not carried", &self.left_out),
        ] {
            let shown: Vec<String> = counts
                .iter()
                .map(|(what, count)| format!("{what} × {count}"))
                .collect();
            if !shown.is_empty() {
                let _ = write!(line, "; {name}: {}", shown.join(", "));
            }
        }
        if !self.repeated.is_empty() {
            let told: Vec<String> = self.repeated.iter().map(Repeated::to_string).collect();
            let _ = write!(line, "; repeated: {}", told.join(", "));
        }
        if self.facts + self.not_asked > 0 {
            let (facts, not_asked) = (self.facts, self.not_asked);
            let _ = write!(line, "; facts: {facts}, questions left out: {not_asked}");
        }
        line
    }
}
