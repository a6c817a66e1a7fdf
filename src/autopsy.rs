//! The autopsy of a session: what its own compactions threw away, what of it was needed later, and what that cost.
//!
//! It is a view of one cell, the session under the strategy `recorded`, and of one more observer. Nothing is judged:
//!
//! - *Thrown away* is a name, path or value that the user or a tool gave, that stood in the prompt before a compaction
//!   and stands nowhere in it afterwards. A path still stands there if another spelling of the same file does, or a path
//!   below it.
//! - *Needed later*: the arguments of a later tool call hold it; of a call that changes a file, the file's name.
//! - *Fetched again*: a tool result had brought it back by then. *Told again*: the user had typed it again. *Done
//!   without*: neither, and the call holds it all the same. After a compaction that cannot be read it is *not known*
//!   whether the prompt still held it.
//! - *Read again*: a file was shown, of which at least half of the lines had been shown or written before and had then been
//!   taken away by a compaction; or a call was made again with the same result. The price is that of new input.
//! - *Broken* is a rule that forbids one quoted command or path and nothing else, was lost, and whose command a later
//!   call runs, or whose file it changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use crate::patterns::PatternsError;
use crate::probe::derive;
use crate::record::words::Purpose;
use crate::record::{CellRecord, Fate};
use crate::replay::observe::Observer;
use crate::replay::observe::survival::{SurvivalObserver, SurvivalPlan};
use crate::replay::{CellName, Models, NoClock, Replayed, replay_watched};
use crate::runner::PlannedSession;
use crate::session::{CompactedTo, RecordedCompaction, Session, ToolUse};
use crate::strategy::StrategySpec;
use crate::units::{Tokens, Usage, Usd};
use crate::window::{AUTO_COMPACT_BUFFER, Window};
use anchors::Anchors;
use bill::Bill;
use needs::Needs;

mod anchors;
mod bill;
mod broken;
mod needs;
mod page;
mod sum;

pub use bill::{BreakCause, Breaks};
pub use page::{report, screen};
pub use sum::{Totals, with_sub_agents};

/// The most needed names that are kept of one compaction.
const MOST_NEEDED: usize = 100;

/// What became of one session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Autopsy {
    /// The file that holds it.
    pub file: String,
    /// Its id.
    pub session: String,
    /// The id of the main session, of a sub-agent's conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    /// Their cost; `None` where a price is not known.
    pub usd: Option<Usd>,
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
    /// Compactions behind the last call: nothing shows what they lost.
    pub compactions_at_end: usize,
    /// The user's own instructions, and what became of them.
    pub rules: Vec<RuleFate>,
    /// What broke the prompt cache.
    pub breaks: BTreeMap<BreakCause, Breaks>,
    /// Files that were shown again, and calls made again with the same result, while the first result still stood in the
    /// prompt: no compaction is to blame.
    pub repeated_anyway: usize,
    /// Whether the recording leaves out the system prompt, in which a product may put files of rules.
    pub hides_system_prompt: bool,
    /// What the importer mended, with counts.
    pub mended: BTreeMap<String, u64>,
    /// The conversations of its sub-agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
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
    /// The request for its summary, where a model wrote one: the recording does not bill it.
    pub request: Option<Usage>,
    /// Tokens of the first prompt after it that were not read from the cache.
    pub rewritten: Tokens,
    /// The cost of both; `None` where a price is not known.
    pub usd: Option<Usd>,
    /// By kind, what became of all that stood in the prompt before.
    pub thrown: BTreeMap<Kind, Thrown>,
    /// What was thrown away and needed later, in the order of the calls.
    pub needed: Vec<Need>,
    /// Files that were read again, and calls made again with the same result.
    pub again: Vec<Again>,
}

/// A kind of thing that a prompt holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A file or folder.
    Path,
    /// A number, id or hash.
    Value,
    /// An identifier.
    Name,
    /// A command line that the agent ran.
    Command,
    /// An instruction of the user's.
    Rule,
    /// An open item of the task list.
    PlanItem,
    /// Something that was started and still ran.
    Task,
}

impl Kind {
    /// Its name for people: one, and more.
    pub fn words(self) -> [&'static str; 2] {
        match self {
            Self::Path => ["path", "paths"],
            Self::Value => ["value", "values"],
            Self::Name => ["name", "names"],
            Self::Command => ["command", "commands"],
            Self::Rule => ["rule", "rules"],
            Self::PlanItem => ["plan item", "plan items"],
            Self::Task => ["running task", "running tasks"],
        }
    }
}

/// What became of the things of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
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
    /// Those of which it is not known whether the prompt held them, needed or not.
    pub unknown: usize,
    /// Rules that a later call broke.
    pub broken: usize,
}

/// Something that was thrown away and needed later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Need {
    /// Its kind.
    pub kind: Kind,
    /// The thing, as the session spells it.
    pub what: String,
    /// The call that needed it.
    pub call: usize,
    /// How it came by it.
    pub outcome: Outcome,
}

