//! The table of metrics: what is measured, how, which way is better, and the function that does it.
//!
//! An entry is all that a metric needs: the comparison, the files for programs and the
//! documentation are made from it.

use super::Direction::{Higher, Lower, Neutral};
use super::Mark::{Best, BestKept, Controls, Optional, Reference, Savings, WhereWritten};
use super::answers::Scope;
use super::cost::SchemeCost;
use super::pool::Of::{Count, Mean, Most, Pool, Tokens};
use super::pool::{Pooled, counted};
use super::{Metric, compaction, completion, cost, fidelity, summaries, survival, tokens};
use super::{tokens::Savings as Saved, trail};

const RECORD: &str = "the replay";
pub(super) const COUNTER: &str = "the replay, by the scenario's token counter";
const CACHE: &str =
    "the simulated prompt cache, under the scheme that the note below the comparison names";
const MATCHING: &str = "string matching (evaluator `survival`)";
const TRAIL: &str = "tool uses, and rules that read the lines of summaries";
const READER: &str = "a reader's answers, graded";
const TOOLS: &str = "string matching on tool calls";
const REREADS: &str = "string matching on tool calls, and the scenario's token counter";
const SUMMARIES: &str = "string matching on the texts that stages write in place of messages";
const VALIDITY: &str = "the validity check";

