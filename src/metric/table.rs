//! The table of metrics: the texts of each, its place in the comparison and its function.
//!
//! The comparison, the files for programs and the documentation are made from it.

use super::answers::AnswerScope;
use super::completion::Completion;
use super::cost::{BillBasis, ModelledTime, SchemeCost};
use super::pool::Formula::{Count, Largest, Mean, Pool, Saved, Tokens, Total};
use super::pool::{PooledValue, counted, rate, share};
use super::{CellSummary, Direction, Metric, MetricMark, Unit};
use super::{compaction, cost, fidelity, summaries, survival, tokens, trail};
use crate::record::words::Placement;

const REPLAY: &str = "the replay";
const COUNTER: &str = "the replay, by the scenario's token counter";
const CACHE: &str =
    "the simulated prompt cache, under the scheme that the note below the comparison names";
const READER: &str = "a reader's answers, graded";
const SURVIVAL: &str = "string matching (evaluator `survival`)";
const TOOL_CALLS: &str = "string matching on tool calls";
const VALIDITY: &str = "the validity check";
const TRAIL: &str = "tool uses, and rules that read the lines of summaries";
const PRICES: &str = "the price files in force, and the simulated prompt cache";
const BILL: &str = "the provider's usage";
const LATENCY: &str = "parameters of the model in a price file, and the simulated prompt cache";

/// Makes a list of metrics. Each has its meaning and its formula above it, and then its name in files, its
/// heading, its unit, which way is better, who measures it, its place in the comparison and the rank in
/// which it makes room for others there, how the comparison treats it, and its function.
macro_rules! metrics {
    ($(
        #[doc = $doc:literal]
        #[doc = $formula:literal]
        $name:literal = $label:literal, $unit:ident, $direction:ident, $source:expr, $column:expr,
        [$($mark:ident),*] => $function:expr;
    )*) => {
        &[$(Metric {
            name: $name,
            label: $label,
            unit: Unit::$unit,
            direction: Direction::$direction,
            doc: $doc.trim_ascii(),
            formula: $formula.trim_ascii(),
            source: $source,
            column: $column,
            marks: &[$(MetricMark::$mark),*],
            function: $function,
        }),*]
    };
}