/// How a call came by what its prompt had lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "how", content = "call")]
pub enum Outcome {
    /// A tool result had brought it back, that of this call.
    Fetched(usize),
    /// The user had typed it again, before this call.
    Told(usize),
    /// Nothing had.
    Without,
    /// The compaction cannot be read, and nothing has brought it back since.
    Unknown,
}

/// A tool result that was fetched again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Again {
    /// The file, or the call.
    pub what: String,
    /// Whether it is a file that was shown.
    pub is_file: bool,
    /// The call that fetched it again.
    pub call: usize,
    /// The size of what it brought.
    pub tokens: Tokens,
    /// Its cost as new input; `None` where a price is not known.
    pub usd: Option<Usd>,
}

/// What became of one of the user's instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleFate {
    /// The sentence, as the session has it.
    pub rule: String,
    /// The call before which it was set.
    pub set_at: Option<usize>,
    /// Its state after each compaction, by the compaction's call.
    pub fates: BTreeMap<usize, Fate>,
    /// What the prompt says in its place, where it was changed.
    pub changed_to: Option<String>,
    /// The first call that broke it once it was gone.
    pub broken_at: Option<usize>,
}

impl RuleFate {
    /// The compaction that changed or lost it first, by its call.
    pub fn gone_at(&self) -> Option<(usize, Fate)> {
        let mut gone = self.fates.iter().filter(|(_, fate)| is_gone(**fate));
        gone.next().map(|(call, fate)| (*call, *fate))
    }
}

fn is_gone(fate: Fate) -> bool {
    matches!(fate, Fate::Changed | Fate::Lost | Fate::Reachable)
}

impl Compaction {
    /// How many files were read again, and how many calls made again with the same result.
    pub fn again(&self) -> [usize; 2] {
        let files = self.again.iter().filter(|again| again.is_file);
        let files: BTreeSet<&str> = files.map(|again| &*again.what).collect();
        let calls = self.again.iter().filter(|again| !again.is_file);
        [files.len(), calls.count()]
    }
}

impl Autopsy {
    /// Looks at a session.
    pub fn of(planned: &PlannedSession<'_>) -> Result<Self, PatternsError> {
        let session = &**planned.prepared.session();
        let calls = session.calls();
        let is_opaque = |event: &&RecordedCompaction| {
            !matches!(event.after, CompactedTo::Replaced(_)) && event.at <= last_answer(session)
        };
        // Behind a compaction that cannot be read, no context is known: what is needed later is, and what was lost is not.
        let opaque: Vec<usize> = session
            .compactions()
            .iter()
            .filter(is_opaque)
            .map(|event| event.at)
            .collect();
        let opaque_calls: Vec<usize> = opaque.iter().map(|at| call_after(session, *at)).collect();
        let strategy = StrategySpec::recorded().and_then(|spec| spec.build()).ok();
        let replayed = match strategy
            .filter(|_| opaque.is_empty() && !session.compactions().is_empty())
        {
            Some(strategy) => Replayed::Strategy(Box::new(strategy), Window::new(Tokens(u64::MAX))),
            None => Replayed::Full,
        };
        let mut asked: Vec<usize> = session
            .compactions()
            .iter()
            .map(|event| call_after(session, event.at))
            .collect();
        asked.dedup();
        asked.retain(|call| *call < calls.len() && opaque.is_empty());
        let rules = derive::instructions(session);
        let plan = SurvivalPlan::at_calls(session, rules.clone().into(), &asked)?;
        let anchors = Anchors::of(session);
        let mut found = Vec::new();
        let mut repeated_anyway = 0;
        let needs = Needs::new(
            session,
            (planned.prepared.counts(), planned.prepared.bill()),
            &anchors,
            opaque_calls,
        );
        let observers: Vec<Box<dyn Observer + '_>> = vec![
            Box::new(SurvivalObserver::new(Arc::new(plan))),
            Box::new(needs.writing(&mut found, &mut repeated_anyway)),
        ];
        let name = CellName {
            strategy: "recorded".to_owned(),
            repeat: 0,
        };
        let models = Models::offline(planned.prepared.counts());
        let record = replay_watched(
            &planned.prepared,
            name,
            replayed,
            &models,
            &NoClock,
            observers,
        )
        .record;
        let bill = Bill::of(planned, &record);
        for compaction in &mut found {
            complete(compaction, session, &record, &bill);
        }
        let mut rules: Vec<RuleFate> = rules
            .iter()
            .map(|rule| fate_of(rule, session, &record))
            .collect();
        for rule in &mut rules {
            rule.broken_at = broken::first_call(rule, session);
        }
        for compaction in &mut found {
            compaction.thrown.extend(rules_of(compaction.call, &rules));
        }
        let events = session.compactions().iter();
        let reached = events
            .filter(|event| event.at <= last_answer(session))
            .count();
        let first = session.compactions().first();
        let entry = planned.entry;
        let own = Window {
            max_output: entry.native_window.max_output,
            ..Window::new(entry.native_window.tokens)
        };
        let known = planned
            .prepared
            .product_windows
            .first()
            .map(|(_, window)| *window);
        let is_claude_code = entry.format == "claude-code";
        Ok(Self {
            file: planned.file.clone(),
            session: entry.id.clone(),
            main: entry.cluster.clone(),
            product: entry.format.clone(),
            version: session.source().version.clone(),
            model: session.model().map(str::to_owned),
            calls: calls.len(),
            billed_calls: bill.billed_calls(),
            usage: bill.total(),
            usd: bill.usd(),
            window: own.tokens,
            line: is_claude_code.then(|| known.unwrap_or(own.effective()) - AUTO_COMPACT_BUFFER),
            fullest: bill.fullest(),
            compactions: found,
            begins_compacted: first.is_some_and(|event| call_after(session, event.at) == 0),
            compactions_at_end: session.compactions().len() - reached,
            rules,
            breaks: bill.breaks(),
            repeated_anyway,
            hides_system_prompt: session.system().is_none(),
            mended: entry.warnings.clone(),
            sub_agents: Vec::new(),
        })
    }

    /// The session and its sub-agents.
    pub fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.sub_agents)
    }
}

