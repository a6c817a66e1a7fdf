//! Makes messages out of records: the rules that hold for every product.
//!
//! Products write one record per block, per tool result or per keystroke; a model sees one
//! message per API call and one answer to it. The [`Assembler`] of a conversation
//! - merges the parts of one API call into one assistant message, whatever lies between them;
//! - merges everything a user and the tools say before the next call into one user message, tool
//!   results first;
//! - keeps tool results that answer nothing, and tags their message;
//! - drops what was recorded twice, and counts it.

use super::missing_prompt;
use super::prelude::*;
use proctor_sessions::{Details, MessageDetails};

/// How orphans are counted.
pub(super) const ORPHANS: &str = "a tool result answers no earlier tool use";

/// One record of the model's.
#[derive(Debug, Clone, Default)]
pub(super) struct ModelRecord {
    /// The call it came from; records that share it become one message.
    pub(super) call: Option<ApiCallId>,
    /// The model, unless the product wrote the record itself.
    pub(super) model: Text,
    /// Its blocks of the message.
    pub(super) blocks: Blocks,
    /// The usage that the provider reports with this record; the largest of each counter is kept.
    pub(super) usage: Option<Usage>,
    /// Whether the call ended with this record: an earlier one may have estimated the prompt.
    pub(super) is_last: bool,
    /// Tokens of its output that are reasoning.
    pub(super) reasoning: Tokens,
    /// The other iterations of the call than the one that `usage` is of; where there are any, this usage replaces
    /// an earlier one.
    pub(super) iterations: Option<Iterations>,
    /// When it was received.
    pub(super) timestamp: When,
    /// Added to the message's.
    pub(super) tags: Vec<Tag>,
}

/// A message that may still grow; it always has content.
#[derive(Debug, Default)]
struct Draft {
    assistant: bool,
    blocks: Blocks,
    iterations: Option<Iterations>,
    tags: BTreeSet<Tag>,
    /// The message's details. Any block that is not `injected` may name its author.
    details: Details,
}

/// One conversation, growing record by record in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    drafts: Vec<Draft>,
    calls: BTreeMap<ApiCallId, usize>,
    /// Tool uses by message, so that a call of a million of them is still read in no time.
    uses: BTreeSet<(usize, Arc<str>)>,
    models: BTreeMap<Arc<str>, u64>,
    results: Blocks,
    pending: Draft,
    pending_records: Vec<Arc<str>>,
    placed: BTreeMap<Arc<str>, usize>,
    /// Where each tool use was first answered: message and block.
    answers: BTreeMap<Arc<str>, (usize, usize)>,
    compactions: Vec<RecordedCompaction>,
    /// The bill of the call that wrote the summary of the next compaction.
    pub(super) summary_usage: Option<Usage>,
    /// Whether a sub-agent says all of it.
    pub(super) is_side: bool,
    /// The calls without ids.
    pub(super) unnamed: Unnamed,
    /// The recording's facts beside its messages.
    pub(super) header: Header,
    /// The parts that could not be used.
    pub(super) source: Source,
}

/// The facts of a recording beside its messages.
#[derive(Debug, Default)]
pub(super) struct Header {
    /// The system prompt.
    pub(super) system: Text,
    /// The tools the agent was given.
    pub(super) tools: Vec<ToolSchema>,
    /// The model; without it, that of most calls.
    pub(super) model: Text,
    /// The model's context window.
    pub(super) context_window: Option<Tokens>,
}

impl Assembler {
    /// Whether nothing was said yet.
    pub(super) fn is_empty(&self) -> bool {
        self.drafts.is_empty() && self.pending.blocks.is_empty() && self.results.is_empty()
    }

