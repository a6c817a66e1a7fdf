//! What models were asked beside the replay: kept answers, the judges' sentinels, and how far they agree.

use std::collections::BTreeMap;

use crate::metric::kept::kept;
use crate::model::{ModelKind, Purpose};
use crate::probe::Verdict;
use crate::probe::judge::{prompt_id, rubric_hash, same_prompt};
use crate::record::verdicts::{by_judge, is_unfit};
use crate::record::{Calibrated, JudgeCalibration, Manifest};
use crate::report::build::Material;
use crate::report::{Audience, BannerLevel, Cell, Column, Role, Row, Section, Table, Value};
use crate::stats::agreement::{Scale, krippendorffs_alpha};

use super::row;

fn name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Agent => "agent",
        Purpose::Compaction => "compaction",
        Purpose::Background => "background",
        Purpose::Recovery => "recovery",
        Purpose::Probe => "probe",
        Purpose::Qualification => "qualification",
        Purpose::Judge => "judge",
    }
}

/// Requests whose answers are kept, by purpose.
pub(super) fn asked(material: &Material<'_>) -> Section {
    let rows = kept(material.cells.iter().copied())
        .into_iter()
        .map(|(purpose, kept)| {
            let cells = vec![
                Cell::count(kept.requests),
                Cell::exact(Value::Tokens(kept.tokens.0)),
                Cell::count(kept.distinct),
                Cell::exact(Value::Tokens(kept.paid.0)),
                Cell::count(kept.lost),
                Cell::exact(Value::Tokens(kept.lost_tokens.0)),
            ];
            row(name(purpose), Role::Strategy, cells)
        })
        .collect();
    Section {
        id: "kept_answers",
        title: "Requests to models, by purpose".to_owned(),
        about: "What summarisers, readers and judges were asked. The same request is paid once, \
                whoever makes it: the distinct ones are the entries of the cassette. Not kept, and paid \
                all the same, are refusals, verdicts that cannot be read, and attempts that failed and \
                were made again. What a provider does not tell of its tokens is counted."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("purpose", "purpose", 0),
                Column::new("requests", "requests", 0),
                Column::new("tokens", "tokens", 1),
                Column::new("distinct", "distinct", 0),
                Column::new("paid", "tokens of these", 0),
                Column::new("lost", "not kept", 0),
                Column::new("lost_tokens", "tokens not kept", 1),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}

/// How the judges did on answers whose verdict is known.
pub(super) fn sentinels(material: &Material<'_>) -> Section {
    let rows = by_judge(material.cells.iter().copied())
        .into_iter()
        .map(|(judge, records)| {
            let count = |wanted: Option<bool>| {
                let met = records.iter().filter(|record| record.is_met() == wanted);
                Cell::count(met.count())
            };
            let missed: Vec<&str> = records
                .iter()
                .filter(|record| record.is_met() != Some(true))
                .map(|record| record.name.as_str())
                .collect();
            let missed = if missed.is_empty() {
                "none".to_owned()
            } else {
                missed.join(", ")
            };
            let cells = vec![
                count(Some(true)),
                count(Some(false)),
                count(None),
                Cell::text(if is_unfit(&records) { "unfit" } else { "fit" }),
                Cell::text(standing_in_words(standing(material.manifest, judge))),
                Cell::text(missed),
            ];
            row(judge, Role::Strategy, cells)
        })
        .collect();
    Section {
        id: "sentinels",
        title: "Judges on answers whose verdict is known".to_owned(),
        about: "Fixed answers whose verdict is known, half of them right, are put to every judge of every run \
                before anything else; most wrong ones differ from a right one in one value or in polarity. A \
                judge whose share of right ones called right and of wrong ones called wrong do not add up to \
                1.6 is unfit: it is asked no more, and its verdicts do not count. What people's labels say of it (`proctor calibrate`) \
                stands beside."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("judge", "judge", 0),
                Column::new("met", "as known", 0),
                Column::new("missed", "otherwise", 0),
                Column::new("none", "no verdict", 0),
                Column::new("fitness", "fitness", 0),
                Column::new("calibration", "people's labels", 0),
                Column::new("which", "which not", 0),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}

/// How far the judges of a panel agree.
pub(super) fn agreement(material: &Material<'_>) -> Section {
    let judges: Vec<&str> = match &material.manifest.judge {
        Some(judge) => judge.name.split(" + ").collect(),
        None => Vec::new(),
    };
    // What is right at each point: as long as that is the same, a judge is shown the same.
    let mut golds: BTreeMap<(&str, &str, u8), &str> = BTreeMap::new();
    for cell in &material.cells {
        for asked in &cell.probe_texts {
            golds.insert((&cell.session, &asked.probe, asked.percent), &asked.gold);
        }
    }
    // The same answer to the same question is one verdict, in however many cells and at however many points
    // it was given.
    let mut units: BTreeMap<_, Vec<Option<f64>>> = BTreeMap::new();
    for cell in &material.cells {
        for item in &cell.probes {
            for answer in item.every_answer().filter(|answer| answer.panel.len() > 1) {
                let text = answer.text.as_deref().unwrap_or_default().trim();
                let gold = golds.get(&(&*cell.session, &*item.probe, item.percent));
                let point = gold.map_or((item.percent, ""), |gold| (0, *gold));
                let key = (&*cell.session, &*item.probe, point, text);
                let said = answer.panel.iter().map(|verdict| match verdict {
                    Verdict::Scored { score, .. } => Some(score.round()),
                    Verdict::Unscored { .. } => None,
                });
                units.entry(key).or_insert_with(|| said.collect());
            }
        }
    }
    let among = |who: &dyn Fn(usize) -> bool| -> Vec<Vec<f64>> {
        let of_unit = |said: &Vec<Option<f64>>| {
            let said = said.iter().enumerate().filter(|(at, _)| who(*at));
            said.filter_map(|(_, verdict)| *verdict).collect()
        };
        units.values().map(of_unit).collect()
    };
    let mut rows = Vec::new();
    if !units.is_empty() {
        rows.push(agreed("all", &among(&|_| true)));
    }
    for left in 0..judges.len() {
        for right in (left + 1)..judges.len() {
            if !units.is_empty() && judges.len() > 2 {
                let name = format!("{} and {}", judges[left], judges[right]);
                rows.push(agreed(&name, &among(&|at| at == left || at == right)));
            }
        }
    }
    Section {
        id: "judge_agreement",
        title: "Agreement of the judges".to_owned(),
        about: "Over different answers that two or more judges gave a verdict on. Krippendorff's alpha \
                is 1 where they always agree and 0 where they agree as often as chance would; where all \
                verdicts are the same it is not defined."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("judges", "judges", 0),
                Column::new("answers", "answers", 0),
                Column::new("agreed", "all the same", 0),
                Column::new("alpha", "alpha", 0),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}

fn agreed(name: &str, units: &[Vec<f64>]) -> Row {
    let several: Vec<Vec<f64>> = units
        .iter()
        .filter(|unit| unit.len() > 1)
        .cloned()
        .collect();
    let same = |unit: &&Vec<f64>| {
        unit.windows(2)
            .all(|pair| pair[0].total_cmp(&pair[1]).is_eq())
    };
    let alpha = krippendorffs_alpha(&several, Scale::Nominal);
    let cells = vec![
        Cell::count(several.len()),
        Cell::count(several.iter().filter(same).count()),
        Cell::text(alpha.map_or("not defined".to_owned(), |alpha| format!("{alpha:.2}"))),
    ];
    row(name, Role::Strategy, cells)
}

/// Judges that said otherwise than is known, in words.
pub(in crate::report) fn drifted(material: &Material<'_>) -> Vec<String> {
    by_judge(material.cells.iter().copied())
        .into_iter()
        .filter_map(|(judge, records)| {
            let wrong = records
                .iter()
                .filter(|record| record.is_met() != Some(true))
                .count();
            let all = records.len();
            let misses =
                format!("judge {judge} misses {wrong} of {all} answers whose verdict is known");
            match (wrong, is_unfit(&records)) {
                (0, _) => None,
                (_, true) => Some(format!(
                    "{misses}: it is unfit, and its verdicts do not count"
                )),
                (_, false) => Some(format!(
                    "{misses}: calibrate it before its verdicts are believed"
                )),
            }
        })
        .collect()
}

/// What people's labels say of one judge, and how many of them there are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Standing<'a> {
    /// Nobody compared it with people under the prompt of today.
    NotCalibrated,
    /// Somebody did.
    Known(&'a JudgeCalibration),
}

/// Of a judge, or of the panel it votes in.
fn standing<'a>(manifest: &'a Manifest, judge: &str) -> Standing<'a> {
    let panel = manifest.judge.as_ref().map_or("", |judge| &judge.name);
    let (rubric, prompt) = (rubric_hash(), prompt_id());
    let known = manifest
        .calibrations
        .iter()
        .filter(|one| one.rubric == rubric && same_prompt(one.prompt.as_deref(), Some(&prompt)));
    let of = |name: &str| known.clone().find(|one| one.judge == name);
    of(judge)
        .or_else(|| of(panel))
        .map_or(Standing::NotCalibrated, Standing::Known)
}

fn standing_in_words(standing: Standing<'_>) -> String {
    match standing {
        Standing::NotCalibrated => "not calibrated".to_owned(),
        Standing::Known(known) => {
            let kappa = known
                .kappa
                .map_or("not defined".to_owned(), |it| format!("{it:.2}"));
            let (verdict, labels) = (known.verdict.name(), known.labels);
            format!("{verdict} ({labels} labels, kappa {kappa})")
        }
    }
}

/// Who judged, with what people's labels say of each.
pub(in crate::report) fn judges(manifest: &Manifest) -> Vec<(String, String)> {
    let Some(judge) = &manifest.judge else {
        return Vec::new();
    };
    let names = judge.name.split(" + ");
    names
        .map(|name| (name.to_owned(), standing_in_words(standing(manifest, name))))
        .collect()
}

/// What a reader of verdicts must know of live judges: that nobody compared them with people, or that the
/// comparison is not enough.
pub(in crate::report) fn uncalibrated(manifest: &Manifest) -> Vec<(BannerLevel, String)> {
    let judge = manifest.judge.as_ref();
    let Some(panel) = judge.filter(|judge| judge.kind == ModelKind::Live) else {
        return Vec::new();
    };
    let of_judge = |name: &str| {
        let found = standing(manifest, name);
        let said = standing_in_words(found);
        let (level, rest) = match found {
            Standing::NotCalibrated => (
                BannerLevel::Warning,
                "nobody compared its verdicts with people's (`proctor calibrate`)",
            ),
            Standing::Known(known) => match known.verdict {
                Calibrated::Calibrated => return None,
                Calibrated::Provisional => (
                    BannerLevel::Note,
                    "it agrees with people as far as it was compared with them",
                ),
                Calibrated::Unfit => (
                    BannerLevel::Warning,
                    "it does not agree with people, and its verdicts should not be believed",
                ),
            },
        };
        Some((level, format!("judge {name} is {said}: {rest}")))
    };
    panel.name.split(" + ").filter_map(of_judge).collect()
}

/// Judges whose verdicts do not count.
pub(in crate::report) fn unfit(material: &Material<'_>) -> Vec<String> {
    let judges = by_judge(material.cells.iter().copied()).into_iter();
    let unfit = judges.filter(|(_, records)| is_unfit(records));
    unfit.map(|(judge, _)| judge.to_owned()).collect()
}
