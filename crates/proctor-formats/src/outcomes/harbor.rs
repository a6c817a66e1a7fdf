//! Harbor writes a `result.json` for each trial, in a folder of its own. The strategy and the trial are in the base URL
//! that the agent was given, `…/s/STRATEGY/r/TRIAL`.

use std::sync::LazyLock;

use regex::Regex;

use super::{Outcome, Problem, only};
use crate::prelude::*;

/// Of several rewards, the one that decides.
const REWARD: &str = "reward";

/// The strategy of a base URL, and its trial: they stand in any order.
static PARTS: LazyLock<[Option<Regex>; 2]> = LazyLock::new(|| {
    [
        r#""https?://[^"]*?/s/([^/"]+)[/"]"#,
        r#""https?://[^"]*?/r/(\d{1,4})[/"]"#,
    ]
    .map(|part| Regex::new(part).ok())
});

pub(super) fn read(mut trial: Object<'_>) -> Option<Result<Vec<Outcome>, Problem>> {
    let task = trial.take_text("task_name")?;
    let place = format!(": trial {:?}", trial.take_text("trial_name")?);
    let failed = trial.has("exception_info");
    let rewards = trial.inner("verifier_result").inner("rewards");
    let rewards = rewards.into_entries().filter_map(|(name, value)| {
        let value = serde_json::from_str(value.get()).ok()?;
        Some((name.into_owned(), value))
    });
    let mut rewards: Vec<(String, f64)> = rewards.collect();
    if rewards.iter().any(|(name, _)| name == REWARD) {
        rewards.retain(|(name, _)| name == REWARD);
    }
    let score = match only(&rewards, &place) {
        Ok(score) => score.or(failed.then_some(0.0)),
        Err(problem) => return Some(Err(problem)),
    };
    // A trial that has not ended yet has no score.
    let mut outcome = score.map(|score| Outcome::new(&task, 0, score, place));
    let agent = trial.inner("config").take("agent");
    if let (Some(outcome), Some(agent)) = (&mut outcome, agent) {
        let [strategy, trial] = PARTS.each_ref().map(|part| {
            let found = part.as_ref()?.captures(agent.get())?;
            Some(found[1].to_owned())
        });
        if strategy.is_some() {
            outcome.strategy = strategy;
            outcome.trial = trial
                .and_then(|trial| trial.parse().ok())
                .unwrap_or_default();
        }
    }
    Some(Ok(outcome.into_iter().collect()))
}
