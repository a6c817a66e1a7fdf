//! Large tool results are put aside, and the prompt keeps a preview and the path.

use std::sync::Arc;

use crate::context::{BlockAt, CacheEffect, Context, Edit, Patch};
use crate::step::Step;
use crate::strategy::knob::KnobKind::{Choice, Text, Whole};
use crate::strategy::{
    Built, Knob, KnobReader, Law, Planned, Situation, Stage, StageKind, truncate,
};
use crate::units::ContentHash;

/// `kind = "offload_results"`.
pub const KIND: StageKind = StageKind {
    name: "offload_results",
    description: "large tool results are put aside; a preview and the path stay",
    page: include_str!("../../../docs/stages/offload_results.md"),
    knobs: KNOBS,
    // Results that just came in are what the user said last.
    breaks: &[Law::KeepsLastUserMessage],
    build,
};

const KNOBS: &[Knob] = &[
    Knob::new("scope", Choice(&["last_message", "each"], "last_message")),
    Knob::new("max_total_chars", Whole(0, 200_000)),
    Knob::new("preview_chars", Whole(0, 2_000)),
    Knob::new("preview_tail_chars", Whole(0, 0)),
    Knob::new("folder", Text("tool-results")),
];

fn build(knobs: &mut KnobReader<'_>) -> Built {
    Ok(Box::new(OffloadResults {
        each: knobs.choice("scope")? == "each",
        max_total_chars: knobs.count("max_total_chars")?,
        preview_chars: knobs.count("preview_chars")?,
        preview_tail_chars: knobs.count("preview_tail_chars")?,
        folder: knobs.text("folder")?,
        seen: 0,
        replacements: 0,
        planned: Vec::new(),
    }))
}

#[derive(Debug)]
struct OffloadResults {
    each: bool,
    max_total_chars: usize,
    preview_chars: usize,
    preview_tail_chars: usize,
    folder: String,
    /// With `each`: results of the context that were looked at.
    seen: usize,
    /// [`Context::replacements`] at that time.
    replacements: u64,
    /// With `each`: what was planned last, and what was to be left of it. Where a guard refused
    /// it, it is planned again with whatever comes next.
    planned: Vec<(BlockAt, Arc<str>)>,
}

/// A result that may be put aside.
struct Candidate {
    at: BlockAt,
    text: Arc<str>,
    chars: usize,
}

/// What is left of a result that was put aside.
const OPENING: &str = "<persisted-output>";

impl Stage for OffloadResults {
    fn plan<'a>(&'a mut self, context: &Context, _: &'a Situation) -> Planned<'a> {
        let mut candidates: Vec<Candidate> = self
            .due(context)
            .into_iter()
            .filter_map(|at| candidate(context, at))
            .collect();
        let mut total: usize = candidates.iter().map(|one| one.chars).sum();
        // The largest first; of equals the oldest.
        candidates.sort_by_key(|one| std::cmp::Reverse(one.chars));
        let mut edits: Vec<(BlockAt, Arc<str>)> = Vec::new();
        let mut saved = Vec::new();
        for Candidate { at, text, chars } in candidates {
            let counted = if self.each { chars } else { total };
            if counted <= self.max_total_chars {
                if self.each {
                    continue;
                }
                break;
            }
            let name = ContentHash::of(text.as_bytes()).hex(12);
            let path = format!("{}/{name}.txt", self.folder);
            let left = self.preview(&path, &text, chars);
            let left_chars = left.chars().count();
            if left_chars >= chars {
                continue;
            }
            total = total - chars + left_chars;
            saved.push((path, text));
            edits.push((at, Arc::from(left)));
        }
        edits.sort_by_key(|(at, _)| *at);
        if self.each && !edits.is_empty() {
            self.planned.clone_from(&edits);
        }
        let reason = format!(
            "{} results put aside: over {} characters",
            edits.len(),
            self.max_total_chars
        );
        let edits = edits.into_iter();
        let edit = |(at, text)| Edit::block(at, text, CacheEffect::Breaks);
        let edits = edits.map(edit).collect();
        Step::Done(Ok(Patch {
            edits,
            reason,
            saved,
        }))
    }
}

impl OffloadResults {
    /// The results to look at now: those of the last message, or all that are new.
    fn due(&mut self, context: &Context) -> Vec<BlockAt> {
        let results = context.results();
        if !self.each {
            let start = context.answered();
            return results[results.partition_point(|at| at.entry < start)..].to_vec();
        }
        if self.replacements != context.replacements() {
            self.replacements = context.replacements();
            self.seen = 0;
            self.planned.clear();
        }
        let new = results[self.seen..].iter().copied();
        self.seen = results.len();
        if new.len() == 0 {
            return Vec::new();
        }
        let is_done = |(at, left): &(BlockAt, Arc<str>)| {
            context.entries()[at.entry].message.model_text()[at.block] == *left
        };
        let planned = std::mem::take(&mut self.planned);
        let refused = planned.into_iter().filter(|one| !is_done(one));
        refused.map(|(at, _)| at).chain(new).collect()
    }

    fn preview(&self, path: &str, text: &str, chars: usize) -> String {
        let mut left = format!("{OPENING}\nThe whole output ({chars} characters) is in {path}\n\n");
        let head = truncate::after_chars(text, self.preview_chars);
        left.push_str(&text[..head]);
        if head < text.len() {
            left.push_str("\n[…]\n");
            let tail = truncate::after_chars(text, chars.saturating_sub(self.preview_tail_chars));
            left.push_str(&text[tail.max(head)..]);
        }
        if !left.ends_with('\n') {
            left.push('\n');
        }
        left.push_str("</persisted-output>");
        left
    }
}

/// The result as it may be put aside; nothing if it was already.
fn candidate(context: &Context, at: BlockAt) -> Option<Candidate> {
    let entry = context.entries().get(at.entry)?;
    let text = entry.message.model_text().get(at.block)?;
    if !entry.is_verbatim(at.block) && text.starts_with(OPENING) {
        return None;
    }
    Some(Candidate {
        at,
        text: text.clone(),
        chars: text.chars().count(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::stage::trial::{Trial, answers, asks};

    #[test]
    fn what_a_guard_refused_comes_back_with_the_next_result() {
        let mut trial = Trial::new(
            &KIND,
            "scope = 'each'\nmax_total_chars = 300\npreview_chars = 10",
        );
        let text = "x".repeat(400);
        let mut planned = Vec::new();
        for id in ["a", "b", "c"] {
            trial.append([asks(&[(id, "Read", "{}")]), answers(&[(id, &text)])]);
            planned.push((trial.refuse(), trial.refuse()));
        }
        assert_eq!(planned, [(1, 0), (2, 0), (3, 0)]);
        trial.append([asks(&[("d", "Read", "{}")]), answers(&[("d", "short")])]);
        assert_eq!(
            trial.fire().unwrap().unwrap(),
            "3 results put aside: over 300 characters"
        );
        assert_eq!(trial.fire().unwrap(), None);
    }
}
