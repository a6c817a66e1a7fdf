//! Other plans over sessions that are loaded already, which sweeps run; and the conditions under which the
//! results of two plans may be compared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;

use super::{Plan, manifest_of, probes};
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

/// Whether sessions are prepared in the same way under both: windows and strategies may differ.
fn prepares_alike(one: &Scenario, other: &Scenario) -> bool {
    let [one, other] = [one, other].map(|scenario| {
        json!([
            scenario.provider,
            scenario.selection,
            scenario.sizes,
            scenario.window.head,
            scenario.window.line(),
            scenario.cache.prices.as_ref().map(|(path, _)| path),
            scenario.cache,
            scenario.faults,
            scenario.models.values(),
        ])
    });
    one == other
}

impl Plan {
    /// From now on each session is prepared once, in the first [variant](Self::variant) that runs
    /// it, and kept as long as the plan is: for many short runs of the same sessions.
    pub fn keep_prepared(&mut self) {
        for loaded in &mut self.sessions {
            loaded.cached = Some(Arc::default());
        }
    }

    /// Another scenario over those of the same sessions that `keeps` wants, without loading or counting
    /// them again: settings of strategies, windows and the selection of items may differ, sessions and counter
    /// may not.
    #[must_use]
    pub fn variant(&self, scenario: Scenario, keeps: &dyn Fn(&str) -> bool) -> Self {
        let alike = prepares_alike(&self.scenario, &scenario);
        let kept = self.sessions.iter().zip(&self.manifest.sessions);
        let (sessions, entries) = kept
            .filter(|(loaded, _)| keeps(loaded.id()))
            .enumerate()
            .map(|(place, (loaded, entry))| {
                let (mut loaded, mut entry) = (loaded.clone(), entry.clone());
                loaded.place = place;
                if !alike {
                    loaded.cached = None;
                }
                if scenario.selection != self.scenario.selection {
                    let selection = &scenario.selection;
                    let session = &loaded.session;
                    loaded.planted = probes::planted(session, &loaded.probes, selection);
                    let items = selection.items_at(&session.id, session.calls(), &loaded.probes);
                    entry.items = items.len();
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;

    use super::*;
    use crate::record::CellRecord;
    use crate::record::journal::Journal;
    use crate::runner::{Progress, Workers, run};
    use crate::settings::SettingTable;
    use crate::stop::StopToken;
    use crate::tokens::{CountedTexts, SHORT_BYTES, TokenCounter};
    use crate::units::Tokens;

    /// Counts characters, and how often each text was given to it.
    #[derive(Debug, Default)]
    struct Tally(Mutex<BTreeMap<String, usize>>);

    impl TokenCounter for Tally {
        fn name(&self) -> &'static str {
            "chars/4"
        }

        fn count(&self, text: &str) -> Tokens {
            *self.0.lock().unwrap().entry(text.to_owned()).or_default() += 1;
            Tokens(text.chars().count().div_ceil(4) as u64)
        }
    }

    #[derive(Debug)]
    struct Silent;

    impl Progress for Silent {
        fn cell(&self, _: &CellRecord) {}
        fn session(&self, _: &str, _: usize) {}
    }

    /// No model is asked: answers of readers are counted as they come.
    fn scenario(window: u64, pacing: u64) -> Scenario {
        let text = format!(
            "counter = \"chars/4\"\nmodels.reader = \"none\"\n[window]\ntokens = {window}\n[cache]\npacing_seconds = {pacing}\n\
             [[sessions]]\nsynthetic = {{ family = \"code-review\", seed = 1, rounds = 12 }}\ncount = 2\n\
             [[strategies]]\npreset = \"observation-masking\"\nset = {{ clear_results.keep_last = 2 }}\n"
        );
        let table = SettingTable::parse("kept.toml", &text).unwrap();
        Scenario::read(&table, Path::new(".")).unwrap()
    }

    fn go(plan: &Plan) -> usize {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), plan.manifest()).unwrap();
        let workers = Workers { threads: 1, stop: StopToken::default() };
        let outcome = run(plan, &mut journal, &workers, &Silent).unwrap();
        assert_eq!(outcome.outstanding, 0);
        outcome.done_now
    }

    #[test]
    fn over_all_windows_a_session_is_made_ready_once_and_each_of_its_texts_counted_once() {
        let mut plan = Plan::new(scenario(60_000, 30)).unwrap();
        // One for each session: what two sessions have in common each counts for itself.
        let mut tallies = Vec::new();
        for loaded in &mut plan.sessions {
            let tally = Arc::new(Tally::default());
            loaded.count_by(Arc::new(CountedTexts::new(tally.clone())));
            tallies.push(tally);
        }
        plan.keep_prepared();
        for window in [60_000, 20_000, 12_000] {
            let variant = plan.variant(scenario(window, 30), &|_| true);
            assert_eq!(go(&variant), 6);
            for (own, kept) in variant.sessions.iter().zip(&plan.sessions) {
                let (own, kept) = (own.cached.as_ref().unwrap(), kept.cached.as_ref().unwrap());
                assert!(Arc::ptr_eq(own, kept) && kept.get().is_some());
            }
            for (loaded, tally) in plan.sessions.iter().zip(&tallies) {
                let times = tally.0.lock().unwrap();
                let session = loaded.texts().unwrap().session;
                let own: BTreeMap<&str, usize> = session
                    .texts()
                    .filter(|text| text.len() > SHORT_BYTES)
                    .map(|text| (&**text, times[&**text]))
                    .collect();
                let again: Vec<_> = own.iter().filter(|(_, times)| **times != 1).collect();
                assert!(own.len() > 20 && again.is_empty(), "{again:?}");
            }
        }
    }

    #[test]
    fn what_is_made_ready_otherwise_is_not_taken_over() {
        let mut plan = Plan::new(scenario(60_000, 30)).unwrap();
        plan.keep_prepared();
        let kept = |pacing| {
            let variant = plan.variant(scenario(20_000, pacing), &|_| true);
            variant.sessions.iter().all(|loaded| loaded.cached.is_some())
        };
        assert!(kept(30));
        assert!(!kept(600));
    }
}
