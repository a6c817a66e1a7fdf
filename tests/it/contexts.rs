//! Generated contexts and changes, good and bad: what properties of contexts are tried on.

use std::ops::Range;
use std::sync::Arc;

use proctor::context::{Applied, BlockAt, CacheEffect, Context, Edit, Entry, Origin, PatchError};
use proctor::session::{
    ContentBlock, Image, JsonText, Message, Role, Tag, Thinking, ToolClass, ToolResult, ToolUse,
};
use proctor::tokens::{CharsPer4, CountedTexts};
use proptest::prelude::*;

/// A table of counts for tests.
pub(crate) fn counts() -> Arc<CountedTexts> {
    Arc::new(CountedTexts::new(Arc::new(CharsPer4)))
}

/// Something that happens to a context.
#[derive(Debug, Clone)]
pub(crate) enum Happening {
    /// An entry is appended.
    Append(Origin, Box<Message>),
    /// A patch is applied.
    Patch(Vec<Change>),
    /// Somebody looks.
    Look,
}

/// An edit for a context of any length: [`plan`] makes places out of its numbers.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// Replaces so many entries, after a gap from the last change.
    Replace(usize, usize, Vec<(Origin, Message)>),
    /// Edits a block, after a gap from the last change.
    EditBlock(usize, usize, String),
}

/// The edits, made to fit a context: ascending and disjoint.
pub(crate) fn plan(context: &Context, changes: &[Change], counts: &CountedTexts) -> Vec<Edit> {
    let entries = context.entries();
    let mut edits = Vec::new();
    let mut next = 0;
    for change in changes {
        match change {
            Change::Replace(gap, length, with) => {
                let start = (next + gap).min(entries.len());
                let end = (start + length).min(entries.len());
                let entry = |(origin, message): &(Origin, Message)| {
                    Entry::new(origin.clone(), Arc::new(message.clone()), counts)
                };
                edits.push(Edit::replacing(start..end, with.iter().map(entry)));
                next = end;
            }
            Change::EditBlock(gap, block, text) => {
                let entry = next + gap;
                let blocks = entries.get(entry).map_or(0, |at| at.message.content().len());
                if blocks > 0 {
                    let text = (BlockAt { entry, block: block % blocks }, text.as_str().into());
                    edits.extend(Edit::blocks(entries, [text], CacheEffect::Breaks, counts));
                    next = entry + 1;
                }
            }
        }
    }
    edits
}

/// Applies edits that fit, as the pipeline does.
pub(crate) fn apply(context: &mut Context, edits: Vec<Edit>) -> Result<Applied, PatchError> {
    Ok(Applied {
        call: 0,
        stage: "test".into(),
        reason: String::new(),
        change: context.apply(edits)?,
        is_still_over: false,
        prepared_at: None,
    })
}

/// Anything that can happen to a context, in any order.
pub(crate) fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let happening = prop_oneof![
        6 => (origin(), message()).prop_map(|(origin, message)| Happening::Append(origin, Box::new(message))),
        3 => prop::collection::vec(change(), 1..4).prop_map(Happening::Patch),
        2 => Just(Happening::Look),
    ];
    prop::collection::vec(happening, 1..40)
}

fn change() -> impl Strategy<Value = Change> {
    let with = prop::collection::vec((origin(), message()), 0..4);
    let text = prop_oneof![Just(String::new()), Just("[cleared]".to_owned())];
    prop_oneof![
        (0..4_usize, 0..5_usize, with)
            .prop_map(|(gap, length, with)| { Change::Replace(gap, length, with) }),
        (0..6_usize, any::<usize>(), text)
            .prop_map(|(gap, block, text)| { Change::EditBlock(gap, block, text) }),
    ]
}

/// Any origin. It need not be true.
pub(crate) fn origin() -> impl Strategy<Value = Origin> {
    let range = || (0..12_usize, 0..6_usize).prop_map(|(start, length)| start..start + length);
    prop_oneof![
        4 => (0..12_usize).prop_map(Origin::Verbatim),
        1 => (0..12_usize, prop::collection::btree_set(0..4_u32, 0..3)).prop_map(|(message, blocks)| {
            Origin::Edited { message, blocks: Arc::new(blocks.into_iter().collect()) }
        }),
        2 => prop::collection::vec(range(), 0..3).prop_map(|ranges: Vec<Range<usize>>| {
            Origin::Derived(ranges.into())
        }),
        1 => (0..12_usize).prop_map(Origin::Restored),
        1 => Just(Origin::Authored),
    ]
}

