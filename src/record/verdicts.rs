//! Verdicts: those given after a run, for answers are kept, and those of judges that are unfit, which
//! do not count.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Arm, CellRecord, JUDGE_PROMPT, JUDGE_RUBRIC, JUDGED, KeptCall, LostCall, Manifest, ModelEntry,
    SentinelRecord,
};
use crate::probe::judge::{self, JudgeTask, known_answer};
use crate::record::words::{GradeVerdict, Unscored};
use crate::record::words::{ModelKind, Purpose};
use crate::units::Usage;

/// One line of `verdicts.jsonl`: a verdict given after the run.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenVerdict {
    /// The session's id.
    pub session: String,
    /// The strategy's name, or `full` or `empty`.
    pub strategy: String,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// The probe's id.
    pub probe: String,
    /// How far the session was, in percent of its calls.
    pub percent: u8,
    /// Which of several answers, from 0.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub answer: u32,
    /// The judge.
    pub judge: String,
    /// All judges that voted together, in the order in which they were named; empty where there is
    /// but one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub panel: Vec<String>,
    /// Where the verdict is on an answer whose verdict is known, whether that answer is right: `probe`
    /// is its name, and no session is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentinel: Option<bool>,
    /// Where that answer was put in the narrow task, the prompt of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub narrow: Option<String>,
    /// The kind of model: it decides how its verdicts may be read.
    pub kind: ModelKind,
    /// The hash of the rubric it was given.
    pub rubric: String,
    /// The hash of everything that it was sent, and of how its reply was parsed; of a panel that of all
    /// judges.
    pub prompt: String,
    /// Its verdict.
    pub verdict: GradeVerdict,
    /// The usage of the request.
    pub usage: Usage,
    /// The first digits of the name under which it is kept, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Further requests for it that were paid and whose answers were not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostCall>,
}

impl GivenVerdict {
    /// The cell that it is on; none for an answer whose verdict is known.
    fn cell(&self) -> Option<(&str, &str, u32)> {
        let cell = (self.session.as_str(), self.strategy.as_str(), self.repeat);
        self.sentinel.is_none().then_some(cell)
    }

    /// The judges whose verdicts are one, this one among them.
    fn voters(&self) -> Vec<&str> {
        if self.panel.is_empty() {
            return vec![&self.judge];
        }
        self.panel.iter().map(String::as_str).collect()
    }
}

