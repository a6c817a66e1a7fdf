//! Tests which facts are derived from small recordings, and which are not.

use std::sync::Arc;

use super::*;
use crate::probe::Selection;
use crate::session::{
    CompactedTo, ContentBlock, JsonText, Message, Recorded, RecordedCompaction, Role, SessionParts,
    Tag,
};

fn typed(text: &str) -> Message {
    Message::text(Role::User, text).with_tags([Tag::TypedUser])
}

fn agent(text: &str) -> Message {
    Message::text(Role::Assistant, text)
}

/// A call of a tool, and its result.
fn call(name: &str, input: &str, result: &str) -> Vec<Message> {
    let id: Arc<str> = format!("{name}{input}{result}").into();
    let input = JsonText::parse(input).unwrap();
    let result = vec![ContentBlock::Text(result.into())];
    let blocks = [
        ContentBlock::tool_use(id.clone(), name.into(), input),
        ContentBlock::tool_result(id, result, false),
    ];
    let roles = [Role::Assistant, Role::User].into_iter();
    roles.zip(blocks).map(|(role, block)| Message::new(role, vec![block])).collect()
}

fn read(path: &str) -> Vec<Message> {
    call("read", &format!(r#"{{"file_path":"{path}"}}"#), "x")
}

fn bash(command: &str, result: &str) -> Vec<Message> {
    call("bash", &format!(r#"{{"command":"{command}"}}"#), result)
}

/// A session of these messages, and of a compaction before each empty list of them.
fn session(parts: Vec<Vec<Message>>) -> Session {
    let (mut messages, mut compactions) = (Vec::new(), Vec::new());
    for part in parts {
        if part.is_empty() {
            compactions.push(RecordedCompaction {
                at: messages.len(),
                trigger: None,
                pre_tokens: None,
                usage: None,
                after: CompactedTo::Replaced(vec![Recorded::summary("all is well")]),
            });
        }
        messages.extend(part.into_iter().map(Arc::new));
    }
    Session::new(SessionParts {
        id: "small".into(),
        messages,
        compactions,
        ..SessionParts::default()
    })
    .unwrap()
}

/// Derives facts; each is shown as its evidence, its use, the question and the answer.
#[track_caller]
fn check(parts: Vec<Vec<Message>>, expected: &[&str]) {
    let session = session(parts);
    let facts = derive(&session).facts;
    let planted = facts.iter().filter(|fact| !fact.kind().is_never_said());
    let found: Vec<String> = planted
        .map(|fact| {
            let before = fact.until.unwrap_or(session.messages().len());
            let until = fact.until.map_or(String::new(), |until| until.to_string());
            let answer = fact.fact.spec().in_words(before);
            format!("{:?}..{until} {} {answer}", fact.evidence, fact.question)
        })
        .collect();
    assert_eq!(found, expected);
}

const LAST: &str = "What did the user ask for last? Quote it word for word.";

#[test]
fn a_rule_is_asked_until_the_user_repeats_or_corrects_it() {
    let said = |first: &str, later: &str| {
        // Both are nods but for the rule: no request is asked for.
        let first = format!("<a_b>x</a_b><question>{first}</question>{}", "y".repeat(600));
        let later = format!("{}\n{later}", "z".repeat(600));
        vec![vec![typed(&first), agent("Done."), typed(&later), agent("Done.")]]
    };
    let rule = |words: &str, about: &str| {
        format!("[0]..2 Which rule did the user set about `{about}`? Quote it. {words}")
    };
    let never = "Never touch the files in db/migrations.";
    check(
        said(never, "Again: never touch files in db/migrations!"),
        &[&rule(never, "db/migrations")],
    );
    let most = "Send at most 3 parcels from src/depot.rs.";
    check(said(most, "Send at most 5 parcels from src/depot.rs."), &[&rule(most, "src/depot.rs")]);
    let port = "The proxy must listen on port 8080.";
    let begins = format!(
        "[0]..2 How does the user's rule go on that begins “The proxy must listen”? Quote it. {port}"
    );
    check(said(port, "The proxy must listen on port 9090."), &[&begins]);
    check(
        said("- Keep at most 3 retries in a.rs", "- Keep at most 4 retries in a.rs"),
        &[&rule("Keep at most 3 retries in a.rs", "a.rs")],
    );
    for (first, later) in [
        (never, "Never touch the files in db/seeds."),
        (never, "Please list the files in db/migrations."),
        (never, "Run the tests again."),
        ("I looked at db/migrations.", "I looked at db/migrations."),
        ("I don't have my ID here.", "I don't have my ID here."),
        ("error: never reached src/a.rs:10", "error: never reached src/a.rs:10"),
    ] {
        check(said(first, later), &[]);
    }
    // The same text again is a product's.
    let prompt = format!("{never} {}", "x".repeat(600));
    check(vec![vec![typed(&prompt), agent("Done."), typed(&prompt), agent("Done.")]], &[]);
}

#[test]
fn a_rule_of_a_file_is_one_once_the_user_repeats_it() {
    let file = r#"{"file_path":"/work/CLAUDE.md"}"#;
    let parts = vec![
        call("read", file, "1→# Rules\n2→- Never commit to release/1.2.\n3→- Be kind."),
        vec![typed("Stop! Never commit to release/1.2, please."), agent("Sorry.")],
    ];
    check(
        parts,
        &[
            "[1]..2 How does the user's rule go on that begins “Never commit to”? Quote it. Never commit to release/1.2.",
        ],
    );
}

#[test]
fn what_a_file_lists_under_a_heading_of_rules_is_an_instruction() {
    for (heading, item, count) in [
        ("## Rules", "Keep messages below 72 characters", 1),
        ("Regeln:", "Tabs mit 4 Leerzeichen Breite verwenden", 1),
        ("## Règles de style", "Garder 4 espaces par niveau", 1),
        ("## Reglas", "Usar 4 espacios por nivel", 1),
        ("## 规则", "提交标题 72 个字符以内", 1),
        ("## Rules", "Always sign commits", 1),
        ("## Rules", &format!("Keep messages brief. {}", "word ".repeat(100)), 1),
        ("## Layout", "The shop is in 4 folders", 0),
    ] {
        let text = format!("# Shop\n{heading}\n- {item}\n");
        let read = call("read", r#"{"file_path":"AGENTS.md"}"#, &text);
        assert_eq!(said::instructions(&session(vec![read])).len(), count, "{text}");
    }
}

#[test]
fn a_value_is_asked_for_that_had_to_be_fetched_again() {
    let twice =
        |command: &str, one: &str, two: &str| vec![bash(command, one), vec![], bash(command, two)];
    for (one, two, expected) in [
        (
            "4f8a1c2d9\n",
            "4f8a1c2d9\n",
            "[1]..2 Which hash did `git rev-parse HEAD` print? 4f8a1c2d9",
        ),
        (
            "job OPS-48213 queued",
            "job OPS-48213 done",
            "[1]..2 Which code did `git rev-parse HEAD` print? OPS-48213",
        ),
        ("4f8a1c2d9", "99fa1c2d9", ""),
        ("4f8a1c2d9 and 77fa1c2d9", "4f8a1c2d9 and 77fa1c2d9", ""),
        ("nothing to see", "nothing to see", ""),
    ] {
        let expected: Vec<&str> = Some(expected).filter(|it| !it.is_empty()).into_iter().collect();
        check(twice("git rev-parse HEAD", one, two), &expected);
    }
    check(twice("git show 4f8a1c2d9", "4f8a1c2d9", "4f8a1c2d9"), &[]);
    check(
        vec![bash("git rev-parse HEAD", "4f8a1c2d9"), bash("git rev-parse HEAD", "4f8a1c2d9\n")],
        &[],
    );
}

#[test]
fn a_handle_that_outlives_a_compaction_is_open_until_it_is_ended() {
    let start = |id: &str| {
        let input = r#"{"command":"serve","run_in_background":true}"#;
        call("bash", input, &format!("Command running in background with ID: {id}"))
    };
    let poll = |id: &str| {
        call("bash_output", &format!(r#"{{"bash_id":"{id}"}}"#), "<status>running</status>")
    };
    let kill = |id: &str| call("kill_bash", &format!(r#"{{"shell_id":"{id}"}}"#), "ended");
    let question =
        "Which commands that the agent started still run in the background? Give their ids.";
    check(
        vec![
            start("bash_1"),
            start("bash_2"),
            vec![],
            poll("bash_1"),
            poll("bash_2"),
            kill("bash_1"),
        ],
        &[&format!("[1, 3].. {question} bash_2")],
    );
    // Codex names a session for as long as it runs.
    let running = |wait: u8| {
        call("write_stdin", &format!(r#"{{"session_id":4711,"wait":{wait}}}"#), "running as 4711")
    };
    let over = call("write_stdin", r#"{"session_id":4711}"#, "all is built");
    let begin = bash("make", "running with session ID 4711");
    check(
        vec![begin.clone(), vec![], running(1), running(2)],
        &[&format!("[1].. {question} 4711")],
    );
    check(vec![begin.clone(), vec![], running(1), over.clone()], &[&format!("[1].. {question} ")]);
    // No compaction came over it.
    check(vec![begin, running(1), over, vec![]], &[]);
    check(vec![bash("make", "done 4711"), bash("ls", "4711")], &[]);
}

#[test]
fn a_plan_is_what_its_last_version_holds_and_is_not_done() {
    let todo = |states: [&str; 3]| {
        let item = |(at, state): (usize, &&str)| {
            format!(r#"{{"content":"mend part {at}","status":"{state}"}}"#)
        };
        let items: Vec<String> = states.iter().enumerate().map(item).collect();
        call("todo_write", &format!(r#"{{"todos":[{}]}}"#, items.join(",")), "noted")
    };
    let (first, last) = (todo(["pending"; 3]), todo(["completed", "cancelled", "pending"]));
    let question = "Which items of the task list are not done yet?";
    check(vec![first, last], &[&format!("[0, 2].. {question} mend part 2")]);
    check(vec![todo(["completed"; 3])], &[]);
}

#[test]
fn the_last_request_is_the_last_one_that_can_be_quoted() {
    let asked = |parts: Vec<Vec<Message>>| {
        let session = session(parts);
        let fact = derive(&session).facts.iter().find(|fact| fact.id == "last-request-01")?.clone();
        Selection::default()
            .items(&session, std::slice::from_ref(&fact))
            .iter()
            .any(|item| item.percent == 100)
            .then(|| fact.fact.spec().in_words(usize::MAX))
    };
    let last = |texts: &[&str]| {
        let messages = texts.iter().flat_map(|text| [typed(text), agent("Done.")]);
        asked(vec![messages.collect()])
    };
    let (mend, nod, long) = ("Please mend the flaky parser.", "yes, do", "word ".repeat(200));
    assert_eq!(last(&[nod, mend]).as_deref(), Some(mend));
    assert_eq!(last(&[mend, nod]), None, "a nod ends the request before it");
    assert_eq!(last(&[mend, &long]), None);
    let wrapped = format!("<system-reminder>x</system-reminder>{mend}");
    assert_eq!(last(&[&wrapped]).as_deref(), Some(mend));
    // Nothing is done on thanks.
    let thanks =
        |text: &str| vec![vec![typed(mend)], read("a.rs"), vec![typed(text), agent("Gladly.")]];
    assert_eq!(asked(thanks("Thank you, that is all.")), None);
    // The agent called a tool in words: what follows is its result.
    let messages = vec![
        typed(mend),
        agent("<function=run>ls</function>"),
        typed("OBSERVATION: a and b and c"),
        agent("Done."),
    ];
    check(vec![messages], &[&format!("[0].. {LAST} {mend}")]);
}

#[test]
fn decoys_belong_to_their_session_and_a_derivation_can_be_repeated() {
    let one = || session(vec![vec![typed("Please mend the flaky parser.")]]);
    let facts = derive(&one());
    assert_eq!(facts, derive(&one()));
    let decoys = facts.facts.iter().filter(|fact| fact.kind().is_never_said());
    assert_eq!(decoys.count(), DECOYS);
    assert_eq!(without_anchor(&facts.facts), (1, 1));
}
