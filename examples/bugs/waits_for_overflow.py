"""Nothing is compacted until the provider refuses a prompt as too long.

earendil-works/pi#6879: auto-compaction never triggers after context grows past 100% until provider overflow
Seen: a refused request before every compaction.
"""

from policy import Policy, run


class Buggy(Policy):
    def is_due(self, messages, budget):
        return budget.overflow


run(Buggy())
