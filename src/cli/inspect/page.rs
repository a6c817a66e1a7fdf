//! One call of a session as `proctor inspect` shows it, as text and as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::usage::{self, Category};
use crate::cli::prose::show_cut;
use crate::cli::{Exit, Result, listed, show_text};
use crate::context::{Entry, Origin};
use crate::replay::observe::snapshot::{MessageFate, Representation, Snapshot};
use crate::report::escape;
use crate::session::{ContentBlock, Session};
use crate::tokens::CountedTexts;
use crate::units::Tokens;
use crate::window::{Lines, WarningFrom, Window};

/// One call under one strategy.
pub(super) struct CallPage<'a> {
    pub(super) session: &'a Session,
    pub(super) strategy: &'a str,
    pub(super) window: Window,
    pub(super) snapshot: Snapshot,
    pub(super) counts: &'a CountedTexts,
    pub(super) usage: BTreeMap<Category, Tokens>,
    /// Characters of a text that are shown, 0 for all.
    pub(super) chars: usize,
}

/// Columns of a category's name.
const NAME: usize = 26;

/// The lines of a screen.
const SCREEN: usize = 40;

/// Entries that are printed at once.
const AT_ONCE: usize = 1_000;

/// The facts of a page as JSON prints them.
#[derive(Serialize)]
struct PageFacts<E, F> {
    #[serde(flatten)]
    head: Value,
    entries: E,
    fates: F,
}

/// A list whose items are made one by one, as they are printed: a session may have a million messages.
struct Each<F>(F);

impl<I: Iterator<Item = Value>, F: Fn() -> I> Serialize for Each<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0())
    }
}

