"""The first of several parallel calls is dropped alone, and its result stays.

omnigent-ai/omnigent#2448: [Bug] Layer-3 compaction orphans a tool result when truncating parallel tool calls
Seen: the provider refuses the prompt, but only in sessions with parallel calls.
"""

from policy import Policy, blocks, run


class Buggy(Policy):
    def joined(self, summary, kept, tail):
        for at, message in enumerate(tail):
            calls = [block for block in blocks(message) if block["type"] == "tool_use"]
            if len(calls) > 1:
                rest = [block for block in blocks(message) if block is not calls[0]]
                tail = tail[:at] + [{**message, "content": rest}] + tail[at + 1:]
                break
        return super().joined(summary, kept, tail)


run(Buggy())
