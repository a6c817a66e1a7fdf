//! Reads the order of a rollout's records: which call a bill belongs to, what triggered a compaction.

use super::super::openai_responses::items::ResponsesItem;
use super::RolloutStep;
use crate::prelude::*;

/// Until this minor version of Codex 0 a bill is written before the items of its response, as far as the file shows
/// it: in public rollouts of 0.42 to 0.64 (2,577 of 2,581 bills), and behind them from 0.72 on.
const BILLS_AFTER_ITEMS: u64 = 72;

/// Codex's own count of reasoning (`codex-rs/core`, `estimate_reasoning_length`, then four bytes a token) over the
/// tokens that are billed for it, in percent, by the beginning of the model's name: measured on public rollouts, of
/// 5.5 and 5.6 by the sizes at which they compacted.
const REASONING_PERCENT: [(&str, u64); 8] = [
    ("gpt-5-codex", 74),
    ("gpt-5.1", 98),
    ("gpt-5.2", 115),
    ("gpt-5.3", 128),
    ("gpt-5.4", 119),
    ("gpt-5.5", 122),
    ("gpt-5.6", 145),
    ("gpt-5", 80),
];

/// Whether this file has each bill before the items of its response.
pub(super) fn bills_first(steps: &[RolloutStep], version: Option<&str>) -> bool {
    let first = steps.iter().find(|step| step.is_bill() || step.is_models());
    let numbers = version.unwrap_or_default().strip_prefix("0.");
    let minor = numbers.and_then(|rest| rest.split('.').next()?.parse::<u64>().ok());
    first.is_some_and(RolloutStep::is_bill) && minor.is_some_and(|minor| minor < BILLS_AFTER_ITEMS)
}

/// Estimates Codex's own token count of reasoning from the billed tokens, for files without its content.
pub(super) fn as_codex_counts(billed: Tokens, model: &str) -> Tokens {
    let known = REASONING_PERCENT.iter().find(|(name, _)| model.starts_with(name));
    known.map_or(billed, |(_, percent)| Tokens(billed.0.saturating_mul(*percent) / 100))
}

/// Codex's own token count of a reasoning item: three quarters of the encrypted length, less 650 bytes, divided
/// by four.
pub(super) fn reasons(raw: &RawValue) -> Option<RolloutStep> {
    if !raw.get().contains("\"encrypted_content\"") {
        return None;
    }
    let mut item = Object::read(raw)?;
    let content = item.take_text("encrypted_content")?;
    // A redaction mark is far shorter than any encrypted content.
    let tokens = (content.len() / 4 * 3).saturating_sub(650) / 4;
    (&*item.take_type() == "reasoning" && tokens > 0)
        .then_some(RolloutStep::Reasons(Tokens(tokens as u64)))
}

/// Gives compactions a trigger where the file has no tasks: behind a tool's answer the product compacted, and
/// between an answer of the model and what a user types a person did.
pub(super) fn tell_triggers(steps: &mut [RolloutStep]) {
    fn says(step: &RolloutStep) -> bool {
        matches!(step, RolloutStep::Item(item, _) if !matches!(item, ResponsesItem::Nothing))
    }
    for at in 0..steps.len() {
        let (before, after) = steps.split_at_mut(at);
        let Some((RolloutStep::Compacted(trigger @ None, ..), after)) = after.split_first_mut()
        else {
            continue;
        };
        *trigger =
            match (before.iter().rfind(|step| says(step)), after.iter().find(|step| says(step))) {
                (Some(RolloutStep::Item(before, _)), _) if is_answer(before) => Some("auto"),
                (Some(before), Some(next)) if before.is_models() && next.is_typed() => {
                    Some("manual")
                }
                _ => None,
            };
    }
}

/// Puts each bill behind the items of its response, in front of which it was written.
pub(super) fn bills_after_items(steps: Vec<RolloutStep>) -> Vec<RolloutStep> {
    let mut placed = Vec::with_capacity(steps.len());
    let mut bill = None;
    for step in steps {
        let answers = matches!(&step, RolloutStep::Item(item, _) if is_answer(item));
        if !answers && !step.is_of_response() {
            placed.extend(bill.take());
        }
        match step {
            RolloutStep::Bill(..) => bill = Some(step),
            _ => placed.push(step),
        }
    }
    placed.extend(bill);
    placed
}

/// Whether a tool answers.
pub(super) fn is_answer(item: &ResponsesItem) -> bool {
    matches!(item, ResponsesItem::Other(blocks) if blocks.iter().any(ContentBlock::is_result))
}

/// Puts the calls of each response before their results. Words and thoughts after a result begin
/// another response.
pub(super) fn by_response(queue: Vec<(ResponsesItem, When)>) -> Vec<(ResponsesItem, When)> {
    let mut placed = Vec::with_capacity(queue.len());
    let mut answers = Vec::new();
    for (item, time) in queue {
        match &item {
            ResponsesItem::Model(blocks) if !blocks.iter().all(ContentBlock::is_use) => {
                placed.append(&mut answers);
            }
            _ if is_answer(&item) => {
                answers.push((item, time));
                continue;
            }
            _ => {}
        }
        placed.push((item, time));
    }
    placed.append(&mut answers);
    placed
}
