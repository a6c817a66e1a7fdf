//! Sessions in words, and lines of recordings.
#![expect(clippy::expect_used, reason = "helpers of tests fail the test they are called from")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proctor_formats::{self as import, ImportError, native as native_format};
use proctor_sessions::units::Usage;
use proctor_sessions::{CompactedTo, ContentBlock, Message, Recorded, Role, Session};

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(crate::FIXTURES).join(name)
}

pub(crate) fn read(format: &str, bytes: &[u8]) -> Result<Vec<Session>, ImportError> {
    let mut input = bytes;
    import::importer(format)
        .expect("the format exists")
        .import(Path::new("some/File One.jsonl"), &mut input)
}

pub(crate) fn written(session: &Session) -> Vec<u8> {
    let mut bytes = Vec::new();
    native_format::write(session, &mut bytes).expect("a vector takes everything");
    bytes
}

/// Writes, reads and writes again; returns the session as read.
pub(crate) fn round_trip(session: &Session) -> Session {
    let first = written(session);
    let read = read("native", &first).expect("what was written can be read");
    let [read] = <[Session; 1]>::try_from(read).expect("one session in, one session out");
    assert!(written(&read) == first, "written bytes differ");
    assert_eq!(read.messages(), session.messages());
    assert_eq!(read.compactions(), session.compactions());
    assert_eq!(read.source(), session.source());
    assert_eq!(read.tools(), session.tools());
    read
}

pub(crate) fn shown(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => format!("{text:?}"),
        ContentBlock::Thinking(thinking) => format!("thinking {:?}", thinking.text),
        ContentBlock::ToolUse(tool_use) => {
            format!("{} {} {}", tool_use.class.name(), tool_use.id, tool_use.input.as_str())
        }
        ContentBlock::ToolResult(result) => {
            let parts: Vec<String> = result.content.iter().map(shown).collect();
            let sign = if result.is_error { "!" } else { "" };
            format!("->{sign}{} {}", result.tool_use_id, parts.join("+"))
        }
        ContentBlock::Image(image) => format!("image {}", image.source.as_str()),
        ContentBlock::Opaque(opaque) => format!("<{}>", opaque.kind),
    }
}

/// A bill by class of tokens.
fn billed(usage: Option<Usage>) -> String {
    usage.map_or(String::new(), |usage| {
        format!(
            " = {}/{}/{}/{}/{}",
            usage.input_uncached,
            usage.cache_write_5m,
            usage.cache_write_1h,
            usage.cache_read,
            usage.output
        )
    })
}

/// A message as one line: role, tags, blocks, usage.
pub(crate) fn line(message: &Message) -> String {
    let tags: Vec<String> = message
        .tags
        .iter()
        .map(|tag| serde_json::to_string(&tag).expect("tags are words").replace('"', ""))
        .collect();
    let blocks: Vec<String> = message.content().iter().map(shown).collect();
    let role = match message.role() {
        Role::User => "user",
        Role::Assistant => "model",
    };
    let usage = billed(message.details.usage);
    format!("{role}[{}] {}{usage}", tags.join(" "), blocks.join(", "))
}

/// A session as text: what an importer made of a file, to compare at a glance.
pub(crate) fn outline(session: &Session) -> String {
    let mut text = String::new();
    for (at, message) in session.messages().iter().enumerate() {
        writeln!(text, "{at} {}", line(message)).expect("strings take everything");
    }
    for compaction in session.compactions() {
        let after = match &compaction.after {
            CompactedTo::Missing => "missing".to_owned(),
            CompactedTo::Encrypted => "encrypted".to_owned(),
            CompactedTo::Replaced(pieces) => pieces
                .iter()
                .map(|piece| match piece {
                    Recorded::Kept(range) => format!("kept {range:?}"),
                    Recorded::Edited { message, .. } => format!("edited {message}"),
                    Recorded::Written(message) => format!("({})", line(message)),
                })
                .collect::<Vec<_>>()
                .join(", "),
        };
        let trigger = compaction.trigger.as_deref().unwrap_or("-");
        let tokens = compaction.pre_tokens.unwrap_or_default();
        writeln!(
            text,
            "compaction before {}: {trigger} {tokens}{}: {after}",
            compaction.at,
            billed(compaction.usage)
        )
        .expect("strings take everything");
    }
    for (name, counts) in [
        ("skipped", &session.source().skipped),
        ("unknown", &session.source().unknown),
        ("warning", &session.source().warnings),
    ] {
        for (what, count) in counts {
            writeln!(text, "{name}: {what}: {count}").expect("strings take everything");
        }
    }
    text
}

pub(crate) fn user(uuid: &str, parent: &str, text: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"{uuid}","parentUuid":"{parent}","sessionId":"s","message":{{"content":"{text}"}}}}"#
    )
}

pub(crate) fn model(uuid: &str, parent: &str, call: &str, blocks: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{uuid}","parentUuid":"{parent}","requestId":"r{call}","message":{{"id":"m{call}","content":[{blocks}]}}}}"#
    )
}

pub(crate) fn result(uuid: &str, parent: &str, id: &str, text: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"{uuid}","parentUuid":"{parent}","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}","content":"{text}"}}]}}}}"#
    )
}

pub(crate) fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

pub(crate) fn read_use(id: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"Read","input":{{}}}}"#)
}

/// The text of a file that was packed with gzip; none where the shared data is missing.
pub(crate) fn unpacked(folder: &str, name: &str) -> Option<String> {
    let path = crate::shared::folder(folder)?.join(name);
    let unpacked = std::process::Command::new("gzip").arg("-dc").arg(path).output();
    let unpacked = unpacked.expect("gzip runs");
    assert!(unpacked.status.success(), "{folder}/{name}");
    Some(String::from_utf8(unpacked.stdout).expect("text"))
}

/// How many calls were made before each compaction.
pub(crate) fn calls_before_compactions(session: &Session) -> Vec<usize> {
    let calls = |at: usize| session.calls().iter().filter(|call| **call < at).count();
    session.compactions().iter().map(|one| calls(one.at)).collect()
}
