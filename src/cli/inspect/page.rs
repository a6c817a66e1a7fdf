//! One call of a session as `proctor inspect` shows it, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::usage::{self, Category};
use crate::cli::columns::range;
use crate::context::{Entry, Origin};
use crate::replay::observe::snapshot::{MessageFate, Presence, Snapshot};
use crate::report::escape;
use crate::session::{ContentBlock, Role, Session};
use crate::tokens::CountedTexts;
use crate::units::Tokens;
use crate::window::{Lines, WarningFrom, Window};

/// One call under one strategy.
pub(super) struct Page<'a> {
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

impl Page<'_> {
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

    pub(super) fn to_text(&self, width: usize) -> String {
        let prompt = self.snapshot.prompt;
        let mut out = format!(
            "{} under {}, call {} (of 0 to {}): {prompt} tokens in a window of {} ({:.1} %)\n",
            self.session.id(),
            self.strategy,
            self.snapshot.call,
            self.session.calls().len().saturating_sub(1),
            self.window.tokens,
            self.percent(prompt)
        );
        self.write_usage(&mut out, width);
        self.write_patches(&mut out);
        self.write_entries(&mut out);
        let _ = writeln!(
            out,
            "\nFate of the {} messages so far\n",
            self.snapshot.before
        );
        let mut from = 0;
        for same in self.snapshot.fates.chunk_by(|one, next| one == next) {
            let to = from + same.len();
            let _ = writeln!(out, "{:>9}  {}", range(from, to - 1), in_words(&same[0]));
            from = to;
        }
        out
    }

    fn write_usage(&self, out: &mut String, width: usize) {
        // Name, tokens and share take up 46 columns; the bar gets the rest, within reason.
        let bar = width.saturating_sub(NAME + 20).clamp(10, 50);
        let prompt = self.snapshot.prompt;
        let used = self.usage.iter();
        let used = used.map(|(category, tokens)| (category.name(), *tokens, "█"));
        let free = ("free".to_owned(), self.window.tokens - prompt, "·");
        out.push_str("\nUsage\n\n");
        for (name, tokens, sign) in used.chain([free]) {
            let (count, percent) = (tokens.0, self.percent(tokens));
            let filled = sign.repeat(self.halves(tokens, bar).div_ceil(2));
            let line = format!("{name:NAME$} {count:>8} {percent:>6.1} %  {filled}");
            let _ = writeln!(out, "{}", line.trim_end());
        }
        let lines = self.lines();
        let _ = writeln!(
            out,
            "{:NAME$} {:>8} {:>6} %  {}\n{:NAME$} by Claude Code's lines: w warning, a automatic compaction, \
             b blocking",
            format!("zone: {}", lines.zone(prompt).name()),
            "left",
            lines.percent_left(prompt),
            self.zone_bar(&lines, bar),
            ""
        );
    }

    /// The window as a bar, filled as far as the prompt goes, with the lines in it: warning and
    /// error, automatic compaction, blocking.
    fn zone_bar(&self, lines: &Lines, width: usize) -> String {
        let place = |tokens| self.halves(tokens, width) / 2;
        let filled = place(self.snapshot.prompt);
        let cells = (0..width).map(|at| if at < filled { '█' } else { '·' });
        let mut bar: Vec<char> = cells.collect();
        for (line, sign) in [
            (lines.warning, 'w'),
            (lines.auto_compact, 'a'),
            (lines.blocking, 'b'),
        ] {
            if let Some(at) = bar.get_mut(place(line)) {
                *at = sign;
            }
        }
        bar.into_iter().collect()
    }

    /// The compactions before this call: the messages before and after.
    fn write_patches(&self, out: &mut String) {
        for patch in &self.snapshot.patches {
            let _ = writeln!(
                out,
                "\nCompaction before this call by {}: {} ({} → {} tokens of messages)\n",
                patch.stage,
                escape::short(&patch.reason, 100),
                patch.before.tokens,
                patch.after.tokens
            );
            let removed = patch.removed.iter().map(|entry| ('-', entry));
            for (sign, entry) in removed.chain(patch.added.iter().map(|entry| ('+', entry))) {
                let text = entry
                    .message
                    .model_text()
                    .first()
                    .map(|text| self.cut(text));
                let text = text.unwrap_or_default();
                let _ = writeln!(out, "{sign} {}: {text}", heading(entry));
            }
        }
    }

    fn write_entries(&self, out: &mut String) {
        out.push_str("\nContext, as the model would see it\n\n");
        if let Some(system) = self.session.system() {
            let (tokens, text) = (self.counts.size(system).tokens, self.cut(system));
            let _ = writeln!(out, "system ({tokens} tokens)\n  {text}");
        }
        for tool in self.session.tools() {
            let tokens = self.counts.size(tool.text()).tokens;
            let _ = writeln!(out, "tool definition {} ({tokens} tokens)", tool.name);
        }
        for (at, entry) in self.snapshot.entries.iter().enumerate() {
            let _ = writeln!(out, "[{at}] {}", heading(entry));
            for (block, text) in entry.message.model_text().iter().enumerate() {
                let kind = entry.message.content().get(block).map_or("", kind);
                let _ = writeln!(out, "  {kind}: {}", self.cut(text));
            }
        }
    }

    /// A text on one line, cut, with nothing in it that a terminal obeys.
    fn cut(&self, text: &str) -> String {
        let line = text.replace('\n', " ↵ ").replace('\t', " ");
        match self.chars {
            0 => escape::plain(&line),
            chars => escape::short(&line, chars),
        }
    }

    pub(super) fn facts(&self) -> Value {
        let fates = self.snapshot.fates.iter().enumerate();
        let fates = fates.map(|(message, fate)| {
            let decided = fate.decided.as_ref();
            json!({
                "message": message,
                "fate": fate.fate.name(),
                "blocks": match &fate.fate {
                    Presence::Edited(blocks) => Some(blocks),
                    Presence::Verbatim
                    | Presence::Restored
                    | Presence::Derived
                    | Presence::Gone => None,
                },
                "call": decided.map(|decided| decided.call),
                "stage": decided.map(|decided| &*decided.stage),
                "reason": decided.map(|decided| &decided.reason),
            })
        });
        let mut facts = self.head();
        facts["entries"] = self.entries(&self.snapshot.entries);
        facts["fates"] = fates.collect();
        facts
    }

    /// The facts without the messages.
    pub(super) fn head(&self) -> Value {
        let usage = self.usage.iter();
        let usage = usage
            .map(|(category, tokens)| json!({ "category": category.name(), "tokens": tokens.0 }));
        let patches = self.snapshot.patches.iter().map(|patch| {
            json!({
                "stage": &*patch.stage,
                "reason": patch.reason,
                "before": patch.before.tokens.0,
                "after": patch.after.tokens.0,
                "removed": self.entries(&patch.removed),
                "added": self.entries(&patch.added),
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

    fn entries(&self, entries: &[Entry]) -> Value {
        let entry = |entry: &Entry| {
            let message = &entry.message;
            let blocks = message.content().iter().zip(message.model_text());
            let blocks = blocks.enumerate().map(|(at, (block, text))| {
                let shown: String = match self.chars {
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
                "role": role(entry),
                "origin": origin(entry),
                "tokens": entry.size.tokens.0,
                "blocks": blocks.collect::<Vec<_>>(),
            })
        };
        entries.iter().map(entry).collect()
    }
}

fn heading(entry: &Entry) -> String {
    let (role, origin, tokens) = (role(entry), origin(entry), entry.size.tokens);
    format!("{role}, {origin} ({tokens} tokens)")
}

fn role(entry: &Entry) -> &'static str {
    match entry.message.role() {
        Role::User => "user",
        Role::Assistant => "assistant",
    }
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

/// Numbers with commas between.
fn listed(numbers: impl IntoIterator<Item = impl ToString>) -> String {
    let numbers = numbers.into_iter().map(|number| number.to_string());
    numbers.collect::<Vec<_>>().join(", ")
}

fn origin(entry: &Entry) -> String {
    match &entry.origin {
        Origin::Verbatim(at) => format!("message {at}"),
        Origin::Edited { message, blocks } => {
            format!("message {message} with block {} edited", listed(blocks))
        }
        Origin::Derived(ranges) => {
            let ranges = ranges.iter();
            let ranges = ranges.map(|it| format!("{}-{}", it.start, it.end.saturating_sub(1)));
            format!("in place of messages {}", listed(ranges))
        }
        Origin::Restored(at) => format!("message {at}, put back"),
        Origin::Authored => "written by the strategy".to_owned(),
    }
}

pub(super) fn in_words(fate: &MessageFate) -> String {
    let mut text = fate.fate.name().to_owned();
    if let Presence::Edited(blocks) = &fate.fate {
        let _ = write!(text, " (block {})", listed(blocks));
    }
    if let Some(decided) = &fate.decided {
        let (call, stage) = (decided.call, &decided.stage);
        let reason = escape::short(&decided.reason, 100);
        let _ = write!(text, ", at call {call} by {stage}: {reason}");
    }
    text
}
