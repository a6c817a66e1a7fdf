//! Old tool results become a placeholder: the cheapest compaction there is.

use super::prelude::*;
use crate::context::measure_block;
use crate::script::first_chars;

#[derive(Debug, Deserialize)]
pub(super) struct ClearResults {
    keep_last: usize,
    /// Instead of a number: the newest results within this size together.
    protect_tokens: Tokens,
    protect_turns: usize,
    min_gain_tokens: Tokens,
    every: usize,
    min_chars: u64,
    keep_first_observation: bool,
    /// Whether what a user typed counts like a result.
    count_typed: bool,
    tools: ToolList,
    except_tools: ToolList,
    /// Tools whose results count and stay.
    count_but_keep_tools: ToolList,
    placeholder: String,
    /// Characters of the beginning and the end of a result that stay around the placeholder.
    preview_head_chars: usize,
    preview_tail_chars: usize,
    mode: Mode,
    #[serde(skip)]
    notes: PositionNotes<ClearingProgress>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Rewrite,
    CacheEdit,
}

/// How far the stage came: each result is looked at once. A patch that is taken back changes no
/// position: what it would have cleared stays pending.
#[derive(Debug, Default)]
struct ClearingProgress {
    /// Results that count, with their sizes as they were first seen; nothing for what a user typed.
    counted: Vec<Option<(BlockAt, Tokens)>>,
    /// Entries whose results were looked at.
    seen: usize,
    /// Counted results before this one are cleared, pending, or left for good.
    cleared: usize,
    /// Sizes of the others together.
    left: Tokens,
    /// The entries that a user typed.
    typed: Vec<usize>,
    /// Those of them that were counted.
    typed_counted: usize,
    pending: PendingEdits,
}

impl Stage for ClearResults {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        let mut notes = std::mem::take(&mut self.notes);
        let (progress, new) = notes.with_new(context);
        self.count_new(progress, new, context, cx);
        let boundary = self.boundary(progress);
        while progress.cleared < boundary {
            let index = progress.cleared;
            progress.cleared += 1;
            let Some((at, size)) = progress.counted[index] else {
                continue;
            };
            progress.left = progress.left - size;
            if !(self.keep_first_observation && index == 0)
                && let Some(text) = self.cleared_text(context, at, cx)
            {
                let gain = size - cx.counts.size(&text).tokens;
                progress.pending.push(at, text, gain);
            }
        }
        let cache = match self.mode {
            Mode::Rewrite => CacheEffect::Breaks,
            Mode::CacheEdit => CacheEffect::Keeps,
        };
        let due = progress.pending.due(context, self.min_gain_tokens);
        self.notes = notes;
        let than = match self.protect_tokens {
            Tokens::ZERO => self.keep_last.to_string(),
            tokens => format!("{tokens} tokens"),
        };
        let reason = format!("{} results older than the last {than}", due.len());
        let edits = Edit::blocks(context.entries(), due, cache, &cx.counts);
        Step::Done(Ok(Patch::new(reason, edits)))
    }

    fn edge(&self, context: &Context) -> Option<usize> {
        if self.mode == Mode::CacheEdit {
            return None;
        }
        let progress = self.notes.current(context)?;
        let next = progress.cleared.max(self.keep_first_observation.into());
        let kept =
            progress.counted.get(next..).into_iter().flatten().flatten().map(|(at, _)| *at).next();
        let unseen = progress.seen..context.entries().len();
        let first = kept.or_else(|| context.results_in(unseen).next()).map(|at| at.entry);
        let pending = progress.pending.first(context);
        first.into_iter().chain(pending).min()
    }
}

