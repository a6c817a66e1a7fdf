//! Cursor keeps transcripts of its agent (`~/.cursor/projects/*/agent-transcripts/`): one record per
//! line (`*.jsonl`), and as text before that (`*.txt`): see `text`.
//!
//! Rules of this format, beside those every importer shares:
//! - A record of the model's is one call. Calls have no names: they are numbered.
//! - The results of tools are not recorded: each is read as an empty one, and counted. Neither are
//!   times, models, bills and system prompts. Where a thought was, `[REDACTED]` may be written.
//!
//! The product publishes no schema; real transcripts in public repositories, November 2026.

use super::prelude::*;

mod text;

/// What the product writes in place of a thought.
const REDACTED: &str = "[REDACTED]";

/// How words begin that the product sends in the user's place.
const INJECTED: &str = "<system_reminder> <system-reminder> <system_notification>";

pub(super) const IMPORTER: Importer = Importer::new("cursor", Detect::By(detect), import);

fn detect(head: &Head) -> bool {
    head.any(5, "role=user,assistant message/content !type") || text::detect(head)
}

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let mut reading = CursorReading::default();
    if text::detect(&file.head()) {
        text::read(file.plain(source), &mut reading);
    } else {
        for raw in file.raw_lines(source)? {
            reading.record(raw);
        }
    }
    reading.assembler.session(file.id.clone(), &file.path)
}

#[derive(Default)]
struct CursorReading {
    assembler: Assembler,
    /// Tool uses that have no result yet.
    open: Vec<Arc<str>>,
    /// The calls that got a number.
    calls: usize,
}

impl CursorReading {
    fn record(&mut self, raw: &RawValue) {
        let mut record = Object::read(raw).unwrap_or_default();
        let role = record.take_text("role");
        let kind = record.take_text("type");
        let content = record.inner("message").take("content");
        match (role.as_deref(), kind.as_deref(), content) {
            (Some("assistant"), _, content @ Some(_)) => {
                let (calls, source) = (&mut self.calls, &mut self.assembler.source);
                let said =
                    content::blocks_by(content, Speaker::Assistant, source, |raw, source| {
                        part(raw, calls, source)
                    });
                self.says(said);
            }
            (Some(_), _, content @ Some(_)) => {
                let blocks = self.assembler.blocks(content, Speaker::User);
                self.hears(blocks);
            }
            (_, Some(kind @ "turn_ended"), _) => self.assembler.skip(kind),
            (role, kind, _) => {
                let name = kind.or(role).unwrap_or("without type");
                self.assembler.hear_unknown("record", name, raw, None);
            }
        }
    }

    /// Adds a call.
    fn says(&mut self, mut blocks: Blocks) {
        self.answers();
        for block in &mut blocks {
            if let ContentBlock::Text(text) = block
                && let Some(said) = text.trim_end().strip_suffix(REDACTED)
            {
                *text = said.trim_end().into();
                self.assembler.warn("a thought was left out by the product");
            }
        }
        blocks.retain(|block| block.as_text().is_none_or(|text| !text.is_empty()));
        let uses = blocks.iter().filter_map(ContentBlock::as_use);
        self.open = uses.map(|tool_use| tool_use.id.clone()).collect();
        self.assembler.assistant(None, ModelRecord::of(blocks, None));
    }

    /// Adds what the user said, or results.
    fn hears(&mut self, blocks: Blocks) {
        let results = blocks.iter().filter_map(ContentBlock::as_result);
        let answered: BTreeSet<&Arc<str>> = results.map(|result| &result.tool_use_id).collect();
        self.open.retain(|id| !answered.contains(id));
        let tag = speaker(&blocks, |text: &str| {
            INJECTED.split(' ').any(|value| text.trim_start().starts_with(value))
        });
        if tag.is_some() {
            self.answers();
        }
        self.assembler.hear(None, blocks, None, tag);
    }

    /// Answers the tool uses whose results are not recorded, for there is more behind them.
    fn answers(&mut self) {
        let open = std::mem::take(&mut self.open).into_iter();
        let results: Blocks =
            open.map(|id| ContentBlock::tool_result(id, Vec::new(), false)).collect();
        let what = "the result of a tool use is not recorded; it is read as empty";
        self.assembler.warn_all(&results, what);
        self.assembler.hear_results(results, None);
    }
}

/// A part of what the model said. A call gets the next number for its name.
fn part(raw: &RawValue, calls: &mut usize, source: &mut Source) -> ContentBlock {
    let mut part = Object::read(raw).unwrap_or_default();
    let unnamed = part.text("type").as_deref() == Some("tool_use") && !part.has("id");
    match part.take_text("name").filter(|_| unnamed) {
        Some(name) => {
            ContentBlock::tool_use(numbered("call", calls), name, input(part.take("input")))
        }
        None => content::part(raw, Speaker::Assistant, source),
    }
}