/// Any message: blocks where they belong and where they do not, of a handful of tool use ids.
pub(crate) fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::User), Just(Role::Assistant)];
    let tags = prop_oneof![4 => Just(vec![]), 1 => Just(vec![Tag::Meta])];
    (role, prop::collection::vec(block(), 0..4), tags)
        .prop_map(|(role, content, tags)| Message::new(role, content).with_tags(tags))
}

fn block() -> impl Strategy<Value = ContentBlock> {
    let id = || (0..5_u8).prop_map(|id| Arc::<str>::from(format!("toolu_{id}")));
    prop_oneof![
        3 => prop_oneof![Just(""), Just(" \n"), Just("words")]
            .prop_map(|text| ContentBlock::Text(text.into())),
        3 => id().prop_map(|id| ContentBlock::ToolUse(Box::new(ToolUse {
            id,
            name: "read".into(),
            class: ToolClass::Read,
            input: JsonText::string("x"),
        }))),
        3 => id().prop_map(|tool_use_id| ContentBlock::ToolResult(Box::new(ToolResult {
            tool_use_id,
            content: vec![ContentBlock::Text("what the tool found".into())],
            is_error: false,
        }))),
        1 => Just(ContentBlock::Thinking(Box::new(Thinking { text: "hm".into(), signature: None }))),
        1 => Just(ContentBlock::Image(Image { source: JsonText::string("data") })),
    ]
}

/// What a context shows of itself.
fn shown(context: &Context) -> impl PartialEq + std::fmt::Debug + use<> {
    let results: Vec<_> = context.results().collect();
    let size = context.size();
    (context.entries().to_vec(), results, size, context.attachments().clone())
}

proptest! {
    #[test]
    fn a_change_that_is_taken_back_leaves_no_trace(
        messages in prop::collection::vec((origin(), message()), 1..12),
        changes in prop::collection::vec(change(), 1..4),
    ) {
        let counts = counts();
        let mut context = Context::default();
        for (origin, message) in messages {
            context.append(Entry::new(origin, Arc::new(message), &counts));
        }
        let before = shown(&context);
        let planned = plan(&context, &changes, &counts);
        let only_blocks = changes.iter().all(|change| matches!(change, Change::EditBlock(..)));
        let replacements = context.replacements();
        let change = context.apply(planned).unwrap();
        context.revert(&change);
        prop_assert_eq!(shown(&context), before);
        // Where only blocks were edited, nobody need look at everything again.
        prop_assert!(!only_blocks || context.replacements() == replacements);
    }

    #[test]
    fn what_counts_as_no_replacement_moves_no_result(
        messages in prop::collection::vec((origin(), message()), 1..12),
        changes in prop::collection::vec(change(), 1..4),
    ) {
        let counts = counts();
        let mut context = Context::default();
        for (origin, message) in messages {
            context.append(Entry::new(origin, Arc::new(message), &counts));
        }
        let results: Vec<_> = context.results().collect();
        let planned = plan(&context, &changes, &counts);
        context.apply(planned).unwrap();
        prop_assert!(context.replacements() > 0 || context.results().eq(results));
        // The running number is that of a search of all entries.
        prop_assert_eq!(context.result_count(), context.results().count());
    }
}

#[test]
fn two_edited_blocks_of_a_message_are_both_named() {
    let counts = counts();
    let blocks = ["one", "two", "three"].map(|text| ContentBlock::Text(text.into()));
    let message = Arc::new(Message::new(Role::User, blocks.to_vec()));
    let entry = Entry::new(Origin::Verbatim(4), message, &counts);
    let mut context = Context::default();
    context.append(entry);
    for blocks in [&[2][..], &[0, 2]] {
        let texts = blocks.iter().map(|block| (BlockAt { entry: 0, block: *block }, "cut".into()));
        let edits = Edit::blocks(context.entries(), texts, CacheEffect::Breaks, &counts);
        context.apply(edits).unwrap();
    }
    let [entry] = context.entries() else {
        panic!("one entry");
    };
    let origin = Origin::Edited { message: 4, blocks: Arc::new(vec![0, 2]) };
    assert_eq!(entry.origin, origin);
    let verbatim = [0, 1, 2].map(|block| entry.is_verbatim(block));
    assert_eq!(verbatim, [false, true, false]);
}
