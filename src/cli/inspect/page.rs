//! What `proctor inspect` shows, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;

use super::usage::{self, Category};
use crate::context::{Entry, Origin};
use crate::replay::observe::snapshot::{MessageFate, Presence, Snapshot};
use crate::report::escape;
use crate::session::{ContentBlock, Role, Session};
use crate::tokens::CountedTexts;
use crate::units::Tokens;
use crate::window::{Lines, WarningFrom, Window};

/// One call under one strategy.
pub(super) struct Page<'a> {
    session: &'a Session,
    strategy: &'a str,
    window: Window,
    look: &'a Snapshot,
    counts: &'a CountedTexts,
    usage: BTreeMap<Category, Tokens>,
    chars: usize,
}

/// What the signs in the bar of zones mean.
const ZONE_LEGEND: &str = "by Claude Code's lines: w warning, a automatic compaction, b blocking";

impl<'a> Page<'a> {
    pub(super) fn new(
        session: &'a Session,
        strategy: &'a str,
        window: Window,
        look: &'a Snapshot,
        counts: &'a CountedTexts,
        chars: usize,
    ) -> Self {
        let usage = usage::usage(session, look, counts, &usage::classes(session));
        Self {
            session,
            strategy,
            window,
            look,
            counts,
            usage,
            chars,
        }
    }

    /// What is looked at, in words.
    pub(super) fn title(&self) -> String {
        format!("{} at call {}", self.strategy, self.look.call)
    }

    pub(super) fn session(&self) -> &Session {
        self.session
    }

    pub(super) fn look(&self) -> &Snapshot {
        self.look
    }

    pub(super) fn usage(&self) -> &BTreeMap<Category, Tokens> {
        &self.usage
    }

    fn lines(&self) -> Lines {
        self.window.lines(WarningFrom::AutoCompact)
    }

    pub(super) fn prompt(&self) -> Tokens {
        self.look.prompt
    }

    fn share(&self, tokens: Tokens) -> f64 {
        tokens.share_of(self.window.tokens).unwrap_or(0.0)
    }

    pub(super) fn to_text(&self, width: usize) -> String {
        let mut out = String::new();
        let prompt = self.prompt();
        let _ = writeln!(
            out,
            "{} under {}, call {} (of 0 to {}): {prompt} tokens in a window of {} ({:.1} %)",
            escape::plain(self.session.id()),
            escape::plain(self.strategy),
            self.look.call,
            self.session.calls().len().saturating_sub(1),
            self.window.tokens,
            self.share(prompt) * 100.0
        );
        self.write_usage(&mut out, width);
        self.write_patches(&mut out);
        self.write_entries(&mut out);
        self.write_fates(&mut out);
        out
    }

