//! Recordings of a few lines, and what each of them means.

use super::super::*;

#[test]
fn merges_the_parts_of_a_call_and_all_that_answers_it() {
    let sessions = import::load(&fixture("claude-code/split-calls.jsonl")).expect("a good file");
    let [session] = &sessions[..] else { panic!("one session") };
    assert_eq!(
        outline(session),
        r#"0 user[typed_user meta] "Why does the basket lose its last item?", "shop/RULES.md\nPrices are in cents."
1 model[] thinking "Two files matter.", "I will read both files.", read t1 {"file_path":"basket.rs"}, grep t2 {"pattern":"take("} = 9/700/0/0/88
2 user[] ->t1 "fn take(&mut self) {}", ->t2 "basket.rs:1"+"till.rs:7"
3 model[] shell t3 {"command":"cargo test"} = 3/0/50/700/20
4 user[typed_user synthetic] ->!t3 "1 test failed", "[Request interrupted by user for tool use]", "Fix the off-by-one first."
5 model[] "The range ends one too early." = 4/60/0/750/12
skipped: api error: 1
skipped: file-history-snapshot: 1
skipped: progress: 1
skipped: system/turn_duration: 1
"#
    );
    assert_eq!(session.model(), Some("claude-sonnet-4"));
    assert!(session.id().starts_with("split-calls-"), "{}", session.id());
    assert_eq!(session.id().len(), "split-calls-".len() + 6);
    let time: jiff::Timestamp = "2026-03-01T09:00:03.003Z".parse().expect("a time");
    assert_eq!(session.message(1).details.timestamp, Some(Timestamp(time.as_millisecond())));
    assert_eq!(session.message(1).details.api_call, Some(ApiCallId(Arc::from("msg_1/req_1"))));
    round_trip(session);
}

#[test]
fn keeps_a_compaction_beside_the_history() {
    let sessions = import::load(&fixture("claude-code/compaction.jsonl")).expect("a good file");
    assert_eq!(
        outline(&sessions[0]),
        r#"0 user[typed_user] "Rename `Till` to `Register` everywhere."
1 model[] edit t1 {"file_path":"till.rs","old_string":"Till","new_string":"Register"} = 5/900/0/0/30
2 user[] ->t1 "edited"
3 model[] "Renamed in till.rs." = 2/40/0/900/9
4 user[typed_user meta] "<command-name>/compact</command-name>", "Now the tests."
5 model[] shell t2 {"command":"cargo test"} = 6/300/0/0/14
6 user[] ->t2 "ok"
7 model[] "All tests pass." = 6/0/0/0/5
compaction before 4: manual 951: (user[compact_summary] "This session is being continued: Till was renamed in till.rs."), kept 2..4, (user[meta] "till.rs\nstruct Register;")
compaction before 7: auto 400: missing
"#
    );
    round_trip(&sessions[0]);
}

#[test]
fn gives_each_sub_agent_a_session() {
    let sessions = import::load(&fixture("claude-code/side-chains.jsonl")).expect("a good file");
    let ids: Vec<&str> = sessions.iter().map(Session::id).collect();
    assert_eq!(ids.len(), 3);
    assert_eq!(ids[1], format!("{}-side-1", ids[0]));
    assert_eq!(ids[2], format!("{}-side-2", ids[0]));
    assert_eq!(
        outline(&sessions[0]),
        r#"0 user[typed_user] "Compare both parsers."
1 model[] agent t1 {"prompt":"Read parser one."}, agent t2 {"prompt":"Read parser two."} = 5/900/0/0/30
2 user[] ->t2 "Parser two is recursive.", ->t1 "Parser one is a loop."
3 model[] "One loops, two recurses." = 5/60/0/900/9
"#
    );
    assert_eq!(
        outline(&sessions[1]),
        r#"0 user[sidechain] "Read parser one."
1 model[sidechain] read st1 {"file_path":"one.rs"} = 5/100/0/0/3
2 user[sidechain] ->st1 "fn one() {}"
3 model[sidechain] "Parser one is a loop." = 5/0/0/100/8
"#
    );
    assert_eq!(sessions[2].messages().len(), 2);
    assert_eq!(sessions[2].model(), Some("claude-haiku-4"));
}

