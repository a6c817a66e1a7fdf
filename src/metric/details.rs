//! Metrics that stand in tables of their own: costs by class and purpose, money, time.

use super::Direction::{Higher, Lower};
use super::table::COUNTER;
use super::{Metric, Unit};

const SIMULATED: &str = "the simulated prompt cache, scheme by scheme";
const PRICES: &str = "the price files in force, and the simulated prompt cache";
const LATENCY: &str = "parameters of the model in a price file, and the simulated prompt cache";

/// Metrics that stand in tables of their own, with the names of their columns there.
pub const DETAILS: &[Metric] = &[
    Metric::tokens("cost", "input equivalents", Lower)
        .doc(
            "what all prompts and the strategy's calls cost, as so many uncached input tokens would",
        )
        .formula(
            "C = uncached + w·written + r·read of the agent's prompts and of the strategy's calls, \
             + o·output of the latter; w, r, o relative to input",
        )
        .source(SIMULATED),
    Metric::tokens("uncached", "uncached", Lower)
        .doc(
            "prompts that were neither read from the cache nor written to it, the strategy's calls \
             included",
        )
        .formula("prompt − written − read")
        .source(SIMULATED),
    Metric::tokens("written", "written", Lower)
        .doc("prompts that were written to the cache")
        .formula(
            "behind the prefix that was read, up to the last breakpoint; rounded down to the \
             scheme's step",
        )
        .source(SIMULATED),
    Metric::tokens("read", "read", Higher)
        .doc("prompts that were read from the cache")
        .formula(
            "the longest live prefix that the scheme finds; rounded down to its step, and nothing \
             below its minimum",
        )
        .source(SIMULATED),
    Metric::tokens("compaction_tokens", "for compaction", Lower)
        .doc("what the strategy's calls before a call read and wrote")
        .formula("Σ input and output of purpose compaction, those to another model left out")
        .source(COUNTER),
    Metric::tokens("background_tokens", "in background", Lower)
        .doc("what the strategy's calls beside the agent's work read and wrote")
        .formula("Σ input and output of purpose background, those to another model left out")
        .source(COUNTER),
    Metric::tokens("recovery_tokens", "for recovery", Lower)
        .doc("what the strategy's calls after a refused prompt read and wrote")
        .formula("Σ input and output of purpose recovery, those to another model left out")
        .source(COUNTER),
    Metric::tokens("elsewhere_tokens", "by another model", Lower)
        .doc("what the strategy's calls to a model that it names beside the agent's read and wrote")
        .formula("Σ input and output, whatever for")
        .source(COUNTER),
    Metric::count("break_even_call", "from call", Lower)
        .doc(
            "the call from which on a strategy has cost less than full history, to the end; the \
             median over the cells that have one",
        )
        .formula("the first call k with Σ C < Σ C⁰ over calls up to j, for every j ≥ k")
        .source(SIMULATED),
    Metric::new("dollars", "dollars", Unit::Dollars, Lower)
        .doc(
            "what all calls cost, the agent's answers included: of each, its text as it is counted \
             or the tokens that the recording was billed for it, whichever is more, for recorded \
             counters may be partial",
        )
        .formula(
            "Σ over classes of tokens · price; unknown where the price of a class that occurs is \
             unknown",
        )
        .source(PRICES),
    Metric::new("blocking_seconds", "modelled time", Unit::Seconds, Lower)
        .doc("how long the agent's calls and those that it waits for take, as modelled")
        .formula(
            "Σ a + (uncached + written)/ρ_prefill + read/ρ_read + output/ρ_decode over purposes \
             agent, compaction and recovery",
        )
        .source(LATENCY),
    Metric::new("background_seconds", "modelled background", Unit::Seconds, Lower)
        .doc("the same of the calls that nobody waits for")
        .formula("Σ over purpose background")
        .source(LATENCY),
    Metric::new("strategy_cpu", "strategy's own time", Unit::Seconds, Lower)
        .doc(
            "processor time of the strategy's own code, models left out: p50 and p95 of a call, \
             and all calls; measured on the machine of the run, and never added to modelled time",
        )
        .formula(
            "time of before_call, on_overflow, on_append and after_call less that of its models",
        )
        .source("the thread's processor clock; `timings.jsonl`, `report --timings`"),
];
