"""Older summaries are never merged, so each compaction leaves one more.

nugget/thane-ai-agent#1170: fix(memory): compaction coherence — single-flight, fold, position, ID-set marking
openclaw/openclaw#80641: Compaction summary grows monotonically — prompt template concatenates prior summary
Seen: the longer the session, the less of the window is left for work.
"""

from policy import Policy, is_summary, run


class Buggy(Policy):
    def compacted(self, old, tail, budget, ask):
        summaries = [message for message in old if is_summary(message)]
        rest = [message for message in old if not is_summary(message)]
        return summaries + super().compacted(rest, tail, budget, ask)


run(Buggy())