#[test]
fn tells_side_chains_by_agent_and_reads_files_that_hold_nothing_else() {
    let side = |uuid: &str, agent: &str, text: &str| {
        user(uuid, "gone", text).replacen(
            '{',
            &format!(r#"{{"isSidechain":true,"agentId":"{agent}","#),
            1,
        )
    };
    check(
        &[&side("1", "x", "one"), &side("2", "y", "two"), &side("3", "x", "three")],
        &[r#"0 user[sidechain] "one", "three""#, "--", r#"0 user[sidechain] "two""#],
    );
}

#[test]
fn a_file_that_begins_with_a_compaction_begins_with_its_summary() {
    check(
        &[
            r#"{"type":"system","subtype":"compact_boundary","uuid":"b","logicalParentUuid":"gone","compactMetadata":{"trigger":"auto","preTokens":998659,"preservedMessages":{"anchorUuid":"c","uuids":["g1","g2"]}}}"#,
            r#"{"type":"user","uuid":"c","isCompactSummary":true,"message":{"content":"So far: much."}}"#,
            r#"{"type":"attachment","uuid":"d","attachment":{"type":"hook_success","hookEvent":"SessionStart","content":"Be kind."}}"#,
            &user("u", "d", "Go on."),
            &model("a", "u", "1", &text("Going on.")),
        ],
        &[
            r#"0 user[compact_summary meta] "So far: much.", "Be kind.""#,
            r#"1 user[typed_user] "Go on.""#,
            r#"2 model[] "Going on.""#,
            "compaction before 1: auto 998659: kept 0..1",
            "warning: a compaction kept a message that is not in the file: 2",
        ],
    );
}

#[test]
fn keeps_what_stood_before_the_summary_before_it() {
    check(
        &[
            &user("u", "", "Hello."),
            &model("a", "u", "1", &text("Hi.")),
            r#"{"type":"system","subtype":"compact_boundary","uuid":"b","compactMetadata":{"preservedSegment":{"headUuid":"u","anchorUuid":"b","tailUuid":"a"}}}"#,
            r#"{"type":"user","uuid":"c","isCompactSummary":true,"message":{"content":"Sum."}}"#,
        ],
        &[
            r#"0 user[typed_user] "Hello.""#,
            r#"1 model[] "Hi.""#,
            r#"compaction before 2: - 0: kept 0..2, (user[compact_summary] "Sum.")"#,
        ],
    );
}

#[test]
fn leaves_out_what_the_user_went_back_from() {
    check(
        &[
            &user("u1", "", "Start."),
            &model("a1", "u1", "1", &text("Ready.")),
            &user("u2", "a1", "Wrong way."),
            &model("a2", "u2", "2", &read_use("t")),
            &result("r2", "a2", "t", "lost"),
            &user("u3", "a1", "Right way."),
            &model("a3", "u3", "3", &text("Done.")),
        ],
        &[
            r#"0 user[typed_user] "Start.""#,
            r#"1 model[] "Ready.""#,
            r#"2 user[typed_user] "Right way.""#,
            r#"3 model[] "Done.""#,
            "warning: abandoned branch: a record the user went back from is left out: 3",
        ],
    );
}

#[test]
fn records_that_are_each_others_parents_are_read_in_the_order_of_the_file() {
    check(
        &[
            &user("u1", "u2", "One."),
            &user("u2", "u1", "Two."),
            &user("u3", "u3", "Three."),
            &user("u4", "u3", "Four."),
            &user("u5", "u3", "Five."),
            &model("a", "u2", "1", &text("Ok.")),
        ],
        &[
            r#"0 user[typed_user] "One.", "Two.""#,
            r#"1 model[] "Ok.""#,
            "warning: abandoned branch: a record the user went back from is left out: 3",
        ],
    );
}

#[test]
fn a_result_that_was_written_before_its_tool_use_comes_behind_it() {
    check(
        &[
            &user("u", "", "Go."),
            &result("r", "b", "t1", "one"),
            &model("a", "u", "1", &text("I look.")),
            &model("b", "a", "1", &read_use("t1")),
            &model("c", "r", "2", &text("Done.")),
        ],
        &[
            r#"0 user[typed_user] "Go.""#,
            r#"1 model[] "I look.", read t1 {}"#,
            r#"2 user[] ->t1 "one""#,
            r#"3 model[] "Done.""#,
        ],
    );
}

#[test]
fn pairs_results_with_uses_and_keeps_orphans() {
    check(
        &[
            &model("a", "", "1", &format!("{},{}", read_use("t1"), read_use("t2"))),
            &model("a", "", "1", &text("the same record again")),
            &model("a+", "", "1", &read_use("t1")),
            &result("r1", "a", "t1", "one"),
            &result("r2", "a", "t1", "one"),
            &result("r3", "a", "t2", "two"),
            &result("r4", "a", "t2", "not two"),
            &result("r5", "a", "t9", "nobody asked"),
        ],
        &[
            "0 model[] read t1 {}, read t2 {}",
            r#"1 user[orphan] ->t1 "one", ->t2 "two", ->t2 "not two", ->t9 "nobody asked""#,
            "warning: a record stands in the file twice: 1",
            "warning: a tool result answers no earlier tool use: 1",
            "warning: a tool result was recorded twice; the second is left out: 1",
            "warning: a tool use was answered twice; both answers are kept: 1",
            "warning: a tool use was recorded twice; the second is left out: 1",
        ],
    );
}

#[test]
fn counts_and_keeps_what_it_does_not_know() {
    check(
        &[
            r#"{"type":"user","uuid":"u","isMeta":true,"message":{"content":[{"type":"hologram","x":1},{"type":"text"},{"type":"image","source":{"type":"url"}},7]}}"#,
            r#"{"type":"telepathy","uuid":"x"}"#,
            r#"{"uuid":"y"}"#,
            r#"{"type":"system","subtype":"microcompact_boundary"}"#,
            r#"{"type":"attachment","attachment":{"type":"aura"}}"#,
            r#"{"type":"attachment","attachment":{"type":"hook_system_message","content":"for your eyes"}}"#,
            r#"{"type":"user","message":{"content":""}}"#,
            &model(
                "a",
                "u",
                "1",
                r#"{"type":"redacted_thinking","data":"AA"},{"type":"thinking","thinking":"","signature":"s"}"#,
            ),
        ],
        &[
            r#"0 user[meta] <hologram>, <text>, image {"type":"url"}, <malformed>, <aura>"#,
            r#"1 model[] <redacted_thinking>, thinking """#,
            "skipped: attachment/hook_system_message: 1",
            "skipped: user without content: 1",
            "unknown: attachment/aura: 1",
            "unknown: block hologram: 1",
            "unknown: block malformed: 1",
            "unknown: block text: 1",
            "unknown: record telepathy: 1",
            "unknown: record without type: 1",
            "warning: a compaction says nothing of what it cleared: 1",
        ],
    );
}

#[test]
fn an_odd_record_stops_no_other_and_is_kept_where_it_says_something() {
    check(
        &[
            &user("u", "", "a"),
            "[1]",
            "7",
            r#"{"type":"user"}"#,
            r#"{"type":"user","message":"not an object"}"#,
            r#"{"type":["user"],"uuid":"x","message":{"content":"b"}}"#,
            r#"{"type":"assistant","uuid":7,"isSidechain":"no","message":{"id":7,"content":"c"}}"#,
        ],
        &[
            r#"0 user[typed_user meta] "a", <without a message>, <without type>"#,
            r#"1 model[] "c""#,
            "unknown: record that is no object: 2",
            "unknown: record without a message: 2",
            "unknown: record without type: 1",
            "warning: the key `id` is of an odd type and is left out: 1",
            "warning: the key `isSidechain` is of an odd type and is left out: 1",
            "warning: the key `type` is of an odd type and is left out: 1",
            "warning: the key `uuid` is of an odd type and is left out: 1",
        ],
    );
}

#[test]
fn absurd_times_and_usage_are_counted_and_not_believed() {
    check(
        &[
            r#"{"type":"user","timestamp":"yesterday","message":{"content":"a"}}"#,
            r#"{"type":"assistant","timestamp":-9e99,"message":{"id":"m","content":"b","usage":{"input_tokens":-5,"output_tokens":1e300,"cache_read_input_tokens":18446744073709551615,"cache_creation_input_tokens":10}}}"#,
            r#"{"type":"assistant","timestamp":"9998-12-31T23:59:59Z","message":{"id":"n","content":"c","usage":[]}}"#,
        ],
        &[
            r#"0 user[typed_user] "a""#,
            r#"1 model[] "b" = 0/10/0/0/0"#,
            r#"2 model[] "c""#,
            "warning: a timestamp cannot be read: 2",
            "warning: a usage counter is no count and was taken as zero: 3",
        ],
    );
}

#[test]
fn mends_untidy_files_and_says_so() {
    let cut = user("u2", "u1", "cut");
    let bytes = [
        b"\xef\xbb\xbf",
        user("u1", "", "caf\\ud83d").as_bytes(),
        b"\r\n\r\n  \n",
        &user("u1b", "u1", "?")
            .into_bytes()
            .iter()
            .map(|b| if *b == b'?' { 0xff } else { *b })
            .collect::<Vec<u8>>()[..],
        b"\n",
        &cut.as_bytes()[..cut.len() - 9],
    ]
    .concat();
    let sessions = read("claude-code", &bytes).expect("mended");
    assert_eq!(
        outline(&sessions[0]),
        "0 user[typed_user] \"caf\u{fffd}\", \"\u{fffd}\"\n\
         warning: a line is not UTF-8; the bad bytes were replaced: 1\n\
         warning: a text was cut within a character; the half was replaced: 1\n\
         warning: the last line was cut and is left out: 1\n"
    );
}

#[test]
fn reads_a_line_of_ten_megabytes() {
    let long = "x".repeat(10 << 20);
    let sessions = read("claude-code", user("u", "", &long).as_bytes()).expect("long, but fine");
    assert_eq!(sessions[0].message(0).model_text()[0].len(), 10 << 20);
}

#[test]
fn a_torn_line_in_the_middle_is_left_out_and_two_records_on_one_line_are_read() {
    let [one, two, three] = ["1", "2", "3"].map(|id| user(id, "", id));
    let text = format!("{one}\n{}\n{two}{three}\n", &one[..40]);
    let sessions = read("claude-code", text.as_bytes()).expect("mended");
    assert_eq!(
        outline(&sessions[0]),
        "0 user[typed_user] \"1\", \"2\", \"3\"\n\
         warning: line 2 is no JSON and is left out: 1\n\
         warning: several records on one line: 1\n"
    );
}
