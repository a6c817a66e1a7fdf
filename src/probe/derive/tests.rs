//! Tests which facts are found in a small recording, and which are not.

use std::sync::Arc;

use super::work::counted;
use super::*;
use crate::probe::FactExt as _;
use crate::probe::{ask_points, items};
use crate::session::ground_truth::{Revision, RuleForm, TouchedFile};
use crate::session::{
    ContentBlock, JsonText, Message, Role, SessionParts, Tag, ToolClass, ToolResult,
};

fn uses(id: &str, class: ToolClass, input: &str) -> Message {
    let tool = ToolUse {
        id: id.into(),
        name: class.name().into(),
        class,
        input: JsonText::parse(input).unwrap(),
    };
    Message::new(Role::Assistant, vec![ContentBlock::ToolUse(tool.into())])
}

fn result(id: &str, text: &str, is_error: bool) -> Message {
    let result = ToolResult {
        tool_use_id: id.into(),
        content: vec![ContentBlock::Text(text.into())],
        is_error,
    };
    Message::new(Role::User, vec![ContentBlock::ToolResult(result.into())])
}

fn typed(text: &str) -> Message {
    Message::text(Role::User, text).with_tags([Tag::TypedUser])
}

fn session() -> Session {
    let todo = |state: &str| {
        format!(
            r#"{{"todos":[{{"content":"mend the parser","status":"{state}"}},{{"content":"write the guide","status":"pending"}}]}}"#
        )
    };
    let read = |path: &str| format!(r#"{{"file_path":"{path}"}}"#);
    let mut messages = vec![
        typed("Please mend the flaky parser today.\nNever touch the vendored grammar files here."),
        uses("1", ToolClass::Read, &read("conf/alpha.toml")),
        result(
            "1",
            "listen_port = n5a1:20311\nthe gateway fingerprint is 4f8a1c2d9",
            false,
        ),
        uses("2", ToolClass::Read, &read("conf/beta.toml")),
        result("2", "listen_port = n7b3:20599", false),
        uses("3", ToolClass::Shell, r#"{"command":"make check"}"#),
        result(
            "3",
            "failure TS2345 around lexer state src/lex.ts:118\n3 files",
            true,
        ),
        uses("4", ToolClass::Todo, &todo("pending")),
        result("4", "noted", false),
        uses("5", ToolClass::Shell, r#"{"command":"make test"}"#),
        result("5", "summary: 38 passed", false),
        uses("6", ToolClass::Todo, &todo("completed")),
        result("6", "noted", false),
        uses("7", ToolClass::Edit, &read("src/lex.ts")),
        result("7", "done", false),
        uses("8", ToolClass::Shell, r#"{"command":"make test all"}"#),
        result("8", "summary: 41 passed", false),
    ];
    for at in 0..4 {
        messages.push(uses(
            &format!("w{at}"),
            ToolClass::Write,
            &read(&format!("out/page{at}.md")),
        ));
        messages.push(result(&format!("w{at}"), "written", false));
    }
    messages.push(Message::text(Role::Assistant, "All of it is finished."));
    messages.push(typed("Now write the release note, please."));
    messages.push(Message::text(Role::Assistant, "Done."));
    session_of(messages)
}

fn session_of(messages: Vec<Message>) -> Session {
    Session::new(SessionParts {
        id: "small".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        ..SessionParts::default()
    })
    .unwrap()
}

/// Tool uses of one kind, each with its result.
fn rounds(class: ToolClass, rounds: &[(&str, &str)]) -> Vec<Message> {
    let rounds = rounds.iter().enumerate();
    rounds
        .flat_map(|(at, (input, text))| {
            let id = format!("{}-{at}", class.name());
            [uses(&id, class, input), result(&id, text, false)]
        })
        .collect()
}

/// The facts of one kind that are found in a session of these messages behind a first request.
fn facts_of(kind: &str, messages: Vec<Message>) -> (Session, Vec<PlantedFact>) {
    let mut all = vec![typed("Please look after the quarterly ledger.")];
    all.extend(messages);
    let session = session_of(all);
    let truth = derive(&session, &touched).truth;
    let of_kind = truth.facts.into_iter();
    let of_kind = of_kind.filter(|fact| fact.id.starts_with(kind)).collect();
    (session, of_kind)
}

/// The values with the messages that say them; `-` in front of those that are never asked for.
fn series(values: &[Revision]) -> Vec<String> {
    let sign = |said: &Revision| if said.unasked { "-" } else { "" };
    let values = values.iter();
    values
        .map(|said| format!("{}{}@{}", sign(said), said.value, said.message))
        .collect()
}

/// As the tools of the session above are meant.
fn touched(tool: &ToolUse) -> Vec<(ArtifactVerb, String)> {
    let verb = match tool.class {
        ToolClass::Read => ArtifactVerb::Read,
        ToolClass::Write => ArtifactVerb::Created,
        ToolClass::Edit => ArtifactVerb::Modified,
        _ => return Vec::new(),
    };
    let path = tool.input.value()["file_path"].as_str().map(str::to_owned);
    path.map(|path| (verb, path)).into_iter().collect()
}

fn found(id: &str) -> Option<Fact> {
    let truth = derive(&session(), &touched).truth;
    let mut facts = truth.facts.into_iter();
    facts.find(|fact| fact.id == id).map(|fact| fact.fact)
}

#[test]
fn every_deterministic_kind_is_found() {
    assert_eq!(
        found("recall-01"),
        Some(Fact::Recall {
            key: "gateway fingerprint".to_owned(),
            value: "4f8a1c2d9".to_owned(),
        })
    );
    let Some(Fact::Binding { key, value, others }) = found("binding-01") else {
        panic!("no binding");
    };
    assert_eq!((&*key, &*value), ("listen_port", "n5a1:20311"));
    assert_eq!(others[0].value, "n7b3:20599");
    let Some(Fact::Error { code, place, .. }) = found("error-01") else {
        panic!("no error");
    };
    assert_eq!((&*code, &*place), ("TS2345", "src/lex.ts:118"));
    assert_eq!(
        found("numeric-01"),
        Some(Fact::Numeric {
            key: "passed".to_owned(),
            unit: "passed".to_owned(),
            values: vec![Revision::new("38", 10), Revision::new("41", 16)],
        })
    );
    let Some(Fact::Continuation { items, .. }) = found("continuation-01") else {
        panic!("no plan");
    };
    assert_eq!((items[0].done, items[1].done), (Some(11), None));
    let Some(Fact::Constraint {
        statement, form, ..
    }) = found("constraint-01")
    else {
        panic!("no rule");
    };
    assert_eq!(statement, "Never touch the vendored grammar files here.");
    assert_eq!(form, RuleForm::Open);
    let Some(Fact::Order { events, .. }) = found("order-01") else {
        panic!("no order");
    };
    assert_eq!(events[0].value, "conf/alpha.toml");
    assert!(events.len() >= 4 && events.is_sorted_by(|a, b| a.message < b.message));
    let Some(Fact::LastRequest { requests }) = found("last-request-01") else {
        panic!("no request");
    };
    assert_eq!(requests[1].value, "Now write the release note, please.");
    assert!(found("artifact-01").is_some() && found("artifact-02").is_some());
    assert!(matches!(found("decoy-02"), Some(Fact::Decoy { .. })));
    assert_eq!(found("decision-01"), None);
}

#[test]
fn every_test_run_ends_what_the_one_before_it_said() {
    let run = r#"{"command":"make test"}"#;
    let (_, facts) = facts_of(
        "numeric",
        rounds(
            ToolClass::Shell,
            &[
                (run, "31 passed, 12 failed"),
                (run, "40 passed, 3 failed"),
                (run, "52 passed"),
                ("{}", "nothing was tested here"),
                (run, "594 passed\n3 passed"),
                (run, "77 passed, 77 of them slow"),
            ],
        ),
    );
    let found: Vec<(&str, Vec<String>)> = facts
        .iter()
        .map(|fact| match &fact.fact {
            Fact::Numeric { unit, values, .. } => (unit.as_str(), series(values)),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(found[0].0, "failed");
    assert_eq!(found[0].1, ["12@2", "-3@4", "-not reported@6"]);
    assert_eq!(found[1].0, "passed");
    // The last of two counts is none, and neither is one that stands twice.
    assert_eq!(found[1].1, ["31@2", "40@4", "52@6", "-3@10", "-77@12"]);
    assert_eq!(
        counted("Ran 1,234 tests", "tests"),
        Some(("234".to_owned(), false))
    );
}

#[test]
fn the_last_request_is_the_last_one() {
    let later = |text: &str| [Message::text(Role::Assistant, "Done."), typed(text)];
    let texts = [
        "yes, commit it",
        "Now write the release note, please.",
        "Now write the release note, please.",
        "Now write the release note, please. And sign it.",
    ];
    let mut messages: Vec<Message> = texts.into_iter().flat_map(later).collect();
    messages.extend(later(&"word ".repeat(200)));
    messages.push(Message::text(Role::Assistant, "Done."));
    let (session, facts) = facts_of("last-request", messages);
    let Fact::LastRequest { requests } = &facts[0].fact else {
        panic!("no request");
    };
    let asked: Vec<(usize, bool)> = requests.iter().map(|r| (r.message, r.unasked)).collect();
    let expected = [
        (0, false),
        (2, true),
        (4, false),
        (6, true),
        (8, false),
        (10, true),
    ];
    assert_eq!(asked, expected);
    // Nothing is asked while the newest is none that can be asked for.
    let probes = facts.clone();
    for item in items(&session, &probes) {
        let before = session.calls()[item.call];
        let mut parts = probes[0].fact.spec().parts;
        parts.retain(|part| part.is_current(before));
        assert!(!parts.pop().unwrap().unasked, "{item:?}");
    }
}

#[test]
fn an_order_is_asked_of_files_that_the_question_names() {
    let paths: Vec<String> = (0..24)
        .map(|at| format!("src/part{}.rs", (at * 7) % 24))
        .collect();
    let inputs: Vec<String> = paths
        .iter()
        .map(|path| format!(r#"{{"file_path":"{path}"}}"#))
        .collect();
    let reads: Vec<(&str, &str)> = inputs.iter().map(|input| (&**input, "text")).collect();
    let (session, facts) = facts_of("order", rounds(ToolClass::Read, &reads));
    assert_eq!(facts.len(), 4);
    let windows: Vec<String> = inputs.iter().map(|it| it.replace('/', r"\\")).collect();
    let windows: Vec<(&str, &str)> = windows.iter().map(|it| (&**it, "text")).collect();
    let (_, same) = facts_of("order", rounds(ToolClass::Read, &windows));
    assert_eq!(same.len(), 4);
    let probes = facts.clone();
    for (fact, probe) in facts.iter().zip(&probes) {
        let Fact::Order { events, .. } = &fact.fact else {
            panic!("no order");
        };
        let places: Vec<usize> = events
            .iter()
            .map(|event| fact.question.find(&event.value).unwrap())
            .collect();
        assert!(!places.is_sorted(), "{}", fact.question);
        assert!(matches!(probe.fact, Fact::Order { .. }));
    }
    // The first stretch is asked for at every point, the last one at the end alone.
    let asked = items(&session, &probes);
    let points = ask_points(session.calls().len());
    for (at, _) in probes.iter().enumerate() {
        let times = asked.iter().filter(|item| item.probe == at).count();
        assert_eq!(times, points.len() - at);
    }
}

#[test]
fn a_cancelled_item_is_neither_done_nor_open() {
    let todo = |state: &str| {
        let items = [
            ("mend it", "pending"),
            ("port it", state),
            ("write it", "pending"),
        ];
        let items =
            items.map(|(text, state)| format!(r#"{{"content":"{text}","status":"{state}"}}"#));
        format!(r#"{{"todos":[{}]}}"#, items.join(","))
    };
    let (first, second) = (todo("pending"), todo("cancelled"));
    let messages = rounds(ToolClass::Todo, &[(&first, "noted"), (&second, "noted")]);
    let (_, facts) = facts_of("continuation", messages);
    let Fact::Continuation { items, .. } = &facts[0].fact else {
        panic!("no plan");
    };
    let items: Vec<&str> = items.iter().map(|item| item.item.as_str()).collect();
    assert_eq!(items, ["mend it", "write it"]);
}

#[test]
fn a_file_is_on_another_list_once_it_is_changed() {
    let path = |path: &str| format!(r#"{{"file_path":"{path}"}}"#);
    let mut messages = rounds(
        ToolClass::Read,
        &[(&path("a.rs"), "x"), (&path("b.rs"), "y")],
    );
    messages.extend(rounds(ToolClass::Edit, &[(&path("a.rs"), "done")]));
    messages.extend([
        uses("broken", ToolClass::Edit, &path("b.rs")),
        result("broken", "no such text", true),
        Message::text(Role::Assistant, "Done."),
    ]);
    let (session, facts) = facts_of("artifact", messages);
    let file = |path: &str, message, until| TouchedFile {
        path: path.to_owned(),
        message,
        until,
    };
    let lists: Vec<(ArtifactVerb, Vec<TouchedFile>)> = facts
        .iter()
        .map(|fact| match &fact.fact {
            Fact::Artifact { verb, files, .. } => (*verb, files.clone()),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        (
            ArtifactVerb::Read,
            vec![file("a.rs", 1, Some(5)), file("b.rs", 3, None)],
        ),
        (ArtifactVerb::Modified, vec![file("a.rs", 5, None)]),
    ];
    assert_eq!(lists, expected);
    let probes = facts;
    assert_eq!(probes[0].fact.current(5), ["a.rs", "b.rs"]);
    assert_eq!(probes[0].fact.current(6), ["b.rs"]);
    assert_eq!(probes[0].evidence_before(5), [1, 3]);
    assert_eq!(probes[0].evidence_before(6), [3]);
    assert!(items(&session, &probes).iter().all(|item| item.call > 0));
}

#[test]
fn a_key_is_revised_within_one_file() {
    let path = |path: &str| format!(r#"{{"file_path":"{path}"}}"#);
    let (cargo, node) = (path("conf/cargo.toml"), path("conf/node.json"));
    let updates = |reads: &[(&str, &str)]| {
        let (_, facts) = facts_of("update", rounds(ToolClass::Read, reads));
        let facts = facts.into_iter();
        let values = facts.map(|fact| match fact.fact {
            Fact::Update { values, .. } => series(&values),
            other => panic!("{other:?}"),
        });
        values.collect::<Vec<_>>()
    };
    let (old, new) = ("release = n1.4.21", "release = n1.4.22");
    let found = updates(&[(&cargo, old), (&cargo, new)]);
    assert_eq!(found, [["n1.4.21@2", "n1.4.22@4"]]);
    // Two files have two keys of that name, so may two parts of one, and so has whatever is no file.
    assert!(updates(&[(&cargo, old), (&node, new)]).is_empty());
    let part = r#"{"file_path":"conf/cargo.toml","offset":40}"#;
    assert!(updates(&[(&cargo, old), (part, new)]).is_empty());
    let shown = rounds(ToolClass::Shell, &[("{}", old), ("{}", new)]);
    assert!(facts_of("update", shown).1.is_empty());
    // The last word before a value is no key: "Original token count: 1082".
    let header = |count: u32| format!("Original release count: n1.4.{count}");
    assert!(updates(&[(&cargo, &header(21)), (&cargo, &header(22))]).is_empty());
    // The newest value stands twice, and so the older one is not the newest.
    let again = updates(&[(&cargo, old), (&cargo, new), (&cargo, "release = n1.4.23")]);
    assert_eq!(again[0].len(), 3);
    assert!(updates(&[(&cargo, old), (&cargo, new), (&cargo, new)]).is_empty());
    // The effect of an edit on it is not shown.
    let mut messages = rounds(ToolClass::Read, &[(&cargo, old), (&cargo, new)]);
    let edit = r#"{"file_path":"conf/cargo.toml","new":"release = n1.4.99"}"#;
    messages.extend(rounds(ToolClass::Edit, &[(edit, "done")]));
    let (_, facts) = facts_of("update", messages);
    let Fact::Update { values, .. } = &facts[0].fact else {
        panic!("no update");
    };
    assert_eq!(series(values), ["n1.4.21@2", "n1.4.22@4", "-not shown@5"]);
}

#[test]
fn a_plain_statement_makes_a_fact_whoever_says_it() {
    let mut messages = Vec::new();
    for round in 0..24 {
        messages.push(Message::text(Role::Assistant, "Noted."));
        let said = format!("The port of service svc{round} is {}.", 4_049 + 7 * round);
        messages.push(typed(&said));
    }
    messages.push(Message::text(
        Role::Assistant,
        "The staging host is quill-7.",
    ));
    let (session, facts) = facts_of("recall", messages.clone());
    assert_eq!(facts.len(), 25, "{facts:?}");
    assert_eq!(facts[7].question, "What is the port of service svc7?");
    assert!(
        facts
            .iter()
            .all(|fact| fact.importance == Importance::Normal)
    );
    assert_eq!(derive(&session, &touched).passed_over, BTreeMap::new());
    // Said again it is the same fact, with another value a newer one; and what others say as well
    // could be found without it.
    messages.extend([
        typed("The port of service svc7 is 4098. It must stay so!\nThe port of service svc8 is now 7001."),
        Message::text(Role::Assistant, "I wrote 4049 and 4056 into the file."),
    ]);
    let (session, facts) = facts_of("", messages);
    let evidence = |value: &str| {
        let mut facts = facts.iter();
        let of_it = |fact: &&PlantedFact| matches!(&fact.fact, Fact::Recall { value: own, .. } if own == value);
        facts.find(of_it).map(|fact| fact.evidence.clone())
    };
    assert_eq!(evidence("4098"), Some(vec![16, 50]));
    assert_eq!(evidence("4049"), None);
    let update = facts
        .iter()
        .find(|fact| fact.id.starts_with("update"))
        .unwrap();
    assert_eq!(update.question, "What is the port of service svc8 now?");
    let passed_over = derive(&session, &touched).passed_over;
    assert_eq!(passed_over, BTreeMap::from([(SkipReason::ElsewhereToo, 2)]));
}

#[test]
fn only_the_users_own_words_are_demands() {
    let mut first = Message::new(
        Role::User,
        [
            "Never praise the plan of the day.",
            "<skills_instructions>\nAlways load the riffrec skill first.\n</skills_instructions>",
            "Keep the vendored grammar files untouched.\nNever rename the public endpoints here!",
        ]
        .map(|text| ContentBlock::Text(text.into()))
        .to_vec(),
    )
    .with_tags([Tag::TypedUser, Tag::Meta]);
    first.details.injected = [0].into();
    let session = session_of(vec![first, Message::text(Role::Assistant, "Done.")]);
    let facts = derive(&session, &touched).truth.facts;
    let rules: Vec<(&str, Importance)> = facts
        .iter()
        .filter_map(|fact| match &fact.fact {
            Fact::Constraint { statement, .. } => Some((statement.as_str(), fact.importance)),
            _ => None,
        })
        .collect();
    let expected = [
        (
            "Keep the vendored grammar files untouched.",
            Importance::Normal,
        ),
        ("Never rename the public endpoints here!", Importance::High),
    ];
    assert_eq!(rules, expected);
}

#[test]
fn keys_are_words_that_a_person_would_use() {
    for (line, value, words) in [
        (
            "-rwxr-xr-x 1 root staff 126709488 node",
            "126709488",
            &["root", "staff", "node"][..],
        ),
        (
            "rollout-2026-eedf keyword size 4378203",
            "4378203",
            &["keyword", "size"],
        ),
        (
            "size of the receivePackBodyLimit 536870912 EXCEEDED",
            "536870912",
            &["size", "exceeded"],
        ),
        (
            "commit by Łukasz rcwkgmze dc03299",
            "dc03299",
            &["commit", "łukasz"],
        ),
    ] {
        assert_eq!(key_words(line, value), words, "{line}");
    }
    let nested = r#"{"text":"{\"result\":\"ok\\nagentId: ac66d4b\"}"}"#;
    assert!(
        decoded(nested)
            .lines()
            .any(|line| line.starts_with("agentId: ac66d4b"))
    );
    assert_eq!(decoded(r"C:\new\table"), r"C:\new\table");
}

#[test]
fn texts_of_several_tokens_are_counted_by_their_messages() {
    let messages = vec![
        typed("The motto is \"slow and steady\", slow and steady; see docs/[id] page."),
        uses(
            "1",
            ToolClass::Shell,
            r#"{"command":"say \"slow and \" steady"}"#,
        ),
        Message::text(Role::Assistant, "Slow, and steady: n5-x."),
    ];
    let session = Session::new(SessionParts {
        id: "counted".into(),
        system: Some("Be slow and steady.".into()),
        messages: messages.into_iter().map(Arc::new).collect(),
        ..Default::default()
    });
    let session = session.unwrap();
    let texts = Texts::new(&session, &|_| Vec::new());
    let counted = [
        ("docs/[id] page", 1),
        ("n5-x", 1),
        ("n5", 1),
        ("no such text", 0),
        ("nowhere", 0),
        ("slow and", 3),
        ("slow and \" st", 1),
        ("slow and steady", 2),
    ];
    let counts = texts.frequencies(counted.into_iter().map(|(text, _)| text));
    assert_eq!(counts, BTreeMap::from(counted));
}

#[test]
fn the_same_recording_gives_the_same_facts() {
    assert_eq!(derive(&session(), &touched), derive(&session(), &touched));
}

#[test]
fn proposals_are_spread_over_the_session() {
    let all: Vec<usize> = (0..100).collect();
    assert_eq!(spread(all.clone(), 4), [0, 25, 50, 75]);
    assert_eq!(spread(all, 200).len(), 100);
}
