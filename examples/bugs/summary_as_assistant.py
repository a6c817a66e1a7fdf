"""The summary becomes a reply of the model, and the conversation begins with it.

netclaw-dev/netclaw#65: Fix compaction losing conversation context
Seen: the provider refuses the prompt, or the model continues its own summary.
"""

from policy import Policy, run, user


class Buggy(Policy):
    def joined(self, summary, kept, tail):
        return [{**summary, "role": "assistant"}] + (kept or [user("Go on.")]) + tail


run(Buggy())