    /// Adds a record of the model's. `record` names it, for [`Assembler::message_of`].
    pub(super) fn assistant(&mut self, record: Option<&Arc<str>>, part: ModelRecord) {
        let at = match part.call.as_ref().and_then(|call| self.calls.get(call)) {
            Some(at) => *at,
            None if part.blocks.is_empty() => {
                return self.skip("assistant record without content");
            }
            None => {
                let at = self.flush();
                self.calls.extend(part.call.clone().map(|call| (call, at)));
                if let Some(model) = &part.model {
                    *self.models.entry(model.clone()).or_default() += 1;
                }
                let details = Details {
                    timestamp: part.timestamp,
                    api_call: part.call,
                    model: part.model,
                    ..Details::default()
                };
                self.drafts.push(Draft { assistant: true, details, ..Draft::default() });
                at
            }
        };
        let mut repeated = 0;
        let draft = &mut self.drafts[at];
        for block in part.blocks {
            if let Some(tool_use) = block.as_use()
                && !self.uses.insert((at, tool_use.id.clone()))
            {
                repeated += 1;
            } else {
                draft.blocks.push(block);
            }
        }
        draft.details.usage = match (draft.details.usage, part.usage) {
            (Some(earlier), Some(later)) if part.iterations.is_none() => {
                let largest = earlier.max(later);
                let final_bill = part.is_last && later.prompt() > Tokens::ZERO;
                let output = largest.output;
                Some(if final_bill { Usage { output, ..later } } else { largest })
            }
            (earlier, later) => later.or(earlier),
        };
        draft.iterations = part.iterations.or(draft.iterations.take());
        draft.details.reasoning = draft.details.reasoning.max(part.reasoning);
        draft.tags.extend(part.tags);
        self.placed.extend(record.map(|record| (record.clone(), at)));
        self.warn_all(0..repeated, "a tool use was recorded twice; the second is left out");
    }

    /// Adds the answer to a request. One without words was billed all the same.
    pub(super) fn answers(&mut self, mut part: ModelRecord) {
        let billed = part.usage.unwrap_or_default().prompt();
        if billed > Tokens::ZERO && part.blocks.is_empty() && !self.knows(part.call.as_ref()) {
            part.blocks.push(ContentBlock::Text("".into()));
        }
        self.assistant(None, part);
    }

    /// Adds a record of the user's or a tool's. `record` names it.
    pub(super) fn hear(
        &mut self,
        record: Option<&Arc<str>>,
        blocks: Blocks,
        timestamp: When,
        tags: impl IntoIterator<Item = Tag>,
    ) {
        if blocks.is_empty() {
            return self.skip("user record without content");
        }
        let tags = Vec::from_iter(tags);
        let typed = tags.contains(&Tag::TypedUser);
        for block in blocks {
            if matches!(block, ContentBlock::ToolResult(_)) {
                self.results.push(block);
                continue;
            }
            if !typed && !tags.is_empty() {
                self.pending.details.injected.push(self.pending.blocks.len());
            }
            self.pending.blocks.push(block);
        }
        // A message is sent when its last part is there.
        self.pending.details.timestamp = timestamp.or(self.pending.details.timestamp);
        self.pending.tags.extend(tags);
        self.pending_records.extend(record.cloned());
    }

    /// Ends the user message that is being collected. Returns the number of messages so far.
    pub(super) fn flush(&mut self) -> usize {
        let mut draft = std::mem::take(&mut self.pending);
        draft.details.injected.iter_mut().for_each(|at| *at += self.results.len());
        draft.blocks.splice(..0, self.results.drain(..));
        let records = std::mem::take(&mut self.pending_records);
        if !draft.blocks.is_empty() {
            let at = self.drafts.len();
            self.placed.extend(records.into_iter().map(|record| (record, at)));
            for (place, block) in draft.blocks.iter().enumerate() {
                if let ContentBlock::ToolResult(result) = block {
                    let id = result.tool_use_id.clone();
                    self.answers.entry(id).or_insert((at, place));
                }
            }
            self.drafts.push(draft);
        }
        self.drafts.len()
    }

    /// The index of the message that a record became part of; none while it is collected.
    pub(super) fn message_of(&self, record: &str) -> Option<usize> {
        self.placed.get(record).copied()
    }

