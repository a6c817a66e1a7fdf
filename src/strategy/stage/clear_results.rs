//! Old tool results become a placeholder: the cheapest compaction there is.

use std::sync::Arc;

use crate::context::{CacheEffect, Context, Edit, Entry, Patch};
use crate::session::ContentBlock;
use crate::settings::SettingError;
use crate::step::Step;
use crate::strategy::knob::{Default, Knob, KnobKind, KnobReader};
use crate::strategy::tools::Tools;
use crate::strategy::{Situation, Stage, StageError, StageKind};

/// `kind = "clear_results"`.
pub const KIND: StageKind = StageKind {
    name: "clear_results",
    description: "old tool results become a placeholder",
    knobs: KNOBS,
    breaks: &[],
    build,
};

const KNOBS: &[Knob] = &[
    Knob {
        name: "keep_last",
        kind: KnobKind::Whole(1, u64::MAX),
        default: Default::Whole(3),
        doc: "the newest results stay",
    },
    Knob {
        name: "every",
        kind: KnobKind::Whole(1, u64::MAX),
        default: Default::Whole(1),
        doc: "the boundary moves in steps of so many results: larger steps spare the prompt cache",
    },
    Knob {
        name: "min_chars",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(0),
        doc: "only results of more characters are cleared",
    },
    Knob {
        name: "keep_first_observation",
        kind: KnobKind::Flag,
        default: Default::Flag(false),
        doc: "the very first result stays too",
    },
    Knob {
        name: "tools",
        kind: KnobKind::Texts,
        default: Default::Empty,
        doc: "only results of these tools (names, or `class:read`) count and are cleared; none for all",
    },
    Knob {
        name: "except_tools",
        kind: KnobKind::Texts,
        default: Default::Empty,
        doc: "results of these tools (names, or `class:read`) neither count nor are cleared",
    },
    Knob {
        name: "placeholder",
        kind: KnobKind::Text,
        default: Default::Text("[Old tool result cleared]"),
        doc: "what stands there instead; `{tool}` is the tool's name, `{lines}` the lines cleared",
    },
    Knob {
        name: "mode",
        kind: KnobKind::Choice(&["rewrite", "cache_edit"]),
        default: Default::Text("rewrite"),
        doc: "`rewrite` changes the prompt; `cache_edit` has the provider remove the text and keep its cache",
    },
];

fn build(knobs: &mut KnobReader<'_>) -> Result<Box<dyn Stage>, SettingError> {
    Ok(Box::new(ClearResults {
        keep_last: knobs.count("keep_last")?,
        every: knobs.count("every")?,
        min_chars: knobs.whole("min_chars")?,
        keep_first: knobs.flag("keep_first_observation")?,
        tools: Tools {
            only: knobs.texts("tools")?,
            except: knobs.texts("except_tools")?,
        },
        placeholder: knobs.text("placeholder")?,
        cache: match knobs.choice("mode")? {
            "cache_edit" => CacheEffect::Keeps,
            _ => CacheEffect::Breaks,
        },
        progress: Progress::default(),
    }))
}

#[derive(Debug)]
struct ClearResults {
    keep_last: usize,
    every: usize,
    min_chars: u64,
    keep_first: bool,
    tools: Tools,
    placeholder: String,
    cache: CacheEffect,
    progress: Progress,
}

/// How far the stage came: results that it has looked at need no second look, until entries are
/// replaced and all positions change.
#[derive(Debug, Default)]
struct Progress {
    /// Results that count, as indices into the context's results.
    counted: Vec<usize>,
    /// Results of the context that were looked at.
    seen: usize,
    /// Counted results up to here were cleared or left for good.
    cleared: usize,
    /// [`Context::replacements`] at that time.
    replacements: u64,
}

impl Stage for ClearResults {
    fn plan<'a>(
        &'a mut self,
        context: &Context,
        _: &'a Situation,
    ) -> Step<'a, Result<Patch, StageError>> {
        let results = context.results();
        if self.progress.replacements != context.replacements() {
            self.progress = Progress {
                replacements: context.replacements(),
                ..Progress::default()
            };
        }
        let progress = &mut self.progress;
        for (index, at) in results.iter().enumerate().skip(progress.seen) {
            if self.tools.are_all() || self.tools.include(context.tool_use_of(*at)) {
                progress.counted.push(index);
            }
        }
        progress.seen = results.len();
        // SWE-agent's rule: the number of results is rounded down to a step, then the last stay.
        let stepped = progress.counted.len() / self.every * self.every;
        let boundary = stepped.saturating_sub(self.keep_last);
        let first = usize::from(self.keep_first);
        let mut edits = Vec::new();
        for counted in progress.cleared.max(first)..boundary {
            let at = results[progress.counted[counted]];
            let entry = &context.entries()[at.entry];
            let old = &entry.message.model_text()[at.block];
            if old.chars().count() as u64 <= self.min_chars
                || is_cleared(entry, at.block, &self.placeholder)
            {
                continue;
            }
            let tool = context.tool_use_of(at).map_or("unknown", |tool| &tool.name);
            let text: Arc<str> = self
                .placeholder
                .replace("{tool}", tool)
                .replace("{lines}", &old.lines().count().to_string())
                .into();
            edits.push(Edit::EditBlock {
                entry: at.entry,
                block: at.block,
                text,
                cache: self.cache,
            });
        }
        progress.cleared = progress.cleared.max(boundary);
        let reason = format!(
            "{} results older than the last {}",
            edits.len(),
            self.keep_last
        );
        Step::Done(Ok(Patch {
            edits,
            reason,
            saved: Vec::new(),
        }))
    }
}

/// Whether the block already holds this stage's placeholder.
fn is_cleared(entry: &Entry, block: usize, placeholder: &str) -> bool {
    let text = match &entry.message.content()[block] {
        ContentBlock::ToolResult(_) if !entry.is_verbatim(block) => {
            &entry.message.model_text()[block]
        }
        _ => return false,
    };
    let head = placeholder.split('{').next().unwrap_or("");
    let tail = placeholder.rsplit('}').next().unwrap_or("");
    text.starts_with(head) && text.ends_with(tail)
}
