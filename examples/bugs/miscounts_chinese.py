"""Four characters count as one token in every language, so a Chinese session is far longer than it looks.

openclaw/openclaw#70052: [Bug]: CJK Token Estimation Underestimation Causes Context Window Overflow in Compaction Path
Yeachan-Heo/gajae-code#2067: fix(agent): make the token heuristic script-aware for CJK text (supersedes #2041)
Seen: refused prompts, but only in Chinese, Japanese and Korean sessions.
"""

from policy import Policy, run, text_of


class Buggy(Policy):
    def is_due(self, messages, budget):
        used = budget.fixed + sum(len(text_of(message)) for message in messages) // 4
        return budget.overflow or used > self.share * self.window(budget)


run(Buggy())
