"""The summary fails, and the old messages are removed anyway.

mindsdb/anton#310: ENG-1274: Fix: compaction fail can clear history for anton
openclaw/openclaw#10099: Compaction safeguard silently loses messages when summarization fails
Seen: after one error of the provider the agent knows nothing of the session.
"""

from policy import AskFailed, Policy, run


class Buggy(Policy):
    def summary(self, old, budget, ask):
        try:
            return super().summary(old, budget, ask)
        except AskFailed:
            return f"({len(old)} earlier messages, for which no summary could be written.)"


run(Buggy())