    /// Who speaks in a message, and its blocks; none while it is collected.
    pub(super) fn said(&self, message: usize) -> Option<(Role, &[ContentBlock])> {
        let draft = self.drafts.get(message)?;
        Some((draft.role(), &draft.blocks))
    }

    /// The message and block of the first result for a tool use; none while it is collected.
    pub(super) fn answer(&self, tool_use: &str) -> Option<(usize, usize)> {
        self.answers.get(tool_use).copied()
    }

    /// The tool uses that were answered so far, in order: the tool's name, and message and block of
    /// the first result.
    pub(super) fn answered(&self) -> impl Iterator<Item = (&str, (usize, usize))> {
        let blocks = self.drafts.iter().flat_map(|draft| &draft.blocks);
        let uses = blocks.filter_map(ContentBlock::as_use);
        uses.filter_map(|tool_use| Some((&*tool_use.name, self.answer(&tool_use.id)?)))
    }

    /// Whether records of that call were added.
    pub(super) fn knows(&self, call: Option<&ApiCallId>) -> bool {
        call.is_some_and(|call| self.calls.contains_key(call))
    }

    /// Adds a compaction that happened before message `at`, and returns its index.
    pub(super) fn compaction(
        &mut self,
        at: usize,
        trigger: Text,
        pre_tokens: Option<Tokens>,
        after: CompactedTo,
    ) -> usize {
        self.compactions.push(RecordedCompaction {
            at,
            trigger,
            pre_tokens,
            usage: self.summary_usage.take(),
            after,
        });
        self.compactions.len() - 1
    }

    /// The compactions so far.
    pub(super) fn compactions(&self) -> &[RecordedCompaction] {
        &self.compactions
    }

    /// A compaction that may still have to be completed.
    pub(super) fn compaction_mut(&mut self, index: usize) -> &mut RecordedCompaction {
        &mut self.compactions[index]
    }

    /// Adds a piece to the context after a compaction.
    pub(super) fn compacted_to(&mut self, index: usize, piece: Recorded) {
        match &mut self.compactions[index].after {
            CompactedTo::Replaced(pieces) => pieces.push(piece),
            after @ (CompactedTo::Encrypted | CompactedTo::Missing) => {
                *after = CompactedTo::Replaced(vec![piece]);
            }
        }
    }

    /// Counts something that had to be mended or cannot be trusted.
    pub(super) fn warn(&mut self, what: &str) {
        count(&mut self.source.warnings, what);
    }

    /// Counts something that does not belong to the conversation.
    pub(super) fn skip(&mut self, what: &str) {
        count(&mut self.source.skipped, what);
    }

    /// Counts something as skipped as often as it was found.
    pub(super) fn skip_all(&mut self, found: impl IntoIterator, what: &str) {
        found.into_iter().for_each(|_| self.skip(what));
    }

    /// The session, or none if nothing was said.
    pub(super) fn finish(mut self, id: String, path: &Path) -> Result<Option<Session>> {
        if self.flush() == 0 {
            return Ok(None);
        }
        self.pair();
        let iterations = self.drafts.iter().filter_map(|draft| draft.iterations.as_ref());
        for (what, tokens) in iterations.flat_map(|found| &found.warnings) {
            *self.source.warnings.entry(what.clone()).or_default() += tokens;
        }
        // The model of most calls; of several, the first by name.
        let most = self.models.values().copied().max();
        let model = self.models.into_iter().find(|(_, calls)| Some(*calls) == most);
        let model = self.header.model.or(model.map(|(model, _)| model));
        let always = self.is_side.then_some(Tag::Sidechain);
        let messages = self.drafts.into_iter().map(|draft| {
            let typed = draft.tags.contains(&Tag::TypedUser);
            let mut message = Message::new(draft.role(), draft.blocks)
                .with_tags(draft.tags.into_iter().chain(always));
            let injected = draft.details.injected.into_iter().filter(|_| typed);
            let own_model = draft.details.model.filter(|own| Some(own) != model.as_ref());
            message.details = MessageDetails::from(Details {
                inner_requests: draft.iterations.unwrap_or_default().inner,
                injected: injected.collect(),
                model: own_model,
                ..draft.details
            });
            Arc::new(message)
        });
        let mut parts = SessionParts {
            id,
            messages: messages.collect(),
            compactions: self.compactions,
            model: model.as_deref().map(str::to_owned),
            system: self.header.system,
            tools: self.header.tools,
            context_window: self.header.context_window,
            source: self.source,
            resumed: None,
        };
        parts.source.missing = missing_prompt::missing(&parts);
        checked(parts, path).map(Some)
    }

