"""Only tokens are counted, so images reach the provider's limits long before the window is full.

talesofai/cohub#122: fix(agent): count base64 images when deciding to compact
earendil-works/pi#1441: fix: estimate image tokens using actual base64 data length
Seen: `request too large`, while the window looks half empty.
"""

from policy import Policy, run


class Buggy(Policy):
    def is_heavy(self, messages):
        return False

    def overflow(self, messages, budget, ask):
        is_full = budget.used > self.share * self.window(budget)
        return super().overflow(messages, budget, ask) if is_full else messages


run(Buggy())
