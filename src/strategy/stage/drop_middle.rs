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
    placeholder: String,
}

impl Stage for DropMiddle {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        let entries = context.entries();
        if entries.len() <= self.max_messages {
            return Step::Done(Ok(Patch::default()));
        }
        let tail = entries.len() - (self.max_messages - self.keep_first);
        let middle =
            self.cut.snap_forward(entries, self.keep_first)..self.cut.snap_back(entries, tail);
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
        let with = vec![Entry::written(origin, text, Tag::Meta, &cx.counts)];
        Step::Done(Ok(Patch::replacing(reason, middle, with)))
    }
}

/// Whether some stage left the entry in place of others: dropping it alone would gain nothing.
fn is_placeholder(entry: &Entry) -> bool {
    matches!(entry.origin, Origin::Derived(_)) && entry.message.has_tag(Tag::Meta)
}
