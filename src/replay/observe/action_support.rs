//! Checks whether the prompt still holds what the agent's next tool call needs.
//!
//! An *entity* is a path, identifier, id, number or quoted string of a recorded tool call's
//! arguments that stood in an earlier message. The same entities are wanted of every strategy; what
//! differs is how many are still in the prompt. No model is asked, and no planted fact needed.

use super::prelude::*;
use super::sources::{Places, Pointers, ResultSource};
use super::{CallView, Observer};
use crate::patterns::{Pattern, Patterns, PatternsError, PerText};
use crate::record::{ActionSupport, Arm, Reread};
use crate::session::ToolSchema;

pub(crate) mod entities;

/// Which entities each call of a session needs, and where they are: made once, shared by all cells.
#[derive(Debug)]
pub struct ActionEntities {
    patterns: Patterns,
    /// By call, where a call needs any.
    wanted: BTreeMap<usize, Vec<u32>>,
    /// The entities of system prompt and tool definitions, each once per text.
    pinned: Vec<u32>,
    /// By entity: the messages of the texts that hold it, in order.
    texts: Vec<Vec<usize>>,
    /// By entity: the tool results that hold it, in order, with their sizes.
    results: Vec<Vec<(Arc<ResultSource>, Tokens)>>,
    found: PerText<[u32]>,
}

impl ActionEntities {
    /// Finds the entities of all tool calls of `session` in all of its messages.
    pub fn new(session: &Session, counts: &CountedTexts) -> Result<Self, PatternsError> {
        let mut ids: BTreeMap<Pattern, u32> = BTreeMap::new();
        let mut patterns = Vec::new();
        let mut by_call: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
        for (call, &response) in session.calls().iter().enumerate() {
            for (_, tool) in session.message(response).tool_uses() {
                for entity in entities::entities(&tool.input.value()) {
                    let next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
                    let id = ids.entry(entity).or_insert_with_key(|entity| {
                        patterns.push(entity.clone());
                        next
                    });
                    by_call.entry(call).or_default().insert(*id);
                }
            }
        }
        let count = patterns.len();
        let patterns = Patterns::new(patterns)?;
        let mut entities = Self {
            wanted: BTreeMap::new(),
            pinned: Vec::new(),
            texts: vec![Vec::new(); count],
            results: vec![Vec::new(); count],
            found: PerText::default(),
            patterns,
        };
        let places = Places::new(session);
        for (at, message) in session.messages().iter().enumerate() {
            let blocks = message.model_text().iter().zip(message.blocks());
            for (number, (text, block)) in blocks.enumerate() {
                let found = entities.find(text);
                for entity in found.iter() {
                    entities.texts[*entity as usize].push(at);
                }
                if !found.is_empty()
                    && let Some(source) = places.of(at, number)
                {
                    let result = (Arc::new(source), counts.block(&block).tokens);
                    for entity in found.iter() {
                        entities.results[*entity as usize].push(result.clone());
                    }
                }
            }
        }
        for (call, mut wanted) in by_call {
            let response = session.calls()[call];
            wanted.retain(|entity| entities.texts_before(*entity, response) > 0);
            entities.wanted.insert(call, wanted.into_iter().collect());
        }
        let tools = session.tools().iter().map(ToolSchema::text);
        for text in session.system().into_iter().chain(tools) {
            let found = entities.find(text);
            entities.pinned.extend_from_slice(&found);
        }
        Ok(entities)
    }

    /// How many texts of the full history before a message hold an entity.
    fn texts_before(&self, entity: u32, before: usize) -> usize {
        self.texts[entity as usize].partition_point(|message| *message < before)
    }

    /// The newest tool result before a message that holds an entity, and its size.
    fn newest_result(&self, entity: u32, before: usize) -> Option<&(Arc<ResultSource>, Tokens)> {
        let results = &self.results[entity as usize];
        let known = results.partition_point(|(source, _)| source.message < before);
        known.checked_sub(1).map(|last| &results[last])
    }

    /// The entities in `text`, each once.
    fn find(&self, text: &Arc<str>) -> Arc<[u32]> {
        self.found.get_or(text, || {
            let hits = self.patterns.search(text).into_iter();
            let entities: BTreeSet<u32> = hits.map(|hit| hit.pattern).collect();
            entities.into_iter().collect()
        })
    }
}

