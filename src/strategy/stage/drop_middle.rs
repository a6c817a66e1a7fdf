//! The first and the last messages stay, and one placeholder between them.

use std::sync::Arc;

use crate::context::{Context, Edit, Entry, Origin, Patch};
use crate::session::{Message, Role, Tag};
use crate::settings::SettingError;
use crate::step::Step;
use crate::strategy::cut::Cut;
use crate::strategy::knob::{Default, Knob, KnobKind, KnobReader};
use crate::strategy::{Situation, Stage, StageError, StageKind};

/// `kind = "drop_middle"`.
pub const KIND: StageKind = StageKind {
    name: "drop_middle",
    description: "the first and the last messages stay, one placeholder stands for the middle",
    knobs: KNOBS,
    breaks: &[],
    build,
};

const KNOBS: &[Knob] = &[
    Knob {
        name: "max_messages",
        kind: KnobKind::Whole(1, u64::MAX),
        default: Default::Whole(50),
        doc: "with more messages than this the middle goes; so many stay, the placeholder not counted",
    },
    Knob {
        name: "keep_first",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(3),
        doc: "so many of those that stay are the first ones, the others the last",
    },
    Knob {
        name: "cut",
        kind: KnobKind::Choice(Cut::WORDS),
        default: Default::Text("pair"),
        doc: "where it may be cut: `pair` never between a tool use and its result, `none` anywhere; \
              more stays where a cut has to move",
    },
    Knob {
        name: "placeholder",
        kind: KnobKind::Text,
        default: Default::Text("[{n} messages left out]"),
        doc: "what stands for the middle; `{n}` is how many messages it takes the place of now, \
              `{total}` how many of the session's it stands for",
    },
];

fn build(knobs: &mut KnobReader<'_>) -> Result<Box<dyn Stage>, SettingError> {
    let max_messages = knobs.count("max_messages")?;
    let keep_first = knobs.count("keep_first")?;
    if keep_first >= max_messages {
        return Err(knobs.wrong("keep_first", "must be less than `max_messages`"));
    }
    Ok(Box::new(DropMiddle {
        max_messages,
        keep_first,
        cut: Cut::named(knobs.choice("cut")?),
        placeholder: knobs.text("placeholder")?,
    }))
}

#[derive(Debug)]
struct DropMiddle {
    max_messages: usize,
    keep_first: usize,
    cut: Cut,
    placeholder: String,
}

impl Stage for DropMiddle {
    fn plan<'a>(
        &'a mut self,
        context: &Context,
        cx: &'a Situation,
    ) -> Step<'a, Result<Patch, StageError>> {
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
        let total: usize = match &origin {
            Origin::Derived(ranges) => ranges.iter().map(ExactSizeIterator::len).sum(),
            _ => 0,
        };
        let text = self
            .placeholder
            .replace("{n}", &dropped.len().to_string())
            .replace("{total}", &total.to_string());
        let message = Message::text(Role::User, text).with_tags([Tag::Meta]);
        let reason = format!("{} messages from the middle dropped", dropped.len());
        let with = vec![Entry::new(origin, Arc::new(message), &cx.counts)];
        Step::Done(Ok(Patch {
            edits: vec![Edit::Replace {
                entries: middle,
                with,
            }],
            reason,
            saved: Vec::new(),
        }))
    }
}

/// Whether some stage left the entry in place of others: dropping it alone would gain nothing.
fn is_placeholder(entry: &Entry) -> bool {
    matches!(entry.origin, Origin::Derived(_)) && entry.message.has_tag(Tag::Meta)
}
