//! The autopsy of a session: what its own compactions threw away, what of it was needed later, and what that cost.
//!
//! It is a view of one cell, the session under the strategy `recorded`, and of one more observer. Nothing is judged:
//!
//! - *Thrown away* is a name, path or value that the user or a tool gave, a command, an item of the task list, or a tool
//!   result, that stood in the prompt before a compaction and stands nowhere in it afterwards. It still stands there if
//!   another spelling of the same file does, or a longer name that holds it: a folder where a path below it does.
//! - *Needed later*: the arguments of a later tool call hold it; of a call that shows or changes a file, its path. The end
//!   of several paths needs one of them.
//! - *Fetched again*: a tool result had brought it back by then. *Told again*: the user had typed it again. *Done
//!   without*: neither, and the call holds it all the same. After a compaction that cannot be read it is *not known*
//!   whether the prompt still held it; the next compaction is counted from what came since.
//! - *Read again*: a file was shown, of which at least half of the lines had been shown or written before and had then been
//!   taken away by a compaction; or a call was made again with the same result. The price is that of new input.
//! - *Estimated* is the cost of a request for a summary that the recording does not bill: of the whole prompt that the
//!   product compacted and of the summary that it left, as a run bills the strategy `recorded`.
//! - *Broken* is a rule that forbids one quoted command or path and nothing else, was changed or lost, and whose command a
//!   later call runs, or whose file it changes, before anybody speaks of it again.

use std::collections::BTreeMap;
use std::sync::Arc;

use derive_more::AddAssign;
use serde::Serialize;

use crate::patterns::PatternsError;
use crate::probe::{Fact, Probe, derive::said};
use crate::record::{CellRecord, Fate, ProbeRecord};
use crate::replay::observe::Observer;
use crate::replay::observe::survival::{SurvivalObserver, SurvivalPlan};
use crate::replay::{CellName, Models, NoClock, Replayed, replay_watched};
use crate::runner::PlannedSession;
use crate::session::{CompactedTo, RecordedCompaction, Role, Session, Tag};
use crate::units::{Tokens, Usage};
use crate::window::AUTO_COMPACT_BUFFER;
use anchors::NeededAnchors;
use bill::SessionBill;
use needs::Needs;

mod anchors;
mod bill;
mod broken;
mod needs;
mod sum;

pub use sum::{Totals, with_sub_agents};

/// The findings about one session. Money is in dollars, and absent where a price is not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Autopsy {
    /// The file that holds it.
    pub file: String,
    /// Its id.
    pub session: String,
    /// The id of the main session, of a sub-agent's conversation.
    pub main: Option<String>,
    /// The format of its recording: the product.
    pub product: String,
    /// The product's version, where it is recorded.
    pub version: Option<String>,
    /// The agent's model, where it is recorded.
    pub model: Option<String>,
    /// API calls.
    pub calls: usize,
    /// Calls with a recorded bill; those of the others are simulated.
    pub billed_calls: usize,
    /// Tokens of all calls by class, with the requests within them and those for summaries.
    pub usage: Usage,
    /// The cost of those whose price is known.
    pub usd: Option<f64>,
    /// The part of it that is estimated: requests for summaries without a bill.
    pub estimated_usd: f64,
    /// The part of it that reads of the prompt cache cost, and that writes cost.
    pub cache_usd: [Option<f64>; 2],
    /// Calls whose price is not known.
    pub unpriced_calls: usize,
    /// Calls whose bill has fewer tokens of output than their answer, which are counted here.
    pub partial_outputs: usize,
    /// The size of its model's window.
    pub window: Tokens,
    /// The size at which the product compacts by itself, where that is known.
    pub line: Option<Tokens>,
    /// The call with the largest prompt, and its size.
    pub fullest: (usize, Tokens),
    /// The compactions that a call followed, in order.
    pub compactions: Vec<CompactionLoss>,
    /// Whether the recording begins with a summary: what came before is not known.
    pub begins_compacted: bool,
    /// Whether the recording begins with an answer or a result of a request that it does not hold.
    pub begins_midway: bool,
    /// Mends made while the recording was read, with counts, such as a last line that was cut.
    pub mended: BTreeMap<String, u64>,
    /// Compactions behind the last call: nothing shows what they lost.
    pub compactions_at_end: usize,
    /// The user's own instructions and the decisions that a model found, and what became of them.
    pub rules: Vec<RuleFate>,
    /// Breaks of the prompt cache, by cause.
    pub breaks: BTreeMap<&'static str, Breaks>,
    /// Results that were fetched again while the first still stood in the prompt: no compaction is to blame.
    pub repeated_anyway: usize,
    /// Whether the recording leaves out the system prompt, in which a product may put files of rules.
    pub hides_system_prompt: bool,
    /// The conversations of its sub-agents.
    pub sub_agents: Vec<Self>,
}

