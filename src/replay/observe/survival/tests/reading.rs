//! What was read and is gone can be read again.

use super::*;

/// A session in which a file is read and later changed, and a page is fetched.
fn reading() -> Session {
    use crate::session::{ContentBlock, JsonText, ToolClass, ToolResult, ToolUse};
    let uses = |id: &str, name: &str, class, input: &str| {
        let input = JsonText::parse(input).unwrap();
        let (id, name) = (id.into(), name.into());
        let tool = ToolUse { id, name, class, input };
        Message::new(Role::Assistant, vec![ContentBlock::ToolUse(tool.into())])
    };
    let result = |id: &str, text: &str| {
        let result = ToolResult {
            tool_use_id: id.into(),
            content: vec![ContentBlock::Text(text.into())],
            is_error: false,
        };
        Message::new(Role::User, vec![ContentBlock::ToolResult(result.into())])
    };
    let (path, edit) = (
        r#"{"file_path":"a.toml"}"#,
        r#"{"file_path":"a.toml","old_string":"x","new_string":"y"}"#,
    );
    let messages = vec![
        Message::text(Role::User, "Look at a.toml."),
        uses("r", "Read", ToolClass::Read, path),
        result("r", "staging gateway port = 48213"),
        uses("w", "WebFetch", ToolClass::WebFetch, r#"{"url":"u"}"#),
        result("w", "nothing of note"),
        uses("e", "Edit", ToolClass::Edit, edit),
        result("e", "done"),
        Message::text(Role::Assistant, "finished"),
    ];
    Session::new(SessionParts {
        id: "s".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        ..SessionParts::default()
    })
    .unwrap()
}

#[test]
fn what_was_read_can_be_read_again_until_the_file_changes() {
    let session = reading();
    let probes: Arc<[Probe]> = vec![Probe { evidence: vec![2], ..probes()[0].clone() }].into();
    let survival = SurvivalSlots::new(&probes).unwrap();
    let sources = Sources::new(&session, &probes, &survival);
    let counts = CountedTexts::new(Arc::new(CharsPer4));
    let cleared = |keeps_call: bool, note: &str| {
        let mut context = Context::default();
        for (at, message) in session.messages().iter().enumerate() {
            let entry = Entry::new(Origin::Verbatim(at), message.clone(), &counts);
            match at {
                1 if !keeps_call => {}
                2 => context.append(entry.with_block_text(0, &note.into(), &counts)),
                _ => context.append(entry),
            }
        }
        context
    };
    let reaches = |context: &Context, before: usize| {
        sources.is_recoverable(0, &[2], before, &Pointers::of(context))
    };
    // The edit is message 5.
    assert!(reaches(&cleared(true, "[cleared]"), 5));
    assert!(!reaches(&cleared(true, "[cleared]"), 7));
    assert!(!reaches(&cleared(false, "[cleared]"), 5));
    // An offloaded text does not change.
    let name = crate::units::ContentHash::of(session.message(2).model_text()[0].as_bytes()).hex(12);
    let saved = cleared(false, &format!("[saved as tool-results/{name}.txt]"));
    assert!(reaches(&saved, 7));
    // Nobody saved what the user typed.
    assert!(!sources.is_recoverable(0, &[0], 5, &Pointers::of(&saved)));
    assert!(!sources.is_recoverable(0, &[], 5, &Pointers::of(&saved)));
}