impl CallPage<'_> {
    fn lines(&self) -> Lines {
        self.window.lines(WarningFrom::AutoCompact)
    }

    /// Percent of the window.
    fn percent(&self, tokens: Tokens) -> f64 {
        tokens.share_of(self.window.tokens).unwrap_or(0.0) * 100.0
    }

    /// The part of a bar as wide as the window, in halves of a column; a prompt beyond the window ends
    /// at the margin.
    fn halves(&self, tokens: Tokens, width: usize) -> usize {
        let window = u128::from(self.window.tokens.0.max(1));
        let tokens = u128::from(tokens.0).min(window);
        usize::try_from(2 * width as u128 * tokens / window).unwrap_or(2 * width)
    }

    /// Prints the facts as text, for a terminal of this many columns.
    pub(super) fn print(&self, width: usize) -> Result<Exit> {
        let chars = match self.chars {
            0 => usize::MAX >> 1,
            chars => chars,
        };
        let mut facts = self.text_facts(width);
        facts["chars"] = json!(chars);
        show_text(facts, &with_macros(include_str!("../text/inspect.txt")))?;
        for (number, part) in self.snapshot.entries.chunks(AT_ONCE).enumerate() {
            let facts = json!({
                "chars": chars,
                "first": number * AT_ONCE,
                "entries": self.entries(part, 0).collect::<Value>(),
            });
            show_text(facts, &with_macros(include_str!("../text/inspect_entries.txt")))?;
        }
        let facts = json!({
            "before": self.snapshot.before,
            "fates": self.spans(),
        });
        show_text(facts, include_str!("../text/inspect_fates.txt"))
    }

    /// Prints one screen: the largest categories, the newest and the changed entries, and the newest fates.
    pub(super) fn print_screen(&self, width: usize) -> Result<Exit> {
        let mut facts = self.text_facts(width);
        let (compactions, fates) = (self.snapshot.patches.len().min(2), self.spans());
        let around = 12 + self.usage.len().min(10) + 3 * compactions + fates.len().min(5);
        let places = self.most_relevant(SCREEN - around);
        let shown = self.entries(places.iter().map(|at| &self.snapshot.entries[*at]), width);
        facts["entries"] = json!(places.iter().zip(shown).collect::<Vec<_>>());
        facts["count"] = json!(self.snapshot.entries.len());
        facts["before"] = json!(self.snapshot.before);
        facts["fates"] = json!(fates);
        show_cut(facts, &with_macros(include_str!("../text/inspect_screen.txt")))
    }

    /// The places of so many entries: summaries and what else a strategy changed, up to half, and the newest others.
    fn most_relevant(&self, most: usize) -> BTreeSet<usize> {
        let entries = &self.snapshot.entries;
        let newest = || (0..entries.len()).rev();
        let summaries = newest().filter(|at| matches!(entries[*at].origin, Origin::Derived(_)));
        let changed = newest().filter(|at| !matches!(entries[*at].origin, Origin::Verbatim(_)));
        let mut places: BTreeSet<usize> = summaries.chain(changed).take(most / 2).collect();
        for at in newest() {
            if places.len() < most {
                places.insert(at);
            }
        }
        places
    }

    /// Consecutive messages with the same fate, and the fate.
    fn spans(&self) -> Vec<(String, String)> {
        let same = self.snapshot.fates.chunk_by(|one, next| one == next);
        let spans = same.scan(0, |from, same| {
            let first = std::mem::replace(from, *from + same.len());
            Some((range(first, *from - 1), in_words(&same[0])))
        });
        spans.collect()
    }

    /// The facts that the text says before the messages.
    fn text_facts(&self, width: usize) -> Value {
        // Name, tokens and share take up 46 columns; the bar gets the rest, within reason.
        let bar = width.saturating_sub(NAME + 20).clamp(10, 50);
        let (prompt, lines) = (self.snapshot.prompt, self.lines());
        let used = self.usage.iter().map(|(category, tokens)| (category.name(), *tokens, "█"));
        let free = ("free".to_owned(), self.window.tokens - prompt, "·");
        let usage = used.chain([free]).map(|(name, tokens, sign)| {
            let filled = sign.repeat(self.halves(tokens, bar).div_ceil(2));
            (name, tokens, self.percent(tokens), filled)
        });
        let tools = self.session.tools().iter();
        json!({
            "facts": self.head(0),
            "last": self.session.calls().len().saturating_sub(1),
            "percent": self.percent(prompt),
            "usage": usage.collect::<Vec<_>>(),
            "zone_bar": self.zone_bar(&lines, bar),
            "system": self.session.system().map(|text| (self.tokens(text), text)),
            "tools": tools.map(|tool| (&tool.name, self.tokens(tool.text()))).collect::<Vec<_>>(),
        })
    }

    fn tokens(&self, text: &Arc<str>) -> Tokens {
        self.counts.size(text).tokens
    }

    /// The window as a bar, filled as far as the prompt goes, with the lines in it: warning and
    /// error, automatic compaction, blocking.
    fn zone_bar(&self, lines: &Lines, width: usize) -> String {
        let filled = self.halves(self.snapshot.prompt, width) / 2;
        let mut bar: Vec<char> = (0..width).map(|at| if at < filled { '█' } else { '·' }).collect();
        for (line, sign) in [(lines.warning, 'w'), (lines.auto_compact, 'a'), (lines.blocking, 'b')]
        {
            if let Some(at) = bar.get_mut(self.halves(line, width) / 2) {
                *at = sign;
            }
        }
        bar.into_iter().collect()
    }

    /// The facts for programs.
    pub(super) fn facts(&self) -> impl Serialize {
        PageFacts {
            head: self.head(self.chars),
            entries: Each(|| self.entries(&self.snapshot.entries, self.chars)),
            fates: Each(|| self.fates()),
        }
    }

    fn fates(&self) -> impl Iterator<Item = Value> {
        self.snapshot.fates.iter().enumerate().map(|(message, fate)| {
            let decided = fate.decided.as_ref();
            let blocks = match &fate.fate {
                Representation::Edited(blocks) => Some(blocks),
                _ => None,
            };
            json!({
                "message": message,
                "fate": fate.fate.name(),
                "blocks": blocks,
                "call": decided.map(|decided| decided.call),
                "stage": decided.map(|decided| &*decided.stage),
                "reason": decided.map(|decided| &decided.reason),
            })
        })
    }

    /// The facts without the messages.
    pub(super) fn head(&self, chars: usize) -> Value {
        let usage = self.usage.iter();
        let usage = usage
            .map(|(category, tokens)| json!({ "category": category.name(), "tokens": tokens.0 }));
        let patches = self.snapshot.patches.iter().map(|patch| {
            json!({
                "stage": &*patch.stage,
                "reason": patch.reason,
                "before": patch.change.before.tokens.0,
                "after": patch.change.after.tokens.0,
                "removed": self.entries(&patch.change.removed, chars).collect::<Value>(),
                "added": self.entries(patch.written(), chars).collect::<Value>(),
            })
        });
        let (lines, prompt) = (self.lines(), self.snapshot.prompt);
        json!({
            "session": self.session.id(),
            "strategy": self.strategy,
            "call": self.snapshot.call,
            "calls": self.session.calls().len(),
            "window": self.window.tokens.0,
            "prompt_tokens": prompt.0,
            "fixed_tokens": self.snapshot.scale.prompt(self.snapshot.fixed).0,
            "zone": lines.zone(prompt).name(),
            "percent_left": lines.percent_left(prompt),
            "flags": lines.flags(prompt),
            "lines": lines,
            "usage": usage.collect::<Vec<_>>(),
            "compactions": patches.collect::<Vec<_>>(),
        })
    }

    fn entries<'e>(
        &self,
        entries: impl IntoIterator<Item = &'e Entry>,
        chars: usize,
    ) -> impl Iterator<Item = Value> {
        entries.into_iter().map(move |entry: &Entry| {
            let message = &entry.message;
            let parts = message.content().iter().zip(message.model_text());
            let blocks = parts.enumerate().map(|(at, (block, text))| {
                let shown: String = match chars {
                    0 => text.to_string(),
                    chars => text.chars().take(chars).collect(),
                };
                json!({
                    "kind": kind(block),
                    "tokens": usage::block_tokens(entry, at, self.counts).0,
                    "is_cut": shown.len() < text.len(),
                    "text": shown,
                })
            });
            json!({
                "role": message.role(),
                "origin": origin(entry),
                "tokens": entry.size().tokens.0,
                "blocks": blocks.collect::<Vec<_>>(),
            })
        })
    }
}

