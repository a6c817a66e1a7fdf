//! Importers of what editors keep, against files of our own.

use super::check_fixture as check;

#[test]
fn a_chat_of_vs_code_is_read_as_an_object_and_as_a_log_of_changes() {
    let first = r#"0 user[typed_user] "<context>\nThree boats.\n</context>\n<userRequest>\nWhich boat leaks?\n</userRequest>\n"
1 model[] thinking "Look at two.", "I look.", read b1__vscode-1 {"filePath": "one"}, read b1__vscode-2 {"filePath": "two"}
2 user[] ->b1__vscode-1 "dry\none", ->b1__vscode-2 "wet"
3 model[] shell b1__vscode-3 {"command": "bail"} = 100/0/0/800/12
4 user[] ->b1__vscode-3 "done\n"
5 model[] "Boat two leaks."
"#;
    let compaction = r#"compaction before 5: - 0: (user[compact_summary] "Two boats were read."), kept 3..5
"#;
    let keys = "skipped: key `creationDate`: 1\n\
skipped: key `initialLocation`: 1\n\
skipped: key `responderUsername`: 1\n\
skipped: key `sessionId`: 1\n\
skipped: key `version`: 1\n\
";
    let rest = r#"6 user[typed_user] "Is it tarred?"
7 model[] thinking "Is it?", <toolInvocationSerialized>, "See two."
"#;
    let undone = "skipped: request that was undone: 1\n";
    let usage = "skipped: usage of a whole request: 2\n";
    let shown = "warning: a call has neither its arguments nor its result: 1\n";
    let expected = [first, rest, compaction, keys, undone, usage, shown].concat();
    check("copilot-chat/chat.json", "copilot-chat", &[&expected]);
    let lost = "warning: a change of the chat has no place and is left out: 1\n";
    let lost = [shown, lost].concat();
    let expected = [first, rest, compaction, keys, usage, &lost].concat();
    check("copilot-chat/changes.jsonl", "copilot-chat", &[&expected]);
}

#[test]
fn transcripts_of_cursor_are_read_and_missing_results_told() {
    check(
        "cursor/transcript.jsonl",
        "cursor",
        &[
            r#"0 user[typed_user] "<timestamp>Wednesday, Mar 4, 2026, 6:00 AM (UTC+0)</timestamp>\n<user_query>\nWhich loom is still?\n</user_query>"
1 model[] "I look.", shell call-1 {"command":"cat one"}, read call-2 {"path":"two"}
2 user[] ->call-1 , ->call-2 
3 model[] glob call-3 {"glob_pattern":"*.loom"}
4 user[] ->call-3 
5 model[] "Loom two."
6 user[meta] "<system_reminder>\nBe brief.\n</system_reminder>"
7 model[] "Yes."
skipped: turn_ended: 1
warning: a thought was left out by the product: 2
warning: the result of a tool use is not recorded; it is read as empty: 3
"#,
        ],
    );
    check(
        "cursor/transcript.txt",
        "cursor",
        &[r#"0 user[typed_user] "<user_query>\nWhich loom is still?\n</user_query>"
1 model[] thinking "Look at both.", "I look.", read call-1 "  path: /home/dev/one", shell call-2 "  command: cat two\n  note: a\nsecond line"
2 user[] ->call-2 "two still", ->call-1 
3 model[] "Loom two."
4 user[typed_user] "<user_query>\nThanks.\n</user_query>"
5 model[] "Good."
warning: the result of a tool use is not recorded; it is read as empty: 1
"#],
    );
}

#[test]
fn a_history_of_specstory_is_read_as_far_as_it_was_shown() {
    check(
        "specstory/history.md",
        "specstory",
        &[
            r#"0 user[typed_user] "Which sluice is shut?"
1 model[] thinking "Look at both.", "I look.", shell call-1 "<summary>Tool use: **Bash**</summary>\nLook\n\n`cat one`"
2 user[] ->call-1 "shut"
3 model[] other call-2 "<summary>Tool use: **Gauge**</summary>\n\n**Input:**\n\n- at: `two`"
4 user[] ->!call-2 "no gauge"
5 model[] read call-3 "<summary>Tool use: **read_file** • Read file: two</summary>"
6 user[] ->call-3 
7 model[] "Sluice one."
8 user[typed_user] "Open it."
9 model[] "Done:\n\n```bash\nopen one\n```"
10 user[typed_user] "And the other?"
11 model[] shell call-4 "```bash\ncat two\n```"
12 user[] ->call-4 "gauge\n---\n3"
13 model[] grep call-5 "Grep for \"open\" • 1 match"
14 user[] ->call-5 "| `one` | open |\n\n---"
15 model[] other call-6 "<summary>MCP tool call</summary>\n\n*Parameters*:\n  * at: two"
16 user[] ->call-6 "{\"open\": true}"
17 model[] edit call-7 "<summary>Edit file: two</summary>\n\n```diff\n+ open\n```"
18 user[] ->call-7 
19 model[] "Open too.", other call-8 "<summary>Tool use: **list_dir_v2**</summary>\n\n\nParameters:\n\n```json\n{\n  \"at\": \"one\"\n}\n```\nAdditional data:\n\n```json\n{\n  \"files\": 1\n}\n```"
20 user[] ->call-8 "{\n  \"files\": [\"gate\"]\n}"
21 model[] other call-9 "<summary>Tool use: **list_dir_v2**</summary>\n\n\nParameters:\n\n```json\n{\n  \"at\": \"two\"\n}\n```"
22 user[] ->call-9 "{\n  \"isPruned\": true\n}"
23 model[] other call-10 "<summary>Tool use: **glob_file_search** • **1** result in **1** directory</summary>"
24 user[] ->call-10 "Directory: **/weir** (1 file)\n\n| File |\n|------|\n| `gate` |"
25 model[] grep call-11 "<summary>Tool use: **grep** • 0 matches</summary>\n\nOutput mode: content"
26 user[] ->call-11 "_No matches found_"
skipped: line before the first message: 3
warning: the arguments of a tool use are as a person saw them: 11
warning: the result of a tool use is not recorded; it is read as empty: 2
"#,
            r#"0 user[sidechain] "Go to the weir."
1 model[sidechain] "I am at the weir."
"#,
            r#"0 user[sidechain] "Go to the mill."
1 model[sidechain] read call-1 "<summary>Tool use: **Read**</summary>\n\n`mill`"
2 user[sidechain] ->call-1 , "Go to the lock."
3 model[sidechain] "It turns."
warning: sub-agents worked at the same time; they are read as one session: 1
warning: the arguments of a tool use are as a person saw them: 1
warning: the result of a tool use is not recorded; it is read as empty: 1
"#,
        ],
    );
}
