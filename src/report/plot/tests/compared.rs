//! Pictures of made-up sweeps and comparisons: that all is named, and nothing overlaps or is obeyed.

use std::collections::BTreeMap;

use super::apart;
use super::{NARROW, PlotScene, WIDE, svg, sweep as plot};
use crate::compare::gate::{Rules, gate};
use crate::compare::judge::judge as judge_pair;
use crate::compare::sample::FullHistory;
use crate::compare::sweep::{Objective, Sweep, Trial, judge};
use crate::compare::{Axis, JudgingRule, ProbeSample, Sample, SessionSample, Target};
use crate::report::comparison::{self, Comparisons, GatedComparison};

const SESSIONS: usize = 6;

fn session(saved: f64, kept: f64, dead: usize) -> SessionSample {
    let probe = ProbeSample {
        kind: "recall".to_owned(),
        weight: 1,
        survival: vec![kept],
        ..ProbeSample::default()
    };
    SessionSample {
        metrics: BTreeMap::from([
            ("bill".to_owned(), vec![1.0 - saved]),
            ("completion".to_owned(), vec![1.0]),
            ("tokens".to_owned(), vec![1000.0 * (1.1 - saved)]),
        ]),
        full: vec![FullHistory { bill: 1.0, tokens: 1100.0, fits: true }],
        probes: BTreeMap::from([("p@50".to_owned(), probe)]),
        dead,
        ..SessionSample::default()
    }
}

/// A strategy that saves and keeps about so much, a little else in each session.
fn sample(strategy: &str, saved: f64, kept: f64, dead: usize) -> Sample {
    let sessions = (0..SESSIONS).map(|at| {
        let turn = at as f64 / 100.0;
        let session = session(saved - turn, (kept - turn * saved).clamp(0.0, 1.0), dead);
        (format!("s{at}"), session)
    });
    Sample { strategy: strategy.to_owned(), sessions: sessions.collect(), ..Sample::default() }
}

/// A grid of knobs with these numbers of values, and the default.
fn sweep(knobs: &[(&str, usize)]) -> Sweep {
    let default = sample("default", 0.1, 0.9, 0);
    let mut tried = vec![Trial::new(Vec::new(), default, true)];
    let all: usize = knobs.iter().map(|(_, count)| count).product();
    for number in 0..all * usize::from(!knobs.is_empty()) {
        let (mut rest, mut values, mut place) = (number, Vec::new(), 0.0);
        for (knob, count) in knobs {
            values.push(((*knob).to_owned(), format!("{}", (rest % count) * 250)));
            place += (rest % count) as f64 / *count as f64;
            rest /= count;
        }
        let saved = 0.9 * place / knobs.len() as f64;
        // One setting in seven dies.
        let sample = sample("s", saved, 1.0 - saved * saved, usize::from(number % 7 == 3));
        tried.push(Trial::new(values, sample, false));
    }
    let sessions = (0..SESSIONS).map(|at| format!("s{at}")).collect();
    let quality = Objective { axis: Axis::Facts, margin: 0.05 };
    let saved = Objective { axis: Axis::Bill, margin: 0.02 };
    judge(&tried, sessions, Vec::new(), [saved, quality])
}

const GRIDS: [&[(&str, usize)]; 6] = [
    &[],
    &[("clear_results.keep_last", 1)],
    &[("clear_results.keep_last", 40)],
    &[("clear_results.keep_last", 8), ("summarize.when.window_fraction", 8)],
    &[("clear_results.keep_last", 60), ("window.tokens", 3)],
    &[("a_stage_with_a_long_name.and_a_knob_with_a_longer_one_tokens", 3), ("b.c", 2), ("d.e", 4)],
];

#[test]
fn sweeps_are_drawn_without_overlaps_however_many_settings_there_are() {
    for grid in GRIDS {
        let sweep = sweep(grid);
        for width in [WIDE, NARROW] {
            apart(&format!("{grid:?}"), &plot::scene(&sweep, width));
        }
    }
}

fn texts(scene: &PlotScene) -> Vec<&str> {
    scene.labels.iter().map(|label| label.text.as_str()).collect()
}

#[test]
fn a_heat_map_shows_what_the_sweep_says_cell_by_cell() {
    let sweep = sweep(&[("a.b", 2), ("c.d", 2)]);
    let scene = plot::scene(&sweep, WIDE);
    let texts = texts(&scene);
    let pair = &sweep.pairs[0];
    for cell in pair.cells.iter().flatten().flatten() {
        for value in [cell.cost, cell.quality].into_iter().flatten() {
            let shown = crate::report::display::points(value);
            assert!(texts.contains(&shown.as_str()), "{shown}: {texts:?}");
        }
    }
    // One of four died: it is crossed out in both maps.
    assert_eq!(texts.iter().filter(|text| **text == "×").count(), 2);
}

fn versus(names: &[&str], gated: bool) -> Comparisons {
    let rule = JudgingRule::of_population(1);
    let baseline = sample("none", 0.2, 0.9, 0);
    let versed = names.iter().enumerate().map(|(at, name)| {
        let turn = at as f64 / 20.0;
        let candidate = sample(name, 0.2 + turn, 0.98 - turn, 0);
        let comparison = judge_pair(&baseline, &candidate, &rule);
        GatedComparison {
            baseline_source: "old".to_owned(),
            candidate_source: "new".to_owned(),
            gated: gated.then(|| gate(&comparison, [&baseline, &candidate], &Rules::default(), 1)),
            comparison,
            repairs: Vec::new(),
            simulated_cost: Vec::new(),
        }
    });
    Comparisons { comparisons: versed.collect(), ..Comparisons::default() }
}

#[test]
fn a_forest_has_a_row_for_each_difference_and_nothing_overlaps() {
    let long: Vec<String> = (0..12)
        .map(|at| {
            format!("observation-masking[clear_results.keep_last={at},clear_results.every=10]")
        })
        .collect();
    let long: Vec<&str> = long.iter().map(String::as_str).collect();
    for names in [&[][..], &["codex"], &["codex", "codex", "none"], &long] {
        for gated in [false, true] {
            let versus = versus(names, gated);
            let scene = super::forest::scene(&versus.clone().report(), WIDE);
            apart(&format!("forest of {names:?}"), &scene);
            let texts = texts(&scene);
            for one in &versus.comparisons {
                let metric = one.comparison.axis(Axis::Facts).unwrap();
                let interval = comparison::interval(metric, Target::Population);
                let shown = texts.iter().any(|text| text.contains(&interval));
                assert!(shown, "{interval}: {texts:?}");
            }
            let same =
                texts.iter().any(|text| text.contains("the same on every session: completion"));
            assert_eq!(same, !names.is_empty(), "{texts:?}");
        }
    }
}

#[test]
fn pictures_are_whole_files_and_names_are_not_obeyed() {
    let hostile = "<script>alert(1)</script>&\"'";
    let forest_of = versus(&[hostile], true);
    let grid = sweep(&[(hostile, 2), ("a.b", 2)]);
    let scenes = [super::forest::scene(&forest_of.report(), WIDE), plot::scene(&grid, WIDE)];
    for scene in scenes {
        let text = svg(&scene).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        assert!(!text.contains("<script"), "{text}");
    }
}
