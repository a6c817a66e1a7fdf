"""Two summaries that fail switch compaction off for the rest of the session.

Gitlawb/openclaude#1397: fix(autocompact): replace permanent circuit-breaker latch with cooldown
Seen: after a short outage of the provider the context grows until the session ends.
"""

from policy import AskFailed, Policy, run


class Buggy(Policy):
    failures = 0

    def start(self, session):
        self.failures = 0

    def before_call(self, messages, budget, ask):
        if self.failures >= 2:
            return messages
        try:
            return super().before_call(messages, budget, ask)
        except AskFailed:
            self.failures += 1
            raise


run(Buggy())
