//! The autopsy of a session: what its own compactions threw away, what of it was needed later, and what that cost.
//!
//! It is a view of one cell, the session under the strategy `recorded`, and of one more observer. Nothing is judged:
//!
//! - *Thrown away* is a name, path or value that the user or a tool gave, a command, an item of the task list, or a tool
//!   result, that stood in the prompt before a compaction and stands nowhere in it afterwards. A path still stands there
//!   if another spelling of the same file does, or a path below it.
//! - *Needed later*: the arguments of a later tool call hold it; of a call that shows or changes a file, its path.
//! - *Fetched again*: a tool result had brought it back by then. *Told again*: the user had typed it again. *Done
//!   without*: neither, and the call holds it all the same. After a compaction that cannot be read it is *not known*
//!   whether the prompt still held it.
//! - *Read again*: a file was shown, of which at least half of the lines had been shown or written before and had then been
//!   taken away by a compaction; or a call was made again with the same result. The price is that of new input.
//! - *Broken* is a rule that forbids one quoted command or path and nothing else, was changed or lost, and whose command a
//!   later call runs, or whose file it changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use derive_more::AddAssign;
use serde::Serialize;

use crate::patterns::PatternsError;
use crate::probe::Fact;
use crate::probe::derive::said;
use crate::record::words::Purpose;
use crate::record::{CellRecord, Fate};
use crate::replay::observe::Observer;
use crate::replay::observe::survival::{SurvivalObserver, SurvivalPlan};
use crate::replay::{CellName, Models, NoClock, Replayed, replay_watched};
use crate::runner::PlannedSession;
use crate::session::{CompactedTo, Role, Session, Tag};
use crate::strategy::StrategySpec;
use crate::units::{Tokens, Usage};
use crate::window::{AUTO_COMPACT_BUFFER, Window};
use anchors::Anchors;
use bill::Bill;
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
    /// Tokens of all calls by class.
    pub usage: Usage,
    /// The cost of those whose price is known.
    pub usd: Option<f64>,
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
    pub compactions: Vec<Compaction>,
    /// Whether the recording begins with a summary: what came before is not known.
    pub begins_compacted: bool,
    /// Whether the recording begins with an answer or a result of a request that it does not hold.
    pub begins_midway: bool,
    /// Mends made while the recording was read, with counts, such as a last line that was cut.
    pub mended: BTreeMap<String, u64>,
    /// Compactions behind the last call: nothing shows what they lost.
    pub compactions_at_end: usize,
    /// The user's own instructions, and what became of them.
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
pub struct Compaction {
    /// The first call after it.
    pub call: usize,
    /// Its cause, in the product's words: `auto`, `manual`.
    pub trigger: Option<String>,
    /// The size of the last prompt with its answer, or as the product counted it.
    pub before: Tokens,
    /// The size of the first prompt after it.
    pub after: Tokens,
    /// Whether the recording does not say what it left.
    pub is_opaque: bool,
    /// Tokens of the request for its summary, which the recording does not bill, and those of the first prompt after it
    /// that were not read from the cache.
    pub tokens: Tokens,
    /// The cost of both.
    pub usd: Option<f64>,
    /// By kind, what became of all that stood in the prompt before.
    pub thrown: BTreeMap<Kind, Thrown>,
    /// Things that were thrown away and needed later, in the order of the calls.
    pub needed: Vec<Need>,
}

/// A kind of thing that a prompt holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
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
    pub kind: Kind,
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

/// The fate of one of the user's instructions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleFate {
    /// The sentence, as the session has it.
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

impl Autopsy {
    /// Looks at a session.
    pub fn of(planned: &PlannedSession<'_>) -> Result<Self, PatternsError> {
        let (prepared, entry) = (&planned.prepared, planned.entry);
        let session = &**prepared.session();
        let calls = session.calls().len();
        let events = session.compactions();
        let mut compacted: Vec<usize> = events
            .iter()
            .map(|event| call_after(session, event.at))
            .collect();
        let begins_compacted = compacted.contains(&0);
        let behind = compacted.iter().filter(|call| **call >= calls).count();
        compacted.dedup();
        compacted.retain(|call| *call < calls);
        // Behind a compaction that cannot be read no context is known.
        let is_opaque = events.iter().any(|event| {
            !matches!(event.after, CompactedTo::Replaced(_))
                && call_after(session, event.at) < calls
        });
        let opaque = if is_opaque {
            std::mem::take(&mut compacted)
        } else {
            Vec::new()
        };
        let strategy = StrategySpec::recorded().and_then(|spec| spec.build());
        let replayed = match strategy {
            Ok(strategy) if !compacted.is_empty() => {
                Replayed::Strategy(Box::new(strategy), Window::new(Tokens(u64::MAX)))
            }
            Ok(_) | Err(_) => Replayed::Full,
        };
        let rules = said::instructions(session);
        let plan = SurvivalPlan::at_calls(session, rules.clone().into(), &compacted)?;
        let anchors = Anchors::of(session)?;
        let mut found = Self::default();
        let needs = Needs::new(planned, &anchors, opaque, &mut found);
        let observers: Vec<Box<dyn Observer + '_>> = vec![
            Box::new(SurvivalObserver::new(Arc::new(plan))),
            Box::new(needs),
        ];
        let name = CellName {
            strategy: "recorded".to_owned(),
            repeat: 0,
        };
        let models = Models::offline(prepared.counts());
        let record = replay_watched(prepared, name, replayed, &models, &NoClock, observers).record;
        let bill = Bill::of(planned, &record);
        for compaction in &mut found.compactions {
            complete(compaction, session, &record, &bill);
        }
        for rule in rules {
            if let Fact::Constraint { statement, .. } = rule.fact {
                let set_at = rule
                    .evidence
                    .first()
                    .map(|message| call_after(session, *message));
                let fate = fate_of(&rule.id, statement, set_at, session, &record);
                count_rule(&fate, &mut found.compactions);
                found.rules.push(fate);
            }
        }
        let window = entry.native_window;
        let own = Window {
            max_output: window.max_output,
            ..Window::new(window.tokens)
        };
        let known = prepared.product_windows.first().map(|(_, window)| *window);
        let line = known.unwrap_or(own.effective()) - AUTO_COMPACT_BUFFER;
        let is_automatic = events
            .iter()
            .any(|event| event.trigger.as_deref() == Some("auto"));
        // A product that went on beyond it does not have this line.
        let has_line = entry.format == "claude-code" && (is_automatic || bill.fullest().1 <= line);
        let (usd, unpriced_calls) = bill.usd();
        Ok(Self {
            file: planned.file.clone(),
            session: entry.id.clone(),
            main: entry.cluster.clone(),
            product: entry.format.clone(),
            version: session.source().version.clone(),
            model: session.model().map(str::to_owned),
            calls,
            billed_calls: bill.billed,
            usage: bill.total(),
            usd,
            unpriced_calls,
            partial_outputs: bill.partial,
            window: window.tokens,
            line: has_line.then_some(line),
            fullest: bill.fullest(),
            begins_compacted,
            begins_midway: begins_midway(session),
            mended: session.source().warnings.clone(),
            compactions_at_end: behind,
            breaks: bill.breaks(),
            hides_system_prompt: session.system().is_none(),
            ..found
        })
    }
}

