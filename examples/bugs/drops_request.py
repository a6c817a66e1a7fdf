"""The newest request is summarised away, and only results of tools follow the summary.

justrach/codegraff2#155: Compaction evicts the live user turn (retention_window=0) → agent answers the summary frame instead of the question
Seen: the agent answers the summary's heading instead of the question.
"""

from policy import Policy, run


class Buggy(Policy):
    def kept(self, old, tail):
        return []


run(Buggy())
