"""The requests of the user are kept, newest first.

anthropics/claude-code#41341: [BUG] On compaction, "All user messages" is incomplete / out of order.
Seen: the agent takes an early request for the last one.
"""

from policy import Policy, is_typed, run


class Buggy(Policy):
    def kept(self, old, tail):
        return [message for message in reversed(old) if is_typed(message)]


run(Buggy())
