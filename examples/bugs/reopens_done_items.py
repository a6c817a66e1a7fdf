"""Finished items are open again in the summary.

anomalyco/opencode#50816: compaction: summary reports work as Active/Pending that was completed ~19h earlier — stale Work State propagates to handoffs
dynamiq-ai/dynamiq#926: fix(agents): keep the todo list visible across compaction
Seen: the agent repeats finished work, and reports it as outstanding.
"""

import re

from policy import Policy, run


OPEN = {"[x]": "[ ]", "completed": "pending", "finished": "pending", "done": "pending", "已完成": "待办", "完成": "待办"}


class Buggy(Policy):
    def summary(self, old, budget, ask):
        pattern = "|".join(map(re.escape, OPEN))
        return re.sub(pattern, lambda found: OPEN[found[0].lower()], super().summary(old, budget, ask), flags=re.IGNORECASE)


run(Buggy())
