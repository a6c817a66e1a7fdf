//! Summaries: what they replace, what the model is asked, and what happens when it fails.

use proctor::model::scripted::response;
use proctor::model::{CallFailure, Response, Stop};
use proctor::session::{ContentBlock, Message, Role, Session, Tag};
use proctor::settings::SettingTable;
use proctor::step::CallResult;
use proctor::strategy::StrategySpec;
use proctor::strategy::trigger::Trigger;
use proctor::units::Tokens;
use proctor::window::Window;

use crate::support::{answers, asks, said, session, tool_result, tool_use, typed};
use crate::walk::{Walk, said_in};

fn summarising(knobs: &str) -> StrategySpec {
    let text = format!("[[stage]]\nkind = 'summarize'\n{knobs}");
    let table = SettingTable::parse("own.toml", &text).unwrap();
    StrategySpec::of("own", table, &Trigger::always()).unwrap()
}

/// Five calls; before the last there are nine messages.
fn work() -> Session {
    let todo = tool_use("t1", "TodoWrite", "one open");
    session(vec![
        typed(
            "Please do the first thing, and do not touch main.rs; ask before you install anything, and write down what you decide on.",
        ),
        asks("t0", "Read", "a.rs"),
        answers("t0", &"content of a ".repeat(20)),
        Message::new(Role::Assistant, vec![todo, tool_use("t2", "Bash", "make")]),
        Message::new(Role::User, vec![tool_result("t1", "noted"), tool_result("t2", "made")]),
        said("The first thing is done."),
        typed("Now the second."),
        asks("t3", "Read", "b.rs"),
        answers("t3", &"content of b ".repeat(20)),
        said("Done."),
    ])
}

/// Summarises once, at the last call.
fn walk(knobs: &str, reply: impl Fn(usize) -> CallResult + Send + Sync + 'static) -> Walk {
    let spec = summarising(&format!(
        "when = {{ rounds_every = 4 }}\nguards.on_inflation = 'apply'\n{knobs}"
    ));
    Walk::of(work(), &spec, Window::new(Tokens(2_000)), move |at, _| reply(at))
}

#[expect(clippy::unnecessary_wraps, reason = "an answer may be a failure")]
fn text(text: &str) -> CallResult {
    Ok(response(text))
}

/// The context of the last call; lines of what stays as it was are only numbered.
fn left(walk: &Walk) -> Vec<String> {
    let lines = walk.contexts.last().unwrap().iter();
    lines
        .map(|line| match line.split_once(':') {
            Some((number, _)) if number.parse::<usize>().is_ok() => number.to_owned(),
            _ => line.clone(),
        })
        .collect()
}

