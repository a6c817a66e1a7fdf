//! Amp keeps a thread as one object (`~/.local/share/amp/threads/T-*.json`), with messages in nearly
//! the form of Anthropic's API.
//!
//! Rules of this format, beside those every importer shares:
//! - A result is a `run`: what the tool returned, its error, or why it was not run. Which words the
//!   model reads of a result that is no text is not recorded: it is kept as JSON.
//! - A message of the role `info` is the product's own: the model reads it as the user's. One that
//!   holds a `summary` stands for all before it.
//! - A message that names a call as its parent is a sub-agent's.
//! - The bill of a call stands in its message, or in the thread's `usageLedger`.
//! - Usage counts the cached tokens apart. What the editor showed (`userState`) and the files that
//!   were mentioned are a part of the prompt, and their words are not recorded: they are counted.
//!
//! The product publishes no schema. Sources: ryoppippi/ccusage, `rust/crates/ccusage/src/adapter/amp/parser.rs`
//! at 4176e95b1a; a real thread in skillsynchq/txcript, `tests/amp.rs`; and what the product's own
//! bundle makes of a thread; November 2026.

use super::prelude::*;

/// The shapes of a file.
const SHAPES: &str =
    "id^T- created,nextMessageId,messages/0/messageId | usageLedger/events messages";

pub(super) const IMPORTER: Importer = Importer::new("amp", Detect::First(SHAPES), import);

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let mut agents = vec![Assembler::default()];
    let mut names: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for value in file.values(source)? {
        let raw: &RawValue = value.parse()?;
        let Some(mut thread) = Object::read(raw) else {
            agents[0].unknown("value that is no thread");
            continue;
        };
        let mut ledger = BTreeMap::new();
        for mut event in thread.inner("usageLedger").objects("events") {
            let message: Option<u64> = event.take_as("toMessageId");
            ledger.extend(message.map(|message| (message, event)));
        }
        for raw in thread.items("messages") {
            let mut said = Object::read(raw).unwrap_or_default();
            let parent = said.take_text("parentToolUseId");
            let agent = parent.map_or(0, |parent| place_of(parent, &mut names, &mut agents));
            message(said, raw, &mut ledger, &mut agents[agent]);
        }
        thread.count_left("key", &mut agents[0]);
    }
    with_side_chains(agents, source, file)
}

fn message(
    mut said: Object<'_>,
    raw: &RawValue,
    ledger: &mut BTreeMap<u64, Object<'_>>,
    assembler: &mut Assembler,
) {
    let role = said.take_text("role");
    match role.as_deref() {
        Some("assistant") => {
            let blocks = said.take_blocks("content", Speaker::Assistant, assembler);
            let own = said.take("usage");
            let message: Option<u64> = said.take_as("messageId");
            let listed = message.and_then(|message| ledger.remove(&message));
            let mut about = own.and_then(Object::read).or(listed).unwrap_or_default();
            let billed = own.or_else(|| about.take("tokens"));
            let window = about.take_as("maxInputTokens").map(Tokens);
            assembler.header.context_window = window.or(assembler.header.context_window);
            let time = about.take_time("timestamp", assembler);
            let usage = assembler.usage(billed, CachedTokens::Apart).and_then(unless_zero);
            let part = ModelRecord::of(blocks, time).by(None, about.take_text("model"), usage);
            assembler.assistant(None, part);
        }
        Some(role @ ("user" | "info")) => {
            let content = said.take("content");
            let parts = content.and_then(items).unwrap_or_default();
            for mut part in parts.into_iter().filter_map(Object::read) {
                if part.text("type").as_deref() == Some("summary") {
                    let summary = part.inner("summary").take_text("summary");
                    assembler.summarizes(None, None, summary, None);
                }
            }
            let source = &mut assembler.source;
            let mut blocks = content::blocks_by(content, Speaker::User, source, part);
            blocks.retain(
                |block| !matches!(block, ContentBlock::Opaque(part) if &*part.kind == "summary"),
            );
            let time = said.inner("meta").take_time("sentAt", assembler);
            assembler.hear_user(blocks, time, role == "info");
        }
        role => return assembler.hear_unknown_role("message", role, raw, None),
    }
    for known in ["messageId", "state"] {
        said.take(known);
    }
    said.count_left("message key", assembler);
}

/// One part of a message that the model reads.
fn part(raw: &RawValue, source: &mut Source) -> ContentBlock {
    let mut part = Object::read(raw).unwrap_or_default();
    let kind = part.take_text("type");
    let result = match kind.as_deref() {
        Some(kind @ ("summary" | "manual_bash_invocation")) => return content::kept(kind, raw),
        Some("tool_result") => part.take_text("toolUseID").zip(part.take_object("run")),
        _ => None,
    };
    let Some((id, mut run)) = result else {
        return content::part(raw, Speaker::User, source);
    };
    let failed = run.take_text("status").as_deref() != Some("done");
    let error = run.get("error").and_then(Object::read);
    let message = error.and_then(|mut error| error.take("message"));
    let told = run.take("result").or(message).or_else(|| run.first(&["error", "reason"]));
    let blocks = told.map(|raw| content::of_result(raw, source));
    ContentBlock::tool_result(id, blocks.unwrap_or_default(), failed)
}
