//! The table of metrics: what is measured, how, and which way is better.

use super::{Direction, Metric, Unit};

const RECORD: &str = "the replay";
pub(super) const COUNTER: &str = "the replay, by the scenario's token counter";
const CACHE: &str =
    "the simulated prompt cache, under the scheme that the note below the comparison names";
const MATCHING: &str = "string matching (evaluator `survival`)";
const TRAIL: &str = "tool uses, and rules that read the lines of summaries";
const READER: &str = "a reader's answers, graded";

/// Every metric, in the order of the comparison's columns.
pub const METRICS: &[Metric] = &[
    Metric {
        name: "completion",
        label: "completion",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "share of the sessions' calls that were sent before a prompt no longer fitted",
        formula: "calls reached / calls planned, over all cells",
        source: RECORD,
    },
    Metric {
        name: "fired",
        label: "fired",
        unit: Unit::Count,
        direction: Direction::Neutral,
        doc: "sessions in which the strategy changed the context at all",
        formula: "sessions with at least one applied patch, of all sessions",
        source: RECORD,
    },
    Metric {
        name: "token_savings",
        label: "token savings",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "tokens not processed, compared with full history over the calls both reached",
        formula: "1 − S/S⁰; S = prompts of the agent's calls + input and output of every call the \
                  strategy made",
        source: COUNTER,
    },
    Metric {
        name: "cost_savings",
        label: "cost savings",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "cost saved with the provider's prompt cache, compared with full history over the calls \
              both reached; below 0 the strategy costs more than it saves",
        formula: "1 − C/C⁰; C = uncached + w·written + r·read tokens of the agent's prompts and, with \
                  o·output, of every call the strategy made; w, r and o are the scheme's prices \
                  relative to input; what the agent wrote is the same under both and left out",
        source: CACHE,
    },
    Metric {
        name: "cost_savings_edge",
        label: "cost, edge",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "cost savings of a client that puts one cache breakpoint in front of the lowest entry that \
              the strategy means to change next; a strategy that names no such entry costs as usual",
        formula: "1 − C/C⁰ as for cost savings",
        source: CACHE,
    },
    Metric {
        name: "token_savings_of_totals",
        label: "savings of totals",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "the same over all sessions together, so that long sessions weigh more",
        formula: "1 − ΣS/ΣS⁰",
        source: COUNTER,
    },
    Metric {
        name: "token_savings_without_calls",
        label: "savings without strategy's calls",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "token savings as if the strategy's own calls were free",
        formula: "1 − S′/S⁰; S′ = prompts of the agent's calls",
        source: COUNTER,
    },
    Metric {
        name: "peak_prompt",
        label: "peak prompt",
        unit: Unit::Tokens,
        direction: Direction::Lower,
        doc: "the largest prompt that was sent",
        formula: "max over calls and sessions",
        source: COUNTER,
    },
    Metric {
        name: "area",
        label: "prompt area",
        unit: Unit::Tokens,
        direction: Direction::Lower,
        doc: "all prompts together: the area under the curve of tokens by call",
        formula: "Σ over calls and sessions of prompt tokens; calls that were not reached have none",
        source: COUNTER,
    },
    Metric {
        name: "cache_read_share",
        label: "cache read",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "share of the agent's prompts that is read from the provider's cache",
        formula: "tokens read / prompt tokens",
        source: CACHE,
    },
    Metric {
        name: "cache_broken",
        label: "cache broken",
        unit: Unit::Tokens,
        direction: Direction::Lower,
        doc: "tokens that were cached at a call and not read at the next one; what broke the cache \
              stands in a table of its own",
        formula: "Σ over calls of max(0, read and written at the call before − removed by the \
                  provider itself − read)",
        source: CACHE,
    },
    Metric {
        name: "cache_again",
        label: "processed again",
        unit: Unit::Tokens,
        direction: Direction::Lower,
        doc: "tokens that were not read from the cache though they stood in an earlier prompt just so: \
              writes that could have been avoided",
        formula: "Σ over calls of the tokens behind the prefix that was read, in blocks that an \
                  earlier prompt held",
        source: CACHE,
    },
    Metric {
        name: "broke_even",
        label: "broke even",
        unit: Unit::Count,
        direction: Direction::Higher,
        doc: "cells in which the strategy, from some call on and to the end, had cost less than full \
              history",
        formula: "cells with a break-even call, of all cells",
        source: CACHE,
    },
    Metric {
        name: "survival",
        label: "survival",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "planted facts whose value stands in the prompt, bound to its key; no statement \
              about answers",
        formula: "mean score of the planted items, corrected for chance by \
                  the decoys: (s − f)/(1 − f); items after a death score 0",
        source: MATCHING,
    },
    Metric {
        name: "survival_compacted",
        label: "survival compacted",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "the same where the evidence is no longer wholly verbatim, searched in what \
              compaction left of it",
        formula: "mean compacted score of the items that have one, corrected for chance; own n",
        source: MATCHING,
    },
    Metric {
        name: "survival_reachable",
        label: "reachable",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "planted facts that are gone from the prompt and could be read again: it names the \
              file in which they were put aside, or holds the call that read a file which has not \
              changed since; never part of survival",
        formula: "items of that fate / planted items",
        source: MATCHING,
    },
    Metric {
        name: "extract",
        label: "extract",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "items that BM25 line search answers right; no language model, so no accuracy",
        formula: "right / scored planted items; those after a death are \
                  not right",
        source: READER,
    },
    Metric {
        name: "accuracy",
        label: "accuracy",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "probes a model answers right from the prompt",
        formula: "mean score of the planted items; those after a death score \
                  0, unscored ones are left out and counted, and what it is at least and at most with \
                  them stands beside it",
        source: READER,
    },
    Metric {
        name: "fidelity",
        label: "fidelity",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "accuracy relative to full history, same items and reader",
        formula: "F = Σ acc / Σ acc_full over sessions, of qualified items scored under both; refused where \
                  acc_full < 60 % or acc_full − acc_empty < 20 points",
        source: READER,
    },
    Metric {
        name: "action_support",
        label: "action support",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "of what the agent's recorded tool calls needed from the past, the share still in \
              the prompt",
        formula: "atoms present / atoms wanted under full history, calls after a death included",
        source: "string matching on tool calls",
    },
    Metric {
        name: "action_support_compacted",
        label: "support compacted",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "the same for atoms of which some occurrence has been compacted, over calls reached",
        formula: "compacted atoms present / compacted atoms wanted",
        source: "string matching on tool calls",
    },
    Metric {
        name: "action_reachable",
        label: "support reachable",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "of what the agent's tool calls needed and the prompt no longer held, what could be read again: the prompt names the file in which the tool result was put aside, or holds the call that read a file which has not changed since; never part of action support",
        formula: "atoms gone and reachable / atoms wanted under full history",
        source: "string matching on tool calls",
    },
    Metric {
        name: "retained",
        label: "retained",
        unit: Unit::Share,
        direction: Direction::Neutral,
        doc: "what a compaction leaves of the messages",
        formula: "mean of after/before over the patches that freed something",
        source: COUNTER,
    },
    Metric {
        name: "headroom",
        label: "headroom",
        unit: Unit::Share,
        direction: Direction::Neutral,
        doc: "what a compaction leaves free of the effective window",
        formula: "mean of 1 − (system prompt and tools + messages after)/effective window over the patches that freed something",
        source: COUNTER,
    },
    Metric {
        name: "compactions",
        label: "compactions",
        unit: Unit::Count,
        direction: Direction::Neutral,
        doc: "patches that were applied",
        formula: "count over all cells",
        source: RECORD,
    },
    Metric {
        name: "strategy_calls",
        label: "model calls",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "model calls the strategy made, failed ones included",
        formula: "count of purposes compaction, background and recovery",
        source: RECORD,
    },
    Metric {
        name: "failed_calls",
        label: "failed calls",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "model calls of the strategy that brought no answer",
        formula: "count of purposes compaction, background and recovery; those that were read are billed",
        source: RECORD,
    },
    Metric {
        name: "retried_calls",
        label: "retried calls",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "model calls of the strategy that repeat one which failed",
        formula: "calls right behind a failed one of the same purpose, at the same call of the agent",
        source: RECORD,
    },
    Metric {
        name: "wasted_calls",
        label: "wasted calls",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "model calls of the strategy after which nothing was gained",
        formula: "calls of purposes compaction and recovery at a call of the agent at which no patch freed anything",
        source: RECORD,
    },
    Metric {
        name: "strategy_tokens",
        label: "model tokens",
        unit: Unit::Tokens,
        direction: Direction::Lower,
        doc: "input and output of the strategy's model calls",
        formula: "Σ over purposes compaction, background and recovery",
        source: COUNTER,
    },
    Metric {
        name: "summary_tokens",
        label: "summary tokens",
        unit: Unit::Tokens,
        direction: Direction::Neutral,
        doc: "what a model wrote for a compaction, on average",
        formula: "mean output of the answered calls of purposes compaction and recovery",
        source: COUNTER,
    },
    Metric {
        name: "net_savings",
        label: "net savings (estimate)",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "token savings if the agent read again, once, whatever a call needed and its prompt no \
              longer held; an estimate, for a replay cannot see an agent read again",
        formula: "1 − (S + re-reads)/S⁰; a re-read costs the prompt at that call + the missing tool \
                  result × the calls from there to the next compaction; what no tool ever brought \
                  costs a call that brings nothing",
        source: "string matching on tool calls, and the scenario's token counter",
    },
    Metric {
        name: "reread_calls",
        label: "re-reads (estimate)",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "calls by which the agent would have read again what was missing, each thing once",
        formula: "different tool results, and atoms no tool brought, that a call wanted and its prompt \
                  did not hold, over the calls both reached",
        source: "string matching on tool calls",
    },
    Metric {
        name: "trail_f1",
        label: "artifact trail F1",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "how well the prompt still says which files were read, created, modified and deleted; a \
              table of its own shows it verb by verb",
        formula: "2·right/(told + touched), over all calls; touched by the full history, calls after a \
                  death included; told by tool uses in the prompt and by lines of summaries",
        source: TRAIL,
    },
    Metric {
        name: "trail_precision",
        label: "artifact trail precision",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "of the files of which the prompt says what was done to them, the share of which it is true",
        formula: "right / told, over all calls",
        source: TRAIL,
    },
    Metric {
        name: "trail_recall",
        label: "artifact trail recall",
        unit: Unit::Share,
        direction: Direction::Higher,
        doc: "of the files that something was done to, the share of which the prompt still says so",
        formula: "right / touched, over all calls",
        source: TRAIL,
    },
    Metric {
        name: "unsupported_atoms",
        label: "unsupported atoms",
        unit: Unit::Share,
        direction: Direction::Lower,
        doc: "of the paths, identifiers, ids and numbers in summaries, the share that stands nowhere in \
              what the summary replaces: the least that was made up",
        formula: "unsupported / different atoms, summed over summaries; what an earlier summary said \
                  supports nothing",
        source: "string matching on the texts that stages write in place of messages",
    },
    Metric {
        name: "rejected",
        label: "rejected",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "calls whose prompt breaks a rule for which the provider documents an error",
        formula: "calls with a violation of level rejected that full history does not have",
        source: "the validity check",
    },
    Metric {
        name: "warnings",
        label: "warnings",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "findings the provider accepts, though something is off",
        formula: "count of violations of level warning",
        source: "the validity check",
    },
    Metric {
        name: "overflows",
        label: "overflows",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "prompts refused as too long, recovered or not",
        formula: "count over all cells",
        source: RECORD,
    },
    Metric {
        name: "deaths",
        label: "deaths",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "cells that ended at a prompt no recovery made fit, or at a call the provider never answered",
        formula: "count over all cells",
        source: RECORD,
    },
    Metric {
        name: "warned_calls",
        label: "warned",
        unit: Unit::Count,
        direction: Direction::Neutral,
        doc: "calls whose prompt had reached the warning or error line and no higher one",
        formula: "prompt ≥ effective window − 13,000 − 20,000, and below the line of automatic \
                  compaction",
        source: COUNTER,
    },
    Metric {
        name: "auto_compact_calls",
        label: "over auto-compact",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "calls whose prompt had reached the line of automatic compaction of Claude Code, and \
              not the blocking line",
        formula: "prompt ≥ effective window − 13,000, and below the blocking line",
        source: COUNTER,
    },
    Metric {
        name: "blocking_calls",
        label: "over blocking",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "calls whose prompt had reached the blocking line of Claude Code",
        formula: "prompt ≥ effective window − 3,000",
        source: COUNTER,
    },
    Metric {
        name: "blocked_turns",
        label: "blocked turns",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "times the user typed something at or above the blocking line, which a product would \
              have refused; the replay goes on",
        formula: "system prompt, tools and messages before the typed one ≥ effective window − 3,000",
        source: COUNTER,
    },
    Metric {
        name: "blocked_agents",
        label: "blocked agents",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "calls that started a sub-agent when the prompt filled that share of the effective window \
              from which on a product that collapses starts none: `block_at` of the strategy's own \
              `collapse_groups`, else Claude Code's 95 %; the replay goes on",
        formula: "prompt ≥ block_at · effective window, and the response uses a tool of the class \
                  `agent`",
        source: COUNTER,
    },
    Metric {
        name: "thrash",
        label: "thrash",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "paid compactions that are the third of three in a row; paid is one for which a model \
              was asked at the same call",
        formula: "each less than 4 calls after the one before",
        source: RECORD,
    },
    Metric {
        name: "retriggered",
        label: "re-triggered",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "compactions, paid or not, that left the context at or over the size their stage waits for, \
              all that the strategy did at that call included: the next call has to compact again",
        formula: "count of after ≥ trigger, in the trigger's own unit; after a refusal, of prompts that \
                  would be refused again",
        source: RECORD,
    },
    Metric {
        name: "next_call",
        label: "again at once",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "paid compactions at the very next call after another, whatever made them due",
        formula: "count of pairs of paid compactions one call apart",
        source: RECORD,
    },
    Metric {
        name: "futile",
        label: "futile",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "paid compactions that left most of the messages",
        formula: "after/before > 0.8",
        source: COUNTER,
    },
    Metric {
        name: "unseen_altered",
        label: "unseen loss",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "tool results altered before the first call that would have shown them: the model never \
              saw them as they were",
        formula: "results whose text differs from the recorded one at that call, or that are gone",
        source: RECORD,
    },
    Metric {
        name: "unseen_reachable",
        label: "unseen but reachable",
        unit: Unit::Count,
        direction: Direction::Neutral,
        doc: "of these, results that can be read again: a path to exactly their content stands in \
              their place",
        formula: "altered results whose place names the hash of their content",
        source: RECORD,
    },
    Metric {
        name: "unseen_gone",
        label: "unseen and gone",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "of the unseen, results that were put aside nowhere: neither the model nor the disk has \
              them as they were",
        formula: "altered results less those that a stage had put aside by then, even where the path \
                  was cleared since",
        source: RECORD,
    },
    Metric {
        name: "agent_failures",
        label: "agent retries",
        unit: Unit::Count,
        direction: Direction::Lower,
        doc: "attempts at the agent's own calls that failed; not in token savings, for no strategy \
              causes them",
        formula: "count over all cells",
        source: RECORD,
    },
];
