"""The summary records a rule that the user never gave.

justrach/codegraff#738: Compaction can invent recorded constraints and constraint updates can lag one turn
code-yeongyu/oh-my-openagent#1483: fix(compaction): Compaction summary inserts arbitrary constraints that override user agents.md
Seen: the agent refuses a step that it was asked for.
"""

from policy import Policy, blocks, run


class Buggy(Policy):
    def summary(self, old, budget, ask):
        calls = [block["name"] for one in old for block in blocks(one) if block["type"] == "tool_use"]
        rule = f"Recorded constraint: never use {calls[-1] if calls else 'a tool'} more than {len(calls)} times."
        return super().summary(old, budget, ask) + "\n" + rule


run(Buggy())
