"""Compaction as an agent would have it: when the window is nearly full, the newest twenty messages stay.

As a script it is a strategy of `proctor run` and `proctor check`; imported, it is the plain function.
"""

from proctor_strategy import safe_cut, strategy


@strategy
def compact(messages, budget, ask):
    if budget.used < 0.8 * budget.window:
        return messages
    # Never between a tool call and its result: providers refuse that.
    start = max(1, safe_cut(messages, -20))
    return messages[:1] + messages[start:]
