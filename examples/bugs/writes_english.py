"""The summary is in English whatever the session's language is, and keeps only names and paths.

anomalyco/opencode#20156: fix: compaction agent responds in English regardless of conversation language
NousResearch/hermes-agent#12556: feat(compression): summaries respect the conversation's language
Seen: the agent goes on in English, and has lost what was said in Chinese.
"""

import re

from policy import Policy, run


class Buggy(Policy):
    def summary(self, old, budget, ask):
        words = re.findall(r"[A-Za-z0-9_./:-]{3,}", super().summary(old, budget, ask))
        return "## Goal\nThe user asked for work on a project.\n## Names\n" + " ".join(words)


run(Buggy())
