"""The summariser sees the newest messages only, and all older ones are deleted too.

openai/openai-agents-python#5010: OpenAIResponsesCompactionSession compacts only the SessionSettings.limit window and deletes the rest of the stored history
Seen: summaries in which the first half of the session never happened.
"""

from policy import Policy, run, safe_cut


class Buggy(Policy):
    def request(self, old):
        return super().request(old)[safe_cut(old, -6):]


run(Buggy())