/// Follows the entities through one cell, and writes [`CellRecord::action_support`] and
/// [`CellRecord::rereads`].
///
/// The system prompt and the tool definitions are part of every prompt, the floor's too. After a
/// death nothing is recorded: what those calls needed is known from the reference.
#[derive(Debug)]
pub struct ActionSupportObserver {
    entities: Arc<ActionEntities>,
    /// By entity: the number of texts of the context that hold it.
    present: Vec<u32>,
    /// By entity: the number of these that hold the session's own words.
    verbatim: Vec<u32>,
    support: ActionSupport,
    /// By call: what is gone and could be read again.
    reachable: Vec<u32>,
    pointers: Pointers,
    /// The misses so far, each a tool result or else an entity: each is read again once.
    missed: BTreeSet<Result<(usize, usize), u32>>,
    rereads: Vec<Reread>,
}

impl ActionSupportObserver {
    /// An observer for one cell of the entities' session.
    pub fn new(entities: Arc<ActionEntities>) -> Self {
        let count = entities.results.len();
        let mut present = vec![0; count];
        for &entity in &entities.pinned {
            present[entity as usize] += 1;
        }
        Self {
            present,
            verbatim: vec![0; count],
            support: ActionSupport::default(),
            reachable: Vec::new(),
            pointers: Pointers::default(),
            missed: BTreeSet::new(),
            rereads: Vec::new(),
            entities,
        }
    }

    /// The results and entities that had to be read again so far.
    #[cfg(test)]
    pub(super) fn rereads(&self) -> &[Reread] {
        &self.rereads
    }

    fn count(&mut self, entry: &Entry, change: impl Fn(&mut u32)) {
        self.pointers.count(entry, &change);
        let own = matches!(entry.origin, Origin::Verbatim(_) | Origin::Edited { .. });
        for (block, text) in entry.message.model_text().iter().enumerate() {
            let verbatim = own && entry.is_verbatim(block);
            for &entity in self.entities.find(text).iter() {
                change(&mut self.present[entity as usize]);
                if verbatim {
                    change(&mut self.verbatim[entity as usize]);
                }
            }
        }
    }

    /// Notes that an entity would have to be read again, and says whether it can be.
    fn miss(&mut self, entity: u32, view: &CallView<'_>) -> bool {
        let result = self.entities.newest_result(entity, view.before);
        let missed = result.map(|(source, _)| (source.message, source.block));
        if self.missed.insert(missed.ok_or(entity)) {
            self.rereads.push(Reread {
                call: view.call,
                message: result.map(|(source, _)| source.message),
                tokens: result.map_or(Tokens::ZERO, |(_, tokens)| *tokens),
            });
        }
        result.is_some_and(|(source, _)| self.pointers.is_recoverable(source, view.before))
    }
}

impl Observer for ActionSupportObserver {
    fn entered(&mut self, entry: &Entry) {
        self.count(entry, |count| *count += 1);
    }

    fn left(&mut self, entry: &Entry) {
        self.count(entry, |count| *count = count.saturating_sub(1));
    }

    fn called(&mut self, view: &CallView<'_>) {
        let entities = self.entities.clone();
        let wanted = entities.wanted.get(&view.call).map_or(&[][..], Vec::as_slice);
        let [mut present, mut compacted, mut both, mut reachable] = [0_u32; 4];
        for &entity in wanted {
            let here = self.present[entity as usize] > 0;
            let verbatim = self.verbatim[entity as usize] as usize;
            let rewritten = verbatim < entities.texts_before(entity, view.before);
            present += u32::from(here);
            compacted += u32::from(rewritten);
            both += u32::from(rewritten && here);
            reachable += u32::from(!here && self.miss(entity, view));
        }
        let wanted = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
        self.support.wanted.push(wanted);
        self.support.present.push(present);
        self.support.compacted_wanted.push(compacted);
        self.support.compacted_present.push(both);
        self.reachable.push(reachable);
    }