    /// Pairs results with earlier uses: tags orphans, drops repetitions, counts second answers.
    ///
    /// A second answer that differs from the first stays where it was recorded: a provider would
    /// refuse it, but an importer cannot decide which of the two the agent saw. One that says the
    /// same is dropped, unless its message would then be empty.
    fn pair(&mut self) {
        let mut asked: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut answered: BTreeMap<Arc<str>, ContentBlock> = BTreeMap::new();
        let mut dropped: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let source = &mut self.source;
        for (at, draft) in self.drafts.iter_mut().enumerate() {
            let mut repeated: Vec<usize> = Vec::new();
            for (place, block) in draft.blocks.iter().enumerate() {
                if let ContentBlock::ToolUse(tool_use) = block
                    && !asked.insert(tool_use.id.clone())
                {
                    source.warn("an id stands for several tool uses");
                    // An id that is used again is answered again.
                    answered.remove(&tool_use.id);
                }
                let ContentBlock::ToolResult(result) = block else {
                    continue;
                };
                let id = &result.tool_use_id;
                let alone = draft.blocks.len() == repeated.len() + 1;
                match answered.get(id) {
                    _ if !asked.contains(id) => {
                        source.warn(ORPHANS);
                        draft.tags.insert(Tag::Orphan);
                    }
                    None => {
                        answered.insert(id.clone(), block.clone());
                    }
                    Some(earlier) if earlier == block && !alone => {
                        source.warn("a tool result was recorded twice; the second is left out");
                        repeated.push(place);
                    }
                    Some(_) => source.warn("a tool use was answered twice; both answers are kept"),
                }
            }
            if !repeated.is_empty() {
                draft.drop_blocks(&repeated);
                dropped.insert(at, repeated);
            }
        }
        // Compactions that replace a block behind one that was dropped name its new place.
        for compaction in &mut self.compactions {
            let CompactedTo::Replaced(pieces) = &mut compaction.after else {
                continue;
            };
            for piece in pieces {
                if let Recorded::Edited { message, block, .. } = piece
                    && let Some(repeated) = dropped.get(message)
                {
                    *block = place_without(repeated, *block);
                }
            }
        }
    }
}

impl Draft {
    fn role(&self) -> Role {
        role_of(self.assistant)
    }

    /// Drops the blocks at these places.
    fn drop_blocks(&mut self, places: &[usize]) {
        let mut place = 0..;
        self.blocks.retain(|_| place.next().is_some_and(|place| !places.contains(&place)));
        let injected = self.details.injected.iter_mut();
        injected.for_each(|place| *place = place_without(places, *place));
    }
}

/// The place of a block when those at `dropped` are gone.
fn place_without(dropped: &[usize], place: usize) -> usize {
    place - dropped.iter().filter(|gone| **gone < place).count()
}

/// Adds the counts of `other` to `source`.
pub(super) fn add_counts(source: &mut Source, other: Source) {
    for (to, from) in [
        (&mut source.skipped, other.skipped),
        (&mut source.unknown, other.unknown),
        (&mut source.warnings, other.warnings),
    ] {
        for (what, count) in from {
            *to.entry(what).or_default() += count;
        }
    }
}
