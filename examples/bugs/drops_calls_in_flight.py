"""A call without a result yet is taken for a leftover and removed, so its result answers nothing.

7df-lab/devo#186: Auto compaction drops in-flight orphan tool calls
Seen: the tool runs, and the provider refuses the prompt with its result.
"""

from policy import Policy, blocks, run


class Buggy(Policy):
    def after_call(self, messages, budget, ask):
        answered = {block["tool_use_id"] for one in messages for block in blocks(one) if block["type"] == "tool_result"}
        if not self.is_due(messages, budget):
            return messages
        finished = []
        for message in messages:
            kept = [block for block in blocks(message) if block["type"] != "tool_use" or block["id"] in answered]
            finished += [message if len(kept) == len(blocks(message)) else {**message, "content": kept}] if kept else []
        return self.before_call(finished, budget, ask)


run(Buggy())
