"""The summary carries the time of day, which changes at every call.

adolfousier/opencrabs#657: Per-second timestamp in system brain defeats prompt caching -> full context re-prefill every turn
earendil-works/pi#1873: System prompt includes current time with second-level precision, breaking prompt cache on every request
Seen: nothing is read from the prompt cache, and no two runs are equal.
"""

import time

from policy import Policy, is_summary, run, text_of, user

MARK = "\nIt is now "


class Buggy(Policy):
    def before_call(self, messages, budget, ask):
        result = super().before_call(messages, budget, ask)
        return [user(f"{text_of(one).split(MARK)[0]}{MARK}{time.time_ns()}") if is_summary(one) else one for one in result]


run(Buggy())
