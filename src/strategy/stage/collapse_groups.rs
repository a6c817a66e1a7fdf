//! The oldest API rounds become short accounts, group by group, before room runs out.
//!
//! Claude Code's context collapse is published as its two lines only, and as the promise that more
//! detail stays than in one summary. How rounds are grouped, and how far a collapse goes, is ours.

use super::prelude::*;
use crate::model::Task;
use crate::step::CallResult;
use crate::strategy::model_text;
use crate::strategy::stage::json_of;

const INSTRUCTIONS: &str = include_str!("../template/group.md");

/// Variables of a prompt of the user's own that have no value here.
const UNFIT: [(&str, &str); 2] = [
    (own_prompt::PREVIOUS_SUMMARY, "and a group has no earlier summary"),
    (own_prompt::FOCUS, "and an account of a group has no focus"),
];

pub(super) fn build(knobs: &Knobs<'_>) -> StageResult {
    let stage = CollapseGroups { own: OwnPrompt::read(knobs, &UNFIT)?, ..knobs.read()? };
    if stage.target > stage.commit_at {
        return Err(knobs.wrong("target", "must not be above `commit_at`"));
    }
    Ok(Box::new(stage))
}

#[derive(Debug, Deserialize)]
struct CollapseGroups {
    commit_at: f64,
    block_at: f64,
    target: f64,
    group_rounds: usize,
    keep_last_rounds: usize,
    max_output_tokens: Tokens,
    prefix: String,
    #[serde(skip)]
    own: Option<OwnPrompt>,
    /// Sub-agents that would have been blocked since the last collapse.
    #[serde(skip)]
    blocked: u64,
}

impl Stage for CollapseGroups {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        // A refused prompt is over any line.
        if cx.overflow.is_none() && !reaches(cx.prompt(context), self.commit_at, cx) {
            return Step::Done(Ok(Patch::default()));
        }
        let groups = self.groups(context, cx);
        if groups.is_empty() {
            return Step::Done(Ok(Patch::default()));
        }
        let entries = context.entries();
        let grouped = groups.iter().map(|group| &entries[group.clone()]);
        let requests = grouped.clone().map(|group| self.request(group, cx)).collect();
        let origins: Vec<Origin> = grouped.map(Origin::derived_from).collect();
        Step::ask_all(requests, move |answers| {
            Step::Done(self.collapsed(groups, origins, answers, cx))
        })
    }

    fn after_call<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        if let Some((response, before)) = context.entries().split_last()
            && !before.is_empty()
            && reaches(cx.prompt(context) - cx.scale.text(response.size()), self.block_at, cx)
        {
            let uses = response.message.tool_uses();
            let agents = uses.filter(|(_, tool)| tool.class == ToolClass::Agent);
            self.blocked += agents.count() as u64;
        }
        Step::Done(Ok(Patch::default()))
    }

    /// The oldest API round: accounts and typed messages in front of it stay.
    fn edge(&self, context: &Context) -> Option<usize> {
        context.entries().iter().position(|entry| entry.message.role() == Role::Assistant)
    }

    fn blocks_agents_at(&self) -> Option<f64> {
        Some(self.block_at)
    }
}

/// Whether a prompt of this size fills that share of the effective window.
fn reaches(prompt: Tokens, share: f64, cx: &Situation) -> bool {
    prompt.0 as f64 >= cx.window.effective().0 as f64 * share
}

impl CollapseGroups {
    /// The entries of each group that is to be collapsed, the oldest first.
    fn groups(&self, context: &Context, cx: &Situation) -> Vec<Range<usize>> {
        let entries = context.entries();
        let (_, rounds) = cut::rounds(entries);
        let old = rounds.len().saturating_sub(self.keep_last_rounds);
        let target = cx.window.effective().fraction(self.target);
        let mut prompt = cx.prompt(context);
        let mut groups: Vec<Range<usize>> = Vec::new();
        let mut group: Option<Range<usize>> = None;
        let mut members = 0;
        for (at, round) in rounds[..old].iter().enumerate() {
            if prompt <= target {
                return groups;
            }
            // The user's words follow the results that answer the model, and stay.
            let typed = entries[round.clone()].iter().position(Entry::is_typed);
            // If their message is between call and results, or holds results, the round is cut before
            // the call.
            let end =
                typed.map_or(round.end, |typed| Cut::Pair.snap_back(entries, round.start + typed));
            let start = group.take().map_or(round.start, |group| group.start);
            // It may have come before the results: then their call is not summarised either.
            let end = Cut::Pair.snap_back(entries, end).max(start);
            members += 1;
            if typed.is_none() && members < self.group_rounds && at + 1 < old {
                group = Some(start..end);
                continue;
            }
            members = 0;
            let size: Size = entries[start..end].iter().map(Entry::size).sum();
            let size = cx.scale.text(size);
            if size > self.max_output_tokens {
                prompt = prompt - (size - self.max_output_tokens);
                groups.push(start..end);
            }
        }
        groups
    }