/// Applies later verdicts to the records of a run. The judges of the last line are the run's judges from
/// then on: verdicts of others do not count, for judges that were not asked together make no common
/// figure.
pub fn apply(manifest: &mut Manifest, cells: &mut [CellRecord], given: &[GivenVerdict]) {
    let Some(last) = given.last() else {
        // Which task a judge was given is known by its sentinels alone.
        let narrow = narrow_judges(cells.iter().flat_map(|cell| &cell.sentinels));
        if let Some(prompt) = manifest.conditions.get_mut(JUDGE_PROMPT) {
            *prompt = prompt_of(prompt, &narrow);
        }
        return;
    };
    // Bills every verdict, also those that do not count any more.
    account(cells, given);
    // Later verdicts are given once.
    manifest.judgements = 1;
    // Which answers they are about was chosen each time they were given.
    manifest.conditions.remove(JUDGED);
    let rubric = last.rubric.clone();
    manifest.conditions.insert(JUDGE_RUBRIC.to_owned(), rubric);
    let prompt = last.prompt.clone();
    manifest.conditions.insert(JUDGE_PROMPT.to_owned(), prompt);
    let voters = last.voters();
    let counted = given.iter().filter(|one: &&GivenVerdict| {
        one.rubric == last.rubric && one.prompt == last.prompt && one.voters() == voters
    });
    let mut is_scripted = false;
    let mut verdicts: BTreeMap<_, BTreeMap<&str, (GradeVerdict, Usage)>> = BTreeMap::new();
    let mut sentinels: BTreeMap<(usize, &str), SentinelRecord> = BTreeMap::new();
    for one in counted {
        let Some(at) = voters.iter().position(|voter| *voter == one.judge) else {
            continue;
        };
        is_scripted |= one.kind == ModelKind::Scripted;
        if let Some(is_right) = one.sentinel {
            let record = SentinelRecord {
                judge: one.judge.clone(),
                name: one.probe.clone(),
                is_right,
                narrow: one.narrow.clone(),
                verdict: one.verdict,
                usage: one.usage,
                calls: Vec::new(),
            };
            sentinels.insert((at, &one.probe), record);
            continue;
        }
        let item = (one.cell(), one.probe.as_str(), one.percent, one.answer);
        let of_item = verdicts.entry(item).or_default();
        of_item.insert(&one.judge, (one.verdict, one.usage));
    }
    // The kind of several judges is that of the least trustworthy.
    manifest.judge = Some(ModelEntry {
        name: voters.join(" + "),
        kind: if is_scripted { ModelKind::Scripted } else { last.kind },
    });
    let mut sentinels: Vec<SentinelRecord> = sentinels.into_values().collect();
    for cell in cells {
        let key = (cell.session.as_str(), cell.strategy.as_str(), cell.repeat);
        for item in &mut cell.probes {
            for (turn, answer) in (0..).zip(item.answer.iter_mut().chain(&mut item.more)) {
                let found = verdicts.get(&(Some(key), item.probe.as_str(), item.percent, turn));
                let said: Vec<(GradeVerdict, Usage)> =
                    voters.iter().filter_map(|voter: &&str| found?.get(voter).copied()).collect();
                let panel: Vec<GradeVerdict> = said.iter().map(|(verdict, _)| *verdict).collect();
                answer.rejudged.clear();
                answer.judged = judge::vote(&panel);
                answer.judge_usage = said.iter().map(|(_, usage)| *usage).sum();
                answer.panel = if panel.len() > 1 { panel } else { Vec::new() };
            }
        }
        // Their verdicts do not count any more, and were paid.
        let before = std::mem::take(&mut cell.sentinels).into_iter();
        cell.later_calls.extend(before.flat_map(|record| record.calls));
        if cell.arm == Arm::Reference {
            // They belong to no session: the first one keeps them.
            cell.sentinels = std::mem::take(&mut sentinels);
        }
    }
}

/// Puts what later verdicts cost among the requests of the cells they are on; those on answers whose
/// verdict is known belong to no session, and the first reference has them.
fn account(cells: &mut [CellRecord], given: &[GivenVerdict]) {
    let mut by_cell: BTreeMap<_, Vec<&GivenVerdict>> = BTreeMap::new();
    for one in given {
        by_cell.entry(one.cell()).or_default().push(one);
    }
    for cell in cells {
        let mut of_cell = Vec::new();
        if cell.arm == Arm::Reference {
            of_cell.extend(by_cell.remove(&None).unwrap_or_default());
        }
        let key = (cell.session.as_str(), cell.strategy.as_str(), cell.repeat);
        of_cell.extend(by_cell.remove(&Some(key)).unwrap_or_default());
        for one in of_cell {
            cell.lost_calls.extend(one.lost.iter().cloned());
            cell.later_calls.extend(one.key.clone().map(|key| KeptCall {
                key,
                purpose: Purpose::Judge,
                usage: one.usage,
            }));
        }
    }
}

/// The sentinels of each judge, each once, judges in the order in which they vote: all sessions of a
/// run put the same.
pub fn by_judge<'a>(
    sentinels: impl IntoIterator<Item = &'a SentinelRecord>,
) -> Vec<(&'a str, Vec<&'a SentinelRecord>)> {
    let mut judges: Vec<(&str, Vec<&SentinelRecord>)> = Vec::new();
    for record in sentinels {
        let at =
            judges.iter().position(|(judge, _)| *judge == record.judge).unwrap_or(judges.len());
        if at == judges.len() {
            judges.push((&record.judge, Vec::new()));
        }
        let of_judge = &mut judges[at].1;
        if of_judge.iter().all(|known| known.name != record.name) {
            of_judge.push(record);
        }
    }
    judges
}

/// The task that a judge with these sentinels is given; `None` if its verdicts do not count.
pub fn fit_task<'a>(sentinels: impl IntoIterator<Item = &'a SentinelRecord>) -> Option<JudgeTask> {
    let records = sentinels.into_iter();
    known_answer::fit_task(
        records.map(|record| (record.task(), record.is_right, record.is_met() == Some(true))),
    )
}

