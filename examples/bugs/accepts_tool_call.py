"""A tool call in place of a summary is stored as the summary.

open-webui/open-webui#29308: issue: context compaction persists tool-protocol or reasoning output as a summary
Seen: the model wants to go on instead of summarising, and the history becomes an empty text.
"""

from policy import PROMPT, AskFailed, Policy, run, user


class Buggy(Policy):
    def summary(self, old, budget, ask):
        reply = ask.full(self.request(old) + [user(PROMPT)])
        if reply.stop not in ("end", "tool_use"):
            raise AskFailed(reply.stop)
        return reply.text or "(no text)"


run(Buggy())
