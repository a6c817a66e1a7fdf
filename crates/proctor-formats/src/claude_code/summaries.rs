//! The agents that write summaries: no conversations, but billed.

use super::records::{ApiMessage, Record};
use super::{ClaudeTranscript, RecordKind};
use crate::prelude::*;

/// How the agent is named whose only work is a compaction's summary.
const SUMMARISER: &str = "acompact-";

/// How the name of its file begins.
const FILE_OF_SUMMARISER: &str = "agent-acompact-";

impl ClaudeTranscript {
    /// Reads the agents in files of their own, of the session in the file at `path`.
    pub(super) fn read_summarisers(&mut self, path: &Path) {
        let beside = Folder::open(&path.with_file_name(compressed::stem(path)));
        let Some(folder) = beside.ok().and_then(|beside| beside.folder("subagents")) else {
            return;
        };
        let names = folder.names().iter().filter(|name| name.starts_with(FILE_OF_SUMMARISER));
        for file in names.filter_map(|name| SourceFile::open(&folder.child(name), MAX_FILE).ok()) {
            let (text, mut unread) = (file.text(), Source::default());
            for raw in text.raw_lines(&mut unread).unwrap_or_default() {
                if let Some(record) = lenient::record(raw, &mut unread) {
                    self.sums_up(&record);
                }
            }
        }
    }

    /// Whether the record is of an agent that writes a summary, whose bill is kept.
    pub(super) fn sums_up(&mut self, record: &Record<'_>) -> bool {
        let agent = record.agent_id.as_deref();
        let sums_up = agent.is_some_and(|agent| agent.starts_with(SUMMARISER));
        let message: Option<ApiMessage<'_>> =
            record.message.filter(|_| sums_up).and_then(|raw| serde_json::from_str(raw.get()).ok());
        if let Some(message) = message
            && let Some(usage) = message.usage.filter(Value::is_object)
            // It begins with the conversation that it sums up.
            && message.id.is_none_or(|id| !self.calls.contains_key(&id))
        {
            let usage = usage_in(&usage, CachedTokens::Apart, &mut self.source);
            self.summaries.insert(record.timestamp.and_then(time), usage);
        }
        sums_up
    }

    /// Gives compactions the bills of their summaries: each was written behind the answer before it.
    pub(super) fn bill_summaries(&mut self) {
        let (mut answered, mut boundary) = (None, None);
        for entry in self.entries.iter_mut().filter(|entry| entry.chain == 0) {
            match &mut entry.said {
                RecordKind::Boundary(metadata) => boundary = Some(metadata),
                RecordKind::Summary(_) | RecordKind::Assistant(_) => {
                    let last = self.summaries.range(..=entry.timestamp).next_back();
                    if let Some(metadata) = boundary.take() {
                        let own = last.filter(|(time, _)| **time > answered);
                        metadata.usage = own.map(|(_, usage)| *usage);
                    }
                    answered = entry.timestamp;
                }
                _ => {}
            }
        }
    }
}
