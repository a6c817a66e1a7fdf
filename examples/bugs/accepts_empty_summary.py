"""An empty answer replaces the history.

fabro-sh/fabro#629: fix(agent): refuse to truncate history on a degenerate compaction summary
open-gsd/gsd-pi#118: fix(compaction): preserve history on empty summaries
Seen: the compaction reports success, and only the heading of a summary is left.
"""

from policy import PROMPT, Policy, run, user


class Buggy(Policy):
    def summary(self, old, budget, ask):
        return ask.full(self.request(old) + [user(PROMPT)]).text


run(Buggy())
