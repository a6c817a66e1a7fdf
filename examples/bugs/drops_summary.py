"""The second compaction removes the summary of the first as if it were an old message.

NousResearch/hermes-agent#55224: Responses auto truncation drops leading compaction summaries
Seen: the agent remembers the session until the second compaction.
"""

from policy import Policy, is_summary, run, user


class Buggy(Policy):
    def compacted(self, old, tail, budget, ask):
        if not any(map(is_summary, old)):
            return super().compacted(old, tail, budget, ask)
        return (self.kept(old, tail) or [user("[earlier messages were removed]")]) + tail


run(Buggy())
