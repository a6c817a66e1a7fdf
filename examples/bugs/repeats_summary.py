"""Two triggers fire at one call, and the same summary enters the context twice.

dyad-sh/dyad#4630: Fix duplicate compaction summaries after chat reload
nugget/thane-ai-agent#1170: fix(memory): compaction coherence — single-flight, fold, position, ID-set marking
Seen: the window fills sooner, and the model reads everything twice.
"""

from policy import Policy, run, text_of, user


class Buggy(Policy):
    def joined(self, summary, kept, tail):
        return [summary, user(text_of(summary))] + kept + tail


run(Buggy())
