//! Large tool results are offloaded, and the prompt keeps a preview and the path.

use super::prelude::*;
use crate::script::first_chars;
use crate::units::ContentHash;

#[derive(Debug, Deserialize)]
pub(super) struct OffloadResults {
    scope: OffloadScope,
    max_total_chars: usize,
    preview_chars: usize,
    preview_tail_chars: usize,
    folder: String,
    /// With [`OffloadScope::Each`]: the last plan, and the text that was to remain of each result. If a
    /// guard refused it, it is planned again with the next results.
    #[serde(skip)]
    planned: PositionNotes<Vec<(BlockAt, Arc<str>)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OffloadScope {
    LastMessage,
    Each,
}

/// A result that may be offloaded.
struct Candidate {
    at: BlockAt,
    text: Arc<str>,
    chars: usize,
}

/// The beginning of an offloaded result.
const OPENING: &str = "<persisted-output>";

impl Stage for OffloadResults {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        let mut candidates: Vec<Candidate> =
            self.due(context).into_iter().filter_map(|at| candidate(context, at)).collect();
        let mut total: usize = candidates.iter().map(|one| one.chars).sum();
        // The largest first; of equals the oldest.
        candidates.sort_by_key(|one| std::cmp::Reverse(one.chars));
        let mut left: Vec<(BlockAt, Arc<str>)> = Vec::new();
        let mut saved = Vec::new();
        for Candidate { at, text, chars } in candidates {
            let counted = match self.scope {
                OffloadScope::LastMessage => total,
                OffloadScope::Each => chars,
            };
            if counted <= self.max_total_chars {
                break;
            }
            let name = ContentHash::of(text.as_bytes()).hex(12);
            let path = format!("{}/{name}.txt", self.folder);
            let preview = self.preview(&path, &text, chars);
            let preview_chars = preview.chars().count();
            if preview_chars < chars {
                total = total - chars + preview_chars;
                saved.push((path, text));
                left.push((at, preview.into()));
            }
        }
        left.sort_by_key(|(at, _)| *at);
        if self.scope == OffloadScope::Each && !left.is_empty() {
            self.planned.up_to_date(context).clone_from(&left);
        }
        let (count, limit) = (left.len(), self.max_total_chars);
        let reason = format!("{count} results put aside: over {limit} characters");
        let edits = Edit::blocks(context.entries(), left, CacheEffect::Breaks, &cx.counts);
        Step::Done(Ok(Patch { edits, reason, saved }))
    }
}

impl OffloadResults {
    /// The results to look at now: those of the last message, or all that are new.
    fn due(&mut self, context: &Context) -> Vec<BlockAt> {
        if self.scope == OffloadScope::LastMessage {
            return context.results_in(context.answered()..context.entries().len()).collect();
        }
        let (planned, new) = self.planned.with_new(context);
        let mut results = context.results_in(new).peekable();
        if results.peek().is_none() {
            return Vec::new();
        }
        let refused = std::mem::take(planned).into_iter().filter(|(at, left)| {
            context.entries()[at.entry].message.model_text()[at.block] != *left
        });
        refused.map(|(at, _)| at).chain(results).collect()
    }

    fn preview(&self, path: &str, text: &str, chars: usize) -> String {
        let mut left = format!("{OPENING}\nThe whole output ({chars} characters) is in {path}\n\n");
        let head = first_chars(text, self.preview_chars);
        left.push_str(head);
        if head.len() < text.len() {
            left.push_str("\n[…]\n");
            let before = first_chars(text, chars.saturating_sub(self.preview_tail_chars));
            left.push_str(&text[before.len().max(head.len())..]);
        }
        if !left.ends_with('\n') {
            left.push('\n');
        }
        left.push_str("</persisted-output>");
        left
    }
}

/// The result as a candidate for offloading; `None` if it is offloaded already.
fn candidate(context: &Context, at: BlockAt) -> Option<Candidate> {
    let entry = context.entries().get(at.entry)?;
    let text = entry.message.model_text().get(at.block)?;
    if !entry.is_verbatim(at.block) && text.starts_with(OPENING) {
        return None;
    }
    Some(Candidate { at, text: text.clone(), chars: text.chars().count() })
}

#[cfg(test)]
mod tests {
    use crate::strategy::stage::trial::{Trial, answers, asks};

    #[test]
    fn what_a_guard_refused_comes_back_with_the_next_result() {
        let mut trial = Trial::new(
            "offload_results",
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
        assert_eq!(trial.fire().unwrap().unwrap(), "3 results put aside: over 300 characters");
        assert_eq!(trial.fire().unwrap(), None);
    }
}
