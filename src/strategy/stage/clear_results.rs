//! Old tool results become a placeholder: the cheapest compaction there is.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::context::{BlockAt, CacheEffect, Context, Entry, Patch, measure_block};
use crate::session::{ContentBlock, Tag};
use crate::step::Step;
use crate::strategy::knob::KnobKind::{Choice, Flag, Text, Texts, Whole};
use crate::strategy::{
    Built, Knob, KnobReader, PendingEdits, Planned, Situation, Stage, StageKind, Tools,
};
use crate::units::Tokens;

/// `kind = "clear_results"`.
pub const KIND: StageKind = StageKind {
    name: "clear_results",
    description: "old tool results become a placeholder",
    page: include_str!("../../../docs/stages/clear_results.md"),
    knobs: KNOBS,
    breaks: &[],
    build,
};

const KNOBS: &[Knob] = &[
    Knob::new("keep_last", Whole(1, 3)),
    Knob::new("protect_tokens", Whole(0, 0)),
    Knob::new("protect_turns", Whole(0, 0)),
    Knob::new("min_gain_tokens", Whole(0, 0)),
    Knob::new("every", Whole(1, 1)),
    Knob::new("min_chars", Whole(0, 0)),
    Knob::new("keep_first_observation", Flag(false)),
    Knob::new("tools", Texts),
    Knob::new("except_tools", Texts),
    Knob::new("count_but_keep_tools", Texts),
    Knob::new("placeholder", Text("[Old tool result cleared]")),
    Knob::new("mode", Choice(&["rewrite", "cache_edit"], "rewrite")),
];

