//! Harbor writes a `result.json` for each trial, in a folder of its own. The strategy and the trial are in the base URL
//! that the agent was given, `…/s/STRATEGY/r/TRIAL`.

use std::sync::LazyLock;

use regex::Regex;

use super::{Problem, TrialOutcome, only};
use crate::prelude::*;

/// Of several rewards, the one that decides.
const REWARD: &str = "reward";

/// The strategy of a base URL, and its trial: they stand in any order.
static PARTS: LazyLock<[Option<Regex>; 2]> = LazyLock::new(|| {
    [r#""https?://[^"]*?/s/([^/"]+)[/"]"#, r#""https?://[^"]*?/r/(\d{1,4})[/"]"#]
        .map(|part| Regex::new(part).ok())
});

pub(super) fn read(mut trial: Object<'_>) -> Option<Result<Vec<TrialOutcome>, Problem>> {
    let task = trial.take_text("task_name")?;
    let name = trial.take_text("trial_name")?;
    let place = format!(": trial {name:?}");
    let rewards = trial.inner("verifier_result").inner("rewards").into_entries();
    let mut rewards: Vec<(String, &RawValue)> =
        rewards.map(|(name, value)| (name.into_owned(), value)).collect();
    if rewards.iter().any(|(name, _)| name == REWARD) {
        rewards.retain(|(name, _)| name == REWARD);
    }
    let (score, unread) = match only(&rewards, &place) {
        Ok(found) => found,
        Err(problem) => return Some(Err(problem)),
    };
    let steps = trial.objects("step_results");
    let failures = steps.filter_map(|mut step| step.take_object("exception_info"));
    let failure = trial.take_object("exception_info").into_iter();
    let failures: Vec<Object<'_>> = failure.chain(failures).collect();
    let failed = !failures.is_empty();
    // A trial that has not ended yet has no score.
    let score = match failures.into_iter().find_map(not_run) {
        Some(why) => Some(Err(why)),
        None => score.or(failed.then_some(Ok(0.0))),
    };
    let mut outcome = score.map(|score| TrialOutcome {
        unread,
        attempt: Some(name.to_string()),
        ..TrialOutcome::new(&task, 0, score, place)
    });
    let agent = trial.inner("config").take("agent");
    if let (Some(outcome), Some(agent)) = (&mut outcome, agent) {
        let [strategy, trial] =
            PARTS.each_ref().map(|part| Some(part.as_ref()?.captures(agent.get())?[1].to_owned()));
        if strategy.is_some() {
            outcome.strategy = strategy;
        }
        outcome.trial = trial.and_then(|trial| trial.parse().ok()).unwrap_or_default();
    }
    Some(Ok(outcome.into_iter().collect()))
}

/// Why a trial did not run, where Harbor says that its reward means nothing: the API refused, or the container failed.
fn not_run(mut failure: Object<'_>) -> Option<String> {
    let invalid = failure.inner("policy").take_denial("has_valid_reward");
    let [kind, message] = ["exception_type", "exception_message"].map(|key| failure.take_text(key));
    invalid.then(|| format!("{}: {}", kind.unwrap_or_default(), message.unwrap_or_default()))
}
