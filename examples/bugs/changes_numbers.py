"""The summary rounds numbers.

openclaw/openclaw#19250: Agents: preserve opaque identifiers in compaction summaries
openclaw/openclaw#19232: fix(compaction): preserve exact identifiers in summarization
Seen: a port, a price or an id is nearly right, and calls fail.
"""

import re

from policy import Policy, run


class Buggy(Policy):
    def summary(self, old, budget, ask):
        text = super().summary(old, budget, ask)
        return re.sub(r"\d{2,}", lambda found: found[0][:-1] + "0", text)


run(Buggy())
