"""A summary that took a while overwrites the messages that arrived in the meantime.

mindroom-ai/mindroom#1094: Preserve history compaction progress across stale session writes
coder/xum#1007: 🤖 fix: prevent compaction summary loss from race condition
Seen: the newest call and its result are gone, and the agent repeats them.
"""

from policy import Policy, run


class Buggy(Policy):
    def start(self, session):
        self.ready = None

    def before_call(self, messages, budget, ask):
        if self.ready is not None:
            late, self.ready = self.ready, None
            return late
        result = super().before_call(messages, budget, ask)
        self.ready = result if result is not messages and not budget.overflow else None
        return result if budget.overflow else messages


run(Buggy())
