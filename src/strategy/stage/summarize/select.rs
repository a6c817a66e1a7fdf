//! Selects the messages that a summary replaces, and those that stay.

use super::prompt::Previous;
use crate::strategy::cut::answered;
use crate::strategy::stage::prelude::*;
use crate::strategy::stage::truncate_output::without_middle;
use crate::strategy::template::SummarySpan;
use crate::window::WindowPart;

/// Which messages are summarised, and which stay.
#[derive(Debug, Deserialize)]
pub(super) struct SummarySelect {
    select: SummaryCoverage,
    select_rounds: usize,
    keep_first_messages: usize,
    /// With [`Previous::Append`], earlier summaries and the entries before them stay.
    previous: Previous,
    cut: Cut,
    user_messages: UserMessages,
    user_messages_max_tokens: Tokens,
    keep_markers: Vec<String>,
    protected_tools: ToolList,
    /// Results that the session tags as protected stay, with their calls.
    protect_tagged: bool,
    /// Tool uses that nothing answers stay.
    keep_unanswered: bool,
}

/// The messages that a summary covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SummaryCoverage {
    /// Everything, what stays behind it too.
    All,
    /// The messages that it replaces.
    UntilTail,
    /// A number of the oldest rounds, once there are that many.
    EveryRounds,
}

/// The tail that stays after a summary: the longest of these.
#[derive(Debug, Deserialize)]
pub(super) struct KeptTail {
    keep_last_messages: usize,
    keep_last_rounds: usize,
    keep_last_tokens: Tokens,
    keep_last_fraction: f64,
    keep_fraction_of: FractionOf,
    /// The part of the window that it is a share of.
    #[serde(skip)]
    pub(super) of: WindowPart,
    pub(super) keep_min_tokens: Tokens,
    /// Nothing for no limit.
    pub(super) keep_max_tokens: Option<Tokens>,
    /// As much as fits beside the longest summary, if anything.
    keep_to_fit: bool,
    max_output_tokens: Tokens,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FractionOf {
    Window,
    History,
}

/// Which messages that a user typed stay in front of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum UserMessages {
    None,
    All,
    /// The newest within a number of tokens.
    Budget,
}

/// The messages to summarise, and those of them that stay.
#[derive(Debug)]
pub(super) struct SummarySelection {
    /// The messages that the summary replaces; never empty.
    pub(super) replaced: Range<usize>,
    /// The messages that the summary covers.
    pub(super) covered: Range<usize>,
    /// Which part of the conversation that is.
    pub(super) span: SummarySpan,
    /// The user's messages that stay, oldest first.
    pub(super) user_messages: Vec<Entry>,
    /// Protected results and their calls, and calls that nothing answers, oldest first.
    pub(super) protected: Vec<Entry>,
}

impl SummarySelect {
    /// The selection to summarise now, if there is one.
    pub(super) fn of(
        &self,
        tail: &KeptTail,
        context: &Context,
        cx: &Situation,
    ) -> Option<SummarySelection> {
        let entries = context.entries();
        let start = self.start(entries);
        let mut end = tail.start(self.cut, context, cx).max(start);
        if self.select == SummaryCoverage::EveryRounds {
            let (_, rounds) = cut::rounds(&entries[start..end]);
            end = start + rounds.get(self.select_rounds.checked_sub(1)?)?.end;
        }
        if start >= end {
            return None;
        }
        let replaced = start..end;
        // A summary of nothing but what an earlier one left would say the same again.
        let left = entries[replaced.clone()].iter().all(|entry| {
            entry.message.has_tag(Tag::CompactSummary)
                || matches!(entry.origin, Origin::Authored | Origin::Restored(_))
        });
        if self.select != SummaryCoverage::All && left {
            return None;
        }
        let covered = match self.select {
            SummaryCoverage::All => 0..entries.len(),
            SummaryCoverage::UntilTail | SummaryCoverage::EveryRounds => replaced.clone(),
        };
        let span = if covered.end < entries.len() {
            SummarySpan::UpTo
        } else if covered.start > 0 {
            SummarySpan::From
        } else {
            SummarySpan::Full
        };
        let gone = &entries[replaced.clone()];
        Some(SummarySelection {
            user_messages: self.user_messages(gone, cx),
            protected: self.protected(gone, entries, cx),
            replaced,
            covered,
            span,
        })
    }

    /// Tokens of the tail that stays, at least. One that goes by rounds ends where they do.
    pub(super) fn least_kept(&self, tail: &KeptTail, window: Window) -> Tokens {
        match self.select {
            SummaryCoverage::All | SummaryCoverage::UntilTail => {
                tail.keep_last_tokens.max(tail.share(window, Tokens::ZERO))
            }
            SummaryCoverage::EveryRounds => Tokens::ZERO,
        }
    }

    /// Where what stays in front ends.
    fn start(&self, entries: &[Entry]) -> usize {
        let mut start = self.keep_first_messages;
        if self.previous == Previous::Append {
            let last = entries.iter().rposition(|entry| entry.message.has_tag(Tag::CompactSummary));
            let behind = last.map_or(0, |last| last + 1);
            let acknowledged = entries.get(behind..).unwrap_or_default().iter();
            let own = acknowledged.take_while(|entry| entry.origin == Origin::Authored);
            start = start.max(behind + own.count());
        }
        self.cut.snap_forward(entries, start)
    }

