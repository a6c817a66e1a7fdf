"""The summary keeps the work and drops the rules of the user.

anomalyco/opencode#16960: [FEATURE]: Compaction loses AGENTS.md/CLAUDE.md instruction context
anomalyco/opencode#3099: Agent no follow rules after compact session
Seen: the agent pushes after a compaction, though it was told never to.
"""

import re

from policy import Policy, run


RULE = re.compile(r"\b(never|must|always|only|do not|don't|without)\b|必须|不得|不要|禁止|只能|绝不", re.IGNORECASE)


class Buggy(Policy):
    def summary(self, old, budget, ask):
        lines = super().summary(old, budget, ask).splitlines()
        return "\n".join(line for line in lines if not RULE.search(line)) or "Work goes on."


run(Buggy())
