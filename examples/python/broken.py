"""The same with the usual bug: it counts messages, and may cut a tool call from its result."""


def compact(messages, budget, ask):
    if budget.used < 0.8 * budget.window:
        return messages
    return messages[:1] + messages[-19:]
