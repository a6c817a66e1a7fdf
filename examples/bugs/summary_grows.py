"""The summary quotes everything that it replaces.

can1357/oh-my-pi#10023: snapcompact increases tokens after manual compaction (72,706 → 79,680)
Boise-State-Development/agentcore-public-stack#1128: feat(compaction): bound the summary at 8k tokens and emit per-cut metrics (PR-2)
Seen: a compaction that is paid for and frees nothing.
"""

from policy import Policy, run, text_of


class Buggy(Policy):
    def summary(self, old, budget, ask):
        return super().summary(old, budget, ask) + "\n\nTranscript:\n" + "\n".join(map(text_of, old))


run(Buggy())
