"""A fixed reserve of 32,000 tokens makes a small window look full at every call.

anomalyco/opencode#45368: Compaction re-triggers after every step when a model does not report limit.output
Seen: with a small local model, a summary after each step and the same file read again and again.
"""

from policy import Policy, run


class Buggy(Policy):
    def before_call(self, messages, budget, ask):
        cut = self.cut(messages, budget) if self.is_due(messages, budget) else 0
        return self.compacted(messages[:cut], messages[cut:], budget, ask) if cut > 1 else messages

    def is_due(self, messages, budget):
        return budget.overflow or budget.used > self.window(budget) - 32_000


run(Buggy())
