"""An old plan is added behind the newest request, in the voice of the user.

vercel/eve#1844: Terminal-only todo lists are re-injected as user messages during compaction
Seen: the agent leaves its task for one that was over.
"""

from policy import Policy, run, text_of, user


class Buggy(Policy):
    def joined(self, summary, kept, tail):
        return super().joined(summary, kept, tail) + [user("My list of things to do:\n" + self.plan)]

    def kept(self, old, tail):
        steps = [text_of(one["content"]).strip().splitlines() for one in old if one["role"] == "assistant"]
        self.plan = "\n".join(f"- [ ] {lines[0][:100]}" for lines in steps[-5:] if lines)
        return super().kept(old, tail)


run(Buggy())