/// One compaction.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CompactionLoss {
    /// The first call after it.
    pub call: usize,
    /// How many the product made with no call between them: what the earlier of these left is not seen.
    pub in_a_row: usize,
    /// Its cause, in the product's words: `auto`, `manual`; the last one's.
    pub trigger: Option<Arc<str>>,
    /// The size of the last prompt with its answer, or as the product counted it; of several in a row before the first.
    pub before: Tokens,
    /// The size of the first prompt after it.
    pub after: Tokens,
    /// Whether the recording does not say what it left.
    pub is_opaque: bool,
    /// The request for its summary, of several in a row all of them; nothing where none was made, or the recording neither
    /// bills it nor shows the summary.
    pub request: Usage,
    /// Whether the recording bills that request; else it is estimated.
    pub is_billed: bool,
    /// Tokens of that request, and those of the first prompt after it that were not read from the cache.
    pub tokens: Tokens,
    /// The cost of both.
    pub usd: Option<f64>,
    /// By kind, what became of all that stood in the prompt before.
    pub thrown: BTreeMap<ThingKind, Thrown>,
    /// Things that were thrown away and needed later, in the order of the calls.
    pub needed: Vec<Need>,
}

/// A kind of thing that a prompt holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ThingKind {
    /// The content of a file, as a tool showed it.
    File,
    /// The result of another call.
    Result,
    /// The path of a file or folder.
    Path,
    /// A number, id or hash.
    Value,
    /// An identifier.
    Name,
    /// A command line that the agent ran.
    Command,
    /// An instruction of the user's.
    Rule,
    /// A decision and its reason.
    Decision,
    /// An item of the task list.
    PlanItem,
    /// Something that was started and still ran.
    Task,
}

/// The fate of the things of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, AddAssign, Serialize)]
pub struct Thrown {
    /// Those in the prompt before.
    pub before: usize,
    /// Of these, those that stayed as they were.
    pub stayed: usize,
    /// Of the others, those that a later call needed; of rules, those that one broke.
    pub needed: usize,
    /// Of these, those that a tool result had brought back.
    pub fetched: usize,
    /// Those that the user had typed again.
    pub told: usize,
    /// Those that nothing had brought back.
    pub without: usize,
    /// Those of which it is not known whether the prompt held them; of rules, needed or not.
    pub unknown: usize,
}

/// Something that was thrown away and needed later.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Need {
    /// Its kind.
    pub kind: ThingKind,
    /// The thing, as the session spells it.
    pub what: String,
    /// The call that needed it.
    pub call: usize,
    /// How that call came by it.
    pub how: How,
    /// The call whose result brought it back, or that followed the user's message.
    pub back_at: Option<usize>,
    /// The size of a file or result that was fetched again.
    pub tokens: Tokens,
    /// Its cost as new input.
    pub usd: Option<f64>,
}

