"""Below its threshold it does nothing when the provider refuses a prompt as too long.

code-yeongyu/senpi#1425: fix: make context overflow failure-proof
Seen: where the provider counts more tokens than the agent, the session ends with an error.
"""

from policy import Policy, run


class Buggy(Policy):
    def overflow(self, messages, budget, ask):
        return messages


run(Buggy())