/// Whether a session begins with a result that answers nothing, or with an answer to a prompt that is not there.
fn begins_midway(session: &Session) -> bool {
    let first = session.message(0);
    let is_answer = first.role() == Role::Assistant;
    let was_asked = first.details.usage.is_some() || first.tool_uses().next().is_some();
    first.has_tag(Tag::Orphan) || is_answer && was_asked
}

/// The first call after what happened before this message.
fn call_after(session: &Session, message: usize) -> usize {
    session.calls().partition_point(|answer| *answer < message)
}

/// Adds what the recording and its bill say of a compaction.
fn complete(of: &mut Compaction, session: &Session, record: &CellRecord, bill: &Bill<'_>) {
    let mut events = session.compactions().iter().rev();
    let event = events.find(|event| call_after(session, event.at) == of.call);
    of.trigger = event
        .and_then(|event| event.trigger.as_deref())
        .map(str::to_owned);
    let last = of.call.checked_sub(1).map(|last| bill.call(last).total());
    of.before = event
        .and_then(|event| event.pre_tokens)
        .or(last)
        .unwrap_or_default();
    let first = bill.call(of.call);
    of.after = first.prompt();
    let mut asked = record.model_calls.iter().enumerate();
    let asked =
        asked.find(|(_, asked)| asked.purpose == Purpose::Compaction && asked.call == of.call);
    let cache = record.prompt_cache.first().cloned().unwrap_or_default();
    let request = asked.map_or_else(Usage::default, |(number, asked)| {
        cache.of_strategy(number, &asked.usage)
    });
    let anew = first.prompt() - first.cache_read;
    of.tokens = request.total() + anew;
    of.usd = bill
        .price(&request)
        .zip(bill.above_read(anew))
        .map(|(one, more)| one + more);
    for need in &mut of.needed {
        need.usd = bill
            .price(&bill.as_new(need.tokens))
            .filter(|_| need.tokens > Tokens::ZERO);
    }
}

fn fate_of(
    id: &str,
    rule: String,
    set_at: Option<usize>,
    session: &Session,
    record: &CellRecord,
) -> RuleFate {
    let own = record.probes.iter().filter(|item| item.probe == id);
    let gone = own.clone().find(|item| is_gone(item.survival.fate));
    let gone_at = gone.map(|item| item.call);
    // Where a later prompt holds it again, the user had repeated it.
    let mut later = own.clone().filter(|item| Some(item.call) > gone_at);
    let back = later.find(|item| !is_gone(item.survival.fate));
    let until = back.map_or(session.calls().len(), |item| item.call);
    let broken_at = gone_at.and_then(|at| broken::first_call(&rule, session, at..until));
    RuleFate {
        rule,
        set_at,
        fates: own.map(|item| (item.call, item.survival.fate)).collect(),
        gone_at,
        changed_to: gone
            .and_then(|item| item.survival.changed_to())
            .map(str::to_owned),
        broken_at,
    }
}

fn is_gone(fate: Fate) -> bool {
    matches!(fate, Fate::Changed | Fate::Lost | Fate::Reachable)
}

/// Counts a rule among what each compaction met, up to the one that changed or lost it.
fn count_rule(rule: &RuleFate, compactions: &mut [Compaction]) {
    for compaction in compactions {
        let is_met = rule.gone_at.is_none_or(|at| compaction.call <= at);
        let mut fates = rule.fates.iter().filter(|_| is_met);
        let Some((_, fate)) = fates.find(|(call, _)| *call == compaction.call) else {
            continue;
        };
        let broken = usize::from(rule.gone_at == Some(compaction.call) && rule.broken_at.is_some());
        *compaction.thrown.entry(Kind::Rule).or_default() += Thrown {
            before: 1,
            stayed: usize::from(*fate == Fate::Kept),
            unknown: usize::from(matches!(fate, Fate::Unsure | Fate::Partial)),
            needed: broken,
            ..Thrown::default()
        };
    }
}
