"""All thinking is removed, even in front of the calls that are being answered.

crynta/terax-ai#445: fix(ai): keep reasoning in history so thinking models accept tool-call turns
bastani-inc/atomic#1393: fix(compaction): preserve thinking blocks during overflow
Seen: `Expected thinking or redacted_thinking, but found tool_use`, in the middle of a task.
"""

from policy import Policy, blocks, run


class Buggy(Policy):
    def joined(self, summary, kept, tail):
        bare = [{**one, "content": [block for block in blocks(one) if block["type"] != "thinking"]} for one in tail]
        return [summary] + kept + [new if new["content"] else old for new, old in zip(bare, tail)]


run(Buggy())
