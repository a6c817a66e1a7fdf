//! Long tool outputs are shortened as they come in: head and tail stay, a marker between them.

use std::sync::Arc;

use crate::context::{BlockAt, CacheEffect, Context, Edit, Entry, Patch};
use crate::session::{ContentBlock, Role, ToolResult, ToolUse};
use crate::step::Step;
use crate::strategy::knob::KnobKind::{Choice, Factor, Flag, Fraction, Texts, Whole};
use crate::strategy::{
    Built, Knob, KnobReader, Law, Planned, Situation, Stage, StageError, StageKind, Tools, truncate,
};
use crate::tokens::TokenCounter;
use crate::units::Tokens;

/// `kind = "truncate_output"`.
pub const KIND: StageKind = StageKind {
    name: "truncate_output",
    description: "long tool outputs are shortened as they come in: head, marker, tail",
    page: include_str!("../../../docs/stages/truncate_output.md"),
    knobs: KNOBS,
    // Results that just came in are what the user said last.
    breaks: &[Law::KeepsLastUserMessage],
    build,
};

const KNOBS: &[Knob] = &[
    Knob::new("max_tokens", Whole(0, 0)),
    Knob::new("max_chars", Whole(0, 0)),
    Knob::new("max_bytes", Whole(0, 0)),
    Knob::new("max_lines", Whole(0, 0)),
    Knob::new("head_fraction", Fraction(0.5)),
    Knob::new("serialization_factor", Factor(1.2)),
    Knob::new("cut_over", Choice(&["budget", "max"], "budget")),
    Knob::new("tools", Texts),
    Knob::new("except_tools", Texts),
    Knob::new("line_count_header", Flag(false)),
];

fn build(knobs: &mut KnobReader<'_>) -> Built {
    let mut limits = Vec::new();
    for (name, unit) in [
        ("max_tokens", Unit::Tokens),
        ("max_chars", Unit::Chars),
        ("max_bytes", Unit::Bytes),
        ("max_lines", Unit::Lines),
    ] {
        let max = knobs.count(name)?;
        if max > 0 {
            limits.push((max, unit));
        }
    }
    let (max, unit) = match limits[..] {
        [limit] => limit,
        [] => {
            let problem = "or one of `max_chars`, `max_bytes`, `max_lines` must be set";
            return Err(knobs.wrong("max_tokens", problem));
        }
        _ => return Err(knobs.wrong("max_tokens", "is one limit among several: set one")),
    };
    let factor = knobs.number("serialization_factor")?;
    let limit = match knobs.choice("cut_over")? {
        "max" => max,
        _ => times(max, factor),
    };
    Ok(Box::new(TruncateOutput {
        limit,
        unit,
        head_fraction: knobs.number("head_fraction")?,
        tools: Tools {
            only: knobs.texts("tools")?,
            except: knobs.texts("except_tools")?,
        },
        line_count_header: knobs.flag("line_count_header")?,
        asked: Vec::new(),
        is_answered: false,
    }))
}

/// The text with its middle cut out, within so many tokens but for the marker; nothing if it would
/// not get shorter.
pub(super) fn without_middle(
    text: &str,
    limit: Tokens,
    counter: &dyn TokenCounter,
) -> Option<Arc<str>> {
    let cut = TruncateOutput {
        limit: usize::try_from(limit.0).unwrap_or(usize::MAX),
        unit: Unit::Tokens,
        head_fraction: 0.5,
        tools: Tools::default(),
        line_count_header: false,
        asked: Vec::new(),
        is_answered: false,
    };
    let tokens = usize::try_from(counter.count(text).0).unwrap_or(usize::MAX);
    cut.shortened(text, tokens, counter)
}

#[derive(Debug)]
struct TruncateOutput {
    limit: usize,
    unit: Unit,
    head_fraction: f64,
    tools: Tools,
    line_count_header: bool,
    /// The tool uses of the last turn of the model: what comes in answers one of them.
    asked: Vec<ToolUse>,
    is_answered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Tokens,
    Chars,
    Bytes,
    Lines,
}

