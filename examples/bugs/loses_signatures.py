"""Signed thinking is sent back as plain text within the same loop of calls.

RooCodeInc/Roo-Code#10351: fix: capture extended thinking signatures for tool use continuations
earendil-works/pi#1523: fix(ai): convert unsigned thinking blocks to plain text
Seen: the provider refuses the prompt when a compaction falls between a call and its result.
"""

from policy import Policy, blocks, run


def stored(block):
    return {"type": "text", "text": block["thinking"]} if block["type"] == "thinking" else block


class Buggy(Policy):
    def joined(self, summary, kept, tail):
        return [summary] + kept + [{**one, "content": list(map(stored, blocks(one)))} for one in tail]


run(Buggy())
