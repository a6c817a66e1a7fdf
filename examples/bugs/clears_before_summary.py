"""The old messages are emptied before the summary is asked for, and stay empty when it fails.

anthropics/claude-code#40352: Compaction race condition: rate limit during compaction destroys entire conversation transcript
Seen: a transcript of empty messages after a rate limit.
"""

from policy import AskFailed, Policy, run


class Buggy(Policy):
    def compacted(self, old, tail, budget, ask):
        try:
            return super().compacted(old, tail, budget, ask)
        except AskFailed:
            return [{"role": one["role"], "content": [{"type": "text", "text": ""}]} for one in old] + tail


run(Buggy())
