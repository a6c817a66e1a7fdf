//! Exports of chats with assistants: many conversations in one file, each with its branches.

use super::{check_fixture as check, outline, read, round_trip};

#[test]
fn an_export_of_chatgpt_is_read_along_the_current_branch() {
    let sessions = check(
        "chatgpt/conversations.json",
        "chatgpt",
        &[
            r#"0 user[typed_user meta] "Cuts glass.\nBe brief.", image {"type":"image-size","width":640,"height":400,"bytes":48000}, "How many panes fit?"
1 model[] thinking "Divide the area.", other m4 "print(1200 // 180)"
2 user[] ->m4 "6\n"
3 model[] "Six panes."
4 user[typed_user] "And of 200 mm?"
5 model[] "Six as well."
skipped: conversation without messages: 1
skipped: message of another branch: 2
skipped: reasoning_recap: 1
"#,
            r#"0 user[typed_user] "What does float glass cost?"
1 model[] other s3 {"search_query": [{"q": "float glass price"}]}
2 user[] ->s3 "Prices\nhttps://example.org/prices\n4 mm: 31 a square metre"+"6 mm: 44"
3 model[] "31 a square metre at 4 mm."
"#,
        ],
    );
    assert_eq!(sessions[0].model(), Some("glass-model"));
    assert_eq!(sessions[1].system(), Some(&"You answer in one line.".into()));
}

#[test]
fn a_tree_of_chatgpt_without_its_end_is_read_to_its_newest_message() {
    let node = |id: &str, parent: &str, time: u8, role: &str, text: &str| {
        format!(
            r#""{id}":{{"parent":{parent},"message":{{"author":{{"role":"{role}"}},"create_time":{time},"content":{{"content_type":"text","parts":[{text}]}}}}}}"#
        )
    };
    let nodes = [
        node("a", "null", 1, "user", r#""Cut it.""#),
        node(
            "c",
            "\"b\"",
            3,
            "assistant",
            r#"{"content_type":"audio_transcription","text":"Cut."},{"content_type":"hologram"}"#,
        ),
        // It is known by its parent's children alone.
        node("b", "null", 2, "oracle", r#""Cut it well.""#),
        r#""root":{"children":["b"]}"#.to_owned(),
        node("z", "\"a\"", 2, "assistant", r#""No.""#),
    ];
    let text = format!(r#"[{{"mapping":{{{}}}}}]"#, nodes.join(","));
    let sessions = read("chatgpt", text.as_bytes()).expect("a good file");
    assert_eq!(
        outline(&sessions[0]),
        r#"0 user[meta] <of oracle>
1 model[] "Cut.", <hologram>
skipped: message of another branch: 2
unknown: message of oracle: 1
unknown: part hologram: 1
"#
    );
    round_trip(&sessions[0]);
}

#[test]
fn an_export_of_claude_ai_is_taken_apart_into_calls() {
    check(
        "claude-ai/conversations.json",
        "claude-ai",
        &[
            r#"0 user[typed_user] "10:00 880\n10:05 912", "How hot is the kiln?"
1 model[] thinking "Look at the log.", "I check the sensor.", other toolu_1 {"kiln":1}, other toolu_2 {"kiln":2}
2 user[] ->toolu_1 "915 in the middle", ->!toolu_2 "no such kiln"
3 model[] "915 degrees."
4 user[typed_user] "When may I open it?"
5 model[] "Below 200 degrees."
skipped: conversation without messages: 1
skipped: file that is only named: 1
skipped: message of another branch: 2
skipped: token_budget: 1
"#,
            r#"0 user[typed_user] "Glaze it blue."
1 model[] other unnamed-call-1 {"colour":"blue"}
2 user[] ->unnamed-call-1 "done"
3 model[] "Blue."
"#,
        ],
    );
    // One conversation, as programs save it, with its model and with a tree that leads nowhere.
    let text = r#"{"uuid":"k","model":"kiln-model","current_leaf_message_uuid":"b","chat_messages":[
{"uuid":"a","parent_message_uuid":"gone","sender":"human","text":"Hot?","content":[]},
{"uuid":"b","parent_message_uuid":"b","sender":"assistant","text":"Yes.","content":[{"type":"tool_result","content":"late"},{"type":"flame","heat":9}]},
{"uuid":"c","sender":"oracle","text":"It is hot."}]}"#;
    let sessions = read("claude-ai", text.as_bytes()).expect("a good file");
    assert_eq!(
        outline(&sessions[0]),
        r#"0 user[typed_user orphan] ->unnamed-result "late", "Hot?"
1 model[] <flame>
2 user[meta] <of oracle>
unknown: block flame: 1
unknown: message of oracle: 1
warning: a tool result answers no earlier tool use: 1
"#
    );
    assert_eq!(sessions[0].model(), Some("kiln-model"));
}
