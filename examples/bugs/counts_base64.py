"""Images are counted as base64 text, so a few screenshots fill the window.

justrach/codegraff#260: Pasted image base64 triggers immediate compaction in a brand-new chat
markusylisiurunen/tau#453: estimate image tokens without base64 inflation
Seen: a compaction right after a picture was pasted.
"""

from policy import Policy, run, weight


class Buggy(Policy):
    def is_due(self, messages, budget):
        base64 = sum(weight(message)[1] for message in messages if weight(message)[0]) // 3
        return budget.used + base64 > self.share * self.window(budget) or super().is_due(messages, budget)


run(Buggy())
