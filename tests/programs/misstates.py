"""Broken, in the way that its argument names: what stays is not what was said."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "bugs"))

from policy import Policy, blocks, run, text_of  # noqa: E402


def cut_in_units(text):
    """As JavaScript cuts: half a pair of units may be left."""
    return text.encode("utf-16-le")[:2002].decode("utf-16-le", "surrogatepass") + " [cut]"


class Broken(Policy):
    fault = sys.argv[1]

    def before_call(self, messages, budget, ask):
        if budget.overflow or not self.is_due(messages, budget):
            return super().before_call(messages, budget, ask)
        newest = len(messages) - 2
        return [self.edited(one, at >= newest) for at, one in enumerate(messages)]

    def edited(self, message, is_newest):
        own = blocks(message)
        results = [block["content"] for block in own if block["type"] == "tool_result"]
        if self.fault == "exchanged":
            moved = iter(results[1:] + results[:1])
        content = []
        for block in own:
            if block["type"] == "tool_use" and self.fault == "arguments":
                block = {**block, "input": {}}
            elif block["type"] != "tool_result" or is_newest:
                pass
            elif self.fault == "exchanged":
                block = {**block, "content": next(moved)}
            elif self.fault == "success":
                block = {**block, "content": "OK"}
            elif self.fault == "half" and len(text_of(block)) > 1100:
                block = {**block, "content": cut_in_units(text_of(block))}
            content.append(block)
        return {**message, "content": content}


run(Broken())
