//! The first and the last messages stay, and one placeholder between them.

use super::prelude::*;

pub(super) fn build(knobs: &Knobs<'_>) -> StageResult {
    let stage: DropMiddle = knobs.read()?;
    if stage.keep_first >= stage.max_messages {
        return Err(knobs.wrong("keep_first", "must be less than `max_messages`"));
    }
    Ok(Box::new(stage))
}

#[derive(Debug, Deserialize)]
struct DropMiddle {
    max_messages: usize,
    keep_first: usize,
    cut: Cut,
    snap: Snap,
    placeholder: String,
}

/// Which way a cut in front of the last messages moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Snap {
    Back,
    Forward,
}

impl Stage for DropMiddle {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        let entries = context.entries();
        if entries.len() <= self.max_messages {
            return Step::Done(Ok(Patch::default()));
        }
        let tail = entries.len() - (self.max_messages - self.keep_first);
        let middle =
            self.cut.snap_forward(entries, self.keep_first)..self.last_begin(entries, tail);
        let dropped = entries.get(middle.clone()).unwrap_or_default();
        // Nothing, or the placeholder of the last time.
        if dropped.is_empty() || matches!(dropped, [only] if is_placeholder(only)) {
            return Step::Done(Ok(Patch::default()));
        }
        let origin = Origin::derived_from(dropped);
        let total: usize = origin.replaced().iter().map(Range::len).sum();
        let text = self
            .placeholder
            .replace("{n}", &dropped.len().to_string())
            .replace("{total}", &total.to_string());
        let reason = format!("{} messages from the middle dropped", dropped.len());
        let with = match &*text {
            "" => Vec::new(),
            _ => vec![Entry::written(origin, text, Tag::Meta, &cx.counts)],
        };
        Step::Done(Ok(Patch::replacing(reason, middle, with)))
    }
}

impl DropMiddle {
    /// Where the last messages begin, if no more than those from `tail` on may stay.
    fn last_begin(&self, entries: &[Entry], tail: usize) -> usize {
        let forward = match (self.snap, self.cut) {
            (Snap::Back, cut) => return cut.snap_back(entries, tail),
            (Snap::Forward, Cut::Turn) => {
                let newest = entries.len() - 1;
                let turn = (tail..newest).find(|at| Cut::Turn.allows(entries, *at));
                turn.unwrap_or_else(|| Cut::Round.snap_forward(entries, tail))
            }
            (Snap::Forward, cut) => cut.snap_forward(entries, tail),
        };
        // The newest messages stay, even where no cut is legal among them.
        if forward < entries.len() { forward } else { self.cut.snap_back(entries, tail) }
    }
}

/// Whether some stage left the entry in place of others: dropping it alone would gain nothing.
fn is_placeholder(entry: &Entry) -> bool {
    matches!(entry.origin, Origin::Derived(_)) && entry.message.has_tag(Tag::Meta)
}

#[cfg(test)]
mod tests {
    use crate::strategy::stage::trial::{Trial, answers, asks, said, typed};

    /// How many messages are left of a turn, its answer, and a second one of which a result came last.
    fn left(knobs: &str) -> usize {
        let mut trial = Trial::new("drop_middle", &format!("placeholder = ''\n{knobs}"));
        trial.append([
            typed("Do it."),
            said("Done."),
            typed("And that."),
            asks(&[("a", "Read", "{}")]),
            answers(&[("a", "x")]),
        ]);
        trial.fire().unwrap();
        trial.context.entries().len()
    }

    #[test]
    fn a_cut_moves_either_way_and_leaves_the_newest() {
        for (knobs, stays) in [
            ("max_messages = 3\nkeep_first = 0\nsnap = 'forward'", 3),
            ("max_messages = 2\nkeep_first = 0\nsnap = 'forward'", 2),
            ("max_messages = 4\nkeep_first = 0\ncut = 'turn'\nsnap = 'forward'", 3),
            // No turn begins there but the newest.
            ("max_messages = 2\nkeep_first = 0\ncut = 'turn'\nsnap = 'forward'", 2),
            // The result stays with its call: one more than there may be.
            ("max_messages = 1\nkeep_first = 0\nsnap = 'forward'", 2),
            ("max_messages = 1\nkeep_first = 0", 2),
        ] {
            assert_eq!(left(knobs), stays, "{knobs}");
        }
    }
}
