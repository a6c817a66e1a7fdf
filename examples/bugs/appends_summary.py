"""The summary is placed behind newer messages that it does not cover.

anomalyco/opencode#24963: Compaction: summary message appears after tail messages
acertainKnight/project-thoth#56: [agent] Messages appear out of order after context compaction
Seen: the model reads the oldest part of the session last.
"""

from policy import Policy, run, user


class Buggy(Policy):
    def joined(self, summary, kept, tail):
        return kept + tail + [summary]

    def kept(self, old, tail):
        return super().kept(old, tail) or [user("[earlier messages are summarised below]")]


run(Buggy())
