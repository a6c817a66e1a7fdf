"""The call after a compaction compacts again, though the context is nearly empty.

openclaw/openclaw#3645: Bug: Double-compaction fires immediately after first compaction, compacting already-compacted context (39 tokens)
openclaw/openclaw#12170: [Bug] Double compaction fires on 1,489 tokens — second pass re-summarizes already-compressed summary
Seen: the fresh summary is summarised, and the details in it are gone.
"""

from policy import Policy, run, safe_cut


class Buggy(Policy):
    def start(self, session):
        self.once_more = False

    def before_call(self, messages, budget, ask):
        if not self.once_more:
            result = super().before_call(messages, budget, ask)
            self.once_more = result is not messages
            return result
        self.once_more = False
        cut = safe_cut(messages, -2)
        return self.compacted(messages[:cut], messages[cut:], budget, ask) if cut else messages


run(Buggy())