/// The judges that are given the narrow task, with its prompt.
pub fn narrow_judges<'a>(
    sentinels: impl IntoIterator<Item = &'a SentinelRecord>,
) -> BTreeMap<String, String> {
    let mut narrow = BTreeMap::new();
    for (judge, records) in by_judge(sentinels) {
        if fit_task(records.iter().copied()) == Some(JudgeTask::Narrow) {
            let prompt = records.iter().find_map(|record| record.narrow.clone());
            narrow.insert(judge.to_owned(), prompt.unwrap_or_default());
        }
    }
    narrow
}

/// What identifies the prompt of judges: that of the wide task, and that of each judge with the narrow one.
pub fn prompt_of(wide: &str, narrow: &BTreeMap<String, String>) -> String {
    narrow
        .iter()
        .fold(wide.to_owned(), |all, (judge, prompt)| format!("{all}, {judge} yes or no {prompt}"))
}

/// Removes the verdicts of judges that miss too many answers whose verdict is known. The other judges
/// vote without them; where none is left, rules grade what they can, and the rest is unscored.
pub fn disregard_unfit(cells: &mut [CellRecord]) {
    let judges = by_judge(cells.iter().flat_map(|cell| &cell.sentinels)).into_iter();
    let fit: Vec<bool> = judges.map(|(_, records)| fit_task(records).is_some()).collect();
    if fit.iter().all(|fit| *fit) {
        return;
    }
    for item in cells.iter_mut().flat_map(|cell| &mut cell.probes) {
        let scored = item.answer.iter_mut().chain(&mut item.more);
        let beside = item.qualifying.iter_mut().chain(&mut item.from_summary);
        for answer in scored.chain(beside) {
            if answer.judged.is_none() {
                continue;
            }
            // Who voted how the next time is not kept.
            answer.rejudged.clear();
            let voters = answer.panel.iter().zip(&fit).filter(|(_, fit)| **fit);
            let said: Vec<GradeVerdict> = voters.map(|(verdict, _)| *verdict).collect();
            let needs_judge = GradeVerdict::unscored(Unscored::NeedsJudge);
            answer.judged = judge::vote(&said).or((answer.typed == needs_judge)
                .then_some(GradeVerdict::unscored(Unscored::JudgeUnfit)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::words::{Outcome, ProbeKind};
    use crate::record::{AnswerRecord, Fate, ProbeRecord, SurvivalRecord};

    const RIGHT: GradeVerdict = GradeVerdict::Scored { score: 1.0, outcome: Outcome::Right };
    const WRONG: GradeVerdict = GradeVerdict::Scored { score: 0.0, outcome: Outcome::Wrong };

    fn unscored(reason: Unscored) -> GradeVerdict {
        GradeVerdict::Unscored { reason }
    }

    /// The reference with one answer, and sentinels of these judges, of which each misses so many.
    fn cells(
        judges: &[(&str, usize)],
        typed: GradeVerdict,
        panel: &[GradeVerdict],
    ) -> Vec<CellRecord> {
        let none: [u32; 0] = [];
        let record = serde_json::json!({
            "session": "a", "strategy": "full", "repeat": 0, "arm": "reference",
            "end": { "end": "completed" }, "planned_calls": 1, "reached_calls": 1, "window": null,
            "fixed_tokens": 0, "prompt_tokens": [9], "saved_texts": 0,
            "action_support": {
                "wanted": none, "present": none, "compacted_wanted": none, "compacted_present": none,
            },
        });
        let mut cell: CellRecord = serde_json::from_value(record).unwrap();
        cell.probes = vec![ProbeRecord {
            probe: "p".to_owned(),
            kind: ProbeKind::Decision,
            weight: 1,
            percent: 100,
            call: 0,
            said_at: None,
            survival: SurvivalRecord {
                fate: Fate::Kept,
                score: 1.0,
                place: None,
                compacted_score: None,
                lost_at: None,
                most: None,
                said: None,
                judged: None,
            },
            more: Vec::new(),
            is_call: false,
            answer: Some(AnswerRecord {
                refusal: None,
                text: Some("it is so".to_owned()),
                typed,
                judged: judge::vote(panel),
                panel: if panel.len() > 1 { panel.to_vec() } else { Vec::new() },
                rejudged: Vec::new(),
                usage: Usage::default(),
                judge_usage: Usage::default(),
                calls: Vec::new(),
            }),
            qualifying: None,
            from_summary: None,
            of_evidence: false,
        }];
        for (name, missed) in judges {
            let sentinels = known_answer::known_answers(JudgeTask::Wide);
            for (at, sentinel) in sentinels.into_iter().enumerate() {
                let says_right = sentinel.is_right == (at >= *missed);
                cell.sentinels.push(SentinelRecord {
                    judge: (*name).to_owned(),
                    name: sentinel.name.clone(),
                    is_right: sentinel.is_right,
                    narrow: None,
                    verdict: if says_right { RIGHT } else { WRONG },
                    usage: Usage::default(),
                    calls: Vec::new(),
                });
            }
        }
        vec![cell]
    }

    #[track_caller]
    fn check(
        judges: &[(&str, usize)],
        typed: GradeVerdict,
        panel: &[GradeVerdict],
        expected: GradeVerdict,
    ) {
        let mut cells = cells(judges, typed, panel);
        disregard_unfit(&mut cells);
        let answer = cells[0].probes[0].answer.as_ref().unwrap();
        assert_eq!(answer.verdict(), expected);
    }

    #[test]
    fn verdicts_of_an_unfit_judge_do_not_count() {
        let open = unscored(Unscored::NeedsJudge);
        check(&[("a", 2)], open, &[RIGHT], RIGHT);
        check(&[("a", 6)], open, &[RIGHT], unscored(Unscored::JudgeUnfit));
        // A grade by rules is final.
        check(&[("a", 6)], WRONG, &[RIGHT], WRONG);
        let panel = [("a", 0), ("b", 10), ("c", 9)];
        check(&panel, open, &[WRONG, RIGHT, RIGHT], WRONG);
        let all = [("a", 10), ("b", 10)];
        check(&all, open, &[RIGHT, RIGHT], unscored(Unscored::JudgeUnfit));
    }

    #[test]
    fn judges_that_were_asked_together_vote_and_the_last_ones_count() {
        let open = unscored(Unscored::NeedsJudge);
        let given = |judge: &str, panel: &[&str], sentinel, verdict| GivenVerdict {
            session: "a".to_owned(),
            strategy: "full".to_owned(),
            repeat: 0,
            probe: "p".to_owned(),
            percent: 100,
            answer: 0,
            judge: judge.to_owned(),
            panel: panel.iter().map(|name| (*name).to_owned()).collect(),
            sentinel,
            narrow: None,
            kind: ModelKind::Live,
            rubric: "r".to_owned(),
            prompt: "p".to_owned(),
            verdict,
            usage: Usage::default(),
            key: (judge != "old").then(|| format!("{judge}-{}", sentinel.is_some())),
            lost: Vec::new(),
        };
        let three = ["x", "y", "z"];
        let lines = [
            given("old", &[], None, RIGHT),
            given("x", &three, Some(true), RIGHT),
            given("x", &three, None, RIGHT),
            given("y", &three, None, WRONG),
            given("z", &three, None, WRONG),
        ];
        let mut manifest: Manifest = serde_json::from_value(serde_json::json!({
            "format": "proctor-run", "version": 1, "proctor": "0", "fingerprint": "",
            "scenario": "s", "counter": "chars/4", "seed": 1, "window": "native",
            "summariser": { "name": "m", "kind": "live" }, "reader": { "name": "m", "kind": "live" },
            "judge": null, "sessions": [], "strategies": [], "repeats": 1,
        }))
        .unwrap();
        let mut cells = cells(&[("old", 10)], open, &[RIGHT]);
        apply(&mut manifest, &mut cells, &lines);
        let answer = cells[0].probes[0].answer.as_ref().unwrap();
        assert_eq!(answer.panel, [RIGHT, WRONG, WRONG]);
        assert_eq!(answer.verdict(), WRONG);
        assert_eq!(manifest.judge.unwrap().name, "x + y + z");
        let kept: Vec<&str> = cells[0].sentinels.iter().map(|one| &*one.judge).collect();
        assert_eq!(kept, ["x"]);
        let keys: Vec<&str> = cells[0].later_calls.iter().map(|one| &*one.key).collect();
        assert_eq!(keys, ["x-true", "x-false", "y-false", "z-false"]);
    }
}
