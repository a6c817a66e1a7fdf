"""The summariser's input is cut at a fixed length, and the rest is in no summary.

gsd-build/gsd-2#4690: fix(compaction): prevent degenerate summaries by fixing chunker/truncation mismatch (#4665)
blueberrycongee/wuu#142: [bug] Compaction overflow trimming can silently drop unsummarized history
Seen: a good summary of the beginning, and nothing of the last hour.
"""

from policy import Policy, run, text_of, user


class Buggy(Policy):
    def request(self, old):
        return [user("\n".join(map(text_of, old))[:4_000])]


run(Buggy())
