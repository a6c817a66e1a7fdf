"""Our compaction: the newest three tool results stay; ten at a time, older ones become a placeholder.

The same function serves the agent: where this file is imported, nothing runs.
"""

from proctor_strategy import strategy  # clients/python/proctor_strategy.py, copied beside this file

KEEP_LAST = 3
EVERY = 10
PLACEHOLDER = "[old result cleared]"


@strategy(moments=("before_call",), kind="clear")
def compact(messages, budget, ask):
    results = [block for message in messages for block in message["content"] if block["type"] == "tool_result"]
    old = [block for block in results[:-KEEP_LAST] if block["content"] != PLACEHOLDER]
    # Every edit breaks the provider's prompt cache.
    if len(old) >= EVERY:
        for block in old:
            block["content"] = PLACEHOLDER
    return messages