#[test]
fn what_stays_is_what_the_knobs_say() {
    let all = "of 0..9: user S";
    for (knobs, expected) in [
        ("", &[all][..]),
        ("keep_last_messages = 2", &["of 0..7: user S", "7", "8"]),
        // The cut moves to the call of the first result that stays.
        ("keep_last_messages = 1", &["of 0..7: user S", "7", "8"]),
        ("keep_last_messages = 1\ncut = 'none'", &["of 0..8: user S", "8"]),
        ("keep_last_messages = 2\ncut = 'turn'", &["of 0..6: user S", "6", "7", "8"]),
        ("keep_last_rounds = 2", &["of 0..5: user S", "5", "6", "7", "8"]),
        // The result has 65 tokens, its call 6, what was typed 4.
        ("keep_last_tokens = 75", &["of 0..6: user S", "6", "7", "8"]),
        ("keep_last_tokens = 74", &["of 0..7: user S", "7", "8"]),
        ("keep_last_tokens = 70", &[all]),
        // A tenth of the window of 2,000.
        ("keep_last_fraction = 0.1\nkeep_max_tokens = 74", &["of 0..7: user S", "7", "8"]),
        ("keep_last_fraction = 0.001\nkeep_min_tokens = 75", &["of 0..6: user S", "6", "7", "8"]),
        (
            "keep_last_fraction = 0.45\nkeep_fraction_of = 'history'",
            &["of 0..5: user S", "5", "6", "7", "8"],
        ),
        ("keep_first_messages = 1", &["0", "of 1..9: user S"]),
        // In front the cut moves behind the results of the last call that stays.
        ("keep_first_messages = 4", &["0", "1", "2", "3", "4", "of 5..9: user S"]),
        (
            "select = 'every_rounds'\nselect_rounds = 2\nkeep_last_rounds = 1",
            &["of 0..5: user S", "5", "6", "7", "8"],
        ),
        (
            "select = 'every_rounds'\nselect_rounds = 4\nkeep_last_rounds = 1",
            &["0", "1", "2", "3", "4", "5", "6", "7", "8"],
        ),
        ("user_messages = 'all'", &["0", "6", all]),
        ("user_messages = 'budget'\nuser_messages_max_tokens = 34", &["0", "6", all]),
        (
            "user_messages = 'budget'\nuser_messages_max_tokens = 22",
            &[
                "0 edited: user Please do the first thing, and do no…12 tokens truncated…, and write down what you decide on.",
                "6",
                all,
            ],
        ),
        ("user_messages = 'budget'\nuser_messages_max_tokens = 4", &["6", all]),
        ("user_messages = 'all'\nkeep_markers = ['The first', 'content of b']", &["0", "6", all]),
        (
            "protected_tools = ['TodoWrite']",
            &[all, "3 restored: assistant <TodoWrite t1>", "4 restored: user <result t1> noted"],
        ),
        (
            "protected_tools = ['class:shell', 'TodoWrite']\nkeep_last_messages = 2",
            &["of 0..7: user S", "3", "4", "7", "8"],
        ),
        (
            "user_messages = 'all'\nprefix = 'P: '\nacknowledgement = 'Go on.'\nboundary = true\n\
             protected_tools = ['TodoWrite']",
            &[
                "authored: user [Conversation compacted: auto; 204 tokens before; 9 messages; \
                 after message 8]",
                "0",
                "6",
                "of 0..9: user P: S",
                "authored: assistant Go on.",
                "3 restored: assistant <TodoWrite t1>",
                "4 restored: user <result t1> noted",
            ],
        ),
        ("role = 'assistant'\nkeep_first_messages = 1", &["0", "of 1..9: assistant S"]),
    ] {
        let walk = walk(knobs, |_| text("S"));
        assert_eq!(left(&walk), expected, "{knobs}");
    }
}

#[test]
fn calls_that_were_never_answered_stay_where_they_are_wanted() {
    let unanswered = Message::new(
        Role::Assistant,
        vec![ContentBlock::Text("I build it.".into()), tool_use("t1", "Bash", "make")],
    );
    let messages = || {
        vec![
            typed("go"),
            asks("t0", "Read", "a.rs"),
            answers("t0", &"content of a ".repeat(20)),
            unanswered.clone(),
            typed("Stop that, and read b."),
            asks("t2", "Read", "b.rs"),
            answers("t2", &"content of b ".repeat(20)),
            said("Done."),
        ]
    };
    let last = |knobs: &str, session: Session| {
        let spec = summarising(&format!(
            "when = {{ rounds_every = 3 }}\nguards.on_inflation = 'apply'\n{knobs}"
        ));
        left(&Walk::of(session, &spec, Window::new(Tokens(2_000)), |_, _| text("S")))
    };
    let kept = "3 restored: assistant <Bash t1>";
    assert_eq!(last("", session(messages())), ["of 0..7: user S"]);
    assert_eq!(last("keep_unanswered = true", session(messages())), ["of 0..7: user S", kept]);
    // What is answered in what stays behind is no loose end.
    assert_eq!(
        last("keep_unanswered = true\nkeep_last_messages = 1\ncut = 'none'", session(messages())),
        ["of 0..6: user S", kept, "6"]
    );
    // Nor is anything here.
    let mut all_answered = messages();
    all_answered.insert(4, answers("t1", "made"));
    assert_eq!(last("keep_unanswered = true", session(all_answered)), ["of 0..8: user S"]);
}

#[test]
fn markers_of_interrupted_turns_stay_and_earlier_summaries_do_not() {
    let spec = summarising(
        "when = { rounds_every = 1 }\nuser_messages = 'all'\nkeep_markers = ['<turn-aborted>']\n\
         guards.on_inflation = 'apply'",
    );
    let interrupted = Message::text(Role::User, "<turn-aborted>").with_tags([Tag::Meta]);
    let messages = vec![
        typed("go"),
        said("ok"),
        interrupted,
        Message::text(Role::User, "injected").with_tags([Tag::Meta]),
        said("ok"),
        typed("more"),
        said("ok"),
    ];
    let walk = Walk::of(session(messages), &spec, Window::new(Tokens(2_000)), |at, _| {
        text(&format!("S{at}"))
    });
    assert_eq!(walk.contexts[1], ["0: user go", "2: user <turn-aborted>", "of 0..4: user S0"]);
    assert_eq!(
        walk.contexts[2],
        ["0: user go", "2: user <turn-aborted>", "5: user more", "of 0..6: user S1"]
    );
}

