//! Follows a context change by change. Each entry is checked once, as it is appended; a patch checks
//! again what follows it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Finding, Rule, Subject, check_ends, duplicate_use, overlap, summary_ranges};
use crate::context::{Applied, EditList, Entry, Origin, visit};
use crate::session::wire::RuleSet;
use crate::session::{ContentBlock, Role};

/// Follows a context, and knows at any time which rules it would break if it were sent.
///
/// Appending costs the entry's own blocks, however long its turn is. A patch costs the entries from
/// the turn before its first edit to the second response behind its last one.
#[derive(Debug, Clone, Default)]
pub struct Checker {
    rules: RuleSet,
    entries: EditList<CheckedEntry>,
    /// All findings, with the number of entries that have each.
    standing: BTreeMap<Finding, usize>,
    uses: BTreeMap<Arc<str>, usize>,
    /// Ranges of the session's messages that summaries replace, with repetitions.
    summaries: BTreeMap<(usize, usize), usize>,
    turn: LastTurn,
}

/// What is known of the last turn. It begins anew with every assistant turn: no rule looks back past
/// the begin of one from behind it.
#[derive(Debug, Clone, Default)]
struct LastTurn {
    /// Ids that a tool result in it may answer, each with its place among them.
    asked: BTreeMap<Arc<str>, usize>,
    /// The last place that a tool result in it has answered.
    reached: usize,
    /// Ids that a tool result in it has answered.
    answered: BTreeSet<Arc<str>>,
    /// Whether nothing but tool results was seen in it.
    results_may_follow: bool,
    /// Entries of the last assistant turn, by their places, under the tool uses in them that still
    /// lack a result.
    unanswered: BTreeMap<Arc<str>, Vec<usize>>,
}

/// An entry, and what breaks a rule in it.
#[derive(Debug, Clone)]
struct CheckedEntry {
    entry: Entry,
    found: Vec<Finding>,
}

impl CheckedEntry {
    fn new(entry: &Entry) -> Self {
        Self { entry: entry.clone(), found: Vec::new() }
    }

    fn role(&self) -> Role {
        self.entry.role()
    }
}

impl Checker {
    /// Follows an empty context whose prompts are held to these rules.
    pub fn new(rules: RuleSet) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Makes room for so many entries.
    pub(crate) fn reserve(&mut self, entries: usize) {
        self.entries.reserve_exact(entries);
    }

    /// An entry was appended at the end.
    pub fn append(&mut self, entry: &Entry) {
        self.enters(entry);
        self.entries.push(CheckedEntry::new(entry));
        self.check(self.entries.len() - 1);
    }

    /// A patch was applied.
    pub fn patch(&mut self, applied: &Applied) {
        let edits = &applied.change.edits;
        let (Some(first), Some(last)) = (edits.first(), edits.last()) else {
            return;
        };
        let length = self.entries.len();
        let start = first.entries.start.min(length);
        let behind = length - last.entries.end.min(length);
        // The turn in front of the edit is answered by what comes after it, and may now go on; the
        // one before that is answered by a turn that may have become longer.
        let from = self.turn_start(self.turn_start(start));
        let end = length - behind + self.until_next_response(length - behind);
        for checked in &mut self.entries[from..end] {
            for finding in checked.found.drain(..) {
                drop_one(&mut self.standing, &finding);
            }
        }
        // From the back: indices count before the whole patch.
        for edit in edits.iter().rev() {
            let end = edit.entries.end.min(length);
            for entry in &edit.with {
                self.enters(entry);
            }
            let range = edit.entries.start.min(end)..end;
            let with: Vec<CheckedEntry> = edit.with.iter().map(CheckedEntry::new).collect();
            let (removed, _) = self.entries.splice(range, &with);
            for checked in &removed {
                self.leaves(&checked.entry);
            }
        }
        let end = end + self.entries.len() - length;
        // Behind the begin of a response everything is as it was.
        let known = (end < self.entries.len()).then(|| std::mem::take(&mut self.turn));
        self.turn = LastTurn::default();
        (from..end).for_each(|at| self.check(at));
        if let Some(turn) = known {
            self.turn = turn;
            for place in self.turn.unanswered.values_mut().flatten() {
                *place = *place + self.entries.len() - length;
            }
        }
    }

    /// How many entries behind this place an edit in front of it may have other findings: all up to
    /// the first that begins a response behind one that is not edited either.
    fn until_next_response(&self, place: usize) -> usize {
        let behind = &self.entries[place..];
        let roles = behind.windows(2).map(|pair| [&pair[0], &pair[1]].map(CheckedEntry::role));
        let response = roles.enumerate().find(|(_, roles)| *roles == [Role::User, Role::Assistant]);
        response.map_or(behind.len(), |(at, _)| at + 1)
    }

    /// All rules that the context, sent as it is now, breaks.
    pub fn findings(&self) -> BTreeSet<Finding> {
        let mut findings: BTreeSet<Finding> = self.standing.keys().cloned().collect();
        findings.extend(overlap(self.summaries.iter().flat_map(|(range, &count)| {
            // Twice says that it is repeated; how often does not matter.
            std::iter::repeat_n(*range, count.min(2))
        })));
        findings.extend(check_ends(self.rules, self.entries.iter().map(CheckedEntry::role)));
        findings
    }

    fn enters(&mut self, entry: &Entry) {
        for (_, tool_use) in entry.message.tool_uses() {
            let count = self.uses.entry(tool_use.id.clone()).or_default();
            *count += 1;
            if *count == 2 {
                self.standing.insert(duplicate_use(&tool_use.id), 1);
            }
        }
        for range in summary_ranges(entry) {
            *self.summaries.entry(range).or_default() += 1;
        }
    }

