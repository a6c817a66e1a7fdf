//! Other plans over sessions that are loaded already, which sweeps run; and the conditions under which the
//! results of two plans may be compared.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::{Plan, manifest_of};
use crate::probe::judge::{self, Judging};
use crate::record::{JUDGE_PROMPT, JUDGE_RUBRIC, JUDGED, evaluators};
use crate::scenario::{LineSource, Scenario};
use crate::units::Tokens;

/// The conditions that decide results and may differ between two runs of the same sessions, by
/// name, in words. Models, counter, faults and window mode have places of their own in the
/// manifest.
pub(super) fn conditions(scenario: &Scenario) -> BTreeMap<String, String> {
    let (window, cache, models) = (&scenario.window, &scenario.cache, &scenario.models);
    let sizes = scenario.sizes.name();
    let head = window.head.map(|head| format!("{sizes}, head {head} where unknown"));
    let reserves = format!(
        "max_output {}, overflow_reserve {}",
        window.max_output.unwrap_or_default().0,
        window.overflow_reserve.0
    );
    let own = cache.scheme.as_ref();
    let scheme = own.map(|own| json!(own).to_string());
    let cached = format!(
        "model {}, breakpoints {}, scheme {}, {} s from call to call",
        cache.model.as_deref().unwrap_or("of the session"),
        cache.breakpoints.name(),
        scheme.as_deref().unwrap_or("of the provider"),
        cache.pacing_seconds
    );
    let judged = match models.judging {
        Judging::Needed => "those that rules cannot grade",
        Judging::All => "all",
    };
    let by_judges = !models.judges.is_empty();
    let snippets = scenario.recovery.map(|recovery| {
        let (number, tokens) = (recovery.snippets, recovery.snippet_tokens);
        format!("{number} snippets of {tokens} tokens")
    });
    let trigger = json!(scenario.trigger).to_string();
    let asking = &models.asking;
    let found = [
        (evaluators::EVALUATORS, Some(evaluators::all())),
        ("provider", Some(scenario.provider.to_string())),
        ("sizes", Some(head.unwrap_or_else(|| sizes.to_owned()))),
        ("window reserves", Some(reserves)),
        ("line", (window.line() == Some(LineSource::Rule)).then(|| "by rule".to_owned())),
        ("cache", Some(cached)),
        ("reader window", asking.window.map(in_words)),
        ("reader tools", left_out(asking.omits_tools)),
        ("reader output", asking.longest.map(in_words)),
        ("reader escape", left_out(asking.omits_escape)),
        (JUDGE_RUBRIC, by_judges.then(judge::rubric_hash)),
        (JUDGE_PROMPT, by_judges.then(judge::prompt_id)),
        (JUDGED, by_judges.then(|| judged.to_owned())),
        ("items", scenario.selection.in_words()),
        ("recovery", snippets),
        ("trigger", window.is_matched.then_some(trigger)),
    ]
    .into_iter()
    .filter_map(|(name, words)| Some((name.to_owned(), words?)));
    found.collect()
}

fn in_words(tokens: Tokens) -> String {
    format!("{} tokens", tokens.0)
}

fn left_out(is_left_out: bool) -> Option<String> {
    is_left_out.then(|| "left out".to_owned())
}

impl Plan {
    /// Another scenario over those of the same sessions that `keeps` wants, without loading or counting
    /// them again: settings of strategies, windows and the selection of items may differ, sessions and counter
    /// may not.
    #[must_use]
    pub fn variant(&self, scenario: Scenario, keeps: &dyn Fn(&str) -> bool) -> Self {
        let kept = self.sessions.iter().zip(&self.manifest.sessions);
        let (sessions, entries) = kept
            .filter(|(loaded, _)| keeps(loaded.id()))
            .enumerate()
            .map(|(place, (loaded, entry))| {
                let (mut loaded, mut entry) = (loaded.clone(), entry.clone());
                loaded.place = place;
                if scenario.selection != self.scenario.selection {
                    entry.items = loaded.items(&scenario.selection).len();
                }
                (loaded, entry)
            })
            .unzip();
        let mut manifest = manifest_of(&scenario, entries, &self.prices);
        let own = &self.manifest;
        manifest.calibrations.clone_from(&own.calibrations);
        manifest.left_out.clone_from(&self.manifest.left_out);
        Self {
            manifest,
            sessions,
            // Said where the whole plan was made.
            passed_over: Vec::new(),
            lost_lines: BTreeSet::new(),
            sources: Vec::new(),
            scenario,
            prices: self.prices.clone(),
            asked_prices: self.asked_prices.clone(),
            models: self.models.clone(),
        }
    }

    /// The same plan without these sessions, which count as left out for this reason.
    #[must_use]
    pub fn without(&self, ids: &BTreeSet<String>, reason: String) -> Self {
        let mut plan = self.variant(self.scenario.clone(), &|id| !ids.contains(id));
        *plan.manifest.left_out.entry(reason).or_default() += ids.len();
        plan
    }
}
