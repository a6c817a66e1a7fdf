"""Texts are removed, and their blocks stay empty.

anthropics/claude-code#863: Invalid OpenAI API Request: Empty Text Content Blocks During Compaction
getnao/nao#985: fix(compaction): ignore blank summaries during rehydration
Seen: `text content blocks must be non-empty`, at every call after the compaction.
"""

from policy import Policy, blocks, run


def emptied(block):
    return {**block, "text": ""} if block["type"] == "text" else block


class Buggy(Policy):
    def joined(self, summary, kept, tail):
        shorter = [{**one, "content": list(map(emptied, blocks(one)))} if one["role"] == "assistant" else one for one in tail]
        return [summary] + kept + shorter


run(Buggy())