/// The requests of a walk, each message in one line.
fn requests(walk: &Walk) -> Vec<Vec<String>> {
    let lines = |request: &proctor::model::Request| {
        request.messages.iter().map(|message| said_in(message)).collect()
    };
    walk.requests.iter().map(lines).collect()
}

#[test]
fn the_live_prompt_goes_on_or_is_told_as_json() {
    let append = walk("mode = 'append'", |_| text("S"));
    let request = &append.requests[0];
    assert_eq!(request.system.as_deref(), Some("You are a test."));
    // Message by message what the agent was sent, so that its cache is read.
    let history = work();
    assert_eq!(request.messages[..9], history.messages()[..9]);
    assert_eq!(request.messages.len(), 10);
    let append = walk(
        "mode = 'append'\nselect = 'until_tail'\nkeep_last_messages = 2\nkeep_first_messages = 1\n\
         template = 'nine-sections'\ninstructions = 'Keep the ports.'",
        |_| text("S"),
    );
    let request = &append.requests[0];
    assert_eq!(request.messages.len(), 8);
    let words = &request.messages[7].model_text()[0];
    assert!(words.starts_with("IMPORTANT: answer in plain text"), "{words}");
    assert!(words.contains("Summarise the conversation up to this point"), "{words}");
    assert!(words.contains("\n\nKeep the ports.\n\n"), "{words}");
    assert!(words.contains("9. Context for continuing work"), "{words}");
    assert!(words.ends_with("and then a <summary> block."), "{words}");

    let fresh = walk("keep_last_messages = 2\nselect = 'until_tail'", |_| text("S"));
    let request = &fresh.requests[0];
    assert_eq!((request.messages.len(), request.system.as_deref()), (1, None));
    let words = &request.messages[0].model_text()[0];
    assert!(words.ends_with("\"text\":\"Now the second.\"}]}]"), "{words}");
}

