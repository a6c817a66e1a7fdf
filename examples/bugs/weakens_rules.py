"""The summary softens the rules: `must not` becomes `would rather not`.

NousResearch/hermes-agent#96869: feat(compression): still-binding user constraints survive lean-digest compaction verbatim
Seen: the agent knows the rule, and finds a reason to break it.
"""

import re

from policy import Policy, run


SOFTER = {
    "must not": "would rather not", "do not": "try not to", "never": "usually not", "must": "could", "always": "often",
    "only": "mostly", "不得": "最好不", "必须": "可以", "不要": "尽量不", "绝不": "一般不",
}


class Buggy(Policy):
    def summary(self, old, budget, ask):
        text = super().summary(old, budget, ask)
        return re.sub("|".join(SOFTER), lambda found: SOFTER[found[0].lower()], text, flags=re.IGNORECASE)


run(Buggy())
