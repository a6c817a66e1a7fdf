//! The session's whole history, for what sees all of it at each call: it makes the prompt anew, and what it made
//! for the call before is forgotten.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::external::edits_to;
use super::{Compaction, Situation, StrategyError};
use crate::context::{Applied, Context, Entry, Origin};

/// The session's messages as they came in.
#[derive(Debug, Default)]
pub(crate) struct SeenHistory {
    entries: BTreeMap<usize, Entry>,
    /// The messages that the history consisted of when the agent last rewrote it; later ones follow.
    rewritten: Vec<usize>,
    /// Whether the context is no longer all of it.
    is_edited: bool,
    /// How often the whole was begun anew: what a stage noted of one is not taken for another's.
    begun: u64,
}

impl SeenHistory {
    /// Keeps a message that is about to be appended, or was loaded.
    pub(crate) fn append(&mut self, entry: &Entry) {
        if let Some(at) = entry.origin.message() {
            self.entries.entry(at).or_insert_with(|| entry.clone());
        }
    }

    /// The agent rewrote its history: it consists of these messages now.
    pub(crate) fn rewrite(&mut self, messages: &[usize]) {
        self.rewritten = messages.to_vec();
    }

    /// All messages, each as it stands in `now` if it is there as the session has it: what the provider has since left
    /// out of it stays out.
    pub(crate) fn entries(&mut self, now: &[Entry]) -> Vec<Entry> {
        for entry in now {
            if let Origin::Verbatim(at) = entry.origin {
                self.entries.insert(at, entry.clone());
            }
        }
        let numbers = self.rewritten.iter();
        let next = numbers.clone().max().map_or(0, |last| last + 1);
        let rewritten = numbers.filter_map(|at| self.entries.get(at));
        let later = self.entries.range(next..).map(|(_, entry)| entry);
        rewritten.chain(later).cloned().collect()
    }

    /// The context is about to be changed by what does not see the whole: it is made anew at the next call.
    pub(crate) fn forgets(&mut self) {
        self.is_edited = true;
    }

    /// The whole history for stages to work on, and the context itself where it is no longer the whole.
    /// [`as_sent`](Self::as_sent) takes both back.
    pub(crate) fn whole(&mut self, context: Context) -> (Context, Option<Context>) {
        if !self.is_edited {
            return (context, None);
        }
        self.begun = self.begun.max(context.replacements()) + 1;
        let all = self.entries(context.entries());
        (Context::begun_anew(all, self.begun), Some(context))
    }

    /// The context that stages left of the whole history, as one change of the context that was sent before.
    pub(crate) fn as_sent(
        &mut self,
        left: Compaction,
        sent: Option<Context>,
        cx: &Situation,
    ) -> Compaction {
        let Some(mut sent) = sent else {
            self.is_edited = !left.applied.is_empty();
            return left;
        };
        let mut state = Compaction { applied: Vec::new(), ..left };
        if state.outcome.is_ok() {
            let target = standing(state.context.entries(), sent.entries());
            let edits = edits_to(sent.entries(), target);
            let changed = !edits.is_empty();
            match sent.apply(edits) {
                Ok(change) => {
                    sent.follow_positions_of(&state.context);
                    let reasons: Vec<&str> = left.applied.iter().map(|one| &*one.reason).collect();
                    let last = left.applied.last();
                    state.applied.extend(changed.then(|| Applied {
                        call: cx.call,
                        stage: last.map_or_else(|| "history".into(), |one| one.stage.clone()),
                        reason: reasons.join("; "),
                        change,
                        is_still_over: left.applied.iter().any(|one| one.is_still_over),
                        prepared_at: None,
                    }));
                }
                Err(source) => {
                    let stage: Arc<str> = "history".into();
                    state.outcome = Err(StrategyError::ImpossiblePatch { stage, source });
                }
            }
        }
        state.context = sent;
        state
    }
}