/// A template behind the macros that it uses.
fn with_macros(template: &str) -> String {
    include_str!("../text/inspect_macros.txt").to_owned() + template
}

fn kind(block: &ContentBlock) -> &'static str {
    match block {
        ContentBlock::Text(_) => "text",
        ContentBlock::Thinking(_) => "thinking",
        ContentBlock::ToolUse(_) => "tool use",
        ContentBlock::ToolResult(_) => "tool result",
        ContentBlock::Image(_) => "image",
        ContentBlock::Opaque(_) => "unknown block",
    }
}

/// Consecutive indices, the last included: `4`, or `4-7`.
pub(super) fn range(from: usize, to: usize) -> String {
    if from == to { from.to_string() } else { format!("{from}-{to}") }
}

fn origin(entry: &Entry) -> String {
    match &entry.origin {
        Origin::Verbatim(at) => format!("message {at}"),
        Origin::Edited { message, blocks } => {
            format!("message {message} with block {} edited", listed(blocks.iter()))
        }
        Origin::Derived(ranges) => {
            let ranges =
                ranges.iter().map(|own| format!("{}-{}", own.start, own.end.saturating_sub(1)));
            format!("in place of messages {}", listed(ranges))
        }
        Origin::Restored(at) => format!("message {at}, put back"),
        Origin::Authored => "written by the strategy".to_owned(),
    }
}

pub(super) fn in_words(fate: &MessageFate) -> String {
    let mut text = fate.fate.name().to_owned();
    if let Representation::Edited(blocks) = &fate.fate {
        let _ = write!(text, " (block {})", listed(blocks));
    }
    if let Some(decided) = &fate.decided {
        let (call, stage) = (decided.call, &decided.stage);
        let reason = escape::short(&decided.reason, 100);
        let _ = write!(text, ", at call {call} by {stage}: {reason}");
    }
    text
}
