"""The newest request is kept as text, without the picture that it is about.

justrach/codegraff#260: Pasted image base64 triggers immediate compaction in a brand-new chat
Seen: `what is wrong in this screenshot?`, and no screenshot.
"""

from policy import Policy, blocks, is_typed, run


class Buggy(Policy):
    def joined(self, summary, kept, tail):
        bare = [
            {**one, "content": [block for block in blocks(one) if block["type"] != "image"]} if is_typed(one) else one
            for one in kept + tail
        ]
        return [summary] + [message for message in bare if message["content"]]


run(Buggy())
