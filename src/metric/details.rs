//! Metrics that stand in tables of their own: costs by class and purpose, money, time.

use super::Direction::{Higher, Lower};
use super::table::COUNTER;
use super::{Metric, Unit};

const SIMULATED: &str = "the simulated prompt cache, scheme by scheme";
const PRICES: &str = "the price files in force, and the simulated prompt cache";
const LATENCY: &str = "parameters of the model in a price file, and the simulated prompt cache";
const CLOCK: &str = "the thread's processor clock; `timings.jsonl`, `report --timings`";

/// Metrics that stand in tables of their own, with the names of their columns there.
pub const DETAILS: &[Metric] = &[
    Metric::tokens(SIMULATED, "cost", "input equivalents", Lower)
        .doc(
            "what all prompts and the strategy's calls cost, as so many uncached input tokens would",
        )
        .formula(
            "C = uncached + w·written + r·read of the agent's prompts and of the strategy's calls, \
             + o·output of the latter; w, r, o relative to input",
        ),
    Metric::tokens(SIMULATED, "uncached", "uncached", Lower)
        .doc(
            "prompts that were neither read from the cache nor written to it, the strategy's calls \
             included",
        )
        .formula("prompt − written − read"),
    Metric::tokens(SIMULATED, "written", "written", Lower)
        .doc("prompts that were written to the cache")
        .formula(
            "behind the prefix that was read, up to the last breakpoint; rounded down to the \
             scheme's step",
        ),
    Metric::tokens(SIMULATED, "read", "read", Higher)
        .doc("prompts that were read from the cache")
        .formula(
            "the longest live prefix that the scheme finds; rounded down to its step, and nothing \
             below its minimum",
        ),
    Metric::tokens(COUNTER, "compaction_tokens", "for compaction", Lower)
        .doc("what the strategy's calls before a call read and wrote")
        .formula("Σ input and output of purpose compaction, those to another model left out"),
    Metric::tokens(COUNTER, "background_tokens", "in background", Lower)
        .doc("what the strategy's calls beside the agent's work read and wrote")
        .formula("Σ input and output of purpose background, those to another model left out"),
    Metric::tokens(COUNTER, "recovery_tokens", "for recovery", Lower)
        .doc("what the strategy's calls after a refused prompt read and wrote")
        .formula("Σ input and output of purpose recovery, those to another model left out"),
    Metric::tokens(COUNTER, "elsewhere_tokens", "by another model", Lower)
        .doc("what the strategy's calls to a model that it names beside the agent's read and wrote")
        .formula("Σ input and output, whatever for"),
    Metric::count(SIMULATED, "break_even_call", "from call", Lower)
        .doc(
            "the call from which on a strategy has cost less than full history, to the end; the \
             median over the cells that have one",
        )
        .formula("the first call k with Σ C < Σ C⁰ over calls up to j, for every j ≥ k"),
    Metric::new(PRICES, "dollars", "dollars", Unit::Dollars, Lower)
        .doc(
            "what all calls cost, the agent's answers included: of each, its text as it is counted \
             or the tokens that the recording was billed for it, whichever is more, for recorded \
             counters may be partial",
        )
        .formula(
            "Σ over classes of tokens · price; unknown where the price of a class that occurs is \
             unknown",
        ),
    Metric::seconds(LATENCY, "blocking_seconds", "modelled time", Lower)
        .doc("how long the agent's calls and those that it waits for take, as modelled")
        .formula(
            "Σ a + (uncached + written)/ρ_prefill + read/ρ_read + output/ρ_decode over purposes \
             agent, compaction and recovery",
        ),
    Metric::seconds(LATENCY, "background_seconds", "modelled background", Lower)
        .doc("the same of the calls that nobody waits for")
        .formula("Σ over purpose background"),
    Metric::seconds(CLOCK, "strategy_cpu", "strategy's own time", Lower)
        .doc(
            "processor time of the strategy's own code, models left out: p50 and p95 of a call, \
             and all calls; measured on the machine of the run, and never added to modelled time",
        )
        .formula(
            "time of before_call, on_overflow, on_append and after_call less that of its models",
        ),
];
