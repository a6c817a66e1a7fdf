"""When the user returns, the summarised messages are loaded again beside their summary.

openJiuwen-ai/jiuwenswarm#6893: [Bug]: restoring a compacted session replays the records the summary replaced
Seen: the resumed session is larger than before, and is compacted again at once.
"""

from policy import Policy, is_summary, is_typed, run


class Buggy(Policy):
    def start(self, session):
        self.stored = []

    def before_call(self, messages, budget, ask):
        if self.stored and is_typed(messages[-1]) and not budget.overflow:
            at = next((place + 1 for place, one in enumerate(messages) if is_summary(one)), 0)
            messages, self.stored = messages[:at] + self.stored + messages[at:], []
            return messages
        return super().before_call(messages, budget, ask)

    def kept(self, old, tail):
        self.stored = [message for message in old if not is_summary(message)]
        return super().kept(old, tail)


run(Buggy())