impl ClearResults {
    /// Counts the results that are new, up to where the protected turns begin.
    fn count_new(
        &self,
        progress: &mut ClearingProgress,
        new: Range<usize>,
        context: &Context,
        cx: &Situation,
    ) {
        let entries = context.entries();
        progress.typed.extend(new.filter(|at| entries[*at].is_typed()));
        let end = match self.protect_turns {
            0 => entries.len(),
            turns => {
                let first = progress.typed.len().checked_sub(turns);
                first.map_or(0, |first| progress.typed[first])
            }
        };
        for at in context.results_in(progress.seen..end) {
            self.count_typed(progress, at.entry);
            // Finding the tool of a result takes a search.
            let are_all = self.tools.is_empty() && self.except_tools.is_empty();
            let tool = (!are_all).then(|| context.tool_use_of(at)).flatten();
            if are_all || (self.tools.allow(tool) && !self.except_tools.name(tool)) {
                let message = &entries[at.entry].message;
                let size = measure_block(message, at.block, &cx.counts).tokens;
                progress.counted.push(Some((at, size)));
                progress.left += size;
            }
        }
        progress.seen = end;
        self.count_typed(progress, end);
    }

    /// Counts what a user typed in front of an entry.
    fn count_typed(&self, progress: &mut ClearingProgress, end: usize) {
        if !self.count_typed {
            return;
        }
        let uncounted = progress.typed[progress.typed_counted..].iter();
        let new = uncounted.take_while(|at| **at < end).count();
        progress.typed_counted += new;
        progress.counted.extend(std::iter::repeat_n(None, new));
    }

    /// Counted results in front of this one are to be cleared.
    fn boundary(&self, progress: &ClearingProgress) -> usize {
        let counted = &progress.counted;
        if self.protect_tokens == Tokens::ZERO {
            // SWE-agent's rule: the number of results is rounded down to a step, then the last stay.
            return (counted.len() / self.every * self.every).saturating_sub(self.keep_last);
        }
        let (mut boundary, mut left) = (progress.cleared, progress.left);
        while left > self.protect_tokens && boundary + 1 < counted.len() {
            left = left - counted[boundary].map_or(Tokens::ZERO, |(_, size)| size);
            boundary += 1;
        }
        boundary / self.every * self.every
    }

    /// The text that replaces a result; `None` if there is nothing to clear in it.
    fn cleared_text(&self, context: &Context, at: BlockAt, cx: &Situation) -> Option<Arc<str>> {
        let entry = &context.entries()[at.entry];
        let old = &entry.message.model_text()[at.block];
        let tool = context.tool_use_of(at);
        let chars = cx.counts.size(old).chars;
        let (head, tail) = (self.preview_head_chars, self.preview_tail_chars);
        if self.count_but_keep_tools.name(tool)
            || chars <= self.min_chars.max((head + tail) as u64)
            || self.is_cleared(entry, at.block)
        {
            return None;
        }
        let name = tool.map_or("unknown", |tool| &tool.name);
        let lines = old.lines().count().to_string();
        let placeholder = self.placeholder.replace("{tool}", name).replace("{lines}", &lines);
        let begin = first_chars(old, head);
        let end = usize::try_from(chars).unwrap_or(usize::MAX).saturating_sub(tail);
        let parts = [begin, &placeholder, &old[first_chars(old, end).len()..]];
        let filled = parts.into_iter().filter(|part| !part.is_empty());
        Some(filled.collect::<Vec<_>>().join("\n").into())
    }

