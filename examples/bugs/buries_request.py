"""The newest request is moved in front of the summary, behind which a note says to continue older work.

MoonshotAI/kimi-code#3604: User message appended during compaction is buried before the summary while the continuation anchor points at older work
Seen: the request is in the context, and the agent works on the one before.
"""

from policy import Policy, is_typed, run, user


class Buggy(Policy):
    def joined(self, summary, kept, tail):
        typed = [message for message in tail if is_typed(message)]
        rest = [message for message in tail if not is_typed(message)]
        return kept + typed + [summary] + rest + [user("Continue the work that was in progress when the summary was begun.")]


run(Buggy())
