"""A summary that broke off at its token limit is stored as complete.

earendil-works/pi#7048: Compaction summary can be persisted truncated mid-word when generation hits the token cap (stopReason 'length' not checked)
openclaw/openclaw#127987: compaction: a summarization response cut off at max_tokens is committed as a complete summary
Seen: the context stops in the middle of a word, and everything after it is lost.
"""

from policy import PROMPT, AskFailed, Policy, run, user


class Buggy(Policy):
    def summary(self, old, budget, ask):
        reply = ask.full(self.request(old) + [user(PROMPT)], max_tokens=120)
        if not reply.text.strip():
            raise AskFailed("empty")
        return reply.text


run(Buggy())
