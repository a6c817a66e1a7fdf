//! Keeps a part of the context chosen by rule: baselines that any model must beat.

use std::sync::Arc;

use crate::context::{Context, Edit, Entry, Origin, Patch};
use crate::session::{Message, Role, Tag};
use crate::settings::SettingError;
use crate::step::Step;
use crate::strategy::knob::{Default, Knob, KnobKind, KnobReader};
use crate::strategy::{Situation, Stage, StageError, StageKind, cut};
use crate::units::Tokens;

/// `kind = "extract"`.
pub const KIND: StageKind = StageKind {
    name: "extract",
    description: "whole API rounds are kept up to a budget, chosen by rule",
    knobs: KNOBS,
    breaks: &[],
    build,
};

const KNOBS: &[Knob] = &[
    Knob {
        name: "method",
        kind: KnobKind::Choice(&["tail"]),
        default: Default::Text("tail"),
        doc: "which rounds are kept: `tail` keeps the newest",
    },
    Knob {
        name: "budget_tokens",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Required,
        doc: "so many tokens of messages are kept; the newest round always is",
    },
];

/// Stands for what was cut. The rounds that are kept begin with the assistant, and a conversation
/// must begin with the user.
const PLACEHOLDER: &str = "[Earlier messages were cut.]";

fn build(knobs: &mut KnobReader<'_>) -> Result<Box<dyn Stage>, SettingError> {
    knobs.choice("method")?;
    Ok(Box::new(Tail {
        budget: knobs.tokens("budget_tokens")?,
    }))
}

#[derive(Debug)]
struct Tail {
    budget: Tokens,
}

impl Stage for Tail {
    fn plan<'a>(
        &'a mut self,
        context: &Context,
        cx: &'a Situation,
    ) -> Step<'a, Result<Patch, StageError>> {
        let entries = context.entries();
        let (_, rounds) = cut::rounds(entries);
        let message = Message::text(Role::User, PLACEHOLDER).with_tags([Tag::Meta]);
        let mut placeholder = Entry::new(Origin::Authored, Arc::new(message), &cx.counts);
        let mut kept = placeholder.size.tokens;
        let mut start = entries.len();
        for round in rounds.iter().rev() {
            let size: Tokens = entries[round.clone()]
                .iter()
                .map(|entry| entry.size.tokens)
                .sum();
            if kept + size > self.budget && start < entries.len() {
                break;
            }
            kept += size;
            start = round.start;
        }
        // Nothing to cut, or nothing but the placeholder of the last time.
        if context.size().tokens <= self.budget || start <= 1 || start == entries.len() {
            return Step::Done(Ok(Patch::default()));
        }
        placeholder.origin = Origin::derived_from(&entries[..start]);
        Step::Done(Ok(Patch {
            edits: vec![Edit::Replace {
                entries: 0..start,
                with: vec![placeholder],
            }],
            reason: format!("the newest rounds within {} tokens are kept", self.budget),
            saved: Vec::new(),
        }))
    }
}
