//! Follows a context change by change. Each entry is checked once, as it is appended; a patch checks
//! again what follows it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Finding, Rule, Subject, check_ends, duplicate_use, overlap, summary_ranges};
use crate::context::{Applied, Entry, Origin, signed};
use crate::session::wire::RuleSet;
use crate::session::{ContentBlock, Message, Role};

#[cfg(test)]
thread_local! {
    /// Entries that were checked on this thread, each time anew.
    pub(crate) static CHECKED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Follows a context, and knows at any time which rules it would break if it were sent.
///
/// Appending costs the entry's own blocks, however long its turn is. A patch costs the entries from
/// the turn before its first edit to the end.
#[derive(Debug, Clone, Default)]
pub struct Checker {
    rules: RuleSet,
    entries: Vec<Sent>,
    /// How many entries are checked: the rest will be.
    checked: usize,
    /// The findings about entries, where there are any.
    found: BTreeMap<usize, Vec<Finding>>,
    /// All findings, with the number of entries that have each.
    standing: BTreeMap<Finding, usize>,
    uses: BTreeMap<Arc<str>, usize>,
    /// Ranges of the session's messages that summaries replace, with repetitions.
    summaries: BTreeMap<(usize, usize), usize>,
    /// Ids that a tool result in the last turn may answer, each with its place among them.
    asked: BTreeMap<Arc<str>, usize>,
    /// The last place that a tool result in the last turn has answered.
    reached: usize,
    /// Ids that a tool result in the last turn has answered.
    answered: BTreeSet<Arc<str>>,
    /// Whether nothing but tool results was seen in the last turn.
    results_may_follow: bool,
    /// Entries of the last assistant turn by the tool uses in them that still lack a result.
    unanswered: BTreeMap<Arc<str>, Vec<usize>>,
}

/// What the rules ask of an entry: not its size.
#[derive(Debug, Clone)]
struct Sent {
    origin: Origin,
    message: Arc<Message>,
}

impl From<&Entry> for Sent {
    fn from(entry: &Entry) -> Self {
        Self {
            origin: entry.origin.clone(),
            message: entry.message.clone(),
        }
    }
}

impl Checker {
    /// Follows an empty context whose prompts are held to these rules.
    pub fn new(rules: RuleSet) -> Self {
        Self {
            rules,
            ..Self::default()
        }
    }

    /// Makes room for so many entries.
    pub(crate) fn reserve(&mut self, entries: usize) {
        self.entries.reserve_exact(entries);
    }

    /// An entry was appended at the end.
    pub fn append(&mut self, entry: &Entry) {
        let sent = Sent::from(entry);
        self.enters(&sent);
        self.entries.push(sent.clone());
        self.check(&sent);
    }

    /// A patch was applied.
    pub fn patch(&mut self, applied: &Applied) {
        let Some(first) = applied.change.edits.first() else {
            return;
        };
        let start = first.entries.start.min(self.entries.len());
        // The turn in front of the edit is answered by what comes after it, and may now go on; the
        // one before that is answered by a turn that may have become longer.
        let from = self.turn_start(self.turn_start(start));
        for finding in self.found.split_off(&from).values().flatten() {
            drop_one(&mut self.standing, finding);
        }
        self.checked = from;
        let mut shift = 0_isize;
        for edit in &applied.change.edits {
            let length = self.entries.len();
            let start = edit.entries.start.saturating_add_signed(shift).min(length);
            let end = edit.entries.end.saturating_add_signed(shift);
            let end = end.clamp(start, length);
            shift += signed(edit.with.len()) - signed(end - start);
            for entry in &edit.with {
                self.enters(&entry.into());
            }
            let with = edit.with.iter().map(Sent::from);
            let removed: Vec<Sent> = self.entries.splice(start..end, with).collect();
            for entry in &removed {
                self.leaves(entry);
            }
        }
        self.unanswered.clear();
        for at in from..self.entries.len() {
            let entry = self.entries[at].clone();
            self.check(&entry);
        }
    }

    /// All rules that the context, sent as it is now, breaks.
    pub fn findings(&self) -> BTreeSet<Finding> {
        let mut findings: BTreeSet<Finding> = self.standing.keys().cloned().collect();
        findings.extend(overlap(self.summaries.iter().flat_map(
            |(range, &count)| {
                // Twice says that it is repeated; how often does not matter.
                std::iter::repeat_n(*range, count.min(2))
            },
        )));
        findings.extend(check_ends(
            self.rules,
            self.entries.iter().map(|entry| entry.message.role()),
        ));
        findings
    }

    fn enters(&mut self, entry: &Sent) {
        for (_, tool_use) in entry.message.tool_uses() {
            let count = self.uses.entry(tool_use.id.clone()).or_default();
            *count += 1;
            if *count == 2 {
                self.standing.insert(duplicate_use(&tool_use.id), 1);
            }
        }
        for range in summary_ranges(&entry.origin, &entry.message) {
            *self.summaries.entry(range).or_default() += 1;
        }
    }

    fn leaves(&mut self, entry: &Sent) {
        for (_, tool_use) in entry.message.tool_uses() {
            if drop_one(&mut self.uses, &tool_use.id) == 1 {
                self.standing.remove(&duplicate_use(&tool_use.id));
            }
        }
        for range in summary_ranges(&entry.origin, &entry.message) {
            drop_one(&mut self.summaries, &range);
        }
    }

    /// Where the turn begins that the entry before `end` is in.
    fn turn_start(&self, end: usize) -> usize {
        let role = |entry: &Sent| entry.message.role();
        let last = self.entries[..end].last().map(role);
        let turn = self.entries[..end].iter().rev();
        end - turn.take_while(|entry| Some(role(entry)) == last).count()
    }

    /// Checks the first entry that is not checked yet.
    fn check(&mut self, entry: &Sent) {
        #[cfg(test)]
        CHECKED.set(CHECKED.get() + 1);
        let at = self.checked;
        self.checked += 1;
        let role = entry.message.role();
        let combines = self.rules.combines_messages();
        let begins = at == 0 || self.entries[at - 1].message.role() != role;
        if begins {
            self.begin_turn(at, role);
        }
        if role == Role::Assistant && (begins || !combines) {
            // Where messages are not combined, only the last one of a turn is answered.
            self.unanswered.clear();
        }
        if role == Role::Assistant && !begins {
            self.drop_found(at - 1, |found| found.rule == Rule::ThinkingLast);
        }
        let own = || Subject::of(&entry.origin);
        let is_thought = |block: &ContentBlock| matches!(block, ContentBlock::Thinking(_));
        let content = entry.message.content();
        if content.is_empty() || !combines && content.iter().all(is_thought) {
            self.find(at, Rule::EmptyContent, own());
        }
        for (index, block) in content.iter().enumerate() {
            match block {
                ContentBlock::ToolResult(result) => {
                    let id = &result.tool_use_id;
                    self.check_result(at, role, id);
                    continue;
                }
                ContentBlock::ToolUse(tool_use) => {
                    let id = &tool_use.id;
                    let is_new = self.find(at, Rule::UnansweredUse, Subject::ToolUse(id.clone()));
                    if is_new && role == Role::Assistant {
                        self.unanswered.entry(id.clone()).or_default().push(at);
                    }
                }
                ContentBlock::Text(text) => {
                    if text.trim_start().is_empty() {
                        self.find(at, Rule::EmptyText, own());
                    }
                }
                ContentBlock::Thinking(_) => {
                    let edited = matches!(entry.origin, Origin::Edited { .. });
                    if edited && !entry.origin.is_verbatim(index) {
                        self.find(at, Rule::ThinkingEdited, own());
                    }
                }
                ContentBlock::Image(_) | ContentBlock::Opaque(_) => {}
            }
            self.results_may_follow &= !combines;
        }
        if role == Role::Assistant && content.last().is_some_and(is_thought) {
            self.find(at, Rule::ThinkingLast, own());
        }
        // A message's own results are sent before the rest of it.
        let is_result = |block: &ContentBlock| matches!(block, ContentBlock::ToolResult(_));
        self.results_may_follow &= content.iter().all(is_result);
    }

    /// Only the user answers, and only what the assistant asked: a misplaced block never pairs.
    fn begin_turn(&mut self, at: usize, role: Role) {
        self.answered.clear();
        self.results_may_follow = true;
        let before = match (role, self.rules.combines_messages()) {
            (Role::Assistant, _) => at..at,
            (Role::User, true) => self.turn_start(at)..at,
            (Role::User, false) => at.saturating_sub(1)..at,
        };
        let before = self.entries[before].iter();
        let asked = before.flat_map(|entry| entry.message.tool_uses());
        self.asked = asked
            .zip(0..)
            .map(|((_, tool_use), place)| (tool_use.id.clone(), place))
            .collect();
        self.reached = 0;
    }

    fn check_result(&mut self, at: usize, role: Role, id: &Arc<str>) {
        let subject = || Subject::ToolUse(id.clone());
        match self.asked.get(id).copied() {
            None => {
                self.find(at, Rule::OrphanResult, subject());
            }
            Some(place) => {
                if !self.results_may_follow {
                    self.find(at, Rule::ResultsNotFirst, subject());
                }
                if place < self.reached {
                    self.find(at, Rule::ResultsReordered, subject());
                }
                self.reached = self.reached.max(place);
            }
        }
        if !self.answered.insert(id.clone()) {
            self.find(at, Rule::DuplicateResult, subject());
        }
        if role == Role::User {
            let finding = Finding {
                rule: Rule::UnansweredUse,
                subject: subject(),
            };
            for at in self.unanswered.remove(id).into_iter().flatten() {
                self.drop_found(at, |found| *found == finding);
            }
        }
    }

    /// Drops findings about an entry that what follows it has settled.
    fn drop_found(&mut self, at: usize, is_settled: impl Fn(&Finding) -> bool) {
        let Some(found) = self.found.get_mut(&at) else {
            return;
        };
        found.retain(|found| {
            let is_settled = is_settled(found);
            if is_settled {
                drop_one(&mut self.standing, found);
            }
            !is_settled
        });
        if found.is_empty() {
            self.found.remove(&at);
        }
    }

    /// Adds a finding about an entry, unless the provider does not mind or it is there already.
    fn find(&mut self, at: usize, rule: Rule, subject: Subject) -> bool {
        let finding = Finding { rule, subject };
        if rule.level(self.rules).is_none() {
            return false;
        }
        let found = self.found.entry(at).or_default();
        let is_new = !found.contains(&finding);
        if is_new {
            *self.standing.entry(finding.clone()).or_default() += 1;
            found.push(finding);
        }
        is_new
    }
}

/// Counts one less, forgets at zero, and says how many are left.
fn drop_one<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) -> usize {
    let left = match counts.get_mut(key) {
        Some(count) => {
            *count -= 1;
            *count
        }
        None => return 0,
    };
    if left == 0 {
        counts.remove(key);
    }
    left
}
