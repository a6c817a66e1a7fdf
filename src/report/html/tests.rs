//! The page of a run whose names, reasons and answers were written by somebody hostile.

use super::*;
use crate::record::words::ProbeKind;
use crate::record::{CellRecord, Fate, Manifest, ProbeRecord};

const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u{202e}";

#[test]
fn names_in_our_sentences_are_set_as_code_in_tables_and_plain_in_pictures() {
    let page = page();
    let (before, method) = page.split_once("id=\"method\"").unwrap();
    assert!(method.contains("evaluator <code>survival</code>"));
    let pictures = before.split("<figure>").skip(1);
    let pictures: Vec<&str> = pictures.filter_map(|rest| rest.split("</figure>").next()).collect();
    assert!(!pictures.is_empty() && pictures.iter().all(|svg| !svg.contains('`')));
}

fn page() -> String {
    page_of(|_| ())
}

/// The page with every cell changed.
fn page_of(change: impl Fn(&mut CellRecord)) -> String {
    let model = serde_json::json!({ "name": HOSTILE, "kind": "deterministic" });
    let manifest = serde_json::json!({
        "format": "proctor-run", "version": 1, "proctor": "0", "fingerprint": HOSTILE,
        "scenario": HOSTILE, "counter": HOSTILE, "seed": 1, "window": HOSTILE,
        "summariser": model, "reader": model, "judge": null,
        "sessions": [{
            "id": HOSTILE, "hash": "", "format": "native", "messages": 4, "calls": 2, "tokens": 300,
            "items": 1, "compactions": 0,
            "sizes": { "sizes": "counted" }, "native_window": { "tokens": 200_000, "known_by": "assumed" },
            "cache": { "scheme": "anthropic-5m", "basis": "assumed" },
        }],
        "strategies": [{ "name": HOSTILE, "description": HOSTILE, "toml": "" }], "repeats": 1,
    });
    let manifest: Manifest = serde_json::from_value(manifest).unwrap();
    let none: [u32; 0] = [];
    let cell = |strategy: &str| -> CellRecord {
        let probe = serde_json::json!({
            "probe": HOSTILE, "kind": "recall", "weight": 1, "percent": 100, "call": 1,
            "said_at": 0, "survival": {
                "fate": "lost", "score": 0.0, "place": null,
                "lost_at": { "call": 1, "stage": HOSTILE, "reason": HOSTILE },
            },
            "answer": {
                "text": HOSTILE, "typed": { "verdict": "scored", "score": 0.0, "outcome": "wrong" },
                "usage": {
                    "input_uncached": 1, "cache_write_5m": 0, "cache_write_1h": 0, "cache_read": 0,
                    "output": 1,
                },
            },
        });
        let event = serde_json::json!({
            "call": 1, "stage": HOSTILE, "reason": HOSTILE, "before": 200, "after": 10,
        });
        let change = serde_json::json!({
            "event": 0, "appended": 3, "out": { "results": { "messages": 1, "tokens": 190 } },
            "before": { "kind": "results", "message": 3, "text": HOSTILE, "chars": 9_000 },
            "after": { "kind": "summary", "text": HOSTILE, "chars": HOSTILE.chars().count() },
        });
        let violation = serde_json::json!({
            "call": 1, "calls": 1, "rule": HOSTILE, "level": "rejected", "subject": HOSTILE,
        });
        let text = serde_json::json!({
            "probe": HOSTILE, "percent": 100, "question": HOSTILE, "gold": HOSTILE, "form": "",
        });
        let is_full = strategy == "full";
        let cell = serde_json::json!({
            "session": HOSTILE, "strategy": strategy, "repeat": 0,
            "arm": if is_full { "reference" } else { "strategy" },
            "end": { "end": "completed" }, "planned_calls": 2, "reached_calls": 2, "window": null,
            "fixed_tokens": 10, "prompt_tokens": [100, 200], "saved_texts": 0,
            "action_support": {
                "wanted": none, "present": none,
                "compacted_wanted": none, "compacted_present": none,
            },
            "probes": [probe], "probe_texts": if is_full { vec![text] } else { vec![] },
            "compactions": [event], "changes": [change], "violations": if is_full { vec![] } else { vec![violation] },
        });
        serde_json::from_value(cell).unwrap()
    };
    let mut cells = [cell("full"), cell(HOSTILE)];
    cells.iter_mut().for_each(change);
    let report = Report::of(&manifest, &cells);
    render(&report).unwrap()
}

#[test]
fn nothing_that_was_recorded_becomes_markup() {
    let page = page();
    assert!(!page.contains("<img"), "an element was made");
    assert!(!page.contains("<script>alert"), "a script was made");
    assert!(!page.contains('\u{202e}'), "the direction of text was turned round");
    // The data of numbers, calls, items and compactions, and the one script; each is closed once.
    assert_eq!(page.matches("<script").count(), 5);
    assert_eq!(page.matches("</script>").count(), 5);
    // Every text is there, escaped: in the table, the evidence, the violations.
    assert!(page.matches("&lt;/script&gt;").count() > 10);
    let compactions = data(&page, "compacted").to_string();
    for part in ["[tool results, message 3, 9000 characters]\\n</script>", "[summary]\\n"] {
        assert!(compactions.contains(part), "{part}");
    }
}

