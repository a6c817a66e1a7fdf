"""The kept messages alone exceed the threshold, so every call asks for a summary that frees almost nothing.

anomalyco/opencode#48828: fix(session): stop looping auto-compaction when it cannot restore context headroom
vtemian/micode#14: Compact Loop Hell
Seen: one summary for each call, and the bill for them.
"""

from policy import Policy, run, safe_cut, user


class Buggy(Policy):
    share, tail = 0.5, 0.55

    def before_call(self, messages, budget, ask):
        cut = self.cut(messages, budget) if self.is_due(messages, budget) else 0
        return self.compacted(messages[:cut], messages[cut:], budget, ask) if cut else messages

    def cut(self, messages, budget):
        return safe_cut(messages, max(super().cut(messages, budget), 3))

    def summary(self, old, budget, ask):
        return ask(self.request(old) + [user("Summarise the conversation.")])


run(Buggy())
