//! Claude Code: results that are cleared, records that were copied, and forks.

use proctor::units::Tokens;

use super::{check, model, read, read_use, result, round_trip, text, user};

fn at(record: &str, time: &str) -> String {
    record.replacen(
        '{',
        &format!(r#"{{"timestamp":"2026-03-01T09:00:0{time}Z","#),
        1,
    )
}

#[test]
fn a_microcompaction_clears_old_results_at_the_next_call() {
    check(
        &[
            &user("u", "", "Go."),
            &model(
                "a",
                "u",
                "1",
                &format!("{},{}", read_use("t1"), read_use("t2")),
            ),
            &result("r1", "a", "t1", "one"),
            &result("r2", "a", "t2", "two"),
            r#"{"type":"system","subtype":"microcompact_boundary","uuid":"b","microcompactMetadata":{"trigger":"auto","preTokens":90000,"tokensSaved":30000,"compactedToolIds":["t1","gone"],"clearedAttachmentUUIDs":["x"]}}"#,
            r#"{"type":"attachment","uuid":"n","attachment":{"type":"nested_memory","path":"a.md","content":{"content":"Be brief."}}}"#,
            &model("a2", "r2", "2", &read_use("t3")),
            &result("r3", "a2", "t3", "three"),
            r#"{"type":"content-replacement","sessionId":"s","replacements":[{"kind":"tool-result","toolUseId":"t3","replacement":"see file"},7]}"#,
            &model("a3", "r3", "3", &text("Done.")),
            r#"{"type":"system","subtype":"microcompact_boundary","uuid":"c","microcompactMetadata":{"compactedToolIds":["t2"]}}"#,
        ],
        &[
            r#"0 user[typed_user] "Go.""#,
            "1 model[] read t1 {}, read t2 {}",
            r#"2 user[meta] ->t1 "one", ->t2 "two", "a.md\nBe brief.""#,
            "3 model[] read t3 {}",
            r#"4 user[] ->t3 "three""#,
            r#"5 model[] "Done.""#,
            "compaction before 3: microcompact 90000: kept 0..2, edited 2",
            "compaction before 5: content-replacement 0: kept 0..2, edited 2, kept 3..4, edited 4",
            "compaction before 6: microcompact 0: kept 0..2, edited 2, edited 2, kept 3..4, edited 4, kept 5..6",
            "unknown: replacement of a result: 1",
            "warning: a compaction clears a result that is not in the file: 1",
            "warning: a compaction clears an attachment, which is kept: 1",
        ],
    );
}

#[test]
fn records_that_a_resumed_session_copied_are_read_once() {
    let records = |suffix: &str, parent: &str| {
        [
            at(&user(&format!("u{suffix}"), parent, "Go."), "1"),
            at(
                &model(
                    &format!("a{suffix}"),
                    &format!("u{suffix}"),
                    "1",
                    &text("Gone."),
                ),
                "2",
            ),
        ]
    };
    let [u, a] = records("", "");
    let [u2, a2] = records("-copy", "");
    check(
        &[
            &u,
            &a,
            &u2,
            &a2,
            &at(&user("n", "a-copy", "On."), "3"),
            &at(&model("b", "n", "2", &text("Ok.")), "4"),
        ],
        &[
            r#"0 user[typed_user] "Go.""#,
            r#"1 model[] "Gone.""#,
            r#"2 user[typed_user] "On.""#,
            r#"3 model[] "Ok.""#,
            "warning: a record stands in the file twice: 2",
        ],
    );
}

#[test]
fn parts_of_a_message_are_one_call_though_some_do_not_name_the_request() {
    let unnamed = model("a", "u", "1", &text("First.")).replace(r#""requestId":"r1","#, "");
    check(
        &[
            &user("u", "", "Go."),
            &unnamed,
            &model("a2", "a", "1", &read_use("t")),
            &result("r", "a2", "t", "one"),
            &unnamed
                .replace("First.", "Last.")
                .replace(r#""uuid":"a""#, r#""uuid":"a3""#),
        ],
        &[
            r#"0 user[typed_user] "Go.""#,
            r#"1 model[] "First.", read t {}, "Last.""#,
            r#"2 user[] ->t "one""#,
        ],
    );
}

#[test]
fn prompts_that_were_typed_in_a_row_stay() {
    check(
        &[
            &model("a", "", "1", &text("Ready.")),
            &user("u1", "a", "One."),
            &user("u2", "a", "And two."),
            &model("b", "u2", "2", &text("Done.")),
        ],
        &[
            r#"0 model[] "Ready.""#,
            r#"1 user[typed_user] "One.", "And two.""#,
            r#"2 model[] "Done.""#,
        ],
    );
}

#[test]
fn leaves_out_what_the_user_went_back_from_to_the_first_prompt() {
    let root = |record: String| record.replace(r#""parentUuid":"""#, r#""parentUuid":null"#);
    let first = root(user("u1", "", "Wrong way."));
    let second = root(user("u2", "", "Right way."));
    let boundary = r#"{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null}"#;
    let [a1, a2] = ["1", "2"].map(|n| model(&format!("a{n}"), &format!("u{n}"), n, &text("Ok.")));
    check(
        &[&first, &a1, &second, &a2],
        &[
            r#"0 user[typed_user] "Right way.""#,
            r#"1 model[] "Ok.""#,
            "warning: abandoned branch: a record the user went back from is left out: 2",
        ],
    );
    check(
        &[&first, &a1, boundary, &second, &a2],
        &[
            r#"0 user[typed_user] "Wrong way.""#,
            r#"1 model[] "Ok.""#,
            r#"2 user[typed_user] "Right way.""#,
            r#"3 model[] "Ok.""#,
            "compaction before 2: - 0: missing",
        ],
    );
}

#[test]
fn what_an_unknown_record_says_is_kept() {
    check(
        &[
            &user("u", "", "Go."),
            r#"{"type":"telepathy","uuid":"t","content":"a thought"}"#,
            r#"{"type":"attachment","uuid":"n","attachment":{"type":"brand_new","words":"read me"}}"#,
            r#"{"type":"attachment","uuid":"p","attachment":{"type":"plan_mode_reentry","planFilePath":"plan.md"}}"#,
        ],
        &[
            r#"0 user[typed_user meta] "Go.", <telepathy>, <brand_new>, "plan.md""#,
            "unknown: attachment/brand_new: 1",
            "unknown: record telepathy: 1",
        ],
    );
}

#[test]
fn what_every_prompt_held_and_the_file_does_not_is_told_with_its_size() {
    let missing = |lines: &[String]| {
        let text = lines.join("\n") + "\n";
        let sessions = read("claude-code", text.as_bytes()).unwrap();
        round_trip(&sessions[0]);
        sessions[0].source().missing.unwrap()
    };
    let billed = |blocks: &str| {
        let usage =
            r#""usage":{"input_tokens":10,"cache_creation_input_tokens":90,"output_tokens":1},"#;
        model("m", "u", "1", blocks).replacen(r#""content""#, &format!("{usage}\"content\""), 1)
    };
    let asked = user("u", "", &"mill ".repeat(8));
    // 100 tokens were billed, and the forty characters before them are ten.
    let found = missing(&[asked.clone(), billed(&read_use("t"))]);
    assert_eq!((found.system_prompt, found.tools), (true, true));
    assert_eq!(found.tokens, Some(Tokens(90)));
    // Who uses no tool may have had none, and without a bill there is no size.
    let found = missing(&[asked, model("m", "u", "1", &text("Yes."))]);
    assert_eq!((found.system_prompt, found.tools), (true, false));
    assert_eq!(found.tokens, None);
}