#[test]
fn the_page_loads_nothing_and_allows_only_its_own_script_and_style() {
    let page = page();
    for loads in ["src=\"", "@import", "url(", "http://", "https://", "fetch("] {
        let own = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!own.contains(loads), "{loads}");
    }
    assert!(page.contains("default-src 'none'; style-src 'sha256-"));
    assert!(page.contains("script-src 'sha256-"));
    for handler in ["onclick=", "onload=", " style=\"", "javascript:"] {
        assert!(!page.contains(handler), "{handler}");
    }
}

#[test]
fn every_part_has_its_place_and_its_heading() {
    let page = page();
    for id in [
        "comparison",
        "lost",
        "caveats",
        "bill",
        "timelines",
        "retention",
        "evidence",
        "compactions",
        "violations",
        "tables",
        "method",
    ] {
        assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
        assert!(page.contains(&format!("href=\"#{id}\"")), "{id}");
    }
    for part in ["lang=\"en\"", "role=\"img\"", "aria-label=", "scope=\"col\"", "scope=\"row\""] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn the_comparison_begins_with_a_few_columns_and_offers_the_others() {
    let page = page();
    let (_, comparison) = page.split_once("id=\"comparison\"").unwrap();
    let (comparison, _) = comparison.split_once("</section>").unwrap();
    let (head, _) = comparison.split_once("</thead>").unwrap();
    let heads: Vec<&str> = head.split("<th scope=\"col\"").skip(1).collect();
    let is_hidden = |head: &&&str| head.split_once('>').unwrap().0.ends_with(" hidden");
    let hidden = heads.iter().filter(is_hidden).count();
    assert!(hidden > 0 && heads.len() - hidden <= 10, "{head}");
    assert!(heads[1].contains("answers"), "{head}");
    // Full history lost a fact here: a control that failed is shown.
    assert!(comparison.contains("class=\"control\""));
    let boxes = head.matches("type=\"checkbox\"").count();
    let checked = head.matches(" checked").count();
    assert_eq!([boxes, checked], [heads.len() - 1, heads.len() - 1 - hidden]);
    let without_words = heads.iter().skip(1).find(|head| !head.contains("title=\""));
    assert_eq!(without_words, None);
}

#[test]
fn a_number_of_the_comparison_brings_what_it_is_made_of() {
    let page = page();
    let (_, numbers) = page.split_once("id=\"numbers\">").unwrap();
    let (numbers, _) = numbers.split_once("</script>").unwrap();
    let numbers = template::inflated(numbers);
    let mut numbers = numbers.as_array().unwrap().iter();
    let facts = numbers.find(|it| it["numbers"]["metric"] == "facts").unwrap();
    let sessions = &facts["numbers"]["strategies"][0]["sessions"];
    assert_eq!(sessions[0]["session"], HOSTILE);
    assert_eq!(sessions[0]["value"], 0.0);
}

#[test]
fn a_call_is_compared_with_full_history_whatever_the_order_of_names() {
    let page = page();
    let (_, calls) = page.split_once("id=\"calls\">").unwrap();
    let (calls, _) = calls.split_once("</script>").unwrap();
    let cells = &template::inflated(calls)[HOSTILE]["cells"];
    let of = |at: usize| (&cells[at]["strategy"], &cells[at]["is_full"]);
    assert_eq!(of(0), (&"full".into(), &true.into()));
    assert_eq!(of(1), (&HOSTILE.into(), &false.into()));
}

/// The data of a table.
fn data(page: &str, id: &str) -> serde_json::Value {
    let (_, data) = page.split_once(&format!("id=\"{id}\"")).unwrap();
    let (_, data) = data.split_once("<script type=\"text/plain\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    template::inflated(data)
}

/// The texts of a column of the evidence, row by row.
fn evidence(page: &str, column: usize) -> Vec<String> {
    let data = data(page, "items");
    let rows = data["rows"].as_array().unwrap().iter();
    let number = |row: &serde_json::Value| usize::try_from(row[column].as_u64().unwrap()).unwrap();
    rows.map(|row| data["texts"][number(row)].as_str().unwrap().to_owned()).collect()
}

#[test]
fn lost_facts_come_first_and_a_decoy_is_never_lost() {
    let lost = |probe: &mut ProbeRecord| probe.survival.fate = Fate::Lost;
    let kept = |probe: &mut ProbeRecord| probe.survival.fate = Fate::Kept;
    let decoy = |probe: &mut ProbeRecord| probe.kind = ProbeKind::Decoy;
    let changes: [&[fn(&mut ProbeRecord)]; 4] = [&[lost, decoy], &[kept], &[lost], &[kept, decoy]];
    let page = page_of(|cell| {
        if cell.strategy == "full" {
            cell.probes.clear();
            return;
        }
        cell.violations.clear();
        let probe = cell.probes[0].clone();
        let made = changes.iter().zip(0_u8..).map(|(changes, at)| {
            let mut probe = probe.clone();
            (probe.percent, probe.weight) = (at, 3);
            changes.iter().for_each(|change| change(&mut probe));
            probe
        });
        cell.probes = made.collect();
    });
    let states = ["lost", "kept", "decoy, found (wrong)", "decoy, not there (right)"];
    assert_eq!(evidence(&page, 9), states);
    let (_, lost) = page.split_once("id=\"lost\"").unwrap();
    assert!(lost.contains("1 of 1") && lost.contains("call 1, "));
}
