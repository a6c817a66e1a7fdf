"""A window of a million tokens is treated as one of 200,000.

anthropics/claude-code#36014: [BUG] Autocompact triggers at 17% on 1M context model (effectiveWindow likely capped at 200k)
2389-research/tracker#572: Compaction ignores the model's real context window — default ContextWindowLimit from the (now dippin-sourced) per-model window
Seen: compaction at 16 % of the window.
"""

from policy import Policy, run


class Buggy(Policy):
    def window(self, budget):
        return min(super().window(budget), 200_000)


run(Buggy())
