"""All tool results are cleared, including those that the model has just asked for.

iOfficeAI/aionrs#271: Microcompact count trigger wipes tool results every 11 calls and drives tool-call loops
getkimchi/kimchi#426: chore: disable tool-result pruning extension until redesign lands
Seen: the agent reads the same file again and again.
"""

from policy import Policy, blocks, run, text_of


def cleared(block):
    is_long = block["type"] == "tool_result" and len(text_of(block)) > 80
    return {**block, "content": "[cleared to save room]"} if is_long else block


class Buggy(Policy):
    def before_call(self, messages, budget, ask):
        if budget.overflow or not self.is_due(messages, budget):
            return super().before_call(messages, budget, ask)
        return [{**one, "content": list(map(cleared, blocks(one)))} for one in messages]


run(Buggy())
