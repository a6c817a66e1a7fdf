//! One line per text: what stands in it, and how.

use super::*;
use crate::session::ground_truth::{ArtifactVerb, Importance, Revision, RuleForm, TouchedFile};

fn probe(fact: Fact) -> Probe {
    Probe {
        id: "p".into(),
        fact,
        question: String::new(),
        evidence: Vec::new(),
        until: None,
        importance: Importance::Normal,
    }
}

fn value(key: &str, value: &str) -> Probe {
    let (key, value) = (key.to_owned(), value.to_owned());
    probe(Fact::Recall { key, value })
}

fn check(probes: &[Probe], text: &str, expected: &[(usize, Match)]) {
    let survival = SurvivalSlots::new(probes).unwrap();
    let found = survival.find(&Arc::from(text), WrittenBy::Compaction);
    let found: Vec<_> = found.iter().map(|f| (f.slot, f.found)).collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn a_value_is_bound_by_half_of_its_key() {
    use Match::{Kept, Unsure};
    let far = "and so on ".repeat(20);
    let probes = [value("staging gateway port", "48213")];
    for (text, expected) in [
        ("the staging gateway listens on 48213".to_owned(), &[(0, Kept)][..]),
        ("48213".to_owned(), &[(0, Unsure)]),
        (format!("staging gateway\n{far}\n48213"), &[(0, Unsure)]),
        (format!("staging gateway {far} 48213"), &[(0, Kept)]),
        (format!("staging {far}\n48213"), &[(0, Unsure)]),
        ("gateway:\n  staging:\n    48213".to_owned(), &[(0, Kept)]),
        (format!(r#"{{"gateway": "staging", "x": ["{far}",{{}}],"n": 48213}}"#), &[(0, Kept)]),
        (r#"{"text":"staging gateway:\n48213"}"#.to_owned(), &[(0, Kept)]),
        ("staging gateway port 482134".to_owned(), &[(0, Match::Changed)]),
        (format!("48213 {far}{far}\nstaging port 48213"), &[(0, Kept)]),
    ] {
        check(&probes, &text, expected);
    }
}

#[test]
fn a_value_in_a_longer_one_is_not_known_to_be_kept() {
    use Match::{Kept, Unsure};
    for (own, text, expected) in [
        ("rq-4417", "the ticket is rq-4417.", Kept),
        ("rq-4417", "ticket: `rq-4417`, rq-4417's owner", Kept),
        ("rq-4417", "the ticket is rq-4417-old", Unsure),
        ("rq-4417", "the ticket is old-rq-4417", Unsure),
        ("rq-4417", "the ticket is rq-4417.bak", Unsure),
        ("rq-4417", "the ticket is rq-4417@staging", Unsure),
        ("2.14.0", "the ticket needs 2.14.0-rc1", Unsure),
        ("48213", "ticket --port=48213", Kept),
        ("48213", "ticket http://host:48213/path, 48213/tcp", Kept),
        ("48213", "the ticket is at 148.48213", Unsure),
        ("48213", "the ticket is at 48213.5", Unsure),
        ("48213", "the ticket is at -48213", Unsure),
        ("48213", "the ticket is at 48213,500", Unsure),
        ("48213", "ticket 48213, 500", Kept),
        ("src/a.rs", "the ticket is about legacy/src/a.rs", Unsure),
        ("src/a.rs", "the ticket is about src/a.rs.", Kept),
    ] {
        check(&[value("ticket", own)], text, &[(0, expected)]);
    }
}

#[test]
fn a_value_that_is_denied_is_another() {
    use Match::{Changed, Kept};
    for (text, expected) in [
        ("the gateway port is no longer 48213", Changed),
        ("the gateway port is 48312, not 48213", Changed),
        ("gateway port: 48312 instead of 48213", Changed),
        ("the gateway port: ~~48213~~ 48312", Changed),
        ("gateway port != 48213", Changed),
        ("网关端口不再是48213，改为50117; gateway port", Changed),
        ("the gateway port 48213 was withdrawn", Changed),
        ("the gateway port was 48213 until Monday; it is 49001 now", Changed),
        ("the gateway port moved from 48213 to 48312", Changed),
        ("gateway port 48213 expired handle during the handshake", Kept),
        ("do not confuse it: the gateway port is 48213, not 48312", Kept),
        ("the gateway port must not exceed 48213", Kept),
        ("the gateway port is 48213. The old flag is no longer used.", Kept),
    ] {
        check(&[value("gateway port", "48213")], text, &[(0, expected)]);
    }
}

#[test]
fn a_value_beside_the_key_of_another_one_is_another() {
    use Match::{Changed, Kept};
    let probes = [value("staging gateway port", "48213"), value("user table limit", "777")];
    for (text, [port, limit]) in [
        ("staging gateway port 48213, user table limit 777", [Kept, Kept]),
        ("the staging gateway port is 48213 and the user table limit is 777", [Kept, Kept]),
        ("48213 is the staging gateway port and 777 the user table limit", [Kept, Kept]),
        ("48213 (staging gateway port), 777 (user table limit)", [Kept, Kept]),
        (r#"{"staging_gateway_port": 48213, "user_table_limit": 777}"#, [Kept, Kept]),
        ("| staging gateway port | 48213 |\n| user table limit | 777 |", [Kept, Kept]),
        ("staging gateway port 777, user table limit 48213", [Changed, Changed]),
        ("the staging gateway port is 777 and the user table limit is 48213", [Changed, Changed]),
        (r#"{"staging_gateway_port": 777, "user_table_limit": 48213}"#, [Changed, Changed]),
        ("| staging gateway port | 777 |\n| user table limit | 48213 |", [Changed, Changed]),
    ] {
        check(&probes, text, &[(0, port), (1, limit)]);
    }
}

#[test]
fn a_value_is_kept_where_its_key_names_it_and_no_other_of_its_form() {
    use Match::{Changed, Kept, Unsure};
    for (key, own, text, expected) in [
        ("staging gateway port", "48213", "staging gateway port 48213, billing 51177", Kept),
        ("staging gateway port", "48213", "staging gateway port 51177, billing 48213", Changed),
        (
            "staging gateway port",
            "48213",
            "| gateway | port |\n|---|---|\n| staging gateway | 51177 |\n| billing gateway | 48213 |",
            Changed,
        ),
        ("staging gateway port", "48213", "Staging gateway port: 51177\nBilling: 48213", Changed),
        ("staging gateway port", "48213", "The staging gateway port is 51177.", Changed),
        ("staging gateway port", "48213", "The old staging gateway port 48213", Unsure),
        ("release codename", "bison-086742", "release codename: heron-113355", Changed),
        ("request timeout", "40 ms", "request timeout: 0.04 s", Kept),
        ("request timeout", "40 ms", "request timeout: 40 s", Changed),
        ("parcel allowance", "EUR 40", "parcel allowance: 40 €", Kept),
        ("parcel allowance", "EUR 40", "parcel allowance: $40", Changed),
        ("nightly sync", "1.5 hours", "nightly sync: 1h30", Kept),
        ("on-call phone", "+49 30 5557 0192", "on-call phone: +493055570192", Kept),
        ("coupon code", "SPRING-7741", "coupon code: WINTER-2210, formerly SPRING-7741", Changed),
        ("coupon code", "SPRING-7741", "coupon code: SPRING-7741 (earlier: WINTER-2210)", Kept),
        ("puerto del servidor", "48213", "El puerto del servidor ya no es 48213.", Changed),
    ] {
        check(&[value(key, own)], text, &[(0, expected)]);
    }
}

/// How a text holds one value.
fn state(key: &str, own: &str, text: &str) -> Option<Match> {
    let survival = SurvivalSlots::new(&[value(key, own)]).unwrap();
    let found = survival.find(&Arc::from(text), WrittenBy::Compaction);
    found.first().map(|finding| finding.found)
}

#[test]
fn a_value_behind_a_word_that_makes_another_of_it_is_not_known() {
    use Match::{Kept, Unsure};
    let words: Vec<&String> = LISTS.of(WordClass::Beyond).flatten().collect();
    assert!(words.len() > 20);
    for word in words {
        let text = format!("The cache size is {} 64 MB.", word.replace('_', " "));
        assert_eq!(state("cache size", "64 MB", &text), Some(Unsure), "{text}");
    }
    for (key, text, expected) in [
        ("cache size limit", "cache size limit: under 64 MB", Kept),
        ("cache size limit", "cache size limit: no more than 64 MB", Kept),
        ("cache size limit", "cache size limit: more than 64 MB", Unsure),
        ("cache size", "Cache size (after the move): 64 MB", Kept),
        ("cache size", "The cache size is 64 MB too small.", Unsure),
        ("cache size", "The cache size is 64 MB by day and 32 MB at night.", Unsure),
        ("cache size", "The cache size is 64 MB. Superseded.", Unsure),
        ("cache size", "Cache size: 64 MB (obsolete)", Unsure),
        ("cache size", "Cache size: 64 MB (deprecated, use 32 MB)", Match::Changed),
        ("cache size", "Cache size: 64 MB (was 32 MB)", Kept),
        ("cache size", "Cache size: 64 MB, or 1,024 MB at night.", Unsure),
        ("cache size", "## Superseded\n- Cache size: 64 MB", Unsure),
        ("cancelled cache size", "## Cancelled caches\n- Cache size: 64 MB", Kept),
    ] {
        assert_eq!(state(key, "64 MB", text), Some(expected), "{text}");
    }
    // A rejected path stays what was tried.
    let (approach, reason) = ("row locks".to_owned(), "E-4417".to_owned());
    let tried = [probe(Fact::RejectedPath { approach, reason })];
    for text in [
        "## Discarded\n- Row locks: E-4417",
        "- Row locks: E-4417 (reverted)",
        "Row locks failed with E-4417. Reverted.",
    ] {
        check(&tried, text, &[(0, Kept)]);
    }
}

#[test]
fn a_value_is_bound_by_the_key_of_its_own_sentence() {
    let key = "ibex queue depth";
    for (text, bound) in [
        ("The lynx queue depth is 12,500. The ibex queue depth is 900.", false),
        ("The lynx queue depth is 12,500. The ibex queue depth is unknown.", false),
        ("The lynx queue depth is 12,500; the ibex one is open.", false),
        ("The ibex queue depth is 12,500. The lynx queue depth is 900.", true),
        ("## Ibex\n- worker queue depth: 12,500", true),
        ("## Ibex\n- Queue depth: 11,700\n\n## Lynx\n- Queue depth: 12,500", false),
        ("We set the queue depth of the ibex service to 12,500.", true),
    ] {
        let expected = if bound { Match::Kept } else { Match::Unsure };
        assert_eq!(state(key, "12,500", text), Some(expected), "{text}");
    }
    let text = r#"{"text":"- worker cache size: 64 MB\n\n## Superseded\n- others"}"#;
    assert_eq!(state("worker cache size", "64 MB", text), Some(Match::Kept));
}

#[test]
fn a_value_inside_of_a_newer_one_is_not_there() {
    for (old, new) in [("1.4", "1.4.2"), ("v2", "v2-beta"), ("1.4.2-rc1", "1.4.2")] {
        let revision = |(message, value): (usize, &str)| Revision::new(value, message);
        let values = [(0, old), (2, new)].map(revision).to_vec();
        let key = "client version".to_owned();
        let probes = [probe(Fact::Update { key, values })];
        let text = format!("the client version is {new}");
        check(&probes, &text, &[(1, Match::Kept)]);
        let text = format!("the client version is {old}");
        check(&probes, &text, &[(0, Match::Kept)]);
    }
}

#[test]
fn a_text_is_found_in_a_json_string() {
    let quoted = [value("title", r#"Mend the "lost" page"#)];
    let text = r#"{"title":"Mend the \"lost\" page"}"#;
    check(&quoted, text, &[(0, Match::Kept)]);
}

#[test]
fn a_fact_in_chinese_japanese_or_korean_is_bound_by_its_key() {
    use Match::{Kept, Unsure};
    let far = "然后继续处理别的事情，".repeat(30);
    for (key, text, expected) in [
        ("预发布网关端口", "预发布网关端口是48213。", Kept),
        ("预发布网关端口", "端口48213用于预发布网关", Kept),
        ("预发布网关端口", "48213", Unsure),
        ("预发布网关端口", &format!("预发布网关端口。\n{far}\n48213"), Unsure),
        ("ゲートウェイのポート", "本番のゲートウェイのポートは48213です。", Kept),
        ("ゲートウェイのポート", "別の番号48213です。", Unsure),
        ("게이트웨이 포트", "운영 게이트웨이의 포트는 48213입니다.", Kept),
        ("게이트웨이 포트", "다른 번호는 48213입니다.", Unsure),
    ] {
        check(&[value(key, "48213")], text, &[(0, expected)]);
    }
}

#[test]
fn each_path_of_a_list_is_looked_for() {
    let file = |path: &str, message| TouchedFile { path: path.to_owned(), message, until: None };
    let files = vec![file("./src/a.rs", 1), file("src\\b.rs", 3)];
    let verb = ArtifactVerb::Created;
    let probes =
        [value("x", "1234567"), probe(Fact::Artifact { verb, files, optional: Vec::new() })];
    for text in ["wrote src/b.rs", r"wrote .\src\b.rs", r#"{"path":"src\\b.rs"}"#] {
        check(&probes, text, &[(2, Match::Kept)]);
    }
    check(&probes, r"wrote lib\src\b.rs", &[]);
    let survival = SurvivalSlots::new(&probes).unwrap();
    assert_eq!(survival.slots(1), 1..3);
    assert_eq!(survival.slot_count(), 3);
}

#[test]
fn a_rule_stands_where_it_was_said() {
    let rule = |statement: &str| {
        let (topic, statement) = ("deploys".to_owned(), statement.to_owned());
        let form = RuleForm::Open;
        probe(Fact::Constraint { topic, statement, form })
    };
    let probes = [rule("No deploys on Friday, whatever happens.")];
    check(
        &probes,
        "One thing: No deploys on Friday, whatever happens. Go on.",
        &[(0, Match::Stated)],
    );
    check(&probes, "- no Friday deploys", &[(0, Match::Kept)]);
    assert!(Match::Kept.is_kept());
    let survival = SurvivalSlots::new(&probes).unwrap();
    let recorded = survival.find(&Arc::from("- no Friday deploys"), WrittenBy::Session);
    assert_eq!(*recorded, []);
}

/// How a text holds a rule about a topic.
fn check_rule(topic: &str, rule: &str, cases: &[(&str, Option<Match>)]) {
    let (topic, statement) = (topic.to_owned(), rule.to_owned());
    let form = RuleForm::Open;
    let survival =
        SurvivalSlots::new(&[probe(Fact::Constraint { topic, statement, form })]).unwrap();
    for (text, expected) in cases {
        let found = survival.find(&Arc::from(*text), WrittenBy::Compaction);
        let found = found.first().map(|finding| match finding.found {
            Match::Overruled => Match::Changed,
            Match::Stated => Match::Kept,
            found => found,
        });
        assert_eq!(found, *expected, "{rule} | {text}");
    }
}

const KEPT: Option<Match> = Some(Match::Kept);
const CHANGED: Option<Match> = Some(Match::Changed);
const UNSURE: Option<Match> = Some(Match::Unsure);

#[test]
fn a_rule_is_kept_only_the_same_way_round() {
    check_rule(
        "import",
        "The import must not take more than 10 minutes.",
        &[
            ("The import must take at most 10 minutes.", KEPT),
            ("The import takes no longer than ten minutes.", KEPT),
            ("The import must take more than 10 minutes.", CHANGED),
            ("The import must not take less than 10 minutes.", CHANGED),
            ("The import must take fewer than 10 hours.", CHANGED),
        ],
    );
    check_rule(
        "lynx merger",
        "The lynx merger must not be named to buyers unless they ask 3 times.",
        &[
            ("- The lynx merger must be named to buyers unless they ask 3 times.", CHANGED),
            ("- Never name the lynx merger to buyers unless they ask 3 times.", KEPT),
            ("- Never name the lynx merger to buyers, who ask 3 times.", UNSURE),
        ],
    );
    check_rule(
        "reviews",
        "Each patch needs at least 2 reviews.",
        &[
            ("Each patch needs no fewer than 2 reviews.", KEPT),
            ("Each patch needs fewer than 2 reviews.", CHANGED),
            ("Each patch needs at most 2 reviews.", CHANGED),
        ],
    );
    check_rule(
        "deploys",
        "Never deploy srv-3 before the checks pass.",
        &[
            ("Deploy srv-3 only after the checks pass.", KEPT),
            ("Never deploy srv-3 after the checks pass.", CHANGED),
        ],
    );
    check_rule(
        "credit checks",
        "Repeat credit checks within 3 days unless I say so.",
        &[("Do not repeat credit checks within 3 days unless I say so.", CHANGED)],
    );
}

#[test]
fn each_number_is_held_to_its_own_bound_and_unit() {
    const MOST: [&str; 3] = ["at most", "no more than", "up to"];
    const LEAST: [&str; 3] = ["at least", "no fewer than", "no less than"];
    let rule = |[calls, rows]: [&str; 2], [four, forty]: [&str; 2]| {
        format!("Make {calls} {four} calls a night and import {rows} {forty} MB each.")
    };
    let own = rule([MOST[0], LEAST[0]], ["4", "40"]);
    let mut cases: Vec<(String, Option<Match>)> = Vec::new();
    for (most, least) in MOST.into_iter().flat_map(|most| LEAST.map(|least| (most, least))) {
        for (bounds, expected) in
            [([most, least], KEPT), ([most, most], CHANGED), ([least, least], CHANGED)]
        {
            cases.push((rule(bounds, ["4", "40"]), expected));
        }
        cases.push((rule([least, most], ["4", "40"]), CHANGED));
        cases.push((rule([most, least], ["40", "4"]), CHANGED));
    }
    cases.push((rule([MOST[0], ""], ["4", "40"]), UNSURE));
    cases.push((rule([MOST[0], LEAST[0]], ["4", "40"]) + " Or 9 on Mondays.", KEPT));
    let cases: Vec<_> = cases.iter().map(|(text, expected)| (&**text, *expected)).collect();
    check_rule("", &own, &cases);
    for beside in [
        r#"{"max": 9, "rules": ["RULE"], "limit": 3}"#,
        "- User rules: RULE Done: 3 of 5 files at most.",
        "| rule | RULE | over 9 |",
        "The user said in turn 12: \"RULE\" (and 3 times more).",
    ] {
        check_rule("", &own, &[(&beside.replace("RULE", &own), KEPT)]);
    }
    check_rule(
        "discounts",
        "Discounts of more than 15 % need my approval.",
        &[
            ("Discounts above 15 percent need my approval.", KEPT),
            ("Discounts of more than 15 EUR need my approval.", CHANGED),
            ("Discounts of more than 15 % need my approval, or 20 % on Mondays.", UNSURE),
        ],
    );
}

#[test]
fn a_clause_that_only_takes_back_speaks_of_what_is_before_it() {
    let rule = "Batches must hold at most 400 rows.";
    for clause in [
        "Superseded.",
        "(No longer valid.)",
        "No longer needed.",
        "(obsolete)",
        "Revoked on 2026-05-01.",
        "Withdrawn by the owner.",
        "Überholt.",
    ] {
        check_rule("batches", rule, &[(&format!("{rule} {clause}"), CHANGED)]);
        check_rule("batches", rule, &[(&format!("- {rule}\n\n## {clause}\n- others"), KEPT)]);
    }
    check_rule("batches", rule, &[("Batches must hold at most 400 rows - not any more", CHANGED)]);
    for clause in [
        "Removed the old parser.",
        "Cancelled orders are kept.",
        "Dropped v1 support.",
        "No longer use the v1 format.",
        "Rejected proposals: a nightly import.",
        "The wrong limit was 40.",
    ] {
        check_rule("batches", rule, &[(&format!("{rule} {clause}"), KEPT)]);
    }
}

#[test]
fn a_rule_in_another_order_or_of_another_thing_is_not_sure() {
    for (topic, rule, text) in [
        ("tabs", "Use tabs, never blanks, in a.mk.", "In a.mk: use blanks, never tabs."),
        ("hours", "Call only between 22:00 and 06:00.", "Call only between 06:00 and 22:00."),
        (
            "mails",
            "Mails to buyers must be signed by team-9.",
            "Mails to clients must be signed by team-9.",
        ),
        ("logs", "Nobody may delete logs of host-12.", "Nobody may read logs of host-12."),
        (
            "themes",
            "Use red for team-1 and blue for team-2.",
            "Use blue for team-1 and red for team-2.",
        ),
        (
            "lager.csv",
            "Die Datei lager.csv darf nicht gelöscht werden.",
            "Die Datei lager.csv darf gelöscht werden.",
        ),
        ("", "Нельзя удалять файл lager.csv.", "Можно удалять файл lager.csv."),
        ("lager.csv", "lager.csv を削除しないでください。", "lager.csv を削除してください。"),
    ] {
        check_rule(topic, rule, &[(text, UNSURE), (rule, KEPT)]);
    }
    check_rule(
        "disks",
        "Spend at most $2,500 on disks.",
        &[
            ("Spend at most €2,500 on disks.", CHANGED),
            ("At most 2500 dollars may be spent on disks.", KEPT),
        ],
    );
    check_rule(
        "a/ledger.py",
        "Never touch a/ledger.py.",
        &[
            ("Never touch old/a/ledger.py.", UNSURE),
            ("Never touch a/ledger.py-old.", UNSURE),
            ("Never touch `a/ledger.py`.", KEPT),
        ],
    );
}

#[test]
fn a_rule_stands_beside_another_and_until_it_is_taken_back() {
    let rule = "Never skip tests in apps/mobile.";
    for rest in [
        "\n- Never skip tests in apps/web.",
        "\n- You may skip tests in apps/web.",
        " The old flag is no longer used.",
        "\n\nDropped:\n- the old flag",
        "\nStatus: removed the old parser",
    ] {
        check_rule("mobile tests", rule, &[(&format!("- {rule}{rest}"), KEPT)]);
    }
    for text in [
        "# Rules that no longer apply\n- RULE",
        "Lifted:\n- RULE",
        "## Deprecated\n- RULE",
        "Rejected:\n- RULE",
        "RULE This rule was lifted.",
        "~~RULE~~ Done.",
        r#"{"rule": "RULE", "active": false}"#,
        r#"{"rule": "RULE", "status": "superseded"}"#,
        r#"The user said "RULE" at first, but later dropped that."#,
        "Never skip tests in apps/mobile until the release is out.",
        "Never skip tests in apps/mobile without a good reason.",
    ] {
        check_rule("mobile tests", rule, &[(&text.replace("RULE", rule), CHANGED)]);
    }
    let denied = "It is not true that the user said: never skip tests in apps/mobile";
    check_rule("mobile tests", rule, &[(denied, UNSURE)]);
    check_rule("mobile tests", rule, &[(&format!("Replaced by:\n- {rule}"), KEPT)]);
    let topic = "## Cancelled orders\n- Never cancel shipped orders.";
    check_rule("orders", "Never cancel shipped orders.", &[(topic, KEPT)]);
}

#[test]
fn paths_are_compared_in_one_form() {
    for (path, canonical) in [
        ("./src/a.rs", "src/a.rs"),
        ("src//a.rs", "src/a.rs"),
        ("src\\a.rs", "src/a.rs"),
        ("/work/./a/", "/work/a"),
        (" a ", "a"),
    ] {
        assert_eq!(canonical_path(path), canonical);
    }
}