    fn request(&self, entries: &[Entry], cx: &Situation) -> Request {
        let json = json_of(entries);
        let given = PromptValues::new(&json, self.max_output_tokens, cx);
        let (text, sections) = match &self.own {
            None => (format!("{}\n\n{json}", INSTRUCTIONS.trim_end()), Vec::new()),
            Some(own) => own.request(&given),
        };
        let task = Task::Summarise { sections };
        Request::of_text(cx.purpose(), task, text, self.max_output_tokens)
    }

    /// Each group that has its account makes way for it; where none has, the first failure.
    fn collapsed(
        &mut self,
        groups: Vec<Range<usize>>,
        origins: Vec<Origin>,
        answers: Vec<CallResult>,
        cx: &Situation,
    ) -> Result<Patch, StageError> {
        let mut edits = Vec::new();
        let mut failure = None;
        for ((entries, origin), answer) in groups.into_iter().zip(origins).zip(answers) {
            match model_text::text_of(answer) {
                Err(error) => failure = failure.or(Some(error)),
                Ok(account) => {
                    let prefix = self.prefix.replace("{n}", &entries.len().to_string());
                    let text = format!("{prefix}{account}");
                    let account = Entry::written(origin, text, Tag::Meta, &cx.counts);
                    edits.push(Edit::replacing(entries, [account]));
                }
            }
        }
        if let Some(failure) = failure.filter(|_| edits.is_empty()) {
            return Err(failure);
        }
        let collapsed = format!("{} groups of rounds collapsed", edits.len());
        let reason = match std::mem::take(&mut self.blocked) {
            0 => collapsed,
            blocked => format!("{collapsed}, {blocked} sub-agents blocked before"),
        };
        Ok(Patch::new(reason, edits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::scripted::response;
    use crate::model::{CallFailure, Purpose};
    use crate::session::Message;
    use crate::strategy::stage::trial::{Trial, answers, asks, build, said, typed};

    /// A round of a hundred tokens: three for the call, 97 for its result.
    fn round(at: usize) -> [Message; 2] {
        let id = format!("{at:02}");
        let text = format!("{at:02}{}", "x".repeat(386));
        [asks(&[(&id, "Read", "\"at\"")]), answers(&[(&id, &text)])]
    }

    /// Rounds of a hundred tokens behind a first message of a hundred, in a window of a thousand.
    fn trial(knobs: &str, rounds: usize) -> Trial {
        let all = "max_output_tokens = 20\nprefix = '{n}: '";
        let mut trial = Trial::new("collapse_groups", &format!("{all}\n{knobs}")).within(1_000);
        trial.append([typed(&"t".repeat(400))]);
        for at in 0..rounds {
            trial.append(round(at));
        }
        trial
    }

    /// The context, a message a word: accounts as they are, the rounds by their number.
    fn shown(trial: &Trial) -> String {
        let texts = trial.texts().into_iter().filter(|text| !text.starts_with("Read"));
        let short: Vec<&str> = texts.map(|text| &text[..text.len().min(2)]).collect();
        short.join(" ")
    }

    #[test]
    fn the_oldest_groups_go_when_the_line_is_reached() {
        for (knobs, rounds, left) in [
            // 800 and 900 tokens of a thousand.
            ("", 7, "tt 00 01 02 03 04 05 06"),
            ("", 8, "tt 10 05 06 07"),
            // One group of two is enough to be at 700 at most: 900 − 200 + 20 is not.
            ("group_rounds = 2", 8, "tt 4: 4: 04 05 06 07"),
            ("group_rounds = 2\ntarget = 0.72", 8, "tt 4: 02 03 04 05 06 07"),
            ("group_rounds = 2\ntarget = 0.719", 8, "tt 4: 4: 04 05 06 07"),
            ("group_rounds = 2\ncommit_at = 0.91", 8, "tt 00 01 02 03 04 05 06 07"),
            ("keep_last_rounds = 8", 8, "tt 00 01 02 03 04 05 06 07"),
            ("keep_last_rounds = 7", 8, "tt 2: 01 02 03 04 05 06 07"),
            // A group stays if its summary may be as large as the group.
            ("max_output_tokens = 500", 8, "tt 00 01 02 03 04 05 06 07"),
        ] {
            let mut trial = if knobs.starts_with("max_output") {
                let mut trial = Trial::new("collapse_groups", knobs).within(1_000);
                trial.append([typed(&"t".repeat(400))]);
                (0..rounds).for_each(|at| trial.append(round(at)));
                trial
            } else {
                trial(knobs, rounds)
            };
            trial.fire().unwrap();
            assert_eq!(shown(&trial), left, "{knobs}");
            assert_eq!(trial.fire().unwrap(), None, "{knobs}");
        }
    }

    #[test]
    fn what_the_user_typed_stays_where_it_was() {
        let mut trial = trial("target = 0", 3);
        trial.append([said("ok"), typed("more")]);
        for at in 3..9 {
            trial.append(round(at));
        }
        trial.fire().unwrap();
        assert_eq!(shown(&trial), "tt 7: mo 6: 06 07 08");
        let origins: Vec<&Origin> =
            trial.context.entries().iter().map(|entry| &entry.origin).collect();
        assert_eq!(origins[1], &Origin::Derived(std::iter::once(1..8).collect()));
        assert_eq!(origins[2], &Origin::Verbatim(8));
        assert_eq!(trial.asked().len(), 2);
        assert!(trial.asked().iter().all(|request| request.purpose == Purpose::Compaction));
    }

    #[test]
    fn what_the_user_typed_beside_a_result_keeps_its_round() {
        let mut trial = trial("target = 0", 2);
        let [asked, answered] = round(2);
        trial.append([asked, answered.with_tags([Tag::TypedUser])]);
        let [asked, answered] = round(3);
        trial.append([asked, typed("more"), answered]);
        for at in 4..10 {
            trial.append(round(at));
        }
        trial.fire().unwrap();
        assert_eq!(shown(&trial), "tt 4: 02 mo 03 6: 07 08 09");
    }

    #[test]
    fn a_group_without_an_account_stays() {
        let mut trial = trial("group_rounds = 2", 8);
        trial.will_answer(Err(CallFailure::SERVER));
        trial.will_answer(Ok(response("A")));
        assert_eq!(trial.fire().unwrap().unwrap(), "1 groups of rounds collapsed");
        assert_eq!(shown(&trial), "tt 00 01 4: 04 05 06 07");
        let mut trial = super::tests::trial("group_rounds = 2", 8);
        trial.will_answer(Err(CallFailure::SERVER));
        trial.will_answer(Ok(response("")));
        assert_eq!(trial.fire(), Err(StageError::Call(CallFailure::SERVER)));
        assert_eq!(shown(&trial), "tt 00 01 02 03 04 05 06 07");
    }

    #[test]
    fn sub_agents_beyond_the_line_are_counted() {
        let agents = asks(&[("a", "Task", "1"), ("b", "Task", "2"), ("c", "Read", "3")]);
        let results = answers(&[("a", ""), ("b", ""), ("c", "")]);
        for (rounds, says) in [
            (8, "1 groups of rounds collapsed"),
            (9, "1 groups of rounds collapsed, 2 sub-agents blocked before"),
        ] {
            // 900 and 1,000 tokens of a thousand.
            let mut trial = trial("", rounds);
            trial.append([agents.clone(), results.clone()]);
            assert_eq!(trial.fire().unwrap().unwrap(), says);
        }
    }

    #[test]
    fn a_target_above_the_line_is_refused() {
        let error = build("collapse_groups", "commit_at = 0.5").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`own.toml`: line 1: `collapse_groups.target` must not be above `commit_at`"
        );
    }
}