    fn write_usage(&self, out: &mut String, width: usize) {
        const NAME: usize = 26;
        // Name, tokens and share take up 46 columns; the bar gets the rest, within reason.
        let bar = width.saturating_sub(NAME + 20).clamp(10, 50);
        let _ = writeln!(out, "\nUsage\n");
        let free = self.window.tokens - self.prompt();
        let rows = self
            .usage
            .iter()
            .map(|(category, tokens)| (category.name(), *tokens, '█'))
            .chain([("free".to_owned(), free, '·')]);
        for (name, tokens, sign) in rows {
            let share = self.share(tokens);
            // A window of zero tokens or a prompt beyond it: the bar ends at the margin.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between zero and the width of the bar"
            )]
            let filled = (share.clamp(0.0, 1.0) * bar as f64).round() as usize;
            let line = format!(
                "{name:NAME$} {:>8} {:>6.1} %  {}",
                tokens.0,
                share * 100.0,
                sign.to_string().repeat(filled)
            );
            let _ = writeln!(out, "{}", line.trim_end());
        }
        let lines = self.lines();
        let prompt = self.prompt();
        let zone = format!("zone: {}", lines.zone(prompt).name());
        let _ = writeln!(
            out,
            "{zone:NAME$} {:>8} {:>6} %  {}",
            "left",
            lines.percent_left(prompt),
            self.zone_bar(&lines, bar)
        );
        let _ = writeln!(out, "{:NAME$} {ZONE_LEGEND}", "");
    }

    /// The window as a bar, filled as far as the prompt goes, with the lines in it: warning and
    /// error, automatic compaction, blocking.
    fn zone_bar(&self, lines: &Lines, width: usize) -> String {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between zero and the width of the bar"
        )]
        let place = |tokens| (self.share(tokens).clamp(0.0, 1.0) * width as f64) as usize;
        let filled = place(self.prompt());
        let mut bar: Vec<char> = (0..width)
            .map(|at| if at < filled { '█' } else { '·' })
            .collect();
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

    /// What was compacted for this call: before and after.
    fn write_patches(&self, out: &mut String) {
        for patch in &self.look.patches {
            let _ = writeln!(
                out,
                "\nCompaction before this call by {}: {} ({} → {} tokens of messages)\n",
                escape::plain(&patch.stage),
                escape::short(&patch.reason, 100),
                patch.before.tokens,
                patch.after.tokens
            );
            for (sign, entries) in [('-', &patch.removed), ('+', &patch.added)] {
                for entry in entries {
                    let text = entry.message.model_text().first();
                    let _ = writeln!(
                        out,
                        "{sign} {}, {} ({} tokens): {}",
                        role(entry),
                        origin(entry),
                        entry.size.tokens,
                        text.map_or_else(String::new, |text| self.cut(text))
                    );
                }
            }
        }
    }

    fn write_entries(&self, out: &mut String) {
        let _ = writeln!(out, "\nContext, as the model would see it\n");
        if let Some(system) = self.session.system() {
            let tokens = self.counts.size(system).tokens;
            let _ = writeln!(out, "system ({tokens} tokens)\n  {}", self.cut(system));
        }
        for tool in self.session.tools() {
            let tokens = self.counts.size(tool.text()).tokens;
            let _ = writeln!(
                out,
                "tool definition {} ({tokens} tokens)",
                escape::plain(&tool.name)
            );
        }
        for (at, entry) in self.look.entries.iter().enumerate() {
            let _ = writeln!(
                out,
                "[{at}] {}, {} ({} tokens)",
                role(entry),
                origin(entry),
                entry.size.tokens
            );
            for (block, text) in entry.message.model_text().iter().enumerate() {
                let kind = entry.message.content().get(block).map_or("", kind);
                let _ = writeln!(out, "  {kind}: {}", self.cut(text));
            }
        }
    }

    fn write_fates(&self, out: &mut String) {
        let _ = writeln!(out, "\nFate of the {} messages so far\n", self.look.before);
        let fates = &self.look.fates;
        let mut from = 0;
        while let Some(fate) = fates.get(from) {
            let same = fates[from..].iter().take_while(|other| *other == fate);
            let to = from + same.count();
            let range = if to - from == 1 {
                from.to_string()
            } else {
                format!("{from}-{}", to - 1)
            };
            let _ = writeln!(out, "{range:>9}  {}", in_words(fate));
            from = to;
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

    pub(super) fn to_json(&self) -> serde_json::Value {
        let usage: Vec<_> = self
            .usage
            .iter()
            .map(|(category, tokens)| json!({ "category": category.name(), "tokens": tokens.0 }))
            .collect();
        let entries: Vec<_> = self
            .look
            .entries
            .iter()
            .map(|entry| self.entry(entry))
            .collect();
        let fates: Vec<_> = self
            .look
            .fates
            .iter()
            .enumerate()
            .map(|(message, fate)| {
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
                    "call": fate.decided.as_ref().map(|decided| decided.call),
                    "stage": fate.decided.as_ref().map(|decided| &*decided.stage),
                    "reason": fate.decided.as_ref().map(|decided| &decided.reason),
                })
            })
            .collect();
        let (lines, prompt) = (self.lines(), self.prompt());
        let patches: Vec<_> = self
            .look
            .patches
            .iter()
            .map(|patch| {
                let entries = |entries: &[Entry]| -> Vec<_> {
                    entries.iter().map(|entry| self.entry(entry)).collect()
                };
                json!({
                    "stage": &*patch.stage,
                    "reason": patch.reason,
                    "before": patch.before.tokens.0,
                    "after": patch.after.tokens.0,
                    "removed": entries(&patch.removed),
                    "added": entries(&patch.added),
                })
            })
            .collect();
        json!({
            "format": "proctor-inspect",
            "version": 1,
            "session": self.session.id(),
            "strategy": self.strategy,
            "call": self.look.call,
            "calls": self.session.calls().len(),
            "window": self.window.tokens.0,
            "prompt_tokens": self.prompt().0,
            "fixed_tokens": self.look.scale.prompt(self.look.fixed).0,
            "zone": lines.zone(prompt).name(),
            "percent_left": lines.percent_left(prompt),
            "flags": lines.flags(prompt),
            "lines": lines,
            "usage": usage,
            "compactions": patches,
            "entries": entries,
            "fates": fates,
        })
    }

    fn entry(&self, entry: &Entry) -> serde_json::Value {
        let blocks: Vec<_> = entry
            .message
            .content()
            .iter()
            .zip(entry.message.model_text())
            .enumerate()
            .map(|(at, (block, text))| {
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
            })
            .collect();
        json!({
            "role": role(entry),
            "origin": origin(entry),
            "tokens": entry.size.tokens.0,
            "blocks": blocks,
        })
    }
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

fn origin(entry: &Entry) -> String {
    match &entry.origin {
        Origin::Verbatim(at) => format!("message {at}"),
        Origin::Edited { message, blocks } => {
            let blocks: Vec<String> = blocks.iter().map(ToString::to_string).collect();
            format!("message {message} with block {} edited", blocks.join(", "))
        }
        Origin::Derived(ranges) => {
            let ranges: Vec<String> = ranges
                .iter()
                .map(|range| format!("{}-{}", range.start, range.end.saturating_sub(1)))
                .collect();
            format!("in place of messages {}", ranges.join(", "))
        }
        Origin::Restored(at) => format!("message {at}, put back"),
        Origin::Authored => "written by the strategy".to_owned(),
    }
}

pub(super) fn in_words(fate: &MessageFate) -> String {
    let mut text = fate.fate.name().to_owned();
    if let Presence::Edited(blocks) = &fate.fate {
        let blocks: Vec<String> = blocks.iter().map(ToString::to_string).collect();
        let _ = write!(text, " (block {})", blocks.join(", "));
    }
    if let Some(decided) = &fate.decided {
        let _ = write!(
            text,
            ", at call {} by {}: {}",
            decided.call,
            escape::plain(&decided.stage),
            escape::short(&decided.reason, 100)
        );
    }
    text
}
