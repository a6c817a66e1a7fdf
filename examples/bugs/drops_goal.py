"""The first message, which states the goal, is removed before the summariser sees it.

markusylisiurunen/tau#228: compact (or at least auto-compact) tends to lose the initial user message or the "goal" of the work
Seen: the agent finishes a step and asks what the task was.
"""

from policy import Policy, run, user


class Buggy(Policy):
    def request(self, old):
        return [user("(The beginning of the conversation was removed.)")] + super().request(old)[1:]


run(Buggy())
