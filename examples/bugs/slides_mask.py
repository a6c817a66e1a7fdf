"""Results are masked behind the newest two messages, so every call changes the cached prompt.

cloudflare/agents#2200: Investigate which context-reduction mechanisms break prompt caching
defilantech/LLMKube#1286: [BUG] Session compaction invalidates the KV cache every turn, forcing a full re-prefill
Seen: every call pays for a part of the history again.
"""

from policy import Policy, blocks, run, text_of


class Buggy(Policy):
    def before_call(self, messages, budget, ask):
        masked = [{**one, "content": list(map(mask, blocks(one)))} for one in messages[:-2]]
        return super().before_call(masked + messages[-2:], budget, ask)


def mask(block):
    is_long = block["type"] == "tool_result" and len(text_of(block)) > 80
    return {**block, "content": "[old result]"} if is_long else block


run(Buggy())