    fn user_messages(&self, gone: &[Entry], cx: &Situation) -> Vec<Entry> {
        let wanted = gone
            .iter()
            .filter(|entry| self.is_kept_user_message(entry))
            .map(|entry| without_results(entry, cx));
        let mut left = match self.user_messages {
            UserMessages::None => return Vec::new(),
            UserMessages::All => return wanted.collect(),
            UserMessages::Budget => self.user_messages_max_tokens,
        };
        let mut kept = Vec::new();
        for entry in wanted.rev() {
            let tokens = entry.size().tokens;
            if tokens > left {
                kept.extend(shortened(&entry, left, cx));
                break;
            }
            left = left - tokens;
            kept.push(entry);
        }
        kept.reverse();
        kept
    }

    fn is_kept_user_message(&self, entry: &Entry) -> bool {
        let message = &entry.message;
        if message.role() != Role::User
            || message.has_tag(Tag::CompactSummary)
            || message.has_tag(Tag::CompactBoundary)
        {
            return false;
        }
        entry.is_typed()
            || message
                .texts()
                .any(|(_, text)| self.keep_markers.iter().any(|marker| text.contains(marker)))
    }

    /// Calls of protected tools that were answered, and their answers; and calls that nothing in the
    /// context answers, where they stay.
    fn protected(&self, gone: &[Entry], entries: &[Entry], cx: &Situation) -> Vec<Entry> {
        if self.protected_tools.is_empty() && !self.protect_tagged && !self.keep_unanswered {
            return Vec::new();
        }
        let protected = gone
            .iter()
            .filter(|entry| self.protect_tagged && entry.message.has_tag(Tag::Protected));
        let tagged = answered(protected);
        let answered_here = answered(gone);
        let answered_anywhere = answered(entries);
        let mut ids: BTreeSet<&str> = BTreeSet::new();
        let mut kept = Vec::new();
        for entry in gone {
            let uses = entry.message.tool_uses().filter(|(_, tool)| {
                self.protected_tools.name(Some(*tool)) && answered_here.contains(&*tool.id)
                    || tagged.contains(&*tool.id)
                    || self.keep_unanswered && !answered_anywhere.contains(&*tool.id)
            });
            ids.extend(uses.map(|(_, tool)| &*tool.id));
            kept.extend(only(entry, cx, |block| {
                block.call_id().is_some_and(|id| ids.contains(&**id))
            }));
        }
        kept
    }
}

impl KeptTail {
    /// Where what stays behind begins.
    fn start(&self, cut: Cut, context: &Context, cx: &Situation) -> usize {
        let entries = context.entries();
        let newest = entries.len().saturating_sub(self.keep_last_messages);
        let mut start = cut.snap_back(entries, newest);
        if self.keep_last_rounds > 0 {
            let (_, rounds) = cut::rounds(entries);
            let first = rounds.len().saturating_sub(self.keep_last_rounds);
            let at = rounds.get(first).map_or(0, |round| round.start);
            start = start.min(cut.snap_back(entries, at));
        }
        let share = self.share(cx.window, context.size().tokens);
        let budget = self.keep_last_tokens.max(share).max(self.room(cx));
        if budget > Tokens::ZERO {
            let within = cut::newest_within(entries, budget);
            start = start.min(cut.snap_forward(entries, within));
        }
        start
    }

    fn share(&self, window: Window, history: Tokens) -> Tokens {
        if self.keep_last_fraction <= 0.0 {
            return Tokens::ZERO;
        }
        let whole = match self.keep_fraction_of {
            FractionOf::History => history,
            FractionOf::Window => window.part(self.of),
        };
        let share = whole.fraction(self.keep_last_fraction).max(self.keep_min_tokens);
        self.keep_max_tokens.map_or(share, |max| share.min(max))
    }

    /// The room that the window has beside the fixed parts of a prompt and the summary. In a window
    /// much smaller than the longest summary, most of it would stay empty: a quarter is enough. The
    /// text around the summary (its prefix, a boundary) takes a sixteenth of it at most.
    fn room(&self, cx: &Situation) -> Tokens {
        if !self.keep_to_fit {
            return Tokens::ZERO;
        }
        let window = cx.window.tokens - cx.window.overflow_reserve;
        let summary = self.max_output_tokens.min(Tokens(window.0 / 4));
        cx.room(window - summary - Tokens(summary.0 / 16))
    }
}

/// The user's words, without tool results that came in the same message.
fn without_results(entry: &Entry, cx: &Situation) -> Entry {
    only(entry, cx, |block| !block.is_result()).unwrap_or_else(|| entry.clone())
}

/// The entry with only some of its blocks, or nothing if none of them is wanted.
fn only(entry: &Entry, cx: &Situation, is_wanted: impl Fn(&ContentBlock) -> bool) -> Option<Entry> {
    let blocks = entry.message.content();
    let kept: Vec<ContentBlock> = blocks.iter().filter(|block| is_wanted(block)).cloned().collect();
    if kept.is_empty() || kept.len() == blocks.len() {
        return (!kept.is_empty()).then(|| entry.clone());
    }
    let origin = match &entry.origin {
        Origin::Verbatim(at) | Origin::Edited { message: at, .. } => Origin::Restored(*at),
        other => other.clone(),
    };
    let message = Message::new(entry.message.role(), kept).with_tags(entry.message.tags.iter());
    Some(Entry::new(origin, Arc::new(message), &cx.counts))
}

/// The entry with the middle of its longest text cut out, within `budget` tokens without the
/// marker.
fn shortened(entry: &Entry, budget: Tokens, cx: &Situation) -> Option<Entry> {
    if budget == Tokens::ZERO {
        return None;
    }
    let texts = entry.message.texts();
    let (block, text) = texts.max_by_key(|(_, text)| text.len())?;
    let others = entry.size().tokens - cx.counts.size(text).tokens;
    if others >= budget {
        return None;
    }
    let short = without_middle(text, budget - others, &**cx.counts.counter())?;
    Some(entry.with_block_text(block, &short, &cx.counts))
}
