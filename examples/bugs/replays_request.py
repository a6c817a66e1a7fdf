"""A request that was answered long ago is added at the end again.

Kilo-Org/kilocode#13374: fix(cli): prevent compaction request replay loops
NousResearch/hermes-agent#11475: [BUG] Context compaction causes duplicate responses after compression
Seen: finished work begins again after a compaction.
"""

from policy import Policy, is_typed, run


class Buggy(Policy):
    def joined(self, summary, kept, tail):
        return super().joined(summary, kept, tail) + self.first

    def kept(self, old, tail):
        self.first = [message for message in old if is_typed(message)][:1]
        return super().kept(old, tail)


run(Buggy())
