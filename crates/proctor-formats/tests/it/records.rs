//! Laws of the Claude Code importer, over records in any order and with any names.

use std::collections::BTreeSet;

use proctor_formats::ImportError;
use proctor_sessions::{ContentBlock, Tag};
use proptest::prelude::*;
use serde_json::json;

use super::{read, round_trip};

/// A record out of small pools of names, so that they clash in every possible way.
fn record() -> impl Strategy<Value = String> {
    (0_u8..9, 0_u8..12, 0_u8..12, 0_u8..4, 0_u8..4, 0_u8..4).prop_map(
        |(kind, uuid, parent, call, tool, side)| {
            let text = json!({"type": "text", "text": format!("text {uuid}")});
            let answer = json!({"type": "tool_result", "tool_use_id": tool, "content": uuid});
            let (kind, content) = match kind {
                0 => ("user", json!(format!("prompt {uuid}"))),
                1 => ("user", json!([text])),
                2 => ("user", json!([
                    {"type": "tool_result", "tool_use_id": format!("t{tool}"), "content": "out"},
                    answer,
                ])),
                3 => ("assistant", json!([text])),
                4 => ("assistant", json!([
                    {"type": "tool_use", "id": format!("t{tool}"), "name": "Read", "input": {}},
                ])),
                5 => ("assistant", json!([])),
                6 => ("attachment", json!("")),
                7 => ("summary", json!("the summary")),
                _ => ("boundary", json!("")),
            };
            let mut record = json!({
                "type": kind,
                "uuid": format!("u{uuid}"),
                "parentUuid": format!("u{parent}"),
                "isSidechain": side == 0,
                "message": {"id": format!("m{call}"), "content": content},
                "attachment": {"type": "queued_command", "prompt": "hurry"},
            });
            match record["type"].as_str() {
                Some("summary") => {
                    record["type"] = json!("user");
                    record["isCompactSummary"] = json!(true);
                }
                Some("boundary") => {
                    record["type"] = json!("system");
                    record["subtype"] = json!("compact_boundary");
                    record["compactMetadata"] = json!({"trigger": "auto", "preservedMessages": {
                        "anchorUuid": format!("u{call}"),
                        "uuids": [format!("u{parent}"), format!("u{tool}")],
                    }});
                }
                _ => {}
            }
            record.to_string()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_records_make_valid_sessions_or_none(records in prop::collection::vec(record(), 0..40)) {
        let sessions = match read("claude-code", (records.join("\n") + "\n").as_bytes()) {
            Ok(sessions) => sessions,
            Err(ImportError::NoConversation { .. }) => return Ok(()),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        for session in &sessions {
            round_trip(session);
            // An answer without an earlier question is always tagged, and nothing else is.
            let mut asked = BTreeSet::new();
            for message in session.messages() {
                let orphan = message
                    .tool_results()
                    .any(|(_, result)| !asked.contains(&result.tool_use_id));
                prop_assert_eq!(message.has_tag(Tag::Orphan), orphan);
                asked.extend(message.tool_uses().map(|(_, tool_use)| tool_use.id.clone()));
                // Tool results come first in their message.
                let results = message
                    .content()
                    .iter()
                    .map(|block| matches!(block, ContentBlock::ToolResult(_)));
                prop_assert!(results.is_sorted_by(|a, b| a >= b));
            }
        }
    }
}