#[test]
fn the_summariser_sees_no_more_than_the_limits_allow() {
    let json = |knobs: &str| {
        let walk = walk(knobs, |_| text("S"));
        let words = walk.requests[0].messages[0].model_text()[0].to_string();
        words.split_once("written.\n\n").unwrap().1.to_owned()
    };
    assert_eq!(json("input_first_chars = 15"), r#"[{"role":"user""#);
    assert_eq!(json("input_last_chars = 7"), r#"b "}]}]"#);
    assert_eq!(json("").matches("content of a").count(), 20);
    assert_eq!(json("input_result_chars = 26").matches("content of a").count(), 2);
    assert!(json("input_result_chars = 26").contains("\"made\""));
    // The newest result has 65 tokens, its call 6; one message is shown at least.
    let newest =
        |tokens: u64| json(&format!("input_last_tokens = {tokens}")).matches("\"role\"").count();
    assert_eq!([0, 1, 65, 71, 75].map(newest), [9, 1, 1, 2, 3]);
}

/// What became of earlier summaries: three rounds, summarised at the second and third call.
fn twice(previous: &str) -> Walk {
    twice_with(&format!("previous = '{previous}'"))
}

fn twice_with(knobs: &str) -> Walk {
    let spec = summarising(&format!(
        "when = {{ rounds_every = 1 }}\nguards.on_inflation = 'apply'\nacknowledgement = 'A'\n{knobs}"
    ));
    let messages =
        vec![typed("go"), said("one"), typed("more"), said("two"), typed("end"), said("three")];
    Walk::of(session(messages), &spec, Window::new(Tokens(2_000)), |at, _| text(&format!("S{at}")))
}

#[test]
fn earlier_summaries_are_read_continued_or_left() {
    let shown = |walk: &Walk| {
        let words = walk.requests[1].messages[0].model_text()[0].to_string();
        (
            words.contains("\"S0\""),
            words.contains("comes after it: keep") || words.contains("came after it"),
            words.contains("\n\nS0\n\n"),
        )
    };
    for (previous, seen, left) in [
        ("as_message", (true, false, false), &["of 0..5: user S1", "authored: assistant A"][..]),
        ("ignore", (false, false, false), &["of 0..5: user S1", "authored: assistant A"]),
        ("update", (false, true, true), &["of 0..5: user S1", "authored: assistant A"]),
        (
            "append",
            (true, false, false),
            &[
                "of 0..3: user S0",
                "authored: assistant A",
                "of 3..5: user S1",
                "authored: assistant A",
            ],
        ),
    ] {
        let walk = twice(previous);
        assert_eq!(shown(&walk), seen, "{previous}");
        assert_eq!(walk.contexts[2], left, "{previous}");
    }
}

#[expect(clippy::unnecessary_wraps, reason = "an answer may be a failure")]
fn stopped(text: &str, stop: Stop) -> CallResult {
    Ok(Response { stop, ..response(text) })
}

fn failed(failure: CallFailure) -> CallResult {
    Err(failure)
}

/// How many requests were made, whether there is a summary, and else why there is none.
fn came_of(walk: &Walk) -> (usize, Option<&str>) {
    let failure = walk.record.failures.first();
    if failure.is_some() {
        let untouched: Vec<String> = (0..9).map(|at| at.to_string()).collect();
        assert_eq!(left(walk), untouched, "the history stays");
    }
    (walk.requests.len(), failure.map(|failure| failure.error.as_str()))
}

/// Knobs, the model, and what comes of it: requests, and the error if there is one.
type Case = (&'static str, fn(usize) -> CallResult, (usize, Option<String>));

#[test]
fn a_failed_summary_leaves_the_history_and_is_tried_as_the_guards_say() {
    let lost = "the model call failed: ";
    let chat =
        "the summary is none: it is a question, or names nothing of what it was to summarise";
    let cases: [Case; 15] = [
        ("", |_| failed(CallFailure::SERVER), (1, Some(format!("{lost}server error")))),
        (
            "stream_retries = 2",
            |_| failed(CallFailure::SERVER),
            (3, Some(format!("{lost}server error"))),
        ),
        (
            "stream_retries = 2",
            |at| {
                if at < 2 { failed(CallFailure::Timeout) } else { text("S") }
            },
            (3, None),
        ),
        (
            "stream_retries = 2",
            |_| failed(CallFailure::Unsupported),
            (1, Some(format!("{lost}this model does not do that"))),
        ),
        ("", |_| text(" \n"), (1, Some("the summary is empty".to_owned()))),
        ("guards.on_empty = 'retry'", |_| text(""), (2, Some("the summary is empty".to_owned()))),
        ("guards.on_empty = 'retry'", |at| text(["", "S"][at]), (2, None)),
        (
            "template = 'nine-sections'",
            |_| text("<analysis>thoughts</analysis>"),
            (1, Some("the summary is empty".to_owned())),
        ),
        ("", |_| stopped("S", Stop::ToolUse), (1, Some("the summary is a tool call".to_owned()))),
        (
            "guards.on_tool_call = 'retry'",
            |at| {
                if at == 0 { stopped("", Stop::ToolUse) } else { text("S") }
            },
            (2, None),
        ),
        (
            "guards.on_tool_call = 'retry'",
            |_| stopped("no", Stop::Refusal),
            (1, Some("the model refused to write a summary".to_owned())),
        ),
        ("", |_| text("Shall I go on?"), (1, Some(chat.to_owned()))),
        ("guards.on_chat = 'apply'", |_| text("Shall I go on?"), (1, None)),
        ("guards.on_chat = 'retry'", |at| text(["Shall I go on?", "S"][at]), (2, None)),
        // What was cut off is a summary still.
        ("", |_| stopped("S", Stop::Length), (1, None)),
    ];
    for (knobs, reply, (requests, error)) in cases {
        let walk = walk(knobs, reply);
        assert_eq!(came_of(&walk), (requests, error.as_deref()), "{knobs}");
        // Every request is on the bill.
        assert_eq!(walk.record.model_calls.len(), requests, "{knobs}");
    }
}

#[test]
fn a_request_that_is_too_long_is_asked_again_with_less() {
    let too_long = |_| failed(CallFailure::Overflow);
    // Rounds begin at messages 1, 3, 5 and 7.
    let walked =
        walk("mode = 'append'\nguards.on_summary_overflow = 'drop_oldest_round'", too_long);
    let begins: Vec<Vec<String>> =
        requests(&walked).into_iter().map(|lines| lines[..2].to_vec()).collect();
    let first = |line: &str| begins.iter().map(|lines| lines[1] == line).collect::<Vec<_>>();
    assert_eq!(begins.len(), 4);
    assert_eq!(first("assistant <Read t0>"), [true, false, false, false]);
    assert_eq!(first("assistant <TodoWrite t1> <Bash t2>"), [false, true, false, false]);
    assert_eq!(first("assistant The first thing is done."), [false, false, true, false]);
    assert_eq!(first("assistant <Read t3>"), [false, false, false, true]);
    assert_eq!(begins[1][0], "user [The beginning of the conversation was left out.]");
    assert_eq!(
        came_of(&walked),
        (4, Some("the model call failed: the prompt is too long for the model"))
    );
    // One failed attempt, whatever it took.
    assert_eq!(walked.record.failures.len(), 1);

    for (knobs, tries) in [
        ("", 1),
        ("guards = { on_summary_overflow = 'fail' }", 1),
        ("guards = { on_summary_overflow = 'drop_oldest_round', summary_overflow_tries = 0 }", 1),
        ("guards = { on_summary_overflow = 'drop_oldest_round', summary_overflow_tries = 99 }", 4),
        ("guards = { on_summary_overflow = 'halve' }", 3),
        ("guards = { on_summary_overflow = 'shrink_results', summary_overflow_tries = 9 }", 5),
        ("guards = { on_summary_overflow = 'shrink_each', summary_overflow_tries = 5 }", 6),
    ] {
        let spec = summarising(&format!("when = {{ rounds_every = 4 }}\n{knobs}"));
        let walk = Walk::of(work(), &spec, Window::new(Tokens(2_000)), move |_, _| too_long(0));
        assert_eq!(walk.requests.len(), tries, "{knobs}");
    }
}

#[test]
fn each_text_is_cut_to_four_fifths_of_the_longest() {
    let knobs = "guards = { on_summary_overflow = 'shrink_each', summary_overflow_tries = 2 }";
    let spec = summarising(&format!("when = {{ rounds_every = 4 }}\n{knobs}"));
    let walk =
        Walk::of(work(), &spec, Window::new(Tokens(2_000)), |_, _| failed(CallFailure::Overflow));
    // The longest text has 260 characters.
    let longest = walk.requests.iter().map(|request| {
        let words = request.messages[0].model_text()[0].to_string();
        words.matches("content of a").count()
    });
    assert_eq!(longest.collect::<Vec<_>>(), [20, 208 / 13, 166 / 13]);
}

#[test]
fn results_in_the_middle_are_left_out_first() {
    let mut messages = vec![typed("go")];
    for at in 0..10 {
        messages.push(asks(&format!("t{at}"), "Read", "a"));
        messages.push(answers(&format!("t{at}"), &format!("result {at}")));
    }
    messages.push(said("done"));
    let spec = summarising(
        "when = { rounds_every = 10 }\nguards.on_summary_overflow = 'shrink_results'\n\
         guards.summary_overflow_tries = 4\nmode = 'append'",
    );
    let walk = Walk::of(session(messages), &spec, Window::new(Tokens(2_000)), |_, _| {
        failed(CallFailure::Overflow)
    });
    let gone = |request: &proctor::model::Request| {
        let texts =
            request.messages.iter().filter(|message| message.tool_results().next().is_some());
        texts
            .enumerate()
            .filter(|(_, message)| &*message.model_text()[0] == "[left out]")
            .map(|(at, _)| at)
            .collect::<Vec<_>>()
    };
    let gone: Vec<Vec<usize>> = walk.requests.iter().map(gone).collect();
    assert_eq!(gone, [vec![], vec![4], vec![4, 5], vec![2, 3, 4, 5, 6], (0..10).collect()]);
}

#[test]
fn a_summary_is_checked_once_and_kept_where_the_check_fails() {
    for (answer, summary, failures) in [
        (text("better"), "of 0..9: user better", 0),
        (text(""), "of 0..9: user S", 0),
        (failed(CallFailure::SERVER), "of 0..9: user S", 0),
    ] {
        let walk = walk(
            "verify = 'second_pass'",
            move |at| {
                if at == 0 { text("S") } else { answer.clone() }
            },
        );
        assert_eq!(walk.requests.len(), 2);
        assert_eq!(walk.requests[1].messages.len(), 3);
        assert_eq!(left(&walk), [summary]);
        assert_eq!(walk.record.failures.len(), failures);
    }
}

#[test]
fn a_summary_without_the_newest_identifiers_is_written_again() {
    let verify = "verify = 'identifiers'";
    let walk_with = |first: &'static str| {
        walk(verify, move |at| text(if at == 0 { first } else { "a.rs, b.rs" }))
    };
    // `b.rs` is an argument of the newest call, `main.rs` and `a.rs` stand in older messages.
    let walked = walk_with("nothing");
    assert_eq!(left(&walked), ["of 0..9: user a.rs, b.rs"]);
    let asked = walked.requests[1].messages.last().unwrap().model_text()[0].to_string();
    assert!(asked.contains("\n- b.rs"), "{asked}");
    let walked = walk_with("main.rs a.rs b.rs TodoWrite");
    assert_eq!(walked.requests.len(), 1);
}

#[test]
fn what_the_agent_goes_on_with_stands_behind_the_summary() {
    let first =
        "authored: user Please do the first thing, and do not to[60 more] what you decide on.";
    for (knobs, expected) in [
        ("continue_with = 'Go on.'", &["of 0..9: user S", "authored: user Go on."][..]),
        (
            "continue_with = 'Asked: {last_request}'\nacknowledgement = 'Yes.'",
            &[
                "of 0..9: user S",
                "authored: assistant Yes.",
                "authored: user Asked: Now the second.",
            ],
        ),
        (
            "continue_with = '{first_request}'\nkeep_last_messages = 2",
            &["of 0..7: user S", first, "7", "8"],
        ),
        // The newest request stays anyway.
        (
            "continue_with = '{last_request}'\nkeep_last_messages = 3",
            &["of 0..6: user S", "6", "7", "8"],
        ),
    ] {
        let walk = walk(knobs, |_| text("S"));
        assert_eq!(left(&walk), expected, "{knobs}");
    }
}

#[test]
fn knobs_that_contradict_each_other_are_refused() {
    for (knobs, says) in [
        (
            "mode = 'append'\ninput_first_chars = 9",
            "`own.toml`: line 4: `summarize.input_first_chars` has no meaning where `mode` is `append`",
        ),
        (
            "mode = 'append'\noverlap_turns = 1",
            "`own.toml`: line 4: `summarize.overlap_turns` has no meaning where `mode` is `append`: the request goes on \
             with the agent's prompt",
        ),
        (
            "keep_min_tokens = 9\nkeep_max_tokens = 8",
            "`own.toml`: line 3: `summarize.keep_min_tokens` is more than `keep_max_tokens`",
        ),
        (
            "mode = 'append'\nmodel = 'fast'",
            "`own.toml`: line 4: `summarize.model` must be `same` where `mode` is `append`: another \
             model has another cache",
        ),
        (
            "model = ''",
            "`own.toml`: line 3: `summarize.model` must name a model, or be `same` or `fast`",
        ),
    ] {
        let text = format!("[[stage]]\nkind = 'summarize'\n{knobs}");
        let table = SettingTable::parse("own.toml", &text).unwrap();
        let error = StrategySpec::of("own", table, &Trigger::always()).unwrap_err();
        assert_eq!(error.to_string(), says);
    }
}

#[test]
fn a_summary_reads_turns_again_that_an_earlier_one_replaced() {
    let read = |turns: usize| {
        let walk = twice_with(&format!("previous = 'append'\noverlap_turns = {turns}"));
        // What is replaced is the same whatever is read.
        assert_eq!(walk.contexts[2], twice("append").contexts[2], "{turns}");
        let words = walk.requests[1].messages[0].model_text()[0].to_string();
        ["go", "one", "more", "two", "end"].map(|said| words.contains(&format!("\"{said}\"")))
    };
    assert_eq!(read(0), [false, false, false, true, true]);
    assert_eq!(read(1), [false, false, true, true, true]);
    assert_eq!(read(2), [true; 5]);
    assert_eq!(read(9), [true; 5]);
}

/// A tool result that came in one message with what the user typed.
#[test]
fn what_was_typed_beside_a_result_stays_without_it() {
    let both = vec![tool_result("t0", "made"), ContentBlock::Text("and now this".into())];
    let messages = vec![
        typed("go"),
        asks("t0", "Bash", "make"),
        Message::new(Role::User, both).with_tags([Tag::TypedUser]),
        said("ok"),
    ];
    let spec = summarising(
        "when = { rounds_every = 1 }\nuser_messages = 'all'\nguards.on_inflation = 'apply'",
    );
    let walk = Walk::of(session(messages), &spec, Window::new(Tokens(2_000)), |_, _| text("S"));
    assert_eq!(
        walk.contexts[1],
        ["0: user go", "2 restored: user and now this", "of 0..3: user S"]
    );
    let rules = walk.record.violations.iter();
    let rules: Vec<&str> = rules.map(|violation| violation.rule.as_str()).collect();
    assert_eq!(rules, ["user_message_altered"], "no result without its call");
}
