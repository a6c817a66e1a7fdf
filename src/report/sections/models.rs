//! Requests to models outside the replay: kept answers, the judges' sentinels, and the judges'
//! agreement.

use super::prelude::*;
use super::row;
use crate::compare::NoteCode;
use crate::metric::cached_calls::by_purpose;
use crate::probe::judge::{JudgeTask, prompt_id, rubric_hash};
use crate::record::verdicts::{by_judge, fit_task, narrow_judges, prompt_of};
use crate::record::words::ModelKind;
use crate::record::{CalibrationStatus, JudgeCalibration, Manifest, SentinelRecord};
use crate::report::{AskedItem, asked_items};
use crate::stats::agreement::krippendorffs_alpha;

/// Requests whose answers are kept, by purpose.
pub(super) fn asked(material: &Material<'_>) -> Section {
    let rows = by_purpose(material.cells.iter().copied()).into_iter().map(|(purpose, kept)| {
        let cells = vec![
            Cell::count(kept.requests),
            Cell::tokens(kept.tokens),
            Cell::count(kept.distinct),
            Cell::tokens(kept.paid),
            Cell::count(kept.lost),
            Cell::tokens(kept.lost_tokens),
        ];
        row(&display::name_of(&purpose), Role::Strategy, cells)
    });
    Section::new("kept_answers", rows)
}

/// How the judges did on answers whose verdict is known: one row for each task.
pub(super) fn sentinels(material: &Material<'_>) -> Section {
    let rows = by_judge(known(material)).into_iter().flat_map(|(judge, records)| {
        let fit = fit_task(records.iter().copied());
        let tasks = [JudgeTask::Wide, JudgeTask::Narrow].into_iter();
        tasks.filter_map(move |task| {
            let mut own = records.clone();
            own.retain(|record| record.task() == task);
            (!own.is_empty()).then(|| of_task(material, judge, task, fit, &own))
        })
    });
    Section::new("sentinels", rows)
}

/// The sentinels of a run.
fn known<'a>(material: &'a Material<'_>) -> impl Iterator<Item = &'a SentinelRecord> {
    material.cells.iter().flat_map(|cell| &cell.sentinels)
}

fn of_task(
    material: &Material<'_>,
    judge: &str,
    task: JudgeTask,
    fit: Option<JudgeTask>,
    records: &[&SentinelRecord],
) -> Row {
    let [met, wrong, unscored] = [Some(true), Some(false), None].map(|wanted| {
        Cell::count(records.iter().filter(|record| record.is_met() == wanted).count())
    });
    let missed = records.iter().filter(|record| record.is_met() != Some(true));
    let cells = vec![
        met,
        wrong,
        unscored,
        Cell::text(if fit == Some(task) { "fit" } else { "unfit" }),
        Cell::text(in_words(calibration(material, judge))),
        Cell::listed(missed.map(|record| &record.name), ", ", "none"),
    ];
    let name = match task {
        JudgeTask::Wide => judge.to_owned(),
        JudgeTask::Narrow => format!("{judge}, yes or no"),
    };
    row(&name, Role::Strategy, cells)
}

/// How far the judges of a panel agree.
pub(super) fn agreement(material: &Material<'_>) -> Section {
    let judges = judge_names(material.manifest);
    // The same answer to the same question is one verdict, in however many cells and at however many points
    // it was given.
    let mut units: BTreeMap<_, Vec<Option<f64>>> = BTreeMap::new();
    for AskedItem { cell, probe, text } in asked_items(material.cells.iter().copied()) {
        // As long as the right answer is the same, a judge is shown the same.
        let point = text.map_or((probe.percent, ""), |asked| (0, &*asked.gold));
        let answers = probe.every_answer();
        for answer in answers.filter(|answer| answer.panel.len() > 1) {
            let text = answer.text.as_deref().unwrap_or_default().trim();
            let key = (&*cell.session, &*probe.probe, point, text);
            let said = answer.panel.iter().map(|verdict| match verdict {
                GradeVerdict::Scored { score, .. } => Some(score.round()),
                GradeVerdict::Unscored { .. } => None,
            });
            units.entry(key).or_insert_with(|| said.collect());
        }
    }
    let units: Vec<Vec<Option<f64>>> = units.into_values().collect();
    let mut rows = vec![agreed("all", &units, &|_| true)];
    for (left, first) in judges.iter().enumerate().filter(|_| judges.len() > 2) {
        for (right, second) in judges.iter().enumerate().skip(left + 1) {
            let name = format!("{first} and {second}");
            rows.push(agreed(&name, &units, &|judge| judge == left || judge == right));
        }
    }
    rows.retain(|_| !units.is_empty());
    Section::new("judge_agreement", rows)
}

/// The agreement of some judges, by their places in the panel.
fn agreed(name: &str, units: &[Vec<Option<f64>>], judges: &dyn Fn(usize) -> bool) -> Row {
    let verdicts = units.iter().map(|unit| {
        let own = unit.iter().enumerate().filter(|(judge, _)| judges(*judge));
        own.filter_map(|(_, verdict)| *verdict).collect::<Vec<f64>>()
    });
    let several: Vec<Vec<f64>> = verdicts.filter(|unit| unit.len() > 1).collect();
    let same = several
        .iter()
        .filter(|unit| unit.windows(2).all(|pair| pair[0].total_cmp(&pair[1]).is_eq()));
    let cells = vec![
        Cell::count(several.len()),
        Cell::count(same.count()),
        Cell::agreement(krippendorffs_alpha(&several)),
    ];
    row(name, Role::Strategy, cells)
}