    fn leaves(&mut self, entry: &Entry) {
        for (_, tool_use) in entry.message.tool_uses() {
            if drop_one(&mut self.uses, &tool_use.id) == 1 {
                self.standing.remove(&duplicate_use(&tool_use.id));
            }
        }
        for range in summary_ranges(entry) {
            drop_one(&mut self.summaries, &range);
        }
    }

    /// Where the turn begins that the entry before `end` is in.
    fn turn_start(&self, end: usize) -> usize {
        let last = self.entries[..end].last().map(CheckedEntry::role);
        let turn = self.entries[..end].iter().rev();
        end - turn.take_while(|entry| Some(entry.role()) == last).count()
    }

    /// Checks an entry behind those that are checked.
    fn check(&mut self, at: usize) {
        visit(1);
        let entry = self.entries[at].entry.clone();
        let role = entry.role();
        let combines = self.rules.combines_messages();
        let begins = at == 0 || self.entries[at - 1].role() != role;
        if begins {
            self.begin_turn(at, role);
        }
        if role == Role::Assistant && (begins || !combines) {
            // Where messages are not combined, only the last one of a turn is answered.
            self.turn.unanswered.clear();
        }
        if role == Role::Assistant && !begins {
            self.drop_found(at - 1, |found| found.rule == Rule::ThinkingLast);
        }
        let content = entry.message.content();
        if content.is_empty() || !combines && content.iter().all(ContentBlock::is_thinking) {
            self.find(at, Rule::EmptyContent, Subject::of(&entry.origin));
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
                    if !tool_use.input.as_str().trim_start().starts_with('{') {
                        self.find(at, Rule::InputNotObject, Subject::ToolUse(id.clone()));
                    }
                    let subject = Subject::ToolUse(id.clone());
                    if self.find(at, Rule::UnansweredUse, subject) && role == Role::Assistant {
                        let places = self.turn.unanswered.entry(id.clone());
                        places.or_default().push(at);
                    }
                }
                ContentBlock::Text(text) => {
                    if text.trim_start().is_empty() {
                        self.find(at, Rule::EmptyText, Subject::of(&entry.origin));
                    }
                }
                ContentBlock::Thinking(_) => {
                    let edited = matches!(entry.origin, Origin::Edited { .. });
                    if edited && !entry.origin.is_verbatim(index) {
                        self.find(at, Rule::ThinkingEdited, Subject::of(&entry.origin));
                    }
                }
                ContentBlock::Image(_) | ContentBlock::Opaque(_) => {}
            }
            self.turn.results_may_follow &= !combines;
        }
        if role == Role::Assistant && content.last().is_some_and(ContentBlock::is_thinking) {
            self.find(at, Rule::ThinkingLast, Subject::of(&entry.origin));
        }
        // A message's own results are sent before the rest of it.
        self.turn.results_may_follow &= content.iter().all(ContentBlock::is_result);
    }

    /// Only the user answers, and only what the assistant asked: a misplaced block never pairs.
    fn begin_turn(&mut self, at: usize, role: Role) {
        self.turn.answered.clear();
        self.turn.results_may_follow = true;
        let before = match (role, self.rules.combines_messages()) {
            (Role::Assistant, _) => at..at,
            (Role::User, true) => self.turn_start(at)..at,
            (Role::User, false) => at.saturating_sub(1)..at,
        };
        let asked =
            self.entries[before].iter().flat_map(|checked| checked.entry.message.tool_uses());
        self.turn.asked =
            asked.zip(0..).map(|((_, tool_use), place)| (tool_use.id.clone(), place)).collect();
        self.turn.reached = 0;
    }

    fn check_result(&mut self, at: usize, role: Role, id: &Arc<str>) {
        let subject = Subject::ToolUse(id.clone());
        match self.turn.asked.get(id).copied() {
            None => {
                self.find(at, Rule::OrphanResult, subject.clone());
            }
            Some(place) => {
                if !self.turn.results_may_follow {
                    self.find(at, Rule::ResultsNotFirst, subject.clone());
                }
                if place < self.turn.reached {
                    self.find(at, Rule::ResultsReordered, subject.clone());
                }
                self.turn.reached = self.turn.reached.max(place);
            }
        }
        if !self.turn.answered.insert(id.clone()) {
            self.find(at, Rule::DuplicateResult, subject.clone());
        }
        if role == Role::User {
            let finding = Rule::UnansweredUse.broken_by(subject);
            for at in self.turn.unanswered.remove(id).into_iter().flatten() {
                self.drop_found(at, |found| *found == finding);
            }
        }
    }

    /// Drops findings about an entry that what follows it has settled.
    fn drop_found(&mut self, at: usize, is_settled: impl Fn(&Finding) -> bool) {
        self.entries[at].found.retain(|found| {
            let settled = is_settled(found);
            if settled {
                drop_one(&mut self.standing, found);
            }
            !settled
        });
    }

    /// Adds a finding about an entry, unless the provider does not mind or it is there already.
    fn find(&mut self, at: usize, rule: Rule, subject: Subject) -> bool {
        let finding = Finding { rule, subject };
        let found = &mut self.entries[at].found;
        let new = rule.level(self.rules).is_some() && !found.contains(&finding);
        if new {
            *self.standing.entry(finding.clone()).or_default() += 1;
            found.push(finding);
        }
        new
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