/// How a call came by what its prompt had lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// A tool result had brought it back.
    Fetched,
    /// The user had typed it again.
    Told,
    /// Nothing had.
    Without,
    /// The compaction cannot be read, and nothing has brought it back since.
    Unknown,
}

/// The fate of one of the user's instructions, or of a decision.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleFate {
    /// Which of both it is.
    pub kind: ThingKind,
    /// The sentence, as the session has it; of a decision, the choice and its reason.
    pub rule: String,
    /// The call before which it was set.
    pub set_at: Option<usize>,
    /// Its state after each compaction, by the compaction's call.
    pub fates: Vec<(usize, Fate)>,
    /// The compaction that changed or lost it first, by its call.
    pub gone_at: Option<usize>,
    /// The words of the prompt in its place, where it was changed.
    pub changed_to: Option<String>,
    /// The first call that broke it once it was gone.
    pub broken_at: Option<usize>,
}

/// Breaks of the cache for one cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Breaks {
    /// How many.
    pub calls: usize,
    /// Tokens that the call before had sent and that were billed again.
    pub tokens: Tokens,
    /// Their cost above that of a read.
    pub usd: f64,
    /// The tokens of the largest of them, and its call.
    pub largest: (Tokens, usize),
}

impl CompactionLoss {
    /// Counts a thing that stood in the prompt before, among its kind.
    fn count(&mut self, kind: ThingKind, stays: bool) -> &mut Thrown {
        let row = self.thrown.entry(kind).or_default();
        row.before += 1;
        row.stayed += usize::from(stays);
        row
    }

    /// Notes a need of what it threw away; a file that is shown in parts counts once.
    fn need(&mut self, need: Need) {
        if !self.needed.iter().any(|known| (known.kind, &known.what) == (need.kind, &need.what)) {
            let row = self.thrown.entry(need.kind).or_default();
            row.needed += 1;
            row.fetched += usize::from(need.how == How::Fetched);
            row.told += usize::from(need.how == How::Told);
            row.without += usize::from(need.how == How::Without);
            row.unknown += usize::from(need.how == How::Unknown);
        }
        self.needed.push(need);
    }
}