    fn finish(self: Box<Self>, record: &mut CellRecord) {
        record.action_support = self.support;
        record.action_support.reachable = (record.arm != Arm::Floor).then_some(self.reachable);
        // The floor works on nothing: there is nothing to go on with.
        record.rereads = (record.arm != Arm::Floor).then_some(self.rereads);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::walk;
    use super::*;
    use crate::context::{BlockAt, CacheEffect, Context, Edit};
    use crate::session::{
        ContentBlock, JsonText, Message, Role, SessionParts, ToolClass, ToolResult, ToolUse,
    };
    use crate::tokens::CharsPer4;

    fn session() -> Session {
        let user = |text: &str| Message::text(Role::User, text);
        let call = |id: &str, input: &str| {
            Message::new(
                Role::Assistant,
                vec![ContentBlock::ToolUse(Box::new(ToolUse {
                    id: id.into(),
                    name: "Run".into(),
                    class: ToolClass::Shell,
                    input: JsonText::parse(input).unwrap(),
                }))],
            )
        };
        let messages = [
            user("look at src/a.rs and log_level"),
            call("1", r#"{"command":"cat src/a.rs unseen_name"}"#),
            user("it says retry_limit"),
            call("2", r#"{"command":"grep retry_limit src/a.rs; echo unseen_name"}"#),
            user("ok"),
            call("3", r#"{"command":"grep log_level retry_limit"}"#),
        ];
        Session::new(SessionParts {
            id: "s".into(),
            messages: messages.into_iter().map(Arc::new).collect(),
            ..SessionParts::default()
        })
        .unwrap()
    }

    #[test]
    fn what_was_cleared_is_missed_by_the_calls_that_need_it() {
        let session = session();
        let counts = CountedTexts::new(Arc::new(CharsPer4));
        let entities = Arc::new(ActionEntities::new(&session, &counts).unwrap());
        let mut observer = Box::new(ActionSupportObserver::new(entities.clone()));
        let edits = |call, context: &Context| {
            let texts = [(0, "[cleared]"), (2, "kept: retry_limit")];
            let due = texts.into_iter().filter(|_| call == 1);
            let texts = due.map(|(entry, text)| (BlockAt { entry, block: 0 }, text.into()));
            Edit::blocks(context.entries(), texts, CacheEffect::Keeps, &counts)
        };
        walk(&session, &counts, &mut *observer, edits, |observer, context| {
            let mut again = ActionSupportObserver::new(entities.clone());
            for entry in context.entries() {
                again.entered(entry);
            }
            assert_eq!(again.present, observer.present);
            assert_eq!(again.verbatim, observer.verbatim);
        });
        let support = ActionSupport {
            // `src/a.rs` | `retry_limit`, `src/a.rs`, `unseen_name` | `log_level`, `retry_limit`
            wanted: vec![1, 3, 2],
            present: vec![1, 3, 1],
            compacted_wanted: vec![0, 2, 2],
            compacted_present: vec![0, 2, 1],
            reachable: None,
        };
        assert_eq!(observer.support, support);
        // No tool ever answered: the third call has to look for `log_level`.
        let reread = Reread { call: 2, message: None, tokens: Tokens::ZERO };
        assert_eq!(observer.rereads, [reread]);
    }

    #[test]
    fn what_is_gone_is_reachable_while_something_points_to_it() {
        let tool = |id: &str, name: &str, class, input: &str| {
            Message::new(
                Role::Assistant,
                vec![ContentBlock::ToolUse(Box::new(ToolUse {
                    id: id.into(),
                    name: name.into(),
                    class,
                    input: JsonText::parse(input).unwrap(),
                }))],
            )
        };
        let result = |id: &str, text: &str| {
            Message::new(
                Role::User,
                vec![ContentBlock::ToolResult(Box::new(ToolResult {
                    tool_use_id: id.into(),
                    content: vec![ContentBlock::Text(text.into())],
                    is_error: false,
                }))],
            )
        };
        let read = r#"{"file_path":"src/a.rs"}"#;
        let wants = [r#"{"command":"grep retry_limit"}"#, r#"{"command":"grep log_level"}"#];
        let held = "retry_limit = 3, log_level = 4";
        let edit = r#"{"file_path":"src/a.rs","old_string":"x","new_string":"y"}"#;
        let messages = [
            Message::text(Role::User, "go"),
            tool("1", "Read", ToolClass::Read, read),
            result("1", held),
            tool("2", "Bash", ToolClass::Shell, wants[0]),
            result("2", "ok"),
            tool("3", "Edit", ToolClass::Edit, edit),
            result("3", "ok"),
            tool("4", "Bash", ToolClass::Shell, wants[1]),
        ];
        let session = Session::new(SessionParts {
            id: "s".into(),
            messages: messages.into_iter().map(Arc::new).collect(),
            ..SessionParts::default()
        })
        .unwrap();
        let counts = CountedTexts::new(Arc::new(CharsPer4));
        let entities = Arc::new(ActionEntities::new(&session, &counts).unwrap());
        let hash = crate::units::ContentHash::of(held).hex(12);
        // The stub in place of the result, and the expected reachable entities at the second call
        // and, after the edit, at the fourth.
        let check = |stub: &str, reachable: [u32; 2]| {
            let mut observer = Box::new(ActionSupportObserver::new(entities.clone()));
            let edits = |call, context: &Context| {
                let text = (call == 1).then(|| (BlockAt { entry: 2, block: 0 }, stub.into()));
                Edit::blocks(context.entries(), text, CacheEffect::Breaks, &counts)
            };
            walk(&session, &counts, &mut *observer, edits, |_, _| {});
            let found = [observer.reachable[1], observer.reachable[3]];
            assert_eq!(found, reachable, "{stub}");
        };
        check("[cleared]", [1, 0]);
        check(&format!("[saved to tool-results/{hash}.txt]"), [1, 1]);
        check("[cleared; retry_limit and log_level]", [0, 0]);
    }
}