/// The message that answered the last call; 0 without a call.
fn last_answer(session: &Session) -> usize {
    session.calls().last().copied().unwrap_or(0)
}

/// The first call after what happened before this message.
fn call_after(session: &Session, message: usize) -> usize {
    session.calls().partition_point(|answer| *answer < message)
}

/// Adds what the recording and its bill say of a compaction.
fn complete(compaction: &mut Compaction, session: &Session, record: &CellRecord, bill: &Bill<'_>) {
    let call = compaction.call;
    let recorded = session.compactions().iter().rev();
    let mut recorded = recorded.filter(|event| call_after(session, event.at) == call);
    let event = recorded.next();
    compaction.trigger = event
        .and_then(|event| event.trigger.as_deref())
        .map(str::to_owned);
    let before = call.checked_sub(1).map(|last| bill.call(last).total());
    let counted = event.and_then(|event| event.pre_tokens);
    compaction.before = counted.or(before).unwrap_or_default();
    let first = bill.call(call);
    compaction.after = first.prompt();
    compaction.rewritten = first.prompt() - first.cache_read;
    let own = record.prompt_cache.first();
    let asked = record.model_calls.iter().enumerate();
    let mut asked =
        asked.filter(|(_, asked)| asked.purpose == Purpose::Compaction && asked.call == call);
    compaction.request = asked.next().map(|(number, asked)| {
        own.map_or(asked.usage, |cache| cache.of_strategy(number, &asked.usage))
    });
    let request = compaction
        .request
        .map_or(Some(Usd(0)), |usage| bill.price(&usage));
    let read = bill.price(&Usage {
        cache_read: compaction.rewritten,
        ..Usage::default()
    });
    let anew = bill.price(&Usage {
        cache_read: Tokens::ZERO,
        output: Tokens::ZERO,
        ..first
    });
    compaction.usd = request
        .zip(anew)
        .zip(read)
        .map(|((request, anew), read)| Usd(request.0 + anew.0.saturating_sub(read.0)));
    for again in &mut compaction.again {
        again.usd = bill.price(&bill.as_new(again.tokens));
    }
}

fn fate_of(rule: &crate::probe::Probe, session: &Session, record: &CellRecord) -> RuleFate {
    let own = record.probes.iter().filter(|item| item.probe == rule.id);
    let changed = own.clone().find_map(|item| item.survival.changed_to());
    let text = match &rule.fact {
        crate::probe::Fact::Constraint { statement, .. } => statement.clone(),
        _ => String::new(),
    };
    RuleFate {
        rule: text,
        set_at: rule
            .evidence
            .first()
            .map(|message| call_after(session, *message)),
        fates: own.map(|item| (item.call, item.survival.fate)).collect(),
        changed_to: changed.map(str::to_owned),
        broken_at: None,
    }
}

/// The rules that a compaction met, as one row; nothing where there is none.
fn rules_of(call: usize, rules: &[RuleFate]) -> Option<(Kind, Thrown)> {
    let gone_before = |rule: &&RuleFate| rule.gone_at().is_none_or(|(at, _)| at >= call);
    let met = rules
        .iter()
        .filter(|rule| rule.fates.contains_key(&call))
        .filter(gone_before);
    let gone = |rule: &&RuleFate| rule.gone_at().is_some_and(|(at, _)| at == call);
    let [before, lost] = [met.clone().count(), met.clone().filter(gone).count()];
    let broken = met
        .filter(gone)
        .filter(|rule| rule.broken_at.is_some())
        .count();
    (before > 0).then_some((
        Kind::Rule,
        Thrown {
            before,
            stayed: before - lost,
            needed: broken,
            broken,
            ..Thrown::default()
        },
    ))
}

/// The command line of a tool use, else its name and arguments.
fn command_of(tool: &ToolUse) -> String {
    let input = tool.input.value();
    let mut keys = ["command", "cmd", "script"].iter();
    let command = keys.find_map(|key| input.get(key)?.as_str());
    command.map_or_else(
        || format!("{} {}", tool.name, tool.input.as_str()),
        str::to_owned,
    )
}