fn build(knobs: &mut KnobReader<'_>) -> Built {
    let keep_last = knobs.count("keep_last")?;
    let protect = knobs.tokens("protect_tokens")?;
    Ok(Box::new(ClearResults {
        keep: match protect {
            Tokens::ZERO => Keep::Last(keep_last),
            protect => Keep::Within(protect),
        },
        protect_turns: knobs.count("protect_turns")?,
        min_gain: knobs.tokens("min_gain_tokens")?,
        every: knobs.count("every")?,
        min_chars: knobs.whole("min_chars")?,
        keep_first: knobs.flag("keep_first_observation")?,
        tools: Tools {
            only: knobs.texts("tools")?,
            except: knobs.texts("except_tools")?,
        },
        spared: Tools::only(knobs.texts("count_but_keep_tools")?),
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
    keep: Keep,
    protect_turns: usize,
    min_gain: Tokens,
    every: usize,
    min_chars: u64,
    keep_first: bool,
    tools: Tools,
    /// Tools whose results count and stay; none if nothing is named.
    spared: Tools,
    placeholder: String,
    cache: CacheEffect,
    progress: Progress,
}

/// Which results stay.
#[derive(Debug, Clone, Copy)]
enum Keep {
    /// So many of the newest.
    Last(usize),
    /// The newest that are no larger together.
    Within(Tokens),
}

/// How far the stage came: what it has looked at needs no second look, until entries are replaced
/// and all positions change. A patch that is taken back replaces none: what it would have cleared
/// stays due.
#[derive(Debug, Default)]
struct Progress {
    /// Results that count, with their sizes as they were first seen.
    counted: Vec<(BlockAt, Tokens)>,
    /// Results of the context that were looked at.
    seen: usize,
    /// Counted results before this one are cleared, due, or left for good.
    cleared: usize,
    /// Sizes of the others together.
    left: Tokens,
    /// Entries of the context that were searched for what a user typed.
    searched: usize,
    /// The newest entries that a user typed, at most as many as turns are protected.
    typed: VecDeque<usize>,
    pending: PendingEdits,
    /// [`Context::replacements`] at that time.
    replacements: u64,
}

impl Stage for ClearResults {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> Planned<'a> {
        if self.progress.replacements != context.replacements() {
            self.progress = Progress {
                replacements: context.replacements(),
                ..Progress::default()
            };
        }
        let end = self.end(context);
        let results = context.results();
        while let Some(at) = results.get(self.progress.seen)
            && at.entry < end
        {
            self.progress.seen += 1;
            if self.tools.are_all() || self.tools.include(context.tool_use_of(*at)) {
                let message = &context.entries()[at.entry].message;
                let size = measure_block(message, at.block, &cx.counts).tokens;
                self.progress.counted.push((*at, size));
                self.progress.left += size;
            }
        }
        let boundary = self.boundary();
        while self.progress.cleared < boundary {
            let index = self.progress.cleared;
            let (at, size) = self.progress.counted[index];
            self.progress.cleared += 1;
            self.progress.left = self.progress.left - size;
            if !(self.keep_first && index == 0) {
                self.clear(context, at, size, cx);
            }
        }
        let progress = &mut self.progress;
        let edits = progress.pending.edits(context, self.cache, self.min_gain);
        let than = match self.keep {
            Keep::Last(count) => count.to_string(),
            Keep::Within(tokens) => format!("{tokens} tokens"),
        };
        let reason = format!("{} results older than the last {than}", edits.len());
        Step::Done(Ok(Patch::new(reason, edits)))
    }

    fn edge(&self, context: &Context) -> Option<usize> {
        let Progress {
            counted,
            seen,
            cleared,
            pending,
            replacements,
            ..
        } = &self.progress;
        let is_edited = self.cache == CacheEffect::Breaks;
        if !is_edited || *replacements != context.replacements() {
            return None;
        }
        let next = (*cleared).max(usize::from(self.keep_first));
        let kept = counted.get(next).map(|(at, _)| at);
        let new = || context.results().get(*seen);
        let first = kept.or_else(new).map(|at| at.entry);
        first.into_iter().chain(pending.first(context)).min()
    }
}

impl ClearResults {
    /// Where the protected turns begin: the entry of the typed message that opens them.
    fn end(&mut self, context: &Context) -> usize {
        let entries = context.entries();
        if self.protect_turns == 0 {
            return entries.len();
        }
        let progress = &mut self.progress;
        for (at, entry) in entries.iter().enumerate().skip(progress.searched) {
            if entry.message.has_tag(Tag::TypedUser) {
                progress.typed.push_back(at);
            }
        }
        progress.searched = entries.len();
        while progress.typed.len() > self.protect_turns {
            progress.typed.pop_front();
        }
        match progress.typed.front() {
            Some(first) if progress.typed.len() == self.protect_turns => *first,
            _ => 0,
        }
    }

    /// Counted results in front of this one are to be cleared.
    fn boundary(&self) -> usize {
        let Progress {
            counted,
            cleared,
            left,
            ..
        } = &self.progress;
        match self.keep {
            // SWE-agent's rule: the number of results is rounded down to a step, then the last stay.
            Keep::Last(keep) => (counted.len() / self.every * self.every).saturating_sub(keep),
            Keep::Within(tokens) => {
                let (mut boundary, mut left) = (*cleared, *left);
                while left > tokens && boundary + 1 < counted.len() {
                    left = left - counted[boundary].1;
                    boundary += 1;
                }
                boundary / self.every * self.every
            }
        }
    }

    /// Takes note that a result is to be cleared, unless there is nothing to clear in it.
    fn clear(&mut self, context: &Context, at: BlockAt, size: Tokens, cx: &Situation) {
        let is_spared = !self.spared.are_all() && self.spared.include(context.tool_use_of(at));
        let entry = &context.entries()[at.entry];
        let old = &entry.message.model_text()[at.block];
        if is_spared
            || cx.counts.size(old).chars <= self.min_chars
            || is_cleared(entry, at.block, &self.placeholder)
        {
            return;
        }
        let tool = context.tool_use_of(at).map_or("unknown", |tool| &tool.name);
        let text: Arc<str> = self
            .placeholder
            .replace("{tool}", tool)
            .replace("{lines}", &old.lines().count().to_string())
            .into();
        let gain = size - cx.counts.size(&text).tokens;
        self.progress.pending.push(at, text, gain);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Edit;
    use crate::session::Message;
    use crate::strategy::stage::trial::{Trial, answers, asks, said, typed};

    /// A round: the tool reads something of so many characters.
    fn round(id: &str, tool: &str, chars: usize) -> [Message; 2] {
        [
            asks(&[(id, tool, "{}")]),
            answers(&[(id, &"x".repeat(chars))]),
        ]
    }

    /// Which of the results, in order, are gone.
    fn gone(trial: &Trial) -> Vec<usize> {
        let results = trial.context.results().iter().enumerate();
        let text = |at: &BlockAt| &trial.context.entries()[at.entry].message.model_text()[at.block];
        results
            .filter(|(_, at)| text(at).starts_with('['))
            .map(|(index, _)| index)
            .collect()
    }

    #[track_caller]
    fn check(knobs: &str, sizes: &[usize], expected: &[usize]) {
        let mut trial = Trial::new(&KIND, knobs);
        trial.append([typed("go")]);
        for (at, chars) in sizes.iter().enumerate() {
            let tool = ["Read", "Bash"][at % 2];
            trial.append(round(&at.to_string(), tool, *chars));
            trial.fire().unwrap();
        }
        assert_eq!(gone(&trial), expected, "{knobs}");
        assert_eq!(trial.fire().unwrap(), None, "{knobs}");
        // Looking at all of them at once comes to the same.
        let mut again = Trial::new(&KIND, knobs);
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
            let mut trial = Trial::new(&KIND, knobs);
            trial.append([typed("go")]);
            let mut edges = vec![trial.edge()];
            for at in 0..6 {
                let before = gone(&trial).len();
                trial.append(round(&at.to_string(), "Read", 400));
                trial.fire().unwrap();
                // The results stand at entries 2, 4, 6 and so on.
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
        let mut trial = Trial::new(
            &KIND,
            "keep_last = 1\nplaceholder = '{lines} lines of {tool}'",
        );
        trial.append([
            asks(&[("a", "Read", "{}"), ("b", "Read", "{}")]),
            answers(&[("a", "one\ntwo\nthree, which is long"), ("b", "x")]),
        ]);
        trial.fire().unwrap();
        assert_eq!(trial.texts()[2..], ["3 lines of Read", "x"]);
        assert_eq!(trial.fire().unwrap(), None);
    }

    #[test]
    fn protected_turns_neither_count_nor_are_cleared() {
        let mut trial = Trial::new(&KIND, "keep_last = 1\nprotect_turns = 2");
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
        let mut trial = Trial::new(&KIND, "keep_last = 1\nmin_gain_tokens = 270");
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
        let mut trial = Trial::new(&KIND, "keep_last = 1");
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
        for (mode, cache) in [
            ("rewrite", CacheEffect::Breaks),
            ("cache_edit", CacheEffect::Keeps),
        ] {
            let mut trial = Trial::new(&KIND, &format!("keep_last = 1\nmode = '{mode}'"));
            trial.append(round("0", "Read", 400));
            trial.append(round("1", "Read", 400));
            let edits = trial.planned();
            assert!(
                matches!(edits[..], [Edit::EditBlock { entry: 1, cache: found, .. }] if found == cache),
                "{edits:?}"
            );
        }
    }
}