impl Stage for TruncateOutput {
    fn plan<'a>(&'a mut self, _: &Context, _: &'a Situation) -> Planned<'a> {
        Step::Done(Ok(Patch::default()))
    }

    fn on_append(&mut self, entry: &Entry, cx: &Situation) -> Result<Patch, StageError> {
        let message = &entry.message;
        if message.role() == Role::Assistant {
            if std::mem::take(&mut self.is_answered) {
                self.asked.clear();
            }
            if !self.tools.are_all() {
                self.asked
                    .extend(message.tool_uses().map(|(_, tool)| tool.clone()));
            }
            return Ok(Patch::default());
        }
        self.is_answered = true;
        let mut edits = Vec::new();
        for (block, content) in message.content().iter().enumerate() {
            let ContentBlock::ToolResult(result) = content else {
                continue;
            };
            if !self.tools.are_all() && !self.tools.include(self.tool_of(result)) {
                continue;
            }
            let text = &message.model_text()[block];
            let tokens = usize::try_from(cx.counts.size(text).tokens.0).unwrap_or(usize::MAX);
            if let Some(short) = self.shortened(text, tokens, &**cx.counts.counter()) {
                // The provider has not seen it yet.
                let at = BlockAt { entry: 0, block };
                edits.push(Edit::block(at, short, CacheEffect::Breaks));
            }
        }
        let reason = format!(
            "{} outputs over {} {}",
            edits.len(),
            self.limit,
            self.unit.name()
        );
        Ok(Patch::new(reason, edits))
    }
}

impl TruncateOutput {
    fn tool_of(&self, result: &ToolResult) -> Option<&ToolUse> {
        self.asked.iter().find(|tool| tool.id == result.tool_use_id)
    }

    /// Head, marker and tail; nothing if the text is within the limit, or would not get shorter.
    fn shortened(&self, text: &str, tokens: usize, counter: &dyn TokenCounter) -> Option<Arc<str>> {
        let total = match self.unit {
            Unit::Tokens => tokens,
            Unit::Chars => text.chars().count(),
            Unit::Bytes => text.len(),
            Unit::Lines => text.lines().count(),
        };
        if total <= self.limit {
            return None;
        }
        let head = times(self.limit, self.head_fraction).min(self.limit);
        let tail = self.limit - head;
        let (head, tail) = match self.unit {
            Unit::Tokens => {
                let within = |tokens: usize| Tokens(tokens as u64);
                (
                    truncate::head(text, within(head), counter).len(),
                    text.len() - truncate::tail(text, within(tail), counter).len(),
                )
            }
            Unit::Chars => (
                truncate::after_chars(text, head),
                truncate::after_chars(text, total - tail),
            ),
            Unit::Bytes => (
                text.floor_char_boundary(head),
                text.ceil_char_boundary(total - tail),
            ),
            Unit::Lines => (after_lines(text, head), after_lines(text, total - tail)),
        };
        // A character that lies in both limits is shown once.
        let tail = tail.max(head);
        let gone = &text[head..tail];
        let (count, unit) = match self.unit {
            Unit::Tokens => (counter.count(gone).0, "tokens"),
            Unit::Chars | Unit::Bytes => (gone.chars().count() as u64, "chars"),
            Unit::Lines => (gone.lines().count() as u64, "lines"),
        };
        let header = if self.line_count_header {
            format!("Total output lines: {}\n\n", text.lines().count())
        } else {
            String::new()
        };
        let short = format!(
            "{header}{}…{count} {unit} truncated…{}",
            &text[..head],
            &text[tail..]
        );
        (short.len() < text.len()).then(|| short.into())
    }
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Chars => "characters",
            Self::Bytes => "bytes",
            Self::Lines => "lines",
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "both factors are positive; a product past the largest number saturates"
)]
fn times(count: usize, factor: f64) -> usize {
    (count as f64 * factor).floor() as usize
}

/// Where the first `lines` lines end, in bytes, their line feed included.
fn after_lines(text: &str, lines: usize) -> usize {
    text.split_inclusive('\n').take(lines).map(str::len).sum()
}
