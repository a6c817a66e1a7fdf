//! The answer of a run: one screen, its verdict, and each number explained from the records.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use proctor::metric::CellSummary;
use proctor::record::journal::RecordedRun;
use proctor::record::words::{Fidelity, Purpose, Worth};
use proctor::record::{Arm, CellRecord, End, Level, ModelCall, Violation};
use proctor::report::explain::{
    EXPLAINED, ExplainError, Number, Pooling, explain, explain_column, explained,
};
use proctor::report::screen::{LINES, ScreenOptions, SortBy};
use proctor::report::terminal::Terminal;
use proctor::report::{Report, ReportKind};
use proctor::runner::Plan;
use proctor::units::{Tokens, Usage};
use unicode_width::UnicodeWidthStr as _;

use crate::support::run_plan;

fn run(scenario: &str) -> RecordedRun {
    let scenario = crate::support::scenario(scenario, Path::new(""));
    run_plan(&Plan::new(scenario.with_controls()).unwrap()).1
}

/// The strategies of the quick start on smaller sessions.
static SMALL: LazyLock<RecordedRun> = LazyLock::new(|| {
    let quick_start = proctor::scenario::QUICK_START;
    let smaller = quick_start
        .replace("tokens = 80_000", "tokens = 24_000")
        .replace("tokens = 100_000", "tokens = 36_000")
        .replace("count = 4", "count = 2")
        .replace("tail@20000", "tail@6000");
    run(&smaller)
});

fn report() -> Report {
    Report::of(&SMALL.manifest, &SMALL.cells)
}

/// Sessions that share what they ask would count as independent and are not.
#[test]
fn no_two_sessions_of_the_quick_start_ask_for_the_same_value() {
    let mut asked: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for cell in &SMALL.cells {
        for text in &cell.probe_texts {
            let item = asked.entry((&text.question, &text.gold)).or_default();
            item.insert(&cell.session);
        }
    }
    assert!(asked.len() > 100, "{}", asked.len());
    let shared = asked.iter().find(|(_, sessions)| sessions.len() > 1);
    assert_eq!(shared, None);
}

#[test]
fn each_number_of_a_cell_is_what_its_terms_add_up_to() {
    let report = report();
    let mut compared = 0;
    for summary in report.cells.iter().filter(|cell| cell.arm == Arm::Strategy) {
        let mut cells = SMALL.cells.iter();
        let cell =
            cells.find(|it| it.session == summary.session && it.strategy == summary.strategy);
        let key = cell.unwrap().key();
        for metric in EXPLAINED {
            let explained = match explain(&SMALL.manifest, &SMALL.cells, &key, metric) {
                Ok(explained) => explained.value,
                Err(ExplainError::NotMeasured(..)) => None,
                Err(error) => panic!("{key}: {error}"),
            };
            let wanted = measured(summary, metric);
            match (explained, wanted) {
                (Some(ours), Some(theirs)) => {
                    compared += 1;
                    assert!((ours - theirs).abs() < 1e-6, "{key} {metric}: {ours} {theirs}");
                }
                (ours, theirs) => assert_eq!(ours, theirs, "{key} {metric}"),
            }
        }
    }
    assert!(compared > 200, "{compared}");
}

fn measured(cell: &CellSummary, metric: &str) -> Option<f64> {
    let edge = || {
        let shown = cell.costs.first()?;
        let mut own = cell.costs.iter().filter(|cost| cost.scheme == shown.scheme);
        own.find(|cost| cost.placement.name() == "edge").or(Some(shown))?.share()
    };
    match metric {
        "tokens" => cell.savings?.share(),
        "bill_saved" => cell.costs.first()?.share(),
        "bill_saved_edge" => edge(),
        "facts" => cell.survival.planted().mean(),
        "actions" => cell.support.share(),
        "calls" => Some(cell.model_calls.total().calls as f64),
        "bill" => Some(cell.dollars()?.in_dollars()),
        "answers" => cell.answers.as_ref()?.score.mean(),
        "fired" => Some(f64::from(u8::from(cell.fired()))),
        other => panic!("{other}"),
    }
}