impl Autopsy {
    /// Looks at a session, and at what became of these decisions.
    pub fn of(planned: &PlannedSession<'_>, decisions: &[Probe]) -> Result<Self, PatternsError> {
        let (prepared, entry) = (&planned.prepared, planned.entry);
        let session = &**prepared.session();
        let events = session.compactions();
        let (followed, opaque) = compacted(session);
        let own_events = own_compactions(session);
        let last = session.calls().last();
        let own = entry.native_window.own();
        let first = session.message(0);
        let asked = first.details.usage.is_some() || first.tool_uses().next().is_some();
        let mut found = Self {
            file: planned.file.clone(),
            session: entry.id.clone(),
            main: entry.cluster.clone(),
            product: entry.format.clone(),
            version: session.source().version.clone(),
            model: session.model().map(str::to_owned),
            calls: session.calls().len(),
            window: own.tokens,
            begins_compacted: followed.first().or(opaque.first()) == Some(&0)
                || own_events.clone().count() < events.len(),
            // With a result that answers nothing, or with an answer to a prompt that is not there.
            begins_midway: first.has_tag(Tag::Orphan) || first.role() == Role::Assistant && asked,
            mended: session.source().warnings.clone(),
            compactions_at_end: own_events.filter(|event| last < Some(&event.at)).count(),
            hides_system_prompt: session.system().is_none(),
            ..Self::default()
        };
        let replayed = if opaque.is_empty() { Replayed::recorded(session) } else { Replayed::Full };
        let facts = [said::instructions(session), decisions.to_vec()].concat();
        let plan = SurvivalPlan::at_calls(session, facts.clone().into(), &followed)?;
        let anchors = NeededAnchors::of(session)?;
        let observers: Vec<Box<dyn Observer + '_>> = vec![
            Box::new(SurvivalObserver::new(Arc::new(plan))),
            Box::new(Needs::new(prepared, &anchors, opaque, &mut found)),
        ];
        let (name, models) = (CellName::first("recorded"), Models::offline(prepared.counts()));
        let record = replay_watched(prepared, name, replayed, &models, &NoClock, observers).record;
        SessionBill::enter(planned, &record, &mut found);
        for fact in facts {
            found.follow_rule(fact, session, &record);
        }
        let known = prepared.product_windows.first().map(|(_, window)| *window);
        let line = known.unwrap_or(own.effective()) - AUTO_COMPACT_BUFFER;
        // A product that went on beyond it does not have this line.
        let holds = events.iter().any(RecordedCompaction::is_automatic) || found.fullest.1 <= line;
        found.line = Some(line).filter(|_| holds && entry.format == "claude-code");
        Ok(found)
    }

    /// Adds the fate of a rule or of a decision; it counts among what each compaction met, up to the one that changed or lost it.
    fn follow_rule(&mut self, fact: Probe, session: &Session, record: &CellRecord) {
        let (kind, rule) = match fact.fact {
            Fact::Constraint { statement, .. } => (ThingKind::Rule, statement),
            Fact::Decision { choice, reason, .. } => {
                (ThingKind::Decision, format!("{choice} ({reason})"))
            }
            _ => return,
        };
        let items: Vec<_> = record.probes.iter().filter(|item| item.probe == fact.id).collect();
        let met = items.split_inclusive(|item| is_gone(item)).next().unwrap_or_default();
        let gone = met.last().filter(|item| is_gone(item));
        // Where a later prompt holds it again, the user had repeated it.
        let back = items[met.len()..].iter().find(|item| !is_gone(item));
        let until = back.map_or(session.calls().len(), |item| item.call);
        let gone_at = gone.map(|item| item.call);
        let broken_at = gone_at.and_then(|at| broken::first_call(&rule, session, at..until));
        for item in met {
            for compaction in self.compactions.iter_mut().filter(|one| one.call == item.call) {
                let fate = item.survival.fate;
                let row = compaction.count(kind, fate == Fate::Kept);
                row.unknown += usize::from(matches!(fate, Fate::Unsure | Fate::Partial));
                row.needed += usize::from(gone_at == Some(item.call) && broken_at.is_some());
            }
        }
        self.rules.push(RuleFate {
            kind,
            set_at: fact.evidence.first().map(|message| session.call_after(*message)),
            fates: items.iter().map(|item| (item.call, item.survival.fate)).collect(),
            gone_at,
            changed_to: gone.and_then(|item| item.survival.changed_to().map(str::to_owned)),
            broken_at,
            rule,
        });
    }
}

/// The calls that follow compactions, in order: as the first, if all of these can be read. Else as the second, for no context
/// behind an unreadable one is known.
fn compacted(session: &Session) -> (Vec<usize>, Vec<usize>) {
    let last = session.calls().last();
    let mut events = own_compactions(session).filter(|event| last >= Some(&event.at));
    let mut calls: Vec<_> = events.clone().map(|event| session.call_after(event.at)).collect();
    calls.dedup();
    let readable = events.all(|event| matches!(event.after, CompactedTo::Replaced(_)));
    if readable { (calls, Vec::new()) } else { (Vec::new(), calls) }
}

/// The compactions but those before this session was resumed, which count in the session before.
fn own_compactions(session: &Session) -> impl Iterator<Item = &RecordedCompaction> + Clone {
    let loaded = 1..=session.loaded();
    session.compactions().iter().filter(move |event| !loaded.contains(&event.at))
}

/// Whether an autopsy can say what the compactions of a session made of its decisions.
pub fn follows_decisions(session: &Session) -> bool {
    !compacted(session).0.is_empty()
}

fn is_gone(item: &ProbeRecord) -> bool {
    matches!(item.survival.fate, Fate::Changed | Fate::Lost | Fate::Reachable)
}
