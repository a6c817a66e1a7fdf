"""The request for a summary begins with a result whose call was cut away.

tontinton/maki#641: fix(agent): preserve tool pairs during compaction
Seen: strict providers refuse the request, and nothing is ever compacted.
"""

from policy import Policy, blocks, run, text_of, user


class Buggy(Policy):
    def request(self, old):
        old = super().request(old)
        calls = (at for at, one in enumerate(old) if any(block["type"] == "tool_use" for block in blocks(one)))
        first = next(calls, None)
        if first is None or first + 1 >= len(old):
            return old
        return [user("The beginning: " + text_of(old[: first + 1]))] + old[first + 1 :]


run(Buggy())
