//! Long tool outputs are shortened as they come in: head and tail stay, a marker between them.

use super::prelude::*;
use crate::script::first_chars;
use crate::tokens::TokenCounter;
use crate::units::index;

#[derive(Debug, Deserialize)]
struct TruncateOutput {
    max_tokens: usize,
    max_chars: usize,
    max_bytes: usize,
    max_lines: usize,
    head_fraction: f64,
    serialization_factor: f64,
    cut_over: CutOver,
    tools: ToolList,
    except_tools: ToolList,
    /// The tool uses of the last turn of the model: what comes in answers one of them.
    #[serde(skip)]
    asked: Vec<ToolUse>,
    #[serde(skip)]
    is_answered: bool,
}

/// The limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CutOver {
    /// The number, times the factor.
    Budget,
    /// The number itself.
    Max,
}

pub(super) fn build(knobs: &Knobs<'_>) -> StageResult {
    let stage: TruncateOutput = knobs.read()?;
    let problem = match stage.limits().count() {
        1 => return Ok(Box::new(stage)),
        0 => "or one of `max_chars`, `max_bytes`, `max_lines` must be set",
        _ => "is one limit among several: set one",
    };
    Err(knobs.wrong("max_tokens", problem))
}

impl TruncateOutput {
    /// The limits that are set.
    fn limits(&self) -> impl Iterator<Item = (usize, LimitUnit)> {
        let limits = [
            (self.max_tokens, LimitUnit::Tokens),
            (self.max_chars, LimitUnit::Chars),
            (self.max_bytes, LimitUnit::Bytes),
            (self.max_lines, LimitUnit::Lines),
        ];
        limits.into_iter().filter(|(max, _)| *max > 0)
    }

    fn shortening(&self) -> Shortening {
        let (max, unit) = self.limits().next().unwrap_or((usize::MAX, LimitUnit::Tokens));
        let limit = match self.cut_over {
            CutOver::Budget => index(max as f64 * self.serialization_factor),
            CutOver::Max => max,
        };
        Shortening { limit, unit, head_fraction: self.head_fraction }
    }
}

/// The text with its middle cut out, within a number of tokens without the marker; nothing if it would
/// not get shorter.
pub(super) fn without_middle(
    text: &str,
    limit: Tokens,
    counter: &dyn TokenCounter,
) -> Option<Arc<str>> {
    let shortening = Shortening {
        limit: usize::try_from(limit.0).unwrap_or(usize::MAX),
        unit: LimitUnit::Tokens,
        head_fraction: 0.5,
    };
    shortening.of(text, counter.count(text), counter)
}

/// How a text is shortened.
#[derive(Debug, Clone, Copy)]
struct Shortening {
    limit: usize,
    unit: LimitUnit,
    head_fraction: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitUnit {
    Tokens,
    Chars,
    Bytes,
    Lines,
}

impl Stage for TruncateOutput {
    fn plan<'a>(&'a mut self, _: &Context, _: &'a Situation) -> PlannedPatch<'a> {
        Step::Done(Ok(Patch::default()))
    }

    fn take_note_of(&mut self, entry: &Entry) {
        let message = &entry.message;
        let answers = message.role() == Role::User;
        if std::mem::replace(&mut self.is_answered, answers) && !answers {
            self.asked.clear();
        }
        let uses = message.tool_uses().map(|(_, tool)| tool.clone());
        self.asked.extend(uses);
    }

    fn on_append(&mut self, entry: &Entry, cx: &Situation) -> Result<Patch, StageError> {
        let message = &entry.message;
        let shortening = self.shortening();
        let mut cut = Vec::new();
        for (block, result) in message.tool_results() {
            let tool = self.asked.iter().find(|tool| tool.id == result.tool_use_id);
            if !self.tools.allow(tool) || self.except_tools.name(tool) {
                continue;
            }
            let text = &message.model_text()[block];
            let tokens = cx.counts.size(text).tokens;
            if let Some(short) = shortening.of(text, tokens, &**cx.counts.counter()) {
                cut.push((BlockAt { entry: 0, block }, short));
            }
        }
        let Shortening { limit, unit, .. } = shortening;
        let reason = format!("{} outputs over {limit} {}", cut.len(), unit.name());
        // The provider has not seen it yet.
        let (entries, cache) = (std::slice::from_ref(entry), CacheEffect::Breaks);
        let edits = Edit::blocks(entries, cut, cache, &cx.counts);
        Ok(Patch::new(reason, edits))
    }
}

impl Shortening {
    /// Head, marker and tail; nothing if the text is within the limit, or would not get shorter.
    fn of(self, text: &str, tokens: Tokens, counter: &dyn TokenCounter) -> Option<Arc<str>> {
        let total = match self.unit {
            LimitUnit::Tokens => usize::try_from(tokens.0).unwrap_or(usize::MAX),
            LimitUnit::Chars => text.chars().count(),
            LimitUnit::Bytes => text.len(),
            LimitUnit::Lines => text.lines().count(),
        };
        if total <= self.limit {
            return None;
        }
        let head = index(self.limit as f64 * self.head_fraction).min(self.limit);
        let tail = self.limit - head;
        let behind = total - tail;
        let (head, end) = match self.unit {
            LimitUnit::Tokens => (
                truncate::head(text, Tokens(head as u64), counter).len(),
                text.len() - truncate::tail(text, Tokens(tail as u64), counter).len(),
            ),
            LimitUnit::Chars => (first_chars(text, head).len(), first_chars(text, behind).len()),
            LimitUnit::Bytes => (text.floor_char_boundary(head), text.ceil_char_boundary(behind)),
            LimitUnit::Lines => (after_lines(text, head), after_lines(text, behind)),
        };
        // A character that lies in both limits is shown once.
        let tail = end.max(head);
        let gone = &text[head..tail];
        let (count, unit) = match self.unit {
            LimitUnit::Tokens => (counter.count(gone).0, "tokens"),
            LimitUnit::Chars | LimitUnit::Bytes => (gone.chars().count() as u64, "chars"),
            LimitUnit::Lines => (gone.lines().count() as u64, "lines"),
        };
        let short = format!("{}…{count} {unit} truncated…{}", &text[..head], &text[tail..]);
        (short.len() < text.len()).then(|| short.into())
    }
}

impl LimitUnit {
    fn name(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Chars => "characters",
            Self::Bytes => "bytes",
            Self::Lines => "lines",
        }
    }
}

/// Where the first `lines` lines end, in bytes, their line feed included.
fn after_lines(text: &str, lines: usize) -> usize {
    text.split_inclusive('\n').take(lines).map(str::len).sum()
}