/// The entries of a target, each as it stands in `now` where it is there already: what keeps no state writes the same
/// at every call.
pub(crate) fn standing(target: &[Entry], now: &[Entry]) -> Vec<Entry> {
    let mut places: BTreeMap<Option<usize>, Vec<&Entry>> = BTreeMap::new();
    for entry in now {
        places.entry(entry.origin.newest()).or_default().push(entry);
    }
    let mut stands = Vec::with_capacity(target.len());
    for entry in target {
        let mut same = places.get(&entry.origin.newest()).into_iter().flatten().filter(|old| {
            old.origin == entry.origin && old.message.content() == entry.message.content()
        });
        let old = match entry.origin {
            Origin::Verbatim(_) => None,
            _ => same.next(),
        };
        stands.push(old.copied().unwrap_or(entry).clone());
    }
    stands
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Request;
    use crate::settings::SettingTable;
    use crate::step::{CallResult, Caller, drive};
    use crate::strategy::stage::trial::{answers, asks, said, situation, typed};
    use crate::strategy::trigger::Trigger;
    use crate::strategy::{Strategy as _, StrategySpec};
    use crate::tokens::{CharsPer4, CountedTexts};

    struct Nobody;

    impl Caller for Nobody {
        fn call(&mut self, _: Vec<Request>) -> Vec<CallResult> {
            Vec::new()
        }
    }

    fn strategy(stages: &str) -> Result<StrategySpec, String> {
        let table = SettingTable::parse("own.toml", stages).unwrap();
        StrategySpec::of("own", table, &Trigger::always()).map_err(|error| error.to_string())
    }

    /// What is sent is what a strategy that never saw the session before makes of all of it.
    #[test]
    fn what_was_made_for_the_call_before_is_forgotten() {
        let old = "history = 'full'\nwhen = { tokens_over = 300 }\n";
        for (stages, is_steady) in [
            (format!("[[stage]]\nkind = 'clear_results'\nkeep_last = 2\n{old}"), false),
            (format!("[[stage]]\nkind = 'clear_results'\nkeep_last = 2\nevery = 5\n{old}"), true),
            (format!("[[stage]]\nkind = 'drop_middle'\nmax_messages = 9\n{old}"), false),
            (format!("[[stage]]\nkind = 'drop_oldest'\nfit_fraction = 0.001\n{old}"), false),
            (
                format!(
                    "[[stage]]\nkind = 'clear_results'\nkeep_last = 2\n{old}[[stage]]\nkind = 'clear_inputs'\n\
                     max_chars = 9\nkeep_chars = 3\nkeep_last = 2\nhistory = 'full'\n"
                ),
                false,
            ),
        ] {
            let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
            let mut cx = situation(counts.clone());
            let spec = strategy(&stages).unwrap();
            let mut pipeline = spec.build().unwrap();
            let (mut context, mut whole) = (Context::default(), Context::default());
            let mut changes = 0;
            for call in 0..40 {
                cx.call = call;
                let id = format!("id{call}");
                let path = format!(r#"{{"path": "src/a/long/name/{call}.rs"}}"#);
                let round = match call {
                    0 => vec![typed("Do it.")],
                    _ => vec![
                        asks(&[(&id, "Read", &path)]),
                        answers(&[(&id, &"line of text ".repeat(8 + call % 3))]),
                        said("So far."),
                    ],
                };
                for message in round {
                    let origin = Origin::Verbatim(whole.entries().len());
                    let entry = Entry::new(origin, Arc::new(message), &counts);
                    let mut alone = Context::default();
                    alone.append(entry.clone());
                    let written = pipeline.on_append(alone, &cx).context;
                    written.entries().iter().for_each(|entry| context.append(entry.clone()));
                    whole.append(entry);
                }
                let before = context.size();
                let state = drive(pipeline.before_call(context, &cx), &mut Nobody);
                let mut fresh = spec.build().unwrap();
                let expected = drive(fresh.before_call(whole.clone(), &cx), &mut Nobody).context;
                let messages = |of: &Context| -> Vec<_> {
                    let entries = of.entries().iter();
                    entries.map(|entry| (entry.origin.clone(), entry.message.clone())).collect()
                };
                assert_eq!(messages(&state.context), messages(&expected), "{stages} at {call}");
                assert_eq!(state.context.size(), expected.size());
                assert_eq!(state.context.result_count(), expected.result_count());
                for one in &state.applied {
                    assert!(!one.change.edits.is_empty());
                }
                if let Some(first) = state.applied.first() {
                    changes += 1;
                    assert_eq!(first.change.before, before);
                }
                context = state.context;
            }
            assert_eq!(changes < 15, is_steady, "{stages}: {changes}");
        }
    }

    #[test]
    fn what_keeps_something_cannot_forget_it() {
        let full = "kind = 'clear_results'\nhistory = 'full'";
        for (stages, says) in [
            (
                format!("[[stage]]\n{full}\n[[stage]]\nkind = 'clear_thinking'"),
                "`own.toml`: line 3: `history = \"full\"` beside `clear_thinking`, which keeps what it did",
            ),
            (
                "[[stage]]\nkind = 'summarize'\nhistory = 'full'".to_owned(),
                "`own.toml`: line 3: `summarize` keeps something between calls, and cannot see the whole history at each",
            ),
            (
                format!("[[stage]]\n{full}\nprepare_at = {{ tokens_over = 9 }}"),
                "`own.toml`: line 3: `clear_results` prepares what it does later, and cannot see the whole history at each",
            ),
            (
                format!("[[stage]]\n{full}\nmode = 'cache_edit'"),
                "`own.toml`: line 3: `clear_results` has the provider clear, and cannot see the whole history at each",
            ),
            (
                format!("[[stage]]\n{full}\n[overflow]\nstage = 'summarize'"),
                "`own.toml`: line 3: `history = \"full\"` beside `summarize`, which keeps what it did",
            ),
            (
                "[[stage]]\nkind = 'clear_results'\nhistory = 'all'".to_owned(),
                "`own.toml`: line 3: `clear_results.history` must be one of `kept`, `full`, not `\"all\"`",
            ),
        ] {
            let said = strategy(&stages).map(|_| ()).unwrap_err();
            assert_eq!(said.lines().next(), Some(says));
        }
    }
}