/// The number and its interval that the values of sessions give; `None` where they alone do not.
fn pooled(pooling: Pooling, number: &Number, is_count: bool) -> Option<(f64, Option<f64>)> {
    // The 97.5 % quantile of t with 5 degrees of freedom.
    const T: f64 = 2.570_582;
    let sides = number.sessions.iter().map(|it| (it.value, it.of));
    let (values, of): (Vec<Option<f64>>, Vec<Option<f64>>) = sides.unzip();
    if pooling == Pooling::Total && values.contains(&None) {
        return None;
    }
    let pairs = values.iter().zip(&of).filter_map(|(value, of)| Some(((*value)?, *of)));
    let (values, of): (Vec<f64>, Vec<Option<f64>>) = pairs.unzip();
    let (sum, n) = (values.iter().sum::<f64>(), values.len() as f64);
    let error = |residuals: Vec<f64>| {
        let squares: f64 = residuals.iter().map(|it| it * it).sum();
        T * (squares / (n - 1.0) / n).sqrt()
    };
    let of_sum: f64 = of.iter().flatten().sum();
    Some(match pooling {
        Pooling::Mean | Pooling::Corrected => {
            let chance = number.chance.unwrap_or(0.0);
            let half = error(values.iter().map(|value| value - sum / n).collect());
            let corrected = (sum / n - chance) / (1.0 - chance);
            (corrected, Some(half / (1.0 - chance)))
        }
        Pooling::Sum | Pooling::Total => (sum, None),
        Pooling::Share if is_count => (sum, None),
        Pooling::Share => (sum / of_sum, None),
        Pooling::Saved => {
            let ratio = sum / of_sum;
            let pairs = values.iter().zip(of.iter().flatten());
            let half = error(pairs.map(|(own, full)| own - ratio * full).collect());
            (1.0 - ratio, Some(half / (of_sum / n)))
        }
        Pooling::Largest => (values.into_iter().fold(0.0, f64::max), None),
        Pooling::Together => return None,
    })
}

