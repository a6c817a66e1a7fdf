"""Old results are cut to the room that is left, so their length changes at every call.

openclaw/openclaw#111085: Tool-result truncation jitter invalidates prompt-cache prefixes — quantize truncation to stable steps
LibreChat-AI/agents#497: 🧊 fix: Keep Historical Tool Result Truncation Byte-Stable Across Turns
Seen: fewer tokens, and a larger bill.
"""

from policy import Policy, blocks, run


class Buggy(Policy):
    def before_call(self, messages, budget, ask):
        result = super().before_call(messages, budget, ask)
        room = 400 + max(self.window(budget) - budget.used, 0) % 400
        return [one if one in result[-6:] else {**one, "content": [cut(b, room) for b in blocks(one)]} for one in result]


def cut(block, room):
    is_long = isinstance(block.get("content"), str) and len(block["content"]) > room
    return {**block, "content": block["content"][:room]} if is_long else block


run(Buggy())
