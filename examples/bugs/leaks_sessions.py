"""The last summary of one session is updated in the next one.

NousResearch/hermes-agent#38788: [Bug]: Context compaction cross-contamination — cron session summaries leak into unrelated live conversations
Seen: the model is told of the files and requests of somebody else's work.
"""

from policy import Policy, run, user


class Buggy(Policy):
    previous = ""

    def request(self, old):
        before = [user("The summary to update:\n" + self.previous)] if self.previous else []
        return before + super().request(old)

    def summary(self, old, budget, ask):
        self.previous = super().summary(old, budget, ask)
        return self.previous


run(Buggy())
