//! What of the planted facts survives each preset, by kind and by age, over all synthetic families.
//!
//! The page `docs/reference/survival.md` is made here. The controls stand in the same table: full history holds
//! everything, an empty context nothing, and what was never planted is found nowhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use proctor::metric::retention::{COMPACTIONS, Retention, age_in_compactions};
use proctor::metric::survival::{Score, Survival, is_planted};
use proctor::probe::ProbeKind;
use proctor::record::{Arm, CellRecord};
use proctor::runner::Plan;
use proctor::session::synthetic::FAMILIES;

use crate::goldens::golden;
use crate::support::{EVERY_PART, run_plan, scenario};

/// Tokens of each session, by `chars/4`: above the window of the presets that keep 20,000 free for a
/// summary.
const TOKENS: u32 = 70_000;

fn cells() -> Vec<CellRecord> {
    let mut text = "name = \"survivors\"\ncounter = \"chars/4\"\n[models]\nreader = \"none\"\n\
                    [window]\nmode = \"fit\"\nfraction = 0.7\n"
        .to_owned();
    for family in FAMILIES.iter() {
        let name = family.name;
        let _ = write!(
            text,
            "[[sessions]]\nsynthetic = {{ family = \"{name}\", seed = 1, tokens = {TOKENS} }}\n"
        );
    }
    for name in EVERY_PART {
        let _ = write!(text, "[[strategies]]\npreset = \"{name}\"\n");
    }
    let plan = Plan::new(scenario(&text, Path::new(""))).unwrap();
    let (outcome, run) = run_plan(&plan);
    assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
    assert_eq!(outcome.outstanding, 0);
    run.cells
}

/// All cells of one strategy, added up.
#[derive(Default)]
struct Row {
    kinds: BTreeMap<ProbeKind, Score>,
    ages: [Score; 6],
    fired: usize,
    broken: usize,
}

fn add(to: &mut Score, score: Score) {
    *to = *to + score;
}

fn percent(score: Score) -> String {
    score.mean().map_or("–".to_owned(), |mean| format!("{:.1}", mean * 100.0))
}

fn table(heads: &[String], rows: &[(String, Vec<String>)]) -> String {
    let mut out = format!("| strategy | {} |\n|---|", heads.join(" | "));
    out.push_str(&"---:|".repeat(heads.len()));
    for (name, cells) in rows {
        let _ = write!(out, "\n| {name} | {} |", cells.join(" | "));
    }
    out + "\n"
}

/// What generators plant; only people ask the other kinds.
fn kinds() -> impl Iterator<Item = ProbeKind> {
    let all = ProbeKind::ALL.into_iter();
    all.filter(|kind| !matches!(kind, ProbeKind::Open | ProbeKind::Unanswerable))
}

#[test]
fn every_preset_is_measured_between_a_ceiling_a_floor_and_decoys_on_every_family() {
    let cells = cells();
    let full: BTreeMap<&str, &CellRecord> = cells
        .iter()
        .filter(|cell| cell.arm == Arm::Reference)
        .map(|cell| (cell.session.as_str(), cell))
        .collect();
    assert_eq!(full.len(), FAMILIES.len());
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for cell in &cells {
        let survival = Survival::of(cell);
        let row = rows.entry(&cell.strategy).or_default();
        for kind in kinds() {
            let score = survival.of_kind(kind);
            add(row.kinds.entry(kind).or_default(), score);
            if score.items == 0 {
                continue;
            }
            let (name, mean) = (kind.name(), score.mean().unwrap());
            let place = format!("{name} of {} under {}", cell.session, cell.strategy);
            match (cell.arm, is_planted(kind)) {
                (_, false) => assert!(mean.abs() < 1e-9, "{place}: {mean}, never planted"),
                (Arm::Reference, true) => assert!(mean > 1.0 - 1e-9, "{place}: only {mean}"),
                (Arm::Floor, true) => assert!(mean.abs() < 1e-9, "{place}: {mean} of nothing"),
                (Arm::Strategy, true) => assert!((0.0..=1.0).contains(&mean), "{place}: {mean}"),
            }
        }
        let retention = Retention::of(cell, full.get(&*cell.session).copied());
        for (sum, score) in row
            .ages
            .iter_mut()
            .zip(retention.by_age(|item| Some(age_in_compactions(item.compactions))))
        {
            add(sum, score);
        }
        row.fired += usize::from(!cell.compactions.is_empty());
        let is_broken = cell.end != proctor::record::End::Completed;
        row.broken += usize::from(is_broken);
    }
    // Thirteen kinds are asked, somewhere.
    let asked: BTreeSet<ProbeKind> = rows["full"]
        .kinds
        .iter()
        .filter(|(_, score)| score.items > 0)
        .map(|(kind, _)| *kind)
        .collect();
    let all: BTreeSet<ProbeKind> = kinds().collect();
    assert_eq!(asked, all);
    // What compacts loses something: otherwise nothing was measured.
    let planted = |row: &Row| {
        let mut all = Score::default();
        for (kind, score) in &row.kinds {
            if is_planted(*kind) {
                add(&mut all, *score);
            }
        }
        all
    };
    for name in EVERY_PART {
        let row = &rows[name];
        let mean = planted(row).mean().unwrap();
        assert!(row.fired == 0 || mean < 1.0 - 1e-9, "{name} lost nothing");
    }
    let names: Vec<&str> = ["full", "empty"].into_iter().chain(EVERY_PART).collect();
    let mut heads = vec!["fired".to_owned(), "ended early".to_owned(), "planted".to_owned()];
    heads.extend(kinds().map(|kind| kind.name().to_owned()));
    let by_kind: Vec<(String, Vec<String>)> = names
        .iter()
        .map(|name| {
            let row = &rows[name];
            let sessions = FAMILIES.len();
            let mut cells = vec![
                format!("{} of {sessions}", row.fired),
                row.broken.to_string(),
                percent(planted(row)),
            ];
            cells.extend(row.kinds.values().map(|score| percent(*score)));
            ((*name).to_owned(), cells)
        })
        .collect();
    let ages = COMPACTIONS.map(|(age, _)| age.to_owned());
    let by_age: Vec<(String, Vec<String>)> = names
        .iter()
        .skip(2)
        .map(|name| {
            let cells = rows[name].ages.iter();
            let cells = cells.map(|score| match score.items {
                0 => "–".to_owned(),
                items => format!("{} (n={items})", percent(*score)),
            });
            ((*name).to_owned(), cells.collect())
        })
        .collect();
    let families: Vec<String> = FAMILIES.iter().map(|it| format!("`{}`", it.name)).collect();
    let page = format!(
        "# What survives each preset\n\n\
         Made by the tests (`PROCTOR_BLESS=1` writes it again): one session of each synthetic family \
         ({}), {TOKENS} tokens by `chars/4`, in a window of 70 % of its full size, summaries extracted by \
         rules. Every figure is facts kept in percent: the planted value stands in the prompt, bound to its \
         key, found by string matching. It is no accuracy of any model, and what rules extract says little \
         about what a model would write. `full` is the ceiling and `empty` the floor; `decoy` was never \
         planted. Items after a session's early end count as lost.\n\n## By kind\n\n{}\n\
         ## By age\n\nAge is counted in compactions since the fact was said; a session that changes its \
         context before every call ages fast.\n\n{}",
        families.join(", "),
        table(&heads, &by_kind),
        table(&ages, &by_age),
    );
    golden("docs/reference/survival.md", &page);
}
