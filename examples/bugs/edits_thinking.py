"""Signed thinking is shortened, and its signature no longer fits.

anomalyco/opencode#41738: Compaction fails: `thinking`/`redacted_thinking` blocks in latest assistant message cannot be modified
anthropics/claude-code#56695: [Bug] Anthropic API Error: Auto-compact modifies thinking blocks in assistant messages
Seen: the provider refuses every prompt after the compaction.
"""

from policy import Policy, blocks, run


def shortened(block):
    return {**block, "thinking": block["thinking"][:40]} if block["type"] == "thinking" else block


class Buggy(Policy):
    def joined(self, summary, kept, tail):
        return [summary] + kept + [{**one, "content": list(map(shortened, blocks(one)))} for one in tail]


run(Buggy())
