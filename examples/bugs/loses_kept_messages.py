"""The second compaction skips the messages that the first one kept.

earendil-works/pi#2608: compaction: kept messages from first compaction are silently lost after second compaction
Seen: the stretch just before each compaction is forgotten at the next.
"""

from policy import Policy, is_summary, run


class Buggy(Policy):
    def start(self, session):
        self.newest = None

    def request(self, old):
        begin = old.index(self.newest) + 1 if self.newest in old else 0
        return [message for message in old[:begin] if is_summary(message)] + super().request(old)[begin:]

    def joined(self, summary, kept, tail):
        self.newest = tail[-1]
        return super().joined(summary, kept, tail)


run(Buggy())