    /// Whether the block already holds this stage's placeholder.
    fn is_cleared(&self, entry: &Entry, block: usize) -> bool {
        let text = match &entry.message.content()[block] {
            ContentBlock::ToolResult(_) if !entry.is_verbatim(block) => {
                &entry.message.model_text()[block]
            }
            _ => return false,
        };
        let head = self.placeholder.split('{').next().unwrap_or("");
        let tail = self.placeholder.rsplit('}').next().unwrap_or("");
        if self.preview_head_chars + self.preview_tail_chars > 0 {
            return text.contains(head) && text.contains(tail);
        }
        text.starts_with(head) && text.ends_with(tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Message;
    use crate::strategy::stage::trial::{Trial, answers, asks, said, typed};

    /// A round: the tool reads a text of `chars` characters.
    fn round(id: &str, tool: &str, chars: usize) -> [Message; 2] {
        [asks(&[(id, tool, "{}")]), answers(&[(id, &"x".repeat(chars))])]
    }

    /// Which of the results, in order, are gone.
    fn gone(trial: &Trial) -> Vec<usize> {
        let results = trial.context.results().enumerate();
        let text = |at: &BlockAt| &trial.context.entries()[at.entry].message.model_text()[at.block];
        results.filter(|(_, at)| text(at).starts_with('[')).map(|(index, _)| index).collect()
    }

    #[track_caller]
    fn check(knobs: &str, sizes: &[usize], expected: &[usize]) {
        let mut trial = Trial::new("clear_results", knobs);
        trial.append([typed("go")]);
        for (at, chars) in sizes.iter().enumerate() {
            let tool = ["Read", "Bash"][at % 2];
            trial.append(round(&at.to_string(), tool, *chars));
            trial.fire().unwrap();
        }
        assert_eq!(gone(&trial), expected, "{knobs}");
        assert_eq!(trial.fire().unwrap(), None, "{knobs}");
        // Looking at all of them at once comes to the same.
        let mut again = Trial::new("clear_results", knobs);
        again.append([typed("go")]);
        for (at, chars) in sizes.iter().enumerate() {
            again.append(round(&at.to_string(), ["Read", "Bash"][at % 2], *chars));
        }
        again.fire().unwrap();
        assert_eq!(gone(&again), expected, "{knobs}, at once");
    }

    #[test]
    fn the_boundary_is_where_the_knobs_say() {
        let six = [400; 6];
        check("", &six, &[0, 1, 2]);
        check("keep_last = 1", &six, &[0, 1, 2, 3, 4]);
        check("keep_last = 2\nevery = 4", &six, &[0, 1]);
        check("keep_first_observation = true", &six, &[1, 2]);
        check("tools = ['class:shell']\nkeep_last = 1", &six, &[1, 3]);
        check("except_tools = ['Bash']\nkeep_last = 1", &six, &[0, 2]);
        check("count_but_keep_tools = ['Bash']", &six, &[0, 2]);
        check("min_chars = 400\nkeep_last = 1", &[400, 401, 400], &[1]);
        // A hundred tokens each: three are within 300, and within 399.
        check("protect_tokens = 300", &six, &[0, 1, 2]);
        check("protect_tokens = 399", &six, &[0, 1, 2]);
        check("protect_tokens = 400", &six, &[0, 1]);
        check("protect_tokens = 300\nevery = 2", &six, &[0, 1]);
        // The newest stays, however large.
        check("protect_tokens = 50", &six, &[0, 1, 2, 3, 4]);
    }

    #[test]
    fn the_edge_is_the_lowest_entry_that_goes_next() {
        let check = |knobs: &str, expected: &[Option<usize>]| {
            let mut trial = Trial::new("clear_results", knobs);
            trial.append([typed("go")]);
            let mut edges = vec![trial.edge()];
            for at in 0..6 {
                let before = gone(&trial).len();
                trial.append(round(&at.to_string(), "Read", 400));
                trial.fire().unwrap();
                // The results are at entries 2, 4, 6 and so on.
                let edge = edges.last().copied().flatten();
                if let (Some(next), Some(edge)) = (gone(&trial).get(before), edge) {
                    assert_eq!(edge, 2 + 2 * next, "{knobs}");
                }
                edges.push(trial.edge());
            }
            assert_eq!(edges[1..], *expected, "{knobs}");
        };
        let some = |entries: [usize; 6]| entries.map(Some);
        check("keep_last = 2", &some([2, 2, 4, 6, 8, 10]));
        check("keep_last = 1\nevery = 3", &some([2, 2, 6, 6, 6, 12]));
        let first = "keep_last = 2\nkeep_first_observation = true";
        let some_later = [None, Some(4), Some(4), Some(6), Some(8), Some(10)];
        check(first, &some_later);
        // Until the gain is large enough, what is due is what goes next.
        let gains = "keep_last = 1\nmin_gain_tokens = 180";
        check(gains, &some([2, 2, 6, 6, 10, 10]));
        // The provider's own clearing leaves the prefix as it was.
        check("mode = 'cache_edit'", &[None; 6]);
    }

    #[test]
    fn the_placeholder_names_tool_and_lines() {
        let mut trial =
            Trial::new("clear_results", "keep_last = 1\nplaceholder = '{lines} lines of {tool}'");
        trial.append([
            asks(&[("a", "Read", "{}"), ("b", "Read", "{}")]),
            answers(&[("a", "one\ntwo\nthree, which is long"), ("b", "x")]),
        ]);
        trial.fire().unwrap();
        assert_eq!(trial.texts()[2..], ["3 lines of Read", "x"]);
        assert_eq!(trial.fire().unwrap(), None);
    }

    #[test]
    fn a_preview_stays_around_the_placeholder() {
        let knobs = "keep_last = 1\npreview_head_chars = 4\npreview_tail_chars = 3\n\
             placeholder = '[{lines} lines]'";
        let mut trial = Trial::new("clear_results", knobs);
        trial.append([
            asks(&[("a", "Read", "{}"), ("b", "Read", "{}"), ("c", "Read", "{}")]),
            answers(&[("a", "ünter\n and so on, ende"), ("b", "seven…!"), ("c", "x")]),
        ]);
        trial.fire().unwrap();
        // What is no longer than its preview stays whole.
        assert_eq!(trial.texts()[3..], ["ünte\n[2 lines]\nnde", "seven…!", "x"]);
        assert_eq!(trial.fire().unwrap(), None);
    }

    #[test]
    fn protected_turns_neither_count_nor_are_cleared() {
        let mut trial = Trial::new("clear_results", "keep_last = 1\nprotect_turns = 2");
        let mut seen = Vec::new();
        for turn in ["a", "b", "c", "d"] {
            trial.append([typed("go")]);
            trial.append(round(&format!("{turn}0"), "Read", 400));
            trial.append(round(&format!("{turn}1"), "Read", 400));
            trial.append([said("done")]);
            trial.fire().unwrap();
            seen.push(gone(&trial));
        }
        assert_eq!(seen, [vec![], vec![], vec![0], vec![0, 1, 2]]);
    }

    #[test]
    fn small_gains_add_up() {
        // Each frees 100 tokens less the 7 of the placeholder.
        let mut trial = Trial::new("clear_results", "keep_last = 1\nmin_gain_tokens = 270");
        let mut seen = Vec::new();
        for at in 0..8 {
            trial.append(round(&at.to_string(), "Read", 400));
            trial.fire().unwrap();
            seen.push(gone(&trial).len());
        }
        assert_eq!(seen, [0, 0, 0, 3, 3, 3, 6, 6]);
    }

    #[test]
    fn what_a_guard_refused_stays_due() {
        let mut trial = Trial::new("clear_results", "keep_last = 1");
        let mut planned = Vec::new();
        for at in 0..4 {
            trial.append(round(&at.to_string(), "Read", 400));
            planned.push((trial.refuse(), trial.refuse()));
        }
        assert_eq!(planned, [(0, 0), (1, 0), (2, 0), (3, 0)]);
        assert!(gone(&trial).is_empty());
        trial.append(round("4", "Read", 400));
        trial.fire().unwrap();
        assert_eq!(gone(&trial), [0, 1, 2, 3]);
    }

    #[test]
    fn a_cache_edit_says_that_the_cache_survives() {
        for (mode, cache) in [("rewrite", CacheEffect::Breaks), ("cache_edit", CacheEffect::Keeps)]
        {
            let mut trial = Trial::new("clear_results", &format!("keep_last = 1\nmode = '{mode}'"));
            trial.append(round("0", "Read", 400));
            trial.append(round("1", "Read", 400));
            let edits = trial.planned();
            let found = edits.iter().map(|edit| (edit.entries.clone(), edit.cache));
            assert!(found.eq([(1..2, cache)]), "{edits:?}");
        }
    }
}
