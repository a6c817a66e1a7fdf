"""Broken: takes the words of a model that declines for a summary."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "bugs"))

from policy import PROMPT, AskFailed, Policy, run, user  # noqa: E402


class Broken(Policy):
    def summary(self, old, budget, ask):
        reply = ask.full(self.request(old) + [user(PROMPT)])
        if reply.stop not in ("end", "refusal") or not reply.text.strip():
            raise AskFailed(reply.stop)
        return reply.text


run(Broken())
