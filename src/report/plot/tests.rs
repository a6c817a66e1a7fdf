//! Pictures of made-up runs: that nothing overlaps, sticks out, or is obeyed.

mod compared;

use super::scene::{HPos, Label, text_width};
use super::*;
use crate::record::{Arm, CellRecord, DeathCause, End, Manifest};
use crate::report::Report;
use crate::units::Tokens;

/// A picture of a run: its name, and how it is drawn.
type Plot = (&'static str, fn(&Report, f64) -> PlotScene);

const OF_RUN: [Plot; 4] = [
    ("tokens", tokens::scene),
    ("bill", bill::scene),
    ("pareto", pareto::scene),
    ("retention", curves::scene),
];

/// A run of this many sessions and strategies, all of a different kind.
fn report(sessions: usize, strategies: &[&str]) -> Report {
    report_of(sessions, strategies, |_| ())
}

/// The same with every cell changed.
fn report_of(sessions: usize, strategies: &[&str], change: fn(&mut CellRecord)) -> Report {
    let model = |name: &str| serde_json::json!({ "name": name, "kind": "deterministic" });
    let strategy = |name: &&str| serde_json::json!({ "name": name, "description": "", "toml": "" });
    let manifest = serde_json::json!({
        "format": "proctor-run", "version": 1, "proctor": "0", "fingerprint": "0123456789abcdef",
        "scenario": "s", "counter": "chars/4", "seed": 1, "window": "native",
        "summariser": model("offline"), "reader": model("none"), "judge": null,
        "sessions": (0..sessions).map(|at: usize| {
        serde_json::json!({
            "id": format!("session-{at}"), "hash": "", "format": "native", "messages": 80,
            "calls": 40, "tokens": 40_000, "items": 4, "compactions": 0,
            "sizes": { "sizes": "counted" }, "native_window": { "tokens": 200_000, "known_by": "assumed" },
            "cache": { "scheme": "anthropic-5m", "basis": "assumed" },
        })
    }).collect::<Vec<_>>(),
        "strategies": strategies.iter().map(strategy).collect::<Vec<_>>(), "repeats": 1,
    });
    let manifest: Manifest = serde_json::from_value(manifest).unwrap();
    let mut cells = Vec::new();
    for session in 0..sessions {
        cells.push(cell(session, "full", 0));
        for (at, strategy) in strategies.iter().enumerate() {
            cells.push(cell(session, strategy, at + 1));
        }
    }
    cells.iter_mut().for_each(change);
    Report::of(&manifest, &cells)
}

/// A cell that saves the more tokens and the less money, the higher its number.
fn cell(session: usize, strategy: &str, number: usize) -> CellRecord {
    let none: [u32; 0] = [];
    let prompts: Vec<u64> = (1..=40_u64)
        .map(|call| match number as u64 {
            0 => call * 1_000,
            number => (call * 1_000) % (5_000 + 37_000 / number) + 1_000 + session as u64 * 100,
        })
        .collect();
    let read: Vec<u64> = prompts.iter().map(|prompt| prompt / (number as u64 + 1)).collect();
    let written: Vec<u64> = prompts.iter().zip(&read).map(|(all, read)| (all - read) / 2).collect();
    let probes = [25, 50, 75, 100].map(|percent: u64| {
        serde_json::json!({
            "probe": "recall-1", "kind": "recall", "weight": 1, "percent": percent,
            "call": percent * 39 / 100, "said_at": 2,
            "survival": {
                "fate": "kept", "place": null,
                "score": 1.0 / (1.0 + number as f64 * percent as f64 / 400.0),
            },
        })
    });
    let event = serde_json::json!({
        "call": 20, "stage": "clear", "reason": "", "before": 20_000, "after": 5_000,
    });
    let is_reference = number == 0;
    let cell = serde_json::json!({
        "session": format!("session-{session}"), "strategy": strategy, "repeat": 0,
        "arm": if is_reference { "reference" } else { "strategy" },
        "end": { "end": "completed" }, "planned_calls": 40, "reached_calls": 40,
        "window": if is_reference {
            serde_json::Value::Null
        } else {
            serde_json::json!({ "tokens": 42_000, "max_output": 1_000, "overflow_reserve": 0 })
        },
        "fixed_tokens": 500, "prompt_tokens": prompts, "saved_texts": 0,
        "compactions": if is_reference { vec![] } else { vec![event] },
        "action_support": {
            "wanted": none, "present": none,
            "compacted_wanted": none, "compacted_present": none,
        },
        "probes": probes,
        "prompt_cache": [{
            "again": 0,
            "scheme": "anthropic-5m", "rates": { "write": 1_250, "read": 100, "output": 5_000 },
            "read": read, "written": written,
        }],
    });
    serde_json::from_value(cell).unwrap()
}

const LONG: &str = "observation-masking[clear_results.keep_last=5,clear_results.every=10]";

const MANY: [&str; 9] = [
    "observation-masking",
    LONG,
    "claude-code",
    "codex",
    "aloop-sliding-window",
    "none",
    "tail@20000",
    "snip-then-compact",
    "learn-claude-code-s08-unguarded",
];

/// The box that a text takes up.
fn edges(label: &Label) -> Option<([f64; 4], &str)> {
    let Label { at: (x, y), text, size, anchor, upwards, .. } = label;
    let width = text_width(text, *size);
    let from = match anchor {
        HPos::Left => 0.0,
        HPos::Center => width / 2.0,
        HPos::Right => width,
    };
    let half = size * 0.5;
    let edges = if *upwards {
        [x - half, y - width + from, x + half, y + from]
    } else {
        [x - from, y - half, x - from + width, y + half]
    };
    (!text.is_empty()).then_some((edges, text))
}

#[track_caller]
fn check((name, scene): Plot, sessions: usize, strategies: &[&str]) {
    for width in [WIDE, NARROW] {
        apart(name, &scene(&report(sessions, strategies), width));
    }
}

/// No text of a picture overlaps another or sticks out.
#[track_caller]
pub(super) fn apart(plot: &str, scene: &PlotScene) {
    let texts: Vec<([f64; 4], &str)> = scene.labels.iter().filter_map(edges).collect();
    assert!(!texts.is_empty());
    let (width, height) = (scene.width, scene.height());
    for (at, (one, text)) in texts.iter().enumerate() {
        let inside = one[0] >= 0.0 && one[1] >= 0.0 && one[2] <= width && one[3] <= height;
        assert!(inside, "{plot}: `{text}` sticks out: {one:?} of {width} × {height}");
        for (other, more) in &texts[at + 1..] {
            let apart = one[2] <= other[0]
                || other[2] <= one[0]
                || one[3] <= other[1]
                || other[3] <= one[1];
            assert!(apart, "{plot}: `{text}` and `{more}` overlap: {one:?} {other:?}");
        }
    }
}

#[test]
fn no_label_overlaps_another_or_sticks_out() {
    for plot in OF_RUN {
        for sessions in [0, 1, 3, 20] {
            for strategies in [0, 1, 2, MANY.len()] {
                check(plot, sessions, &MANY[..strategies]);
            }
        }
    }
}

#[test]
fn a_picture_of_nothing_is_one_all_the_same() {
    let empty = report(0, &[]);
    for (plot, scene) in OF_RUN {
        assert!(svg(&scene(&empty, WIDE)).unwrap().len() > 200, "{plot}");
    }
}

#[test]
fn names_are_written_and_not_obeyed() {
    let hostile = "<script>alert(1)</script>&\"'";
    let report = report(2, &[hostile, "codex"]);
    for (plot, scene) in OF_RUN {
        let text = svg(&scene(&report, WIDE)).unwrap();
        assert!(!text.contains("<script"), "{plot}");
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        assert!(!text.contains("font-family=\"DejaVu"), "{plot}");
        // An ampersand begins an entity, everywhere.
        for (at, _) in text.match_indices('&') {
            let rest = &text[at..];
            let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&apos;", "&#39;"];
            assert!(known.iter().any(|entity| rest.starts_with(entity)), "{plot}");
        }
    }
}

#[test]
fn where_many_strategies_end_at_once_their_ends_stand_in_the_legend() {
    let end = |cell: &mut CellRecord| {
        if cell.arm == Arm::Strategy {
            cell.prompt_tokens.truncate(12);
            cell.reached_calls = 12;
            cell.end = End::Died { call: 12, prompt: Tokens(50_000), cause: DeathCause::Overflow };
        }
    };
    let one = tokens::scene(&report_of(1, &MANY, end), WIDE);
    apart("one session", &one);
    let ended = texts(&one).filter(|text| text.ends_with(", ended at 12"));
    assert_eq!(ended.count(), MANY.len());
    let three = tokens::scene(&report_of(3, &MANY, end), WIDE);
    apart("three sessions", &three);
    assert!(texts(&three).any(|text| text.starts_with("the session ended there")));
}

#[test]
fn a_session_of_one_call_is_a_point_and_its_axis_names_it_once() {
    let single = |cell: &mut CellRecord| {
        cell.prompt_tokens.truncate(1);
        cell.reached_calls = 1;
        cell.planned_calls = 1;
        cell.compactions.clear();
        for cache in &mut cell.prompt_cache {
            cache.read.truncate(1);
            cache.written.truncate(1);
        }
    };
    for (plot, scene) in OF_RUN.into_iter().take(1) {
        let scene = scene(&report_of(1, &["codex"], single), WIDE);
        apart(plot, &scene);
        let calls: Vec<&str> = texts(&scene).filter(|text| text.len() == 1).collect();
        assert_eq!(
            calls.iter().filter(|call| **call == "0").count(),
            // The axis of tokens begins at 0, too.
            2,
            "{plot}: {calls:?}"
        );
        assert!(!calls.contains(&"1"), "{plot}: {calls:?}");
    }
    let scene = tokens::scene(&report_of(1, &["codex"], single), WIDE);
    let drawn = svg(&scene).unwrap();
    let points = drawn.matches("r=\"4\"").count();
    assert_eq!(points, 2, "full history and the strategy");
}

/// The texts of a picture.
fn texts(scene: &PlotScene) -> impl Iterator<Item = &str> {
    scene.labels.iter().map(|label| label.text.as_str())
}

#[test]
fn the_classes_of_a_bill_add_up_to_it() {
    let report = report(3, &MANY);
    let mut compared = 0;
    for cell in &report.cells {
        let amounts = bill::of_cell(cell, false).unwrap();
        let (ours, theirs) = (amounts.iter().sum::<f64>(), cell.costs[0].cost as f64 / 1_000.0);
        assert!((ours - theirs).abs() < 1e-6 * theirs, "{ours} {theirs}");
        compared += 1;
    }
    assert_eq!(compared, 3 * (1 + MANY.len()));
}