/// Judges that said otherwise than is known, in words.
pub(crate) fn drifted(material: &Material<'_>) -> Vec<String> {
    let judges = by_judge(known(material)).into_iter();
    let sentences = judges.filter_map(|(judge, mut records)| {
        let advice = match fit_task(records.iter().copied()) {
            Some(JudgeTask::Wide) => "calibrate it before its verdicts are believed",
            Some(JudgeTask::Narrow) => {
                "it was only asked whether an answer gives the known value, yes or no"
            }
            None => "it is unfit, and its verdicts do not count",
        };
        records.retain(|record| record.task() == JudgeTask::Wide);
        let wrong = records.iter().filter(|record| record.is_met() != Some(true)).count();
        let all = records.len();
        let answers = "answers whose verdict is known";
        (wrong > 0).then(|| format!("judge {judge} misses {wrong} of {all} {answers}: {advice}"))
    });
    sentences.collect()
}

/// People's labels of a judge, or of the panel that it votes in, under the prompt of today and of its task.
fn calibration<'a>(material: &Material<'a>, judge: &str) -> Option<&'a JudgeCalibration> {
    let manifest = material.manifest;
    let panel = manifest.judge.as_ref().map_or("", |judge| &judge.name);
    let narrow = narrow_judges(known(material));
    [judge, panel].into_iter().find_map(|name: &str| {
        let mut of_name = narrow.clone();
        of_name.retain(|judge, _| name.split(" + ").any(|voter| voter == judge));
        let (rubric, prompt) = (rubric_hash(), prompt_of(&prompt_id(), &of_name));
        let mut known = manifest.calibrations.iter();
        known.find(|one| one.judge == name && one.rubric == rubric && one.prompt == prompt)
    })
}

fn in_words(calibration: Option<&JudgeCalibration>) -> String {
    calibration.map_or("not calibrated".to_owned(), |known| {
        let kappa = known.kappa.map_or("not defined".to_owned(), |kappa| format!("{kappa:.2}"));
        let (verdict, labels) = (known.verdict.name(), known.labels);
        format!("{verdict} ({labels} labels, kappa {kappa})")
    })
}

fn judge_names(manifest: &Manifest) -> Vec<&str> {
    manifest.judge.iter().flat_map(|judge| judge.name.split(" + ")).collect()
}

/// Who judged, with what people's labels say of each.
pub(crate) fn judges(material: &Material<'_>) -> BTreeMap<String, String> {
    let narrow = narrow_judges(known(material));
    let names = judge_names(material.manifest).into_iter();
    let standings = names.map(|name| {
        let said = in_words(calibration(material, name));
        let said = match narrow.get(name) {
            Some(_) => format!("asked yes or no, {said}"),
            None => said,
        };
        (name.to_owned(), said)
    });
    standings.collect()
}

/// The judges with their standing, in words; `None` where there are none.
pub(crate) fn judges_in_words(judges: &BTreeMap<String, String>) -> Option<String> {
    display::listed(judges.iter().map(|(name, standing)| format!("{name}, {standing}")), "; ")
}

/// A banner on live judges that were not calibrated against people's labels, or not well enough.
pub(crate) fn uncalibrated(material: &Material<'_>) -> Vec<Banner> {
    let manifest = material.manifest;
    let mut judge = manifest.judge.iter();
    if !judge.any(|judge| judge.kind == ModelKind::Live) {
        return Vec::new();
    }
    // Of one whose verdicts do not count, that is said.
    let excluded = unfit(material);
    let names = judge_names(manifest).into_iter();
    let judged = names.filter(|name| !excluded.iter().any(|unfit| unfit == name));
    let banners = judged.filter_map(|name| {
        let found = calibration(material, name);
        let mut level = BannerLevel::Warning;
        let rest = match found.map(|known| known.verdict) {
            Some(CalibrationStatus::Calibrated) => return None,
            None => "nobody compared its verdicts with people's (`proctor judge test`)",
            Some(CalibrationStatus::Provisional) => {
                level = BannerLevel::Note;
                "it agrees with people as far as it was compared with them"
            }
            Some(CalibrationStatus::Unfit) => {
                "it does not agree with people, and its verdicts should not be believed"
            }
        };
        let text = format!("judge {name} is {}: {rest}", in_words(found));
        Some(level.banner(NoteCode::JudgeUnproven, text))
    });
    banners.collect()
}

/// Judges whose verdicts do not count.
pub(crate) fn unfit(material: &Material<'_>) -> Vec<String> {
    let judges = by_judge(known(material)).into_iter();
    let unfit = judges.filter(|(_, records)| fit_task(records.iter().copied()).is_none());
    unfit.map(|(judge, _)| judge.to_owned()).collect()
}
