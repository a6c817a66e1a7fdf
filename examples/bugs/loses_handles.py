"""The summary leaves out the ids of running tasks.

anthropics/claude-code#29263: [BUG] Background agent IDs lost on context compaction
anthropics/claude-code#90036: [Bug] Compaction loses track of in-flight agents, causing duplicate work
Seen: a task keeps running, and the agent can neither query nor stop it.
"""

import re

from policy import Policy, run


class Buggy(Policy):
    def summary(self, old, budget, ask):
        text = super().summary(old, budget, ask)
        return re.sub(r"\b(?=[\w-]*\d)(?=[\w-]*[a-z])[a-z0-9]+[-_][\w-]+\b", "(id)", text)


run(Buggy())