/// Every metric, in the order of the documentation.
pub static METRICS: &[Metric] = metrics! {
    /// share of the sessions' calls that were sent before a prompt no longer fitted
    /// calls reached / calls planned, over all cells
    "completion" = "completion", Share, Higher, REPLAY, Some((0, 0)), [Reference]
        => Pool(|cells, _| Completion::over(cells).share().map(PooledValue::Share));

    /// share of the tasks that the agent solved under the strategy
    /// mean over tasks of the mean score of its repeats, each from 0 to 1
    "tasks_solved" = "tasks solved", Share, Higher, "the tests of each task, where agents ran", Some((0, 4)), [Best, Optional]
        => Mean(|cell| counted(cell.score, 1));

    /// sessions in which the strategy changed the context at all; a recording counts once, with its sub-agents
    /// sessions with at least one applied patch, of all sessions
    "fired" = "fired", Count, Neutral, REPLAY, Some((1, 3)), []
        => Pool(|cells, _| Some(compaction::fired(cells)));

    /// how full the effective window was when the strategy fired, at least and at most; far below 100 %, it may believe in a smaller window
    /// (system prompt and tools + messages before)/effective window, at each call at which something was freed
    "fired_at" = "fired at", Share, Neutral, COUNTER, Some((1, 9)), [Optional, WhereWritten, NotInCsv]
        => Pool(|cells, _| compaction::fired_at_pooled(cells));

    /// what all sessions cost, the agent's answers and the strategy's calls included, with the provider's prompt cache; sessions without known prices are left out, and a note counts the others
    /// Σ over sessions, repeats averaged, of the tokens of each class · its price; a session that no repeat completed costs what full history costs, times ΣB/ΣB⁰ of the sessions that both completed
    "bill" = "bill", Dollars, Lower, PRICES, Some((2, 0)), [Reference]
        => Total(|cell| cell.bill(&BillBasis::Shown));

    /// share of the bill of full history that is saved, over the sessions that both completed; below 0 the strategy costs more than it saves
    /// 1 − ΣB/ΣB⁰; B = the bill in dollars or, where a price is unknown, C in input tokens of each session's model; C = uncached + w·written + r·read + o·output tokens of every call of the agent and of the strategy; w, r and o are prices relative to input, those of the session's model or, where no price file has it, the scheme's
    "bill_saved" = "bill saved", Share, Higher, CACHE, Some((3, 0)), [Best, Savings]
        => Saved(|cell| cell.spending(&BillBasis::Shown));

    /// the bill saved by a client that puts one cache breakpoint in front of the lowest entry that the strategy means to change next; a strategy that names no such entry costs as usual
    /// 1 − ΣB/ΣB⁰ as for the bill saved
    "bill_saved_edge" = "bill saved, edge", Share, Higher, CACHE, Some((4, 0)), [Best, Savings, Optional]
        => Saved(|cell| cell.spending(&BillBasis::Own(Placement::Edge)));

    /// the bill saved in a typical session, long or short; a session that died counts with the calls that it reached
    /// mean of 1 − C/C⁰ over sessions
    "bill_saved_typical" = "bill saved (typical session)", Share, Higher, CACHE, Some((23, 13)), [Savings, Optional, NotInCsv]
        => Mean(|cell| cost::under_first_bill(cell, SchemeCost::share));

    /// where agents ran and bills are known: what the replay of the same calls would cost under the simulated prompt cache
    /// as for the bill, of the simulated classes
    "bill_modelled" = "modelled bill", Dollars, Lower, PRICES, Some((3, 1)), [Reference, Optional, Closed]
        => Total(CellSummary::modelled_bill);

    /// billed tokens that were neither read from the provider's cache nor written to it, where agents ran
    /// Σ over sessions, repeats averaged, of uncached input, the strategy's calls included
    "billed_uncached" = "uncached input", Tokens, Lower, BILL, Some((3, 2)), [Reference, Optional, Closed, Unpriced, NotInCsv]
        => Total(|cell| cell.billed(|usage| usage.input_uncached));

    /// billed tokens that were read from the provider's cache, where agents ran
    /// Σ over sessions, repeats averaged, of tokens read
    "billed_read" = "cache read", Tokens, Lower, BILL, Some((3, 3)), [Reference, Optional, Closed, Unpriced, NotInCsv]
        => Total(|cell| cell.billed(|usage| usage.cache_read));

    /// billed tokens that were written to the provider's cache, for however long, where agents ran
    /// Σ over sessions, repeats averaged, of tokens written
    "billed_written" = "cache written", Tokens, Lower, BILL, Some((3, 4)), [Reference, Optional, Closed, Unpriced, NotInCsv]
        => Total(|cell| cell.billed(|usage| usage.cache_write_5m + usage.cache_write_1h));

    /// billed output, where agents ran
    /// Σ over sessions, repeats averaged, of output tokens
    "billed_output" = "output", Tokens, Lower, BILL, Some((3, 5)), [Reference, Optional, Closed, Unpriced, NotInCsv]
        => Total(|cell| cell.billed(|usage| usage.output));

    /// share of the tokens of full history that is not processed, over the sessions that both completed
    /// 1 − ΣS/ΣS⁰; S = prompts of the agent's calls + input and output of every call the strategy made
    "tokens" = "tokens saved", Share, Higher, COUNTER, Some((4, 1)), [Best, Savings]
        => Saved(|cell| tokens::spending(cell, cell.savings?.strategy));

    /// tokens saved in a typical session, long or short; a session that died counts with the calls that it reached
    /// mean of 1 − S/S⁰ over sessions
    "tokens_typical" = "tokens saved (typical session)", Share, Higher, COUNTER, Some((24, 14)), [Savings, Optional, NotInCsv]
        => Mean(|cell| tokens::compared(cell, tokens::Savings::share));

    /// tokens saved as if the strategy's own calls were free
    /// 1 − ΣS′/ΣS⁰; S′ = prompts of the agent's calls
    "tokens_without_calls" = "tokens saved without calls", Share, Higher, COUNTER, Some((24, 15)), [Savings]
        => Saved(|cell| tokens::spending(cell, super::prelude::Tokens::ZERO));

    /// modelled time in which the agent waits, for its own calls and for those of the strategy; of the background's what is in `waited_seconds`
    /// Σ over sessions, repeats averaged, of a + (uncached + written)/ρ_prefill + read/ρ_read + output/ρ_decode of the calls of purposes agent, compaction and recovery, + waited for background; a session that no repeat completed as for the bill
    "waiting" = "waiting", Seconds, Lower, LATENCY, Some((12, 8)), [Reference, Optional]
        => Total(|cell| cell.time(&BillBasis::Shown, ModelledTime::Waiting));

    /// the largest prompt that was sent
    /// max over calls and sessions
    "peak_prompt" = "peak prompt", Tokens, Lower, COUNTER, Some((15, 8)), [Reference, Best]
        => Largest(|cell| cell.peak_prompt);

    /// all prompts together: the area under the curve of tokens by call
    /// Σ over calls and sessions of prompt tokens; calls that were not reached have none
    "area" = "prompt area", Tokens, Lower, COUNTER, Some((49, 35)), [Reference, NotInCsv]
        => Tokens(|cell| Some(cell.area));

    /// share of the agent's prompts that is read from the provider's cache
    /// tokens read / prompt tokens
    "cache_read_share" = "share read", Share, Higher, CACHE, Some((13, 8)), [Reference]
        => Mean(|cell| cost::under_first_bill(cell, SchemeCost::read_share));

    /// tokens that were cached at a call and not read at the next one; a table of its own names the causes
    /// Σ over calls of max(0, read and written at the call before − removed by the provider itself − read)
    "cache_broken" = "cache broken", Tokens, Lower, CACHE, Some((20, 12)), []
        => Tokens(|cell| Some(cell.simulated_cost()?.broken()));

    /// tokens not read from the cache although an earlier prompt held them in the same place: writes that could have been avoided
    /// Σ over calls of the tokens behind the prefix that was read, in blocks that an earlier prompt held
    "cache_again" = "processed again", Tokens, Lower, CACHE, Some((21, 12)), []
        => Tokens(|cell| Some(cell.simulated_cost()?.resent));

    /// cells in which the strategy, from some call on and to the end, had cost less than full history
    /// cells with a break-even call, of all cells
    "broke_even" = "broke even", Count, Higher, CACHE, Some((14, 8)), [] => Pool(cost::broke_even);

    /// planted facts that are in the prompt and mean what they meant, by weight; a range where string matching cannot tell of more than 2 points; says nothing about answers
    /// mean score of the planted items, each times its weight (rule, plan, last request and handle 3; file, decision and error 2; else 1), corrected for chance by the decoys: (s − f)/(1 − f); items after a death score 0
    "facts" = "facts kept", Share, Higher, SURVIVAL, Some((5, 1)), [Controls, BestKept]
        => Pool(|cells, _| survival::kept(cells));

    /// planted facts in whose place the prompt says something else: another value, an older one, a weaker rule, one that is taken back; they count as lost
    /// weight of the items of that fate / weight of the planted items
    "facts_changed" = "facts changed", Share, Lower, SURVIVAL, Some((6, 3)), []
        => Mean(|cell| cell.survival.changed.counted());

    /// the same for items whose evidence is no longer wholly verbatim, searched in what compaction left of it
    /// mean compacted score of the items that have one, corrected for chance; own n
    "facts_compacted" = "facts compacted", Share, Higher, SURVIVAL, Some((6, 4)), []
        => Pool(|cells, _| survival::compacted(cells).map(PooledValue::Estimate));

    /// planted facts that a program keeps where its summaries quote every fact that it sends: what is missing, its own code lost; no verdict reads it
    /// mean score of the planted items by weight, replayed with a summariser that quotes the facts whose words stand wholly in its request
    "plumbing" = "plumbing", Share, Higher, SURVIVAL, Some((6, 2)), [Optional, WhereWritten]
        => Mean(|cell| cell.plumbing.and_then(super::survival::Score::counted));

    /// planted facts that are gone from the prompt and could be read again: it names the file in which they were put aside, or holds the call that read a file which has not changed since; never part of the facts kept
    /// weight of the items of that fate / weight of the planted items
    "facts_reachable" = "facts reachable", Share, Higher, SURVIVAL, Some((27, 16)), [NotInCsv]
        => Mean(|cell| cell.survival.reachable.counted());

    /// probes a model answers right from the prompt
    /// mean score of the planted items; those after a death score 0, unscored ones are left out and counted, and the least and the most it can be with them is shown as a range
    "answers" = "answers right", Share, Higher, READER, Some((10, 1)), [Controls, BestKept]
        => Mean(|cell| cell.accuracy(AnswerScope::Context)?.score.counted());

    /// answers right relative to full history, same items and reader
    /// F = Σ acc / Σ acc_full over sessions, of qualified items scored under both; refused where acc_full < 60 % or acc_full − acc_empty < 20 points
    "fidelity" = "fidelity", Share, Higher, READER, Some((11, 2)), [Controls, BestKept]
        => Pool(fidelity::pooled);

    /// of what the agent's recorded tool calls needed from the past, the share still in the prompt
    /// atoms present / atoms wanted under full history, calls after a death included
    "actions" = "actions supported", Share, Higher, TOOL_CALLS, Some((7, 5)), [Reference, BestKept]
        => Mean(|cell| rate(cell.support.present, cell.support.wanted));

    /// the same for atoms of which some occurrence has been compacted, over calls reached
    /// compacted atoms present / compacted atoms wanted
    "actions_compacted" = "actions compacted", Share, Higher, TOOL_CALLS, Some((25, 15)), []
        => Mean(|cell| rate(cell.support.compacted_present, cell.support.compacted_wanted));

    /// of what the agent's tool calls needed and the prompt no longer held, what could be read again: the prompt names the file in which the tool result was put aside, or holds the call that read a file which has not changed since; never part of the actions supported
    /// atoms gone and reachable / atoms wanted under full history
    "actions_reachable" = "actions reachable", Share, Higher, TOOL_CALLS, Some((47, 33)), []
        => Mean(|cell| rate(cell.support.reachable?, cell.support.wanted));

    /// share of the sessions in which at least one of the agent's recorded tool calls needed a past text that the prompt no longer held: one missing fact can end a task
    /// sessions with atoms present < atoms wanted, of those with atoms wanted
    "any_action_unsupported" = "any action unsupported", Share, Lower, TOOL_CALLS, None, [NotInCsv]
        => Mean(|cell| counted(cell.support.any_missing(), cell.support.wanted));

    /// what a compaction leaves of the messages
    /// mean of after/before over the patches that freed something
    "retained" = "retained", Share, Neutral, COUNTER, Some((26, 16)), []
        => Mean(|cell| Some((cell.retained?, cell.compactions())));

    /// what a compaction leaves free of the effective window
    /// mean of 1 − (system prompt and tools + messages after)/effective window over the patches that freed something
    "headroom" = "headroom", Share, Neutral, COUNTER, Some((48, 34)), []
        => Mean(|cell| Some((cell.headroom?, cell.compactions())));

    /// patches that were applied
    /// count over all cells
    "compactions" = "compactions", Count, Neutral, REPLAY, Some((18, 11)), []
        => Count(|cell| Some(cell.compactions()));

    /// model calls the strategy made, failed ones included
    /// count of purposes compaction, background and recovery
    "calls" = "calls", Count, Lower, REPLAY, Some((8, 6)), []
        => Count(|cell| Some(cell.model_calls.total().calls));

    /// model calls of the strategy without an answer
    /// count of purposes compaction, background and recovery; those that were read are billed
    "failed_calls" = "failed calls", Count, Lower, REPLAY, Some((50, 36)), [HideZeros, NotInCsv]
        => Count(|cell| Some(cell.context_pressure.failed_calls));

    /// model calls of the strategy that repeat one which failed
    /// calls directly after a failed one of the same purpose, at the same call of the agent
    "retried_calls" = "retried calls", Count, Lower, REPLAY, Some((51, 36)), [HideZeros]
        => Count(|cell| Some(cell.context_pressure.retried_calls));

    /// model calls of the strategy after which nothing was gained
    /// calls of purposes compaction and recovery at a call of the agent at which no patch freed anything
    "wasted_calls" = "wasted calls", Count, Lower, REPLAY, Some((52, 36)), [HideZeros]
        => Count(|cell| Some(cell.context_pressure.wasted_calls));

    /// input and output of the strategy's model calls
    /// Σ over purposes compaction, background and recovery
    "strategy_tokens" = "model tokens", Tokens, Lower, COUNTER, Some((19, 12)), []
        => Tokens(|cell| Some(cell.model_calls.total().tokens));

    /// what a model wrote for a compaction, on average
    /// mean output of the answered calls of purposes compaction and recovery
    "summary_tokens" = "summary tokens", Tokens, Neutral, COUNTER, Some((22, 12)), []
        => Pool(summaries::pooled);

    /// tokens saved if the agent re-read, once, everything that a call needed and its prompt no longer held; an estimate, since a replay cannot see an agent re-read
    /// 1 − Σ(S + re-reads)/ΣS⁰; a re-read costs the prompt at that call + the missing tool result × the calls from there to the next compaction; a thing that no tool result held costs a call that returns nothing
    "net_savings" = "net savings (estimate)", Share, Higher, "string matching on tool calls, and the scenario's token counter", Some((41, 28)), [Savings, Optional, NotInCsv]
        => Saved(|cell| tokens::spending(cell, cell.savings?.strategy + cell.rereads?.tokens));

    /// calls by which the agent would have re-read what was missing, each thing once
    /// different tool results, and atoms of no tool result, that a call wanted and its prompt did not hold, over the calls both reached
    "reread_calls" = "re-reads (estimate)", Count, Lower, TOOL_CALLS, Some((42, 29)), [Optional, NotInCsv]
        => Count(|cell| Some(cell.rereads?.calls));

    /// how well the prompt still says which files were read, created, modified and deleted
    /// 2·right/(stated + touched), over all calls; touched in the full history, calls after a death included; stated by tool uses in the prompt and by lines of summaries
    "trail_f1" = "artifact trail F1", Share, Higher, TRAIL, Some((43, 30)), [Reference, Optional, NotInCsv]
        => Mean(|cell| {
            let files = trail::all(cell)?;
            counted(share(2 * files.correct, files.mentioned + files.touched), files.touched)
        });

    /// of the prompt's statements about what was done to a file, the share that is true
    /// right / stated, over all calls
    "trail_precision" = "artifact trail precision", Share, Higher, TRAIL, Some((44, 31)), [Reference, Optional, NotInCsv]
        => Mean(|cell| trail::all(cell).and_then(|files| rate(files.correct, files.mentioned)));

    /// of the files that were touched, the share for which the prompt still says so
    /// right / touched, over all calls
    "trail_recall" = "artifact trail recall", Share, Higher, TRAIL, Some((45, 31)), [Reference, Optional, NotInCsv]
        => Mean(|cell| trail::all(cell).and_then(|files| rate(files.correct, files.touched)));

    /// of the paths, identifiers, ids and numbers in summaries, the share found nowhere in what the summary replaces: at least so much was made up
    /// unsupported / different atoms, summed over summaries; an earlier summary supports nothing
    "unsupported_atoms" = "unsupported atoms", Share, Lower, "string matching on the texts that stages write in place of messages", Some((46, 32)), [Optional, WhereWritten, NotInCsv]
        => Mean(|cell| cell.summary_atoms.as_ref().and_then(|found| rate(found.unsupported, found.atoms)));

    /// calls whose prompt breaks a rule for which the provider documents an error
    /// calls with a violation of level rejected that full history does not have
    "refused" = "refused", Count, Lower, VALIDITY, Some((9, 6)), []
        => Count(|cell| Some(cell.findings.rejected));

    /// findings that the provider accepts although they are suspicious
    /// count of violations of level warning
    "warnings" = "warnings", Count, Lower, VALIDITY, Some((17, 10)), []
        => Count(|cell| Some(cell.findings.warnings));

    /// prompts refused as too long, recovered or not
    /// count over all cells
    "overflows" = "overflows", Count, Lower, REPLAY, Some((16, 9)), []
        => Count(|cell| Some(cell.findings.overflows));

    /// cells that ended at a prompt no recovery made fit, or at a call the provider never answered
    /// count over all cells
    "deaths" = "deaths", Count, Lower, REPLAY, None, [NotInCsv]
        => Count(|cell| Some(usize::from(cell.completion.died_at.is_some())));

    /// calls whose prompt had reached the warning or error line and no higher one
    /// prompt ≥ effective window − 13,000 − 20,000, and below the line of automatic compaction
    "warned_calls" = "warned", Count, Neutral, COUNTER, Some((39, 26)), [HideZeros]
        => Count(|cell| Some(cell.context_pressure.warned_calls));

    /// calls whose prompt had reached the line of automatic compaction of Claude Code, and not the blocking line
    /// prompt ≥ effective window − 13,000, and below the blocking line
    "auto_compact_calls" = "over auto-compact", Count, Lower, COUNTER, Some((38, 25)), [HideZeros]
        => Count(|cell| Some(cell.context_pressure.auto_compact_calls));

    /// calls whose prompt had reached the blocking line of Claude Code
    /// prompt ≥ effective window − 3,000
    "blocking_calls" = "over blocking", Count, Lower, COUNTER, Some((37, 24)), [HideZeros]
        => Count(|cell| Some(cell.context_pressure.blocking_calls));

    /// times the user typed something at or above the blocking line, which a product would have refused; the replay goes on
    /// system prompt, tools and messages before the typed one ≥ effective window − 3,000
    "blocked_turns" = "blocked turns", Count, Lower, COUNTER, Some((28, 17)), [HideZeros]
        => Count(|cell| Some(cell.context_pressure.blocked_turns));

    /// calls that started a sub-agent when the prompt filled that share of the effective window from which on a product that collapses starts none: `block_at` of the strategy's own `collapse_groups`, else Claude Code's 95 %; the replay goes on
    /// prompt ≥ block_at · effective window, and the response uses a tool of the class `agent`
    "blocked_agents" = "blocked agents", Count, Lower, COUNTER, Some((29, 18)), [HideZeros]
        => Count(|cell| Some(cell.context_pressure.blocked_agents));

    /// paid compactions that are the third of three in a row; paid is one for which a model was asked at the same call
    /// each less than 4 calls after the one before
    "thrash" = "thrash", Count, Lower, REPLAY, Some((30, 19)), [HideZeros]
        => Count(|cell| Some(cell.context_pressure.thrash));

    /// compactions, paid or not, that left the context at or over the size their stage waits for, all that the strategy did at that call included: the next call has to compact again
    /// count of after ≥ trigger, in the trigger's own unit; after a refusal, of prompts that would be refused again
    "retriggered" = "re-triggered", Count, Lower, REPLAY, Some((32, 21)), [HideZeros]
        => Count(|cell| Some(cell.context_pressure.retriggered));

    /// paid compactions at the very next call after another, for any reason
    /// count of pairs of paid compactions one call apart
    "next_call" = "again at once", Count, Lower, REPLAY, Some((33, 21)), [HideZeros]
        => Count(|cell| Some(cell.context_pressure.next_call));

    /// paid compactions that left most of the messages
    /// after/before > 0.8
    "futile" = "futile", Count, Lower, COUNTER, Some((31, 20)), [HideZeros]
        => Count(|cell| Some(cell.context_pressure.futile));

    /// tool results altered before the first call that would have shown them: the model never saw them as they were
    /// results whose text differs from the recorded one at that call, or that are gone
    "unseen_altered" = "unseen loss", Count, Lower, REPLAY, Some((34, 22)), [HideZeros]
        => Count(|cell| Some(cell.context_pressure.unseen_altered));

    /// of these, results that can be read again: a path to exactly their content is in their place
    /// altered results replaced by a path that names the hash of their content
    "unseen_reachable" = "unseen but reachable", Count, Neutral, REPLAY, Some((35, 23)), [HideZeros]
        => Count(|cell| Some(cell.context_pressure.unseen_reachable));

    /// of the unseen, results that were offloaded nowhere: neither the model nor the disk has the originals
    /// altered results less those that a stage had offloaded by then, even if the path was cleared since
    "unseen_gone" = "unseen and gone", Count, Lower, REPLAY, Some((36, 23)), [HideZeros]
        => Count(|cell| Some(cell.context_pressure.unseen_gone));

    /// attempts at the agent's own calls that failed; not in the tokens saved, since no strategy causes them
    /// count over all cells
    "agent_failures" = "agent retries", Count, Lower, REPLAY, Some((40, 27)), [HideZeros]
        => Count(|cell| Some(cell.context_pressure.agent_failures));
};
