//! The oldest part of the context goes until the rest fits.

use crate::context::{Context, Edit, Patch};
use crate::settings::SettingError;
use crate::step::Step;
use crate::strategy::knob::{Default, Knob, KnobKind, KnobReader};
use crate::strategy::{Situation, Stage, StageError, StageKind, cut};
use crate::units::Tokens;

/// `kind = "drop_oldest"`.
pub const KIND: StageKind = StageKind {
    name: "drop_oldest",
    description: "whole units are dropped from the oldest end until the prompt fits",
    knobs: KNOBS,
    breaks: &[],
    build,
};

const KNOBS: &[Knob] = &[
    Knob {
        name: "unit",
        kind: KnobKind::Choice(&["round", "message"]),
        default: Default::Text("round"),
        doc: "what is dropped at once: a `round` is an assistant message with what answers it; \
              `message` has no pair guard",
    },
    Knob {
        name: "fit_fraction",
        kind: KnobKind::Fraction,
        default: Default::Fraction(1.0),
        doc: "the prompt fits when it fills no more than this share of the window",
    },
    Knob {
        name: "max_steps",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(0),
        doc: "at most so many units are dropped at once; 0 for as many as it takes",
    },
    Knob {
        name: "pin_first",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(1),
        doc: "so many messages at the front are never dropped, and no round that one of them is in",
    },
];

fn build(knobs: &mut KnobReader<'_>) -> Result<Box<dyn Stage>, SettingError> {
    Ok(Box::new(DropOldest {
        by_round: knobs.choice("unit")? == "round",
        fit_fraction: knobs.fraction("fit_fraction")?,
        max_steps: knobs.count("max_steps")?,
        pin_first: knobs.count("pin_first")?,
    }))
}

#[derive(Debug)]
struct DropOldest {
    by_round: bool,
    fit_fraction: f64,
    max_steps: usize,
    pin_first: usize,
}

impl Stage for DropOldest {
    fn plan<'a>(
        &'a mut self,
        context: &Context,
        cx: &'a Situation,
    ) -> Step<'a, Result<Patch, StageError>> {
        let entries = context.entries();
        let room = cx.window.tokens - cx.window.overflow_reserve;
        let target = room.fraction(self.fit_fraction);
        let mut prompt = cx.prompt(context).tokens;
        let pinned = self.pin_first.min(entries.len());
        // Where units begin; the last one always stays. What stands before the first response
        // begins the conversation, and is no round.
        let starts: Vec<usize> = if self.by_round {
            let (_, rounds) = cut::rounds(entries);
            rounds.iter().map(|round| round.start).collect()
        } else {
            (0..entries.len()).collect()
        };
        let mut starts = starts.into_iter().filter(|at| *at >= pinned);
        let start = starts.next().unwrap_or(entries.len());
        let mut ends: Vec<usize> = starts.collect();
        if self.max_steps > 0 {
            ends.truncate(self.max_steps);
        }
        let mut end = start;
        let mut units = 0;
        for next in ends {
            if prompt <= target {
                break;
            }
            let freed: Tokens = entries[end..next]
                .iter()
                .map(|entry| entry.size.tokens)
                .sum();
            prompt = prompt - freed;
            end = next;
            units += 1;
        }
        if end == start {
            return Step::Done(Ok(Patch::default()));
        }
        Step::Done(Ok(Patch {
            edits: vec![Edit::Replace {
                entries: start..end,
                with: Vec::new(),
            }],
            reason: format!("the {units} oldest units dropped to fit {target} tokens"),
            saved: Vec::new(),
        }))
    }
}