/// Every metric, in the order of the documentation.
pub const METRICS: &[Metric] = &[
    Metric::share(RECORD, "completion", "completion", Higher)
        .doc("share of the sessions' calls that were sent before a prompt no longer fitted")
        .formula("calls reached / calls planned, over all cells")
        .column(0, 0, &[Reference])
        .of(Pool(completion::pooled)),
    Metric::count(RECORD, "fired", "fired", Neutral)
        .doc("sessions in which the strategy changed the context at all")
        .formula("sessions with at least one applied patch, of all sessions")
        .column(1, 3, &[])
        .of(Pool(compaction::fired)),
    Metric::share(COUNTER, "token_savings", "token savings", Higher)
        .doc("tokens not processed, compared with full history over the calls both reached")
        .formula(
            "1 − S/S⁰; S = prompts of the agent's calls + input and output of every call the \
             strategy made",
        )
        .column(2, 0, &[Best, Savings])
        .of(Mean(|cell| tokens::compared(cell, Saved::share))),
    Metric::share(CACHE, "cost_savings", "cost savings", Higher)
        .doc(
            "cost saved with the provider's prompt cache, compared with full history over the \
             calls both reached; below 0 the strategy costs more than it saves",
        )
        .formula(
            "1 − C/C⁰; C = uncached + w·written + r·read tokens of the agent's prompts and, with \
             o·output, of every call the strategy made; w, r and o are the scheme's prices \
             relative to input; what the agent wrote is the same under both and left out",
        )
        .column(3, 0, &[Best, Savings])
        .of(Mean(|cell| cost::shown(cell, SchemeCost::share))),
    Metric::share(CACHE, "cost_savings_edge", "cost, edge", Higher)
        .doc(
            "cost savings of a client that puts one cache breakpoint in front of the lowest entry \
             that the strategy means to change next; a strategy that names no such entry costs as \
             usual",
        )
        .formula("1 − C/C⁰ as for cost savings")
        .column(4, 0, &[Best, Savings, Optional])
        .of(Mean(cost::edge_savings)),
    Metric::share(COUNTER, "token_savings_of_totals", "savings of totals", Higher)
        .doc("the same over all sessions together, so that long sessions weigh more")
        .formula("1 − ΣS/ΣS⁰")
        .column(23, 13, &[])
        .of(Pool(tokens::savings_of_totals)),
    Metric::share(COUNTER, "token_savings_without_calls", "savings without strategy's calls", Higher)
        .doc("token savings as if the strategy's own calls were free")
        .formula("1 − S′/S⁰; S′ = prompts of the agent's calls")
        .column(24, 14, &[Savings])
        .of(Mean(|cell| tokens::compared(cell, Saved::share_without_calls))),
    Metric::tokens(COUNTER, "peak_prompt", "peak prompt", Lower)
        .doc("the largest prompt that was sent")
        .formula("max over calls and sessions")
        .column(15, 8, &[Reference, Best])
        .of(Most(|cell| cell.peak_prompt)),
    Metric::tokens(COUNTER, "area", "prompt area", Lower)
        .doc("all prompts together: the area under the curve of tokens by call")
        .formula(
            "Σ over calls and sessions of prompt tokens; calls that were not reached have none",
        )
        .column(49, 35, &[Reference])
        .of(Tokens(|cell| Some(cell.area))),
    Metric::share(CACHE, "cache_read_share", "cache read", Higher)
        .doc("share of the agent's prompts that is read from the provider's cache")
        .formula("tokens read / prompt tokens")
        .column(13, 8, &[Reference])
        .of(Mean(|cell| cost::shown(cell, SchemeCost::read_share))),
    Metric::tokens(CACHE, "cache_broken", "cache broken", Lower)
        .doc(
            "tokens that were cached at a call and not read at the next one; what broke the cache \
             stands in a table of its own",
        )
        .formula(
            "Σ over calls of max(0, read and written at the call before − removed by the provider \
             itself − read)",
        )
        .column(20, 12, &[])
        .of(Tokens(|cell| Some(cell.costs.first()?.broken()))),
    Metric::tokens(CACHE, "cache_again", "processed again", Lower)
        .doc(
            "tokens that were not read from the cache though they stood in an earlier prompt just \
             so: writes that could have been avoided",
        )
        .formula(
            "Σ over calls of the tokens behind the prefix that was read, in blocks that an earlier \
             prompt held",
        )
        .column(21, 12, &[])
        .of(Tokens(|cell| Some(cell.costs.first()?.again))),
    Metric::count(CACHE, "broke_even", "broke even", Higher)
        .doc(
            "cells in which the strategy, from some call on and to the end, had cost less than \
             full history",
        )
        .formula("cells with a break-even call, of all cells")
        .column(14, 8, &[])
        .of(Pool(cost::broke_even)),
    Metric::share(MATCHING, "survival", "survival", Higher)
        .doc(
            "planted facts whose value stands in the prompt, bound to its key; no statement about \
             answers",
        )
        .formula(
            "mean score of the planted items, corrected for chance by the decoys: (s − f)/(1 − f); \
             items after a death score 0",
        )
        .column(5, 1, &[Controls, BestKept])
        .of(Pool(|cells, _| Pooled::Estimate(survival::corrected(cells)))),
    Metric::share(MATCHING, "survival_compacted", "survival compacted", Higher)
        .doc(
            "the same where the evidence is no longer wholly verbatim, searched in what compaction \
             left of it",
        )
        .formula("mean compacted score of the items that have one, corrected for chance; own n")
        .column(6, 4, &[])
        .of(Pool(|cells, _| Pooled::Estimate(survival::compacted(cells)))),
    Metric::share(MATCHING, "survival_reachable", "reachable", Higher)
        .doc(
            "planted facts that are gone from the prompt and could be read again: it names the \
             file in which they were put aside, or holds the call that read a file which has not \
             changed since; never part of survival",
        )
        .formula("items of that fate / planted items")
        .column(27, 16, &[])
        .of(Mean(|cell| cell.survival.reachable.counted())),
    Metric::share(READER, "extract", "extract", Higher)
        .doc("items that BM25 line search answers right; no language model, so no accuracy")
        .formula("right / scored planted items; those after a death are not right")
        .column(12, 7, &[Controls, BestKept])
        .of(Mean(|cell| cell.extract(Scope::Context)?.right())),
    Metric::share(READER, "accuracy", "accuracy", Higher)
        .doc("probes a model answers right from the prompt")
        .formula(
            "mean score of the planted items; those after a death score 0, unscored ones are left \
             out and counted, and what it is at least and at most with them stands beside it",
        )
        .column(10, 1, &[Controls, BestKept])
        .of(Mean(|cell| cell.accuracy(Scope::Context)?.score.counted())),
    Metric::share(READER, "fidelity", "fidelity", Higher)
        .doc("accuracy relative to full history, same items and reader")
        .formula(
            "F = Σ acc / Σ acc_full over sessions, of qualified items scored under both; refused \
             where acc_full < 60 % or acc_full − acc_empty < 20 points",
        )
        .column(11, 2, &[Controls, BestKept])
        .of(Pool(fidelity::pooled)),
    Metric::share(TOOLS, "action_support", "action support", Higher)
        .doc(
            "of what the agent's recorded tool calls needed from the past, the share still in the \
             prompt",
        )
        .formula("atoms present / atoms wanted under full history, calls after a death included")
        .column(7, 5, &[Reference, BestKept])
        .of(Mean(|cell| counted(cell.support.share(), cell.support.wanted))),
    Metric::share(TOOLS, "action_support_compacted", "support compacted", Higher)
        .doc("the same for atoms of which some occurrence has been compacted, over calls reached")
        .formula("compacted atoms present / compacted atoms wanted")
        .column(25, 15, &[])
        .of(Mean(|cell| counted(cell.support.compacted_share(), cell.support.compacted_wanted))),
    Metric::share(TOOLS, "action_reachable", "support reachable", Higher)
        .doc(
            "of what the agent's tool calls needed and the prompt no longer held, what could be \
             read again: the prompt names the file in which the tool result was put aside, or \
             holds the call that read a file which has not changed since; never part of action \
             support",
        )
        .formula("atoms gone and reachable / atoms wanted under full history")
        .column(47, 33, &[])
        .of(Mean(|cell| counted(cell.support.reachable_share(), cell.support.wanted))),
    Metric::share(COUNTER, "retained", "retained", Neutral)
        .doc("what a compaction leaves of the messages")
        .formula("mean of after/before over the patches that freed something")
        .column(26, 16, &[])
        .of(Mean(|cell| Some((cell.retained?, cell.compactions())))),
    Metric::share(COUNTER, "headroom", "headroom", Neutral)
        .doc("what a compaction leaves free of the effective window")
        .formula(
            "mean of 1 − (system prompt and tools + messages after)/effective window over the \
             patches that freed something",
        )
        .column(48, 34, &[])
        .of(Mean(|cell| Some((cell.headroom?, cell.compactions())))),
    Metric::count(RECORD, "compactions", "compactions", Neutral)
        .doc("patches that were applied")
        .formula("count over all cells")
        .column(18, 11, &[])
        .of(Count(|cell| Some(cell.compactions()))),
    Metric::count(RECORD, "strategy_calls", "model calls", Lower)
        .doc("model calls the strategy made, failed ones included")
        .formula("count of purposes compaction, background and recovery")
        .column(8, 6, &[])
        .of(Count(|cell| Some(cell.model_calls.total().calls))),
    Metric::count(RECORD, "failed_calls", "failed calls", Lower)
        .doc("model calls of the strategy that brought no answer")
        .formula(
            "count of purposes compaction, background and recovery; those that were read are billed",
        )
        .strain(50, 36, |cell| Some(cell.strain.failed_calls)),
    Metric::count(RECORD, "retried_calls", "retried calls", Lower)
        .doc("model calls of the strategy that repeat one which failed")
        .formula(
            "calls right behind a failed one of the same purpose, at the same call of the agent",
        )
        .strain(51, 36, |cell| Some(cell.strain.retried_calls)),
    Metric::count(RECORD, "wasted_calls", "wasted calls", Lower)
        .doc("model calls of the strategy after which nothing was gained")
        .formula(
            "calls of purposes compaction and recovery at a call of the agent at which no patch \
             freed anything",
        )
        .strain(52, 36, |cell| Some(cell.strain.wasted_calls)),
    Metric::tokens(COUNTER, "strategy_tokens", "model tokens", Lower)
        .doc("input and output of the strategy's model calls")
        .formula("Σ over purposes compaction, background and recovery")
        .column(19, 12, &[])
        .of(Tokens(|cell| Some(cell.model_calls.total().tokens))),
    Metric::tokens(COUNTER, "summary_tokens", "summary tokens", Neutral)
        .doc("what a model wrote for a compaction, on average")
        .formula("mean output of the answered calls of purposes compaction and recovery")
        .column(22, 12, &[])
        .of(Pool(summaries::pooled)),
    Metric::share(REREADS, "net_savings", "net savings (estimate)", Higher)
        .doc(
            "token savings if the agent read again, once, whatever a call needed and its prompt no \
             longer held; an estimate, for a replay cannot see an agent read again",
        )
        .formula(
            "1 − (S + re-reads)/S⁰; a re-read costs the prompt at that call + the missing tool \
             result × the calls from there to the next compaction; what no tool ever brought costs \
             a call that brings nothing",
        )
        .column(41, 28, &[Savings, Optional])
        .of(Mean(|cell| Some((cell.rereads?.net_savings(&cell.savings?)?, cell.savings?.calls)))),
    Metric::count(TOOLS, "reread_calls", "re-reads (estimate)", Lower)
        .doc("calls by which the agent would have read again what was missing, each thing once")
        .formula(
            "different tool results, and atoms no tool brought, that a call wanted and its prompt \
             did not hold, over the calls both reached",
        )
        .column(42, 29, &[Optional])
        .of(Count(|cell| Some(cell.rereads?.calls))),
    Metric::share(TRAIL, "trail_f1", "artifact trail F1", Higher)
        .doc(
            "how well the prompt still says which files were read, created, modified and deleted; \
             a table of its own shows it verb by verb",
        )
        .formula(
            "2·right/(told + touched), over all calls; touched by the full history, calls after a \
             death included; told by tool uses in the prompt and by lines of summaries",
        )
        .column(43, 30, &[Reference, Optional])
        .of(Mean(|cell| trail::share_of(cell, trail::f1, |it| it.touched))),
    Metric::share(TRAIL, "trail_precision", "artifact trail precision", Higher)
        .doc(
            "of the files of which the prompt says what was done to them, the share of which it is \
             true",
        )
        .formula("right / told, over all calls")
        .column(44, 31, &[Reference, Optional])
        .of(Mean(|cell| trail::share_of(cell, trail::precision, |it| it.told))),
    Metric::share(TRAIL, "trail_recall", "artifact trail recall", Higher)
        .doc("of the files that something was done to, the share of which the prompt still says so")
        .formula("right / touched, over all calls")
        .column(45, 31, &[Reference, Optional])
        .of(Mean(|cell| trail::share_of(cell, trail::recall, |it| it.touched))),
    Metric::share(SUMMARIES, "unsupported_atoms", "unsupported atoms", Lower)
        .doc(
            "of the paths, identifiers, ids and numbers in summaries, the share that stands \
             nowhere in what the summary replaces: the least that was made up",
        )
        .formula(
            "unsupported / different atoms, summed over summaries; what an earlier summary said \
             supports nothing",
        )
        .column(46, 32, &[Optional, WhereWritten])
        .of(Mean(|cell| {
            let atoms = cell.summary_atoms.as_ref()?;
            counted(trail::unsupported_share(atoms), atoms.atoms)
        })),
    Metric::count(VALIDITY, "rejected", "rejected", Lower)
        .doc("calls whose prompt breaks a rule for which the provider documents an error")
        .formula("calls with a violation of level rejected that full history does not have")
        .column(9, 6, &[])
        .of(Count(|cell| Some(cell.findings.rejected))),
    Metric::count(VALIDITY, "warnings", "warnings", Lower)
        .doc("findings the provider accepts, though something is off")
        .formula("count of violations of level warning")
        .column(17, 10, &[])
        .of(Count(|cell| Some(cell.findings.warnings))),
    Metric::count(RECORD, "overflows", "overflows", Lower)
        .doc("prompts refused as too long, recovered or not")
        .formula("count over all cells")
        .column(16, 9, &[])
        .of(Count(|cell| Some(cell.findings.overflows))),
    Metric::count(RECORD, "deaths", "deaths", Lower)
        .doc(
            "cells that ended at a prompt no recovery made fit, or at a call the provider never \
             answered",
        )
        .formula("count over all cells"),
    Metric::count(COUNTER, "warned_calls", "warned", Neutral)
        .doc("calls whose prompt had reached the warning or error line and no higher one")
        .formula(
            "prompt ≥ effective window − 13,000 − 20,000, and below the line of automatic \
             compaction",
        )
        .strain(39, 26, |cell| Some(cell.strain.warned_calls)),
    Metric::count(COUNTER, "auto_compact_calls", "over auto-compact", Lower)
        .doc(
            "calls whose prompt had reached the line of automatic compaction of Claude Code, and \
             not the blocking line",
        )
        .formula("prompt ≥ effective window − 13,000, and below the blocking line")
        .strain(38, 25, |cell| Some(cell.strain.auto_compact_calls)),
    Metric::count(COUNTER, "blocking_calls", "over blocking", Lower)
        .doc("calls whose prompt had reached the blocking line of Claude Code")
        .formula("prompt ≥ effective window − 3,000")
        .strain(37, 24, |cell| Some(cell.strain.blocking_calls)),
    Metric::count(COUNTER, "blocked_turns", "blocked turns", Lower)
        .doc(
            "times the user typed something at or above the blocking line, which a product would \
             have refused; the replay goes on",
        )
        .formula(
            "system prompt, tools and messages before the typed one ≥ effective window − 3,000",
        )
        .strain(28, 17, |cell| Some(cell.strain.blocked_turns)),
    Metric::count(COUNTER, "blocked_agents", "blocked agents", Lower)
        .doc(
            "calls that started a sub-agent when the prompt filled that share of the effective \
             window from which on a product that collapses starts none: `block_at` of the \
             strategy's own `collapse_groups`, else Claude Code's 95 %; the replay goes on",
        )
        .formula(
            "prompt ≥ block_at · effective window, and the response uses a tool of the class \
             `agent`",
        )
        .strain(29, 18, |cell| Some(cell.strain.blocked_agents)),
    Metric::count(RECORD, "thrash", "thrash", Lower)
        .doc(
            "paid compactions that are the third of three in a row; paid is one for which a model \
             was asked at the same call",
        )
        .formula("each less than 4 calls after the one before")
        .strain(30, 19, |cell| Some(cell.strain.thrash)),
    Metric::count(RECORD, "retriggered", "re-triggered", Lower)
        .doc(
            "compactions, paid or not, that left the context at or over the size their stage waits \
             for, all that the strategy did at that call included: the next call has to compact \
             again",
        )
        .formula(
            "count of after ≥ trigger, in the trigger's own unit; after a refusal, of prompts that \
             would be refused again",
        )
        .strain(32, 21, |cell| Some(cell.strain.retriggered)),
    Metric::count(RECORD, "next_call", "again at once", Lower)
        .doc("paid compactions at the very next call after another, whatever made them due")
        .formula("count of pairs of paid compactions one call apart")
        .strain(33, 21, |cell| Some(cell.strain.next_call)),
    Metric::count(COUNTER, "futile", "futile", Lower)
        .doc("paid compactions that left most of the messages")
        .formula("after/before > 0.8")
        .strain(31, 20, |cell| Some(cell.strain.futile)),
    Metric::count(RECORD, "unseen_altered", "unseen loss", Lower)
        .doc(
            "tool results altered before the first call that would have shown them: the model \
             never saw them as they were",
        )
        .formula("results whose text differs from the recorded one at that call, or that are gone")
        .strain(34, 22, |cell| Some(cell.strain.unseen_altered)),
    Metric::count(RECORD, "unseen_reachable", "unseen but reachable", Neutral)
        .doc(
            "of these, results that can be read again: a path to exactly their content stands in \
             their place",
        )
        .formula("altered results whose place names the hash of their content")
        .strain(35, 23, |cell| Some(cell.strain.unseen_reachable)),
    Metric::count(RECORD, "unseen_gone", "unseen and gone", Lower)
        .doc(
            "of the unseen, results that were put aside nowhere: neither the model nor the disk \
             has them as they were",
        )
        .formula(
            "altered results less those that a stage had put aside by then, even where the path \
             was cleared since",
        )
        .strain(36, 23, |cell| Some(cell.strain.unseen_gone)),
    Metric::count(RECORD, "agent_failures", "agent retries", Lower)
        .doc(
            "attempts at the agent's own calls that failed; not in token savings, for no strategy \
             causes them",
        )
        .formula("count over all cells")
        .strain(40, 27, |cell| Some(cell.strain.agent_failures)),
];