#[test]
fn each_column_is_what_its_sessions_give_and_is_explained_on_one_screen() {
    let report = report();
    let mut compared = BTreeSet::new();
    for name in explained(&report) {
        let numbers = explain_column(&report, name).unwrap();
        for number in &numbers.strategies {
            let shown = serde_json::to_value(&number.value).unwrap();
            let of = |field: &str| shown[field].as_f64();
            let values = number.sessions.iter().filter_map(|it| it.value);
            // The quantile is that of six sessions.
            let Some(value) = of("value").filter(|_| values.count() == 6) else {
                continue;
            };
            let is_count = shown["unit"] == "count";
            let Some((expected, half)) = pooled(numbers.pooling, number, is_count) else {
                continue;
            };
            let place = format!("{name} of {}", number.strategy);
            // Dollars are whole billionths.
            assert!((value - expected).abs() < 1e-6, "{place}: {value} {expected}");
            if let (Some(half), Some(low)) = (half, of("low")) {
                assert!((value - half - low).abs() < 1e-5, "{place}: {low} {value} ± {half}");
            }
            compared.insert(name);
        }
        let lines = numbers.lines(80);
        assert!(lines.len() <= LINES, "{lines:#?}");
        for line in lines {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
    for name in ["bill", "bill_saved", "facts", "actions", "fired", "tokens", "calls"] {
        assert!(compared.contains(name), "{name}: {compared:?}");
    }
}

#[test]
fn a_run_is_one_screen_at_every_width_and_in_every_order() {
    let report = report();
    for width in [60, 80, 120, 200] {
        for sort in SortBy::ALL {
            let options = ScreenOptions { sort, took: None };
            let screen = Terminal::plain(width).screen(&report, options);
            let lines: Vec<&str> = screen.lines().collect();
            assert!(lines.len() <= LINES, "{} lines at {width}:\n{screen}", lines.len());
            for line in lines {
                assert!(line.chars().count() <= width, "{line}");
            }
            for part in ["generated sessions", "Sure?", "More", "codex"] {
                assert!(screen.contains(part), "no {part} at {width}:\n{screen}");
            }
        }
    }
    println!("{}", Terminal::plain(80).screen(&report, ScreenOptions::default()));
}

#[test]
fn wide_and_combining_names_keep_to_their_columns() {
    for name in [
        "我的压缩策略",
        "长期上下文压缩策略，保留最近的所有消息和工具结果",
        "e\u{301}conome",
        "संक्षेप",
    ] {
        let mut report = report();
        let comparison = report.sections.iter_mut().find(|it| it.id == "comparison");
        let rows = &mut comparison.unwrap().table.rows;
        rows.iter_mut().find(|row| row.name == "codex").unwrap().name = name.to_owned();
        for width in [60, 80, 120, 200] {
            let screen = Terminal::plain(width).screen(&report, ScreenOptions::default());
            for line in screen.lines() {
                assert!(line.width() <= width, "{width}: {line}");
            }
            let ends = |start: &str| {
                let line = screen.lines().find(|line| line.trim_start().starts_with(start));
                line.unwrap().trim_end_matches("  avoid").width()
            };
            let start: String = name.chars().take(4).collect();
            assert_eq!(ends(&start), ends("claude-code"), "{screen}");
        }
    }
}

#[test]
fn controls_have_no_row_and_every_strategy_that_fires_has_one() {
    let report = report();
    let rows = &report.section("comparison").unwrap().table.rows;
    assert!(rows.iter().all(|row| !row.name.starts_with("tail@o")), "{rows:?}");
    let verdict = report.verdict.as_ref().unwrap();
    for contender in &verdict.contenders {
        let control = (!contender.strategy.starts_with("tail@"))
            .then(|| format!("tail@{}", contender.strategy));
        assert_eq!(contender.control, control);
    }
    // Whatever fired and is not broken is judged.
    let wanted = rows.iter().filter(|row| row.ranked);
    let mut wanted: Vec<&str> = wanted.map(|row| &*row.name).collect();
    let mut found: Vec<&str> = verdict.contenders.iter().map(|it| &*it.strategy).collect();
    wanted.sort_unstable();
    found.sort_unstable();
    assert!(!wanted.is_empty());
    assert_eq!(found, wanted, "{verdict:#?}");
}

const NO_FIT: &str = "!! nothing fits";
const NO_FIRE: &str = "!! nothing fires";
const FAILED: &str = "!! every strategy failed in some session: boom 17";
const LARGER: &str = "A larger window changes that";
const SMALLER: &str = "A smaller window shows";

/// What a cell has besides.
type Happened = fn(&mut CellRecord);

#[test]
fn the_cause_that_no_window_mends_is_said_before_one_that_it_does() {
    let as_it_is: Happened = |_| ();
    let refused: Happened = |cell| {
        cell.violations.push(Violation {
            call: 0,
            calls: 1,
            rule: "orphaned-result".to_owned(),
            level: Level::Rejected,
            subject: "toolu_1".to_owned(),
        });
    };
    let failed: Happened = |cell| cell.end = End::Failed { call: 0, error: "boom 17".to_owned() };
    let asked: Happened = |cell| {
        cell.model_calls.push(ModelCall {
            call: 0,
            purpose: Purpose::Compaction,
            usage: Usage { input_uncached: Tokens(90_000), ..Usage::default() },
            model: None,
            failure: None,
            key: None,
        });
    };
    let [small, large] = ["100", "99_999_999"].map(|window| {
        run(&format!(
            "[window]\ntokens = {window}\n[[sessions]]\nsynthetic = {{ family = 'code-review', seed = 1, \
             rounds = 8 }}\ncount = 2\n[[strategies]]\npreset = 'codex'\n"
        ))
    });
    for (recorded, happened, says) in [
        (&small, as_it_is, vec![NO_FIT, LARGER]),
        (&small, refused, vec!["refused, died in 2 of 2"]),
        (&small, failed, vec![FAILED, "failed in 1 of 2"]),
        (&large, as_it_is, vec![NO_FIRE, SMALLER, "changed nothing"]),
        (&large, refused, vec!["✗ 1 refused"]),
        (&large, failed, vec![FAILED, "failed in 1 of 2"]),
        (&large, asked, vec!["0 of 2"]),
    ] {
        let mut cells = recorded.cells.clone();
        happened(cells.iter_mut().find(|cell| cell.strategy == "codex").unwrap());
        let report = Report::of(&recorded.manifest, &cells);
        let screen = Terminal::plain(200).screen(&report, ScreenOptions::default());
        for all in [NO_FIT, NO_FIRE, FAILED, LARGER, SMALLER, "changed nothing"] {
            assert_eq!(screen.contains(all), says.contains(&all), "{all} {says:?}: {screen}");
        }
        assert!(says.iter().all(|part| screen.contains(part)), "{says:?}: {screen}");
    }
}

#[test]
fn an_outline_is_called_one_wherever_it_is_printed_and_an_old_run_says_nothing() {
    let mut manifest = SMALL.manifest.clone();
    for entry in &mut manifest.strategies {
        let is_preset = entry.worth.is_some();
        entry.worth = is_preset.then(|| Worth {
            fidelity: Fidelity::Outline,
            product: "Codex".to_owned(),
            missing: Some("It sleeps.".to_owned()),
        });
    }
    let named = Report::of(&manifest, &SMALL.cells);
    let start = "Outlines of their products: claude-code, codex, ";
    assert!(named.trust.contains(start), "{}", named.trust);
    manifest.strategies.iter_mut().for_each(|entry| entry.worth = None);
    let old = Report::of(&manifest, &SMALL.cells);
    let of = |report: &Report, name: &str| {
        let format = proctor::report::format(ReportKind::Run, name).unwrap();
        let bytes = format.render(report).unwrap().remove(0).bytes;
        String::from_utf8(bytes).unwrap()
    };
    for (file, has_sentence) in
        [("a.json", true), ("a.html", true), ("a.full.md", true), ("a.txt", true), ("a.md", false)]
    {
        let text = of(&named, file);
        assert!(text.contains("an outline of Codex"), "{file}");
        assert_eq!(text.contains("It sleeps."), has_sentence, "{file}");
        let of_old = of(&old, file);
        assert!(!of_old.contains("outline of") && !of_old.contains("utlines of"), "{file}");
    }
}
