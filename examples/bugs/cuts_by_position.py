"""A cut by position keeps a tool result and summarises the call that it answers.

datakurre/graph-agent#85: /compact orphans a toolResult from its tool_use, so the next turn fails with a 400
openclaw/openclaw#4739: Compaction-triggered tool_use/tool_result mismatch (variant of #1685)
Seen: the provider refuses every later prompt, and the session cannot go on.
"""

from policy import Policy, run


class Buggy(Policy):
    def cut(self, messages, budget):
        return max(len(messages) - 7, 0)


run(Buggy())
